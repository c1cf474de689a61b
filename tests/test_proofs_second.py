"""Do certificates hold that rest on a second agency's file? Toys, mutants, and what detect says of a county."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest

import glasshouse as gh
from glasshouse.attack.occupancy.statements import LeftOut, Property, readings_of
from glasshouse.commands.detect import Detected
from glasshouse.commands.proving.occupancy import ALL_UNITS, THEIR_UNITS, is_covered, readings_defined
from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED, Interval
from glasshouse.proofs.check_second import stated
from glasshouse.scenarios.load import load
from tests import vipr_grammar
from tests.proof_toys import Json, Rows, certificate, extreme, finish, is_true, toy, write
from tests.test_proofs import mutate, verdict

Lines = list[dict[str, str]]
SIZES = ("p1", "p2", "p3")


def toy_of_two(seed: int) -> tuple[Json, Rows, Lines]:
    """A toy, and a second agency that prints of some of its records how many they are and in which units they live."""
    definitions, rows, records = toy(seed)
    rng = np.random.default_rng(seed)
    definitions["all_places"] = False
    definitions["numbers"].pop("street")
    rows = [row for row in rows if row[0] == "house"]
    some = {"a1": "1"}  # whom the second agency knows: of these a0 is the size of their unit
    for reading, of in (("of all", "units"), ("of theirs", "who")):
        definitions["levels"][reading] = 0
        numbers = definitions["numbers"][reading] = {}
        numbers["who"] = {"counts": [some], "second": {"of": "who"}}
        numbers["known"] = {"counts": [some | {"a2": "0"}], "second": {"of": "known", "least": True}}
        numbers["share"] = {"counts": [some | {"a2": "1"}], "second": {"of": "who", "shares": ["share"]}}
        for name, which in (("one", [0]), ("two", [1]), ("both", [0, 1]), ("last", [1, 2])):
            how = {"of": of, "who": "who", "shares": [SIZES[at] for at in which], "whole": list(SIZES)}
            numbers[name] = {"counts": [some | {"a0": " ".join(map(str, which))}], "second": how}
        for said in numbers.values():
            said |= {"table": "second", "says": "some"}
    lines = []
    for place, every in records.items():
        mine = [one for one in every if one[1] == 1]
        for part in (mine[::2], mine[1::2]) if rng.random() < 0.5 else (mine,):
            empty = [int(rng.integers(0, 3)) for _ in range(int(rng.integers(0, 2)))]
            units = [one[0] for one in part] + empty
            of = units if rng.random() < 0.5 else units[: len(part)]
            digits = int(rng.choice([0, 0, 1, 2]))
            shares = [printed(of.count(at), len(of), digits) for at in range(3)]
            share = printed(sum(one[2] for one in part), len(part), digits)
            known = str(sum(one[2] == 0 for one in part)) if rng.random() < 0.7 else ""
            line = {"place": place, "units": str(len(units)), "who": str(len(part)), "known": known, "share": share}
            lines.append(line | dict(zip(SIZES, shares, strict=True)))
    return definitions, rows, lines


def printed(part: int, whole: int, digits: int) -> str:
    return f"{100 * part / whole:.{digits}f}" if whole else ""


def put(folder: Path, definitions: Json, rows: Rows, lines: Lines) -> tuple[str, str]:
    first, second = write(folder, definitions, rows)
    text = "".join(",".join(one) + "\n" for one in [list(lines[0]), *([*line.values()] for line in lines)])
    (folder / "second.csv").write_text(text)
    return f"{first} {hashlib.sha256(text.encode()).hexdigest()}", second


def counts_of(share: str, of: int) -> list[int]:
    """Which numbers of so many are printed as this percentage, halves both ways."""
    step = Fraction(1, 10 ** len(share.partition(".")[2]))
    every = range(of + 1)
    return [n for n in every if not share or not of or abs(Fraction(100 * n, of) - Fraction(share)) <= step / 2]


def floor_of(share: str, of: int) -> int:
    """The fewest; where no number is printed so, the one just below."""
    below = [n for n in range(of + 1) if 100 * n <= Fraction(share or 0) * of]
    return min(counts_of(share, of), default=max(below, default=0))


def ends(how: Json, lines: Lines) -> tuple[int, int | None]:
    """What the specification says of a number; counted, not computed."""
    low, high, who = 0, 0, sum(int(line[how.get("who", how["of"])] or 0) for line in lines)
    for line in lines:
        if line[how["of"]] == "":
            high = None
            continue
        of = int(line[how["of"]])
        if "who" in how:
            each = {name: counts_of(line[name], of) for name in how["whole"]}
            least = {name: floor_of(line[name], of) for name in how["whole"]}
            if how["of"] == how["who"] and (not all(each.values()) or sum(least.values()) > of):
                return who + 1, None
            without = max(max(of, sum(least.values())) - int(line[how["who"]] or 0), 0)
            low, high = low + max(sum(least[name] for name in how["shares"]) - without, 0), None
        elif "shares" in how:
            some = [counts_of(line[name], of) for name in how["shares"]]
            if not all(some):
                return who + 1, None  # no number is printed so: nothing fits
            low += sum(map(min, some))
            high = None if high is None else high + sum(map(max, some))
        else:
            low, high = low + of, None if high is None else high + of
    return low, None if "least" in how else high


def with_rows(definitions: Json, rows: Rows, lines: Lines) -> Rows:
    """The published rows, and what follows from the second file as if it were published so."""
    found = [list(row) for row in rows]
    for reading, numbers in definitions["numbers"].items():
        for name, said in numbers.items():
            for place in ("A1a", "A1b") if "second" in said else ():
                low, high = ends(said["second"], [line for line in lines if line["place"] == place])
                found.append([reading, place, name, str(low), "" if high is None else str(high)])
    return found


def facts(definitions: Json, rows: Rows, lines: Lines) -> list[Json]:
    known = _long(definitions), with_rows(definitions, rows, lines)
    found: list[Json] = []
    for reading in ("of all", "of theirs"):
        base: Json = {"places": ["A1a"], "levels": ["house", reading]}
        for where in ([{"a1": "1", "a0": "0"}], [{"a0": "1", "a2": "1"}, {"a0": "2", "a2": "0"}]):
            for side in ("least", "most"):
                said = base | {"fact": side, "where": where}
                best = extreme(*known, said)
                if best is not None and (best or side == "most"):
                    found.append(said | {"bound": best})
        if extreme(*known, base | {"fact": "least", "where": [{}]}) is None:
            found.append(base | {"fact": "contradiction"})
    return found


def _long(definitions: Json) -> Json:
    """The same for the oracle, which takes the codes of a reading to be those of places."""
    lengths = {level: length or 3 for level, length in definitions["levels"].items()}
    return definitions | {"levels": lengths}


@pytest.mark.parametrize("seed", range(10))
def test_the_sharpest_facts_of_two_agencies_are_shown_and_accepted(seed: int, tmp_path: Path) -> None:
    definitions, rows, lines = toy_of_two(seed)
    hashes = put(tmp_path, definitions, rows, lines)
    said = facts(definitions, rows, lines)
    assert said
    for one in said:
        found = certificate(tmp_path, one)
        assert found is not None and found[0] == one.get("bound", 0), one
        fine, statement = verdict(tmp_path, finish(found[1], hashes))
        assert fine and f"second agency (if {one['levels'][1]})" in statement, statement
        assert not vipr_grammar.refused(found[1])
        step = {"least": 1, "most": -1}.get(one["fact"], 0)
        if step and one["bound"] + step > 0:
            more = certificate(tmp_path, one | {"bound": one["bound"] + step})
            assert more is None or more[0] == one["bound"], one


def try_mutants(folder: Path, count: int, seed: int) -> Counter[str]:
    rng, tried = Random(seed), Counter[str]()
    while tried["all"] < count:
        seed += 1
        definitions, rows, lines = toy_of_two(seed)
        hashes = put(folder, definitions, rows, lines)
        several = facts(definitions, rows, lines)
        for said in rng.sample(several, min(len(several), 3)):
            put(folder, definitions, rows, lines)
            found = certificate(folder, said)
            assert found is not None
            for _ in range(8):
                mine, numbers, text, which = json.loads(json.dumps(definitions)), rows, found[1], "second"
                told = [dict(line) for line in lines]
                if rng.random() < 0.5:
                    mine, numbers, text, which = mutate(definitions, rows, found[1], rng)
                elif rng.random() < 0.3:
                    which = "formula"
                    how = rng.choice(list(mine["numbers"][said["levels"][1]].values()))["second"]
                    name, value = rng.choice([("of", "who"), ("of", "units"), ("least", True), ("shares", ["p2"])])
                    how[name] = value
                else:
                    line = rng.choice(told)
                    name = rng.choice([one for one in line if one != "place"])
                    shares = [] if name in ("units", "who", "known") else ["33", "50", "66.7", "100"]
                    line[name] = rng.choice(["", "0", "1", "2", "3", *shares])
                hashes = put(folder, mine, numbers, told)
                fine, statement = verdict(folder, finish(text, hashes))
                tried["all"] += 1
                tried[which] += 1
                if fine:
                    asked = json.loads(next(line for line in text.split("\n") if line.startswith("% fact"))[7:])
                    assert is_true(_long(mine), with_rows(mine, numbers, told), asked), (which, statement, text, told)
                    tried["accepted, as they are true"] += 1
    return tried


def test_no_mutant_of_two_agencies_that_is_false_is_accepted(tmp_path: Path) -> None:
    tried = try_mutants(tmp_path, 150, 200)
    assert tried["second"] > 30 and tried["formula"] > 5 and 0 < tried["accepted, as they are true"] < tried["all"]


@pytest.mark.slow
def test_no_mutant_of_two_agencies_of_two_thousand_is_accepted(tmp_path: Path) -> None:
    tried = try_mutants(tmp_path, 2000, 3000)
    print(tried)
    assert tried["all"] >= 2000


# What detect says


def random_property(rng: np.random.Generator, columns: list[str], shares: set[str]) -> tuple[Property, dict[str, str]]:
    """A property with random numbers, some of them unknown; and the line that it is printed as."""
    reported, digits = int(rng.integers(1, 30)), int(rng.choice([0, 0, 1, 2]))
    values: dict[str, int | None] = {}
    line = {"number_reported": str(reported)}
    sizes = np.bincount(rng.integers(0, 3, reported), minlength=3) if rng.random() < 0.6 else None
    for name in columns:
        most = 100 * 10**digits if name in shares else 40
        values[name] = None if rng.random() < 0.15 else int(rng.integers(0, most + 1))
        if name in shares and rng.random() < 0.4:
            part = int(rng.integers(0, reported + 1))
            values[name] = round(100 * 10**digits * part / reported)
        if sizes is not None and name.startswith("pct_bed"):
            values[name] = round(100 * 10**digits * int(sizes[int(name[-1]) - 1]) / reported)
        if name == "total_units" and values[name] is not None:
            values[name] = reported + int(rng.integers(0, 3))
        value = values[name]
        printed = "" if value is None else str(value)
        if value is not None and name in shares and digits:
            printed = f"{value // 10**digits}.{value % 10**digits:0{digits}d}"
        line[name] = printed
    return Property(reported, values, dict.fromkeys(shares, digits)), line


def test_the_checker_and_detect_read_properties_alike() -> None:
    scenario = load("subsidised-housing")
    occupancy = scenario.occupancy
    assert occupancy is not None
    model = occupancy.model("sharp")
    readings = readings_defined(scenario.schema, occupancy, model)
    shares = set(occupancy.shares)
    columns = [*shares, "total_units", "people_total", "children_total"]
    rng, alone = np.random.default_rng(5), Counter[str]()
    for _ in range(300):
        some = [random_property(rng, columns, shares) for _ in range(int(rng.integers(1, 4)))]
        census = {name: Interval(0) for name in occupancy.variables(model)} | {occupancy.households: Interval(200, 200)}
        found = readings_of(occupancy, model, "9", census, [one for one, _ in some])
        assert not isinstance(found, LeftOut)
        limits = {
            reading: {name: stated(said["second"], [line for _, line in some]) for name, said in numbers.items()}  # type: ignore[arg-type]
            for reading, numbers in readings.items()
        }
        for block in found:  # each reading of detect is one of the checker's
            theirs = {
                one.name: (int(low), None if high >= UNLIMITED else int(high))
                for one, low, high in zip(model.statements, block.lower, block.upper, strict=True)
                if one.of_property
            }
            both = (ALL_UNITS, THEIR_UNITS)
            alike = [name for name in both if all(limits[name][one] == theirs[one] for one in theirs)]
            assert alike, (limits, theirs)
            alone[alike[0]] += len(alike) == 1
        assert limits[ALL_UNITS]["number_reported"] == (found[0].subsidised, found[0].subsidised)
    assert alone[ALL_UNITS] > 20 and alone[THEIR_UNITS] > 20


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("housing")
    gh.synthesize(persons=4000, subsidised=0.2, seed=3, out=folder / "county")
    households = folder / "county" / "households.parquet"
    gh.tabulate(households, scenario="subsidised-housing", out=folder / "tables.csv.gz")
    return folder


@pytest.fixture(scope="module")
def detected(county: Path) -> Detected:
    return gh.detect(county / "tables.csv.gz", properties=county / "county" / "housing.parquet", workers=1)


def test_what_detect_says_is_certified_under_each_reading(county: Path, detected: Detected, tmp_path: Path) -> None:
    tables, properties = county / "tables.csv.gz", county / "county" / "housing.parquet"
    found = detected.prove(tables, properties=properties, facts="least", out=tmp_path / "p", workers=1)
    certain = detected.places.filter(pl.col("answer") == "certain")
    assert certain.height and set(found.index["fact"]) == {"violations least"}
    assert set(found.index["status"]) == {"certified"} and found.code == 0
    for place, low in certain.select("block", "violations_low").iter_rows():
        mine = found.index.filter(pl.col("place") == place)["statement"]
        assert len(mine) == 2 and len({said.partition("(if ")[2].partition(")")[0] for said in mine}) == 2
        assert all(f" at least {low} records " in said and "exactly that many was counted" in said for said in mine)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "p").iterdir()} == {0o600}
    alone = [sys.executable, "-I", "-S", str(tmp_path / "p" / "check_proof.py"), str(tmp_path / "p"), "--tables"]
    ended = subprocess.run([*alone, str(tables)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and f"{found.summary.files} accepted, 0 refused" in ended.stdout, ended
    for path in (tmp_path / "p").glob("*.vipr"):
        assert not vipr_grammar.refused(path.read_text())
    assert gh.check_proof(tmp_path / "p", tables=tables, properties=properties).code == 0
    with pytest.raises(InputError, match="rest on a second file, too; give it with --properties"):
        gh.check_proof(tmp_path / "p", tables=tables)
    second = tmp_path / "p" / "second.csv"
    printed = second.read_text()
    second.write_text(printed[:-2] + ("8" if printed[-2] == "9" else "9") + "\n")
    wrong = gh.check_proof(tmp_path / "p", tables=tables, properties=properties)
    assert wrong.code == 1 and not wrong.summary.accepted


@pytest.mark.slow
def test_an_excerpt_has_the_numbers_that_are_used_and_is_compared(county: Path, tmp_path: Path) -> None:
    """Of tables that the checker cannot read, also where the file has more than the statements look at."""
    tables, properties = tmp_path / "tables.parquet", county / "county" / "housing.parquet"
    gh.tabulate(county / "county" / "households.parquet", scenario="subsidised-housing", out=tables)
    found = gh.detect(tables, properties=properties, workers=1)
    proved = found.prove(tables, properties=properties, facts="least", out=tmp_path / "p", workers=1)
    assert proved.index.height and set(proved.index["status"]) == {"certified"}
    shown = {line.split(",")[2] for line in (tmp_path / "p" / "published.csv").read_text().splitlines()[1:]}
    assert "P0010001" in set(pl.read_parquet(tables)["variable"]) and shown and "P0010001" not in shown
    fine = gh.check_proof(tmp_path / "p", tables=tables, properties=properties)
    assert fine.code == 0 and fine.summary.accepted == proved.summary.files
    told = tmp_path / "p" / "published.csv"
    first, second, rest = told.read_text().split("\n", 2)
    told.write_text("\n".join([first, second.rsplit(",", 2)[0] + ",7,7", rest]))
    assert gh.check_proof(tmp_path / "p", tables=tables, properties=properties).code == 1


def test_the_most_that_can_break_the_rule_is_certified(county: Path, detected: Detected) -> None:
    properties = county / "county" / "housing.parquet"
    found = detected.prove(county / "tables.csv.gz", properties=properties, facts="most", workers=1)
    assert found.index.height == 2 * detected.places.height and set(found.index["status"]) == {"certified"}
    most = dict(detected.places.select("block", "violations_high").iter_rows())
    for place, said in found.index.select("place", "statement").iter_rows():
        assert f" at most {most[place]} records " in said


def test_properties_must_be_given_and_be_the_same(county: Path, detected: Detected) -> None:
    tables, properties = county / "tables.csv.gz", county / "county" / "housing.parquet"
    with pytest.raises(InputError, match=r"the run was given housing.parquet \(properties\); give it too"):
        detected.prove(tables)
    with pytest.raises(InputError, match="is another file than the result was made from"):
        detected.prove(tables, properties=county / "county" / "hdf.parquet")
    assert properties.exists()


def test_a_model_that_the_checker_cannot_read_is_open(county: Path) -> None:
    tables, properties = county / "tables.csv.gz", county / "county" / "housing.parquet"
    paper = gh.detect(tables, properties=properties, model="paper", workers=1)
    found = paper.prove(tables, properties=properties, workers=1)
    assert set(found.index["status"]) == {"open"} and not any(found.index["file"].fill_null(""))
    assert any("its facts are open" in note for note in found.notes)
    scenario = load("subsidised-housing")
    assert scenario.occupancy is not None
    covered = {name: is_covered(scenario.occupancy, model) for name, model in scenario.occupancy.models.items()}
    assert covered == {"sharp": True, "paper": False}


def test_numbers_of_two_agencies_that_contradict_are_named(county: Path, tmp_path: Path) -> None:
    properties = pl.read_parquet(county / "county" / "housing.parquet")
    low = pl.col("people_total") > 0
    first = properties.filter(low)["property_id"][0]
    people = (
        pl.when(pl.col("property_id") == first).then(pl.col("number_reported") - 1).otherwise(pl.col("people_total"))
    )
    properties.with_columns(people.alias("people_total")).write_parquet(tmp_path / "housing.parquet")
    found = gh.detect(county / "tables.csv.gz", properties=tmp_path / "housing.parquet", workers=1)
    assert "contradiction" in set(found.places["answer"])
    proved = found.prove(
        county / "tables.csv.gz", properties=tmp_path / "housing.parquet", facts="contradiction", workers=1
    )
    assert proved.index.height == 2 and set(proved.index["status"]) == {"certified"}
    for said in proved.index["statement"]:
        assert "people@" in said and " and of a second agency (if the shares of units are of" in said
        assert said.endswith("without any one of them some set fits the others.")
