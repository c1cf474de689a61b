"""What does a report say? A frozen description; the page, the workbook and the figures are renderings of it.

A number knows how many persons it is about, so that the public version (`report.publish`) can hide what is about too
few. A chart holds no numbers of its own: it is drawn from the table that stands under it, and is as public as that.
A number has a unit, and so has the term that defines it: a report in which the two differ is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Literal

from glasshouse.errors import GlasshouseBug
from glasshouse.report.cells import (
    DASH,
    HIDDEN,
    Cell,
    Count,
    Hidden,
    Measure,
    Said,
    Sentence,
    Share,
    Style,
    Unit,
    interval,
    literal,
    said,
    styled,
    text,
    unit_of,
    value_of,
    words,
)

__all__ = [  # of numbers and sentences, which are written in `cells`
    "DASH", "HIDDEN", "Cell", "Count", "Hidden", "Measure", "Said", "Sentence", "Share", "Style",
    "Unit", "interval", "literal", "said", "styled", "text", "unit_of", "value_of", "words",
]  # fmt: skip

Version = Literal["internal", "public"]
Tone = Literal["bad", "good", "plain"]
Ring = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Definition:
    """A word of the report: what it means, which direction is worse, and where more is written."""

    term: str  # as columns refer to it
    title: str
    meaning: str
    worse: str  # the way that is worse, "higher" or "lower", if one is
    page: str = ""  # of docs/
    units: tuple[Unit, ...] = ()  # that its numbers are given in; no other is printed


@dataclass(frozen=True)
class Column:
    """The head of a column, the term that defines its numbers, and whether they are somebody else's, as published.

    `above` are the headings over it, from the top down; neighbours under the same ones share them.
    """

    title: str
    term: str = ""
    published: bool = False
    above: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Numbers in rows. `source` says which data files they come from, and how; `records`: never in public.

    The first `keys` columns name a row. On the page at most `shown` rows stand; the workbook has all. `places` is the
    column that counts the places behind a row, where single ones could be: the public version looks at it, or at
    `behind`, which has them for each row where no column does (None: not known). `panels`:
    the first column is a line over the rows that share it. Rows that share the words of the column `band` stand
    together. `order`: rows stand in the order of this column's numbers, the largest first or not. `inhabited`: rows are
    of the areas where somebody is; in public, those of few go as well.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    source: str
    notes: tuple[Sentence, ...] = ()
    keys: int = 1
    records: bool = False
    shown: int = 25
    places: int | None = None
    panels: bool = False
    band: int | None = None
    behind: tuple[int | None, ...] = ()
    order: tuple[int, bool] | None = None
    inhabited: bool = False
    links: tuple[str, ...] = ()  # of the first rows, the panels that they lead to; never in public

    def _repr_html_(self) -> str:
        """For notebooks: the numbers as they are printed, with their intervals."""
        head = "".join(f"<th>{escape(' '.join((*one.above, one.title)))}</th>" for one in self.columns)
        body = "".join(f"<tr>{''.join(f'<td>{escape(said(cell))}</td>' for cell in row)}</tr>" for row in self.rows)
        return (
            f"<table><caption>{escape(self.title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


@dataclass(frozen=True)
class Series:
    """A column of the table as marks of one look; `guess` and published values are rings or ticks beside them.

    A `box` is around the column, its median: `box` are the columns of its low whisker, first and third quartile, high
    whisker, and largest. A `path` joins marks of all groups, from left to right.
    """

    column: int
    label: str
    look: Literal["bar", "dot", "ring", "tick", "line", "path", "box"] = "dot"
    box: tuple[int, ...] = ()


@dataclass(frozen=True)
class Scale:
    """An axis of numbers: what they are, and how it is divided."""

    title: str = ""
    kind: Literal["linear", "log", "root"] = "linear"
    zero: bool = False  # it begins there


@dataclass(frozen=True)
class Chart:
    """A picture of a table: one position for each row, one mark for each series. `says` is what it shows, in words.

    `up`: positions go from left to right and dots are joined (steps that have an order); else rows go down. `panel` is
    a key column whose values have a panel each.
    """

    name: str
    title: str
    says: Sentence
    table: Table
    series: tuple[Series, ...]
    axis: str  # what the numbers are
    up: bool = False
    panel: int | None = None
    most: int = 20  # rows drawn
    scale: Literal["linear", "root"] = "linear"
    rule: float | None = None  # a number to compare with, as a dashed line
    bare: bool = False  # many narrow bars, without names
    stacked: bool = field(default=False, repr=False)  # bars of a row stand end to end: parts of a whole


@dataclass(frozen=True)
class Field:
    """Tiles behind curves: where things lie, as dark as there are many.

    A row of the table is a tile: left, right, bottom, top, and how many, one of `steps` in words. Tiles below 0 are of
    things that are exactly 0.
    """

    table: Table
    steps: tuple[str, ...]
    axis: str


@dataclass(frozen=True)
class Curves:
    """A picture of numbers against numbers: each row of the table stands where column `x` and a series say.

    Rows with the same words in the key column `group` have one look, those with the same `panel` a panel. Intervals are
    bands along lines, and thin lines at other marks. `nested`: earlier lines narrow over wider later ones, so that
    lines that coincide are all seen. `names`: a column whose words stand beside the marks.
    """

    name: str
    title: str
    says: Sentence
    table: Table
    x: int
    series: tuple[Series, ...]
    across: Scale
    up: Scale
    group: int | None = None
    panel: int | None = None
    names: int | None = None
    rule_x: float | None = None
    rule_y: float | None = None
    nested: bool = False
    field: Field | None = None


@dataclass(frozen=True)
class Tiles:
    """A picture of a table as tiles: `x` and `y` are key columns, and a tile is as dark as its number is high.

    Words have a colour each instead. `panel` and `row` are key columns whose values have panels side by side, and below
    each other.
    """

    name: str
    title: str
    says: Sentence
    table: Table
    column: int
    x: int
    y: int
    axis: str
    panel: int | None = None
    row: int | None = None


@dataclass(frozen=True)
class Shape:
    """Where an area lies: a point, or rings (the first of each polygon outside, the others holes)."""

    point: tuple[float, float] | None = None
    rings: tuple[Ring, ...] = ()


@dataclass(frozen=True)
class Map:
    """Areas where they lie, as dark as their number is high; `table` has the areas' codes in its first column.

    Where `panel` is a key column, its values have a map each; then `links` leads from areas to others, by their codes.
    Numbers of both signs, as of change, are marks up and down, as large as the number.
    """

    name: str
    title: str
    says: Sentence
    table: Table
    column: int
    shapes: Mapping[str, Shape]
    axis: str
    panel: int | None = None
    links: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)  # of each panel
    degrees: bool | None = None  # whether coordinates are; None: if they look so


@dataclass(frozen=True)
class Explorer:
    """Settings as points of risk against cost, to choose from and to compare; a row of the table is a setting.

    The first column is the setting's name, the second the kind of protection. `guesses` has, for a column of risk, the
    column with what guessing reaches.
    """

    name: str
    title: str
    says: Sentence
    table: Table
    risks: tuple[int, ...]  # columns, the first is shown at first; higher is worse
    costs: tuple[int, ...]  # columns; higher is worse
    guesses: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Noise:
    """What one noisy count gives away, with sliders: the reader's own prior and rho.

    `levels` are the counts of a budget, each with its rho; `rules` says what a neighbour is (`mechanism.gaussian`):
    the rate of the noise is `scale` times rho. `table` is of the budget as it stands.
    """

    name: str
    title: str
    says: Sentence
    table: Table | None
    levels: tuple[tuple[str, float], ...]
    prior: float
    rho: float
    scale: float


@dataclass(frozen=True)
class Words:
    """Sentences: paragraphs, and points of a list after them."""

    paragraphs: tuple[Sentence, ...]
    points: tuple[Sentence, ...] = ()


Known = Literal["printed", "exact", "narrow", "wide", "unknown"]  # of a number of an office's table


@dataclass(frozen=True)
class Printed:
    """An office's own table as it is printed: lines go down, places across, coloured by what is known of each number.

    The table has a row for each number, line by line and in each place by place, with the ends of what was `printed`,
    of what is `proved` (blank: no limit; both blank: nothing was printed), and a `note`. `lines` are labels with their
    depths; `known` and `reasons` (the numbers that give it away, in words) are of each row. A sheet is about single
    places: never in public.
    """

    name: str
    title: str
    says: Sentence
    table: Table
    lines: tuple[tuple[int, str], ...]
    level: str
    places: tuple[str, ...]
    known: tuple[Known, ...]
    reasons: tuple[tuple[str, ...], ...]
    printed: tuple[int, int] = (2, 3)  # columns
    proved: tuple[int, int] = (4, 5)
    note: int = 7

    def __post_init__(self) -> None:
        numbers = len(self.lines) * len(self.places)
        if not len(self.table.rows) == len(self.known) == len(self.reasons) == numbers:
            raise GlasshouseBug(f"the printed table '{self.name}' does not have a row for each of {numbers} numbers")


@dataclass(frozen=True)
class Panel:
    """A certificate: what it shows in its checker's words, its status, and the published numbers in it.

    A number is its official name, what it counts, where, and its value; `more` are not listed. `file` lies beside the
    report.
    """

    name: str  # what links lead to
    title: str
    statement: str
    status: str
    numbers: tuple[tuple[str, str, str, str], ...]
    more: int
    file: str


@dataclass(frozen=True)
class Panels:
    """Certificates one below the other. They hold records: never in public."""

    title: str
    says: Sentence
    panels: tuple[Panel, ...]


Picture = Chart | Curves | Tiles | Map
Block = Words | Table | Picture | Explorer | Noise | Printed | Panels


@dataclass(frozen=True)
class Verdict:
    """One of the numbers on the first screen: what it is, what guessing or nothing would give, what it means."""

    title: str
    number: Cell
    beside: Sentence  # the baseline, in words
    meaning: Sentence
    term: str
    section: str  # where more is said
    source: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Section:
    """A part of the report under a heading; `name` is what links lead to."""

    name: str
    title: str
    lead: Sentence  # one or two sentences: the answer
    blocks: tuple[Block, ...]
    records: bool = False  # about single persons or places: never in public
    ranks: bool = False  # the lead names what is greatest or least, by exact numbers


@dataclass(frozen=True)
class Report:
    """All of it. `findings` are thresholds that were exceeded; `certificate` is what the run was, key by key.

    `digests` are those of the run and of its inputs; in public there are none, or they are `keyed`.
    """

    title: str
    about: str
    version: Version
    verdicts: tuple[Verdict, ...]
    findings: tuple[Sentence, ...]
    sections: tuple[Section, ...]
    definitions: tuple[Definition, ...]
    certificate: tuple[tuple[str, str], ...]
    thresholds: int = 0  # how many were set, exceeded or not
    verdict: Sentence = ""  # all of it in one sentence
    listed: bool = True  # its numbers are in numbers.csv, and the page's script tells of each
    digests: tuple[tuple[str, str], ...] = ()
    keyed: bool = False

    def __post_init__(self) -> None:
        units = {one.term: one.units for one in self.definitions if one.units}
        numbers = [(verdict.term, verdict.number) for verdict in self.verdicts]
        numbers += [
            (column.term, cell) for table in self.tables() for row in table.rows
            for column, cell in zip(table.columns, row, strict=True)
        ]  # fmt: skip
        for term, cell in numbers:
            unit = unit_of(cell)
            if unit is not None and unit not in units.get(term, (unit,)):
                raise GlasshouseBug(
                    f"a number of '{term}' is given as {unit}; it is defined as {', '.join(units[term])}"
                )

    def tables(self) -> Iterator[Table]:
        """Every table once, in the order of the page: those under pictures too."""
        seen = set()
        for section in self.sections:
            for block in section.blocks:
                table = block if isinstance(block, Table) else getattr(block, "table", None)
                if table is not None and table.name not in seen:
                    seen.add(table.name)
                    yield table

    def definition(self, term: str) -> Definition:
        return next(one for one in self.definitions if one.term == term)
