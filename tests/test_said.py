"""Is what is said so? Units beside numbers, rows that are missing, records that are one possible set, sizes, notes."""

from __future__ import annotations

import random
import re
import warnings
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from glasshouse.errors import GlasshouseBug
from glasshouse.report.description import Column, Explorer, Measure, Report, Section, Table, words
from glasshouse.report.sections.answers import About, protections
from glasshouse.report.sections.methods import definitions, terms_of
from glasshouse.report.words import entries
from tests.running import good, tool

NORLAND = Path(__file__).parents[1] / "examples" / "own-country" / "scenario"
LANGUAGES = ("Norlandic", "Coastal", "Hill", "another")


# Units


def compared() -> pl.DataFrame:
    """The measures of one setting, as `compare` summarises them."""
    measures = {
        "found_exposed": ("risk", 0.25), "table_error_block": ("use", 0.12), "population_error_block": ("use", 2.944),
        "share_error_tract": ("use", 0.6), "dissimilarity_error_block": ("use", 0.031),
    }  # fmt: skip
    rows = [("a", "swap", kind, name, "higher", 1, value, None, None, None) for name, (kind, value) in measures.items()]
    columns = ["setting", "protect", "kind", "measure", "worse", "seeds", "value", "low", "high", "baseline"]
    schema = dict.fromkeys(columns, pl.String) | dict.fromkeys(columns[6:], pl.Float64) | {"seeds": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def settings() -> Table:
    section = protections(compared(), About(5000, 4000, 400), {}, "")
    (explorer,) = (block for block in section.blocks if isinstance(block, Explorer))
    return explorer.table


def report(table: Table) -> Report:
    made = Report("T", "", "internal", (), (), (Section("s", "S", "", (table,)),), (), ())
    return replace(made, definitions=definitions(terms_of(made)))


def test_persons_and_points_are_not_printed_as_percent() -> None:
    """An error of 2.94 persons was printed as 294.4%, one of 0.6 points as 60.0%."""
    table = settings()
    printed = {column.title: words(cell) for column, cell in zip(table.columns, table.rows[0], strict=True)}
    assert printed["error of populations (block), in persons"] == "2.94 persons"
    assert printed["error of shares (tract), in points"] == "0.60 points"
    assert printed["error of segregation (block), index"] == "0.031"
    assert printed["error of block tables"] == "12.0%" and printed["exposed people found"] == "25.0%"
    report(table)


def test_a_number_in_another_unit_than_its_definition_is_no_report() -> None:
    head = (Column("setting"), Column("error", "use_populations"))
    for style in ("share", "points", "points off", "number"):
        with pytest.raises(GlasshouseBug, match="'use_populations' is given as"):
            report(Table("t", "T", head, (("a", Measure(2.94, 500, style)),), ""))  # type: ignore[arg-type]
    report(Table("t", "T", head, (("a", Measure(2.94, 500, "persons")),), ""))


def test_every_term_says_its_units() -> None:
    known = {"count", "share", "points", "points off", "persons", "number"}
    for entry in entries("definition"):
        assert set(entry["units"]) <= known, entry["term"]
    without = {entry["term"] for entry in entries("definition") if not entry["units"]}
    assert without == {"front", "protection", "list"}  # their columns have names, no numbers


# What an attacker would do with rounded tables


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with invented people of Norland, and their names, places, sexes and ages."""
    folder, rng = tmp_path_factory.mktemp("norland"), random.Random(7)
    rows = []
    for number in range(120):
        town, ward, age = rng.randint(1, 2), rng.randint(1, 3), min(99, int(rng.triangular(0, 95, 35)))
        usual = LANGUAGES[(town + ward) % 3]
        language = usual if rng.random() < 0.75 else rng.choice(LANGUAGES)
        work = "under 15" if age < 15 else rng.choice(["works", "works", "studies", "keeps house"])
        rows.append((f"p{number:03}", f"NO{town:02}W{ward:02}", rng.choice("wm"), age, language, work))
    names = ["person_id", "ward", "sex", "age", "language", "work"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    frame.write_csv(folder / "records.csv")
    frame.select(names[:4]).write_csv(folder / "list.csv")
    return folder


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Norland with three of its tables, which are quicker to attack."""
    folder = tmp_path_factory.mktemp("few")
    kept = re.sub(r"(?m)^(W3|W4|T2) = .*$", "", (NORLAND / "scenario.toml").read_text(encoding="utf-8"))
    (folder / "scenario.toml").write_text(kept, encoding="utf-8")
    return folder


def by_hand(people: Path, few: Path, folder: Path, *attack: object) -> float:
    """The share of the exposed who are found in what `reconstruct` makes of rounded tables."""
    scenario, rebuilt = ["--scenario", few, "--quiet", "--workers", 1], folder / "rebuilt"
    good(tool("reconstruct", *attack, *scenario, "--out", rebuilt, "--overwrite"))
    good(tool("reidentify", f"x={rebuilt}", "--truth", people / "records.csv", "--published",
              rebuilt / "records.parquet", "--attacker", people / "list.csv", *scenario, "--out", folder / "linked",
              "--overwrite"))  # fmt: skip
    rates = pl.read_parquet(folder / "linked" / "rates.parquet")
    here = (pl.col("data") == "x") & (pl.col("group") == "nonmodal-unique") & (pl.col("band") == "all")
    row = rates.row(by_predicate=here, named=True)
    return float(row["confirmed"] / row["population"])


@pytest.mark.slow
def test_compare_credits_rounding_with_no_more_than_an_attacker_leaves(people: Path, few: Path, tmp_path: Path) -> None:
    """With the intervals, the totals and the tables of towns; and by the nearest records inside the intervals."""
    exact, rounded, printed = (tmp_path / f"{name}.parquet" for name in ("exact", "rounded", "printed"))
    words_ = ["--scenario", few, "--quiet"]
    good(tool("tabulate", people / "records.csv", *words_, "--subtotals", "--out", exact))
    good(tool("protect", "round", exact, *words_, "--base", 3, "--seed", 1, "--out", rounded, "--values", printed))
    plan = f'title = "N"\nscenario = "{few}"\nseeds = [1]\n[[setting]]\nname = "r"\nprotect = "round"\nbase = 3\n'
    (tmp_path / "plan.toml").write_text(plan, encoding="utf-8")
    good(tool("compare", "--truth", people / "records.csv", "--attacker", people / "list.csv", "--plan",
              tmp_path / "plan.toml", "--workers", 1, "--quiet", "--out", tmp_path / "compared"))  # fmt: skip
    rows = pl.read_parquet(tmp_path / "compared" / "measures.parquet")
    said = dict(rows.select("measure", "value").iter_rows())
    alone = by_hand(people, few, tmp_path, rounded, "--nearest", "absolute", "--printed", printed)
    together = by_hand(people, few, tmp_path, rounded)
    assert said["found_exposed"] == max(alone, together) > 0
    assert (said["found_exposed_rebuilt"], said["found_exposed_together"]) == (alone, together)


def test_the_nearest_to_the_print_lie_inside_the_intervals(people: Path, tmp_path: Path) -> None:
    exact, rounded, printed = (tmp_path / f"{name}.parquet" for name in ("exact", "rounded", "printed"))
    words_ = ["--scenario", NORLAND, "--quiet"]
    good(tool("tabulate", people / "records.csv", *words_, "--subtotals", "--out", exact))
    good(tool("protect", "round", exact, *words_, "--seed", 2, "--out", rounded, "--values", printed))
    attack = ["reconstruct", rounded, *words_[:2], "--nearest", "absolute", "--workers", 1]
    ended = good(tool(*attack, "--printed", printed, "--out", tmp_path / "near"))
    assert "inside every interval of 6 wards" in ended.out
    places = pl.read_parquet(tmp_path / "near" / "places.parquet")
    assert places["recounted"].all() and (places["error_floor"] <= places["error"]).all()
    again = tmp_path / "again.parquet"
    good(tool("tabulate", tmp_path / "near" / "records.parquet", *words_, "--subtotals", "--out", again))
    at, wards = ["level", "geoid", "variable"], pl.col("level") == "ward"
    both = pl.read_parquet(rounded).filter(wards).join(pl.read_parquet(again), on=at, how="left")
    both = both.with_columns(pl.col("value").fill_null(0))
    assert both.height and ((both["lower"] <= both["value"]) & (both["value"] <= both["upper"])).all()
    far = both.join(pl.read_parquet(printed), on=at, suffix="_printed")
    assert (far["value"] - far["value_printed"]).abs().sum() == places["error"].sum()
    assert "give what was printed, too" in tool(*attack, "--json").out  # intervals alone have no nearest
    assert "has intervals" in tool(*attack, "--printed", rounded, "--json").err
    assert "needs --nearest" in tool("reconstruct", rounded, *words_[:2], "--printed", printed, "--json").err


# How many there are


def test_records_from_rounded_tables_are_one_possible_set(people: Path, tmp_path: Path) -> None:
    exact, rounded = tmp_path / "exact.parquet", tmp_path / "rounded.parquet"
    words_ = ["--scenario", NORLAND]
    good(tool("tabulate", people / "records.csv", *words_, "--subtotals", "--out", exact))
    good(tool("protect", "round", exact, *words_, "--out", rounded))
    for command in ("reconstruct", "vary"):
        ended = good(tool(command, exact, *words_, "--level", "ward", "--out", tmp_path / f"sure-{command}"))
        assert ended.out.startswith("120 records in 6 wards")
    ended = good(tool("reconstruct", rounded, *words_, "--level", "ward", "--out", tmp_path / "one"))
    found = re.match(r"one possible set of (\d+) records \(the tables' own totals allow (\d+) to (\d+)\)", ended.out)
    assert found, ended.out
    records, least, most = map(int, found.groups())
    assert least < 120 < most and least <= records <= most


def test_the_dry_run_counts_people_not_bytes(tmp_path: Path) -> None:
    """3.1 million people in two rows were said to be a person or two."""
    rows = "level,geoid,table,variable,value\nblock,990010001001001,P1,P0010001,3000000\n"
    (tmp_path / "t.csv").write_text(rows + "block,990010001001002,P1,P0010001,100000\n")
    (tmp_path / "a.toml").write_text('title = "T"\nscenario = "sf1-person"\n[input]\ntables = "t.csv"\n')
    said = good(tool("audit", "--config", tmp_path / "a.toml", "--dry-run", "--json")).json
    assert said["persons_about"] == 3_100_000


# Rows that are missing


def long_file(path: Path, *numbers: tuple[str, int]) -> Path:
    rows = [f"ward,NO01W01,{name},{value}" for name, value in numbers]
    path.write_text("\n".join(["level,geoid,variable,value", *rows]) + "\n")
    return path


def test_a_missing_row_is_warned_of_where_a_total_does_not_add_up(tmp_path: Path) -> None:
    """Of W1 (sex by age) the total says 9, the women 4, and a man's row is missing."""
    short = long_file(tmp_path / "t.csv", ("W1_001", 9), ("W1_002", 4), ("W1_003", 4), ("W1_013", 3))
    check = ["check", short, "--scenario", NORLAND]
    assert tool(*check).code == 1  # the total contradicts its parts
    ended = tool(*check)
    assert re.search(r"totals in t.csv do not add up .*rows missing there: \d+\).*--missing hidden", ended.err)
    hidden = good(tool(*check, "--missing", "hidden"))
    assert "All numbers agree" in hidden.out and "add up" not in hidden.err
    good(tool("reconstruct", short, "--scenario", NORLAND, "--missing", "hidden", "--out", tmp_path / "out"))
    assert pl.read_parquet(tmp_path / "out" / "records.parquet").height == 9
    whole = long_file(tmp_path / "w.csv", ("W1_001", 9), ("W1_003", 4), ("W1_013", 5))
    ended = good(tool("check", whole, "--scenario", NORLAND))
    assert "add up" not in ended.err


# Notes


def test_the_note_after_naming_cells_does_not_say_that_none_were(people: Path, tmp_path: Path) -> None:
    exact, also = tmp_path / "exact.parquet", tmp_path / "also.csv"
    good(tool("tabulate", people / "records.csv", "--scenario", NORLAND, "--out", exact))
    variable = pl.read_parquet(exact).filter(pl.col("geoid") == "NO01W01")["variable"][0]
    also.write_text(f"level,geoid,variable\nward,NO01W01,{variable}\n")
    suppress = ["protect", "suppress", exact, "--scenario", NORLAND, "--out", tmp_path / "out.parquet", "--overwrite"]
    assert "only small counts were hidden" in good(tool(*suppress)).err
    ended = good(tool(*suppress, "--also", also))
    assert "only small counts" not in ended.err and "complementary" not in ended.err
    assert "the cells of --also were hidden" in ended.err


def test_nobody_to_move_is_no_warning_of_polars(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("tract,a_x,b_x\nt1,50,60\nt2,70,80\nt3,90,50\n")
    (tmp_path / "c.csv").write_text("tract,x,y\nt1,0,0\nt2,0,1\nt3,1,0\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good(tool("tradeoff", tmp_path / "m.csv", "--lambda", 3, "--capacity", 5, "--points", 2, "--coordinates",
                  tmp_path / "c.csv", "--out", tmp_path / "out"))  # fmt: skip
