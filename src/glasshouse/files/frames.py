"""How is a file read without holding it whole? CSV, CSV.gz and Parquet as a stream of frames with line numbers."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.limits import COLUMNS, COMMENT_LINES, FILES, GZIP_RATIO, GZIP_RATIO_FROM, LINE_BYTES, NAME_LENGTH
from glasshouse.text import harmful

Watch = Callable[[float], None]  # is told the share of a file that has been read
Pieces = Callable[["Source", Sequence[str]], Iterator["Chunk"]]  # the rows of a file, with only these columns
Text = tuple[BinaryIO, Callable[[], float]]  # bytes as they are read, and the share of them read so far
TEXT_FOLLOWS = b"-\n"  # a line before all others: Polars would unpack what begins like a packed file, however large
BLOCK_BYTES = 16 << 20
BATCH_ROWS = 250_000
_DAMAGE = (pa.ArrowException, OSError, UnicodeDecodeError, pl.exceptions.PolarsError, pl.exceptions.PanicException)


@dataclass(frozen=True)
class Chunk:
    """Some consecutive rows of a file: where the first stands, and the share of the file read so far."""

    frame: pl.DataFrame
    first: int
    done: float


@dataclass(frozen=True)
class Source:
    """A file of columns: its header, and its rows piece by piece."""

    path: Path
    columns: tuple[str, ...]
    counted_in: str  # "line" or "row"
    skipped: int = 0  # comment lines before the header
    delimiter: str = ","
    pieces: Pieces | None = field(default=None, compare=False)  # how its format gives the rows

    @property
    def told(self) -> str:
        """The columns, for a complaint; not the first record of a file without a header."""
        if any(name.replace(".", "", 1).isdigit() for name in self.columns):
            return "no header (the first line looks like data)"
        return ", ".join(name[:40] for name in self.columns[:20]) + (", ..." if len(self.columns) > 20 else "")

    def where(self, number: int) -> str:
        return f"{self.path.name}, {self.counted_in} {number}"

    def chunks(self, columns: Iterable[str] | None = None) -> Iterator[Chunk]:
        """The rows, with only these columns (all by default). CSV columns come as text."""
        wanted = list(self.columns if columns is None else columns)
        if self.pieces is None:
            raise GlasshouseBug(f"{self.path.name}: nobody says how its rows are read")
        yield from self.pieces(self, wanted)


def as_text(column: pl.Series) -> pl.Series:
    """A column as text; whole numbers that a program has made decimals of are whole again."""
    if not column.dtype.is_float():
        return column.cast(pl.String)
    whole = (column == column.round()) & (column.abs() < 2**53)
    return column.cast(pl.Int64, strict=False).cast(pl.String).zip_with(whole.fill_null(True), column.cast(pl.String))


def unwatched(done: float) -> None:
    """For callers who do not mind how far the reading is."""


def open_source(path: Path) -> Source:
    """Look at a file's header; the one place where formats are told apart."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    if path.is_dir():
        raise InputError(f"{path} is a directory; expected a CSV, CSV.gz or Parquet file")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty; expected a header and rows")
    name = path.name.lower()
    for ending in sorted(FORMATS, key=len, reverse=True):  # .sdmx.csv before .csv
        if name.endswith(ending):
            return FORMATS[ending](path)
    known = ", ".join(ending for ending in FORMATS if ".txt" not in ending and ".sdmx" not in ending)
    raise InputError(f"{path}: unknown kind of file; known: {known}, .zip (an office's archive)")


def rows_in(path: Path) -> int:
    """How many rows a file has, without a look at them."""
    if path.suffix.lower() == ".parquet":
        with _parquet(path) as file:
            return int(file.metadata.num_rows)
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
        return max(sum(piece.count(b"\n") for piece in iter(lambda: stream.read(1 << 20), b"")) - 1, 0)


def add_format(ending: str, opened: Callable[[Path], Source]) -> None:
    """Read files whose name ends so, too: `opened` looks at the header, and its source's `pieces` give the rows."""
    FORMATS[ending] = opened


def _open_parquet(path: Path) -> Source:
    with _parquet(path) as file:
        return Source(path, _distinct(path, file.schema_arrow.names), "row", pieces=_parquet_chunks)


def open_text(path: Path) -> Source:
    """Look at the header of a file of columns between commas, semicolons, tabs or pipes."""
    return text_source(path, lambda: _text(path))


def text_source(path: Path, opened: Callable[[], AbstractContextManager[Text]]) -> Source:
    """Look at the header of a text whose bytes `opened` gives; the path is only its name."""
    with opened() as (stream, _):
        skipped, line = 0, _header_line(path, stream)
        while line.startswith("#"):
            skipped, line = skipped + 1, _header_line(path, stream)
            if skipped > COMMENT_LINES:
                raise InputError(f"{path.name}: more than {COMMENT_LINES:,} comment lines; expected a header and rows")
    if "\r" in line:
        raise InputError(
            f"{path.name}: line ends are single carriage returns; expected line feeds; save it as CSV again"
        )
    delimiter = max(",|;\t", key=line.count)  # the first of them on a tie: a single column has none
    try:
        names = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        raise InputError(f"{path.name}: the header cannot be read ({error}); expected names of columns") from None
    if not any(name.strip() for name in names):
        raise InputError(f"{path} is empty; expected a header and rows")
    columns = _distinct(path, [name.strip() for name in names])
    return Source(path, columns, "line", skipped, delimiter, partial(_csv_chunks, opened=opened))


