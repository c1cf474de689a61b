"""Is what was compiled kept so that it can only ever give the same answer, and nothing of a release with it?"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from glasshouse.cli.main import main
from glasshouse.errors import GlasshouseBug
from glasshouse.program.tables import kept, store
from glasshouse.program.tables.histogram import Compiled, compile_tables
from glasshouse.program.tables.kept import compiled_tables
from glasshouse.program.tables.rows import Rows
from glasshouse.scenarios.load import Scenario, known_scenarios, load

Asked = tuple[tuple[object, ...], dict[str, object]]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(store.VARIABLE, str(folder))
    monkeypatch.setattr(kept, "WORTH", 0)
    return folder


def asked(scenario: Scenario, *, finest: bool = True) -> Asked:
    """The tables of places and of the areas around."""
    place, unit = scenario.geography.place, scenario.geography.unit
    inner = [table for table in scenario.tables if table.level == place]
    outer = [table for table in scenario.tables if table.level == unit]
    names = [[variable for table in some for variable in table.variables] for some in (inner, outer)]
    return (scenario.schema, inner, names[0]), {"around": outer, "around_present": names[1], "finest": finest}


def same(one: Compiled, other: Compiled) -> bool:
    """To the last bit, and in the same types: compiled code is made for each type."""
    pairs = [*zip((one.cells.codes, one.cells.sizes, *one.cells.classes),
                  (other.cells.codes, other.cells.sizes, *other.cells.classes), strict=True)]  # fmt: skip
    for mine, theirs in ((one.own, other.own), (one.around, other.around)):
        assert (mine is None) == (theirs is None)
        if isinstance(mine, Rows) and isinstance(theirs, Rows):
            assert (mine.variables, mine.differences) == (theirs.variables, theirs.differences)
            pairs += [(mine.partial, theirs.partial), (mine.set_of, theirs.set_of)]
            pairs += zip(mine.recipe[:-2], theirs.recipe[:-2], strict=True)
            for name in ("sums", "combine", "members"):
                a, b = getattr(mine, name), getattr(theirs, name)
                assert isinstance(a, sparse.csr_matrix) and a.shape == b.shape
                pairs += [(a.data, b.data), (a.indices, b.indices), (a.indptr, b.indptr)]
    flags = [(a.flags.writeable, a.flags.aligned, a.flags.c_contiguous) for pair in pairs for a in pair]
    equal = all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)
    return equal and flags == [(True, True, True)] * len(flags) and one.total_known == other.total_known


def not_again(*_: object, **__: object) -> Compiled:
    raise AssertionError("it was compiled again")


@pytest.mark.parametrize("finest", [False, True])
def test_what_is_read_is_what_was_compiled(
    toy: Scenario, cache: Path, finest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, options = asked(toy, finest=finest)
    made = compiled_tables(*arguments, **options)  # type: ignore[arg-type]
    assert same(made, compile_tables(*arguments, **options))  # type: ignore[arg-type]
    monkeypatch.setattr(kept, "compile_tables", not_again)
    assert same(made, compiled_tables(*arguments, **options))  # type: ignore[arg-type]
    (path,) = cache.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_every_scenario_can_be_named(sf1: Scenario, cache: Path) -> None:
    keys = set()
    for name in known_scenarios():
        (schema, tables, present), options = asked(load(name))
        keys.add(store.key_of((schema, tables, present, options)))
    assert len(keys) == len(known_scenarios())
    with pytest.raises(GlasshouseBug):
        store.key_of((sf1.schema, 0.5))


def test_another_question_has_another_name(toy: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    table = toy.tables[1]
    line = replace(table.lines[1], variable="another")
    other = replace(table, lines=(table.lines[0], line, *table.lines[2:]))
    asked_for = [(toy.schema, table), (toy.schema, other), (toy.schema, table, True), (toy.schema, table, 1),
                 (toy.schema, table, "1"), (toy.schema.attributes, table), ((toy.schema, table),)]  # fmt: skip
    keys = [store.key_of(one) for one in asked_for]
    assert len(set(keys)) == len(keys)
    assert keys[0] == store.key_of((spelled_otherwise(toy), table))
    monkeypatch.setattr(store, "_basis", lambda: "other sources")
    assert store.key_of(asked_for[0]) not in keys


def spelled_otherwise(toy: Scenario) -> object:
    """A schema that is equal, and another object."""
    return replace(toy.schema, attributes=tuple(replace(attribute) for attribute in toy.schema.attributes))


def test_what_was_spelled_once_is_remembered_as_long_as_it_lives(toy: Scenario) -> None:
    """The number of a thing that is gone may be another's, whose name must be its own."""
    before, keys = len(store._long), set()
    for number in range(50):
        table = replace(toy.tables[0], title=f"{number} {'x' * store._LONG}")
        keys.add(key := store.key_of((table,)))
        assert store.key_of((table,)) == key and len(store._long) == before + 1
        del table
    assert len(keys) == 50 and len(store._long) == before


