"""Which files are harmed, and who reads them? A kind of case makes a file and reads it as a command would."""

from __future__ import annotations

import io
import json
import os
import tomllib
import zipfile
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

import glasshouse as gh
from glasshouse.commands.audit import plan_audit
from glasshouse.commands.compare_plan import read_plan
from glasshouse.errors import InputError
from glasshouse.files.codebook import Codebook
from glasshouse.files.formats import crossed, tau, tau_records
from glasshouse.files.geometry import read_shapes
from glasshouse.files.mapping import read_mapping
from glasshouse.files.matrix import read_groups, read_matrix
from glasshouse.files.properties import read_properties
from glasshouse.files.records import open_records, record_frame
from glasshouse.files.sample import read_sample
from glasshouse.files.summary import write_archive
from glasshouse.files.tables import open_tables
from glasshouse.mechanism.account import allocation
from glasshouse.population.preset import load_preset
from glasshouse.scenarios.load import Scenario, known_scenarios, load
from glasshouse.text import harmful

from .. import format_samples
from ..conftest import TOY
from . import mutate

Read = Callable[[], object]
INSIDE = resources.files("glasshouse")
BLOCKS = ("010730051031000", "010730051031001")


@cache
def _texts(folder: str) -> dict[str, str]:
    """The files of a folder of ours, by name."""
    there = INSIDE.joinpath(*folder.split("/"))
    return {
        one.name: one.read_text(encoding="utf-8") for one in there.iterdir() if one.name.endswith((".toml", ".csv"))
    }


def _toml(texts: dict[str, str], random: Random) -> bytes:
    """One of some TOML files, harmed in its structure, or else in its bytes."""
    text = texts[random.choice(sorted(texts))]
    times = random.choice((1, 1, 1, 2, 5))
    if random.random() < 0.2:
        return mutate.bytes_of(text.encode(), random, times)
    try:
        return mutate.toml(mutate.harmed(tomllib.loads(text), random, times)).encode()
    except RecursionError:  # our own: depth within depth
        return b"a = " + b"[" * 5_000


def scenario(folder: Path, random: Random) -> tuple[Path, Read]:
    """A scenario; if it loads, ten records of it are counted, and what was counted is read again."""
    name = random.choice([*known_scenarios(), "toy", "toy"])
    files = {"scenario.toml": TOY} if name == "toy" else _texts(f"scenarios/data/{name}")
    for file, text in files.items():
        (folder / file).write_text(text)
    tables = [file for file in files if file.endswith(".csv")]
    if tables and random.random() < 0.2:
        harmed = mutate.rows_of(files[tables[0]], random, random.choice((1, 2, 5)))
        (folder / tables[0]).write_text(harmed, errors="surrogatepass")
    else:
        (folder / "scenario.toml").write_bytes(_toml({"scenario.toml": files["scenario.toml"]}, random))

    def read() -> None:
        found = load(str(folder))
        for made in (found.official, found.wording, found.attributes_told):
            assert made is not None
        size = found.schema.size()
        found.with_zeros(["definition", "edit rule", "certain"])
        if size:
            _count_ten(found, folder, random)

    return folder / "scenario.toml", read


def _count_ten(scenario: Scenario, folder: Path, random: Random) -> None:
    """Ten records, which may be impossible, through the door of the library."""
    import numpy as np

    levels = [[random.randrange(len(one)) for one in scenario.schema.attributes] for _ in range(10)]
    places = [str(random.randrange(10)) * max(scenario.geography.lengths.values()) for _ in range(3)]
    at = np.array([random.randrange(3) for _ in range(10)], np.int32)
    frame = record_frame(scenario, places, at, np.array(levels, np.int16), {})
    frame.write_csv(folder / "records.csv")
    tables = gh.tabulate(folder / "records.csv", scenario=str(folder)).tables
    tables.write_csv(folder / "tables.csv")
    for _ in open_tables(folder / "tables.csv", scenario).releases():
        pass


def warm(folder: Path) -> None:
    """Read a good scenario, once."""
    (folder / "scenario.toml").write_text(TOY)
    _count_ten(load(str(folder)), folder, Random(0))


