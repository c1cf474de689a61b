"""How is an archive read without being harmed by it? By its declared sizes first, and never by unpacking it."""

from __future__ import annotations

import copy
import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, BinaryIO, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.frames import TEXT_FOLLOWS, Source, Text, text_source
from glasshouse.limits import MEMBERS, RATIO, SMALL_BYTES, TOTAL_BYTES
from glasshouse.model.records import UNLIMITED

CHUNK_BYTES = 2**24

_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError, ValueError)


@dataclass(frozen=True)
class Chunk:
    """A piece of an archive: whole lines of one member, and the number of the first."""

    member: str
    line: int
    lines: bytes

    def error(self, row: int, found: str, expected: str) -> InputError:
        """What is wrong with a line, counted from 0 within the chunk."""
        return _mend(f"{self.member}, line {self.line + row}", found, expected)

    def fields(self, delimiter: str, count: int, names: Mapping[int, str]) -> pl.DataFrame:
        """Some of the fields as text (blank is null), after every line was found to have the right number of them."""
        text = np.frombuffer(self.lines, np.uint8)
        ends = np.flatnonzero(text == ord("\n"))
        if text[-1] != ord("\n"):
            ends = np.append(ends, len(text))
        found = np.diff(np.searchsorted(np.flatnonzero(text == ord(delimiter)), ends), prepend=0) + 1
        if (found != count).any():
            row = int(np.argmax(found != count))
            raise self.error(row, f"{found[row]} fields", f"{count} fields separated by '{delimiter}'")
        wanted = sorted(names)
        frame = pl.read_csv(
            TEXT_FOLLOWS + self.lines,
            skip_rows=1,
            has_header=False,
            columns=wanted,
            separator=delimiter,
            quote_char=None,
            infer_schema=False,
            encoding="utf8-lossy",  # names of areas are Latin-1; codes and numbers are ASCII
        )
        frame.columns = [names[index] for index in wanted]
        return frame

    def numbers(self, text: pl.DataFrame, rows: NDArray[np.int64] | None = None) -> pl.DataFrame:
        """Whole numbers from text, null where it is null; `rows` says which lines they come from if not from all."""
        numbers = text.cast(pl.Int64, strict=False)
        negative = numbers.select((pl.all() < 0).any()).row(0)
        if any(negative) or numbers.null_count().row(0) != text.null_count().row(0):
            faulty = text.select(pl.all().is_not_null()).to_numpy() & (numbers.fill_null(-1).to_numpy() < 0)
            row, column = (int(index) for index in np.argwhere(faulty)[0])
            found = f"'{text[row, column]}' in field {text.columns[column]}"
            raise self.error(row if rows is None else int(rows[row]), found, "a whole number, 0 or more")
        if any(numbers.select((pl.all() > UNLIMITED).any()).row(0)):
            row, column = (int(index) for index in np.argwhere(numbers.fill_null(0).to_numpy() > UNLIMITED)[0])
            found = f"{numbers[row, column]:,} in field {text.columns[column]}"
            raise self.error(row if rows is None else int(rows[row]), found, f"a number up to {UNLIMITED:,}")
        return numbers


