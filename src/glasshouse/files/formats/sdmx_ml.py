"""What does an SDMX-ML file say? Data messages of version 2.1 (and 3.0): generic, or specific to a structure.

In a generic message every code and attribute is an element that tells its name; keys and attributes are kept apart. In
one that is specific to a structure they are attributes of Series and Obs: which of them are dimensions only the
structure beside the file tells; without one, all are, but those that SDMX itself calls attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.crossed import LINE, STATUS, VALUE, Category, Crossed, Dimension
from glasshouse.files.formats import markup
from glasshouse.files.formats.crossing import PIECE_ROWS, checked, shown
from glasshouse.files.formats.sdmx_csv import OBS_VALUE
from glasshouse.files.formats.sdmx_structure import KNOWN_ATTRIBUTES, STATUS_NAMES, Structure, structure_beside
from glasshouse.limits import CATEGORIES, DATASETS, DIMENSIONS, NAME_LENGTH

Observed = Callable[[int, Mapping[str, str], Mapping[str, str], int], None]  # data set, codes, attributes, line
KINDS = {
    "GenericData": "generic", "GenericTimeSeriesData": "generic",
    "StructureSpecificData": "specific", "StructureSpecificTimeSeriesData": "specific",
}  # fmt: skip


@dataclass
class Seen:
    """What a first look at a data set found."""

    names: dict[str, None] = field(default_factory=dict)  # dimensions or attributes, in order
    attributes: set[str] = field(default_factory=set)
    codes: dict[str, dict[str, None]] = field(default_factory=dict)
    rows: int = 0


def read(path: Path) -> tuple[Crossed, ...]:
    """Every data set of a message, not read yet."""
    seen: dict[int, Seen] = {}
    total = 0

    def look(data_set: int, key: Mapping[str, str], attributes: Mapping[str, str], _: int) -> None:
        nonlocal total
        one = seen.setdefault(data_set, Seen())
        one.rows += 1
        one.attributes.update(attributes)
        for name, code in key.items():
            codes = one.codes.get(name)
            if codes is None:
                codes = one.codes[name] = {}
                one.names[name] = None
            if code not in codes:
                codes[code] = None
                total += 1
        if total > CATEGORIES or len(one.names) > DIMENSIONS:
            raise InputError(f"{path.name}: more than {CATEGORIES:,} codes or {DIMENSIONS} dimensions")

    message = _Message(path.name, look)
    markup.read_file(path, message, line=message.ask)
    if message.kind == "structure":
        raise InputError(
            f"{path.name}: a structure message, which has no numbers; expected data; lay it beside the data as "
            f"{path.stem}.dsd.xml, and name the file of the data"
        )
    if not seen:
        raise InputError(f"{path.name}: no observation; expected an SDMX-ML data message with numbers")
    if len(seen) > DATASETS:
        raise InputError(f"{path.name}: more than {DATASETS:,} data sets")
    structure = structure_beside(path, frozenset(message.structures))
    title = ", ".join(dict.fromkeys(message.structures)) or path.stem
    return tuple(_table(path, title, number, one, structure) for number, one in seen.items())


def _table(path: Path, title: str, number: int, seen: Seen, structure: Structure) -> Crossed:
    if structure.dimensions:
        missing = [name for name in structure.dimensions if name not in seen.names]
        if missing:
            raise InputError(
                f"{path.name}: the structure beside it has the dimension {shown(missing[0])}, and no number "
                "names one; give the structure of this file, or none"
            )
        names = list(structure.dimensions)
    else:
        names = [name for name in seen.names if name not in KNOWN_ATTRIBUTES]
    dimensions = [_dimension(structure, name, seen) for name in names]
    others = {*seen.attributes, *seen.names} - set(names)
    status = next((name for name in STATUS_NAMES if name in others), None)
    return Crossed(
        path, title, checked(path.name, dimensions), _pieces(path, number, names, status), marks=structure.marks(status)
    )


def _dimension(structure: Structure, name: str, seen: Seen) -> Dimension:
    """The codes that occur, in the order of the code list where there is one, with those they are parts of."""
    found = structure.dimension(name)
    if not found.categories:
        return structure.dimension(name, tuple(Category(code) for code in seen.codes.get(name, {}) if code))
    return found


def _pieces(path: Path, number: int, names: list[str], status: str | None) -> Callable[[], Iterator[pl.DataFrame]]:
    def pieces() -> Iterator[pl.DataFrame]:
        with closing(_Rows(path, number, names, status)) as rows:
            yield from rows.frames()

    return pieces


class _Rows:
    """Collects rows of one data set, and hands them out some at a time."""

    def __init__(self, path: Path, number: int, names: list[str], status: str | None) -> None:
        self.path, self.number, self.names, self.status = path, number, names, status
        self.columns: list[list[str | None]] = []
        self.lines: list[int] = []
        self.ready: list[pl.DataFrame] = []
        self.empty()

    def empty(self) -> None:
        self.columns = [[] for _ in range(len(self.names) + 2)]
        self.lines = []

    def take(self, data_set: int, key: Mapping[str, str], attributes: Mapping[str, str], line: int) -> None:
        if data_set != self.number:
            return
        *codes, values, statuses = self.columns
        for column, name in zip(codes, self.names, strict=True):
            column.append(key.get(name))
        values.append((attributes.get(OBS_VALUE) or "").strip() or None)
        mark = attributes.get(self.status) or key.get(self.status) if self.status else None
        statuses.append((mark or "").strip() or None)
        self.lines.append(line)
        if len(self.lines) >= PIECE_ROWS:
            self.ready.append(self.frame())

    def frame(self) -> pl.DataFrame:
        names = [*self.names, VALUE, STATUS]
        columns = [pl.Series(name, some, dtype=pl.String) for name, some in zip(names, self.columns, strict=True)]
        found = pl.DataFrame([*columns, pl.Series(LINE, self.lines, dtype=pl.Int64)])
        self.empty()
        return found

    def frames(self) -> Iterator[pl.DataFrame]:
        """Reads some of the file, hands out what is ready, and goes on."""
        message = _Message(self.path.name, self.take)
        for _ in markup.steps(self.path, message, line=message.ask):
            yield from self.ready
            self.ready.clear()
        if self.lines:
            self.ready.append(self.frame())
        yield from self.ready

    def close(self) -> None:
        self.ready.clear()


class _Message:
    """Listens to a data message, and tells of every observation: its codes, and all else that is said of it."""

    def __init__(self, where: str, observed: Observed) -> None:
        self.where, self.observed = where, observed
        self.kind = ""
        self.structures: list[str] = []
        self.path: list[str] = []
        self.line: markup.Line = lambda: 0
        self.at = 0  # the line of the observation
        self.sets = 0
        self.series: dict[str, str] = {}
        self.series_attributes: dict[str, str] = {}
        self.key: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        self.over: list[str] = []  # the dimension at the observation, of each structure

    def ask(self, line: markup.Line) -> None:
        self.line = line

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if not self.path:
            self._root(name)
        self.path.append(name)
        if name == "Obs" and self.sets:
            self.at = self.line()
            self.key, self.attributes = {}, {}
            if self.kind == "specific":
                for each, text in attributes.items():
                    if each == OBS_VALUE or each in KNOWN_ATTRIBUTES:
                        self.attributes[each] = text
                    elif ":" not in each:  # those of XML or of the message have a prefix
                        self.key[each] = text
        elif self.kind == "structure":
            raise markup.Enough
        elif name == "DataSet":
            self.sets += 1
        elif not self.sets:
            if name == "Structure" and "dimensionAtObservation" in attributes:
                self.over.append(attributes["dimensionAtObservation"])
            elif name == "Ref" and "id" in attributes:
                self.structures.append(attributes["id"][:NAME_LENGTH])
        elif name == "Series":
            self.series, self.series_attributes = {}, {}
            if self.kind == "specific":
                self.series = {each: text for each, text in attributes.items() if ":" not in each}
        elif self.kind == "generic":
            self._generic(name, attributes)

    def _root(self, name: str) -> None:
        if name == "Structure":
            self.kind = "structure"
        elif name in KINDS:
            self.kind = KINDS[name]
        else:
            known = ", ".join(KINDS)
            raise InputError(f"{self.where}: the message is '{shown(name)}'; expected SDMX-ML 2.1 data: {known}")

    def _generic(self, name: str, attributes: Mapping[str, str]) -> None:
        above = self.path[-2]
        if name == "Value" and above in ("SeriesKey", "ObsKey", "Attributes"):
            if "id" not in attributes or "value" not in attributes:
                raise InputError(f"{self.where}, line {self.line()}: a Value without id or value; expected both")
            if above == "SeriesKey":
                owner = self.series
            elif above == "ObsKey":
                owner = self.key
            else:
                owner = (
                    self.attributes if "Obs" in self.path else self.series_attributes if "Series" in self.path else {}
                )
            owner[attributes["id"]] = attributes["value"]
        elif name == "ObsDimension":
            over = attributes.get("id") or next((one for one in self.over if one != "AllDimensions"), "TIME_PERIOD")
            self.key[over] = attributes.get("value", "")
        elif name == "ObsValue":
            self.attributes[OBS_VALUE] = attributes.get("value", "")

    def end(self, name: str, _: str) -> None:
        self.path.pop()
        if name == "Obs" and self.sets:
            twice = self.series.keys() & self.key.keys()
            if twice:
                raise InputError(
                    f"{self.where}, line {self.at}: '{shown(min(twice))}' is said of the series and of the "
                    "number; expected it once"
                )
            key = {**self.series, **self.key} if self.series else self.key
            told = {**self.series_attributes, **self.attributes} if self.series_attributes else self.attributes
            self.observed(self.sets, key, told, self.at)
        elif name in ("Series", "DataSet"):
            self.series, self.series_attributes = {}, {}
