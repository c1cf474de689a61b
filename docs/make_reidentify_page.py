"""Makes the tables and the picture of docs/reidentify.md: the whole study of a synthetic county, beside the paper's.

Run: python docs/make_reidentify_page.py [county] [protected] [tracts]   (all parts, or those named: seven minutes on
two cores, most of it leaving people out; two more for the county after the 2020 system; seconds for the real tracts)
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
from made_part import put_part  # beside this file

from glasshouse.assess.paper_tables import printed
from glasshouse.cli.main import main
from glasshouse.model.records import group_of_level
from glasshouse.scenarios.load import load, strategy_query

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reidentify.md"
TRACTS = ROOT.parent / "shared" / "data" / "sf1_tracts"  # 14 real tracts, and what the 2020 system made of them
PERSONS, SEED, LEFT_OUT = 500_000, 1, 2000
FEWER = 40_000  # persons of the county that the 2020 system protects
SCENARIO = ("--scenario", "sf1-person")
ROWS = ("CEF", "HDF", "rHDF_bt", "rHDF_b", "MDG", "PRG")
GROUPS = (
    ("everyone", "all", "S6", None),
    ("modal persons", "modal", "S9", None),
    ("nonmodal persons", "nonmodal", "5", None),
    ("nonmodal, blocks with one solution", "zero-solvar-nonmodal", "S8", 0),
    ("nonmodal and unique, blocks with one solution", "zero-solvar-nonmodal-unique", "S8", 1),
)


def study(folder: Path) -> dict[str, float]:
    """Every step, and its seconds."""
    county, tables = folder / "county", str(folder / "tables.parquet")
    files = ["--truth", str(county / "cef.parquet"), "--published", str(county / "hdf.parquet")]
    lists = ["--attacker", str(county / "commercial.parquet"), "--attacker", str(county / "attacker-perfect.parquet")]
    rebuilt, vary = [str(folder / "tract"), str(folder / "block")], ["--vary", str(folder / "solvar")]
    steps = {
        "synthesize": ["--persons", str(PERSONS), "--seed", str(SEED), "--out", str(county)],
        "tabulate": [str(county / "hdf.parquet"), *SCENARIO, "--out", tables],
        "reconstruct": [tables, *SCENARIO, "--out", rebuilt[0]],
        "reconstruct ": [tables, *SCENARIO, "--level", "block", "--out", rebuilt[1]],
        "vary": [tables, *SCENARIO, "--out", str(folder / "solvar")],
        "reidentify": [*rebuilt, *vary, *files, *lists, "--out", str(folder / "risk")],
        "reidentify --leave-one-out": [*rebuilt, *vary, *files, *lists[2:], "--leave-one-out", str(LEFT_OUT), "--out",
                                       str(folder / "held")],
        "reidentify --leave-one-out --swap": [*rebuilt[:1], *vary, *files, *lists[2:], "--leave-one-out", str(LEFT_OUT),
                                              "--swap", "0.02,0.10", "--out", str(folder / "swapped")],
    }  # fmt: skip
    return {name: run(*name.split()[:1], *options) for name, options in steps.items()}


def run(*words: str) -> float:
    """One command, and its seconds."""
    began = time.perf_counter()
    if main([*words, "--quiet"]):
        raise SystemExit(f"{' '.join(words)} failed")
    return time.perf_counter() - began


def tables(folder: Path, seconds: dict[str, float]) -> str:
    rates = pl.read_parquet(folder / "risk" / "rates.parquet").filter(pl.col("band") == "all")
    lines = [
        f"A synthetic county of {PERSONS:,} persons (preset `national`, seed {SEED}) beside the nation in 2010 (paper",
        "000, in brackets). Nothing was fitted to these figures; the county was calibrated to block sizes, homogeneity",
        "and uniques ([population](population.md)). Precision, in percent:",
        "",
        "| | rHDF_bt, bought list | rHDF_bt | HDF | rHDF_b | MDG | PRG |",
        "|---|---|---|---|---|---|---|",
    ]
    for words, group, table, panel in GROUPS:
        cells = [
            _cell(rates, group, table, panel, data, attacker)
            for data, attacker in (
                ("rHDF_bt", "commercial"),
                ("rHDF_bt", "attacker-perfect"),
                ("HDF", "attacker-perfect"),
                ("rHDF_b", "attacker-perfect"),
                ("MDG", "attacker-perfect"),
                ("PRG", "attacker-perfect"),
            )
        ]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    lines += ["", "(All but the first column: a list that is right about everybody.)", "", _agreement(folder), ""]
    lines += [
        *_left(folder / "held", "The swap held as it was"),
        "",
        *_left(folder / "swapped", "Households swapped again"),
        "",
    ]
    told = ", ".join(f"`{name.strip()}` {value:.0f}" for name, value in seconds.items())
    lines.append(f"Seconds on 2 cores, in this order: {told}.")
    return "\n".join(lines)


def _cell(rates: pl.DataFrame, group: str, table: str, panel: int | None, data: str, attacker: str) -> str:
    ours = rates.filter(pl.col("group") == group, pl.col("data") == data, pl.col("attacker") == attacker)
    role = {"commercial": "COMRCL", "attacker-perfect": "CEFatkr"}[attacker]
    theirs = printed(table)
    if panel is not None:
        theirs = theirs.filter(pl.col("panel") == theirs["panel"].unique(maintain_order=True)[panel])
    else:
        theirs = theirs.filter(pl.col("band") == "all")
    published = theirs.filter(pl.col("data") == data)[f"{role}_precision"].item()
    return f"{100 * ours['precision'].item():.1f} ({100 * published:.1f})"


def _agreement(folder: Path) -> str:
    rows = pl.read_parquet(folder / "risk" / "agreement.parquet").filter(
        pl.col("band") == "all", pl.col("group") == "all"
    )  # fmt: skip
    theirs = printed("3").filter(pl.col("band") == "all")
    said = []
    for data, other in (("HDF", "CEF"), ("rHDF_bt", "CEF"), ("rHDF_b", "CEF"), ("rHDF_bt", "HDF"), ("rHDF_b", "HDF")):
        mine = rows.filter(pl.col("data") == data, pl.col("with") == other)
        paper = theirs.filter(pl.col("data") == data, pl.col("with") == other)
        said.append(
            f"{data} with {other} {100 * mine['binned_share'].item():.1f}% ({100 * paper['binned_share'].item():.1f})"
        )
    guess = rows.filter(pl.col("data") == "MDG", pl.col("with") == "CEF")["binned_share"].item()
    return (
        f"Agreement, age in bins: {'; '.join(said)}. Records whose race and origin are only guessed (MDG) "
        f"agree with the truth in {100 * guess:.1f}%."
    )


def _left(folder: Path, words: str) -> list[str]:
    rows = pl.read_parquet(folder / "leave-one-out.parquet")
    lines = [
        f"**{words}**, {LEFT_OUT:,} persons of each group left out in turn, the right list:",
        "",
        "| | with them | without | because they answered | no inference without |",
        "|---|---|---|---|---|",
    ]
    for group in ("all", "nonmodal", "nonmodal-unique"):
        for data in ("rHDF_bt", "rHDF_bt+MDG", "MDG", "PRG"):
            row = rows.filter(pl.col("group") == group, pl.col("data") == data).row(0, named=True)
            lines.append(
                f"| {data}, {group} | {row['share_in']:.1%} | {row['share_out']:.1%} | {row['difference']:+.1%} "
                f"({row['low']:+.1%} to {row['high']:+.1%}) | {row['persons'] - row['inferred_out']:,} of "
                f"{row['persons']:,} |"
            )
    return lines


def county(folder: Path) -> str:
    """The study, and its picture."""
    made = tables(folder, study(folder))
    shutil.copyfile(folder / "risk" / "precision-by-size.svg", ROOT / "docs" / "reidentify-precision.svg")
    return made


def protected(folder: Path) -> str:
    """The paper's Table S10 for a county that went through `protect topdown`."""
    home, mdf = folder / "county", folder / "mdf.parquet"
    truth, hdf = str(home / "cef.parquet"), str(home / "hdf.parquet")
    run("synthesize", "--persons", str(FEWER), "--seed", str(SEED), "--out", str(home))
    run("protect", "topdown", truth, "--places", str(home / "blocks.parquet"), "--out", str(mdf))
    for name, records in (("rHDF_bt", hdf), ("rMDF_bt", str(mdf))):
        run("tabulate", records, *SCENARIO, "--out", str(folder / f"{name}-tables.parquet"))
        run("reconstruct", str(folder / f"{name}-tables.parquet"), *SCENARIO, "--out", str(folder / name))
        in_order(pl.read_parquet(folder / name / "records.parquet")).write_parquet(folder / f"{name}-in-order.parquet")
    run("reidentify", str(folder / "rHDF_bt"), f"MDF={mdf}", f"rMDF_bt={folder / 'rMDF_bt'}",
        *(f"{name}-in-order={folder / f'{name}-in-order.parquet'}" for name in ("rHDF_bt", "rMDF_bt")),
        "--truth", truth, "--published", hdf, "--attacker", str(home / "attacker-perfect.parquet"),
        "--out", str(folder / "risk"))  # fmt: skip
    found = pl.read_parquet(folder / "risk" / "agreement.parquet").filter(
        pl.col("with") == "CEF", pl.col("group") == "all"
    )  # fmt: skip
    theirs = printed("S10")
    lines = [
        f"A synthetic county of {FEWER:,} persons (seed {SEED}), and the same after `protect topdown`: percent of",
        "records that agree with the truth by exact age, and by age in bins (paper 000, Table S10, in brackets):",
        "",
        "| persons of the block | rHDF_bt, exact | MDF, exact | rMDF_bt, exact | MDF, in bins | rMDF_bt, in bins |",
        "|---|---|---|---|---|---|",
    ]
    columns = (("rHDF_bt", "exact"), ("MDF", "exact"), ("rMDF_bt", "exact"), ("MDF", "binned"), ("rMDF_bt", "binned"))
    rows = {}
    for band in theirs["band"].unique(maintain_order=True):
        for who, frame in (("ours", found), ("paper", theirs)):
            of_band = frame.filter(pl.col("band") == band)
            rows[who, band] = [of_band.filter(data=data)[f"{share}_share"].item() for data, share in columns]
        pairs = zip(rows["ours", band], rows["paper", band], strict=True)
        lines.append(f"| {band} | {' | '.join(f'{100 * ours:.1f} ({100 * paper:.1f})' for ours, paper in pairs)} |")
    above = {who: sum(row[1] > row[2] for (one, _), row in rows.items() if one == who) for who in ("ours", "paper")}
    whole = {row["data"]: row["exact_share"] for row in found.filter(pl.col("band") == "all").iter_rows(named=True)}
    files = {"truth": truth, "MDF": str(mdf), "rMDF_bt": str(folder / "rMDF_bt" / "records.parquet")}
    told = {name: clumped(pl.read_parquet(path)) for name, path in files.items()}
    alike, two = (", ".join(f"{name} {shares[at]:.1%}" for name, shares in told.items()) for at in (0, 1))
    return "\n".join([
        *lines,
        "",
        "By exact age the MDF agrees more often than what is rebuilt from its tables in "
        f"{above['ours']} of {len(rows) // 2} rows (paper: {above['paper']}). How much more is a matter of the "
        "reconstruction: the tables leave open who of a tract, among people alike but for single years of age within "
        "a bin, lives in which block. Ours draws that. Dealt out in order, the youngest to the first block, the same "
        f"numbers are published, and the exact agreement is {whole['rHDF_bt-in-order']:.1%} (rHDF_bt; paper "
        f"{rows['paper', 'all'][0]:.1%}) and {whole['rMDF_bt-in-order']:.1%} (rMDF_bt; paper "
        f"{rows['paper', 'all'][2]:.1%}). That the paper's solver deals ages out in a like way is a guess.",
        "",
        "Of the groups of two or more people of a block, sex and bin (25 to 84 years), so many share one year of "
        f"age: {alike}; of the groups of exactly two: {two}.",
    ])  # fmt: skip


