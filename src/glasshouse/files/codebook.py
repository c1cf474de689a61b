"""What do the columns of an NHGIS extract mean? Its codebook says which official table each code stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from glasshouse.errors import InputError
from glasshouse.files.frames import Chunk, Source
from glasshouse.files.places import PlaceColumns
from glasshouse.limits import TEXT_FILE_BYTES
from glasshouse.scenarios.load import Scenario, known_scenarios, load
from glasshouse.scenarios.spelling import spell_lines

ENDING = "_codebook.txt"
_TOLD = 6  # tables named in a refusal
_TABLE = re.compile(r"^ *[0-9]+\. (.+)\n(?: +Universe:.*\n)?(?: +Selected year.*\n)? +(?:Source c|C)ode: *(\S+)", re.M)


@dataclass(frozen=True)
class Codebook:
    """Names of columns that stand for official variables, and every table that the codebook describes."""

    names: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)  # the title of each, by its code
    dataset: str = ""

    def translate(self, name: str) -> str:
        """The official name of a column; any other name stays as it is."""
        return self.names.get(name, name)

    @staticmethod
    def read(path: Path, scenario: Scenario) -> Codebook:
        """Read the text that NHGIS sends with an extract, from a file of its own."""
        try:
            if path.stat().st_size > TEXT_FILE_BYTES:
                raise InputError(f"{path}: more than {TEXT_FILE_BYTES >> 20} MiB; expected the codebook of an extract")
            text = path.read_text(encoding="latin-1")  # codes are ASCII; names of areas may be in either encoding
        except OSError as error:
            raise InputError(f"{path}: not a readable codebook ({error.__class__.__name__})") from None
        return Codebook.parse(text, str(path), scenario)

    @staticmethod
    def parse(text: str, where: str, scenario: Scenario) -> Codebook:
        """Understand a codebook: pairs of `Source code:` and `NHGIS code:` lines, and the titles of its tables."""
        text = text.replace("\r\n", "\n")
        pairs = dict.fromkeys(re.findall(r"Source code:\s*(\S+)\s+NHGIS code:\s*(\S+)", text))
        titles = {code: title.strip() for title, code in _TABLE.findall(text)}
        if not pairs and not titles:
            raise InputError(
                f"{where}: no 'Source code:' and 'NHGIS code:' lines; expected the codebook of an NHGIS extract"
            )
        lines = {entry.table: entry.lines for entry in scenario.catalogue}
        for table, code in pairs:
            listed = set(re.findall(rf"\b{re.escape(code)}[0-9]{{3}}:", text))
            _refuse_another(where, scenario, table, lines.get(table), len(listed))
        dataset = re.search(r"^Dataset: +(.+)$", text, re.M)
        return Codebook(
            {
                f"{code}{line:03d}": name
                for table, code in pairs
                if table in lines
                for line, name in enumerate(spell_lines(scenario.patterns[0], table, range(1, lines[table] + 1)), 1)
            },
            {table: titles.get(table, "") for table, _ in pairs} | titles,
            dataset[1].strip() if dataset else "",
        )

    @staticmethod
    def beside(path: Path, scenario: Scenario) -> Codebook:
        """The codebook that lies beside an extract under its usual name, if there is one."""
        usual = usual_codebook(path)
        return Codebook.read(usual, scenario) if usual.is_file() else Codebook()

    def has_table_of(self, scenario: Scenario) -> bool:
        """Is a table of the scenario among those that it describes? A codebook of nothing does not say."""
        return not self.tables or any(table in scenario.by_table for table in self.tables)


def no_table(where: str, codebooks: Mapping[str, Codebook], scenario: Scenario) -> InputError:
    """The refusal of an extract without a table of the scenario: which tables it holds, and what to do."""
    held = {table: book for book in codebooks.values() for table in book.tables}
    some = [f"{table} ({_told(book.tables[table], book.dataset)})" for table, book in list(held.items())[:_TOLD]]
    others = [
        name for name in known_scenarios() if name != scenario.name and set(held) & set(load(name).by_table)
    ]  # fmt: skip
    remedy = (
        f"--scenario {' or '.join(others)} has some of them"
        if others
        else "order an extract with tables of the scenario, or let glasshouse describe make a scenario of these"
    )
    wanted = [table.name for table in scenario.tables]
    more = f" and {len(held) - _TOLD} more" if len(held) > _TOLD else ""
    return InputError(
        f"{where}: an NHGIS extract of {'; '.join(some)}{more}: "
        f"no table of {scenario.title} ({', '.join(wanted[:_TOLD])}{', ...' if len(wanted) > _TOLD else ''}); {remedy}"
    )


def usual_codebook(path: Path) -> Path:
    """Where the codebook of an extract lies, if it was sent with one."""
    stem = path.name.removesuffix(".gz").removesuffix(".csv")
    return path.parent / f"{stem}{ENDING}"


def refuse_two_spellings(source: Source, kept: Mapping[str, str]) -> None:
    """Refuse a file in which two columns are the same variable."""
    seen: dict[str, str] = {}
    for column, variable in kept.items():
        if variable in seen:
            raise InputError(
                f"{source.path.name}: columns '{seen[variable]}' and '{column}' are the same variable {variable}"
            )
        seen[variable] = column


def without_second_header(chunk: Chunk, place: PlaceColumns, variable: str) -> Chunk:
    """NHGIS writes a second header of descriptions: words where the first code and the first number should be."""
    if chunk.first > 2 or chunk.frame.is_empty():
        return chunk
    words = [str(chunk.frame[name][0] or "0") for name in (place.names[0], variable)]
    if any(letter.isdigit() for letter in words[0]) or words[1].strip().lstrip("-").replace(".", "", 1).isdigit():
        return chunk
    return Chunk(chunk.frame.slice(1), chunk.first + 1, chunk.done)


def _told(title: str, dataset: str) -> str:
    return ", ".join(part for part in (title, dataset) if part) or "without a title"


def _refuse_another(where: str, scenario: Scenario, table: str, expected: int | None, found: int) -> None:
    """Offices number the tables of every product anew: P2 is urban and rural in one, race and origin in another."""
    if expected is not None and found not in (0, expected):
        raise InputError(
            f"{where}: table {table} has {found} lines; expected {expected}, as in {scenario.title}; it is another "
            "table of the same name: is --scenario right?"
        )
