"""What comes of a run of `glasshouse detect`? How many blocks, how sure, how often right; pictures and a few lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from glasshouse.assess.occupancy import EVERYBODY, LIKELY, of_households, of_places, told
from glasshouse.assess.one_solution import one_solution
from glasshouse.files.output import private_file, row_writer
from glasshouse.files.properties import PropertyFile
from glasshouse.report.sections.occupancy import by_households, matched, variability
from glasshouse.scenarios.load import Scenario

SUMMARY, RATES = "summary.json", "rates.parquet"
BY_SIZE, SOLVAR, MATCHED = "certain-by-size.svg", "solvar.svg", "matched.svg"
NOT_IN_TABLES = "not in the tables"


def ended(
    folder: Path, scenario: Scenario, options: Mapping[str, Any], file: PropertyFile
) -> tuple[dict[str, Any], list[str], list[str]]:
    """The summary for scripts, in words, and the further files that were written."""
    place = scenario.geography.place
    places = pl.read_parquet(folder / "places.parquet")
    left = _left_out(folder, places, file, place)
    summary = _summed(places, left, file, options)
    files = [SUMMARY]
    lines = _lines(summary)
    if places.height:
        by_households(places).save(folder / BY_SIZE)
        files.append(BY_SIZE)
        if options["solvar"] and places["solvar"].drop_nulls().len():
            variability(places).save(folder / SOLVAR)
            files.append(SOLVAR)
            summary["solvar"] = _solvar(places)
            lines += _solvar_lines(summary["solvar"])
    if options["why"] and summary["certain"]:
        reasons = pl.read_parquet(folder / "reasons.parquet")
        usual = (
            reasons["numbers"]
            .list.join(", ")
            .value_counts(sort=True)
            .sort("count", "numbers", descending=[True, False])
        )
        summary["usual_reason"] = {"numbers": usual["numbers"][0].split(", "), "blocks": int(usual["count"][0])}
        lines.append(
            f"    the usual reason: {usual['numbers'][0]} ({usual['count'][0]:,} of {reasons.height:,} blocks)"
        )
    if options["truth"] and places.height:
        summary["blocks_right"] = asdict(of_places(places))
        rates = of_households(pl.scan_parquet(folder / "matches.parquet"))
        with row_writer(folder / RATES) as writer:
            writer.write(rates)
        summary["households_right"] = told(rates)
        files.append(RATES)
        if rates.filter(pl.col("attacker") == LIKELY).height:
            matched(rates).save(folder / MATCHED)
            files.append(MATCHED)
        lines += ["", *_right(summary)]
    with private_file(folder / SUMMARY) as stream:
        stream.write((json.dumps(summary, indent=2) + "\n").encode())
    return summary, [*lines, f"-> {folder}"], files


def _left_out(folder: Path, places: pl.DataFrame, file: PropertyFile, place: str) -> pl.DataFrame:
    """The blocks left out, now also those with a property of which the tables say nothing."""
    path = folder / "left-out.parquet"
    left = pl.read_parquet(path).filter(pl.col("reason") != NOT_IN_TABLES)
    missing = sorted({*file.frame["block"].to_list()} - {*places[place].to_list(), *left[place].to_list()})
    if missing:
        more = pl.DataFrame({place: missing, "reason": [NOT_IN_TABLES] * len(missing)}, schema=left.schema)
        left = pl.concat([left, more]).sort(place)
        with row_writer(path) as writer:
            writer.write(left)
    return left


def _summed(
    places: pl.DataFrame, left: pl.DataFrame, file: PropertyFile, options: Mapping[str, Any]
) -> dict[str, Any]:  # fmt: skip
    answers = dict(places.group_by("answer").len().iter_rows())
    reasons = dict(left.group_by("reason").len().sort("reason").iter_rows())
    certain = places.filter(pl.col("answer") == "certain")
    return {
        "model": options["model"],
        "properties": file.properties,
        "properties_left_out": dict(file.left_out),
        "blocks": places.height,
        "blocks_left_out": reasons,
        "households": int(places["households"].sum()),
        "subsidised": int(places["subsidised"].sum()),
        "certain": answers.get("certain", 0),
        "open": answers.get("open", 0),
        "contradiction": answers.get("contradiction", 0),
        "undecided": int((places["proof"] == "undecided").sum()),
        "violations_at_least": int(certain["violations_low"].sum()),
        **({"nearest": _nearest(places)} if options["nearest"] else {}),
    }


def _nearest(places: pl.DataFrame) -> dict[str, Any]:
    found = places.drop_nulls("nearest_violations")
    return {
        "blocks": found.height,
        "with_violations": int((found["nearest_violations"] > 0).sum()),
        "mean_squared_error": float(found["nearest_error"].mean() or 0),  # type: ignore[arg-type]  # numbers
    }


def _lines(summary: Mapping[str, Any]) -> list[str]:
    """The result in a few lines."""
    blocks = summary["blocks"]
    lines = [f"{blocks:,} blocks with {summary['subsidised']:,} subsidised of {summary['households']:,} households "
             f"(model {summary['model']})"]  # fmt: skip
    for name, what in (
        ("certain", "somebody breaks the rule, for certain"),
        ("open", "perhaps nobody does"),
        ("contradiction", "nothing fits the numbers (no detection)"),
        ("undecided", "of these not decided within the limits"),
    ):
        share = f" ({summary[name] / blocks:.1%})" if blocks else ""
        if name != "undecided" or summary[name]:
            lines.append(f"    {what:<44}{summary[name]:>8,}{share}")
    lines.append(f"    {'violations in certain blocks, at least':<44}{summary['violations_at_least']:>8,}")
    if (near := summary.get("nearest")) and near["blocks"]:
        what = f"closest data sets where nothing fits ({near['with_violations']:,} with violations)"
        lines.append(f"    {what:<44}{near['blocks']:>8,}")
    for reason, number in summary["blocks_left_out"].items():
        lines.append(f"    {'blocks left out: ' + reason:<44}{number:>8,}")
    return lines


def _solvar(places: pl.DataFrame) -> dict[str, dict[str, Any]]:
    found = {}
    for name in places.columns:
        if name.startswith("solvar") and not name.endswith(("_upper", "_proof")):
            known = places.drop_nulls(name)
            zero = known.filter(one_solution(f"{name}_upper", f"{name}_proof"))
            found[name] = {
                "blocks": known.height,
                "mean": float(known[name].mean() or 0),  # type: ignore[arg-type]  # a column of numbers
                "one_solution": zero.height,
                "all_can_differ": int((known[name] == 1).sum()),
            }
    return found


def _solvar_lines(solvar: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = ["", "    how different other data sets can be         mean  one solution  all differ  of blocks"]
    for name, one in solvar.items():
        lines.append(f"    {name:<42}{one['mean']:>7.1%}{one['one_solution']:>14,}{one['all_can_differ']:>12,}"
                     f"{one['blocks']:>11,}")  # fmt: skip
    return lines


def _right(summary: Mapping[str, Any]) -> list[str]:
    """How often the attacker is right, beside chance."""
    blocks = summary["blocks_right"]
    lines = [
        f"    blocks with violations                      {blocks['with_violations']:>8,} of {blocks['blocks']:,}",
        f"    block precision {_rate(blocks['precision'])}; by chance {_percent(blocks['precision_by_chance'])}",
        f"    block recall    {_rate(blocks['recall'])}; by chance {_percent(blocks['recall_by_chance'])}",
    ]
    head = ("k = 1", "recall", "k = all", "recall", "chance")
    lines += ["", f"    {'households found through a key: precision with':<70}" + "".join(f"{w:>9}" for w in head)]
    return [*lines, *(_told(row) for row in summary["households_right"] if row["households"] == EVERYBODY)]


def _told(row: Mapping[str, Any]) -> str:
    """Precision and recall with the first kind of each block, and with all that were ranked."""
    where = "" if row["attacker"] == LIKELY else f", {row['blocks']} blocks"
    shares = [one[rate] for one in (row["first"], row) for rate in ("precision", "recall")] + [row["baseline"]]
    return f"    {row['key'] + ' (' + row['attacker'] + where + ')':<70}" + "".join(f"{_percent(s):>9}" for s in shares)


def _rate(rate: Mapping[str, float] | None) -> str:
    return "none" if rate is None else f"{rate['value']:.1%} ({rate['low']:.1%} to {rate['high']:.1%})"


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"
