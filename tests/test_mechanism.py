"""Is the noise what it says, and its price? Against 50-digit arithmetic and published numbers."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.errors import InputError
from glasshouse.mechanism.account import (
    Ledger,
    allocation,
    epsilon,
    epsilon_tight,
    fraction,
    known_allocations,
    membership_power,
    membership_power_bound,
)
from glasshouse.mechanism.gaussian import DiscreteGaussian, approximation_error, rate_of, sum_of
from glasshouse.mechanism.sampler import draw_securely, simulate
from tests.often import often

rates = st.floats(-6, 2).map(lambda power: 10.0**power)


def exact_mass(rate: float, noise: int) -> mpmath.mpf:
    with mpmath.workdps(50):
        q = mpmath.exp(-mpmath.mpf(rate))
        return q ** (noise * noise) / mpmath.jtheta(3, 0, q)


@settings(max_examples=often(60), deadline=None)
@given(rates, st.floats(-4, 4))
def test_the_mass_is_exact_to_double_precision(rate: float, deviations: float) -> None:
    noise = int(deviations * sqrt(1 / (2 * rate)))
    expected = exact_mass(rate, noise)
    found = float(DiscreteGaussian(rate).mass(noise))
    assert abs(found - expected) <= 1e-13 * expected


@settings(max_examples=often(40), deadline=None)
@given(rates, st.floats(-3, 3))
def test_tails_add_up(rate: float, deviations: float) -> None:
    noise = DiscreteGaussian(rate)
    bound = deviations * sqrt(1 / (2 * rate))
    values = noise.window()
    assert noise.at_least(bound) == pytest.approx(float(noise.mass(values[values >= bound]).sum()), abs=1e-14)
    assert noise.at_least(-float("inf")) == pytest.approx(1, abs=1e-13)
    assert noise.at_least(float("inf")) == 0
    assert noise.mass(values).sum() == pytest.approx(1, abs=1e-13)


def test_variance_bounds_of_the_supplement() -> None:
    """Golden: paper 001, S2: |variance - s| < 0.002 for s > 1/2 and < 10^-6 for s > 1."""
    gaps = {s: abs(DiscreteGaussian(1 / (2 * s)).variance - s) for s in np.linspace(0.501, 5, 400)}
    assert max(gaps.values()) < 0.002
    assert max(gap for s, gap in gaps.items() if s > 1) < 1e-6


@settings(max_examples=often(25), deadline=None)
@given(st.floats(0.02, 3), st.integers(1, 6))
def test_sums_of_noise_are_convolutions(rate: float, count: int) -> None:
    one = DiscreteGaussian(rate)
    expected = np.ones(1)
    for _ in range(count):
        expected = np.convolve(expected, one.mass(one.window()))
    radius = len(expected) // 2
    values = np.arange(-min(radius, 20), min(radius, 20) + 1)
    found = np.exp(sum_of(rate, count).log_mass(values))
    assert found == pytest.approx(expected[values + radius], rel=1e-10, abs=1e-15)


def test_the_approximation_of_sums_and_its_error() -> None:
    """Paper 001, 3.7: excellent at the census's rho with 27 groups, visible at rho 1 with 5."""
    assert approximation_error(float(allocation("paper-2020").rho("block", "detailed")), 27) < 1e-12
    assert 1e-4 < approximation_error(1.0, 5) < 1e-2
    assert approximation_error(3.0, 5) > approximation_error(1.0, 5)


@pytest.mark.parametrize(
    ("rate", "count"), [(1e-6, 27), (1e-4, 27), (0.1, 100_000), (0.2, 5), (3.0, 5), (50.0, 27), (100.0, 27)]
)
def test_sums_of_noise_have_the_right_mass_and_variance(rate: float, count: int) -> None:
    sums = sum_of(rate, count)
    values = sums.window(1e-25)
    masses = np.exp(sums.log_mass(values))
    assert masses.sum() == pytest.approx(1, abs=1e-11)
    spread = float(np.square(values.astype(np.float64)) @ masses)
    assert spread == pytest.approx(count * DiscreteGaussian(rate).variance, rel=1e-9)