def config(folder: Path, random: Random) -> tuple[Path, Read]:
    """The configuration of an audit, as far as its plan."""
    (folder / "tables.csv").write_text(LONG)
    (folder / "people.csv").write_text(PEOPLE)
    own = 'title = "Ours"\nscenario = "sf1-person"\n[input]\ntables = "tables.csv"\nrecords = "people.csv"\n'
    path = folder / "config.toml"
    path.write_bytes(_toml({**_texts("commands/audits"), "own.toml": own}, random))
    return path, lambda: plan_audit(path)


def plan(folder: Path, random: Random) -> tuple[Path, Read]:
    path = folder / "plan.toml"
    path.write_bytes(_toml(_texts("commands/plans"), random))
    return path, lambda: read_plan(str(path))


def budget(folder: Path, random: Random) -> tuple[Path, Read]:
    path = folder / "budget.toml"
    path.write_bytes(_toml(_texts("mechanism/budgets"), random))
    return path, lambda: allocation.__wrapped__(str(path))


def preset(folder: Path, random: Random) -> tuple[Path, Read]:
    path = folder / "preset.toml"
    path.write_bytes(_toml(_texts("population/presets"), random))
    return path, lambda: load_preset(str(path))


PEOPLE = (
    "block,sex,age,white,black,aian,asian,nhopi,sor,hispanic,person_id\n"
    f"{BLOCKS[0]},male,30,1,0,0,0,0,0,0,1\n{BLOCKS[0]},female,31,1,1,0,0,0,0,1,2\n{BLOCKS[1]},female,0,0,0,0,1,0,0,0,3\n"
)
LONG = "level,geoid,table,variable,value\n" + "".join(
    f"block,{block},P1,P0010001,{count}\nblock,{block},P3,P0030002,{count}\n"
    for block, count in zip(BLOCKS, (3, 2), strict=True)
)
BETWEEN = LONG.replace("value", "lower,upper").replace(",3\n", ",3,5\n").replace(",2\n", ",2,\n")
WIDE = f"geoid,name,P0010001,P0030002\n{BLOCKS[0]},a,3,2\n{BLOCKS[1]},b,0,0\n"


def _columns(folder: Path, name: str, text: str, random: Random) -> Path:
    """A file of columns, harmed: CSV, or Parquet with columns of another type."""
    times = random.choice((1, 1, 2, 4))
    harmed = mutate.rows_of(text, random, times)
    if random.random() < 0.3:
        frame = _frame(harmed, random)
        if frame is not None:
            path = folder / f"{name}.parquet"
            frame.write_parquet(path)
            if random.random() < 0.2:
                path.write_bytes(mutate.bytes_of(path.read_bytes(), random, 1))
            return path
    path = folder / f"{name}.csv"
    data = harmed.encode("utf-8", "surrogatepass")
    path.write_bytes(mutate.bytes_of(data, random, 1) if random.random() < 0.3 else data)
    return path


def _frame(text: str, random: Random) -> pl.DataFrame | None:
    kinds = (
        pl.Float64,
        pl.Int64,
        pl.UInt64,
        pl.Decimal(38, 19),
        pl.Categorical,
        pl.Binary,
        pl.Date,
        pl.Boolean,
        pl.Null,
    )
    try:
        frame = pl.read_csv(text.encode(), infer_schema=False)
        for name in frame.columns:
            if random.random() < 0.3:
                frame = frame.with_columns(pl.col(name).cast(random.choice(kinds), strict=False))
            if random.random() < 0.1:
                frame = frame.with_columns(pl.lit(random.choice(mutate.NUMBERS[:10])).alias(name))
    except (pl.exceptions.PolarsError, UnicodeError):
        return None
    return frame


@cache
def _persons() -> Scenario:
    return load("sf1-person")


def _all(pieces: Any) -> None:
    for _ in pieces:
        pass


def records(folder: Path, random: Random) -> tuple[Path, Read]:
    path = _columns(folder, "people", PEOPLE, random)

    def read() -> None:
        found = open_records(path, _persons())
        _all(found.frames(names=[name for name in ("person_id",) if name in found.source.columns]))

    return path, read


def tables(folder: Path, random: Random) -> tuple[Path, Read]:
    path = _columns(folder, "tables", random.choice((LONG, BETWEEN, WIDE)), random)
    return path, lambda: _all(open_tables(path, _persons()).releases())


