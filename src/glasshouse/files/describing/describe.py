"""What would a scenario of these tables be? Everything that was found, put together, with what is still open."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.describing.asking import Answers, Inquiry, Question
from glasshouse.files.describing.columns import Table, tell_apart
from glasshouse.files.describing.figures import Printed, common_base
from glasshouse.files.describing.laying import Family, Laid, family, has_gaps, lay, merged
from glasshouse.files.describing.linking import Attribute, Key, Levels, link
from glasshouse.files.describing.looking import BLANK, NUMBER, Look, look
from glasshouse.files.describing.opening import opened
from glasshouse.files.describing.places import Places, find_places
from glasshouse.files.describing.totals import Tree, agreement, find_tree
from glasshouse.files.describing.universes import restrict
from glasshouse.limits import LEVELS

NORMAL = "A"  # the status of SDMX for a number that stands
HOW = ("random", "nearest", "down")
SAME_LAND = 0.01  # tables whose numbers add up to nearly the same are of the same people


@dataclass(frozen=True)
class Description:
    """What was found in some tables, and what was decided."""

    tables: tuple[Table, ...]
    places: Places
    attributes: tuple[Attribute, ...]
    laid: Mapping[Laid, Sequence[int]]  # tables of the scenario, and the tables of files that print them
    labels: Mapping[str, Mapping[Levels, str]]  # what the levels of an attribute's groups are called
    printed: Printed
    value: str
    status: str
    taken: tuple[Question, ...]
    sums: str  # how areas agree with the places inside
    title: str


def describe(paths: Sequence[Path], answers: Answers, lookup: Path | None = None) -> Description:
    """Describe tables. What they do not tell is asked for, all at once."""
    inquiry = Inquiry(answers)
    looks = [look(table, answers.only, answers.thousands) for path in paths for table in opened(path, inquiry)]
    printed = _printed(looks, inquiry)
    tables = _of_one_level(tell_apart(looks, inquiry), lookup, inquiry)
    _refuse_many_codes(tables)
    trees: dict[Key, Tree] = {
        (number, column.name): find_tree(table.look, column, printed, inquiry)
        for number, table in enumerate(tables)
        for column in table.attributes
    }
    places = find_places(tables, lookup, printed, inquiry)
    attributes = link(tables, trees, inquiry)
    labels = {attribute.name: _labels(attribute) for attribute in attributes}
    restricted = restrict(tables, trees, attributes, printed, inquiry)
    laid: dict[Laid, list[int]] = {}
    gaps = []
    for number, table in enumerate(tables):
        families: dict[str, Family] = {
            key[1]: family(attribute, key, labels[attribute.name])
            for attribute in attributes
            for key in attribute.sets
            if key[0] == number
        }
        for one in lay(table, families, places):
            one = one.within(restricted.get(table.look.path.name, {}))
            laid.setdefault(one, []).append(number)
        if has_gaps(table, families, places):
            gaps.append(number)
    laid = merged(laid)
    printed = _missing(printed, gaps, tables, trees, inquiry)
    printed = _of_all_places(printed, laid, tables, places, inquiry)
    sums = _sums_of_areas(tables, places, printed)
    if inquiry.open:
        raise InputError(*_asked(inquiry))
    title = answers.title or f"Tables of {', '.join(dict.fromkeys(path.name for path in paths))}"[:120]
    value, status = (
        _one(names, called) for names, called in ((inquiry.values, "--value"), (inquiry.statuses, "--status"))
    )
    return Description(
        tables, places, attributes, laid, labels, printed, value, status, tuple(inquiry.taken), sums, title
    )


def _refuse_many_codes(tables: Sequence[Table]) -> None:
    """Refuse a column that no attribute of a scenario could hold: places, most often, or names of persons."""
    for table in tables:
        for column in table.attributes:
            if len(column.codes) > LEVELS:
                raise InputError(
                    f"{table.look.path.name}: column '{column.name}' has {len(column.codes):,} different codes; "
                    f"expected at most {LEVELS:,}; if these are places, say --place {column.name}; if it says nothing "
                    f"of what is counted, --ignore {column.name}"
                )


def _asked(inquiry: Inquiry) -> list[str]:
    """Every open question, a line each."""
    number = len(inquiry.open)
    safe = sum(bool(one.proposal) for one in inquiry.open)
    remedy = f"; --accept answers {safe} of them with what is safe" if safe else ""
    things = "1 thing" if number == 1 else f"{number} things"
    head = f"{things} that the tables do not tell; the same command with these options goes on{remedy}"
    return [head, *(one.said for one in inquiry.open)]


def _one(names: Sequence[str], option: str) -> str:
    different = list(dict.fromkeys(names))
    if len(different) > 1:
        raise InputError(
            f"the files have different names for one column ({', '.join(different)}); rename it ({option})"
        )
    return different[0] if different else ""


def _printed(looks: Sequence[Look], inquiry: Inquiry) -> Printed:
    """How the numbers are printed: what marks mean, and what they are rounded to."""
    answers = inquiry.answers
    markers = {}
    found = {mark: meant for one in looks for mark, meant in one.marks.items()}
    for mark in found:
        name = mark or BLANK
        if name in answers.marker:
            markers[mark] = _meaning(name, answers.marker[name])
            continue
        files = ", ".join(one.path.name for one in looks if mark in one.marks)
        said = f" ({found[mark]})" if found[mark] else ""
        what = f"'{mark}'{said} stands instead of a number" if mark else "some numbers are blank"
        inquiry.ask(
            f"{files}: {what}; what may the number be?", f"--marker '{name}=1..4', or =0, or =any", f"{name}=any"
        )
        markers[mark] = "any"
    for mark in dict.fromkeys(
        mark for one in looks for mark in one.beside if mark not in (*found, NORMAL, *answers.marker)
    ):
        inquiry.ask(
            f"'{mark}' stands beside some numbers; do they hold?", f"--marker '{mark}=shown', or what a number may be",
            f"{mark}=any",
        )  # fmt: skip
        markers[mark] = "any"
    for name in answers.marker:
        if (name if name != BLANK else "") not in found and not any(name in one.beside for one in looks):
            raise InputError(
                f"--marker {name}={answers.marker[name]}: no number is marked so; found: {', '.join(found) or 'none'}"
            )
    markers |= {
        name: _meaning(name, said) for name, said in answers.marker.items() if name not in markers and name != BLANK
    }
    base, how = _base(looks, inquiry)
    thousands = {one.thousands for one in looks if one.thousands}
    if "." in thousands and not answers.thousands:
        inquiry.ask(
            "numbers such as 1.234 are read as thousands; or are these decimals?", "--thousands . or --thousands none"
        )
    if len(thousands) > 1:
        raise InputError("the files separate thousands in two ways; expected one way, or describe them apart")
    return Printed(base, how, answers.within or 0, markers, answers.missing or "zero", next(iter(thousands), ""))


def _meaning(name: str, said: str) -> str:
    match = re.fullmatch(r"([0-9]{1,12})(?:\.\.([0-9]{1,12})?)?|any|shown", said.strip())
    if not match or (match[2] and int(match[2]) < int(match[1])):
        raise InputError(
            f"--marker {name}={said}: expected a number, a range (1..4, 3..), any, or shown (the number beside "
            f"it stands)"
        )
    return said.strip()


def _base(looks: Sequence[Look], inquiry: Inquiry) -> tuple[int, str]:
    told = inquiry.answers.rounded
    if told == "none":
        return 1, ""
    if told:
        said, _, how = told.partition(":")
        if not re.fullmatch("[0-9]{1,6}", said) or int(said) < 2 or (how or HOW[0]) not in HOW:
            raise InputError(
                f"--rounded {told}: expected none, or a base from 2 up, and perhaps how: 3:random, 10:nearest, 5:down"
            )
        off = next((one for one in looks if (one.frame[NUMBER].drop_nulls() % int(said) != 0).any()), None)
        if off is not None:
            raise InputError(f"--rounded {told}: {off.path.name} has numbers that are no multiples of {said}")
        return int(said), how or HOW[0]
    base = common_base([one.frame[NUMBER].cast(float).fill_null(float("nan")).to_numpy() for one in looks])
    if base == 1:
        return 1, ""
    inquiry.ask(
        f"every number is a multiple of {base}; are they rounded?",
        f"--rounded {base}:random, {base}:nearest, {base}:down, or none",
        f"--rounded {base}:random, which holds for every way of rounding",
    )
    return base, HOW[0]


def _of_one_level(tables: tuple[Table, ...], lookup: Path | None, inquiry: Inquiry) -> tuple[Table, ...]:
    """Files of different places whose codes do not tell which lie in which: only the finest can be used."""
    if lookup is not None or len(tables) == 1 or not all(table.place for table in tables):
        return tables
    kept = list(tables)
    for one in tables:
        for other in tables:
            mine, its = (table.look.by_name[table.place] for table in (one, other))
            if one not in kept or len(mine.codes) >= len(its.codes) or set(mine.codes) & set(its.codes):
                continue
            whole, parts = _people(one), float(other.look.frame[NUMBER].sum())
            alike = [column.name for column in one.attributes] == [column.name for column in other.attributes]
            near = any(abs(some - parts) <= SAME_LAND * parts for some in whole)
            same = {len(code) for code in (*mine.codes, *its.codes)}
            if alike and near and len(same) == 1 and not mine.parents and not its.parents:
                inquiry.ask(
                    f"{one.look.path.name} and {other.look.path.name} are of the same people, and nothing "
                    f"tells which of the "
                    f"{len(its.codes):,} places lie in which of the {len(mine.codes):,}",
                    "--places FILE, with the columns code and parent, or a column of codes for each level",
                    f"to leave {one.look.path.name} out",
                )
                kept.remove(one)
    return tuple(kept)


def _people(table: Table) -> tuple[float, float]:
    """What all numbers add up to, and those of the largest place, which may be the whole of the others."""
    summed = table.look.frame.group_by(table.place).agg(pl.col(NUMBER).sum())[NUMBER]
    return float(summed.sum()), float(summed.max() or 0)  # type: ignore[arg-type]  # a number


def _missing(
    printed: Printed, gaps: Sequence[int], tables: Sequence[Table], trees: Mapping[Key, Tree], inquiry: Inquiry
) -> Printed:
    """What a row is that is absent: as told, as sums say, or asked for. Parts that nobody prints are hidden."""
    if not all(tree.whole for tree in trees.values()):
        if inquiry.answers.missing == "zero":
            raise InputError("--missing zero: some totals are more than their parts, so some parts are hidden, not 0")
        return replace(printed, missing="hidden")
    if inquiry.answers.missing or not gaps:
        return printed
    for number in gaps:
        told = [
            tree.gaps_are_zero for key, tree in trees.items() if key[0] == number and tree.gaps_are_zero is not None
        ]
        if not told or not all(told):
            inquiry.ask(
                f"{tables[number].look.path.name} has no row for some combinations; are those numbers 0, or hidden?",
                "--missing zero or --missing hidden",
                "--missing hidden, which holds for both",
            )
            return replace(printed, missing="hidden")
    return printed


def _of_all_places(
    printed: Printed, laid: Mapping[Laid, Sequence[int]], tables: Sequence[Table], places: Places, inquiry: Inquiry
) -> Printed:
    """A table that some places lack would be read as all zero there: hidden, unless the user says zero."""
    if inquiry.answers.missing or printed.missing == "hidden" or places.area:
        return printed
    at: dict[Laid, set[str]] = {
        one: {code for number in some for code in tables[number].look.by_name[tables[number].place].codes
              if places.level_of.get(code) == one.level}
        for one, some in laid.items()
    }  # fmt: skip
    for one, codes in at.items():
        lacking = set().union(*(others for other, others in at.items() if other.level == one.level)) - codes
        if lacking:
            inquiry.ask(
                f"{tables[laid[one][0]].look.path.name} has no row of {len(lacking):,} places that another file has "
                f"(first: {min(lacking)}); are its numbers 0 there, or not printed?",
                "--missing zero or --missing hidden",
                "--missing hidden, which holds for both",
            )
            return replace(printed, missing="hidden")
    return printed


def _sums_of_areas(tables: Sequence[Table], places: Places, printed: Printed) -> str:
    """Do areas have as many as the places inside? Said, not asked: a file may have only some of the places."""
    compared = agree = 0
    inside: dict[str, list[str]] = {}
    levels = list(places.levels)
    by_geoid = {geoid: code for code, geoid in places.geoid.items()}
    for code, geoid in places.geoid.items():
        at = levels.index(places.level_of[code])
        if at:
            inside.setdefault(by_geoid[geoid[: places.levels[levels[at - 1]]]], []).append(code)
    for table in tables if len(levels) > 1 else ():
        if not table.place:
            continue
        at_code = {code: index for index, code in enumerate(table.look.by_name[table.place].codes)}
        matrix = np.asarray(table.look.matrix(table.place))
        for code, some in inside.items():
            parts = [at_code[one] for one in some if one in at_code]
            if code in at_code and parts:
                seen = agreement(matrix, at_code[code], parts, printed.slack(len(parts)))
                compared, agree = compared + seen.compared, agree + seen.agree
    return f"{agree:,} of {compared:,} numbers of areas are the sums of the places inside" if compared else ""


def _labels(attribute: Attribute) -> dict[Levels, str]:
    """What sets of levels are called: spans of whole numbers, or the labels of codes."""
    found: dict[Levels, str] = {frozenset([at]): label for at, label in enumerate(attribute.labels)}
    taken = set(found.values())
    for key, sets in attribute.sets.items():
        column = attribute.trees[key].column
        for code, levels in sets.items():
            if levels in found or not levels:
                continue
            if attribute.first is not None:
                numbers = sorted(int(attribute.labels[at]) for at in levels)
                label = f"{numbers[0]}-{numbers[-1]}"
                if numbers[-1] - numbers[0] >= len(numbers):
                    label = f"some of {label}"
            else:
                label = column.label(code) if code != attribute.everybody[key] else f"all of {column.name}"
            while label in taken:
                label += " (group)"
            found[levels] = label
            taken.add(label)
    return found
