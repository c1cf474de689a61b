"""What do the real files say, number by number? Sets of cells and intervals, for make_bounds_page.py and tests.

The files are beside the repository (`../shared/data/world`, with a README that names their sources). Each release is a
`Numbers` (which cells each number counts) and two arrays of limits, a row for each place.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.files.archive import SafeZip
from glasshouse.files.formats.tau_metadata import read_metadata
from glasshouse.files.formats.tau_records import TauRecords, read_records
from glasshouse.files.formats.tau_table import Nodes, TauTable, members, read_hierarchy, read_table
from glasshouse.model.contributions import Contributions
from glasshouse.model.records import UNLIMITED
from glasshouse.program.numbers.linked import Numbers
from glasshouse.scenarios.load import Scenario, load

WORLD = Path(__file__).resolve().parents[2] / "shared" / "data" / "world"
Ints = NDArray[np.int64]
Cells = Sequence[tuple[object, ...]]


class Release(NamedTuple):
    """Numbers of places: what they count, and between which limits they lie (places x numbers)."""

    numbers: Numbers
    places: tuple[str, ...]
    lower: Ints
    upper: Ints


def counting(sets: Mapping[str, NDArray[np.bool_]]) -> Numbers:
    """Numbers from the cells that each counts."""
    return Numbers(tuple(sets), sparse.csr_matrix(np.stack(list(sets.values())).astype(np.int64)))


# tau-Argus ------------------------------------------------------------------------------------------------------------

TAU = {
    "test_1": ("OUTPUT.zip", "nace_divisions.hrc", None),
    "test_2a": ("OUTPUT.zip", "nace_divisions.hrc", None),
    "test_2b": ("OUTPUT.zip", "nace_divisions.hrc", "KohStatReg.hrc"),
    "test_3a": ("OUTPUT.zip", "KohStatReg.hrc", "NUTS.hrc"),
    "test_3b": ("OUTPUT.zip", "KohStatReg.hrc", None),
    "Simple2D": ("Simple2D_Expected_Output.zip", None, "region2.hrc"),
}


class TauRule(NamedTuple):
    """By which variables and of which number a problem's table is, whose contributions count, and the p of its rule.

    As sdcTools/checkTauArgus says it (vignettes/GUItests.Rmd); `missing_safe`: cells of missing codes were called safe.
    """

    by: tuple[str, ...]
    response: str
    holding: str | None
    p: int
    missing_safe: bool


TAU_RULES = {
    "test_1": TauRule(("act", "product"), "turnover", "h_id", 10, True),
    "test_2a": TauRule(("act", "product"), "turnover", "h_id", 10, True),
    "test_2b": TauRule(("act", "region"), "turnover", "h_id", 10, True),
    "test_3a": TauRule(("region", "mun"), "turnover", "h_id", 10, True),
    "test_3b": TauRule(("region", "product"), "turnover", "h_id", 10, True),
    "Simple2D": TauRule(("Size", "Region"), "Var2", None, 15, False),
}
# tau_testW.rda is not among the files; the places of these columns are in the manual of tau-Argus (section 3.1.3).
TAU_SIMPLE = b'Size 9 2 "99"\n <RECODEABLE>\nRegion 12 2\n <RECODEABLE>\nVar2 28 10\n <NUMERIC>\n <DECIMALS> 2\n'


def tau_records(folder: Path = WORLD / "tau") -> dict[str, TauRecords]:
    """The microdata behind each problem."""
    with SafeZip(folder / "TEST.zip") as source:
        metadata = read_metadata(members(source, "TEST/example_enterprise.rda"), "example_enterprise.rda")
        firms = read_records(members(source, "TEST/example_enterprise.asc"), "example_enterprise.asc", metadata)
    with SafeZip(folder / "Simple2D_InputData.zip") as source:
        metadata = read_metadata(TAU_SIMPLE, "tau_testW.rda")
        simple = read_records(members(source, "tau_testW.asc"), "tau_testW.asc", metadata)
    return {name: simple if rule.response == "Var2" else firms for name, rule in TAU_RULES.items()}


def tau_contributions(name: str, table: TauTable, records: TauRecords) -> tuple[Contributions, ...]:
    """Who makes up each cell of a problem, in the unit of its table."""
    rule = TAU_RULES[name]
    cells = records.contributions(dict(zip(rule.by, table.variables, strict=True)), rule.response, rule.holding)
    unit = 10 ** (table.decimals - records.decimals[rule.response])
    return tuple(Contributions(c.total * unit, tuple(x * unit for x in c.largest), c.contributors) for c in cells)


def tau_problems(folder: Path = WORLD / "tau") -> dict[str, TauTable]:
    """The test problems: tables with a status for each cell, and their hierarchies."""
    hierarchies = {}
    for archive in ("TEST.zip", "Simple2D_InputData.zip"):
        with SafeZip(folder / archive) as source:
            for name in source.names:
                if name.endswith(".hrc"):
                    hierarchies[name.rsplit("/")[-1]] = read_hierarchy(members(source, name), f"{archive}: {name}")
    found = {}
    for problem, (archive, *known) in TAU.items():
        with SafeZip(folder / archive) as source:
            name = next(name for name in source.names if name.rsplit("/")[-1] == f"{problem}.txt")
            given = [None if one is None else hierarchies[one] for one in known]
            found[problem] = read_table(members(source, name), f"{archive}: {name}", given)
    return found


def tau_release(table: TauTable) -> Release:
    return Release(Numbers(table.names, table.times), (table.where,), table.lower[None], table.upper[None])


def tau_linked(tables: Mapping[str, TauTable]) -> tuple[Release, NDArray[np.bool_]]:
    """The two tables of the problem with linked tables, test_2a and test_2b, as one release; and which are hidden."""
    one, other = tables["test_2a"], tables["test_2b"]
    (activity, product), (again, region) = one.variables, other.variables
    if activity.codes != again.codes:
        raise ValueError("test_2a and test_2b are not by the same activities")

    def every(nodes: Nodes) -> sparse.csr_matrix:
        return sparse.csr_matrix(np.ones((1, len(nodes.leaves)), np.int64))

    first = sparse.kron(sparse.kron(activity.inside, product.inside), every(region))
    second = sparse.kron(sparse.kron(activity.inside, every(product)), region.inside)
    names = tuple(f"{name}: {cell}" for name, table in (("2a", one), ("2b", other)) for cell in table.names)
    lower, upper = (np.concatenate([getattr(one, side), getattr(other, side)])[None] for side in ("lower", "upper"))
    numbers = Numbers(names, sparse.csr_matrix(sparse.vstack([first, second])))
    return Release(numbers, ("test_2",), lower, upper), np.concatenate([one.hidden, other.hidden])


# Releases that a scenario describes ----------------------------------------------------------------------------------


def numbers_of(scenario: Scenario) -> Numbers:
    """What the office's columns count, as its scenario says: cells that some number or structural zero tells apart."""
    schema, zeros = scenario.schema, scenario.schema.impossible
    lines = {name: scenario.table(table).line(line).predicate for name, (table, line) in scenario.spelled.items()}
    if any(predicate is None for predicate in lines.values()):
        raise ValueError("a number that counts answers has no cells")
    said = [predicate for predicate in (*lines.values(), *(zero.predicate for zero in zeros)) if predicate is not None]
    inside: list[NDArray[np.bool_]] = []  # for each attribute, classes of levels x descriptions
    for attribute in schema.attributes:
        every = frozenset(range(len(attribute)))
        chosen = [one.by_attribute.get(attribute.name, every) for one in said]
        told = np.array([[level in levels for levels in chosen] for level in range(len(attribute))])
        inside.append(np.unique(told, axis=0))
    cells = np.indices([len(classes) for classes in inside]).reshape(len(inside), -1)

    def counted(at: int) -> NDArray[np.bool_]:
        return np.logical_and.reduce([classes[cell, at] for classes, cell in zip(inside, cells, strict=True)])

    possible = ~np.logical_or.reduce([counted(at) for at in range(len(lines), len(said))])
    return counting({name: counted(at)[possible] for at, name in enumerate(lines)})