def need_columns(source: Source, columns: Sequence[str], purpose: str) -> None:
    """Refuse a file that lacks a column, naming those it has."""
    for column in columns:
        if column not in source.columns:
            raise InputError(f"{source.path.name}: column '{column}' is missing ({purpose}); found: {source.told}")


def refuse_control(source: Source, first: int, column: pl.Series) -> pl.Series:
    """Refuse the first text that cannot be printed or drawn, of a column that pages and pictures will name."""
    different = column.drop_nulls().unique()
    wrong = [text for text in different if harmful(text) is not None]
    if wrong:
        line = first + int((column == wrong[0]).arg_max() or 0)
        raise InputError(
            f"{source.where(line)}: column '{column.name}' has the control character {harmful(wrong[0])}; expected "
            "letters that can be printed"
        )
    return column


def _distinct(path: Path, names: Iterable[str]) -> tuple[str, ...]:
    columns = tuple(names)
    if len(columns) > COLUMNS:
        raise InputError(f"{path.name}: {len(columns):,} columns; expected at most {COLUMNS:,}")
    seen: set[str] = set()
    for name in columns:
        if name in seen:
            raise InputError(f"{path.name}: column '{name[:NAME_LENGTH]}' stands twice in the header")
        seen.add(name)
    return columns


def _header_line(path: Path, stream: BinaryIO) -> str:
    raw = _reading(path, lambda: stream.readline(LINE_BYTES))
    if not raw.strip():
        raise InputError(f"{path} is empty; expected a header and rows")
    try:
        return raw.decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError:
        raise InputError(f"{path.name}: not a text file in UTF-8; expected a header line of column names") from None


@contextmanager
def _text(path: Path) -> Iterator[Text]:
    """The bytes of a CSV file, decompressed on the way."""
    size = path.stat().st_size
    with path.open("rb") as raw:
        if path.name.lower().endswith(".gz"):
            with gzip.GzipFile(fileobj=raw) as stream:
                yield cast(BinaryIO, stream), lambda: raw.tell() / size
        else:
            yield raw, lambda: raw.tell() / size


def _reading(path: Path, read: Callable[[], bytes]) -> bytes:
    try:
        return read()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            f"{path.name}: the gzip file is damaged or cut short ({error}); copy or download it again"
        ) from None
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read ({error.strerror})") from None


