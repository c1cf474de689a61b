"""What do the numbers of two agencies say about one block? Limits for every statement, or why the block is left out.

After appendix D of Steed, Qing and Wu: several properties of a block are one, their numbers added up; the households
that report are taken for all that are subsidised; blocks whose numbers show that a property is not where its address
is (more subsidised households than households, or people than people) are left out and counted.

Percentages of units say little of households where units stand empty. Of D units at least L_k have k bedrooms, by the
percentage (the size of a unit may be missing); R households report, one a unit, so D - R units have nobody who does. So
numbers n_k of these households are possible just where n(T) >= L(T) - (D - R) for every set T of sizes: the units of T
without a household are at most all units without one, and where that holds for every T the others can be found room.
Nobody says what the percentages are of, all units or those of the households that report (D = R): both are *readings*,
and what is said of a block holds under each that is possible. Percentages printed with decimals may tell: 39.39% is 26
of 66 households and no number of 72 units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from glasshouse.attack.occupancy.kinds import Block
from glasshouse.errors import InputError
from glasshouse.files.shares import rounded, rounded_down, within_rounding
from glasshouse.model.records import UNLIMITED, Interval
from glasshouse.scenarios.occupancy import Model, Occupancy, Sense, Statement

QUARTERS = "group quarters"
MORE_HOUSEHOLDS = "more subsidised households than households"
MORE_PEOPLE = "more subsidised people than people"
NO_HOUSEHOLDS = "no households"
REASONS = (QUARTERS, NO_HOUSEHOLDS, MORE_HOUSEHOLDS, MORE_PEOPLE)


@dataclass(frozen=True)
class Property:
    """What is published of a property: households that report; counts and percentages by column (None: unknown).

    A percentage is a whole number of the last decimal that its column is printed with; `decimals` says how many.
    """

    reported: int
    columns: Mapping[str, int | None]
    decimals: Mapping[str, int] = field(default_factory=dict)

    def within(self, column: str, of: int) -> tuple[int, int]:
        """The fewest and the most of so many that a percentage allows; all, where it is not known."""
        share = self.columns.get(column)
        return (0, of) if share is None else within_rounding(share, of, self.decimals.get(column, 0))

    def rounded_down(self, column: str, of: int) -> int:
        """At least so many: a percentage rounded down; printed with decimals and leaving one count, that count."""
        digits, share = self.decimals.get(column, 0), self.columns.get(column) or 0
        low, high = within_rounding(share, of, digits)
        return low if digits and low == high else rounded_down(share, of, digits)

    def rounded(self, column: str, of: int) -> int:
        """A percentage, rounded to a count."""
        return rounded(self.columns.get(column) or 0, of, self.decimals.get(column, 0))

    def fits(self, columns: Sequence[str], of: int) -> bool:
        """Do some counts of so many give all these percentages, as parts of one whole?"""
        ends = [self.within(column, of) for column in columns]
        return all(low <= high for low, high in ends) and sum(low for low, _ in ends) <= of


@dataclass(frozen=True)
class LeftOut:
    """A block that is not asked about, and why."""

    code: str
    reason: str


def readings_of(
    occupancy: Occupancy,
    model: Model,
    code: str,
    census: Mapping[str, Interval],
    properties: Sequence[Property],
) -> tuple[Block, ...] | LeftOut:
    """The limits of every statement of a model, under each reading; a number that is not published has none.

    Readings that another one includes are left out: mostly one is left.
    """
    households = _exact(occupancy.households, code, census)
    subsidised = sum(one.reported for one in properties)
    if left_out := _left_out(occupancy, model, census, properties, households, subsidised):
        return LeftOut(code, left_out)
    exact = [not one.of_property and one.name in census and census[one.name].lower == census[one.name].upper
             for one in model.statements]  # fmt: skip
    found = []
    told = of_those_who_report(model, properties, occupancy)
    for all_units in (False,) if told else (True, False):
        limits = [
            _of_units(statement, properties, occupancy, all_units, told)
            if statement.units
            else _of_properties(statement, properties, occupancy, census)
            if statement.of_property
            else _of_census(statement, census)
            for statement in model.statements
        ]
        lower, upper = (np.array(some, np.int64) for some in zip(*limits, strict=True))
        flags = np.array(exact, np.bool_)
        found.append(Block(code, households, subsidised, lower, np.minimum(upper, UNLIMITED), flags))
    return _widest(found)


def _widest(readings: Sequence[Block]) -> tuple[Block, ...]:
    """Without the readings whose limits all lie within those of another."""
    kept: list[Block] = []
    for at, one in enumerate(readings):
        others = (*kept, *readings[at + 1 :])
        if not any((one.lower >= other.lower).all() and (one.upper <= other.upper).all() for other in others):
            kept.append(one)
    return tuple(kept)


def _exact(variable: str, code: str, census: Mapping[str, Interval]) -> int:
    if variable not in census:
        raise InputError(f"block {code}: {variable} is not published; it says how many households there are")
    if census[variable].lower != census[variable].upper:
        raise InputError(f"block {code}: {variable} is an interval; the number of households must be exact")
    return census[variable].lower


def _left_out(
    occupancy: Occupancy, model: Model, census: Mapping[str, Interval], properties: Sequence[Property],
    households: int, subsidised: int,
) -> str:  # fmt: skip
    everyone, residents = (census.get(name) for name in (occupancy.everyone, occupancy.residents))
    if model.without_quarters and everyone and residents and everyone.lower > residents.upper:
        return QUARTERS
    if households == 0:
        return NO_HOUSEHOLDS
    if subsidised > households:
        return MORE_HOUSEHOLDS
    column = occupancy.people
    people = sum(one.columns.get(column) or 0 for one in properties)
    known = residents or everyone
    return MORE_PEOPLE if known is not None and people > known.upper else ""


def _of_census(statement: Statement, census: Mapping[str, Interval]) -> tuple[int, int]:
    number = census.get(statement.name, Interval(0))
    return (number.lower, UNLIMITED) if statement.sense == Sense.AT_LEAST else (number.lower, number.upper)


def _of_properties(
    statement: Statement, properties: Sequence[Property], occupancy: Occupancy, census: Mapping[str, Interval]
) -> tuple[int, int]:
    """The limits of all properties of a block together."""
    each = [_of_property(statement, one) for one in properties]
    lower, upper = sum(low for low, _ in each), sum(high for _, high in each)
    if statement.sense == Sense.AT_LEAST_OR_ALL:
        lower = min(lower, largest(occupancy, census, sum(one.reported for one in properties)))
    if statement.sense in (Sense.AT_LEAST, Sense.AT_LEAST_OR_ALL, Sense.ROUNDED_DOWN):
        upper = UNLIMITED
    return lower, upper


def _of_property(statement: Statement, one: Property) -> tuple[int, int]:
    values = [one.columns.get(column) for column in statement.columns]
    if any(value is None for value in values):
        return 0, one.reported if statement.share else UNLIMITED
    known = [value for value in values if value is not None]
    if not statement.share:
        return known[0], known[0]
    if statement.sense == Sense.WITHIN_ROUNDING:
        ends = [one.within(column, one.reported) for column in statement.columns]
        return sum(low for low, _ in ends), sum(high for _, high in ends)
    how = one.rounded_down if statement.sense == Sense.ROUNDED_DOWN else one.rounded
    total = min(sum(how(column, one.reported) for column in statement.columns), one.reported)
    return total, total


def of_those_who_report(model: Model, properties: Sequence[Property], occupancy: Occupancy) -> bool:
    """Do decimals show that percentages are of the households that report: no count of all units gives them?"""
    sizes = {occupancy.sizes_of_units(statement) for statement in model.statements if statement.units}
    refuted = any(
        one.columns.get(occupancy.units) is not None and not one.fits(printed, one.columns[occupancy.units] or 0)
        for one in properties
        for columns in sizes
        if (printed := [column for column in columns if one.decimals.get(column)])
    )
    return refuted and all(one.fits(columns, one.reported) for one in properties for columns in sizes)


def _of_units(
    statement: Statement, properties: Sequence[Property], occupancy: Occupancy, all_units: bool, told: bool
) -> tuple[int, int]:
    """The fewest households that report and live in such units, in all properties; more than all: none can.

    Where it is told that the percentages are of these households, that does not depend on which units stand empty.
    """
    if told:
        return sum(one.within(column, one.reported)[0] for one in properties for column in statement.columns), UNLIMITED
    if statement.sense == Sense.IN_LARGEST_UNITS:
        return sum(_in_largest(statement, one, occupancy) for one in properties), UNLIMITED
    each = [_in_any(statement, one, occupancy, all_units) for one in properties]
    possible = [low for low in each if low is not None]
    everybody = sum(one.reported for one in properties)
    return (sum(possible) if len(possible) == len(each) else everybody + 1), UNLIMITED


def _in_any(statement: Statement, one: Property, occupancy: Occupancy, all_units: bool) -> int | None:
    """Whichever units have nobody who reports; None where no counts of households give the percentages.

    Of units, a percentage that no count gives stands for the count just below; where percentages make more units than
    there are said to be, there are as many as they make.
    """
    units = one.columns.get(occupancy.units) if all_units else one.reported
    if units is None:  # nobody knows how many stand empty
        return 0
    ends = {column: one.within(column, units) for column in occupancy.sizes_of_units(statement)}
    least = {column: min(low, high) for column, (low, high) in ends.items()}
    if not all_units and (any(low > high for low, high in ends.values()) or sum(least.values()) > units):
        return None
    return max(sum(least[column] for column in statement.columns) - _empty(one, max(units, sum(least.values()))), 0)


def _in_largest(statement: Statement, one: Property, occupancy: Occupancy) -> int:
    """If it is the smallest units that have nobody who reports (appendix D); percentages are rounded down."""
    units = one.columns.get(occupancy.units)
    if units is None:
        return 0
    total, before, found = 0, 0, 0
    for column in occupancy.sizes_of_units(statement):
        total += one.rounded_down(column, units)
        housed = max(total - _empty(one, units), 0)
        found += (housed - before) * (column in statement.columns)
        before = housed
    return found


def _empty(one: Property, units: int) -> int:
    """Units with nobody who reports. Of more households than units, those beyond may live anywhere (appendix D)."""
    return max(units - one.reported, 0)


def largest(occupancy: Occupancy, census: Mapping[str, Interval], households: int) -> int:
    """The most persons that so many of the block's households can have together, by the census alone."""
    people = (census.get(occupancy.residents) or census.get(occupancy.everyone) or Interval(0)).upper
    sizes = {name: least for name, least in occupancy.sizes.items() if name in census}
    if len(sizes) < len(occupancy.sizes) or people >= UNLIMITED:
        return UNLIMITED
    order = sorted(sizes.items(), key=lambda one: -one[1])
    beyond = people - sum(least * census[name].upper for name, least in sizes.items())
    total, left = 0, households
    for name, least in order:
        taken = min(left, census[name].upper)
        total, left = total + taken * least, left - taken
    open_ended = census[order[0][0]].upper > 0 and households > 0  # the others have just as many as their line says
    return people if left else min(people, total + max(beyond, 0) * open_ended)
