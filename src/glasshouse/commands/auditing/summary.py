"""What does an audit come to? The numbers that scripts and thresholds look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]  # of a frame, by the names of its columns


@dataclass(frozen=True)
class Summary:
    """What an audit found, in numbers; None: not measured."""

    title: str
    persons: int
    blocks: int
    share_certain: float
    share_certain_upper: float
    solvar_mean: float
    solvar_mean_upper: float
    zero_solvar_share: float
    undecided: int
    precision_exposed: float | None
    precision_exposed_low: float | None
    precision_exposed_high: float | None
    precision_guess: float | None
    advantage_exposed: float | None
    found_exposed: float | None
    claims_households: float | None
    detected_blocks: float | None
    posterior: float | None
    protections: tuple[Row, ...]
    contradictions: int
    units_left_out: int
    skipped: Mapping[str, str]  # steps that were left out, and why
    thresholds: Mapping[str, float]
    exceeded: tuple[str, ...]
    protections_refused: Mapping[str, str] | None = None
    hidden_numbers: int | None = None  # that are not printed exactly
    given_away: int | None = None  # of them, those that other numbers give away
    share_given_away: float | None = None
    share_certified: float | None = None  # of the records of the places looked at
    proofs: Mapping[str, Mapping[str, int]] | None = None  # by step: facts, certified, weaker, open
