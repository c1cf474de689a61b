"""Does any file make us crash, hang or eat memory? A few seconds of harmed files here, minutes in `make test-all`."""

from __future__ import annotations

import os
from random import SystemRandom

import pytest

from tests.fuzz.__main__ import cases
from tests.fuzz.cases import KINDS
from tests.fuzz.limits import BYTES, SECONDS, fuzz

FIXED = 8  # cases of each kind that every run looks at


def test_harmed_files_are_read_or_refused() -> None:
    """Some cases of every kind; and two that must be found, or the fuzzer could not find anything."""
    assert (SECONDS, BYTES) == (5.0, 1 << 30)
    every = [(kind, number) for number in range(FIXED) for kind in KINDS]
    *_, found = fuzz([("eat!", 0), *every, ("crash!", 0)])
    eaten, *others, crashed = found.wrong
    assert "MemoryError" in eaten and "exit code -6" in crashed
    assert not others, found.told()
    assert {how for _, how in found.ended} == {"read", "refused", "wrong"}


@pytest.mark.slow
def test_harmed_files_for_minutes() -> None:
    """Other cases each time, unless GLASSHOUSE_FUZZ_SEED is set; those that fail say how to run them again."""
    seed = int(os.environ.get("GLASSHOUSE_FUZZ_SEED") or SystemRandom().randrange(10**6))
    *_, found = fuzz(cases(seed, 5.0, [*KINDS]))
    print(f"seed {seed}\n{found.told()}")
    assert not found.wrong, f"seed {seed}\n{found.told()}"


@pytest.mark.slow
def test_a_case_that_hangs_is_ended() -> None:
    *_, found = fuzz([("hang!", 0), ("records", 1)])
    assert found.wrong == ["python -m tests.fuzz --kind hang! --case 0: more than 5 s"]
