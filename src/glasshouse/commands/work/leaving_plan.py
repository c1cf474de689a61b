"""Who is left out, and from which worlds? The plan of `--leave-one-out`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from glasshouse.assess.people.facts import ID, TRUTH, Reidentification
from glasshouse.assess.people.groups import MODAL_ONES, NONMODAL
from glasshouse.assess.people.leaving_out import GROUPS, Attack, Everyone
from glasshouse.attack.people.reidentify import Ints
from glasshouse.attack.published import Published, untold
from glasshouse.commands.work.linking import Attacked
from glasshouse.commands.work.reconstruct import QUESTION
from glasshouse.engine.ledger import Ledger
from glasshouse.engine.plain import Json
from glasshouse.errors import InputError
from glasshouse.files.records import RecordFile, level_matrix
from glasshouse.model.bands import ALL
from glasshouse.model.chance import chance
from glasshouse.model.geography import plural
from glasshouse.model.records import satisfies
from glasshouse.model.tabulate import compile_tables
from glasshouse.protection.swap.by_rates import Draws, Rates
from glasshouse.protection.swap.persons import Persons, settle
from glasshouse.scenarios.load import Scenario


def plan(ledger: Ledger, job: Reidentification, wanted: int) -> dict[str, dict[str, Ints]]:
    """By unit and group, the persons left out: of every group as many as wanted, drawn without replacement.

    A person is a number among those of the group in the unit; the unit knows who that is.
    """
    sizes: dict[str, list[int]] = {group: [] for group in GROUPS}
    units = list(ledger.held())
    for unit in units:
        frame = ledger.read(unit).frames.get("counts")
        some = {}
        if frame is not None:
            rows = frame.filter(
                pl.col("data") == TRUTH, pl.col("attacker") == job.attackers[0], pl.col("band") == ALL
            )  # fmt: skip
            some = dict(rows.select("group", "population").iter_rows())
        everybody = some.get(MODAL_ONES, 0) + some.get(NONMODAL, 0)
        for group in GROUPS:
            sizes[group].append(everybody if group == ALL else some.get(group, 0))
    found: dict[str, dict[str, Ints]] = {}
    for group in GROUPS:
        ends = np.cumsum(sizes[group])
        total = int(ends[-1]) if len(ends) else 0
        drawn = np.sort(chance(job.seed, group, "leave one out").choice(total, min(wanted, total), replace=False))
        unit_of = np.searchsorted(ends, drawn, side="right")
        for number in np.unique(unit_of):
            mine = drawn[unit_of == number] - (ends[number] - sizes[group][number])
            found.setdefault(units[number], {})[group] = mine.astype(np.int64)
    return found


def attacks_of(data: Sequence[Attacked], scenario: Scenario) -> tuple[Attack, ...]:
    """The reconstructions that can be done again, as their folders say they were done."""
    found = []
    for file in data:
        told: Json | None = file.told
        if told is not None:
            parameters, level = told["parameters"], told["counts"]["level"]
            chosen = scenario.choose(parameters["tables"])
            area = None if level == scenario.geography.place else level
            found.append(
                Attack(file.name, _published(chosen, area), area, parameters["seed"], parameters["effort"], QUESTION)
            )  # fmt: skip
    if not found:
        raise InputError("--leave-one-out needs a folder of reconstruct, so that it can be done again without a person")
    return tuple(found)


def _published(scenario: Scenario, area: str | None) -> Published:
    inner = tuple(table for table in scenario.tables if table.level == scenario.geography.place)
    outer = tuple(table for table in scenario.tables if area is not None and table.level == area)
    # as `tabulate` writes them: without subtotals, which say nothing more
    variables = [compile_tables(scenario.schema, some).variables if some else () for some in (inner, outer)]
    left_out = untold(scenario.schema, (*inner, *outer))
    return Published(
        scenario.schema, inner, variables[0], outer, variables[1], scenario.bins, scenario.unique_on, left_out
    )  # fmt: skip


def rates_of(text: str) -> Rates:
    """`BASE,RISKY`: the chances to be swapped."""
    try:
        base, risky = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--swap {text}: expected two chances, BASE,RISKY, as in 0.02,0.10") from None
    try:
        return Rates(base, risky)
    except InputError as error:
        error.add_where(f"--swap {text}")
        raise


def everyone(truth: RecordFile, scenario: Scenario, rates: Rates, seed: int, job: Reidentification) -> Everyone:
    """Everybody of the truth in memory, and their households swapped."""
    home, name = scenario.household, truth.source.path.name
    if home is None:
        raise InputError(
            f"scenario {scenario.name} does not say what a household is, and --swap pairs households by their adults; "
            "it needs [household]"
        )
    if home.column not in truth.source.columns:
        raise InputError(
            f"{name}: column '{home.column}' is missing; households are swapped, so --swap must know "
            f"who lives with whom; found: {truth.source.told}"
        )
    quarters = [home.quarters.column] if home.quarters.column in truth.source.columns else []
    frame = pl.concat(truth.frames(names=(ID, home.column, *quarters)))
    if frame[home.column].null_count():
        raise InputError(f"{name}: a {home.column} is blank; --swap must know who lives with whom")
    geography = scenario.geography
    places = frame["geoid"].unique().sort()
    place = places.search_sorted(frame["geoid"]).to_numpy().astype(np.int64)
    homes = frame[home.column].unique().sort()
    unit = homes.search_sorted(frame[home.column]).to_numpy().astype(np.int64)
    unit_place = np.zeros(len(homes), np.int64)
    unit_place[unit] = place
    if np.any(unit_place[unit] != place):
        raise InputError(f"{name}: a household is in two {plural(geography.place)}; expected one")
    levels = list(geography.lengths)
    area = levels[max(levels.index(geography.unit) - 1, 0)]
    household = np.ones(len(homes), np.bool_)
    for column in quarters:
        household[unit[(frame[column].fill_null("0") != "0").to_numpy()]] = False
    codes = level_matrix(frame, scenario.schema)
    persons = Persons(
        unit,
        satisfies(scenario.schema, codes, home.adult),
        job.features.cell(job.features.levels(codes)),
        frame[ID].is_not_null().to_numpy(),
        unit_place,
        _ranked(places.str.head(geography.lengths[area]))[unit_place],
        _ranked(places.str.head(geography.lengths[geography.unit]))[unit_place],
        household,
    )
    draws = Draws.of(len(homes), chance(seed, "households", "swap"))
    return Everyone(settle(persons, rates, draws), np.ascontiguousarray(codes), tuple(places))


def _ranked(codes: pl.Series) -> Ints:
    return codes.rank("dense").to_numpy().astype(np.int64)
