"""Does an audit say how much of it strangers can check, lead from rows to certificates, and keep them private?"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from glasshouse.commands.auditing.config import read_config
from glasshouse.commands.auditing.files import files_of
from glasshouse.commands.auditing.proofs import certificates_of
from glasshouse.commands.auditing.steps import steps_of
from glasshouse.report.description import Cell, Column, Count, Panel, Panels, Share, Table, text
from glasshouse.report.publish import publish
from glasshouse.report.render.page import page
from glasshouse.report.sections.methods import definitions, terms_of
from glasshouse.report.sections.proofs import certified, on_card, proofs
from tests.report_sample import sample
from tests.running import good
from tests.test_audit import audit, few_tables
from tests.test_audit_public import all_of

CONFIG = """
title = "A small town"
scenario = "mini"
[synthetic]
persons = 200
[attackers]
perfect = false
leave_one_out = 0
[leaks]
blocks = 0
[proofs]
of = ["vary", "claims", "bounds"]
blocks = 1000
examples = 3
[public]
threshold = 3
"""


CLAIMS = '[claims]\nscenario = "dhc-household"\ncolumns = 1\npick = "median:1"\n'


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = few_tables(tmp_path_factory.mktemp("proofs-audit"))
    (folder / "mine.toml").write_text(CONFIG)
    ended = good(audit(folder / "mine.toml", folder / "out"))
    (folder / "said.txt").write_text(ended.out)
    return folder


def index_of(folder: Path, step: str) -> list[dict[str, str]]:
    with (folder / "out" / "proofs" / step / "index.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_what_is_certified_is_counted_from_the_certificates(town: Path) -> None:
    told = json.loads((town / "out" / "proofs.json").read_text())
    said = json.loads((town / "out" / "summary.json").read_text())
    places = pl.read_parquet(town / "out" / "solvar" / "places.parquet").filter(pl.col("population") > 0)
    rows = index_of(town, "vary")
    certain = [row for row in rows if row["fact"] == "certain"]
    shown = [int(re.search(r"has at least (\d+) of", row["statement"])[1]) for row in certain]  # type: ignore[index]
    assert told["certain_certified"] == sum(shown) <= told["certain"] == places["certain"].sum()
    assert told["records"] == places["population"].sum() and told["everything"] is True
    assert said["share_certified"] == pytest.approx(sum(shown) / told["records"])
    assert said["proofs"]["vary"]["facts"] == len(rows) and said["proofs"]["vary"]["certified"] > 0
    assert set(said["proofs"]) == {"vary"}  # every number is printed, and there is no [claims]
    assert "certified for strangers" in (town / "said.txt").read_text()


def test_rows_lead_to_certificates_and_the_numbers_in_them(town: Path) -> None:
    report = (town / "out" / "report.html").read_text()
    names = re.findall(r'<article class="proof" id="([^"]+)"', report)
    links = set(re.findall(r'href="#(proof-[^"]+)"', report))
    assert links and links <= set(names) and len(set(names)) == len(names)
    for file in re.findall(r'href="(proofs/[^"]+\.vipr)"', report):
        text_ = (town / "out" / file).read_text()
        part = report[report.index(f'id="proof-{file.split("/")[1]}-{Path(file).stem}"') :].split("</article>")[0]
        listed = re.findall(r'<th scope="row">([^<]+)</th>', part)
        used = {line.split(" ")[0].rstrip("<>").split("@")[0] for line in _rows(text_)}
        assert listed and set(listed) <= used
        (row,) = [row for row in index_of(town, file.split("/")[1]) if row["file"] == Path(file).name][:1]
        assert row["statement"] in part


@pytest.mark.slow
def test_claims_in_words_lead_to_their_certificates(tmp_path: Path) -> None:
    few_tables(tmp_path)
    (tmp_path / "mine.toml").write_text(_with_claims())
    good(audit(tmp_path / "mine.toml", tmp_path / "out"))
    report = (tmp_path / "out" / "report.html").read_text()
    names = re.findall(r'<article class="proof" id="(proof-claims-[^"]+)"', report)
    assert names and set(re.findall(r'href="#(proof-claims-[^"]+)"', report)) == set(names)
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["proofs"]["claims"]["certified"] > 0


@pytest.mark.slow
def test_places_that_break_the_rule_lead_to_their_certificates(tmp_path: Path) -> None:
    few_tables(tmp_path)
    town = "persons = 3000\nsubsidised = 0.25\nseed = 9\n"  # in two of its places somebody must break the rule
    housing = CONFIG.replace("persons = 200\n", town).replace('"bounds"', '"occupancy"')
    (tmp_path / "mine.toml").write_text(f'{housing}[occupancy]\nscenario = "subsidised-housing"\n')
    good(audit(tmp_path / "mine.toml", tmp_path / "out"))
    report = (tmp_path / "out" / "report.html").read_text()
    names = re.findall(r'<article class="proof" id="(proof-occupancy-[^"]+)"', report)
    places = pl.read_parquet(tmp_path / "out" / "occupancy" / "places.parquet").filter(pl.col("answer") == "certain")
    assert places.height == len(names) == 2 and set(re.findall(r'href="#(proof-occupancy-[^"]+)"', report)) == set(
        names
    )
    assert {name.split("-")[2] for name in names} == set(places["block"])


def _with_claims() -> str:
    head, rest = CONFIG.split("[proofs]")
    return f"{head}{CLAIMS}[proofs]{rest}"


def test_a_claim_is_found_by_its_row(tmp_path: Path) -> None:
    assert certificates_of(tmp_path, "claims", [("1", "claim-0")]) == []
    (tmp_path / "proofs" / "claims").mkdir(parents=True)
    rows = [
        "place,fact,statement,file,status",
        "1,claim-0 least,a,x.vipr,certified",
        "1,claim-0 most,b,y.vipr,certified",
        "1,claim-2 most,c,z.vipr,weaker",
        "2,claim-2 least,d,,open",
    ]
    (tmp_path / "proofs" / "claims" / "index.csv").write_text("\n".join(rows) + "\n")
    asked = [("1", "claim-0"), ("1", "claim-2"), ("2", "claim-2"), ("1", "claim-9")]
    assert certificates_of(tmp_path, "claims", asked) == ["x.vipr", "z.vipr", "", ""]


def _rows(text_: str) -> list[str]:
    rows = text_.partition("\nCON ")[2].partition("\nRTP ")[0].split("\n")[1:]
    return [row for row in rows if ":" not in row.split(" ")[0]]


def test_strangers_can_check_what_the_audit_wrote(town: Path) -> None:
    folder = town / "out" / "proofs" / "vary"
    run = [sys.executable, "-I", "-S", "check_proof.py", ".", "--tables", "published.csv"]
    ended = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and ", 0 refused" in ended.stdout


def test_certificates_are_private_and_not_in_public(town: Path) -> None:
    public, internal = (all_of((town / "out" / f"report{one}.html").read_text()) for one in ("-public", ""))
    assert "What strangers can check" in internal and "What strangers can check" not in public
    assert ".vipr" not in public and "proof-" not in public and "Certificates hold" not in public
    assert not set(index_of(town, "vary")[0]["place"].split()) & set(re.findall(r"\w+", public))
    assert "Certified for strangers to check" in public  # the share of everybody, by the public rule
    for path in (town / "out" / "proofs").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_the_same_command_again_does_nothing_again(town: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (town / "out" / "proofs").rglob("*.vipr")}
    (town / "mine.toml").write_text(CONFIG.replace("A small town", "Another title"))
    good(audit(town / "mine.toml", town / "out", "--overwrite"))
    assert {path: path.stat().st_mtime_ns for path in (town / "out" / "proofs").rglob("*.vipr")} == before


def test_without_the_section_nothing_is_proved(tmp_path: Path) -> None:
    few_tables(tmp_path)
    for name, content, without in (
        ("with", CONFIG, ""),
        ("without", CONFIG.split("[proofs]")[0] + "[public]" + CONFIG.split("[public]")[1], "no [proofs]"),
        ("short", CONFIG.replace('scenario = "mini"', 'scenario = "mini"\nminutes = 0.4'), "the budget of 0.4 minutes"),
    ):
        (tmp_path / f"{name}.toml").write_text(content)
        config = read_config(tmp_path / f"{name}.toml")
        (step,) = [one for one in steps_of(config, files_of(config, tmp_path / "out")) if one.name == "prove"]
        assert step.without.startswith(without) and bool(step.without) == bool(without)


# The section, from what the steps say

TOLD: Mapping[str, Any] = {
    "everything": False, "places": 40, "records": 1000, "certain": 900, "certain_certified": 880, "one_solution": 30,
    "one_solution_certified": 29,
    "steps": {"vary": {"facts": 80, "certified": 78, "weaker": 1, "open": 1},
              "claims": {"facts": 10, "certified": 10, "weaker": 0, "open": 0}},
}  # fmt: skip
ONE = (("P1_01", "all & sundry", "block 1", "3"),)
SOME = tuple((f"P2_{n}", "", "tract 9", "0\u20132") for n in range(3))
PANELS = (
    Panel("proof-vary-1", "block 1", "Every set <fits>.", "certified", ONE, 0, "proofs/vary/1.vipr"),
    Panel("proof-vary-2", "block 2", "Every set has 1.", "weaker", SOME, 7, "proofs/vary/2 b.vipr"),
)


def test_the_section_counts_and_shows() -> None:
    section = proofs(TOLD, "block", 5000, [("1", 30, 30, "proof-vary-1"), ("2", 20, 1, "proof-vary-2")], PANELS)
    counts, places, panels, _ = section.blocks
    assert section.records and isinstance(counts, Table) and isinstance(places, Table) and isinstance(panels, Panels)
    assert [row[3:] for row in counts.rows] == [
        (Count(880), Share(880, 900)),
        (Count(29), Share(29, 30)),
        (Count(10), Share(10, 10)),
    ]
    assert text(counts.notes[0]).startswith("1 certificate shows") and places.links == ("proof-vary-1", "proof-vary-2")
    assert "900" not in text(section.lead) and "90.0%" in text(section.lead) and "88.0%" in text(section.lead)
    report = replace(sample(), sections=(section,))
    report = replace(report, definitions=(*report.definitions, *definitions({"certified"} & terms_of(report))))
    shown = page(report)
    assert '<a class="v" href="#proof-vary-1">1</a>' in shown and 'id="proof-vary-2"' in shown
    assert "Every set &lt;fits&gt;." in shown and "all &amp; sundry" in shown
    assert 'href="proofs/vary/2%20b.vipr"' in shown and "and 7 more" in shown
    public = publish(report, 10)
    assert not public.sections and ".vipr" not in page(public) and 'id="proof-' not in page(public)


def test_panels_and_links_never_stay_in_public() -> None:
    """Even in a section that is not about records."""
    columns = (Column("area"), Column("certain", "certain"))
    rows: tuple[tuple[Cell, ...], ...] = (("1", Share(900, 1000)),)
    table = Table("areas", "Areas", columns, rows, "", links=("proof-vary-1",))
    section = replace(proofs(TOLD, "block", 5000, [], PANELS), records=False)
    report = replace(sample(), sections=(replace(section, blocks=(table, section.blocks[1])),))
    (left,) = publish(report, 10).sections
    assert len(left.blocks) == 1 and isinstance(left.blocks[0], Table) and not left.blocks[0].links


def test_the_card_says_how_much_is_certified() -> None:
    card = sample().verdicts[0]
    assert "in the places looked at: 88.0% (certain there: 90.0%)" in text(on_card(card, TOLD).beside)
    assert text(on_card(card, {**TOLD, "everything": True}).beside).endswith("Certified for strangers to check: 88.0%.")
    assert on_card(card, {"steps": {}}) is card and certified({"steps": {}}) is None
