"""What is inferred about a person, and what would be had they not been there?

The paper calls this first best and does without: remove one person, swap again, tabulate again, rebuild again, infer
again. Both worlds share their chance: the same draws swap the households, rebuild the records and break the ties.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from glasshouse.assess.baselines import Neighbours, modal_guess, shares
from glasshouse.assess.people.facts import (
    ATTACKER,
    MODAL,
    ORDER,
    PROPORTIONAL,
    PUBLISHED,
    TRUTH,
    Around,
    Facts,
    Named,
    Reidentification,
    Together,
    named,
    only,
    true_rows,
)
from glasshouse.assess.people.groups import EVERYBODY, EXPOSED, NONMODAL
from glasshouse.assess.rates import paired
from glasshouse.assess.reidentification import added
from glasshouse.attack.people.counterfactual import Tabled, World, inferred, ordered
from glasshouse.attack.people.reidentify import NOBODY, Ints, People
from glasshouse.attack.published import Published
from glasshouse.files.records import level_matrix
from glasshouse.model.chance import chance
from glasshouse.model.geography import Geography
from glasshouse.model.records import Codes
from glasshouse.program.integer import Limit
from glasshouse.program.ladder import Ladder
from glasshouse.protection.swap.persons import Settled

GROUPS = (EVERYBODY, NONMODAL, EXPOSED)
HOUSEHOLD = "household_id"
ROW = "row"  # of a person in the whole truth
OR_GUESS = f"+{MODAL}"  # and the modal guess where no record is found
PREFIX = "L"  # a unit of this job goes by this and its code

LEAVING = pl.Schema(
    {
        "data": pl.String, "attacker": pl.String, "group": pl.String, "persons": pl.Int64, "listed": pl.Int64,
        "inferred_in": pl.Int64, "inferred_out": pl.Int64, "right_in": pl.Int64, "right_out": pl.Int64,
        "right_both": pl.Int64,
    }
)  # fmt: skip


@dataclass(frozen=True)
class Attack:
    """A reconstruction that can be done again: its tables, and the chance it was done with."""

    name: str
    published: Published
    area_level: str | None
    seed: int
    effort: float
    question: str  # what its chance was drawn for

    @property
    def ladder(self) -> Ladder:
        return Ladder(limit=Limit(effort=self.effort, seconds=None))

    def tabled(self, places: tuple[str, ...], geography: Geography) -> Tabled:
        levels = geography.place, self.area_level
        if self.area_level is None:
            return Tabled(self.published, places, (), np.zeros(len(places), np.int64), levels)
        codes = [geography.code(place, self.area_level) for place in places]
        areas = sorted(set(codes))
        return Tabled(self.published, places, tuple(areas), np.searchsorted(areas, codes).astype(np.int64), levels)


@dataclass(frozen=True)
class Everyone:
    """All persons of the truth, to be swapped again: where their households go, and what they say."""

    settled: Settled
    codes: Codes  # of each person
    places: tuple[str, ...]  # by number, sorted

    @cached_property
    def _by_unit(self) -> tuple[Ints, Ints]:
        unit = self.settled.persons.unit
        return np.argsort(unit, kind="stable"), np.searchsorted(
            np.sort(unit), np.arange(self.settled.persons.units + 1)
        )

    def world(self, unit_place: Ints, first: int, last: int, gone: int = NOBODY) -> World:
        """The records of places `first` to `last` when units are where `unit_place` says, without one person."""
        order, bounds = self._by_unit
        units = np.flatnonzero((unit_place >= first) & (unit_place < last))
        rows = np.concatenate([np.empty(0, np.int64), *(order[bounds[u] : bounds[u + 1]] for u in units)])
        rows = rows[rows != gone]
        return World.of(unit_place[self.settled.persons.unit[rows]] - first, self.codes[rows])


@dataclass(frozen=True)
class LeavingOut:
    """What all units of the job share."""

    base: Reidentification
    attacks: tuple[Attack, ...]
    everyone: Everyone | None  # None: the swap is held as it was


@dataclass(frozen=True)
class Targets:
    """A unit, and which of its persons are left out, by group: their numbers among those of the group."""

    together: Together
    chosen: Mapping[str, Ints]

    @property
    def code(self) -> str:
        return PREFIX + self.together.code

    @property
    def places(self) -> int:
        return 0  # those of the unit have been counted


@dataclass(frozen=True)
class LeftOut:
    """Of one unit: how often each teller was right, with and without each of the chosen; `LEAVING`."""

    counts: pl.DataFrame
    persons: int
    same: Mapping[str, bool]  # by attack: were the records that were given rebuilt?


def leave_each_out(job: LeavingOut, item: Targets) -> LeftOut:
    """One unit: for every chosen person, what each teller says with and without them."""
    unit = _Unit(job, item.together)
    targets = unit.targets(item.chosen)
    counts: dict[tuple[str, str, str], Ints] = {}
    everyone = sorted({int(row) for rows in targets.values() for row in rows})
    for row in everyone:
        inside = [group for group, rows in targets.items() if row in rows]
        for teller, attacker, before, after in unit.asked_twice(row):
            right_in, right_out = before == unit.true_cell(row), after == unit.true_cell(row)
            if not unit.known_rightly(attacker, row):
                right_in = right_out = False  # the wrong person: as the paper confirms, what is known must be right too
            one = (
                1,
                unit.is_listed(attacker, row),
                before != NOBODY,
                after != NOBODY,
                right_in,
                right_out,
                right_in and right_out,
            )
            for group in inside:
                key = teller, attacker, group
                counts[key] = counts.get(key, np.zeros(7, np.int64)) + np.array(one, np.int64)
    rows = [(*key, *(int(n) for n in numbers)) for key, numbers in counts.items()]
    same = {attack.name: unit.same(attack.name) for attack in job.attacks}
    return LeftOut(pl.DataFrame(rows, schema=LEAVING, orient="row"), len(everyone), same)


class _Unit:
    """The worlds of one unit."""

    def __init__(self, job: LeavingOut, item: Together) -> None:
        self.job, self.item, base = job, item, job.base
        self.features = base.features
        self.around = Around.of(base, item)
        self.truth = named(base, item, TRUTH, self.around)
        self.published = named(base, item, PUBLISHED, self.around)
        self.facts = Facts.of(base, item, self.around, self.truth, {PUBLISHED: self.published.people})
        self.lists: dict[str, tuple[Named, dict[int, int]]] = {}
        for attacker in base.attackers:
            listed = named(base, item, ATTACKER + attacker, self.around)
            listed = only(listed, np.flatnonzero(listed.defined))
            rows = true_rows(listed, self.truth)
            self.lists[attacker] = listed, {int(row): at for at, row in enumerate(rows) if row >= 0}
        self.codes = level_matrix(self.truth.frame, base.scenario.schema)
        if job.everyone is None:
            self._hold()
        else:
            self._settle(job.everyone)
        self.number = self.around.number(pl.Series(self.places, dtype=pl.String))  # of each place, among all
        self.tabled = {a.name: a.tabled(self.places, base.scenario.geography) for a in job.attacks}
        self.worlds = self._rebuilt(self.world)
        self.people = self._people(self.worlds)

    def _hold(self) -> None:
        """The published file as it is; a person is taken out where their household stands."""
        file = self.published.frame.sort("geoid", *(a.name for a in self.job.base.scenario.schema.attributes))
        geoid = file["geoid"]
        places = geoid.unique().sort()
        self.places = tuple(places)
        codes = level_matrix(file, self.job.base.scenario.schema)
        self.world = World(places.search_sorted(geoid).to_numpy().astype(np.int64), np.ascontiguousarray(codes))
        by_household = HOUSEHOLD in file.columns and HOUSEHOLD in self.truth.frame.columns
        self.whose = file[HOUSEHOLD].to_numpy() if by_household else geoid.to_numpy()
        self.mine = self.truth.frame[HOUSEHOLD if by_household else "geoid"].to_numpy()

    def _settle(self, everyone: Everyone) -> None:
        code = self.item.code
        places = everyone.places
        self.first = int(np.searchsorted(places, code))
        self.last = int(np.searchsorted(places, code + "~"))
        self.places = places[self.first : self.last]
        self.world = everyone.world(everyone.settled.unit_place, self.first, self.last)
        self.rows = self.truth.frame[ROW].to_numpy()

    def targets(self, chosen: Mapping[str, Ints]) -> dict[str, Ints]:
        groups = self.facts.groups
        return {name: np.flatnonzero(groups[name])[chosen.get(name, [])] for name in GROUPS}

    def true_cell(self, row: int) -> int:
        return int(self.truth.people.cell[row])

    def is_listed(self, attacker: str, row: int) -> bool:
        """Is the person on the list, in that place?"""
        return row in self.lists[attacker][1]

    def known_rightly(self, attacker: str, row: int) -> bool:
        listed, at = self.lists[attacker]
        return row in at and listed.people.binned[at[row]] == self.truth.people.binned[row]

    def same(self, attack: str) -> bool:
        """Are the records that the attack rebuilds here those of the file that was given?"""
        given, world = self.item.frames.get(attack), self.worlds[attack]
        if given is None:
            return False
        frame = given.sort("geoid", *(a.name for a in self.job.base.scenario.schema.attributes))
        codes = level_matrix(frame, self.job.base.scenario.schema)
        return codes.shape == world.codes.shape and bool((codes == world.codes).all())

    def _world_of(self, attack: Attack, world: World) -> World:
        rng = chance(attack.seed, self.item.code, attack.question)
        return self.tabled[attack.name].rebuilt(world, rng, attack.ladder)

    def _rebuilt(self, world: World) -> dict[str, World]:
        """What is known in a world: its records, and what each attack makes of their tables."""
        return {PUBLISHED: world} | {attack.name: self._world_of(attack, world) for attack in self.job.attacks}

    def _people(self, worlds: Mapping[str, World]) -> dict[str, People]:
        """Records in the order in which they are taken."""
        found = {}
        for name, some in worlds.items():
            people = ordered(some, self.features, chance(self.job.base.seed, self.item.code, ORDER.format("records")))
            found[name] = People.of(self.number[people.place], people.exact, people.binned, people.cell)
        return found

    def _without(self, row: int) -> World | None:
        """The world without a person; None if it is the same one."""
        everyone = self.job.everyone
        if everyone is not None:
            person = int(self.rows[row])
            unit_place = everyone.settled.without(person)
            return everyone.world(unit_place, self.first, self.last, person)
        theirs = np.flatnonzero((self.whose == self.mine[row]) & (self.world.codes == self.codes[row]).all(axis=1))
        return self.world.without(int(theirs[0])) if len(theirs) else None

    def asked_twice(self, row: int) -> Iterator[tuple[str, str, int, int]]:
        """What each teller says of a person to each attacker, with and without them; NOBODY for nothing."""
        world, place = self._without(row), int(self.truth.people.place[row])
        people = self.people if world is None else self._people(self._rebuilt(world))
        nation = self.job.base.nations[PUBLISHED].copy()
        guess_in = self._guesses(self.world, place, nation, row)
        nation[self.true_cell(row)] -= 1
        guess_out = self._guesses(self.world if world is None else world, place, nation, row)
        modal = guess_in[MODAL], guess_out[MODAL]
        for attacker, (listed, at) in self.lists.items():
            if row not in at:
                tellers = (*(name + more for name in people for more in ("", OR_GUESS)), *guess_in)
                yield from ((teller, attacker, NOBODY, NOBODY) for teller in tellers)
                continue
            said = {
                name: tuple(inferred(some[name], listed.people, place, at[row]) for some in (self.people, people))
                for name in people
            }
            for name, (before, after) in said.items():
                yield name, attacker, before, after
                or_guess = [
                    guess if cell == NOBODY else cell for cell, guess in ((before, modal[0]), (after, modal[1]))
                ]
                yield name + OR_GUESS, attacker, or_guess[0], or_guess[1]
            for name in guess_in:  # who guesses needs no record
                yield name, attacker, guess_in[name], guess_out[name]

    def _guesses(self, world: World, place: int, nation: Ints, row: int) -> dict[str, int]:
        cell = self.features.cell(self.features.levels(world.codes))
        number = self.number[world.place]
        cells = self.features.cells
        here = np.bincount(cell[number == place], minlength=cells)[None, :]
        area = np.bincount(cell[self.around.area[number] == self.around.area[place]], minlength=cells)[None, :]
        around = Neighbours(here, area, np.zeros(1, np.int64), nation)
        ends = np.cumsum(shares(around)[0])
        draw = chance(self.job.base.seed, self.item.code, f"{PROPORTIONAL} {row}").random()
        drawn = int(np.searchsorted(ends, draw * ends[-1], side="right"))
        return {MODAL: int(modal_guess(around)[0]), PROPORTIONAL: drawn}


def outcome(frames: Iterable[pl.DataFrame], attackers: Sequence[str]) -> pl.DataFrame:
    """How much more often each teller is right about people because they were there, with the interval of that.

    `share_in` and `share_out` are of all persons left out in turn, `listed` or not; one about whom nothing is inferred
    counts as not right. Precision is of those about whom something is inferred.
    """
    total = added(frames, LEAVING)
    rows = []
    for row in total.iter_rows(named=True):
        only_in, only_out = row["right_in"] - row["right_both"], row["right_out"] - row["right_both"]
        neither = row["persons"] - row["right_both"] - only_in - only_out
        rate = paired(only_in, only_out, row["right_both"], neither)
        rows.append((rate.value, rate.low, rate.high))
    found = pl.DataFrame(rows, schema={"difference": pl.Float64, "low": pl.Float64, "high": pl.Float64}, orient="row")
    persons, right = pl.col("persons"), {end: pl.col(f"right_{end}") for end in ("in", "out")}
    shares = [(right[end] / persons).alias(f"share_{end}") for end in right]
    precision = [
        pl.when(pl.col(f"inferred_{end}") > 0).then(right[end] / pl.col(f"inferred_{end}")).alias(f"precision_{end}")
        for end in right
    ]
    said = pl.concat([total.with_columns(*shares, *precision), found], how="horizontal")
    order: Mapping[str, int] = {group: number for number, group in enumerate(GROUPS)}
    by_group = pl.col("group").replace_strict(order, default=None)
    by_list = pl.col("attacker").replace_strict(list(attackers), range(len(attackers)), default=None)
    return said.sort(by_list, by_group, maintain_order=True).select(
        "data", "attacker", "group", "persons", "listed", "inferred_in", "inferred_out", "right_in", "right_out",
        "right_both", "share_in", "share_out", "difference", "low", "high", "precision_in", "precision_out",
    )  # fmt: skip
