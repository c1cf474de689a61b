"""Does the attack on the public page find what it gives away? Pages that do, pages that do not, and random counties.

That a page is called safe is proved by other numbers that make the same page, so what is left to show is that a leak
is found, and that pages of real audits are written.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.commands.auditing import writing
from glasshouse.commands.auditing.config import read_config
from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.report import attacked
from glasshouse.report import publish as publishing
from glasshouse.report.attacked import given_away
from glasshouse.report.description import (
    Cell,
    Column,
    Count,
    Measure,
    Report,
    Said,
    Section,
    Sentence,
    Share,
    Table,
    Verdict,
    Words,
)
from glasshouse.report.publish import publish
from tests.often import often
from tests.running import good
from tests.test_audit import audit, few_tables, found_in
from tests.test_audit import tiny as tiny  # the audit with every part
from tests.test_audit_public import COLUMNS


def table(rows: list[list[Cell]], name: str = "groups") -> Table:
    columns = tuple(Column(f"c{at}") for at in range(len(rows[0])))
    return Table(name, "Groups", columns, tuple(map(tuple, rows)), "a.parquet")


def report(*blocks: Table, said: Sentence = "Plain.", everybody: Share | None = None) -> Report:
    verdicts = () if everybody is None else (Verdict("V", everybody, "", "", "certain", "s", "a.parquet"),)
    section = Section("s", "S", "Lead.", (Words((said,)), *blocks))
    return Report("A report", "About.", "internal", verdicts, (), (section,), (), ())


def away(inside: Report, t: int) -> tuple[str, ...]:
    return given_away(inside, publish(inside, t), t)


# Pages that give somebody away


def test_two_rounded_counts_tell_a_third() -> None:
    """602 is told as 603, which is 602 to 604, and 600 as itself, which is 599 to 601: at least one is left."""
    rows = [["a", Count(600), Share(300, 600)], ["b", Count(2), Share(1, 2)], ["all", Count(602), Share(301, 602)]]
    told = Said("{} persons, {} of them in a.", (Count(602), Count(600)))
    assert away(report(table(rows)), 3) == ()
    assert away(report(table(rows), said=told), 3) == ("groups",)


def test_shares_that_differ_tell_that_others_are_there() -> None:
    """5% of a and 10% of all, where 7.5% is between them: a is not all, and b is fewer than the threshold."""
    rows = [["a", Share(29, 400)], ["b", Share(19, 19)], ["all", Share(48, 419)]]
    assert away(report(table(rows)), 20) == ("groups",)
    alike = [["a", Share(32, 400)], ["b", Share(19, 19)], ["all", Share(51, 419)]]
    assert away(report(table(alike)), 20) == ()


def test_a_hidden_group_that_must_have_somebody_is_told_by_the_number_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the size of a row were told, as by a step of its own, the rest of everybody would be known."""
    rows = [["a", Share(100, 495)], ["b", Share(1, 6)]]
    inside = report(table(rows), everybody=Share(101, 501, everybody=True))
    assert away(inside, 10) == ()
    sized = replace(inside, sections=tuple(replace(one, blocks=tuple(
        Words((Said("{}", (Count(495),)), Said("{}", (Count(501),)))) if isinstance(block, Words) else block
        for block in one.blocks)) for one in inside.sections))  # fmt: skip
    monkeypatch.setattr(publishing, "unit_of_count", lambda count, rule: 5)
    monkeypatch.setattr(attacked, "unit_of_count", lambda count, rule: 5)
    assert away(sized, 10) == ("groups",)


def test_zero_that_can_only_be_zero_is_given_away() -> None:
    """All of a column but one are told to be over 95%; a page that said 100% would tell that nobody is left out."""
    rows = [["a", Share(400, 400)], ["b", Share(400, 400)]]
    inside = report(table(rows))
    public = publish(inside, 10)
    assert given_away(inside, public, 10) == ()
    told = [replace(block, rows=tuple((key, Measure(1.0, 200, "share")) for key, _ in block.rows))
            if isinstance(block, Table) else block for block in public.sections[0].blocks]  # fmt: skip
    false = replace(public, sections=(replace(public.sections[0], blocks=tuple(told)),))
    with pytest.raises(GlasshouseBug, match="contradicts the numbers"):
        given_away(inside, false, 10)


