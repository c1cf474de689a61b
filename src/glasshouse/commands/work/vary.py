"""The job behind `glasshouse vary`: how far other records that fit can be, place by place and area by area."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.assess.certain_groups import GROUPS, grouped
from glasshouse.assess.one_solution import have_one_solution
from glasshouse.attack.far import Far
from glasshouse.attack.published import Published, records_allowed, recounted
from glasshouse.attack.vary import Varied, admitted, vary
from glasshouse.commands.work.reconstruct import METHOD, place_columns, start_of
from glasshouse.engine.job import Done, Item, Job
from glasshouse.errors import InputError
from glasshouse.files.records import level_matrix, open_records
from glasshouse.files.units import by_unit
from glasshouse.model.geography import plural
from glasshouse.model.records import UNLIMITED, Codes, Index
from glasshouse.scenarios.load import Scenario

_FAR = {
    "population": pl.Int64, "population_upper": pl.Int64, "solvar": pl.Float64, "solvar_upper": pl.Float64,
    "certain": pl.Int64, "certain_upper": pl.Int64, "proof": pl.String, "certain_proof": pl.String,
    "distance": pl.Int64, "distance_upper": pl.Int64, "method": pl.String,
}  # fmt: skip


_OF_PLACES = {"unique": pl.Int64, "start_fits": pl.Boolean, "certain_whole": pl.Int64, "untold": pl.Int64}


@dataclass(frozen=True)
class Varying(Job):
    """What all units share of a run of vary."""

    finest: bool = False  # every level is compared, not the groups of bins
    tighten: bool = False  # differences of the area's numbers are limits, too
    jointly: bool = False  # the places of an area are solved together


def schemas(scenario: Scenario, area_level: str | None) -> dict[str, pl.Schema]:
    """The columns of the data files."""
    place, unit = scenario.geography.place, scenario.geography.unit
    return {
        "places": pl.Schema({place: pl.String, unit: pl.String, **_FAR, **_OF_PLACES}),
        "areas": pl.Schema({area_level or unit: pl.String, plural(place): pl.Int64, **_FAR}),
        "groups": pl.Schema({unit: pl.String, **GROUPS}),
    }


def measure(job: Varying, item: Item) -> Done:
    """One unit: of each place, and of the unit, how far other records that fit can be and how many are certain."""
    place, codes, given = start_records(job, item)
    varied = vary(
        job.published,
        item.unit,
        place,
        codes,
        finest=job.finest,
        tighten=job.tighten,
        jointly=job.jointly,
        ladder=job.ladder,
    )
    geography, far, named = job.scenario.geography, varied.places, item.unit.named
    places = pl.DataFrame(
        [
            *place_columns(item.unit.counts.places, item.code, geography),
            *_far(far),
            pl.Series("unique", varied.unique),
            pl.Series("start_fits", given),
            *_whole(job, varied),
        ]
    ).filter(pl.Series(named))
    codes_of_areas = (item.code,) if item.unit.areas is None else item.unit.areas.places
    inside = np.bincount(item.unit.of[named], minlength=len(codes_of_areas)).astype(np.int64)
    column = pl.Series(job.area_level or geography.unit, codes_of_areas, dtype=pl.String)
    areas = pl.DataFrame([column, pl.Series(plural(geography.place), inside), *_far(varied.areas)])
    clock = bool(far.clock.any() or varied.areas.clock.any())
    populated = (far.population > 0) & named
    proved = populated & np.array([proof != "undecided" for proof in far.proof], np.bool_)
    least, most = records_allowed(job.published, item.unit.counts)
    counts = {
        "places": int(named.sum()),
        "least": least,
        "most": most,
        "populated": int(populated.sum()),
        "proved": int(proved.sum()),
        "zero": int((have_one_solution(far.most, far.proof) & populated).sum()),
        "records": int(far.population[named].sum()),
        "certain": int(far.certain[named].sum()),
        "starts_outside": int((~given & named).sum()),
        "elsewhere": int(far.population[~named].sum()),
    }
    groups = grouped(job.scenario, varied.kinds.only(named), item.code)
    return Done({"places": places, "areas": areas, "groups": groups}, counts, clock)


def _whole(job: Varying, varied: Varied) -> list[pl.Series]:
    """Of each place the records certain in every attribute that the scenario's tables tell, and those not told in all.

    Tables that are not published or not used tell less. The records of what is left are compared in fewer attributes,
    and may seem more certain for it; in these two numbers they do not.
    """
    untold = job.scenario.attributes_told.intersection(job.published.left_out)
    kinds, count = varied.kinds, len(varied.unique)
    whole = kinds.whole(job.scenario.schema, untold)
    numbers = (kinds.place[whole], kinds.certain[whole]), (kinds.place[~whole], kinds.records[~whole])
    names = ("certain_whole", "untold")
    return [
        pl.Series(name, np.bincount(place, counts, count).astype(np.int64))
        for name, (place, counts) in zip(names, numbers, strict=True)
    ]


def starts(
    path: Path, scenario: Scenario, near: Path, *, flag: str | None = None
) -> Iterator[tuple[str, pl.DataFrame]]:
    """The records of a file, unit by unit in the order of their codes."""
    file = open_records(path, scenario)
    return by_unit(file.frames(flag=flag), scenario.geography, near)


def uniques(path: Path, published: Published, scenario: Scenario, near: Path) -> tuple[pl.DataFrame, bool]:
    """Of each place, how many data-defined records of a file are unique in it, as the paper's Table S5 counts them.

    A record is unique if no other of its place, data-defined or not, shares what makes a record unique. Also how many
    records each place has, and whether the file says who is data-defined; if not, all records count.
    """
    flag = "data_defined" if "data_defined" in open_records(path, scenario).source.columns else None
    found = [pl.DataFrame(schema={"geoid": pl.String, "records": pl.UInt32, "unique": pl.UInt32})]
    for _, frame in starts(path, scenario, near, flag=flag):
        codes = level_matrix(frame, scenario.schema)
        keys = [pl.Series(column, published.groups(column, codes)) for column in published.unique_on]
        counted = frame["data_defined"] == 1 if flag else pl.repeat(True, frame.height, eager=True)
        rows = pl.DataFrame([frame["geoid"], *keys, counted.alias("counted")])
        alone = pl.struct("geoid", *published.unique_on).is_unique() & pl.col("counted")
        found.append(
            rows.with_columns(alone.alias("alone"))
            .group_by("geoid")
            .agg(pl.len().cast(pl.UInt32).alias("records"), pl.col("alone").sum().cast(pl.UInt32).alias("unique"))
        )
    return pl.concat(found).with_columns(pl.col("records", "unique").cast(pl.Int64)), flag is not None


def with_starts(items: Iterator[Item], given: Iterator[tuple[str, pl.DataFrame]], scenario: Scenario) -> Iterator[Item]:
    """Units with the records to start from; both come in the order of their codes."""
    code, frame = next(given, (None, None))
    for item in items:
        while code is not None and code < item.code:
            code, frame = next(given, (None, None))
        nobody = np.empty(0, np.int32), np.empty((0, len(scenario.schema.attributes)), np.int16)
        if code != item.code or frame is None:
            yield replace(item, start=nobody)
            continue
        counts = item.unit.counts
        place = pl.col("geoid")
        around = place if item.unit.named.all() else place.str.head(len(counts.places[0]))  # the rest of an area
        known = frame.with_columns(pl.when(place.is_in(list(counts.places))).then(place).otherwise(around))
        known = known.filter(place.is_in(list(counts.places))).sort("geoid", maintain_order=True)
        row = pl.Series(counts.places, dtype=pl.String).search_sorted(known["geoid"]).to_numpy().astype(np.int32)
        start = row, np.ascontiguousarray(level_matrix(known, scenario.schema))
        yield replace(item, start=start if known.height == frame.height else nobody)


def start_records(job: Varying, item: Item) -> tuple[Index, Codes, NDArray[np.bool_]]:
    """The records to start from, and the places that start from those given.

    Given records must fit the places' own numbers. Where they break the limits of the area around, no solution is there
    to measure from, and the records that are rebuilt take their place.
    """
    if item.start is None:
        rebuilt = start_of(job, item)
        return rebuilt.place, rebuilt.codes, np.ones(len(item.unit.counts.places), np.bool_)
    place, codes = item.start
    fits, areas = recounted(job.published, item.unit, place, codes)
    if fits.all() and areas.all():
        return place, codes, fits
    rebuilt = start_of(job, item)  # refused here if nothing fits at all
    if not fits.all():
        bad = item.unit.counts.places[int(np.argmin(fits))]
        level = job.scenario.geography.place
        raise InputError(
            f"the records given do not count up to the numbers of {int((~fits).sum()):,} {plural(level)}, first {bad}; "
            "were they rebuilt from other tables?"
        )
    inside = admitted(job.published, item.unit, place, codes, finest=job.finest, tighten=job.tighten)
    if job.jointly:
        inside &= areas[item.unit.of]  # an area is measured as a whole
    kept, other = inside[place], ~inside[rebuilt.place]
    both = np.concatenate([place[kept], rebuilt.place[other]])
    order = np.argsort(both, kind="stable")
    return both[order], np.concatenate([codes[kept], rebuilt.codes[other]])[order], inside


def _far(far: Far) -> list[pl.Series]:
    twice = np.maximum(far.population + far.population_most, 1)  # endless over endless is 1
    twice = np.where(far.population_most >= UNLIMITED, UNLIMITED, twice)
    return [
        pl.Series("population", far.population),
        pl.Series("population_upper", far.population_most),
        pl.Series("solvar", far.distance / twice),
        pl.Series("solvar_upper", far.most / twice),
        pl.Series("certain", far.certain),
        pl.Series("certain_upper", far.certain_most),
        pl.Series("proof", [str(proof) for proof in far.proof], dtype=pl.String),
        pl.Series("certain_proof", [str(proof) for proof in far.certain_proof], dtype=pl.String),
        pl.Series("distance", far.distance),
        pl.Series("distance_upper", far.most),
        METHOD.gather(far.rung.astype(np.int64)).alias("method"),
    ]
