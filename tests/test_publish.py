"""Does the public version hide what it must? Every rule of `report.publish`, and nobody computes what is hidden."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
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
    Hidden,
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
    words,
)
from glasshouse.report.publish import COARSE, public_cell, publish, rounded, without_folders
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
def test_a_count_is_hidden_or_near_and_of_four_digits(count: int, t: int) -> None:
    shown = rounded(count, t)
    if count == 0:
        assert shown == 0
    elif count < t:
        assert shown is None
    else:
        assert shown is not None and shown >= t
        unit = max(t, 10 ** max(len(str(count)) - 4, 0))
        assert abs(shown - count) <= unit / 2 + (unit / 2 if len(str(shown)) > len(str(count)) else 0)
        assert shown % max(t, 10 ** max(len(str(shown)) - 4, 0)) == 0
        assert rounded(shown, t) == shown


@given(st.integers(0, 10**6), st.integers(0, 1000), thresholds)
def test_more_persons_are_never_shown_as_fewer(count: int, more: int, t: int) -> None:
    assert (rounded(count, t) or 0) <= (rounded(count + more, t) or 0) or rounded(count + more, t) is None


def test_counts_of_other_things_stay() -> None:
    assert public_cell(Count(2, people=False), 10) == Count(2, people=False)
    assert public_cell(Count(12_345, people=False), 10) == Count(12_345, people=False)
    assert public_cell(Count(2), 10) is HIDDEN
    assert public_cell(Count(12_345), 10) == Count(12_350)
    assert public_cell(Count(308_745_538), 10) == Count(308_700_000)


@pytest.mark.parametrize("t", [-1, 0, 1, 2])
def test_a_threshold_that_hides_nothing_is_refused(t: int) -> None:
    with pytest.raises(InputError, match="expected 3 or more"):
        publish(report(), t)


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
def test_a_share_is_hidden_if_any_of_its_counts_is_small(share: Share, t: int) -> None:
    rest = share.whole - share.part
    shown = public_cell(share, t)
    coarse = (rounded(share.whole, t) or 0) < COARSE * t  # rounding would move it by more than 2.5 points
    small = coarse or 0 < share.part < t or 0 < rest < t
    assert (shown is HIDDEN) == small
    if isinstance(shown, Share):
        assert shown.whole == rounded(share.whole, t)
        assert 0 <= shown.part <= shown.whole
        assert (shown.part == 0) == (share.part == 0)
        assert rest or shown.part == shown.whole
        assert shown.whole - shown.part == 0 or shown.whole - shown.part >= t
        assert (shown.low is None) == (share.low is None)


@given(shares(), thresholds)
def test_an_interval_grows_and_stands_on_a_coarse_grid(share: Share, t: int) -> None:
    shown = public_cell(share, t)
    if isinstance(shown, Share) and shown.low is not None and shown.high is not None:
        assert share.low is not None and share.high is not None
        assert 0 <= shown.low <= share.low + 1e-9 and share.high - 1e-9 <= shown.high <= 1
        assert shown.low <= shown.value <= shown.high
        grid = max(0.01, t / shown.whole)
        assert abs(shown.low / grid - round(shown.low / grid)) < 1e-6
        assert shown.high == 1 or abs(shown.high / grid - round(shown.high / grid)) < 1e-6


def test_an_exact_interval_would_tell_the_counts_and_the_public_one_does_not() -> None:
    """Wilson's ends give k and n; after rounding, neighbours look alike."""
    exact = {wilson(k, n)[0].item() for n in (997, 998, 999, 1000) for k in (500, 501, 502)}
    assert len(exact) == 12
    shown = {
        public_cell(Share(k, n, *(float(end) for end in wilson(k, n))), 10)
        for n in (997, 998, 999, 1000)
        for k in (500, 501, 502)
    }
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
    shown = public_cell(measure, t)
    if measure.over == 0:
        assert shown == measure
    elif (rounded(measure.over, t) or 0) < (1 if measure.style == "number" else COARSE) * t:
        assert shown is HIDDEN
    else:
        assert isinstance(shown, Measure) and shown.over == rounded(measure.over, t)
        if measure.style == "number":
            assert abs(shown.value - measure.value) <= 0.06 * abs(measure.value)
            assert float(f"{shown.value:.1e}") == shown.value
        else:
            grid = max(0.001, t / shown.over)
            assert abs(shown.value - measure.value) <= grid / 2 + 1e-6
        if measure.low is not None and measure.high is not None:
            assert shown.low is not None and shown.high is not None
            assert shown.low <= measure.low + 1e-6 and shown.high >= measure.high - 1e-6
            assert shown.low <= shown.value + 1e-9 and shown.value <= shown.high + 1e-9


