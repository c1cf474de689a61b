"""Does the interval of a printed number always hold the count behind it? And is what cannot be printed refused?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.errors import InputError
from glasshouse.files.office.counts import Numbers
from glasshouse.model.printed import ANYTHING, Keyed, Noisy, Printed, Rounded
from glasshouse.model.records import UNLIMITED, Interval
from glasshouse.scenarios.printed import markers, meaning, read_changes, rounded
from glasshouse.scenarios.printed import read as read_printed

ONS = Path(__file__).resolve().parents[2] / "shared" / "data" / "world" / "ons" / "ptable_10_5_rule.csv.gz"
HOW = ["random", "nearest", "half-up", "up", "down"]


def intervals(values: list[str | None], printed: Printed, status: list[str | None] | None = None) -> list[Interval]:
    numbers = Numbers(
        pl.Series(values, dtype=pl.String),
        pl.Series(range(2, len(values) + 2), dtype=pl.Int64),
        lambda line: f"toy.csv, line {line}",
        None if status is None else pl.Series(status, dtype=pl.String),
    )
    lower, upper = numbers.intervals(printed)
    return [Interval(low, high) for low, high in zip(lower, upper, strict=True)]


def ways_to_print(count: int, base: int, how: str, zeros: str) -> set[int]:
    """Every number that an office may print, by what its words mean; written without the code under test."""
    below, above = count // base * base, -(-count // base) * base
    middle = 2 * count - below - above  # twice the distance from the middle
    found = {
        "random": {below, above},
        "up": {above},
        "down": {below},
        "half-up": {above if middle >= 0 and below != above else below},
        "nearest": {below} if middle < 0 else {above} if middle > 0 else {below, above},
    }[how]
    return found if zeros == "any" or count == 0 else {number or base for number in found}


@given(
    st.integers(0, 10**6), st.integers(2, 1000), st.sampled_from(HOW), st.sampled_from(["any", "kept"])
)  # fmt: skip
def test_a_rounded_number_admits_every_count_that_may_be_printed_so(
    count: int, base: int, how: str, zeros: str
) -> None:
    printed = Printed(Rounded(base, how, zeros))  # type: ignore[arg-type]  # drawn from the words
    for shown in ways_to_print(count, base, how, zeros):
        assert shown >= 0
        ((lower, upper),) = intervals([str(shown)], printed)
        assert lower <= count <= upper
        assert upper - lower < 2 * base


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("zeros", ["any", "kept"])
@pytest.mark.parametrize("base", [2, 3, 4, 5, 10])
def test_the_ends_of_a_rounded_number_are_reached(base: int, how: str, zeros: str) -> None:
    """No wider than it must be: both ends, of every printed number, are counts that may be printed so."""
    printed = Printed(Rounded(base, how, zeros))  # type: ignore[arg-type]
    behind: dict[int, set[int]] = {}
    for count in range(10 * base):
        for shown in ways_to_print(count, base, how, zeros):
            behind.setdefault(shown, set()).add(count)
    for shown in range(0, 6 * base, base):
        assert intervals([str(shown)], printed) == [(min(behind[shown]), max(behind[shown]))]
    assert printed.zero == (min(behind[0]), max(behind[0]))


@given(st.data())
def test_a_cell_key_admits_every_count_that_may_be_printed_so(data: st.DataObject) -> None:
    top = data.draw(st.integers(1, 8))
    rows = [data.draw(st.frozensets(st.integers(-min(count, 4), 4), min_size=1, max_size=4)) for count in range(top)]
    larger = data.draw(st.frozensets(st.integers(-min(top, 4), 4), min_size=1, max_size=4))
    rule = Keyed(tuple(rows), larger)
    shown_by: dict[int, set[int]] = {}
    for count in range(60):
        for change in rows[count] if count < top else larger:
            shown_by.setdefault(count + change, set()).add(count)
    for shown in range(40):
        (lower,), (upper,) = rule.behind(np.array([shown]))
        if shown in shown_by:
            assert (lower, upper) == (min(shown_by[shown]), max(shown_by[shown]))
        else:
            assert lower > upper
            with pytest.raises(InputError, match="no count becomes this"):
                intervals([str(shown)], Printed(rule))


@given(st.integers(0, 10**6), st.floats(0, 50), st.floats(-1, 1))
def test_noise_within_a_bound_admits_the_count(count: int, within: float, share: float) -> None:
    shown = f"{count + within * share:.9f}"
    if abs(float(shown) - count) <= within:
        ((lower, upper),) = intervals([shown], Printed(Noisy(within)))
        assert 0 <= lower <= count <= upper


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=1, max_size=20), st.integers(2, 9))
def test_marks_admit_the_truth(cells: list[tuple[int, bool]], below: int) -> None:
    """Small counts have a mark, some others another; as texts and as statuses, with numbers as they are."""
    printed = Printed(markers={"c": Interval(1, below - 1), "..": ANYTHING, "-": Interval(0, 0), "r": None})

    def mark(count: int, hidden: bool) -> str | None:
        return "-" if count == 0 else "c" if count < below else ".." if hidden else None

    marks = [mark(count, hidden) for count, hidden in cells]
    texts = [said or str(count) for said, (count, _) in zip(marks, cells, strict=True)]
    beside = [said or "r" for said in marks]
    nothing = [None if said else str(count) for said, (count, _) in zip(marks, cells, strict=True)]
    for found in (intervals(texts, printed), intervals(nothing, printed, beside)):
        for (count, _), (lower, upper), said in zip(cells, found, marks, strict=True):
            assert lower <= count <= upper
            assert said is not None or lower == upper


@pytest.mark.parametrize(
    ("printed", "texts", "expected"),
    [
        (Printed(thousands=","), ["1,234", "12", "1,234,567", "5.0"], [1234, 12, 1234567, 5]),
        (Printed(thousands=".", decimal=","), ["1.234", "1.234,00", "7,0"], [1234, 1234, 7]),
        (Printed(thousands=" "), ["1 234", "1\u00a0234", "1\u202f234"], [1234, 1234, 1234]),
        (Printed(thousands="'"), ["1'234"], [1234]),
        (Printed(), [" 12 ", "12.00", "007"], [12, 12, 7]),
    ],
)
def test_numbers_as_offices_write_them(printed: Printed, texts: list[str], expected: list[int]) -> None:
    assert [(one.lower, one.upper) for one in intervals(texts, printed)] == [(n, n) for n in expected]


@pytest.mark.parametrize(
    ("printed", "text", "words"),
    [
        (Printed(), "c", "toy.csv, line 2: the value is 'c'; expected a whole number from 0 up; a mark needs"),
        (Printed(), None, "is empty.*--marker blank="),
        (Printed(), "1,234", "--thousands ,"),
        (Printed(), "12.5", "expected a whole number"),
        (Printed(), "3.00000000000000000001", "expected a whole number"),
        (Printed(), "-3", "expected a whole number from 0 up"),
        (Printed(), "1e3", "expected a whole number"),
        (Printed(), str(UNLIMITED + 1), "at most 1,000,000,000,000"),
        (Printed(), "5..2", "lower is above upper"),
        (Printed(thousands=","), "1,23", "expected a whole number"),
        (Printed(thousands=".", decimal=","), "1.5", "expected a whole number"),
        (Printed(Rounded(3)), "17", "'17'; no count becomes this when it is rounded to a multiple of 3.*--exact"),
        (Printed(Rounded(3)), "-3", "expected a whole number from 0 up"),
        (Printed(Noisy(2)), "-3", "expected a whole number"),
        (Printed(Noisy(2)), "nan", "expected a whole number"),
        (Printed(Noisy(2)), "inf", "expected a whole number"),
    ],
)  # fmt: skip
def test_what_cannot_be_printed_is_refused_with_its_line(printed: Printed, text: str | None, words: str) -> None:
    with pytest.raises(InputError, match=words):
        intervals([text], printed)


def test_a_status_without_a_meaning_is_refused() -> None:
    assert intervals(["5"], Printed(markers={"p": None}), ["p"]) == [(5, 5)]
    assert intervals(["5"], Printed(markers={"p": ANYTHING}), ["p"]) == [ANYTHING]  # the number does not stand
    with pytest.raises(InputError, match="mark 'p', which has no meaning: --marker p=shown"):
        intervals(["5"], Printed(), ["p"])


def test_a_number_can_be_a_mark() -> None:
    frame = pl.Series([-1, 4])
    numbers = Numbers(frame, pl.Series([2, 3]), str)
    lower, upper = numbers.intervals(Printed(markers={"-1": Interval(1, 2)}))
    assert (lower.to_list(), upper.to_list()) == ([1, 4], [2, 4])


def test_meanings_and_rounding_in_short() -> None:
    assert markers({"c": "1..4", "x": "3..", "blank": 0}) == {"c": (1, 4), "x": (3, UNLIMITED), "": (0, 0)}
    assert rounded("10:nearest:kept") == Rounded(10, "nearest", "kept")
    for said in ("4..1", "some", "-1", "1..4..5", ""):
        with pytest.raises(InputError, match="stands for"):
            meaning("c", said)
    for text in ("three", "3:often", "3:random:sometimes", "3:random:kept:more", "1", "0"):
        with pytest.raises(InputError):
            rounded(text)


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ({"noise": {"scale": 2.0}}, "no interval holds the truth for certain"),
        ({"rounded": 3, "noise": {"within": 2}}, "expected one of rounded, cell_key and noise"),
        ({"missing": "unknown"}, "meaning of a missing row"),
        ({"thousands": ","  , "decimal": ","}, "two different signs"),
        ({"decimal": ";"}, "sign for decimal"),
        ({"rounding": 3}, "entry of printed"),
        ({"markers": {"": "0", "blank": "any"}}, "explained twice"),
    ],
)  # fmt: skip
def test_a_convention_that_says_nothing_certain_is_refused(toml: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        read_printed(toml, tmp_path)


def test_both_layouts_of_a_p_table(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
    ours.write_text("# ours\ncount,change,probability\n0,0,1\n1,-1,0.5\n1,1,0.5\n2,0,1\n")
    theirs.write_text("\ufeff" + '"pcv","ckey","pvalue"\n1,0,-1\n1,1,1\n2,0,0\n2,1,0\n')
    shown = np.arange(6)
    for path in (ours, theirs):
        lower, _ = read_changes(path).behind(shown)
        assert lower[0] == 0
    assert [end.tolist() for end in read_changes(ours).behind(shown)] == [
        [0, UNLIMITED, 1, 3, 4, 5],
        [1, -1, 2, 3, 4, 5],
    ]
    assert read_changes(theirs).behind(np.array([9]))[1].tolist() == [10]  # the last rows, in turn: any of them
    for text in (
        "count,chance\n0,1\n",
        "pcv,ckey,pvalue\n1,0,x\n",
        "pcv,ckey,pvalue\n2,0,0\n",
        "count,change\n0,-1\n",
        "",
    ):
        ours.write_text(text)
        with pytest.raises(InputError, match=r"ours\.csv"):
            read_changes(ours)


@pytest.mark.skipif(not ONS.is_file(), reason="needs shared/data/world")
def test_the_p_table_of_the_ons_admits_every_count() -> None:
    frame = pl.read_csv(ONS)
    rule = read_changes(ONS)
    repeated = pl.DataFrame({"pcv": range(751, 1501)}).with_columns(row=(pl.col("pcv") - 1) % 250 + 501)
    more = repeated.join(frame, left_on="row", right_on="pcv").select("pcv", "ckey", "pvalue")
    every = pl.concat([frame, more], how="vertical_relaxed").select(count="pcv", shown=pl.col("pcv") + pl.col("pvalue"))
    lower, upper = rule.behind(every["shown"].to_numpy())
    assert ((lower <= every["count"].to_numpy()) & (every["count"].to_numpy() <= upper)).all()
    assert rule.behind(np.array([0]))[1].tolist() == [9]  # counts below 10 are printed as 0
