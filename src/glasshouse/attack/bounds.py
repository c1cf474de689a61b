"""What can every number be that is not printed exactly? The least and the most over all data that fit everything.

Every level is asked alone: a place, or an area, with its own tables. Together, the numbers of all levels of a unit say
more. Small units are solved so as a whole. In large ones limits move from level to level by propagation alone, and each
place is then solved with what that left of its limits: such bounds hold, but nobody knows whether data that fit all
levels meet them, unless the two ends are one. Every answer tells its scope.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.nesting import only_places, with_rests
from glasshouse.attack.published import untold
from glasshouse.errors import GlasshouseBug, InputError, unknown
from glasshouse.model.geography import Geography
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.model.release import Counts, Table, counted
from glasshouse.model.schema import Predicate, Schema
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import CLIMB, ORDER, Ladder
from glasshouse.program.numbers.linked import Linked, link, numbers_of
from glasshouse.program.numbers.mend import mend
from glasshouse.program.numbers.reasons import gives_away
from glasshouse.program.numbers.system import Layer, System, alone, together
from glasshouse.program.propagate import Array
from glasshouse.program.tables.cells import partition

AS_ONE = 15_000_000  # variables times open numbers of a unit that is solved as a whole, for a unit of effort
UNDECIDED = ORDER.index(Proof.UNDECIDED)
FITS, UNSURE, NOTHING = 1, 0, -1
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class LevelBounds:
    """The numbers of one level of a unit, places x variables: as published, and what they can be.

    `low` and `high` are proved; some data that fit count `met_low` and `met_high` (-1: nothing was met). What was not
    printed is 0 to UNLIMITED. `proof` (an index into ORDER) says how sure it is that the two agree. `scope` is the
    largest level whose numbers were used, `fits` whether data that fit were found (1), or none exist (-1).
    """

    level: str
    places: tuple[str, ...]
    variables: tuple[str, ...]
    lower: Count
    upper: Count
    low: Count
    high: Count
    met_low: Count
    met_high: Count
    proof: NDArray[np.int8]
    scope: tuple[str, ...]
    fits: NDArray[np.int8]
    clock: bool = False  # the wall clock stopped something: another run may say more

    @property
    def hidden(self) -> Flags:
        """The numbers that are not printed exactly."""
        return np.asarray(self.lower < self.upper)


@dataclass(frozen=True)
class UnitBounds:
    """Every level of a unit, coarse to fine; and whether data that fit all levels together were found (1), are not
    known (0), or do not exist (-1): then every level was asked alone."""

    levels: tuple[LevelBounds, ...]
    fits: int


class Printed(NamedTuple):
    """A published number."""

    level: str
    place: str
    variable: str
    lower: int
    upper: int


@dataclass(frozen=True)
class Reason:
    """Published numbers that keep a number within its bounds; `minimal`: without any one of them they do not."""

    numbers: tuple[Printed, ...]
    minimal: bool
    scope: str
    proof: Proof = Proof.EXACT


@dataclass(frozen=True)
class Nearest:
    """Where nothing fits: the least by which numbers must change in all, and those that change in some nearest data."""

    total: int
    proof: Proof
    changes: tuple[tuple[Printed, int], ...]  # with the value that each has in those data


class _Frame:
    """The numbers of one or several levels, compiled: their names, and how they hang together."""

    def __init__(self, names: tuple[str, ...], linked: Linked) -> None:
        self.names, self.linked = names, linked
        self.column = {name: at for at, name in enumerate(names)}

    def limits(self, counts: Counts) -> tuple[Count, Count]:
        """The limits of every number at every place; of what was not printed there, none."""
        shape = len(counts.places), len(self.names)
        lower, upper = np.zeros(shape, np.int64), np.full(shape, UNLIMITED, np.int64)
        to = self.columns(counts)
        lower[:, to], upper[:, to] = counts.lower, np.minimum(counts.upper, UNLIMITED)
        return lower, upper

    def columns(self, counts: Counts) -> Array:
        """Where the numbers of a level stand."""
        return np.array([self.column[variable] for variable in counts.variables], np.int64)


@dataclass(frozen=True)
class _Unit:
    """The numbers of a unit, finest level first, places in order; a rest of an area is no place that has a name."""

    levels: tuple[Counts, ...]
    geography: Geography

    @cached_property
    def named(self) -> tuple[Flags, ...]:
        above = [{place for other in self.levels[at + 1 :] for place in other.places} for at in range(len(self.levels))]
        pairs = zip(self.levels, above, strict=True)
        return tuple(np.array([place not in rest for place in counts.places], np.bool_) for counts, rest in pairs)

    @property
    def scope(self) -> str:
        return self.levels[-1].level

    def joint(self, frame: _Frame) -> System:
        """All levels as one program."""
        places, *areas = self.levels
        layers: list[Layer] = []
        for at, counts in enumerate(areas):
            of = np.array([counts.row[self.geography.code(place, counts.level)] for place in places.places], np.int64)
            nested = at > 0 and {counts.level, areas[at - 1].level} <= set(self.geography.lengths)
            upper = np.minimum(counts.upper, UNLIMITED)
            layers.append(Layer(counts.lower, upper, frame.columns(counts), of, at - 1 if nested else -1))
        return together(frame.linked, *frame.limits(places), layers)


class Bounder:
    """Bounds of the numbers of units; what depends on the published tables alone is compiled once.

    `asked` are further descriptions, by name; with `everything` lines that were not printed are told, too. `whole`: the
    places that are named are all there are; otherwise every area has a rest (convention 61).
    """

    def __init__(
        self, schema: Schema, tables: Sequence[Table], geography: Geography, *,
        asked: Mapping[str, Predicate] | None = None, everything: bool = False, whole: bool = True,
    ) -> None:  # fmt: skip
        self.schema, self.tables, self.geography = schema, tuple(tables), geography
        self.asked, self.everything, self.whole = dict(asked or {}), everything, whole
        self._frames: dict[tuple[tuple[str, ...], ...], _Frame | None] = {}

    def bounds(self, levels: Mapping[str, Counts], ladder: Ladder = CLIMB) -> UnitBounds:
        """What the numbers of a unit can be."""
        unit = self._unit(levels)
        frame = self._frame(unit.levels) if len(unit.levels) > 1 else None
        if frame is None:
            return self._each_alone(unit, ladder)
        system = unit.joint(frame)
        if system.split.impossible[0]:
            return replace(self._each_alone(unit, ladder), fits=NOTHING)
        if _size(unit, frame, system) <= AS_ONE * ladder.limit.effort:
            told = self._as_one(unit, frame, system, ladder)
            return told if told.fits == FITS else replace(self._each_alone(unit, ladder), fits=told.fits)
        return self._tightened(unit, frame, system, ladder)

    def why(
        self, levels: Mapping[str, Counts], told: LevelBounds, place: str, variable: str, ladder: Ladder = CLIMB
    ) -> Reason | None:
        """A smallest set of published numbers that keeps a number within the bounds told; None: not found.

        The numbers of its own place are tried first; then all levels, if the unit is small.
        """
        unit, row = self._unit(levels), told.places.index(place)
        if variable not in told.variables:
            raise unknown("number", variable, told.variables)
        at = told.variables.index(variable)
        low, high = int(told.low[row, at]), int(told.high[row, at])
        number = next(number for number, counts in enumerate(unit.levels) if counts.level == told.level)
        counts = unit.levels[number]
        frame = self._frame([counts])
        if frame is not None:
            one = only_places(counts, np.array([counts.row[place]]))
            system = alone(frame.linked, *frame.limits(one))
            target = int(system.variable[0][0, frame.column[variable]])
            found = _reason((one,), frame, system, target, (low, high), told.level, ladder)
            if found is not None:
                return found
        frame = self._frame(unit.levels) if len(unit.levels) > 1 else None
        if frame is None:
            return None
        system = unit.joint(frame)
        if _size(unit, frame, system) > AS_ONE * ladder.limit.effort:
            return None
        target = int(_variables(frame, system, unit, number)[counts.row[place], at])
        return _reason(unit.levels, frame, system, target, (low, high), unit.scope, ladder)

    def nearest(self, levels: Mapping[str, Counts], level: str, place: str, ladder: Ladder = CLIMB) -> Nearest | None:
        """How little the numbers of a place must change so that something fits them; None: nothing was found."""
        counts = levels[level]
        one = only_places(counts, np.array([counts.row[place]]))
        frame = self._frame([_with(one, self._wanted(one))])
        if frame is None:
            return None
        nothing, anything = (
            np.zeros((1, len(frame.names)), np.int64),
            np.full((1, len(frame.names)), UNLIMITED, np.int64),
        )
        system = alone(frame.linked, nothing, anything)
        printed = system.variable[0][0, frame.columns(one)]
        lower, upper = one.lower[0], np.minimum(one.upper[0], UNLIMITED)
        found = mend(system.programs, printed, lower, upper, ladder)
        if found is None:
            return None
        moved = np.flatnonzero((found.values < lower) | (found.values > upper))
        changes = tuple(
            (Printed(level, place, one.variables[at], int(lower[at]), int(upper[at])), int(found.values[at]))
            for at in moved
        )
        return Nearest(found.total, found.proof if found.total == found.floor else Proof.UNDECIDED, changes)

    def _unit(self, levels: Mapping[str, Counts]) -> _Unit:
        finest_first = [levels[level] for level in reversed(self.geography.levels) if level in levels]
        some = finest_first if self.whole or len(finest_first) < 2 else with_rests(finest_first, self.geography)
        ordered = (only_places(counts, np.argsort(counts.places, kind="stable")) for counts in some)
        return _Unit(tuple(_with(counts, self._wanted(counts)) for counts in ordered), self.geography)

    def _frame(self, levels: Sequence[Counts]) -> _Frame | None:
        """The numbers of some levels, compiled; None: together they tell more kinds of record apart than can be."""
        key = tuple(counts.variables for counts in levels)
        if key not in self._frames:
            try:
                self._frames[key] = self._compile(levels)
            except InputError:
                if len(levels) == 1:
                    raise
                self._frames[key] = None
        return self._frames[key]

    def _compile(self, levels: Sequence[Counts]) -> _Frame:
        printed = {variable for counts in levels for variable in counts.variables}.difference(self.asked)
        tables = [table for table in self.tables if any(line.variable in printed for line in table.lines)]
        chosen = {name for table in tables for name in self._lines(table, printed)}
        lines = [(table, line) for table in tables for line in table.lines if line.variable in chosen]
        asked = set().union(*(one.by_attribute for one in self.asked.values())) if self.asked else set()
        away = tuple(name for name in untold(self.schema, tables) if name not in asked)
        told = [predicate for table, line in lines for predicate in counted(table, line)]
        cells = partition(self.schema.looking_away(away), [*told, *self.asked.values()])
        numbers = numbers_of(cells, tables, chosen, self.asked)
        return _Frame(numbers.names, link(numbers))

    def _lines(self, table: Table, printed: set[str]) -> Iterator[str]:
        """The lines that are printed, and sums of such; or all."""
        for line in table.lines:
            if self.everything or line.variable in printed or all(
                leaf.variable in printed for leaf in table.leaves_of(line)
            ):  # fmt: skip
                yield line.variable

    def _wanted(self, counts: Counts) -> tuple[str, ...]:
        """The numbers of a level that are told: what is printed, what is asked for, and with `everything` all lines."""
        tables = [table for table in self.tables if any(line.variable in counts.column for line in table.lines)]
        lines = [line.variable for table in tables for line in table.lines]
        printed = (name for name in lines if self.everything or name in counts.column)
        return (*dict.fromkeys(printed), *self.asked)

    # How it is asked

    def _each_alone(self, unit: _Unit, ladder: Ladder) -> UnitBounds:
        told = [self._alone(unit, number, ladder) for number in range(len(unit.levels))]
        return UnitBounds(tuple(reversed(told)), int(told[0].fits.min(initial=FITS)) if len(told) == 1 else UNSURE)

    def _alone(
        self, unit: _Unit, number: int, ladder: Ladder, within: tuple[Count, Count] | None = None
    ) -> LevelBounds:
        """The places of a level, each by itself, with their own limits or narrower ones."""
        counts = unit.levels[number]
        frame, rows = self._frame([counts]), np.flatnonzero(unit.named[number])
        if frame is None:
            raise GlasshouseBug("the tables of one level were not compiled")
        lower, upper = (limits[rows] for limits in frame.limits(counts))
        if within is not None:
            lower, upper = np.maximum(lower, within[0][rows]), np.minimum(upper, within[1][rows])
        system = alone(frame.linked, lower, upper)
        variable = system.variable[0][:, frame.columns(counts)]
        return _Found(system, [variable], ladder).told(counts, rows, variable, counts.level)

    def _as_one(self, unit: _Unit, frame: _Frame, system: System, ladder: Ladder) -> UnitBounds:
        rows = [np.flatnonzero(named) for named in unit.named]
        variables = [_variables(frame, system, unit, number)[some] for number, some in enumerate(rows)]
        found = _Found(system, variables, ladder)
        told = [
            found.told(counts, rows[number], variables[number], unit.scope) for number, counts in enumerate(unit.levels)
        ]
        return UnitBounds(tuple(reversed(told)), int(found.ends.fits[0]))

    def _tightened(self, unit: _Unit, frame: _Frame, system: System, ladder: Ladder) -> UnitBounds:
        """What propagation over all levels leaves of the limits, then every place by itself.

        Met is what data were found to have that fit all levels; what every place must have, all such data have.
        """
        variables = [_variables(frame, system, unit, number) for number in range(len(unit.levels))]
        wanted = np.unique(np.concatenate([some.reshape(-1) for some in variables]))
        known = system.walked(wanted, system.loose) if system.loose.all() else None
        fits = FITS if known is not None and known.found[0] else UNSURE
        told = []
        for number, counts in enumerate(unit.levels):
            limits, rows = system.split, np.flatnonzero(unit.named[number])
            left = replace(counts, lower=limits.lower[variables[number]], upper=limits.upper[variables[number]])
            own = self._frame([counts])
            one = self._alone(unit, number, ladder, None if own is None else own.limits(left))
            same = one.low == one.high
            low, high = np.where(same, one.low, -1), np.where(same, one.high, -1)
            if known is not None and fits == FITS:
                low, high = known.low[variables[number][rows]], known.high[variables[number][rows]]
            sure = same | ((low == one.low) & (high == one.high))
            told.append(
                replace(
                    one,
                    met_low=low,
                    met_high=high,
                    proof=np.where(sure, 0, UNDECIDED).astype(np.int8),
                    scope=(unit.scope,) * len(one.places),
                    fits=np.where(one.fits == NOTHING, NOTHING, fits).astype(np.int8),
                )
            )
        if any((one.fits == NOTHING).any() for one in told):
            return replace(self._each_alone(unit, ladder), fits=NOTHING)
        return UnitBounds(tuple(reversed(told)), fits)


def _size(unit: _Unit, frame: _Frame, system: System) -> int:
    """How much work a unit is as a whole: the variables of each part, once for each number of it that is open."""
    whole = system.split
    wanted = np.zeros(len(whole.lower), np.bool_)
    for number, named in enumerate(unit.named):
        wanted[_variables(frame, system, unit, number)[named]] = True
    sizes = np.diff(whole.parts.first)
    part = np.repeat(np.arange(len(sizes)), sizes)
    tied = sizes * (np.diff(whole.parts.row_first) > 0)
    return int((tied * np.bincount(part, wanted[whole.origin], len(sizes)).astype(np.int64)).sum())


def _with(counts: Counts, names: Sequence[str]) -> Counts:
    """The numbers of a level, and others of which nothing is known."""
    at = np.array([counts.column.get(name, -1) for name in names], np.int64)
    lower = np.where(at >= 0, counts.lower[:, at], 0)
    upper = np.where(at >= 0, np.minimum(counts.upper, UNLIMITED)[:, at], UNLIMITED)
    return Counts(counts.level, counts.places, tuple(names), lower, upper)


def _variables(frame: _Frame, system: System, unit: _Unit, number: int) -> Array:
    """The variables of the numbers of a level: places have all numbers of the frame, areas their own."""
    return system.variable[0][:, frame.columns(unit.levels[0])] if number == 0 else system.variable[number]


class _Found:
    """The ends of some variables, and what they say of the numbers of a level."""

    def __init__(self, system: System, variables: Sequence[Array], ladder: Ladder) -> None:
        self.wanted = np.unique(np.concatenate([some.reshape(-1) for some in variables]))
        loose = system.loose
        known = system.walked(self.wanted, loose) if loose.any() else None
        self.ends = system.ends(self.wanted, ladder, known)

    def told(self, counts: Counts, rows: Array, variable: Array, scope: str) -> LevelBounds:
        """The numbers of some places, with the variables of each; one program for all, or one each."""
        found, at = self.ends, np.searchsorted(self.wanted, variable)
        fits = np.broadcast_to(found.fits, (len(rows),)).copy()
        met = (fits == FITS)[:, None]
        return LevelBounds(
            counts.level,
            tuple(counts.places[row] for row in rows),
            counts.variables,
            counts.lower[rows],
            counts.upper[rows],
            found.low[at],
            found.high[at],
            np.where(met, found.met_low[at], -1),
            np.where(met, found.met_high[at], -1),
            np.where(met, np.maximum(found.low_proof, found.high_proof)[at], UNDECIDED).astype(np.int8),
            (scope,) * len(rows),
            fits,
            bool(found.clock.any()),
        )


def _reason(
    levels: Sequence[Counts], frame: _Frame, system: System, target: int, bounds: tuple[int, int], scope: str,
    ladder: Ladder,
) -> Reason | None:  # fmt: skip
    """The published numbers of some levels that keep a variable within its bounds."""
    printed: list[Printed] = []
    variables: list[int] = []
    for number, counts in enumerate(levels):
        columns = frame.columns(counts) if number == 0 else np.arange(len(counts.variables))
        for row, place in enumerate(counts.places):
            for at, name in enumerate(counts.variables):
                lower, upper = int(counts.lower[row, at]), min(int(counts.upper[row, at]), UNLIMITED)
                printed.append(Printed(counts.level, place, name, lower, upper))
                variables.append(int(system.variable[number][row, columns[at]]))
    lows, highs = (np.array([one[side] for one in printed], np.int64) for side in (3, 4))
    found = gives_away(system.programs, np.array(variables, np.int64), lows, highs, target, *bounds, ladder)
    if found is None:
        return None
    return Reason(tuple(printed[at] for at in found.chosen), found.minimal, scope, found.proof)
