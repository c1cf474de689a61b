"""Does `glasshouse audit` say what is wrong with a configuration, before it does anything, and what it will do?"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from glasshouse.commands.auditing.config import Config, Input, config_path, read_config
from glasshouse.commands.auditing.files import files_of
from glasshouse.commands.auditing.steps import DISPENSABLE, steps_of
from tests.running import Ended, good, tool

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
OWN = EXAMPLES / "own-country"
HEAD = 'scenario = "sf1-person"\n'
SYNTHETIC = HEAD + "[synthetic]\npersons = 300\n"


def audit(folder: Path, config: str | bytes, *more: object, name: str = "mine.toml") -> Ended:
    """The command with a configuration of one's own, into a folder that is not there."""
    path = folder / name
    path.write_bytes(config if isinstance(config, bytes) else config.encode())
    return tool("audit", "--config", path, "--out", folder / "out", "--workers", 1, "--quiet", *more)


def refused(ended: Ended, folder: Path, *patterns: str) -> None:
    """A line for each mistake, in any order, and nothing written."""
    assert ended.code == 2 and "Traceback" not in ended.err and not ended.out, ended
    lines = ended.err.splitlines()
    assert len(lines) == len(patterns) and all(line.startswith("glasshouse: ") for line in lines), ended.err
    for pattern in patterns:
        assert any(re.search(pattern, line) for line in lines), (pattern, ended.err)
    assert not (folder / "out").exists()


# Mistakes

