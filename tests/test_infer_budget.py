"""Does a whole budget read as the papers say, and does a sweep say what the single questions say?"""

from __future__ import annotations

import re
from fractions import Fraction
from math import exp
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import glasshouse as gh
from glasshouse.cli.main import main
from glasshouse.errors import InputError
from glasshouse.mechanism.account import membership_power, membership_power_bound, membership_power_of_epsilon
from glasshouse.report.theme import LIGHT
from tests.running import good, tool
from tests.test_readme import ROOT, module

made_part = module(ROOT / "docs" / "made_part.py")
page = module(ROOT / "docs" / "make_infer_budget.py")


def test_epsilon_of_the_whole_budget() -> None:
    """Kazan and Reiter, section 2.3: rho 2.56 is epsilon 17.91 (cut off: 17.91528, FINDINGS D) at delta 1e-10."""
    said = good(tool("infer", "epsilon", "--rho", "2.56", "--delta", "1e-10", "--json")).json
    assert said["epsilon"] == pytest.approx(17.91528, abs=5e-6)
    assert (said["rho"], said["neighbours"], said["allocation"]) == ("64/25", "add-remove", None)
    named = gh.infer.epsilon(allocation="paper-2020").summary
    assert named.epsilon == said["epsilon"] and named.allocation == "paper-2020"
    production = gh.infer.epsilon(allocation="pl94-2020").summary
    assert (production.rho, production.neighbours) == ("293764/114921", "change-one")
    assert production.epsilon != named.epsilon and production.protected != named.protected


def test_parts_add_up_exactly_and_their_epsilons_do_not() -> None:
    found = gh.infer.epsilon(rho=["1/10", "0.2", Fraction(7, 10)]).summary
    assert found.rho == "1" and sum(Fraction(one.rho) for one in found.parts) == 1
    assert sum(one.epsilon for one in found.parts) > found.epsilon
    named = gh.infer.epsilon(allocation="paper-2020")
    assert sum(Fraction(rho) for rho in named.parts["rho"]) == Fraction("2.56")
    assert "rho adds up, epsilon does not" in repr(named)


def test_the_significance_of_the_membership_test_is_an_option() -> None:
    for level in (0.01, 0.05, 0.2):
        found = gh.infer.epsilon(rho="2.56", significance=level).summary
        assert found.power == membership_power(2.56, level) and found.power_bound == membership_power_bound(2.56, level)
        (plan,) = gh.infer.plan(posterior=0.55, significance=level).summary.plans
        assert plan.power == membership_power(plan.total, level) and plan.significance == level
        (pair,) = gh.infer.plan(allocation="paper-2020", significance=level).summary.plans
        assert pair["alone"].power == membership_power(pair["alone"].total, level)
    assert "at significance 0.05" in repr(gh.infer.plan(posterior=0.55, significance=0.05))


@pytest.mark.parametrize("level", [0.001, 0.01, 0.3, 0.9])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 17.9])
def test_the_power_that_epsilon_allows_is_reached_by_a_mechanism_that_spends_it(epsilon: float, level: float) -> None:
    """Randomised response with delta: an oracle. Outcomes: sure of each world (delta), else one with odds e^epsilon."""
    delta = 1e-6
    yes = exp(epsilon) / (1 + exp(epsilon))
    here, there = (
        [delta, (1 - delta) * yes, (1 - delta) * (1 - yes), 0],
        [0, (1 - delta) * (1 - yes), (1 - delta) * yes, delta],
    )
    power, spent = 0.0, 0.0
    for p, q in zip(here, there, strict=True):  # the best test takes outcomes by their likelihood ratio
        part = 1.0 if q == 0 else min(1.0, (level - spent) / q)
        power, spent = power + part * p, spent + part * q
    assert membership_power_of_epsilon(epsilon, delta, level) == pytest.approx(power, abs=1e-12)


def test_large_budgets_make_the_bound_by_epsilon_trivial_and_not_that_by_rho() -> None:
    """Paper 000: for budgets in use the bound is "very close to 1.0"."""
    found = gh.infer.epsilon(rho="2.56").summary
    assert found.power_of_epsilon > 0.9999999 and found.power < found.power_bound < 0.7


def test_a_sweep_is_the_single_questions() -> None:
    swept = gh.infer.sweep(rho="0.05,0.5,2", prior="1/10,1/2").sweep
    assert swept.height == 6
    for row in swept.iter_rows(named=True):
        one, right = (
            gh.infer.risk(rho=row["rho"], prior=row["prior"]),
            gh.infer.decide(rho=row["rho"], prior=row["prior"]),
        )
        assert (row["posterior"], row["risk"]) == (one.summary.posterior, one.summary.risk)
        assert row["correct"] == right.summary.probability
    above = {"rho2": "0.2464845096", "others": 27, "true2": 2}
    for row in gh.infer.sweep(rho="0.1,1", prior="0.5", **above).sweep.iter_rows(named=True):
        assert row["correct"] == pytest.approx(gh.infer.decide(rho=row["rho"], **above).summary.probability, abs=1e-12)
        assert row["posterior"] == pytest.approx(gh.infer.risk(rho=row["rho"], **above).summary.posterior, abs=1e-9)