def test_what_is_not_finite_stays() -> None:
    for style in ("share", "number"):
        shown = public_cell(Measure(math.inf, 5000, style), 10)  # type: ignore[arg-type]
        assert isinstance(shown, Measure) and shown.value == math.inf


@given(st.one_of(shares(), measures(), sizes.map(Count)), thresholds)
@settings(max_examples=500)
def test_what_is_public_stays_as_it_is(cell: Cell, t: int) -> None:
    shown = public_cell(cell, t)
    assert public_cell(shown, t) == shown


# Totals: an oracle looks at every table that gives the same public one


def looks(rows: list[list[int]], t: int) -> tuple[tuple[int | None, ...], ...]:
    cells = published([[f"r{at}", *map(Count, row)] for at, row in enumerate(rows)], t)
    return tuple(tuple(cell.value if isinstance(cell, Count) else None for cell in row[1:]) for row in cells)


def with_totals(rows: list[list[int]]) -> list[list[int]]:
    """The total of each row at its end, and below it, where there are several rows, the total of each column."""
    wide = [[*row, sum(row)] for row in rows]
    return [*wide, [sum(column) for column in zip(*wide, strict=True)]] if len(rows) > 1 else wide


@pytest.mark.parametrize(
    ("t", "rows", "columns", "most"),
    [(3, 1, 2, 12), (3, 1, 3, 9), (4, 1, 3, 10), (5, 1, 2, 18), (3, 2, 2, 7), (4, 2, 2, 8)],
)
def test_nobody_can_compute_a_hidden_count_from_totals(t: int, rows: int, columns: int, most: int) -> None:
    """At least two values of every hidden count go with all that is shown, whoever knows the rules."""
    alike = defaultdict(list)
    for numbers in product(range(most + 1), repeat=rows * columns):
        exact = with_totals([list(numbers[at * columns : (at + 1) * columns]) for at in range(rows)])
        alike[looks(exact, t)].append(exact)
    hidden = 0
    for shown, exact in alike.items():
        if any(max(row[:-1]) > most - t for row in exact[0][:rows]):
            continue  # tables with larger numbers look the same: not all were listed
        for r, row in enumerate(shown):
            for c, cell in enumerate(row):
                if cell is None or (rows == 1 and cell):  # of a line, rounded counts are not told either
                    hidden += cell is None
                    assert len({table[r][c] for table in exact}) > 1, (shown, exact)
    assert hidden > 10


@given(st.lists(st.integers(0, 60), min_size=2, max_size=14), st.sampled_from([3, 4, 5, 7, 10, 20]), st.data())
@settings(max_examples=400, deadline=None)
def test_a_neighbour_of_the_table_looks_the_same(parts: list[int], t: int, data: st.DataObject) -> None:
    """For a line of any length: a hidden part can be one more or one less, another part or the total making up."""
    small = [at for at, part in enumerate(parts) if 0 < part < t]
    if not small:
        return
    at = data.draw(st.sampled_from(small))
    shown = looks(with_totals([parts]), t)
    for by in (1, -1):
        changed = parts.copy()
        changed[at] += by
        others = [changed] + [
            [number - by if other == here else number for here, number in enumerate(changed)]
            for other in range(len(parts))
            if other != at
        ]
        if any(min(other) >= 0 and looks(with_totals([other]), t) == shown for other in others):
            return
    raise AssertionError(f"{parts} is the only table that looks like {shown}")


@pytest.mark.parametrize(
    ("t", "parts"),
    [
        (3, [1, 3]),  # 1 + 3 = 4: shown as 3, which is 3 or 4
        (3, [1, 1]),  # 2 is hidden, and only 1 + 1
        (10, [10, 1, 1, 1, 1]),  # 14 is shown as 10: from 10 to 14
        (10, [14, 14, 14, 14, 9]),  # 65 is shown as 70: from 65 to 74
        (10, [15] * 10 + [1] * 4),  # 154 is shown as 150
    ],
)
def test_rounding_by_itself_would_tell(t: int, parts: list[int]) -> None:
    """Totals at an end of what the parts allow: these look like another total, so that there is more than one table."""
    shown = looks(with_totals([parts]), t)[0]
    assert shown[:-1] == tuple(rounded(part, t) for part in parts)
    assert shown[-1] != rounded(sum(parts), t)


