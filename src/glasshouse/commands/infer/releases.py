"""How much does an adversary learn on average, and how often is the likelier value right? Over every release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.infer.asking import (
    OF_ABOVE,
    OF_LEVELS,
    About,
    Answer,
    Known,
    Mode,
    Neighbours,
    NoiseSum,
    Number,
    Others,
    Prior,
    PriorAbove,
    Rhos,
    RhosAbove,
    TrueAbove,
    TrueLevels,
    answered,
    belief_about,
    number,
    printed,
    refuse,
    tiers,
)

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.attack.infer.expected import Expected, Tier


SEEN = 5e-7  # what six digits show


@dataclass(frozen=True)
class Averaged:
    """The posterior of the truth, averaged over the noise, and how many times the prior it is."""

    posterior: float
    risk: float
    outside: float | None = None  # probability of releases that were not looked at, with levels above
    attack: str | None = None
    belief: str | None = None


class Risk(Answer[Averaged]):
    """What the adversary believes on average."""


@command(
    example="glasshouse infer risk --rho 0.0992263542 --prior 1/10\n\n"
    "Two levels:  ... --rho2 0.2464845096 --others 27 --true2 1\n\n"
    "More levels, finest first:  --level RHO:TRUE:OTHERS, repeated"
)
def risk(
    *,
    rho: Rhos = (),
    prior: Prior = "0.5",
    known: Known = 0,
    rho2: RhosAbove = (),
    others: Others = None,
    true2: TrueAbove = None,
    levels: TrueLevels = (),
    x2_prior: PriorAbove = "uniform",
    mode: Mode = "exact",
    noise_sum: NoiseSum = "approx",
    neighbours: Neighbours = "add-remove",
    attack: About = None,
) -> Risk:
    """The posterior of the truth, averaged over the noise, and its ratio to the prior (R)."""
    from glasshouse.attack.infer.onelevel import marginal

    before = number(prior, "the prior")
    asked = _asked(levels, rho, rho2, others, None, true2, known, neighbours, (x2_prior, noise_sum, mode))
    if len(asked) == 1:
        found, outside = marginal(asked[0].rates, before), None
    else:
        whole = _over_all(asked, before, known, x2_prior, noise_sum, mode, "strict")
        found, outside = whole.belief, whole.outside
    line = f"average posterior of the truth {found.posterior:.6g}: {found.ratio:.4g} times the prior"
    summary = Averaged(found.posterior, found.ratio, outside, attack, belief_about(attack))
    return Risk(answered("risk", summary, [line]))


def _asked(
    levels: Sequence[str],
    rho: Sequence[Number],
    rho2: Sequence[Number],
    others: int | None,
    true1: int | None,
    true2: int | None,
    known: int,
    neighbours: str,
    of_above: tuple[str, str, str],
) -> list[Tier]:
    """The levels of a question about every release, when nothing that was said would go unheard."""
    further = dict(zip(("--x2-prior", "--noise-sum", "--mode"), of_above, strict=True))
    two: dict[str, object] = {"--others": others, "--true2": true2}
    if levels:
        refuse(two | {"--rho": rho, "--rho2": rho2, "--true1": true1}, OF_LEVELS)
    elif not rho2:
        refuse(two, OF_ABOVE)
    asked = tiers(levels, rho, rho2, others, known + 1 if true1 is None else true1, true2, neighbours)
    if len(asked) == 1:
        refuse(further, OF_ABOVE)
    return asked


def _over_all(
    asked: Sequence[Tier], prior: float, known: int, x2_prior: str, noise_sum: str, mode: str, ties: str
) -> Expected:
    """What is expected over every release of two levels and more."""
    from glasshouse.attack.infer import expected, hierarchy, twolevel

    above = hierarchy.CountPrior.read(x2_prior)
    if mode == "exact":
        return expected.expected(asked, prior, known, above=above, noise_sum=noise_sum, ties=ties)
    ((rate1,), (rate2,)) = printed([tier.rates for tier in asked])
    adversary = twolevel.TwoLevels(rate1, rate2, asked[0].others, prior, known, above, noise_sum, mode)
    return twolevel.correct_decision(adversary, true1=asked[0].true, true2=asked[1].true, ties=ties)


@dataclass(frozen=True)
class Decision:
    """How often the adversary is right, and from which noisy count on one more person is picked."""

    probability: float
    threshold: int | None  # of one noisy count; several are weighed together
    ties: float
    tie_rule: str
    attack: str | None = None
    belief: str | None = None


@dataclass(frozen=True)
class DecisionAbove:
    """How often the adversary of several levels is right, and what the levels above do to the decision."""

    probability: float
    ties: float
    gained: float
    lost: float
    outside: float
    mode: str
    tie_rule: str
    attack: str | None = None
    belief: str | None = None


class Decided(Answer[Decision | DecisionAbove]):
    """How often an adversary who picks the likelier value is right."""


@command(
    example="glasshouse infer decide --rho 0.0992263542 --prior 0.5\n\n"
    "Two releases:  --rho 0.1 --rho 0.2\n\n"
    "Two levels:  ... --rho2 0.2464845096 --others 27 --true2 1 [--mode printed]\n\n"
    "More levels, finest first:  --level RHO:TRUE:OTHERS, repeated"
)
def decide(
    *,
    rho: Rhos = (),
    prior: Prior = "0.5",
    known: Known = 0,
    true1: Annotated[int | None, Opt("The true count; default: known + 1.")] = None,
    rho2: RhosAbove = (),
    others: Others = None,
    true2: TrueAbove = None,
    levels: TrueLevels = (),
    x2_prior: PriorAbove = "uniform",
    ties: Annotated[
        Literal["strict", "half", "one"], Opt("Who gets a posterior of exactly one half: strict, half or one.")
    ] = "strict",
    mode: Mode = "exact",
    noise_sum: NoiseSum = "approx",
    neighbours: Neighbours = "add-remove",
    attack: About = None,
) -> Decided:
    """How often an adversary who picks the likelier value is right."""
    from glasshouse.attack.infer import onelevel

    before = number(prior, "the prior")
    asked = _asked(levels, rho, rho2, others, true1, true2, known, neighbours, (x2_prior, noise_sum, mode))
    truth = asked[0].true
    summary: Decision | DecisionAbove
    if len(asked) == 1:
        one = onelevel.decide(asked[0].rates, before, known, truth=truth, ties=ties)
        line = f"right with probability {one.probability:.6g}" + _rule(asked[0].rates, before, known, one.threshold)
        summary = Decision(one.probability, one.threshold, one.ties, ties, attack, belief_about(attack))
    else:
        found = _over_all(asked, before, known, x2_prior, noise_sum, mode, ties)
        line = (
            f"right with probability {found.probability:.6g} ({mode} posterior); the levels above correct "
            f"{found.gained:.4%} of the decisions and spoil {found.lost:.4%}"
        )
        numbers = {name: value for name, value in vars(found).items() if name != "belief"}
        summary = DecisionAbove(**numbers, mode=mode, tie_rule=ties, attack=attack, belief=belief_about(attack))
    return Decided(answered("decide", summary, [line + _tied(summary, truth - known, known)]))


def _rule(rates: Sequence[float], prior: float, known: int, threshold: int | None) -> str:
    """When one more person is picked."""
    from glasshouse.attack.infer.onelevel import logit

    if threshold is not None:
        return f"; {known + 1} is picked from a noisy count of {threshold} on"
    if not any(rates):
        return "; nothing is released, so the prior decides"
    weighed = " + ".join(f"{one:g} x{number}" for number, one in enumerate(rates, start=1))
    bound = sum(rates) * (known + 0.5) - logit(prior) / 2
    return f"; {known + 1} is picked where {weighed} is more than {bound:.6g} (x1, x2, ...: the noisy counts)"


def _tied(found: Decision | DecisionAbove, has: int, known: int) -> str:
    """What the rule for ties did, and what the others would have done."""
    from glasshouse.attack.infer.onelevel import TIES

    if found.ties < SEEN:
        return ""
    goes = {"strict": f"counts as {known}", "half": "is settled by a coin", "one": f"counts as {known + 1}"}
    way = found.ties if has else -found.ties
    others = " and ".join(
        f"{found.probability + way * (share - TIES[found.tie_rule]):.6g} under {rule}"
        for rule, share in TIES.items()
        if rule != found.tie_rule
    )
    return (
        f"; with probability {found.ties:.6g} the two values are equally likely, and such a tie "
        f"{goes[found.tie_rule]} (--ties {found.tie_rule}); it would be right with probability {others}"
    )
