"""What is in a file of whatever format? One door: the tables of any file, in the one shape that all are read into."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from glasshouse.errors import InputError
from glasshouse.files.crossed import Crossed

Read = Callable[[Path], tuple[Crossed, ...]]

_TEXT = (".csv", ".csv.gz", ".txt", ".txt.gz", ".tsv", ".tsv.gz")
_HERE = "glasshouse.files.formats"
# How a name ends, and the module that reads such files; columns of text are looked at first
READERS = {".px": "px", ".json": "jsonstat", ".xml": "sdmx_ml", ".xlsx": "sheet", ".xlsm": "sheet"}
REMEDIES = {
    ".xls": "save it as .xlsx", ".xlsb": "save it as .xlsx", ".ods": "save it as .xlsx", ".zip": "unpack it",
    ".px.gz": "unpack it", ".json.gz": "unpack it", ".xml.gz": "unpack it",
}  # fmt: skip


def crossed(path: Path) -> tuple[Crossed, ...]:
    """Every table of a file, by how its name ends and how it begins; none of the numbers is read yet."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    if path.is_dir():
        raise InputError(f"{path} is a directory; expected a file with a table")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty; expected a table")
    name = path.name.lower()
    for ending, module in READERS.items():
        if name.endswith(ending):
            return _reader(module)(path)
    for ending, remedy in REMEDIES.items():
        if name.endswith(ending):
            raise InputError(f"{path.name}: files that end in {ending} are not read; {remedy}")
    if name.endswith((*_TEXT, ".parquet")):
        return _columns(path)
    known = ", ".join([*_TEXT[:2], ".parquet", *READERS])
    raise InputError(f"{path.name}: unknown kind of file; known: {known}")


def says_itself(path: Path) -> bool:
    """Does a file's format say what its columns are? Others are columns, of which someone must tell what they mean."""
    return path.name.lower().endswith(tuple(READERS)) or _is_sdmx_csv(path)


def _is_sdmx_csv(path: Path) -> bool:
    from glasshouse.files.formats import sdmx_csv
    from glasshouse.files.frames import open_text

    return path.name.lower().endswith(_TEXT) and sdmx_csv.is_sdmx(open_text(path).columns)


def _columns(path: Path) -> tuple[Crossed, ...]:
    """A file of columns: SDMX-CSV if it begins so, or else what its header says."""
    if _is_sdmx_csv(path):
        return _reader("sdmx_csv")(path)
    try:
        delimited = import_module(f"{_HERE}.delimited")
    except ModuleNotFoundError:
        raise InputError(f"{path.name}: not SDMX-CSV, and tables of columns are not read by this version") from None
    found: Crossed = delimited.read(path)
    return (found,)


def _reader(module: str) -> Read:
    found: Read = import_module(f"{_HERE}.{module}").read
    return found
