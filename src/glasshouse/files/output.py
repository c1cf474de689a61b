"""How is a file written so that no one else reads it and no one ever sees half of it?"""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import polars as pl
import pyarrow.parquet as pq

from glasshouse.errors import InputError
from glasshouse.files.formats import sdmx_out
from glasshouse.files.rooms import UNFINISHED, sync, unfinished_file

KINDS = (".csv", ".csv.gz", ".parquet")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
Columns = dict[str, pl.DataType | type[pl.DataType]]  # of a data file: the type of each, by name


class RowWriter(Protocol):
    """Takes frames of rows, in order."""

    def write(self, frame: pl.DataFrame) -> None: ...


@contextmanager
def private_file(path: Path) -> Iterator[BinaryIO]:
    """A file for the owner alone, written beside its name and renamed once it is whole."""
    if path.is_dir():
        raise InputError(f"{path} is a directory; expected the name of a file to write")
    with private_folder(path.parent), _told(path):
        handle, name = unfinished_file(path.parent)
        stream = cast(BinaryIO, os.fdopen(handle, "wb"))
        try:
            yield stream
            try:
                stream.flush()
                os.fsync(handle)
                os.replace(name, path)  # before its lock goes with the handle
                sync(path.parent)
            except OSError as error:
                raise InputError(f"{path}: cannot be written ({error.strerror})") from None
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        finally:
            with suppress(OSError):  # what could not be flushed has been complained of
                stream.close()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """A full disk says so without a name, or with that of the unfinished file: we know which one was meant."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL and UNFINISHED not in str(error.filename):
            raise  # of another file, which was read meanwhile
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


@contextmanager
def private_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into: what is missing of it is made for the owner alone, and removed again on failure."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        for path in reversed(missing):
            try:
                path.mkdir(mode=0o700)
                sync(path.parent)
            except OSError as error:
                raise InputError(
                    f"{path}: the folder cannot be made ({error.strerror}); name another place to write"
                ) from None
        yield folder
    except BaseException:
        for path in missing:
            with suppress(OSError):  # not empty: someone else uses it by now
                path.rmdir()
        raise


def check_kind(path: Path) -> None:
    """Refuse a name whose ending we cannot write."""
    if not path.name.lower().endswith(KINDS):
        raise InputError(f"{path}: cannot write this kind of file; known: {', '.join(KINDS)}, or an office's .zip")


@contextmanager
def row_writer(path: Path) -> Iterator[RowWriter]:
    """Write rows to CSV, CSV.gz or Parquet, by the extension; the same rows give the same bytes.

    Tables under a name that ends in `.sdmx.csv` are written as SDMX-CSV.
    """
    check_kind(path)
    name, sdmx = path.name.lower(), sdmx_out.is_sdmx(path)
    with private_file(path) as stream:
        if name.endswith(".parquet"):
            parquet = _Parquet(stream)
            try:
                yield parquet
            finally:
                parquet.close()  # before its stream: else it complains when it is collected
        elif name.endswith(".gz"):
            # no name and no time in the header: the bytes depend on the rows alone
            with gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=6, mtime=0) as packed:
                yield _Csv(cast(BinaryIO, packed), sdmx)
        else:
            yield _Csv(stream, sdmx)


class _Csv:
    def __init__(self, stream: BinaryIO, sdmx: bool) -> None:
        self.stream, self.sdmx, self.header = stream, sdmx, True

    def write(self, frame: pl.DataFrame) -> None:
        told = sdmx_out.rows(frame) if self.sdmx else frame
        self.stream.write(told.write_csv(include_header=self.header).encode())
        self.header = False


class _Parquet:
    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.writer: pq.ParquetWriter | None = None

    def write(self, frame: pl.DataFrame) -> None:
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        if self.writer is None:
            self.writer = pq.ParquetWriter(self.stream, table.schema, compression="zstd")
        self.writer.write_table(table)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
