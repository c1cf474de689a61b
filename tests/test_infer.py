"""Does the adversary believe what Bayes' rule says? Goldens, 50-digit arithmetic, brute force, a Gibbs sampler."""

from __future__ import annotations

import json
from itertools import pairwise, product
from math import log
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import polars as pl
import pytest
from benchmarks.gibbs import share_of_ones
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.attack.infer import hierarchy, onelevel
from glasshouse.attack.infer.exposure import exposure
from glasshouse.attack.infer.hierarchy import CountPrior, Level
from glasshouse.attack.infer.onelevel import decide, marginal, posterior_of_releases
from glasshouse.attack.infer.planning import Limit, assess, largest_rho, plan
from glasshouse.attack.infer.postprocess import post_processing
from glasshouse.attack.infer.twolevel import TwoLevels, correct_decision, decision_map
from glasshouse.cli.main import main
from glasshouse.commands.words.infer_figures import FIGURES
from glasshouse.errors import InputError
from glasshouse.mechanism.account import allocation
from glasshouse.mechanism.gaussian import DiscreteGaussian
from glasshouse.mechanism.sampler import simulate
from glasshouse.scenarios.load import load
from tests.often import often

from .test_readme import ROOT, module

made_part = module(ROOT / "docs" / "made_part.py")
paper = module(ROOT / "docs" / "make_infer_table.py")
R1, R2 = paper.RHO1, paper.RHO2

rates = st.floats(-3, 1.5).map(lambda power: 10.0**power)
priors = st.floats(0.001, 0.999)


# Golden: every number of the paper


def test_every_number_of_the_paper_is_reproduced() -> None:
    same = [n for n in paper.numbers() if n.relation.startswith("same")]
    assert len(same) >= 76
    wrong = [f"{n.where}: {n.what}: {n.paper} is printed, ours is {n.ours}" for n in same if not n.agrees(n.ours)]
    assert not wrong


def test_what_differs_has_a_reason_and_the_page_says_so() -> None:
    different = [n for n in paper.numbers() if not n.relation.startswith("same") and n.paper]
    assert len(different) <= 24
    made = made_part.part_of(paper.PAGE, "make_infer_table.py")
    assert made.rstrip() == paper.table().rstrip(), "run python docs/make_infer_table.py"


def test_the_printed_mode_is_near_what_is_printed() -> None:
    """Within 1.2 percentage points everywhere, also where nothing reproduces the paper."""
    gaps = {f"{n.where}: {n.what}": n.printed * n.scale - float(n.paper.rstrip("%")) for n in printed()}
    assert len(gaps) >= 20 and {name: gap for name, gap in gaps.items() if not abs(gap) < 1.2} == {}


def printed() -> list[Any]:
    return [n for n in paper.numbers() if n.printed is not None]


def test_the_findings_before_we_began() -> None:
    """Golden: FINDINGS D, from prototypes that share no code with this one."""
    exact, printed = TwoLevels(R1, R2, 27), TwoLevels(R1, R2, 27, mode="printed")
    assert exact.posterior(2, 1, -1).belief.posterior == pytest.approx(0.503288, abs=5e-7)
    assert printed.posterior(2, 1, -1).belief.posterior == pytest.approx(0.577702, abs=5e-7)
    assert correct_decision(exact, true2=1).probability == pytest.approx(0.318, abs=5e-4)
    bounded = TwoLevels(R1, R2, 27, above=CountPrior.read("uniform:10"))
    assert correct_decision(bounded, true2=1).probability == pytest.approx(0.3897, abs=5e-5)
    assert correct_decision(TwoLevels(R1, 100.0, 27), true2=10).ties == pytest.approx(0.006, abs=5e-4)


# Against 50-digit arithmetic


@settings(max_examples=often(60), deadline=None)
@given(rates, priors, st.integers(-30, 30), st.integers(0, 5))
def test_one_level_to_fifty_digits(rate: float, prior: float, noise: int, known: int) -> None:
    with mpmath.workdps(50):
        p, r, u = mpmath.mpf(prior), mpmath.mpf(rate), mpmath.mpf(noise)
        yes, no = p * mpmath.exp(-r * (u - 1) ** 2), (1 - p) * mpmath.exp(-r * u**2)
        expected = yes / (yes + no)
    found = onelevel.posterior(rate, prior, noise + known, known)
    assert abs(found.posterior - expected) <= 1e-12 * max(expected, mpmath.mpf("1e-290"))
    assert abs(found.ratio - expected / prior) <= 1e-12 * max(expected / prior, mpmath.mpf("1e-290"))


def average_by_listing(levels: list[float], prior: float) -> mpmath.mpf:
    """The averaged posterior by its definition, in 50 digits: every combination of noise values, masses from theta."""
    with mpmath.workdps(50):
        start = mpmath.log(mpmath.mpf(prior) / (1 - mpmath.mpf(prior)))
        noises = []
        for rate in levels:
            r = mpmath.mpf(rate)
            total = mpmath.jtheta(3, 0, mpmath.exp(-r))
            reach = int((45 / rate) ** 0.5) + 2
            noises.append([(r * (2 * n + 1), mpmath.exp(-r * n * n) / total) for n in range(-reach, reach + 1)])
        terms = []
        for chosen in product(*noises):
            evidence, weight = mpmath.fsum(e for e, _ in chosen), mpmath.fprod(m for _, m in chosen)
            terms.append(weight / (1 + mpmath.exp(-(start + evidence))))
        return mpmath.fsum(terms)


