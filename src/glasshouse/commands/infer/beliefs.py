"""What does an adversary believe after seeing noisy counts, on average, and how often is the likelier value right?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.infer.asking import (
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
    Rho,
    RhoAbove,
    S,
    belief_about,
    level,
    number,
    only_with_rho2,
    rate,
    spelled,
)
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.attack.infer.hierarchy import Posterior
    from glasshouse.attack.infer.onelevel import Belief
    from glasshouse.engine.lifecycle import Ended


@dataclass(frozen=True)
class Believed:
    """The posterior of one more person, and how many times the prior it is."""

    posterior: float
    ratio: float
    x2: tuple[tuple[int, float], ...] | None = None  # the count at the top, and its probability
    belief_in_truth: float | None = None
    attack: str | None = None
    belief: str | None = None


class PosteriorFound(Answer[Believed]):
    """What the adversary believes after one release."""

    x2: pl.DataFrame  # the belief about the count at the top, where more than one level was released

    @property
    def frames(self) -> Mapping[str, pl.DataFrame]:
        import polars as pl

        if self.summary.x2 is None:
            return {}
        columns = {"count": pl.Int64, "probability": pl.Float64}
        return {"x2": pl.DataFrame(self.summary.x2, schema=columns, orient="row")}


@command(
    example="glasshouse infer posterior --rho 0.0992263542 --prior 0.5 --noisy 2\n\n"
    "Two levels:  ... --rho2 0.2464845096 --others 27 --noisy2 1 --noisy-others -1\n\n"
    "More levels, finest first:  --level RHO:NOISY:OTHERS:NOISY_OTHERS, repeated"
)
def posterior(
    *,
    rho: Annotated[Number | None, Opt("Privacy loss of the count: a decimal or a fraction.")] = None,
    noisy: Annotated[float | None, Opt("The released noisy count.")] = None,
    prior: Prior = "0.5",
    known: Known = 0,
    rho2: RhoAbove = None,
    others: Others = None,
    noisy2: Annotated[float | None, Opt("The noisy count one level up.")] = None,
    noisy_others: Annotated[float | None, Opt("The sum of the other groups' noisy counts.")] = None,
    levels: Annotated[
        tuple[str, ...], Opt("A level as RHO:NOISY[:OTHERS:NOISY_OTHERS].", flag="--level", repeated=True)
    ] = (),
    x2_prior: PriorAbove = "uniform",
    noise_sum: NoiseSum = "approx",
    mode: Mode = "exact",
    neighbours: Neighbours = "add-remove",
    true1: Annotated[int | None, Opt("The true count: adds how much belief it gets.")] = None,
    attack: About = None,
) -> PosteriorFound:
    """What the adversary believes after seeing noisy counts."""
    from glasshouse.attack.infer import hierarchy, onelevel, twolevel

    above = hierarchy.CountPrior.read(x2_prior)
    before = number(prior, "the prior")
    if levels:
        read = [level(text, neighbours) for text in levels]
        found = hierarchy.posterior(read, before, known, above=above, noise_sum=noise_sum)
        return _believed(found.belief, found, true1, known, attack)
    if rho is None or noisy is None:
        raise InputError("--rho and --noisy are needed (or --level for each level)")
    own = rate(rho, neighbours)
    if rho2 is None:
        one = onelevel.posterior(own, before, noisy, known)
        only_with_rho2({"--others": others, "--noisy2": noisy2, "--noisy-others": noisy_others})
        return _believed(one, None, true1, known, attack, before)
    if others is None or noisy2 is None or noisy_others is None:
        raise InputError("two levels need --others, --noisy2 and --noisy-others")
    adversary = twolevel.TwoLevels(
        own, rate(rho2, neighbours), others, before, known, above, noise_sum=noise_sum, mode=mode
    )
    found = adversary.posterior(noisy, noisy2, noisy_others)
    return _believed(found.belief, found, true1, known, attack)


def _believed(
    one: Belief, above: Posterior | None, true1: int | None, known: int, attack: str | None, prior: float = 0.5
) -> PosteriorFound:
    if true1 not in (None, known, known + 1):
        raise InputError(f"the true count is {true1}; expected {known} or {known + 1}")
    truth = None if true1 is None else one.posterior if true1 == known + 1 else 1 - one.posterior
    x2 = None if above is None else above.top
    summary = Believed(one.posterior, one.ratio, x2, truth, attack, belief_about(attack))
    if above is None:
        lines = [f"posterior {one.posterior:.6g}: {one.ratio:.4g} times the prior {prior:g}"]
    else:
        lines = [f"posterior {one.posterior:.6f}, ratio {one.ratio:.6f}; the count at the top:"]
        lines += [f"    {count:>4}  {mass:.4f}" for count, mass in above.top if mass >= 5e-5]
    return PosteriorFound(_told("posterior", summary, lines))


def _told(question: str, summary: S, lines: list[str]) -> Ended[S]:
    """An answer in words, with what was asked besides."""
    from glasshouse.engine.lifecycle import told
    from glasshouse.engine.plain import plain

    further = spelled(plain(summary), ("belief_in_truth", "attack", "belief"))
    return told(f"infer {question}", summary, [*lines, *further])


@dataclass(frozen=True)
class Averaged:
    """The posterior of the truth, averaged over the noise, and how many times the prior it is."""

    posterior: float
    risk: float
    attack: str | None = None
    belief: str | None = None


class Risk(Answer[Averaged]):
    """What the adversary believes on average."""


@command(example="glasshouse infer risk --rho 0.0992263542 --prior 1/10")
def risk(
    *,
    rho: Annotated[
        tuple[Number, ...],
        Opt("Privacy loss; repeat it for levels at which the target is unique, or releases.", repeated=True),
    ],
    prior: Prior = "0.5",
    neighbours: Neighbours = "add-remove",
    attack: About = None,
) -> Risk:
    """The posterior of the truth, averaged over the noise, and its ratio to the prior (R)."""
    from glasshouse.attack.infer.onelevel import marginal

    found = marginal([rate(one, neighbours) for one in rho], number(prior, "the prior"))
    line = f"average posterior of the truth {found.posterior:.6g}: {found.ratio:.4g} times the prior"
    return Risk(_told("risk", Averaged(found.posterior, found.ratio, attack, belief_about(attack)), [line]))


@dataclass(frozen=True)
class Decision:
    """How often the adversary is right, and from which noisy count on one more person is picked."""

    probability: float
    threshold: int | None
    attack: str | None = None
    belief: str | None = None


@dataclass(frozen=True)
class DecisionAbove:
    """How often the adversary of two levels is right, and what the level above does to the decision."""

    probability: float
    ties: float
    gained: float
    lost: float
    outside: float
    mode: str
    attack: str | None = None
    belief: str | None = None


class Decided(Answer[Decision | DecisionAbove]):
    """How often an adversary who picks the likelier value is right."""


@command(
    example="glasshouse infer decide --rho 0.0992263542 --prior 0.5\n\n"
    "Two levels:  ... --rho2 0.2464845096 --others 27 --true2 1 [--mode printed]"
)
def decide(
    *,
    rho: Rho,
    prior: Prior = "0.5",
    known: Known = 0,
    true1: Annotated[int | None, Opt("The true count; default: known + 1.")] = None,
    rho2: RhoAbove = None,
    others: Others = None,
    true2: Annotated[int | None, Opt("The true count one level up.")] = None,
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
    from glasshouse.attack.infer import hierarchy, onelevel, twolevel

    own, before = rate(rho, neighbours), number(prior, "the prior")
    summary: Decision | DecisionAbove
    if rho2 is None:
        only_with_rho2({"--others": others, "--true2": true2})
        found = onelevel.decide(own, before, known, truth=true1, ties=ties)
        line = f"right with probability {found.probability:.6g}"
        if found.threshold is not None:
            line += f"; {known + 1} is picked from a noisy count of {found.threshold} on"
        summary = Decision(found.probability, found.threshold, attack, belief_about(attack))
        return Decided(_told("decide", summary, [line]))
    if others is None or true2 is None:
        raise InputError("two levels need --others and --true2")
    above = hierarchy.CountPrior.read(x2_prior)
    adversary = twolevel.TwoLevels(own, rate(rho2, neighbours), others, before, known, above, noise_sum, mode)
    correct = twolevel.correct_decision(adversary, true1=true1, true2=true2, ties=ties)
    line = (
        f"right with probability {correct.probability:.6g} ({mode} posterior); the level above corrects "
        f"{correct.gained:.4%} of the decisions and spoils {correct.lost:.4%}; ties {correct.ties:.4%}"
    )
    summary = DecisionAbove(**asdict(correct), mode=mode, attack=attack, belief=belief_about(attack))
    return Decided(_told("decide", summary, [line]))


@dataclass(frozen=True)
class Bounds:
    """What is left to learn after post-processing, and the bounds on it."""

    posterior: float
    risk: float
    bound: float
    claimed_bound: float


class PostProcessed(Answer[Bounds]):
    """What is left to learn after the counts were made to add up."""


@command(example="glasshouse infer postprocess --rho 0.0992263542 --others 27 --total 10")
def postprocess(
    *,
    rho: Rho,
    others: Annotated[int, Opt("How many other groups make up the level above.")],
    total: Annotated[int, Opt("The post-processed count of the level above.")],
    prior: Prior = "0.5",
    true2: Annotated[int, Opt("The true count of the level above, known to the adversary.")] = 1,
    rounding: Annotated[
        Literal["half-even", "half-up", "half-down"], Opt("half-even, half-up or half-down.")
    ] = "half-even",
    neighbours: Neighbours = "add-remove",
) -> PostProcessed:
    """What is left to learn after the counts were made to add up (S6), and the bounds on it."""
    from glasshouse.attack.infer.postprocess import post_processing

    own, before = rate(rho, neighbours), number(prior, "the prior")
    found = post_processing(own, before, others, total, true2=true2, rounding=rounding)
    summary = Bounds(
        found.processed.posterior, found.processed.ratio, found.x1_and_others.posterior, found.x1_alone.posterior
    )
    return PostProcessed(_told("postprocess", summary, [f"{name} {value}" for name, value in asdict(summary).items()]))


@dataclass(frozen=True)
class Noise:
    """How much noise a count gets, and how far one discrete Gaussian is from the sum of several."""

    standard_deviation: float
    variance: float
    others: int
    approximation_error: float


class NoiseFound(Answer[Noise]):
    """How much noise rho buys."""


@command(example="glasshouse infer noise --rho 0.0992263542 --others 27")
def noise(
    *,
    rho: Rho,
    others: Annotated[int, Opt("How many counts are added up.")] = 1,
    neighbours: Neighbours = "add-remove",
) -> NoiseFound:
    """How much noise rho buys, and the error of approximating its sums (3.7)."""
    from glasshouse.mechanism.gaussian import DiscreteGaussian, approximation_error

    own = rate(rho, neighbours)
    variance = DiscreteGaussian(own).variance
    summary = Noise(variance**0.5, variance, others, approximation_error(own, others))
    return NoiseFound(_told("noise", summary, [f"{name} {value}" for name, value in asdict(summary).items()]))
