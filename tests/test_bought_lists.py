"""Is a list made from the truth as good as its name says, and no better?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from glasshouse.assess.rates import wilson
from glasshouse.errors import InputError
from glasshouse.population.attackers import quality
from glasshouse.population.bought_lists import buy_list
from glasshouse.scenarios.load import load

SCENARIO = load("sf1-person")


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four thousand people in forty blocks; some have no identifier."""
    rng, people = np.random.default_rng(7), 4000
    frame = pl.DataFrame(
        {
            "person_id": [None if n % 20 == 0 else f"p{n}" for n in range(people)],
            "block": [f"99001000100{1000 + n}" for n in rng.integers(0, 40, people)],
            "sex": rng.choice(["male", "female"], people).tolist(),
            "age": rng.integers(0, 100, people),
            **{race: [int(race == "white")] * people for race in ("white", "black", "aian", "asian", "nhopi", "sor")},
            "hispanic": [0] * people,
        }
    )
    path = tmp_path_factory.mktemp("truth") / "truth.parquet"
    frame.write_parquet(path)
    return path


def bought(truth: Path, grade: str, seed: int, out: Path) -> pl.DataFrame:
    assert buy_list(truth, SCENARIO, grade, seed, out) == pl.read_parquet(out).height
    return pl.read_parquet(out)


@pytest.mark.parametrize("grade", ["low", "2010-like", "high"])
def test_a_list_is_as_good_as_its_quality_says(truth: Path, tmp_path: Path, grade: str) -> None:
    listed, people = bought(truth, grade, 1, tmp_path / "list.parquet"), pl.read_parquet(truth).drop_nulls("person_id")
    joined = listed.join(people, on="person_id", how="inner", suffix="_true")
    wanted = quality(grade)
    shares = {
        "coverage": (joined.height, people.height),
        "address": (int((joined["block"] == joined["block_true"]).sum()), joined.height),
        "age": (int((joined["age"] == joined["age_true"]).sum()), joined.height),
        "sex": (int((joined["sex"] == joined["sex_true"]).sum()), joined.height),
    }
    for name, (part, whole) in shares.items():
        low, high = wilson(part, whole, 1 - 1e-9)
        assert low <= getattr(wanted, name) <= high + 0.005, name  # an age at the end of life may be clipped to itself
    strangers = listed.filter(~pl.col("person_id").is_in(people["person_id"].to_list()))
    assert (
        strangers["person_id"].str.starts_with("stranger-").all() and strangers.height == listed.height - joined.height
    )
    assert abs(strangers.height - wanted.strangers * people.height) < 6 * (wanted.strangers * people.height) ** 0.5


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(truth: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        bought(truth, "high", seed, tmp_path / f"{name}.parquet")
    first, again, other = ((tmp_path / f"{name}.parquet").read_bytes() for name in "abc")
    assert first == again != other


def test_nobody_is_named_without_an_identifier(truth: Path, tmp_path: Path) -> None:
    nameless = tmp_path / "nameless.parquet"
    pl.read_parquet(truth).drop("person_id").write_parquet(nameless)
    with pytest.raises(InputError, match="person_id"):
        buy_list(nameless, SCENARIO, "high", 1, tmp_path / "list.parquet")
    with pytest.raises(InputError, match="have no sex"):
        buy_list(truth, load("gvhr-1940"), "high", 1, tmp_path / "list.parquet")
