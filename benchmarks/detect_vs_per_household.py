"""Must somebody in a block break the rule on occupancy (paper 004)? Beside one integer variable for every household.

1,000 blocks of 11 to 150 households of a synthetic county, each with a subsidised property, as model `paper` reads
them. Ours gives the least and the most households that can break the rule, with proof. The peer says only whether
somebody must: appendix E as written, one solve with the rule and, where nothing fits, one without it (see
`detect_peers.py`), also with the households in order of size, which takes away symmetry. Where it ends, it must say
what ours says. Building its programs is left out, as is compiling the statements for ours; ours makes the program of
each block within its seconds. These are of the processor, for all, since a machine may have other work.

`by_size` says how the seconds of ours grow with the households, for that and for the most likely data sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.claims_vs_per_claim import machine
from benchmarks.detect_peers import CLOCK, Decided, PerHousehold
from benchmarks.peers import Flags, Floats, Ints
from glasshouse.attack.occupancy.bundles import Bundles, bundle
from glasshouse.attack.occupancy.detect import CLIMB, Answer, Found, detect
from glasshouse.attack.occupancy.kinds import Block, in_faces, some_kinds
from glasshouse.attack.occupancy.likely import Likely, Sample, likely
from glasshouse.attack.occupancy.statements import LeftOut, Property, readings_of
from glasshouse.model.records import Codes, Interval, Records
from glasshouse.model.tabulate import tabulate
from glasshouse.population import subsidy
from glasshouse.population.county import SUBSIDY, County
from glasshouse.population.people import HOUSEHOLD, QUARTERS
from glasshouse.population.preset import load_preset
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import cheapest
from glasshouse.scenarios.load import Scenario, load

PRESET, PERSONS, SEED = "national", 400_000, 1
SHARE = 0.25  # of households in subsidised properties: far more than there are, so that there are enough blocks
LEAST, MOST, BLOCKS = 11, 150, 1000
RENTED = (3, 4)
SAMPLED = 0.1  # of the households, for the most likely data sets

CAP = 20.0  # seconds a solve
ASKED = 10  # blocks, spread over the sizes, on which the peer in order is tried

BANDS = ((11, 20), (21, 40), (41, 80), (81, 150))
IN_BAND = 15
WANTED = (1, 10, 100)  # most likely data sets


@cache
def scenario() -> Scenario:
    return load("subsidised-housing")


class Households(NamedTuple):
    """The households of a county by block, and what is published of its properties."""

    codes: tuple[str, ...]
    homes: subsidy.Homes
    levels: Codes  # of each household; nobody says how many bedrooms it has
    properties: pl.DataFrame
    usable: Flags  # blocks of the right size, with a property and without group quarters


@cache
def county() -> Households:
    """A synthetic county, before any swapping, with many more subsidised properties than there are."""
    made, schema = County(load_preset(PRESET), PERSONS, SEED), scenario().schema
    parts: list[dict[str, NDArray[np.generic]]] = []
    quarters = np.zeros(len(made.places.codes), np.bool_)
    for number in range(made.places.tracts):
        tract = made.tract(number)
        people, homes = tract.people, tract.homes
        quarters[tract.first_block + people.unit_block[people.unit_kind == QUARTERS]] = True
        at = people.unit_kind == HOUSEHOLD
        own = {name: getattr(homes, name)[at] for name in ("persons", "children", "adults", "race")}
        own |= {"block": tract.first_block + people.unit_block[at], "hispanic": homes.hispanic[at] == 1}
        own |= {"rented": np.isin(homes.columns["TEN"][at], RENTED)}
        parts.append(own | {name: homes.columns[name][at] for name in ("THHSPAN", "THHRACE")})
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    levels = np.zeros((len(whole["block"]), len(schema.attributes)), np.int16)
    levels[:, schema.position["household"]] = _level(whole["persons"], whole["children"])
    for name in ("THHSPAN", "THHRACE"):
        levels[:, schema.position[name]] = whole.pop(name)
    homes = subsidy.Homes(**whole)
    housed = subsidy.simulate(homes, made.chance(SUBSIDY), share=SHARE)
    published = subsidy.statistics(homes, housed, made.places.codes).filter(pl.col("people_total") >= 0)
    size = np.bincount(homes.block, minlength=len(quarters))
    there = np.isin(made.places.codes, published["block"].unique().to_list())
    usable = there & ~quarters & (size >= LEAST) & (size <= MOST)
    return Households(made.places.codes, homes, levels, published, usable)


def _level(persons: Ints, children: Ints) -> Ints:
    """The level of a household of so many persons, so many of them children."""
    numbers = scenario().schema.attribute("household").numbers
    table = np.zeros((max(numbers["persons"]) + 1,) * 2, np.int64)
    table[numbers["persons"], numbers["children"]] = np.arange(len(numbers["persons"]))
    return table[persons, children]


Readings = tuple[Block, ...]  # of one block: model paper has one


@cache
def blocks(model: str) -> tuple[Readings, ...]:
    """1,000 blocks with a subsidised property, drawn at random, as a model reads them."""
    place, made = scenario(), county()
    chosen = np.sort(np.random.default_rng(SEED).choice(np.flatnonzero(made.usable), BLOCKS, replace=False))
    here = np.isin(made.homes.block, chosen)
    where = np.searchsorted(chosen, made.homes.block[here]).astype(np.int32)
    names = tuple(made.codes[number] for number in chosen)
    census = tabulate(Records(place.schema, names, where, made.levels[here]), place.tables, "block")
    shares = {name: made.properties[name] for name in (*place.occupancy.shares, place.occupancy.units, "people_total")}
    properties: dict[str, list[Property]] = {}
    for row, (code, reported) in enumerate(made.properties.select("block", "number_reported").iter_rows()):
        properties.setdefault(code, []).append(Property(reported, {name: some[row] for name, some in shares.items()}))
    found = []
    for row, code in enumerate(census.places):
        numbers = {name: Interval(int(n), int(n)) for name, n in zip(census.variables, census.lower[row], strict=True)}
        block = readings_of(place.occupancy, place.occupancy.model(model), code, numbers, properties[code])
        if isinstance(block, LeftOut):
            raise TypeError(f"{code} is left out: {block.reason}")
        found.append(block)
    return tuple(found)


@cache
def compiled(model: str) -> Bundles:
    place = scenario()
    return bundle(in_faces(place.occupancy, place.occupancy.model(model), place.schema))


class Ours(NamedTuple):
    """What was found of each block, and the seconds that took."""

    found: list[Found]
    seconds: Floats


def ours(model: str, some: Sequence[Readings]) -> Ours:
    """Detection, block by block; the first is done once more, since code is loaded then."""
    bundles = compiled(model)
    detect(bundles, some[0])
    found, seconds = [], np.zeros(len(some))
    for at, block in enumerate(some):
        began = CLOCK()
        found.append(detect(bundles, block))
        seconds[at] = CLOCK() - began
    return Ours(found, seconds)


def least_alone(some: Sequence[Readings]) -> Floats:
    """Seconds for the least violations only, which decide what the peer decides."""
    bundles, seconds = compiled("paper"), np.zeros(len(some))
    broken = bundles.breaks.astype(np.int64)
    for at, block in enumerate(some):
        began = CLOCK()
        cheapest(bundles.program(block[0], broken), CLIMB)
        seconds[at] = CLOCK() - began
    return seconds


def peer(some: Sequence[Readings], *, ordered: bool) -> list[Decided]:
    statements = scenario().occupancy.model("paper").statements
    return [PerHousehold(statements, block[0], ordered=ordered).decide(CAP) for block in some]


def spread(some: Sequence[Readings], count: int) -> Ints:
    """So many blocks, evenly spread over the order of sizes."""
    order = np.argsort([block[0].households for block in some], kind="stable")
    return order[np.linspace(0, len(order) - 1, min(count, len(order))).astype(np.int64)]


def _agreed(found: Found, decided: Decided) -> bool:
    """Do both say the same, where both know?"""
    return decided.answer in (None, found.answer) or found.proof == Proof.UNDECIDED


def _form(decided: Sequence[Decided], mine: Floats) -> dict[str, object]:
    """How a form of the peer compares with our seconds for the same blocks."""
    theirs = np.array([one.seconds for one in decided])
    return {
        "blocks": len(decided),
        "seconds a block, median": _short(np.median(theirs)),
        "seconds a block, mean": _short(theirs.mean()),
        "seconds a block, most": _short(theirs.max()),
        "did not end": sum(one.answer is None for one in decided),
        "ratio, median of blocks": round(float(np.median(theirs / mine)), 2),
        "ratio, 5 and 95 of 100 blocks": [round(float(end), 2) for end in np.percentile(theirs / mine, (5, 95))],
        "ratio of totals": round(float(theirs.sum() / mine.sum()), 2),
    }


def run() -> dict[str, object]:
    """The least and the most violations of 1,000 blocks, against one integer variable a household."""
    some = blocks("paper")
    mine = ours("paper", some)
    written = peer(some, ordered=False)
    few = spread(some, ASKED)
    ordered = peer([some[at] for at in few], ordered=True)
    pairs = [*zip(mine.found, written, strict=True), *zip([mine.found[at] for at in few], ordered, strict=True)]
    wrong = sum(not _agreed(*pair) for pair in pairs)
    if wrong:
        raise SystemExit(f"the peer says something else of {wrong} blocks")
    size, certain = sizes(some), np.array([one.answer == Answer.CERTAIN for one in mine.found])
    groups = {f"{low} to {high} households": (size >= low) & (size <= high) for low, high in BANDS}
    groups |= {"somebody must (two solves)": certain, "perhaps nobody does (one solve)": ~certain}
    on_few = [written[at] for at in few]
    forms = {
        "as written": _form(written, mine.seconds),
        "as written, on the blocks of the next": _form(on_few, mine.seconds[few]),
        "in order of size": _form(ordered, mine.seconds[few]),
    }
    slower = sum(one.seconds for one in ordered) >= sum(one.seconds for one in on_few)
    kept = forms["as written" if slower else "in order of size"]
    alone = _form(written, least := least_alone(some))
    sharp = ours("sharp", blocks("sharp"))
    return {
        "name": "detect-vs-per-household",
        "ratio": kept["ratio of totals"],
        "unit": "times faster, all blocks together",
        "n": kept["blocks"],
        "peer": "appendix E of paper 004, one integer variable a household, made linear: one solve with the rule and, "
        "where nothing fits, one without; HiGHS, one thread, its own settings",
        "detail": {
            "blocks": f"{LEAST} to {MOST} households, with a subsidised property, of a synthetic county ({PRESET}, "
            f"{PERSONS:,} persons, {SHARE:.0%} of households subsidised)",
            "households a block, median": float(np.median(size)),
            "answers": _answers(mine.found),
            "proofs": dict(Counter(str(one.proof) for one in mine.found)),
            "least and most both met": sum(one.low_met and one.high_met for one in mine.found),
            "seconds a block, median": _short(np.median(mine.seconds)),
            "seconds a block, mean": _short(mine.seconds.mean()),
            "seconds a block, most": _short(mine.seconds.max()),
            "peer": forms,
            "peer as written, by": {
                name: _form([written[at] for at in np.flatnonzero(group)], mine.seconds[group])
                for name, group in groups.items()
            },
            "disagreements": wrong,
            "ours, the least alone (all that the peer decides)": {
                "seconds a block, median": _short(np.median(least)),
                "ratio, median of blocks": alone["ratio, median of blocks"],
                "ratio of totals": alone["ratio of totals"],
            },
            "ours, model sharp": {
                "answers": _answers(sharp.found),
                "proofs": dict(Counter(str(one.proof) for one in sharp.found)),
                "seconds a block, median": _short(np.median(sharp.seconds)),
                "seconds a block, mean": _short(sharp.seconds.mean()),
                "seconds a block, most": _short(sharp.seconds.max()),
            },
            "cap seconds a solve": CAP,
            "machine": machine(),
            "left_out": "making the blocks; compiling the statements; building the peer's programs. The peer as "
            f"written ran on all blocks, in order of size on {len(few)} spread over the sizes; the ratio is of the "
            "faster. The paper uses Gurobi",
        },
    }


def sizes(some: Sequence[Readings]) -> Ints:
    return np.array([block[0].households for block in some])


def _answers(found: Sequence[Found]) -> dict[str, int]:
    return dict(Counter(str(one.answer) for one in found))


def _short(seconds: float) -> float:
    return round(float(seconds), 4)


@cache
def sample() -> Sample:
    """A tenth of the county's households by kind, as an attacker has them who holds a public sample."""
    place, levels = scenario(), county().levels
    drawn = levels[np.random.default_rng(SEED).random(len(levels)) < SAMPLED]
    kinds, count = np.unique(drawn, axis=0, return_counts=True)
    made, of = some_kinds(place.occupancy, place.occupancy.model("sharp"), place.schema, kinds)
    return Sample.weighed(made, of, count)