def test_totals_of_rows_are_hidden_where_columns_have_totals_too() -> None:
    shown = looks(with_totals([[2, 300], [400, 500]]), 10)
    assert shown == ((None, 300, None), (400, 500, None), (400, 800, 1200))
    whole = looks(with_totals([[20, 300], [400, 500]]), 10)
    assert None not in sum(whole, ())


def test_totals_within_a_group_are_looked_at() -> None:
    rows: list[list[Cell]] = [
        *([group, name, Count(value)] for group in "ab" for name, value in zip("xyz", (1, 3, 4), strict=True))
    ]
    assert [row[2] for row in published(rows, 3, keys=2)] == 2 * [HIDDEN, Count(3), Count(6)]


# The report as a whole

TOWN = table([["1", Count(4), Share(300, 900)], ["2", Count(500), Share(2, 900)]], name="town")
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
        Verdict("V", number, Said("{} of {}", (Count(4), Count(99))), "Bad.", "share", section, "a.parquet")
        for number, section in ((Count(4), "open"), (Share(300, 900, 0.2, 0.4), "closed"), (HIDDEN, "open"))
    )
    said = Words((Said("{} persons, {}.", (Count(4), Measure(0.5, 0, "share"))), "Plain."), (Said("{}", (Count(99),)),))
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
    assert [text(one) for one in (*said.points, *public.findings)] == ["100", "(hidden) found", "Plain."]
    assert (text(verdict.beside), text(public.sections[0].lead)) == ("(hidden) of 100", phrase("page.too_few_here"))
    assert verdict.number is HIDDEN and public.verdicts[1].number == Share(300, 900, 0.2, 0.4)
    notes = next(one for one in public.tables() if one.name == "noted").notes
    assert [text(note) for note in notes] == ["(hidden) are few."]
    for block in public.sections[0].blocks:
        if hasattr(block, "says"):
            assert text(block.says) == "(hidden) persons."


def test_publishing_twice_changes_nothing() -> None:
    public = publish(everything(), 10)
    assert publish(public, 10) == public


@st.composite
def tables(draw: st.DrawFn) -> Table:
    width = draw(st.integers(1, 4))
    cells = st.one_of(sizes.map(Count), shares(), measures(), st.none(), st.just("text"))
    counts = st.integers(0, 40).map(Count)
    kind = draw(st.sampled_from([cells, counts]))
    rows = draw(st.lists(st.lists(kind, min_size=width, max_size=width), min_size=1, max_size=5))
    return table([["key", *row] for row in rows])


@given(tables(), thresholds)
@settings(max_examples=300)
def test_publishing_any_table_twice_changes_nothing(found: Table, t: int) -> None:
    public = publish(report(Section("s", "S", "Lead.", (found,))), t)
    assert publish(public, t) == public
    for row in (row for shown in public.tables() for row in shown.rows):
        for cell in row:
            small = isinstance(cell, Count) and 0 < cell.value < t
            assert not small
            assert isinstance(words(cell), str)
            assert isinstance(cell, Hidden) == (cell is HIDDEN)


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


def test_a_row_about_too_few_places_is_hidden_whole() -> None:
    """740 people in a band of which the number of blocks is hidden could be one block."""
    rows = [["10-49", Count(140), Count(3260), Share(2600, 3260), Measure(0.7, 0, "share")],
            ["500-999", Count(1), Count(740), Share(540, 740), Measure(0.008, 0, "share")]]  # fmt: skip
    few = replace(table(rows), places=1)
    (shown,) = publish(report(Section("s", "S", "Lead.", (few,))), 10).tables()
    assert shown.rows[1] == ("500-999", HIDDEN, HIDDEN, HIDDEN, Measure(0.008, 0, "share"))
    assert HIDDEN not in shown.rows[0]


def test_a_table_without_a_number_left_is_dropped() -> None:
    gone, kept = table([["a", Count(2), None]], name="gone"), table([["a", Count(2), Count(30)]], name="kept")
    assert [one.name for one in publish(report(Section("s", "S", "Lead.", (gone, kept))), 10).tables()] == ["kept"]
