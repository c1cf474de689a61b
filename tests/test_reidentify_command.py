"""Does `glasshouse reidentify` count right from end to end, and say plainly what it cannot do?

What is expected is worked out here from the files alone, row by row with dictionaries, the paper's algorithms as they
are printed (`tests.test_reidentify`); of the tool only the stored draw is used, which says in what order equal records
are taken.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import stat
import sys
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from glasshouse.assess.rates import clustered, difference
from glasshouse.engine.ledger import Ledger
from glasshouse.engine.manifest import code_hash
from glasshouse.model.chance import chance
from glasshouse.scenarios import load as scenario_module
from tests.running import Ended, good, started, tool
from tests.test_reidentify import STARTS, two_passes

SF1 = ("--scenario", "sf1-person")
RACES = ("white", "black", "aian", "asian", "nhopi", "sor")
SETS = [set(some) for size in range(1, 7) for some in combinations(RACES, size)]  # the official order
SENSITIVE = (*RACES, "hispanic")
BANDS = {
    "1-9": (1, 9), "10-49": (10, 49), "50-99": (50, 99), "100-249": (100, 249), "250-499": (250, 499),
    "500-999": (500, 999), "1000+": (1000, 10**9),
}  # fmt: skip
GROUPS = ("all", "matching", "modal", "nonmodal", "nonmodal-unique", "nonmodal-unique-exact")
GUESSERS = ("MDG", "PRG")
RESULTS = ("rates.parquet", "agreement.parquet", "guessers.parquet", "uniques.parquet")
LISTS = ("commercial", "attacker-perfect")
DATA = ("CEF", "HDF", "rHDF_bt", "rHDF_b")

Row = dict[str, Any]
Cell = tuple[int, int]  # which of the 63 sets of races, Hispanic or not


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    """A built-in scenario is loaded once: it depends on nothing else."""
    code_hash.cache_clear()  # someone may have edited the sources since the tests began
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenario_module, "load", cache(scenario_module.load))
        yield


def quickly(*command: object) -> Ended:
    """The command without the workbooks and pages of the paper's tables, which take longer than all the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glasshouse.report.beside.write_tables", lambda *_, **__: [])
        return tool(*command)


# A county of 3,000 in seven tracts, with blocks of one, ties, several block groups, and households swapped


@dataclass(frozen=True)
class County:
    """The files of a county, and what was rebuilt from its tables."""

    folder: Path

    def file(self, name: str) -> Path:
        return self.folder / "county" / f"{name}.parquet"

    def rows(self, name: str) -> list[Row]:
        return pl.read_parquet(self.file(name)).to_dicts()

    @property
    def rebuilt(self) -> dict[str, Path]:
        return {"rHDF_bt": self.folder / "bt" / "records.parquet", "rHDF_b": self.folder / "b" / "records.parquet"}

    def reidentify(
        self,
        out: Path | None,
        *options: object,
        data: Sequence[object] | None = None,
        truth: Path | None = None,
        published: Path | None = None,
        lists: Sequence[object] | None = None,
        vary: Path | None = None,
    ) -> Ended:
        return quickly(
            *self.command(out, *options, data=data, truth=truth, published=published, lists=lists, vary=vary)
        )

    def command(
        self,
        out: Path | None,
        *options: object,
        data: Sequence[object] | None = None,
        truth: Path | None = None,
        published: Path | None = None,
        lists: Sequence[object] | None = None,
        vary: Path | None = None,
    ) -> list[object]:
        """The command on the files of the county, unless others are given."""
        attacked = (self.folder / "bt", self.folder / "b") if data is None else data
        known = [self.file(name) for name in LISTS] if lists is None else lists
        found: list[object] = ["reidentify", *attacked, "--truth", truth or self.file("cef")]
        found += ["--published", published or self.file("hdf")]
        for file in known:
            found += ["--attacker", file]
        found += ["--vary", vary or self.folder / "solvar"] if vary != Path("none") else []
        found += ["--out", out] if out else []
        found += [] if {"--workers", "-w"} & set(map(str, options)) else ["--workers", 1]
        return [*found, *options]


NO_VARY = Path("none")


@pytest.fixture(scope="session")
def county(tmp_path_factory: pytest.TempPathFactory) -> County:
    folder = tmp_path_factory.mktemp("reidentify")
    built_in = Path(sys.modules["glasshouse"].__path__[0]) / "population" / "presets" / "national.toml"
    text = built_in.read_text(encoding="utf-8")
    bands = "[[1, 1, 12.0], [2, 9, 38.0], [10, 49, 35.0], [50, 99, 9.0], [100, 249, 6.0]]"
    for name, value in {"tract_persons": "450", "group_persons": "150", "bands": bands}.items():
        text, changed = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
        assert changed == 1
    (folder / "small.toml").write_text(text, encoding="utf-8")
    synthesize = ["synthesize", "--persons", 3000, "--seed", 7, "--preset", folder / "small.toml"]
    good(tool(*synthesize, "--swap-base", 0.1, "--swap-risky", 0.3, "--out", folder / "county"))
    tables = folder / "tables.parquet"
    good(tool("tabulate", folder / "county" / "hdf.parquet", *SF1, "--out", tables))
    good(tool("reconstruct", tables, *SF1, "--out", folder / "bt", "--workers", 1))
    good(tool("reconstruct", tables, *SF1, "--out", folder / "b", "--level", "block", "--workers", 1))
    good(tool("vary", tables, *SF1, "--out", folder / "solvar", "--workers", 1))
    return County(folder)


@dataclass(frozen=True)
class Run:
    """A finished run."""

    folder: Path
    ended: Ended

    def rows(self, name: str) -> list[Row]:
        return pl.read_parquet(self.folder / f"{name}.parquet").to_dicts()

    @cached_property
    def rates(self) -> dict[tuple[str, str, str, str], Row]:
        return {(r["data"], r["attacker"], r["group"], r["band"]): r for r in self.rows("rates")}

    @cached_property
    def links(self) -> dict[tuple[str, str], list[Row]]:
        found: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in self.rows("links"):
            found[row["data"], row["attacker"]].append(row)
        return found


@pytest.fixture(scope="session")
def run(county: County) -> Run:
    out = county.folder / "risk"
    return Run(out, good(tool(*county.command(out, "--links", "--json"))))


def results(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in RESULTS}


# The oracle


def age_bin(row: Row) -> int:
    return sum(row["age"] >= start for start in STARTS)


def cell_of(row: Row) -> Cell:
    return SETS.index({race for race in RACES if row[race] == 1}), row["hispanic"]


def exact_key(row: Row) -> tuple[str, str, int]:
    return row["block"], row["sex"], row["age"]


def bin_key(row: Row) -> tuple[str, str, int]:
    return row["block"], row["sex"], age_bin(row)


def told(*counts: Counter[Any], least: int = 1, persons: int = 1) -> Any:
    """The largest cell of the first that can tell (no tie, more persons than this), else of the last."""
    for some in counts[:-1]:
        most = max(some.values(), default=0)
        cells = [cell for cell, number in some.items() if number == most]
        if len(cells) == 1 and most > least and some.total() > persons:
            return cells[0]
    largest = max(counts[-1].values())
    return min(cell for cell, number in counts[-1].items() if number == largest)


