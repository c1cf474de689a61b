"""Which protection is best? Risk beside usefulness, settings side by side, those that another beats in both marked.

A measure is repeated over seeds. Its interval tells what the chance of the protection and of the attack does; all seeds
share one population, so it says nothing about other populations. With one seed it is the measure's own interval.
"""

from __future__ import annotations

import math

import polars as pl
from scipy.special import stdtrit

MEASURES = pl.Schema(
    {
        "setting": pl.String, "protect": pl.String, "seed": pl.Int64, "kind": pl.String, "measure": pl.String,
        "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "baseline": pl.Float64, "worse": pl.String,
    }
)  # fmt: skip
RISK, COST = "found_exposed", "table_error_"  # what the front goes by: the cost is that of the finest level
FOUND_PLACES, CLAIMED = "found_places", "singled_out_truly"  # of attacks on households
RISKS = (RISK, FOUND_PLACES, CLAIMED)  # one for each attack
CONFIDENCE = 0.95


def summarised(measures: pl.DataFrame) -> pl.DataFrame:
    """Of every setting and measure the mean over seeds, with an interval; settings and measures stay in order."""
    rows = []
    keys = ["setting", "protect", "kind", "measure", "worse"]
    once = measures.unique([*keys, "seed"], keep="first", maintain_order=True)  # a seed tells what it tells once
    for group, part in once.group_by(keys, maintain_order=True):
        values = part["value"].drop_nulls()
        mean = values.mean()
        low, high = part["low"][0], part["high"][0]
        if len(values) > 1:
            spread = values.std()
            assert isinstance(mean, float) and isinstance(spread, float)
            half = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * spread / math.sqrt(len(values))
            low, high = mean - half, mean + half
            if group[keys.index("kind")] == "risk":  # all measures of risk are shares
                low, high = max(low, 0.0), min(high, 1.0)
        rows.append((*group, len(values), mean, low, high, part["baseline"].mean()))
    columns = {
        "setting": pl.String, "protect": pl.String, "kind": pl.String, "measure": pl.String, "worse": pl.String,
        "seeds": pl.Int64, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "baseline": pl.Float64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=columns, orient="row")


def cost_of(summary: pl.DataFrame) -> str:
    """The measure that stands for what a protection costs: the error of tables at the finest level there is."""
    return next((name for name in summary["measure"] if name.startswith(COST)), COST)


def risk_of(summary: pl.DataFrame) -> str:
    """The measure that stands for the risk: that of the attack that was made."""
    measured = set(summary["measure"])
    return next((name for name in RISKS if name in measured), RISK)


def front(summary: pl.DataFrame, risk: str = "", cost: str = "") -> pl.DataFrame:
    """Settings with their risk and cost; `dominated`: another has no more of either, and less of one.

    Settings of which one of the two is not known are left out.
    """
    risk, cost = risk or risk_of(summary), cost or cost_of(summary)
    sides = []
    for name, measure in (("risk", risk), ("cost", cost)):
        some = summary.filter(pl.col("measure") == measure)
        columns = ["value", "low", "high", "baseline"] if name == "risk" else ["value", "low", "high"]
        sides.append(some.select("setting", "protect", *(pl.col(c).alias(f"{name}_{c}") for c in columns)))
    joined = sides[0].join(sides[1], on=["setting", "protect"], how="inner", maintain_order="left")
    joined = joined.rename({"risk_value": "risk", "cost_value": "cost", "risk_baseline": "baseline"})
    joined = joined.filter(pl.col("risk").is_not_null() & pl.col("cost").is_not_null())
    points = list(zip(joined["risk"].to_list(), joined["cost"].to_list(), strict=True))
    beaten = [any(r <= risk_ and c <= cost_ and (r, c) != (risk_, cost_) for r, c in points) for risk_, cost_ in points]
    return joined.with_columns(pl.Series("dominated", beaten, dtype=pl.Boolean))