@settings(max_examples=often(25), deadline=None)
@given(st.lists(st.floats(0.1, 40), min_size=1, max_size=2), priors)
def test_the_average_to_fifty_digits(levels: list[float], prior: float) -> None:
    expected = average_by_listing(levels, prior)
    assert abs(marginal(levels, prior).posterior - expected) < 1e-12 * expected


@pytest.mark.parametrize("prior", [1e-9, 1e-4, 0.3, 0.999])
def test_three_levels_on_average_to_fifty_digits(prior: float) -> None:
    expected = average_by_listing([0.6, 1.1, 0.9], prior)
    assert abs(marginal([0.6, 1.1, 0.9], prior).posterior - expected) < 1e-12 * expected


@settings(max_examples=often(25), deadline=None)
@given(
    st.floats(0.02, 2),
    st.floats(0.02, 2),
    st.integers(1, 5),
    priors,
    st.integers(-4, 6),
    st.integers(-4, 9),
    st.integers(-8, 8),
    st.sampled_from(["uniform", "uniform:4", "point:2", "0.1,0.5,0.2,0.2"]),
    st.integers(0, 2),
)
def test_two_levels_to_fifty_digits(
    r1: float, r2: float, d: int, p: float, x1: int, x2: int, y1: int, above: str, known: int
) -> None:
    """S3.4, term by term, with any prior on X2."""
    weights = {"uniform": None, "uniform:4": [1] * 5, "point:2": [0, 0, 1], "0.1,0.5,0.2,0.2": [0.1, 0.5, 0.2, 0.2]}[
        above
    ]
    totals = []
    with mpmath.workdps(50):
        for k1 in (known, known + 1):
            support = range(k1, 160) if weights is None else range(k1, len(weights))
            inside = mpmath.mpf(1) if weights is None else mpmath.fsum(weights[k] for k in support)
            total = mpmath.mpf(0)
            for k2 in support:
                prior = mpmath.mpf(1) if weights is None else mpmath.mpf(weights[k2]) / inside
                exponent = r1 * (x1 - k1) ** 2 + r2 * (x2 - k2) ** 2 + mpmath.mpf(r1) / d * (y1 - (k2 - k1)) ** 2
                total += prior * mpmath.exp(-exponent)
            totals.append(total)
        if totals[0] + totals[1] == 0:
            return
        expected = p * totals[1] / (p * totals[1] + (1 - p) * totals[0])
    attack = TwoLevels(r1, r2, d, p, known, CountPrior.read(above))
    found = attack.posterior(x1, x2, y1)
    assert abs(found.belief.posterior - expected) < 1e-12
    assert sum(mass for _, mass in found.top) == pytest.approx(1, abs=1e-12)


@settings(max_examples=often(30), deadline=None)
@given(st.lists(st.floats(0.01, 0.9), min_size=2, max_size=3), st.floats(-9, -3))
def test_small_priors_keep_their_relative_accuracy(levels: list[float], power: float) -> None:
    """Against the moments: for a tiny prior the average ratio is E exp(evidence) less a second-order term."""
    prior = 10.0**power
    with mpmath.workdps(40):
        moments = []
        for order in (1, 2):
            moment = mpmath.mpf(1)
            for rate in levels:
                r, z = mpmath.mpf(rate), mpmath.jtheta(3, 0, mpmath.exp(-mpmath.mpf(rate)))
                terms = (mpmath.exp(-r * n * n + order * r * (2 * n + 1)) for n in range(-200, 201))
                moment *= mpmath.fsum(terms) / z
            moments.append(moment)
        expected, second = moments  # E[1 / (p + (1 - p) / L)] is E[L] but for terms of the order of p E[L^2]
    found = marginal(levels, prior).ratio
    assert abs(found - expected) <= float(prior * (second + expected)) * 1.01 + 1e-10 * float(expected)


@pytest.mark.parametrize("above", ["point:0", "uniform:0"])
def test_a_prior_that_rules_out_a_count_settles_the_matter(above: str) -> None:
    """X2 = 0 means X1 = 0, in either mode, and without a warning."""
    for mode in ("exact", "printed"):
        attack = TwoLevels(0.3, 0.3, 4, above=CountPrior.read(above), mode=mode)
        assert attack.posterior(3, 2, 1).belief.posterior == 0
        assert correct_decision(attack, true2=1).probability < 1e-15


def test_the_joint_posterior_has_the_margins() -> None:
    found = TwoLevels(R1, R2, 27).posterior(2, 1, -1)
    assert sum(mass for k1, _, mass in found.joint if k1 == 1) == pytest.approx(found.belief.posterior, abs=1e-12)
    for k2, mass in found.top:
        assert sum(m for _, k, m in found.joint if k == k2) == pytest.approx(mass, abs=1e-12)
    assert all(k2 >= k1 for k1, k2, _ in found.joint)


