"""What comes of a run of `glasshouse verify`? The results of the paper, pictures, tables, and a few lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from glasshouse.assess.claims import summed_up
from glasshouse.assess.leaks import by_table
from glasshouse.assess.paper_claims import marginal_sets
from glasshouse.commands.words.verify import lines_for_people, told
from glasshouse.engine.runner import Tally
from glasshouse.files.output import private_file
from glasshouse.model.geography import plural
from glasshouse.report.sections import leaks as leaking
from glasshouse.report.sections.claims import columns_picture, picture
from glasshouse.report.sections.claims import write as write_tables
from glasshouse.scenarios.load import Scenario

SUMMARY, PICTURE, COLUMNS, LEAKS = "summary.json", "claims-by-columns.svg", "columns-used.svg", "leaks.svg"
HEADS = {"withheld": "claims lost when a table is withheld", "added": "claims gained when a table is added"}
SHOWN = 5  # tables in the lines for people


def ended(
    folder: Path, scenario: Scenario, options: Mapping[str, Any], tally: Tally
) -> tuple[dict[str, Any], list[str], list[str]]:
    """The summary for scripts, in words, and the further files that were written."""
    geography = scenario.geography
    place, unit = geography.place, geography.unit
    places = pl.read_parquet(folder / "places.parquet").rename({place: "place"}, strict=False)
    if places.filter(pl.col("households") > 0).is_empty():
        what = f"every {unit} was left out" if tally.refused else f"no {place} has any {scenario.wording.records[1]}"
        with private_file(folder / SUMMARY) as stream:
            stream.write((json.dumps({"claims": 0}, indent=2) + "\n").encode())
        return {"claims": 0}, [f"{what} -> {folder}"], [SUMMARY]
    counts = pl.read_parquet(folder / "counts.parquet").rename({place: "place"}, strict=False)
    claims = pl.scan_parquet(folder / "claims.parquet").rename({place: "place"}, strict=False)
    results = summed_up(claims, counts, places, scenario.wording.columns, marginal_sets(scenario))
    summary = {"claims": tally.counts["claims"], **told(results)}
    lines = lines_for_people(results, place)
    files = [SUMMARY, PICTURE, COLUMNS]
    picture(results.by_columns, results.baselines, place).save(folder / PICTURE)
    columns_picture(results.columns_used).save(folder / COLUMNS)
    files += write_tables(folder, results, _about(scenario, options, tally), place)
    if options["leaks"]:
        found = by_table(pl.read_parquet(folder / "leaks.parquet"))
        summary["leaks"] = found.to_dicts()
        leaking.picture(found).save(folder / LEAKS)
        files.append(LEAKS)
        lines += ["", *_leaks(found)]
    for name, what in (("reasons", "claims explained"), ("absent", "descriptions that nobody fits"),
                       ("cannot", "counts ruled out")):  # fmt: skip
        if (folder / f"{name}.parquet").exists():
            summary[name] = pl.scan_parquet(folder / f"{name}.parquet").select(pl.len()).collect().item()
            lines.append(f"    {what:<30}{summary[name]:,} ({name}.parquet)")
    with private_file(folder / SUMMARY) as stream:
        stream.write((json.dumps(summary, indent=2) + "\n").encode())
    return summary, [*lines, f"-> {folder}"], files


def _about(scenario: Scenario, options: Mapping[str, Any], tally: Tally) -> list[str]:
    geography = scenario.geography
    done = geography.told({geography.place: tally.counts["places"], geography.unit: tally.units - len(tally.refused)})
    said = [f"{scenario.title}; {done}; claims that name at least {options['columns']} columns."]
    if options["drop"]:
        values = " or ".join(str(value) for value in options["drop"])
        said.append(f"Published numbers equal to {values} were left out.")
    if options["zeros"] != "all":
        said.append(f"Structural zeros: {options['zeros']}.")
    if options["pick"]:
        said.append(f"{plural(geography.place).capitalize()} picked: {options['pick']}.")
    return said


def _leaks(found: pl.DataFrame) -> list[str]:
    """The tables on which most claims depend."""
    lines = []
    for change, head in HEADS.items():
        rows = found.filter(change=change)
        if rows.height:
            lines.append(f"    {head}")
            lines += [f"    {_leak(row)}" for row in rows.head(SHOWN).iter_rows(named=True)]
            if rows.height > SHOWN:
                rest = rows.slice(SHOWN)
                none = rest.filter(pl.col("claims") == 0).height
                lines.append(f"    {rest.height:,} more in leaks.parquet; {none:,} of them change nothing alone")
    return lines


def _leak(row: Mapping[str, Any]) -> str:
    share = "" if row["share"] is None else f" ({row['share']:.1%}"
    ends = f"; {row['low']:.1%} to {row['high']:.1%})" if row["low"] is not None else ")" if share else ""
    return f"{row['table']:<10}{row['claims']:,} of {row['certain']:,}{share}{ends}"