@dataclass(frozen=True)
class Oracle:
    """What the files of a county say, row by row."""

    county: County

    @cached_property
    def files(self) -> dict[str, list[Row]]:
        rebuilt = {name: pl.read_parquet(path).to_dicts() for name, path in self.county.rebuilt.items()}
        found = {"CEF": self.county.rows("cef"), "HDF": self.county.rows("hdf"), **rebuilt}
        for rows in found.values():
            for row in rows:
                row["cell"] = cell_of(row)
        return found

    @cached_property
    def lists(self) -> dict[str, list[Row]]:
        found = {name: self.county.rows(name) for name in LISTS}
        for rows in found.values():  # so that nothing is left aside
            assert len({(row["person_id"], row["block"]) for row in rows}) == len(rows)
        return found

    @cached_property
    def persons(self) -> dict[tuple[str, str], Row]:
        """The data-defined records by person and block."""
        found = [row for row in self.files["CEF"] if row["data_defined"] and row["person_id"] is not None]
        by = {(row["person_id"], row["block"]): row for row in found}
        assert len(by) == len(found)
        return by

    @cached_property
    def sizes(self) -> Counter[str]:
        return Counter(row["block"] for row in self.files["CEF"])

    @cached_property
    def zero(self) -> set[str]:
        places = pl.read_parquet(self.county.folder / "solvar" / "places.parquet").to_dicts()
        return {row["block"] for row in places if row["distance_upper"] == 0 and row["proof"] != "undecided"}

    def inside(self, band: str, group: str) -> set[str]:
        """The blocks of a band, those with one solution if the group says so."""
        low, high = BANDS.get(band, (1, 10**9))
        some = {block for block, size in self.sizes.items() if low <= size <= high}
        return some & self.zero if group.startswith("zero-solvar-") else some

    def cells(self, name: str, length: int) -> dict[str, Counter[Cell]]:
        """Records by sensitive cell, of each area with codes of this length."""
        found: dict[str, Counter[Cell]] = defaultdict(Counter)
        for row in self.files[name]:
            found[row["block"][:length]][row["cell"]] += 1
        return found

    @cached_property
    def status(self) -> dict[str, Cell]:
        """What makes a person of a block modal: the truth, all persons; a tie or a modal count of one asks around."""
        blocks, groups, nation = (self.cells("CEF", length) for length in (15, 12, 0))
        return {block: told(some, groups[block[:12]], nation[""]) for block, some in blocks.items()}

    @cached_property
    def guess(self) -> dict[str, Cell]:
        """What the modal guesser says: the published file; a tie or one person asks around."""
        blocks, groups, nation = (self.cells("HDF", length) for length in (15, 12, 0))
        return {block: told(some, groups[block[:12]], nation[""], least=0) for block, some in blocks.items()}

    @cached_property
    def chances(self) -> dict[str, Counter[Cell]]:
        """From what the proportional guesser draws."""
        blocks, groups, nation = (self.cells("HDF", length) for length in (15, 12, 0))
        return {
            block: next(c for c in (some, groups[block[:12]], nation[""]) if c.total() > 1)
            for block, some in blocks.items()
        }

    @cached_property
    def alike(self) -> Counter[tuple[str, str, int]]:
        return Counter(bin_key(row) for row in self.files["CEF"])

    @cached_property
    def same(self) -> Counter[tuple[str, str, int]]:
        return Counter(exact_key(row) for row in self.files["CEF"])

    def groups_of(self, person: str, block: str, listed: Row | None = None) -> set[str]:
        """The groups that a person of a block belongs to; on a list, also those of the list."""
        found = {"all"} if listed else set()
        row = self.persons.get((person, block))
        if row is None:
            return found
        if listed and bin_key(row) == bin_key(listed):
            found.add("matching")
        if row["cell"] == self.status[block]:
            return found | {"modal"}
        found |= {"nonmodal"} | ({"nonmodal-unique"} if self.alike[bin_key(row)] == 1 else set())
        return found | ({"nonmodal-unique-exact"} if self.same[exact_key(row)] == 1 else set())

    def taken(self, rows: Iterable[Row], name: str, unit: str) -> dict[str, list[Row]]:
        """The records of a unit by block, in the order of the stored draw, which looks at nothing but what they say."""

        def said(row: Row) -> tuple[Any, ...]:
            race, hispanic = row.get("cell", (0, 0))
            who = (row.get("person_id") is None, row.get("person_id") or "", row.get("data_defined") or 0)
            return row["block"], row["sex"] == "female", row["age"], race, hispanic, *who

        mine = sorted((row for row in rows if row["block"].startswith(unit)), key=said)
        role = "a list" if name.startswith("attacker ") else "records"
        draws = chance(1, unit, f"order of {role}").random(len(mine))
        found: dict[str, list[Row]] = defaultdict(list)
        for _, row in sorted(zip(draws, mine, strict=True), key=lambda pair: pair[0]):
            found[row["block"]].append(row)
        return found

    @cached_property
    def ordered(self) -> dict[str, dict[str, list[Row]]]:
        """Every file by block, in the order in which records are taken."""
        files = self.files | {f"attacker {name}": rows for name, rows in self.lists.items()}
        found: dict[str, dict[str, list[Row]]] = {}
        for name, rows in files.items():
            found[name] = {}
            for unit in sorted({row["block"][:11] for row in rows}):
                found[name] |= self.taken(rows, name, unit)
        return found

    def right(self, person: str, listed: Row, cell: Cell) -> bool:
        """Algorithm 4: the truth has that person there, with that sex, that age in bins, and what was attached."""
        row = self.persons.get((person, listed["block"]))
        return row is not None and bin_key(row) == bin_key(listed) and row["cell"] == cell

    def linked(self, data: str, attacker: str) -> set[tuple[str, str, str, bool, int, int]]:
        """Algorithms 3 and 4 block by block; as links.parquet has it: who, where, how, confirmed, the two places."""
        source = "HDF" if data == "MDG" else data
        found = set()
        for block, right in self.ordered[f"attacker {attacker}"].items():
            left = self.ordered[source].get(block, [])
            keys = [([exact_key(row) for row in side], [bin_key(row) for row in side]) for side in (left, right)]
            for how, links in zip(("exactly", "in bins"), two_passes(*keys), strict=True):
                for record, at in links:
                    cell = self.guess[block] if data == "MDG" else left[record]["cell"]
                    person = right[at]["person_id"]
                    found.add((person, block, how, self.right(person, right[at], cell), at, record))
        return found


@pytest.fixture(scope="session")
def oracle(county: County) -> Oracle:
    return Oracle(county)


def test_the_county_has_what_is_to_be_tested(oracle: Oracle, county: County) -> None:
    sizes = set(oracle.sizes.values())
    assert len(oracle.files["CEF"]) == len(oracle.files["HDF"]) == 3000 and 1 in sizes and max(sizes) > 100
    assert len({block[:11] for block in oracle.sizes}) == 7 and len({block[:12] for block in oracle.sizes}) > 14
    assert set() < oracle.zero < set(oracle.sizes)
    own = {block: told(some, Counter({(-1, -1): 1})) for block, some in oracle.cells("CEF", 15).items()}
    assert sum(cell == (-1, -1) for cell in own.values()) > 12  # ties, and modal counts of one
    assert any(own[block] != oracle.guess[block] for block in own)
    cef, hdf = (Counter((row["block"], row["cell"]) for row in oracle.files[name]) for name in ("CEF", "HDF"))
    assert cef != hdf  # someone was swapped
    assert oracle.sizes == Counter(row["block"] for row in oracle.files["HDF"])


def test_putative_totals_follow_from_counts_alone(oracle: Oracle, run: Run) -> None:
    for attacker, rows in oracle.lists.items():
        for data in (*DATA, *GUESSERS):
            links = run.links[data, attacker]
            source = oracle.files["HDF" if data in GUESSERS else data]
            listed = {(row["person_id"], row["block"]): row for row in rows}
            assert len({(link["person_id"], link["geoid"]) for link in links}) == len(links)  # one to one
            assert len({(link["geoid"], link["record_taken"]) for link in links}) == len(links)
            for key, some in ((bin_key, links), (exact_key, [link for link in links if link["how"] == "exactly"])):
                both = Counter(map(key, source)) & Counter(map(key, rows))
                assert Counter(key(listed[link["person_id"], link["geoid"]]) for link in some) == both
            assert run.rates[data, attacker, "all", "all"]["putative"] == len(links)
            assert run.rates[data, attacker, "all", "all"]["population"] == len(rows)


def test_confirmed_links_are_right_and_could_have_been_told(oracle: Oracle, run: Run) -> None:
    """Whatever the order: the truth has that person there, and some record linked on the same terms says that cell."""
    for (data, attacker), links in run.links.items():
        listed = {(row["person_id"], row["block"]): row for row in oracle.lists[attacker]}
        says: dict[Any, set[Cell]] = defaultdict(set)
        for row in oracle.files["HDF" if data in GUESSERS else data]:
            says[exact_key(row)].add(row["cell"])
            says[bin_key(row), "in bins"].add(row["cell"])
        for link in links:
            who = link["person_id"], link["geoid"]
            row, true = listed[who], oracle.persons.get(who)
            could = says[exact_key(row)] if link["how"] == "exactly" else says[bin_key(row), "in bins"]
            if data == "MDG":
                could = {oracle.guess[row["block"]]}
            if data == "PRG":
                could = set(oracle.chances[row["block"]])
            same = true is not None and bin_key(true) == bin_key(row)
            if link["confirmed"]:
                assert same and true is not None and true["cell"] in could
            elif same and true is not None:
                assert could != {true["cell"]}