def test_levels_far_above_are_heard() -> None:
    """A release that says 400 at the top, though no level below does: brute force over all counts."""
    levels = [Level(0.1, 0, 5, 0), Level(0.1, 0, 5, 0), Level(100, 200)]
    k2, k3 = np.arange(0, 320)[:, None], np.arange(0, 320)[None, :]
    totals = []
    for k1 in (0, 1):
        logs = (
            -0.1 * k1**2 - 0.1 * k2**2.0 - 100 * (200.0 - k3) ** 2 - 0.02 * (k2 - k1) ** 2.0 - 0.02 * (k3 - k2) ** 2.0
        )
        totals.append(np.logaddexp.reduce(np.where((k2 >= k1) & (k3 >= k2), logs, -np.inf), axis=None))
    expected = 1 / (1 + np.exp(totals[0] - totals[1]))
    assert hierarchy.posterior([[level] for level in levels], 0.5).belief.posterior == pytest.approx(
        float(expected), abs=1e-9
    )


def test_a_plan_holds_for_every_smaller_rho() -> None:
    """The average posterior falls in places: the plan stops before the first rho that breaks the limit."""
    assert marginal([2.787], 1 / 864).posterior > marginal([3.211], 1 / 864).posterior
    limit = 0.003664
    rho = largest_rho(Limit(posterior=limit), 1e-6)
    assert all(marginal([r], 1e-6).posterior <= limit * (1 + 1e-9) for r in np.linspace(rho / 50, rho, 50))
    assert largest_rho(Limit(posterior=0.55), 0.5, shares=(1, 1e-9)) > 0.2


@pytest.mark.slow
def test_little_rho_is_refused_and_not_a_crash() -> None:
    for make in (
        lambda: correct_decision(TwoLevels(1e-6, 1e-6, 27), true2=10),
        lambda: post_processing(1e-7, 0.5, 27, 5),
    ):
        with pytest.raises(InputError, match="next to nothing"):
            make()
    assert TwoLevels(0.1, 0.1, 27, above=CountPrior.read("point:1000000000")).posterior(1, 1, 1).top == ((10**9, 1.0),)
    assert post_processing(0.1, 0.5, 27, 10**9).processed.posterior >= 0.5
    assert TwoLevels(1e-6, 1e-6, 100_000).posterior(1, 1, 1).belief.posterior == pytest.approx(0.5, abs=1e-3)


# Laws and oracles


def test_the_gibbs_sampler_agrees_and_the_forgetful_one_prints_the_paper() -> None:
    """Oracle: the paper's own sampler, within five standard errors (draws are correlated: a generous one)."""
    for release in ((2, 1, -1), (0, 3, 2), (1, 0, 4)):
        for forget, mode in ((False, "exact"), (True, "printed")):
            estimate = share_of_ones(R1, R2, 27, 0.5, *release, draws=400_000, seed=3, forget=forget)
            expected = TwoLevels(R1, R2, 27, mode=mode).posterior(*release).belief.posterior
            assert abs(estimate - expected) < 5 * 2 * (0.25 / 400_000) ** 0.5


def picks_larger(attack: TwoLevels, x1: int, x2: int, y1: int) -> bool:
    """Whether the adversary picks 1, from S3.4 or from the sampler's two-state chain, term by term."""
    r1, r2, d, p = attack.rate1, attack.rate2, attack.others, attack.prior
    k2 = np.arange(0, 60)
    weights = []
    for k1 in (0, 1):
        w = np.exp(-r2 * (x2 - k2) ** 2.0 - r1 / d * (y1 - (k2 - k1)) ** 2.0) * (k2 >= k1)
        weights.append(w)
    own = p / (1 - p) * np.exp(-r1 * ((x1 - 1) ** 2 - x1**2))
    if attack.mode == "exact":
        return bool(own * weights[1].sum() > weights[0].sum())
    odds = own * np.exp(-r1 / d * ((y1 - k2 + 1) ** 2.0 - (y1 - k2) ** 2.0))
    up = (weights[0] / weights[0].sum()) @ (odds / (1 + odds))
    down = (weights[1] / weights[1].sum()) @ (1 / (1 + odds))
    return bool(up > down)


@settings(max_examples=8, deadline=None)
@given(
    st.floats(0.3, 1),
    st.floats(0.3, 1),
    st.integers(1, 3),
    st.floats(0.1, 0.9),
    st.integers(1, 4),
    st.sampled_from(["exact", "printed"]),
)
def test_correct_decisions_equal_enumeration(r1: float, r2: float, d: int, p: float, true2: int, mode: str) -> None:
    """Brute force: every likely release, decided one at a time by code of its own."""
    attack = TwoLevels(r1, r2, d, p, mode=mode)
    own, above = DiscreteGaussian(r1), DiscreteGaussian(r2)
    single = own.mass(np.arange(-9, 10))
    sums = np.ones(1)
    for _ in range(d):
        sums = np.convolve(sums, single)
    right = mass = 0.0
    for n1, n2 in product(range(-6, 7), range(-6, 7)):
        for n3 in range(-9, 10):
            weight = float(own.mass(n1) * above.mass(n2)) * sums[n3 + len(sums) // 2]
            mass += weight
            right += weight * picks_larger(attack, 1 + n1, true2 + n2, true2 - 1 + n3)
    assert mass > 0.999
    found = correct_decision(attack, true2=true2)
    assert right - 1e-9 <= found.probability <= right + (1 - mass) + 1e-9
    assert found.probability == pytest.approx(decide([r1], p).probability + found.gained - found.lost, abs=1e-12)
    assert found.outside < 1e-13


@settings(max_examples=often(20), deadline=None)
@given(rates, priors, st.integers(1, 3))
def test_the_average_is_a_sum_over_the_noise_and_simulation_agrees(rate: float, prior: float, levels: int) -> None:
    """The noises are added up exactly; draws then lie within Bernstein's bound, which no run may break (1e-9)."""
    reach = int((45 / rate) ** 0.5) + 2
    single = DiscreteGaussian(rate).mass(np.arange(-reach, reach + 1))
    masses = np.ones(1)
    for _ in range(levels):
        masses = np.convolve(masses, single)

    def belief(noise: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-(log(prior / (1 - prior)) + rate * (2 * noise + levels))))

    beliefs = belief(np.arange(-reach * levels, reach * levels + 1))
    average = float(masses @ beliefs)
    assert marginal([rate] * levels, prior).posterior == pytest.approx(average, rel=1e-12)

    size, surprise = 4000, log(2 / 1e-9)
    rng = np.random.default_rng(5)
    drawn = belief(np.sum([simulate(DiscreteGaussian(rate), size, rng) for _ in range(levels)], axis=0))
    variance = float(masses @ (beliefs - average) ** 2)
    assert abs(drawn.mean() - average) < (2 * variance * surprise / size) ** 0.5 + 2 * surprise / (3 * size)


