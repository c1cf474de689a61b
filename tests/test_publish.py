"""Does the public version hide what it must? Every rule of `report.publish`, and nobody computes what is hidden."""

from __future__ import annotations

import hmac
import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.assess.rates import wilson
from glasshouse.errors import InputError
from glasshouse.report.description import (
    HIDDEN,
    Cell,
    Chart,
    Column,
    Count,
    Definition,
    Explorer,
    Map,
    Measure,
    Noise,
    Report,
    Said,
    Section,
    Series,
    Shape,
    Share,
    Table,
    Verdict,
    Words,
    text,
)
from glasshouse.report.publish import Rule, public_cell, publish, rounded, without_folders
from glasshouse.report.render.page import page
from glasshouse.report.render.sheets import sheets
from glasshouse.report.words import phrase

thresholds = st.sampled_from([3, 4, 5, 7, 10, 20, 70, 100])
sizes = st.one_of(st.integers(0, 300), st.integers(0, 10**6), st.integers(0, 10**9))


def table(rows: list[list[Cell]], keys: int = 1, name: str = "numbers", records: bool = False) -> Table:
    columns = tuple(Column(f"c{at}", "share" if at >= keys else "") for at in range(len(rows[0])))
    return Table(name, "Numbers", columns, tuple(tuple(row) for row in rows), "a.parquet", (), keys, records)


def report(*sections: Section, verdicts: tuple[Verdict, ...] = ()) -> Report:
    meaning = Definition("share", "Share", "A part of a whole.", "higher")
    return Report("A report", "About.", "internal", verdicts, (), sections, (meaning,), (("seed", "1"),))


def published(rows: list[list[Cell]], t: int, keys: int = 1) -> list[list[Cell]]:
    shown = list(publish(report(Section("s", "S", "Lead.", (table(rows, keys),))), t).tables())
    if not shown:  # every number of it is hidden, so it is dropped
        return [[*row[:keys], *(cell if isinstance(cell, str) else HIDDEN for cell in row[keys:])] for row in rows]
    return [list(row) for row in shown[0].rows]


# Counts


@given(sizes, thresholds)
def test_a_count_in_a_sentence_is_hidden_or_near(count: int, t: int) -> None:
    shown = rounded(count, Rule(t))
    assert (shown is None) == (count < Rule(t).fewest)
    if shown is not None:
        assert abs(shown - count) <= max(t, 10 ** max(len(str(count)) - 4, 0)) / 2


@given(st.integers(0, 10**6), st.integers(0, 1000), thresholds)
def test_more_persons_are_never_shown_as_fewer(count: int, more: int, t: int) -> None:
    assert (rounded(count, Rule(t)) or 0) <= (rounded(count + more, Rule(t)) or 0)


def test_counts_of_other_things_stay() -> None:
    assert public_cell(Count(2, people=False), Rule(10)) == Count(2, people=False)
    assert public_cell(Count(12_345, people=False), Rule(10)) == Count(12_345, people=False)
    assert public_cell(Count(0), Rule(10)) is public_cell(Count(199), Rule(10)) is HIDDEN
    assert public_cell(Count(12_345), Rule(10)) == Count(12_350)
    assert public_cell(Count(308_745_538), Rule(10)) == Count(308_700_000)


@pytest.mark.parametrize("t", [-1, 0, 1, 2])
def test_a_threshold_that_hides_nothing_is_refused(t: int) -> None:
    with pytest.raises(InputError, match="expected 3 or more"):
        publish(report(), t)


def test_a_table_has_no_counts_of_persons() -> None:
    """Its columns go, and marks drawn from them; other columns keep their marks."""
    rows = [["a", Count(4000), Share(300, 900), Count(7, people=False)], ["b", Count(0), Share(0, 0), None]]
    both = Chart("both", "B", "Says.", table(rows), (Series(1, "n"), Series(2, "share")), "persons")
    gone = replace(both, name="gone", series=(Series(1, "n"),))
    (drawn, left) = publish(report(Section("s", "S", "Lead.", (both, gone))), 10).sections[0].blocks
    assert isinstance(drawn, Chart) and drawn.series == (Series(1, "share"),)
    assert isinstance(left, Table) and left == drawn.table
    shown = Measure(0.35, 200, "share")
    assert left.rows == (("a", shown, Count(7, people=False)), ("b", HIDDEN, None))


# Shares and measures


