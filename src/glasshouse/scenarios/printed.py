"""How does a scenario, or an option, say how numbers are printed? `3:nearest`, `c = 1..4`, a p-table in a file."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from glasshouse.errors import InputError
from glasshouse.limits import KEY_TABLE_COUNTS, MARKERS, TEXT_FILE_BYTES
from glasshouse.model.printed import (
    ANYTHING,
    BLANK,
    REPEATED,
    How,
    Keyed,
    Missing,
    Noisy,
    Printed,
    Rounded,
    Rule,
    Zeros,
)
from glasshouse.model.records import UNLIMITED, Interval
from glasshouse.scenarios.parse import Toml, dict_of, need, only

OURS, OF_THE_ONS = ("count", "change"), ("pcv", "pvalue")  # the columns of a p-table that say what it may do
EMPTY = "blank"  # how the mark that is no text at all is written


def read(toml: Toml, folder: Path) -> Printed:
    """The section `[printed]` of a scenario."""
    only(toml, "printed", optional="rounded markers missing cell_key noise decimal thousands")
    rules: list[Rule] = []
    if "rounded" in toml:
        rules.append(_rounded(toml["rounded"]))
    if "cell_key" in toml:
        only(toml["cell_key"], "cell_key", required="table")
        rules.append(read_changes(folder / Path(toml["cell_key"]["table"]).name))
    if "noise" in toml:
        rules.append(_noise(toml["noise"]))
    return Printed(
        one_rule(rules),
        markers(dict_of(toml, "markers")),
        cast(Missing, toml.get("missing", "zero")),
        toml.get("thousands", ""),
        toml.get("decimal", "," if toml.get("thousands") == "." else "."),
    )


def one_rule(rules: list[Rule]) -> Rule | None:
    """The rule of a release, of which there is one at most: after two, in an order nobody said, nothing is certain."""
    if len(rules) > 1:
        raise InputError(
            f"numbers are {' and '.join(rule.told for rule in rules)}; expected one of rounded, cell_key and noise "
            "(rounding within a p-table belongs into the p-table; else give noise `within` that holds both)"
        )
    return rules[0] if rules else None


def _rounded(entry: object) -> Rounded:
    if isinstance(entry, Mapping):
        only(entry, "rounded", required="base", optional="how zeros")
        return Rounded(entry["base"], entry.get("how", "random"), entry.get("zeros", "any"))
    return rounded(str(entry))


def rounded(text: str) -> Rounded:
    """Rounding in short: `3`, `10:nearest`, `5:random:kept`.

    >>> rounded("10:nearest")
    Rounded(base=10, how='nearest', zeros='any', whole=True)
    """
    base, how, zeros = (*text.strip().split(":"), "", "")[:3]
    if not re.fullmatch("[0-9]{1,9}", base) or text.count(":") > 2:
        raise InputError(f"rounded '{text[:40]}'; expected a base, and how, such as 3, 10:nearest or 5:random:kept")
    return Rounded(int(base), cast(How, how or "random"), cast(Zeros, zeros or "any"))


def _noise(entry: Toml) -> Noisy:
    only(entry, "noise", optional="scale within")
    if "within" not in entry:
        raise InputError(
            "noise without 'within': it may be of any size, so no interval holds the truth for certain; add "
            "`within`, the most that it can be"
        )
    return Noisy(float(need(entry, "noise", "within")))


def markers(toml: Mapping[str, object]) -> dict[str, Interval | None]:
    """What each mark stands for; `blank` is an empty cell."""
    if len(toml) > MARKERS:
        raise InputError(f"{len(toml)} markers; expected at most {MARKERS}")
    found: dict[str, Interval | None] = {}
    for mark, said in toml.items():
        name = BLANK if mark.strip() in (BLANK, EMPTY) else mark.strip()
        if name in found:
            raise InputError(f"the mark '{mark}' is explained twice; expected once")
        found[name] = meaning(mark, str(said))
    return found


def meaning(mark: str, said: str) -> Interval | None:
    """The interval that a mark stands for; None when the number beside it stands.

    >>> meaning("c", "1..4"), meaning("..", "any").lower, meaning("r", "shown")
    (Interval(lower=1, upper=4), 0, None)
    """
    if said.strip() == "any":
        return ANYTHING
    if said.strip() == "shown":
        return None
    match = re.fullmatch(r"([0-9]{1,12})(\.\.([0-9]{1,12})?)?", said.strip())
    if match:
        lower = int(match[1])
        upper = lower if match[2] is None else int(match[3]) if match[3] else UNLIMITED
        if lower <= upper:
            return Interval(lower, upper)
    raise InputError(
        f"the mark '{mark[:40]}' stands for '{said[:40]}'; expected a number (0), a range (1..4, 3..), any, or shown "
        "(the number beside it stands)"
    )


def read_changes(path: Path) -> Keyed:
    """What a p-table may do to counts: our layout (count, change, probability) or the ONS's (pcv, ckey, pvalue)."""
    found: dict[int, set[int]] = {}
    try:
        if path.stat().st_size > TEXT_FILE_BYTES:
            raise InputError(f"{path.name}: more than {TEXT_FILE_BYTES >> 20} MiB; expected a p-table")
        with path.open("rb") as raw:
            packed = path.name.lower().endswith(".gz")
            content = (gzip.GzipFile(fileobj=raw) if packed else raw).read(TEXT_FILE_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path.name}: the gzip file is damaged or cut short ({error})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); expected a p-table") from None
    if len(content) > TEXT_FILE_BYTES:
        raise InputError(f"{path.name}: unpacks to more than {TEXT_FILE_BYTES >> 20} MiB; expected a p-table")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name}: not UTF-8 at byte {error.start}; expected a p-table as CSV") from None
    lines = text.splitlines()
    skipped = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    rows = csv.reader(lines[skipped:])
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        layout = next((names for names in (OURS, OF_THE_ONS) if set(names) <= set(header)), None)
        if layout is None:
            raise InputError(
                f"{path.name}: columns {', '.join(header[:12]) or 'none'}; expected a p-table: count, change, "
                "probability, or pcv, ckey, pvalue"
            )
        at, by = (header.index(name) for name in layout)
        for number, row in enumerate(rows, start=skipped + 2):
            if not row:
                continue
            count, change = (row[place].strip() if place < len(row) else "" for place in (at, by))
            if not re.fullmatch(r"[0-9]{1,6}", count) or not re.fullmatch(r"[+-]?[0-9]{1,4}", change):
                raise InputError(
                    f"{path.name}, line {number}: {layout[0]} '{count[:20]}', {layout[1]} '{change[:20]}'; expected "
                    "whole numbers, and changes of at most four digits"
                )
            found.setdefault(int(count), set()).add(int(change))
    except csv.Error as error:
        raise InputError(f"{path.name}: cannot be read ({error}); expected a p-table as CSV") from None
    if layout == OF_THE_ONS:
        found.setdefault(0, {0})  # a zero has no row there, and stays
    return _keyed(path.name, found, REPEATED if layout == OF_THE_ONS else 1)


def _keyed(name: str, found: Mapping[int, set[int]], repeated: int) -> Keyed:
    """The last rows stand for all larger counts: of any of them, what one of these rows allows."""
    top = max(found, default=0)
    if top > KEY_TABLE_COUNTS or not found:
        raise InputError(f"{name}: a p-table up to count {top:,}; expected 1 to {KEY_TABLE_COUNTS:,}")
    missing = next((count for count in range(top + 1) if count not in found), None)
    if missing is not None:
        raise InputError(f"{name}: no changes for count {missing}; expected counts 0, 1, 2 and so on")
    changes = tuple(frozenset(found[count]) for count in range(top + 1))
    try:
        return Keyed(changes, frozenset().union(*changes[max(0, top + 1 - repeated) :]))
    except InputError as error:
        error.add_where(name)
        raise
