"""What does a relocation do to the data? Risk, utility, aggregates, the people of each place, and what explains them.

Notation of paper 003: x is the matrix (m combinations x n places), theta the transition probabilities, x tilde what is
expected after the move. Where a formula divides 0 by 0 the term is 0; it stays in the mean over m x n. So an element in
which nobody lives, or from which everyone has left, adds nothing to tau. While anyone may stay and nobody comes, an
element's term of tau is 1/x however likely they leave: tau falls in steps, when elements are emptied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import stdtr

from glasshouse.errors import InputError
from glasshouse.protection.relocation.rules import Matrix, Relocation, expected, staying, utility

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_TINY = 1e-9  # a probability or an expected person within this of 0 or 1 is 0 or 1
_TIE = 1e-9  # t values within this, relatively, are equal
ENTER = REMOVE = 0.05


@dataclass(frozen=True)
class Measures:
    """Risk and utility after a relocation, beside the risk before it."""

    tau: float  # global disclosure risk (15), (A3)
    tau_before: float  # (16), (A4)
    phi: float  # population uniqueness rate (17), (A5)
    phi_before: float  # (18), (A6)
    utility: float  # (6) for the data, (A7) for an aggregate


@dataclass(frozen=True)
class Aggregation:
    """A coarser look at the combinations: which group each of them belongs to."""

    groups: tuple[str, ...]
    group_of: tuple[int, ...]  # of each combination

    @staticmethod
    def by_name(combinations: Sequence[str], groups: Mapping[str, str]) -> Aggregation:
        """From a mapping of every combination to its group; groups come in the order of their first combination."""
        missing = [name for name in combinations if name not in groups]
        if missing:
            raise InputError(f"combination '{missing[0]}' has no group; expected a group for every combination")
        order = dict.fromkeys(groups[name] for name in combinations)
        position = {group: number for number, group in enumerate(order)}
        return Aggregation(tuple(order), tuple(position[groups[name]] for name in combinations))

    @staticmethod
    def dropping(combinations: Sequence[str], attributes: Sequence[str], drop: Sequence[str]) -> Aggregation:
        """Without some attributes, as VER becomes ER and R; a combination's name is its values joined with "_"."""
        unknown = [name for name in drop if name not in attributes]
        if unknown:
            raise InputError(f"'{unknown[0]}' is no attribute of the combinations; known: {', '.join(attributes)}")
        kept = [number for number, name in enumerate(attributes) if name not in drop]
        if not kept:
            raise InputError("every attribute is dropped; expected at least one to be kept")
        values = values_of(combinations, attributes)
        return Aggregation.by_name(
            combinations, {name: "_".join(values[name][number] for number in kept) for name in combinations}
        )

    def renamed(self, names: Mapping[str, str]) -> Aggregation:
        """The same with groups renamed, and those of equal new names made one."""
        return Aggregation.by_name(
            [str(number) for number in range(len(self.group_of))],
            {str(n): names.get(self.groups[group], self.groups[group]) for n, group in enumerate(self.group_of)},
        )


