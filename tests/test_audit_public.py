"""Does the public version of an audit tell anything about a person? Persons are planted, and looked for in all of it.

What must be hidden is worked out here from the internal numbers, cell by cell; the internal version has all of it, so
the same search finds something there.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from glasshouse.commands.auditing.config import read_config
from glasshouse.commands.auditing.writing import earlier_files, write_report
from glasshouse.report.publish import Rule, publish
from glasshouse.report.sections import answers as audit_answers
from glasshouse.report.sections.answers import About
from glasshouse.scenarios.load import load
from tests.running import good
from tests.test_audit import audit, few_tables, found_in, once
from tests.test_audit import tiny as tiny  # the audit with every part
from tests.test_report_page import Reader

RACES = ("white", "black", "aian", "asian", "nhopi", "sor")
OLD, LONE = "PLANTED-OLD", "PLANTED-LONE"
BLOCK, EMPTY = "990010001001099", "990010001001098"
PLANTED = [  # a very old person of four races among three, a lone person, and one whose age nobody shares
    (OLD, BLOCK, "female", 107, 1, 1, 1, 1, 0, 0, 1),
    ("PLANTED-2", BLOCK, "male", 33, 1, 0, 0, 0, 0, 0, 0),
    ("PLANTED-3", BLOCK, "male", 34, 1, 0, 0, 0, 0, 0, 0),
    (LONE, EMPTY, "male", 61, 0, 0, 0, 0, 1, 0, 0),
]
COLUMNS = ("person_id", "block", "sex", "age", *RACES, "hispanic")
CONFIG = """
title = "Planted"
scenario = "mini"
[input]
records = "records.csv"
[leaks]
blocks = 0
[claims]
scenario = "claims-of-our-own"
"""


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tract of 160 persons, nearly all alike, and four who are not; audited with the truth."""
    with once(tmp_path_factory, "planted-audit") as (folder, first):
        if first:
            few_tables(folder)
            built_in = (
                Path(__file__).resolve().parents[1] / "src" / "glasshouse" / "scenarios" / "data" / "dhc-household"
            )
            shutil.copytree(built_in, folder / "claims-of-our-own")
            rng, rows = np.random.default_rng(9), list(PLANTED)
            for number in range(160):
                race = [0] * 6
                race[0 if rng.random() < 0.85 else int(rng.integers(1, 3))] = 1
                block, sex = f"99001000100100{rng.integers(0, 8)}", str(rng.choice(["male", "female"]))
                rows.append((f"P{number:05d}", block, sex, int(rng.integers(0, 60)), *race, int(rng.random() < 0.2)))
            pl.DataFrame(rows, schema=COLUMNS, orient="row").sample(fraction=1, shuffle=True, seed=1).write_csv(
                folder / "records.csv"
            )
            (folder / "planted.toml").write_text(CONFIG)
            good(audit(folder / "planted.toml", folder / "out"))
    return folder


class Told(HTMLParser):
    """Everything a reader could find: text, attributes and the data of scripts, but no style and none of our script."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.code = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.code = tag == "style" or (tag == "script" and "json" not in (given.get("type") or ""))
        self.parts += [f"{key}={value}" for key, value in attributes if key not in ("d", "points", "transform")]

    def handle_data(self, data: str) -> None:
        if not self.code:
            self.parts.append(data)


def all_of(page: str) -> str:
    return "\n".join(Told(page).parts)


def pages(folder: Path) -> tuple[str, str]:
    """The internal report and the public one."""
    internal, public = ((folder / "out" / name).read_text("utf-8") for name in ("report.html", "report-public.html"))
    return all_of(internal), all_of(public)


# Searches that find something in the internal report


def test_no_block_is_named_in_public(planted: Path, tiny: Path) -> None:
    for folder in (planted, tiny):
        _, public = pages(folder)
        assert not re.search(r"99001\d{10}", public) and "geoid" not in public
        codes = pl.read_parquet(folder / "out/solvar/places.parquet")["block"].to_list()
        assert not [code for code in codes if code in public]
    internal, _ = pages(tiny)
    assert re.search(r"\b99001\d{10}\b", internal)


def test_no_claim_about_a_household_is_public(tiny: Path) -> None:
    claims = pl.read_parquet(tiny / "out/claims/claims.parquet")["description"].to_list()
    internal, public = pages(tiny)
    assert sum(one in internal for one in claims) >= 5
    assert not [one for one in claims if one in public]
    assert "Exactly one household" in internal and "Exactly one household" not in public


def test_no_person_is_named_in_public(planted: Path, tiny: Path) -> None:
    internal, _ = pages(planted)
    for folder, file in ((planted, "records.csv"), (tiny, "out/county/cef.parquet")):
        path = folder / file
        ids = (pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path))["person_id"].drop_nulls()
        page = pages(folder)[1]
        assert len(ids) > 100 and not [one for one in ids if one in page]
    assert "PLANTED" not in internal  # nor inside: it is about places and groups


def test_the_planted_are_in_no_public_number(planted: Path) -> None:
    """Neither how many are of a group, nor that anybody is: rows are the scenario's, and all look alike."""
    _, public = pages(planted)
    assert not re.search(rf"\b107\b|{BLOCK}|{EMPTY}", public)
    groups = pl.read_parquet(planted / "out/solvar/groups.parquet")
    lines = Reader((planted / "out/report-public.html").read_text("utf-8")).all("tr")
    labels = {"age": "85-110", "race": "four races"}
    for attribute, label in (*labels.items(), ("race", "six races"), ("race", "nhopi"), ("age", "60-61")):
        found = groups.filter(attribute=attribute, group=label)["records"].to_list()
        assert found == [0 if label == "six races" else 1]
        for row in (one.text for one in lines if one.text.strip().lower().startswith(label)):
            assert not re.search(r"\d", row.replace(label, "", 1)) and "hidden" in row


