"""What does an office see of its own tables? Each as it is printed, every hidden number with what is known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from glasshouse.model.geography import plural
from glasshouse.model.release import Line
from glasshouse.model.release import Table as Published
from glasshouse.report.description import Cell, Column, Count, Known, Printed, Section, Sentence, Table
from glasshouse.report.sections.bounds import SOURCE, Bounds
from glasshouse.report.words import joined, phrase, say

SECTION = "printed"
TABLES = 4  # that are printed
PLACES = 6  # beside each other
REASONS = 8  # that a note lists; the workbook has all
LINES = 48  # of a longer table those are printed of which most is given away
Row = Mapping[str, Any]  # of a frame


@dataclass(frozen=True)
class Chosen:
    """A table at a level, and the places of which it is printed; there are `among` places with hidden numbers of it."""

    table: str
    level: str
    places: tuple[str, ...]
    among: int


def chosen(found: Bounds, tables: int = TABLES, places: int = PLACES) -> list[Chosen]:
    """The tables of which most numbers are given away, each in the places where most of it is."""
    each = _of_tables(found).with_columns(given=pl.col("exact") + pl.col("narrow"))
    ranked = (
        each.group_by("table", "level").agg(pl.col("given", "hidden").sum(), pl.len().alias("among"))
        .sort("given", "hidden", "table", "level", descending=[True, True, False, False]).head(tables)
    )  # fmt: skip
    return [
        Chosen(row["table"], row["level"], tuple(_most(each, row, places)), row["among"])
        for row in ranked.iter_rows(named=True)
    ]


def _of_tables(found: Bounds) -> pl.DataFrame:
    """The hidden numbers of the scenario's tables, by place: not those that were asked for one by one."""
    return found.each.filter(pl.col("table").is_in(list(found.scenario.by_table)))


def _most(each: pl.DataFrame, of: Row, places: int) -> list[str]:
    here = each.filter(pl.col("table") == of["table"], pl.col("level") == of["level"])
    first = here.sort("given", "hidden", "geoid", descending=[True, True, False]).head(places)
    return sorted(first["geoid"].to_list())


def as_printed(found: Bounds) -> Section:
    """The office's tables where most is given away, as they are printed: for the office alone."""
    some = chosen(found)
    every = _of_tables(found).select("table", "level").unique().height
    lead: Sentence = phrase("printed.lead")
    if len(some) < every:
        lead = joined(lead, phrase("printed.some_tables", shown=len(some), tables=every))
    if found.conflicts:
        told = phrase("printed.conflict" if found.conflicts == 1 else "printed.conflicts", places=found.conflicts)
        lead = joined(lead, told)
    return Section(SECTION, phrase("printed.title"), lead, tuple(sheet(found, one) for one in some), records=True)


def sheet(found: Bounds, of: Chosen) -> Printed:
    """One table as it is printed, in some places."""
    table, here = found.scenario.table(of.table), (pl.col("level") == of.level) & pl.col("geoid").is_in(of.places)
    rows = _by_place(found.judged.filter(here, pl.col("table") == of.table).collect(engine="streaming"))
    told = {} if found.printed is None else _by_place(found.printed.filter(here))
    why: dict[tuple[str, str], list[Row]] = {}
    if found.reasons is not None:
        for one in found.reasons.lazy().filter(here).sort("number").collect().iter_rows(named=True):
            why.setdefault((one["geoid"], one["variable"]), []).append(one)
    lines, left_out = _lines(table, rows)
    depths, cells, known, reasons = _depths(table), [], [], []
    hidden = given = 0
    for line in lines:
        for place in of.places:
            at = place, line.variable
            row, print_ = rows.get(at), told.get(at)
            verdict = _known(row, print_, printed=found.printed is not None)
            known.append(verdict)
            if row is not None and row["hidden"]:
                hidden, given = hidden + 1, given + _away(verdict)
            every = [_reason(one) for one in why.get(at, [])]
            more = [phrase("printed.more_reasons", number=len(every) - REASONS)] if len(every) > REASONS else []
            reasons.append((*every[:REASONS], *more))
            about = row if verdict not in ("printed", "unknown") else None
            cells.append((
                f"{line.variable} {_said(table, line, row)}", f"{of.level} {place}", *_numbers(verdict, row, print_),
                phrase(f"printed.known.{verdict}"), "" if about is None else _note(found, of.level, about, why.get(at)),
                "; ".join(every),
            ))  # fmt: skip
    says = [say("printed.says", hidden=Count(hidden), given=Count(given))]
    if of.among > len(of.places):
        says.append(phrase("printed.some_places", shown=len(of.places), among=of.among, places=plural(of.level)))
    if left_out:
        says.append(phrase("printed.some_lines", left_out=left_out))
    name, title = f"{table.name}-{of.level}", f"{table.name} {table.title}"
    heads = ("line", "place", "lower", "upper", "low", "high", "known", "note", "reasons")
    data = Table(
        f"printed-{name}", title, tuple(Column(phrase(f"printed.columns.{head}")) for head in heads), tuple(cells),
        phrase("bounds.source", file=SOURCE), keys=2, records=True,
    )  # fmt: skip
    labels = tuple((depths[line.number], _label(line)) for line in lines)
    return Printed(
        f"sheet-{name}", title, joined(*says), data, labels, of.level, of.places,
        tuple(known), tuple(reasons),
    )  # fmt: skip


