"""How is a number of a report kept, and put into words? With its unit, and how many persons it is about."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Final, Literal

from glasshouse.report.language import one as one_text

# 12.3%, +1.2 points, 0.60 points, 2.94 persons, 3.14
Style = Literal["share", "points", "points off", "persons", "number"]
Unit = Literal["count"] | Style


@dataclass(frozen=True)
class Count:
    """So many. Of persons, or of what stands for persons (records, blocks, categories that occur in them).

    `people=False`: of what is known without them, as tables and settings.
    """

    value: int
    people: bool = True


@dataclass(frozen=True)
class Share:
    """A part of a whole, both counted; with an interval where it is an estimate. Of nobody it is no number.

    `everybody`: the whole is all that the report is about, so that it is no secret how many they are.
    """

    part: int
    whole: int
    low: float | None = None
    high: float | None = None
    everybody: bool = False

    @property
    def value(self) -> float:
        return self.part / self.whole if self.whole else nan


@dataclass(frozen=True)
class Measure:
    """A number that is no count, about `over` persons (0: about none, as a budget); a range where it is not exact.

    Shares and differences of shares (`points`) are given as fractions of 1, errors in points (`points off`) in points.
    With an `end` it is only known to be under, or over, the value.
    """

    value: float
    over: int
    style: Style
    low: float | None = None
    high: float | None = None
    end: Literal["", "under", "over"] = ""


class Hidden:
    """In place of a number about too few persons, in the public version."""

    def __repr__(self) -> str:
        return "HIDDEN"


HIDDEN: Final = Hidden()
Cell = Count | Share | Measure | Hidden | str | None  # None: this run has no such number


@dataclass(frozen=True)
class Said:
    """A sentence with numbers: `{}` in the template stands for a cell, so that the public version can hide it.

    A plain string is a sentence too, but only one without numbers about people. `text` puts either into words.
    """

    template: str  # of str.format: a literal brace is doubled
    cells: tuple[Cell, ...]


Sentence = str | Said


# A number as text: the same in every rendering

DASH = "\N{EN DASH}"


def words(cell: Cell) -> str:
    """A cell as it is printed, without its interval.

    >>> words(Share(3, 4)), words(Count(12345)), words(Measure(0.031, 0, "points")), words(HIDDEN)
    ('75.0%', '12,345', '+3.1 points', 'hidden')
    """
    match cell:
        case None:
            return DASH
        case str():
            return cell
        case Hidden():
            return one_text("numbers.hidden")
        case Count():
            return f"{cell.value:,}"
        case Share():
            return f"{cell.value:.1%}" if cell.whole else DASH
        case Measure():
            value = styled(cell.value, cell.style)
            return one_text(f"numbers.{cell.end}").format(value=value) if cell.end else value


def literal(text: str) -> str:
    """Text inside the template of a sentence: braces stand for themselves."""
    return text.replace("{", "{{").replace("}", "}}")


def text(sentence: Sentence) -> str:
    """A sentence as it is printed, its cells in words.

    >>> text("All of them."), text(Said("{} of {} persons.", (HIDDEN, Count(4000))))
    ('All of them.', '(hidden) of 4,000 persons.')
    """
    if isinstance(sentence, str):
        return sentence
    return sentence.template.format(*(f"({words(cell)})" if cell is HIDDEN else words(cell) for cell in sentence.cells))


def unit_of(cell: Cell) -> Unit | None:
    """The unit of a cell, if it is a number."""
    match cell:
        case Count():
            return "count"
        case Share():
            return "share"
        case Measure():
            return cell.style
    return None


def styled(value: float, style: Style) -> str:
    if style == "share":
        return f"{value:.1%}"
    if style == "points":
        return one_text("numbers.points").format(value=round(100 * value, 1) + 0.0)  # and no minus before 0
    if style == "points off":
        return one_text("numbers.points_off").format(value=value)
    number = f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return one_text("numbers.persons").format(value=number) if style == "persons" else number


def interval(cell: Cell) -> str:
    """The interval of a cell in words, if it has one: `70.1% to 80.4%`."""
    if not isinstance(cell, (Share, Measure)) or cell.low is None or cell.high is None:
        return ""
    style: Style = cell.style if isinstance(cell, Measure) else "share"
    return one_text("numbers.interval").format(low=styled(cell.low, style), high=styled(cell.high, style))


def said(cell: Cell) -> str:
    """A cell with its interval, in words."""
    reach = interval(cell)
    return f"{words(cell)} ({reach})" if reach else words(cell)


def value_of(cell: Cell) -> float | None:
    """A cell as a number to draw, if it is one."""
    if isinstance(cell, Share) and not cell.whole:
        return None
    return float(cell.value) if isinstance(cell, (Count, Share, Measure)) else None