MATRIX = "place,a_b,c_d\nx,1,2\ny,3,4\n"
MAPPING = f"block,region\n{BLOCKS[0]},A\n{BLOCKS[1]},B\n"
GROUPS = "combination,group\na_b,one\nc_d,two\n"
POINTS = f"block,x,y\n{BLOCKS[0]},1.5,2\n{BLOCKS[1]},3,4\n"
SAMPLE = (
    "state,household,age,white,black,aian,asian,nhopi,sor,hispanic,relation\n"
    "01,1,30,1,0,0,0,0,0,0,householder\n01,1,3,1,0,0,0,0,0,0,child\n"
)
PROPERTIES = (
    "property_id,block_geoid,program_label,number_reported,people_total,pct_female_head\n"
    f"1,{BLOCKS[0]},Public Housing,10,20,50\n2,{BLOCKS[1]},Public Housing,5,9,-4\n"
)
CODEBOOK = "Source code: P1\nNHGIS code:  H7V\nSource code: P3\nNHGIS code: H7X\n"


def others(folder: Path, random: Random) -> tuple[Path, Read]:
    """The smaller files."""
    geography = _persons().geography
    readers: dict[str, tuple[str, Callable[[Path], object]]] = {
        "matrix": (MATRIX, read_matrix),
        "mapping": (MAPPING, lambda path: read_mapping(path, "region", geography)),
        "groups": (GROUPS, lambda path: read_groups(path, ("a_b", "c_d"))),
        "points": (POINTS, lambda path: read_shapes(path, geography)),
        "sample": (SAMPLE, read_sample),
        "properties": (PROPERTIES, lambda path: read_properties(path, geography, {"pct_female_head": ()})),
    }
    name = random.choice([*readers, "outlines", "codebook"])
    if name == "outlines":
        path = folder / "outlines.geojson"
        square = [[[0, 0], [0, 1], [1, 1], [0, 0]]]
        whole = {
            "type": "FeatureCollection",
            "features": [
                {"type": "Feature", "properties": {"GEOID": block}, "geometry": {"type": kind, "coordinates": where}}
                for block, kind, where in zip(BLOCKS, ("Polygon", "MultiPolygon"), (square, [square]), strict=True)
            ],
        }
        harmed = mutate.harmed(whole, random, random.choice((1, 2, 4)))
        data = json.dumps(harmed, default=str).encode()
        path.write_bytes(mutate.bytes_of(data, random, 1) if random.random() < 0.2 else data)
        return path, lambda: read_shapes(path, geography)
    if name == "codebook":
        path = folder / "codebook.txt"
        path.write_bytes(mutate.bytes_of(CODEBOOK.encode(), random, 3))
        return path, lambda: Codebook.read(path, _persons())
    text, read = readers[name]
    path = _columns(folder, name, text, random)
    return path, lambda: read(path)


@cache
def _samples() -> dict[str, bytes]:
    return {**format_samples.every(), "crossed.sdmx.csv": format_samples.SDMX_CSV_1.encode()}


def _of_format(endings: tuple[str, ...]) -> Callable[[Path, Random], tuple[Path, Read]]:
    """A table of another format, harmed in its structure or its bytes, or cut short."""

    def case(folder: Path, random: Random) -> tuple[Path, Read]:
        name = random.choice([name for name in _samples() if name.endswith(endings)])
        content, times = _samples()[name], random.choice((1, 1, 2, 4))
        path = folder / name
        if name.endswith(".xml") and random.random() < 0.3:
            structure = format_samples.STRUCTURE.encode()
            (folder / f"{path.stem}.dsd.xml").write_bytes(mutate.bytes_of(structure, random, times))
        elif name.endswith(".json") and random.random() < 0.7:
            content = json.dumps(mutate.harmed(json.loads(content), random, times), default=str).encode()
        elif name.endswith(".csv") and random.random() < 0.7:
            content = mutate.rows_of(content.decode(), random, times).encode("utf-8", "surrogatepass")
        elif name.endswith(".xlsx") and random.random() < 0.8:
            content = _repacked(content, random, times)
        else:
            content = mutate.bytes_of(content, random, times)
        path.write_bytes(content)

        def read() -> None:
            for table in crossed(path):
                _all(table.pieces())

        return path, read

    return case


