"""Does every kind of bad input get one clear line, exit code 2, and nothing written?"""

from __future__ import annotations

import gzip
import json
import random
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from glasshouse.cli.main import main
from glasshouse.commands.work import tabulate as tabulating
from glasshouse.scenarios import load as scenario_module

from .conftest import TOY

BLOCK, OTHER, TRACT = "010730051031000", "010730051031001", "01073005103"
PERSON = {"block": BLOCK, "sex": "male", "age": "30", "white": "1", "black": "0", "aian": "0", "asian": "0"}
PERSON |= {"nhopi": "0", "sor": "0", "hispanic": "0"}
NUMBER = {"level": "block", "geoid": BLOCK, "table": "P1", "variable": "P0010001", "value": "5"}

Content = bytes | str | Callable[[Path], Any]


@dataclass(frozen=True)
class Case:
    """A file, what is done with it, and the words that the complaint must have."""

    name: str
    content: Content
    words: tuple[str, ...]
    file: str = "input.csv"
    options: tuple[str, ...] = ()


def cases(*items: Case | Any) -> Any:
    params = [pytest.param(item, id=item.name) if isinstance(item, Case) else item for item in items]
    return pytest.mark.parametrize("case", params)


def csv(*rows: dict[str, str]) -> str:
    return "".join(",".join(line) + "\n" for line in [list(rows[0]), *(list(row.values()) for row in rows)])


def people(**changed: str) -> str:
    """A good person in line 2, and one who is changed in line 3."""
    return csv(PERSON, PERSON | changed)


def numbers(**changed: str) -> str:
    """A good number in line 2, and one of another block, changed, in line 3."""
    return csv(NUMBER, NUMBER | {"geoid": OTHER} | changed)


def parquet(**columns: list[Any]) -> Callable[[Path], None]:
    return lambda path: pl.DataFrame(columns).write_parquet(path)


