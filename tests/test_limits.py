"""Is every file that asks too much refused at once, with the limit? And does nothing that we print or draw break us?"""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import time
import tracemalloc
import zipfile
import zlib
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest

from glasshouse import limits
from glasshouse.cli import main as cli
from glasshouse.cli.main import main
from glasshouse.cli.output import Patient
from glasshouse.commands.auditing.config import read_config
from glasshouse.commands.compare_plan import read_plan
from glasshouse.engine.unit import do
from glasshouse.errors import InputError, MachineFailed, unknown
from glasshouse.files.archive import SafeZip
from glasshouse.files.coded_columns import whole_numbers
from glasshouse.files.frames import Chunk, open_source
from glasshouse.files.mapping import read_mapping
from glasshouse.files.matrix import read_groups, read_matrix, record_frames
from glasshouse.files.records import open_records, record_frame
from glasshouse.files.sample import read_sample
from glasshouse.files.tables import open_tables
from glasshouse.mechanism.account import allocation, fraction
from glasshouse.model.geography import Geography
from glasshouse.model.release import build_table
from glasshouse.model.schema import Group, Recode
from glasshouse.model.tabulate import compile_tables
from glasshouse.population.preset import load_preset
from glasshouse.report.render.svg import label_at
from glasshouse.report.render.templates import render
from glasshouse.report.render.vega import drawn
from glasshouse.scenarios.load import Scenario, known_scenarios, load
from glasshouse.scenarios.shape import refuse_other_kinds
from glasshouse.scenarios.toml import read_toml
from glasshouse.text import harmful, plain

from .conftest import TOY

BLOCK, OTHER = "010730051031000", "010730051031001"
QUICK = 5.0  # seconds; each of these took minutes, or for ever


def own(folder: Path, *changes: tuple[str, str], more: str = "") -> Path:
    """A toy scenario with changes."""
    text = TOY
    for old, new in changes:
        assert text.count(old) >= 1, old
        text = text.replace(old, new, 1)
    (folder / "scenario.toml").write_text(text + more, encoding="utf-8")
    return folder


def refused(call: Any, *arguments: Any, words: tuple[str, ...]) -> str:
    began = time.process_time()
    with pytest.raises(InputError) as caught:
        call(*arguments)
    assert time.process_time() - began < QUICK
    said = str(caught.value)
    for word in words:
        assert word in said, said
    assert len(said.splitlines()) == 1 and len(said) < 4_000
    return said


# Files of TOML

