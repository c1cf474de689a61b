"""How does a column of a file become counts, or intervals of them? Whatever cannot be read is refused with its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.frames import Source, as_text
from glasshouse.model.printed import BLANK, EXACT, Printed
from glasshouse.model.records import UNLIMITED, Interval

Where = Callable[[int], str]
SPACES = " \u00a0\u202f\u2009"  # what may stand between thousands, where a space does
ENDS = "an interval the columns lower and upper"
SHOWN = 20  # letters of a wrong value that a complaint repeats


@dataclass(frozen=True)
class Numbers:
    """Some printed numbers: the texts, the marks beside them if any, the lines they stand in, and what to call them."""

    value: pl.Series
    line: pl.Series
    where: Where
    status: pl.Series | None = None
    called: Callable[[int], str] = lambda at: "the value"

    def intervals(self, printed: Printed) -> tuple[pl.Series, pl.Series]:
        """The ends of the interval that holds the count behind each number."""
        if self.value.dtype.is_float() and printed.rule is None:
            self.refuse_first(_not_whole(self.value), "it is a decimal", printed)
        text = self.value if self.value.dtype.is_numeric() else self.value.cast(pl.String).str.strip_chars()
        decimals = printed.rule is not None and not printed.rule.whole
        shown = text.cast(pl.Float64 if decimals else pl.Int64, strict=False)
        if decimals:
            shown = shown.set(~shown.is_finite(), None)
        if text.dtype.is_float() and not decimals:
            shown = shown.set(_not_whole(text), None)
        marks = self._marks(printed)
        odd = shown.is_null() | marks.is_not_null()
        if text.dtype == pl.String:
            odd |= text.is_in(list(printed.markers)) | ~text.fill_null("").str.contains(
                r"^-?[0-9]+(\.[0-9]*)?$" if decimals else r"^-?[0-9]+$"
            )
            if decimals and printed.decimal == ",":
                odd |= text.str.contains(".", literal=True)
        else:  # a number may be a mark as well: -1 for what is hidden
            odd |= as_text(text).is_in(list(printed.markers))
        shown = shown.set(odd, 0)
        lower, upper = (pl.Series(end, dtype=pl.Int64) for end in printed.behind(shown.to_numpy()))
        wrong = (lower > upper) | (upper > UNLIMITED) | (shown > UNLIMITED) | ((shown < 0) & (not decimals))
        self.refuse_first(wrong & ~odd, "", printed)
        return (lower, upper) if not odd.any() else self._told_apart(lower, upper, odd, text, marks, printed)

    def _marks(self, printed: Printed) -> pl.Series:
        """The marks beside numbers that matter: not those of which it is said that the number stands."""
        if self.status is None:
            return pl.Series([None], dtype=pl.String).new_from_index(0, len(self.value))
        marks = self.status.cast(pl.String).str.strip_chars()
        stands = [mark for mark, said in printed.markers.items() if said is None]
        return marks.set(marks.is_in([BLANK, *stands]), None)

    def _told_apart(
        self, lower: pl.Series, upper: pl.Series, odd: pl.Series, text: pl.Series, marks: pl.Series, printed: Printed
    ) -> tuple[pl.Series, pl.Series]:
        """The ends again, where texts and marks must be looked at one by one; each pair of them once."""
        frame = pl.DataFrame({"text": as_text(text), "mark": marks}).with_row_index("at").filter(odd)
        pairs = frame.group_by("text", "mark", maintain_order=True).agg(pl.col("at").first())
        ends: list[tuple[int, int]] = []
        for said, mark, at in pairs.iter_rows():
            found = _told(said or BLANK, mark, printed)
            if isinstance(found, str):
                self._refuse(at, found, printed)
            else:
                ends.append(found)
        told = pairs.with_columns(
            lower=pl.Series([one[0] for one in ends], dtype=pl.Int64),
            upper=pl.Series([one[1] for one in ends], dtype=pl.Int64),
        )
        joined = frame.join(told.drop("at"), on=["text", "mark"], how="left", nulls_equal=True, maintain_order="left")
        return lower.scatter(joined["at"], joined["lower"]), upper.scatter(joined["at"], joined["upper"])

    def refuse_first(self, wrong: pl.Series, fault: str, printed: Printed) -> None:
        if wrong.any():
            self._refuse(int(wrong.arg_max() or 0), fault, printed)

    def _refuse(self, at: int, fault: str, printed: Printed) -> None:
        given = self.value[at]
        text = as_text(self.value.slice(at, 1))[0]
        found = "empty" if text is None or not text.strip() else f"'{text[:SHOWN]}{'...' if len(text) > SHOWN else ''}'"
        number = _number(text.strip(), printed) if text else None
        expected = "expected a whole number from 0 up"
        remedy = f"; a mark needs a meaning (--marker TEXT=1..4, or [printed] markers), {ENDS}"
        if number is not None and number > UNLIMITED:
            remedy = f", at most {UNLIMITED:,}"
        elif number is not None and number >= 0 and printed.rule is not None and not fault:
            expected = f"no count becomes this when it is {printed.rule.told}"
            remedy = "; if these numbers were printed in another way, say in which (--exact: counts as they are)"
        elif found == "empty":
            remedy = f"; an empty cell needs a meaning (--marker blank=1..4, or blank=any), {ENDS}"
        elif given is not None and re.fullmatch(r"[0-9]{1,3}([,.' \u00a0\u202f][0-9]{3})+", str(given).strip()):
            remedy = "; if a sign separates thousands, say which (--thousands ,)"
        said = f" ({fault})" if fault and not fault.startswith("it is") else ""
        raise InputError(f"{self.where(int(self.line[at]))}: {self.called(at)} is {found}{said}; {expected}{remedy}")


def _told(text: str, mark: str | None, printed: Printed) -> tuple[int, int] | str:
    """The interval of a text with a mark beside it; or what is wrong with it."""
    if mark is not None and mark not in printed.markers:
        return (
            f"with the mark '{mark[:SHOWN]}', which has no meaning: --marker {mark[:SHOWN]}=shown if the number stands"
        )
    stands: Interval | None = printed.markers[mark] if mark is not None else printed.markers.get(text)
    if stands is not None:
        return stands.lower, stands.upper
    if match := re.fullmatch(r"([0-9]{1,13})\.\.([0-9]{1,13})?", text):  # an interval, spelt out
        lower, upper = int(match[1]), int(match[2] or UNLIMITED)
        return (lower, upper) if lower <= upper <= UNLIMITED else "lower is above upper"
    number = _number(text, printed)
    if number is None or (number < 0 and (printed.rule is None or printed.rule.whole)) or number > UNLIMITED:
        return "it is no count"
    kind = np.int64 if printed.rule is None or printed.rule.whole else np.float64
    if kind is np.int64 and number.denominator > 1:
        return "it is a decimal"
    (low,), (high,) = printed.behind(np.array([kind(number)]))
    return (int(low), int(high)) if low <= high else ""


def _number(text: str, printed: Printed) -> Fraction | None:
    """A number as an office writes it, with its signs for thousands and decimals; to the last digit."""
    between = f"[{SPACES}]" if printed.thousands == " " else re.escape(printed.thousands)
    groups = rf"[0-9]{{1,3}}(?:{between}[0-9]{{3}})+|" if printed.thousands else ""
    match = re.fullmatch(rf"(-?)({groups}[0-9]{{1,30}})(?:{re.escape(printed.decimal)}([0-9]{{0,30}}))?", text)
    if not match:
        return None
    whole, decimals = re.sub(r"[^0-9]", "", match[2]), match[3] or ""
    return Fraction(int(match[1] + whole + decimals), 10 ** len(decimals))


def _not_whole(column: pl.Series) -> pl.Series:
    return (column != column.round()).fill_null(False)


def counts(source: Source, frame: pl.DataFrame, column: str, blank: int | None = None) -> pl.Series:
    """A column of exact counts as whole numbers; a blank one may stand for a number of its own."""
    given = frame[column]
    if blank is not None:
        unlimited: object = (
            str(blank) if given.dtype == pl.String else float(blank) if given.dtype.is_float() else blank
        )
        given = given.set(is_blank(given), unlimited)
    numbers = Numbers(given, frame["line"], source.where, called=called(frame, column))
    lower, upper = numbers.intervals(EXACT)
    numbers.refuse_first(lower != upper, "it is an interval", EXACT)
    return lower


def called(frame: pl.DataFrame, column: str) -> Callable[[int], str]:
    """What a complaint calls a number of a long or a wide file."""
    named = column in ("value", "lower", "upper") and "variable" in frame.columns
    return lambda at: f"{column} of {frame['variable'][at]}" if named else column


def is_blank(column: pl.Series) -> pl.Series:
    return column.is_null() | (column.str.strip_chars() == "") if column.dtype == pl.String else column.is_null()


def refuse(source: Source, frame: pl.DataFrame, wrong: pl.Expr, message: str) -> None:
    """Refuse the first row that is wrong."""
    bad = frame.filter(wrong)
    if bad.height:
        raise InputError(f"{source.where(int(bad['line'][0]))}: {message}")
