"""The job behind `glasshouse protect noise`: exact tables in, noisy counts out, and the account of rho."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.commands.words.protections import Noised
from glasshouse.commands.work.perturb import Late, levels_of, long_rows
from glasshouse.errors import InputError, unknown
from glasshouse.files.formats import sdmx_out
from glasshouse.files.frames import Watch, unwatched
from glasshouse.files.output import check_kind
from glasshouse.files.releases import published
from glasshouse.files.tables import TableFile, open_tables
from glasshouse.mechanism.account import Allocation
from glasshouse.mechanism.gaussian import NEIGHBOURS, DiscreteGaussian
from glasshouse.mechanism.sampler import draw_securely, simulate
from glasshouse.mechanism.spent import Spent
from glasshouse.model.chance import chance
from glasshouse.model.records import Count
from glasshouse.model.release import Counts
from glasshouse.protection.afterwards import Afterwards, Invariant, invariant, publish
from glasshouse.protection.noise import Draw, Measured, Plan, add_noise, noise_of, plan_by, plan_evenly
from glasshouse.scenarios.load import Scenario


def noise_file(
    tables: Path | TableFile,
    scenario: Scenario,
    out: Path,
    *,
    rho: Fraction | None = None,
    budget: Allocation | None = None,
    neighbours: str | None = None,
    seed: int | None = 1,
    invariants: Sequence[str] = (),
    postprocess: str = "simple",
    measurements: Path | None = None,
    assume: str = "seen",
    watch: Watch = unwatched,
) -> Noised:
    """Write the tables of a file with noise on every line that is no subtotal; what was done and what it cost.

    Without a seed the noise comes from the secure source. `rho` alone is divided evenly among levels and tables; with
    a budget it takes the place of the budget's total. `measurements` keeps the numbers as the noise left them.
    """
    for path in (out, *([measurements] if measurements else [])):
        check_kind(path)
    how, kept = _afterwards(postprocess, invariants), [invariant(scenario, name) for name in invariants]
    budget, neighbours = _terms(rho, budget, neighbours)
    file = tables if isinstance(tables, TableFile) else open_tables(tables, scenario)
    plan: Plan | None = None
    told: Counter[str] = Counter()
    places: Counter[str] = Counter()
    with ExitStack() as stack:
        writer = Late(stack, out)
        raw = Late(stack, measurements) if measurements else None
        for counts, unit in levels_of(file, scenario, assume, watch):
            if plan is None:  # by now every row has been read: it is known what is published
                plan = _plan(scenario, published(scenario, file.seen, assume), rho, budget, neighbours, kept)
                _refuse_unmet(plan, kept, invariants)
            measured = plan.measured[counts.level]
            noisy = add_noise(counts, measured, plan.neighbours, _source(seed, unit, counts.level))
            values, negatives = publish(counts, measured, noisy, how, kept)
            writer.write(long_rows(scenario, counts, _printed(out, counts, values, kept)))
            if raw is not None:
                raw.write(_raw_rows(scenario, counts, measured, noisy, plan.neighbours))
            places[counts.level] += len(counts.places)
            told["cells"] += values.size
            told["measured"] += sum(numbers.size for numbers in noisy.values())
            told["negatives"] += negatives
    assert plan is not None  # a file without numbers is refused
    return Noised(
        **asdict(Spent.of(plan.ledger, plan.neighbours)),
        scenario=scenario.name,
        cells=told["cells"],
        measured=told["measured"],
        negatives=told["negatives"],
        places=dict(places),
        budget=budget.name if budget else "even",
        levels_unspent={level: str(left) for level, left in plan.unspent.items()},
        invariants=tuple(known.line.variable for known in kept),
        held=tuple(sorted({one.table.name for some in plan.measured.values() for one in some if one.held})),
        postprocess=how.value,
        source="secure" if seed is None else "simulator",
    )


def _afterwards(postprocess: str, invariants: Sequence[str]) -> Afterwards:
    if postprocess not in tuple(Afterwards):
        raise unknown("--postprocess", postprocess, tuple(Afterwards))
    if invariants and postprocess != Afterwards.SIMPLE:
        raise InputError(f"--postprocess {postprocess} keeps no number as it is; --invariant needs simple")
    return Afterwards(postprocess)


def _terms(rho: Fraction | None, budget: Allocation | None, neighbours: str | None) -> tuple[Allocation | None, str]:
    """What is spent and for which neighbours; an allocation says the latter itself (convention 12)."""
    if rho is None and budget is None:
        raise InputError("what may it cost? expected --rho, or --budget")
    if neighbours is not None and neighbours not in NEIGHBOURS:
        raise unknown("neighbour relation", neighbours, NEIGHBOURS)
    if budget is None:
        return None, neighbours or "add-remove"
    if neighbours not in (None, budget.neighbours):
        raise InputError(f"the allocation '{budget.name}' is for {budget.neighbours} neighbours, not for {neighbours}")
    return (budget if rho is None else replace(budget, total=rho)), budget.neighbours


def _plan(
    scenario: Scenario,
    there: Mapping[str, tuple[str, ...]],
    rho: Fraction | None,
    budget: Allocation | None,
    neighbours: str,
    kept: Sequence[Invariant],
) -> Plan:
    known = {one.line.variable for one in kept}
    if budget is not None:
        return plan_by(scenario, there, budget, known)
    assert rho is not None
    return plan_evenly(scenario, there, rho, neighbours, known)


def _refuse_unmet(plan: Plan, kept: Sequence[Invariant], names: Sequence[str]) -> None:
    """A number that is to be kept and is nowhere in the file would be missed without a word."""
    there = {one.table.name for some in plan.measured.values() for one in some}
    for known, name in zip(kept, names, strict=True):
        if known.table.name not in there:
            raise InputError(f"--invariant {name}: table {known.table.name} is not in the tables")


def _source(seed: int | None, unit: str, level: str) -> Draw:
    """Where noise comes from: the unit's own chance, or the secure source."""
    if seed is None:
        return draw_securely
    rng = chance(seed, unit, f"noise {level}")

    def draw(noise: DiscreteGaussian, size: int) -> NDArray[np.int64]:
        return simulate(noise, size, rng)

    return draw