def test_one_person_more_or_less_of_a_kind_is_not_seen(planted: Path, tmp_path: Path) -> None:
    """Somebody of six races, whom there was none of, in the place of one of four: the same rows, the same words."""
    changed = pl.read_csv(planted / "records.csv").with_columns(
        pl.when(pl.col("person_id") == OLD).then(1).otherwise(pl.col(race)).alias(race) for race in RACES
    )
    for name in ("mini", "claims-of-our-own"):
        shutil.copytree(planted / name, tmp_path / name)
    changed.write_csv(tmp_path / "records.csv")
    (tmp_path / "planted.toml").write_text(CONFIG)
    good(audit(tmp_path / "planted.toml", tmp_path / "out"))
    before, after = (
        publish(found_in(read_config(folder / "planted.toml"), folder / "out").report, 10)
        for folder in (planted, tmp_path)
    )
    assert replace(before, digests=()) == replace(after, digests=())
    one, other = ((folder / "out" / "report-public.html").read_text("utf-8") for folder in (planted, tmp_path))
    assert one == other  # with the certificate, in which no input is seen
    internal = (tmp_path / "out" / "report.html").read_text("utf-8")
    digest = hashlib.sha256((tmp_path / "records.csv").read_bytes()).hexdigest()
    assert digest in internal and digest not in other


def test_no_folder_is_named_in_public(tiny: Path) -> None:
    _, public = pages(tiny)
    for part in (str(tiny), str(Path.home()), "/tmp", "pytest-of", "C:\\"):  # noqa: S108  # a text that is looked for
        assert part not in public
    assert not re.search(r"(?<![\w<:.])/[\w.-]+/[\w./-]+", re.sub(r"https?://\S+", "", public))


def test_no_folder_of_a_scenario_of_ones_own_is_named_in_public(planted: Path) -> None:
    internal, public = pages(planted)
    assert "claims-of-our-own" in internal
    assert str(planted) not in public and str(planted.parent) not in public


# Every number, against the internal one

Key = tuple[str, str, str, int]


def numbers(folder: Path) -> dict[Key, dict[str, str]]:
    """The lines of numbers.csv by table, row and column; rows of the same name are numbered."""
    found: dict[Key, dict[str, str]] = {}
    with (folder / "numbers.csv").open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            key, again = (row["table"], row["row"], row["column"]), 0
            while (*key, again) in found:
                again += 1
            found[*key, again] = row
    return found


def few(row: dict[str, str], rule: Rule) -> bool:
    """Is it about fewer persons than may be told, or about nobody?"""
    return bool(row["whole"]) and int(row["whole"]) < rule.fewest


