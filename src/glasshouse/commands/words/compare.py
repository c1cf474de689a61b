"""What does `glasshouse compare` say at the end? Means over seeds, the front, a chart, and one table for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.commands.compare_plan import ComparePlan
    from glasshouse.engine.lifecycle import Made

MEASURES, SUMMARY, FRONT, CHART = "measures.parquet", "summary.parquet", "front.parquet", "risk-utility.svg"
USES = "uses.parquet"  # every error of every table, and what typical uses make of them
SHOWN = {  # by the measure that stands for the risk: what is shown beside it
    "found_exposed": {
        "found_exposed": "exposed found", "precision_exposed": "precision", "agreement": "agreement",
        "certain": "certain",
    },
    "found_places": {
        "putative_places": "putative", "precision_places": "precision", "found_places": "recall",
        "nothing_fits": "nothing fits",
    },
    "singled_out_truly": {
        "claimed_places": "claimed", "singled_out_truly": "truly", "precision_claims": "claims true",
    },
}  # fmt: skip
GUESSING = {
    "found_exposed": "guessing from the same release finds {guess} of the exposed",
    "found_places": "choosing as many places at random finds {guess} of those with a household above the limit",
}
UNIT = "share_error_"  # a measure that names the level of units


@dataclass(frozen=True)
class Comparison:
    """How many settings were compared, by what, and which no other beats in both."""

    settings: int
    risk: str
    cost: str
    front: tuple[str, ...]
    truth: str  # the hash of the true records
    runs: int | None = None  # settings with seeds
    settings_refused: Mapping[str, str] | None = None  # why, whatever the seed; a reason may quote the records


def concluded(folder: Path, title: str, truth: str, runs: int | None = None) -> Made[Comparison]:
    """The summary, the front and the chart from the measures in a folder; what is said of them."""
    import polars as pl

    from glasshouse.assess.comparison import COST, cost_of, front, risk_of, summarised
    from glasshouse.engine.lifecycle import Made
    from glasshouse.files.output import row_writer
    from glasshouse.report.sections.comparison import risk_utility

    summary = summarised(pl.read_parquet(folder / MEASURES))
    points = front(summary)
    outputs = [SUMMARY, FRONT]
    for name, frame in ((SUMMARY, summary), (FRONT, points)):
        with row_writer(folder / name) as writer:
            writer.write(frame)
    if points.height:
        level = cost_of(summary).removeprefix(COST).replace("_", " ")
        risk_utility(f"{title}: risk against error", points, level, risk_of(summary)).save(folder / CHART)
        outputs.append(CHART)
    best = tuple(points.filter(~pl.col("dominated")).sort("cost")["setting"].to_list())
    found = Comparison(points.height, risk_of(summary), cost_of(summary), best, truth, runs)
    return Made(found, outputs, _lines(summary, points), _notes(summary))


def plan_notes(plan: ComparePlan) -> list[str]:
    """What must be known of settings that cannot be put beside the others."""
    return [
        f"note: '{one.name}' publishes some tables only; its error is over those, not comparable with others"
        for one in plan.asked
        if "only" in one.options
    ]


def _notes(summary: pl.DataFrame) -> list[str]:
    """What must be known of runs that did not go as they should."""
    import polars as pl

    from glasshouse.commands.work.compare import LEFT_OUT, NEAR, UNMATCHED

    notes = []
    for name, value in summary.filter(pl.col("measure") == LEFT_OUT).select("setting", "value").iter_rows():
        if value:
            notes.append(f"warning: '{name}': {value:g} units a run were left out, or stopped by the clock")
    for name, value in summary.filter(pl.col("measure") == UNMATCHED).select("setting", "value").iter_rows():
        if value > NEAR:
            notes.append(f"warning: '{name}': no budget with the noise asked for was found; it is {value:.0%} off")
    return notes


def _levels(summary: pl.DataFrame) -> list[str]:
    """The levels whose errors of tables are shown: that of places, and that of units."""
    from glasshouse.assess.comparison import COST, cost_of

    units = [name.removeprefix(UNIT) for name in summary["measure"] if name.startswith(UNIT)]
    return list(dict.fromkeys([cost_of(summary).removeprefix(COST), *units]))


def _shown(summary: pl.DataFrame) -> dict[str, str]:
    """The measures of risk that are shown, with those of other readings of the numbers behind them."""
    from glasshouse.assess.comparison import risk_of

    first = SHOWN[risk_of(summary)]
    readings = dict.fromkeys(name.partition(" (")[2].rstrip(")") for name in summary["measure"] if " (" in name)
    others = {f"{name} ({more})": f"{word} ({more})" for more in readings for name, word in first.items()}
    return first | (others if risk_of(summary) == "found_places" else {})


def _lines(summary: pl.DataFrame, points: pl.DataFrame) -> list[str]:
    """One table for people."""
    import polars as pl

    from glasshouse.assess.comparison import COST, risk_of

    shown = _shown(summary) | {f"{COST}{level}": f"{level.replace('_', ' ')} error" for level in _levels(summary)}
    names = points["setting"].to_list()
    beaten = dict(zip(names, points["dominated"].to_list(), strict=True))
    width = max([len(name) for name in names] + [7])
    lines = [f"{'setting':{width}}  " + "  ".join(f"{word:>{_wide(word)}}" for word in shown.values()) + "  "]
    for name in names:
        cells = []
        for measure in shown:
            some = summary.filter((pl.col("setting") == name) & (pl.col("measure") == measure))
            told = f"{some['value'][0]:.1%}" if some.height and some["value"][0] is not None else "-"
            cells.append(f"{told:>{_wide(shown[measure])}}")
        end = "another is better in both" if beaten[name] else "on the front"
        lines.append("  ".join([f"{name:{width}}", *cells, end]))
    low, high = points["baseline"].min(), points["baseline"].max()
    if isinstance(low, float) and isinstance(high, float):
        guess = f"{low:.1%}" if low == high else f"{low:.1%} to {high:.1%}"
        words = GUESSING[risk_of(summary)].format(guess=guess)
        lines.append(f"{words}; means over seeds (intervals: {SUMMARY})")
    return lines


def _wide(word: str) -> int:
    return max(14, len(word))