def limits_of(scenario: Scenario, counts: Ints) -> tuple[Ints, Ints]:
    """Between which limits printed numbers lie, as the scenario says; a withheld one (-1) may be anything."""
    lower, upper = scenario.printed.behind(np.maximum(counts, 0))
    return np.where(counts < 0, 0, lower), np.where(counts < 0, UNLIMITED, upper)


NZ, DE = "nz-2013-dwellings", "de-2011-grid"


def nz_numbers() -> Numbers:
    """What the numbers of dwellings count. A dwelling is of a type, has rooms, bedrooms (or not stated) and fuels."""
    return numbers_of(load(NZ))


def nz_release(year: int, folder: Path = WORLD / "nz", every: int = 1) -> Release:
    """Meshblocks: counts rounded at random to 3; what is withheld is not known at all."""
    frame = pl.read_parquet(folder / "dwelling.parquet")
    frame = frame.filter((pl.col("geography").cast(pl.String) == "MB") & (pl.col("year") == year)).sort("code")
    frame = frame.gather_every(every)
    numbers = nz_numbers()
    counts = frame.select(pl.col(numbers.names).cast(pl.Int64).fill_null(-1)).to_numpy()
    return Release(numbers, tuple(frame["code"]), *limits_of(load(NZ), counts))


def de_numbers() -> Numbers:
    """Persons by age (in two ways), citizenship (in three) and other attributes, all crossed."""
    return numbers_of(load(DE))


