"""What does a PX file say? Its variables with values and codes, and the numbers of all crossings in order.

Symbols that stand for a number (`"."` to `"......"`, `"-"`) are kept as they are printed; what they mean is in the
file's own words (DATASYMBOL) in `marks`. Codes are CODES, or VALUES where there are none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.crossed import Crossed, Dimension, Role
from glasshouse.files.formats.crossing import PIECE_ROWS, checked, frame, named, shown, size_of
from glasshouse.files.formats.px_head import Head, read_head
from glasshouse.limits import NAME_LENGTH

BLOCK = 4 << 20
SYMBOLS = {f"DATASYMBOL{dots}": "." * dots for dots in range(1, 7)} | {"DATASYMBOLSUM": ".......", "DATASYMBOLNIL": "-"}
_KINDS: dict[str, Role] = {"g": "geo", "t": "time", "c": "metric"}  # VARIABLE-TYPE: Geographical, Time, Contents
_NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?$"
_TOKEN = re.compile(rb'"([^"]*+)"|([^\s;,"]++)')


def read(path: Path) -> tuple[Crossed, ...]:
    """The one table of a file, its numbers not read yet."""
    head = read_head(path)
    names = [*head.texts("STUB"), *head.texts("HEADING")]
    if not names:
        raise InputError(f"{path.name}: neither STUB nor HEADING; expected the variables of the table; get it again")
    dimensions = checked(path.name, [_dimension(head, name) for name in names])
    size = size_of(path.name, dimensions)
    marks = {symbol: head.text(keyword) for keyword, symbol in SYMBOLS.items() if head.text(keyword)}
    title = head.text("TITLE") or head.text("CONTENTS") or path.stem
    keys = head.subjects("KEYS")
    if keys and keys != set(head.texts("STUB")):
        raise InputError(
            f"{path.name}: KEYS for some variables of STUB; expected them for all, or none; export it again"
        )
    pieces = _keyed(head, dimensions) if keys else _dense(head, dimensions, size)
    return (Crossed(path, title.strip()[:NAME_LENGTH], dimensions, pieces, counted_in="number", marks=marks),)


def _dimension(head: Head, name: str) -> Dimension:
    values = head.texts("VALUES", name)
    codes = head.texts("CODES", name) or values
    if not values or len(codes) != len(values):
        found = f"{len(values):,} VALUES and {len(codes):,} CODES"
        raise InputError(f"{head.path.name}: {found} of '{shown(name)}'; expected as many, and some; get it again")
    labels = dict(zip(codes, values, strict=True))
    by_label = {label: code for code, label in labels.items()}
    parents = {
        by_label.get(part, part): by_label.get(whole, whole)
        for whole, part in head.pairs("HIERARCHIES", name)
        if by_label.get(whole, whole) in labels and part != whole
    }
    return Dimension(name.strip(), "", named(codes, labels, parents), _role(head, name))


def _role(head: Head, name: str) -> Role:
    """What the file says of a variable: a map makes it places, TIMEVAL times, CONTVARIABLE kinds of number."""
    if head.text("CONTVARIABLE") == name:
        return "metric"
    if ("TIMEVAL", (name,)) in head.said:
        return "time"
    if ("MAP", (name,)) in head.said:
        return "geo"
    return _KINDS.get(head.text("VARIABLE-TYPE", name)[:1].lower(), "")


def _blocks(head: Head) -> Iterator[bytes]:
    """The numbers, some megabytes at a time, cut between two of them."""
    rest = b""
    with head.path.open("rb") as stream:
        stream.seek(head.data)
        while block := stream.read(BLOCK):
            block = rest + block
            cut = max(block.rfind(b"\n"), block.rfind(b" "), block.rfind(b";")) + 1
            if block.count(b'"', 0, cut) % 2:
                cut = block.rfind(b'"', 0, cut)
            if cut <= 0 and len(block) > BLOCK:
                raise InputError(
                    f"{head.path.name}: no end of a number within {BLOCK >> 20} MiB; expected numbers after DATA="
                )
            yield block[:cut] if cut > 0 else b""
            rest = block[cut:] if cut > 0 else block
    yield rest


def _dense(head: Head, dimensions: tuple[Dimension, ...], size: int) -> Callable[[], Iterator[pl.DataFrame]]:
    def pieces() -> Iterator[pl.DataFrame]:
        at = 0
        for block in _blocks(head):
            tokens = block.replace(b";", b" ").replace(b",", b" ").split()
            if at + len(tokens) > size:
                raise InputError(
                    f"{head.path.name}: more than {size:,} numbers after DATA=; expected one for each crossing"
                )
            for first in range(0, len(tokens), PIECE_ROWS):
                some = tokens[first : first + PIECE_ROWS]
                yield frame(dimensions, np.arange(at, at + len(some)), _values(head, some, at))
                at += len(some)
        if at < size:
            raise InputError(
                f"{head.path.name}: {at:,} numbers after DATA=; expected {size:,}, one for each crossing; cut short: "
                "get it again"
            )

    return pieces


def _values(head: Head, tokens: list[bytes], before: int) -> list[str]:
    """Numbers and symbols as they are printed; anything else is refused."""
    texts = pl.Series("text", [token.decode("ascii", "replace") for token in tokens], dtype=pl.String)
    quoted = texts.str.starts_with('"') & texts.str.ends_with('"') & (texts.str.len_chars() > 2)
    bare = texts.str.strip_chars('"').zip_with(quoted, texts)
    known = bare.str.contains(_NUMBER) & ~quoted | bare.is_in([*SYMBOLS.values()])
    if not known.all():
        at = int((~known).arg_max() or 0)
        raise InputError(
            f"{head.path.name}, number {before + at + 1:,}: found '{shown(texts[at], 20)}'; expected a number, or a "
            'symbol such as ".."; mend the file'
        )
    return bare.to_list()


def _keyed(head: Head, dimensions: tuple[Dimension, ...]) -> Callable[[], Iterator[pl.DataFrame]]:
    """Rows that name their place in STUB, as many numbers as HEADING has crossings; rows of zeros may be left out."""
    stub = dimensions[: len(head.texts("STUB"))]
    width = int(np.prod([len(one.categories) for one in dimensions[len(stub) :]], dtype=np.int64))
    places = [
        {(one.label if "VALUES" in head.text("KEYS", name).upper() else one.code): at
         for at, one in enumerate(dimension.categories)}
        for name, dimension in zip(head.texts("STUB"), stub, strict=True)
    ]  # fmt: skip

    def pieces() -> Iterator[pl.DataFrame]:
        row: list[bytes] = []
        seen: set[int] = set()
        at: list[int] = []
        values: list[bytes] = []
        for block in _blocks(head):
            for quoted, bare in _TOKEN.findall(block):
                if len(row) < len(stub):
                    row.append(quoted or bare)
                    if len(row) == len(stub):
                        at.append(_place(head, places, stub, row, seen))
                else:
                    values.append(b'"' + quoted + b'"' if quoted else bare)
                    if len(values) == width * len(at):
                        row = []
                if not row and len(values) >= PIECE_ROWS:
                    yield _rows(head, dimensions, width, at, values)
                    at, values = [], []
        if row or len(values) != width * len(at):
            raise InputError(
                f"{head.path.name}: the last row has too few numbers; expected {width:,}; cut short: get it again"
            )
        if at:
            yield _rows(head, dimensions, width, at, values)

    return pieces


def _place(
    head: Head, places: list[dict[str, int]], stub: tuple[Dimension, ...], row: list[bytes], seen: set[int]
) -> int:
    found = 0
    for known, dimension, raw in zip(places, stub, row, strict=True):
        text = head.decoded(raw)
        if text not in known:
            raise InputError(
                f"{head.path.name}: a row begins with '{shown(text)}', which is no value of "
                f"'{shown(dimension.name)}'; expected one, as KEYS says; get the file again"
            )
        found = found * len(dimension.categories) + known[text]
    if found in seen:
        raise InputError(f"{head.path.name}: two rows for '{shown(head.decoded(row[-1]))}'; expected one of each")
    seen.add(found)
    return found


def _rows(
    head: Head, dimensions: tuple[Dimension, ...], width: int, at: list[int], values: list[bytes]
) -> pl.DataFrame:
    crossing = (np.array(at, np.int64)[:, None] * width + np.arange(width)).ravel()
    return frame(dimensions, crossing, _values(head, values, int(crossing[0])))
