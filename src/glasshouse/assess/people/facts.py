"""What is true of the people of a unit, and what would anybody guess of them?

The files of a unit are put side by side: the truth, what was published, what was rebuilt, and lists of named people.
Who is modal, who is unique, which places have one solution, and what a guesser says follow from them alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.assess.baselines import Neighbours, modal_guess, modal_status, shares
from glasshouse.assess.people.groups import EVERYBODY, EXPOSED, EXPOSED_EXACTLY, MATCHING, MODAL_ONES, NONMODAL
from glasshouse.assess.reidentification import Places, Standing
from glasshouse.attack.people.reidentify import NOBODY, Features, Flags, Ints, People, taken
from glasshouse.model.chance import chance
from glasshouse.model.geography import Geography
from glasshouse.scenarios.load import Scenario

TRUTH, PUBLISHED, VARIED = "CEF", "HDF", "places of vary"  # no file that is given can have the last name
MODAL, PROPORTIONAL = "MDG", "PRG"
ATTACKER = "attacker "  # a list goes by this and its name among the files of a unit
ID, DEFINED = "person_id", "data_defined"
ORDER = "order of {}"


@dataclass(frozen=True)
class Reidentification:
    """What all units of a run share."""

    scenario: Scenario
    data: tuple[str, ...]  # what is attacked besides the truth and the published file, by name
    attackers: tuple[str, ...]
    nations: Mapping[str, Ints]  # records of the truth, and of the published file, by sensitive cell
    proved: bool  # is it known which places have one solution?
    seed: int
    links: bool = False
    rebuilt: tuple[str, ...] = ()  # of the data, those that were rebuilt from tables of the published file

    @cached_property
    def features(self) -> Features:
        return features_of(self.scenario)


def features_of(scenario: Scenario) -> Features:
    return Features(scenario.schema, scenario.bins, scenario.unique_on)


@dataclass(frozen=True)
class Together:
    """What every file has of one unit, by the name of the file."""

    code: str
    frames: Mapping[str, pl.DataFrame]

    @property
    def places(self) -> int:
        return self.frames[TRUTH]["geoid"].n_unique() if TRUTH in self.frames else 0


@dataclass(frozen=True)
class Named:
    """Records in the order in which they are taken, and who they are."""

    people: People
    frame: pl.DataFrame  # the same records with every column that was read
    defined: Flags  # of each record: it stands for a person, and is the only one in its place to do so

    @property
    def person(self) -> pl.Series:
        return self.frame[ID]


class Around:
    """The places of a unit by number, and the area around each."""

    def __init__(self, codes: pl.Series, geography: Geography) -> None:
        self.codes = codes
        levels = list(geography.lengths)
        above = levels[-2] if len(levels) > 1 else levels[-1]
        self.area: Ints = (
            codes.str.head(geography.lengths[above]).rank("dense").to_numpy().astype(np.int64) - 1
            if len(codes)
            else np.empty(0, np.int64)
        )

    @classmethod
    def of(cls, job: Reidentification, item: Together) -> Around:
        """Every place that a file of the unit speaks of."""
        codes = pl.concat([frame["geoid"] for frame in item.frames.values()]).unique().sort()
        return cls(codes, job.scenario.geography)

    def number(self, geoid: pl.Series) -> Ints:
        return self.codes.search_sorted(geoid).to_numpy().astype(np.int64)

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class Facts:
    """What is true of a unit, and what is guessed of it."""

    around: Around
    truth: Named
    files: Mapping[str, People]
    population: Ints  # by place
    places: Places
    modal: Flags  # of each record of the truth
    unique: Flags  # alone in its place with what people are known by, in bins
    unique_exactly: Flags  # ... exactly
    guess: Ints  # the modal guess, by place
    chances: Any  # the proportional guesser's, by place and cell

    @classmethod
    def of(
        cls, job: Reidentification, item: Together, around: Around, truth: Named, files: Mapping[str, People]
    ) -> Facts:
        people, places = truth.people, len(around)
        population = np.bincount(people.place, minlength=places)
        zero = None
        if job.proved:
            zero = np.zeros(places, np.bool_)
            if VARIED in item.frames:
                known = item.frames[VARIED].filter("zero")
                zero[around.number(known["geoid"])] = True
        status = modal_status(Neighbours.of(people.place, people.cell, around.area, job.nations[TRUTH]))
        file = files[PUBLISHED]
        published = Neighbours.of(file.place, file.cell, around.area, job.nations[PUBLISHED])
        return cls(
            around, truth, files, population, Places.of(population, zero), status[people.place] == people.cell,
            _alone(people.place, people.binned), _alone(people.place, people.exact), modal_guess(published),
            shares(published),
        )  # fmt: skip

    @property
    def groups(self) -> dict[str, Flags]:
        """The records of the truth that stand for a person, by group: all, and by how far they stand out."""
        defined, modal = self.truth.defined, self.modal
        return {
            EVERYBODY: defined,
            MODAL_ONES: defined & modal,
            NONMODAL: defined & ~modal,
            EXPOSED: defined & ~modal & self.unique,
            EXPOSED_EXACTLY: defined & ~modal & self.unique_exactly,
        }


def _alone(place: NDArray[Any], known: NDArray[Any]) -> Flags:
    """Which records are the only ones of their place with what is known of people."""
    key = place.astype(np.int64) * (1 + int(known.max(initial=0))) + known
    _, kind, size = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(size[kind] == 1)


def standing_of(world: Facts, listed: People, true_row: Ints) -> Standing:
    """Which group each listed person is of, by the truth, and how many of each group there are in each place."""
    truth, has = world.truth.people, true_row >= 0
    places = len(world.around)
    modal, alone, alone_exactly, same = (np.zeros(len(listed), np.bool_) for _ in range(4))
    if len(truth):
        modal, alone = has & world.modal[true_row], has & world.unique[true_row]
        alone_exactly = has & world.unique_exactly[true_row]
        same = has & (truth.binned[true_row] == listed.binned)
    groups = {
        EVERYBODY: np.ones(len(listed), np.bool_),
        MATCHING: same,
        MODAL_ONES: modal,
        NONMODAL: has & ~modal,
        EXPOSED: has & ~modal & alone,
        EXPOSED_EXACTLY: has & ~modal & alone_exactly,
    }
    at_risk = {name: some for name, some in world.groups.items() if name != EVERYBODY}
    population = {name: np.bincount(listed.place[some], minlength=places) for name, some in groups.items()}
    population |= {name: np.bincount(truth.place[some], minlength=places) for name, some in at_risk.items()}
    return Standing(listed.place, groups, population)


def true_rows(listed: Named, truth: Named) -> Ints:
    """The record of each listed person in the same place of the truth."""
    rows = np.flatnonzero(truth.defined)
    known = pl.DataFrame(
        [
            pl.Series("place", truth.people.place[rows]),
            truth.person.gather(rows).alias(ID),
            pl.Series("row", rows, dtype=pl.Int64),
        ]
    )
    asked = pl.DataFrame([pl.Series("place", listed.people.place), listed.person.alias(ID)])
    joined = asked.join(known, on=["place", ID], how="left", maintain_order="left")
    return joined["row"].fill_null(NOBODY).to_numpy().astype(np.int64)


def only(given: Named, rows: Ints) -> Named:
    people = given.people
    kept = People(people.place[rows], people.exact[rows], people.binned[rows], people.cell[rows])
    return Named(kept, given.frame[rows], given.defined[rows])


def named(job: Reidentification, item: Together, name: str, around: Around) -> Named:
    """The records of a file in the order in which they are taken: what they say decides, then a draw of the unit's."""
    features, schema = job.features, job.scenario.schema
    frame = item.frames.get(name)
    if frame is None:
        none = np.empty(0, np.int64)
        nobody = pl.DataFrame(schema={"geoid": pl.String, ID: pl.String})
        return Named(People.of(none, none, none, none), nobody, np.empty(0, np.bool_))
    columns = [c for c in ("geoid", *(attribute.name for attribute in schema.attributes), ID, DEFINED) if c in frame]
    frame = frame.sort(columns, nulls_last=True, maintain_order=True)
    place = around.number(frame["geoid"])
    role = "a list" if name.startswith(ATTACKER) else "records"  # equal files are taken in the same order
    order = taken(place, chance(job.seed, item.code, ORDER.format(role)))
    frame, place = frame[order], place[order]
    levels = {attribute.name: frame[attribute.name].to_numpy().astype(np.int64) for attribute in schema.attributes}
    cell = np.full(len(place), NOBODY) if name.startswith(ATTACKER) else features.cell(levels)
    people = People.of(place, features.exactly(levels), features.in_bins(levels), cell)
    if ID not in frame.columns:
        return Named(people, frame, np.zeros(len(place), np.bool_))
    counted = frame[ID].is_not_null()
    if DEFINED in frame.columns:
        counted &= frame[DEFINED] == 1
    # of several records of a person in a place one counts, as the draw says
    first = frame.with_columns(counted=counted).select(pl.struct("geoid", ID, "counted").is_first_distinct())
    return Named(people, frame, (counted & first.to_series()).to_numpy())
