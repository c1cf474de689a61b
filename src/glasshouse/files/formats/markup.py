"""How is XML read without being harmed by it? As a stream of elements, with limits, and without a document type.

Expat tells of elements one by one: nothing is kept that a reader does not keep. A document type is where entities are
declared, so a file that has one is refused: nothing is fetched, and nothing grows while it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Protocol
from xml.parsers import expat

from glasshouse.errors import InputError
from glasshouse.limits import XML_DEPTH, XML_TOKEN_BYTES

PIECE = 1 << 20
Line = Callable[[], int]  # where the reading is


class Told(Protocol):
    """Who is told of elements: their names are without namespaces, `text` is what stood inside one without parts."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None: ...

    def end(self, name: str, text: str) -> None: ...


class Enough(Exception):  # noqa: N818  # not an error: the reader has seen what it wanted
    """Raised by a reader to stop."""


def read_file(path: Path, told: Told, *, line: Callable[[Line], None] | None = None) -> None:
    """Tell a reader of every element of a file, in order; `line` is told how to ask for the line."""
    for _ in steps(path, told, line=line):
        pass


def steps(path: Path, told: Told, *, line: Callable[[Line], None] | None = None) -> Iterator[None]:
    """The same, some of the file at a time."""
    try:
        with path.open("rb") as stream:
            yield from read(stream, path.name, told, line=line)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def read(stream: IO[bytes], where: str, told: Told, *, line: Callable[[Line], None] | None = None) -> Iterator[None]:
    """Tell a reader of the elements of a stream, some of it at a time."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    open_: list[str] = []
    words: list[str] = []
    names: dict[str, str] = {}  # without namespaces
    tell_start, tell_end = told.start, told.end
    held = 0
    if line is not None:
        line(lambda: parser.CurrentLineNumber)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal held
        if len(open_) >= XML_DEPTH:
            raise InputError(f"{where}: elements lie more than {XML_DEPTH} deep; expected a table")
        name = names.get(tag)
        if name is None:
            name = tag.rpartition(":")[2]
            if len(names) < 1_000:
                names[tag] = name
        open_.append(name)
        if held:
            words.clear()
            held = 0
        tell_start(name, attributes)

    def end(_: str) -> None:
        nonlocal held
        text = ""
        if held:
            text = "".join(words)
            words.clear()
            held = 0
        tell_end(open_.pop(), text)

    def words_of(text: str) -> None:
        nonlocal held
        held += len(text)
        if held > XML_TOKEN_BYTES:
            raise InputError(f"{where}: a text of more than {XML_TOKEN_BYTES >> 20} MiB; expected a table")
        words.append(text)

    def refuse(*_: object) -> None:
        raise InputError(
            f"{where}, line {parser.CurrentLineNumber}: found a document type, which could declare entities; "
            "expected none; remove the <!DOCTYPE ...>"
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = words_of
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    fed = 0
    try:
        while piece := stream.read(PIECE):
            parser.Parse(piece, False)
            fed += len(piece)
            if fed - max(parser.CurrentByteIndex, 0) > XML_TOKEN_BYTES:
                raise InputError(f"{where}: a tag of more than {XML_TOKEN_BYTES >> 20} MiB; expected a table")
            yield
        parser.Parse(b"", True)
        yield
    except Enough:
        return
    except (expat.ExpatError, ValueError, LookupError) as error:
        if type(error) not in (expat.ExpatError, ValueError, LookupError):  # the latter two: an encoding nobody knows
            raise
        at = parser.CurrentLineNumber
        raise InputError(
            f"{where}, line {at}: not XML from here on ({error}); cut short or damaged: copy or download it again"
        ) from None
