"""Is this a VIPR file, version 1.0, and does its derivation hold? A reader of the published grammar, on its own.

It stands in for viprchk, which is in no registry (`tests/test_viprchk.py` runs viprchk itself where it is installed).
It knows nothing of tables, definitions or facts, reads the sections in their order, and checks each reason as the
format's specification says. It shares no code with our checker.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

Terms = dict[int, Fraction]


class Row(NamedTuple):
    """A constraint."""

    name: str
    sense: str
    right: Fraction
    terms: Terms


def refused(text: str) -> str:
    """What is wrong with a file; empty if nothing is."""
    try:
        _read(text)
    except (AssertionError, ValueError, IndexError, StopIteration, KeyError) as error:
        return str(error) or type(error).__name__
    return ""


def _read(text: str) -> None:
    lines = text.split("\n")
    while lines and lines[0].startswith("%"):
        lines.pop(0)
    words = iter(" ".join(lines).split())

    def expect(*wanted: str) -> None:
        for one in wanted:
            found = next(words)
            assert found == one, f"found {found}; expected {one}"

    def pairs() -> Terms:
        found = {}
        for _ in range(int(next(words))):
            at = int(next(words))
            assert at not in found, "an index twice"
            found[at] = Fraction(next(words))
        return {at: value for at, value in found.items() if value}

    expect("VER", "1.0", "VAR")
    variables = [next(words) for _ in range(int(next(words)))]
    assert len(set(variables)) == len(variables)
    expect("INT")
    whole = {int(next(words)) for _ in range(int(next(words)))}
    expect("OBJ")
    sense = next(words)
    assert sense in ("min", "max")
    objective = pairs()

    def row() -> Row:
        name, kind, right = next(words), next(words), Fraction(next(words))
        assert kind in ("E", "L", "G")
        first = next(words)
        if first == "OBJ":
            return Row(name, kind, right, objective)
        terms = {}
        for _ in range(int(first)):
            at = int(next(words))
            assert 0 <= at < len(variables) and at not in terms
            terms[at] = Fraction(next(words))
        return Row(name, kind, right, {at: value for at, value in terms.items() if value})

    expect("CON")
    count, bounds = int(next(words)), int(next(words))
    assert count, "no row: viprchk takes no such file"
    rows = [row() for _ in range(count)]
    for one in rows[:bounds]:
        assert len(one.terms) == 1, f"{one.name} is no bound, and stands among the bounds"
    expect("RTP")
    goal = next(words)
    low, high = (next(words), next(words)) if goal == "range" else ("", "")
    assert goal in ("infeas", "range")
    expect("SOL", "0", "DER")
    derived = int(next(words))
    under: list[frozenset[int]] = [frozenset()] * count
    for at in range(count, count + derived):
        mine = row()
        expect("{")
        reason = next(words)
        if reason == "asm":
            rests = frozenset([at])
        elif reason in ("lin", "rnd"):
            times = pairs()
            assert all(one < at for one in times)
            found = _summed(times, rows, mine.sense)
            if reason == "rnd":
                assert set(found.terms) <= whole and all(v.denominator == 1 for v in found.terms.values())
                side = Fraction(ceil(found.right)) if found.sense == "G" else Fraction(floor(found.right))
                found = found._replace(right=side)
            assert _dominates(found, mine), f"line {at} does not follow"
            rests = frozenset().union(*(under[one] for one in times))
        else:
            assert reason == "uns", reason
            i1, l1, i2, l2 = (int(next(words)) for _ in range(4))
            below, above = (rows[l1], rows[l2]) if rows[l1].sense == "L" else (rows[l2], rows[l1])
            assert below.sense == "L" and above.sense == "G" and below.terms == above.terms
            assert below.right.denominator == 1 and above.right == below.right + 1 and set(below.terms) <= whole
            assert _dominates(rows[i1], mine) and _dominates(rows[i2], mine), f"line {at}: a case does not show it"
            rests = (under[i1] - {l1}) | (under[i2] - {l2})
        expect("}")
        assert int(next(words)) >= -1
        rows.append(mine)
        under.append(rests)
    assert next(words, None) is None, "something stands after the end"
    assert len({one.name for one in rows}) == len(rows), "a name twice"
    assert derived and not under[-1]
    if goal == "infeas":
        assert _absurd(rows[-1])
    elif sense == "min":
        assert high == "inf" and _dominates(rows[-1], Row("", "G", Fraction(low), objective))
    else:
        assert low == "-inf" and _dominates(rows[-1], Row("", "L", Fraction(high), objective))


def _summed(times: Terms, rows: list[Row], wanted: str) -> Row:
    sign = {"G": 1, "E": 0, "L": -1}
    sides = {sign[rows[at].sense] * (1 if value > 0 else -1) for at, value in times.items()} - {0}
    assert len(sides) < 2, "signs that do not go together"
    sense = wanted if not sides else ("G" if sides == {1} else "L")
    terms: Terms = {}
    for at, value in times.items():
        for one, much in rows[at].terms.items():
            terms[one] = terms.get(one, Fraction(0)) + value * much
    right = sum((value * rows[at].right for at, value in times.items()), Fraction(0))
    return Row("", sense, right, {at: value for at, value in terms.items() if value})


def _absurd(row: Row) -> bool:
    wrong = {"G": row.right > 0, "L": row.right < 0, "E": row.right != 0}[row.sense]
    return not row.terms and wrong


def _dominates(row: Row, other: Row) -> bool:
    if _absurd(row):
        return True
    if row.terms != other.terms or row.sense not in (other.sense, "E"):
        return False
    return {"G": row.right >= other.right, "L": row.right <= other.right, "E": row.right == other.right}[other.sense]
