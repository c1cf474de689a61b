"""Which rho keeps the risk tolerable? And, for a given budget: what is the risk?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.infer.asking import (
    Answer,
    BudgetName,
    Delta,
    Number,
    Query,
    Relation,
    Significance,
    each_once,
    number,
)
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.attack.infer.planning import Plan

HEADINGS = {"alone": "each level on its own", "unique": "a target unique from the finest level up to each"}


@dataclass(frozen=True)
class Planned:
    """What a limit allows, a plan for each prior."""

    limit: Mapping[str, float | None]
    neighbours: str
    plans: tuple[Plan, ...]


@dataclass(frozen=True)
class Assessed:
    """What a budget means, for each prior: for a target alone at each level, and for one unique at several."""

    allocation: str
    query: str
    neighbours: str
    plans: tuple[Mapping[str, Plan], ...]


class Plans(Answer[Planned | Assessed]):
    """What may be spent at each level, and the noise and risk that come of it."""

    levels: pl.DataFrame  # a row for each prior, adversary and level: rho, noise, risk
    totals: pl.DataFrame  # a row for each prior and adversary: what the whole is, and how it reads

    @property
    def frames(self) -> Mapping[str, pl.DataFrame]:
        import polars as pl

        levels, totals = [], []
        for kind, one in self._plans():
            of = {"prior": one.prior} | ({"adversary": kind} if kind else {})
            levels += [of | asdict(row) for row in one.levels]
            totals.append(of | {name: value for name, value in asdict(one).items() if name not in ("prior", "levels")})
        kinds = {"standard_deviation": pl.Float64}  # where nothing may be released there is none
        return {"levels": pl.DataFrame(levels, schema_overrides=kinds), "totals": pl.DataFrame(totals)}

    def _plans(self) -> Iterator[tuple[str, Plan]]:
        for one in self.summary.plans:
            yield from one.items() if isinstance(one, Mapping) else [("", one)]


@command(
    example="glasshouse infer plan --posterior 0.55 --prior 0.5 --levels block,block_group,tract\n\n"
    "A budget given:  glasshouse infer plan --allocation paper-2020 --query detailed --prior 0.5 --prior 1/10"
)
def plan(
    *,
    posterior: Annotated[Number | None, Opt("The largest tolerable average posterior.")] = None,
    ratio: Annotated[Number | None, Opt("The largest tolerable ratio of posterior to prior.")] = None,
    prior: Annotated[
        tuple[Number, ...], Opt("A belief beforehand; repeat it for several adversaries.", short="-p", repeated=True)
    ] = ("0.5",),
    levels: Annotated[tuple[str, ...], Opt("Levels that get noise, finest first; default: block.")] = (),
    unique: Annotated[bool, Opt("Against a target known to be unique at every level.")] = False,
    allocation: BudgetName = None,
    query: Query = "detailed",
    delta: Delta = 1e-10,
    significance: Significance = 0.01,
    neighbours: Annotated[
        Relation | None, Opt("add-remove (default) or change-one; an allocation says its own.")
    ] = None,
) -> Plans:
    """Which rho keeps the risk tolerable; or, for a given budget, what the risk is."""
    from glasshouse.attack.infer import planning
    from glasshouse.engine.lifecycle import told
    from glasshouse.mechanism import account

    each_once(levels)
    priors = [number(text, "the prior") for text in prior]
    budget = account.allocation(allocation) if allocation is not None else None
    if budget is not None and neighbours is not None:
        raise InputError(f"allocation {budget.name} is for {budget.neighbours} neighbours; leave out --neighbours")
    if budget is None and query != "detailed":
        raise InputError(f"--query {query} needs --allocation, the budget that it is a query of")
    if posterior is None and ratio is None:
        if budget is None:
            raise InputError("say a limit (--posterior or --ratio), or a budget (--allocation)")
        pairs = [planning.assess(budget, query, p, levels, delta=delta, significance=significance) for p in priors]
        plans = tuple({"alone": alone, "unique": together} for alone, together in pairs)
        lines = [f"{budget.title}: query {query}, of a total rho of {float(budget.total):g}"]
        lines += [line for pair in plans for kind, one in pair.items() for line in _lines(one, kind)]
        return Plans(told("infer plan", Assessed(budget.name, query, budget.neighbours, plans), lines))
    limit = planning.Limit(
        None if posterior is None else number(posterior, "the largest tolerable posterior"),
        None if ratio is None else number(ratio, "the largest tolerable ratio"),
    )
    relation: str = neighbours or "add-remove"
    shares = None
    if budget is not None:
        if not unique:
            raise InputError("a limit with an allocation divides rho as the allocation does: add --unique")
        shares = {level: float(value) for level, value in budget.rhos(query).items()}
        levels, relation = levels or tuple(shares), budget.neighbours
    found = tuple(
        planning.plan(
            limit, p, levels or ["block"], unique=unique, shares=shares, delta=delta, significance=significance,
            neighbours=relation,
        )
        for p in priors
    )  # fmt: skip
    lines = [line for one in found for line in _lines(one, "unique" if unique else "alone")]
    return Plans(told("infer plan", Planned(asdict(limit), relation, found), lines))


def _lines(one: Plan, kind: str) -> list[str]:
    lines = [f"prior {one.prior:g}, {HEADINGS[kind]}:"]
    for row in one.levels:
        if row.standard_deviation is None:
            lines.append(f"    {row.level:<14} rho 0: nothing is released")
            continue
        noise = f"noise sd {row.standard_deviation:.3f}"
        risk = f"average posterior {row.posterior:.4f}  ratio {row.ratio:.3f}"
        lines.append(f"    {row.level:<14} rho {row.rho:.6f}  {noise}  {risk}")
    return [
        *lines,
        f"    total rho {one.total:.6f}: epsilon {one.epsilon:.4f} (tighter {one.epsilon_tight:.4f}); "
        f"membership test at significance {one.significance:g}: power {one.power:.4f}, at most {one.power_bound:.4f}",
    ]
