"""How is a file written so that no one else reads it and no one ever sees half of it?"""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import polars as pl
import pyarrow.parquet as pq

from glasshouse.errors import InputError

KINDS = (".csv", ".csv.gz", ".parquet")
Columns = dict[str, pl.DataType | type[pl.DataType]]  # of a data file: the type of each, by name


class RowWriter(Protocol):
    """Takes frames of rows, in order."""

    def write(self, frame: pl.DataFrame) -> None: ...


@contextmanager
def private_file(path: Path) -> Iterator[BinaryIO]:
    """A file for the owner alone, written beside its name and renamed once it is whole."""
    if path.is_dir():
        raise InputError(f"{path} is a directory; expected the name of a file to write")
    with private_folder(path.parent):
        try:
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mkstemp gives mode 0600
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from None
        try:
            with os.fdopen(handle, "wb") as stream:
                yield cast(BinaryIO, stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextmanager
def private_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into: what is missing of it is made for the owner alone, and removed again on failure."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        try:
            path.mkdir(mode=0o700)
        except OSError as error:
            raise InputError(
                f"{path}: the folder cannot be made ({error.strerror}); name another place to write"
            ) from None
    try:
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
    """Write rows to CSV, CSV.gz or Parquet, by the extension; the same rows give the same bytes."""
    check_kind(path)
    name = path.name.lower()
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
                yield _Csv(cast(BinaryIO, packed))
        else:
            yield _Csv(stream)


class _Csv:
    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.header = stream, True

    def write(self, frame: pl.DataFrame) -> None:
        self.stream.write(frame.write_csv(include_header=self.header).encode())
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
