"""The job behind `glasshouse reconstruct`: the records of one unit, counted again, as rows of its files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from glasshouse.attack.published import Published, records_allowed, recounted
from glasshouse.attack.reconstruct import Rebuilt, reconstruct
from glasshouse.attack.reconstruct_noisy import RebuiltFromNoise, rebuild_from_noise
from glasshouse.engine.job import Done, Item, Job, make_job
from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.files.records import record_frame
from glasshouse.files.tables import TableFile
from glasshouse.model.geography import Geography
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import Counts
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import Rung
from glasshouse.scenarios.load import Scenario

QUESTION = "reconstruct"
NEAREST = "nearest"  # the method of places whose numbers no records fit
METHOD = pl.Series([rung.name.lower() for rung in Rung])


@dataclass(frozen=True)
class Rebuilding(Job):
    """What all units of a reconstruction share."""

    nearest: str = ""  # where no records fit: the error to be least, absolute or squared


@dataclass(frozen=True)
class Printed(Item):
    """A unit whose numbers are intervals, with what was printed."""

    print_: Counts | None = None


def with_print(items: Iterator[Item], job: Job, file: TableFile, assume: str, near: Path) -> Iterator[Item]:
    """Units with what was printed of them; both files come in the order of the units' codes."""
    level = job.scenario.geography.place
    releases = file.releases(assume=assume, near=near)
    _, printed = make_job(file, releases, level=level, seed=job.seed, effort=job.effort, seconds=job.seconds)
    for item in items:
        counts, print_ = item.unit.counts, next((one.unit.counts for one in printed if one.code == item.code), None)
        if print_ is None or (counts.places, counts.variables) != (print_.places, print_.variables):
            raise InputError(f"{file.path.name}: not the same places and numbers as the intervals; expected the same")
        if not print_.exact:
            raise InputError(f"{file.path.name}: has intervals; expected the numbers that were printed")
        yield Printed(**{one.name: getattr(item, one.name) for one in fields(Item)}, print_=print_)


def schemas(scenario: Scenario, published: Published) -> dict[str, pl.Schema]:
    """The columns of the data files."""
    geography = scenario.geography
    nobody = np.empty(0, np.int32), np.empty((0, len(scenario.schema.attributes)), np.int16)
    records = _records(scenario, published, (), *nobody).schema
    places = {geography.place: pl.String, geography.unit: pl.String, "population": pl.Int64}
    near = {"error": pl.Int64, "error_floor": pl.Int64, "proof": pl.String}
    columns = {**places, "method": pl.String, "recounted": pl.Boolean, **near}
    return {"records": records, "places": pl.Schema(columns)}


def rebuild(job: Rebuilding, item: Item) -> Done:
    """One unit: its records, and of each place how they were found and that they count up to its numbers again.

    Records that are only near to the numbers do not count up to them; how far they are is said instead. Records of the
    rest of an area, in places that nobody named, are counted and not written.
    """
    scenario, counts, named = job.scenario, item.unit.counts, item.unit.named
    rebuilt: Rebuilt | RebuiltFromNoise
    if job.nearest:
        rng = job.generator(item.code, QUESTION)
        print_ = item.print_ if isinstance(item, Printed) else None
        rebuilt = rebuild_from_noise(job.published, item.unit, rng, job.nearest, job.ladder, print_)
        again, _ = recounted(job.published, item.unit, rebuilt.place, rebuilt.codes)
        if not np.array_equal(again, rebuilt.fits):
            raise GlasshouseBug(f"records rebuilt for {item.code} do not count up to its numbers where they should")
        known = rebuilt.error < UNLIMITED  # elsewhere nothing was found within the limits
        far = pl.Series("error", rebuilt.error)
        error = far.set(pl.Series(~known), None), pl.Series("error_floor", rebuilt.floor)
        clock, near = rebuilt.clock, rebuilt.error > 0
        proof = [str(one) for one in rebuilt.proof]
    else:
        rebuilt = start_of(job, item)
        again, none = rebuilt.recounted, np.zeros(len(counts.places), np.int64)
        error = pl.Series("error", none), pl.Series("error_floor", none)
        clock, near = False, none > 0
        proof = [str(Proof.EXACT)] * len(none)
    population = np.bincount(rebuilt.place, minlength=len(counts.places)).astype(np.int64)
    method = METHOD.gather(rebuilt.rung.astype(np.int64))
    columns = [
        *place_columns(counts.places, item.code, scenario.geography),
        pl.Series("population", population),
        pl.Series("method", np.where(near, NEAREST, method.to_numpy()), dtype=pl.String),
        pl.Series("recounted", again),
        *error,
        pl.Series("proof", proof, dtype=pl.String),
    ]
    kept = named[rebuilt.place]
    records = _records(scenario, job.published, counts.places, rebuilt.place[kept], rebuilt.codes[kept])
    least, most = records_allowed(job.published, counts)
    counted = {
        "records": int(kept.sum()),
        "least": least,
        "most": most,
        "places": int(named.sum()),
        "populated": int((population[named] > 0).sum()),
        "fits": int(again[named].sum()),
        "elsewhere": int((~kept).sum()),
        "error": int(error[0].sum()),
        "without": error[0].null_count(),
    }
    places = pl.DataFrame(columns).filter(pl.Series(named))
    return Done({"records": records, "places": places}, counted, clock)


def start_of(job: Job, item: Item) -> Rebuilt:
    """The records that `reconstruct` finds for a unit; `vary` starts from the same."""
    rebuilt = reconstruct(job.published, item.unit, job.generator(item.code, QUESTION), job.ladder)
    if not rebuilt.recounted.all() or not rebuilt.recounted_areas.all():
        raise GlasshouseBug(f"records rebuilt for {item.code} do not count up to its numbers")
    return rebuilt


def place_columns(places: tuple[str, ...], unit: str, geography: Geography) -> list[pl.Series]:
    """The place of each row, and the unit it lies in."""
    column = pl.Series(geography.place, places, dtype=pl.String)
    if geography.unit == geography.place:
        return [column]
    return [column, pl.repeat(unit, len(places), dtype=pl.String, eager=True).alias(geography.unit)]


def where(place: str, unit: str, geography: Geography) -> tuple[str, ...]:
    """The same of one row."""
    return (place,) if geography.unit == geography.place else (place, unit)


def _records(scenario: Scenario, published: Published, places: tuple[str, ...], place: Any, codes: Any) -> pl.DataFrame:
    bins = {column: published.groups(column, codes) for column in published.bins}
    return record_frame(scenario, places, place, codes, bins)
