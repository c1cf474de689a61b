"""Is a fact true? Small tables and facts, certificates of them, and plain recursion over every histogram.

The oracle reads definitions, numbers and facts as `docs/proofs.md` specifies them, and shares no code with the checker.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from glasshouse.proofs.certificate import Witness, complete, text_of
from glasshouse.proofs.check_proof import Definitions, Fact, Kinds, read_published
from glasshouse.proofs.contradiction import shown_contradiction
from glasshouse.proofs.count import shown_count
from glasshouse.proofs.overlap import Part, pruned, shown_overlap
from glasshouse.proofs.space import space_of

Json = dict[str, Any]
Rows = list[list[str]]  # level, geoid, variable, lower, upper
PLACES = ("A1a", "A1b")
SIZES = (3, 2, 2)


def toy(seed: int, *, intervals: bool = False) -> tuple[Json, Rows, dict[str, list[tuple[int, ...]]]]:
    """Definitions, published numbers, and the records of two places behind them."""
    rng = np.random.default_rng(seed)
    kinds = list(product(*(range(size) for size in SIZES)))
    zeros = [kinds[one] for one in rng.choice(len(kinds), 1, replace=False)]
    possible = [kind for kind in kinds if kind not in zeros]
    favoured = rng.choice(len(possible), 5, replace=False)
    records = {place: [possible[int(rng.choice(favoured))] for _ in range(int(rng.integers(1, 6)))] for place in PLACES}
    numbers: Json = {"house": {"T_01": {"table": "T", "says": "everybody", "counts": [{}]}}, "street": {}}
    for at in range(int(rng.integers(3, 7))):
        sides = [sorted(rng.choice(size, int(rng.integers(1, size + 1)), replace=False)) for size in SIZES]
        boxes = [{f"a{n}": " ".join(map(str, side)) for n, side in enumerate(sides) if len(side) < SIZES[n]}]
        if rng.random() < 0.2:
            boxes.append({"a0": "0"})  # a tally counts some records twice
        level = "street" if rng.random() < 0.3 else "house"
        numbers[level][f"N{at}_01"] = {"table": f"N{at}", "says": "some", "counts": boxes}
    definitions: Json = {
        "format": "glasshouse proof 1", "scenario": "toy", "place": "house", "levels": {"street": 2, "house": 3},
        "mapping": {},
        "attributes": [{"name": f"a{n}", "levels": [f"l{i}" for i in range(s)]} for n, s in enumerate(SIZES)],
        "compare": {f"a{n}": [i if seed % 2 else min(i, 1) for i in range(size)] for n, size in enumerate(SIZES)},
        "impossible": [{"where": {f"a{n}": str(v) for n, v in enumerate(zero)}} for zero in zeros],
        "absent": "zero", "all_places": bool(rng.random() < 0.7), "assumed": [], "aside": [], "totals": [],
        "numbers": numbers,
    }  # fmt: skip
    rows: Rows = []
    for level, some in numbers.items():
        for code in PLACES if level == "house" else ("A1",):
            for name, said in some.items():
                inside = [one for place in PLACES if place.startswith(code) for one in records[place]]
                value = sum(_times(said["counts"], one) for one in inside)
                low, high = value, value
                if intervals and name != "T_01" and rng.random() < 0.4:
                    low, high = max(value - int(rng.integers(0, 2)), 0), value + int(rng.integers(0, 2))
                rows.append([level, code, name, str(low), str(high)])
    return definitions, rows, records


def _times(boxes: Sequence[Mapping[str, str]], record: Sequence[int]) -> int:
    return sum(all(record[int(name[1:])] in _levels(text) for name, text in box.items()) for box in boxes)


def _levels(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split():
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def write(folder: Path, definitions: Json, rows: Rows) -> tuple[str, str]:
    """Write both files; their hashes, as headers have them."""
    folder.mkdir(exist_ok=True)
    content = json.dumps(definitions).encode()
    (folder / "definitions.json").write_bytes(content)
    with (folder / "published.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["level", "geoid", "variable", "lower", "upper"], *rows])
    published = (folder / "published.csv").read_bytes()
    return hashlib.sha256(published).hexdigest(), hashlib.sha256(content).hexdigest()


def certificate(folder: Path, said: Json, witnesses: Sequence[Witness] = ()) -> tuple[int, str] | None:
    """What is shown of a fact in a folder, and its text without what is said of files; None: nothing."""
    defined = Definitions((folder / "definitions.json").read_bytes())
    fact = Fact(json.dumps(said), defined)
    published = read_published(folder / "published.csv", folder / "second.csv", defined, fact.places)
    kinds = Kinds(defined, fact.levels)
    space = space_of(fact, published, kinds)
    if fact.kind == "contradiction":
        refuted = shown_contradiction(space)
        found = None if refuted is None else (refuted.derived, 0)
        witnesses = () if refuted is None else refuted.witnesses
    elif fact.kind == "overlap":
        found = shown_overlap(space, fact.bound, [Part(range(len(fact.records)), fact.bound)])
    else:
        found = shown_count(space, fact.bound)
    if found is None:
        return None
    derived, shown = found
    pruned(derived)
    said = said | ({} if fact.kind == "contradiction" else {"bound": shown})
    return shown, text_of(said, witnesses, published, kinds, derived)


def finish(text: str, hashes: tuple[str, str]) -> str:
    return complete(text, *hashes)


def facts(definitions: Json, rows: Rows, records: dict[str, list[tuple[int, ...]]]) -> Iterator[Json]:
    """Facts of a toy that are true, as sharp as they can be."""
    for levels in (["house"], ["house", "street"]):
        base: Json = {"places": ["A1a"], "levels": levels}
        if not definitions["numbers"]["street"] and len(levels) > 1:
            continue
        compare = [definitions["compare"][one["name"]] for one in definitions["attributes"]]
        compared = [tuple(of[level] for of, level in zip(compare, one, strict=True)) for one in records["A1a"]]
        said = base | {"fact": "overlap", "records": [[compared.count(one), *one] for one in sorted(set(compared))]}
        best = extreme(definitions, rows, said)
        if best:
            yield said | {"bound": best, "total": ["T_01"]}
        for where in ([{"a0": "0"}], [{"a1": "1"}], [{"a0": "1-2", "a2": "0"}]):
            least = extreme(definitions, rows, base | {"fact": "least", "where": where})
            if least:
                yield base | {"fact": "least", "where": where, "bound": least}
            most = extreme(definitions, rows, base | {"fact": "most", "where": where})
            if most is not None:
                yield base | {"fact": "most", "where": where, "bound": most}
    if definitions["numbers"]["street"] and len(records["A1a"]) + len(records["A1b"]) <= 5:  # both together
        compare = [definitions["compare"][one["name"]] for one in definitions["attributes"]]
        kinds = {
            place: Counter(tuple(of[level] for of, level in zip(compare, one, strict=True)) for one in some)
            for place, some in records.items()
        }
        listed = {place: [[count, *kind] for kind, count in sorted(some.items())] for place, some in kinds.items()}
        for mine in (listed, {"A1b": listed["A1b"]}):  # compared place by place, the street's numbers met exactly
            said = {"fact": "overlap", "places": list(PLACES), "levels": ["house", "street"], "records": mine}
            best = extreme(definitions, rows, said)
            if best:
                yield said | {"bound": best, "total": [f"T_01@{place}" for place in mine]}
        base = {"places": ["A1a", "A1b"], "levels": ["house", "street"], "where": [{"a0": "0"}]}
        for said in (base, base | {"within": ["A1b"]}):
            for side in ("least", "most"):
                best = extreme(definitions, rows, said | {"fact": side})
                if best is not None and (best or side == "most"):
                    yield said | {"fact": side, "bound": best}


# The oracle


def extreme(definitions: Json, rows: Rows, said: Json) -> int | None:
    """The least overlap or count, or the most, over every histogram that fits; None if none does."""
    found = [_value(definitions, said, one) for one in histograms(definitions, rows, said)]
    return (max if said["fact"] == "most" else min)(found, default=None)


def is_true(definitions: Json, rows: Rows, said: Json, used: set[tuple[str, str, str]] | None = None) -> bool:
    """Does every histogram that fits have what the fact says? Of a contradiction: does none fit the numbers used?"""
    if said["fact"] == "contradiction":
        return next(histograms(definitions, rows, said, used), None) is None
    best = extreme(definitions, rows, said)
    return best is None or (best <= said["bound"] if said["fact"] == "most" else best >= said["bound"])


def _value(definitions: Json, said: Json, x: dict[tuple[str, tuple[int, ...]], int]) -> int:
    if said["fact"] != "overlap":
        within = said.get("within", said["places"])
        return sum(times * _times(said["where"], kind) for (place, kind), times in x.items() if place in within)
    compare = [definitions["compare"][one["name"]] for one in definitions["attributes"]]
    have: dict[tuple[str, tuple[int, ...]], int] = {}
    for (place, kind), times in x.items():
        classes = tuple(of[level] for of, level in zip(compare, kind, strict=True))
        have[place, classes] = have.get((place, classes), 0) + times
    listed = said["records"] if isinstance(said["records"], dict) else {said["places"][0]: said["records"]}
    return sum(min(count, have.get((p, tuple(kind)), 0)) for p, some in listed.items() for count, *kind in some)


def histograms(
    definitions: Json, rows: Rows, said: Json, used: set[tuple[str, str, str]] | None = None
) -> Iterator[dict[tuple[str, tuple[int, ...]], int]]:
    """Every histogram of the fact's places that fits the numbers of its levels."""
    sizes = [len(one["levels"]) for one in definitions["attributes"]]
    kinds = [k for k in product(*(range(size) for size in sizes))
             if not any(_times([zero["where"]], k) for zero in definitions["impossible"])]  # fmt: skip
    cells = [(place, kind) for place in said["places"] for kind in kinds]
    listed = {(level, code, name): (int(low), int(high) if high else None) for level, code, name, low, high in rows}
    here = {code for level, code, _ in listed if level == definitions["place"]}
    own = {at for at, some in definitions["numbers"].items() if any("second" in one for one in some.values())}
    absent = (0, 0) if definitions["absent"] == "zero" else (0, None)
    limits: list[tuple[list[int], int, int]] = []
    for level in said["levels"]:
        length = definitions["levels"][level]
        for code in sorted({place[:length] for place in said["places"]}):
            inside = {place for place in here if place[:length] == code}
            there = definitions["all_places"] and inside <= set(said["places"])
            whole = there or level in own | {definitions["place"]}
            for name, number in definitions["numbers"][level].items():
                if used is not None and (level, code, name) not in used:
                    continue
                low, high = listed.get((level, code, name), absent)
                times = [_times(number["counts"], kind) if place[:length] == code else 0 for place, kind in cells]
                limits.append((times, low if whole else 0, 10**9 if high is None else high))
    yield from _search(cells, limits, [0] * len(limits), {}, 0)


def _search(
    cells: list[tuple[str, tuple[int, ...]]], limits: list[tuple[list[int], int, int]], sums: list[int],
    x: dict[tuple[str, tuple[int, ...]], int], at: int,
) -> Iterator[dict[tuple[str, tuple[int, ...]], int]]:  # fmt: skip
    for (times, low, _), total in zip(limits, sums, strict=True):
        if total < low and not any(times[at:]):
            return
    if at == len(cells):
        yield dict(x)
        return
    most = min(((high - total) // times[at] for (times, _, high), total in zip(limits, sums, strict=True) if times[at]),
               default=0)  # fmt: skip
    if most > 30:
        raise OverflowError  # nothing limits this kind of record: too many to write down
    for value in range(most + 1):
        more = [total + value * times[at] for (times, _, _), total in zip(limits, sums, strict=True)]
        yield from _search(cells, limits, more, x | ({cells[at]: value} if value else {}), at + 1)
