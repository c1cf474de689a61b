"""What does `glasshouse verify` say at the end? Who is singled out, how many, how surprising it is, what is open."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import polars as pl

from glasshouse.assess.claims import EVERY, SINGLETON, SURPRISING, Results
from glasshouse.model.geography import plural

_HEADS = {SINGLETON: "a household singled out for certain", EVERY: "households counted for certain, one or several"}


def lines_for_people(results: Results, place: str = "block") -> list[str]:
    """The few lines that a person reads after a run; every rate has its 95% interval in brackets."""
    found, blocks = results.by_columns, plural(place)
    households = found["households"][0] if found.height else 0
    lines = [f"{_number(results.unique.blocks, place)}, {_number(households, 'household')}; {_whole(results)}"]
    for multiplicity, head in _HEADS.items():
        rows = found.filter(multiplicity=multiplicity)
        if rows.height:
            lines += ["", f"    {head}", f"    {'columns':<10}{'of ' + blocks:<26}of households (95% intervals)"]
            lines += [_line(row) for row in rows.iter_rows(named=True)]
    lines += ["", *_surprise(results.baselines)]
    if results.dropped.dropped:
        lines.append(f"    queries left out          {results.dropped.share_mean:.2%} of a {place}'s, in the mean")
    if results.unique.undecided:
        lines.append(f"    {blocks + ' undecided':<26}{results.unique.undecided:,} of {results.unique.blocks:,}")
    return [*lines, f"    undecided                 {_undecided(results)}"]


def told(results: Results) -> dict[str, Any]:
    """The same for scripts: sums over blocks, and nothing of any one of them."""
    sets = results.marginal_sets
    return {
        "unique": asdict(results.unique),
        "by_columns": results.by_columns.to_dicts(),
        "baselines": results.baselines.to_dicts(),
        "columns_used": results.columns_used.to_dicts(),
        "combinations": results.combinations.to_dicts(),
        "sizes": results.sizes.to_dicts(),
        "median_size": results.median_size,
        "queries_left_out": asdict(results.dropped),
        "undecided": asdict(results.undecided),
        "marginal_sets": None if sets is None else sets.to_dicts(),
    }


def _number(count: int, word: str) -> str:
    return f"{count:,} {word if count == 1 else plural(word)}"


def _whole(results: Results) -> str:
    unique = results.unique
    share = f"{unique.unique:,} of {unique.blocks:,}, 95% interval {unique.low:.1%} to {unique.high:.1%}"
    if not unique.unique:
        return f"none is known as a whole ({share})"
    verb = "is" if unique.unique == 1 else "are"
    return f"{unique.share:.1%} {verb} known as a whole ({share})"


def _line(row: dict[str, Any]) -> str:
    blocks = f"{row['block_share']:.1%} ({row['block_share_low']:.1%} to {row['block_share_high']:.1%})"
    return f"    {row['k']:<10}{blocks:<26}{_households(row)} ({row['share_low']:.1%} to {row['share_high']:.1%})"


def _households(row: dict[str, Any]) -> str:
    """The share that is represented: the true one if it is known, or else what is proved."""
    if row["share"] is not None:
        return f"{row['share']:.1%}"
    if row["represented_least"] == row["represented_most"]:
        return f"{row['share_least']:.1%}"
    return f"{row['share_least']:.1%} to {row['share_most']:.1%}"


def _surprise(baselines: pl.DataFrame) -> list[str]:
    """How often a claim that singles out somebody would hardly have been guessed; over the claims of every k."""
    single = baselines.filter(multiplicity=SINGLETON)
    if single.is_empty():
        return []
    lines = [f"    singled out where guessing would be right in fewer than {SURPRISING:.0%} of cases (higher is worse)"]
    priors = single["prior"].unique(maintain_order=True)
    lines.append(f"    {'columns':<10}" + "".join(f"{'by the ' + prior:<26}" for prior in priors).rstrip())
    for (k,), rows in single.group_by("k", maintain_order=True):
        of = {row["prior"]: row for row in rows.iter_rows(named=True)}
        shares = "".join(f"{_surprising(of[prior]) if prior in of else '':<26}" for prior in priors)
        lines.append(f"    {k:<10}{shares}".rstrip())
    return [*lines, ""]


def _surprising(row: dict[str, Any]) -> str:
    return f"{row['surprising']:.1%} ({row['surprising_low']:.1%} to {row['surprising_high']:.1%})"


def _undecided(results: Results) -> str:
    told = results.undecided
    said = f"{told.undecided:,} of {_number(told.claims, 'claim')}"
    return said if told.share is None else f"{said} ({told.low:.1%} to {told.high:.1%})"
