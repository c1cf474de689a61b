"""Is every format read into the same table? One invented table in all of them, real files, and what is refused."""

from __future__ import annotations

import io
import json
import time
import zipfile
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.errors import InputError
from glasshouse.files.crossed import Crossed
from glasshouse.files.formats import crossed, says_itself
from tests import format_samples as samples
from tests.format_samples import NUMBERS, workbook
from tests.often import often

WORLD = Path(__file__).resolve().parents[2] / "shared" / "data" / "world"
real = pytest.mark.skipif(not WORLD.is_dir(), reason="needs shared/data/world, which is not part of the repository")


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def only(path: Path) -> Crossed:
    (found,) = crossed(path)
    return found


def rows(table: Crossed) -> pl.DataFrame:
    return pl.concat(list(table.pieces()))


def numbers(frame: pl.DataFrame, *names: str) -> dict[tuple[str, ...], tuple[str | None, str | None]]:
    return {tuple(row[:-2]): (row[-2], row[-1]) for row in frame.select(*names, "value", "status").iter_rows()}


@pytest.mark.parametrize("name", [name for name in samples.every() if name.endswith((".csv", ".xml"))] + ["two.json"])
def test_every_format_tells_the_same_numbers(name: str, tmp_path: Path) -> None:
    table = only(written(tmp_path, name, samples.every()[name]))
    assert [one.name for one in table.dimensions] == ["GEO", "SEX", "TIME_PERIOD"]
    assert [one.role for one in table.dimensions] == ["geo", "", "time"]
    frame = rows(table)
    assert frame.columns == ["GEO", "SEX", "TIME_PERIOD", "value", "status", "line"]
    assert frame.dtypes == [*[pl.String] * 5, pl.Int64]
    assert numbers(frame, "GEO", "SEX") == NUMBERS
    assert set(frame["TIME_PERIOD"]) == {"2021"}
    assert rows(table).equals(frame)  # it can be read twice


def test_formats_that_say_what_they_hold_are_known(tmp_path: Path) -> None:
    for name, content in samples.every().items():
        assert says_itself(written(tmp_path, name, content)), name
    assert not says_itself(written(tmp_path, "plain.csv", "area,value\nx,1\n"))
    assert not says_itself(tmp_path / "plain.parquet")


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    for name in ("one.csv", "specific.xml"):
        path = written(tmp_path, name, samples.every()[name])
        frame, lines = rows(only(path)), path.read_text().splitlines()
        for geo, sex, line in frame.select("GEO", "SEX", "line").iter_rows():
            assert geo in lines[line - 1] and f'{sex}"' in lines[line - 1].replace(",", '"')
    assert only(tmp_path / "one.csv").where(1_234) == "one.csv, line 1,234"


@pytest.mark.parametrize("name", ["two.csv", "both.csv", "two.json", "one.json", "dense.px"])
def test_labels_stand_beside_codes(name: str, tmp_path: Path) -> None:
    table = only(written(tmp_path, name, samples.every()[name]))
    geo, sex = table.dimensions[:2]
    assert [(one.code, one.label) for one in sex.categories] == [("F", "Women"), ("M", "Men")]
    assert [one.code for one in geo.categories] == ["R1", "R2", "R3"] and geo.categories[0].label == "Region 1"
    if name != "dense.px":
        assert geo.label == "Area"


@pytest.mark.parametrize("name", ["one.csv", "generic.xml", "specific.xml", "specific_flat.xml"])
@pytest.mark.parametrize("ending", [".dsd.xml", "_structure.xml"])
def test_a_structure_beside_the_data_tells_codes_and_parts(name: str, ending: str, tmp_path: Path) -> None:
    path = written(tmp_path, name, samples.every()[name])
    written(tmp_path, path.stem + ending, samples.STRUCTURE)
    table = only(path)
    geo, sex, _ = table.dimensions
    assert (geo.label, sex.label) == ("Area", "Sex")
    assert [(one.code, one.label, one.parent) for one in geo.categories][:2] == [
        ("ALL", "The country", ""), ("R1", "Region 1", "ALL"),
    ]  # fmt: skip
    assert table.marks == {"A": "Normal", "Q": "Suppressed", "E": "Estimated"}
    assert numbers(rows(table), "GEO", "SEX") == NUMBERS


