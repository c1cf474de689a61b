"""What does `glasshouse tradeoff` say at the end? Every front with its breakpoints and points, and the baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glasshouse.engine.plain import WORDS_OF_PYTHON

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.protection.relocation.rules import Matrix


@dataclass(frozen=True)
class Breakpoint:
    """Where a front turns: protection P, utility U."""

    P: float
    U: float


@dataclass(frozen=True)
class PointTold:
    """A point of a front by its share of utility lost, q."""

    q: float
    P: float
    U: float


@dataclass(frozen=True)
class FrontTold:
    """A whole front: elements of 1 to lambda people are at risk."""

    __pydantic_config__ = WORDS_OF_PYTHON
    lambda_: int
    capacity: float | str  # of every place, or the name of the file that has them
    method: str
    why: str
    duality_gap: float
    P_max: float
    U_min: float
    breakpoints: tuple[Breakpoint, ...]
    points: tuple[PointTold, ...]


@dataclass(frozen=True)
class Baseline:
    """The risk of the data, or of one of its aggregates, before anybody moves."""

    data: str
    tau: float
    phi: float
    unique: int


@dataclass(frozen=True)
class FitTold:
    """How well what places are like explains how they change; or why it was not tried."""

    r2: float | None = None
    adjusted_r2: float | None = None
    left_out: tuple[str, ...] | None = None
    not_explained: str | None = None


@dataclass(frozen=True)
class ChosenTold:
    """A point that was asked for."""

    __pydantic_config__ = WORDS_OF_PYTHON
    lambda_: int
    at: str  # as it was asked for
    q: float
    P: float
    U: float
    tau: float
    phi: float
    moved: float  # people, in expectation
    gaining: int  # places
    losing: int
    unchanged: int


@dataclass(frozen=True)
class ProtectedTold:
    """A protected version of the data, as it is."""

    name: str
    tau: float
    phi: float
    utility: float
    left: int  # people who are no longer where they were
    appeared: int  # people where nobody of their kind lived
    stayed: str  # how it is known who stayed


@dataclass(frozen=True)
class Summary:
    """The fronts, one for each lambda, and the risks to compare them with."""

    fronts: tuple[FrontTold, ...]
    baselines: tuple[Baseline, ...]
    explained: Mapping[str, FitTold] | None = None
    chosen: tuple[ChosenTold, ...] = ()
    protected: tuple[ProtectedTold, ...] = ()


def lines(said: Summary, matrix: Matrix) -> list[str]:
    """The result in words."""
    combinations, places = matrix.shape
    return [
        f"{int(matrix.counts.sum()):,} people, {combinations:,} combinations in {places:,} places",
        *(
            f"    {one.data:<10} tau* {one.tau:.6f}  phi* {one.phi:.6f}  ({one.unique:,} unique)"
            for one in said.baselines
        ),
        *(
            f"    lambda {one.lambda_}: P up to {one.P_max:,.4f}, U down to {one.U_min:.6f}; "
            f"{_told(len(one.breakpoints))} by {one.method} (gap {one.duality_gap:.0e})"
            for one in said.fronts
        ),
        *(
            f"    at {one.at}, lambda {one.lambda_}: P {one.P:,.4f}, U {one.U:.6f}, q {one.q:.4g}, tau {one.tau:.6f}, "
            f"phi {one.phi:.6f}; {one.moved:,.1f} people move, {one.unchanged:,} places keep their number"
            for one in said.chosen
        ),
        *(
            f"    {one.name}: tau {one.tau:.6f}  phi {one.phi:.6f}  U {one.utility:.6f}  ({one.left:,} people are not "
            f"where they were{_stayed(one)})"
            for one in said.protected
        ),
    ]


def _stayed(one: ProtectedTold) -> str:
    """How far the numbers of a protected file can be trusted."""
    return "" if one.stayed == "by name" else ", at least: people have no names, tau and phi are the most they can be"


def _told(breakpoints: int) -> str:
    return "1 breakpoint" if breakpoints == 1 else f"{breakpoints:,} breakpoints"
