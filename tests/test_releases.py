"""Are several releases and levels taken together? Brute force that shares no code with what it checks."""

from __future__ import annotations

from itertools import pairwise, product
from math import exp, log

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glasshouse as gh
from glasshouse.attack.infer import hierarchy
from glasshouse.attack.infer.expected import MeanBelief, Tier, expected
from glasshouse.attack.infer.hierarchy import CountPrior, Level
from glasshouse.attack.infer.onelevel import TIES, decide, marginal, posterior_of_releases
from glasshouse.mechanism.account import allocation
from tests.often import often
from tests.running import good, tool

priors = st.floats(0.05, 0.95)


def noise(rate: float, reach: int) -> dict[int, float]:
    """The probability of each noise value, by its definition."""
    weights = {n: exp(-rate * n * n) for n in range(-reach, reach + 1)}
    return {n: weight / sum(weights.values()) for n, weight in weights.items()}


def added(rate: float, count: int, reach: int) -> dict[int, float]:
    """The noise of a sum of counts, one after the other."""
    found = {0: 1.0}
    for _ in range(count):
        more: dict[int, float] = {}
        for (a, p), (b, q) in product(found.items(), noise(rate, reach).items()):
            more[a + b] = more.get(a + b, 0.0) + p * q
        found = more
    return found


# Several releases of one count