class SafeZip:
    """A zip file whose members can only be read as streams, after all of them were found harmless."""

    def __init__(self, path: Path, *, total_bytes: int = TOTAL_BYTES, folders_matter: bool = False) -> None:
        self.path, self._folders_matter = path, folders_matter
        try:
            self._zip = zipfile.ZipFile(path)
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}); give the path of a zip file") from None
        except _DAMAGE as error:
            raise InputError(
                f"{path}: not a zip file, or one cut short ({error}); expected a zip file; download or copy it again"
            ) from None
        try:
            self._members = {info.filename: info for info in self._zip.infolist() if not info.filename.endswith("/")}
            self._refuse_harm(total_bytes)
        except InputError:
            self._zip.close()
            raise

    def __enter__(self) -> SafeZip:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, trace: TracebackType | None) -> None:
        self._zip.close()

    @property
    def names(self) -> tuple[str, ...]:
        """The members by name, folders left out."""
        return tuple(self._members)

    def size(self, name: str) -> int:
        """The bytes of a member, as the archive declares them."""
        return self._members[name].file_size

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Read a member; damage, or another size than declared, stops the reading with an `InputError`."""
        info = self._members[name]
        # zipfile silently stops at the declared size. Asked for one byte more, it reveals whether there is more.
        generous = copy.copy(info)
        generous.file_size += 1
        where = f"{self.path}: member '{name}'"
        try:
            source = self._zip.open(generous)
        except (*_DAMAGE, OSError) as error:  # a wrong offset is an invalid argument to the system
            raise _damaged(where, error) from None
        with source, io.BufferedReader(_Declared(source, info.file_size, where)) as stream:
            yield stream

    def lines(self, name: str) -> Iterator[Chunk]:
        """Read a member of text a piece at a time, so that it never has to fit in memory."""
        where, line, rest = f"{self.path}: {name}", 1, b""
        with self.open(name) as stream:
            while data := stream.read(CHUNK_BYTES):
                lines, newline, rest = (rest + data).rpartition(b"\n")
                if len(rest) > CHUNK_BYTES:
                    raise _mend(f"{where}, after line {line - 1}", "a line without an end", "lines of text")
                if newline:
                    yield Chunk(where, line, (lines + newline).replace(b"\r\n", b"\n"))
                    line += lines.count(b"\n") + 1
        if rest:
            yield Chunk(where, line, rest)

    def error(self, name: str, found: str, expected: str) -> InputError:
        """What is wrong with the contents of a member."""
        return _mend(f"{self.path}: {name}", found, expected)

    def _refuse_harm(self, total_bytes: int) -> None:
        infos = self._zip.infolist()
        if len(infos) > MEMBERS:
            raise self._refusal(f"{len(infos):,} members", f"at most {MEMBERS:,}")
        total = sum(info.file_size for info in infos)
        if total > total_bytes:
            raise self._refusal(f"{total:,} bytes when unpacked", f"at most {total_bytes:,}")
        for info in infos:
            self._refuse_member(info)
        files = [PurePosixPath(info.filename) for info in infos if not info.filename.endswith("/")]
        bases = sorted((str(file) if self._folders_matter else file.name).casefold() for file in files)
        for base, following in pairwise(bases):
            if base == following:
                raise self._refusal(f"two members called '{base}'", "different names")

    def _refuse_member(self, info: zipfile.ZipInfo) -> None:
        name = info.orig_filename
        if (
            not name
            or name.startswith("/")
            or ".." in name.split("/")
            or re.match(r"[A-Za-z]:", name)
            or set(name) & set("\\\0")
        ):
            raise self._refusal(f"a member called {name!r}", "names relative to the archive, without '..' or '\\'")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise self._refusal(f"a symbolic link '{name}'", "plain files")
        if info.flag_bits & 0x1:
            raise self._refusal(f"an encrypted member '{name}'", "members without a password")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self._refusal(f"'{name}' packed by method {info.compress_type}", "members stored or deflated")
        if info.file_size > max(SMALL_BYTES, RATIO * info.compress_size):
            raise self._refusal(
                f"'{name}', {info.compress_size:,} bytes that unpack to {info.file_size:,} (a zip bomb?)",
                f"at most {RATIO} times the packed size",
            )

    def _refusal(self, found: str, expected: str) -> InputError:
        return InputError(
            f"{self.path}: holds {found}; expected {expected}; download it again, or pack only the needed files anew"
        )


class _Declared(io.RawIOBase):
    """A member's bytes, as many as the archive declared: no more, no fewer."""

    def __init__(self, source: IO[bytes], size: int, where: str) -> None:
        self._source, self._size, self._where, self._read = source, size, where, 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._read

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # typeshed's name for it is newer
        try:
            data = self._source.read(len(buffer))
        except (*_DAMAGE, OSError) as error:
            raise _damaged(self._where, error) from None
        self._read += len(data)
        if self._read > self._size or (not data and self._read < self._size):
            found = "more" if self._read > self._size else f"only {self._read:,}"
            raise _damaged(self._where, f"{self._size:,} bytes declared and {found} found")
        buffer[: len(data)] = data
        return len(data)


def member_source(path: Path, member: str) -> Source:
    """A member of a zip that is a file of columns; it is read as a stream, and complaints name both."""

    @contextmanager
    def opened() -> Iterator[Text]:
        with SafeZip(path) as archive, archive.open(member) as stream:
            size = max(archive.size(member), 1)
            yield cast(BinaryIO, stream), lambda: stream.tell() / size

    return text_source(path.with_name(f"{path.name}: {PurePosixPath(member).name}"), opened)


def _damaged(where: str, what: object) -> InputError:
    return InputError(f"{where} is damaged ({what}); expected an undamaged archive; download or copy it again")


def _mend(where: str, found: str, expected: str) -> InputError:
    return InputError(f"{where}: found {found}; expected {expected}; download the archive again, or mend that file")
