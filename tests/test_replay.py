"""Do the lines follow that the core's cuts and cases become? Random programs, line by line; toys, by the checker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.model.records import UNLIMITED
from glasshouse.program.certainty import cases
from glasshouse.program.certainty.cases import Closing, Limits
from glasshouse.program.certainty.cuts import Rows
from glasshouse.program.integer import IntegerProgram, Limit
from glasshouse.program.reduce import Programs
from glasshouse.proofs import stages
from glasshouse.proofs.certificate import text_of
from glasshouse.proofs.check_proof import Definitions, Fact, Kinds, read_published
from glasshouse.proofs.derivation import Derivation, Line, Ref
from glasshouse.proofs.enough import enough
from glasshouse.proofs.overlap import pruned
from glasshouse.proofs.part import Cells
from glasshouse.proofs.replay import Known, Replay
from glasshouse.proofs.space import space_of
from tests.often import often
from tests.proof_toys import Json, facts, finish, histograms, toy, write
from tests.test_cases import every, programs
from tests.test_proofs import verdict

LIMIT = Limit(effort=2.0)
Terms = Mapping[int, int]


class Lines(Derivation):
    """Lines alone, of no published numbers."""

    def __init__(self) -> None:
        self.lines: list[Line] = []


class Given:
    """Rows and limits of a program hold as they are: each is said to be `terms >= number`."""

    def __init__(self, program: IntegerProgram) -> None:
        self.program, self.matrix, self.said = program, Rows.of(program).matrix, dict[Ref, tuple[Terms, int]]()

    def _say(self, name: str, terms: np.ndarray, right: int, *, up: bool) -> Known:
        sign = -1 if up else 1
        assert abs(right) < UNLIMITED
        self.said[name] = {at: sign * int(terms[at]) for at in np.flatnonzero(terms)}, sign * right
        return name, 1

    def row(self, number: int, *, up: bool) -> Known:
        side = (self.program.row_upper if up else self.program.row_lower)[number]
        return self._say(f"row {number} {up}", self.matrix[number], int(side), up=up)

    def limit(self, column: int, *, up: bool) -> Known:
        side = int((self.program.upper if up else self.program.lower)[column])
        if not side and not up:
            return None
        return self._say(
            f"limit {column} {up}", np.eye(1, len(self.program.cost), column, dtype=np.int64)[0], side, up=up
        )


def rests(lines: list[Line], said: Mapping[Ref, tuple[Terms, int]], free: set[int]) -> list[set[int]]:
    """On which assumptions each line rests; every line must follow. What is `free` is never below 0 by itself."""
    found: list[set[int]] = []

    def terms_of(ref: Ref) -> tuple[Terms, int, set[int]]:
        return (lines[ref].terms, lines[ref].right, found[ref]) if isinstance(ref, int) else (*said[ref], set())

    for at, line in enumerate(lines):
        if line.reason == "asm":
            found.append({at})
        elif line.cases is not None:
            one, first, other, second = line.cases
            assert {column: -n for column, n in lines[first].terms.items()} == dict(lines[second].terms)
            assert -lines[first].right + 1 == lines[second].right or -lines[second].right + 1 == lines[first].right
            for shown in (lines[one], lines[other]):
                assert shown.absurd or (shown.terms == line.terms and shown.right >= line.right)
            found.append((found[one] - {first}) | (found[other] - {second}))
        else:
            left = {column: Fraction(n) for column, n in line.terms.items()}
            right, under = Fraction(0), set[int]()
            for ref, times in line.times.items():
                assert times > 0 and (not isinstance(ref, int) or ref < at)
                terms, number, assumed = terms_of(ref)
                right, under = right + times * number, under | assumed
                for column, n in terms.items():
                    left[column] = left.get(column, Fraction(0)) - times * n
            assert all(n > 0 and column in free for column, n in left.items() if n)
            assert (-(-right // 1) if line.reason == "rnd" else right) >= line.right
            found.append(under)
    return found


@pytest.mark.parametrize("rounds", [40, 0])
@given(program=programs(), data=st.data())
@settings(max_examples=often(150), deadline=None)
def test_every_line_of_what_was_closed_follows(rounds: int, program: IntegerProgram, data: st.DataObject) -> None:
    solutions = every(program)
    if not solutions:
        return
    x = min(solutions, key=program.value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "ROUNDS", rounds)
        closing = Closing(program, x, None, LIMIT, keeps=True)
        assert closing.solution().proof == "exact"
    lines, given_ = Lines(), Given(program)
    last = Replay(lines, [{at: 1} for at in range(len(x))], given_, closing).shown()
    free = {int(at) for at in np.flatnonzero(program.lower == 0)}
    assert not rests(lines.lines, given_.said, free)[last]
    shown = lines.lines[last]
    assert shown.absurd is False and shown.right == program.value(x)
    assert dict(shown.terms) == {int(at): int(program.cost[at]) for at in np.flatnonzero(program.cost)}


@given(program=programs(), data=st.data())
@settings(max_examples=often(150), deadline=None)
def test_every_line_follows_where_sums_are_learnt_first(program: IntegerProgram, data: st.DataObject) -> None:
    """Whatever the sums are: each has a proof of its own, below the cuts, and the cases rest on it."""
    solutions = every(program)
    if not solutions:
        return
    x, size = min(solutions, key=program.value), len(program.cost)
    some = data.draw(st.lists(st.lists(st.integers(0, 1), min_size=size, max_size=size), max_size=4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "ROUNDS", 1)  # so that something is left to do
        closing = Closing(program, x, None, LIMIT, keeps=True)
        if closing.cut():
            return
        patch.setattr(cases, "ROUNDS", data.draw(st.sampled_from([0, 40])))
        lines, given_ = Lines(), Given(program)
        cut = Replay(lines, [{at: 1} for at in range(size)], given_, closing)
        last = stages._by_cases(cut, [np.array(one, np.int64) for one in some])
    assert last is not None and lines.lines[last].right == program.value(x)
    assert not rests(lines.lines, given_.said, {int(at) for at in np.flatnonzero(program.lower == 0)})[last]


def _odd_cycle(corners: int) -> IntegerProgram:
    """Of each two neighbours on a circle one must be taken: at least half of an odd number, rounded up."""
    matrix = np.zeros((corners, corners), np.int64)
    for row in range(corners):
        matrix[row, [row, (row + 1) % corners]] = 1
    one = np.ones(corners, np.int64)
    return Rows(matrix, one, np.full(corners, UNLIMITED)).program(one, one * 0, one)


def test_a_few_rows_are_enough_where_many_are_there() -> None:
    """Nine corners need all nine rows; copies of rows, and rows that say less, are left out."""
    program = _odd_cycle(9)
    rows = Rows.of(program)
    rows = Rows(np.vstack([rows.matrix] * 3), np.tile(rows.lower, 3), np.tile(rows.upper, 3))
    many = rows.program(program.cost, program.lower, program.upper)
    duals = np.full(27, 1 / 6)
    found = enough(many, duals, 5)
    assert 0 < np.count_nonzero(found) <= 9
    assert (found @ rows.matrix <= program.cost + 1e-9).all() and found.sum() > 4


def test_the_proof_that_is_kept_has_cuts_or_cases() -> None:
    """The relaxation says 4.5 of 9 corners, which is rounded; of two circles that share the cost, it is not enough."""
    program = _odd_cycle(5)
    matrix = Rows.of(program).matrix
    both = np.block([[matrix, np.zeros_like(matrix)], [np.zeros_like(matrix), matrix]])
    one = np.ones(10, np.int64)
    two = Rows(both, one, np.full(10, UNLIMITED)).program(one, one * 0, one)
    x = np.array([1, 0, 1, 0, 1] * 2, np.int64)
    for rounds in (40, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cases, "ROUNDS", rounds)
            closing = Closing(two, x, None, LIMIT, keeps=True)
            assert closing.solution().proof == "exact" and closing.value == 6
        divided = [why for why in closing.tree.values() if isinstance(why[0], Limits)]
        assert bool(closing.made) == (rounds > 0) and bool(divided) == (rounds == 0)


def _cells(definitions: Json, said: Json, rows: list[list[str]], x: Mapping[tuple[str, tuple[int, ...]], int]) -> Cells:
    """All that a place's numbers say, as one part: every kind of record is a cell."""
    space = sorted({kind for one in histograms(definitions, rows, said) for _, kind in one} | {k for _, k in x})
    defined = definitions["numbers"]["house"]
    value = {name: int(low) for level, code, name, low, _ in rows if (level, code) == ("house", said["places"][0])}

    def times(boxes: list[dict[str, str]], kind: tuple[int, ...]) -> int:
        return sum(all(str(kind[int(name[1:])]) in text.split() for name, text in box.items()) for box in boxes)

    matrix = np.array([[times(number["counts"], kind) for kind in space] for number in defined.values()], np.int64)
    right = np.array([value.get(name, 0) for name in defined], np.int64)
    zero = np.zeros(len(space), np.int64)
    program = Rows(matrix, right, right).program(zero, zero, zero + int(right[0]))
    solution = np.array([x.get((said["places"][0], kind), 0) for kind in space], np.int64)
    return Cells(space, Programs.of(program), solution)


