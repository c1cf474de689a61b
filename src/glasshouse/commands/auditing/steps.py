"""What does an audit do, in which order, and what does it leave out? Steps, each a function that anybody could call.

Every step writes a folder or file of its own and can be gone on with; so can the whole. What the inputs do not allow is
left out, and why is said. The order of the steps, and what a budget of time leaves out, depend on the configuration and
the size of the inputs alone, not on the machine.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from glasshouse.assess.one_solution import one_solution
from glasshouse.attack.claims.withholding import named
from glasshouse.commands.auditing.config import Config
from glasshouse.commands.auditing.files import Files
from glasshouse.commands.auditing.proofs import PROOFS, ProofsFound
from glasshouse.commands.bounds import bounds
from glasshouse.commands.check import Checked, check
from glasshouse.commands.compare import Compared, compare
from glasshouse.commands.compare_plan import read_plan
from glasshouse.commands.detect import Detected, detect
from glasshouse.commands.infer.budgets import plan
from glasshouse.commands.options import chosen_scenario
from glasshouse.commands.proving.check_proof import check_proof
from glasshouse.commands.proving.chosen import FACTS
from glasshouse.commands.proving.prove import prove
from glasshouse.commands.reconstruct import reconstruct
from glasshouse.commands.reidentify import Reidentified, reidentify
from glasshouse.commands.result import OUR_BUG, Result
from glasshouse.commands.synthesize import synthesize
from glasshouse.commands.tabulate import tabulate
from glasshouse.commands.vary import Varied, vary
from glasshouse.commands.verify import Verified, verify
from glasshouse.commands.work.picked_places import parse_pick
from glasshouse.engine.manifest import Occupied
from glasshouse.engine.progress import aloud, shows_bars
from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.files.output import private_file, row_writer
from glasshouse.mechanism.account import allocation
from glasshouse.population.attackers import quality
from glasshouse.population.bought_lists import buy_list
from glasshouse.population.preset import load_preset
from glasshouse.scenarios.load import Scenario, load

R = TypeVar("R", bound=Result[Any])
Given = dict[str, Any]  # keywords of a function
LEAKS = pl.Schema({
    "tables": pl.String, "title": pl.String, "names": pl.String, "units": pl.Int64, "blocks": pl.Int64,
    "records": pl.Int64, "certain": pl.Int64, "without": pl.Int64, "zero": pl.Int64, "zero_without": pl.Int64,
    "not_compared": pl.String,
})  # fmt: skip
# what a threshold is measured by, where that is not always done
MEASURED_BY = {
    "precision_exposed": "reidentify", "advantage_exposed": "reidentify", "found_exposed": "reidentify",
    "claims_households": "claims", "detected_blocks": "occupancy", "posterior": "noise",
    "share_given_away": "bounds",
}  # fmt: skip
WHY = 1  # hidden numbers of a unit that are explained
# what a budget of time gives up first
DISPENSABLE = ("compare", "prove", "leaks", "claims", "occupancy", "reidentify", "bounds")


@dataclass(frozen=True)
class Step:
    """One part of an audit: what it answers, what it is estimated to take, or why it is left out."""

    name: str
    says: str
    seconds: float
    do: Callable[[Ask], Result[Any] | None]
    without: str = ""


@dataclass(frozen=True)
class Ask:
    """How steps call functions: with the workers of the audit, and what others have found before."""

    workers: int | None
    executor: str | None
    before: Mapping[str, Result[Any] | None]
    insecure: bool = False

    def crew(self) -> Given:
        if self.executor:
            return {"executor": self.executor, "insecure": self.insecure}
        return {"workers": self.workers}

    def __call__(self, name: str, function: Callable[..., R], *args: Any, quietly: bool = False, **given: Any) -> R:
        """Call a function. The folders of an audit are its own: what is there of another configuration is replaced."""
        with aloud(bars=shows_bars() and not quietly, lines=False):
            try:
                try:
                    result = function(*args, **given)
                except Occupied:
                    result = function(*args, **given, overwrite=True)
            except InputError as error:
                error.add_where(f"step {name}")
                raise
        if result.code == OUR_BUG:
            raise GlasshouseBug(f"step {name}: a bug of ours in {result.command}; its manifest.json says where")
        return result


def steps_of(config: Config, files: Files) -> tuple[Step, ...]:
    """Every step, in order; those that are left out say why."""
    every = tuple(_steps(config, files, chosen_scenario(config.scenario, config.tables)))
    if config.minutes is None:
        return every
    for name in DISPENSABLE:
        if sum(step.seconds for step in every if not step.without) <= 60 * config.minutes:
            break
        over = f"the budget of {config.minutes:g} minutes does not allow it"
        every = tuple(replace(step, without=step.without or over) if step.name == name else step for step in every)
    return every


def refuse_unmeasured(config: Config, steps: Sequence[Step]) -> None:
    """A threshold that nothing could pass would be a promise that is not kept."""
    left_out = {step.name: step.without for step in steps if step.without}
    unmet = [
        f"thresholds.{key} is set, but the step that measures it, {MEASURED_BY[key]}, is left out: "
        f"{left_out[MEASURED_BY[key]]}"
        for key, limit in config.thresholds
        if limit is not None and MEASURED_BY.get(key) in left_out
    ]
    if unmet:
        raise InputError(*unmet)


def refuse_unknown(config: Config) -> None:
    """Names that only a later step would look up are looked up now."""
    if config.claims is not None:
        claims = load(config.claims.scenario)
        if config.claims.pick:
            parse_pick(config.claims.pick, claims.geography)
    if config.occupancy is not None and load(config.occupancy.scenario).occupancy is None:
        raise InputError(f"occupancy.scenario: {config.occupancy.scenario} says nothing of a second agency")
    if config.noise is not None and config.noise.budget:
        allocation(config.noise.budget).rhos(config.noise.query)
    if config.synthetic is not None:
        load_preset(config.synthetic.preset)
        quality(config.synthetic.commercial)
    if config.protections is not None:
        plan = read_plan(config.protections.plan)
        for name in config.protections.settings:
            plan.setting(name)


def _steps(config: Config, files: Files, scenario: Scenario) -> Iterator[Step]:
    persons, blocks = files.persons, files.persons / 40
    made, folder = config.synthetic, files.folder
    read = _reading(config, config.tables)
    yield Step(
        "synthesize", "invented people with a known truth", 2 + persons / 20_000,
        lambda ask: ask(
            "synthesize", synthesize, persons=made.persons, seed=made.seed, preset=made.preset,
            commercial=made.commercial, subsidised=made.subsidised, out=folder / "county",
        ) if made else None,
        "" if made else "the files are given",
    )  # fmt: skip
    yield Step(
        "tabulate", "what is published", 2 + persons / 30_000,
        lambda ask: ask(
            "tabulate", tabulate, _there(files.published), scenario=config.scenario, only=config.tables,
            out=files.tables,
        ),
        "" if files.counted else "the tables are given",
    )  # fmt: skip
    yield Step("check", "can all numbers be true?", 3 + blocks / 150, lambda ask: _check(ask, read, files))
    yield Step(
        "bounds", "which hidden numbers can be worked out?", 5 + blocks / 8,
        lambda ask: ask("bounds", bounds, files.tables, **read, why=WHY, **ask.crew(), out=folder / "bounds"),
        "" if files.hidden else "every number is printed exactly",
    )  # fmt: skip
    yield Step(
        "reconstruct", "which records fit?", 4 + blocks / 200,
        lambda ask: ask(
            "reconstruct", reconstruct, files.tables, **read, seed=config.seed, **ask.crew(), out=folder / "rebuilt"
        ),
    )  # fmt: skip
    yield Step(
        "vary", "how sure is that?", 6 + blocks / 120,
        lambda ask: ask(
            "vary", vary, files.tables, **read, seed=config.seed, **ask.crew(), start=folder / "rebuilt",
            out=folder / "solvar",
        ),
    )  # fmt: skip
    families = named(scenario.tables, by_family=True)
    yield Step(
        "leaks", "which tables give it away?", 2 + len(families) * (1.5 + config.leaks.blocks / 150),
        lambda ask: _leaks(ask, config, files, scenario),
        "leaks.blocks is 0" if not config.leaks.blocks else "there is one table only" if len(families) < 2 else "",
    )  # fmt: skip
    groups = 3 * config.attackers.leave_one_out
    yield Step(
        "reidentify", "who could be identified, compared with guessing?", 6 + persons / 3000 + groups / 25,
        lambda ask: _reidentify(ask, config, files),
        _no_truth(files),
    )  # fmt: skip
    yield from _household_steps(config, files)
    looked = 0 if config.proofs is None else min(persons, 40 * config.proofs.blocks)
    yield Step(
        "prove", "what can strangers check?", 4 + looked / 250, lambda ask: _prove(ask, config, files, scenario),
        "no [proofs]" if config.proofs is None else "",
    )  # fmt: skip
    yield Step(
        "noise", "what would one noisy count give away?", 1, lambda ask: _noise(ask, config, files),
        "" if config.noise else "no [noise] with a budget or rho",
    )  # fmt: skip
    yield Step(
        "compare", "which protection stops it, at what price?", _compare_seconds(config, persons),
        lambda ask: _compare(ask, config, files),
        "no [protections] to compare" if not config.protections
        else "protections are compared with all tables of a scenario, and here only some are used (tables)"
        if config.tables else _no_truth(files),
    )  # fmt: skip


def _reading(config: Config, tables: Sequence[str]) -> Given:
    """How a command reads the published tables, or some of them."""
    read: Given = {"scenario": config.scenario, "only": tuple(tables)}
    if config.input is not None:
        assumed = config.input.assume_published
        if assumed not in ("all", "seen"):  # a list: of those that are looked at
            kept = [name.strip() for name in assumed.split(",") if not tables or name.strip() in tables]
            assumed = ",".join(kept) or "seen"
        read |= {"assume_published": assumed, "missing": config.input.missing, "codebook": config.input.codebook}
    if config.input is None or config.input.tables is None:  # counted here: whatever the office prints, these are exact
        printed = chosen_scenario(config.scenario).printed
        read |= {"exact": True} if printed.rule is not None else {}
        read |= {"missing": "zero"} if printed.missing != "zero" else {}
    return read


def _household_steps(config: Config, files: Files) -> Iterator[Step]:
    claims, occupancy = config.claims, config.occupancy
    no_households = "no [input] households, and no tables of them"
    yield Step(
        "claims", "what must be true of households?", 10 + files.persons / 10_000,
        lambda ask: _claims(ask, config, files),
        "no [claims]" if claims is None else "" if files.household_tables else no_households,
    )  # fmt: skip
    yield Step(
        "occupancy", "what do two agencies give away together?", 6 + files.persons / 10_000,
        lambda ask: _occupancy(ask, config, files),
        "no [occupancy]" if occupancy is None
        else "" if files.occupancy_tables and files.properties
        else no_households if files.properties else "no [input] properties",
    )  # fmt: skip


def _no_truth(files: Files) -> str:
    """Why nobody can be looked for, if so."""
    if not files.records:
        return "no [input] records: without the truth nobody can say who was found"
    if not files.named:
        return f"{files.records.name} has no column person_id: nobody can say who was found"
    return "" if files.lists else "no attacker: no [attackers.lists], no presets, and perfect = false"


def _there(path: Path | None) -> Path:
    assert path is not None  # a step that needs it is left out without
    return path


def _compare_seconds(config: Config, persons: float) -> float:
    if config.protections is None:
        return 0
    plan = read_plan(config.protections.plan)
    seeds = config.protections.seeds or len(plan.seeds)
    settings = [plan.setting(name) for name in config.protections.settings] or plan.settings
    intervals = sum(one.intervals for one in settings)  # attacked in two ways, each of them slow
    return 4 + seeds * (len(settings) * (4 + persons / 2500) / 2 + intervals * persons / 35)


# What steps do beyond one function


def _kept(path: Path, said: Mapping[str, object]) -> None:
    with private_file(path) as stream:
        stream.write((json.dumps(said, indent=2, sort_keys=True) + "\n").encode())


def _check(ask: Ask, read: Given, files: Files) -> Checked:
    """Contradictions are kept with the data; the report says how many."""
    found = ask("check", check, files.tables, **read)
    _kept(files.folder / "check.json", {key: value for key, value in found.said().items() if key != "tables"})
    return found


def _leaks(ask: Ask, config: Config, files: Files, scenario: Scenario) -> None:
    """Each family of tables withheld, in some whole units: how many records are then certain?"""
    varied, checked = ask.before["vary"], ask.before["check"]
    assert isinstance(varied, Varied) and isinstance(checked, Checked)
    places = varied.places
    unit, place = scenario.geography.unit, scenario.geography.place
    units = drawn_units(places, unit, config.leaks.blocks, f"{config.seed}", "leaks")
    inside = places.filter(pl.col(unit).is_in(units) & (pl.col("population") > 0))
    records, certain = int(inside["population"].sum()), int(inside["certain"].sum())
    zero = inside.filter(one_solution("solvar_upper")).height
    rows: list[tuple[Any, ...]] = []
    base = varied.summary.not_compared or ()
    there = [table for table in scenario.tables if table.name not in checked.summary.absent]
    for name, withheld in named(there, by_family=True).items():
        kept = [table.name for table in there if table not in withheld]
        shared = (len(units), inside.height, records, certain)
        whole = (name, withheld[0].title, ",".join(table.name for table in withheld), *shared)
        if not any(table.level == place for table in there if table not in withheld):
            rows.append((*whole, None, zero, None, f"no table of a {place} is left"))
            continue
        found = ask(
            "leaks", vary, files.tables, **_reading(config, kept), units=units, seed=config.seed, **ask.crew(),
            out=files.folder / "leaks" / _folder(name), quietly=True,
        )  # fmt: skip
        untold = [one for one in found.summary.not_compared or () if one not in base]
        left = found.places.filter(pl.col("population") > 0)
        zeros = left.filter(one_solution("solvar_upper")).height
        rows.append((*whole, int(left["certain"].sum()), zero, zeros, ", ".join(untold)))
    with row_writer(files.folder / "leaks.parquet") as writer:
        writer.write(pl.DataFrame(rows, schema=LEAKS, orient="row"))


def _folder(name: str) -> str:
    """A family of tables as the name of a folder: P12, A-I is P12-A-I."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name)