def zipped(**members: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
            for name, data in members.items():
                target.writestr(name, data)

    return write


@pytest.fixture(autouse=True)
def _quick_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    """A built-in scenario is frozen and loaded once: these tests run the command line a hundred times."""
    monkeypatch.setattr(scenario_module, "load", _load)


_read = scenario_module.load
_built_in = cache(_read)


def _load(name: str) -> scenario_module.Scenario:
    return _built_in(name) if name in scenario_module.known_scenarios() else _read(name)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, with a place for temporary files that must be empty in the end."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert list(temporary.iterdir()) == []


Refuse = Callable[..., str]


@pytest.fixture
def refuse(folder: Path, capsys: pytest.CaptureFixture[str]) -> Refuse:
    """Run a command that must be refused as bad input; returns the complaint."""

    def run(*arguments: object) -> str:
        given = [str(argument) for argument in arguments]
        before = sorted(folder.rglob("*"))
        code = main([*given, "--json"])
        printed = capsys.readouterr()
        assert code == 2, printed.err
        lines = printed.err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("glasshouse: "), printed.err
        message = lines[0].removeprefix("glasshouse: ")
        assert "Traceback" not in message and "bug" not in message
        assert json.loads(printed.out) == {"error": message, "exit_code": 2}
        assert sorted(folder.rglob("*")) == before, "something was written"
        return message

    return run


def make(folder: Path, case: Case) -> Path:
    path = folder / case.file
    if callable(case.content):
        case.content(path)
    else:
        path.write_bytes(case.content if isinstance(case.content, bytes) else case.content.encode())
    return path


def expect(message: str, words: tuple[str, ...]) -> None:
    for word in words:
        assert word in message, f"'{word}' is not in: {message}"


# Files that neither command can read

ANY_FILE = (
    Case("empty file", "", ("input.csv", "empty", "expected a header")),
    Case("directory", Path.mkdir, ("input.csv", "is a directory")),
    Case("unknown extension", "a,b\n1,2\n", ("input.doc", "unknown kind of file", ".csv.gz", ".parquet"), "input.doc"),
    Case("no extension", "a,b\n1,2\n", ("unknown kind of file",), "input"),
    Case("binary junk", random.Random(1).randbytes(5000), ("input.csv", "not a text file in UTF-8")),
    Case("UTF-16 text", people().encode("utf-16"), ("input.csv", "not a text file in UTF-8")),
    Case("Parquet called .csv", parquet(a=[1]), ("input.csv", "not a text file")),
    Case(
        "corrupt Parquet", b"PAR1" + bytes(500) + b"PAR1", ("input.parquet", "not a readable Parquet"), "input.parquet"
    ),
    Case("CSV called .parquet", people(), ("input.parquet", "not a readable Parquet"), "input.parquet"),
    Case("not gzip", people(), ("input.csv.gz", "gzip file is damaged"), "input.csv.gz"),
    Case("column twice", "block,block\n1,2\n", ("input.csv", "'block' stands twice in the header")),
    Case("old Mac line ends", people().replace("\n", "\r"), ("input.csv", "line ends")),
    Case("header of one long word", "a" * 200_000 + "\n1\n", ("input.csv",)),
)


@cases(*ANY_FILE)
@pytest.mark.parametrize("command", ["tabulate", "check"])
def test_a_file_that_is_no_table_is_refused(command: str, case: Case, folder: Path, refuse: Refuse) -> None:
    path = make(folder, case)
    options = ["--out", "new/tables.csv"] if command == "tabulate" else []
    expect(refuse(command, path, "--scenario", "sf1-person", *options), case.words)


def test_a_text_that_is_called_a_workbook_is_refused(folder: Path, refuse: Refuse) -> None:
    path = make(folder, Case("a text called .xlsx", "a,b\n1,2\n", (), "input.xlsx"))
    expect(refuse("check", path, "--scenario", "sf1-person"), ("input.xlsx", "not a zip file"))


@pytest.mark.parametrize("command", ["tabulate", "check"])
def test_a_missing_file_is_named(command: str, refuse: Refuse) -> None:
    expect(refuse(command, "nowhere.csv", "--scenario", "sf1-person"), ("nowhere.csv", "no such file"))


# Records


def cut_gzip(path: Path) -> None:
    path.write_bytes(gzip.compress(csv(*[PERSON] * 1000).encode())[:-20])


def one_long_line(start: str) -> Callable[[Path], None]:
    return lambda path: (path.write_bytes(gzip.compress(start.encode() + b"0" * (80 << 20))), None)[1]


@cases(
    Case(
        "missing place", csv({"sex": "male", "age": "3"}), ("no column says which place", "'block'", "found: sex, age")
    ),
    Case(
        "missing column",
        csv({name: value for name, value in PERSON.items() if name != "age"}),
        ("column 'age' is missing", "--tables P1,P6,P7,P8,P9"),
    ),
    Case("header only", csv(PERSON).splitlines()[0] + "\n", ("input.csv", "a header and no records")),
    Case("age below 0", people(age="-1"), ("input.csv, line 3", "'age' is '-1'", "from 0 to 110")),
    Case("age 200", people(age="200"), ("input.csv, line 3", "'age' is '200'", "from 0 to 110")),
    Case("age empty", people(age=""), ("input.csv, line 3", "'age' is empty")),
    Case("age in words", people(age="thirty"), ("input.csv, line 3", "'thirty'")),
    Case("age of a half", people(age="30.5"), ("input.csv, line 3", "'30.5'", "whole number")),
    Case("race all zero", people(white="0"), ("input.csv, line 3", "race", "at least one 1")),
    Case("race flag 2", people(sor="2"), ("input.csv, line 3", "'sor' is '2'", "0 or 1")),
    Case("hispanic 2", people(hispanic="2"), ("input.csv, line 3", "'hispanic' is '2'", "0 or 1")),
    Case("unknown sex", people(sex="m"), ("input.csv, line 3", "'sex' is 'm'", "male or female")),
    Case(
        "lost zero",
        people(block="10730051031000"),
        ("line 3", "14 digits", "leading zero", "export the column as text"),
    ),
    Case("scientific", people(block="1.0730051031E+13"), ("line 3", "scientific notation", "export it as text")),
    Case("place empty", people(block=""), ("line 3", "block code is empty")),
    Case("place is a tract", people(block=TRACT), ("line 3", "has 11 characters", "has 15")),
    Case("place with a dash", people(block="01073-051031000"), ("line 3", "letters or digits")),
    Case("a blank line", people().replace("\n01", "\n\n01", 1), ("input.csv, line 2",)),
    Case("too many fields", people(hispanic="0,7"), ("line 3", "11 fields", "expected 10")),
    Case("too few fields", people().removesuffix(",0\n") + "\n", ("input.csv, line 3",)),
    Case("unclosed quote", people(sex='"male'), ("input.csv", "line 3")),
    Case("latin-1", people(sex="mâle").encode("latin-1"), ("input.csv, line 3", "not UTF-8", "save the file as UTF-8")),
    Case("zero bytes", people(sex="ma\0le"), ("input.csv", "zero bytes")),
    Case("gzip bomb", one_long_line(people()), ("input.csv.gz", "a line of more than 8 MiB"), "input.csv.gz"),
    Case("cut gzip", cut_gzip, ("input.csv.gz", "damaged or cut short", "copy or download it again"), "input.csv.gz"),
    Case(
        "numeric place",
        parquet(**{name: [int(v) if v.isdigit() else v] for name, v in PERSON.items()}),
        ("column 'block' holds numbers", "as text"),
        "input.parquet",
    ),
    Case(
        "row of a Parquet file",
        parquet(**{name: [value, "2"] if name == "hispanic" else [value] * 2 for name, value in PERSON.items()}),
        ("input.parquet, row 2", "'hispanic' is '2'"),
        "input.parquet",
    ),
    Case("placed by county", csv({"county": "01073", **PERSON} | {"block": "x"}).replace("block", "b"), ("by county",)),
    Case(
        "too few fields, none of them read",
        csv(*[PERSON | {"id": "7"}] * 2).removesuffix(",7\n") + "\n",
        ("line 3",),
    ),
    Case(
        "list column",
        parquet(**{n: [[v]] if n == "age" else [v] for n, v in PERSON.items()}),
        ("age",),
        "a.parquet",
    ),
)
def test_bad_records_are_refused(case: Case, folder: Path, refuse: Refuse) -> None:
    path = make(folder, case)
    message = refuse("tabulate", path, "--scenario", "sf1-person", "--out", folder / "new" / "tables.csv")
    expect(message, case.words)


def test_columns_of_states_and_counties_beside_the_block_do_no_harm(folder: Path) -> None:
    path = folder / "input.csv"
    path.write_text(csv(PERSON | {"state": "01", "county": "073"}))
    assert main(["tabulate", str(path), "--scenario", "sf1-person", "--json"]) == 0


# Published tables


def interval(lower: str, upper: str) -> str:
    exact = {name: value for name, value in NUMBER.items() if name != "value"}
    return csv(exact | {"lower": "1", "upper": "2"}, exact | {"geoid": OTHER, "lower": lower, "upper": upper})


def rows_without_end(path: Path) -> None:
    row = ",".join((NUMBER | {"value": "5" + " " * 20_000}).values()) + "\n"
    path.write_bytes(gzip.compress(csv(NUMBER).encode() + row.encode() * 5_000))
    assert path.stat().st_size < 200_000


@cases(
    Case("missing column", csv({"geoid": BLOCK, "variable": "P0010001"}), ("column 'value' is missing", "'lower'")),
    Case("no place", csv({"variable": "P0010001", "value": "1"}), ("no column says which place", "'geoid'")),
    Case("header only", csv(NUMBER).splitlines()[0] + "\n", ("input.csv", "nothing to work on")),
    Case("count in words", numbers(value="five"), ("input.csv, line 3", "P0010001", "'five'", "whole number")),
    Case("negative count", numbers(value="-5"), ("input.csv, line 3", "'-5'", "from 0 up")),
    Case("fractional count", numbers(value="2.5"), ("input.csv, line 3", "'2.5'", "lower and upper")),
    Case("empty count", numbers(value=""), ("input.csv, line 3", "value of P0010001 is empty")),
    Case("huge count", numbers(value="1" + "0" * 13), ("input.csv, line 3", "'10000000000000'")),
    Case("count beyond 64 bits", numbers(value="9" * 40), ("input.csv, line 3", "'99999")),
    Case("huge count explained", numbers(value="1" + "0" * 13), ("at most",)),
    Case(
        "unofficial variable", numbers(variable="P0010O01"), ("line 3", "'P0010O01'", "the nearest is P001", "official")
    ),
    Case("empty variable", numbers(variable=""), ("line 3", "the variable is empty")),
    Case("lost zero", numbers(geoid="10730051031001"), ("line 3", "14 digits", "leading zero", "text")),
    Case("scientific", numbers(geoid="1.0730051031E+13"), ("line 3", "scientific notation")),
    Case("code empty", numbers(geoid=""), ("line 3", "block code is empty")),
    Case("level does not fit", numbers(level="tract"), ("line 3", "has 15 characters", "a tract code has 11")),
    Case("unknown level", numbers(level="parish"), ("line 3", "unknown level 'parish'", "county", "block_group")),
    Case("contradicting table", numbers(table="P12"), ("line 3", "P0010001 is of table P1", "found table 'P12'")),
    Case("duplicate", numbers(geoid=BLOCK), ("line 3", "line 2", "P0010001", BLOCK, "each number once")),
    Case("duplicate, two spellings", numbers(geoid=BLOCK, variable="P001001"), ("line 3", "line 2", "P0010001")),
    Case("lower above upper", interval("3", "2"), ("input.csv, line 3", "lower is above upper")),
    Case("lower empty", interval("", "2"), ("input.csv, line 3", "lower of P0010001 is empty")),
    Case("too many fields", numbers(value="5,6"), ("line 3", "6 fields", "expected 5")),
    Case("too few fields", numbers().removesuffix(",5\n") + "\n", ("input.csv, line 3",)),
    Case("too few fields, no upper", interval("1", "2").removesuffix(",2\n") + "\n", ("line 3", "5 fields")),
    Case("unclosed quote", numbers(geoid='"' + OTHER), ("input.csv", "line 3")),
    Case("latin-1", numbers(table="P¹").encode("latin-1"), ("input.csv, line 3", "not UTF-8")),
    Case("zero bytes", numbers(table="P\0001"), ("input.csv", "zero bytes")),
    Case("gzip bomb", one_long_line(numbers()), ("input.csv.gz", "a line of more than 8 MiB"), "input.csv.gz"),
    Case("gzip bomb of rows", rows_without_end, ("input.csv.gz", "times its size"), "input.csv.gz"),
    Case(
        "wide, twice the same", f"geoid,P0010001,P001001\n{BLOCK},5,5\n", ("'P0010001' and 'P001001'", "same variable")
    ),
    Case("wide, unofficial", f"geoid,P0010001,P0010009\n{BLOCK},5,5\n", ("header", "'P0010009' is not an official")),
    Case(
        "wide, no variable", f"geoid,name\n{BLOCK},x\n", ("no column is a variable", "P0010001", "found: geoid, name")
    ),
    Case("wide, a hole", f"geoid,P0010001\n{BLOCK},5\n{OTHER},\n", ("line 3", "'P0010001' is empty here")),
    Case("wide, a word", f"geoid,P0010001\n{BLOCK},5\n{OTHER},many\n", ("line 3", "'many'", "whole number")),
    Case("wide, place twice", f"geoid,P0010001\n{BLOCK},5\n{BLOCK},5\n", ("line 3", "line 2", BLOCK)),
    Case("wide, place twice, once with 0", f"geoid,P0010001\n{BLOCK},0\n{BLOCK},5\n", ("line 3", "line 2", BLOCK)),
    Case(
        "numeric codes",
        parquet(geoid=[10730051031000], variable=["P0010001"], value=[1]),
        ("column 'geoid' holds numbers", "leading zeros", "as text"),
        "input.parquet",
    ),
    Case(
        "row of a Parquet file",
        parquet(geoid=[BLOCK, OTHER], variable=["P0010001"] * 2, value=[1.0, 1.5]),
        ("input.parquet, row 2", "'1.5'"),
        "input.parquet",
    ),
    Case("empty Parquet", parquet(geoid=[], variable=[], value=[]), ("input.parquet", "nothing"), "input.parquet"),
    Case(
        "duplicate in Parquet",
        parquet(geoid=[BLOCK] * 2, variable=["P0010001"] * 2, value=[1, 1]),
        ("row 2", "row 1"),
        "input.parquet",
    ),
    Case(
        "fractional decimal",
        lambda path: (
            pl.DataFrame({"geoid": [BLOCK], "variable": ["P0010001"], "value": ["3.50"]})
            .with_columns(pl.col("value").cast(pl.Decimal(10, 2)))
            .write_parquet(path)
        ),
        ("row 1", "whole number"),
        "input.parquet",
    ),
    Case("list column", parquet(geoid=[BLOCK], variable=["P0010001"], value=[[1]]), ("value",), "input.parquet"),
    Case("numeric variable", parquet(geoid=[BLOCK], variable=[1], value=[1]), ("variable",), "input.parquet"),
    Case(
        "code with a line end and an escape",
        parquet(geoid=["ab\n\x1b[31mcd"], variable=["P0010001"], value=[1]),
        ("row 1", "has 10 characters"),
        "input.parquet",
    ),
    Case("zip bomb", zipped(**{"algeo2010.sf1": bytes(50 << 20)}), ("input.zip", "zip bomb"), "input.zip"),
    Case("zip of something else", zipped(readme=b"hello"), ("input.zip", "geographic header", "readme"), "input.zip"),
    Case("not a zip", people(), ("input.zip", "not a zip file"), "input.zip"),
    Case("unknown scenario", numbers(), ("unknown scenario 'x'", "pl94", "sf1-person"), options=("--scenario", "x")),
    Case("unknown table", numbers(), ("unknown table 'P99'", "P12I"), options=("--tables", "P1,P99")),
    Case("bad --assume-published", numbers(), ("unknown table 'some'", "P12I"), options=("--assume-published", "some")),
    Case("missing codebook", numbers(), ("none.txt", "codebook"), options=("--codebook", "none.txt")),
    Case("no codebook", numbers(), ("input.csv", "'NHGIS code:'"), options=("--codebook", "input.csv")),
    Case("mapping without =", numbers(), ("--mapping region.csv", "LEVEL=FILE"), options=("--mapping", "region.csv")),
    Case("no mapping file", numbers(), ("no.csv", "no such file"), options=("--mapping", "region=no.csv")),
    Case("no workers", numbers(), ("--workers", "greater than or equal to 1"), options=("--workers", "0")),
)
def test_bad_tables_are_refused(case: Case, folder: Path, refuse: Refuse) -> None:
    path = make(folder, case)
    scenario = () if "--scenario" in case.options else ("--scenario", "sf1-person")
    start = time.monotonic()
    expect(refuse("check", path, *scenario, *case.options), case.words)
    assert time.monotonic() - start < 20, "a small file must not keep us busy"


def test_a_gzip_bomb_of_comments_is_refused_as_a_bomb(folder: Path, refuse: Refuse) -> None:
    (folder / "input.csv.gz").write_bytes(gzip.compress(b"# \n" * 1_000_000 + numbers().encode()))
    assert "comment" in refuse("check", "input.csv.gz", "--scenario", "sf1-person")


def test_a_file_without_a_header_does_not_have_its_first_record_printed(folder: Path, refuse: Refuse) -> None:
    (folder / "input.csv").write_text("111,red,2,1\n112,blue,3,0\n")
    (folder / "scenario.toml").write_text(TOY)
    message = refuse("tabulate", "input.csv", "--scenario", ".", "--out", "new/tables.csv")
    assert not ("111" in message and "red" in message)


# Options and places to write


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param((), ("--out is missing", "--json"), id="no --out"),
        pytest.param(("--out", "new/tables.xlsx"), ("tables.xlsx", ".csv", ".csv.gz", ".parquet"), id="extension"),
        pytest.param(("--out", "new/tables"), ("tables", ".parquet"), id="no extension"),
        pytest.param(("--out", "there"), ("there",), id="directory"),
        pytest.param(("--out", "there.csv", "--overwrite"), ("there.csv is a directory",), id="directory, overwrite"),
        pytest.param(("--out", "foreign.csv"), ("foreign.csv exists", "--overwrite"), id="foreign file"),
        pytest.param(("--out", "new/t.csv", "--tables", "P1,P99"), ("unknown table 'P99'", "P12I"), id="table"),
        pytest.param(("--out", "new/t.csv", "--levels", "parish"), ("unknown level 'parish'", "county"), id="level"),
        pytest.param(("--out", "new/t.csv", "--mapping", "m.csv"), ("--mapping m.csv", "LEVEL=FILE"), id="no ="),
        pytest.param(("--out", "new/t.csv", "--mapping", "county=m.csv"), ("m.csv", "'county'"), id="known level"),
        pytest.param(("--out", "new/t.csv", "--mapping", "zone=m.csv"), ("m.csv", "'zone'", "region"), id="no column"),
        pytest.param(("--out", "new/t.csv", "--mapping", "region=twice.csv"), ("line 3", BLOCK), id="two areas"),
        pytest.param(
            ("--out", "new/t.csv", "--mapping", "region=m.csv", "--levels", "region"),
            (BLOCK, "not in the mapping", "'region'"),
            id="place not mapped",
        ),
        pytest.param(("--out", "new/t.csv", "--scenario", "sf3"), ("unknown scenario 'sf3'", "pl94"), id="scenario"),
        pytest.param(("--out", "new/t.csv", "--colour"), ("No such option", "--help"), id="option"),
        pytest.param(("--out", "there.csv"), ("there.csv is a directory",), id="directory explained"),
        pytest.param(
            ("--out", "there.zip", "--overwrite"), ("there.zip is a directory",), id="directory for an archive"
        ),
        pytest.param(("--out", "foreign.csv/t.csv"), ("foreign.csv",), id="file for a folder"),
        pytest.param(
            ("--out", "new/t.zip", "--mapping", "region=all.csv", "--levels", "region"),
            ("unknown level of the archive 'region'",),
            id="archive without that level",
        ),
        pytest.param(("--out", "people.csv", "--overwrite"), ("people.csv", "input"), id="input as output"),
    ],
)
def test_bad_options_are_refused(
    options: tuple[str, ...], words: tuple[str, ...], folder: Path, refuse: Refuse
) -> None:
    for name in ("there", "there.csv", "there.zip"):
        (folder / name).mkdir()
    (folder / "foreign.csv").write_text("mine")
    (folder / "people.csv").write_text(people())
    (folder / "m.csv").write_text(f"block,region\n{OTHER},A\n")
    (folder / "all.csv").write_text(f"block,region\n{BLOCK},A\n{OTHER},A\n")
    (folder / "twice.csv").write_text(f"block,region\n{BLOCK},A\n{BLOCK},B\n")
    before = {path: path.read_bytes() for path in folder.glob("*.csv") if path.is_file()}
    scenario = () if "--scenario" in options else ("--scenario", "sf1-person")
    if options:
        message = refuse("tabulate", "people.csv", *scenario, *options)
        expect(message, words)
    else:
        assert main(["tabulate", "people.csv", "--scenario", "sf1-person"]) == 2
    assert before == {path: path.read_bytes() for path in folder.glob("*.csv") if path.is_file()}


