"""What the tests share: where the real data is, and small scenarios of our own."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from glasshouse.program.tables.store import VARIABLE
from glasshouse.scenarios.load import Scenario, load

collect_ignore = ["toy_format.py", "toy_protection.py"]  # to import them is to add them

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

# A submission is judged by the same examples every time; at the desk every run looks at new ones.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("desk", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

TOY = """
title = "A toy"
variable = "{table}_{line:2}"

[geography]
place = "house"
unit = "street"
levels = { town = 1, street = 2, house = 3 }

[attribute.colour]
levels = ["red", "green", "blue"]

[attribute.size]
range = [0, 3]

[attribute.owner]
levels = ["no", "yes"]
codes = ["0", "1"]

[recode]
colour = { attribute = "colour" }
size = { attribute = "size", bins = "0-1 2 3" }
owner = { attribute = "owner" }
warm = { attribute = "colour", groups = [{ label = "warm", levels = ["red", "green"], each = true }, "blue"] }
some = { attribute = "colour", tally = true, groups = [
  { label = "not blue", not = "blue" }, { label = "not red", not = "red" } ] }

[iteration]
R = { title = "red", colour = "red" }
G = { title = "green", colour = "green" }
B = { title = "blue", colour = "blue" }

[table]
T1 = { title = "All", level = "house", by = [] }
T2 = { title = "Owner by warm colour", level = "house", by = ["owner", "warm"], undivided = ["no"] }
T3 = { title = "Size", level = "house", by = ["size"], iterations = "RGB" }
T4 = { title = "Colours tallied", level = "house", by = ["owner", "some"] }
T5 = { title = "Colour, large", level = "street", by = ["colour"], universe = { size = "2+" } }
T6 = { title = "Size by owner", level = "street", by = ["size", "owner"], also = [2] }
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Modules and tests stay to the end: whoever looks for garbage among them again and again finds none."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def kept_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tables that tests compile are kept for this session and its processes, not in the home of whoever runs it."""
    base = tmp_path_factory.getbasetemp()
    among = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base  # all workers of a session keep them once
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv(VARIABLE, str(among / "compiled"))
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_disk() -> Iterator[None]:
    """Nothing waits for the disk here: only a machine that fails loses what was written (`faults` counts the calls)."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def data() -> Path:
    if not DATA.is_dir():
        pytest.skip("the folder shared/data is not beside the repository")
    return DATA


@pytest.fixture(scope="session")
def sf1() -> Scenario:
    return load("sf1-person")


@pytest.fixture(scope="session")
def pl94() -> Scenario:
    return load("pl94")


@pytest.fixture(scope="session")
def toy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenario") / "toy"
    folder.mkdir()
    (folder / "scenario.toml").write_text(TOY, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def toy(toy_folder: Path) -> Scenario:
    return load(str(toy_folder))