@pytest.mark.parametrize(
    ("rate", "count", "noise"),
    [(100.0, 27, 1), (50.0, 27, 2), (50.0, 4, 9), (3.0, 5, 40), (0.2, 5, 40), (1e-4, 27, 3700)],
)
def test_sums_of_noise_are_exact_far_out(rate: float, count: int, noise: int) -> None:
    """Against the definition in 60 digits, where masses are as small as exp(-1000): no tail is cut off."""
    with mpmath.workdps(60):
        if rate < 0.01:  # too wide to list; by Poisson summation it is a discrete Gaussian of its own
            expected = -mpmath.mpf(rate) / count * noise**2 - mpmath.log(
                mpmath.jtheta(3, 0, mpmath.exp(-mpmath.mpf(rate) / count))
            )
        else:
            reach = noise + 6
            one = {n: mpmath.exp(-mpmath.mpf(rate) * n * n) for n in range(-reach, reach + 1)}
            total = dict(one)
            for _ in range(count - 1):
                grown: dict[int, mpmath.mpf] = {}
                for a, p in total.items():
                    if abs(a) <= reach:
                        for b in range(-reach, reach + 1):
                            if abs(a + b) <= reach:
                                grown[a + b] = grown.get(a + b, mpmath.mpf(0)) + p * one.get(
                                    b, mpmath.exp(-mpmath.mpf(rate) * b * b)
                                )
                total = grown
            expected = mpmath.log(total[noise]) - count * mpmath.log(mpmath.jtheta(3, 0, mpmath.exp(-mpmath.mpf(rate))))
    found = float(sum_of(rate, count).log_mass(np.array([noise]))[0])
    assert abs(found - expected) < 1e-9 * max(1, abs(expected))


@pytest.mark.parametrize("rate", [0.05, 1.0])
def test_the_simulator_and_the_secure_source_draw_the_same_noise(rate: float) -> None:
    """Unbiased and of the right variance, within five standard errors."""
    noise = DiscreteGaussian(rate)
    drawn = simulate(noise, 40_000, np.random.default_rng(1))
    secure = draw_securely(noise, 4_000)
    for sample in (drawn, secure):
        assert abs(sample.mean()) < 5 * sqrt(noise.variance / len(sample))
        assert abs(sample.var() - noise.variance) < 5 * noise.variance * sqrt(3 / len(sample))
    assert (simulate(noise, 50, np.random.default_rng(1)) == drawn[:50]).all()


def test_epsilon_of_the_census() -> None:
    """Golden: rho 2.56 at delta 1e-10 is epsilon 17.91 (paper 001, section 2.3); FINDINGS D: 17.91528."""
    assert epsilon(2.56, 1e-10) == pytest.approx(17.91528, abs=5e-6)
    assert epsilon_tight(2.56, 1e-10) < epsilon(2.56, 1e-10)
    assert epsilon(0, 1e-10) == epsilon_tight(0, 1e-10) == 0


@settings(max_examples=often(40), deadline=None)
@given(st.floats(1e-4, 30), st.floats(-12, -2))
def test_the_tighter_epsilon_is_smaller_and_still_true_of_a_gaussian(rho: float, power: float) -> None:
    """Law: it lies between the exact epsilon of Gaussian noise (Balle and Wang) and the simple bound."""
    delta = 10.0**power
    tight = epsilon_tight(rho, delta)
    assert 0 <= tight <= epsilon(rho, delta) + 1e-9
    mu = sqrt(2 * rho)
    with mpmath.workdps(40):
        attained = mpmath.ncdf(mu / 2 - tight / mu) - mpmath.exp(tight) * mpmath.ncdf(-mu / 2 - tight / mu)
    assert attained <= delta * (1 + 1e-6)


@settings(max_examples=often(30), deadline=None)
@given(st.floats(0, 12), st.floats(0.001, 0.3))
def test_no_test_passes_the_bound_on_its_power(rho: float, significance: float) -> None:
    gaussian, bound = membership_power(rho, significance), membership_power_bound(rho, significance)
    assert significance - 1e-12 <= gaussian <= bound + 1e-9
    assert bound <= 1


def test_the_power_bound_becomes_trivial_at_budgets_used_in_practice() -> None:
    """Abowd et al., supplement: with budgets in use the bound on the power is close to 1."""
    assert membership_power_bound(0.001) < 0.02
    everything = sum(float(rho) for rho in (Fraction("2.63"), Fraction("4.9622"), Fraction("7.7005")))
    assert 0.99 < membership_power(everything) <= membership_power_bound(everything)


