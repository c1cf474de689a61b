"""Which places are looked at? A list, or some of a size in every area, drawn as the paper draws them (paper 002, 3.1).

The paper takes five blocks of every state that are as large as the state's median block, and five as large as the
nation's. Places without records are left out of medians. The median is the lower one, so that some place has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from glasshouse.engine.job import Item
from glasshouse.errors import InputError
from glasshouse.model.chance import chance
from glasshouse.model.geography import Geography, plural
from glasshouse.model.release import Counts, Release
from glasshouse.model.schema import EVERYONE
from glasshouse.scenarios.load import Scenario
from glasshouse.scenarios.toml import is_there

AREA, EVERYWHERE = "area-median", "median"


@dataclass(frozen=True)
class Pick:
    """So many places of each of the coarsest areas, as large as its median place, the median of all, or a number."""

    size: str | int
    count: int


def parse_pick(text: str, geography: Geography) -> Pick:
    """Read `state-median:5`, `median:5` or `10:5`."""
    coarsest = geography.coarsest
    match = re.fullmatch(rf"({re.escape(coarsest)}-median|median|[0-9]{{1,15}}):([0-9]{{1,15}})", text)
    if not match or match[2] == "0":
        raise InputError(f"--pick {text}: expected {coarsest}-median:5, median:5 or a size such as 10:5")
    size = {f"{coarsest}-median": AREA, "median": EVERYWHERE}.get(match[1], match[1])
    return Pick(int(size) if size.isdigit() else size, int(match[2]))


def listed(text: str, geography: Geography) -> frozenset[str]:
    """Codes of places: separated by commas, or in a file, one a line (the level's name may stand above them)."""
    path, in_a_file = Path(text), is_there(text)  # a long list is no name of a file
    if in_a_file:
        try:
            words = path.read_text(encoding="utf-8").split()
        except UnicodeDecodeError:
            raise InputError(f"--{plural(geography.place)} {text}: not a text file; expected a code a line") from None
        words = words[1:] if words[:1] == [geography.place] else words
    else:
        words = [word.strip() for word in text.split(",") if word.strip()]
    length = geography.lengths[geography.place]
    for line, word in enumerate(words, 1):
        if not re.fullmatch(rf"\w{{{length}}}", word):
            where = f"{text}, line {line}" if in_a_file else f"--{plural(geography.place)}"
            raise InputError(
                f"{where}: '{word[:30]}' is no code of a {geography.place}; expected {length} characters, or the path "
                "of a file with a code a line"
            )
    if not words:
        raise InputError(f"--{plural(geography.place)} {text}: no code of a {geography.place} found")
    return frozenset(words)


def sizes(releases: Iterable[Release], scenario: Scenario, *, units: bool = False) -> dict[str, int]:
    """How many records each place has, by tables that count them all; those reported apart only with `units`.

    Places of which no table says it exactly are left out: their size is not known.
    """
    counted = EVERYONE if units or scenario.wording.apart is None else scenario.wording.noun.where
    found: dict[str, int] = {}
    place = scenario.geography.place
    for release in releases:
        if place not in release.levels:
            continue
        counts = release.levels[place]
        whole = [table for table in release.published(place) if table.universe == counted and not table.tally]
        if not whole:
            raise InputError(f"--pick needs a table that counts all {scenario.wording.records[1]}; none is published")
        for table in whole:
            columns = [counts.column[line.variable] for line in table.leaves]
            known = (counts.lower[:, columns] == counts.upper[:, columns]).all(axis=1)
            size = counts.lower[:, columns].sum(axis=1)
            found.update((counts.places[row], int(size[row])) for row in np.flatnonzero(known))
    if not found:
        raise InputError(
            f"--pick needs the number of {scenario.wording.records[1]} of a {place}; the tables say it of none exactly"
        )
    return found


def places_in(releases: Iterable[Release], geography: Geography) -> frozenset[str]:
    """The places of a file."""
    levels = (release.levels[geography.place] for release in releases if geography.place in release.levels)
    return frozenset(place for counts in levels for place in counts.places)


def picked(size: Mapping[str, int], pick: Pick, geography: Geography, seed: int) -> tuple[frozenset[str], int]:
    """Places drawn with the seed, and how many were asked for; an area with fewer of the size gives all it has."""
    coarsest = geography.coarsest
    areas: dict[str, list[str]] = {}
    for place in sorted(size):
        if size[place] > 0:
            areas.setdefault(geography.code(place, coarsest), []).append(place)
    everywhere = _median([size[place] for places in areas.values() for place in places])
    chosen: set[str] = set()
    for area, places in areas.items():
        wanted = _median([size[place] for place in places]) if pick.size == AREA else everywhere
        wanted = pick.size if isinstance(pick.size, int) else wanted
        fitting = [place for place in places if size[place] == wanted]
        order = chance(seed, area, "pick").permutation(len(fitting))
        chosen.update(fitting[at] for at in order[: pick.count])
    if not chosen:
        raise InputError(f"--pick: no {geography.place} has {pick.size} records; smaller or larger ones may")
    return frozenset(chosen), pick.count * len(areas)


def _median(values: list[int]) -> int:
    return int(np.sort(np.array(values, np.int64))[(len(values) - 1) // 2]) if values else 0


def chosen_places(items: Iterator[Item], chosen: frozenset[str]) -> Iterator[Item]:
    """Units with only some of their places; units without any are left out."""
    for item in items:
        counts = item.unit.counts
        rows = [row for row, place in enumerate(counts.places) if place in chosen]
        if rows:
            places = tuple(counts.places[row] for row in rows)
            some = Counts(counts.level, places, counts.variables, counts.lower[rows], counts.upper[rows])
            yield replace(item, unit=item.unit._replace(counts=some, of=item.unit.of[rows]))