@st.composite
def shares(draw: st.DrawFn) -> Share:
    whole = draw(sizes)
    part = draw(st.one_of(st.integers(0, whole), st.sampled_from([0, whole, whole // 2])))
    if not whole or draw(st.booleans()):
        return Share(part, whole)
    low, high = wilson(part, whole)
    return Share(part, whole, float(low), float(high))


@given(shares(), thresholds)
def test_a_share_of_few_is_hidden_and_others_stand_on_steps(share: Share, t: int) -> None:
    shown, step = public_cell(share, Rule(t)), Rule(t).step_of(share.whole)
    assert (shown is HIDDEN) == (share.whole < Rule(t).fewest) == (step is None)
    if step is None:
        return
    assert isinstance(shown, Measure) and step * share.whole >= t
    exact, on_step = Fraction(share.part, share.whole), round(Fraction(shown.value) / step) * step
    assert shown.value == float(on_step) and shown.over == t / step <= share.whole
    if shown.end == "under":
        assert exact < step == on_step
    elif shown.end == "over":
        assert exact > 1 - step == on_step
    else:
        assert step <= on_step <= 1 - step and abs(exact - on_step) <= step / 2
        assert share.part >= t and share.whole - share.part >= t


@given(sizes, st.integers(0, 1000), thresholds)
def test_small_parts_and_rests_look_like_nobody(whole: int, small: int, t: int) -> None:
    small = min(small % t, whole)
    for exact, nobody in ((small, 0), (whole - small, whole)):
        seen = [public_cell(Share(part, whole, *map(float, wilson(part, whole))), Rule(t)) for part in (exact, nobody)]
        assert whole == 0 or seen[0] == seen[1]


@given(shares(), thresholds)
def test_an_interval_grows_and_stands_on_steps(share: Share, t: int) -> None:
    shown, step = public_cell(share, Rule(t)), Rule(t).step_of(share.whole)
    if isinstance(shown, Measure) and step is not None and shown.low is not None and shown.high is not None:
        assert share.low is not None and share.high is not None and not shown.end
        assert 0 <= shown.low <= share.low + 1e-9 and share.high - 1e-9 <= shown.high <= 1
        assert abs(shown.low / step - round(shown.low / step)) < 1e-6
        assert shown.high == 1 or abs(shown.high / step - round(shown.high / step)) < 1e-6


def test_an_exact_interval_would_tell_the_counts_and_the_public_one_does_not() -> None:
    """Wilson's ends give k and n; after rounding, neighbours look alike."""
    cases = [(k, n) for n in (997, 998, 999, 1000) for k in (500, 501, 502)]
    assert len({wilson(k, n)[0].item() for k, n in cases}) == 12
    shown = {public_cell(Share(k, n, *(float(end) for end in wilson(k, n))), Rule(10)) for k, n in cases}
    assert len(shown) < 4


@st.composite
def measures(draw: st.DrawFn) -> Measure:
    style = draw(st.sampled_from(["share", "points", "number"]))
    value = draw(st.floats(-1, 1) if style != "number" else st.floats(-1e6, 1e6))
    value = abs(value) if style == "share" else value
    over = draw(sizes)
    if draw(st.booleans()):
        return Measure(value, over, style)
    low, high = value - draw(st.floats(0, 0.1)), value + draw(st.floats(0, 0.1))
    return Measure(value, over, style, max(low, 0.0) if style == "share" else low, high)


@given(measures(), thresholds)
def test_a_measure_about_few_is_hidden_and_about_nobody_stays(measure: Measure, t: int) -> None:
    shown, step = public_cell(measure, Rule(t)), Rule(t).step_of(measure.over)
    if measure.over == 0:
        assert shown == measure
    elif step is None:
        assert shown is HIDDEN
    else:
        assert isinstance(shown, Measure) and shown.over <= measure.over
        if measure.style == "number":
            assert abs(shown.value - measure.value) <= 0.06 * abs(measure.value)
            assert float(f"{shown.value:.1e}") == shown.value
        elif not shown.end:
            assert abs(shown.value - measure.value) <= step / 2 + 1e-6
        else:
            assert measure.style == "share" and shown.low is None
        if shown.low is not None and shown.high is not None and measure.low is not None and measure.high is not None:
            assert shown.low <= measure.low + 1e-6 and shown.high >= measure.high - 1e-6


def test_what_is_not_finite_stays() -> None:
    for style in ("share", "number"):
        shown = public_cell(Measure(math.inf, 5000, style), Rule(10))  # type: ignore[arg-type]
        assert isinstance(shown, Measure) and shown.value == math.inf


def test_steps_are_the_same_for_all_but_everybody() -> None:
    """By their steps one could tell how large a row is; a large report has finer ones, with more that are too few."""
    assert {Rule(10).step_of(whole) for whole in (200, 2000, 10**6)} == {Fraction(1, 20)}
    for persons, step, fewest in ((4000, 20, 200), (100_000, 100, 1000), (10**7, 1000, 10_000)):
        everybody = Verdict("V", Share(1, persons, everybody=True), "", "", "share", "s", "a.parquet")
        rule = Rule.of(report(verdicts=(everybody,)), 10)
        assert (rule.step, rule.fewest) == (Fraction(1, step), fewest)
    assert Rule(10).step_of(4000, everybody=True) == Fraction(1, 200)
    assert Rule.of(report(verdicts=(replace(everybody, number=Share(1, 10**7)),)), 10) == Rule(10)


# What the order of rows and the words tell


def test_rows_stand_in_the_order_of_public_numbers() -> None:
    """By exact numbers b is first; for the public both are the same, so that they stand by name."""
    rows = [["b", Share(504, 1000)], ["a", Share(500, 1000)], ["d", Share(9, 9)], ["c", Share(800, 1000)]]
    ranked = replace(table(rows), order=(1, True))
    (shown,) = publish(report(Section("s", "S", "Lead.", (ranked,))), 10).tables()
    assert [row[0] for row in shown.rows] == ["c", "a", "b", "d"]


def test_an_area_of_few_looks_like_one_of_nobody() -> None:
    """Only inhabited areas have a row: one with a single person in it would be told by its row."""
    rows: list[list[Cell]] = [["a", Share(500, 1000)], ["b", Share(0, 1)]]
    shown = [
        publish(report(Section("s", "S", "Lead.", (replace(table(some), inhabited=True),))), 10)
        for some in (rows, rows[:1])
    ]
    assert shown[0] == shown[1] and [[row[0] for row in one.rows] for one in shown[0].tables()] == [["a"]]
    few = replace(table(rows[1:]), inhabited=True)
    assert publish(report(Section("s", "S", "Lead.", (few,))), 10).sections[0].blocks == ()


def test_a_lead_that_names_the_greatest_is_said_otherwise() -> None:
    lead = Said("Most: b, {}.", (Share(504, 1000),))
    section = Section("s", "S", lead, (table([["b", Share(504, 1000)]]),), ranks=True)
    assert publish(report(section), 10).sections[0].lead == phrase("page.see_numbers")
    assert text(publish(report(replace(section, ranks=False)), 10).sections[0].lead) == "Most: b, 50.0%."


def test_no_number_looks_like_a_hidden_one() -> None:
    """A dash would tell that nobody is there; where a column is about nobody, it stays."""
    rows = [["a", Share(300, 900), None], ["b", None, Measure(0.2, 0, "share")]]
    (shown,) = publish(report(Section("s", "S", "Lead.", (table(rows),))), 10).tables()
    assert shown.rows[1][1] is HIDDEN and shown.rows[0][2] is None


# Digests

DIGESTS = (("run", "0a" * 32), ("input: records", "1b" * 32))


def test_digests_are_not_public() -> None:
    inside = replace(report(), digests=DIGESTS)
    assert publish(inside, 10).digests == ()
    public = str(publish(inside, 10))
    assert "0a0a" not in public and "1b1b" not in public
    for picture in (page(publish(inside, 10)), str(sheets(publish(inside, 10)))):
        assert "0a0a" not in picture and "1b1b" not in picture
    assert "SHA-256 1b1b" in page(inside)


def test_a_key_gives_digests_that_only_it_can_check() -> None:
    inside, key = replace(report(), digests=DIGESTS), bytes(range(32))
    shown = publish(inside, 10, key)
    assert shown.digests == tuple(
        (role, hmac.new(key, digest.encode(), "sha256").hexdigest()) for role, digest in DIGESTS
    )
    assert shown.digests != publish(inside, 10, bytes(32)).digests
    assert phrase("page.digests_keyed") in page(shown) and phrase("page.digests_none") in page(publish(inside, 10))
    assert f"HMAC-SHA-256 {shown.digests[0][1]}" in page(shown)


# The report as a whole

TOWN = table([["1", Share(4, 90), Share(300, 900)], ["2", Share(100, 500), Share(2, 900)]], name="town")
SECRET = table([["1", Count(4000)]], name="secret", records=True)
SHAPES = {"1": Shape((0, 0)), "3": Shape((1, 1))}


def everything() -> Report:
    def pictures(of: Table) -> tuple[Chart, Map, Explorer, Noise]:
        said = Said("{} persons.", (Count(4),))
        return (
            Chart("c" + of.name, "C", said, of, (Series(1, "n"),), "persons"),
            Map("m" + of.name, "M", said, of, 1, SHAPES, "persons"),
            Explorer("e" + of.name, "E", said, of, (1,), (1,)),
            Noise("n" + of.name, "N", said, of, (("all", 1.0),), 0.1, 1.0, 2.0),
        )

    verdicts = tuple(
        Verdict("V", number, Said("{} of {}", (Count(4), Count(299))), "Bad.", "share", section, "a.parquet")
        for number, section in ((Count(4), "open"), (Share(300, 900, 0.2, 0.4), "closed"), (HIDDEN, "open"))
    )
    said = Words(
        (Said("{} persons, {}.", (Count(4), Measure(0.5, 0, "share"))), "Plain."), (Said("{}", (Count(299),)),)
    )
    noted = replace(TOWN, name="noted", notes=(Said("{} are few.", (Count(4),)),))
    sections = (
        Section(
            "open", "Open", Said("{}", (Count(4),)), (said, TOWN, SECRET, noted, *pictures(TOWN), *pictures(SECRET))
        ),
        Section("closed", "Closed", "Persons.", (TOWN,), records=True),
    )
    whole = replace(report(*sections, verdicts=verdicts), findings=(Said("{} found", (Count(4),)), "Plain."))
    return replace(whole, certificate=(("input", "/home/me/cef.parquet"), ("rho", "1/2")))


def test_records_are_dropped_with_their_pictures() -> None:
    public = publish(everything(), 10)
    assert public.version == "public"
    assert [section.name for section in public.sections] == ["open"]
    names = [getattr(block, "name", "words") for block in public.sections[0].blocks]
    assert names == ["words", "town", "noted", "ctown", "mtown", "etown", "ntown", "nsecret"]
    assert [one.name for one in public.tables()] == ["town", "noted"]
    assert public.sections[0].blocks[-1].table is None  # type: ignore[union-attr]
    assert [verdict.section for verdict in public.verdicts] == ["open", "", "open"]


def test_a_map_keeps_the_shapes_of_its_rows() -> None:
    (found,) = (block for block in publish(everything(), 10).sections[0].blocks if isinstance(block, Map))
    assert found.shapes == {"1": Shape((0, 0))}
    assert found.table.rows[0][1] is HIDDEN


def test_sentences_have_public_numbers() -> None:
    public = publish(everything(), 10)
    (said, *_), verdict = public.sections[0].blocks, public.verdicts[0]
    assert isinstance(said, Words)
    assert [text(one) for one in said.paragraphs] == ["(hidden) persons, 50.0%.", "Plain."]
    assert [text(one) for one in (*said.points, *public.findings)] == ["300", "(hidden) found", "Plain."]
    assert (text(verdict.beside), text(public.sections[0].lead)) == ("(hidden) of 300", phrase("page.too_few_here"))
    assert verdict.number is HIDDEN and public.verdicts[1].number == Measure(0.35, 200, "share", 0.2, 0.4)
    notes = next(one for one in public.tables() if one.name == "noted").notes
    assert [text(note) for note in notes] == ["(hidden) are few."]
    for block in public.sections[0].blocks:
        if hasattr(block, "says"):
            assert text(block.says) == "(hidden) persons."


def test_publishing_twice_changes_nothing() -> None:
    public = publish(everything(), 10)
    assert publish(public, 10) == public


@pytest.mark.parametrize(
    ("value", "public"),
    [
        ("/home/me/my data/cef.parquet", "cef.parquet"),
        ("a/b.csv, c/d.csv; ~/x y/e.csv", "b.csv, d.csv; e.csv"),
        (r"C:\Users\me\a b\cef.csv", "cef.csv"),
        ("glasshouse report /tmp/run --out ../there/ --seed 1", "glasshouse report run --out there --seed 1"),
        ('glasshouse report "runs/a" --config=/etc/x.toml', 'glasshouse report "a" --config=x.toml'),
        ("293764/114921", "293764/114921"),
        ("https://www.census.gov/x", "https://www.census.gov/x"),
        ("sha256 0a1b", "sha256 0a1b"),
        ("", ""),
    ],
)
def test_the_certificate_names_files_without_folders(value: str, public: str) -> None:
    assert without_folders(value) == public
    assert without_folders(public) == public


@pytest.mark.parametrize("places", [0, 1, 9])
def test_a_row_about_too_few_places_is_hidden_whole(places: int) -> None:
    """740 people in a band of so few blocks could be one block."""
    rows = [["10-49", Count(140), Count(3260), Share(2600, 3260), Measure(0.7, 0, "share")],
            ["500-999", Count(places), Count(740), Share(540, 740), Measure(0.008, 0, "share")]]  # fmt: skip
    few = replace(table(rows), places=1)
    behind = replace(table([[row[0], *row[2:]] for row in rows]), behind=(140, places))
    for one in (few, behind):
        (shown,) = publish(report(Section("s", "S", "Lead.", (one,))), 10).tables()
        assert shown.rows[1] == ("500-999", HIDDEN, Measure(0.008, 0, "share"))
        assert HIDDEN not in shown.rows[0]


def test_a_table_without_a_number_left_is_dropped() -> None:
    gone, kept = (
        table([["a", Share(2, 9), None]], name="gone"),
        table([["a", Share(2, 9), Share(30, 300)]], name="kept"),
    )
    assert [one.name for one in publish(report(Section("s", "S", "Lead.", (gone, kept))), 10).tables()] == ["kept"]