def _blocks(path: Path, stream: BinaryIO) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time."""
    packed = path.stat().st_size if path.name.lower().endswith(".gz") else None
    rest, total = b"", 0
    while block := _reading(path, lambda: stream.read(BLOCK_BYTES)):
        total += len(block)
        if packed and total > GZIP_RATIO_FROM and total > GZIP_RATIO * packed:
            raise InputError(f"{path.name}: decompresses to more than {GZIP_RATIO} times its size; refused as a bomb")
        if b"\0" in block:
            raise InputError(f"{path.name}: holds zero bytes; expected a text file")
        cut = block.rfind(b"\n") + 1
        if cut == 0 and len(rest) + len(block) > LINE_BYTES:
            raise InputError(f"{path.name}: a line of more than {LINE_BYTES >> 20} MiB; expected rows of a table")
        if cut:
            yield rest + block[:cut]
            rest = block[cut:]
        else:
            rest += block
    if rest.strip():
        yield rest


def _csv_chunks(
    source: Source, wanted: Sequence[str], opened: Callable[[], AbstractContextManager[Text]]
) -> Iterator[Chunk]:
    line = 1
    with opened() as (stream, done):
        for _ in range(source.skipped + 1):
            _reading(source.path, lambda: stream.readline(LINE_BYTES))
            line += 1
        for block in _blocks(source.path, stream):
            yield Chunk(_parse(source, block, wanted, line), line, done())
            line += block.count(b"\n")


def _parse(source: Source, block: bytes, wanted: Sequence[str], line: int) -> pl.DataFrame:
    try:
        frame = pl.read_csv(
            TEXT_FOLLOWS + block,
            skip_rows=1,
            has_header=False,
            new_columns=list(source.columns),
            separator=source.delimiter,
            infer_schema=False,
            raise_if_empty=False,
        )
    except (pl.exceptions.PolarsError, UnicodeError):
        frame = None
    lines = block.count(b"\n") + (block[-1:] != b"\n")
    whole = frame is not None and frame.width == len(source.columns) and frame.height == lines
    if frame is None or not whole or _cut_short(source, block, frame):
        fault = _ragged(source, block, line)
        if fault is not None:
            raise fault
        if frame is None or not whole:
            raise InputError(
                f"{source.path.name}, from line {line}: cannot be read as CSV (a quote that is not closed?)"
            )
    return frame.select(wanted)


def _cut_short(source: Source, block: bytes, frame: pl.DataFrame) -> bool:
    """May a line have lost its last fields? They would be read as empty, without a word."""
    if b'"' in block:  # delimiters may stand inside quotes: only lines that end with an empty field are in doubt
        return frame[source.columns[-1]].null_count() > 0
    return block.count(source.delimiter.encode()) != frame.height * (len(source.columns) - 1)


def _ragged(source: Source, block: bytes, line: int) -> InputError | None:
    """Find the first line that cannot be read, the slow way; None when each has its fields."""
    expected = len(source.columns)
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        at = line + block[: error.start].count(b"\n")
        return InputError(f"{source.where(at)}: not UTF-8 text; save the file as UTF-8")
    for number, row in enumerate(io.StringIO(text), start=line):
        if row.count('"') % 2:
            said = "a quote is opened and not closed; expected each row on one line, without line breaks in its fields"
            return InputError(f"{source.where(number)}: {said}")
        try:
            fields = next(csv.reader([row], delimiter=source.delimiter), [])
        except csv.Error as error:
            return InputError(f"{source.where(number)}: cannot be read ({error})")
        if len(fields) != expected:
            return InputError(f"{source.where(number)}: {len(fields)} fields; expected {expected} as in the header")
    return None


@contextmanager
def _parquet(path: Path) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except _DAMAGE as error:
        said, _, _ = str(error).partition("\n")
        raise InputError(f"{path.name}: not a readable Parquet file ({said[:120]})") from None


def _parquet_chunks(source: Source, wanted: Sequence[str]) -> Iterator[Chunk]:
    row, path = 1, source.path
    with _parquet(path) as file:
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(wanted)):
            batch.validate(full=True)  # Polars believes what it is given, and panics
            table = pa.Table.from_arrays(batch.columns, batch.schema.names)  # without what others wrote beside it
            frame = _plain(path, cast(pl.DataFrame, pl.from_arrow(table)))
            frame.columns = batch.schema.names  # Polars calls a column without a name otherwise
            yield Chunk(frame.select(wanted), row, (row + frame.height - 1) / file.metadata.num_rows)
            row += frame.height


def _plain(path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    """Columns as text, whole numbers or decimals, whatever spelling of them Parquet holds; anything else is refused."""
    columns = []
    for column in frame.get_columns():
        kind = column.dtype
        if kind.is_integer() or kind == pl.Boolean:
            number = column.cast(pl.Int64, strict=False)
            if number.null_count() > column.null_count():  # what does not fit would be a blank
                raise InputError(f"{path.name}: column '{column.name}' holds a number beyond 64 bits")
            columns.append(number)
        elif kind.is_float():
            columns.append(column.cast(pl.Float64).fill_nan(None))  # so some programs spell a blank
        elif kind.is_decimal():
            number = column.cast(pl.Float64)
            if (number.cast(kind, strict=False) != column).any() or number.null_count() > column.null_count():
                raise InputError(f"{path.name}: column '{column.name}' has more digits than a number can hold exactly")
            columns.append(number)
        elif kind in (pl.String, pl.Categorical, pl.Enum, pl.Null):
            columns.append(column.cast(pl.String))
        elif kind == pl.Binary:
            try:
                columns.append(column.cast(pl.String))
            except pl.exceptions.PolarsError:
                raise InputError(f"{path.name}: column '{column.name}' holds bytes that are not UTF-8 text") from None
        else:
            raise InputError(f"{path.name}: column '{column.name}' holds {kind}; expected text or numbers")
    return pl.DataFrame(columns)


def table_files(folder: Path) -> tuple[list[Path], tuple[str, ...]]:
    """The files of a folder that may be tables, in order, and the names of the others."""
    if (folder / "scenario.toml").is_file():
        raise InputError(f"{folder} is the folder of a scenario; expected tables, in a file or a folder of their own")
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if len(files) > FILES:
        raise InputError(f"{folder}: {len(files):,} files; expected at most {FILES:,}")
    tables = [path for path in files if _may_be_table(path)]
    if not tables:
        raise InputError(f"{folder} is a directory without tables; expected CSV, CSV.gz or Parquet files in it")
    return tables, tuple(path.name for path in files if path not in tables)


def _may_be_table(path: Path) -> bool:
    name = path.name.lower()
    text = name.endswith((".txt", ".txt.gz"))  # read-me files and codebooks
    return not text and (of_columns(path) or name.endswith(OTHER_FORMATS))


def of_columns(path: Path) -> bool:
    """Is it a file of columns, by its ending?"""
    return path.name.lower().endswith(tuple(FORMATS))


OTHER_FORMATS = (".px", ".json", ".xml", ".xlsx", ".xlsm")  # read as tables of an office (files/formats)
# How a name ends, and who looks at such a file first
FORMATS: dict[str, Callable[[Path], Source]] = {
    ".csv": open_text,
    ".csv.gz": open_text,
    ".parquet": _open_parquet,
    ".txt": open_text,
    ".txt.gz": open_text,
}
