"""Where are the files of an audit? Those given, and those that its steps make."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path

import polars as pl

from glasshouse.assess.microdata import Rules
from glasshouse.commands.auditing.config import Config, Input
from glasshouse.commands.options import chosen_scenario
from glasshouse.errors import InputError
from glasshouse.files.frames import OTHER_FORMATS, open_source, rows_in
from glasshouse.files.geometry import read_shapes
from glasshouse.files.records import open_records
from glasshouse.files.tables import open_tables
from glasshouse.model.schema import EVERYONE
from glasshouse.scenarios.load import Scenario, load

PERFECT = "perfect"  # who knows the place, sex and age of everybody: the truth itself, read as a list


@dataclass(frozen=True)
class Files:
    """The inputs of every step; None: neither given nor made."""

    folder: Path
    tables: Path
    counted: bool  # the tables are counted from records by the audit itself
    records: Path | None
    published: Path | None
    households: Path | None
    household_tables: Path | None
    occupancy_tables: Path | None
    properties: Path | None
    geometry: Path | None
    coordinates: Path | None  # of places, where that is what the geometry is
    lists: dict[str, Path]
    persons: int  # about how many
    named: bool = True  # the records say who is who (person_id)
    hidden: bool = False  # some number of the tables is not printed exactly

    @property
    def strongest(self) -> str:
        """The list of the attacker who knows most: its figures stand on the first screen, protections must stop it."""
        return PERFECT if PERFECT in self.lists else list(self.lists)[-1]

    @property
    def given(self) -> dict[str, Path]:
        """The files that the result depends on, by their role."""
        roles = {
            "tables": None if self.counted else self.tables, "records": self.records, "published": self.published,
            "households": self.households, "household tables": self.household_tables,
            "occupancy tables": self.occupancy_tables, "properties": self.properties, "geometry": self.geometry,
            **{f"attacker {name}": path for name, path in self.lists.items()},
        }  # fmt: skip
        return {role: path for role, path in roles.items() if path and self.folder not in path.parents}


def files_of(config: Config, folder: Path) -> Files:
    """Where every file is, or will be."""
    if config.synthetic is not None:
        county = folder / "county"
        lists = {name: county / f"{name}.parquet" for name in ("commercial",)} | {**config.attackers.lists}
        lists |= {f"bought-{grade}": folder / f"bought-{grade}.parquet" for grade in config.attackers.presets}
        lists |= {PERFECT: county / "attacker-perfect.parquet"} if config.attackers.perfect else {}
        blocks = county / "blocks.parquet"
        return Files(
            folder, folder / "tables.parquet", True, county / "cef.parquet", county / "hdf.parquet",
            county / "households.parquet", folder / "household-tables.parquet", folder / "occupancy-tables.parquet",
            county / "housing.parquet", blocks, blocks, lists, config.synthetic.persons,
        )  # fmt: skip
    given = config.input
    assert given is not None  # one of the two is there
    lists = dict(config.attackers.lists)
    if given.records:
        lists |= {f"bought-{grade}": folder / f"bought-{grade}.parquet" for grade in config.attackers.presets}
    if config.attackers.perfect and given.records:
        lists |= {PERFECT: given.records}
    made, named = given.households is not None, given.records is not None and _has(given.records, "person_id")
    source = given.records or given.published
    counted = given.tables is None
    tables = folder / "tables.parquet" if given.tables is None else given.tables
    geometry = given.geometry
    return Files(
        folder, tables, counted, given.records, given.published or given.records, given.households,
        given.household_tables or (folder / "household-tables.parquet" if made else None),
        given.occupancy_tables or (folder / "occupancy-tables.parquet" if made else None),
        given.properties, geometry, geometry if geometry and _is_table(geometry) else None, lists,
        rows_in(source) if source else _counted_by(tables, load(config.scenario), given.codebook), named,
        not counted and _hides(tables, chosen_scenario(config.scenario, config.tables), given),
    )  # fmt: skip


def _is_table(path: Path) -> bool:
    """Is it a table with a row for each place, and not GeoJSON? Then protections can use it too."""
    if path.suffix.lower() in (".geojson", ".json"):
        return False
    return _has(path, "x", "y")


def _has(path: Path, *columns: str) -> bool:
    return set(columns) <= set(open_source(path).columns)


def _counted_by(path: Path, scenario: Scenario, codebook: Path | None) -> int:
    """How many records published tables count, at least: the most that one of them counts in all places."""
    whole = {
        line.variable: table.name if line in table.leaves else line.variable
        for table in scenario.tables
        if table.universe == EVERYONE and not table.tally and not table.sums
        for line in table.lines
        if line in table.leaves or line.predicate == EVERYONE
    }
    found: Counter[str] = Counter()
    for rows in open_tables(path, scenario, codebook).rows():
        here = rows.filter(pl.col("level") == scenario.geography.place, pl.col("variable").is_in(list(whole)))
        told = here.with_columns(pl.col("variable").replace_strict(whole, default="")).group_by("variable")
        found.update(dict(told.agg(pl.col("lower").sum()).iter_rows()))
    return max(found.values(), default=0)


def _hides(path: Path, scenario: Scenario, given: Input) -> bool:
    """Is some number of the tables not printed exactly? They are read up to the first; exact ones not at all."""
    if path.suffix.lower() == ".zip":
        return False
    printed = scenario.printed
    if printed.rule is not None:
        return True
    other = path.is_dir() or path.name.lower().endswith(OTHER_FORMATS)
    columns = () if other else open_source(path).columns
    of_variables = "variable" in columns
    if of_variables and (given.missing or printed.missing) == "hidden":  # what has no row is not told
        return True
    if columns and not printed.markers and not {"lower", "upper"} <= set(columns):
        return False
    rows = open_tables(path, scenario, given.codebook).rows()
    return any(not frame.filter(pl.col("lower") < pl.col("upper")).is_empty() for frame in rows)


def rules_of(config: Config, scenario: Scenario) -> Rules | None:
    """The rules for microdata: the scenario's, unless the configuration has others; None where nobody states any."""
    asked = {**(scenario.microdata or {}), **config.microdata.model_dump(exclude_none=True)}
    if not asked:
        return None
    lacking = [one.name for one in fields(Rules) if one.name not in asked]
    if lacking:
        said = ", ".join(lacking)
        raise InputError(f"[microdata] has no {said}, and the scenario has no such rules; expected all, or no section")
    return Rules(int(asked["area"]), int(asked["category"]), asked["sample"])


def refuse_unreadable(config: Config, files: Files, scenario: Scenario) -> None:
    """Look at the head of every file that is given, before anything is done: a mistake is said now, not tomorrow."""
    given = config.input
    if given is None:
        return
    if given.tables is not None:
        open_tables(given.tables, scenario, given.codebook)
    for records in (given.records, given.published):
        if records is not None:
            open_records(records, scenario)
    for part, tables in ((config.claims, given.household_tables), (config.occupancy, given.occupancy_tables)):
        if part is not None and tables is not None:
            open_tables(tables, load(part.scenario), None)
        elif part is not None and given.households is not None:
            open_records(given.households, load(part.scenario))
    if given.geometry is not None:
        try:
            read_shapes(given.geometry, scenario.geography)
        except InputError as error:
            error.add_where("input.geometry")
            raise