def test_a_structure_says_what_is_a_dimension(tmp_path: Path) -> None:
    """Without one, what SDMX does not call an attribute is taken as a dimension; with one, it is known."""
    text = samples.SPECIFIC.replace('UNIT_MULT="0"', 'UNIT_MULT="0" SOURCE_NOTE="x"')
    path = written(tmp_path, "a.xml", text)
    assert [one.name for one in only(path).dimensions] == ["GEO", "SEX", "SOURCE_NOTE", "TIME_PERIOD"]
    written(tmp_path, "a.dsd.xml", samples.STRUCTURE)
    assert [one.name for one in only(path).dimensions] == ["GEO", "SEX", "TIME_PERIOD"]
    written(tmp_path, "a.dsd.xml", samples.STRUCTURE.replace('"SEX"', '"GENDER"'))
    with pytest.raises(InputError, match=r"a\.xml: the structure beside it has the dimension GENDER"):
        crossed(path)


def test_several_tables_in_one_file(tmp_path: Path) -> None:
    other = samples.SDMX_CSV_1.replace("AG:POP(1.0)", "AG:OTHER(1.0)").partition("\n")[2]
    path = written(tmp_path, "two.csv", samples.SDMX_CSV_1 + other)
    tables = crossed(path)
    assert [table.title for table in tables] == ["AG:OTHER(1.0)", "AG:POP(1.0)"]
    assert [numbers(rows(table), "GEO", "SEX") for table in tables] == [NUMBERS, NUMBERS]
    assert rows(tables[0])["line"].to_list() == list(range(8, 14))
    collection = {"version": "2.0", "class": "collection", "link": {"item": [samples.JSONSTAT, samples.JSONSTAT]}}
    assert len(crossed(written(tmp_path, "c.json", json.dumps(collection)))) == 2


def test_px_keeps_symbols_and_what_they_mean(tmp_path: Path) -> None:
    table = only(written(tmp_path, "a.px", samples.PX))
    assert table.title == "People by area and sex" and table.marks == {"..": "confidential", "-": "nil"}
    assert [one.role for one in table.dimensions] == ["geo", "", "time"]
    assert rows(table)["value"].to_list() == ["12", "7", "..", "3", "-", "1048"]
    assert table.dimensions[0].categories[2].label == "Région ; 3"


def test_px_rows_with_keys_may_leave_some_out(tmp_path: Path) -> None:
    frame = rows(only(written(tmp_path, "a.px", samples.PX_KEYS)))
    assert numbers(frame, "GEO", "SEX") == {
        ("R3", "F"): ("-", None), ("R3", "M"): ("1048", None), ("R1", "F"): ("12", None), ("R1", "M"): ("7", None),
    }  # fmt: skip
    assert frame["line"].to_list() == [5, 6, 1, 2]


def test_px_hierarchies_and_code_pages(tmp_path: Path) -> None:
    told = samples.PX.replace("MAP(", 'HIERARCHIES("GEO")="R1","R1":"R2","R1":"Région ; 3";\nMAP(')
    table = only(written(tmp_path, "a.px", told))
    assert [one.parent for one in table.dimensions[0].categories] == ["", "R1", "R1"]
    latin = samples.PX.replace('CODEPAGE="utf-8";\n', "").encode("cp1252")
    assert only(written(tmp_path, "b.px", latin)).dimensions[0].categories[2].label == "Région ; 3"
    unsaid = samples.PX.replace('CODEPAGE="utf-8";\n', "").replace('CHARSET="ANSI";\n', "")
    with pytest.raises(InputError, match=r"c\.px: letters beyond ASCII, and neither CODEPAGE nor CHARSET"):
        crossed(written(tmp_path, "c.px", unsaid))
    with pytest.raises(InputError, match=r"d\.px: the code page 'punycode' is not known"):
        crossed(written(tmp_path, "d.px", samples.PX.replace("utf-8", "punycode")))