def bins_of(frame: pl.DataFrame) -> pl.Series:
    """The bin of each record's age."""
    scenario = load("mdf-person")
    (recode,) = strategy_query(scenario, "age_38_groups")
    return pl.Series("bin", group_of_level(scenario.schema, recode)[frame["age"].to_numpy()])


def in_order(rebuilt: pl.DataFrame) -> pl.DataFrame:
    """The same records by tract and bin, ages dealt out to blocks in order: every published number stays."""
    alike = [pl.col("block").str.head(11), *(c for c in rebuilt.columns if c not in ("block", "age")), "bin"]
    rows = rebuilt.with_columns(bins_of(rebuilt))
    return rows.sort(*alike, "block").with_columns(rows.sort(*alike, "age")["age"]).drop("bin")


def clumped(records: pl.DataFrame) -> tuple[float, float]:
    """Of people in a block, sex and bin, 25 to 84 years old, the share who have one age: of two or more, and of two."""
    groups = (
        records.with_columns(bins_of(records))
        .filter(pl.col("age").is_between(25, 84))
        .group_by("block", "sex", "bin")
        .agg(pl.len().alias("people"), (pl.col("age").n_unique() == 1).alias("alike"))
    )
    more, two = groups.filter(pl.col("people") > 1)["alike"].mean(), groups.filter(people=2)["alike"].mean()
    return float(more or 0), float(two or 0)


