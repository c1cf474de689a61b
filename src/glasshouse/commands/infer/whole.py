"""How does a whole budget read? Epsilon at delta, and how well a test could tell whether a person is in the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.infer.asking import Answer, BudgetName, Delta, Number, Relation, Significance
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.mechanism.account import Allocation

PROTECTED = {
    "add-remove": "whether one record is in the data at all",
    "change-one": "what one record says, whose number is known",
}


@dataclass(frozen=True)
class Part:
    """A part of a budget, read alone; epsilons of parts do not add up, their rho do."""

    part: str
    rho: str  # exact
    rho_decimal: float
    epsilon: float


@dataclass(frozen=True)
class Total:
    """What a whole budget means."""

    rho: str  # exact
    rho_decimal: float
    neighbours: str
    protected: str  # what neighbours differ in
    delta: float
    epsilon: float  # as the Census Bureau reports it
    epsilon_tight: float
    significance: float
    power: float
    power_bound: float
    power_of_epsilon: float  # what epsilon and delta alone allow
    allocation: str | None
    parts: tuple[Part, ...]


class EpsilonFound(Answer[Total]):
    """How a whole budget reads."""

    parts: pl.DataFrame  # each level of an allocation, or each rho that was given

    @property
    def frames(self) -> Mapping[str, pl.DataFrame]:
        import polars as pl

        return {"parts": pl.DataFrame([asdict(one) for one in self.summary.parts])}


@command(
    example="glasshouse infer epsilon --rho 2.56 --delta 1e-10\n\n"
    "A budget by name, level by level:  glasshouse infer epsilon --allocation paper-2020\n\n"
    "Several releases together:  --rho 1/10 --rho 2/10"
)
def epsilon(
    *,
    rho: Annotated[
        tuple[Number, ...],
        Opt("Privacy loss, read exactly; repeat it for releases, which add up.", repeated=True),
    ] = (),
    allocation: BudgetName = None,
    delta: Delta = 1e-10,
    significance: Significance = 0.01,
    neighbours: Annotated[
        Relation | None, Opt("add-remove (default) or change-one; an allocation says its own.")
    ] = None,
) -> EpsilonFound:
    """How a whole budget reads: epsilon at delta, and the power of a test for one person's presence."""
    from glasshouse.engine.lifecycle import told
    from glasshouse.mechanism import account

    if bool(rho) == (allocation is not None):
        raise InputError("say the budget: --rho, once or several times, or --allocation; one of the two")
    budget = account.allocation(allocation) if allocation is not None else None
    if budget is not None and neighbours is not None:
        raise InputError(f"allocation {budget.name} is for {budget.neighbours} neighbours; leave out --neighbours")
    parts = _parts(rho, budget)
    total = budget.total if budget is not None else sum(parts.values(), Fraction(0))
    relation = budget.neighbours if budget is not None else neighbours or "add-remove"
    loss = float(total)
    read = account.epsilon(loss, delta)
    found = Total(
        str(total), loss, relation, PROTECTED[relation], delta, read,
        account.epsilon_tight(loss, delta), significance, account.membership_power(loss, significance),
        account.membership_power_bound(loss, significance),
        account.membership_power_of_epsilon(read, delta, significance), budget.name if budget is not None else None,
        tuple(Part(name, str(one), float(one), account.epsilon(float(one), delta)) for name, one in parts.items()),
    )  # fmt: skip
    return EpsilonFound(told("infer epsilon", found, _lines(found, budget)))


def _parts(rho: tuple[Number, ...], budget: Allocation | None) -> dict[str, Fraction]:
    """The rho of every level of a budget, or of every release."""
    from glasshouse.mechanism.account import fraction

    if budget is not None:
        return budget.rhos()
    parts = {f"release {number}": fraction(str(one), "rho") for number, one in enumerate(rho, start=1)}
    below = next((one for one in parts.values() if one < 0), None)
    if below is not None:
        raise InputError(f"rho is {below}; expected a number from 0")
    return parts


def _lines(found: Total, budget: Allocation | None) -> list[str]:
    lines = [f"{budget.title}:"] if budget is not None else []
    exact = "" if found.rho == f"{found.rho_decimal:g}" else f" ({found.rho})"
    lines += [
        f"rho {found.rho_decimal:.6g}{exact}, {found.neighbours} neighbours: it limits what is told of "
        f"{found.protected}",
        f"    epsilon {found.epsilon:.5f} at delta {found.delta:g} (tighter: {found.epsilon_tight:.5f})",
        f"    membership test at significance {found.significance:g}: power {found.power:.6f} under Gaussian noise, "
        f"at most {found.power_bound:.6f} whatever the mechanism (by epsilon alone: {found.power_of_epsilon:.6f})",
    ]
    if len(found.parts) > 1:
        lines.append("    part by part (rho adds up, epsilon does not):")
        lines += [f"        {one.part:<14} rho {one.rho_decimal:.6f}  epsilon {one.epsilon:.4f}" for one in found.parts]
    return lines
