"""Does `glasshouse detect` keep its contract, from two agencies' files to what is certain of blocks?

What is expected of matches and rates is worked out here from the files themselves, row by row; whether an answer about
a block is right is the business of `tests.test_detect`.
"""

from __future__ import annotations

import json
import stat
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from glasshouse.assess.occupancy import settled_groups
from glasshouse.engine import manifest
from glasshouse.engine.ledger import Ledger
from glasshouse.report.sections.answers import occupancy
from tests.running import Ended, good, tool

PLACES = {
    "block": pl.String, "tract": pl.String, "model": pl.String, "households": pl.Int64, "subsidised": pl.Int64,
    "properties": pl.Int64, "answer": pl.String, "violations_low": pl.Int64, "violations_high": pl.Int64,
    "low_met": pl.Boolean, "high_met": pl.Boolean, "proof": pl.String,
}  # fmt: skip
KEYS = {  # what each says of a household
    "subsidised, bedrooms, race, child": ("subsidised", "bedrooms", "THHSPAN", "THHRACE", "child"),
    "subsidised, race, child": ("subsidised", "THHSPAN", "THHRACE", "child"),
    "race, child": ("THHSPAN", "THHRACE", "child"),
}
SOLUTIONS = 12
Row = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def _one_hash() -> Iterator[None]:
    """Runs compare their folders; sources that change meanwhile are no business of theirs."""
    known = manifest.code_hash()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest, "code_hash", lambda: known)
        yield


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("detect") / "county"
    made = ("--persons", 20_000, "--subsidised", 0.25, "--alpha", 0.02, "--seed", 4)
    good(tool("synthesize", *made, "--out", folder, "--quiet"))
    tables = folder / "tables.parquet"
    good(tool("tabulate", folder / "households.parquet", "--scenario", "subsidised-housing", "--out", tables, "-q"))
    return folder


def asked(*words: object) -> Ended:
    """The command, in this process alone unless a number of workers is given: starting others takes longer."""
    return tool("detect", *words, *(() if "--workers" in words else ("--workers", 1)))


def detect(county: Path, *options: object, tables: str = "tables.parquet", housing: str = "housing.parquet") -> Ended:
    return asked(county / tables, "--properties", county / housing, "--quiet", *options)