@settings(max_examples=often(60), deadline=None)
@given(rates, priors, st.lists(st.integers(-5, 6), min_size=1, max_size=4))
def test_risks_of_releases_multiply_with_the_updated_prior(rate: float, prior: float, noisy: list[int]) -> None:
    """S5.8."""
    together = posterior_of_releases([rate] * len(noisy), prior, noisy)
    belief, ratio = prior, 1.0
    for x in noisy:
        if not 1e-7 < belief < 1 - 1e-7:
            return  # passing through near certainty, a belief no longer carries the odds in double precision
        step = onelevel.posterior(rate, belief, x)
        belief, ratio = step.posterior, ratio * step.ratio
    assert together.posterior == pytest.approx(belief, rel=1e-6, abs=1e-12)
    assert together.ratio == pytest.approx(ratio, rel=1e-6)


@settings(max_examples=often(60), deadline=None)
@given(rates, priors, st.integers(0, 50), st.integers(-10, 10))
def test_only_the_distance_from_the_known_count_matters(rate: float, prior: float, known: int, noise: int) -> None:
    """S1.1: a target who is not unique has the same risk; everything is shifted."""
    assert onelevel.posterior(rate, prior, known + noise, known) == onelevel.posterior(rate, prior, noise)
    here, there = decide([rate], prior, known), decide([rate], prior)
    assert here.probability == there.probability
    assert here.threshold is not None and there.threshold is not None
    assert here.threshold == known + there.threshold
    shifted = TwoLevels(rate, rate, 3, prior, known).posterior(known + noise, known + 2, 1)
    assert shifted.belief.posterior == pytest.approx(
        TwoLevels(rate, rate, 3, prior).posterior(noise, 2, 1).belief.posterior, abs=1e-12
    )


@settings(max_examples=often(40), deadline=None)
@given(st.lists(rates, min_size=1, max_size=4), priors)
def test_more_evidence_never_lowers_the_average_belief_in_the_truth(levels: list[float], prior: float) -> None:
    beliefs = [prior, *(marginal(levels[:n], prior).posterior for n in range(1, len(levels) + 1))]
    assert all(after >= before - 1e-12 for before, after in pairwise(beliefs))
    assert beliefs[-1] <= 1


@settings(max_examples=often(25), deadline=None)
@given(
    st.floats(0.05, 1),
    st.floats(0.05, 1),
    st.floats(0.05, 1),
    priors,
    st.integers(-2, 4),
    st.integers(-2, 6),
    st.integers(-2, 8),
)
def test_three_levels_by_brute_force(r1: float, r2: float, r3: float, p: float, x1: int, x2: int, x3: int) -> None:
    """Beyond the paper: messages passed upwards equal the sum over all (X1, X2, X3)."""
    levels = [Level(r1, x1, 3, 2), Level(r2, x2, 2, 1), Level(r3, x3)]
    totals = np.zeros(2)
    for k1 in (0, 1):
        for k2 in range(k1, 70):
            for k3 in range(k2, 90):
                exponent = r1 * (x1 - k1) ** 2 + r2 * (x2 - k2) ** 2 + r3 * (x3 - k3) ** 2
                exponent += r1 / 3 * (2 - (k2 - k1)) ** 2 + r2 / 2 * (1 - (k3 - k2)) ** 2
                totals[k1] += np.exp(-exponent)
    expected = p * totals[1] / (p * totals[1] + (1 - p) * totals[0])
    found = hierarchy.posterior([[level] for level in levels], p)
    assert found.belief.posterior == pytest.approx(expected, abs=1e-9)


def test_levels_without_other_groups_add_their_evidence() -> None:
    """A group that is all of the level above: both noisy counts are of the same count."""
    found = hierarchy.posterior([[Level(0.3, 2)], [Level(0.7, 0)]], 0.3)
    assert found.belief.posterior == pytest.approx(posterior_of_releases([0.3, 0.7], 0.3, [2, 0]).posterior, abs=1e-14)