def test_the_name_covers_every_source_that_compiles() -> None:
    told = (
        "import glasshouse, sys; before = set(sys.modules); import glasshouse.program.tables.histogram; "
        "print(*(name for name in set(sys.modules) - before if name.startswith('glasshouse.')))"
    )
    found = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout.split()
    assert "glasshouse.program.tables.rows" in found
    assert {name.split(".")[1] for name in found} <= {name.removesuffix(".py") for name in store._SOURCES}


def flipped(at: float) -> Callable[[bytes], bytes]:
    def damage(content: bytes) -> bytes:
        place = int(at * (len(content) - 1))
        return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]

    return damage


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    **{f"a bit at {at:.0%}": flipped(at) for at in (0.0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)},
    "half": lambda content: content[: len(content) // 2],
    "a byte less": lambda content: content[:-1],
    "a block less": lambda content: content[:-64],
    "a block more": lambda content: content + bytes(64),
    "nothing": lambda content: b"",
    "a line": lambda content: b"\n",
    "a list": lambda content: b"[]\n" + content,
    "lists in lists": lambda content: b"[" * 200_000 + b"\n" + content,
    "another size": lambda content: content.replace(b'"codes", "int16", [', b'"codes", "int16", [1', 1),
    "objects": lambda content: content.replace(b'"int64"', b'"object"', 1),
    "without total": lambda content: content.replace(b'"total_known": ', b'"total_known": 1', 1),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_made_again(toy: Scenario, cache: Path, damage: Callable[[bytes], bytes]) -> None:
    arguments, options = asked(toy)
    made = compiled_tables(*arguments, **options)  # type: ignore[arg-type]
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert path.read_bytes() != whole
    assert store.read(path.stem) is None
    assert same(made, compiled_tables(*arguments, **options))  # type: ignore[arg-type]
    assert path.read_bytes() == whole


def test_the_file_of_another_question_is_not_taken(toy: Scenario, cache: Path) -> None:
    arguments, options = asked(toy)
    made = compiled_tables(*arguments, **options)  # type: ignore[arg-type]
    (path,) = cache.iterdir()
    coarse, less = asked(toy, finest=False)
    compiled_tables(*coarse, **less)  # type: ignore[arg-type]
    (other,) = set(cache.iterdir()) - {path}
    path.write_bytes(other.read_bytes())
    assert same(made, compiled_tables(*arguments, **options))  # type: ignore[arg-type]


def with_array(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[store.Kept], store.Kept]:  # type: ignore[type-arg]
    return lambda had: had._replace(arrays={**had.arrays, name: change(had.arrays[name])})


def with_own(**told: object) -> Callable[[store.Kept], store.Kept]:
    return lambda had: had._replace(about={**had.about, "own": {**had.about["own"], **told}})


WRONG: dict[str, Callable[[store.Kept], store.Kept]] = {
    "a cell beyond": with_array("own members indices", lambda cells: cells + np.int32(10**6)),
    "fewer sets": with_array("own set_of", lambda sets: sets[:-1]),
    "a class beyond": with_array("codes", lambda codes: codes + np.int16(9)),
    "a class below": with_array("codes", lambda codes: codes - np.int16(9)),
    "another type": with_array("sizes", lambda sizes: sizes.astype(np.int32)),
    "no classes": lambda had: had._replace(arrays={n: a for n, a in had.arrays.items() if n != "classes 1"}),
    "more differences": with_own(differences=10**6),
    "fewer variables": with_own(variables=["a"]),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_arrays_that_do_not_belong_together_are_made_again(
    toy: Scenario, cache: Path, wrong: Callable[[store.Kept], store.Kept]
) -> None:
    arguments, options = asked(toy)
    made = compiled_tables(*arguments, **options)  # type: ignore[arg-type]
    (path,) = cache.iterdir()
    store.write(path.stem, wrong(kept._kept(made)))
    assert store.read(path.stem) is not None  # as a file it is whole
    assert same(made, compiled_tables(*arguments, **options))  # type: ignore[arg-type]


def _by_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


FOREIGN: dict[str, Callable[[Path], None]] = {
    "others may write it": lambda path: path.chmod(0o602),
    "the group may write it": lambda path: path.chmod(0o620),
    "others may write the folder": lambda path: path.parent.chmod(0o702),
    "a link": _by_link,
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_what_others_could_have_written_is_not_read(toy: Scenario, cache: Path, make: Callable[[Path], None]) -> None:
    arguments, options = asked(toy)
    made = compiled_tables(*arguments, **options)  # type: ignore[arg-type]
    (path,) = cache.iterdir()
    assert store.read(path.stem) is not None
    make(path)
    assert store.read(path.stem) is None
    assert same(made, compiled_tables(*arguments, **options))  # type: ignore[arg-type]


def test_what_another_user_wrote_is_not_read(toy: Scenario, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, options = asked(toy)
    compiled_tables(*arguments, **options)  # type: ignore[arg-type]
    (path,) = cache.iterdir()
    real = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: real + 1)
    assert store.read(path.stem) is None


def test_the_folder_is_the_users_to_choose(toy: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(store.VARIABLE, "off")
    assert store.folder() is None
    monkeypatch.setattr(kept, "WORTH", 0)
    arguments, options = asked(toy)
    compiled_tables(*arguments, **options)  # type: ignore[arg-type]  # nothing to keep it in
    monkeypatch.delenv(store.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert store.folder() == tmp_path / "xdg" / "glasshouse"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store.folder() == tmp_path / ".cache" / "glasshouse"
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(store.VARIABLE, str(tmp_path / "file"))
    compiled_tables(*arguments, **options)  # type: ignore[arg-type]  # it cannot be kept, and is not needed
    assert (tmp_path / "file").read_text() == "no folder"


def test_what_was_used_longest_ago_goes_first(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = store.Kept({"a": np.arange(1000)}, {})
    monkeypatch.setattr(store, "MOST_BYTES", 40_000)
    for number in range(4):
        store.write(f"{number}", some)
        os.utime(cache / f"{number}{store.ENDING}", (number, number))
    assert store.read("0") is not None  # used: now it is the newest
    store.write("4", some)
    assert sorted(path.stem for path in cache.iterdir()) == ["0", "2", "3", "4"]
    store.write("5", store.Kept({"a": np.arange(2000)}, {}))  # more than a quarter of all
    assert store.read("5") is None


def test_nothing_of_a_release_is_kept(tmp_path: Path, cache: Path) -> None:
    """Two counties whose numbers differ in everything leave the same files, to the byte."""
    found = []
    for seed in ("1", "2"):
        county, tables = tmp_path / f"county{seed}", tmp_path / f"{seed}.parquet"
        assert main(["synthesize", "--persons", "300", "--seed", seed, "--out", str(county), "--quiet"]) == 0
        options = ["--scenario", "pl94", "--tables", "P1,P2,P3,P4", "--quiet", "--out"]
        assert main(["tabulate", str(county / "hdf.parquet"), *options, str(tables)]) == 0
        assert main(["reconstruct", str(tables), *options, str(tmp_path / f"rebuilt{seed}"), "--workers", "1"]) == 0
        found.append({path.name: path.read_bytes() for path in cache.iterdir()})
        for path in cache.iterdir():
            path.unlink()
    assert found[0] and found[0] == found[1]
