"""What does `glasshouse prove` write? A file for each fact, the definitions, the index, and the checker itself."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.commands.attack import Asking
from glasshouse.commands.proving.defining import Defining
from glasshouse.commands.proving.occupancy import second_file
from glasshouse.commands.proving.words import CERTIFIED, OPEN, REFUSED, WEAKER
from glasshouse.engine.job import Job
from glasshouse.engine.manifest import sha256
from glasshouse.errors import InputError
from glasshouse.files.output import private_file
from glasshouse.files.tables import TableFile
from glasshouse.model.records import UNLIMITED
from glasshouse.proofs.certificate import complete
from glasshouse.proofs.check_proof import (
    DEFINITIONS,
    READS_SECOND,
    SECOND,
    TOO_LONG,
    UNREADABLE,
    Refused,
    check,
    form,
    numbers_in,
)

INDEX, CHECKER, PUBLISHED = "index.csv", "check_proof.py", "published.csv"
COLUMNS = ("place", "fact", "statement", "file", "status")


@dataclass(frozen=True)
class Row:
    """A fact: what was to be shown, what was, and how it ended."""

    place: str
    fact: str
    statement: str
    file: str
    status: str
    before: str
    shown: int


@dataclass(frozen=True)
class Written:
    """The facts, and the files that were written."""

    rows: tuple[Row, ...]
    names: list[str]
    files: int
    bytes: int


@dataclass(frozen=True)
class Second:
    """The file of a second agency: what is printed of each place, and how it was read."""

    lines: Mapping[str, Sequence[Mapping[str, str]]]
    told: Mapping[str, object]


def written(
    folder: Path, job: Job, file: TableFile, asking: Asking, defining: Defining, second: Second | None = None
) -> Written:
    """Write the files of a run whose certificates lie in the folder; each is checked before it is called certified."""
    frame = pl.read_parquet(folder / "certificates.parquet")
    names: list[str] = []

    def put(name: str, content: bytes) -> None:
        with private_file(folder / name) as stream:
            stream.write(content)
        names.append(name)

    assume = asking.read.assume_published
    plain = is_plain(asking, file)
    tables, made_from = asking.tables, None
    if not plain:
        put(PUBLISHED, excerpt(file, job, frame["place"].unique().to_list(), assume, defining.used))
        tables = folder / PUBLISHED
        made_from = {"name": asking.tables.name, "sha256": sha256(asking.tables) if asking.tables.is_file() else ""}
    aside = [name for name in _names(tables) if name not in defining.used]
    about = defining.content(aside=aside, made_from=made_from, second_from=None if second is None else second.told)
    put(DEFINITIONS, about)
    for name in (CHECKER,) if second is None else (CHECKER, READS_SECOND):
        put(name, (resources.files("glasshouse") / "proofs" / name).read_bytes())
    hashes = [sha256(tables), hashlib.sha256(about).hexdigest()]
    if second is not None:
        printed = second_file(second.lines, frame["place"].unique().to_list())
        put(SECOND, printed)
        hashes[0] += f" {hashlib.sha256(printed).hexdigest()}"
    texts = {}
    for name, text in frame.filter(pl.col("text") != "").select("file", "text").iter_rows():
        texts[name] = complete(text, *hashes).encode()
        put(name, texts[name])
    verdict = {path.name: (fine, said) for path, fine, said in _checked(folder, tables, list(texts))}
    for name in [name for name, (fine, said) in verdict.items() if not fine and said == TOO_LONG]:
        (folder / name).unlink()  # what nobody would check is no certificate
        names.remove(name)
        del verdict[name], texts[name]
    rows = tuple(_row(one, verdict) for one in frame.iter_rows(named=True))
    lines = io.StringIO(newline="")
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([getattr(row, column) for column in COLUMNS] for row in rows)
    put(INDEX, lines.getvalue().encode())
    return Written(rows, names, len(texts), sum(map(len, texts.values())))


def _checked(folder: Path, tables: Path, names: list[str]) -> Iterator[tuple[Path, bool, str]]:
    """The checker's verdicts; that a file cannot be read is none."""
    try:
        for path, fine, said in check(folder, tables, [folder / one for one in names]):
            if not fine and UNREADABLE in said:
                raise InputError(f"{path.name}: {said}")
            yield path, fine, said
    except (Refused, OSError) as error:
        raise InputError(f"the proofs cannot be checked: {error}") from None


def _row(said: dict[str, str | int], verdict: dict[str, tuple[bool, str]]) -> Row:
    name, shown = str(said["file"]), int(said["shown"])
    fine, statement = verdict.get(name, (False, ""))
    if name not in verdict:
        name, status = "", OPEN
    elif not fine:
        status = REFUSED
    else:
        status = CERTIFIED if shown == said["wanted"] else WEAKER  # of `vary --scope` more may have been said
    return Row(str(said["place"]), str(said["fact"]), statement, name, status, str(said["before"]), shown)


def is_plain(asking: Asking, file: TableFile) -> bool:
    """Can the checker read the published file itself: a long CSV with official names, each number as it is meant?"""
    path, scenario = asking.tables, asking.scenario
    if not path.is_file() or not path.name.endswith((".csv", ".csv.gz")) or asking.read.mapping:
        return False
    usual = set(asking.read.parameters) == {"assume_published"} and not asking.read.inputs
    if not usual or not file.seen.sparse or scenario.printed.rule is not None or scenario.printed.missing != "zero":
        return False
    try:
        with form(path.name), gzip.open(path, "rb") if path.name.endswith(".gz") else path.open("rb") as stream:
            names = {name for _, _, name, _ in numbers_in(stream)}
    except Refused:
        return False
    used = {line.variable for table in scenario.tables for line in table.lines}
    other = names - used
    tables = {table.name for table in scenario.tables}
    return all(name in scenario.official and scenario.official[name][0] not in tables for name in other)


def _names(path: Path) -> list[str]:
    found = pl.scan_csv(path, infer_schema=False).select(pl.col("variable").unique()).collect()
    return sorted(found["variable"].drop_nulls().to_list())


def excerpt(file: TableFile, job: Job, places: Collection[str], assume: str, used: Collection[str]) -> bytes:
    """The numbers used, of some places and the areas around them, as a long CSV; of zeros there is one of each."""
    geography = job.scenario.geography
    wanted = {geography.place: set(places)}
    if job.area_level is not None:
        wanted[job.area_level] = {geography.code(place, job.area_level) for place in places}
    lines = io.StringIO(newline="")
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("level", "geoid", "variable", "lower", "upper"))
    for level, counts in file.some(wanted, assume=assume).levels.items():
        shown = (counts.lower != 0) | (counts.upper != 0)
        shown[0] |= ~shown.any(axis=0)  # so that every number that is published is there
        shown &= np.array([name in used for name in counts.variables])
        for row, column in zip(*np.nonzero(shown), strict=True):
            high = int(counts.upper[row, column])
            writer.writerow((level, counts.places[row], counts.variables[column], int(counts.lower[row, column]),
                             "" if high >= UNLIMITED else high))  # fmt: skip
    return lines.getvalue().encode()