def de_release(slack: int, folder: Path = WORLD / "de", every: int = 1) -> Release:
    """Cells of the grid: every number may be off by so many; a 0 too (no 1 and no 2 is printed)."""
    frame = pl.read_parquet(folder / "demo_100m_tile.parquet").gather_every(every)
    numbers = de_numbers()
    counts = frame.select(numbers.names).to_numpy().astype(np.int64)
    places = tuple(f"{x},{y}" for x, y in frame.select("x", "y").iter_rows())
    return Release(numbers, places, np.maximum(counts - slack, 0), counts + slack)


# United Kingdom -------------------------------------------------------------------------------------------------------


def uk_release(slack: int, folder: Path = WORLD / "uk") -> Release:
    """Age by country, region and authority, as one place: every number may be off by so many.

    Authorities and regions are two ways to divide the same country; which authority lies in which region is not in the
    files, so any may lie in any.
    """
    rows: dict[str, list[int]] = {}
    for kind in ("ctry", "rgn", "ltla"):
        with (folder / f"census2021-ts007-{kind}.csv").open(encoding="utf-8-sig", newline="") as file:
            header, *lines = csv.reader(file)
        rows |= {f"{line[1]}|{line[2]}": [int(value) for value in line[3:]] for line in lines}
    labels = [label.removeprefix("Age: ").split(";")[0] for label in header[3:]]
    ages = _uk_ages(labels)
    codes = [place.split("|")[1] for place in rows]
    regions = [code for code in codes if code.startswith("E12")]
    authorities = [code for code in codes if code[0] == "E" and code[:3] not in ("E12", "E92")]
    welsh = [code for code in codes if code.startswith("W06")]
    pairs = [(region, authority) for region in regions for authority in authorities] + [("W", code) for code in welsh]
    inside = {code: np.array([code in pair for pair in pairs]) for code in codes}
    inside |= {
        "K04000001": np.ones(len(pairs), np.bool_),
        "E92000001": np.array([pair[0] != "W" for pair in pairs]),
        "W92000004": np.array([pair[0] == "W" for pair in pairs]),
    }
    places = sparse.csr_matrix(np.stack([inside[code] for code in codes]).astype(np.int64))
    names = tuple(f"{place.split('|')[0]}: {label}" for place in rows for label in labels)
    counts = np.array(list(rows.values()), np.int64).reshape(1, -1)
    numbers = Numbers(names, sparse.kron(places, ages, format="csr").astype(np.int64))
    return Release(numbers, ("England and Wales",), np.maximum(counts - slack, 0), counts + slack)


UK_GROUPS = ("and under", " to ", "85 years and over")


def _uk_ages(labels: Sequence[str]) -> sparse.csr_matrix:
    """Lines x single ages: a group's line adds up the single ages after it, up to the next group."""
    groups = [0, *(line for line, label in enumerate(labels) if any(part in label for part in UK_GROUPS))]
    leaves = np.setdiff1d(np.arange(len(labels)), groups)
    inside = np.zeros((len(labels), len(leaves)), np.int64)
    inside[0] = 1
    inside[leaves, np.arange(len(leaves))] = 1
    inside[np.array(groups)[np.searchsorted(groups, leaves) - 1], np.arange(len(leaves))] = 1
    return sparse.csr_matrix(inside)


def p_table_width(folder: Path = WORLD / "ons") -> tuple[int, int]:
    """By how much a p-table takes off and adds at most."""
    with gzip.open(folder / "ptable_10_5_rule.csv.gz", "rt") as file:
        changes = [int(row["pvalue"]) for row in csv.DictReader(file)]
    return min(changes), max(changes)
