"""Are the archives of an office read right, refused when they are wrong, and written so that they read the same?"""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl
import pytest

from glasshouse.errors import InputError
from glasshouse.files import archive as archive_module
from glasshouse.files.archive import SafeZip
from glasshouse.files.summary import archive_of, read_rows, segments_of, write_archive
from glasshouse.scenarios.load import Scenario, load

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the folder shared/data is not beside the repository")

SF1 = load("sf1-person")
PL = load("pl94")
P1 = SF1.choose(["P1"])
BLOCK, TRACT = "010730051031000", "01073005103"

Row = tuple[str, str, str, int]


def pack(path: Path, members: Mapping[str, bytes | str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in members.items():
            target.writestr(name, data)
    return path


def rows(path: Path, scenario: Scenario, **options: Iterable[str]) -> list[Row]:
    frames = list(read_rows(path, scenario, **options))  # type: ignore[arg-type]  # collections, in these tests
    for frame in frames:
        assert frame.schema == {"level": pl.String, "geoid": pl.String, "variable": pl.String, "value": pl.Int64}
    return sorted(row for frame in frames for row in frame.iter_rows())


def fixed(number: int, sumlev: str, place: str, component: str = "00", file: str = "SF1ST ") -> bytes:
    """A line by hand: from 1 FILEID, 7 STUSAB, 9 SUMLEV, 12 GEOCOMP, 19 LOGRECNO, 28 STATE, 55 TRACT, 62 BLOCK."""
    line = f"{file}AL{sumlev}{component}00000{number:07d}36{place[:5]:5}".ljust(54) + place[5:].ljust(11)
    return (line.ljust(226) + "Pe\xf1\xf3n\x85 \xbd".ljust(90)).ljust(500).encode("latin-1") + b"\r\n"


GEO = (
    fixed(1, "040", "01")
    + fixed(2, "140", TRACT)
    + fixed(3, "101", TRACT + "1" + "1000")
    + fixed(4, "101", TRACT + "1" + "1001")
)


def p1(*lines: str, geo: bytes = GEO) -> dict[str, bytes | str]:
    """The smallest archive: a header and segment 1, whose lines are given as "LOGRECNO,P0010001"."""
    return {"algeo2010.sf1": geo, "al000012010.sf1": "".join(f"SF1ST,AL,000,01,{line}\r\n" for line in lines)}


GOOD = ("0000001,7", "0000002,7", "0000003,7", "0000004,0")


def refused(path: Path, members: Mapping[str, bytes | str], scenario: Scenario = P1) -> str:
    pack(path, members)
    with pytest.raises(InputError) as caught:
        list(read_rows(path, scenario))
    message = str(caught.value)
    assert path.name in message and "expected" in message
    return message


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "al2010.sf1.zip"


# Reading what was written by hand


def test_sf1_by_hand(path: Path) -> None:
    pack(path, p1(*GOOD))
    assert archive_of(path, SF1) == SF1.archives[0]
    assert rows(path, SF1) == [
        ("block", BLOCK, "P0010001", 7),
        ("state", "01", "P0010001", 7),
        ("tract", TRACT, "P0010001", 7),
    ]
    assert rows(path, SF1, levels=["tract"]) == [("tract", TRACT, "P0010001", 7)]
    assert rows(path, SF1, tables=["P8"]) == []


def test_pl_2010_by_hand(path: Path) -> None:
    geo = b"".join(
        [
            fixed(1, "750", TRACT + "11000", file="PLST  "),
            fixed(2, "150", TRACT + "1", file="PLST  "),
            fixed(3, "050", "01073", file="PLST  "),
            fixed(4, "040", "01", component="01", file="PLST  "),  # the urban part of the state is not a place
            fixed(5, "160", "01", file="PLST  "),  # neither is a level that the scenario does not know
        ]
    )
    line = ["0"] * 144
    line[0], line[71 + 72] = "5", "2"  # P0010001, and the last line of P2
    segment = "".join(f"PLST,AL,000,01,{n:07d},{','.join(line)}\n" for n in range(1, 6))
    pack(path, {"folder/ALgeo2010.PL": geo, "folder/AL000012010.PL": segment.removesuffix("\n")})
    found = rows(path, PL)
    assert archive_of(path, PL) == PL.archives[0]
    assert [row for row in found if row[3]] == [
        ("block", BLOCK, "P0010001", 5),
        ("block", BLOCK, "P0020073", 2),
        ("block_group", TRACT + "1", "P0010001", 5),
        ("block_group", TRACT + "1", "P0020073", 2),
        ("county", "01073", "P0010001", 5),
        ("county", "01073", "P0020073", 2),
    ]
    # A variable that is zero everywhere is known to be published by one row; P3 and P4 were not in the archive.
    assert {row[2] for row in found if not row[3]} == {row[2] for row in found} - {"P0010001", "P0020073"}
    assert len(found) == 3 * 144


def test_pl_2020_by_hand(path: Path) -> None:
    def line(sumlev: str, number: int, code: str) -> str:
        start = f"PLST|AL|{sumlev}|00|00|000|00|{number:07d}|{sumlev}0000US{code}|{code}|3|6|01|01779775|073|H1|"
        return start + "|" * (96 - start.count("|")) + "\n"

    names = line("140", 2, TRACT)[:-2] + '"Pe\xf1a|\n'  # a quote in a name is no quoting
    geo = (line("750", 1, BLOCK) + names).encode("latin-1")
    segment = f"PLST|AL|000|03|0000001|4|4|0|4{'|0' * 6}\nPLST|AL|000|03|0000002|4|4|0|4{'|0' * 6}\n"
    pack(path, {"algeo2020.pl": geo, "al000032020.pl": segment})
    assert archive_of(path, PL) == PL.archives[1]
    assert [row for row in rows(path, PL) if row[3]] == [
        (level, code, variable, 4)
        for level, code in (("block", BLOCK), ("tract", TRACT))
        for variable in ("P0050001", "P0050002", "P0050004")
    ]


def test_a_table_is_published_where_its_segment_has_rows_and_numbers(path: Path) -> None:
    blank = ",".join([""] * 209)
    segment = {"al000172010.sf1": "SF1ST,AL,000,17,0000002,5," + ",".join(["0"] * 208) + "\n"}
    number = next(segment.number for segment in segments_of(SF1) if segment.tables[0].table == "PCT12")
    assert number == 17
    scenario = SF1.choose(["P1", "PCT12"])
    found = rows(pack(path, p1(*GOOD) | segment), scenario)
    assert {row[0] for row in found if row[2].startswith("PCT")} == {"tract"}
    segment["al000172010.sf1"] += f"SF1ST,AL,000,17,0000003,{blank}\nSF1ST,AL,000,17,0000004,{blank}\n"
    assert rows(pack(path, p1(*GOOD) | segment), scenario) == found


def test_small_chunks_read_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(path, p1(*GOOD))
    whole = rows(path, P1)
    monkeypatch.setattr(archive_module, "CHUNK_BYTES", 700)
    assert rows(path, P1) == whole
    assert "line 4: found '-1'" in refused(path, p1(*GOOD[:3], "0000004,-1"))
    monkeypatch.setattr(archive_module, "CHUNK_BYTES", 20)
    assert "a line without an end" in refused(path, p1(*GOOD))


# Refusing what is wrong


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (GOOD[:3], "al000012010.sf1: found no line for LOGRECNO 0000004, a block"),
        ((*GOOD, "0000005,1"), "line 5: found LOGRECNO 0000005; expected a number of the geographic header"),
        ((*GOOD, "0000001,1"), "line 5: found LOGRECNO 0000001 for the second time"),
        ((*GOOD, ",1"), "line 5: found '' in field LOGRECNO"),
        ((*GOOD[:2], "0000003,1,2"), "al000012010.sf1, line 3: found 7 fields; expected 6 fields"),
        ((*GOOD, "5"), "line 5: found 5 fields; expected 6"),
        ((*GOOD[:2], "0000003,many"), "line 3: found 'many' in field P0010001"),
        ((*GOOD[:2], "0000003,1.5"), "line 3: found '1.5' in field P0010001"),
        ((*GOOD[:2], '0000003,"7"'), "line 3: found '\"7\"' in field P0010001"),
        ((*GOOD[:2], "0000003,-7"), "line 3: found '-7' in field P0010001"),
        (
            (*GOOD[:3], "0000004,"),
            "P0010001 blank at 1 of 2 places; expected a number at all places of level block",
        ),
    ],
)
def test_a_wrong_segment_is_refused(path: Path, lines: tuple[str, ...], message: str) -> None:
    assert message in refused(path, p1(*lines))


