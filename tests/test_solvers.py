"""Do the engines keep their contract? Right against brute force, exact about proof, modest about limits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.model.records import UNLIMITED
from glasshouse.program import highs as highs_module
from glasshouse.program.certainty.confirm import two_engines
from glasshouse.program.certainty.prove import dual_bound, infeasible
from glasshouse.program.cpsat import cpsat
from glasshouse.program.highs import highs
from glasshouse.program.integer import IntegerProgram, Limit, Outcome, Proof, Solution, Solver, Unbounded
from tests.often import often
from tests.test_whole import program as drawn

AMPLE = Limit(5.0)
NONE = -UNLIMITED
CLAIMS = (Outcome.OPTIMAL, Outcome.INFEASIBLE)


def program(
    cost: Sequence[int],
    rows: Sequence[tuple[int, Sequence[int], int]],
    lower: Sequence[int] | int = 0,
    upper: Sequence[int] | int = UNLIMITED,
) -> IntegerProgram:
    """A program from dense rows (lower, coefficients, upper)."""
    n = len(cost)
    dense = np.array([row for _, row, _ in rows], np.int64).reshape(len(rows), n)
    row_of, index = np.nonzero(dense)
    return IntegerProgram(
        np.array(cost, np.int64),
        np.broadcast_to(np.array(lower, np.int64), n).copy(),
        np.broadcast_to(np.array(upper, np.int64), n).copy(),
        np.array([low for low, _, _ in rows], np.int64),
        np.array([high for _, _, high in rows], np.int64),
        np.concatenate([[0], np.cumsum(np.bincount(row_of, minlength=len(rows)))]).astype(np.int64),
        index.astype(np.int32),
        dense[row_of, index],
    )


def least(of: IntegerProgram) -> int | None:
    """The cost of the cheapest x, by trying all of them; None when nothing fits."""
    choices = np.array(
        list(itertools.product(*(range(a, b + 1) for a, b in zip(of.lower, of.upper, strict=True)))), np.int64
    ).reshape(-1, len(of.cost))
    dense = np.zeros((len(of.row_lower), len(of.cost)), np.int64)
    for row in range(len(of.row_lower)):
        for at in range(of.starts[row], of.starts[row + 1]):
            dense[row, of.index[at]] += of.coefficient[at]
    activity = choices @ dense.T
    low = (activity >= of.row_lower) | (of.row_lower == -UNLIMITED)
    high = (activity <= of.row_upper) | (of.row_upper == UNLIMITED)
    fitting = choices[(low & high).all(axis=1)]
    return int((fitting @ of.cost).min()) if len(fitting) else None


@st.composite
def small_programs(draw: st.DrawFn) -> IntegerProgram:
    """Up to four variables with a few values each, and rows of every kind: some fit, some do not."""
    n = draw(st.integers(1, 4))
    values = st.integers(-4, 4)
    lower = [draw(st.integers(-3, 2)) for _ in range(n)]
    upper = [low + draw(st.integers(0, 4)) for low in lower]
    inside = [draw(st.integers(a, b)) for a, b in zip(lower, upper, strict=True)]
    rows = []
    for _ in range(draw(st.integers(0, 4))):
        row = [draw(values) for _ in range(n)]
        total = sum(a * b for a, b in zip(row, inside, strict=True)) + draw(st.sampled_from([0, 0, 0, 0, 1, -2]))
        kind = draw(st.sampled_from(["equal", "equal", "atmost", "atleast", "between"]))
        low = NONE if kind == "atmost" else total - (kind == "between")
        high = UNLIMITED if kind == "atleast" else total + (kind == "between")
        rows.append((low, row, high))
    return program([draw(values) for _ in range(n)], rows, lower, upper)


def keeps_contract(of: IntegerProgram, answer: Solution, minimum: int | None) -> None:
    """What holds of every answer, whatever the engine and the limit."""
    if answer.x is not None:
        assert of.fits(answer.x)
        assert minimum is not None
        assert of.value(answer.x) >= minimum
    if answer.floor is not None and minimum is not None:
        assert answer.floor <= minimum
    if answer.bound is not None and minimum is not None:
        assert answer.bound <= minimum
    if answer.outcome is Outcome.OPTIMAL:
        assert answer.x is not None
        assert of.value(answer.x) == minimum == answer.bound
        assert (answer.proof is Proof.EXACT) == (answer.floor == minimum)
    if answer.outcome is Outcome.INFEASIBLE:
        assert minimum is None
        assert answer.x is None
    if answer.outcome in (Outcome.FEASIBLE, Outcome.STOPPED):
        assert answer.proof is Proof.UNDECIDED


def hard(n: int = 40, rows: int = 4) -> IntegerProgram:
    """A market split: the classic that branch and bound does not like."""
    generator = np.random.default_rng(5)
    weights = generator.integers(0, 100, (rows, n))
    unit = np.eye(rows, dtype=np.int64)
    dense = np.hstack([weights, unit, -unit])
    half = weights.sum(axis=1) // 2
    cost = np.concatenate([np.zeros(n), np.ones(2 * rows)]).astype(np.int64)
    upper = np.concatenate([np.ones(n), np.full(2 * rows, 10_000)]).astype(np.int64)
    return program(cost.tolist(), [(h, row.tolist(), h) for h, row in zip(half, dense, strict=True)], 0, upper.tolist())


def odd_cycle(ends: int) -> IntegerProgram:
    """Three variables that add up to 1 in pairs: the halves fit, whole numbers do not."""
    return program([1, 1, 1], [(1, row, 1) for row in ([1, 1, 0], [0, 1, 1], [1, 0, 1])], 0, ends)


def margins(cost: Sequence[int], sides: int, total: int) -> IntegerProgram:
    """A cube of counts whose three two-way margins are all `total`: vertices of such programs can be fractional."""
    cells = list(itertools.product(range(sides), repeat=3))
    rows = [
        (total, [int(cell[a] == i and cell[b] == j) for cell in cells], total)
        for a, b in ((0, 1), (0, 2), (1, 2))
        for i, j in itertools.product(range(sides), repeat=2)
    ]
    return program(cost, rows)


def transport(rows: int = 4, columns: int = 5, most: int = 20, seed: int = 1) -> IntegerProgram:
    generator = np.random.default_rng(seed)
    table = generator.integers(0, most, (rows, columns))
    lines = [(int(table[i].sum()), np.eye(rows)[i][:, None] * np.ones(columns)) for i in range(rows)]
    lines += [(int(table[:, j].sum()), np.ones((rows, 1)) * np.eye(columns)[j]) for j in range(columns)]
    cost = generator.integers(0, 10, rows * columns).tolist()
    return program(cost, [(total, mask.ravel().astype(int).tolist(), total) for total, mask in lines])


both = pytest.mark.parametrize("solver", [highs, cpsat], ids=["highs", "cpsat"])


@both
class TestSolverContract:
    """Every engine keeps to this; a new one is added to `both`."""

    @settings(max_examples=often(250), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(of=small_programs())
    def test_agrees_with_brute_force(self, solver: Solver, of: IntegerProgram) -> None:
        minimum = least(of)
        answer = solver(of, AMPLE)
        assert answer.outcome is (Outcome.INFEASIBLE if minimum is None else Outcome.OPTIMAL)
        keeps_contract(of, answer, minimum)
        assert not answer.clock

    @settings(max_examples=often(80), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(of=small_programs(), big=st.sampled_from([10**9, 10**10, 2 * 10**11]))
    def test_huge_values_are_right_or_undecided(self, solver: Solver, of: IntegerProgram, big: int) -> None:
        """The same program with every variable moved far away: a shift by `big` moves the rows and the cost alike."""
        moved = of.activity(np.full(len(of.cost), big))
        low = np.where(of.row_lower == -UNLIMITED, -UNLIMITED, of.row_lower + moved)
        high = np.where(of.row_upper == UNLIMITED, UNLIMITED, of.row_upper + moved)
        if max(np.abs(low).max(initial=0), np.abs(high).max(initial=0)) > UNLIMITED:
            return
        far = replace(of, lower=of.lower + big, upper=of.upper + big, row_lower=low, row_upper=high)
        near = least(of)
        minimum = None if near is None else near + int(of.cost.sum()) * big
        answer = solver(far, AMPLE)
        if answer.proof is Proof.EXACT or answer.outcome not in CLAIMS:
            keeps_contract(far, answer, minimum)

    @pytest.mark.parametrize("big", [10**9, 10**10])
    @pytest.mark.parametrize("seed", [3, 39, 78, 98])
    def test_huge_ranges_come_to_an_end(self, solver: Solver, seed: int, big: int) -> None:
        """Numbers that doubles hold hardly finer than rows are met: HiGHS branched on these for ever."""
        of, rng = drawn(seed, 2 + seed % 5, 1 + seed % 4), np.random.default_rng(seed)
        sides = [
            np.where(np.abs(side) < UNLIMITED, side * big + rng.integers(-3, 4, len(side)), side)
            for side in (of.row_lower, of.row_upper)
        ]
        far = replace(of, upper=of.upper * big, row_lower=np.minimum(*sides), row_upper=np.maximum(*sides))
        answer = solver(far, AMPLE)
        assert answer.x is None or far.fits(answer.x)
        assert answer.floor is None or answer.x is None or answer.floor <= far.value(answer.x)

    @pytest.mark.parametrize("big", [10**9, 10**10])
    @pytest.mark.parametrize("seed", [3, 14, 22, 147])
    def test_far_limits_of_small_rows_come_to_an_end(self, solver: Solver, seed: int, big: int) -> None:
        """Variables may go far and rows are small: HiGHS branched on these for ever, too, until they were held near."""
        of = drawn(seed, 2 + seed % 5, 1 + seed % 4)
        far = replace(of, upper=of.upper * big)
        answer = solver(far, AMPLE)
        assert answer.x is None or far.fits(answer.x)
        assert answer.floor is None or answer.x is None or answer.floor <= far.value(answer.x)

    @pytest.mark.parametrize("ends", [1, 5, UNLIMITED])
    def test_halves_are_not_an_answer(self, solver: Solver, ends: int) -> None:
        answer = solver(odd_cycle(ends), AMPLE)
        assert answer.outcome is Outcome.INFEASIBLE
        assert answer.x is None
        assert answer.proof is Proof.UNDECIDED  # fractions fit, so no combination of rows can prove it

    def test_a_cube_with_fractional_vertices(self, solver: Solver) -> None:
        generator = np.random.default_rng(3)
        seen = set()
        for _ in range(12):
            of = margins(generator.integers(0, 9, 27).tolist(), 3, 1)
            answer = solver(of, AMPLE)
            squares = [
                np.array([int((order[i] + step * j) % 3 == k) for i, j, k in np.ndindex(3, 3, 3)])
                for order in itertools.permutations(range(3))
                for step in (1, 2)
            ]  # the 12 Latin squares of side 3: all that fits
            assert all(of.fits(square) for square in squares)
            keeps_contract(of, answer, min(of.value(square) for square in squares))
            assert answer.outcome is Outcome.OPTIMAL
            seen.add(answer.proof)
        assert Proof.UNDECIDED in seen or solver is highs

    def test_infeasible(self, solver: Solver) -> None:
        of = program([1, 1], [(5, [1, 1], UNLIMITED)], 0, 2)
        assert solver(of, AMPLE).outcome is Outcome.INFEASIBLE
        if solver is highs:
            assert solver(of, AMPLE).proof is Proof.EXACT

    @pytest.mark.parametrize("of", [program([1], [], 3, 2), program([1], [(3, [1], 2)], 0, 9)], ids=["bounds", "row"])
    def test_crossed_limits_are_an_exact_contradiction(self, solver: Solver, of: IntegerProgram) -> None:
        answer = solver(of, AMPLE)
        assert (answer.outcome, answer.proof) == (Outcome.INFEASIBLE, Proof.EXACT)

    @pytest.mark.parametrize(
        "of",
        [
            program([-1], []),
            program([1], [], NONE, 5),
            program([-1, 1], [(0, [1, -2], 0)]),
            program([0, -3], [(NONE, [1, -1], 4)]),
        ],
        ids=["up", "down", "along a line", "in a cone"],
    )
    def test_unbounded_raises(self, solver: Solver, of: IntegerProgram) -> None:
        with pytest.raises(Unbounded, match="without end"):
            solver(of, AMPLE)
        assert issubclass(Unbounded, InputError)

    def test_nothing_fits_so_nothing_falls(self, solver: Solver) -> None:
        of = program([1, 1, 1, -1], [(1, row, 1) for row in ([1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0])])
        assert solver(of, AMPLE).outcome in (Outcome.INFEASIBLE, Outcome.STOPPED)

    def test_unlimited_variables_that_the_cost_holds(self, solver: Solver) -> None:
        """No single row limits x - y = 7 with 2 x + y >= -50; together they do, and with the cost: (-14, -21)."""
        of = program([1, 1], [(7, [1, -1], 7), (-50, [2, 1], UNLIMITED)], NONE, UNLIMITED)
        answer = solver(of, AMPLE)
        assert answer.x is not None and answer.x.tolist() == [-14, -21]
        assert answer.outcome is (Outcome.OPTIMAL if solver is highs else Outcome.FEASIBLE)  # CP-SAT saw a box only
        assert answer.floor in (None, -35)

    def test_what_fits_beyond_every_limit_is_not_denied(self, solver: Solver) -> None:
        of = program([0, 0], [(0, [-2, 1], 0)], [UNLIMITED - 1, 0])
        assert of.fits(np.array([UNLIMITED - 1, 2 * UNLIMITED - 2]))
        assert solver(of, AMPLE).outcome is not Outcome.INFEASIBLE

    @pytest.mark.parametrize("limit", [Limit(0), Limit(5, 0), Limit(-1), Limit(0, 0)])
    def test_no_effort_is_no_verdict(self, solver: Solver, limit: Limit) -> None:
        for of in (transport(), program([1], [], 3, 2), program([], [])):
            answer = solver(of, limit)
            assert (answer.outcome, answer.x, answer.proof) == (Outcome.STOPPED, None, Proof.UNDECIDED)
            assert answer.clock == (limit.seconds == 0)

    @pytest.mark.parametrize(
        "limit",
        [
            Limit(1e-9),
            Limit(0.001),
            Limit(0.2),
            pytest.param(Limit(100, 0.2), marks=pytest.mark.slow),
            Limit(100, 1e-6),
        ],
    )
    def test_a_hard_program_stops_with_bounds(self, solver: Solver, limit: Limit) -> None:
        of = hard()
        answer = solver(of, limit)
        assert answer.outcome in (Outcome.STOPPED, Outcome.FEASIBLE)
        assert answer.clock == (limit.seconds is not None)
        keeps_contract(of, answer, 0 if answer.x is None else min(of.value(answer.x), 4))

    def test_effort_is_the_same_every_time(self, solver: Solver) -> None:
        answers = [solver(hard(), Limit(0.3)) for _ in range(2)]
        values = [(a.outcome, a.bound, None if a.x is None else a.x.tolist()) for a in answers]
        assert values[0] == values[1]

    def test_history_does_not_matter(self, solver: Solver) -> None:
        problems = [transport(), margins([1, 5, 2] * 9, 3, 2), odd_cycle(1), hard(20, 2), transport(3, 9, 50, 7)]
        alone = [_told(solver(of, Limit(0.2))) for of in problems]
        for order in ([4, 3, 2, 1, 0], [1, 1, 0, 3, 4]):
            for at in order:
                assert _told(solver(problems[at], Limit(0.2))) == alone[at]

    def test_threads_do_not_meet(self, solver: Solver) -> None:
        problems = [transport(4, 5, 30, seed) for seed in range(24)] + [odd_cycle(1), margins([1, 5, 2] * 9, 3, 2)] * 3
        alone = [_told(solver(of, AMPLE)) for of in problems]
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(lambda of: _told(solver(of, AMPLE)), problems)) == alone

    def test_counts_above_32_bits(self, solver: Solver) -> None:
        of = transport(3, 4, 10**11)
        answer = solver(of, AMPLE)
        if answer.outcome is Outcome.OPTIMAL:
            assert of.value(answer.x) == cpsat(of, AMPLE).bound == highs(of, AMPLE).bound
        one = solver(program([3], [(7 * (10**11 + 1), [7], UNLIMITED)]), AMPLE)
        assert (one.bound, one.x.tolist() if one.x is not None else None) == (3 * (10**11 + 1), [10**11 + 1])

    def test_numbers_too_large_for_the_engine_are_not_answered_wrongly(self, solver: Solver) -> None:
        for size in (10**16 + 1, 2**62, 2**63 - 1):
            answer = solver(program([1, 1], [(0, [size, -size], 0)], 1, 10**11), AMPLE)
            assert answer.outcome is Outcome.STOPPED or (answer.x is not None and answer.bound == 2)
            costly = program([size, size - 1], [(1, [1, 1], 1)], 0, 10**11)
            answer = solver(costly, AMPLE)
            assert answer.outcome is Outcome.STOPPED or answer.bound == size - 1

    def test_no_variables(self, solver: Solver) -> None:
        for rows in ([], [(0, [], 3)]):
            answer = solver(program([], rows), AMPLE)
            assert (answer.outcome, answer.proof, answer.floor) == (Outcome.OPTIMAL, Proof.EXACT, 0)
            assert answer.x is not None and len(answer.x) == 0
        assert solver(program([], [(1, [], 3)]), AMPLE).outcome is Outcome.INFEASIBLE

    def test_no_rows(self, solver: Solver) -> None:
        answer = solver(program([2, -3, 0], [], [-1, 0, 0], [4, 6, UNLIMITED]), AMPLE)
        assert answer.x is not None and answer.x[:2].tolist() == [-1, 6]
        assert (answer.outcome, answer.proof, answer.floor) == (Outcome.OPTIMAL, Proof.EXACT, -20)

    def test_an_empty_row_may_contradict(self, solver: Solver) -> None:
        assert solver(program([1, 1], [(1, [0, 0], 2)], 0, 3), AMPLE).outcome is Outcome.INFEASIBLE
        assert solver(program([1, 1], [(0, [0, 0], 2)], 0, 3), AMPLE).bound == 0

    def test_without_a_cost_whatever_fits_is_exact(self, solver: Solver) -> None:
        answer = solver(margins([0] * 27, 3, 2), AMPLE)
        assert (answer.outcome, answer.proof) == (Outcome.OPTIMAL, Proof.EXACT)


def _told(answer: Solution) -> tuple[object, ...]:
    return answer.outcome, answer.proof, answer.bound, answer.floor, None if answer.x is None else answer.x.tolist()


class TestProgram:
    def test_arrays_that_do_not_match_are_our_bug(self) -> None:
        of = transport()
        for change in (
            {"cost": of.cost[1:]},
            {"row_upper": of.row_upper[1:]},
            {"starts": of.starts[1:]},
            {"starts": of.starts[::-1].copy()},
            {"coefficient": of.coefficient.astype(np.float64)},
            {"index": of.index.astype(np.int64)},
            {"index": of.index + np.int32(1)},
            {"index": np.zeros_like(of.index)},
            {"upper": of.upper * 2},
        ):
            with pytest.raises(GlasshouseBug):
                replace(of, **change)

    def test_limits_are_numbers(self) -> None:
        with pytest.raises(InputError, match="number"):
            Limit(float("nan"))

    @pytest.mark.parametrize("size", [3, 2**40, 2**62])
    def test_activity_and_value_do_not_overflow(self, size: int) -> None:
        of = program([size, size, -size], [(NONE, [size, size, 1], UNLIMITED), (NONE, [size, -size, 0], 0)])
        x = np.array([size, size, 1])
        assert of.activity(x).tolist() == [2 * size * size + 1, 0]
        assert of.value(x) == 2 * size * size - size
        assert of.fits(np.array([size, size, 1]))
        assert not of.fits(np.array([size, size - 1, 1]))

    def test_fits_has_no_tolerance(self) -> None:
        of = program([1, 1], [(10**12 - 1, [1, 1], 10**12 - 1)], 0, 10**12 - 1)
        assert of.fits(np.array([10**12 - 2, 1]))
        assert not of.fits(np.array([10**12 - 2, 2]))
        assert not of.fits(np.array([10**12, -1]))
        assert not of.fits(np.array([1.0, 10**12 - 2.0]))
        assert not of.fits(np.array([10**12 - 1]))

    @settings(max_examples=often(200), deadline=None, derandomize=True)
    @given(of=small_programs(), opened=st.lists(st.booleans(), min_size=8, max_size=8))
    def test_implied_limits_lose_nothing_that_fits(self, of: IntegerProgram, opened: list[bool]) -> None:
        n = len(of.cost)
        lower = np.where(opened[:n], -UNLIMITED, of.lower)
        upper = np.where(opened[4 : 4 + n], UNLIMITED, of.upper)
        low, high = replace(of, lower=lower, upper=upper).implied
        for x in itertools.product(*(range(a, b + 1) for a, b in zip(of.lower, of.upper, strict=True))):
            if of.fits(np.array(x)):
                assert (low <= x).all() and (x <= high).all()

    def test_margins_limit_their_cells(self) -> None:
        of = transport()
        assert of.implied[1].tolist() == [min(int(r), int(c)) for r in of.row_upper[:4] for c in of.row_upper[4:]]


class TestHighs:
    def test_a_wrong_option_is_our_bug(self) -> None:
        engine = highs_module._engine()
        for name, value in (("no_such_option", 1), ("threads", "two"), ("presolve", 3), ("mip_rel_gap", -1.0)):
            with pytest.raises(GlasshouseBug, match=name):
                highs_module._set(engine, name, value)

    def test_a_wrong_model_is_our_bug(self) -> None:
        of = transport()
        object.__setattr__(of, "index", np.zeros_like(of.index))
        with pytest.raises(GlasshouseBug, match="does not take"):
            highs_module._run(highs_module._engine(), of, 0, 1.0)

    @pytest.mark.parametrize("ray", [None, np.zeros(1), np.array([np.nan])])
    def test_infeasible_without_a_ray_is_a_claim(self, monkeypatch: pytest.MonkeyPatch, ray: object) -> None:
        said = highs_module.Relaxation(highs_module._Status.kInfeasible, None, ray)
        monkeypatch.setattr(highs_module, "relax", lambda of, limit: said)
        answer = highs(program([1, 1], [(5, [1, 1], UNLIMITED)], 0, 9), AMPLE)
        assert (answer.outcome, answer.proof) == (Outcome.INFEASIBLE, Proof.UNDECIDED)

    @pytest.mark.parametrize("seed", range(10))
    def test_a_transport_problem_is_exact_from_its_relaxation(self, seed: int) -> None:
        of = transport(5, 6, 1000, seed)
        answer = highs(of, AMPLE)
        assert answer.proof is Proof.EXACT
        assert answer.bound == answer.floor == cpsat(of, AMPLE).bound

    @settings(max_examples=often(150), deadline=None, derandomize=True)
    @example(of=program([0], [(1, [0], 1)], 0, [0]))  # a row of nothing, for which HiGHS has no ray
    @given(of=small_programs())
    def test_what_no_fraction_fits_is_proven(self, of: IntegerProgram) -> None:
        """Oracle: the relaxation of scipy, which is another build of the simplex method."""
        from scipy.optimize import LinearConstraint, milp

        dense = np.zeros((len(of.row_lower), len(of.cost)))
        dense[of.row_of, of.index] = of.coefficient
        rows = LinearConstraint(dense, of.row_lower, of.row_upper) if len(dense) else ()
        fractions = milp(np.zeros(len(of.cost)), constraints=rows, bounds=(of.lower, of.upper))
        answer = highs(of, AMPLE)
        if fractions.status == 2:
            assert (answer.outcome, answer.proof) == (Outcome.INFEASIBLE, Proof.EXACT)
        elif answer.outcome is Outcome.INFEASIBLE:
            assert answer.proof is Proof.UNDECIDED


multipliers = st.lists(
    st.one_of(st.floats(-10, 10), st.integers(-5, 5).map(float), st.floats(allow_nan=True, allow_infinity=True)),
    min_size=4,
    max_size=4,
)


class TestProofs:
    @settings(max_examples=often(400), deadline=None, derandomize=True)
    @given(of=small_programs(), y=multipliers)
    def test_any_duals_give_a_valid_bound(self, of: IntegerProgram, y: list[float]) -> None:
        minimum = least(of)
        bound = dual_bound(of, np.array(y[: len(of.row_lower)]))
        assert bound is not None  # every variable has limits
        if minimum is not None:
            assert bound <= minimum

    @settings(max_examples=often(200), deadline=None, derandomize=True)
    @given(of=small_programs(), y=multipliers, opened=st.lists(st.booleans(), min_size=8, max_size=8))
    def test_missing_limits_never_raise_a_bound(self, of: IntegerProgram, y: list[float], opened: list[bool]) -> None:
        n, minimum = len(of.cost), least(of)
        lower = np.where(opened[:n], -UNLIMITED, of.lower)
        upper = np.where(opened[4 : 4 + n], UNLIMITED, of.upper)
        bound = dual_bound(replace(of, lower=lower, upper=upper), np.array(y[: len(of.row_lower)]))
        if bound is not None and minimum is not None:
            assert bound <= minimum

    @settings(max_examples=often(300), deadline=None, derandomize=True)
    @given(of=small_programs(), y=multipliers)
    def test_no_ray_proves_that_what_fits_does_not(self, of: IntegerProgram, y: list[float]) -> None:
        if infeasible(of, np.array(y[: len(of.row_lower)])):
            assert least(of) is None

    @pytest.mark.parametrize("scale", [1, 10**5, 10**9, 10**17])
    def test_bounds_of_any_size(self, scale: int) -> None:
        """Beyond 64 bits the sums are Python's; duals that double precision does not hold cost tightness only."""
        of = program([2 * scale, 3 * scale], [(7, [1, 2], UNLIMITED), (5, [2, 1], UNLIMITED)], 0, 10**9)
        bound = dual_bound(of, np.array([4 / 3, 1 / 3]) * scale)
        assert bound is not None and 11 * scale - scale // 10**15 <= bound <= 11 * scale
        of = replace(of, row_lower=np.array([7 * 10**10, 5 * 10**10]), upper=np.full(2, 10**11))
        bound = dual_bound(of, np.array([4 / 3, 1 / 3]) * scale)
        assert bound is not None and 0.999 < bound / (11 * 10**10 * scale) <= 1

    def test_a_dual_that_meets_no_limit_is_dropped(self) -> None:
        of = program([1, 1], [(3, [1, 1], UNLIMITED), (NONE, [1, -1], 2)], 0, 9)
        assert dual_bound(of, np.array([1.0, 0.5])) == 3
        assert dual_bound(of, np.array([-1.0, 0.5])) == 0

    def test_a_ray_of_any_sign_and_length(self) -> None:
        of = program([1, 1], [(5, [1, 1], UNLIMITED), (NONE, [1, 1], 4)])
        for length in (1.0, -1.0, 1e-7, 1e8):
            assert infeasible(of, np.array([1.0, -1.0]) * length)
        assert not infeasible(of, np.array([1.0, 0.0]))
        assert not infeasible(of, np.zeros(2))


