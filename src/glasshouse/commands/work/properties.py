"""The job behind `glasshouse protect properties`: a file of properties in, the same with noise out, and the account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.commands.words.protections import NoisedProperties
from glasshouse.errors import InputError, unknown
from glasshouse.files.output import row_writer
from glasshouse.files.properties import MISSING, PropertyNumbers, read_numbers
from glasshouse.mechanism.gaussian import NEIGHBOURS, DiscreteGaussian
from glasshouse.mechanism.sampler import draw_securely, simulate
from glasshouse.mechanism.spent import Spent
from glasshouse.model.chance import chance
from glasshouse.population.subsidy import half_up
from glasshouse.protection.properties import Draw, account_for, add_noise, questions_of
from glasshouse.scenarios.load import Scenario

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

PEOPLE, RATIO = "people_total", "people_per_unit"  # the second is made anew from the first, in tenths
MOST_EXACT = 100  # households of which a whole percentage says how many


def noise_properties(
    path: Path,
    scenario: Scenario,
    out: Path,
    *,
    rho: Fraction,
    neighbours: str = "add-remove",
    seed: int | None = 1,
) -> NoisedProperties:
    """Write the properties of a file with noise on what they say of households; what was done and what it cost.

    Without a seed the noise comes from the secure source.
    """
    occupancy = scenario.occupancy
    if occupancy is None:
        raise InputError(f"scenario {scenario.name} says nothing of properties")
    if neighbours not in NEIGHBOURS:
        raise unknown("neighbour relation", neighbours, NEIGHBOURS)
    file = read_numbers(path, occupancy.shares, occupancy.wholes)
    reported = file.values[occupancy.reported]
    questions = questions_of(occupancy, scenario.schema, file.values)
    ledger = account_for(questions, rho)
    noisy = add_noise(file.values, reported, questions, ledger, neighbours, _source(seed, file.units))
    changed = _write(file, out, noisy.values, reported)
    touched = np.column_stack([file.values[name] >= 0 for name in noisy.values]) & (reported > 0)[:, None]
    return NoisedProperties(
        **asdict(Spent.of(ledger, neighbours)),
        properties=len(reported),
        with_noise=int(touched.any(axis=1).sum()),
        measured=noisy.measured,
        negatives=noisy.negatives,
        wider=int((touched.any(axis=1) & (reported > MOST_EXACT)).sum()),
        questions={question.name: tuple(question.columns) for question in questions},
        as_they_are=tuple(name for name in file.source.columns if name not in changed),
        source="secure" if seed is None else "simulator",
    )


def _source(seed: int | None, units: tuple[str, ...]) -> Draw:
    """Where noise comes from: each property's own chance, in each question, or the secure source."""

    def securely(question: str, rows: Ints, noise: DiscreteGaussian, size: int) -> Ints:
        return draw_securely(noise, len(rows) * size).reshape(len(rows), size)

    def by_seed(question: str, rows: Ints, noise: DiscreteGaussian, size: int) -> Ints:
        assert seed is not None
        drawn = [simulate(noise, size, chance(seed, units[row], f"noise {question}")) for row in rows]
        return np.array(drawn).reshape(len(rows), size)

    return securely if seed is None else by_seed


def _write(file: PropertyNumbers, out: Path, values: Mapping[str, Ints], reported: Ints) -> set[str]:
    """The file as it came, with other numbers where they are known; the names of the columns that may have changed.

    Every number that got noise is spelled anew, whether it changed or not: a spelling would tell.
    """
    source = file.source
    frame = pl.concat([chunk.frame for chunk in source.chunks()])
    kinds = pl.read_parquet_schema(source.path) if source.counted_in == "row" else {}
    changed = {}
    for name, new in values.items():
        column = frame[file.names[name]]
        changed[column.name] = _spelled(column, (file.values[name] >= 0) & (reported > 0), pl.Series(new))
    for column in frame:
        if column.name.strip().lower().replace(" ", "_") == RATIO:
            changed[column.name] = _ratio(column, file, values, reported)
    written = [
        _as_it_was(changed.get(column.name, column), kinds.get(column.name), column.name in changed) for column in frame
    ]
    with row_writer(out) as writer:
        writer.write(pl.DataFrame(written))
    return set(changed)


def _ratio(column: pl.Series, file: PropertyNumbers, values: Mapping[str, Ints], reported: Ints) -> pl.Series:
    """People per household, made anew; where the people are not told it is taken out, or it would tell them."""
    known = (column.cast(pl.Float64, strict=False) >= 0).fill_null(False).to_numpy()
    told = np.zeros(len(reported), np.bool_)
    tenths = np.zeros(len(reported), np.int64)
    if PEOPLE in values:
        told = (file.values[PEOPLE] >= 0) & (reported > 0)
        tenths = half_up(10 * values[PEOPLE], reported)
    return _spelled(column, known, pl.Series(np.where(told, tenths / 10, float(MISSING))))


def _spelled(column: pl.Series, known: Flags, new: pl.Series) -> pl.Series:
    """A column with new numbers where they are known, and the rest as it came."""
    if column.dtype == pl.String:
        return column.zip_with(pl.Series(~known), new.cast(pl.String))
    kind = pl.Float64 if pl.Float64 in (column.dtype, new.dtype) else pl.Int64
    return column.cast(kind).zip_with(pl.Series(~known), new.cast(kind))


def _as_it_was(column: pl.Series, kind: pl.DataType | None, changed: bool) -> pl.Series:
    """A column of the kind that the file has; one with noise may not fit, and is wider then."""
    if kind is None or column.dtype == kind:
        return column
    if not changed:
        return column.cast(kind)
    narrow = column.cast(kind, strict=False)
    same = narrow.null_count() == column.null_count() and (narrow.cast(column.dtype) == column).fill_null(True).all()
    return narrow if same else column
