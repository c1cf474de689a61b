"""What does a release come to in a few numbers? How many persons are known for certain, how far the rest may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Headline:
    """The whole release in a few numbers; means are over persons.

    `zero_tracts` are areas all of whose places are proved to have one solution. Any two fitting sets differ by at most
    twice solvar, and never in those who are certain: `most_between_any_two` is the mean of that.

    The numbers that end in `_whole` are of whole records, in every attribute that the scenario's tables tell, used or
    not: a record of which something is not told is not certain, and could be another. So they are never
    worse for less being published.
    """

    blocks: int
    population: int
    zero_solvar_share: float
    zero_solvar_share_low: float
    zero_solvar_share_high: float
    zero_solvar_population_share: float
    solvar_mean: float
    solvar_mean_upper: float
    most_between_any_two: float
    share_certain: float
    share_certain_upper: float
    undecided: int
    proofs: Mapping[str, int]
    tracts: int
    zero_tracts: int
    share_certain_whole: float
    zero_solvar_share_whole: float
    solvar_mean_whole: float
