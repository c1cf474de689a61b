"""How is an NHGIS extract read as it was sent? A zip of CSV files, each with the codebook that says what it holds."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from glasshouse.errors import InputError
from glasshouse.files.archive import SafeZip, member_source
from glasshouse.files.codebook import ENDING, Codebook, no_table
from glasshouse.files.frames import Source
from glasshouse.limits import TEXT_FILE_BYTES
from glasshouse.scenarios.load import Scenario


def is_extract(path: Path) -> bool:
    """Does a zip hold a codebook, as extracts do and archives of the office do not?"""
    with SafeZip(path) as archive:
        return any(name.endswith(ENDING) for name in archive.names)


def read_extract(path: Path, scenario: Scenario, named: Codebook) -> tuple[tuple[Source, Codebook], ...]:
    """The files of an extract that hold a table of the scenario, and the codebook of each, unless one is named."""
    with SafeZip(path) as archive:
        members = [name for name in archive.names if name.lower().endswith(".csv")]
        books = {name: named if named.tables else _codebook(archive, name, scenario) for name in members}
    if not members:
        raise InputError(f"{path.name}: holds no .csv file; expected an NHGIS extract with comma-separated values")
    used = [name for name, book in books.items() if book.has_table_of(scenario)]
    if not used:
        raise no_table(path.name, books, scenario)
    return tuple((member_source(path, name), books[name]) for name in used)


def _codebook(archive: SafeZip, member: str, scenario: Scenario) -> Codebook:
    wanted = member[: -len(".csv")] + ENDING
    if wanted not in archive.names:
        raise archive.error(member, "no codebook of it", f"'{PurePosixPath(wanted).name}' beside it")
    with archive.open(wanted) as stream:
        text = stream.read(TEXT_FILE_BYTES + 1)
    if len(text) > TEXT_FILE_BYTES:
        raise archive.error(wanted, f"more than {TEXT_FILE_BYTES >> 20} MiB", "the codebook of an extract")
    return Codebook.parse(text.decode("latin-1"), f"{archive.path.name}: {PurePosixPath(wanted).name}", scenario)