def drawn_units(places: pl.DataFrame, unit: str, blocks: int, seed: str, what: str) -> list[str]:
    """Units in an order of chance, until they have enough places."""
    counts = dict(places.filter(pl.col("population") > 0).group_by(unit).len().iter_rows())
    drawn, total = [], 0
    for code in sorted(counts, key=lambda code: hashlib.sha256(f"{seed}/{code}/{what}".encode()).digest()):
        if total >= blocks:
            break
        drawn.append(code)
        total += counts[code]
    return sorted(drawn)


def _reidentify(ask: Ask, config: Config, files: Files) -> Reidentified:
    for grade in config.attackers.presets:
        out = files.folder / f"bought-{grade}.parquet"
        buy_list(_there(files.records), load(config.scenario), grade, config.seed, out)
    return ask(
        "reidentify", reidentify, files.folder / "rebuilt", vary=files.folder / "solvar", truth=_there(files.records),
        published=_there(files.published or files.records), attacker=files.lists, scenario=config.scenario,
        leave_one_out=config.attackers.leave_one_out, seed=config.seed, **ask.crew(), out=files.folder / "risk",
    )  # fmt: skip


def _claims(ask: Ask, config: Config, files: Files) -> Verified:
    claims, tables = config.claims, _there(files.household_tables)
    assert claims is not None
    if tables.parent == files.folder and files.households:
        ask("claims", tabulate, files.households, scenario=claims.scenario, out=tables)
    return ask(
        "claims", verify, tables, scenario=claims.scenario, columns=claims.columns, pick=claims.pick,
        leaks=claims.leaks, truth=files.households, seed=config.seed, **ask.crew(), out=files.folder / "claims",
    )  # fmt: skip


