"""What do the columns of a file of tau-Argus mean? Its `.rda` says: a line for each variable, and options below it.

    <SEPARATOR> ","                      of a file with separators; without one, columns have a place and a width
    act 10 2 00                          name, first letter, width, codes that mean "missing"
      <RECODEABLE>                       a code that tables are made by
      <HIERCODELIST> "nace.hrc"          its hierarchy, a file beside this one, wherever it was when this was written
    turnover 19 8
      <NUMERIC> <DECIMALS> 2

Of a table, columns have a name alone, and are a code, the value, or by an option the status of the cell, how many
contribute to it and its largest contributions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from glasshouse.errors import InputError
from glasshouse.limits import COLUMNS, LINE_BYTES, NAME_LENGTH, TEXT_FILE_BYTES
from glasshouse.scenarios.toml import is_there
from glasshouse.text import harmful

LEAD, TOTAL = "@", "Total"
CODE, NUMBER, STATUS, FREQUENCY, LARGEST, HOLDING, WEIGHT = (
    "RECODEABLE", "NUMERIC", "STATUS", "FREQUENCY", "MAXSCORE", "HOLDING", "WEIGHT",
)  # fmt: skip
BESIDES = frozenset({FREQUENCY, LARGEST, "LOWERPL", "UPPERPL", "SHADOW", "COST", WEIGHT, "REQUEST", HOLDING, STATUS})
SAFE, UNSAFE, PROTECT = MARKS = ("SAFE", "UNSAFE", "PROTECT")
USUAL_MARKS = {SAFE: "S", UNSAFE: "U", PROTECT: "P"}
_WIDEST = 1 << 20


@dataclass(frozen=True)
class Variable:
    """A column: its name, where it stands (in a file without separators), its missing codes, what its options say."""

    name: str
    start: int | None = None  # from 1
    width: int | None = None
    missing: tuple[str, ...] = ()
    said: Mapping[str, str] = field(default_factory=dict)

    def has(self, option: str) -> bool:
        return option in self.said

    @property
    def is_code(self) -> bool:
        return self.has(CODE)

    @property
    def is_value(self) -> bool:
        """A number that a table may add up."""
        return self.has(NUMBER) and not BESIDES & set(self.said)

    @property
    def total(self) -> str:
        """The code of everything."""
        return self.said.get("TOTCODE") or TOTAL

    @property
    def hierarchy(self) -> str | None:
        """The name of the file of its hierarchy; the folder it was in is another machine's."""
        path = self.said.get("HIERCODELIST")
        return re.split(r"[\\/]", path)[-1] if path else None

    @property
    def lead(self) -> str:
        return self.said.get("HIERLEADSTRING") or LEAD

    @property
    def labels(self) -> str | None:
        """The name of the file that says what its codes mean."""
        path = self.said.get("CODELIST")
        return re.split(r"[\\/]", path)[-1] if path else None

    @property
    def digits(self) -> tuple[int, ...]:
        """How many letters of a code are of each level, where the code itself is the hierarchy."""
        return tuple(int(one) for one in self.said.get("HIERLEVELS", "").split())


@dataclass(frozen=True)
class Metadata:
    """The columns of a file, in order."""

    where: str
    variables: tuple[Variable, ...]
    separator: str | None = None
    marks: Mapping[str, str] = field(default_factory=lambda: dict(USUAL_MARKS))

    def variable(self, name: str) -> Variable:
        for one in self.variables:
            if one.name == name:
                return one
        known = ", ".join(one.name for one in self.variables)
        raise InputError(f"{self.where}: no variable '{name[:NAME_LENGTH]}'; known: {known}")

    @property
    def of_records(self) -> bool:
        """Are these columns of microdata? They have widths; those of a table do not."""
        return any(one.width is not None for one in self.variables)

    @property
    def codes(self) -> tuple[Variable, ...]:
        return tuple(one for one in self.variables if one.is_code)


def decoded(content: bytes, where: str) -> str:
    """Text, with one kind of line ends; what cannot be text is refused."""
    if len(content) > TEXT_FILE_BYTES:
        raise InputError(f"{where}: more than {TEXT_FILE_BYTES >> 20} MiB; expected a file of tau-Argus of less")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")  # what Windows wrote before
    if "\0" in text:
        raise InputError(f"{where}: holds a byte 0; expected text")
    return text.replace("\r\n", "\n")


def lines_of(content: bytes, where: str) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    for number, line in enumerate(decoded(content, where).split("\n"), 1):
        if len(line) > LINE_BYTES:
            raise InputError(f"{where}, line {number}: more than {LINE_BYTES >> 20} MiB; expected shorter lines")
        if line.strip(" \t\r\x1a"):  # old programs end a file with control-Z
            yield number, line.rstrip("\r")