@pytest.mark.parametrize("attacker", LISTS)
@pytest.mark.parametrize("data", [*DATA, "MDG"])
def test_every_link_is_what_the_printed_algorithms_give(oracle: Oracle, run: Run, data: str, attacker: str) -> None:
    found = [
        tuple(link[name] for name in ("person_id", "geoid", "how", "confirmed", "taken", "record_taken"))
        for link in run.links[data, attacker]
    ]
    assert len(found) == len(set(found)) and set(found) == oracle.linked(data, attacker)


def test_every_rate_is_counted_again(oracle: Oracle, run: Run) -> None:
    kinds = [prefix + group for prefix in ("", "zero-solvar-") for group in GROUPS]
    seen = set()
    for attacker, rows in oracle.lists.items():
        listed = {(row["person_id"], row["block"]): row for row in rows}
        groups = {who: oracle.groups_of(*who, row) for who, row in listed.items()}
        at_risk = {who: oracle.groups_of(*who) for who in oracle.persons}
        for data in (*DATA, *GUESSERS):
            links = run.links[data, attacker]
            for group in kinds:
                plain = group.removeprefix("zero-solvar-")
                population = groups if plain in ("all", "matching") else at_risk
                for band in ("all", *BANDS):
                    inside = oracle.inside(band, group)
                    size = sum(plain in some and who[1] in inside for who, some in population.items())
                    mine = [
                        link
                        for link in links
                        if link["geoid"] in inside and plain in groups[link["person_id"], link["geoid"]]
                    ]
                    key = data, attacker, group, band
                    if not size and not mine:
                        assert key not in run.rates
                        continue
                    seen.add(key)
                    n = Counter(link["geoid"] for link in mine)
                    k = Counter(link["geoid"] for link in mine if link["confirmed"])
                    row = run.rates[key]
                    assert (row["population"], row["putative"], row["confirmed"]) == (size, n.total(), k.total()), key
                    assert row["putative_exact"] == sum(link["how"] == "exactly" for link in mine)
                    right = [(link["person_id"], link["geoid"]) for link in mine if link["confirmed"]]
                    exactly = sum(exact_key(oracle.persons[who]) == exact_key(listed[who]) for who in right)
                    assert row["confirmed_exact"] == exactly
                    ends = clustered(
                        k.total(), n.total(), sum(v * v for v in k.values()), sum(n[b] * v for b, v in k.items()),
                        sum(v * v for v in n.values()), len(n),
                    )  # fmt: skip
                    share = k.total() / n.total() if n else None
                    assert row["precision"] == share
                    expected = [float(end) for end in ends] if n else [None, None]
                    assert [row["low"], row["high"]] == expected
    assert seen == set(run.rates)


def test_every_rate_stands_beside_the_better_guesser(oracle: Oracle, run: Run) -> None:
    """What a guesser gets right on average; the advantage and its interval from counts of every block."""
    for attacker, rows in oracle.lists.items():
        listed = {(row["person_id"], row["block"]): row for row in rows}
        groups = {who: oracle.groups_of(*who, row) for who, row in listed.items()}
        hoped: dict[str, dict[tuple[str, str], float]] = {name: {} for name in GUESSERS}
        for link in run.links["HDF", attacker]:
            who = link["person_id"], link["geoid"]
            cell = oracle.persons[who]["cell"] if "matching" in groups[who] else None
            hoped["MDG"][who] = float(cell == oracle.guess[who[1]])
            hoped["PRG"][who] = oracle.chances[who[1]][cell] / oracle.chances[who[1]].total() if cell else 0.0
        for (data, other, group, band), row in run.rates.items():
            if other != attacker:
                continue
            if data in GUESSERS:
                assert {row[name] for name in ("baseline", "guesser", "advantage", "advantage_low")} == {None}
                continue
            inside, plain = oracle.inside(band, group), group.removeprefix("zero-solvar-")
            guesses = {
                name: {who: p for who, p in some.items() if who[1] in inside and plain in groups[who]}
                for name, some in hoped.items()
            }
            if not guesses["MDG"]:
                assert row["baseline"] is None and row["advantage"] is None
                continue
            shares = {name: sum(some.values()) / len(some) for name, some in guesses.items()}
            assert row["baseline"] == pytest.approx(max(shares.values()))
            assert shares[row["guesser"]] == pytest.approx(row["baseline"])
            if not row["putative"]:
                assert row["advantage"] is None
                continue
            mine = {(link["person_id"], link["geoid"]): link["confirmed"] for link in run.links[data, attacker]}
            counted = []
            for some in (mine, guesses[row["guesser"]]):
                n, k = Counter[str](), Counter[str]()
                for (person, block), right in some.items():
                    if block in inside and plain in groups[person, block]:
                        n[block] += 1
                        k[block] += right
                counted.append((k, n))
            (k1, n1), (k2, n2) = counted

            def both(a: Counter[str], b: Counter[str]) -> np.float64:
                return np.float64(sum(a[block] * b[block] for block in a))

            sums = [
                [np.float64(sum(k.values())), np.float64(n.total()), both(k, k), both(k, n), both(n, n), float(len(n))]
                for k, n in counted
            ]
            expected = difference(*sums, [both(k1, k2), both(k1, n2), both(n1, k2), both(n1, n2)])
            found = [row[name] for name in ("advantage", "advantage_low", "advantage_high")]
            assert found == pytest.approx([float(value) for value in expected], abs=1e-9)


def test_agreement_is_counted_again(oracle: Oracle, run: Run) -> None:
    guessed = [row | {"cell": oracle.guess[row["block"]]} for row in oracle.files["HDF"]]
    files = oracle.files | {"MDG": guessed}
    pairs = [("HDF", "CEF"), ("rHDF_bt", "rHDF_b")]
    pairs += [(data, other) for data in ("rHDF_bt", "rHDF_b", "MDG") for other in ("CEF", "HDF")]
    found = {(r["data"], r["with"], r["group"], r["band"]): r for r in run.rows("agreement")}
    sizes = {name: Counter(row["block"] for row in rows) for name, rows in files.items()}
    expected = set()
    for data, other in pairs:
        both = [
            Counter((key(row), row["cell"]) for row in files[data])
            & Counter((key(row), row["cell"]) for row in files[other])
            for key in (exact_key, bin_key)
        ]
        by_block = [Counter[str](), Counter[str]()]
        for counts, some in zip(both, by_block, strict=True):
            for ((block, _, _), _), number in counts.items():
                some[block] += number
        for group in ("all", "zero-solvar-all"):
            for band in ("all", *BANDS):
                inside = oracle.inside(band, group)
                if not inside:
                    continue
                expected.add((data, other, group, band))
                row = found[data, other, group, band]
                n = {block: size for block, size in sizes[other].items() if block in inside}
                assert row["population"] == sum(n.values())
                for name, some in zip(("exact", "binned"), by_block, strict=True):
                    k = {block: some[block] for block in inside}
                    assert row[name] == sum(k.values()), (data, other, group, band)
                    assert row[f"{name}_share"] == row[name] / row["population"]
                    ends = clustered(
                        row[name], row["population"], sum(v * v for v in k.values()),
                        sum(n[b] * v for b, v in k.items()), sum(v * v for v in n.values()), len(n),
                    )  # fmt: skip
                    assert [row[f"{name}_low"], row[f"{name}_high"]] == [float(end) for end in ends]
    drawn = {key for key in found if key[0] == "PRG"}
    assert set(found) - drawn == expected
    for data, other, group, band in found:
        both = [found.get((name, other, group, band), {}).get("binned_share", 0) for name in GUESSERS]
        best = None if data in GUESSERS or not any(both) else max(both)
        assert found[data, other, group, band]["baseline"] == best


def test_what_guessers_can_reach_is_asked_again_without_each_person(oracle: Oracle, run: Run) -> None:
    blocks, groups, nation = (oracle.cells("HDF", length) for length in (15, 12, 0))
    found = {row["band"]: row for row in run.rows("guessers")}
    for band in ("all", *BANDS):
        inside = oracle.inside(band, "")
        if not inside:
            assert band not in found
            continue
        modal, squares, modal_without, chance_without, persons = 0, 0.0, 0, 0.0, 0
        for block in inside:
            some = blocks[block]
            persons += some.total()
            modal += max(some.values())
            squares += sum(number * number for number in some.values()) / some.total()
            for cell, number in some.items():
                rest = [counts - Counter([cell]) for counts in (some, groups[block[:12]], nation[""])]
                modal_without += number * (told(*rest, least=0) == cell)
                drawn = next(counts for counts in rest if counts.total() > 1)
                chance_without += number * drawn[cell] / drawn.total()
        assert found[band]["persons"] == persons
        expected = [part / persons for part in (modal, squares, modal_without, chance_without)]
        names = ("modal", "proportional", "modal_without", "proportional_without")
        assert [found[band][name] for name in names] == pytest.approx(expected, rel=1e-9)


