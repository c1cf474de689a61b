"""What does an adversary believe after seeing noisy counts? And how much noise is in them, or left in them?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
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
    Rho,
    RhosAbove,
    answered,
    as_many,
    belief_about,
    number,
    printed,
    rate,
    refuse,
    seen_level,
)
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.attack.infer.hierarchy import Posterior
    from glasshouse.attack.infer.onelevel import Belief


@dataclass(frozen=True)
class Believed:
    """The posterior of one more person, and how many times the prior it is."""

    posterior: float
    ratio: float
    x2: tuple[tuple[int, float], ...] | None = None  # the count at the top, and its probability
    ratios: tuple[float, ...] | None = None  # of each of several releases, to the belief before it: they multiply
    belief_in_truth: float | None = None
    attack: str | None = None
    belief: str | None = None


class PosteriorFound(Answer[Believed]):
    """What the adversary believes after the releases."""

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
    "Two releases:  --rho 0.1 --noisy 1 --rho 0.2 --noisy 3\n\n"
    "Two levels:  ... --rho2 0.2464845096 --others 27 --noisy2 1 --noisy-others -1\n\n"
    "More levels, finest first:  --level RHO:NOISY:OTHERS:NOISY_OTHERS, repeated"
)
def posterior(
    *,
    rho: Annotated[
        tuple[Number, ...],
        Opt("Privacy loss of the count: a decimal or a fraction; repeat it for releases.", repeated=True),
    ] = (),
    noisy: Annotated[
        tuple[float, ...], Opt("The released noisy count; repeat it, in the order of the releases.", repeated=True)
    ] = (),
    prior: Prior = "0.5",
    known: Known = 0,
    rho2: RhosAbove = (),
    others: Others = None,
    noisy2: Annotated[
        tuple[float, ...], Opt("The noisy count one level up; repeat it for releases.", repeated=True)
    ] = (),
    noisy_others: Annotated[
        tuple[float, ...], Opt("The sum of the other groups' noisy counts; repeat it for releases.", repeated=True)
    ] = (),
    levels: Annotated[
        tuple[str, ...],
        Opt("A level as RHO:NOISY[:OTHERS:NOISY_OTHERS]; commas between releases.", flag="--level", repeated=True),
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

    before = number(prior, "the prior")
    of_above: dict[str, object] = {"--others": others, "--noisy2": noisy2, "--noisy-others": noisy_others}
    if levels:
        refuse(of_above | {"--rho": rho, "--noisy": noisy, "--rho2": rho2}, OF_LEVELS)
        seen = [seen_level(text, neighbours) for text in levels]
    else:
        if not rho or not noisy:
            raise InputError("--rho and --noisy are needed (or --level for each level)")
        as_many({"--rho": rho, "--noisy": noisy})
        own = [rate(one, neighbours) for one in rho]
        if not rho2:
            refuse(of_above | {"--x2-prior": x2_prior, "--noise-sum": noise_sum, "--mode": mode}, OF_ABOVE)
            told = [onelevel.posterior_of_releases(own[:n], before, noisy[:n], known) for n in range(1, len(own) + 1)]
            return _believed(told, None, true1, known, attack, before)
        if others is None or not noisy2 or not noisy_others:
            raise InputError("two levels need --others, --noisy2 and --noisy-others")
        as_many({"--rho": rho, "--noisy-others": noisy_others})
        as_many({"--rho2": rho2, "--noisy2": noisy2})
        above = [hierarchy.Level(rate(one, neighbours), x) for one, x in zip(rho2, noisy2, strict=True)]
        seen = [
            [hierarchy.Level(one, x, others, y) for one, x, y in zip(own, noisy, noisy_others, strict=True)],
            above,
        ]
    count_prior = hierarchy.CountPrior.read(x2_prior)
    if mode == "exact":
        found = hierarchy.posterior(seen, before, known, above=count_prior, noise_sum=noise_sum)
    else:
        (own1,), (own2,) = printed(seen)
        adversary = twolevel.TwoLevels(
            own1.rate, own2.rate, own1.others, before, known, count_prior, noise_sum=noise_sum, mode=mode
        )
        found = adversary.posterior(own1.noisy, own2.noisy, own1.noisy_others)
    return _believed([found.belief], found, true1, known, attack)


def _believed(
    told: Sequence[Belief],
    above: Posterior | None,
    true1: int | None,
    known: int,
    attack: str | None,
    prior: float = 0.5,
) -> PosteriorFound:
    one = told[-1]
    if true1 not in (None, known, known + 1):
        raise InputError(f"the true count is {true1}; expected {known} or {known + 1}")
    truth = None if true1 is None else one.posterior if true1 == known + 1 else 1 - one.posterior
    x2 = None if above is None else above.top
    ratios = None
    if len(told) > 1 and all(belief.ratio for belief in told):  # what is ruled out stays so
        ratios = (told[0].ratio, *(after.ratio / before.ratio for before, after in pairwise(told)))
    summary = Believed(one.posterior, one.ratio, x2, ratios, truth, attack, belief_about(attack))
    if above is None:
        lines = [f"posterior {one.posterior:.6g}: {one.ratio:.4g} times the prior {prior:g}"]
        if ratios:
            lines[0] += f"; release by release {' x '.join(f'{ratio:.4g}' for ratio in ratios)}"
    else:
        lines = [f"posterior {one.posterior:.6f}, ratio {one.ratio:.6f}; the count at the top:"]
        lines += [f"    {count:>4}  {mass:.4f}" for count, mass in above.top if mass >= 5e-5]
    return PosteriorFound(answered("posterior", summary, lines))


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
    return PostProcessed(
        answered("postprocess", summary, [f"{name} {value}" for name, value in asdict(summary).items()])
    )


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
    return NoiseFound(answered("noise", summary, [f"{name} {value}" for name, value in asdict(summary).items()]))