def decided_by_listing(rates: list[str], prior: str, has: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """How often known + 1 is picked, and how often there is a tie: every combination, in 40 digits."""
    with mpmath.workdps(40):
        start = mpmath.log(mpmath.mpf(prior) / (1 - mpmath.mpf(prior)))
        lists = []
        for text in rates:
            rate = mpmath.mpf(text)
            total = mpmath.jtheta(3, 0, mpmath.exp(-rate))
            reach = int((50 / rate) ** 0.5) + 2
            lists.append([(rate * (2 * (n + has) - 1), mpmath.exp(-rate * n * n) / total)
                          for n in range(-reach, reach + 1)])  # fmt: skip
        picks = ties = mpmath.mpf(0)
        for chosen in product(*lists):
            odds, mass = start + mpmath.fsum(e for e, _ in chosen), mpmath.fprod(m for _, m in chosen)
            ties += mass * (abs(odds) < 1e-25)
            picks += mass * (odds >= 1e-25)
        return picks, ties


@pytest.mark.parametrize("has", [0, 1])
@pytest.mark.parametrize(
    ("rates", "prior"),
    [
        (["0.1", "0.2"], "0.5"),
        (["0.1", "0.1"], "0.5"),
        (["0.1", "0.3"], "0.5"),
        (["0.35", "1.2"], "0.1"),
        (["0.7", "0.9", "1.1"], "0.3"),
        (["0.8", "0.8", "0.8"], "0.5"),
        (["0.9", "0.6", "0.9"], "0.5"),
    ],
)
def test_a_decision_on_several_releases_equals_listing(rates: list[str], prior: str, has: int) -> None:
    picks, even = decided_by_listing(rates, prior, has)
    for ties, share in TIES.items():
        found = decide([float(rate) for rate in rates], float(prior), 3, truth=3 + has, ties=ties)
        right = picks + share * even if has else 1 - picks - share * even
        assert found.probability == pytest.approx(float(right), abs=1e-14)
        assert found.ties == pytest.approx(float(even), abs=1e-14)
        assert found.threshold is None


def test_the_two_releases_of_the_issue() -> None:
    """0.6262 was printed, the answer for the last rho alone."""
    picks, _ = decided_by_listing(["0.1", "0.2"], "0.5", 1)
    assert f"{float(picks):.4f}" == "0.6511"
    told = good(tool("infer", "decide", "--rho", "0.1", "--rho", "0.2"))
    assert told.out.startswith("right with probability 0.651133; 1 is picked where 0.1 x1 + 0.2 x2 is more than 0.15")
    said = good(tool("infer", "decide", "--rho", "0.1", "--rho", "0.2", "--json")).json
    assert said == gh.infer.decide(rho=[0.1, "1/5"]).said()
    assert said["probability"] == pytest.approx(float(picks), abs=1e-14)


def test_a_target_unique_at_six_levels_is_decided_exactly() -> None:
    """S1.3: rates that are multiples of one step lie on a lattice, where noises are added by convolution."""
    steps = [2, 5, 1, 3, 4, 7]
    masses = np.ones(1)
    for step in steps:
        reach = int((45 / (0.05 * step)) ** 0.5) + 2
        spread = np.zeros(4 * step * reach + 1)
        spread[:: 2 * step] = [noise(0.05 * step, reach)[n] for n in range(-reach, reach + 1)]
        masses = np.convolve(masses, spread)
    sums = np.arange(len(masses)) - len(masses) // 2 + sum(steps)  # of step (2 n + 1)
    found = decide([0.05 * step for step in steps], 0.5)
    assert found.probability == pytest.approx(float(masses[sums > 0].sum()), abs=1e-12)
    assert found.ties == pytest.approx(float(masses[sums == 0].sum()), abs=1e-12)
    paper = [float(rho) for rho in allocation("paper-2020").rhos("detailed").values()]
    chances = [decide(paper[:levels], 0.5).probability for levels in range(1, 7)]
    assert chances == sorted(chances) and chances[-1] == pytest.approx(0.69987, abs=1e-5)


@settings(max_examples=often(40), deadline=None)
@given(st.lists(st.floats(0.05, 2), min_size=1, max_size=3), priors)
def test_no_rule_beats_the_likelier_value(rates: list[float], prior: float) -> None:
    """Law: averaged over both truths, deciding on all releases is no worse than on the first alone, or on none."""

    def right(some: list[float]) -> float:
        return sum(
            p * decide(some, prior, truth=truth).probability for truth, p in ((1, prior), (0, 1 - prior))
        )  # fmt: skip

    assert right(rates) >= right(rates[:1]) - 1e-12 >= max(prior, 1 - prior) - 2e-12


def test_a_posterior_uses_every_release() -> None:
    """The first release was dropped."""
    weights = [exp(-0.1 * (1 - k) ** 2 - 0.2 * (3 - k) ** 2) for k in (0, 1)]
    truth = weights[1] / sum(weights)
    words = ("infer", "posterior", "--rho", ".1", "--noisy", "1", "--rho", ".2", "--noisy", "3")
    said = good(tool(*words, "--json")).json
    assert said["posterior"] == pytest.approx(truth, abs=1e-15)
    assert said == gh.infer.posterior(rho=[0.1, 0.2], noisy=[1, 3]).said()
    assert said["ratio"] == pytest.approx(np.prod(said["ratios"]))  # S5.8
    assert said["ratios"][0] == gh.infer.posterior(rho=0.1, noisy=1).summary.ratio
    assert "release by release 1.05 x 1.429" in good(tool(*words)).out
    far = gh.infer.posterior(rho=[1000, 1], noisy=[-(10**6), 1]).summary  # ruled out: no ratio to what is 0
    assert far.posterior == 0 and far.ratios is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--rho .1 --rho .2 --noisy 3", "2 of --rho, 1 of --noisy; expected as many of each"),
        ("--rho .1 --noisy 3 --noisy 4", "1 of --rho, 2 of --noisy; expected as many of each"),
        ("--rho .1 --noisy 1 --rho2 .2 --others 3 --noisy2 1 --noisy2 2 --noisy-others 1", "1 of --rho2, 2 of"),
        ("--rho .1 --noisy 1 --rho2 .2 --others 3 --noisy2 1", "two levels need --others, --noisy2 and --noisy-others"),
        ("--rho .1 --noisy 1 --rho2 .2 --others 3 --noisy2 1 --noisy-others 1 --noisy-others 2", "2 of --noisy-others"),
        ("--level .1,.2:1:3:1 --level .1:2", "--level .1,.2:1:3:1: 2 of RHO, 1 of NOISY, 1 of NOISY_OTHERS"),
        ("--level .1:1:3,4:1 --level .1:2", "expected RHO:NOISY or"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_one_clear_error(words: str, message: str) -> None:
    ended = tool("infer", "posterior", *words.split())
    assert ended.code == 2 and message in ended.err and ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("posterior --level .1:1 --rho .1", "--rho is said by --level already"),
        ("posterior --level .1:1 --noisy2 4", "--noisy2 is said by --level already"),
        ("posterior --rho .1 --noisy 1 --x2-prior point:1", "--x2-prior speaks of the level above"),
        ("posterior --level .1:1:3:1 --level .1:2 --level .1:3 --mode printed", "--mode printed is about two levels"),
        ("decide --rho .1 --mode printed", "--mode speaks of the level above"),
        ("decide --level .1:1 --true1 1", "--true1 is said by --level already"),
        ("decide --rho .1 --rho .2 --rho2 .1 --others 3 --true2 1 --mode printed", "--mode printed is about two"),
        ("decide --level .1:1:3", "the last level has no level above it"),
        ("decide --level .1:1:3:4", "expected RHO:TRUE or RHO:TRUE:OTHERS"),
        ("decide --level .1:1,2:3 --level .1:4", "expected RHO:TRUE or RHO:TRUE:OTHERS"),
        ("decide --level .1:7", "the true count is 7; expected 0 or 1"),
        ("decide", "--rho is missing"),
        ("risk --rho .1 --noise-sum exact", "--noise-sum speaks of the level above"),
        ("risk --rho .1 --others 3", "--others speaks of the level above"),
        ("risk --rho .1 --rho2 .2 --others 3", "two levels need --others and --true2"),
        ("risk --level .1:2:3 --level .1:1", "the true count is 2"),
        ("risk --level .1:1:3 --level .1:0", "expected at least 1, the count of the group in it"),
        ("risk --level .1:1 --level .1:2", "level 1 has no other groups"),
        ("plan --allocation paper-2020 --levels block,tract,block", "block is given 2 times"),
        ("plan --posterior 0.55 --query total", "--query total needs --allocation"),
        ("data m.csv --scenario pl94 --matrix --tables P1", "--tables chooses attributes, and a matrix has none"),
        ("data m.csv --scenario pl94 --levels tract=block,tract=county", "tract is given 2 times"),
    ],
)  # fmt: skip
def test_nothing_that_is_said_goes_unheard(words: str, message: str) -> None:
    ended = tool("infer", *words.split())
    assert ended.code == 2 and message in ended.err