HARM = {
    "nested arrays": ("a = " + "[" * 5_000, "nested more than 24 deep"),
    "nested tables": ("a = " + "{a=" * 5_000, "nested more than 24 deep"),
    "closed arrays": ("a = " + "[" * 30 + "]" * 30, "nested more than 24 deep"),
    "a long dotted key": (".".join("a" * 100_000) + " = 1", "nested more than 24 deep"),
    "a long quoted key": ("'a' . " * 100_000 + "a = 1", "nested more than 24 deep"),
    "nan": ("a = nan", "'a' is nan; expected a finite number"),
    "inf": ("[b]\na = [1.5, -inf]", "'b.a.2' is -inf"),
    "digits": ("a = " + "9" * 5_000, "not valid TOML"),
    "64 bits": ("a = 9223372036854775808", "'a' is a whole number beyond"),
    "hex": ("a = 0x" + "f" * 100_000, "'a' is a whole number beyond"),
    "a date": ("a = 1940-04-01", "'a' is the date or time 1940-04-01"),
    "an escape": ('a = "\\u001b[31mred"', r"'a' has the control character \x1b"),
    "a line end": ('a = """x\ny"""', r"'a' has the control character \n"),
    "an override": ('a = "\u202etxt.exe"', r"'a' has the control character \u202e"),
    "an escape in a key": ('"\\u001b" = 1', r"a key has the control character \x1b"),
    "a long key": (f'"{"k" * 300}" = 1', "a key has 300 letters; expected at most 200"),
    "a long text": (f'a = "{"x" * 30_000}"', "'a' has 30,000 letters; expected at most 20,000"),
    "a long file": ("# " + "x" * (2 << 20), "more than 1 MiB"),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_toml_file_that_does_harm_is_refused(tmp_path: Path, harm: str) -> None:
    text, words = HARM[harm]
    path = tmp_path / "own.toml"
    path.write_text(text, encoding="utf-8")
    refused(read_toml, path, words=("own.toml", words))


def test_letters_that_languages_need_are_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('\ufefftitle = "Ménage\u00a0: नमस्\u200dते मी\u200cखे 日本"\r\n', encoding="utf-8")
    assert read_toml(path)["title"].startswith("Ménage")


def test_every_reader_of_toml_is_the_same(tmp_path: Path) -> None:
    """A scenario, a configuration, a plan, a budget and a preset: what one refuses, all refuse."""
    path = tmp_path / "scenario.toml"
    path.write_text('title = "\\u001b[31m"\n')
    for read in (load, read_plan, allocation, load_preset, lambda name: read_config(Path(name))):
        given = str(tmp_path) if read is load else str(path)
        refused(read, given, words=("scenario.toml", r"'title' has the control character \x1b"))


# Scenarios

RANGE, LEVELS, ROW = (
    "range = [0, 3]",
    'levels = ["red", "green", "blue"]',
    'T1 = { title = "All", level = "house", by = [] }',
)
MANY = {
    "a range": ((RANGE, "range = [0, 2_000_000_000]"), "2,000,000,001 levels; expected at most 10,000"),
    "subsets": ((RANGE, f"subsets = {[f'f{n}' for n in range(30)]}"), "1,073,741,823 levels; expected at most 10,000"),
    "members": (
        (RANGE, 'counts = ["a", "b"]\nrest = "c"\nmost = 100_000'),
        "5,000,150,001 levels; expected at most 10,000",
    ),
    "levels": ((LEVELS, f"levels = {[f'l{n}' for n in range(10_001)]}"), "10,001 levels"),
    "a length": (("house = 3", "house = 1_000_000_000"), "expected at most 32 levels, and codes of at most 64 letters"),
    "a width": (('unit = "street"', 'unit = "street"\ncompose = ["A:900000000"]'), "a width up to 64"),
    "geographic levels": (
        ("town = 1, street = 2", ", ".join(f"l{n} = {n}" for n in range(1, 40)) + ", street = 40"),
        "expected at most 32 levels",
    ),
    "bins": (('bins = "0-1 2 3"', f'bins = "{"0-3 " * 4_900}"'), "two groups"),
    "bins of a far range": ((RANGE, "range = [999_999_990, 999_999_999]"), "unknown level of size '0'"),
    "iterations": (('iterations = "RGB"', f'iterations = "{"R" * 150}"'), "an iteration is named twice"),
    "a label": (('title = "All"', f'title = "{"x" * 201}"'), "'table.T1.title' has 201 letters; expected at most 200"),
}


@pytest.mark.parametrize("harm", MANY)
def test_a_scenario_that_asks_too_much_is_refused(tmp_path: Path, harm: str) -> None:
    change, words = MANY[harm]
    refused(load, str(own(tmp_path, change)), words=("scenario.toml", words))


def test_a_table_crosses_at_most_so_many_recodes(tmp_path: Path) -> None:
    by = ", ".join(['"owner"'] * 18)
    refused(load, str(own(tmp_path, (ROW, ROW.replace("by = []", f"by = [{by}]")))), words=("T1", "18", "at most 12"))


def test_a_table_of_too_many_lines_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasshouse.scenarios.parse.LINES", 5_000)
    recodes = "".join(f'w{n} = {{ attribute = "a{n}" }}\n' for n in range(6))
    attributes = "".join(f"[attribute.a{n}]\nrange = [0, 9]\n" for n in range(6))
    by = ", ".join(f'"w{n}"' for n in range(6))
    text = TOY.replace("[recode]\n", f"{attributes}[recode]\n{recodes}", 1)
    text = text.replace(ROW, ROW.replace("by = []", f"by = [{by}]"), 1)
    (tmp_path / "scenario.toml").write_text(text)
    refused(load, str(tmp_path), words=("table T1", "more than 50,000 lines"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('codes = ["0", "1"]', 'codes = ["0", "1"]\ncolumn = "size"'), "'size' and 'owner' are both spelled in"),
        ((RANGE, f"range = {[0, 3] * 2_000}"), "attribute size: range is [0, 3, 0, 3"),
    ],
)
def test_what_the_fuzzer_found_in_scenarios_is_refused(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    refused(load, str(own(tmp_path, change)), words=("scenario.toml", words))


def test_tables_that_tell_too_many_kinds_of_record_apart_are_refused() -> None:
    """A table of 49 lines can tell 2^24 kinds of record apart: each group but the last is not divided further."""
    schema = load("pl94").schema
    first = next(one for one in schema.attributes if len(one) == 2)
    names = [f"a{number}" for number in range(24)]
    many = replace(schema, attributes=tuple(replace(first, name=name) for name in names), impossible=())
    groups = (Group("rest", frozenset({1})), Group("on", frozenset({0})))
    by = [Recode(name, name, groups) for name in names]
    table = build_table(many, name="T", level="place", title="", by=by, variable="T{}".format, undivided=["rest"])
    assert len(table.lines) == 49
    with pytest.raises(InputError, match=r"too many kinds of record apart.* more than 12,000,000;"):
        compile_tables(many, [table], subtotals=True)


def test_a_scenario_without_tables_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(TOY.partition("[table]")[0] + "[table]\n")
    refused(load, str(tmp_path), words=("scenario.toml", "at least one table"))


def test_spellings_of_variables_have_a_limit(tmp_path: Path) -> None:
    aliases = [f"{{table}}_{{line:2}}_{n}" for n in range(5_500)]
    change = ('title = "A toy"', f'title = "A toy"\naliases = {aliases}')
    refused(load, str(own(tmp_path, change)), words=("more than 200,000 names", "aliases"))


def test_attributes_and_records_have_a_limit(tmp_path: Path) -> None:
    def with_attributes(number: int, levels: int) -> Path:
        attributes = "".join(f"[attribute.a{n}]\nrange = [0, {levels - 1}]\n" for n in range(number))
        return own(tmp_path, ("[recode]\n", f"{attributes}[recode]\n"))

    refused(load, str(with_attributes(70, 1)), words=("73 attributes; expected at most 64",))
    refused(load, str(with_attributes(20, 10)), words=("different records",))


def test_structural_zeros_that_cut_records_to_pieces_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each zero cuts a description into as many as it names attributes: the number of pieces is a power."""
    monkeypatch.setattr("glasshouse.model.schema.PIECES", 10_000)
    attributes = "".join(f"[attribute.a{n}]\nrange = [0, 40]\n" for n in range(8))
    chance = Random(1)
    zeros = ""
    for _ in range(40):
        named = [
            f"a{n} = {[str(level) for level in chance.sample(range(41), 20)]}\n" for n in chance.sample(range(8), 4)
        ]
        zeros += f'[[impossible]]\nreason = "r"\n{"".join(named)}'
    (tmp_path / "scenario.toml").write_text(TOY.replace("[recode]\n", f"{attributes}[recode]\n", 1) + zeros)
    refused(lambda: load(str(tmp_path)).schema.size(), words=("structural zeros", "10,000 descriptions"))


WRONG_KIND = {
    "a length": (("town = 1", "town = true"), "'geography.levels.town' is true; expected a whole number"),
    "levels": ((LEVELS, 'levels = "rgb"'), "'attribute.colour.levels' is 'rgb'; expected a list"),
    "a title": (('title = "A toy"', "title = 5"), "'title' is 5; expected a text"),
    "a tally": (("tally = true", 'tally = "no"'), "'recode.some.tally' is 'no'; expected true or false"),
    "each": (("each = true", "each = 1"), "'recode.warm.groups.1.each' is 1; expected true or false"),
    "a line": (("also = [2]", "also = [true]"), "'table.T6.also.1' is true; expected a whole number"),
    "by": (('by = ["size"]', 'by = "size"'), "'table.T3.by' is 'size'; expected a list"),
    "a universe": (('size = "2+"', "size = 2"), "'table.T5.universe.size' is 2; expected a text or a list or a table"),
}


@pytest.mark.parametrize("harm", WRONG_KIND)
def test_an_entry_of_another_kind_is_refused(tmp_path: Path, harm: str) -> None:
    change, words = WRONG_KIND[harm]
    refused(load, str(own(tmp_path, change)), words=("scenario.toml", words))


@pytest.mark.parametrize(
    ("entry", "extra"),
    [("range = [0, 3]", "levels"), ('subsets = ["a", "b"]', "most"), ('levels = ["a", "b"]', "label")],
)
def test_an_entry_that_nobody_would_read_is_refused(tmp_path: Path, entry: str, extra: str) -> None:
    """`most = 100000` beside subsets was left aside in silence: whoever wrote it meant something by it."""
    values = {"levels": '["a", "b"]', "most": "100000", "label": '"{a}"'}
    more = f"[attribute.more]\n{entry}\n{extra} = {values[extra]}\n"
    refused(load, str(own(tmp_path, more=more)), words=(f"unknown entry of attribute more '{extra}'",))


def entries(part: Any) -> list[tuple[Any, Any]]:
    """Every entry within, with its owner, but those that are checked where they are read."""
    inside = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    return [
        pair
        for key, one in inside
        if key not in ("range", "most", "within", "sample")
        for pair in [(part, key), *entries(one)]
    ]


@pytest.mark.parametrize("name", known_scenarios())
def test_the_shape_knows_every_entry_of_the_built_in_scenarios(name: str) -> None:
    """An entry that the shape forgot would not be checked: a value of no kind at all must be refused everywhere."""
    toml = read_toml(Path(load.__code__.co_filename).parent / "data" / name / "scenario.toml")
    forgotten = []
    for owner, key in entries(toml):
        before, owner[key] = owner[key], 0.5
        with suppress(InputError):
            refuse_other_kinds(toml)
            forgotten.append(key)
        owner[key] = before
    assert not forgotten


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('[[impossible]]\nreason = "why"\n', "impossible 'why' is about every record"),
        ('[[impossible]]\nreason = "why"\ncolour = ["red", "green", "blue"]\n', "is about every record"),
        ('[[impossible]]\nreason = "why"\ncolour = []\n', "an empty list of levels of colour"),
        ('[[impossible]]\nreason = "why"\ncolour = { not = ["red", "green", "blue"] }\n', "is about no record"),
    ],
)
def test_a_structural_zero_needs_a_condition(tmp_path: Path, entry: str, words: str) -> None:
    refused(load, str(own(tmp_path, more=entry)), words=("scenario.toml", words))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("T1,1000000000,1", "line 2"),
        ("T1,-3,1", "line 2"),
        ("T1,1,1\nT1,1,1", "line 3"),
        ("T1,\u0661,1", "line 2"),
        ("T\x1b1,1,1", "line 2"),
        ('"T1,1\nT2",1,1', r"'T1,1\nT2'"),
        ("T1,99999,1\nT9,99999,1", "more than 50,000 lines"),
        (f"{'x' * 200_000},1,1", "cannot be read"),
    ],
)
def test_a_catalogue_is_checked_line_by_line(tmp_path: Path, row: str, words: str) -> None:
    own(tmp_path, ('title = "A toy"', 'title = "A toy"\ncatalogue = "tables.csv"'))
    (tmp_path / "tables.csv").write_text(f"table,lines,segment\n{row}\n", encoding="utf-8")
    refused(load, str(tmp_path), words=("scenario.toml", "tables.csv", words))


def test_a_pattern_must_fit_every_table_of_the_catalogue(tmp_path: Path) -> None:
    changes = (
        ('title = "A toy"', 'title = "A toy"\ncatalogue = "tables.csv"'),
        ("{table}_{line:2}", "{letters}{number}_{line:2}"),
        (', iterations = "RGB"', ""),
    )
    own(tmp_path, *changes)
    counts = {"T1": 1, "T2": 7, "T3": 4, "T4": 7, "T5": 4, "T6": 10, "odd": 3}
    rows = "".join(f"{name},{lines},1\n" for name, lines in counts.items())
    (tmp_path / "tables.csv").write_text(f"table,lines,segment\n{rows}")
    refused(load, str(tmp_path), words=("scenario.toml", "no meaning for table 'odd'"))


def test_digits_of_other_scripts_are_labels_like_others(tmp_path: Path) -> None:
    """`²`.isdigit() is true, and int("²") fails: records with such codes crashed."""
    own(tmp_path, ('codes = ["0", "1"]', 'codes = ["²", "٣"]'))
    (tmp_path / "records.csv").write_text("house,colour,size,owner\n111,red,2,²\n111,red,2,٣\n", encoding="utf-8")
    (frame,) = open_records(tmp_path / "records.csv", load(str(tmp_path))).frames()
    assert frame["owner"].to_list() == [0, 1]


def test_codes_may_be_large_numbers(tmp_path: Path) -> None:
    """They were written as numbers of 16 bits, and 100,000 crashed."""
    changes = [(RANGE, "range = [99_998, 100_001]"), ('bins = "0-1 2 3"', 'bins = "99998+"'), ('"2+"', '"100000+"')]
    scenario = load(str(own(tmp_path, *changes)))
    frame = record_frame(scenario, ["111"], np.array([0], np.int32), np.array([[0, 3, 0]], np.int16), {})
    assert frame["size"].to_list() == [100_001]


def test_an_unknown_name_is_told_in_one_line() -> None:
    """Found by the fuzzer: a quotation mark in a list of names made a name of thirteen lines."""
    assert str(unknown("variable", "a\nb\x1b[31m", ["c"])) == "unknown variable 'a\\nb\\x1b[31m'; known: c"


def test_a_list_of_known_names_is_cut_short() -> None:
    said = str(unknown("level", "x" * 1_000, [f"l{n}" for n in range(10_000)]))
    assert len(said) < 1_000 and "and 9,940 more" in said


# Other files of TOML


def test_a_budget_does_not_write_out_huge_powers() -> None:
    for text in ("1e999999999", "1E-999999999", "1/" + "9" * 200):
        refused(fraction, text, "the total", words=("the total is", "expected a decimal"))
    assert fraction("1.5e-3", "x") * 2000 == 3


def test_a_budget_says_its_file_and_its_kinds(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    good = 'title = "t"\ntotal = "1"\n[levels]\nblock = "1"\n'
    for old, new, words in (
        ('"t"', "5", "'title' is 5; expected a text"),
        ('total = "1"', 'total = "x"', "the total is 'x'"),
        ('"t"\n', '"t"\nneighbours = "far"\n', "unknown neighbour relation 'far'"),
    ):
        path.write_text(good.replace(old, new, 1))
        refused(allocation.__wrapped__, str(path), words=("own.toml", words))


def test_a_plan_has_at_most_so_many_settings(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('scenario = "sf1-person"\n' + "".join(f'[[setting]]\nname = "n{n}"\n' for n in range(1_001)))
    refused(read_plan, str(path), words=("own.toml", "more than 1,000 settings"))


def test_mistakes_of_a_configuration_are_listed_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('scenario = "sf1-person"\n[synthetic]\n[input]\n' + "".join(f"x{n} = 1\n" for n in range(500)))
    with pytest.raises(InputError) as caught:
        read_config(path)
    lines = str(caught.value).splitlines()
    assert len(lines) == limits.COMPLAINTS + 1 and lines[-1] == "own.toml: and 480 more mistakes"


# Files of columns


@pytest.fixture(scope="module")
def persons() -> Scenario:
    return load("sf1-person")


def test_many_columns_are_read_in_the_time_of_many_columns(tmp_path: Path, persons: Scenario) -> None:
    """60,000 took over a minute: each name was compared with all before it."""
    path = tmp_path / "wide.csv"
    extra = [f"x{n}" for n in range(60_000)]
    path.write_text(f"geoid,P0010001,{','.join(extra)}\n{BLOCK},5,{','.join('1' for _ in extra)}\n")
    began = time.process_time()
    assert sum(frame.height for frame in open_tables(path, persons).rows()) == 1
    assert time.process_time() - began < QUICK
    path.write_text(",".join([*extra, extra[-1]]) + "\n")
    refused(open_source, path, words=("wide.csv", "'x59999' stands twice"))
    path.write_text(",".join(f"x{n}" for n in range(limits.COLUMNS + 1)) + "\n")
    refused(open_source, path, words=("wide.csv", "100,001 columns; expected at most 100,000"))


LONG = f"variable,value,{{}}\nP0010001,5,{BLOCK},{{}}\n"
PEOPLE = "sex,age,white,black,aian,asian,nhopi,sor,hispanic,{}\nmale,30,1,0,0,0,0,0,0,{}\n"


@pytest.mark.parametrize(
    ("columns", "codes", "fine"),
    [
        ("geoid,block", f"{BLOCK},{OTHER}", False),
        ("block,geoid", f"{BLOCK},{OTHER}", False),
        ("geoid10,geoid20", f"{BLOCK},{OTHER}", False),
        ("block,tract", f"{BLOCK},01073005104", False),
        ("geoid,county", f"{BLOCK},01075", False),
        ("geoid,block", f"{BLOCK},{BLOCK}", True),
        ("geoid,tract", f"{BLOCK},01073005103", True),
        ("block,state,county", f"{BLOCK},AL,073", True),  # parts and names are no codes
        ("block,county", f"{BLOCK},Dist7", True),
        ("geoid,block", f"{BLOCK},1000", True),
        ("geoid,block", f"{BLOCK},", True),
    ],
)
def test_columns_that_name_two_places_are_refused(
    tmp_path: Path, persons: Scenario, columns: str, codes: str, fine: bool
) -> None:
    path = tmp_path / "input.csv"

    def tables() -> None:
        path.write_text(f"variable,value,{columns}\nP0010001,5,{codes}\n")
        for _ in open_tables(path, persons).rows():
            pass

    def records() -> None:
        path.write_text(PEOPLE.format(columns, codes))
        for _ in open_records(path, persons).frames():
            pass

    for read in (tables, records):
        if fine:
            read()
        else:
            refused(read, words=("input.csv, line 2", "two places", BLOCK))


@pytest.mark.parametrize("ends", ["lower", "upper", "lower,upper"])
def test_a_value_and_an_end_of_an_interval_are_refused(tmp_path: Path, persons: Scenario, ends: str) -> None:
    path = tmp_path / "input.csv"
    path.write_text(f"geoid,variable,value,{ends}\n{BLOCK},P0010001,5,{','.join('3' for _ in ends.split(','))}\n")
    words = ("input.csv", "has 'value' and", "expected 'value', or 'lower' and 'upper'")
    refused(lambda: list(open_tables(path, persons).rows()), words=words)


def decimals(path: Path, name: str, kind: Any, *values: Any, **others: Any) -> Path:
    frame = pl.DataFrame(
        {name: pl.Series(values, dtype=kind), **{key: [one] * len(values) for key, one in others.items()}}
    )
    frame.write_parquet(path)
    return path


def test_a_number_that_is_not_whole_but_rounds_to_one_is_refused(tmp_path: Path, persons: Scenario) -> None:
    path, rest = tmp_path / "input.parquet", {"geoid": BLOCK, "variable": "P0010001"}
    nearly = Decimal("12.0000000000000000001")
    decimals(path, "value", pl.Decimal(38, 19), nearly, **rest)
    refused(lambda: list(open_tables(path, persons).rows()), words=("input.parquet", "'value'", "more digits"))
    decimals(path, "value", pl.Decimal(38, 19), Decimal(12), **rest)
    assert next(open_tables(path, persons).rows())["lower"].to_list() == [12]
    decimals(path, "value", pl.UInt64, 2**64 - 1, **rest)
    refused(lambda: list(open_tables(path, persons).rows()), words=("input.parquet", "'value'", "beyond 64 bits"))
    text = tmp_path / "input.csv"
    text.write_text(f"geoid,variable,value\n{BLOCK},P0010001,{nearly}\n")
    refused(
        lambda: list(open_tables(text, persons).rows()),
        words=("input.csv, line 2", "'12.00000000000000000...'; expected a whole"),
    )
    text.write_text(f"a\n1\n{nearly / 12}\n")
    source = open_source(text)
    (chunk,) = source.chunks()
    refused(whole_numbers, source, chunk, "a", 9, words=("input.csv, line 3", "whole number from 0 to 9"))
    assert whole_numbers(source, Chunk(chunk.frame.head(1), 2, 1.0), "a", 9).tolist() == [1]


def test_codes_that_are_far_apart_cost_no_list_of_all_between(tmp_path: Path) -> None:
    """Found by the fuzzer: a code 2000000000 beside small ones took all memory when the first record was read."""
    scenario = load(str(own(tmp_path, ('codes = ["0", "1"]', 'codes = ["0", "20000000"]'))))
    path = tmp_path / "records.csv"
    path.write_text("house,colour,size,owner\n111,red,1,20000000\n112,blue,0,0\n")
    tracemalloc.start()
    try:
        (frame,) = open_records(path, scenario).frames()
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert len(frame) == 2


def test_names_of_columns_are_told_in_one_line(tmp_path: Path, persons: Scenario) -> None:
    """Found by the fuzzer: a name in a Parquet file that holds a line break broke the complaint."""
    path = tmp_path / "people.parquet"
    pl.DataFrame({"block": ["1"], "se\nx\x1b[31m": ["1"]}).write_parquet(path)
    refused(open_records, path, persons, words=("people.parquet", "se\\nx\\x1b[31m"))


def test_half_a_year_of_a_sample_is_refused(tmp_path: Path) -> None:
    names = ("white", "black", "aian", "asian", "nhopi", "sor", "hispanic")
    row = {"state": "01", "household": "1", "relation": "householder", **dict.fromkeys(names, 0), "white": 1}
    path = decimals(tmp_path / "sample.parquet", "age", pl.Float64, 30.5, **row)
    refused(read_sample, path, words=("sample.parquet, row 1", "age", "whole number"))


def test_a_column_of_infinities_is_text_and_no_crash(tmp_path: Path) -> None:
    path = decimals(tmp_path / "records.parquet", "kind", pl.Float64, float("inf"), place="a")
    (frame,) = record_frames(path, "place", ["kind"])
    assert frame["kind"].to_list() == ["inf"]


def test_counts_of_an_archive_have_the_limit_of_all_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("numbers", "1,2\n3,1000000000001\n")
    with SafeZip(path) as source:
        (chunk,) = source.lines("numbers")
        fields = chunk.fields(",", 2, {0: "one", 1: "two"})
        refused(chunk.numbers, fields, words=("line 2", "1,000,000,000,001 in field two", "up to 1,000,000,000,000"))


@pytest.mark.parametrize("begins", [b"x\x01", b"x\xda\x80", b"x\x9c", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"])
def test_rows_that_begin_like_a_packed_file_are_not_unpacked(tmp_path: Path, begins: bytes) -> None:
    """Polars would unpack them, whatever size they unpack to; `x\u0680` is a text like others."""
    path = tmp_path / "input.csv"
    path.write_bytes(b"a,b\n" + begins + b",1\n")
    try:
        text = begins.decode()
    except UnicodeDecodeError:
        refused(lambda: list(open_source(path).chunks()), words=("input.csv, line 2", "not UTF-8"))
        return
    (chunk,) = open_source(path).chunks()
    assert chunk.frame.rows() == [(text, "1")]
    bomb = zlib.compress(b"a,1\n" * 5_000_000, 9)
    path.write_bytes(b"a,b\n" + bomb.replace(b"\0", b"") + b",1\n")
    refused(lambda: list(open_source(path).chunks()), words=("input.csv",))


# Labels that pages and pictures would show


def test_labels_of_data_that_cannot_be_drawn_are_refused(tmp_path: Path) -> None:
    (tmp_path / "matrix.csv").write_text("place,a\x1b[31m\nx,1\n")
    refused(read_matrix, tmp_path / "matrix.csv", words=("matrix.csv", "column 2", "control character"))
    (tmp_path / "matrix.csv").write_text("place,a\nx\x01,1\n")
    refused(read_matrix, tmp_path / "matrix.csv", words=("matrix.csv, line 2", r"control character \x01"))
    (tmp_path / "records.csv").write_text("place,kind\nx,fine\nx,\u202ebad\n")
    refused(lambda: list(record_frames(tmp_path / "records.csv", "place", ["kind"])), words=("line 3", r"\u202e"))
    (tmp_path / "groups.csv").write_text("combination,group\na,b\x7f\n")
    refused(read_groups, tmp_path / "groups.csv", ("a",), words=("groups.csv, line 2", r"\x7f"))
    geography = Geography({"town": 1}, "town", "town")
    (tmp_path / "mapping.csv").write_text("town,zone\n1,A\x1bB\n")
    refused(read_mapping, tmp_path / "mapping.csv", "zone", geography, words=("line 2", "control character"))


AWFUL = "x\x01\x1b[31m\u2028\ufffe\u202e"


def test_a_picture_is_drawn_whatever_its_labels() -> None:
    """The library that draws would end the whole process at a control character, after all the work."""
    spec = {
        "title": AWFUL, "data": {"values": [{"a": AWFUL, "b": 1}]}, "mark": "bar",
        "encoding": {"x": {"field": "a", "type": "nominal"}, "y": {"field": "b", "type": "quantitative"}},
    }  # fmt: skip
    code = f"from glasshouse.report.render.vega import drawn\nprint(len(drawn({spec!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # it would abort
    assert done.returncode == 0, done.stderr[-300:]
    assert harmful(drawn(spec).replace("\n", "")) is None
    assert harmful(label_at(0, 0, AWFUL, "ink", 12)) is None


def test_a_page_shows_control_characters_spelt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasshouse.report.render.templates.asset", lambda name: "<p>{{ said }}</p>")
    assert render("page", said="a\x1b[31m<b>\n") == "<p>a\\x1b[31m&lt;b&gt;\n</p>\n"


# The terminal


def test_control_characters_of_files_are_spelt_out_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check", "a\x1b[31mb.csv", "--scenario", "sf1-person"]) == 2
    printed = capsys.readouterr()
    assert "\\x1b[31m" in printed.err and "\x1b" not in printed.err
    assert plain("a\tb\nc\x9b", lines=True) == "a\tb\nc\\x9b"


def test_no_attribute_stands_in_the_column_of_places(tmp_path: Path) -> None:
    """Found by the fuzzer: counted records of such a scenario ended as a bug of ours."""
    place = load(str(own(tmp_path))).geography.place
    more = f'[attribute."{place}"]\nlevels = ["a", "b"]\n'
    refused(load, str(own(tmp_path, more=f"\n{more}")), words=(f"the column '{place}'", "another name"))


@pytest.mark.parametrize("harm", ["\n", "\r\n", "\t", "\u2028", "\x1b[2J", "\u202e"])
def test_a_complaint_is_one_line_whatever_a_file_says(tmp_path: Path, harm: str) -> None:
    """A text in a Parquet file may hold a line end; a complaint repeated it, and was two lines."""
    path = tmp_path / "blocks.parquet"
    pl.DataFrame({"block": [f"0100{harm}1"], "region": ["A"]}).write_parquet(path)
    with pytest.raises(InputError) as caught:
        read_mapping(path, "region", load("sf1-person").geography)
    for line in caught.value.args:
        assert harmful(line) is None and plain(harm) in line


def test_a_long_complaint_keeps_its_place_and_its_remedy() -> None:
    error = InputError("a.csv: found " + "x" * 1_000_000 + "; expected y", "b.csv: short")
    long, short = error.args
    assert long.startswith("a.csv: found xxx") and long.endswith("xxx; expected y") and " [...] " in long
    assert len(long) < limits.COMPLAINT_LENGTH + 10 and short == "b.csv: short"


def test_where_it_is_wrong_is_said_once_in_each_line() -> None:
    error = InputError("rows of b.csv differ", "a\tb.csv, line 3: found 1", "x" * 3_000)
    error.add_where("a\tb.csv")
    error.add_where("a\tb.csv")
    first, second, third = error.args
    assert first == "a\\tb.csv: rows of b.csv differ" and second == "a\\tb.csv, line 3: found 1"
    assert third.startswith("a\\tb.csv: xx") and len(third) < limits.COMPLAINT_LENGTH + 10


def test_a_plan_with_a_list_for_a_number_is_refused_in_a_few_words(tmp_path: Path) -> None:
    listed = ", ".join(f"'f{number}'" for number in range(5_000))
    text = f"""scenario = "sf1-person"\nseeds = [1]\n[[setting]]\nname = "a"\nprotect = "swap"\nrate = [{listed}]"""
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(InputError, match=r"setting 'a': .*--rate") as caught:
        read_plan(str(tmp_path / "plan.toml"))
    assert len(str(caught.value)) < limits.COMPLAINT_LENGTH + 10


def terminal(*arguments: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
    given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.run([sys.executable, "-m", "glasshouse", *arguments], check=False, **given)


def test_a_terminal_that_is_not_utf8_gets_escapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own(tmp_path, ("A toy", "Übung 日本"))
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = terminal("scenarios", str(tmp_path), env=ascii_only)
    assert done.returncode == 0 and done.stdout.startswith(b"\\xdcbung \\u65e5\\u672c\n"), done.stderr
    assert main(["scenarios", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.encode("ascii"))["title"] == "Übung 日本"


@pytest.mark.parametrize("arguments", [("scenarios", "sf1-person"), ("vary", "--help")])
def test_a_reader_who_leaves_changes_nothing(arguments: tuple[str, ...]) -> None:
    """`glasshouse scenarios | head -1`: the work is done, whoever reads; it ends as it would have, without a word."""
    reading, writing = os.pipe()
    os.close(reading)
    done = terminal(*arguments, stdout=writing)
    os.close(writing)
    assert done.returncode == 0 and done.stderr == b""


def test_a_full_disk_is_said_and_a_closed_stream_is_none() -> None:
    with open("/dev/full", "wb") as full:
        done = terminal("--version", stdout=full)
    assert done.returncode == 2 and b"No space left" in done.stderr and b"Traceback" not in done.stderr
    closed = subprocess.run(
        f"{sys.executable} -m glasshouse check --colour 2>&-",
        shell=True,
        check=False,  # its own words
    )
    assert closed.returncode == 2


def test_what_is_left_after_the_reader_left_goes_nowhere(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    stream = Patient(io.TextIOWrapper(open(writing, "wb"), write_through=True))  # noqa: SIM115
    os.close(reading)
    assert stream.write("x") == 1 and stream.write("more") == 4
    stream.flush()
    stream.close()


@pytest.mark.parametrize(
    "error",
    [MemoryError(), np._core._exceptions._ArrayMemoryError((10,), np.dtype(int)), OSError(12, "Cannot allocate memory"),
     RuntimeError("can't start new thread")],
    ids=["Python", "NumPy", "the system", "threads"],
)  # fmt: skip
def test_too_little_memory_is_no_bug_of_ours(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cli, "application", lambda _: fail)
    assert main(["scenarios"]) == 2
    said = capsys.readouterr().err
    assert said == f"glasshouse: {cli.NO_MEMORY}\n"


def test_a_unit_that_lacked_memory_is_no_entry_of_the_ledger() -> None:
    class Item:
        code, places = "x", ("x",)

    def work(*_: object) -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        do((None, work), Item())  # type: ignore[arg-type]


def _unit(failing: BaseException, said: str = "") -> Any:
    """What becomes of a unit in which this happens, and is told in a sentence or not."""

    class Item:
        code, places = "x", ("x",)

    def work(*_: object) -> None:
        try:
            raise failing
        except OSError:
            if said:
                raise InputError(said) from None
            raise

    return do((None, work), Item())  # type: ignore[arg-type]


def test_a_unit_that_could_not_read_is_no_entry_of_the_ledger_and_no_bug() -> None:
    """Found by the fault harness: `compare` called an unreadable file a bug of ours, and kept that as an answer."""
    broken = OSError(5, "Input/output error", "people.csv")
    with pytest.raises(InputError, match=r"^people\.csv: Input/output error; run the same command again$"):
        _unit(broken)
    with pytest.raises(InputError, match=r"^people\.csv cannot be read$"):
        _unit(broken, "people.csv cannot be read")


@pytest.mark.parametrize("mistake", [FileNotFoundError(2, "No such file", "a.csv"), OSError("Not a gzipped file")])
def test_a_wrong_file_is_the_answer_of_its_unit(mistake: OSError) -> None:
    entry = _unit(mistake, "a.csv: that is wrong")
    assert entry.notes.refused.reason == "a.csv: that is wrong" and not entry.notes.bug


def test_real_want_of_memory_ends_with_a_sentence(tmp_path: Path) -> None:
    code = (
        "import resource, sys, numpy as np\nfrom glasshouse.cli import main as cli\n"
        "def hungry(**_): resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)); return np.ones(1 << 40)\n"
        "cli.application = lambda _: hungry\nsys.exit(cli.main(['scenarios']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "not enough memory" in done.stderr, done.stderr


@pytest.mark.parametrize("mebibytes", [300, 1000, 2400])
def test_too_few_addresses_are_said_before_libraries_abort(mebibytes: int) -> None:
    """With 300 MiB the process aborted, with 600 it ended with 1 (a finding), with 1,000 it hung."""
    command = (
        f"ulimit -v {mebibytes << 10}; exec {sys.executable} -m glasshouse check nowhere.csv --scenario sf1-person"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done
    assert f"(ulimit -v) is {mebibytes:,} MiB; this program needs 4,096 MiB" in done.stderr


def test_a_picture_that_cannot_be_drawn_is_no_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library that draws ended the process with a stack trace, after all the work; the limit is of no unit."""
    with monkeypatch.context() as limited:
        limited.setattr(resource, "getrlimit", lambda _: (8 << 30, 8 << 30))
        with pytest.raises(MachineFailed, match=r"\(ulimit -v\) is 8,192 MiB; a picture needs 73,728 MiB"):
            drawn({"mark": "bar"})
    assert "<svg" in drawn({"mark": "bar"})