def test_a_page_of_other_numbers_is_a_bug() -> None:
    inside = report(table([["a", Share(100, 400)]]))
    other = publish(report(table([["a", Share(300, 400)]])), 10)
    with pytest.raises(GlasshouseBug, match="contradicts the numbers"):
        given_away(inside, other, 10)


# Pages that do not


@st.composite
def towns(draw: st.DrawFn) -> Report:
    """A town by two attributes: groups from nobody to thousands, the certain among them, and all."""
    few, many = st.integers(0, 12), st.integers(150, 3000)
    sizes = draw(st.lists(st.one_of(few, many), min_size=2, max_size=7))
    certain = [draw(st.one_of(st.integers(0, size), st.just(size), st.just(0))) for size in sizes]
    other = draw(st.integers(0, sum(sizes)))
    rows: list[list[Cell]] = [
        [f"g{at}", Count(n), Share(c, n)] for at, (c, n) in enumerate(zip(certain, sizes, strict=True))
    ]
    every = Share(sum(certain), sum(sizes))
    halves = [["x", Count(other), Share(min(other, sum(certain)), other)],
              ["y", Count(sum(sizes) - other), Share(max(sum(certain) - other, 0), sum(sizes) - other)]]  # fmt: skip
    tables = [table([*rows, ["all", Count(sum(sizes)), every]]), table(halves, "halves")]
    return report(*tables, everybody=replace(every, everybody=True))


@given(towns(), st.sampled_from([3, 5, 10, 20]))
@settings(max_examples=often(60), deadline=None)
def test_nobody_is_given_away_but_by_shares_that_differ(inside: Report, t: int) -> None:
    """Where the attack says no, it has other numbers; where it says yes, a share shown differs from that of all."""
    for name in away(inside, t):
        shown = {
            cell.value for one in publish(inside, t).tables() if one.name == name
            for row in one.rows for cell in row if isinstance(cell, Measure)
        }  # fmt: skip
        assert len(shown) > 1 or isinstance(publish(inside, t).verdicts[0].number, Measure)


def test_the_page_of_a_state_is_written() -> None:
    """Of millions, other numbers were not found within the effort, and pages that gave nobody away were refused."""
    chance = np.random.default_rng(0)
    everybody, certain = 5_000_000, 4_590_327
    tables = []
    for name in range(10):
        sizes = chance.multinomial(everybody, chance.dirichlet(np.full(8, 0.5)))
        groups = zip(sizes, chance.multivariate_hypergeometric(sizes, certain), strict=True)
        rows: list[list[Cell]] = [
            [f"g{at}", Count(int(n)), Share(int(c), int(n)), Share(0, int(c))] for at, (n, c) in enumerate(groups)
        ]
        every: list[Cell] = ["all", Count(everybody), Share(certain, everybody), Share(0, certain)]
        tables.append(table([*rows, every], f"table {name}"))
    inside = report(*tables, everybody=Share(certain, everybody, everybody=True))
    assert away(inside, 10) == ()


def test_what_an_audit_writes_gives_nobody_away(tiny: Path) -> None:
    found = found_in(read_config(tiny / "tiny.toml"), tiny / "out")
    for t in (3, 4, 5, 7, 10, 20, 60):
        assert away(found.report, t) == (), t


def test_a_page_that_gives_somebody_away_is_not_written(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "given_away", lambda *_: ("who-race",))
    monkeypatch.setattr(writing, "png", lambda _: b"")
    found = found_in(read_config(tiny / "tiny.toml"), tiny / "out")
    written, refused = writing.write_report(found, tmp_path, 10, public=False)
    assert "report-public.html" not in written and "report.html" in written
    assert not (tmp_path / "report-public.html").exists()
    assert len(refused) == 1 and "who-race" in refused[0] and "higher threshold" in refused[0]
    with pytest.raises(InputError, match="not written"):
        writing.write_report(found, tmp_path, 10, public=True)