def test_jsonstat_numbers_keep_their_digits(tmp_path: Path) -> None:
    told = json.dumps(samples.JSONSTAT).replace("1048", "1048.50").replace("[12, 7", "[1e3, 70000000000000000001")
    assert rows(only(written(tmp_path, "a.json", told)))["value"].to_list() == [
        "1e3", "70000000000000000001", None, "3", "0", "1048.50",
    ]  # fmt: skip


def test_jsonstat_of_version_1_has_rows_for_what_is_told(tmp_path: Path) -> None:
    table = only(written(tmp_path, "a.json", json.dumps(samples.JSONSTAT_1)))
    assert numbers(rows(table), "GEO", "SEX") == NUMBERS  # the hidden one has no number, and a status
    whole = json.loads(json.dumps(samples.JSONSTAT_1))["people"]
    told = {name: part for name, part in whole.items() if name != "status"}
    frame = rows(only(written(tmp_path, "b.json", json.dumps({"people": told}))))
    assert frame["line"].to_list() == [1, 2, 4, 5, 6] and frame["status"].null_count() == 5
    frame = rows(only(written(tmp_path, "c.json", json.dumps({"people": {**told, "status": "e"}}))))
    assert frame["line"].to_list() == [1, 2, 4, 5, 6] and set(frame["status"]) == {"e"}


def test_tidy_sheets(tmp_path: Path) -> None:
    table = only(written(tmp_path, "a.xlsx", samples.every()["tidy.xlsx"]))
    assert table.title == "People by area and sex" and table.where(4) == "a.xlsx, row 4"
    assert numbers(rows(table), "GEO", "SEX") == NUMBERS
    assert rows(table)["line"].to_list() == list(range(4, 10))
    assert [one.name for one in table.dimensions] == ["GEO", "SEX", "TIME_PERIOD"]


def test_crossed_sheets(tmp_path: Path) -> None:
    table = only(written(tmp_path, "a.xlsx", samples.every()["crossed.xlsx"]))
    assert table.title == "People by area and sex, 2021"
    assert [one.name for one in table.dimensions] == ["GEO", "column"]
    found = numbers(rows(table), "GEO", "column")
    assert found == {key: (value, None) for key, (value, _) in NUMBERS.items()}


def test_merged_and_blank_labels_are_filled(tmp_path: Path) -> None:
    head = [["T"], [None, None, "F", None, "M", None], ["area", "age", "2011", "2021", "2011", "2021"]]
    body = [
        ["x", "0-14", 1, 2, 3, 4],
        [None, "15+", 5, 6, 7, 8],
        ["y", "0-14", 9, "c", "..", 12],
        [None, "15+", 1, 1, 1, 1],
    ]
    wanted = None
    for merged in ((), ("C2:D2", "E2:F2", "A4:A5", "A6:A7")):
        table = only(written(tmp_path, f"{len(merged)}.xlsx", workbook({"S": [*head, *body]}, merged)))
        assert [one.name for one in table.dimensions] == ["area", "age", "column 1", "column 2"]
        found = numbers(rows(table), "area", "age", "column 1", "column 2")
        assert found["x", "15+", "M", "2021"] == ("8", None) and found["y", "0-14", "F", "2021"] == ("c", None)
        assert len(found) == 16 and wanted in (None, found)
        wanted = found


def test_years_that_are_numbers_are_names_where_nothing_else_is(tmp_path: Path) -> None:
    table = only(written(tmp_path, "a.xlsx", workbook({"S": [["area", 2011, 2021], ["x", 1, 2], ["y", 3, 4]]})))
    assert [one.code for one in table.dimensions[1].categories] == ["2011", "2021"]


