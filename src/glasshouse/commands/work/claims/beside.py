"""Which records stand beside a unit whose claims are judged? The true ones, and those that it might be drawn from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.assess.priors import Prior
from glasshouse.attack.claims.descriptions import values_of_records
from glasshouse.engine.job import Item
from glasshouse.files.records import level_matrix
from glasshouse.files.units import Stream
from glasshouse.model.records import Codes, Index, satisfies
from glasshouse.model.wording import Wording
from glasshouse.scenarios.load import Scenario

Flags = NDArray[np.bool_]
Values = NDArray[np.int16]


@dataclass(frozen=True)
class Examined(Item):
    """A unit, the true records of its places if they are known, and the values of records around it."""

    truth: tuple[Index, Codes] | None = None
    around: Values | None = None


def codes_of_claims(scenario: Scenario, codes: Codes) -> Flags:
    """Which records claims are about: all but those reported apart."""
    apart = scenario.wording.apart
    if apart is None:
        return np.ones(len(codes), np.bool_)
    return ~satisfies(scenario.schema, codes, apart)


def drawn_from(scenario: Scenario, codes: Codes, wording: Wording, *, units: bool) -> tuple[Flags, Values]:
    """Which records a place may be drawn from (all of them, or those that claims are about), and their values."""
    inside = np.ones(len(codes), np.bool_) if units else codes_of_claims(scenario, codes)
    return inside, values_of_records(wording, scenario.schema, codes[inside])


def with_records(
    items: Iterator[Item], scenario: Scenario, wording: Wording, truth: Stream | None, around: Stream | None,
    *, units: bool = False,
) -> Iterator[Examined]:  # fmt: skip
    """Units with the true records of their places, and the values of the records around; all in order of code."""
    ahead = {"truth": next(truth, None) if truth else None, "around": next(around, None) if around else None}
    streams = {"truth": truth, "around": around}
    nobody = np.empty(0, np.int32), np.empty((0, len(scenario.schema.attributes)), np.int16)

    def of(name: str, code: str) -> pl.DataFrame | None:
        while ahead[name] is not None and ahead[name][0] < code:  # type: ignore[index]  # it is not None
            ahead[name] = next(streams[name], None)  # type: ignore[arg-type]  # nothing is ahead without a stream
        at = ahead[name]
        return at[1] if at is not None and at[0] == code else None

    for item in items:
        one = Examined(item.code, item.unit)
        if truth is not None:
            frame = of("truth", item.code)
            places = item.unit.counts.places
            start = nobody
            if frame is not None:
                known = frame.filter(pl.col("geoid").is_in(list(places))).sort("geoid", maintain_order=True)
                row = pl.Series(places, dtype=pl.String).search_sorted(known["geoid"]).to_numpy().astype(np.int32)
                start = row, np.ascontiguousarray(level_matrix(known, scenario.schema))
            one = replace(one, truth=start)
        if around is not None:
            frame = of("around", item.code)
            codes = nobody[1] if frame is None else level_matrix(frame, scenario.schema)
            one = replace(one, around=drawn_from(scenario, codes, wording, units=units)[1])
        yield one


def coarsest_priors(
    frames: Iterator[pl.DataFrame], scenario: Scenario, wording: Wording, *, units: bool = False
) -> dict[str, Prior]:
    """The records of each of the coarsest areas, as priors: their different values and how many have them."""
    length = scenario.geography.lengths[scenario.geography.coarsest]
    names = list(wording.columns)
    found: list[pl.DataFrame] = []
    for frame in frames:
        codes = level_matrix(frame, scenario.schema)
        inside, values = drawn_from(scenario, codes, wording, units=units)
        area = frame["geoid"].filter(pl.Series(inside)).str.head(length)
        rows = pl.DataFrame([area, *(pl.Series(name, values[:, at]) for at, name in enumerate(names))])
        found.append(rows.group_by("geoid", *names).len())
    if not found:
        return {}
    whole = pl.concat(found).group_by("geoid", *names).agg(pl.col("len").sum()).sort("geoid", *names)
    return {
        str(code[0]): Prior(group.select(names).to_numpy().astype(np.int16), group["len"].to_numpy().astype(np.int64))
        for code, group in whole.group_by("geoid", maintain_order=True)
    }