def read_metadata(content: bytes, where: str) -> Metadata:
    """The columns that an `.rda` file tells of."""
    found: list[Variable] = []
    separator, marks = None, dict(USUAL_MARKS)
    separated = b"<SEPARATOR>" in content.upper()
    for number, line in lines_of(content, where):
        if line.lstrip().startswith("<"):  # a name that begins so stands in quotes
            for option, value in _options(line, f"{where}, line {number}"):
                if option == "SEPARATOR":
                    separator = _separator(value, f"{where}, line {number}")
                elif option in MARKS:
                    marks[option] = value
                elif not found:
                    raise InputError(
                        f"{where}, line {number}: <{option}> stands above all variables; expected a name first"
                    )
                else:
                    found[-1] = _with(found[-1], option, value, f"{where}, line {number}")
        else:
            found.append(_variable(line, f"{where}, line {number}", separated))
            if len(found) > COLUMNS:
                raise InputError(f"{where}: more than {COLUMNS:,} variables; expected fewer")
    if not found:
        raise InputError(f"{where}: no variables; expected a line with a name for each, and its options below")
    names = [one.name for one in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"{where}: the variable '{twice}' stands twice; expected different names")
    return Metadata(where, tuple(found), separator, marks)


def _options(line: str, where: str) -> Iterator[tuple[str, str]]:
    """The options of a line, each with what stands behind it."""
    rest = line.strip()
    while rest:
        match = re.match(r"<([A-Za-z_]{1,40})>\s*((?:\"[^\"]*\"\s*|[^<\"]+)*)", rest)
        if match is None:
            raise InputError(f"{where}: found '{line.strip()[:60]}'; expected <OPTION> and its value")
        value = match[2].strip()
        yield match[1].upper(), value[1:-1] if re.fullmatch(r'"[^"]*"', value) else value
        rest = rest[match.end() :]


def _separator(value: str, where: str) -> str:
    text = {"TAB": "\t", "\\t": "\t"}.get(value, value)
    if len(text) != 1 or text.isalnum() or text == '"':
        raise InputError(f"{where}: the separator '{value[:20]}'; expected one letter, such as a comma")
    return text


def _variable(line: str, where: str, separated: bool) -> Variable:
    """A line of a variable: its name, where it begins (in files without separators), how wide it is, missing codes."""
    fields = [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|([^\s"]+)', line)]
    name, *rest = fields or [""]
    if not name or len(name) > NAME_LENGTH or harmful(name) is not None:
        raise InputError(f"{where}: found '{line.strip()[:60]}'; expected the name of a variable")
    numbers: list[int] = []
    while rest and len(numbers) < (1 if separated else 2):
        if not (rest[0].isascii() and rest[0].isdigit() and len(rest[0]) < 8 and 1 <= int(rest[0]) <= _WIDEST):
            expected = "its width" if separated else "its first letter and its width"
            raise InputError(f"{where}: '{rest[0][:20]}' behind {name}; expected {expected}, from 1 to {_WIDEST:,}")
        numbers.append(int(rest.pop(0)))
    if not separated and len(numbers) == 1:
        raise InputError(f"{where}: {name} has one number; expected its first letter and its width")
    start, width = numbers if len(numbers) == 2 else (None, numbers[0] if numbers else None)
    return Variable(name, start, width, tuple(one.strip() for one in rest))


def _with(variable: Variable, option: str, value: str, where: str) -> Variable:
    if option in ("HIERLEVELS", "DECIMALS") and not re.fullmatch(r"\d{1,2}(\s+\d{1,2})*", value):
        raise InputError(f"{where}: <{option}> {value[:40]}; expected whole numbers")
    said = {**variable.said, option: value}
    return Variable(variable.name, variable.start, variable.width, variable.missing, said)


def beside(path: Path, name: str, purpose: str) -> Path:
    """A file in the same folder, by its name in any case."""
    exact = path.with_name(name)
    if is_there(exact):
        return exact
    for one in sorted(path.parent.iterdir()) if path.parent.is_dir() else ():
        if one.name.lower() == name.lower() and one.is_file():
            return one
    raise InputError(
        f"{path.name}: {purpose} is in {name[:NAME_LENGTH]}, which is not beside it; put it into the same folder"
    )


def metadata_beside(path: Path) -> Metadata | None:
    """The `.rda` of the same name beside a file, if there is one."""
    for ending in (".rda", ".RDA"):
        if (found := path.parent / f"{path.stem}{ending}").is_file() and found != path:
            return read_metadata(content_of(found), found.name)
    return None


def content_of(path: Path) -> bytes:
    """A file as a whole, if it is no larger than such files are."""
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    if path.stat().st_size > TEXT_FILE_BYTES:
        raise InputError(f"{path.name}: more than {TEXT_FILE_BYTES >> 20} MiB; expected a file of tau-Argus of less")
    return path.read_bytes()


def written(variables: Sequence[Variable], separator: str | None, marks: Mapping[str, str] | None = None) -> bytes:
    """An `.rda` file that says the same."""
    lines = [] if separator is None else [f'<SEPARATOR> "{separator}"']
    lines += [f'<{name}> "{mark}"' for name, mark in (marks or {}).items()]
    for one in variables:
        places = [str(number) for number in (one.start, one.width) if number is not None]
        lines.append(" ".join([_named(one.name), *places, *(f'"{code}"' for code in one.missing)]))
        for option, value in one.said.items():
            plain = option in ("DECIMALS", "HIERLEVELS") or not value
            lines.append(f"  <{option}>" + (f" {value}" if plain else f' "{value}"').rstrip())
    return ("\n".join(lines) + "\n").encode()


def _named(name: str) -> str:
    """A name as a line begins with it."""
    if not name.strip() or '"' in name or harmful(name) is not None or name.strip() != name:
        raise InputError(
            f"'{name[:60]}' cannot be the name of a variable of tau-Argus; expected letters without quotes"
        )
    return f'"{name}"' if re.search(r"\s|^<", name) else name