@settings(max_examples=often(25), deadline=None)
@given(
    st.floats(0.03, 3),
    priors,
    st.integers(1, 30),
    st.integers(0, 90),
    st.sampled_from(["half-even", "half-up", "half-down"]),
)
def test_post_processing_never_passes_the_valid_bound(
    rate: float, prior: float, others: int, total: int, rounding: str
) -> None:
    found = post_processing(rate, prior, others, total, rounding=rounding)
    assert prior - 1e-12 <= found.processed.posterior <= found.x1_and_others.posterior + 1e-12
    assert found.x1_alone.posterior <= found.x1_and_others.posterior + 1e-12


def test_post_processing_by_hand() -> None:
    """Oracle: the fit, the cut and the rounding of eq. S6.3, one release at a time."""
    rate, others, total = 0.4, 4, 3
    own, other = DiscreteGaussian(rate), DiscreteGaussian(rate / others)
    seen = np.zeros((2, total + 1))
    for x1 in range(-12, 14):
        for y1 in range(-25, 27):
            fitted = round(min(max((others * x1 + total - y1) / (others + 1), 0), total))
            for k in (0, 1):
                seen[k, fitted] += float(own.mass(x1 - k) * other.mass(y1 - (1 - k)))
    expected = sum(seen[1] * 0.5 * seen[1] / (0.5 * seen[1] + 0.5 * seen[0]))
    assert post_processing(rate, 0.5, others, total).processed.posterior == pytest.approx(expected, abs=1e-9)


@settings(max_examples=often(8), deadline=None)
@given(st.floats(0.05, 0.95), st.floats(1.01, 1.8), st.lists(st.floats(0.1, 1), min_size=1, max_size=3))
def test_a_plan_spends_just_what_the_limit_allows(prior: float, ratio: float, shares: list[float]) -> None:
    limit = Limit(ratio=ratio)
    if ratio * prior * 1.01 >= 0.99:
        return
    rho = largest_rho(limit, prior, shares=shares)
    found = marginal([rho * share / sum(shares) for share in shares], prior)
    assert found.ratio == pytest.approx(ratio, rel=1e-6)
    assert largest_rho(Limit(ratio=ratio * 1.01), prior, shares=shares) > rho


def test_a_plan_reads_its_total() -> None:
    found = plan(Limit(posterior=0.55), 0.5, ["block", "tract"], unique=True, shares={"block": 2, "tract": 1})
    assert found.levels[0].rho == pytest.approx(2 * found.levels[1].rho)
    assert found.levels[-1].posterior == pytest.approx(0.55, abs=1e-9)
    assert found.total == pytest.approx(sum(row.rho for row in found.levels))
    assert found.epsilon > found.epsilon_tight > 0
    assert found.power < found.power_bound
    alone, together = assess(allocation("paper-2020"), "detailed", 0.5)
    assert alone.levels[0].posterior == together.levels[0].posterior == marginal([R1], 0.5).posterior
    assert together.levels[-1].posterior > alone.levels[-1].posterior
    with pytest.raises(InputError, match="never comes to pass this limit; no noise is needed"):
        plan(Limit(ratio=3), 0.5, ["block"])


def test_the_decision_map_is_the_posterior() -> None:
    attack = TwoLevels(R1, R2, 27)
    decisions = decision_map(attack, range(-1, 3), range(-1, 3), range(-3, 4))
    for i, j, k in product(range(4), range(4), range(7)):
        believed = attack.posterior(i - 1, j - 1, k - 3).belief.posterior
        assert decisions[i, j, k] == (believed > 0.5)


def test_the_worked_example_of_the_paper() -> None:
    """Enumeration district 28-21: 45 persons, one of them unique (Table 3)."""
    scenario = load("gvhr-1940")
    assert scenario.schema.size() == 864
    from glasshouse.files.records import open_records

    people = pl.concat(list(open_records(ROOT / "examples" / "district-28-21" / "records.csv", scenario).frames()))
    names = [attribute.name for attribute in scenario.schema.attributes]
    rates = {"district": R1, "county": R2}
    found = exposure(people, names, scenario.geography, rates, 0.5, whole="county")
    assert [(row.levels, row.persons) for row in found.rows] == [(0, 44), (2, 1)]
    assert found.share_above(0.55) == pytest.approx(1 / 45)
    # the one black person is alone without the voting age, but there are 35 of voting age, of whatever race
    assert found.by_attribute == {"gq": (1, 1), "voting_age": (1, 1), "hispanic": (1, 1), "race": (0, 0)}
    alone = exposure(people, names, scenario.geography, rates, 0.5)  # one district of the county is not the county
    assert alone.levels == ("district",) and alone.share_above(0.55) == 0


PEOPLE = pl.DataFrame(
    {
        "geoid": ["010010001001001", "010010001001001", "010010001001002", "010010001002001", "020010001001001"],
        "c": [1, 2, 1, 3, 3],
    }
)
BLOCK_TO_NATION = {"block": 0.1, "tract": 0.1, "nation": 0.1}


def test_exposure_counts_uniques_level_by_level() -> None:
    geography = load("pl94").geography
    found = exposure(PEOPLE, ["c"], geography, BLOCK_TO_NATION, 0.5, unknown="none", whole="nation")
    # c = 2 is unique in the nation; both 1s in their blocks; both 3s in their tracts
    assert {row.levels: row.persons for row in found.rows} == {1: 2, 2: 2, 3: 1}
    found = exposure(PEOPLE, ["c"], geography, BLOCK_TO_NATION, 0.5, whole="nation")
    # if c itself is to be learnt, one must be alone in the place: a block's only person, and a tract's
    assert {row.levels: row.persons for row in found.rows} == {0: 2, 1: 2, 2: 1}