# Ties


@pytest.mark.parametrize(
    ("words", "probability", "told"),
    [
        ("", 0.0, "such a tie counts as 0 (--ties strict); it would be right with probability 0.5 under half and 1"),
        ("--ties half", 0.5, "is settled by a coin (--ties half); it would be right with probability 0 under strict"),
        ("--ties one", 1.0, "counts as 1 (--ties one); it would be right with probability 0 under strict and 0.5"),
        ("--true1 0", 1.0, "counts as 0 (--ties strict); it would be right with probability 0.5 under half and 0"),
        ("--known 4 --ties one", 1.0, "counts as 5 (--ties one)"),
        ("--rho 0", 0.0, "counts as 0 (--ties strict)"),
    ],
)  # fmt: skip
def test_without_a_release_even_odds_are_a_tie_and_the_rule_is_told(words: str, probability: float, told: str) -> None:
    arguments = ("infer", "decide", "--rho", "0", *words.split())
    said = good(tool(*arguments, "--json")).json
    assert (said["probability"], said["ties"]) == (probability, 1.0)
    assert said["tie_rule"] == (words.split("--ties ")[1] if "--ties" in words else "strict")
    assert "nothing is released" in (out := good(tool(*arguments)).out) and told in out


def test_where_there_is_no_tie_none_is_told() -> None:
    assert "tie" not in good(tool("infer", "decide", "--rho", "0", "--prior", "0.3")).out
    assert "tie" not in good(tool("infer", "decide", "--rho", "0.1")).out


# Several levels, each released several times