def test_uniques_in_bins_and_exactly_are_counted_again(oracle: Oracle, run: Run) -> None:
    """Paper 000: 44% of all persons are unique on {block, sex, age}; Table S5: data-defined on {block, sex, agebin}."""
    sizes = Counter(row["block"] for row in oracle.files["CEF"])
    found = {row["band"]: row for row in run.rows("uniques")}
    for band, (low, high) in {"all": (1, 10**9), **BANDS}.items():
        people = [row for row in oracle.files["CEF"] if low <= sizes[row["block"]] <= high]
        defined = [row for (_, block), row in oracle.persons.items() if low <= sizes[block] <= high]
        if not people:
            assert band not in found
            continue
        row = found[band]
        assert (row["persons"], row["defined"]) == (len(people), len(defined))
        for name, some in (("", people), ("defined_", defined)):
            exact = sum(oracle.same[exact_key(one)] == 1 for one in some)
            binned = sum(oracle.alike[bin_key(one)] == 1 for one in some)
            assert (row[f"{name}unique_exact"], row[f"{name}unique"]) == (exact, binned) and exact >= binned
            assert row[f"{name}unique_exact_share"] == pytest.approx(exact / len(people))
    said = next(line for line in run.ended.err.splitlines() + run.ended.out.splitlines() if "uniques" in line)
    assert "unique_exact_share" in said


def test_the_summary_and_json_say_what_the_files_say(oracle: Oracle, run: Run) -> None:
    said, kept = run.ended.json, json.loads((run.folder / "summary.json").read_text())
    assert said["persons"] == kept["persons"] == 3000
    assert said["data_defined"] == kept["data_defined"] == len(oracle.persons)
    assert (said["units"], said["refused"], said["bugs"], said["notes"]) == (7, {}, 0, [])
    rates = [{k: v for k, v in row.items() if k != "band"} for row in run.rows("rates") if row["band"] == "all"]
    assert said["rates"] == kept["rates"] == rates
    for name in ("agreement", "guessers"):
        assert said[name] == kept[name] == [row for row in run.rows(name) if row["band"] == "all"]
    assert run.ended.err == ""


# By construction


def test_all_that_rebuild_the_published_frame_link_as_many(run: Run) -> None:
    for attacker in LISTS:
        for prefix in ("", "zero-solvar-"):
            for band in ("all", *BANDS):
                same = {
                    run.rates[data, attacker, f"{prefix}all", band]["putative"]
                    for data in ("HDF", "rHDF_bt", "rHDF_b", *GUESSERS)
                    if (data, attacker, f"{prefix}all", band) in run.rates
                }
                assert len(same) <= 1


def test_guessers_speak_of_whoever_is_linked_to_the_published_file(run: Run) -> None:
    for (data, attacker, group, band), row in run.rates.items():
        if data in GUESSERS:
            published = run.rates["HDF", attacker, group, band]
            for name in ("population", "putative", "putative_exact"):
                assert row[name] == published[name]


def test_groups_add_up_and_nobody_is_confirmed_who_was_not_linked(run: Run) -> None:
    for (data, attacker, group, band), row in run.rates.items():
        assert 0 <= row["confirmed_exact"] <= row["confirmed"] <= row["putative"] <= row["population"]
        assert row["putative_exact"] <= row["putative"]
        if group.endswith("matching"):  # only these can be confirmed
            everyone = run.rates[data, attacker, group.removesuffix("matching") + "all", band]
            assert row["confirmed"] == everyone["confirmed"]
        if band == "all":
            for name in ("population", "putative", "confirmed"):
                parts = [run.rates.get((data, attacker, group, other), {}).get(name, 0) for other in BANDS]
                assert sum(parts) == row[name]


@pytest.fixture(scope="session")
def unswapped(county: County) -> Run:
    """The truth itself was published."""
    out = county.folder / "unswapped"
    ended = county.reidentify(out, "--json", published=county.file("cef"), data=[f"copy={county.file('cef')}", *SF1])
    return Run(out, good(ended))


def test_a_published_truth_agrees_with_itself(unswapped: Run) -> None:
    for row in unswapped.rows("agreement"):
        if row["data"] not in GUESSERS:
            assert row["exact"] == row["binned"] == row["population"]
            assert row["exact_share"] == row["exact_high"] == 1 > row["exact_low"] > 0


def test_a_published_truth_links_the_same_people_as_the_truth(unswapped: Run) -> None:
    for (data, attacker, group, band), row in unswapped.rates.items():
        for other in ("HDF", "copy"):
            same = unswapped.rates[other, attacker, group, band]
            for name in ("population", "putative", "putative_exact", "baseline"):
                assert data in GUESSERS or row[name] == same[name]
            if group.endswith("unique") and attacker == "attacker-perfect" and data == "CEF":
                assert row["confirmed"] == same["confirmed"] == row["putative"]  # nobody to be mistaken for


def test_a_published_truth_confirms_the_same_people_as_the_truth(unswapped: Run) -> None:
    for (data, attacker, group, band), row in unswapped.rates.items():
        if data == "CEF":
            assert unswapped.rates["HDF", attacker, group, band]["confirmed"] == row["confirmed"]


def test_the_modal_guesser_stays_below_its_bound_where_the_truth_is_published(unswapped: Run, county: County) -> None:
    """Everybody is on the list, so the bound is of the same people."""
    everybody = pl.read_parquet(county.file("cef")).with_columns(person_id=pl.format("Q{}", pl.int_range(pl.len())))
    everybody.drop("data_defined").write_parquet(county.folder / "everybody.parquet")
    source = county.folder / "everybody.parquet"
    out = county.folder / "everybody"
    good(county.reidentify(out, truth=source, published=source, data=[f"copy={source}", *SF1], lists=[source]))
    rates = Run(out, Ended(0, "", "")).rates
    for row in Run(out, Ended(0, "", "")).rows("guessers"):
        confirmed = rates["MDG", "everybody", "all", row["band"]]["confirmed"]
        assert rates["MDG", "everybody", "all", row["band"]]["putative"] == row["persons"]
        assert confirmed <= row["modal"] * row["persons"] + 1e-6
        if row["band"] not in ("all", "1-9"):  # no block of one, few ties
            proportional = rates["PRG", "everybody", "all", row["band"]]["confirmed"] / row["persons"]
            assert proportional == pytest.approx(row["proportional"], abs=5 * (0.25 / row["persons"]) ** 0.5)


# What the result does not depend on


def rewritten(county: County, folder: Path, write: Callable[[pl.DataFrame, str], Path]) -> dict[str, Any]:
    """Every input of the command, rewritten in another way."""
    folder.mkdir(exist_ok=True)
    files = {name: write(pl.read_parquet(county.file(name)), name) for name in ("cef", "hdf", *LISTS)}
    data = [f"{name}={write(pl.read_parquet(path), name)}" for name, path in county.rebuilt.items()]
    return {
        "truth": files["cef"], "published": files["hdf"], "lists": [files[name] for name in LISTS],
        "data": [*data, *SF1],
    }  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_rows_does_not_matter(county: County, run: Run, tmp_path: Path, seed: int) -> None:
    def shuffled(frame: pl.DataFrame, name: str) -> Path:
        frame = frame.reverse() if seed == 1 else frame.sample(fraction=1, shuffle=True, seed=seed)
        frame.select(frame.columns[::-1]).write_parquet(tmp_path / f"{name}.parquet", row_group_size=500)
        return tmp_path / f"{name}.parquet"

    (tmp_path / "vary").mkdir()
    places = pl.read_parquet(county.folder / "solvar" / "places.parquet")
    places.sample(fraction=1, shuffle=True, seed=seed).write_parquet(tmp_path / "vary" / "places.parquet")
    given = rewritten(county, tmp_path, shuffled)
    good(county.reidentify(tmp_path / "out", "--links", **given, vary=tmp_path / "vary"))
    assert results(tmp_path / "out") == results(run.folder)
    links = [pl.read_parquet(folder / "links.parquet") for folder in (tmp_path / "out", run.folder)]
    assert links[0].equals(links[1])