def values_of(combinations: Sequence[str], attributes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The value of every attribute in each combination's name.

    Only the last attribute's values may hold "_" themselves (as `two_or_more`); names that could be taken apart in
    another way are refused, unless the values so found make up exactly these combinations.
    """
    last = len(attributes) - 1
    values = {name: tuple(name.split("_", last)) for name in combinations}
    short = next((name for name, parts in values.items() if len(parts) <= last), None)
    if short is not None:
        raise InputError(f"combination '{short}' does not name {len(attributes)} attributes ({', '.join(attributes)})")
    possible = np.prod([len(set(parts)) for parts in zip(*values.values(), strict=True)], dtype=float)
    doubtful = next((name for name, parts in values.items() if "_" in parts[-1]), None)
    if doubtful is not None and possible != len(values):
        raise InputError(
            f"combination '{doubtful}' can be taken apart into {len(attributes)} values in several ways; expected '_' "
            "only between values, or a file that names each combination's group"
        )
    return values


def aggregate(matrix: Matrix, to: Aggregation) -> Matrix:
    """Y = A X: the counts of each group."""
    counts = np.zeros((len(to.groups), len(matrix.places)), np.int64)
    np.add.at(counts, np.array(to.group_of), matrix.counts)
    return Matrix(to.groups, matrix.places, counts)


def aggregate_relocation(matrix: Matrix, relocation: Relocation, to: Aggregation) -> Relocation:
    """The transition probabilities of the groups (A1), again without those who stay."""
    group = np.array(to.group_of)[relocation.combination]
    places = len(matrix.places)
    key = (group * places + relocation.source) * places + relocation.target
    moved, at = np.unique(key, return_inverse=True)
    persons = _sums(at, relocation.people(matrix), len(moved))
    group, source, target = moved // places**2, moved // places % places, moved % places
    share = np.minimum(persons / aggregate(matrix, to).counts[group, source], 1.0)  # a sum may round above 1
    return Relocation(group, source, target, share)


def baselines(matrix: Matrix) -> tuple[float, float]:
    """tau* (16) and phi* (18): the risk of the data as they are."""
    if not matrix.cells:
        raise InputError("the matrix has no elements; expected at least one combination and one place")
    return float(_ratio(np.ones(matrix.counts.shape), matrix.counts).mean()), float((matrix.counts == 1).mean())


def measures(matrix: Matrix, relocation: Relocation, to: Aggregation | None = None) -> Measures:
    """Risk and utility of the relocated data (14)-(18), (6), or of an aggregate of them (A1)-(A7).

    An element is unique in phi if it has one person before and after and that person stays for certain.
    """
    if to is None:
        return _measures(matrix, relocation, utility(matrix, relocation))
    moved = aggregate_relocation(matrix, relocation, to)
    matrix = aggregate(matrix, to)
    return _measures(matrix, moved, 1 - realised_noise(matrix, moved) / max(matrix.cells, 1))


def _measures(matrix: Matrix, relocation: Relocation, useful: float) -> Measures:
    tau_before, phi_before = baselines(matrix)
    stay = np.where(matrix.counts > 0, staying(matrix, relocation), 0.0)  # nobody can be found where nobody was
    after = expected(matrix, relocation)
    still = (matrix.counts == 1) & (stay == 1) & (np.abs(after - 1) < _TINY)
    return Measures(float(_ratio(stay, after).mean()), tau_before, float(still.mean()), phi_before, useful)


def realised_noise(matrix: Matrix, relocation: Relocation) -> float:
    """The sum in (A7): how far each element is expected to be from what it was, as a share of that.

    For the data it is E of (5) unless an element both loses and gains, as the relaxed rule and aggregates allow.
    """
    change = np.abs(expected(matrix, relocation) - matrix.counts)
    change[change < _TINY] = 0
    if ((change > 0) & (matrix.counts == 0)).any():
        raise InputError("people move to where nobody of their kind lives; the noise of that, 1/0, is not defined")
    return float(_ratio(change, matrix.counts).sum())


def _ratio(above: Floats, below: Floats | Integers) -> Floats:
    return np.divide(above, below, out=np.zeros(above.shape), where=(above > 0) & (below > 0))


def population_change(matrix: Matrix, relocation: Relocation) -> Floats:
    """How many more people each place is expected to have than before; they add up to 0."""
    persons = relocation.people(matrix)
    places = len(matrix.places)
    change = _sums(relocation.target, persons, places) - _sums(relocation.source, persons, places)
    change[np.abs(change) < _TINY] = 0
    return change


def _sums(at: Integers, values: Floats, length: int) -> Floats:
    return np.bincount(at, values, length).astype(np.float64)  # of nothing, numpy makes whole numbers


def flows(matrix: Matrix, relocation: Relocation) -> pl.DataFrame:
    """Expected persons from each place to each other: `source, target` (numbers of places) and `persons`."""
    places = len(matrix.places)
    pairs, at = np.unique(relocation.source * places + relocation.target, return_inverse=True)
    persons = _sums(at, relocation.people(matrix), len(pairs))
    moved = pl.DataFrame({"source": pairs // places, "target": pairs % places, "persons": persons})
    return moved.filter(pl.col("persons") > _TINY)


def largest_receivers(moved: pl.DataFrame) -> pl.DataFrame:
    """Of each source, the place that receives most of its people (of equals the first): `source, target, persons`."""
    order = ["source", pl.col("persons").round(9), "target"]
    ranked = moved.sort(order, descending=[False, True, False])
    return ranked.unique("source", keep="first", maintain_order=True)


def largest_receiver(moved: pl.DataFrame) -> int | None:
    """The place that receives most people: of equals (many are full) the one with most sources, then the first."""
    into = moved.group_by("target").agg(pl.col("persons").sum().round(9), pl.len().alias("sources"))
    into = into.sort(["persons", "sources", "target"], descending=[True, True, False])
    return None if into.is_empty() else int(into["target"][0])


def characteristics(matrix: Matrix, shares: Sequence[Aggregation]) -> dict[str, Floats]:
    """What may explain a place's change: the percentage of each group of its people, and `total population`.

    A place without people has no percentages (nan); summaries and regressions leave it out.
    """
    total = matrix.counts.sum(0).astype(np.float64)
    found: dict[str, Floats] = {}
    for to in shares:
        part = aggregate(matrix, to).counts
        percent = np.divide(100.0 * part, total, out=np.full(part.shape, np.nan), where=total > 0)
        for group, row in zip(to.groups, percent, strict=True):
            if group in found:
                raise InputError(f"two groups are called '{group}'; expected different names")
            found[group] = row
    return {**found, "total population": total}


def summary(variables: Mapping[str, Floats]) -> pl.DataFrame:
    """Table 3, over places with people: `variable, min, mean, median, max`. The paper prints some medians as means."""
    inhabited = _complete(variables)
    rows = [
        (name, values[inhabited].min(), values[inhabited].mean(), np.median(values[inhabited]), values[inhabited].max())
        for name, values in variables.items()
    ]
    return pl.DataFrame(rows, ["variable", "min", "mean", "median", "max"], orient="row")


def _complete(variables: Mapping[str, Floats]) -> NDArray[np.bool_]:
    if not variables:
        raise InputError("no explanatory variables; expected at least one")
    complete: NDArray[np.bool_] = np.all([np.isfinite(values) for values in variables.values()], axis=0)
    if not complete.any():
        raise InputError("no place has people; there is nothing to explain")
    return complete


@dataclass(frozen=True)
class Fit:
    """A least-squares fit: the intercept comes first in every array."""

    variables: tuple[str, ...]
    coefficients: Floats
    errors: Floats
    t: Floats
    p: Floats  # two-sided
    r2: float
    adjusted_r2: float
    observations: int
    left_out: tuple[str, ...] = ()  # variables that follow from those before them

    def frame(self) -> pl.DataFrame:
        """Table 4: `variable, coefficient, error, t, p`."""
        names = pl.Series("variable", ["(Intercept)", *self.variables])
        columns = {"coefficient": self.coefficients, "error": self.errors, "t": self.t, "p": self.p}
        return pl.DataFrame([names, *(pl.Series(name, values) for name, values in columns.items())])


@dataclass(frozen=True)
class Step:
    """A variable came into the model or went out of it, with its p value at that moment."""

    variable: str
    entered: bool
    p: float


@dataclass(frozen=True)
class Explanation:
    """What explains the change: the stepwise model and how it came about, and all independent variables at once."""

    stepwise: Fit
    steps: tuple[Step, ...]
    plain: Fit


def explained(
    change: Floats,
    variables: Mapping[str, Floats],
    *,
    enter: float = ENTER,
    remove: float = REMOVE,
    standardised: bool = True,
) -> Explanation:
    """What explains the change of the places: stepwise as in the paper, and plain ordinary least squares."""
    fit, steps = stepwise(change, variables, enter=enter, remove=remove, standardised=standardised)
    return Explanation(fit, steps, least_squares(change, variables, standardised=standardised))


def least_squares(response: Floats, variables: Mapping[str, Floats], *, standardised: bool = True) -> Fit:
    """Ordinary least squares with an intercept, over places where all variables are known.

    Standardised, the response and every variable have mean 0 and standard deviation 1. A variable that is constant or a
    sum of earlier ones and constants (the last of percentages that make up 100) is left out, and named.
    """
    y, columns = _prepared(response, variables, standardised=standardised)
    names, left_out = list[str](), list[str]()
    for name in variables:
        dependent = _residual(columns[name], [columns[other] for other in names]) is None
        (left_out if dependent else names).append(name)
    return _fit(y, columns, names, left_out)


def stepwise(
    response: Floats,
    variables: Mapping[str, Floats],
    *,
    enter: float = ENTER,
    remove: float = REMOVE,
    standardised: bool = True,
) -> tuple[Fit, tuple[Step, ...]]:
    """Stepwise regression as paper 003 describes it (Draper and Smith), by p values.

    Start with the intercept. Add the most significant variable, if its p value is below `enter`; then remove, one at a
    time, the least significant one whose p value is not below `remove`; until nothing enters. The paper does not say
    its limits: 0.05 is the custom. Of equally significant variables (a share and its complement) the first enters.
    """
    if not 0 < enter <= remove < 1:
        raise InputError(f"limits {enter} to enter and {remove} to remove; expected 0 < enter <= remove < 1")
    y, columns = _prepared(response, variables, standardised=standardised)
    model, steps, seen = list[str](), list[Step](), set[frozenset[str]]()
    while frozenset(model) not in seen:  # rounding could otherwise go round in circles
        seen.add(frozenset(model))
        best: tuple[float, float, str] | None = None
        for name in variables:
            others = [columns[other] for other in model]
            if name in model or _residual(columns[name], others) is None or len(y) < len(model) + 3:
                continue
            fit = _fit(y, columns, [*model, name])
            size, p = abs(float(fit.t[-1])), float(fit.p[-1])
            if best is None or size > best[0] * (1 + _TIE):
                best = size, p, name
        if best is None or best[1] >= enter:
            break
        model.append(best[2])
        steps.append(Step(best[2], True, best[1]))
        while model:
            fit = _fit(y, columns, model)
            worst = int(np.argmin(np.abs(fit.t[1:])))
            if fit.p[1 + worst] < remove:
                break
            steps.append(Step(model.pop(worst), False, float(fit.p[1 + worst])))
    return _fit(y, columns, model), tuple(steps)


def _prepared(
    response: Floats, variables: Mapping[str, Floats], *, standardised: bool
) -> tuple[Floats, dict[str, Floats]]:
    """Response and variables of the complete places; each centred, and divided by its standard deviation if asked."""
    wrong = next((name for name, values in variables.items() if len(values) != len(response)), None)
    if wrong is not None:
        raise InputError(f"'{wrong}' has {len(variables[wrong])} values; expected {len(response)}, one per place")
    complete = _complete(variables)
    y = np.asarray(response, np.float64)[complete]
    if len(y) < 3:
        raise InputError(f"{len(y)} places with people; expected at least 3 to explain their change")
    if np.ptp(y) == 0:
        raise InputError("the change is the same in every place; there is nothing to explain")
    if not standardised:
        return y, {name: values[complete].astype(np.float64) for name, values in variables.items()}
    return _scaled(y), {name: _scaled(values[complete]) for name, values in variables.items()}


def _scaled(values: Floats) -> Floats:
    centred = values - values.mean()
    deviation = centred.std(ddof=1)
    return centred / deviation if deviation > 1e-12 * (1 + np.abs(values).max()) else np.zeros(len(values))


def _residual(column: Floats, others: Sequence[Floats]) -> Floats | None:
    """What of a variable the intercept and the others do not tell; None if nothing."""
    design = np.column_stack([np.ones(len(column)), *others])
    size = np.linalg.norm(column)
    if size == 0:
        return None
    rest: Floats = column - design @ np.linalg.lstsq(design, column, rcond=None)[0]
    return rest if np.linalg.norm(rest) > 1e-9 * size else None


def _fit(y: Floats, columns: Mapping[str, Floats], names: Sequence[str], left_out: Sequence[str] = ()) -> Fit:
    design = np.column_stack([np.ones(len(y)), *(columns[name] for name in names)])
    free = len(y) - design.shape[1]
    if free < 1:
        raise InputError(f"{len(names)} variables for {len(y)} places; expected at least two places more")
    q, r = np.linalg.qr(design)
    inverse = np.linalg.inv(r)
    coefficients = inverse @ (q.T @ y)
    rest = y - design @ coefficients
    around = y - y.mean()
    unexplained, total = float(rest @ rest), float(around @ around)
    errors = np.sqrt(unexplained / free * (inverse**2).sum(1))
    t = np.divide(coefficients, errors, out=np.copysign(np.inf, coefficients), where=errors > 0)
    return Fit(
        tuple(names),
        coefficients,
        errors,
        t,
        2 * stdtr(free, -np.abs(t)),
        1 - unexplained / total,
        1 - (unexplained / free) / (total / (len(y) - 1)),
        len(y),
        tuple(left_out),
    )