@pytest.mark.parametrize(
    ("geo", "message"),
    [
        (GEO + b"SF1ST AL\n", "algeo2010.sf1, line 5: found 8 characters; expected 500"),
        (GEO + fixed(4, "101", TRACT + "11002"), "found LOGRECNO 4 more than once"),
        (GEO + fixed(5, "140", TRACT), f"found tract {TRACT} more than once"),
        (GEO + fixed(5, "140", "0107300510"), "line 5: found tract '0107300510 ', which has"),
        (GEO.replace(b"0000004", b"000000X"), "line 4: found '000000X' in field LOGRECNO"),
        (b"", "found an empty file"),
    ],
)
def test_a_wrong_header_is_refused(path: Path, geo: bytes, message: str) -> None:
    assert message in refused(path, p1(*GOOD, geo=geo))


def test_a_wrong_delimited_header_is_refused(path: Path) -> None:
    members = {"algeo2020.pl": b"PLST|AL|040\n", "al000032020.pl": b""}
    assert "algeo2020.pl, line 1: found 3 fields; expected 97" in refused(path, members, PL)


def test_an_archive_of_another_kind_is_refused(path: Path) -> None:
    assert "<st>geo2010.pl or <st>geo2020.pl" in refused(path, p1(*GOOD), PL)
    two = p1(*GOOD) | {"akgeo2010.sf1": GEO}
    assert "holds 2 geographic headers" in refused(path, two)
    with pytest.raises(InputError, match=r"expected exactly one, <st>geo2010\.sf1"):
        archive_of(pack(path, {"readme.txt": b"hello"}), SF1)
    other = path.with_name("tables.csv")
    other.write_text("level,geoid\n")
    assert archive_of(other, SF1) is None