def test_csv_and_parquet_of_the_same_content_give_the_same(county: County, run: Run, tmp_path: Path) -> None:
    def as_text(frame: pl.DataFrame, name: str) -> Path:
        frame.write_csv(tmp_path / f"{name}.csv")
        return tmp_path / f"{name}.csv"

    good(county.reidentify(tmp_path / "out", **rewritten(county, tmp_path, as_text)))
    assert results(tmp_path / "out") == results(run.folder)


def test_the_number_of_workers_does_not_matter(county: County, run: Run, tmp_path: Path) -> None:
    good(county.reidentify(tmp_path / "out", "--workers", 2))
    assert results(tmp_path / "out") == results(run.folder)


def test_lists_and_files_do_not_influence_each_other(county: County, run: Run, tmp_path: Path) -> None:
    """One list and one file alone give the rows that they give together with others."""
    good(county.reidentify(tmp_path / "out", data=[county.folder / "b"], lists=[county.file("attacker-perfect")]))
    for key, row in Run(tmp_path / "out", Ended(0, "", "")).rates.items():
        assert row == run.rates[key]


def test_another_seed_changes_little(county: County, run: Run, tmp_path: Path) -> None:
    good(county.reidentify(tmp_path / "out", "--seed", 2))
    other = Run(tmp_path / "out", Ended(0, "", "")).rates
    assert set(other) == set(run.rates) and other != run.rates
    for key, row in run.rates.items():
        assert row["population"] == other[key]["population"]
        if key[2].endswith("all"):
            assert row["putative"] == other[key]["putative"]
        if key[2:] == ("all", "all"):
            assert row["precision"] == pytest.approx(other[key]["precision"], abs=0.04)
            assert other[key]["low"] < row["precision"] < other[key]["high"]


# Stopped and gone on with


def test_an_interrupted_run_is_gone_on_with(
    county: County, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, kept = Ledger.put, []

    def stop(ledger: Ledger, entry: Any, **options: Any) -> None:
        if len(kept) == 3:
            raise KeyboardInterrupt
        put(ledger, entry, **options)
        kept.append(entry.unit)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "put", stop)
        ended = county.reidentify(tmp_path / "out")
    assert ended.code == 130 and "run the same command again to resume" in ended.err and len(kept) == 3
    assert not (tmp_path / "out" / "manifest.json").exists()
    said = good(county.reidentify(tmp_path / "out", "--json")).json
    assert (said["units"], said["units_from_before"]) == (7, 3)
    assert results(tmp_path / "out") == results(run.folder) and not (tmp_path / "out" / "ledger").exists()
    again = good(county.reidentify(tmp_path / "out"))
    assert "is up to date" in again.out and results(tmp_path / "out") == results(run.folder)
    other = county.reidentify(tmp_path / "out", "--seed", 9)
    assert other.code == 2 and "--overwrite" in other.err and results(tmp_path / "out") == results(run.folder)


def killed(county: County, out: Path, when: Callable[[], bool]) -> None:
    with started("-m", "glasshouse", *county.command(out)) as process:
        while process.poll() is None and not when():
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)