kinds = st.tuples(st.sampled_from(["01001000100100", "01001000200100", "01003000100100"]), *[st.integers(0, 2)] * 4)


@settings(max_examples=often(60), deadline=None)
@given(st.lists(kinds, min_size=1, max_size=12), st.sampled_from(["any", "a", "c", "none"]))
def test_uniqueness_is_in_all_attributes_but_one(drawn: list[tuple[str, int, int, int, int]], unknown: str) -> None:
    """S1.3, by comparing everybody with everybody."""
    people = pl.DataFrame(
        [(prefix + str(last), *rest) for prefix, last, *rest in drawn], schema=["geoid", "a", "b", "c"], orient="row"
    )
    rates = {"block": 0.1, "tract": 0.2, "county": 0.3, "state": 0.4}
    lengths = {"block": 15, "tract": 11, "county": 5, "state": 2}
    codes = people["geoid"].to_list()
    spoken = ["block"]
    for level in ("tract", "county", "state"):
        if len({code[: lengths[level]] for code in codes}) == 1:
            break
        spoken.append(level)
    rows = people.rows()
    expected: dict[int, int] = {}
    for person in rows:
        depths = []
        for left_out in {"any": (1, 2, 3), "a": (1,), "c": (3,), "none": (0,)}[unknown]:
            known = [column for column in (1, 2, 3) if column != left_out]
            depth = 0
            for level in spoken:
                alike = [
                    other
                    for other in rows
                    if other[0][: lengths[level]] == person[0][: lengths[level]]
                    and all(other[column] == person[column] for column in known)
                ]
                if len(alike) > 1:
                    break
                depth += 1
            depths.append(depth)
        expected[max(depths)] = expected.get(max(depths), 0) + 1
    found = exposure(people, ["a", "b", "c"], load("pl94").geography, rates, 0.5, unknown=unknown)
    assert found.levels == tuple(spoken)
    assert {row.levels: row.persons for row in found.rows} == expected
    for row in found.rows:
        seen = [rates[level] for level in spoken[: max(row.levels, 1)]]
        assert row.posterior == marginal(seen, 0.5).posterior
    assert found.unique_up_to[0] == sum(persons for depth, persons in expected.items() if depth >= 1)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"unknown": "sex"}, "unknown attribute 'sex'; known: any, c, none"),
        ({"whole": "county"}, "unknown level 'county'"),
        ({"rates": {"tract": 0.1, "block": 0.1}}, "expected the finest first, each once"),
        ({"rates": {"nation": 0.1, "block": 0.1}}, "expected the finest first, each once"),
        ({"attributes": []}, "there is none that an adversary could learn"),
    ],
)
def test_a_question_about_persons_that_makes_no_sense_is_refused(asked: dict[str, object], message: str) -> None:
    given = {"attributes": ["c"], "rates": BLOCK_TO_NATION, "prior": 0.5, **asked}
    with pytest.raises(InputError, match=message):
        exposure(PEOPLE, geography=load("pl94").geography, **given)  # type: ignore[arg-type]