def test_the_level_budgets_are_exact_fractions() -> None:
    """Golden: FINDINGS D: block 0.0992263542, block group 0.2464845096; Table 2 to four digits."""
    budget = allocation("paper-2020")
    assert budget.rho("block", "detailed") == Fraction("2.56") * Fraction(165, 4099) * Fraction(3945, 4097)
    assert float(budget.rho("block", "detailed")) == pytest.approx(0.0992263542, abs=5e-11)
    assert float(budget.rho("block_group", "detailed")) == pytest.approx(0.2464845096, abs=5e-11)
    printed = {
        "nation": 0.0509,
        "state": 0.0505,
        "county": 0.0514,
        "tract": 0.0504,
        "block_group": 0.2465,
        "block": 0.0992,
    }
    assert {level: round(float(rho), 4) for level, rho in budget.rhos("detailed").items()} == printed
    assert sum(budget.levels.values()) == 1


@pytest.mark.parametrize("name", ["pl94-2020", "pl94-2020-pr", "dhc-persons-2020", "dhc-units-2020"])
def test_a_production_budget_spends_all_of_itself(name: str) -> None:
    """Golden: shared/data/dhc_spec/das_budgets.md, section 1; not the paper's 2.56."""
    budget = allocation(name)
    assert not name.startswith("pl94") or budget.total == Fraction(293764, 114921)
    ledger = Ledger(budget.total)
    for level in budget.levels:
        for query in budget.queries:
            ledger.spend(f"{query} at {level}", budget.rho(level, query))
    assert ledger.left == 0
    with pytest.raises(InputError, match="asks for rho 1/1000 and 0 is left"):
        ledger.spend("one more", Fraction(1, 1000))
    assert budget.neighbours == "change-one"
    assert rate_of(0.2, "change-one") == 0.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: allocation("pl94-2030"),
            "unknown budget 'pl94-2030'; known: dhc-persons-2020, dhc-units-2020, occupancy-2020",
        ),
        (lambda: fraction("a lot", "rho"), "rho is 'a lot'; expected a decimal or a fraction"),
        (lambda: fraction("1/0", "rho"), "expected a decimal or a fraction"),
        (lambda: epsilon(-1, 1e-10), "rho is -1; expected a number from 0 up"),
        (lambda: epsilon(float("nan"), 1e-10), "expected a number from 0 up"),
        (lambda: epsilon(1, 0), "delta is 0"),
        (lambda: membership_power(1, 1), "significance level is 1"),
        (lambda: rate_of(1, "siblings"), "unknown neighbour relation 'siblings'; known: add-remove, change-one"),
        (lambda: DiscreteGaussian(0), "wider than any count; expected more rho"),
        (lambda: sum_of(1.0, 5000), "exact sums are offered for up to 2,000 groups"),
        (lambda: fraction("0,1", "rho"), "rho is '0,1'"),
        (lambda: fraction("1e400", "rho"), "rho is '1e400'"),
        (lambda: sum_of(1, 3, "roughly"), "unknown sum of noise 'roughly'"),
        (lambda: Ledger(Fraction(1)).spend("x", Fraction(-1)), "cannot spend -1"),
    ],
)
def test_nonsense_is_refused(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'title = "x"\ntotal = "1"\n[levels]\na = "2/3"\nb = "1/2"\n',
            "the shares of the levels add up to 7/6, more than 1",
        ),
        ('title = "x"\ntotal = "0"\n[levels]\na = "1"\n', "the total is 0; expected more than 0"),
        ('title = "x"\n[levels]\na = "1"\n', "expected title, total"),
        ("title = [", "not valid TOML"),
        ('title = "x"\ntotal = "1"\n[levels]\na = "much"\n', "the share of a is 'much'"),
    ],
)
def test_a_budget_of_ones_own_that_does_not_add_up_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        allocation(str(path))


def test_budgets_are_listed() -> None:
    census = ("dhc-persons-2020", "dhc-units-2020", "persons-2020", "pl94-2020", "pl94-2020-pr")
    everything = tuple(sorted((*census, "occupancy-2020", "paper-2020")))
    assert known_allocations() == everything
    for name in everything:
        assert sum(allocation(name).levels.values()) == 1


def test_the_budgets_of_the_characteristics_files() -> None:
    """Golden: shared/data/dhc_spec/das_budgets.md, sections 3 and 4: published 7.70 and 4.96."""
    assert allocation("dhc-units-2020").total == Fraction(15401, 2000)
    assert allocation("dhc-persons-2020").total == Fraction(24811, 5000)
    assert allocation("dhc-persons-2020").rho("block", "detailed") == Fraction(11, 10000)
