"""The job behind `glasshouse reidentify`: the people of one unit, linked, confirmed and guessed, as counts.

A unit's answer is a few hundred counts, whatever its size; they are added up at the end. No record leaves a unit,
unless links are asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from glasshouse.assess.baselines import Floats, Neighbours, proportional_guess, reach
from glasshouse.assess.people.facts import (
    ATTACKER,
    ID,
    MODAL,
    PROPORTIONAL,
    PUBLISHED,
    TRUTH,
    VARIED,
    Around,
    Facts,
    Named,
    Reidentification,
    Together,
    named,
    only,
    standing_of,
    true_rows,
)
from glasshouse.assess.reidentification import (
    AGREEMENT,
    COUNTS,
    REACH,
    UNIQUES,
    Answer,
    count,
    count_agreement,
    count_reach,
    count_uniques,
)
from glasshouse.attack.people.reidentify import (
    IN_BINS,
    NOBODY,
    Ints,
    Links,
    People,
    agreement,
    attached,
    confirmed,
    putative,
)
from glasshouse.engine.job import Done
from glasshouse.model.chance import chance

LINKS = pl.Schema(
    {
        "attacker": pl.String, "data": pl.String, "person_id": pl.String, "geoid": pl.String, "how": pl.String,
        "confirmed": pl.Boolean, "taken": pl.Int64, "record_taken": pl.Int64,
    }
)  # fmt: skip
BY_PLACE = pl.Schema({"geoid": pl.String, "unique": pl.Int64})
KINDS = {
    "counts": COUNTS, "agreement": AGREEMENT, "reach": REACH, "links": LINKS, "uniques": BY_PLACE, "alone": UNIQUES,
}  # fmt: skip


def identify(job: Reidentification, item: Together) -> Done:
    """One unit: how far its files agree, who is linked and confirmed in each list, and what guessing gives."""
    around = Around.of(job, item)
    truth = named(job, item, TRUTH, around)
    files = {name: _people(job, item, name, around) for name in (PUBLISHED, *job.data)}
    world = Facts.of(job, item, around, truth, files)
    found: dict[str, list[pl.DataFrame]] = {"counts": [], "agreement": [], "reach": [], "links": []}
    for name, other, left, right in _pairs(job, item, world, truth.people, files):
        links = agreement(left, right, job.features.cells)
        found["agreement"].append(count_agreement(name, other, world.places, right.place, links))
    published = Neighbours.of(files[PUBLISHED].place, files[PUBLISHED].cell, around.area, job.nations[PUBLISHED])
    if job.proved:
        found["uniques"] = [_uniques(world)]
    alone = world.unique, world.unique_exactly
    found["alone"] = [count_uniques(world.places, truth.people.place, truth.defined, alone)]
    found["reach"].append(count_reach(world.places, published.places.sum(axis=1), reach(published)))
    tally: Counter[str] = Counter(persons=len(truth.people), defined=int(truth.defined.sum()))
    for name in job.rebuilt:
        tally[f"{name}: other"] += _unlike(files[name], files[PUBLISHED], len(around))
    if VARIED in item.frames:
        varied, file = item.frames[VARIED], files[PUBLISHED]
        there = np.bincount(file.place, minlength=len(around))[around.number(varied["geoid"])]
        tally["other vary"] += int((there != varied["population"].to_numpy()).sum())
    if job.proved:
        known = around.number(item.frames[VARIED]["geoid"]) if VARIED in item.frames else np.empty(0, np.int64)
        tally["not in vary"] += int((np.delete(world.population, known) > 0).sum())
    for attacker in job.attackers:
        listed = named(job, item, ATTACKER + attacker, around)
        _note(tally, attacker, listed, world)
        listed = only(listed, np.flatnonzero(listed.defined))
        tally[f"{attacker}: known"] += _against(job, item, attacker, world, listed, found)
    frames = {name: pl.concat(parts) for name, parts in found.items() if parts}
    if job.links and "links" not in frames:
        frames["links"] = pl.DataFrame(schema=LINKS)
    return Done(frames, dict(tally))


def _pairs(
    job: Reidentification, item: Together, world: Facts, truth: People, files: Mapping[str, People]
) -> Iterator[tuple[str, str, People, People]]:
    """Which files are compared record by record: each with the truth and with the published file, guesses too,
    and any two reconstructions or protected versions with each other."""
    published = files[PUBLISHED]
    drawn = proportional_guess(world.chances, published.place, chance(job.seed, item.code, f"{PROPORTIONAL} agreement"))
    guesses = {MODAL: published.saying(world.guess[published.place]), PROPORTIONAL: published.saying(drawn)}
    yield PUBLISHED, TRUTH, published, truth
    for name, people in [*((name, files[name]) for name in job.data), *guesses.items()]:
        yield name, TRUTH, people, truth
        yield name, PUBLISHED, people, published
    for name, other in combinations(job.data, 2):
        yield name, other, files[name], files[other]


def _against(
    job: Reidentification, item: Together, attacker: str, world: Facts, listed: Named, found: dict[str, list[Any]]
) -> int:  # fmt: skip
    """Every file with one list of named people; returns how many of them the truth has in that place."""
    truth, true_row = world.truth.people, true_rows(listed, world.truth)
    standing = standing_of(world, listed.people, true_row)
    answers: dict[str, tuple[People, Answer]] = {}
    for name, data in {TRUTH: truth, **world.files}.items():
        links = putative(data, listed.people)
        right = confirmed(listed.people, attached(data, links), truth, true_row)
        answers[name] = data, Answer.of(links, right)
    # the guessers speak of whoever is linked to the published file
    data, linked = world.files[PUBLISHED], answers[PUBLISHED][1].links
    guesses = {
        guesser: Answer(linked, confirmed(listed.people, np.where(linked.right >= 0, cell, NOBODY), truth, true_row), p)
        for guesser, cell, p in _guesses(job, item, attacker, world, listed.people, true_row, linked)
    }
    answers |= {guesser: (data, answer) for guesser, answer in guesses.items()}
    for teller, (data, answer) in answers.items():
        found["counts"].append(count(teller, attacker, world.places, standing, answer, guesses))
        if job.links:
            found["links"].append(_links(teller, attacker, world, listed, data, answer))
    return int((true_row >= 0).sum())


def _guesses(
    job: Reidentification,
    item: Together,
    attacker: str,
    world: Facts,
    listed: People,
    true_row: Ints,
    linked: Links,
) -> Iterator[tuple[str, Ints, Floats]]:
    """What each guesser says of every listed person, and the chance that this is right of those who are linked."""
    truth = world.truth.people
    sure = np.zeros(len(listed))
    modal = world.guess[listed.place]
    if len(truth):
        asked = (linked.right >= 0) & (true_row >= 0) & (truth.binned[true_row] == listed.binned)
        true_cell = truth.cell[true_row]
        yield MODAL, modal, np.where(asked & (modal == true_cell), 1.0, 0.0)
        chances = np.where(asked, world.chances[listed.place, true_cell], 0.0)
    else:
        yield MODAL, modal, sure
        chances = sure
    rng = chance(job.seed, item.code, f"{PROPORTIONAL} {attacker}")
    yield PROPORTIONAL, proportional_guess(world.chances, listed.place, rng), chances


def _unlike(one: People, two: People, places: int) -> int:
    """In how many places two files differ in what is known of people, in bins."""
    keys = 1 + int(max(one.binned.max(initial=0), two.binned.max(initial=0)))
    counted = [np.bincount(p.place.astype(np.int64) * keys + p.binned, minlength=places * keys) for p in (one, two)]
    return int((counted[0] != counted[1]).reshape(places, keys).any(axis=1).sum())


def _uniques(world: Facts) -> pl.DataFrame:
    """Of each place, how many data-defined persons are unique in it (the paper's Table S5)."""
    some = world.truth.people.place[world.truth.defined & world.unique]
    unique = np.bincount(some, minlength=len(world.around)).astype(np.int64)
    return pl.DataFrame({"geoid": world.around.codes, "unique": unique}, schema=BY_PLACE)


def _links(teller: str, attacker: str, world: Facts, listed: Named, data: People, answer: Answer) -> pl.DataFrame:
    links, right = answer.links, answer.right[0]
    rows = np.flatnonzero(links.how)
    place = listed.people.place[rows]
    how = pl.Series(["exactly", "in bins"]).gather((links.how[rows] == IN_BINS).astype(np.int64))
    return pl.DataFrame(
        [
            pl.repeat(attacker, len(rows), eager=True).alias("attacker"),
            pl.repeat(teller, len(rows), eager=True).alias("data"),
            listed.person.gather(rows).alias(ID),
            world.around.codes.gather(place).alias("geoid"),
            how.alias("how"),
            pl.Series("confirmed", right[rows]),
            pl.Series("taken", rows - np.searchsorted(listed.people.place, place), dtype=pl.Int64),
            pl.Series("record_taken", links.right[rows] - np.searchsorted(data.place, place), dtype=pl.Int64),
        ]
    ).cast(LINKS)


def _note(tally: Counter[str], attacker: str, listed: Named, world: Facts) -> None:
    """What was left aside of a list, for the notes."""
    nameless = listed.person.is_null().to_numpy()
    tally[f"{attacker}: listed"] += int(listed.defined.sum())
    tally[f"{attacker}: nameless"] += int(nameless.sum())
    tally[f"{attacker}: twice"] += int((~listed.defined & ~nameless).sum())
    nobody = world.population[listed.people.place] == 0 if len(listed.people) else np.zeros(0, np.bool_)
    tally[f"{attacker}: nowhere"] += int((listed.defined & nobody).sum())


def _people(job: Reidentification, item: Together, name: str, around: Around) -> People:
    return named(job, item, name, around).people