def _repacked(content: bytes, random: Random, times: int) -> bytes:
    """A workbook with one of its parts harmed."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        harmed = random.choice(old.namelist())
        for member in old.namelist():
            part = old.read(member)
            new.writestr(member, mutate.bytes_of(part, random, times) if member == harmed else part)
    return packed.getvalue()


HARVEST = (b'"Total","Total",9.5,1\n"Total","N",4,1\n"Total","S",5.5,1\n"a","Total",4,1\n"a","N",1,3\n"a","S",3,11\n'
           b'"b","Total",5.5,1\n"b","N",3,1\n"b","S",2.5,14\n')  # fmt: skip
HARVEST_RDA = (
    b'<SEPARATOR> ","\nsize\n<RECODEABLE>\n<TOTCODE> "Total"\nplace\n<RECODEABLE>\n<HIERARCHICAL>\n'
    b'<HIERCODELIST> "place.hrc"\n<HIERLEADSTRING> "@"\nvalue\n<NUMERIC>\n<DECIMALS> 1\nstatus\n<STATUS>\n'
)
FIRMS_RDA = b"h_id 1 3\n  <HOLDING>\nact 4 2 00\n  <RECODEABLE>\nturnover 6 6\n  <NUMERIC>\n  <DECIMALS> 2\n"
FIRMS = b"00111  10.5\n00112   4.5\n00211     3\n"


def tau_files(folder: Path, random: Random) -> tuple[Path, Read]:
    """A table of tau-Argus with its metadata and hierarchy, or microdata, one of these harmed."""
    members = {"a.csv": HARVEST, "a.rda": HARVEST_RDA, "place.hrc": b"N\nS\n"}
    if random.random() < 0.3:
        members = {"a.asc": FIRMS, "a.rda": FIRMS_RDA}
    harmed = random.choice([*members])
    for name, data in members.items():
        (folder / name).write_bytes(
            mutate.bytes_of(data, random, random.choice((1, 1, 2, 4))) if name == harmed else data
        )
    path = folder / next(iter(members))
    if path.suffix == ".asc":
        return path, lambda: tau_records.open_records(path)
    return path, lambda: _all(tau.read(path).pieces())


def described(folder: Path, random: Random) -> tuple[Path, Read]:
    """A table as an office writes it, harmed, from which a scenario is to be found; or one of another format."""
    if random.random() < 0.4:
        name = random.choice([*_samples()])
        path = folder / name
        path.write_bytes(_samples()[name] if random.random() < 0.3 else mutate.bytes_of(_samples()[name], random, 1))
    else:
        path = _columns(folder, "tidy", TIDY, random)
    area = "X" if random.random() < 0.3 else None

    def read() -> None:
        try:
            gh.describe(path, accept=True, area=area)
        except InputError as error:
            asked = any(said in str(error) for said in ABOUT_A_COLUMN)
            raise InputError(*((path.name,) if asked else ()), *error.args) from None

    return path, read


ABOUT_A_COLUMN = (
    "that the tables do not tell",
    "the tables make no scenario",
)  # of all files: such a complaint names none
TIDY = "district,sex,age,count\n" + "".join(
    f"{place},{sex},{age},{times * some}\n"
    for place, times in (("A1", 1), ("A2", 2), ("Total", 3))
    for sex, some in (("women", 1), ("men", 1), ("Total", 2))
    for age in ("0-14", "15-64", "65+")
)
SURVEY = "SERIALNO,ST,PWGTP,AGEP,HISP,RAC1P,RELSHIPP\n1,1,30,40,01,1,20\n1,1,29,7,01,6,25\n2,1,12,70,02,5,20\n"
SURVEYED = "SERIALNO,ST,WGTP,NP\n1,1,30,2\n2,1,12,1\n"
DEVELOPMENTS = (
    "DEVELOPMENT_CODE,TOTAL_UNITS,NUMBER_REPORTED,PEOPLE_TOTAL,PCT_FEMALE_HEAD,STATE,COUNTY,TRACT,BLOCK\n"
    "A,72,66,102,39.39,01,089,002100,2014\nB,4,3,9,66.67,01,089,002100,2015\nC,9,8,-4,-4,01,089,002100,\n"
)
EXTRACT = "GISJOIN,STATEA,COUNTYA,TRACTA,BLOCKA,H7V001\nG1,01,073,010801,3010,7\nG2,01,073,010801,3011,9\n"
TABLE = "Dataset: A census\n\nTables:\n\n1. Total Population\n   Universe: Everybody\n   "


@cache
def _archive() -> dict[str, bytes]:
    """The members of a small archive of 2020."""
    chosen = load("dhc-person")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "al2020.dhc.zip"
        write_archive(path, chosen, chosen.archives[0], [("block", block, {"P0010001": 3}) for block in BLOCKS])
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


def zipped(folder: Path, random: Random) -> tuple[Path, Read]:
    """Zips of offices with a member harmed, or harmed as a whole; and what stands in them, alone."""
    geography, path = _persons().geography, folder / "harmed.zip"
    if random.random() < 0.3:
        text, read = random.choice(
            (
                (SURVEY, read_sample),
                (DEVELOPMENTS, lambda path: read_properties(path, geography, {"pct_female_head": ()})),
            )
        )
        alone = _columns(folder, "alone", text, random)
        return alone, lambda: read(alone)
    members, opened = random.choice(
        (
            ({"psam_p01.csv": SURVEY.encode(), "psam_h01.csv": SURVEYED.encode()}, lambda: read_sample(path)),
            (
                {"n_block.csv": EXTRACT.encode(), "n_block_codebook.txt": (TABLE + CODEBOOK).encode()},
                lambda: _all(open_tables(path, _persons()).releases()),
            ),
            (_archive(), lambda: _all(open_tables(path, load("dhc-person")).releases())),
        )
    )
    harmed = random.choice([*members, ""])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            if name != harmed or random.random() < 0.8:
                archive.writestr(name, mutate.bytes_of(data, random, 2) if name == harmed else data)
    if not harmed:
        path.write_bytes(mutate.bytes_of(path.read_bytes(), random, 2))
    return path, opened


KINDS: dict[str, Callable[[Path, Random], tuple[Path, Read]]] = {
    "scenario": scenario, "config": config, "plan": plan, "budget": budget, "preset": preset, "records": records,
    "tables": tables, "others": others, "sdmx-csv": _of_format((".csv",)), "sdmx-ml": _of_format((".xml",)),
    "jsonstat": _of_format((".json",)), "px": _of_format((".px",)), "xlsx": _of_format((".xlsx",)),
    "zipped": zipped, "tau": tau_files, "described": described,
}  # fmt: skip
LONGEST = 8_000  # letters of a complaint


def hang(folder: Path, random: Random) -> tuple[Path, Read]:
    """What must be found: a reader without end."""

    def read() -> None:
        while True:
            pass

    return folder, read


def eat(folder: Path, random: Random) -> tuple[Path, Read]:
    """What must be found: a reader that takes two gigabytes."""
    return folder, lambda: bytearray(2 << 30)


def crash(folder: Path, random: Random) -> tuple[Path, Read]:
    """What must be found: the end of the process."""
    return folder, os.abort


MUST_BE_FOUND = {"hang!": hang, "eat!": eat, "crash!": crash}


def run(kind: str, seed: int, folder: Path, made: Callable[[], None] = lambda: None) -> str:
    """Make the case, say so, and read it: how it ended, `read` or `refused`, or else what is wrong."""
    random = Random(f"{kind} {seed}")
    _, read = (KINDS | MUST_BE_FOUND)[kind](folder, random)
    made()
    try:
        read()
    except InputError as error:
        said = str(error)
        if any(not line or harmful(line) for line in error.args):
            return f"a complaint that is not one line: {said!r}"
        if len(said) > LONGEST:
            return f"a complaint of {len(said):,} letters: {said[:300]!r}"
        root = [file for file in Path("/").iterdir() if file.is_file()]  # a harmed path may be this one
        if not any(file.name in said or file.stem in said for file in (*folder.iterdir(), *root)):
            return f"a complaint that names no file: {said[:300]!r}"
        return "refused"
    return "read"