def test_a_killed_run_is_gone_on_with(county: County, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    killed(county, out, lambda: bool(list(out.glob("ledger/*.unit"))))
    assert out.exists()
    code_hash.cache_clear()  # as the process has just read the sources
    good(county.reidentify(out))
    assert results(out) == results(run.folder)
    whole = {"manifest.json", *json.loads((out / "manifest.json").read_text())["outputs"]}
    assert {path.name for path in out.iterdir()} == whole


@pytest.mark.slow
def test_runs_killed_at_any_moment_are_gone_on_with(county: County, run: Run, tmp_path: Path) -> None:
    dice = random.Random(6)
    for number in range(12):
        out = tmp_path / f"out{number}"
        for _ in range(dice.randint(1, 3)):
            end = time.monotonic() + dice.uniform(0.5, 4.5)
            killed(county, out, lambda end=end: time.monotonic() > end)
        code_hash.cache_clear()
        good(county.reidentify(out))
        assert results(out) == results(run.folder)


# A village of four, counted by hand

VILLAGE = [  # person, block, sex, age, race
    ("ann", "990010001001000", "female", 31, "white"),
    ("bob", "990010001001000", "male", 30, "white"),
    ("cyd", "990010001001000", "female", 64, "black"),
    ("dan", "990010001002000", "male", 5, "white"),
]


def people(rows: Iterable[Sequence[Any]], **more: Any) -> pl.DataFrame:
    frame = pl.DataFrame(
        [
            (person, block, sex, age, *(int(race == name) for name in RACES), 0)
            for person, block, sex, age, race in rows
        ],
        schema={
            "person_id": pl.String, "block": pl.String, "sex": pl.String, "age": pl.Int64,
            **dict.fromkeys(SENSITIVE, pl.Int64),
        },
        orient="row",
    )  # fmt: skip
    return frame.with_columns(**more)


def village(
    folder: Path,
    truth: pl.DataFrame,
    listed: pl.DataFrame,
    published: pl.DataFrame | None = None,
    *options: object,
) -> Ended:
    """The command on a truth, a list, and the published file, which is the truth unless given."""
    folder.mkdir(exist_ok=True)
    truth.write_csv(folder / "truth.csv")
    listed.write_csv(folder / "list.csv")
    (truth if published is None else published).drop("person_id").write_csv(folder / "published.csv")
    return quickly(
        "reidentify", f"copy={folder / 'published.csv'}", "--truth", folder / "truth.csv", "--published",
        folder / "published.csv", "--attacker", folder / "list.csv", *SF1, "--workers", 1, "--json", *options,
    )  # fmt: skip


def counts(ended: Ended, data: str = "copy", group: str = "all") -> tuple[int, int, int]:
    rows = [row for row in good(ended).json["rates"] if (row["data"], row["group"]) == (data, group)]
    return tuple(rows[0][name] for name in ("population", "putative", "confirmed")) if rows else (0, 0, 0)


def notes(ended: Ended) -> str:
    """What is said, but for how a list would show in the paper's tables, and that a village is too small to publish."""
    usual = ("the paper's tables", "tables-public.html was not written")
    return "\n".join(note for note in ended.json["notes"] if not any(text in note for text in usual))


def test_a_village_by_hand(tmp_path: Path) -> None:
    ended = village(tmp_path, people(VILLAGE), people(VILLAGE))
    assert (ended.json["persons"], ended.json["data_defined"], notes(ended)) == (4, 4, "")
    assert counts(ended) == counts(ended, group="matching") == (4, 4, 4)
    assert counts(ended, group="modal") == (3, 3, 3)  # dan is alone: the nation says white
    assert counts(ended, group="nonmodal") == counts(ended, group="nonmodal-unique") == (1, 1, 1)
    assert counts(ended, "MDG") == (4, 4, 3) and counts(ended, "MDG", "nonmodal") == (1, 1, 0)
    off = people([(*row[:3], row[3] + (0 if row[0] == "dan" else 1), row[4]) for row in VILLAGE])
    assert counts(village(tmp_path, people(VILLAGE), off)) == (
        4,
        3,
        3,
    )  # 31 to 32, 30 to 31 and 64 to 65: a bin further


def test_who_is_asked_where_a_block_cannot_tell(tmp_path: Path) -> None:
    """A block group that is not like its tract, and a nation that is another one once it is published."""
    where = {"990010001001000": "w", "990010001001001": "bb", "990010001002000": "wwwww", "990010001003000": "b"}
    races = {"w": "white", "b": "black"}

    def made(far: str) -> pl.DataFrame:
        codes = [(block, race) for block, some in {**where, "990010002001000": far}.items() for race in some]
        return people([(f"p{age}", block, "male", age, races[race]) for age, (block, race) in enumerate(codes)])

    ended = village(tmp_path, made("bbbb"), made("bbbb"), made("bbww"))
    assert counts(ended, "HDF") == (13, 13, 11)
    assert counts(ended, group="nonmodal") == (1, 1, 1)  # the first: alone in the block, and the block group is black
    assert counts(ended, group="modal") == (12, 12, 10)  # also the one alone in a block group, as the true nation is
    assert counts(ended, "MDG") == (13, 13, 7)  # the published nation is white, for that one and for the tie
    assert counts(ended, "MDG", "nonmodal") == (1, 1, 0)


def test_unknown_blocks_count_among_all_and_match_nobody(tmp_path: Path) -> None:
    strangers = [
        ("eve", "990010001001999", "female", 31, "white"),  # a block group of ours
        ("fay", "990010009999000", "female", 31, "white"),  # a tract of nobody's
    ]
    ended = village(tmp_path, people(VILLAGE), people([*VILLAGE, *strangers]))
    assert counts(ended) == (6, 4, 4) and counts(ended, group="matching") == (4, 4, 4)
    assert counts(ended, group="modal") == (3, 3, 3)
    assert re.search(r"2 records of list are in blocks where the truth has nobody", notes(ended))
    only = village(tmp_path, people(VILLAGE), people(strangers))
    assert counts(only) == (2, 0, 0) and counts(only, group="nonmodal") == (1, 0, 0)
    rate = next(row for row in only.json["rates"] if row["data"] == "copy" and row["group"] == "all")
    assert rate["precision"] is None and rate["low"] is None


def test_a_person_listed_twice_in_a_block_counts_once(tmp_path: Path) -> None:
    again = [("ann", "990010001001000", "female", 32, "white"), ("ann", "990010001001000", "female", 31, "white")]
    ended = village(tmp_path, people(VILLAGE), people([*VILLAGE, *again]))
    assert counts(ended)[0] == 4 and "2 records of list repeat a person in a block" in notes(ended)
    same = village(tmp_path, people(VILLAGE), people([*VILLAGE, *VILLAGE]))
    assert counts(same) == (4, 4, 4) and "4 records of list repeat" in notes(same)


def test_a_person_in_two_blocks_counts_in_both(tmp_path: Path) -> None:
    moved = ("ann", "990010001002000", "male", 5, "white")
    ended = village(tmp_path, people(VILLAGE), people([*VILLAGE[:3], moved]))
    assert counts(ended) == (4, 4, 3) and notes(ended) == ""  # linked to dan, whom the truth knows otherwise
    both = village(tmp_path, people([*VILLAGE, moved]), people([*VILLAGE, moved]))
    assert both.json["data_defined"] == 5 and counts(both) == (5, 5, 5) and notes(both) == ""


def test_a_person_twice_in_a_block_of_the_truth_is_there_once(tmp_path: Path) -> None:
    twice = [*VILLAGE, ("ann", "990010001001000", "female", 70, "white")]
    ended = village(tmp_path, people(twice), people(VILLAGE))
    assert (ended.json["persons"], ended.json["data_defined"]) == (5, 4)
    defined = people(twice, data_defined=pl.Series([1, 1, 1, 1, 0]))
    ended = village(tmp_path, defined, people(VILLAGE))
    assert (ended.json["persons"], ended.json["data_defined"]) == (5, 4) and counts(ended) == (4, 4, 4)
    other = village(tmp_path, people(twice, data_defined=pl.Series([0, 1, 1, 1, 1])), people(VILLAGE))
    assert counts(other) == (4, 4, 3)  # the record that counts says 70


def test_without_data_defined_whoever_has_an_identifier_is(tmp_path: Path) -> None:
    nameless = [(None if row[0] == "bob" else row[0], *row[1:]) for row in VILLAGE]
    ended = village(tmp_path, people(nameless), people(VILLAGE))
    assert (ended.json["persons"], ended.json["data_defined"]) == (4, 3) and counts(ended) == (4, 4, 3)
    blank = people([("  " if row[0] == "bob" else row[0], *row[1:]) for row in VILLAGE])
    assert village(tmp_path, blank, people(VILLAGE)).json["data_defined"] == 3
    flagged = people(nameless, data_defined=pl.lit(1))  # a flag does not make up for an identifier
    assert village(tmp_path, flagged, people(VILLAGE)).json["data_defined"] == 3
    assert counts(village(tmp_path, people(VILLAGE, data_defined=pl.lit(0)), people(VILLAGE)))[2] == 0


def test_listed_records_without_an_identifier_are_left_aside(tmp_path: Path) -> None:
    nameless = [(" " if row[0] == "bob" else row[0], *row[1:]) for row in VILLAGE]
    ended = village(tmp_path, people(VILLAGE), people(nameless))
    assert counts(ended) == (3, 3, 3) and "1 records of list have no person_id and were left aside" in notes(ended)


def test_blocks_that_only_the_published_file_has(tmp_path: Path) -> None:
    """A record swapped into an empty block is linked, confirmed by nobody, and breaks nothing."""
    moved = [*VILLAGE[:3], ("dan", "990010001003000", "male", 5, "white")]
    ended = village(tmp_path, people(VILLAGE), people(moved), people(moved))
    assert counts(ended) == (4, 4, 3)
    assert all(0 <= row["binned_share"] <= 1 for row in ended.json["agreement"])


@pytest.mark.parametrize("more", [1, 5])
def test_a_published_file_of_more_people_than_the_truth(tmp_path: Path, more: int) -> None:
    """Protection by noise changes how many live in a block."""
    published = people([*VILLAGE, *[("new", "990010001001000", "male", 44, "white")] * more])
    ended = village(tmp_path, people(VILLAGE), people(VILLAGE), published)
    assert counts(ended) == (4, 4, 4)
    for row in ended.json["agreement"]:
        assert 0 <= row["exact_share"] <= row["binned_share"] <= 1
        if (row["data"], row["with"]) == ("copy", "HDF"):
            assert row["binned_share"] == 1


def test_a_published_file_of_fewer_people_than_the_truth(tmp_path: Path) -> None:
    ended = village(tmp_path, people(VILLAGE), people(VILLAGE), people(VILLAGE[:2]))
    assert counts(ended) == (4, 2, 2)
    shares = {(row["data"], row["with"]): row["binned_share"] for row in ended.json["agreement"]}
    assert shares["HDF", "CEF"] == 0.5


def test_a_file_agrees_wholly_with_a_published_file_of_fewer_people(tmp_path: Path) -> None:
    ended = village(tmp_path, people(VILLAGE), people(VILLAGE), people(VILLAGE[:2]))
    shares = {(row["data"], row["with"]): row["binned_share"] for row in ended.json["agreement"]}
    assert shares["copy", "HDF"] == 1


# What it says when it cannot


def refused(ended: Ended, pattern: str, *, out: Path | None = None) -> None:
    """Exit code 2, one clear line, nothing written."""
    assert ended.code == 2 and ended.out == "", ended
    assert re.fullmatch(r"glasshouse: [^\n]*\n?", ended.err), ended.err
    assert re.search(pattern, ended.err) and "Traceback" not in ended.err and "bug" not in ended.err
    assert out is None or not out.exists()


def given_list(county: County, tmp_path: Path, name: str) -> tuple[dict[str, Any], str]:
    """A list that cannot be used, and what is said of it."""
    perfect = pl.read_parquet(county.file("attacker-perfect"))
    path = tmp_path / f"{name}.csv"
    expected = "there are no records in it"
    if name == "empty":
        path.write_bytes(b"")
        return {"lists": [path]}, "is empty; expected a header"
    if name in ("person_id", "age", "sex", "block"):
        perfect.drop(name).write_csv(path)
        return {"lists": [path]}, "no.*place|block" if name == "block" else f"column '{name}' is missing"
    if name == "header-parquet":
        path = path.with_suffix(".parquet")
        perfect.head(0).write_parquet(path)
        return {"lists": [path]}, expected
    changed = {
        "header": perfect.head(0),
        "old": perfect.with_columns(age=pl.when(pl.int_range(pl.len()) == 7).then(111).otherwise("age")),
        "unborn": perfect.with_columns(age=pl.lit(-1)),
        "ageless": perfect.with_columns(age=pl.lit(None, pl.Int64)),
        "sexless": perfect.with_columns(sex=pl.lit("x")),
        "short": perfect.with_columns(block=pl.col("block").str.slice(1)),
    }[name]
    changed.write_csv(path)
    expected = {
        "old": r"line 9: column 'age' is '111'; expected a whole number from 0 to 110",
        "unborn": r"line 2: column 'age' is '-1'",
        "ageless": r"line 2: column 'age' is empty",
        "sexless": r"line 2: column 'sex' is 'x'; expected male or female",
        "short": r"line 2: .*digits",
    }.get(name, expected)
    return {"lists": [path]}, expected


@pytest.mark.parametrize(
    "name",
    ["empty", "header", "header-parquet", "person_id", "age", "sex", "block", "old", "unborn", "ageless", "sexless",
     "short"],
)  # fmt: skip
def test_lists_that_cannot_be_used(county: County, tmp_path: Path, name: str) -> None:
    given, pattern = given_list(county, tmp_path, name)
    refused(county.reidentify(tmp_path / "out", **given), pattern, out=tmp_path / "out")


def test_a_truth_that_cannot_be_used(county: County, tmp_path: Path) -> None:
    truth, path = pl.read_parquet(county.file("cef")), tmp_path / "truth.parquet"
    for frame, pattern in (
        (truth.drop("person_id"), "truth.parquet: column 'person_id' is missing; the truth must say who is who"),
        (truth.drop("white"), "column 'white' is missing"),
        (truth.with_columns(data_defined=pl.lit("yes")), "column 'data_defined' is 'yes'; expected 0 or 1"),
        (truth.head(0), "there are no records in it"),
    ):
        frame.write_parquet(path)
        refused(county.reidentify(tmp_path / "out", truth=path), pattern, out=tmp_path / "out")
    refused(
        county.reidentify(tmp_path / "out", truth=county.folder / "tables.parquet"),
        "published tables, not records",
        out=tmp_path / "out",
    )
    refused(county.reidentify(tmp_path / "out", published=tmp_path / "no.csv"), "no such file", out=tmp_path / "out")


def test_folders_that_are_not_what_they_should_be(county: County, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for data in (county.folder / "county", county.folder / "solvar", tmp_path, f"x={tmp_path}"):
        refused(county.reidentify(out, data=[data]), "no finished reconstruction there", out=out)
    refused(county.reidentify(out, data=[tmp_path / "none"]), "no such folder or file", out=out)
    refused(county.reidentify(out, vary=county.folder / "county"), "no places.parquet there", out=out)
    refused(county.reidentify(out, vary=county.folder / "bt"), "column '.*' is missing.*glasshouse vary", out=out)
    shutil.copytree(county.folder / "bt", tmp_path / "unfinished")
    (tmp_path / "unfinished" / "manifest.json").unlink()
    refused(county.reidentify(out, data=[tmp_path / "unfinished"]), "no finished reconstruction there", out=out)


def other_places(county: County, folder: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Path:
    """A folder of vary whose places were changed by hand."""
    folder.mkdir()
    change(pl.read_parquet(county.folder / "solvar" / "places.parquet")).write_parquet(folder / "places.parquet")
    return folder


CHANGES: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "twice": (lambda places: pl.concat([places, places]), "in two rows"),
    "few columns": (lambda places: places.select("block", "distance_upper", "proof"), "is missing"),
    "none": (lambda places: places.head(0), "places.parquet"),
    "words": (lambda places: places.with_columns(population=pl.lit("many")), "population"),
}


@pytest.mark.parametrize("how", CHANGES)
def test_places_that_were_changed_by_hand(county: County, tmp_path: Path, how: str) -> None:
    change, pattern = CHANGES[how]
    vary, out = other_places(county, tmp_path / "vary", change), tmp_path / "out"
    refused(county.reidentify(out, vary=vary), pattern, out=out)


def test_a_vary_of_another_county_is_noticed(county: County, tmp_path: Path) -> None:
    vary = other_places(
        county,
        tmp_path / "vary",
        lambda places: places.with_columns(
            ("98" + pl.col(name).str.slice(2)).alias(name) for name in ("block", "tract")
        ),
    )
    ended = county.reidentify(None, "--json", vary=vary)
    assert ended.code == 2 or ended.json["notes"]


def test_names(county: County, tmp_path: Path) -> None:
    out, bt, hdf = tmp_path / "out", county.folder / "bt", county.file("hdf")
    refused(county.reidentify(out, data=[bt, bt]), "two files go by the name rHDF_bt.*NAME=DIR", out=out)
    refused(county.reidentify(out, data=[f"x={bt}", f"x={hdf}"]), "two files go by the name x", out=out)
    commercial = county.file("commercial")
    refused(county.reidentify(out, lists=[commercial] * 2), "two files go by the name commercial.*NAME=FILE", out=out)
    for name in ("CEF", "HDF", "MDG", "PRG"):
        refused(county.reidentify(out, data=[f"{name}={bt}"]), f"the name {name} is taken", out=out)
        refused(county.reidentify(out, lists=[f"{name}={commercial}"]), f"the name {name} is taken", out=out)
    for name in ("", "a b", "x" * 41, "a/b"):
        refused(county.reidentify(out, data=[f"{name}={bt}"]), "cannot be a name", out=out)
    refused(county.reidentify(out, data=[hdf]), "is a file; give it a name to go by, as in protected=", out=out)
    refused(county.reidentify(out, data=[f"swapped={hdf}"]), "--scenario is missing", out=out)


def test_files_of_any_name(county: County, run: Run, tmp_path: Path) -> None:
    given = [f"swapped={county.file('hdf')}", f"again={county.folder / 'bt'}"]
    ended = county.reidentify(tmp_path / "out", data=given, lists=[f"bought={county.file('commercial')}"])
    good(ended)
    found = Run(tmp_path / "out", ended)
    assert {key[:2] for key in found.rates} == {
        (data, "bought") for data in ("CEF", "HDF", "swapped", "again", *GUESSERS)
    }
    agreed = {(r["data"], r["with"]): r for r in found.rows("agreement") if (r["group"], r["band"]) == ("all", "all")}
    assert agreed["swapped", "HDF"]["exact_share"] == 1
    before = {(r["data"], r["with"]): r for r in run.rows("agreement") if (r["group"], r["band"]) == ("all", "all")}
    assert agreed["again", "CEF"] == before["rHDF_bt", "CEF"] | {"data": "again"}
    same = ("population", "putative", "confirmed", "precision", "low", "high")  # whatever files are called
    for (data, _, group, band), row in found.rates.items():
        if data not in ("swapped", *GUESSERS):
            other = run.rates["rHDF_bt" if data == "again" else data, "commercial", group, band]
            assert [row[name] for name in same] == [other[name] for name in same]
    assert "people of bought" in ended.out and "swapped agrees with HDF" in ended.out


def test_a_file_may_be_called_zero(county: County, tmp_path: Path) -> None:
    ended = county.reidentify(tmp_path / "out", data=[f"zero={county.folder / 'bt'}"])
    if ended.code == 2:
        refused(ended, "the name zero is taken", out=tmp_path / "out")
    else:
        good(ended)


def test_usage(county: County, tmp_path: Path) -> None:
    refused(county.reidentify(None), "--out is missing.*--json")
    said = good(county.reidentify(None, "--json")).json
    assert said["out"] is None and said["units"] == 7
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis.doc").write_text("mine")
    refused(county.reidentify(tmp_path / "theirs"), "not empty and holds no run of ours")
    assert (tmp_path / "theirs" / "thesis.doc").read_text() == "mine"
    refused(county.reidentify(county.folder / "county"), "is an input of this command")
    wrong = county.reidentify(tmp_path / "out", "--workers", 0)
    assert wrong.code == 2 and not (tmp_path / "out").exists()


def test_without_vary_nothing_is_said_of_blocks_with_one_solution(county: County, run: Run, tmp_path: Path) -> None:
    ended = good(county.reidentify(tmp_path / "out", vary=NO_VARY))
    rates = Run(tmp_path / "out", ended).rates
    assert rates == {key: row for key, row in run.rates.items() if not key[2].startswith("zero-solvar-")}
    quiet = good(county.reidentify(tmp_path / "quiet", "--quiet", vary=NO_VARY))
    assert quiet.err == ""


def numbered(folder: Path, truth: list[float | None], listed: list[int]) -> Ended:
    """The village with numbers for identifiers: decimals in the truth, whole ones in the list."""
    frame = people(VILLAGE).with_columns(person_id=pl.Series(truth, dtype=pl.Float64, strict=False))
    frame.write_parquet(folder / "truth.parquet")
    people(VILLAGE).with_columns(person_id=pl.Series(listed)).write_parquet(folder / "list.parquet")
    truth_file = folder / "truth.parquet"
    return quickly(
        "reidentify", f"copy={truth_file}", "--truth", truth_file, "--published", truth_file, "--attacker",
        folder / "list.parquet", *SF1, "--workers", 1, "--json",
    )  # fmt: skip


def test_identifiers_spelled_as_other_numbers(tmp_path: Path) -> None:
    """Programs make decimals of whole numbers where some are missing."""
    assert counts(numbered(tmp_path, [1, 2, 3, 4], [1, 2, 3, 4])) == (4, 4, 4)
    assert counts(numbered(tmp_path, [1, None, 3, 4], [1, 2, 3, 4])) == (4, 4, 3)
    ended = numbered(tmp_path, [1.5, 2.5, 3.5, 4.5], [1, 2, 3, 4])
    assert counts(ended) == (4, 4, 0) and "spelled alike" in notes(ended)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 1e30])