@pytest.fixture(scope="module")
def found(county: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("found") / "out"
    told = ("--why", "--nearest", "--sample", county / "sample.parquet", "--solutions", SOLUTIONS)
    good(detect(county, *told, "--truth", county / "households.parquet", "--out", out))
    return out


def truth(county: Path) -> dict[str, list[Row]]:
    """The true households by block; who did not report is not subsidised."""
    homes = pl.read_parquet(county / "households.parquet").filter(pl.col("persons") > 0)
    found: dict[str, list[Row]] = defaultdict(list)
    for row in homes.iter_rows(named=True):
        rooms = row["bedrooms"] if row["reported"] else 0
        most = {0: 99, 1: 2, 2: 4, 3: 99}[rooms]
        found[row["block"]].append(
            row | {"bedrooms": rooms, "subsidised": int(rooms > 0), "child": int(row["children"] > 0),
                   "broken": row["persons"] > most}
        )  # fmt: skip
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.parquet")) if path.stem != "timings"}


# Files


def test_the_contract(found: Path, county: Path) -> None:
    places = pl.read_parquet(found / "places.parquet")
    assert dict(places.schema.items()).items() >= PLACES.items()
    assert list(places.columns)[: len(PLACES)] == list(PLACES)
    assert set(places["answer"]) <= {"certain", "open", "contradiction"}
    assert set(places["model"]) == {"sharp"}
    assert places["block"].is_sorted() and places["block"].is_unique().all()
    told = json.loads((found / "summary.json").read_text())
    assert told["model"] == "sharp"
    written = json.loads((found / "manifest.json").read_text())
    assert written["command"] == "detect" and written["parameters"]["model"] == "sharp"
    assert set(written["inputs"]) >= {"tables", "properties", "sample", "truth"}
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    for path in found.iterdir():
        assert path.is_dir() or stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_what_is_said_of_people_names_its_reading(county: Path, tmp_path: Path) -> None:
    """Not "somebody breaks the rule", but: so read, the numbers need it. In the terminal and in the report."""
    ended = good(
        asked(county / "tables.parquet", "--properties", county / "housing.parquet", "--out", tmp_path / "out")
    )
    assert (
        "by model sharp, both agencies' numbers can all be true\n    only if a household exceeds the limit" in ended.out
    )
    assert "percentages of bedrooms may be of all units, some of them empty" in ended.err
    told = json.loads((tmp_path / "out" / "summary.json").read_text())
    places = pl.read_parquet(tmp_path / "out" / "places.parquet")
    section = occupancy(told, places, "block", "as somebody reads it")
    lead = str(section.lead)
    assert "can all be true only if at least one household exceeds the occupancy limit" in lead
    assert "as somebody reads it" in lead


def one_block(folder: Path, units: int, *options: object) -> Row:
    """20 households of three white adults, all in a property, half of whose units have one bedroom, half two."""
    block = "990010001001000"
    numbers = {"H0030002": 20, "P0010001": 60, "P0160001": 60, "P0160003": 60, "H0130004": 20, "P0150003": 20}
    rows = [("block", block, f"{name[0]}{int(name[1:4])}", name, value) for name, value in numbers.items()]
    pl.DataFrame(rows, schema=["level", "geoid", "table", "variable", "value"], orient="row").write_csv(
        folder / "tables.csv"
    )
    shares = {"pct_bed1": 50, "pct_bed2": 50, "pct_bed3": 0, "pct_white_nothsp": 100, "pct_1adult": 0, "pct_2adults": 0}
    said = {"property_id": "1", "block": block, "total_units": units, "number_reported": 20, "people_total": 60}
    pl.DataFrame([said | shares]).write_csv(folder / "housing.csv")
    out = folder / f"{units} units"
    good(asked(folder / "tables.csv", "--properties", folder / "housing.csv", *options, "--out", out, "--quiet"))
    (row,) = pl.read_parquet(out / "places.parquet").iter_rows(named=True)
    return row


@pytest.mark.parametrize("model", ["sharp", "paper"])
def test_empty_units_count(tmp_path: Path, model: str) -> None:
    """Of 40 units 20 have two bedrooms, and hold all; of 20 only 10 do."""
    for units, least in ((40, 0), (20, 10)):
        row = one_block(tmp_path, units, "--model", model)
        assert (row["answer"], row["violations_low"]) == ("certain" if least else "open", least)


def test_every_block_with_a_property_is_answered_or_left_out(found: Path, county: Path) -> None:
    housing = pl.read_parquet(county / "housing.parquet").filter(pl.col("people_total") >= 0)
    answered = pl.read_parquet(found / "places.parquet")["block"].to_list()
    left = pl.read_parquet(found / "left-out.parquet")["block"].to_list()
    assert sorted([*answered, *left]) == sorted(set(housing["block"]))


def test_what_is_certain_is_true(found: Path, county: Path) -> None:
    """With exact numbers, a block that must have violations has some, within the limits, in the truth."""
    homes = truth(county)
    places = pl.read_parquet(found / "places.parquet")
    assert places.filter(pl.col("answer") == "contradiction").is_empty()
    certain = 0
    for row in places.iter_rows(named=True):
        violations = sum(one["broken"] for one in homes[row["block"]])
        assert row["violations_low"] <= violations <= row["violations_high"]
        assert violations == row["violations_true"]
        assert (row["answer"] == "certain") == (row["violations_low"] > 0)
        certain += row["answer"] == "certain"
    assert certain >= 3  # otherwise this test shows nothing


def test_reasons_name_published_numbers(found: Path) -> None:
    reasons = pl.read_parquet(found / "reasons.parquet")
    certain = pl.read_parquet(found / "places.parquet").filter(pl.col("answer") == "certain")
    assert reasons["block"].to_list() == certain["block"].to_list()
    for row in reasons.iter_rows(named=True):
        assert row["minimal"] and row["proof"] in ("exact", "two-engines")
        assert len(row["numbers"]) == len(row["lower"]) == len(row["upper"]) >= 2
        assert all(name in row["because"] for name in row["numbers"])


def test_solutions_give_the_published_numbers(found: Path, county: Path) -> None:
    """Every likely data set has the census's numbers and those of the properties, recounted here."""
    tables = pl.read_parquet(county / "tables.parquet")
    published = {(row["geoid"], row["variable"]): row["value"] for row in tables.iter_rows(named=True)}
    housing = pl.read_parquet(county / "housing.parquet").filter(pl.col("people_total") >= 0)
    solutions = pl.read_parquet(found / "solutions.parquet")
    assert solutions["block"].n_unique() >= 3
    for (block, _), rows in solutions.group_by("block", "solution"):
        homes = [row for row in rows.iter_rows(named=True) for _ in range(row["households"])]
        sizes = Counter(min(row["persons"], 7) for row in homes)
        for size in range(1, 8):
            assert sizes[size] == published.get((block, f"H013000{size + 1}"), 0)
        assert sum(row["children"] for row in homes) == published.get((block, "P0160002"), 0)
        races = Counter((row["THHSPAN"], row["THHRACE"]) for row in homes)
        for origin, first in ((1, 3), (2, 11)):
            for race in range(1, 8):
                assert races[origin, race] == published.get((block, f"P0150{first + race - 1:03d}"), 0)
        properties = housing.filter(pl.col("block") == block)
        inside = [row for row in homes if row["bedrooms"] > 0]
        assert len(inside) == properties["number_reported"].sum()
        assert sum(row["persons"] for row in inside) == properties["people_total"].sum()
        if properties.height == 1:
            assert _room_for(Counter(row["bedrooms"] for row in inside), properties.row(0, named=True))
        for row in homes:
            assert row["violation"] == (row["persons"] > {0: 99, 1: 2, 2: 4, 3: 99}[row["bedrooms"]])


def _room_for(rooms: Counter[int], one: Row) -> bool:
    """Can households with these bedrooms live in the units of a property, or are the percentages of themselves?"""
    shares = [one[f"pct_bed{number}"] for number in (1, 2, 3)]
    of_themselves = all(abs(100 * rooms[at + 1] / rooms.total() - share) <= 0.5 for at, share in enumerate(shares))
    units = [next((n for n in range(one["total_units"] + 1) if abs(100 * n / one["total_units"] - share) <= 0.5),
                  share * one["total_units"] // 100) for share in shares]  # fmt: skip
    empty = sum(max(number - rooms[at + 1], 0) for at, number in enumerate(units))
    return of_themselves or empty <= max(one["total_units"], sum(units)) - rooms.total()


def test_solutions_are_different_and_ranked_by_likelihood(found: Path) -> None:
    solutions = pl.read_parquet(found / "solutions.parquet")
    columns = ["persons", "children", "THHSPAN", "THHRACE", "bedrooms", "households"]
    for (_,), rows in solutions.group_by("block"):
        seen = set()
        costs = []
        for (_,), one in rows.group_by("solution", maintain_order=True):
            seen.add(tuple(sorted(one.select(columns).rows())))
            costs.append(one["cost"][0])
        assert len(seen) == rows["solution"].n_unique() == len(costs)
        assert costs == sorted(costs)


def test_solution_variability(county: Path, tmp_path: Path) -> None:
    pl.read_parquet(county / "housing.parquet").head(6).write_parquet(tmp_path / "housing.parquet")
    told = ("--sample", county / "sample.parquet", "--solvar", "--solutions", 2, "--out", tmp_path / "out", "--quiet")
    good(asked(county / "tables.parquet", "--properties", tmp_path / "housing.parquet", *told))
    every = pl.read_parquet(tmp_path / "out" / "places.parquet")
    certain = every.filter(pl.col("answer") == "certain")["block"]
    listed = pl.read_parquet(tmp_path / "out" / "solutions.parquet")["block"]
    assert set(listed) <= set(certain)  # what was rebuilt for the variability alone is told of nobody
    places = every.drop_nulls("solvar")
    assert places.height >= 3
    for name in ("solvar", "solvar_simple", "solvar_violations"):
        assert places[name].is_between(0, 1).all()
        assert (places[name] <= places[f"{name}_upper"]).all()
    both = places.filter((pl.col("solvar_proof") == "exact") & (pl.col("solvar_simple_proof") == "exact"))
    assert (both["solvar_simple"] <= both["solvar"]).all()  # fewer attributes tell fewer households apart


def test_solution_variability_of_the_paper_is_over_all_that_fits(tmp_path: Path) -> None:
    """A sample with one kind of household makes one data set; others that fit are of other kinds.

    Who is present is bound from below alone, so that anybody else may live in every household too, and any of them may
    be the householder: no two need be alike. All ten who exceed the limit may be others: 20 of 2 x 20.
    """
    races = {name: int(name == "white") for name in ("white", "black", "aian", "asian", "nhopi", "sor")}
    person = {"household": 1, "county": "99001", "age": 40, **races, "hispanic": 0}
    persons = [person | {"relation": relation} for relation in ("householder", "spouse", "other")]
    pl.DataFrame(persons).write_parquet(tmp_path / "sample.parquet")
    row = one_block(tmp_path, 20, "--model", "paper", "--sample", tmp_path / "sample.parquet", "--solvar")
    for name, share in {"solvar": 1, "solvar_simple": 1, "solvar_violations": 0.5}.items():
        assert (row[name], row[f"{name}_upper"], row[f"{name}_proof"]) == (share, share, "exact")
    among = ("--sample", tmp_path / "sample.parquet", "--solvar-among", "sample")
    alone = one_block(tmp_path, 20, "--model", "paper", *among, "--solvar", "--groups", "--overwrite")
    for name in ("solvar", "solvar_simple", "solvar_violations"):  # of one kind of household nothing can be otherwise
        assert (alone[name], alone[f"{name}_upper"], alone[f"{name}_proof"]) == (0, 0, "exact")
    assert alone["rebuilt_violations"] == 10 and alone["solvar_unique"] == alone["solvar_simple_unique"] == 0
    assert asked(tmp_path / "none", "--properties", tmp_path / "none", *among).code == 2


# Matches


def _rankings(found: Path) -> dict[tuple[str, str], list[tuple[int, ...]]]:
    """From the solutions: kinds of violating households by how often they occur, then by their values."""
    counts: dict[tuple[str, str], Counter[tuple[int, ...]]] = defaultdict(Counter)
    for row in pl.read_parquet(found / "solutions.parquet").iter_rows(named=True):
        if row["violation"]:
            row |= {"subsidised": int(row["bedrooms"] > 0), "child": int(row["children"] > 0)}
            for key, columns in KEYS.items():
                counts[row["block"], key][tuple(row[name] for name in columns)] += row["households"]
    return {at: sorted(some, key=lambda value: (-some[value], value)) for at, some in counts.items()}


def test_rankings(found: Path) -> None:
    ranking = pl.read_parquet(found / "ranking.parquet")
    mine = _rankings(found)
    theirs: dict[tuple[str, str], list[tuple[int, ...]]] = defaultdict(list)
    for row in ranking.sort("block", "key", "rank").iter_rows(named=True):
        theirs[row["block"], row["key"]].append(tuple(row["values"]))
        assert tuple(row["columns"]) == KEYS[row["key"]]
    assert theirs == mine and mine


def test_rates_of_households(found: Path, county: Path) -> None:
    """Precision, recall and match rate at every k, for all and for those alone with their key, recounted."""
    homes, rankings = truth(county), _rankings(found)
    places = pl.read_parquet(found / "places.parquet")
    certain = places.filter(pl.col("answer") == "certain")["block"].to_list()
    rates = pl.read_parquet(found / "rates.parquet").filter(attacker="likely data sets")
    checked = 0
    for row in rates.iter_rows(named=True):
        key, columns = row["key"], KEYS[row["key"]]
        putative = confirmed = hits = named = violations = 0
        for block in places["block"]:
            people = [one for one in homes[block] if one["subsidised"] or "subsidised" not in columns]
            values = Counter(tuple(one[name] for name in columns) for one in people)
            if row["households"] == "unique":
                people = [one for one in people if values[tuple(one[name] for name in columns)] == 1]
            violations += sum(one["broken"] for one in people)
            if block not in certain:
                continue
            first = rankings.get((block, key), [])[: row["k"]]
            chosen = [one for one in people if tuple(one[name] for name in columns) in first]
            putative, confirmed = putative + len(chosen), confirmed + sum(one["broken"] for one in chosen)
            named += len(first)
            broken = {tuple(one[name] for name in columns) for one in people if one["broken"]}
            hits += sum(value in broken for value in first)
        assert (row["putative"], row["confirmed"], row["violations"]) == (putative, confirmed, violations)
        assert row["recall"] == (pytest.approx(confirmed / violations) if violations else None)
        assert row["match_rate"] == pytest.approx(hits / named)
        if putative:
            assert row["precision"] == pytest.approx(confirmed / putative)
            assert row["low"] <= row["precision"] <= row["high"]
        checked += 1
    assert checked >= 6


def test_one_list_over_all_blocks(found: Path, county: Path) -> None:
    """The global ranking by brute force: every kind of every certain block in one list, and households taken from it.

    Kinds that are equally frequent are taken together, so that no order among them matters.
    """
    homes = truth(county)
    places = pl.read_parquet(found / "places.parquet")
    listed = Counter({row["block"]: row["solutions"] for row in places.iter_rows(named=True)})
    every: dict[str, list[tuple[float, str, tuple[int, ...]]]] = defaultdict(list)
    for row in pl.read_parquet(found / "ranking.parquet").iter_rows(named=True):
        assert row["frequency"] * listed[row["block"]] == pytest.approx(round(row["frequency"] * listed[row["block"]]))
        every[row["key"]].append((row["frequency"], row["block"], tuple(row["values"])))
    rates = pl.read_parquet(found / "rates-over-all.parquet").filter(attacker="likely data sets")
    whole = pl.read_parquet(found / "rates.parquet").filter(attacker="likely data sets")
    checked = 0
    for key, columns in KEYS.items():
        ranking = sorted(every[key], reverse=True)
        for who in ("all", "unique"):
            mine = rates.filter(key=key, households=who)
            steps = [k for k in range(1, len(ranking) + 1)
                     if k == len(ranking) or ranking[k][0] < ranking[k - 1][0]]  # fmt: skip
            assert mine["k"].to_list() == steps
            for row in mine.iter_rows(named=True):
                putative = confirmed = hits = 0
                for _, block, value in ranking[: row["k"]]:
                    people = [one for one in homes[block] if tuple(one[name] for name in columns) == value]
                    people = people if who == "all" or len(people) == 1 else []
                    putative, broken = putative + len(people), sum(one["broken"] for one in people)
                    confirmed, hits = confirmed + broken, hits + (broken > 0)
                assert (row["putative"], row["confirmed"]) == (putative, confirmed)
                assert row["match_rate"] == pytest.approx(hits / row["k"])
                checked += 1
            last, same = mine.filter("all_putative").row(0, named=True), whole.filter(
                pl.col("all_putative"), key=key, households=who
            ).row(0, named=True)  # fmt: skip
            for name in ("population", "violations", "putative", "confirmed", "recall", "match_rate", "baseline"):
                assert last[name] == same[name], "who tries all kinds needs no order"
    assert checked > 12


def test_the_pictures(found: Path) -> None:
    """Figures A.1 by size and by share, A.3, 3, A.4, A.5 and G.7 are there, and are pictures."""
    for name in ("certain-by-size", "certain-by-share", "matched", "matched-unique", "precision-recall", "match-rate",
                 "violations"):  # fmt: skip
        assert "<svg" in (found / f"{name}.svg").read_text(), name


def test_groups_of_households(county: Path, tmp_path: Path) -> None:
    """Who is alone in the most likely data set, recounted from the data set that is listed first."""
    pl.read_parquet(county / "housing.parquet").head(5).write_parquet(tmp_path / "housing.parquet")
    told = ("--sample", county / "sample.parquet", "--solvar", "--groups", "--solutions", 1, "--every-block", "--quiet")
    out = tmp_path / "out"
    ended = asked(county / "tables.parquet", "--properties", tmp_path / "housing.parquet", *told, "--out", out)
    places = pl.read_parquet(out / "places.parquet").drop_nulls("solvar")
    listed = pl.read_parquet(out / "solutions.parquet")
    assert places.height >= 2
    for row in places.iter_rows(named=True):
        rows = listed.filter(block=row["block"]).to_dicts()
        assert row["rebuilt_violations"] == sum(one["households"] for one in rows if one["violation"])
        views = {
            "solvar": [(one["persons"], one["children"], one["THHSPAN"], one["THHRACE"], one["bedrooms"])
                       for one in rows],
            "solvar_simple": [(min(one["persons"], 7), one["bedrooms"], (one["THHSPAN"], one["THHRACE"]) == (1, 1),
                               one["children"] > 0) for one in rows],
        }  # fmt: skip
        for name, seen in views.items():
            sizes: Counter[tuple[Any, ...]] = Counter()
            for value, one in zip(seen, rows, strict=True):
                sizes[value] += one["households"]
            alone = [one for value, one in zip(seen, rows, strict=True) if sizes[value] == 1]
            inside = [one for one in alone if one["bedrooms"] > 0]
            broken = [one for one in alone if one["violation"]]
            expected = len(alone), len(inside), len(broken)
            assert (
                tuple(row[f"{name}_{who}"] for who in ("unique", "unique_subsidised", "unique_violations")) == expected
            )
    groups = json.loads((out / "summary.json").read_text())["groups"]
    assert [(one["over"], one["band"]) for one in groups] == [
        (name, band) for name in ("solvar", "solvar_simple") for band in ("one solution", "less than 5% can differ")
    ]
    assert (out / "solvar-by-share.svg").is_file() and ended.code == 0


def test_groups_are_added_up_over_places() -> None:
    """One solution, and less than 5% by a proved bound; a place of the first group is not in the second."""
    names = ["solvar", "solvar_upper", "solvar_proof", "households", "subsidised", "rebuilt_violations",
             "solvar_unique", "solvar_unique_subsidised", "solvar_unique_violations"]  # fmt: skip
    rows = [
        (0.0, 0.0, "exact", 10, 5, 1, 4, 2, 1),
        (0.0, 0.0, "undecided", 100, 50, 10, 40, 20, 10),
        (0.04, 0.04, "two-engines", 7, 3, 2, 1, 1, 1),
        (0.04, 0.06, "exact", 1000, 500, 100, 400, 200, 100),
        (None, None, None, 1, 1, None, None, None, None),
    ]
    one, few = settled_groups(pl.DataFrame(rows, schema=names, orient="row"), ["solvar"])
    assert (one.blocks, one.households, one.subsidised, one.violations) == (1, 10, 5, 1)
    assert (one.unique, one.unique_subsidised, one.unique_violations) == (4, 2, 1)
    assert (few.blocks, few.households, few.unique_violations, few.band) == (1, 7, 1, "less than 5% can differ")


def test_rates_of_blocks(found: Path) -> None:
    told = json.loads((found / "summary.json").read_text())["blocks_right"]
    places = pl.read_parquet(found / "places.parquet")
    putative = places.filter(pl.col("answer") == "certain")
    true = places.filter(pl.col("violations_true") > 0)
    assert told["putative"] == putative.height and told["with_violations"] == true.height
    assert told["precision"]["value"] == 1.0 and told["precision"]["low"] < 1.0
    assert told["recall"]["value"] == pytest.approx(putative.height / true.height)
    assert told["precision_by_chance"] == pytest.approx(true.height / places.height)


# Runs


@pytest.fixture(scope="module")
def plain(county: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plain") / "out"
    good(detect(county, "--out", out, "--workers", 1))
    return out


def test_the_same_bytes_for_any_number_of_workers(county: Path, plain: Path, tmp_path: Path) -> None:
    good(detect(county, "--out", tmp_path / "two", "--workers", 2))
    assert files(tmp_path / "two") == files(plain)


def test_an_interrupted_run_goes_on(county: Path, plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put, kept = Ledger.put, 0

    def stop(self: Ledger, entry: Any, *, final: bool = True) -> None:
        nonlocal kept
        kept += 1
        if kept == 3:
            raise KeyboardInterrupt
        put(self, entry, final=final)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "put", stop)
        assert detect(county, "--out", tmp_path / "out", "--workers", 1).code == 130
    again = good(detect(county, "--out", tmp_path / "out", "--workers", 1, "--json"))
    assert again.json["units_from_before"] == 2
    assert files(tmp_path / "out") == files(plain)


def test_json_alone(county: Path, tmp_path: Path) -> None:
    told = good(asked(county / "tables.parquet", "--properties", county / "housing.parquet", "--json")).json
    assert told["certain"] + told["open"] + told["contradiction"] == told["blocks"] > 0
    assert told["properties_left_out"].keys() <= {"suppressed", "poorly reported", "nobody reported"}


def test_the_order_of_rows_decides_nothing(county: Path, plain: Path, tmp_path: Path) -> None:
    for name in ("tables", "housing"):
        frame = pl.read_parquet(county / f"{name}.parquet").sample(fraction=1, shuffle=True, seed=5)
        frame.write_csv(tmp_path / f"{name}.csv")
    good(asked(tmp_path / "tables.csv", "--properties", tmp_path / "housing.csv", "--out", tmp_path / "out",
              "--quiet"))  # fmt: skip
    assert files(tmp_path / "out") == files(plain)


def test_the_model_of_the_paper_never_says_more(county: Path, plain: Path, tmp_path: Path) -> None:
    """Lower bounds allow all that equalities do: what the paper's model proves, the sharp one does.

    Not so of the most: in the paper's model those who report live in the largest units, by assumption.
    """
    good(detect(county, "--out", tmp_path / "paper", "--model", "paper"))
    sharp, paper = (pl.read_parquet(folder / "places.parquet") for folder in (plain, tmp_path / "paper"))
    assert set(paper["model"]) == {"paper"}
    both = sharp.join(paper, on="block", suffix="_paper")
    small = both.filter(pl.col("subsidised") <= 100)  # a share of more households is not rounded to one count
    assert small.height
    assert (small["violations_low_paper"] <= small["violations_low"]).all()


def test_fewest_violations_first(county: Path, tmp_path: Path) -> None:
    told = ("--sample", county / "sample.parquet", "--solutions", 5)
    for ties in ("any", "fewest"):
        good(detect(county, *told, "--ties", ties, "--out", tmp_path / ties))
    any_, fewest = (pl.read_parquet(tmp_path / ties / "places.parquet") for ties in ("any", "fewest"))
    rows = any_.join(fewest, on="block", suffix="_fewest").drop_nulls("likely_violations")
    assert rows.height >= 3
    assert (rows["likely_violations_fewest"] <= rows["likely_violations"]).mean() > 0.9
    assert rows["likely_violations_fewest"].sum() < rows["likely_violations"].sum()
    assert (rows["likely_violations_fewest"] >= rows["violations_low"]).all()


# Protected numbers


def test_noise_makes_contradictions_that_are_no_detections(county: Path, tmp_path: Path) -> None:
    tables = pl.read_parquet(county / "tables.parquet")
    worse = tables.with_columns(
        value=pl.when(pl.col("variable") == "P0160002").then(pl.col("value") + 60).otherwise(pl.col("value"))
    )  # more children than people
    worse.write_parquet(tmp_path / "tables.parquet")
    ended = good(asked(tmp_path / "tables.parquet", "--properties", county / "housing.parquet", "--nearest",
                      "--out", tmp_path / "out", "--quiet"))  # fmt: skip
    places = pl.read_parquet(tmp_path / "out" / "places.parquet")
    bad = places.filter(pl.col("answer") == "contradiction")
    assert bad.height and bad["violations_low"].is_null().all() and bad["violations_high"].is_null().all()
    assert (bad["nearest_error"] > 0).all() and bad["nearest_violations"].is_not_null().all()
    assert ended.code == 0


# Refusals


def _renamed(county: Path, folder: Path) -> None:
    """The same files, of a real state."""
    for name, column in (("tables", "geoid"), ("housing", "block"), ("households", "block"), ("sample", "county")):
        frame = pl.read_parquet(county / f"{name}.parquet")
        frame.with_columns(pl.col(column).str.replace("^99", "36")).write_parquet(folder / f"{name}.parquet")


def test_households_of_real_places_are_refused(county: Path, plain: Path, tmp_path: Path) -> None:
    _renamed(county, tmp_path)
    told = ("--sample", tmp_path / "sample.parquet", "--solutions", 3, "--out", tmp_path / "out")
    refused = detect(tmp_path, *told)
    assert refused.code == 2 and "--i-am-the-data-holder" in refused.err and not (tmp_path / "out").exists()
    assert detect(tmp_path, "--truth", tmp_path / "households.parquet", "--json").code == 2
    groups = detect(tmp_path, "--sample", tmp_path / "sample.parquet", "--solvar", "--groups", "--json")
    assert groups.code == 2 and "--groups" in groups.err
    alone = detect(tmp_path, "--sample", tmp_path / "sample.parquet", "--groups", "--json")
    assert alone.code == 2 and "--groups says of whom data sets agree; it needs --solvar" in alone.err
    good(detect(tmp_path, "--out", tmp_path / "blocks"))  # what is certain of blocks is told
    assert not (tmp_path / "blocks" / "solutions.parquet").exists()
    good(detect(tmp_path, *told, "--i-am-the-data-holder"))
    answers = pl.read_parquet(tmp_path / "out" / "places.parquet")["answer"].to_list()
    assert answers == pl.read_parquet(plain / "places.parquet")["answer"].to_list()


def test_a_sample_of_another_state_is_refused(county: Path, tmp_path: Path) -> None:
    _renamed(county, tmp_path)
    ended = detect(county, "--sample", tmp_path / "sample.parquet", "--solvar", "--out", tmp_path / "out")
    assert ended.code == 2 and "sample of state 36" in ended.err and "99" in ended.err


def _changed(county: Path, folder: Path, **columns: pl.Expr) -> None:
    pl.read_parquet(county / "housing.parquet").with_columns(**columns).write_parquet(folder / "housing.parquet")


def test_discrepancies_are_left_out_and_counted(county: Path, tmp_path: Path) -> None:
    """Appendix D: more subsidised households than households, more people than people, suppressed properties."""
    first = pl.int_range(pl.len()) == 0
    cases: dict[str, dict[str, pl.Expr]] = {
        "more subsidised households than households": {"number_reported": pl.lit(100_000)},
        "more subsidised people than people": {"people_total": pl.lit(100_000)},
    }
    for number, (reason, columns) in enumerate(cases.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        changed = {name: pl.when(first).then(value).otherwise(pl.col(name)) for name, value in columns.items()}
        _changed(county, folder, **changed)
        told = good(asked(county / "tables.parquet", "--properties", folder / "housing.parquet", "--out",
                         folder / "out", "--json")).json  # fmt: skip
        assert told["blocks_left_out"] == {reason: 1}
        written = json.loads((folder / "out" / "manifest.json").read_text())
        assert written["counts"]["blocks_left_out"] == {reason: 1}
    _changed(county, tmp_path, people_total=pl.when(first).then(pl.lit(-4)).otherwise(pl.col("people_total")))
    told = good(asked(county / "tables.parquet", "--properties", tmp_path / "housing.parquet", "--json")).json
    before = good(detect(county, "--json")).json
    assert told["properties_left_out"]["suppressed"] == before["properties_left_out"].get("suppressed", 0) + 1


def test_bad_files_and_options(county: Path, tmp_path: Path) -> None:
    share = pl.when(pl.int_range(pl.len()) == 2).then(pl.lit(130)).otherwise(pl.col("pct_bed1"))
    _changed(county, tmp_path, pct_bed1=share)
    cases = [
        (("--properties", tmp_path / "housing.parquet"), ("row 3", "pct_bed1", "130")),
        (("--properties", tmp_path / "none.parquet"), ("no such file",)),
        (("--properties", county / "housing.parquet", "--model", "exact"), ("unknown model", "paper", "sharp")),
        (("--properties", county / "housing.parquet", "--solutions", 5), ("--sample",)),
        (("--properties", county / "housing.parquet", "--solvar"), ("--sample",)),
        (("--properties", county / "housing.parquet", "--ties", "all"), ("any, fewest",)),
        (("--properties", county / "housing.parquet", "--scenario", "pl94"), ("subsidised-housing",)),
        (("--properties", county / "housing.parquet", "--truth", county / "housing.parquet"), ("housing.parquet",)),
        (
            ("--properties", county / "housing.parquet", "--sample", county / "housing.parquet", "--solvar"),
            ("household",),
        ),
    ]
    for options, words in cases:
        ended = asked(county / "tables.parquet", *options, "--out", tmp_path / "out", "--quiet")
        assert ended.code == 2, (options, ended)
        assert all(word in ended.err for word in words), ended.err
        assert not (tmp_path / "out").exists()


def test_tables_without_households_are_refused_once(county: Path, tmp_path: Path) -> None:
    """Tables of another scenario that share some numbers are no tables for this question."""
    tables = pl.read_parquet(county / "tables.parquet").filter(pl.col("table") != "H3")
    tables.write_parquet(tmp_path / "tables.parquet")
    ended = asked(tmp_path / "tables.parquet", "--properties", county / "housing.parquet", "--json")
    assert ended.code == 2 and "H0030002" in ended.err and "tabulate" in ended.err


def test_no_usable_property_is_refused(county: Path, tmp_path: Path) -> None:
    _changed(county, tmp_path, people_total=pl.lit(-4))
    ended = asked(county / "tables.parquet", "--properties", tmp_path / "housing.parquet", "--json")
    assert ended.code == 2 and "suppressed" in ended.err


def test_blocks_without_tables_are_named(county: Path, tmp_path: Path) -> None:
    """A property whose block the tables do not have is left out by name; if all are, the run warns."""
    first = pl.int_range(pl.len()) == 0
    _changed(county, tmp_path, block=pl.when(first).then(pl.lit("990010099009999")).otherwise(pl.col("block")))
    good(asked(county / "tables.parquet", "--properties", tmp_path / "housing.parquet", "--out",
              tmp_path / "out", "--quiet"))  # fmt: skip
    left = pl.read_parquet(tmp_path / "out" / "left-out.parquet")
    assert left.filter(pl.col("reason") == "not in the tables")["block"].to_list() == ["990010099009999"]
    _changed(county, tmp_path, block=pl.lit("990010099009999"))
    ended = good(asked(county / "tables.parquet", "--properties", tmp_path / "housing.parquet", "--json"))
    assert ended.json["blocks"] == 0 and any("same places" in note for note in ended.json["notes"])


def test_protected_numbers_are_called_so(county: Path, tmp_path: Path) -> None:
    noisy = tmp_path / "noisy.parquet"
    good(tool("protect", "noise", county / "tables.parquet", "--scenario", "subsidised-housing", "--budget",
              "occupancy-2020", "--seed", 1, "--out", noisy, "--quiet"))  # fmt: skip
    ended = asked(noisy, "--properties", county / "housing.parquet", "--model", "paper", "--json")
    assert any("not of people" in note and "noisy.parquet" in note for note in ended.json["notes"])
    before = good(detect(county, "--json")).json
    assert not any("not of people" in note for note in before["notes"])


@pytest.mark.parametrize("totals", [False, True])
def test_group_quarters(county: Path, tmp_path: Path, totals: bool) -> None:
    """People beyond those in households: the paper's model leaves the block out, the sharp one has P16 without them.

    It makes no difference whether a file prints the total of P16 or leaves it to be added up.
    """
    tables = pl.read_parquet(county / "tables.parquet")
    block = pl.read_parquet(county / "housing.parquet").filter(pl.col("people_total") >= 0)["block"][0]
    here = (pl.col("geoid") == block) & (pl.col("variable") == "P0010001")
    more = tables.with_columns(value=pl.when(here).then(pl.col("value") + 5).otherwise(pl.col("value")))
    if totals:
        parts = tables.filter(pl.col("variable").is_in(["P0160002", "P0160003"]))
        whole = parts.group_by("level", "geoid", "table").agg(pl.col("value").sum())
        more = pl.concat([more, whole.with_columns(variable=pl.lit("P0160001")).select(more.columns)])
    more.write_parquet(tmp_path / "tables.parquet")
    for model, reasons in (("paper", {"group quarters": 1}), ("sharp", {})):
        told = good(asked(tmp_path / "tables.parquet", "--properties", county / "housing.parquet", "--model", model,
                          "--json")).json  # fmt: skip
        assert told["blocks_left_out"] == reasons