@pytest.mark.parametrize("rounds", [40, 0])
def test_parts_of_toys_are_shown_and_accepted(rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the stages for hard parts alone: with cuts, or without any, by sums and cases."""
    monkeypatch.setattr(cases, "ROUNDS", rounds)
    shown = 0
    for seed in range(1, 60, 2):  # of these, records are compared as they are
        definitions, rows, records = toy(seed)
        hashes = write(tmp_path, definitions, rows)
        defined = Definitions((tmp_path / "definitions.json").read_bytes())
        for said in facts(definitions, rows, records):
            if said["fact"] != "overlap" or said["levels"] != ["house"]:
                continue
            fact = Fact(json.dumps(said), defined)
            published = read_published(tmp_path / "published.csv", tmp_path / "none", defined, fact.places)
            kinds = Kinds(defined, fact.levels)
            derived = Derivation(space_of(fact, published, kinds))
            mine = {tuple(kind): count for count, *kind in said["records"]}
            every_ = list(histograms(definitions, rows, said))
            far = min(every_, key=lambda one: sum(min(n, one.get(("A1a", k), 0)) for k, n in mine.items()))
            line = stages.closed(derived, range(len(mine)), said["bound"], _cells(definitions, said, rows, far))
            if line is None:
                continue
            pruned(derived)
            text = text_of(said, (), published, kinds, derived)
            fine, statement = verdict(tmp_path, finish(text, hashes))
            assert fine, statement
            shown += 1
    assert shown >= 10
