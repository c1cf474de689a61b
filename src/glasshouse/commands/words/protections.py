"""What do the protections say of what they did? A summary for each, and a few lines and notes for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from glasshouse.mechanism.spent import Spent

HOUSEHOLD = "household_id"
FAR_OFF = 0.05  # more or fewer records than there were, by this share, is said


@dataclass(frozen=True)
class Perturbed:
    """How many numbers of tables there are, and what became of them."""

    scenario: str
    cells: int
    hidden: int
    changed: int
    exact: int
    places: Mapping[str, int]  # by level


@dataclass(frozen=True)
class Noised(Spent):
    """What noise on tables did, and what it cost."""

    scenario: str
    cells: int
    measured: int
    negatives: int
    places: Mapping[str, int]  # by level
    budget: str
    levels_unspent: Mapping[str, str]
    invariants: tuple[str, ...]
    held: tuple[str, ...]
    postprocess: str
    source: str


def noise_lines(said: Noised, where: str) -> list[str]:
    """What was spent on what."""
    lines = [
        f"{said.measured:,} noisy numbers make {said.cells:,} published ones in {where}; "
        f"{said.negatives:,} were negative",
        f"{_spent(said)}; {len(said.ledger)} entries in the account (see the manifest)",
    ]
    if said.levels_unspent:
        lines.append(f"Left unspent: the shares of {', '.join(said.levels_unspent)}, which are not in the file.")
    exact = [*said.invariants, *(f"table {name}" for name in said.held)]
    if exact:
        lines.append(f"Published exactly, and in no account: {', '.join(exact)}.")
    return lines


def _spent(said: Spent) -> str:
    return (
        f"rho {said.rho_spent} ({said.rho_spent_decimal:.6g}) spent of {said.rho}: epsilon "
        f"{said.epsilon:.4g} at delta {said.delta:g}, {said.neighbours} neighbours"
    )


@dataclass(frozen=True)
class NoisedProperties(Spent):
    """What noise on the statistics of properties did, and what it cost."""

    properties: int
    with_noise: int
    measured: int
    negatives: int
    wider: int
    questions: Mapping[str, tuple[str, ...]]
    as_they_are: tuple[str, ...]
    source: str


def properties_lines(said: NoisedProperties) -> list[str]:
    """What was spent on what."""
    return [
        f"{said.measured:,} numbers of {said.with_noise:,} properties have noise "
        f"({said.properties - said.with_noise:,} properties say nothing); {said.negatives:,} were negative",
        f"{_spent(said)}; " + ", ".join(f"{name} {price}" for name, price in said.ledger.items()),
    ]


def properties_notes(said: NoisedProperties) -> list[str]:
    notes = [
        "note: the price is that of a household in every share, and of a person among the people: a household of k "
        "persons costs k times k what the people do",
        "note: which properties there are, which are suppressed and how many households report is taken as public",
        f"note: published as they are, and in no account: {', '.join(said.as_they_are)}",
    ]
    if said.wider:
        notes.append(
            f"note: {said.wider:,} properties have wider noise: more than 100 households report, so that a "
            "percentage point is more than one of them"
        )
    return notes


@dataclass(frozen=True)
class FromTopDown(Spent):
    """What noise from the top down made of records, and what it cost."""

    records: int
    written: int
    places: int
    levels: tuple[str, ...]
    rho_by_level: Mapping[str, str]
    held: Mapping[str, str]  # by level
    absence: Mapping[str, str]  # by level
    not_held: tuple[str, ...]
    left_out: tuple[str, ...]
    tables: int
    steps: int
    off: float
    moved_to_hold: int


def topdown_line(said: FromTopDown, place: str, *, bottom_up: bool) -> str:
    how = f"at each {place} alone" if bottom_up else f"from the {said.levels[0]} down"
    return (
        f"{said.written:,} records in {said.places:,} places, {how} (there were {said.records:,}); "
        f"rho {said.rho_spent_decimal:.6g}, epsilon {said.epsilon:.2f} at delta {said.delta:g} ({said.neighbours})"
    )


def topdown_notes(said: FromTopDown, scenario: str, *, every_place: bool) -> list[str]:
    """What people must know of the records besides their number."""
    notes = []
    left = float(Fraction(said.rho_left))
    if left > 0:
        notes.append(
            f"note: rho {left:.6g} of {float(Fraction(said.rho)):.6g} is left unspent: the budget has it for "
            "levels or queries that are not here"
        )
    exact = [f"{query}@{level}" for level, query in said.held.items()]
    if exact:
        notes.append(f"note: without noise, and in no account: the counts of {', '.join(exact)}")
    if said.absence:
        level, query = list(said.absence.items())[-1]
        notes.append(f"note: without noise, and in no account: which groups of {query} are empty at each {level}")
    if said.not_held:
        notes.append(f"note: the budget would hold {', '.join(said.not_held)}, which cannot be here; it does not")
    if said.left_out:
        notes.append(f"note: not asked, as {scenario} has no words for it: {', '.join(said.left_out)}")
    if not every_place:
        notes.append("note: only places with records take part; --places FILE names those that have none")
    more = said.written / said.records - 1
    if abs(more) > FAR_OFF:
        notes.append(
            f"warning: {more:+.0%} records: with much noise and no total held, counts that cannot be negative come out "
            "too large"
        )
    return notes


@dataclass(frozen=True)
class SwapCounts:
    """Which households changed places, and how it went."""

    persons: int
    households: int
    imputed_households: int
    moved: int
    share: float
    persons_moved: int
    chosen: int
    unmatched: int
    tiers: tuple[Mapping[str, float], ...]  # the most exposed first
    nearness: str
    group_quarters_persons: int
    group_quarters_by: str  # the column that tells them
    redrawn_from: Mapping[str, int] | None = None  # of residents of group quarters: from how far, by level
    redrawn: int | None = None
    redrawn_differently: int | None = None
    units: int | None = None
    units_without_persons: int | None = None


def swap_lines(said: SwapCounts, households_out: Path | None) -> list[str]:
    line = (
        f"{said.moved:,} of {said.households:,} households ({said.share:.2%}) with {said.persons_moved:,} persons "
        "are in another place"
    )
    if said.redrawn is not None:
        line += f"; what makes {said.redrawn:,} persons in group quarters stand out is drawn anew"
    if households_out is None:
        return [line]
    return [line, f"{said.units:,} housing units, with the same moves -> {households_out}"]


def swap_notes(said: SwapCounts, rate: float) -> list[str]:
    """What a reader should know of how it was done."""
    notes = []
    if said.nearness == "codes":
        notes.append(
            "note: without --coordinates, near means near in the order of codes: the same area first, then the areas "
            "next to it in that order"
        )
    if said.group_quarters_by == HOUSEHOLD:
        notes.append(
            f"note: no column says who lives in group quarters: everyone with a {HOUSEHOLD} is taken to live in a "
            "household"
        )
    if said.unmatched:
        notes.append(
            f"note: {said.unmatched:,} chosen households found no partner: no unswapped household of the same size is "
            "left in another place"
        )
    if said.moved + 2 < rate * said.households:
        imputed = said.imputed_households
        fixed = f" ({imputed:,} are entirely imputed, and stay)" if imputed else ""
        notes.append(
            f"note: the share that moved, {said.share:.2%}, is below --rate {rate:g}: no pairs are left{fixed}"
        )
    if said.redrawn == 0:
        notes.append("warning: nobody is known to live in group quarters, so nothing was drawn anew")
    return notes


@dataclass(frozen=True)
class Relocated:
    """How many people moved, at which point of the front, and whether some place got more than it should.

    P and U are those of the chances; `P_drawn` and the others are counted in the file that was drawn.
    """

    records: int
    moved: int
    P: float
    U: float
    q: float
    method: str
    over_capacity: int
    excess: float
    P_drawn: float
    U_drawn: float
    tau_before: float
    tau_drawn: float
    phi_before: float
    phi_drawn: float


def relocate_lines(said: Relocated) -> list[str]:
    over = "no place got more than its capacity"
    if said.over_capacity:
        over = f"{said.over_capacity:,} places got more than their capacity, at most {said.excess:g}, by chance"
    return [
        f"{said.moved:,} of {said.records:,} people moved (P {said.P:,.4f}, U {said.U:.6f}); {over}",
        f"    as drawn: P {said.P_drawn:,.4f}, U {said.U_drawn:.6f}, tau {said.tau_drawn:.6f} (before "
        f"{said.tau_before:.6f}), phi {said.phi_drawn:.6f} (before {said.phi_before:.6f})",
    ]
