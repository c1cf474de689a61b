"""The job behind `glasshouse synthesize`: a county, and every file that a study of it needs, part by part."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from glasshouse.files.output import row_writer
from glasshouse.population import county_files, subsidy
from glasshouse.population.attackers import Quality
from glasshouse.population.county import SUBSIDY, SWAP, County
from glasshouse.population.people import HOUSEHOLD
from glasshouse.protection.swap.by_rates import Draws, Households, Rates, swap_by_rates
from glasshouse.protection.swap.households import alike_key, at_risk

FILES = ("cef", "hdf", "households", "commercial", "attacker-perfect", "sample", "housing", "blocks")


@dataclass(frozen=True)
class Choices:
    """What can be chosen about the files around the truth."""

    grade: Quality
    rates: Rates
    alpha: float
    subsidised: float  # share of households, about


def synthesize(made: County, choices: Choices, folder: Path, watch: Callable[[float], None]) -> dict[str, Any]:
    """Write the files of a county; returns how much of everything there is."""
    homes, parts = county_files.homes_of(made, at_risk, watch), made.places.tracts
    key = alike_key(homes.persons, homes.adults)
    swappable = Households(homes.block, homes.area, homes.tract, key, homes.risk, homes.imputed)
    swapped = swap_by_rates(swappable, choices.rates, Draws.of(len(swappable), made.chance(SWAP)))
    housed = subsidy.simulate(homes.subsidisable, made.chance(SUBSIDY), alpha=choices.alpha, share=choices.subsidised)
    counts: dict[str, Any] = {
        "tracts": parts,
        "blocks": len(made.places.codes),
        "households": len(homes.block),
        "swapped_households": swapped.moved,
        "subsidised_households": int((housed.property >= 0).sum()),
        "violations": int(housed.violation.sum()),
        "records": 0,
        "data_defined": 0,
        "commercial_records": 0,
    }
    codes = pl.Series(made.places.codes, dtype=pl.String)
    with ExitStack() as stack:
        files = {name: stack.enter_context(row_writer(folder / f"{name}.parquet")) for name in FILES}
        done = 0
        sample: list[pl.DataFrame] = []
        for number in range(parts):
            part = made.tract(number)
            mine = slice(done, done + int((part.people.unit_kind == HOUSEHOLD).sum()))
            done = mine.stop
            frames = county_files.frames_of(made, choices.grade, part, codes, swapped.place[mine], housed, mine)
            sample.append(frames.pop("sample"))
            for name, frame in frames.items():
                files[name].write(frame)
            counts["records"] += frames["cef"].height
            counts["data_defined"] += int(frames["cef"]["data_defined"].sum())
            counts["commercial_records"] += frames["commercial"].height
            watch(0.3 + 0.7 * (number + 1) / parts)
        files["sample"].write(county_files.shuffled(pl.concat(sample), made))
        files["housing"].write(subsidy.statistics(homes.subsidisable, housed, made.places.codes))
        files["blocks"].write(county_files.blocks_of(made, homes))
    return counts