def test_a_sweep_of_a_budget_is_its_plan() -> None:
    """The target is unique at every level of the allocation, whose total for the query is rho."""
    (plans,) = gh.infer.plan(allocation="paper-2020").summary.plans
    whole = plans["unique"]
    found = gh.infer.sweep(rho=str(whole.total), prior="0.5", allocation="paper-2020").sweep
    assert found["posterior"][0] == pytest.approx(whole.levels[-1].posterior, abs=1e-12)


def test_grids_are_even_in_logarithm_and_log_odds(tmp_path: Path) -> None:
    out = tmp_path / "swept"
    assert main(["infer", "sweep", "--rho", "0.01:1:5", "--prior", "1/100:99/100:3", "--out", str(out), "--quiet"]) == 0
    swept = pl.read_parquet(out / "sweep.parquet")
    assert swept["rho"].unique().sort().to_list() == pytest.approx([0.01, 10**-1.5, 0.1, 10**-0.5, 1])
    assert swept["prior"].unique().sort().to_list() == pytest.approx([0.01, 0.5, 0.99])
    assert np.all(np.diff(swept.filter(prior=0.01)["posterior"].to_numpy()) > 0)
    assert {path.suffix for path in out.iterdir()} == {".parquet", ".svg", ".json"}
    for name in ("map", "average", "decision"):
        assert (out / f"{name}.svg").read_text().startswith("<svg")


def test_tiles_are_as_dark_as_their_numbers_and_their_text_can_be_read() -> None:
    """The colours of tiles and of the text in them once shared a scale, and text vanished."""
    drawn = gh.infer.sweep(rho="0.01,1,10", prior="0.5").figure("map").svg()
    written = {text: fill for fill, text in re.findall(r'font-size="11px" fill="([^"]*)">([^<]*)</text>', drawn)}
    assert written == {"0.502": LIGHT["ink"], "0.677": LIGHT["paper"], "1": LIGHT["paper"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["epsilon"], "--rho, once or several times, or --allocation"),
        (["epsilon", "--rho", "1", "--allocation", "paper-2020"], "one of the two"),
        (["epsilon", "--rho", "-1"], "rho is -1; expected a number from 0"),
        (["epsilon", "--rho", "much"], "rho is 'much'"),
        (["epsilon", "--rho", "1", "--delta", "0"], "delta is 0"),
        (["epsilon", "--rho", "1", "--significance", "1"], "significance level is 1"),
        (["epsilon", "--allocation", "paper-2020", "--neighbours", "change-one"], "leave out --neighbours"),
        (["plan", "--posterior", "0.6", "--significance", "0"], "significance level is 0"),
        (["sweep", "--rho", "0"], "buys nothing"),
        (["sweep", "--rho", "1:0.1:5"], "expected 0 < FROM < TO"),
        (["sweep", "--rho", "0.1:1"], "expected FROM:TO:N"),
        (["sweep", "--rho", "0.1:1:1"], "N from 2 up"),
        (["sweep", "--rho", "0.1,0.1"], "given twice"),
        (["sweep", "--rho", "0.1:1:200", "--prior", "0.1:0.9:200"], "at most 10,000"),
        (["sweep", "--prior", "1"], "expected a probability"),
        (["sweep", "--prior", "0.1:1:3"], "TO < 1"),
        (["sweep", "--others", "3"], "--others speaks of the level above"),
        (["sweep", "--rho2", "0.1"], "--others and --true2"),
        (["sweep", "--levels", "block"], "add --allocation"),
        (["sweep", "--allocation", "pl94-2020"], "add --neighbours change-one"),
        (["sweep", "--allocation", "paper-2020", "--levels", "moon"], "unknown level"),
        (["sweep", "--allocation", "paper-2020", "--rho2", "1"], "give one"),
    ],
)
def test_nonsense_is_refused_in_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", *words, *(["--json"] if words[0] == "sweep" else [])]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


def test_the_page_is_what_the_script_makes() -> None:
    assert made_part.part_of(page.PAGE, "make_infer_budget.py").rstrip() == page.made().rstrip()


def test_the_library_refuses_in_the_same_words() -> None:
    with pytest.raises(InputError, match="one of the two"):
        gh.infer.epsilon()
