"""What does `glasshouse vary` say at the end? The tables of the paper, a picture, and a few lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from glasshouse.assess.variability import by_size, headline, quantiles
from glasshouse.files.output import private_file
from glasshouse.geography import plural
from glasshouse.report.charts import write
from glasshouse.report.variability import picture
from glasshouse.run.study import Tally
from glasshouse.scenario import Scenario

SUMMARY, PICTURE = "summary.json", "solvar-by-size.svg"


def summarise(
    folder: Path, scenario: Scenario, tally: Tally, defined: pl.DataFrame | None
) -> tuple[dict[str, Any], list[str], list[str]]:
    """The summary for scripts, in words, and the further files that were written.

    `defined` has the uniques of each place as Table S5 counts them; without, all records of the start are counted.
    """
    geography = scenario.geography
    places = pl.read_parquet(folder / "places.parquet").rename({geography.place: "block", geography.unit: "tract"})
    areas = pl.read_parquet(folder / "areas.parquet")
    if defined is not None:
        counted = places.select("block").join(
            defined, left_on="block", right_on="geoid", how="left", maintain_order="left"
        )
        places = places.with_columns(counted["unique"].fill_null(0))
    if places.filter(pl.col("population") > 0).is_empty():
        return {"headline": None}, [f"no {geography.place} has any records -> {folder}"], []
    told = {
        "headline": headline(places),
        "by_size": by_size(places).to_dicts(),
        "quantiles": quantiles(places).to_dicts(),
    }
    zero = areas.filter((pl.col("distance_upper") == 0) & (pl.col("population") > 0)).height
    told["areas"] = {"level": areas.columns[0], "areas": areas.height, "proved_unique": zero}
    told["unique_among"] = "all records of the start" if defined is None else "data-defined records of the file given"
    with private_file(folder / SUMMARY) as stream:
        stream.write((json.dumps(told, indent=2) + "\n").encode())
    write(picture(places), folder / PICTURE)
    return (
        {**told, "starts_outside": tally.counts["starts_outside"]},
        _lines(told, scenario, folder),
        [SUMMARY, PICTURE],
    )


def _lines(told: dict[str, Any], scenario: Scenario, folder: Path) -> list[str]:
    head, areas, blocks = told["headline"], told["areas"], plural(scenario.geography.place)
    known = f"{plural(areas['level'])} known"
    sizes = [row for row in told["by_size"] if row["blocks"]]
    lines = [
        f"{head['population']:,} records in {head['blocks']:,} {blocks}",
        f"    known for certain          {head['zero_solvar_share']:7.2%} of {blocks}, with "
        f"{head['zero_solvar_population_share']:.2%} of all records",
        f"    certain in any {scenario.geography.place:<12}{head['share_certain']:7.2%} of all records",
        f"    could differ (solvar)      {_span(head['solvar_mean'], head['solvar_mean_upper'])} of all records",
        f"    any two solutions differ   at most {head['most_between_any_two']:.2%}",
        f"    {known:<27}{areas['proved_unique']:,} of {areas['areas']:,}",
        f"    undecided                  {head['undecided']:,} {blocks}",
        "",
        f"    {'persons':<9}{blocks:>11}{'known for certain':>27}{'certain records':>18}",
    ]
    for row in sizes:
        share = f"{row['zero_share']:.1%} ({row['zero_share_low']:.1%}-{row['zero_share_high']:.1%})"
        lines.append(f"    {row['band']:<9}{row['blocks']:>11,}{share:>27}{row['certain_share']:>18.1%}")
    return [*lines, f"-> {folder}"]


def _span(low: float, high: float) -> str:
    return f"{low:7.2%}" if low == high else f"{low:.2%} to {high:.2%}"
