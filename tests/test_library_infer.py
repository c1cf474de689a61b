"""Do the questions about noisy counts answer a library user as they answer the terminal?"""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from pathlib import Path
from typing import get_args

import polars as pl
import pytest

import glasshouse as gh
from glasshouse.attack.infer.onelevel import ATTACKS, TIES
from glasshouse.attack.infer.postprocess import ROUNDING
from glasshouse.attack.infer.twolevel import MODES
from glasshouse.commands.declaration import declaration
from glasshouse.commands.infer import asking
from glasshouse.mechanism.gaussian import NEIGHBOURS
from tests.running import good, tool

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "examples" / "district-28-21" / "records.csv"
TWO = {"rho": "0.0992263542", "noisy": 2, "rho2": "0.2464845096", "others": 27, "noisy2": 1, "noisy_others": -1}


def test_the_namespace_offers_its_functions_and_nothing_else() -> None:
    assert sorted(gh.infer) == dir(gh.infer)
    assert gh.infer.plan.__doc__.startswith("Which rho")
    assert "infer" in dir(gh) and "posterior" in repr(gh.infer) and "noisy counts" in gh.infer.__doc__
    with pytest.raises(AttributeError, match="known: posterior"):
        gh.infer.guess  # noqa: B018
    with pytest.raises(AttributeError):
        gh.infer.plan = None
    assert copy.deepcopy(gh.infer) == gh.infer == pickle.loads(pickle.dumps(gh.infer))


def test_the_terminal_has_the_same_group() -> None:
    shown = good(tool("infer")).out
    for verb in gh.infer:
        assert f"  {verb} " in shown
        assert f"Example:  glasshouse infer {verb} " in good(tool("infer", verb, "--help")).out


def test_numbers_may_be_text_floats_or_fractions() -> None:
    answers = [gh.infer.risk(rho=rho, prior=prior).summary for rho, prior in
               (("0.1", "1/10"), (0.1, 0.1), ([Fraction(1, 10)], Fraction(1, 10)), (["1/10"], "0.1"))]  # fmt: skip
    assert all(one == answers[0] for one in answers)
    assert gh.infer.risk(rho=[0.1, 0.1]).summary.risk > gh.infer.risk(rho=0.1).summary.risk


def test_an_answer_has_numbers_a_table_and_words() -> None:
    found = gh.infer.posterior(**TWO)
    assert found.summary.posterior == pytest.approx(0.503288, abs=1e-6)
    assert found.x2.columns == ["count", "probability"] and found.x2["probability"].sum() == pytest.approx(1)
    assert found.x2.rows() == [tuple(row) for row in found.said()["x2"]]
    assert "posterior 0.503288" in repr(found) and ".x2" in found._repr_html_()
    assert found.out is None and found.files == () and found.code == 0
    alone = gh.infer.posterior(rho=0.1, noisy=2, true1=0, attack="honesty")
    assert alone.frames == {} and alone.summary.x2 is None
    assert alone.summary.belief_in_truth == 1 - alone.summary.posterior
    with pytest.raises(gh.InputError, match="no picture"):
        alone.figure()


def test_the_library_and_the_terminal_say_the_same() -> None:
    words = ("--rho", "0.1", "--rho2", "0.25", "--others", "5", "--true2", "2", "--mode", "printed", "--json")
    said = good(tool("infer", "decide", *words)).json
    assert said == gh.infer.decide(rho=0.1, rho2=0.25, others=5, true2=2, mode="printed").said()
    assert good(tool("infer", "noise", "--rho", "1", "--json")).json == gh.infer.noise(rho=1).said()


def test_plans_are_frames() -> None:
    limited = gh.infer.plan(posterior=0.55, levels=["block", "tract"], prior=[0.5, "0.4"])
    assert limited.levels.select("prior", "level").rows() == [
        (0.5, "block"), (0.5, "tract"), (0.4, "block"), (0.4, "tract"),
    ]  # fmt: skip
    assert limited.summary.limit == {"posterior": 0.55, "ratio": None} == limited.said()["limit"]
    budget = gh.infer.plan(allocation="paper-2020")
    assert budget.totals["adversary"].to_list() == ["alone", "unique"]
    assert (budget.totals["total"] > 0).all() and budget.levels["standard_deviation"].dtype == pl.Float64


def test_persons_of_a_frame() -> None:
    frame = pl.read_csv(RECORDS, infer_schema=False)
    asked = {"scenario": "gvhr-1940", "levels": {"district": "block", "county": "block_group"}}
    found = gh.infer.data(frame, **asked)
    assert found.said() == gh.infer.data(RECORDS, **asked).said()
    assert found.exposed["persons"].sum() == found.summary.persons == frame.height
    assert (found.summary.levels, found.summary.left_out) == (("district",), ("county",))
    assert gh.infer.data(frame, **asked, whole="county").summary.levels == ("district", "county")


def test_figures_without_a_folder_are_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    drawn = gh.infer.figures(only=[1, 8])
    assert list(tmp_path.iterdir()) == []
    assert drawn.figure()._repr_html_().count("<svg") >= 1 and drawn.frame("figure-08").height > 5
    assert drawn.said() == {"written": ["figure-01.svg", "figure-01.csv", "figure-08.svg", "figure-08.csv"]}
    drawn.write(tmp_path / "held")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "mine.txt").write_text("stays")
    gh.infer.figures(only="1,8", out=tmp_path / "kept")
    names = {path.name for path in (tmp_path / "held").iterdir()}
    assert {path.name for path in (tmp_path / "kept").iterdir()} == names | {"mine.txt"}
    assert all((tmp_path / "held" / name).read_bytes() == (tmp_path / "kept" / name).read_bytes() for name in names)


@pytest.mark.parametrize(
    ("verb", "given", "message"),
    [
        ("risk", {}, "--rho is missing"),
        ("risk", {"rho": "much"}, "rho is 'much'"),
        ("risk", {"rho": True}, "rho is of type bool"),
        ("risk", {"rho": 0.1, "attack": "burglary"}, "unknown --attack 'burglary'; known: attribute"),
        ("decide", {"rho": 0.1, "tie": "half"}, "unknown argument of decide 'tie'"),
        ("posterior", {"rho": 0.1}, "--rho and --noisy are needed"),
        ("posterior", {"rho": 0.1, "noisy": 1, "others": 3}, "--others speaks of the level above"),
        ("posterior", {"rho": 0.1, "noisy": 1, "true1": 4}, "the true count is 4"),
        ("figures", {"only": [13]}, "unknown figure '13'"),
    ],
)
def test_mistakes_are_named(verb: str, given: dict[str, object], message: str) -> None:
    with pytest.raises(gh.InputError, match=message):
        getattr(gh.infer, verb)(**given)


def test_the_choices_offered_are_those_that_are_known() -> None:
    assert set(get_args(asking.Relation)) == set(NEIGHBOURS)
    choices = {option.name: set(option.choices) for option in declaration(gh.infer.decide).options}
    assert (choices["attack"], choices["ties"], choices["mode"]) == (set(ATTACKS), set(TIES), set(MODES))
    rounding = declaration(gh.infer.postprocess).by_name["rounding"]
    assert rounding.choices == ROUNDING
