"""Does `check` decide about all numbers of all levels together? Against brute force, on tiny releases of any shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from glasshouse.attack import contradictions
from glasshouse.commands.work import check as job
from glasshouse.commands.work.check import Checked, check_file
from glasshouse.files.tables import open_tables
from glasshouse.model.geography import Geography
from glasshouse.model.release import Counts, Release, Table, counted
from glasshouse.model.schema import Schema
from glasshouse.scenarios.load import load
from tests.oracles import TooMany, kinds_of, mask_of, random_schema, random_table, satisfiable, widened
from tests.running import tool

LEVELS = ("land", "region", "area", "spot")


@dataclass
class Tiny:
    """A release of a few places at one to four levels, some of whose numbers may have been changed."""

    schema: Schema
    tables: tuple[Table, ...]
    geography: Geography
    levels: dict[str, Counts]
    times: dict[str, np.ndarray]  # how often each variable counts each kind of record
    seen: Any = field(init=False)

    def __post_init__(self) -> None:
        self.scenario = SimpleNamespace(schema=self.schema, tables=self.tables, geography=self.geography)
        variables = {(level, variable) for level, counts in self.levels.items() for variable in counts.variables}
        self.seen = SimpleNamespace(variables=variables, names_places=lambda _: True)

    def releases(self, **_: object) -> Iterator[Release]:
        """As a table file gives them: unit by unit, then the coarser levels."""
        size = self.geography.lengths[self.geography.unit]
        inner = {level: counts for level, counts in self.levels.items() if self.geography.within_unit(level)}
        for unit in sorted({place[:size] for counts in inner.values() for place in counts.places}):
            yield Release(self.schema, self.tables, {level: _inside(counts, unit) for level, counts in inner.items()})
        outer = {level: counts for level, counts in self.levels.items() if level not in inner}
        if outer:
            yield Release(self.schema, self.tables, outer)

    def fits(self) -> bool:
        """Is there any histogram? By plain recursion over every kind of record in every place of the finest level."""
        finest = self.levels[[level for level in LEVELS if level in self.levels][-1]].places
        kinds = len(next(iter(self.times.values())))
        limits = []
        for counts in self.levels.values():
            for row, area in enumerate(counts.places):
                places = [at for at, place in enumerate(finest) if place.startswith(area)]
                for column, variable in enumerate(counts.variables):
                    often = enumerate(self.times[variable].tolist())
                    inside = [p * kinds + k for k, times in often for p in places for _ in range(times)]
                    limits.append((tuple(inside), int(counts.lower[row, column]), int(counts.upper[row, column])))
        return satisfiable(len(finest) * kinds, limits)


def _inside(counts: Counts, area: str) -> Counts:
    rows = [row for row, place in enumerate(counts.places) if place.startswith(area)]
    places = tuple(counts.places[row] for row in rows)
    return Counts(counts.level, places, counts.variables, counts.lower[rows], counts.upper[rows])


def tiny(seed: int) -> Tiny | None:
    rng = np.random.default_rng(seed)
    schema = random_schema(rng, 8)
    kinds = kinds_of(schema)
    names = LEVELS[4 - int(rng.integers(1, 5)) :]
    geography = Geography({name: n + 1 for n, name in enumerate(names)}, "spot", str(rng.choice(names)))
    tables = tuple(random_table(rng, schema, f"T{n}", "spot") for n in range(rng.integers(1, 4)))
    times = {
        line.variable: np.sum([mask_of(schema, kinds, one) for one in counted(table, line)], axis=0, dtype=np.int64)
        + np.zeros(len(kinds), np.int64)
        for table in tables
        for line in table.lines
    }
    places = {"": [""]}
    for name in names:
        above = list(places.values())[-1]
        places[name] = [code + str(n) for code in above for n in range(rng.integers(1, 3))]
    if len(places["spot"]) > 5:
        return None
    truth = {place: rng.multinomial(rng.integers(0, 4), np.ones(len(kinds)) / len(kinds)) for place in places["spot"]}
    levels = {}
    for name in names:
        chosen = [v for v in times if rng.random() < 0.6]
        if not chosen or (name != names[-1] and rng.random() < 0.2):
            continue
        rows = []
        for area in places[name]:
            inside = np.sum([truth[place] for place in places["spot"] if place.startswith(area)], axis=0)
            if rng.random() < 0.5 and inside.sum():  # another record instead of one: totals still agree
                one, other = rng.choice(np.flatnonzero(inside)), rng.integers(len(kinds))
                inside = inside.copy()
                inside[one] -= 1
                inside[other] += 1
            rows.append([int(times[variable] @ inside) for variable in chosen])
        numbers = np.array(rows, np.int64)
        counts = Counts(name, tuple(places[name]), tuple(chosen), numbers, numbers)
        levels[name] = widened(rng, counts) if rng.random() < 0.15 else counts
    return Tiny(schema, tables, geography, levels, times) if levels else None


def verdict(found: Checked) -> str:
    return "contradiction" if found.findings else "undecided" if found.undecided else "agrees"


def each(first: int, count: int) -> Iterator[tuple[int, Tiny, bool]]:
    for seed in range(first, first + count):
        made = tiny(seed)
        if made is not None:
            try:
                yield seed, made, made.fits()
            except TooMany:
                continue


def test_check_says_what_brute_force_says_of_releases_of_any_shape() -> None:
    told: Counter[tuple[bool, str]] = Counter()
    for seed, made, fits in each(0, 300):
        said = verdict(check_file(made))  # type: ignore[arg-type]
        told[fits, said] += 1
        assert said == ("agrees" if fits else "contradiction"), (
            f"seed {seed}: {'some' if fits else 'no'} histogram fits"
        )
    assert told[True, "agrees"] > 100 and told[False, "contradiction"] > 60, told


def test_what_is_too_large_to_decide_is_undecided_and_never_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contradictions, "MOST", 2)
    monkeypatch.setattr(contradictions, "MOST_FINE", 3)
    monkeypatch.setattr(job, "MOST_KEPT", 8)
    told: Counter[str] = Counter()
    for seed, made, fits in each(500, 120):
        said = verdict(check_file(made))  # type: ignore[arg-type]
        told[said] += 1
        assert said != ("contradiction" if fits else "agrees"), f"seed {seed}"
    assert told["undecided"] > 5, told


CUT = """
title = "Rooms"
[geography]
place = "dwelling"
unit = "commune"
levels = { commune = 1, dwelling = 2 }
[attribute.rooms]
range = [1, 5]
[attribute.household]
counts = ["persons", "children"]
rest = "adults"
most = 2
label = "{persons} persons, {children} under 18"
[recode]
few = { attribute = "rooms", bins = "1-3 4-5" }
many = { attribute = "rooms", bins = "1 2-4 5" }
[table]
D = { title = "Rooms", level = "dwelling", by = ["few"] }
C = { title = "Rooms", level = "commune", by = ["many"] }
P = { title = "Persons", level = "dwelling", sums = "persons" }
"""


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    (tmp_path / "scenario.toml").write_text(CUT, encoding="utf-8")
    return tmp_path


def numbers(folder: Path, rows: dict[tuple[str, str], list[tuple[str, int]]]) -> Path:
    lines = ["level,geoid,variable,value"]
    lines += [f"{level},{place},{name},{n}" for (level, place), many in rows.items() for name, n in many]
    (folder / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "t.csv"


def test_numbers_of_an_area_that_cut_across_the_bins_of_its_places_count(cut: Path) -> None:
    # three dwellings with 1-3 (two) and 4-5 rooms (one); the commune knows of two, both with 2-4
    inside = {("dwelling", "11"): [("D_002", 2), ("D_003", 1)]}
    wrong = numbers(cut, {**inside, ("commune", "1"): [("C_002", 0), ("C_003", 2), ("C_004", 0)]})
    ended = tool("check", wrong, "--scenario", cut)
    assert ended.code == 1 and "cannot all be true" in ended.out
    right = numbers(cut, {**inside, ("commune", "1"): [("C_002", 0), ("C_003", 3), ("C_004", 0)]})
    assert "All numbers agree" in tool("check", right, "--scenario", cut).out


def test_tables_that_only_add_up_numbers_can_be_checked(cut: Path) -> None:
    path = numbers(cut, {("dwelling", "11"): [("P_001", 3)], ("dwelling", "12"): [("P_001", 0)]})
    found = check_file(open_tables(path, load(str(cut))))
    assert not found.findings and not found.undecided and found.places == {"dwelling": 2}


def test_one_number_at_two_levels_is_compared_by_adding_up_though_its_table_is_not_whole(cut: Path) -> None:
    path = cut / "w.csv"  # a wide file: the first line of two tables, and none of their leaves
    path.write_text("level,geoid,D_001\ndwelling,11,2\ndwelling,12,2\ncommune,1,5\n", encoding="utf-8")
    (finding,) = check_file(open_tables(path, load(str(cut)))).findings
    assert finding.statement == "D_001 is 5 but D_001 over its dwellings is 4; they must be equal"


THREE = """
title = "Three"
[geography]
place = "spot"
unit = "UNIT"
levels = { region = 1, area = 2, spot = 3 }
[attribute.a]
levels = ["0", "1"]
[attribute.b]
levels = ["0", "1"]
[attribute.c]
levels = ["0", "1"]
[recode]
a = { attribute = "a" }
b = { attribute = "b" }
c = { attribute = "c" }
[table]
AB = { title = "a by b", level = "spot", by = ["a", "b"] }
BC = { title = "b by c", level = "area", by = ["b", "c"] }
AC = { title = "a by c", level = "region", by = ["a", "c"] }
"""


@pytest.mark.parametrize("unit", ["region", "area", "spot"])
def test_three_levels_that_agree_two_by_two_can_contradict_together(unit: str, tmp_path: Path) -> None:
    # one record with a = 0, one with a = 1; a equals b in the spots, b equals c in the areas, a differs from c in all
    (tmp_path / "scenario.toml").write_text(THREE.replace("UNIT", unit), encoding="utf-8")
    scenario = load(str(tmp_path))
    leaves = {table.name: [line.variable for line in table.leaves] for table in scenario.tables}

    def checked(*wanted: tuple[str, str, str, list[int]]) -> Checked:
        rows = {(level, place): list(zip(leaves[t], values, strict=True)) for level, place, t, values in wanted}
        return check_file(open_tables(numbers(tmp_path, rows), scenario))

    same, other = [1, 0, 0, 1], [0, 1, 1, 0]
    all_three = (("spot", "111", "AB", same), ("area", "11", "BC", same), ("region", "1", "AC", other))
    found = checked(*all_three)
    (finding,) = found.findings
    assert (finding.level, finding.geoid, len(finding.cells)) == ("region", "1", 3)
    assert "with its areas and spots" in finding.statement
    assert {cell.level for cell in finding.cells} == {"spot", "area", "region"}
    for one in range(3):  # without any level something fits
        assert verdict(checked(*all_three[:one], *all_three[one + 1 :])) == "agrees"


def test_records_of_an_area_may_be_where_no_number_says_anything(cut: Path) -> None:
    # empty dwellings have no persons, so the file, which leaves out zeros, need not name those of the first commune
    rows = {("dwelling", "21"): [("P_001", 2)], ("commune", "2"): [("C_002", 0), ("C_003", 1), ("C_004", 0)]}
    path = numbers(cut, {**rows, ("commune", "1"): [("C_002", 3), ("C_003", 0), ("C_004", 0)]})
    assert verdict(check_file(open_tables(path, load(str(cut))))) == "agrees"