def odds_by_listing(
    seen: list[tuple[tuple[float, ...], tuple[int, ...], int, tuple[int, ...]]], prior: float, most: int
) -> float:
    """The log odds of X1 = 1 to X1 = 0: every chain of counts, with a uniform prior (S3.4, and further up)."""
    totals = [0.0, 0.0]
    for chain in product((0, 1), *(range(most) for _ in seen[1:])):
        if any(high < low for low, high in pairwise(chain)):
            continue
        exponent = 0.0
        for level, (rates, noisy, others, sums) in enumerate(seen):
            exponent += sum(rate * (x - chain[level]) ** 2 for rate, x in zip(rates, noisy, strict=True))
            if others:
                rest = chain[level + 1] - chain[level]
                exponent += sum(rate / others * (y - rest) ** 2 for rate, y in zip(rates, sums, strict=True))
        totals[chain[0]] += exp(-exponent)
    return log(prior / (1 - prior)) + log(totals[1]) - log(totals[0])


def over_all_by_listing(
    tiers: list[tuple[tuple[float, ...], int, int]], prior: float, reach: int, most: int
) -> tuple[float, float, float]:
    """The average belief in X1 = 1, how often it is the likelier, and the probability that was looked at."""
    places: list[dict[int, float]] = []
    for rates, _, others in tiers:
        places += [noise(rate, reach) for rate in rates]
        if others:
            places += [added(rate, others, reach) for rate in rates]
    average = picked = inside = 0.0
    for chosen in product(*(place.items() for place in places)):
        weight = float(np.prod([mass for _, mass in chosen]))
        if weight < 1e-9:
            continue
        noises = iter(n for n, _ in chosen)
        seen = []
        for level, (rates, true, others) in enumerate(tiers):
            noisy = tuple(true + next(noises) for _ in rates)
            rest = tiers[level + 1][1] - true if others else 0
            seen.append((rates, noisy, others, tuple(rest + next(noises) for _ in rates) if others else ()))
        odds = odds_by_listing(seen, prior, most)
        average += weight / (1 + exp(-odds))
        picked += weight * (odds > 0)
        inside += weight
    return average, picked, inside


@pytest.mark.parametrize(
    ("tiers", "prior"),
    [
        ([((0.8,), 1, 2), ((0.9,), 2, 0)], 0.4),
        ([((1.1,), 1, 1), ((0.7, 1.3), 1, 0)], 0.5),
        ([((1.9, 2.3), 1, 1), ((2.1,), 2, 0)], 0.6),
        ([((2.0, 2.0), 1, 1), ((2.5, 2.5), 2, 0)], 0.3),
        ([((2.4,), 1, 1), ((2.1,), 2, 1), ((2.6,), 3, 0)], 0.45),
    ],
)
def test_what_is_expected_over_all_releases_equals_listing(
    tiers: list[tuple[tuple[float, ...], int, int]], prior: float
) -> None:
    average, picked, inside = over_all_by_listing(tiers, prior, reach=6 if max(tiers[0][0]) < 1.5 else 3, most=14)
    assert inside > 1 - 1e-4
    found = expected([Tier(*tier) for tier in tiers], prior)
    assert average - 1e-9 <= found.belief.posterior <= average + (1 - inside) + 1e-9
    assert picked - 1e-9 <= found.probability <= picked + (1 - inside) + 1e-9
    assert found.belief.ratio == pytest.approx(found.belief.posterior / prior)
    assert found.outside < 1e-8
    alone = decide(tiers[0][0], prior).probability
    assert found.probability == pytest.approx(alone + found.gained - found.lost, abs=1e-10)


@settings(max_examples=often(25), deadline=None)
@given(
    st.tuples(*[st.floats(0.05, 2)] * 4),
    st.lists(st.integers(-3, 5), min_size=6, max_size=6),
    priors,
)
def test_a_posterior_over_levels_and_releases_equals_listing(
    rates: tuple[float, ...], counts: list[int], prior: float
) -> None:
    """Two releases of the group and of the level above, and one two levels up."""
    a, b, c, d = rates
    seen = [((a, b), (counts[0], counts[1]), 3, (counts[2], counts[3])), ((c, d), (counts[4], 2), 2, (1, counts[5]))]
    truth = odds_by_listing([*seen, ((a,), (3,), 0, ())], prior, most=40)
    levels = [
        [Level(a, counts[0], 3, counts[2]), Level(b, counts[1], 3, counts[3])],
        [Level(c, counts[4], 2, 1), Level(d, 2, 2, counts[5])],
        [Level(a, 3)],
    ]
    assert hierarchy.posterior(levels, prior).belief.posterior == pytest.approx(1 / (1 + exp(-truth)), abs=1e-9)