@pytest.mark.parametrize(("name", "t"), [("planted", 3), ("planted", 10), ("tiny", 10), ("tiny", 60)])
def test_every_number_about_few_is_hidden(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, t: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder: Path = request.getfixturevalue(name)
    monkeypatch.setattr("glasshouse.commands.auditing.writing.png", lambda _: b"")  # it takes longer than all the rest
    found = found_in(read_config(folder / f"{name}.toml"), folder / "out")
    written, refused = write_report(found, tmp_path, t, public=True)
    assert "report.html" not in written and not (tmp_path / "report.html").exists() and not refused
    internal, public = numbers(folder / "out"), numbers(tmp_path)
    assert set(public) <= set(internal)
    hidden, rule = 0, Rule.of(found.report, t)
    for key, row in public.items():
        own = internal[key]
        assert not row["part"] and not row["whole"]
        if few(own, rule):
            hidden += 1
            assert row["value"] == "hidden" and not row["low"], (key, own, row)
        elif own["whole"] and row["value"] != "hidden":
            exact = Fraction(int(own["part"]), int(own["whole"]))
            step = rule.step_of(int(own["whole"])) if key[0] != "verdict" else None
            end, _, percent = row["value"].rpartition(" ")
            told = float(percent.rstrip("%")) / 100 if end else float(percent)
            if step is not None:
                assert abs(told / step - round(told / step)) < 1e-9
                assert abs(exact - Fraction(told)) <= (step if end else step / 2) + Fraction(1, 10**9), (key, own, row)
    assert hidden >= 3
    counted = {key[:3] for key, row in internal.items() if re.fullmatch(r"\d+", row["value"]) and not row["whole"]}
    assert counted and not counted & {key[:3] for key in public}  # columns of counts are gone
    shown = Reader((tmp_path / "report-public.html").read_text("utf-8")).having("data-n")
    lines = {int(row["line"]): row for row in public.values()}
    for element in shown:
        assert lines[int(element.attributes["data-n"])]["value"] != "hidden"


def test_what_protections_do_to_few_is_hidden(tiny: Path) -> None:
    """A share of the most exposed is about those, of whom there are few."""
    rates = pl.read_parquet(tiny / "out/risk/rates.parquet").filter(
        attacker="perfect", group="nonmodal-unique", band="all"
    )
    exposed = rates["population"].max()
    assert isinstance(exposed, int) and 0 < exposed < 40
    front = pl.read_parquet(tiny / "out/compared/front.parquet").to_dicts()
    explorer = next(
        json.loads(one.text)
        for one in Reader((tiny / "out/report-public.html").read_text("utf-8")).all("script")
        if "json" in one.attributes.get("type", "") and "guesses" in one.text
    )
    shown = {row["name"]: row["cells"][2]["text"] for row in explorer["rows"]}
    for one in front:
        assert shown[one["setting"]] == "hidden", (one, exposed)


def test_a_public_page_has_no_counts(planted: Path) -> None:
    """No whole number stands in any cell of the page."""
    read = Reader((planted / "out/report-public.html").read_text("utf-8"))
    cells = [one.text.strip() for one in read.all("td") if "data-n" in one.attributes]
    assert cells and not [one for one in cells if re.fullmatch(r"[\d,]+", one)]
    assert any(one.text.startswith("hidden") for one in read.all("td"))


def test_figures_of_a_public_run_are_public(planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasshouse.commands.auditing.writing.png", lambda _: b"")
    found = found_in(read_config(planted / "planted.toml"), planted / "out")
    write_report(found, tmp_path, 10, public=True)
    pictures = list((tmp_path / "figures").glob("*.svg"))
    assert pictures
    for path in pictures:
        assert not re.search(r"99001\d{10}", path.read_text("utf-8"))


def test_figures_of_an_internal_run_do_not_stay(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A public run writes fewer files; those of an internal one are named, and go (test_drafts shows that they do)."""
    monkeypatch.setattr("glasshouse.commands.auditing.writing.png", lambda _: b"")
    config = read_config(tiny / "tiny.toml")
    found = found_in(config, tiny / "out")
    inside = set(write_report(found, tmp_path / "inside", 10, public=False)[0])
    outside = set(write_report(found, tmp_path / "outside", 10, public=True)[0])
    assert outside < inside and inside - outside <= set(earlier_files(tmp_path / "inside"))


def test_the_search_sees_what_is_planted(planted: Path) -> None:
    """The very old woman is rebuilt, and the lone man is certain: there is something to be found."""
    places = pl.read_parquet(planted / "out/solvar/places.parquet")
    for code, persons in ((BLOCK, 3), (EMPTY, 1)):
        assert places.filter(block=code)["population"].to_list() == [persons]
    records = pl.read_parquet(planted / "out/rebuilt/records.parquet").filter(block=BLOCK)
    assert records.filter((pl.col("age").cast(pl.Int64) >= 85) & (pl.col("sex") == "female")).height == 1
    assert places.filter(block=EMPTY)["certain"].to_list() == [1]
    assert load(str(planted / "mini")).geography.place == "block"


def test_why_a_setting_was_refused_is_not_public(tiny: Path) -> None:
    """A complaint about a file may quote it: only the names of the settings are for everybody."""
    summary = pl.read_parquet(tiny / "out/compared/summary.parquet")
    section = audit_answers.protections(summary, About(500, 400, 300), {"swap 10%": "row 7: found PLANTED-OLD"}, "")
    report = found_in(read_config(tiny / "tiny.toml"), tiny / "out").report
    internal = replace(report, sections=(section,))
    assert "PLANTED-OLD" in str(internal.sections)
    public = publish(internal, 10)
    assert "PLANTED-OLD" not in str(public) and "Could not be tried: swap 10%." in str(public.sections)