def _occupancy(ask: Ask, config: Config, files: Files) -> Detected:
    occupancy, tables = config.occupancy, _there(files.occupancy_tables)
    assert occupancy is not None
    if tables.parent == files.folder and files.households:
        ask("occupancy", tabulate, files.households, scenario=occupancy.scenario, out=tables)
    return ask(
        "occupancy", detect, tables, scenario=occupancy.scenario, properties=_there(files.properties),
        model=occupancy.model, why=True, **ask.crew(), out=files.folder / "occupancy",
    )  # fmt: skip


def _prove(ask: Ask, config: Config, files: Files, scenario: Scenario) -> None:
    """Certificates of what other steps found, each folder checked again as a stranger would; how many are accepted."""
    wanted, varied, found = config.proofs, ask.before["vary"], ProofsFound()
    assert wanted is not None and isinstance(varied, Varied)
    unit = scenario.geography.unit
    units = drawn_units(varied.places, unit, wanted.blocks, f"{config.seed}", "prove")
    read = {name: value for name, value in _reading(config, config.tables).items() if name != "only"}
    sources: dict[str, tuple[Path | None, Given]] = {
        "vary": (files.tables, {**read, "units": units, "start": files.folder / "rebuilt"}),
        "bounds": (files.tables, {**read, "units": units}),
        "claims": (files.household_tables, {"scenario": config.claims.scenario if config.claims else ""}),
        "occupancy": (
            files.occupancy_tables,
            {"scenario": config.occupancy.scenario if config.occupancy else "", "properties": files.properties},
        ),
    }
    for step in wanted.of:
        result = ask.before.get(step)
        if result is None or result.out is None or result.command not in FACTS:
            continue
        tables, given = sources[step]
        out = files.folder / "proofs" / step
        proved = ask("prove", prove, result.out, tables=_there(tables), **given, **ask.crew(), out=out)
        how = {name: value for name, value in given.items() if name not in ("units", "start")}
        checked = ask("prove", check_proof, out, tables=_there(tables), **how)
        if checked.summary.refused and proved.summary.files:
            raise GlasshouseBug(f"step prove: {checked.summary.reasons[0]}")
        found.add(step, proved)
    looked_at = varied.places.filter(pl.col(unit).is_in(units))
    _kept(files.folder / PROOFS, found.said(looked_at, everything=looked_at.height == varied.places.height))


def _noise(ask: Ask, config: Config, files: Files) -> None:
    noise = config.noise
    assert noise is not None
    said: Mapping[str, object] = {"rho": noise.rho, "prior": noise.prior}
    if noise.rho is None:
        said = ask("noise", plan, allocation=noise.budget, query=noise.query, prior=noise.prior).said()
    _kept(files.folder / "noise.json", said)


def _compare(ask: Ask, config: Config, files: Files) -> Compared:
    wanted = config.protections
    assert wanted is not None
    return ask(
        "compare", compare, scenario=config.scenario, truth=_there(files.records),
        attackers={files.strongest: files.lists[files.strongest]}, places=files.coordinates, plan=wanted.plan,
        settings=wanted.settings, seeds=wanted.seeds, **ask.crew(), out=files.folder / "compared",
    )  # fmt: skip
