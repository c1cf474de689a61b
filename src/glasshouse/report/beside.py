"""How do our figures stand beside the published ones? Tables of a paper, as pages and workbooks, and as data.

The internal files hold exact counts and are for the owner alone, and so are the public ones until somebody publishes
them: what they show is what `publish` lets everybody see. The same tables give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from glasshouse.assess.paper_tables import Column as PaperColumn
from glasshouse.assess.paper_tables import PaperTable
from glasshouse.files.output import private_file, row_writer
from glasshouse.report.attacked import given_away
from glasshouse.report.description import Cell, Column, Count, Measure, Report, Section, Share, Table
from glasshouse.report.publish import THRESHOLD, Rule, publish
from glasshouse.report.words import phrase, table

PUBLIC = "tables-public"
Row = Mapping[str, str | int | float | None]
# what a number that is no ratio of two counts is about: the first of these that the row has
_ABOUT = ("putative", "population", "households", "persons", "claims", "whole", "blocks")


def write_tables(
    tables: Sequence[PaperTable], folder: Path, about: Sequence[str], wholes: Mapping[str, Sequence[int]] | None = None
) -> list[str]:
    """Write the tables into a folder, for the office and for everyone, and as data; the names of the files.

    `about` are sentences that stand under the title. `wholes` has, of a table that shows no counts, those whom each row
    is about. If the public version would give somebody away, there is none, and the internal one says so.
    """
    from glasshouse.report.render.page import page  # renderers are slow to load
    from glasshouse.report.render.sheets import sheets

    inside = report_of(tables, about, wholes or {})
    shared = publish(inside, THRESHOLD)
    versions = {"tables": inside, PUBLIC: shared}
    if away := given_away(inside, shared, THRESHOLD):
        said = phrase("beside.no_public", where=", ".join(away))
        versions = {"tables": replace(inside, about=f"{inside.about} {said}")}
    names = []
    for name, report in versions.items():
        for ending, content in ((".xlsx", sheets(report)), (".html", page(report).encode())):
            with private_file(folder / f"{name}{ending}") as stream:
                stream.write(content)
            names.append(f"{name}{ending}")
    for one in tables:
        name = f"table-{_padded(one.name)}.parquet"
        with row_writer(folder / name) as writer:
            writer.write(one.frame)
        names.append(name)
    return names


def unpublished(names: Sequence[str]) -> list[str]:
    """What a run says of the tables it wrote, if there is no public version among them."""
    return [] if f"{PUBLIC}.html" in names else [phrase("beside.not_written", file=f"{PUBLIC}.html")]


def _padded(name: str) -> str:
    """A name that sorts: S06 comes before S10."""
    return f"S{int(name[1:]):02}" if name.startswith("S") else name.replace(" ", "-")


def report_of(
    tables: Sequence[PaperTable], about: Sequence[str], wholes: Mapping[str, Sequence[int]] | None = None
) -> Report:
    """Tables as a report: a section for each."""
    sections, places = [], _places(tables)
    for one in tables:
        found = described(one, (wholes or {}).get(one.name), places)
        title = phrase("beside.table", name=one.name)
        sections.append(Section(f"section-{found.name}", title, "", (found,)))
    said = " ".join([*about, phrase("beside.public", threshold=THRESHOLD, fewest=Rule(THRESHOLD).fewest)])
    return Report(phrase("beside.title"), said, "internal", (), (), tuple(sections), (), (), listed=False)


def _places(tables: Sequence[PaperTable]) -> dict[str, int]:
    """How many places there are of each size, if a table says it."""
    found: dict[str, int] = {}
    for one in tables:
        if [column.name for column in one.columns if column.kind == "key"] == [
            "band"
        ] and "blocks" in one.frame.columns:
            found |= dict(one.frame.select("band", "blocks").drop_nulls().iter_rows())
    return found


def described(table: PaperTable, whole: Sequence[int] | None = None, places: Mapping[str, int] | None = None) -> Table:
    """A table of the paper in the report's words: numbers know whom they are about, intervals go with their share.

    `places` are how many there are of each size: so few may be behind a row that everybody would know which.
    """
    frame = table.frame if whole is None else table.frame.with_columns(pl.Series("whole", whole, pl.Int64))
    columns = [one for one in table.columns if one.kind not in ("low", "high") or not _goes_with_share(table, one)]
    keys = [one.name for one in columns if one.kind == "key"]
    bands = frame["band"].n_unique() < frame.height if "band" in keys else False
    counts = [one.name for one in columns if one.kind == "count" and not one.published]
    return Table(
        table.name.replace(" ", "-"),
        phrase("beside.heading", name=table.name, title=table.title),
        tuple(Column(one.headings[2], published=one.published, above=one.headings[:2]) for one in columns),
        tuple(tuple(_cell(one, row) for one in columns) for row in frame.iter_rows(named=True)),
        "",
        table.notes,
        keys=len(keys),
        shown=frame.height,
        places=[one.name for one in columns].index("blocks") if keys == ["band"] and "blocks" in counts else None,
        panels=keys[0] == "panel",
        band=keys.index("band") if bands else None,
        behind=tuple((places or {}).get(band) for band in frame["band"]) if "band" in keys else (),
    )


def _goes_with_share(table: PaperTable, end: PaperColumn) -> bool:
    """Has every interval of this end a share that it belongs to?"""
    share = end.name.removesuffix(f"_{end.kind}")
    frame = table.frame
    return share in frame.columns and bool((frame[share].is_not_null() | frame[end.name].is_null()).all())


def _cell(column: PaperColumn, row: Row) -> Cell:
    value = row[column.name]
    low, high = (_end(row.get(f"{column.name}_{end}")) for end in ("low", "high"))
    if column.ratio is not None and not column.published:
        part, whole, times = column.ratio
        if row[part] is not None and row[whole] is not None:  # of nobody, too: a row of nobody is one of few
            return Share(int(row[part] or 0), times * int(row[whole] or 0), low, high)
    if value is None:
        return None
    if column.kind in ("key", "word"):
        return table("beside.keys").get(str(value), str(value))
    if column.kind == "count":
        return Count(int(value), people=not column.published)
    number = float(value)
    if column.published:
        return Measure(number, 0, "share")
    return Measure(number, _about(column, row), "points" if column.name == "difference" else "share", low, high)


def _end(value: str | int | float | None) -> float | None:
    return None if value is None else float(value)


def _about(column: PaperColumn, row: Row) -> int:
    """How many persons a number is about; one, if that is not known: then nobody else sees it."""
    attacker = column.name.partition("_")[0]
    for name in _ABOUT:
        for own in (f"{attacker}_{name}", name):
            if row.get(own) is not None:
                return max(int(row[own] or 0), 1)
    return 1