SHEETS = {
    "no names over the numbers": [["x", 1, 2], ["y", 3, 4]],
    "row 3: a single cell between rows of numbers": [["a", "F"], ["x", 1], ["men"], ["y", 2]],
    "row 2: what looks like years below names": [["a", "F", "M"], ["x", 2011, 2021], ["y", 3, 4]],
    "row 4: words right below the numbers": [["a", "F", "M"], ["x", 1, 2], ["y", 3, 4], ["note", "here"]],
    "row 4: after an empty row, not all numbers": [["a", "F", "M"], ["x", 1, 2], [], ["Sample", 500], ["y", 3, 4]],
    "row 5: after an empty row, not all": [["a", "F"], ["x", 1], ["y", 2], [], ["a", "M"], ["x", 3], ["z", 4]],
    "row 3: no label in column B": [["a", "b", "F"], ["x", "p", 1], ["y", None, 2]],
    r"row 1: no name over column C": [["a", "F"], ["x", 1, 2]],
    r"row 2: numbers in the first column \(A\)": [["a", "b", "c"], [1, "x", 3], [2, "y", 4]],
    "row 3: the labels of 'x' stand twice": [["a", "F"], ["x", 1], ["x", 2]],
    "row 1: 'F' stands over two columns": [["a", "F", "F"], ["x", 1, 2]],
    r"an empty column \(B\) inside the table": [["a", None, "F"], ["x", None, 1], ["y", None, 2]],
    "row 3: nothing in column B": [["a", "b", "value"], ["x", "p", 1], ["y", None, 2]],
}


@pytest.mark.parametrize("message", SHEETS)
def test_sheets_that_could_mean_two_things_are_refused(message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"^a\.xlsx, sheet 'S'.*{message}"):
        crossed(written(tmp_path, "a.xlsx", workbook({"S": SHEETS[message]})))


def test_sheets_without_numbers_are_passed_over_and_hidden_ones_too(tmp_path: Path) -> None:
    table = workbook({"Contents": [["Table 1"], ["Notes"]], "People": samples.CROSSED})
    assert len(crossed(written(tmp_path, "a.xlsx", table))) == 1
    with pytest.raises(InputError, match=r"b\.xlsx: no sheet with a table of numbers"):
        crossed(written(tmp_path, "b.xlsx", workbook({"S": [["a", "b"], ["c", "d"]]})))


def test_workbooks_of_a_writer_are_read(tmp_path: Path) -> None:
    """Another program's files: dates, formulas, formatted texts, decimals, more than 26 columns."""
    import datetime

    import xlsxwriter

    packed = io.BytesIO()
    with xlsxwriter.Workbook(packed) as book:
        sheet = book.add_worksheet("T")
        sheet.write_row(0, 0, ["day", *(f"c{at}" for at in range(30))])
        day, bold = book.add_format({"num_format": "dd/mm/yyyy"}), book.add_format({"bold": True})
        for at in range(3):
            sheet.write_datetime(at + 1, 0, datetime.datetime(2021, 3, 21 + at), day)
            sheet.write_row(at + 1, 1, [at + 0.1 * column for column in range(30)])
        sheet.write_formula(1, 1, "=1+1", None, 2)
        sheet.write_rich_string(0, 2, "c", bold, "1")
    frame = rows(only(written(tmp_path, "a.xlsx", packed.getvalue())))
    assert frame["day"].unique().sort().to_list() == ["2021-03-21", "2021-03-22", "2021-03-23"]
    found = numbers(frame, "day", "column")
    assert found["2021-03-21", "c0"] == ("2", None) and found["2021-03-22", "c1"] == ("1.1", None)
    assert found["2021-03-23", "c29"] == (repr(2 + 0.1 * 29), None)