def test_the_terminal_and_the_library_say_the_same_of_levels_and_releases() -> None:
    words = "--level .3,.2:1:4 --level .5:2"
    for verb in ("risk", "decide"):
        said = good(tool("infer", verb, *words.split(), "--json")).json
        two = {"rho": [0.3, 0.2], "rho2": 0.5, "others": 4, "true2": 2}
        assert said == getattr(gh.infer, verb)(**two).said()
        assert said == getattr(gh.infer, verb)(levels=[".3,.2:1:4", ".5:2"]).said()
    chain = gh.infer.posterior(levels=[".3,.2:1,0:4:2,-1", ".5:2"]).said()
    two = {"rho": [0.3, 0.2], "noisy": [1, 0], "rho2": 0.5, "others": 4, "noisy2": 2, "noisy_others": [2, -1]}
    assert chain == gh.infer.posterior(**two).said()


def test_a_group_that_fills_the_level_above_is_released_twice() -> None:
    """Law: levels without other groups are releases of one count."""
    chain = expected([Tier((0.3,), 1), Tier((0.7,), 1)], 0.4)
    assert chain.belief.posterior == pytest.approx(marginal([0.3, 0.7], 0.4).posterior, abs=1e-12)
    assert chain.probability == decide([0.3, 0.7], 0.4).probability
    split = expected([Tier((0.3,), 1), Tier((0.7,), 1, 5), Tier((0.2,), 2)], 0.4)
    assert split == expected([Tier((0.3, 0.7), 1, 5), Tier((0.2,), 2)], 0.4)


@pytest.mark.parametrize("releases", [1, 2])
def test_beliefs_are_right_on_average(releases: int) -> None:
    """Law: where the belief about the count above is true, the average belief over both truths is the prior."""
    above, prior = CountPrior.read("point:2"), 0.3
    yes, no = (
        expected([Tier((0.2,) * releases, true, 6), Tier((0.4,), 2)], prior, above=above).belief.posterior
        for true in (1, 0)
    )
    assert prior * yes + (1 - prior) * (1 - no) == pytest.approx(prior, abs=1e-12)


@settings(max_examples=often(20), deadline=None)
@given(st.lists(st.floats(0.01, 30), min_size=1, max_size=2), st.lists(st.floats(-30, 30), min_size=1, max_size=8))
def test_the_mean_belief_is_interpolated_to_double_precision(rates: list[float], starts: list[float]) -> None:
    found = MeanBelief(rates)(np.array(starts))
    for start, value in zip(starts, found, strict=True):
        assert value == pytest.approx(marginal(rates, 1 / (1 + exp(-start))).posterior, rel=1e-9, abs=1e-14)


def test_the_order_of_releases_does_not_matter() -> None:
    one, other = Tier((0.2, 0.5), 1, 4), Tier((0.5, 0.2), 1, 4)
    found = [expected([first, Tier((0.3,), 2)], 0.5) for first in (one, other)]
    assert found[0].probability == pytest.approx(found[1].probability, abs=1e-12)
    assert found[0].belief.posterior == pytest.approx(found[1].belief.posterior, abs=1e-12)
    assert posterior_of_releases([0.2, 0.5], 0.5, [1, 3]) == posterior_of_releases([0.5, 0.2], 0.5, [3, 1])


def test_too_many_different_releases_are_refused_with_the_reason() -> None:
    levels = [Tier((0.01 + level / 1000,), 1, 20 * (level < 4)) for level in range(5)]
    with pytest.raises(gh.InputError, match="fewer releases or levels"):
        expected(levels, 0.5)