def test_identifiers_that_are_no_numbers(tmp_path: Path, odd: float) -> None:
    """NaN is a blank; what cannot be a whole number leaves the others decimals, and that is said."""
    ended = numbered(tmp_path, [1, odd, 3, 4], [1, 2, 3, 4])
    assert counts(ended) == (4, 4, 3) or "spelled alike" in notes(ended)


@pytest.mark.parametrize("who", ["list", "truth"])
def test_where_nobody_can_be_confirmed_it_is_said(tmp_path: Path, who: str) -> None:
    others = people([(f"{row[0]}-x", *row[1:]) for row in VILLAGE])
    if who == "truth":
        others = people(VILLAGE).with_columns(person_id=pl.lit(None, pl.String))
        ended = village(tmp_path, others, people(VILLAGE))
    else:
        ended = village(tmp_path, people(VILLAGE), others)
    assert ended.code == 2 or notes(ended)


# Nothing is told that should not be


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_are_for_the_owner_alone(run: Run) -> None:
    assert mode(run.folder) == 0o700
    assert {path.name for path in run.folder.iterdir()} >= {*RESULTS, "links.parquet", "summary.json", "manifest.json"}
    for path in run.folder.iterdir():
        assert mode(path) == 0o600, path


def test_a_ledger_is_for_the_owner_alone(county: County, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put, modes = Ledger.put, []

    def look(ledger: Ledger, entry: Any, **options: Any) -> None:
        put(ledger, entry, **options)
        modes.append({mode(path) for path in ledger.folder.rglob("*") if path.is_file()})
        assert mode(ledger.folder) == mode(ledger.folder.parent) == 0o700

    monkeypatch.setattr(Ledger, "put", look)
    good(county.reidentify(tmp_path / "out", "--links"))
    assert len(modes) == 7 and set().union(*modes) == {0o600}


def words(path: Path) -> str:
    """All that a file says, as text."""
    if path.suffix == ".parquet":
        frame = pl.read_parquet(path)
        return frame.write_csv() + "\n".join(frame.columns)
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as book:
            return "\n".join(book.read(name).decode() for name in book.namelist())
    return path.read_text(encoding="utf-8")


def test_nobody_and_no_block_is_named_unless_links_are_asked_for(county: County, run: Run, tmp_path: Path) -> None:
    files = [pl.read_parquet(county.file(name)) for name in ("cef", *LISTS)]
    names = {name for file in files for name in (*file["person_id"].drop_nulls(), *file["block"])}
    names |= set(files[0]["household_id"].drop_nulls())

    def named(text: str) -> set[str]:
        return {word for word in re.findall(r"\w+", text) if word in names}

    ended = good(county.reidentify(tmp_path / "out", "--verbose"))
    assert not (tmp_path / "out" / "links.parquet").exists()
    assert not named(ended.out) and not named(ended.err)
    for folder in (tmp_path / "out", run.folder):
        for path in folder.iterdir():
            assert path.name == "links.parquet" or not named(words(path)), path
    assert len(named(words(run.folder / "links.parquet"))) > 1000
    assert not named(run.ended.out)


def test_what_is_said_to_people(county: County, run: Run) -> None:
    ended = good(county.reidentify(run.folder, "--links"))
    assert "is up to date" in ended.out
    assert "3,000 persons, " in ended.out and "HDF agrees with CEF" in ended.out
    for attacker in LISTS:
        assert f"people of {attacker}" in ended.out
    row = run.rates["rHDF_bt", "attacker-perfect", "nonmodal-unique", "all"]
    line = next(
        line for line in ended.out.split("people of attacker-perfect")[1].splitlines() if "bt nonmodal-unique" in line
    )
    expected = (
        f"{row['putative']:,}",
        f"{row['confirmed']:,}",
        f"{row['precision']:.1%}",
        f"({row['low']:.1%}",
        f"{row['high']:.1%})",
    )
    assert all(word in line for word in expected) and f"guessing {row['baseline']:.1%} ({row['guesser']})" in line
    assert np.isfinite(row["low"])


@pytest.mark.slow
def test_the_real_tracts_before_and_after_protection(data: Path, tmp_path: Path) -> None:
    """Published for the nation (S8): 95.2% and 21.8%, guessing 20.2%. Here every record is certain, and the list right.

    The truth is the rebuilt file of 14 tracts with identifiers of ours; `records_dp` are the same tracts rebuilt from
    tables of the 2020 protection system.
    """
    records = data / "sf1_tracts" / "records.csv.gz"
    truth = pl.read_csv(records, infer_schema_length=0).with_columns(person_id=pl.format("P{}", pl.int_range(pl.len())))
    truth.write_parquet(tmp_path / "truth.parquet")
    truth.select("person_id", "block", "sex", "age").write_parquet(tmp_path / "list.parquet")
    ended = good(
        quickly(
            "reidentify",
            f"rHDF_bt={records}",
            f"rMDF_bt={data / 'sf1_tracts' / 'records_dp.csv.gz'}",
            *SF1,
            "--truth",
            tmp_path / "truth.parquet",
            "--published",
            tmp_path / "truth.parquet",
            "--attacker",
            tmp_path / "list.parquet",
            "--json",
        )
    )
    rows = {(row["data"], row["group"]): row for row in ended.json["rates"]}
    assert rows["rHDF_bt", "all"]["putative"] == 32_300
    assert (rows["rHDF_bt", "nonmodal-unique"]["confirmed"], rows["rHDF_bt", "nonmodal-unique"]["putative"]) == (
        563,
        563,
    )
    protected = rows["rMDF_bt", "nonmodal-unique"]
    assert protected["precision"] < 0.32 and protected["advantage_low"] < 0  # no better than guessing
    assert 0.15 < protected["baseline"] < 0.25 and protected["guesser"] == "PRG"
    assert rows["rHDF_bt", "nonmodal-unique"]["advantage_low"] > 0.7


def test_a_reconstruction_of_another_file_is_noticed(county: County, tmp_path: Path) -> None:
    """Its verdict would reassure: of other people nothing is told."""
    other = tmp_path / "other.parquet"
    pl.read_parquet(county.file("hdf")).with_columns(age=(pl.col("age") + 30) % 100).write_parquet(other)
    said = good(county.reidentify(None, "--json", published=other)).json
    assert any("rHDF_bt has other people than the published file" in note for note in said["notes"])
    same = good(county.reidentify(None, "--json")).json
    assert not any("other people" in note for note in same["notes"])


def test_a_list_of_ones_own_is_told_how_to_be_seen(county: County) -> None:
    said = good(county.reidentify(None, "--json", lists=[f"mine={county.file('commercial')}"])).json
    assert any("to see mine there" in note for note in said["notes"])


def test_the_uniques_of_table_s5_are_those_its_note_says(county: County, tmp_path: Path) -> None:
    """Data-defined persons, as the paper counts; the note had said that ours were all persons."""
    out = tmp_path / "risk"
    good(tool(*county.command(out)))
    truth = pl.read_parquet(county.file("cef"))
    bins = [*range(1, 23), *range(25, 61, 5), 62, 65, 67, 70, 75, 80, 85]
    binned = truth.with_columns(pl.Series("bin", np.digitize(truth["age"].to_numpy(), bins)))
    alone = binned.filter(pl.struct("block", "sex", "bin").is_unique())
    defined = alone.filter(pl.col("person_id").is_not_null(), pl.col("data_defined") == 1)
    assert 0 < defined.height < alone.height
    share = pl.read_parquet(out / "table-S05.parquet").filter(band="all")["unique_share"].item()
    assert share == pytest.approx(defined.height / truth.height)
    notes = next(line for line in (out / "tables.html").read_text().split("<") if "who are alone" in line)
    assert "ours and the paper" in notes and "data-defined" in notes
