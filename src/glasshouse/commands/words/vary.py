"""What does `glasshouse vary` say at the end? The tables of the paper, a picture, and a few lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from glasshouse.assess.headline import Headline
from glasshouse.commands.attack import Attacked, Concluded, how_many

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.job import Job
    from glasshouse.engine.runner import Tally
    from glasshouse.scenarios.load import Scenario

SUMMARY, PICTURE = "summary.json", "solvar-by-size.svg"
Row = Mapping[str, str | int | float | None]  # of a table, by the names of its columns


@dataclass(frozen=True)
class Areas:
    """Of the areas around the places: how many there are, and how many have one solution, proved."""

    level: str
    areas: int
    proved_unique: int
    undecided: int


@dataclass(frozen=True)
class Summary(Attacked):
    """How sure the records are, over all places; nothing but `headline` is said where nobody lives."""

    headline: Headline | None
    by_size: tuple[Row, ...] | None = None
    quantiles: tuple[Row, ...] | None = None
    unique_among: str | None = None
    areas: Areas | None = None
    starts_outside: int | None = None
    not_compared: tuple[str, ...] | None = None


def summarise(
    folder: Path,
    job: Job,
    tally: Tally,
    counted: tuple[pl.DataFrame, bool] | None,
    said: Attacked,
    *,
    jointly: bool,
) -> Concluded[Summary]:
    """The summary for scripts, in words, and the further files that were written.

    `counted` has the uniques of each place as Table S5 counts them; without, all records of the start are counted.
    """
    import polars as pl

    from glasshouse.assess.one_solution import one_solution
    from glasshouse.assess.variability import by_size, headline, quantiles
    from glasshouse.engine.plain import plain
    from glasshouse.files.output import private_file
    from glasshouse.report.sections.variability import picture

    scenario, geography = job.scenario, job.scenario.geography
    columns = pl.col(geography.place).alias("place"), pl.col(geography.unit).alias("area")  # they may be the same
    places = pl.read_parquet(folder / "places.parquet").with_columns(*columns)
    areas = pl.read_parquet(folder / "areas.parquet")
    left_out = _left_out(tally, scenario)
    if places.filter(pl.col("population") > 0).is_empty():
        what = f"every {geography.unit} was left out" if tally.refused else f"no {geography.place} has any records"
        return Concluded(Summary(**asdict(said), headline=None), [what])
    places, among = _with_uniques(places, counted)
    inhabited = areas.filter(pl.col("population") > 0)
    known = inhabited.filter(one_solution()).height
    undecided = inhabited.filter(pl.col("proof") == "undecided").height
    summary = Summary(
        **asdict(said),
        headline=headline(places),
        by_size=tuple(by_size(places).to_dicts()),
        quantiles=tuple(quantiles(places).to_dicts()),
        unique_among=among,
        areas=Areas(areas.columns[0], inhabited.height, known, undecided),
        starts_outside=tally.counts["starts_outside"],
        not_compared=tuple(job.published.left_out),
    )
    kept = ("headline", "by_size", "quantiles", "unique_among", "areas")
    told = {name: value for name, value in plain(summary).items() if name in kept}
    with private_file(folder / SUMMARY) as stream:
        stream.write((json.dumps(told, indent=2) + "\n").encode())
    picture(places).save(folder / PICTURE)
    lines = [*_lines(summary, job, tally, counted is not None, jointly=jointly), *left_out]
    return Concluded(summary, lines, [SUMMARY, PICTURE])


def _with_uniques(places: pl.DataFrame, counted: tuple[pl.DataFrame, bool] | None) -> tuple[pl.DataFrame, str]:
    """The places with uniques counted in a file of records, if one is given and it is the records of these tables."""
    import polars as pl

    if counted is None:
        return places, "all records of the start"
    found, flagged = counted
    joined = places.select("place", "population").join(
        found, left_on="place", right_on="geoid", how="left", maintain_order="left"
    )
    wrong = joined.filter(pl.col("records").fill_null(0) != pl.col("population"))
    if wrong.height:
        place, tables, records = wrong.select("place", "population", pl.col("records").fill_null(0)).row(0)
        return places, (
            f"all records of the start; those of --uniques are not behind these tables: {records:,} of {place}, "
            f"where the tables have {tables:,}"
        )
    who = "data-defined records of the file given" if flagged else "all records of the file given"
    return places.with_columns(joined["unique"].fill_null(0)), who


def _left_out(tally: Tally, scenario: Scenario) -> list[str]:
    if not tally.refused:
        return []
    return [f"    left out                   {scenario.geography.told({scenario.geography.unit: len(tally.refused)})}"]


def _lines(summary: Summary, job: Job, tally: Tally, with_uniques: bool, *, jointly: bool) -> list[str]:
    from glasshouse.model.geography import plural

    head, areas, blocks = summary.headline, summary.areas, plural(job.scenario.geography.place)
    assert head is not None and areas is not None and summary.by_size is not None
    level = plural(areas.level)
    undecided = f"{head.undecided:,} {blocks}"
    if jointly:
        undecided += f", {areas.undecided:,} {level}"
    told, left_out = job.published.compared, job.published.left_out
    untold = f", compared without {', '.join(left_out)}" if left_out else ""
    width = max(26, *(len(f"{one} with one solution") + 2 for one in (blocks, level)))
    told_places = job.scenario.geography.told({job.scenario.geography.place: head.blocks})

    def line(what: str, found: str) -> str:
        return f"    {what:<{width}}{found}"

    lines = [
        f"{how_many(head.population, tally)} in {told_places}{untold}",
        line(
            "certain",
            f"{_span(head.share_certain, head.share_certain_upper)} of all records{_as_far_as(told, left_out)}",
        ),
        line(
            f"{blocks} with one solution",
            f"{head.zero_solvar_share:7.2%} of {blocks}, {head.zero_solvar_population_share:.2%} of all records",
        ),
        line("could differ (solvar)", f"{_span(head.solvar_mean, head.solvar_mean_upper)} of all records"),
        line("two solutions differ in", f"at most {head.most_between_any_two:.2%} of all records"),
        line(f"{level} with one solution", f"{areas.proved_unique:,} of {areas.areas:,}"),
        line("undecided", undecided),
    ]
    if job.scenario.attributes_told.intersection(left_out):
        lines.insert(2, line("certain as a whole", f"{head.share_certain_whole:7.2%} of all records"))
    if with_uniques:
        unique = next(row["unique_share"] for row in summary.by_size if row["band"] == "all")
        lines.append(line("unique", f"{unique:7.2%} of all records ({summary.unique_among})"))
    lines += ["", f"    {'persons':<9}{blocks:>11}{'with one solution':>20}{'certain records':>18}"]
    for row in summary.by_size:
        if row["blocks"]:
            shares = f"{row['zero_share']:>20.1%}{row['certain_share']:>18.1%}"
            lines.append(f"    {row['band']:<9}{row['blocks']:>11,}{shares}")
    return lines


def _as_far_as(told: Sequence[str], left_out: Sequence[str]) -> str:
    if not left_out:
        return ""
    return f", as far as {', '.join(told)} goes" if told else ": no table tells anything of a record"


def _span(low: float, high: float) -> str:
    return f"{low:7.2%}" if low == high else f"{low:.2%} to {high:.2%}"
