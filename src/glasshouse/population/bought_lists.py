"""What would a bought list of these people be like? Made from the true records: people missing, moved, misread.

An office that has no list of its own can so ask what an attacker with a good one, or a poor one, would find.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.output import row_writer
from glasshouse.files.records import open_records
from glasshouse.population.attackers import Listed, commercial, quality
from glasshouse.scenarios.load import Scenario

KNOWN = ("sex", "age")  # what such a list says of a person, besides the place


def buy_list(truth: Path, scenario: Scenario, grade: str, seed: int, out: Path) -> int:
    """Write a list of a named quality, drawn with the seed; how many people are on it."""
    lacking = [name for name in KNOWN if name not in scenario.schema.position]
    if lacking:
        raise InputError(f"attackers.presets: records of this scenario have no {lacking[0]}; name lists of your own")
    file = open_records(truth, scenario, KNOWN)
    if "person_id" not in file.source.columns:
        raise InputError(f"{truth.name}: no column 'person_id'; expected one, to know whom a list names")
    frame = pl.concat(list(file.frames(names=["person_id"]))).filter(pl.col("person_id").is_not_null())
    codes = frame["geoid"].unique().sort()
    block = codes.search_sorted(frame["geoid"]).to_numpy().astype(np.int64)
    persons = np.bincount(block, minlength=len(codes)).astype(np.int64)
    people = Listed(np.arange(frame.height), block, *(frame[name].to_numpy().astype(np.int64) for name in KNOWN))
    digest = hashlib.sha256(f"{seed}/{grade}/bought list".encode()).digest()
    bought = commercial(people, persons, quality(grade), frame.height, np.random.default_rng(list(digest)))
    known = bought.person < frame.height
    names = frame["person_id"].gather(np.where(known, bought.person, 0))
    strangers = pl.Series([f"stranger-{number - frame.height}" for number in bought.person.tolist()])
    sex = pl.Series(scenario.schema.attribute("sex").levels)
    listed = pl.DataFrame([
        pl.select(pl.when(pl.Series(known)).then(names).otherwise(strangers)).to_series().alias("person_id"),
        codes.gather(bought.block).alias(scenario.geography.place), sex.gather(bought.sex).alias("sex"),
        pl.Series("age", bought.age.astype(np.int16)),
    ])  # fmt: skip
    with row_writer(out) as writer:
        writer.write(listed)
    return listed.height