def claims(answer: Solution) -> Solver:
    return lambda of, limit: answer


class TestTwoEngines:
    @settings(max_examples=often(120), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(of=small_programs())
    def test_two_honest_engines_are_certain(self, of: IntegerProgram) -> None:
        minimum = least(of)
        for one, other in ((highs, cpsat), (cpsat, highs)):
            answer = two_engines(of, one(of, AMPLE), other, AMPLE)
            assert answer.proof in (Proof.EXACT, Proof.TWO_ENGINES)
            keeps_contract(of, answer, minimum)
            assert answer.outcome is (Outcome.INFEASIBLE if minimum is None else Outcome.OPTIMAL)

    @settings(max_examples=often(120), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(of=small_programs())
    def test_a_lie_is_found_out(self, of: IntegerProgram) -> None:
        every = itertools.product(*(range(a, b + 1) for a, b in zip(of.lower, of.upper, strict=True)))
        fitting = [np.array(x) for x in every if of.fits(np.array(x))]
        minimum = least(of)
        if not fitting:
            return
        for engine in (highs, cpsat):
            for x in (fitting[0], fitting[-1], max(fitting, key=of.value)):
                value = of.value(x)
                answer = two_engines(of, Solution(Outcome.OPTIMAL, x, value), engine, AMPLE)
                assert answer.x is not None
                assert of.value(answer.x) == minimum  # the second engine finds the cheapest
                if value != minimum:
                    assert answer.proof is not Proof.TWO_ENGINES
                keeps_contract(of, replace(answer, floor=None, proof=Proof.UNDECIDED), minimum)
            denied = two_engines(of, Solution(Outcome.INFEASIBLE), engine, AMPLE)
            assert denied.x is not None
            assert denied.proof is not Proof.TWO_ENGINES
            keeps_contract(of, denied, minimum)

    def test_fractional_claims_need_both(self) -> None:
        of = odd_cycle(1)
        assert two_engines(of, highs(of, AMPLE), cpsat, AMPLE).proof is Proof.TWO_ENGINES
        assert two_engines(of, cpsat(of, AMPLE), highs, AMPLE).proof is Proof.TWO_ENGINES

    def test_a_stopped_second_engine_leaves_bounds(self) -> None:
        of = margins([1, 5, 2] * 9, 3, 1)
        x = cpsat(of, AMPLE).x
        assert x is not None
        unsure = two_engines(of, Solution(Outcome.OPTIMAL, x, of.value(x)), cpsat, Limit(5, 0))
        assert (unsure.outcome, unsure.proof, unsure.clock) == (Outcome.FEASIBLE, Proof.UNDECIDED, True)
        assert unsure.bound == unsure.floor == 0
        assert unsure.x is x
        gone = two_engines(odd_cycle(1), Solution(Outcome.INFEASIBLE), cpsat, Limit(0))
        assert (gone.outcome, gone.proof) == (Outcome.STOPPED, Proof.UNDECIDED)

    def test_what_is_not_claimed_is_not_confirmed(self) -> None:
        of = transport()
        for outcome in (Outcome.FEASIBLE, Outcome.STOPPED):
            x = highs(of, AMPLE).x if outcome is Outcome.FEASIBLE else None
            answer = two_engines(of, Solution(outcome, x), claims(Solution(Outcome.INFEASIBLE)), AMPLE)
            assert (answer.outcome, answer.proof) == (outcome, Proof.UNDECIDED)

    def test_an_x_that_does_not_fit_is_our_bug(self) -> None:
        of = program([1, 1], [(2, [1, 1], 2)], 0, 2)
        wrong = Solution(Outcome.OPTIMAL, np.array([1, 0]), 1)
        with pytest.raises(GlasshouseBug, match="does not fit"):
            two_engines(of, wrong, cpsat, AMPLE)
        with pytest.raises(GlasshouseBug, match="does not fit"):
            two_engines(of, Solution(Outcome.INFEASIBLE), claims(wrong), AMPLE)
        with pytest.raises(GlasshouseBug, match="no x"):
            two_engines(of, Solution(Outcome.OPTIMAL), cpsat, AMPLE)

    def test_a_cost_beyond_the_limits_stays_undecided(self) -> None:
        of = program([10**6, 10**6 + 1], [(10**11, [2, 2], UNLIMITED)], 1, 10**11)
        x = np.array([5 * 10**10 - 1, 1])
        answer = two_engines(of, Solution(Outcome.OPTIMAL, x, of.value(x)), claims(Solution(Outcome.INFEASIBLE)), AMPLE)
        assert answer.proof is Proof.UNDECIDED
        assert answer.x is x


@both
@settings(max_examples=often(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(of=small_programs(), data=st.data())
def test_a_known_solution_changes_nothing_but_the_way_there(
    solver: Solver, of: IntegerProgram, data: st.DataObject
) -> None:
    """Any x that fits may be given to start from; the answer costs the same."""
    minimum = least(of)
    known = [
        np.array(x, np.int64)
        for x in itertools.product(*(range(a, b + 1) for a, b in zip(of.lower, of.upper, strict=True)))
        if of.fits(np.array(x, np.int64))
    ]
    if known:
        answer = solver(replace(of, known=data.draw(st.sampled_from(known))), AMPLE)
        keeps_contract(of, answer, minimum)
        assert answer.x is not None and of.value(answer.x) == minimum


def test_a_known_solution_that_does_not_fit_is_our_bug() -> None:
    with pytest.raises(GlasshouseBug, match="does not fit"):
        replace(program([1], [(1, [1], 2)], 0, 3), known=np.array([3], np.int64))


def test_the_clock_of_one_program_does_not_run_on_into_the_next() -> None:
    """HiGHS keeps one clock for all that it solves; a limit of seconds is for one program."""
    from glasshouse.program import highs as adapter

    program = IntegerProgram(
        np.array([1, 1]), np.zeros(2, np.int64), np.full(2, 5), np.array([3]), np.array([3]), np.array([0, 2]),
        np.array([0, 1], np.int32), np.array([1, 1]),
    )  # fmt: skip
    for _ in range(20):
        before = adapter._engine().getRunTime()
        assert adapter.highs(program, Limit(seconds=7.0)).outcome == Outcome.OPTIMAL
        assert adapter._engine().getOptionValue("time_limit")[1] >= before + 7.0
    assert adapter._engine().getRunTime() > 0
