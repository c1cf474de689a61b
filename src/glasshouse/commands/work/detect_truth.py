"""What is true of the households, and what does an attacker with a sample of that truth know?

True households are those of a file with `bedrooms`; where it says who reported (`reported`), those who did not count
as not subsidised, as they do in what properties publish. The strong baseline of Steed, Qing and Wu: one household in
five of every state is known, and kinds of household are tried in the order in which they break the rule there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.assess.occupancy import Ranking, ranked
from glasshouse.attack.occupancy.kinds import key_values
from glasshouse.commands.work.detect import breaking
from glasshouse.errors import InputError
from glasshouse.files.frames import open_source
from glasshouse.files.records import level_matrix, open_records
from glasshouse.model.chance import chance
from glasshouse.model.records import satisfies
from glasshouse.scenarios.load import Scenario

SHARE = 0.2  # of the households of one of the coarsest areas, the paper's states
REPORTED = "reported"


def true_households(path: Path, scenario: Scenario) -> Iterator[pl.DataFrame]:
    """The occupied homes of a file in pieces, as levels; who did not report is not subsidised."""
    occupancy = scenario.occupancy
    assert occupancy is not None  # the command has refused others
    ((attribute, subsidised),) = occupancy.subsidised.sets
    names = (REPORTED,) if REPORTED in open_source(path).columns else ()
    others = frozenset(range(len(scenario.schema.attribute(attribute)))) - subsidised
    every = [one.name for one in scenario.schema.attributes]
    for frame in open_records(path, scenario, every).frames(names=names):
        if names:
            silent = (pl.col(REPORTED) != "1") & pl.col(attribute).is_in(sorted(subsidised))
            level = pl.when(silent).then(pl.lit(min(others), pl.Int16)).otherwise(pl.col(attribute))
            frame = frame.with_columns(level.alias(attribute)).drop(REPORTED)
        yield frame.filter(
            pl.Series(satisfies(scenario.schema, level_matrix(frame, scenario.schema), occupancy.occupied))
        )


def sampled_rankings(
    frames: Iterator[pl.DataFrame], places: Collection[str], scenario: Scenario, seed: int
) -> dict[tuple[str, str], Ranking]:
    """By coarsest area and key: how those who break the rule look in a sample of the households of these places."""
    occupancy = scenario.occupancy
    assert occupancy is not None
    wanted, geography = list(places), scenario.geography
    found = [frame.filter(pl.col("geoid").is_in(wanted)) for frame in frames]
    if not found or not sum(frame.height for frame in found):
        raise InputError(f"--truth: no household of a {geography.place} with a property is in the file")
    columns = [one.name for one in scenario.schema.attributes]
    homes = pl.concat(found).sort("geoid", *columns)  # so that the order of the file decides nothing
    rankings: dict[tuple[str, str], Ranking] = {}
    area_of = pl.col("geoid").str.head(geography.lengths[geography.coarsest])
    for (area,), rows in homes.group_by(area_of, maintain_order=True):
        rng = chance(seed, str(area), "sample of the truth")
        codes = level_matrix(rows, scenario.schema)[rng.random(rows.height) < SHARE]
        codes = codes[breaking(occupancy, scenario, codes)]
        for name, key in occupancy.keys.items():
            values = key_values(scenario.schema, codes, key)
            rankings[str(area), name] = ranked(values, np.ones(len(values), np.int64))
    return rankings