def _by_place(frame: pl.DataFrame) -> dict[tuple[str, str], Row]:
    return {(row["geoid"], row["variable"]): row for row in frame.iter_rows(named=True)}


def _hidden(verdict: Known) -> bool:
    return verdict in ("exact", "narrow", "wide")


def _away(verdict: Known) -> bool:
    return verdict in ("exact", "narrow")


def _known(row: Row | None, told: Row | None, *, printed: bool = False) -> Known:
    """What is known of a number: by the frame, or else by the print; without either, it is taken to be printed."""
    if row is not None:
        return "printed" if _exact(row) else row["verdict"]
    return "printed" if (not printed if told is None else _exact(told)) else "unknown"


def _exact(row: Row) -> bool:
    return row["lower"] is not None and row["lower"] == row["upper"]


def _numbers(verdict: Known, row: Row | None, told: Row | None) -> list[Cell]:
    """Between which ends the number was printed, and is proved to lie."""
    told = row if row is not None else told
    ends = [] if told is None else [told["lower"], told["upper"]]
    ends = (ends or [None, None]) + ([row["low"], row["high"]] if row is not None and _hidden(verdict) else [None] * 2)
    return [None if end is None else Count(end) for end in ends]


def ranged(low: int, high: int | None) -> str:
    """A range in words: 2, 2 to 5, 2 or more."""
    if high is None:
        return phrase("printed.or_more", low=low)
    return f"{low:,}" if low == high else phrase("printed.range", low=low, high=high)


# Sentences


def _note(found: Bounds, level: str, row: Row, why: Sequence[Row] | None) -> str:
    """What is known of a hidden number, how it is proved, and what gives it away."""
    kind = "open" if row["high"] is None else "exact" if row["low"] == row["high"] else "range"
    told = [phrase(f"printed.note.{kind}", low=row["low"], high=row["high"] or 0)]
    if row["lower"] is None:
        told.append(phrase("printed.note.not_printed"))
    else:
        told.append(phrase("printed.note.printed", range=ranged(row["lower"], row["upper"])))
    told += [phrase(f"printed.note.{name}") for name in ("alike",) if row[name]]
    if row["present"] and not row["alike"] and kind != "exact":
        told.append(phrase("printed.note.present"))
    told.append(_proof(row))
    same = row["scope"] in (None, level)
    told.append(phrase("printed.note.alone" if same else "printed.note.with", level=level, scope=row["scope"] or ""))
    if why:
        told.append(phrase("printed.note.minimal" if all(one["minimal"] for one in why) else "printed.note.enough"))
    return " ".join(told)


def _proof(row: Row) -> str:
    if row["proof"] != "undecided":
        return phrase(f"printed.proof.{row['proof']}")
    if row["met_low"] is None or row["met_high"] is None:
        return phrase("printed.proof.undecided")
    return phrase("printed.proof.undecided_met", met=ranged(row["met_low"], row["met_high"]))


def _reason(row: Row) -> str:
    lower, upper = row["lower"], row["upper"]
    value = phrase("printed.not_printed") if lower is None else ranged(lower, upper)
    return phrase(
        "printed.reason", variable=row["reason_variable"], description=row["reason_description"],
        level=row["reason_level"], place=row["reason_geoid"], value=value,
    )  # fmt: skip


# Lines


def _label(line: Line) -> str:
    return phrase("printed.of_which", label=line.label) if line.within is not None else line.label


def _said(table: Published, line: Line, row: Row | None) -> str:
    """A line in words: as the frame describes it, or by the labels above it."""
    if row is not None and row.get("description"):
        return str(row["description"])
    return ", ".join(table.line(number).label for number in (*_above(table)[line.number], line.number))


def _above(table: Published) -> dict[int, tuple[int, ...]]:
    """The lines that each line stands under, from the top down; the total is not named."""
    found: dict[int, tuple[int, ...]] = {}
    for line in table.lines:
        mine = found.get(line.number, ()) if line.within is None else (*found.get(line.within, ()), line.within)
        found[line.number] = mine
        for part in line.parts:
            found[part] = mine if line.number == 1 else (*mine, line.number)
    return found


def _depths(table: Published) -> dict[int, int]:
    above = _above(table)
    return {line.number: len(above[line.number]) + (line.number > 1) for line in table.lines}


def _lines(table: Published, rows: Mapping[tuple[str, str], Row]) -> tuple[list[Line], int]:
    """The lines that are printed, and how many are left out: of a long table those given away most, and those above."""
    if len(table.lines) <= LINES:
        return list(table.lines), 0
    score: dict[str, tuple[int, int]] = {}
    for (_, variable), row in rows.items():
        known, (given, hidden) = _known(row, None), score.get(variable, (0, 0))
        score[variable] = given + _away(known), hidden + _hidden(known)
    above, wanted = _above(table), {1}
    for line in sorted(table.lines, key=lambda line: score.get(line.variable, (0, 0)), reverse=True):
        more = {line.number, *above[line.number]}
        if line.variable in score and len(wanted | more) <= LINES:
            wanted |= more
    return [line for line in table.lines if line.number in wanted], len(table.lines) - len(wanted)
