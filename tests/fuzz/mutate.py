"""How is a good file harmed? In its structure, value by value, or in its bytes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import date
from random import Random
from typing import Any

NUMBERS = (
    0, 1, -1, 2, 7, 64, 10_000, 100_000, 2_000_000_000, -(2**31), 2**53, 2**63 - 1, 10**30, 0.5, -0.0, 1e-300, 1e300,
    float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
TEXTS = (
    "", " ", "a", "0", "00", "-1", "1e9", "nan", "²", "٣", "½", "é", "日本語", "\u202eabc", "a\u2066b", "\x1b[31m",
    "a\nb", "a\tb", "\x00", "\x7f", "\u2028", "\ufffe", "\U0010ffff", "\u200d", "\u00a0", "x" * 300, "x" * 30_000,
    "{", "{line}", "{table:9}", "{0}", "%s", "../../etc/passwd", "/", ".", "0-4", "0..9999", "0..999999999", "85+",
    "9" * 30, "0-1 1-2", "1e999999999", "1/0", "<b>", "&", "'", '"', ",", "|", "all", "total", "detailed", "a*b",
    "not", "NaN", "true", "(", "[a", "\\",
)  # fmt: skip
Path = tuple[Any, ...]


def value(random: Random) -> Any:
    """Anything that TOML can hold."""
    return random.choice(
        [
            lambda: random.choice(NUMBERS), lambda: random.choice(NUMBERS), lambda: random.choice(TEXTS),
            lambda: random.choice(TEXTS), lambda: random.random() < 0.5, list, dict,
            lambda: [random.choice(TEXTS)], lambda: [random.choice(NUMBERS)] * random.choice((1, 2, 5)),
            lambda: {random.choice(TEXTS): random.choice(NUMBERS)}, lambda: date(1940, 4, 1), lambda: deep(random),
            lambda: [f"f{number}" for number in range(random.choice((3, 13, 14, 18, 30, 300, 3000)))],
        ]
    )()  # fmt: skip


def deep(random: Random) -> Any:
    """Entries within entries."""
    found: Any = random.choice(TEXTS)
    for _ in range(random.choice((3, 20, 26, 200))):
        found = [found] if random.random() < 0.5 else {"a": found}
    return found


def paths(tree: Any, at: Path = ()) -> list[Path]:
    """Where everything is."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [at, *(path for key, part in inside for path in paths(part, (*at, key)))]


def found(tree: Any, path: Path) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def harmed(tree: Any, random: Random, times: int) -> Any:
    """The tree with so many changes."""
    tree = copy.deepcopy(tree)
    for _ in range(times):
        every = paths(tree)[1:]
        if not every:
            return tree
        path = random.choice(every)
        random.choice(CHANGES)(found(tree, path[:-1]), path[-1], tree, random)
    return tree


def _delete(owner: Any, key: Any, tree: Any, random: Random) -> None:
    del owner[key]


def _replace(owner: Any, key: Any, tree: Any, random: Random) -> None:
    owner[key] = value(random)


def _another(owner: Any, key: Any, tree: Any, random: Random) -> None:
    owner[key] = copy.deepcopy(found(tree, random.choice(paths(tree)[1:])))


def _rename(owner: Any, key: Any, tree: Any, random: Random) -> None:
    if isinstance(owner, dict):
        owner[random.choice((*TEXTS, f"{key}x", str(key)[:-1]))] = owner.pop(key)


def _repeat(owner: Any, key: Any, tree: Any, random: Random) -> None:
    one, times = owner[key], random.choice((2, 2, 3, 18, 200, 3000))
    if isinstance(owner, list):
        owner.extend(copy.deepcopy(one) for _ in range(min(times, 100_000 // (1 + len(str(one))))))
    elif isinstance(one, list) and one:
        owner[key] = one * min(times, 1 + 100_000 // (1 + len(str(one))))
    else:
        for number in range(min(times, 100_000 // (1 + len(str(one))))):
            owner[f"{key}{number}"] = copy.deepcopy(one)


def _stretch(owner: Any, key: Any, tree: Any, random: Random) -> None:
    one = owner[key]
    if isinstance(one, str):
        at = random.randrange(len(one) + 1)
        owner[key] = one[:at] + random.choice(TEXTS) + one[at:]
    elif isinstance(one, (int, float)):
        owner[key] = random.choice((one * 10, one + 1, one - 1, -one, one * 10**6, str(one), bool(one)))
    elif isinstance(one, list):
        random.shuffle(one)


def _wrap(owner: Any, key: Any, tree: Any, random: Random) -> None:
    owner[key] = random.choice(([owner[key]], {"label": owner[key]}, {"not": owner[key]}))


Change = Callable[[Any, Any, Any, Random], None]
CHANGES: tuple[Change, ...] = (_delete, _replace, _replace, _another, _rename, _repeat, _stretch, _stretch, _wrap)


def toml(tree: dict[str, Any]) -> str:
    """A tree as TOML, a line for each entry of the top."""
    return "".join(f"{_text(str(key))} = {_inline(part)}\n" for key, part in tree.items())


def _inline(part: Any) -> str:
    if isinstance(part, bool):
        return "true" if part else "false"
    if isinstance(part, dict):
        return "{" + ", ".join(f"{_text(str(key))} = {_inline(inside)}" for key, inside in part.items()) + "}"
    if isinstance(part, list):
        return "[" + ", ".join(_inline(inside) for inside in part) + "]"
    return _text(part) if isinstance(part, str) else str(part)


def _text(text: str) -> str:
    spelt = (f"\\u{ord(c):04x}" if ord(c) < 32 or c == "\x7f" else f"\\{c}" if c in '"\\' else c for c in text)
    return f'"{"".join(spelt)}"'


def bytes_of(data: bytes, random: Random, times: int) -> bytes:
    """The same bytes with so many changes."""
    for _ in range(times):
        at = random.randrange(len(data) + 1)
        end = min(len(data), at + random.choice((1, 1, 2, 8, 100)))
        again = data[at:end] * random.choice((2, 50))
        junk = random.choice(
            (random.randbytes(2), random.choice(TEXTS).encode(), b"\n", b",", b"[" * 900, b"a." * 400, again)
        )
        start, rest = data[:at], data[end:]
        data = random.choice((start + rest, start + junk + rest, start + junk + data[at:], start))
    return data


def rows_of(text: str, random: Random, times: int) -> str:
    """A CSV text with so many fields, columns or rows changed."""
    rows = [line.split(",") for line in text.splitlines()]
    for _ in range(times):
        row = random.choice(rows[:1] if random.random() < 0.2 else rows)
        at = random.randrange(len(row)) if row else 0
        kind = random.randrange(8)
        if kind == 0 and row:
            row[at] = random.choice(TEXTS)
        elif kind == 1 and row:
            row[at] = str(random.choice(NUMBERS))
        elif kind == 2 and row:
            del row[at]
        elif kind == 3:
            rows.append(list(row))
        elif kind == 4:
            for other in rows:
                other.insert(min(at, len(other)), other[0] if other and random.random() < 0.9 else "geoid")
        elif kind == 5:
            for other in rows:
                del other[at : at + 1]
        elif kind == 6 and row:
            row[at] += random.choice(("0", ".0", ".0000000000000000001", " ", "e3", "-", '"', "5"))
        elif row:
            row[at] = random.choice(random.choice(rows) or [""])
    return "".join(",".join(row) + "\n" for row in rows)