MISTAKES = {
    "unknown key": (SYNTHETIC.replace("[", "sed = 1\n[", 1), "unknown key 'sed'.*known: .*scenario, seed, .*title"),
    "unknown key inside": (SYNTHETIC + "persns = 3\n", r"unknown key 'synthetic\.persns'.*synthetic\.persons"),
    "unknown section": (SYNTHETIC + "[leak]\nblocks = 3\n", "unknown key 'leak'.*leaks"),
    "unknown threshold": (
        SYNTHETIC + "[thresholds]\ncertain = 0.3\n",
        r"'thresholds\.certain'.*thresholds\.share_certain",
    ),
    "a text for a number": (
        HEAD + '[synthetic]\npersons = "many"\n',
        r"'synthetic\.persons' is \"many\"; expected a whole number",
    ),
    "a part of a person": (
        HEAD + "[synthetic]\npersons = 300.5\n",
        r"'synthetic\.persons' is 300\.5; expected a whole number",
    ),
    "true for a number": (SYNTHETIC + "[leaks]\nblocks = true\n", r"'leaks\.blocks' is true; expected a whole number"),
    "a number for yes or no": (
        SYNTHETIC + "[attackers]\nperfect = 1\n",
        r"'attackers\.perfect' is 1; expected true or false",
    ),
    "a number for a text": (SYNTHETIC.replace('"sf1-person"', "7"), "'scenario' is 7; expected a text"),
    "a number for a section": (HEAD + "synthetic = 4\n", "'synthetic' is 4; expected a section"),
    "a text for a list": (SYNTHETIC.replace("[", 'tables = "P1"\n[', 1), "'tables' is \"P1\"; expected a list"),
    "a list for lists": (SYNTHETIC + '[attackers]\nlists = "x"\n', r"'attackers\.lists' is \"x\"; expected a section"),
    "no scenario": ("[synthetic]\n", "'scenario' is missing; expected a text"),
    "a threshold above 1": (
        SYNTHETIC + "[thresholds]\nshare_certain = 1.5\n",
        r"'thresholds\.share_certain' is 1\.5; expected a number from 0 to 1",
    ),
    "a threshold below 0": (
        SYNTHETIC + "[thresholds]\nposterior = -0.1\n",
        r"'thresholds\.posterior' is -0\.1; expected a number from 0 to 1",
    ),
    "a threshold of nothing": (
        SYNTHETIC + "[thresholds]\nsolvar_mean = nan\n",
        r"'thresholds\.solvar_mean' is nan; expected a finite number",
    ),
    "few persons": (HEAD + "[synthetic]\npersons = 3\n", r"'synthetic\.persons' is 3; expected .*at least 200"),
    "no time": (SYNTHETIC.replace("[", "minutes = 0\n[", 1), "'minutes' is 0; expected .*more than 0"),
    "a prior that is sure": (
        SYNTHETIC + "[noise]\nrho = 1\nprior = 1.0\n",
        r"'noise\.prior' is 1\.0; expected .*less than 1",
    ),
    "a low public threshold": (
        SYNTHETIC + "[public]\nthreshold = 2\n",
        r"'public\.threshold' is 2; expected .*at least 3",
    ),
    "another model": (
        SYNTHETIC + '[occupancy]\nscenario = "subsidised-housing"\nmodel = "x"\n',
        r"'occupancy\.model' is \"x\"; expected one of 'sharp' or 'paper'",
    ),
    "both noises": (SYNTHETIC + '[noise]\nbudget = "paper-2020"\nrho = 1.0\n', "'noise'.*either budget or rho"),
    "neither noise": (SYNTHETIC + "[noise]\nprior = 0.5\n", "'noise'.*either budget or rho"),
    "both sources": (SYNTHETIC + '[input]\ntables = "x"\n', r"expected either \[input\] with files, or \[synthetic\]"),
    "neither source": (HEAD, r"expected either \[input\] with files, or \[synthetic\]"),
    "no file at all": (HEAD + "[input]\n", r"\[input\]: expected tables, or records"),
    "a file that is not there": (
        HEAD + '[input]\ntables = "gone.csv"\n',
        r"'input\.tables' is gone\.csv: there is no such file",
    ),
    "a list that is not there": (
        SYNTHETIC + '[attackers.lists]\nmine = "gone.csv"\n',
        r"'attackers\.lists\.mine' is gone\.csv: there is no such file",
    ),
    "a sample of nobody": (
        SYNTHETIC + "[microdata]\narea = 9\ncategory = 9\nsample = 0.0\n",
        r"mine\.toml: .*sample 0; expected",
    ),
    "a name that no file can have": (
        HEAD + f'[input]\ntables = "{"x" * 5_000}"\n',
        r"'input\.tables' is x{200}: there is no such file",
    ),
    "a folder for a file": (HEAD + '[input]\nrecords = "."\n', r"'input\.records' is \.: there is no such file"),
    "an unknown scenario": (SYNTHETIC.replace("sf1-person", "sf2"), "unknown scenario 'sf2'; known: .*sf1-person"),
    "an unknown table": (SYNTHETIC.replace("[", 'tables = ["P1", "Q1"]\n[', 1), "unknown table 'Q1'; known: .*P12"),
    "an unknown plan": (
        SYNTHETIC + '[protections]\nplan = "nope"\n',
        "unknown plan 'nope'; known: audit, claims, occupancy, standard",
    ),
    "half a line": ("scenario = \n", "not valid TOML.*line 1"),
    "a key twice": (HEAD + HEAD + "[synthetic]\n", "not valid TOML"),
    "code": ("import os\nos.system('touch x')\n", "not valid TOML"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_said_in_one_line_before_anything_is_done(tmp_path: Path, name: str) -> None:
    config, pattern = MISTAKES[name]
    refused(audit(tmp_path, config), tmp_path, pattern)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.toml"]


LATE = {
    "claims": (SYNTHETIC + '[claims]\nscenario = "nope"\n', "unknown scenario 'nope'"),
    "occupancy": (SYNTHETIC + '[occupancy]\nscenario = "nope"\n', "unknown scenario 'nope'"),
    "setting": (SYNTHETIC + '[protections]\nsettings = ["nope"]\n', "unknown setting 'nope'; known: .*round to 3"),
    "budget": (SYNTHETIC + '[noise]\nbudget = "nope"\n', "'nope'"),
    "query": (SYNTHETIC + '[noise]\nbudget = "paper-2020"\nquery = "nope"\n', "'nope'"),
    "pick": (SYNTHETIC + '[claims]\nscenario = "dhc-household"\npick = "nope"\n', "'?nope"),
}


@pytest.mark.parametrize("name", LATE)
def test_a_name_of_a_later_step_is_looked_up_before_the_first(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("a step was begun")

    monkeypatch.setattr("glasshouse.commands.auditing.steps.Ask.__call__", never)
    config, pattern = LATE[name]
    refused(audit(tmp_path, config), tmp_path, pattern)


def test_two_mistakes_have_a_line_each(tmp_path: Path) -> None:
    config = 'scenario = 5\nfoo = 1\n[synthetic]\npersons = "many"\n[thresholds]\nshare_certain = 2\n'
    refused(
        audit(tmp_path, config), tmp_path, "'scenario' is 5", "unknown key 'foo'", r"'synthetic\.persons'",
        r"'thresholds\.share_certain'",
    )  # fmt: skip


def test_a_scenario_that_is_not_known_is_said_with_the_file_and_the_key(tmp_path: Path) -> None:
    """Found by the fuzzer: the complaint named the scenario, but not the configuration."""
    text = SYNTHETIC.replace("sf1-person", "sf1-persoan") + '[claims]\nscenario = "dhc"\n'
    known = r"unknown scenario '{}'; known: .*pl94"
    refused(
        audit(tmp_path, text),
        tmp_path,
        r"mine\.toml: 'scenario': " + known.format("sf1-persoan"),
        r"mine\.toml: 'claims\.scenario': " + known.format("dhc"),
    )


def test_two_files_that_are_not_there_have_a_line_each(tmp_path: Path) -> None:
    config = HEAD + '[input]\ntables = "a.csv"\nrecords = "b.csv"\n[attackers.lists]\nmine = "c.csv"\n'
    refused(audit(tmp_path, config), tmp_path, r"a\.csv", r"b\.csv", r"c\.csv")


def test_mistakes_are_told_to_scripts_too(tmp_path: Path) -> None:
    ended = audit(tmp_path, SYNTHETIC + "x = 1\n", "--json")
    assert ended.code == 2 and "unknown key 'synthetic.x'" in ended.json["error"]
    assert not (tmp_path / "out").exists()


def test_a_wrong_entry_of_a_list_says_what_belongs_there(tmp_path: Path) -> None:
    ended = audit(tmp_path, SYNTHETIC.replace("[", 'tables = ["P1", 3]\n[', 1))
    refused(ended, tmp_path, r"'tables\.1' is 3; expected a text")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    refused(audit(tmp_path, b'scenario = "\xff\xfe"'), tmp_path, "not UTF-8 at byte 12")
    refused(audit(tmp_path, b"\x00\x01"), tmp_path, "not valid TOML")


def test_a_configuration_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.toml", tmp_path):
        refused(tool("audit", "--config", path, "--out", tmp_path / "out"), tmp_path, "there is no such file")


def test_without_a_folder_to_write_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SYNTHETIC)
    refused(tool("audit", "--config", tmp_path / "mine.toml"), tmp_path, "--out is missing")


def test_an_odd_text_of_the_file_stays_on_its_line(tmp_path: Path) -> None:
    """A key with a line end or an escape sequence in it writes no line of its own on the terminal."""
    ended = audit(tmp_path, SYNTHETIC + '"a\\nglasshouse: all is well\\u001b[2J" = 1\n')
    assert ended.code == 2 and len(ended.err.splitlines()) == 1 and "\x1b" not in ended.err


# What the file may hold


def parts(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "", schema
    yield from schema["$defs"].items()


def test_the_schema_describes_every_key() -> None:
    schema = good(tool("audit", "--schema")).out
    told = json.loads(schema)
    assert set(told["properties"]) == set(Config.model_fields)
    for name, part in parts(told):
        assert part["type"] == "object" and part["additionalProperties"] is False, name
        for key, one in part["properties"].items():
            kinds = one.get("anyOf", [one])
            assert all(("type" in kind) or ("$ref" in kind) or ("enum" in kind) for kind in kinds), (name, key)
            for kind in kinds:
                if "$ref" in kind:
                    assert kind["$ref"].removeprefix("#/$defs/") in told["$defs"]
    for field, info in Config.model_fields.items():
        annotation: Any = info.annotation
        for option in (annotation, *getattr(annotation, "__args__", ())):
            if hasattr(option, "model_fields"):
                there = told["$defs"][option.__name__]
                assert set(there["properties"]) == set(option.model_fields), field
                assert there["description"]
    assert told["required"] == ["scenario"]


def test_every_default_is_within_the_schema() -> None:
    told = json.loads(tool("audit", "--schema").out)
    limits = {"minimum": float.__ge__, "maximum": float.__le__, "exclusiveMinimum": float.__gt__}
    for name, part in parts(told):
        for key, one in part["properties"].items():
            for word, holds in limits.items():
                if word in one and isinstance(one.get("default"), (int, float)):
                    assert holds(float(one["default"]), float(one[word])), (name, key)


def test_the_built_in_configuration_reads_back(tmp_path: Path) -> None:
    shown = good(tool("audit", "--show-config")).out
    (tmp_path / "again.toml").write_text(shown, encoding="utf-8")
    assert read_config(tmp_path / "again.toml") == read_config(config_path(None))
    assert set(tomllib.loads(shown)) <= set(Config.model_fields)
    mine = good(tool("audit", "--show-config", "--config", tmp_path / "again.toml"))
    assert mine.out == shown


def test_the_built_in_configuration_sets_no_threshold_and_uses_everything() -> None:
    """`make audit` ends with 0, whatever it finds."""
    config = read_config(config_path(None))
    assert all(limit is None for _, limit in config.thresholds)
    steps = steps_of(config, files_of(config, Path("nowhere")))
    assert {step.name: step.without for step in steps if step.without} == {"bounds": "every number is printed exactly"}


def test_paths_are_beside_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, elsewhere = tmp_path / "there", tmp_path / "elsewhere"
    (there / "data").mkdir(parents=True)
    elsewhere.mkdir()
    (there / "data" / "t.csv").write_text("level,geoid,table,variable,value\n")
    (there / "data" / "plan.toml").write_text("")
    (there / "own").mkdir()
    (there / "own" / "scenario.toml").write_text("")
    config = """
    scenario = "own"
    [input]
    tables = "data/t.csv"
    geometry = "../there/data/t.csv"
    [attackers.lists]
    mine = "data/t.csv"
    [noise]
    budget = "data/plan.toml"
    [claims]
    scenario = "own"
    [protections]
    plan = "data/plan.toml"
    """
    (there / "mine.toml").write_text(config)
    monkeypatch.chdir(elsewhere)
    found = read_config(Path(os.path.relpath(there / "mine.toml")))
    assert found.input is not None and found.claims is not None
    assert found.input.tables is not None and found.input.tables.samefile(there / "data" / "t.csv")
    assert found.attackers.lists["mine"].samefile(there / "data" / "t.csv")
    assert found.noise is not None and found.protections is not None
    for name, file in ((found.noise.budget, "data/plan.toml"), (found.protections.plan, "data/plan.toml"),
                       (found.scenario, "own"), (found.claims.scenario, "own")):  # fmt: skip
        assert Path(name).samefile(there / file)
    absolute = config.replace("data/t.csv", str(there / "data" / "t.csv"), 1)
    (there / "mine.toml").write_text(absolute)
    assert read_config(there / "mine.toml").input == Input(
        tables=there / "data" / "t.csv", geometry=there / ".." / "there" / "data" / "t.csv"
    )
    monkeypatch.chdir(there)
    (elsewhere / "mine.toml").write_text(config)
    ended = tool("audit", "--config", elsewhere / "mine.toml", "--out", tmp_path / "out")
    refused(ended, tmp_path, r"input\.tables.*data/t\.csv", r"attackers\.lists\.mine.*data/t\.csv")


def test_a_preset_is_a_file_beside_the_configuration_too(tmp_path: Path) -> None:
    (tmp_path / "preset.toml").write_text("")
    (tmp_path / "mine.toml").write_text(SYNTHETIC + 'preset = "preset.toml"\n')
    found = read_config(tmp_path / "mine.toml")
    assert found.synthetic is not None and Path(found.synthetic.preset).samefile(tmp_path / "preset.toml")


def test_texts_of_the_file_are_never_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that looks like an option of a command is not taken for one."""
    asked: list[list[str]] = []

    def note(self: Any, name: str, function: Any, *args: object, **given: object) -> None:
        asked.append([str(one) for one in (*args, *given.values())])
        raise KeyboardInterrupt

    monkeypatch.setattr("glasshouse.commands.auditing.steps.Ask.__call__", note)
    audit(tmp_path, HEAD.replace("\n", '\ntitle = "--help $(touch x) `touch y`"\n') + "[synthetic]\n")
    assert asked and not any("touch" in one for words in asked for one in words)
    assert {path.name for path in tmp_path.iterdir()} <= {"mine.toml", "out"}


# The plan


def planned(folder: Path, config: str, *more: object) -> list[dict[str, Any]]:
    (folder / "mine.toml").write_text(config)
    before = sorted(folder.rglob("*"))
    ended = good(tool("audit", "--config", folder / "mine.toml", "--dry-run", "--json", *more))
    assert sorted(folder.rglob("*")) == before
    said = ended.json
    assert said["dry_run"] is True
    steps: list[dict[str, Any]] = said["steps"]
    told = sum(step["seconds_about"] or 0 for step in steps)
    assert abs(said["seconds_about"] - told) <= len(steps)  # each is rounded
    return steps


def left_out(steps: list[dict[str, Any]]) -> dict[str, str]:
    return {step["step"]: step["left_out"] for step in steps if step["left_out"]}


def test_a_dry_run_lists_every_step_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = SYNTHETIC + '[claims]\nscenario = "dhc-household"\n'
    steps = planned(tmp_path, config, "--out", tmp_path / "out")
    assert [step["step"] for step in steps] == [
        "synthesize", "tabulate", "check", "bounds", "reconstruct", "vary", "leaks", "reidentify", "claims",
        "occupancy", "prove", "noise", "compare",
    ]  # fmt: skip
    assert set(left_out(steps)) == {"bounds", "occupancy", "prove", "noise", "compare"}
    lines = good(tool("audit", "--config", tmp_path / "mine.toml", "--dry-run")).out.splitlines()
    assert "about 300 persons" in lines[0] and "nothing was done yet" in lines[-1]
    for step, line in zip(steps, lines[1:-1], strict=True):
        assert line.split()[0] == step["step"] and step["says"] in line
        assert (f"left out: {step['left_out']}" in line) if step["left_out"] else re.search(r"about \d+ (s|min)$", line)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_tables_alone_leave_out_what_needs_the_truth_and_say_so(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("level,geoid,table,variable,value\nblock,990010001001001,P1,P0010001,3\n")
    config = HEAD + (
        '[input]\ntables = "t.csv"\n[claims]\nscenario = "dhc-household"\n'
        '[occupancy]\nscenario = "subsidised-housing"\n[protections]\n'
    )
    why = left_out(planned(tmp_path, config))
    left = {"synthesize", "tabulate", "bounds", "reidentify", "claims", "occupancy", "prove", "noise", "compare"}
    assert set(why) == left
    assert "truth" in why["reidentify"] and why["compare"] == why["reidentify"]
    assert "households" in why["claims"] and "properties" in why["occupancy"]


def test_records_without_an_attacker_say_that_nobody_looks_for_people(tmp_path: Path) -> None:
    rows = (OWN / "records.csv").read_text().splitlines()
    named = [f"person_id,{rows[0]}", *(f"{number},{row}" for number, row in enumerate(rows[1:]))]
    (tmp_path / "records.csv").write_text("\n".join(named) + "\n")
    head = f'scenario = "{OWN / "scenario"}"\n[input]\nrecords = '
    config = head + '"records.csv"\n[attackers]\nperfect = false\n'
    why = left_out(planned(tmp_path, config))
    assert "no attacker" in why["reidentify"] and "tabulate" not in why and "synthesize" in why
    assert set(left_out(planned(tmp_path, config.replace("false", "true")))) == set(why) - {"reidentify"}
    nameless = left_out(planned(tmp_path, f'{head}"{OWN / "records.csv"}"\n'))
    assert "person_id" in nameless["reidentify"]


def test_one_table_has_no_other_to_be_withheld(tmp_path: Path) -> None:
    one = SYNTHETIC.replace("[", 'tables = ["P12"]\n[', 1)
    assert "one table" in left_out(planned(tmp_path, one))["leaks"]
    assert "0" in left_out(planned(tmp_path, SYNTHETIC + "[leaks]\nblocks = 0\n"))["leaks"]


FULL = (
    f'scenario = "{OWN / "scenario"}"\n{{}}[synthetic]\npersons = 20000\n[claims]\nscenario = "dhc-household"\n'
    '[occupancy]\nscenario = "subsidised-housing"\n[proofs]\n[noise]\nrho = 0.1\n[protections]\n'
)


def test_less_time_leaves_out_more_and_in_the_stated_order(tmp_path: Path) -> None:
    *dispensable, last = DISPENSABLE
    assert last == "bounds"  # counted tables hide nothing: it is left out anyway

    def planned_but_bounds(config: str) -> list[dict[str, Any]]:
        return [step for step in planned(tmp_path, config) if step["step"] != "bounds"]

    every = planned_but_bounds(FULL.format(""))
    whole = sum(step["seconds_about"] for step in every)
    assert not left_out(every)
    previous, seen = -1, set()
    for share in (2.0, 0.98, 0.5, 0.3, 0.2, 0.1, 0.01):
        minutes = f"minutes = {share * whole / 60:.4f}\n"
        steps = planned_but_bounds(FULL.format(minutes))
        gone = left_out(steps)
        assert [name for name in dispensable if name in gone] == dispensable[: len(gone)]  # the first so many
        assert all("minutes does not allow it" in why for why in gone.values())
        assert len(gone) >= previous
        kept = sum(step["seconds_about"] or 0 for step in steps)
        assert kept <= share * whole + len(steps) or set(gone) == set(dispensable)
        if gone:  # with the last of them it would have been too much
            latest = next(step for step in every if step["step"] == dispensable[len(gone) - 1])
            assert kept + latest["seconds_about"] > share * whole - len(steps)
        assert steps == planned_but_bounds(FULL.format(minutes))
        previous = len(gone)
        seen.add(len(gone))
    assert {0, 1, len(dispensable)} <= seen


def test_what_was_left_out_anyway_keeps_its_reason(tmp_path: Path) -> None:
    config = FULL.format("minutes = 0.01\n").split("[protections]")[0]
    assert left_out(planned(tmp_path, config))["compare"] == "no [protections] to compare"


def test_a_threshold_on_something_left_out_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("level,geoid,table,variable,value\nblock,990010001001001,P1,P0010001,3\n")
    config = HEAD + '[input]\ntables = "t.csv"\n[thresholds]\nprecision_exposed = 0.5\nposterior = 0.5\n'
    refused(
        audit(tmp_path, config), tmp_path, r"thresholds\.precision_exposed.*reidentify.*truth",
        r"thresholds\.posterior.*noise",
    )  # fmt: skip
    late = SYNTHETIC.replace("[", "minutes = 0.01\n[", 1) + "[thresholds]\nfound_exposed = 0.5\n"
    refused(audit(tmp_path, late), tmp_path, r"thresholds\.found_exposed.*minutes")
