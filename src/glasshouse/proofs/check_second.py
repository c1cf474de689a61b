"""What follows from a second agency's file? `check_proof.py` runs this where certificates rest on `second.csv`.

`docs/proofs.md` specifies the file, and what each way to read it says of a number (*A second agency*). Whatever is not
of that form is a ValueError or a KeyError, and refused.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any

NUMBERS = 2_000_000  # that are read of all lines
WHOLE, PERCENT = re.compile("[0-9]{1,12}"), re.compile(r"(?:[0-9]{1,3}(?:\.[0-9]{1,6})?)?")
Ends = tuple[int, int | None]  # between which numbers one lies


def need(true: object) -> None:
    if not true:
        raise ValueError


def whole(text: str) -> int:
    need(WHOLE.fullmatch(text))
    return int(text)


def follow(
    printed: str, asked: Mapping[tuple[str, str], Mapping[str, Any]], places: Collection[str]
) -> dict[tuple[str, str, str], Ends]:
    """What the file says of numbers of places; each number is asked for by its level and name, with how it follows."""
    header, *rows = (line.split(",") for line in printed.splitlines())
    lines: dict[str, list[dict[str, str]]] = {place: [] for place in places}
    need(len(set(header)) == len(header) and len(asked) * (len(rows) + len(lines)) <= NUMBERS)
    for line in (dict(zip(header, row, strict=True)) for row in rows):
        lines.get(line["place"], []).append(line)
    return {(level, at, name): stated(how, lines[at]) for (level, name), how in asked.items() for at in lines}


def stated(how: Mapping[str, Any], lines: Iterable[Mapping[str, str]]) -> Ends:
    """What lines say of a number: the counts `of`, added up, or `shares` of them; blank is unknown.

    With `who` shares are of units, and so many households live in one each: as many units as are left may be empty.
    """
    lows, highs, everybody, never = [0], list[int | None]([0]), 0, False
    for line in lines:
        of, who = (whole(one) if one else None for one in (line[how["of"]], line[how.get("who", how["of"])]))
        shares = {name: within(line[name], of or 0) for name in how.get("whole", how.get("shares", ()))}
        low, high = (sum(both[side] for both in shares.values()) if shares else of for side in (0, 1))
        if of is None or who is None or low is None:
            low, high = 0, None
        elif "who" in how:
            units = sum(map(min, shares.values()))
            never |= how["of"] == how["who"] and (units > of or any(least > most for least, most in shares.values()))
            low, high = sum(min(shares[name]) for name in how["shares"]) - max(max(of, units) - who, 0), None
        everybody += who or 0
        lows.append(max(low, 0))
        highs.append(high)
    high = None if None in highs or "least" in how else sum(one or 0 for one in highs)
    return (everybody + 1, None) if never else (sum(lows), high)  # never: no households give these shares


def within(share: str, of: int) -> tuple[int, int]:
    """The fewest and the most of so many that give a printed percentage, halves both ways; of a blank, none and all."""
    need(PERCENT.fullmatch(share))
    half = Fraction(1, 2 * 10 ** len(share.partition(".")[2])) if share else Fraction(50)
    low, high = ((Fraction(share or 50) + side) * of / 100 for side in (-half, half))
    return max(-(-low // 1), 0), min(high // 1, of)