def test_without_json_nothing_is_printed_on_stdout(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "people.csv").write_text(people())
    assert main(["tabulate", "people.csv", "--scenario", "sf1-person"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1 and "--out is missing" in printed.err


def test_an_existing_folder_keeps_its_files_and_gets_none(folder: Path, refuse: Refuse) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "notes.txt").write_text("mine")
    (folder / "people.csv").write_text(people(age="200"))
    refuse("tabulate", "people.csv", "--scenario", "sf1-person", "--out", "out/tables.parquet")
    assert [path.name for path in (folder / "out").iterdir()] == ["notes.txt"]


def test_a_place_that_is_not_mapped_is_found_before_a_folder_is_made(
    folder: Path, refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tabulating, "BATCH_ROWS", 1)  # a second batch, as in a file of more than 100,000 records
    (folder / "people.csv").write_text(people(block="010730051041000"))
    (folder / "m.csv").write_text(f"block,region\n{BLOCK},A\n")
    options = ("--mapping", "region=m.csv", "--levels", "region", "--out", "new/tables.csv")
    refuse("tabulate", "people.csv", "--scenario", "sf1-person", *options)


# Scenarios

SIZES, TITLE = 'bins = "0-1 2 3"', 'title = "A toy"'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param(TITLE, TITLE + "\nsubtitle = 1", ("unknown entry", "'subtitle'", "catalogue"), id="unknown key"),
        pytest.param(TITLE, TITLE + "\n???", ("not valid TOML", "line 3"), id="not TOML"),
        pytest.param(TITLE, "", ("'title' is missing",), id="no title"),
        pytest.param('by = ["size"]', 'by = ["sise"]', ("unknown recode in table T3 'sise'", "size"), id="recode"),
        pytest.param(SIZES, 'bins = "0-1 1-2 3"', ("recode 'size'", "must not overlap"), id="overlapping groups"),
        pytest.param(SIZES, 'bins = "0-1 two"', ("'two' is not a bin",), id="bin"),
        pytest.param(SIZES, 'bins = "0-9"', ("bin '0-9'", "0 to 3"), id="bin outside"),
        pytest.param(
            '{ attribute = "owner" }', '{ attribute = "x" }', ("unknown attribute 'x'", "colour"), id="attribute"
        ),
        pytest.param('codes = ["0", "1"]', 'codes = ["0"]', ("'owner' has 2 levels",), id="codes"),
        pytest.param('iterations = "RGB"', 'iterations = "RX"', ("unknown iteration in table T3 'X'",), id="iteration"),
        pytest.param('place = "house"', 'place = "hut"', ("unknown level 'hut'", "street"), id="place"),
        pytest.param("town = 1", "town = 2", ("coarse to fine",), id="lengths"),
        pytest.param('undivided = ["no"]', 'undivided = ["nay"]', ("unknown group of table T2 'nay'",), id="undivided"),
        *(
            pytest.param(old, new, ("scenario.toml",), id=name)
            for name, old, new in (
                ("range is a number", "range = [0, 3]", "range = 3"),
                ("groups is a number", '{ attribute = "owner" }', '{ attribute = "owner", groups = 5 }'),
                ("length is a word", "town = 1", 'town = "1"'),
                ("by is a number", 'by = ["size"]', "by = 5"),
                ("aliases is a number", TITLE, TITLE + "\naliases = 5"),
                ("impossible is a number", TITLE, TITLE + "\nimpossible = 5"),
                ("compose has numbers", 'place = "house"', 'place = "house"\ncompose = [5]'),
            )
        ),
        pytest.param(TITLE, TITLE + '\ncatalogue = "none.csv"', ("none.csv",), id="no catalogue"),
        pytest.param('"{table}_{line:2}"', '"V{line:2}"', ("V01",), id="two variables of one name"),
        pytest.param("also = [2]", "also = [99]", ("T6", "99"), id="also a line that is not there"),
    ],
)
def test_a_bad_scenario_is_refused(old: str, new: str, words: tuple[str, ...], folder: Path, refuse: Refuse) -> None:
    own = folder / "own"
    own.mkdir()
    assert TOY.count(old) >= 1
    (own / "scenario.toml").write_text(TOY.replace(old, new, 1))
    (folder / "input.csv").write_text("house,colour,size,owner\n111,red,2,1\n")
    message = refuse("tabulate", "input.csv", "--scenario", own, "--out", "new/tables.csv")
    expect(message, ("own/scenario.toml", *words))


def test_a_scenario_that_is_not_utf8_is_refused(folder: Path, refuse: Refuse) -> None:
    (folder / "scenario.toml").write_bytes(TOY.replace("A toy", "Ein Spiel für uns").encode("latin-1"))
    (folder / "input.csv").write_text("house,colour,size,owner\n111,red,2,1\n")
    assert "UTF-8" in refuse("tabulate", "input.csv", "--scenario", ".")