def by_size() -> dict[str, object]:
    """Seconds a block by its households: detection, and the most likely data sets."""
    every = blocks("sharp")
    size = sizes(every)
    likely(sample(), every[0], 1, np.random.default_rng(SEED))  # code is loaded first
    rows: list[dict[str, object]] = []
    for low, high in BANDS:
        inside = [every[at] for at in np.flatnonzero((size >= low) & (size <= high))]
        chosen = [inside[at] for at in spread(inside, IN_BAND)]
        said = {"households": f"{low} to {high}", "median_households": float(np.median(sizes(chosen)))}
        detection = ours("sharp", chosen)
        sure = sum(one.low_met and one.high_met for one in detection.found)
        rows.append({**said, "question": "detect", **_band(detection.seconds), "proved": sure})
        for t in WANTED:
            seconds, found = _most_likely(chosen, t)
            rows.append(
                {
                    **said,
                    "question": f"{t} most likely",
                    **_band(seconds),
                    "proved": sum(str(one.proof) != "undecided" for one in found),
                    "without a data set": sum(len(one.x) == 0 for one in found),
                }
            )
    exponents = {}
    for question in dict.fromkeys(str(row["question"]) for row in rows):
        mine = [row for row in rows if row["question"] == question]
        x, y = (np.log([float(str(row[key])) for row in mine]) for key in ("median_households", "median_seconds"))
        exponents[question] = round(float(np.polyfit(x, y, 1)[0]), 2)
    return {
        "name": "detect-by-size",
        "ratio": exponents["detect"],
        "unit": f"exponent of median seconds over households, {LEAST} to {MOST}, detection",
        "n": sum(int(str(row["blocks"])) for row in rows if row["question"] == "detect"),
        "peer": "none",
        "detail": {
            "model": "sharp",
            "exponents": exponents,
            "rows": rows,
            "machine": machine(),
            "left_out": "making the blocks; compiling the statements and the sample",
        },
    }


def _most_likely(some: Sequence[Readings], t: int) -> tuple[Floats, list[Likely]]:
    seconds, found = np.zeros(len(some)), []
    for at, block in enumerate(some):
        began = CLOCK()
        found.append(likely(sample(), block, t, np.random.default_rng(SEED)))
        seconds[at] = CLOCK() - began
    return seconds, found


def _band(seconds: Floats) -> dict[str, object]:
    return {
        "blocks": len(seconds),
        "median_seconds": _short(np.median(seconds)),
        "mean_seconds": _short(seconds.mean()),
        "max_seconds": _short(seconds.max()),
    }