def test_unknown_choices_are_refused(path: Path) -> None:
    pack(path, p1(*GOOD))
    with pytest.raises(InputError, match="unknown table 'P999'"):
        rows(path, SF1, tables=["P999"])
    with pytest.raises(InputError, match="unknown level 'galaxy'"):
        rows(path, SF1, levels=["galaxy"])


# An archive that would do harm


def harmful(path: Path, message: str, **options: int) -> None:
    with pytest.raises(InputError, match=message) as caught:
        SafeZip(path, **options)
    assert path.name in str(caught.value) and "expected" in str(caught.value)


def test_a_zip_bomb_is_refused(path: Path) -> None:
    harmful(pack(path, {"algeo2010.sf1": bytes(50 * 2**20)}), "zip bomb")
    harmful(pack(path, {"a": b"12345"}), "5 bytes when unpacked; expected at most 4", total_bytes=4)
    harmful(pack(path, {str(n): b"" for n in range(1001)}), "1,001 members; expected at most 1,000")


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", "a\\b", "C:x", "c:/x"])
def test_a_name_that_leaves_the_archive_is_refused(path: Path, name: str) -> None:
    harmful(pack(path, {name: b"x"}), "holds a member called")


def test_odd_members_are_refused(path: Path) -> None:
    harmful(pack(path, {"a/x": b"", "b/X": b""}), "two members called 'x'")
    link = zipfile.ZipInfo("link")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as target:
        target.writestr(link, "/etc/passwd")
    harmful(path, "symbolic link")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as target:
        target.writestr("x", b"x")
    harmful(path, "packed by method 14")
    data = bytearray(pack(path, {"x": b"x"}).read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the flag of encryption in the central directory
    path.write_bytes(data)
    harmful(path, "encrypted member")


def test_what_is_not_a_whole_zip_is_refused(path: Path) -> None:
    whole = pack(path, p1(*GOOD)).read_bytes()
    for data in (b"", b"level,geoid\n", whole[: len(whole) // 2], whole[:-30]):
        path.write_bytes(data)
        harmful(path, "not a zip file, or one cut short")
    with pytest.raises(InputError, match="cannot be read"):
        SafeZip(path.with_name("absent.zip"))


def altered(path: Path, text: bytes, *, size: int | None = None, crc: int | None = None, flip: bool = False) -> Path:
    """A zip with one member whose central directory lies, or whose packed bytes are damaged."""
    data = bytearray(pack(path, {"x": text}).read_bytes())
    entry = data.index(b"PK\x01\x02")
    if crc is not None:
        data[entry + 16 : entry + 20] = struct.pack("<I", crc)
    if size is not None:
        data[entry + 24 : entry + 28] = struct.pack("<I", size)
    if flip:
        data[30 + 1 + 3] ^= 0xFF  # in the packed bytes, after the local header and its name
    path.write_bytes(data)
    return path


def test_damage_is_noticed_while_reading(path: Path) -> None:
    text = bytes(range(256)) * 40
    lies = [
        altered(path.with_name("crc.zip"), text, crc=1),
        altered(path.with_name("flip.zip"), text, flip=True),
        altered(path.with_name("more.zip"), text, size=100, crc=zlib.crc32(text[:100])),  # a lie that zipfile believes
        altered(path.with_name("fewer.zip"), text, size=len(text) + 9),
    ]
    for lie in lies:
        refusal = pytest.raises(InputError, match=rf"{lie.name}: member 'x' is damaged")
        with SafeZip(lie) as source, refusal, source.open("x") as stream:
            while stream.read(50):
                pass
    with SafeZip(pack(path, {"folder/": b"", "folder/x": text})) as source, source.open("folder/x") as stream:
        assert source.names == ("folder/x",)
        assert stream.read() == text


# Writing


def places(level: str, codes: Iterable[str], **counts: int) -> list[tuple[str, str, dict[str, int]]]:
    return [(level, code, counts) for code in codes]


@pytest.mark.parametrize(
    ("scenario", "index", "members"),
    [
        (
            SF1.choose(["P1", "P12A", "PCT12"]),
            0,
            ["algeo2010.sf1", "al000012010.sf1", "al000072010.sf1", "al000172010.sf1"],
        ),
        (PL.choose(["P1", "P3"]), 0, ["algeo2010.pl", "al000012010.pl", "al000022010.pl"]),
        (PL, 1, ["algeo2020.pl", "al000012020.pl", "al000022020.pl", "al000032020.pl"]),
    ],
    ids=["sf1", "pl2010", "pl2020"],
)
def test_round_trip(path: Path, scenario: Scenario, index: int, members: list[str]) -> None:
    last = {table.level: table.lines[-1].variable for table in scenario.tables}
    given = [
        *places("tract", [TRACT], **({last["tract"]: 8} if "tract" in last else {"P0010001": 8})),
        *places("block", [BLOCK[:-1] + "1"]),
        *places("block", [BLOCK], P0010001=8, **{last["block"]: 3}),
    ]
    write_archive(path, scenario, scenario.archives[index], iter(given))
    assert archive_of(path, scenario) == scenario.archives[index]
    found = rows(path, scenario)
    assert [row for row in found if row[3]] == sorted(
        (level, code, variable, value) for level, code, counts in given for variable, value in counts.items()
    )
    zeros = [row for row in found if not row[3]]
    published = {line.variable for table in scenario.tables if table.level == "block" for line in table.lines}
    assert {row[2] for row in zeros if row[0] == "block"} == published - {"P0010001", last["block"]}
    assert {row[1] for row in zeros} <= {TRACT, BLOCK[:-1] + "1"}  # the first place of each level
    with zipfile.ZipFile(path) as source:
        names = source.namelist()
    assert names == members


def test_written_lines(path: Path) -> None:
    given = [*places("tract", [TRACT], P0010001=12), *places("block", [BLOCK, BLOCK[:-1] + "1"], P0010001=6)]
    write_archive(path, P1, P1.archives[0], given)
    with zipfile.ZipFile(path) as source:
        assert source.namelist() == ["algeo2010.sf1", "al000012010.sf1"]
        tract, block, _ = source.read("algeo2010.sf1").decode("latin-1").splitlines()
        lines = source.read("al000012010.sf1").decode().splitlines()
    assert lines[:2] == ["SF1ST,AL,000,01,0000001,12", "SF1ST,AL,000,01,0000002,6"]
    assert len(tract) == len(block) == 500
    assert (tract[8:11], tract[27:32], tract[54:65], tract[318:327]) == ("140", "01073", "005103     ", "       12")
    assert block[:25] == "SF1ST AL10100000000000002"
    assert (block[27:29], block[29:32], block[54:60], block[60], block[61:65]) == ("01", "073", "005103", "1", "1000")
    pl2020 = PL.choose(["P1"])
    write_archive(path, pl2020, pl2020.archives[1], given)
    with zipfile.ZipFile(path) as source:
        fields = source.read("algeo2020.pl").decode().splitlines()[1].split("|")
    assert len(fields) == 97
    assert fields[:10] == ["PLST", "AL", "750", "00", "00", "000", "00", "0000002", f"7500000US{BLOCK}", BLOCK]
    assert (fields[12], fields[14], fields[32], fields[33], fields[34]) == ("01", "073", "005103", "1", "1000")
    assert fields[90] == "6"


def test_a_table_given_at_another_level_is_published_at_all_its_places(path: Path) -> None:
    given = [*places("county", ["01001"]), *places("county", ["01073"], P0010001=5), *places("state", ["01"])]
    write_archive(path, P1, P1.archives[0], given)
    assert rows(path, P1) == [("county", "01073", "P0010001", 5)]
    with zipfile.ZipFile(path) as source:
        assert source.read("al000012010.sf1").decode().split() == [
            "SF1ST,AL,000,01,0000001,0",
            "SF1ST,AL,000,01,0000002,5",
        ]


def test_equal_tables_make_equal_private_archives(path: Path) -> None:
    given = places("block", [BLOCK, "72" + BLOCK[2:]], P0010001=1)
    write_archive(path, P1, P1.archives[0], given)
    first = path.read_bytes()
    write_archive(path, P1, P1.archives[0], given)
    assert path.read_bytes() == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == [path.name]
    with zipfile.ZipFile(path) as source:
        assert source.namelist() == ["usgeo2010.sf1", "us000012010.sf1"]
        assert {info.date_time for info in source.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.external_attr >> 16 for info in source.infolist()} == {0o600}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (places("galaxy", ["01"]), "unknown level of the archive 'galaxy'"),
        (places("block", [BLOCK[1:]]), "leading zero"),
        (places("state", ["99"]), "no state has code 99"),
        (places("state", ["01"], P0080001=1), "variable P0080001"),
        (places("state", ["01"], P0010001=-1), "P0010001 is -1"),
        ([], "found no place"),
    ],
)
def test_wrong_places_leave_the_old_archive_alone(
    path: Path, given: list[tuple[str, str, dict[str, int]]], message: str
) -> None:
    path.write_bytes(b"old")
    with pytest.raises(InputError, match=message):
        write_archive(path, P1, P1.archives[0], given)
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


def test_an_archive_of_zeros_is_no_bomb(path: Path) -> None:
    """The emptiest tables we can write stay well below the ratio at which an archive is refused."""
    codes = [f"01073{tract:06d}" for tract in range(4000)]
    scenario = SF1.choose(["PCT12"])
    write_archive(path, scenario, scenario.archives[0], places("tract", codes))
    assert len(rows(path, scenario)) == 209


# Against the office's own description


@needs_data
def test_the_columns_of_every_segment_are_the_official_ones() -> None:
    official = json.loads(gzip.decompress((DATA / "sf1_spec" / "segments.json.gz").read_bytes()))
    found = 0
    for segment in segments_of(SF1):
        variables = segment.variables(SF1.patterns[0])
        assert [index for index, _, _ in variables] == list(range(5, segment.fields))
        ours = [variable for _, _, variable in variables]
        # Of segment 15 there is only a list ("mod", cut to what a database can hold) without the other four links.
        columns = official[f"SF1_{segment.number:05d}{'mod' if segment.number == 15 else ''}.xsd"]
        assert columns.index("LOGRECNO") == (0 if segment.number == 15 else 4)
        # Two spellings of that list are its own: H00010001, and H011A0001 with a digit too many.
        theirs = [re.sub(r"^(\D+\d{3}[A-Z])0(\d{3})$", r"\1\2", name) for name in columns]
        theirs = ["H0010001" if name == "H00010001" else name for name in theirs]
        assert ours == theirs[theirs.index("LOGRECNO") + 1 :]
        found += 1
    assert found == 47


@needs_data
def test_real_tracts_survive_the_round_trip(path: Path) -> None:
    source = pl.read_csv(DATA / "sf1_tracts" / "tables.csv.gz", schema_overrides={"geoid": pl.String})
    columns = ["level", "geoid", "variable", "value"]
    given = {
        (str(level), str(code)): dict(zip(part["variable"], part["value"], strict=True))
        for (level, code), part in source.group_by("level", "geoid", maintain_order=True)
    }
    write_archive(path, SF1, SF1.archives[0], ((level, code, counts) for (level, code), counts in given.items()))
    found = pl.concat(read_rows(path, SF1)).filter(pl.col("value") > 0)
    assert found.sort(columns).equals(source.select(columns).sort(columns))