def _printed(out: Path, counts: Counts, values: Count, kept: Sequence[Invariant]) -> dict[str, pl.Series]:
    """The numbers; in SDMX-CSV only invariants are the counts themselves, whatever the noise of others was."""
    value = pl.Series(values.ravel())
    if not sdmx_out.is_sdmx(out):
        return {"value": value}
    known = np.isin(counts.variables, [one.line.variable for one in kept])
    hidden = pl.repeat(False, len(value), dtype=pl.Boolean, eager=True)
    return sdmx_out.printed(value, hidden, pl.Series(np.tile(known, len(counts.places))))


def _raw_rows(
    scenario: Scenario, counts: Counts, measured: Sequence[Measured], noisy: Mapping[str, Count], neighbours: str
) -> pl.DataFrame:
    """The noisy numbers themselves, with what each cost and the variance of its noise."""
    numbers = np.concatenate([noisy[one.table.name] for one in measured], axis=1)
    names = tuple(line.variable for one in measured for line in one.lines)
    rho = [rho for one in measured for rho in one.rho]
    again = np.tile(np.arange(len(names)), len(counts.places))
    told = {
        "noisy": pl.Series(numbers.ravel()),
        "rho": pl.Series([str(one) for one in rho], dtype=pl.String).gather(again),
        "variance": pl.Series([_variance(one, neighbours) for one in rho], dtype=pl.Float64).gather(again),
    }
    return long_rows(scenario, Counts(counts.level, counts.places, names, numbers, numbers), told)


@cache
def _variance(rho: Fraction, neighbours: str) -> float:
    return noise_of(rho, neighbours).variance
