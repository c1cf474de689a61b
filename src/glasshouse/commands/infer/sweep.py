"""How does the risk move with rho and the prior? A grid of both, for parameters of one's own: a table and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.infer.asking import (
    OF_ABOVE,
    BudgetName,
    Neighbours,
    Others,
    PriorAbove,
    Query,
    TrueAbove,
    each_once,
    rate,
    refuse,
)
from glasshouse.commands.options import OutFolder, Overwrite
from glasshouse.commands.result import Result
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.lifecycle import Made, Workplace
    from glasshouse.report.figure import Drawn

MOST_POINTS = 10_000  # pairs of rho and prior: the answer is for people to look at
_GRID = Opt(
    "Values between commas, or FROM:TO:N for N of them, evenly: rho in its logarithm, priors in their log odds.",
    metavar="VALUES",
)


@dataclass(frozen=True)
class Swept:
    """How large the grid is, and where the average posterior is least and most on it."""

    points: int
    neighbours: str
    unique_at: tuple[str, ...]  # levels at which the target is unique, and which share rho
    least: float
    most: float


class Sweep(Result[Swept]):
    """The risk for every rho and prior of a grid."""

    sweep: pl.DataFrame  # rho, prior, posterior, risk, correct

    def figure(self, name: str = "map") -> Drawn:
        """A picture: map (tiles of rho and prior), average or decision (lines)."""
        return super().figure(name)


@command(
    example="glasshouse infer sweep --rho 0.01:10:13 --prior 1/2,1/10,1/864 --out swept\n\n"
    "A target unique at every level of a budget, whose total is rho:  --allocation paper-2020\n\n"
    "With the level above:  --rho2 0.2464845096 --others 27 --true2 1"
)
def sweep(
    *,
    rho: Annotated[str, _GRID] = "0.01:10:13",
    prior: Annotated[str, _GRID] = "1/2,1/5,1/10,1/50,1/864",
    allocation: BudgetName = None,
    query: Query = "detailed",
    levels: Annotated[
        tuple[str, ...], Opt("Levels of the allocation at which the target is unique; default: all.")
    ] = (),
    rho2: Annotated[str | None, Opt("Privacy loss one level up: a decimal or a fraction.")] = None,
    others: Others = None,
    true2: TrueAbove = None,
    x2_prior: PriorAbove = "uniform",
    ties: Annotated[
        Literal["strict", "half", "one"], Opt("Who gets a posterior of exactly one half: strict, half or one.")
    ] = "strict",
    neighbours: Neighbours = "add-remove",
    out: OutFolder = None,
    overwrite: Overwrite = False,
) -> Sweep:
    """How the average posterior, the risk and the chance to be right move with rho and the prior."""
    from glasshouse.commands.words.infer_sweep import Above, Grid, grid, swept
    from glasshouse.engine.lifecycle import Made, in_folder
    from glasshouse.engine.manifest import Manifest
    from glasshouse.mechanism import account

    budget = account.allocation(allocation) if allocation is not None else None
    _refuse_mixed(allocation, query, levels, rho2, others, true2, x2_prior)
    if budget is not None and budget.neighbours != neighbours:
        raise InputError(
            f"allocation {budget.name} is for {budget.neighbours} neighbours; add --neighbours {budget.neighbours}"
        )
    each_once(levels)
    named = levels or (tuple(budget.levels) if budget is not None else ())
    shares = [budget.rho(level, query) for level in named] if budget is not None else [Fraction(1)]
    if not sum(shares):
        raise InputError(f"query {query} of {allocation} has no rho at {', '.join(named)}; name other --levels")
    above = None
    if rho2 is not None:
        if others is None or true2 is None:
            raise InputError("two levels need --others and --true2")
        above = Above(rate(rho2, neighbours), others, true2, x2_prior)
    asked = Grid(
        grid(rho, "--rho", odds=False), grid(prior, "--prior", odds=True),
        tuple(float(share / sum(shares)) for share in shares), above, ties, neighbours,
    )  # fmt: skip
    if asked.size > MOST_POINTS:
        raise InputError(f"{asked.size:,} pairs of rho and prior; expected at most {MOST_POINTS:,}")
    parameters = {
        "rho": rho, "prior": prior, "allocation": allocation, "query": query, "levels": list(named), "rho2": rho2,
        "others": others, "true2": true2, "x2-prior": x2_prior, "ties": ties, "neighbours": neighbours,
    }  # fmt: skip

    def work(place: Workplace) -> Made[Swept]:
        frame, names = swept(asked, place.path, place.bar)
        least, most = (float(end) for end in (frame["posterior"].min(), frame["posterior"].max()))  # type: ignore[arg-type]
        summary = Swept(frame.height, neighbours, named, least, most)
        return Made(summary, names, _lines(summary, asked.rhos, asked.priors))

    return Sweep(in_folder(Manifest("infer sweep", parameters, {}), Swept, work, out=out, overwrite=overwrite))


def _refuse_mixed(
    allocation: str | None, query: str, levels: Sequence[str], rho2: str | None, others: int | None,
    true2: int | None, x2_prior: str,
) -> None:  # fmt: skip
    """What would not be heard, or cannot be asked together."""
    if rho2 is None:
        refuse({"--others": others, "--true2": true2, "--x2-prior": x2_prior}, OF_ABOVE)
    if allocation is None:
        if levels or query != "detailed":
            raise InputError("--levels and --query speak of a budget: add --allocation")
    elif rho2 is not None:
        raise InputError("--allocation is about a target unique at its levels, --rho2 about a level above; give one")


def _lines(said: Swept, rhos: Sequence[float], priors: Sequence[float]) -> list[str]:
    unique = f", of a target unique at {', '.join(said.unique_at)}" if said.unique_at else ""
    spent = f"{len(rhos)} values of rho ({rhos[0]:g} to {rhos[-1]:g})" if len(rhos) > 1 else f"rho {rhos[0]:g}"
    before = f"{len(priors)} priors" if len(priors) > 1 else f"prior {priors[0]:g}"
    return [
        f"{spent}, {before} ({said.neighbours})",
        f"    average posterior of the truth{unique}: {said.least:.4g} to {said.most:.4g}",
    ]