BAD: dict[str, tuple[str, str | bytes]] = {
    "entities": (
        r"a\.xml, line 2: found a document type",
        '<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><GenericData>&a;</GenericData>',
    ),
    "depth of XML": (r"a\.xml: elements lie more than 64 deep", "<GenericData>" + "<a>" * 100),
    "encoding": (r"a\.xml, line 1: not XML from here on", '<?xml version="1.0" encoding="nobody"?><GenericData/>'),
    "other XML": (r"a\.xml: the message is 'html'", "<html/>"),
    "structure": (r"a\.xml: a structure message, which has no numbers", samples.STRUCTURE),
    "no observation": (r"a\.xml: no observation", samples.SPECIFIC[: samples.SPECIFIC.index("<Series")] +
                       "</message:DataSet></message:StructureSpecificData>"),
    "depth of JSON": (r"a\.json: lists or objects lie too deep|a\.json: not JSON", '{"a":' + "[" * 100_000),
    "constants": (r"a\.json: not JSON \(NaN is no number\)", '{"value": [NaN]}'),
    "twice": (r"a\.json: not JSON \('a' stands twice", '{"a": 1, "a": 2}'),
    "addresses": (r"a\.json: no dataset with numbers in it", '{"class": "collection", "link": {"item": [{"href": "http://x"}]}}'),
    "too few values": (r"a\.json: 'value' has 2; expected 6", json.dumps(samples.JSONSTAT | {"value": [1, 2]})),
    "places of values": (r"a\.json: a place in 'value'", json.dumps(samples.JSONSTAT | {"value": {"6": 1}})),
    "truth": (r"a\.json, number 1: found neither a number nor", json.dumps(samples.JSONSTAT | {"value": [True] * 6})),
    "size": (r"a\.json.*3 categories and a size of 4", json.dumps(samples.JSONSTAT | {"size": [4, 2, 1]})),
    "a delete": (r"a\.csv, line 3: ACTION is D", "STRUCTURE,STRUCTURE_ID,ACTION,GEO,OBS_VALUE\na,b,I,x,1\na,b,D,y,1\n"),
    "no value": (r"a\.csv: no column called OBS_VALUE", "DATAFLOW,GEO,VALUE\na,b,1\n"),
    "pairs": (r"a\.csv: STRUCTURE_NAME says", "STRUCTURE,STRUCTURE_ID,STRUCTURE_NAME,GEO,Area,OBS_VALUE\na,b,c,d,e,1"),
    "no rows": (r"a\.csv: a header and no rows", "DATAFLOW,GEO,OBS_VALUE\n"),
    "no table": (r"a\.csv, line 3: DATAFLOW is empty", "DATAFLOW,GEO,OBS_VALUE\nx,y,1\n,y,1\n"),
    "too few": (r"a\.px: 5 numbers after DATA=; expected 6", samples.PX.replace("1048", "")),
    "too many": (r"a\.px: more than 6 numbers", samples.PX.replace("1048", "1048 1 2")),
    "a word": (r"a\.px, number 6: found 'x1048'", samples.PX.replace("1048", "x1048")),
    "codes": (r"a\.px: 3 VALUES and 2 CODES of 'GEO'", samples.PX.replace('"R2",', "")),
    "the same code": (r"a\.px: the code of 'GEO' 'R1' stands twice", samples.PX.replace('"R2"', '"R1"')),
    "no end": (r"a\.px: no DATA=", samples.PX[:300]),
    "old Excel": (r"a\.xls: files that end in \.xls are not read; save it as \.xlsx", b"\xd0\xcf\x11\xe0"),
    "no workbook": (r"a\.xlsx: not a zip file", b"\xd0\xcf\x11\xe0"),
    "unknown": (r"a\.doc: unknown kind of file; known: \.csv", "x"),
    "far cells": (r"sheet 'S': a cell is called 'XFE1'", workbook({"S": [["a", 1], ["b", 2]]}, ("A1:XFE1",))),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_in_a_line(name: str, tmp_path: Path) -> None:
    message, content = BAD[name]
    ending = message.partition("a\\.")[2].split(":")[0].split(",")[0].split(".")[0] or "xlsx"
    path = written(tmp_path, f"a.{ending}", content)
    with pytest.raises(InputError, match=message) as caught:
        _ = [rows(table) for table in crossed(path)]
    assert len(str(caught.value).splitlines()) == 1


def harmed_workbook(old: bytes, new: bytes, **parts: str) -> bytes:
    """The tidy workbook with a text changed in all parts, and other parts."""
    packed = io.BytesIO()
    tidy = zipfile.ZipFile(io.BytesIO(samples.every()["tidy.xlsx"]))
    with tidy, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in tidy.namelist():
            archive.writestr(name, tidy.read(name).replace(old, new))
        for name, text in parts.items():
            archive.writestr(f"xl/{name}.xml", text)
    return packed.getvalue()


TITLE = b"People by area and sex"
FORMAT = f'<styleSheet><numFmts><numFmt numFmtId="170" formatCode="{"[" * 10**6}"/></numFmts></styleSheet>'
SLOW: dict[str, tuple[str, str | bytes]] = {
    "blanks": ("a.xlsx", harmed_workbook(TITLE, b" " * 300_000 + "\u00ad.".encode())),
    "a format of a number": ("a.xlsx", harmed_workbook(b"", b"", styles=FORMAT)),
    "DATA= in a text": ("a.px", 'TITLE="' + ";DATA=" * 400_000 + '";\n' + samples.PX),
    "DATA= in a text without an end": ("a.px", 'TITLE="' + ";DATA=" * 400_000),
    "brackets": ("a.csv", f"DATAFLOW,GEO,{'[' * 130_000},OBS_VALUE\nA:B(1),R1,x,1\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOW)
def test_no_text_makes_reading_quadratic(name: str, tmp_path: Path) -> None:
    """Each of these took minutes: one text was looked through again from each of its letters."""
    file, content = SLOW[name]
    path = written(tmp_path, file, content)
    began = time.process_time()
    with suppress(InputError):
        _ = [rows(table) for table in crossed(path)]
    assert time.process_time() - began < 5


def test_a_text_that_many_cells_share_counts_in_each(tmp_path: Path) -> None:
    """A file of 20 kB asked for a gigabyte, and one of a megabyte for all memory."""
    long = written(tmp_path, "a.xlsx", harmed_workbook(TITLE, b"a" * 32_768))
    with pytest.raises(InputError, match=r"row 1: a text of 32,768 letters; expected at most 32,767"):
        crossed(long)
    cells = "".join(f'<row r="{row}"><c r="A{row}" t="s"><v>0</v></c></row>' for row in range(1, 2_200))
    sheet = f"<worksheet><sheetData>{cells}</sheetData></worksheet>"
    shared = f"<sst><si><t>{'a' * 32_000}</t></si></sst>"
    many = workbook({"S": [["x"]]}, sheet1=sheet, sharedStrings=shared)
    with pytest.raises(InputError, match=r"more than 1,000,000 cells, or 67,108,864 letters in them"):
        crossed(written(tmp_path, "b.xlsx", many))


def test_numbers_of_a_file_have_a_limit(tmp_path: Path) -> None:
    """30 million zeros, in 60 MB, took 3.8 GB."""
    path = written(tmp_path, "a.json", '{"value": [' + "0," * 10_000_001 + "0]}")
    with pytest.raises(InputError, match=r"a\.json: more than 10,000,000 values"):
        crossed(path)


def test_a_workbook_with_a_part_without_a_name_is_refused(tmp_path: Path) -> None:
    """Python's own zipfile stumbles over one; found by harming files."""
    packed = io.BytesIO(samples.every()["tidy.xlsx"])
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("x", "")
        archive.infolist()[-1].filename = ""
    with pytest.raises(InputError, match=r"a\.xlsx: holds a member called ''"):
        crossed(written(tmp_path, "a.xlsx", packed.getvalue()))


def test_a_sheet_that_claims_to_be_huge_costs_nothing(tmp_path: Path) -> None:
    """A cell in the last corner: a reader that makes a rectangle of it would ask for half a terabyte."""
    sheet = (
        '<worksheet><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c><c r="B1"><v>1</v></c></row>'
        '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData></worksheet>'
    )
    with pytest.raises(InputError, match=r"a\.xlsx, sheet 'S', row 1: no names over the numbers"):
        crossed(written(tmp_path, "a.xlsx", workbook({"S": [["x"]]}, sheet1=sheet)))


@pytest.mark.slow
def test_a_large_file_is_handed_out_in_pieces(tmp_path: Path) -> None:
    count = 600_000
    lines = "".join(f"AG:POP(1.0),G{at:07d},F,2021,{at},A\n" for at in range(count))
    table = only(written(tmp_path, "a.csv", samples.SDMX_CSV_1.partition("\n")[0] + "\n" + lines))
    heights = [piece.height for piece in table.pieces()]
    assert sum(heights) == count and len(heights) > 1
    observed = "\n".join(f'<Obs GEO="G{at % 9}" SEX="F" TIME_PERIOD="{at}" OBS_VALUE="{at}"/>' for at in range(260_000))
    start = samples.SPECIFIC_FLAT.index("<Obs")
    text = samples.SPECIFIC_FLAT[:start] + observed + "</message:DataSet></message:StructureSpecificData>"
    heights = [piece.height for piece in only(written(tmp_path, "a.xml", text)).pieces()]
    assert sum(heights) == 260_000 and len(heights) == 2


CODES = st.lists(
    st.text("abcdé -'", min_size=1, max_size=4).filter(str.strip), min_size=1, max_size=4, unique_by=str.strip
)


@settings(max_examples=often(60))
@given(one=CODES, other=CODES, data=st.data())
def test_every_format_agrees_on_any_table(
    one: list[str], other: list[str], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The same table in JSON-stat, PX, SDMX-CSV, SDMX-ML and Excel is the same table."""
    one, other = [code.strip() for code in one], [code.strip() for code in other]
    values = data.draw(st.lists(st.integers(0, 10**9), min_size=len(one) * len(other), max_size=len(one) * len(other)))
    wanted = {(a, b): (str(values[i * len(other) + j]), None) for i, a in enumerate(one) for j, b in enumerate(other)}
    folder = tmp_path_factory.mktemp("any")
    dimension = {"A": {"category": {"index": one}}, "B": {"category": {"index": other}}}
    stat = {
        "class": "dataset",
        "id": ["A", "B"],
        "size": [len(one), len(other)],
        "dimension": dimension,
        "value": values,
    }
    quoted = [",".join(f'"{code}"' for code in codes) for codes in (one, other)]
    px = f'CODEPAGE="utf-8";\nSTUB="A";\nHEADING="B";\nVALUES("A")={quoted[0]};\nVALUES("B")={quoted[1]};\nDATA='
    lines = "".join(f'f,"{a}","{b}",{value}\n' for (a, b), (value, _) in wanted.items())
    flat = samples.SPECIFIC_FLAT[: samples.SPECIFIC_FLAT.index("<Obs")]
    obs = "".join(f'<Obs A="{a}" B="{b}" OBS_VALUE="{value}"/>' for (a, b), (value, _) in wanted.items())
    tidy = [["A", "B", "value"], *([a, b, int(value or 0)] for (a, b), (value, _) in wanted.items())]
    files: dict[str, str | bytes] = {
        "a.json": json.dumps(stat), "a.px": px + " ".join(map(str, values)) + ";",
        "a.csv": f"DATAFLOW,A,B,OBS_VALUE\n{lines}",
        "a.xml": f"{flat}{obs}</message:DataSet></message:StructureSpecificData>",
    }  # fmt: skip
    if len(values) > 1:
        files["a.xlsx"] = workbook({"S": tidy})
    for name, content in files.items():
        assert numbers(rows(only(written(folder, name, content))), "A", "B") == wanted, name


@real
def test_every_real_file_is_read() -> None:
    found = {path.name: rows(only(path)).height for folder in ("px", "jsonstat") for path in (WORLD / folder).iterdir()}
    assert found == {
        "14001.px": 21 * 48 * 2 * 4, "px-x-0602000000_107.px": 20 * 4 * 5 * 2 * 76, "galicia.json": 6 * 22 * 3 * 2 * 5,
        "ons.json": 87 * 3, "statswe.json": 20 * 2 * 28,
    }  # fmt: skip


@real
def test_marriages_in_spain() -> None:
    """INE, table 14001: read off the file by hand."""
    table = only(WORLD / "px" / "14001.px")
    assert [one.role for one in table.dimensions] == ["geo", "", "", ""]
    area, years, sex, before = (one.name for one in table.dimensions)
    found = numbers(rows(table), area, years, sex, before)
    assert found["CA00", "Todas las edades", "Esposos", "Total"] == ("162743", None)
    assert found["CA00", "De 17", "Esposas", "Divorciados/as"] == ("1", None)
    assert found["CA00", "De 16", "Esposos", "Total"] == ("..", None)
    assert found["null", "De 60 y más", "Esposas", "Divorciados/as"] == ("4", None)
    assert table.dimensions[0].categories[-1].label == "Extranjero"
    assert table.dimensions[0].categories[7].label == "Castilla y León"


@real
def test_recruiting_in_switzerland() -> None:
    """BFS, px-x-0602000000_107: the first and the last number; symbols have the office's own words."""
    table = only(WORLD / "px" / "px-x-0602000000_107.px")
    frame = rows(table)
    assert (frame["value"][0], frame["value"][-1]) == ("9.1091", "26.7702")
    assert frame.row(0)[:5] == ("5-96", "1", "1", "2", "2004Q1")
    assert table.marks["...."] == "*" and table.dimensions[4].role == "time"
    assert table.dimensions[0].categories[16].label == "84 Öffentliche Verwaltung"


@real
def test_population_of_galicia() -> None:
    """INE and IGE: the totals of 2001 and 2011, and women of 100 and over born abroad."""
    table = only(WORLD / "jsonstat" / "galicia.json")
    names = [one.name for one in table.dimensions]
    found = numbers(rows(table), *names)
    assert found["T", "T", "T", "2001", "T", "pop"] == ("2695880", None)
    assert found["T", "T", "T", "2011", "36", "pop"] == ("954877", None)
    assert {one.name: one.role for one in table.dimensions} == {
        "birth": "geo", "age": "", "gender": "", "time": "time", "residence": "geo", "concept": "metric",
    }  # fmt: skip
    parts = [int(found["T", "T", "T", "2001", one, "pop"][0] or 0) for one in ("15", "27", "32", "36")]
    assert sum(parts) == 2_695_880


@real
def test_short_term_residents_of_england_and_wales() -> None:
    """ONS, ST1117EWla: sexes add up to all of them at every age."""
    table = only(WORLD / "jsonstat" / "ons.json")
    frame = rows(table)
    assert frame["value"][:3].to_list() == ["195074", "96699", "98375"]
    totals = frame.with_columns(pl.col("value").cast(pl.Int64)).pivot("CL_0000035", index="CL_0000304", values="value")
    assert (totals["CI_0000121"] == totals["CI_0000071"] + totals["CI_0000070"]).all()
    assert [one.label for one in table.dimensions[2].categories] == ["All categories: Sex", "Males", "Females"]