def tracts(folder: Path) -> str:
    """What is right about the real tracts, before and after the 2020 system."""
    records, people = TRACTS / "records.csv.gz", folder / "truth.parquet"
    truth = pl.read_csv(records, infer_schema_length=0).with_columns(person_id=pl.format("P{}", pl.int_range(pl.len())))
    truth.write_parquet(people)
    truth.select("person_id", "block", "sex", "age").write_parquet(folder / "list.parquet")
    run("reidentify", f"rHDF_bt={records}", f"rMDF_bt={TRACTS / 'records_dp.csv.gz'}", *SCENARIO, "--truth",
        str(people), "--published", str(people), "--attacker", f"attacker-perfect={folder / 'list.parquet'}", "--out",
        str(folder / "risk"))  # fmt: skip
    rates = pl.read_parquet(folder / "risk" / "rates.parquet").filter(
        pl.col("band") == "all", pl.col("group") == "nonmodal-unique"
    )  # fmt: skip
    rows = {row["data"]: row for row in rates.iter_rows(named=True)}
    before, after = rows["rHDF_bt"], rows["rMDF_bt"]
    theirs = printed("S8")
    theirs = theirs.filter(pl.col("panel") == theirs["panel"].unique(maintain_order=True)[1])
    nation = dict(theirs.select("data", "CEFatkr_precision").iter_rows())
    verdict = "not distinguishable from guessing" if after["advantage_low"] <= 0 else "better than guessing"
    return (
        f"**The {truth['block'].str.head(11).n_unique()} real tracts** of `shared/data` (all blocks have one solution; "
        "the truth is the rebuilt file itself, the list is right about everybody): for nonmodal unique persons the "
        f"attack is right about {before['confirmed']} of {before['putative']}; the proportional guesser, on average "
        f"over its draws, about {before['baseline']:.1%}. With the records of the same tracts after the 2020 "
        f"protection system the attack links {after['putative']} of them and is right about {after['confirmed']}, "
        f"{after['precision']:.1%}: {verdict}. Published for the nation: {nation['rHDF_bt']:.1%}, {nation['PRG']:.1%} "
        f"and {nation['rMDF_bt']:.1%}."
    )


PARTS: dict[str, Callable[[Path], str]] = {"county": county, "protected": protected, "tracts": tracts}


def write_page(*names: str) -> None:
    for name in names or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            put_part(PAGE, f"{Path(__file__).name} {name}", PARTS[name](Path(folder)))


if __name__ == "__main__":  # a guard: workers import this module again
    sys.exit(write_page(*sys.argv[1:]))
