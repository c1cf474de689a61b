"""Does the ledger keep whole entries, and nothing else, whatever happens to its files?"""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from glasshouse.engine.ledger import Entry, Ledger, Notes, Refusal, peek
from glasshouse.errors import GlasshouseBug, InputError, MachineFailed

ABOUT = {"command": "reconstruct", "parameters": {"seed": 1}, "started": "2026-01-01T00:00:00+00:00"}


def frames() -> dict[str, pl.DataFrame]:
    return {
        "records": pl.DataFrame(
            {
                "block": ["0010001", None, "é\n"],
                "count": pl.Series([1, None, 2**62], dtype=pl.Int64),
                "age": pl.Series([0, 255, None], dtype=pl.UInt8),
                "share": [0.1, float("inf"), None],
                "certain": [True, False, None],
                "columns": [["a"], [], None],
            }
        ),
        "places": pl.DataFrame(schema={"block": pl.String, "solvar": pl.Float64}),
        "nothing": pl.DataFrame(),
    }


def entry(unit: str = "36001000100", state: str = "exact") -> Entry:
    refused = Refusal(state, ({"geoid": "360010001001000", "lower": 1, "upper": None},))
    return Entry(unit, Notes(places=3, seconds=1.5, counts={"left": 1, "right": 2}, refused=refused), frames())


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "out" / "ledger", "key-1")
    ledger.begin(ABOUT)
    return ledger


def only_file(ledger: Ledger, kind: str = "unit") -> Path:
    (path,) = ledger.folder.glob("*." + kind)
    return path


def test_what_is_put_is_read(ledger: Ledger) -> None:
    ledger.put(entry())
    found = ledger.read("36001000100")
    assert (found.unit, found.notes) == ("36001000100", entry().notes)
    assert set(found.frames) == {"records", "places", "nothing"}
    for name, frame in frames().items():
        assert_frame_equal(found.frames[name], frame)
    assert ledger.finished() == {"36001000100"} and ledger.held() == ["36001000100"]


def test_an_entry_without_frames(ledger: Ledger) -> None:
    ledger.put(Entry("1", Notes(), {}))
    assert ledger.read("1") == Entry("1", Notes(), {})
    assert ledger.finished() == {"1"}


def test_the_same_entry_gives_the_same_bytes(ledger: Ledger) -> None:
    """Convention 8."""
    ledger.put(entry())
    before = only_file(ledger).read_bytes()
    notes, again = entry().notes, reversed(frames().items())
    turned = replace(notes, counts=dict(reversed(notes.counts.items())))
    ledger.put(Entry("36001000100", turned, dict(again)))
    assert only_file(ledger).read_bytes() == before


def test_the_layout_is_a_line_of_json_and_arrow_files(ledger: Ledger) -> None:
    ledger.put(entry())
    line, _, rest = only_file(ledger).read_bytes().partition(b"\n")
    header = json.loads(line)
    assert set(header) == {"sha256", "key", "unit", "notes", "frames"}
    assert [name for name, _ in header["frames"]] == ["nothing", "places", "records"]
    assert sum(size for _, size in header["frames"]) == len(rest)
    assert rest.startswith(b"ARROW1")


def test_files_are_for_the_owner_alone(ledger: Ledger) -> None:
    """Convention 9."""
    ledger.put(entry())
    ledger.put(entry("2"), final=False)
    assert {stat.S_IMODE(path.stat().st_mode) for path in ledger.folder.iterdir()} == {0o600}
    assert stat.S_IMODE(ledger.folder.stat().st_mode) == 0o700
    ledger.folder.chmod(0o755)
    ledger.begin(ABOUT)
    assert stat.S_IMODE(ledger.folder.stat().st_mode) == 0o700


def test_a_damaged_byte_anywhere_is_seen(ledger: Ledger) -> None:
    ledger.put(entry())
    path = only_file(ledger)
    good = path.read_bytes()
    assert good.index(b"\n") < 500
    for place in [*range(600), *range(600, len(good), 97), len(good) - 1]:
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(InputError, match="run the command again"):
            ledger.read("36001000100")
        assert ledger.finished() == set() and not path.exists(), f"byte {place}"


@pytest.mark.parametrize("size", [0, 1, 12, 76, 77, 300, -1, -700])
def test_an_entry_cut_short_is_not_there(ledger: Ledger, size: int) -> None:
    ledger.put(entry())
    path = only_file(ledger)
    path.write_bytes(path.read_bytes()[:size])
    assert ledger.held() == ["36001000100"]  # all units are done: one that was damaged since is not left out in silence
    with pytest.raises(MachineFailed, match="run the command again"):
        ledger.read("36001000100")
    assert ledger.finished() == set() and not path.exists()


def test_an_entry_with_a_byte_too_many_is_not_there(ledger: Ledger) -> None:
    ledger.put(entry())
    path = only_file(ledger)
    path.write_bytes(path.read_bytes() + b"\0")
    assert ledger.finished() == set()


def test_an_entry_under_the_name_of_another_unit_is_not_there(ledger: Ledger) -> None:
    ledger.put(entry())
    only_file(ledger).rename(ledger.folder / "999.unit")
    assert ledger.finished() == set() and list(ledger.folder.glob("*.unit")) == []