# Random counties with planted people

CONFIG = 'title = "Planted"\nscenario = "mini"\n[input]\nrecords = "records.csv"\n[leaks]\nblocks = 0\n'


def a_county(folder: Path, seed: int) -> None:
    """A tract of some hundred to some thousand persons, nearly all alike, and a few of whom there are one to five."""
    rng = np.random.default_rng(seed)
    persons, rows = int(rng.integers(150, 2500)), []
    common = rng.dirichlet([6, 1, 0.3])
    for _ in range(persons):
        race = [0] * 6
        race[int(rng.choice([0, 1, 3], p=common))] = 1
        place = f"9900100010010{rng.integers(0, max(persons // 60, 2)):02d}"
        rows.append(
            (place, str(rng.choice(["male", "female"])), int(rng.integers(0, 75)), *race, int(rng.random() < 0.1))
        )
    for number in range(int(rng.integers(1, 9))):  # groups that have few, and places that have few
        some = [int(one) for one in rng.random(6) < 0.6]
        race = some if any(some) else [1] * 6
        place = f"99001000100109{number}"
        rows += [(place, "female", int(rng.integers(80, 110)), *race, 1)] * int(rng.integers(1, 6))
    frame = pl.DataFrame(rows, schema=COLUMNS[1:], orient="row").with_row_index("person_id")
    frame.with_columns(pl.format("P{}", "person_id").alias("person_id")).write_csv(folder / "records.csv")


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 51))])
def test_public_pages_of_random_counties_tell_nobody(seed: int, tmp_path: Path) -> None:
    """Audited as an office would; then at several thresholds: every page that is written gives nobody away."""
    few_tables(tmp_path)
    a_county(tmp_path, seed)
    (tmp_path / "planted.toml").write_text(CONFIG)
    ended = audit(tmp_path / "planted.toml", tmp_path / "out")
    assert ended.code in (0, 1), ended
    assert (tmp_path / "out" / "report-public.html").exists() == (ended.code == 0)
    found = found_in(read_config(tmp_path / "planted.toml"), tmp_path / "out")
    small = {cell.part for one in found.report.tables() for row in one.rows for cell in row if isinstance(cell, Share)}
    assert small & set(range(1, 10)) and 0 in small  # there is something to find
    written = 0
    for t in (3, 5, 10, 20):
        shared = publish(found.report, t)
        written += given_away(found.report, shared, t) == ()
        assert not [cell for one in shared.tables() for row in one.rows for cell in row if isinstance(cell, Count)]
        internal = {one.name: one for one in found.report.tables()}
        for one in shared.tables():
            rows, every = ({row[: one.keys] for row in some.rows} for some in (one, internal[one.name]))
            assert rows == every or (one.inhabited and rows < every)
    assert written >= 2


def test_one_person_in_an_area_of_their_own_is_not_seen(tmp_path: Path) -> None:
    """A tract that nobody lived in: with one person in it, the public page is the same to the last byte."""
    pages = []
    for name in ("without", "with"):
        folder = tmp_path / name
        folder.mkdir()
        few_tables(folder)
        a_county(folder, 7)
        records = pl.read_csv(folder / "records.csv", infer_schema=False)
        alone = records.tail(1).with_columns(person_id=pl.lit("ALONE"), block=pl.lit("990010002001000"))
        pl.concat([records, alone] if name == "with" else [records]).write_csv(folder / "records.csv")
        (folder / "planted.toml").write_text(CONFIG)
        good(audit(folder / "planted.toml", folder / "out"))
        assert ("99001000200" in (folder / "out" / "report.html").read_text("utf-8")) == (name == "with")
        pages.append((folder / "out" / "report-public.html").read_bytes())
    assert pages[0] == pages[1]
