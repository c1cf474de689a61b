"""Do bounds hold on releases that nobody here made? Rounded, perturbed and withheld numbers of three countries."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from glasshouse.model.records import UNLIMITED
from glasshouse.program.numbers.linked import link
from glasshouse.program.numbers.system import alone

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
from world_releases import nz_numbers, nz_release


@pytest.fixture(scope="module")
def world(data: Path) -> Path:
    if not (data / "world").is_dir():
        pytest.skip("the files of other offices are not beside the repository")
    return data / "world"


def test_meshblocks_do_not_contradict_each_other(world: Path) -> None:
    """Counts rounded at random to 3: whatever fits, fits all tables of the meshblock."""
    release = nz_release(2013, world / "nz", every=500)
    linked = link(release.numbers)
    kinds = np.unique(linked.number)
    wanted = (np.arange(len(release.places))[:, None] * linked.width + kinds).reshape(-1)
    system = alone(linked, release.lower, release.upper)
    assert not system.split.impossible.any()
    split = system.split
    low, high = (side[wanted].reshape(len(release.places), -1) for side in (split.lower, split.upper))
    column = np.searchsorted(kinds, linked.number)
    assert (low[:, column] >= release.lower).all()
    assert (high[:, column] <= release.upper).all()
    printed = release.upper < UNLIMITED
    assert 0.001 < (low == high)[:, column][printed].mean() < 0.05


def test_totals_of_the_same_name_are_one_number() -> None:
    numbers = nz_numbers()
    number = link(numbers).number
    totals = [number[numbers.names.index(name)] for name in ("V0005", "V0006", "V0019", "V0030", "V0042")]
    assert len(set(totals)) == 1