def test_an_entry_of_another_run_is_removed(ledger: Ledger) -> None:
    ledger.put(entry("1"))
    Ledger(ledger.folder, "key-2").put(entry("2"))
    with pytest.raises(InputError, match="another run"):
        ledger.read("2")
    assert ledger.finished() == {"1"} and not (ledger.folder / "2.unit").exists()


def test_an_entry_that_is_not_there(ledger: Ledger) -> None:
    with pytest.raises(InputError, match=r"17\.open.*missing.*run the command again"):
        ledger.read("17")


def test_open_then_final(ledger: Ledger) -> None:
    ledger.put(entry(state="open"), final=False)
    assert ledger.finished() == set() and ledger.held() == ["36001000100"]
    assert ledger.read("36001000100").notes.refused.reason == "open"
    ledger.put(entry(state="final"))
    assert ledger.finished() == {"36001000100"} and ledger.held() == ["36001000100"]
    assert ledger.read("36001000100").notes.refused.reason == "final"
    assert list(ledger.folder.glob("*.open")) == []


def test_the_final_entry_goes_first(ledger: Ledger) -> None:
    """A kill between its writing and the removal of the open one leaves both."""
    ledger.put(entry(state="final"))
    ledger.put(entry(state="open"), final=False)
    assert ledger.read("36001000100").notes.refused.reason == "final"
    assert peek(ledger.folder).open == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "unit", ["", ".", "..", "../1", "a/b", "1.unit", "1 ", "1\n", "é", "run.json", "\0", "1" * 200]
)
def test_no_unit_names_a_path(ledger: Ledger, unit: str) -> None:
    with pytest.raises(GlasshouseBug):
        ledger.put(entry(unit))
    with pytest.raises(GlasshouseBug):
        ledger.read(unit)


def test_begin_again_goes_on(ledger: Ledger) -> None:
    ledger.put(entry())
    ledger.tell(units=1400)
    again = Ledger(ledger.folder, "key-1")
    again.begin(ABOUT | {"started": "2026-02-02T00:00:00+00:00"})
    assert again.finished() == {"36001000100"}
    told = json.loads((ledger.folder / "run.json").read_text())
    assert told["started"] == ABOUT["started"] and told["resumed"] == 1 and told["units"] == 1400
    again.begin(ABOUT)
    assert json.loads((ledger.folder / "run.json").read_text())["resumed"] == 2


def test_begin_with_another_key_drops_what_is_there(ledger: Ledger) -> None:
    ledger.put(entry("1"))
    ledger.put(entry("2"), final=False)
    (ledger.folder / "mine.txt").touch()
    other = Ledger(ledger.folder, "key-2")
    other.begin({"command": "vary"})
    assert sorted(path.name for path in ledger.folder.iterdir()) == ["mine.txt", "run.json"]
    told = json.loads((ledger.folder / "run.json").read_text())
    assert (told["key"], told["command"], told["resumed"]) == ("key-2", "vary", 0) and told["started"]


def test_begin_without_a_readable_description_keeps_the_entries_of_this_run(ledger: Ledger) -> None:
    ledger.put(entry("1"))
    (ledger.folder / "run.json").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        peek(ledger.folder)
    ledger.begin(ABOUT)
    assert ledger.finished() == {"1"}


def test_what_a_kill_left_half_written_is_removed(ledger: Ledger) -> None:
    for name in (".glasshouse-ab_c12x9", ".glasshouse-q", ".mine"):
        (ledger.folder / name).touch()
    assert ledger.held() == []
    ledger.begin(ABOUT)
    assert sorted(path.name for path in ledger.folder.iterdir()) == [".mine", "run.json"]


def test_a_ledger_where_none_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "ledger"):
        with pytest.raises(InputError, match=r"cannot (keep|be made)"):
            Ledger(folder, "key").begin(ABOUT)
    assert (tmp_path / "file").stat().st_mode & 0o777 != 0o700


def test_telling_before_beginning_is_a_bug(tmp_path: Path) -> None:
    with pytest.raises(GlasshouseBug):
        Ledger(tmp_path, "key").tell(units=3)


def test_forget(ledger: Ledger) -> None:
    ledger.put(entry())
    ledger.forget()
    assert not ledger.folder.exists()
    ledger.forget()


def test_peek(ledger: Ledger) -> None:
    seen = peek(ledger.folder)
    assert seen is not None and (seen.finished, seen.open, seen.last) == (0, 0, None)
    ledger.tell(units=3)
    ledger.put(entry("1"))
    ledger.put(entry("2"))
    ledger.put(entry("3"), final=False)
    seen = peek(ledger.folder)
    assert seen is not None and (seen.finished, seen.open) == (2, 1)
    assert seen.last == max(path.stat().st_mtime for path in ledger.folder.glob("[123].*"))
    assert (seen.about["command"], seen.about["units"], seen.about["key"]) == ("reconstruct", 3, "key-1")
    ledger.forget()
    assert peek(ledger.folder) is None


def test_a_description_that_cannot_be_read_any_more_is_no_bug_of_ours(tmp_path: Path) -> None:
    """Found by the fault harness: `reidentify`, when the disk failed between the beginning and the plan."""
    ledger = Ledger(tmp_path / "ledger", "key")
    ledger.begin({})
    (tmp_path / "ledger" / "run.json").write_bytes(b"{")
    with pytest.raises(InputError, match="cannot be read any more; run the command again"):
        ledger.tell(units=3)
    ledger.begin({})
    ledger.tell(units=3)