def test_a_file_of_one_county_says_nothing_of_the_nation(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It was said to hold people unique at six levels."""
    blocks = ("010010001001001", "010010001002001", "010010002001001")
    kinds = product(blocks, ("male", "female"), (5, 40), ("1,0", "0,1"), (0, 1))  # each once in each block
    lines = [f"{block},{sex},{age},{races},0,0,0,0,{hispanic}" for block, sex, age, races, hispanic in kinds]
    header = "block,sex,age,white,black,aian,asian,nhopi,sor,hispanic"
    (tmp_path / "county.csv").write_text("\n".join([header, *lines, "010010001001001,male,90,0,1,0,0,0,0,1"]) + "\n")
    asked = ["data", str(tmp_path / "county.csv"), "--scenario", "sf1-person"]
    found = said(capsys, *asked)
    assert found["levels"] == ["block", "block_group", "tract"]
    assert found["left_out"] == ["county", "state", "nation"]
    assert found["unique_up_to"] == {"block": 1, "block_group": 1, "tract": 1}
    assert main(["infer", *asked]) == 0
    told = capsys.readouterr().out
    assert "not counted: county, state, nation; the file has one place there" in told
    whole = said(capsys, *asked, "--whole", "county")
    assert whole["levels"] == ["block", "block_group", "tract", "county"]
    assert whole["unique_up_to"]["county"] == 1  # type: ignore[index]
    assert said(capsys, *asked, "--unknown", "none")["unique_up_to"]["block"] == 49  # type: ignore[index]


def test_a_matrix_of_counts_is_as_good_as_records(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The Franklin matrix of the relocation study: 284 tracts, 1,138,011 people, 684 of them unique (FINDINGS E)."""
    arguments = ["--matrix", "--scenario", "pl94", "--levels", "tract,county", "--json"]
    assert main(["infer", "data", str(data / "franklin" / "tract_ver.csv"), *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["persons"] == 1_138_011 and found["unique_up_to"] == {"tract": 0}  # nobody is alone in a tract
    arguments += ["--unknown", "none"]
    assert main(["infer", "data", str(data / "franklin" / "tract_ver.csv"), *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (
        sum(row["persons"] for row in found["exposed"] if row["levels"] >= 1) == found["unique_up_to"]["tract"] == 684
    )
    assert main(["infer", "data", str(data / "franklin" / "tract_ver.csv"), *arguments, "--sample", "5000"]) == 0
    assert json.loads(capsys.readouterr().out)["persons"] == 5000
    (tmp_path / "bad.csv").write_text("tract,a,b\n39049000110,1,2\n39049000120,x,2\n")
    assert main(["infer", "data", str(tmp_path / "bad.csv"), *arguments]) == 2
    assert "line 3: column 'a' is 'x'" in capsys.readouterr().err


# Bad input and the command line


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: onelevel.posterior(0.1, 0, 2), "prior is 0; expected a probability between 0 and 1"),
        (lambda: onelevel.posterior(0.1, 1, 2), "prior is 1"),
        (lambda: onelevel.posterior(0.1, float("nan"), 2), "expected a probability"),
        (lambda: onelevel.posterior(0.1, 0.5, 2.5), "noisy count is 2.5; expected a whole number"),
        (lambda: onelevel.posterior(0.1, 0.5, float("inf")), "expected a whole number"),
        (lambda: onelevel.posterior(0.1, 0.5, 1e16), "at most 10"),
        (lambda: onelevel.posterior(-0.1, 0.5, 2), "rho is -0.1"),
        (lambda: onelevel.posterior(0.1, 0.5, 2, -1), "known count is -1; expected at least 0"),
        (lambda: TwoLevels(0.1, 0.1, -1), "number of other groups is -1; expected at least 1"),
        (lambda: TwoLevels(0.1, 0.1, 3, mode="paper"), "unknown mode 'paper'; known: exact, printed"),
        (lambda: correct_decision(TwoLevels(0.1, 0.1, 3), true2=0), "expected at least 1, the count of the group"),
        (lambda: correct_decision(TwoLevels(0.1, 0.1, 3), true2=1, ties="mine"), "unknown rule for ties 'mine'"),
        (lambda: correct_decision(TwoLevels(0.0, 0.1, 3), true2=1), "rho is 0 at level 1"),
        (lambda: CountPrior.read("normal:1"), "unknown prior 'normal:1'"),
        (lambda: CountPrior.read("0.5,-0.5"), "must be 0 or more"),
        (lambda: Limit(), "say one limit"),
        (lambda: Limit(ratio=0.9), "expected 1 or more"),
        (lambda: largest_rho(Limit(posterior=0.4), 0.5), "already above the tolerable posterior"),
        (lambda: post_processing(0.1, 0.5, 27, 5, rounding="up"), "unknown rounding 'up'"),
        (lambda: hierarchy.posterior([[Level(0.1, 1, 0, 3)], [Level(0.1, 1)]], 0.5), "has no other groups"),
        (lambda: hierarchy.posterior([], 0.5), "no level is given"),
        (lambda: decide([0.1], 0.5, truth=7), "true count is 7; expected 0 or 1"),
    ],
)
def test_nonsense_is_refused(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]


def test_limits_are_right_and_nothing_overflows() -> None:
    """rho 0 teaches nothing; huge counts and rho are certain; no warning, no NaN (warnings are errors here)."""
    assert onelevel.posterior(0, 0.3, 5).posterior == pytest.approx(0.3, abs=1e-15)
    assert onelevel.posterior(0, 0.3, 5).ratio == pytest.approx(1, abs=1e-14)
    assert marginal([0.0], 0.3) == onelevel.Belief(0.3, 1.0)
    assert decide([0], 0.7).probability == 1
    assert onelevel.posterior(100, 0.5, 10**9).posterior == 1
    assert onelevel.posterior(100, 0.5, -(10**9)).posterior == 0
    assert onelevel.posterior(100, 1e-12, 10**9).ratio == pytest.approx(1e12)
    assert marginal([100.0], 0.001).posterior == pytest.approx(1)
    assert marginal([50.0, 100.0, 1e-6], 0.001).posterior == pytest.approx(1, abs=1e-9)
    assert 0 < marginal([1e-6], 1e-9).ratio < 1.01
    far = TwoLevels(R1, R2, 27).posterior(0, 10**6, -(10**6))
    assert 0 <= far.belief.posterior <= 1
    assert sum(mass for _, mass in far.top) == pytest.approx(1, abs=1e-9)
    certain = correct_decision(TwoLevels(50.0, 50.0, 3), true2=2)
    assert certain.probability == pytest.approx(1)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["infer", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_the_contract_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    one = said(capsys, "posterior", "--rho", "0.0992263542", "--prior", "0.5", "--known", "0", "--noisy", "2")
    assert set(one) == {"posterior", "ratio"}
    assert one["posterior"] == pytest.approx(0.573875, abs=1e-6)
    two_level = ("--rho2", "0.2464845096", "--others", "27", "--noisy2", "1", "--noisy-others", "-1")
    two = said(capsys, "posterior", "--rho", "0.0992263542", "--prior", "1/2", "--noisy", "2", *two_level)
    assert set(two) == {"posterior", "ratio", "x2"}
    assert two["posterior"] == pytest.approx(0.503288, abs=1e-6)
    assert two["x2"][1][0] == 1  # type: ignore[index]
    chain = said(capsys, "posterior", "--level", "0.0992263542:2:27:-1", "--level", "0.2464845096:1")
    assert chain["posterior"] == pytest.approx(two["posterior"], abs=1e-12)
    risk = said(capsys, "risk", "--rho", "0.0992263542", "--prior", "1/10")
    assert risk == {"posterior": pytest.approx(0.11676, abs=1e-5), "risk": pytest.approx(1.1676, abs=1e-4)}
    assert said(capsys, "decide", "--rho", "0.0992263542")["threshold"] == 1
    levels = ("--rho2", "0.2464845096", "--others", "27", "--true2", "1")
    printed = said(capsys, "decide", "--rho", "0.0992263542", *levels, "--mode", "printed", "--ties", "one")
    assert printed["probability"] == pytest.approx(0.5946, abs=1e-4)
    counter = said(capsys, "decide", "--rho", "0.1", "--true1", "0")
    assert counter["probability"] == pytest.approx(1 - DiscreteGaussian(0.1).at_least(1))
    plans = said(capsys, "plan", "--posterior", "0.55", "--levels", "block,tract", "--prior", "0.5", "--prior", "0.4")
    assert len(plans["plans"]) == 2  # type: ignore[arg-type]
    budget = said(capsys, "plan", "--allocation", "pl94-2020")
    assert budget["neighbours"] == "change-one"
    tidied = said(capsys, "postprocess", "--rho", "0.0992263542", "--others", "27", "--total", "71")
    assert tidied["claimed_bound"] < tidied["posterior"] < tidied["bound"]  # type: ignore[operator]
    assert said(capsys, "noise", "--rho", "1", "--others", "5")["approximation_error"] > 1e-4  # type: ignore[operator]
    believed = said(capsys, "posterior", "--rho", "0.1", "--noisy", "2", "--true1", "0")
    assert believed["belief_in_truth"] == 1 - believed["posterior"]  # type: ignore[operator]
    some = said(capsys, "plan", "--allocation", "paper-2020", "--levels", "block,tract")
    assert [row["level"] for row in some["plans"][0]["alone"]["levels"]] == ["block", "tract"]  # type: ignore[index]
    named = said(capsys, "risk", "--rho", "0.1", "--attack", "participation")
    assert named["belief"] == "the target filled out the census at all"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["risk", "--rho", "much"], "rho is 'much'; expected a decimal or a fraction"),
        (["risk", "--rho", "0.1", "--prior", "2"], "the prior is 2.0"),
        (["posterior", "--rho", "0.1"], "--rho and --noisy are needed"),
        (["posterior", "--rho", "0.1", "--noisy", "1", "--rho2", "0.1"], "two levels need --others"),
        (["posterior", "--level", "0.1"], "expected RHO:NOISY"),
        (["plan"], "say a limit"),
        (["plan", "--allocation", "pl94-2020", "--neighbours", "add-remove"], "leave out --neighbours"),
        (["plan", "--allocation", "pl94-2020", "--posterior", "0.55"], "add --unique"),
        (["plan", "--ratio", "nan"], "the largest tolerable ratio is 'nan'"),
        (["decide", "--rho", "0.1", "--ties", "mine"], "unknown --ties 'mine'"),
        (["decide", "--rho", "0.1", "--true2", "3"], "--true2 speaks of the level above"),
        (["posterior", "--rho", "0.1", "--noisy", "1", "--mode", "paper"], "unknown --mode 'paper'"),
        (["posterior", "--level", "0.1:1", "--level", "0.1:2:3:4"], "the last level has no level above it"),
        (["risk", "--rho", "0.1", "--attack", "burglary"], "unknown --attack 'burglary'"),
        (["postprocess", "--rho", "0.1", "--others", "0", "--total", "3"], "number of other groups is 0"),
        (["plan", "--allocation", "mine"], "unknown budget 'mine'"),
        (["figures", "--out", "x", "--only", "13"], "unknown figure '13'"),
        (["decide", "--rho", "0.1", "--neighbours", "none"], "unknown --neighbours 'none'"),
    ],
)
def test_the_command_line_refuses_nonsense(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["infer", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_people_can_read_the_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer"]) == 0
    assert "posterior" in capsys.readouterr().out
    records = str(ROOT / "examples" / "district-28-21" / "records.csv")
    levels = ["--levels", "district=block,county=block_group", "--whole", "county"]
    assert main(["infer", "data", records, "--scenario", "gvhr-1940", *levels]) == 0
    assert "unique at 2 levels: 1 person," in capsys.readouterr().out
    assert main(["infer", "plan", "--allocation", "paper-2020"]) == 0
    assert "epsilon" in capsys.readouterr().out


@pytest.mark.parametrize("number", ["1", "2", "3", "4", "7", "8", "9", "10", "11", "12"])
def test_figures_are_drawn_with_their_data(number: str, tmp_path: Path) -> None:
    assert main(["infer", "figures", "--out", str(tmp_path / "figures"), "--only", number, "--quiet"]) == 0
    picture = tmp_path / "figures" / f"figure-{int(number):02d}.svg"
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    assert picture.stat().st_mode & 0o777 == 0o600
    assert pl.read_csv(picture.with_suffix(".csv")).height > 5


def test_the_paper_has_twelve_figures() -> None:
    assert list(FIGURES) == [str(number) for number in range(1, 13)]
