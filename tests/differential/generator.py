"""Which releases could an office make? Random scenarios, a handful of records, and what was published about them.

A case is a folder: `scenario/scenario.toml`, `records.csv` (the truth), `tables.csv` (the release) and `case.json` (how
the commands are asked, and what was done to the release). The shapes are the point: one attribute, many levels,
recodes that cut across each other, tallies, sums, structural zeros, a unit that is a place, three levels, single years
told by the area alone, tables left out, places of which nothing is told, intervals, and a number that contradicts.
"""

from __future__ import annotations

import csv
import json
import random
from itertools import product
from pathlib import Path
from typing import Any

from tests.differential.scenario import Read, read_scenario

KINDS = 48  # possible records of a scenario, at most
Rows = dict[tuple[str, str, str], tuple[int, int | None]]  # level, code, variable: least and most


def generate(seed: int, folder: Path) -> Path:
    """Write the case of a seed."""
    rng = random.Random(seed)
    while True:
        _write_scenario(folder / "scenario", _scenario(rng))
        scenario = read_scenario(folder / "scenario")
        if 2 <= len(scenario.kinds) <= KINDS:
            break
    records = _records(rng, scenario)
    with (folder / "records.csv").open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow([scenario.place, *scenario.attributes])
        out.writerows([place, *scenario.spelled(kind)] for place, kind in records)
    told = _release(rng, scenario, records, folder / "tables.csv")
    (folder / "case.json").write_text(json.dumps({"case": seed, "seed": rng.randint(1, 9), **told}, indent=1) + "\n")
    return folder


# The scenario


def _scenario(rng: random.Random) -> dict[str, Any]:
    levels, unit = rng.choices(
        [({"town": 2, "ward": 4}, "town"), ({"land": 1, "town": 2, "ward": 4}, "town"),
         ({"land": 1, "town": 2, "ward": 4}, "land"), ({"town": 2, "ward": 4}, "ward")],
        [45, 10, 35, 10],
    )[0]  # fmt: skip
    margins = rng.random() < 0.25  # all pairs of attributes in bins by place, and in single years around
    attributes = _marginal(rng) if margins else _attributes(rng)
    recodes: dict[str, Any] = {}
    bins = None
    if "age" in attributes and (margins or rng.random() < 0.7):
        bins = _cut(rng, attributes["age"], rng.randint(1, max(2, len(attributes["age"]) - 2)))
        recodes["band"] = _recode("age", bins, "band")
    for name, labels in attributes.items():
        recodes[f"{name}-each"] = _recode(name, [[label] for label in labels], f"{name}-each")
        for number in range(rng.randint(1, 2)):
            recodes[f"{name}-{number}"] = _random_recode(rng, name, labels, f"{name}-{number}")
        if rng.random() < 0.35:
            recodes[f"{name}-tally"] = _tally(rng, name, labels)
    tables: dict[str, Any] = {}
    single_years_around = bins is not None and not margins and rng.random() < 0.6
    inner = {
        name: recode
        for name, recode in recodes.items()
        if not ((single_years_around or margins) and recode["attribute"] == "age") or _respects(recode, bins or [])
    }
    if margins:
        pairs = [("P1", "ward", ["band", "b-each"]), ("P2", "ward", ["b-each", "c-each"]),
                 ("P3", "ward", ["band", "c-each"]),
                 ("T5", "town", ["age-each", "b-each"]), ("T6", "town", ["age-each", "c-each"])]  # fmt: skip
        tables = {
            name: {"title": "a pair", "level": level, "by": by} for name, level, by in pairs if rng.random() < 0.9
        }
    for number in range(rng.randint(int("P1" not in tables), 1 if margins else 4)):
        tables[f"P{number + 4 if margins else number}"] = _table(rng, attributes, inner, "ward")
    for number in range(rng.choice([0, 1, 2, 2, 3])):
        tables[f"T{number + 1}"] = _table(rng, attributes, recodes, "town")
    if single_years_around:
        others = [name for name in inner if inner[name]["attribute"] != "age"]
        for number in range(rng.randint(1, 3)):
            years: dict[str, Any] = {"title": "single years", "level": "town", "by": ["age-each"]}
            if others and rng.random() < 0.6:
                years["by"] = rng.sample(["age-each", rng.choice(others)], 2)
            elif others and rng.random() < 0.6:
                name = rng.choice([name for name in attributes if name != "age"])
                years["universe"] = {name: _some(rng, attributes[name])}
            tables[f"T{number + 7}"] = years
    if rng.random() < 0.25:  # everything is told of the area: what one place has, the others cannot have
        tables["T4"] = {"title": "every kind", "level": "town", "by": [f"{name}-each" for name in attributes]}
    if "land" in levels:
        for number in range(rng.choice([0, 1, 1, 2, 2])):
            tables[f"L{number + 1}"] = _table(rng, attributes, recodes, "land")
    if rng.random() < 0.2:  # of some records the tables of places tell nothing: the places of others are not named
        told_of = _sets(rng, attributes, 1)
        for table in tables.values():
            if table["level"] == "ward":
                table["universe"] = told_of
    iterations = {
        letter: {"title": f"some {letter}", **_sets(rng, attributes)} for letter in "AB" if rng.random() < 0.3
    }
    for table in tables.values():
        if iterations and "sums" not in table and rng.random() < 0.2:
            table["iterations"] = "".join(iterations)
    used = {name for table in tables.values() for name in table.get("by", [])} | ({"band"} if bins else set())
    scenario: dict[str, Any] = {
        "title": "drawn",
        "geography": {"place": "ward", "unit": unit, "levels": levels},
        "attribute": {
            name: {"range": [int(labels[0]), int(labels[-1])]} if name == "age" else {"levels": labels}
            for name, labels in attributes.items()
        },
        "impossible": _impossible(rng, attributes),
        "recode": {name: recode for name, recode in recodes.items() if name in used},
        "iteration": iterations,
        "table": tables,
    }
    if bins:
        scenario["compare"] = {"bins": {"ageband": "band"}}
    return scenario


def _attributes(rng: random.Random) -> dict[str, list[str]]:
    """Labels of one attribute, sometimes of many levels, or of up to three."""
    shape = rng.choices(["one", "many", "some"], [10, 12, 78])[0]
    if shape == "one":
        sizes = [rng.randint(2, 5)]
    elif shape == "many":
        sizes = [rng.randint(6, 16)]
    else:
        sizes = [rng.randint(2, 5) for _ in range(rng.randint(2, 3))]
    names = ["age", "b", "c"] if rng.random() < 0.65 else ["a", "b", "c"]
    first = rng.choice([0, 0, 1])
    labels = {}
    for name, size in zip(names, sizes, strict=False):
        if name == "age":
            size += rng.randint(0, 3) if len(sizes) < 3 else 0
            labels[name] = [str(first + number) for number in range(size)]
        else:
            labels[name] = [f"{name}{number}" for number in range(size)]
    return labels


def _marginal(rng: random.Random) -> dict[str, list[str]]:
    sizes = {"age": rng.randint(4, 6), "b": 2, "c": rng.randint(2, 3)}
    return {name: [f"{name * (name != 'age')}{number}" for number in range(size)] for name, size in sizes.items()}


def _cut(rng: random.Random, labels: list[str], groups: int) -> list[list[str]]:
    """Neighbouring labels in so many groups."""
    ends = sorted(rng.sample(range(1, len(labels)), min(groups, len(labels)) - 1)) if groups > 1 else []
    return [labels[begin:end] for begin, end in zip([0, *ends], [*ends, len(labels)], strict=True)]


def _recode(attribute: str, groups: list[list[str]], name: str) -> dict[str, Any]:
    return {
        "attribute": attribute,
        "groups": [{"label": f"{name}.{number}", "levels": group} for number, group in enumerate(groups)],
    }


def _random_recode(rng: random.Random, attribute: str, labels: list[str], name: str) -> dict[str, Any]:
    """A random partition; some groups are divided, and some are of neighbours."""
    count = rng.randint(1, len(labels))
    if attribute == "age" and rng.random() < 0.7:
        groups = _cut(rng, labels, count)
    else:
        owner = {label: rng.randrange(count) for label in labels}
        groups = [some for at in range(count) if (some := [label for label in labels if owner[label] == at])]
    recode = _recode(attribute, groups, name)
    for group in recode["groups"]:
        if len(group["levels"]) > 1 and rng.random() < 0.35:
            cut = rng.randint(1, len(group["levels"]) - 1)
            halves = (group["levels"][:cut], group["levels"][cut:])
            group["parts"] = [
                {"label": f"{group['label']}.{number}", "levels": half} for number, half in enumerate(halves)
            ]
    return recode


def _tally(rng: random.Random, attribute: str, labels: list[str]) -> dict[str, Any]:
    groups = [some for _ in range(rng.randint(1, 3)) if (some := _some(rng, labels))]
    return {**_recode(attribute, groups or [labels], f"{attribute}-tally"), "tally": True}


def _some(rng: random.Random, labels: list[str]) -> list[str]:
    """Not all of the labels, but at least one."""
    return sorted(rng.sample(labels, rng.randint(1, max(1, len(labels) - 1))), key=labels.index)


def _respects(recode: dict[str, Any], bins: list[list[str]]) -> bool:
    """Does every group hold whole bins?"""
    waiting = list(recode["groups"])
    while waiting:
        group = waiting.pop()
        waiting += group.get("parts", [])
        inside = set(group["levels"])
        if any(inside & set(some) and not set(some) <= inside for some in bins):
            return False
    return True


def _sets(rng: random.Random, attributes: dict[str, list[str]], most: int = 2) -> dict[str, list[str]]:
    """A description of some records."""
    names = rng.sample(list(attributes), rng.randint(1, min(most, len(attributes))))
    return {name: _some(rng, attributes[name]) for name in names}


def _impossible(rng: random.Random, attributes: dict[str, list[str]]) -> list[dict[str, Any]]:
    zeros: list[dict[str, Any]] = []
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3])):
        zero: dict[str, Any] = _sets(rng, attributes, 3)
        rest = [name for name in attributes if name not in zero]
        if rest and rng.random() < 0.3:
            other = rng.choice(rest)
            zero["unless"] = {other: _some(rng, attributes[other])}
        zeros.append({**zero, "reason": "so it is", "kind": rng.choice(["certain", "definition", "edit rule"])})
    return zeros


def _table(rng: random.Random, attributes: dict[str, list[str]], recodes: dict[str, Any], level: str) -> dict[str, Any]:
    table: dict[str, Any] = {"title": "drawn", "level": level}
    if "age" in attributes and rng.random() < 0.06:
        return {**table, "sums": "age", **({"universe": _sets(rng, attributes)} if rng.random() < 0.4 else {})}
    names = rng.sample(list(attributes), min(rng.choice([0, 1, 1, 1, 2, 2, 2, 3]), len(attributes)))
    by = []
    for name in names:
        known = [recode for recode in recodes if recodes[recode]["attribute"] == name]
        by += [rng.choice(known)] if known else []
    table["by"] = by
    if rng.random() < 0.3:
        table["universe"] = _sets(rng, attributes)
    if len(by) > 1 and rng.random() < 0.15:
        first = recodes[by[0]]["groups"][0]
        if "parts" not in first:
            table["undivided"] = [first["label"]]
    elif len(by) == 1 and rng.random() < 0.1 and not recodes[by[0]].get("tally"):
        last = recodes[by[0]]["groups"][-1]
        if "parts" not in last:
            table["of_which"] = {last["label"]: {"label": "of which", **_sets(rng, attributes)}}
    return table


def _write_scenario(folder: Path, scenario: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"title = {json.dumps(scenario['title'])}", "[geography]"]
    lines += [f"{key} = {_toml(value)}" for key, value in scenario["geography"].items()]
    for zero in scenario["impossible"]:
        lines += ["[[impossible]]", *(f"{key} = {_toml(value)}" for key, value in zero.items())]
    for section in ("attribute", "recode", "iteration", "compare", "table"):
        if scenario.get(section):
            lines += [f"[{section}]", *(f"{key} = {_toml(value)}" for key, value in scenario[section].items())]
    (folder / "scenario.toml").write_text("\n".join(lines) + "\n")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(some)}" for key, some in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(some) for some in value) + "]"
    return json.dumps(value)


# The records


def _records(rng: random.Random, scenario: Read) -> list[tuple[str, int]]:
    """Up to eight records in one to four wards of one or two towns: a code and the number of a kind."""
    towns = ["A1", "A2"] if rng.random() < 0.8 else ["A1", "B1"]
    wards = [f"{town}{number:02}" for town, number in product(towns[: rng.choice([1, 1, 2])], range(1, 5))]
    lived_in = sorted(rng.sample(wards, rng.choice([1, 2, 2, 3, 3, 4])))
    pool = rng.sample(range(len(scenario.kinds)), min(len(scenario.kinds), rng.choice([3, 4, 6, 48])))
    count = rng.choice([1, 2, 3, 4, 5, 5, 6, 6, 7, 8])
    own = {ward: rng.sample(pool, min(len(pool), 2)) if rng.random() < 0.4 else pool for ward in lived_in}
    records = [(ward, rng.choice(own[ward])) for ward in rng.choices(lived_in, k=count)]
    inner = [line.times for line in scenario.lines if scenario.level_of[line.table] == scenario.place]
    untold = [kind for kind in range(len(scenario.kinds)) if not any(times[kind] for times in inner)]
    if untold and len(lived_in) < 4 and rng.random() < 0.7:  # people of whom the tables of their place tell nothing
        empty = rng.choice([ward for ward in wards if ward not in lived_in])
        records += [(empty, rng.choice(untold)) for _ in range(rng.randint(1, 2))]
    return sorted(records)


# The release


def _release(rng: random.Random, scenario: Read, records: list[tuple[str, int]], path: Path) -> dict[str, Any]:
    style = rng.choices(["exact", "wide", "rounded", "suppressed", "mixed"], [50, 12, 13, 13, 12])[0]
    named = rng.choice(["sparse", "sparse", "sparse", "listed", "dense"]) if style == "exact" else "dense"
    subtotals = rng.random() < 0.4
    extra = rng.random() < 0.15  # tables of places are published of areas too
    left_out = {table for table in scenario.tables if rng.random() < 0.2}
    if not any(scenario.level_of[table] == scenario.place for table in scenario.tables if table not in left_out):
        left_out = set()
    rows: Rows = {}
    trouble = rng.choices(["", "a number", "a vintage"], [60, 25, 15])[0]
    other = dict(enumerate(records))  # of another vintage: one record is of another kind
    other[rng.randrange(len(records))] = (rng.choice(records)[0], rng.randrange(len(scenario.kinds)))
    vintage = rng.choice(scenario.levels[:-1]) if trouble == "a vintage" else ""
    for level in scenario.levels:
        codes = sorted({place[: scenario.lengths[level]] for place, _ in records})
        for line in scenario.lines:
            if line.table in left_out or (line.parts and not subtotals):
                continue
            finer = scenario.lengths[scenario.level_of[line.table]] > scenario.lengths[level]
            if scenario.level_of[line.table] != level and not (extra and finer):
                continue
            for code in codes:
                counted = other.values() if level == vintage else records
                inside = [kind for place, kind in counted if place.startswith(code)]
                rows[level, code, line.variable] = _told(rng, style, sum(line.times[kind] for kind in inside))
    changed = _changed(rng, scenario, rows) if trouble == "a number" else vintage
    if style == "wide":
        _write_wide(rng, scenario, rows, path)
    else:
        _write_long(rows, path, named, exact=style == "exact")
    told: dict[str, Any] = {"style": style, "named": named, "changed": changed}
    if rng.random() < 0.2:
        told["level"] = rng.choice(scenario.levels[1:])
    present = sorted({scenario.owner[variable] for _, _, variable in rows})
    if rng.random() < 0.3:
        only = [table for table in present if rng.random() < 0.6]
        if any(scenario.level_of[table] == scenario.place for table in only):
            told["only"] = only
    return told


def _changed(rng: random.Random, scenario: Read, rows: Rows) -> str:
    """Change a number; or move one record from a number to another of its table, so that the totals still hold."""
    key = rng.choice([key for key in sorted(rows) if key[0] != scenario.place or rng.random() < 0.4] or sorted(rows))
    by = rng.choice([-2, -1, 1, 2])
    mine = [other for other in sorted(rows) if other[:2] == key[:2] and other != key and rows[other][0]]
    of = scenario.owner
    moved = [one for one in mine if of[one[2]] == of[key[2]] and not scenario.by_variable[one[2]].parts]
    told = ""
    if moved and not scenario.by_variable[key[2]].parts and rng.random() < 0.85:
        other, by = rng.choice(moved), 1
        rows[other] = rows[other][0] - 1, None if rows[other][1] is None else rows[other][1] - 1  # type: ignore[operator]
        told = f" from {other[2]}"
    low, high = rows[key]
    rows[key] = max(low + by, 0), None if high is None else max(high + by, 0)
    return " ".join(map(str, [*key, by])) + told


def _told(rng: random.Random, style: str, count: int) -> tuple[int, int | None]:
    """A count as it is published: itself, or an interval that holds it."""
    if style == "mixed":
        style = rng.choice(["exact", "exact", "rounded", "suppressed", "hidden"])
    if style == "rounded":
        base = 3
        down = count - count % base
        said = down if count == down or rng.random() < 0.6 else down + base
        return max(0, said - base + 1), said + base - 1
    if style == "suppressed" and 0 < count < 3:
        return 1, 2
    if style == "hidden":
        return 0, None
    return count, count


def _write_long(rows: Rows, path: Path, named: str, *, exact: bool) -> None:
    """One row for each number; zeros may be left out, as long as every table and level has a number."""
    kept = dict(rows)
    if named != "dense":
        kept = {key: ends for key, ends in rows.items() if ends != (0, 0)}
        shown = {(level, variable.rpartition("_")[0]) for level, _, variable in kept}
        places = {(level, code) for level, code, _ in kept}
        for (level, code, variable), ends in rows.items():
            table = variable.rpartition("_")[0]
            if (level, table) not in shown or (named == "listed" and (level, code) not in places):
                kept[level, code, variable] = ends
                shown.add((level, table))
                places.add((level, code))
    with path.open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["level", "geoid", "variable", *(["value"] if exact else ["lower", "upper"])])
        for (level, code, variable), (low, high) in sorted(kept.items()):
            out.writerow([level, code, variable, low, *([] if exact else ["" if high is None else high])])


def _write_wide(rng: random.Random, scenario: Read, rows: Rows, path: Path) -> None:
    """A column for each variable: of those that are left out nothing is told, though others of their table are."""
    variables = [variable for variable in sorted({key[2] for key in rows}) if rng.random() < 0.85]
    inner = [v for v in variables if any(key[0] == scenario.place and key[2] == v for key in rows)]
    variables = variables if inner else sorted({variable for _, _, variable in rows})
    places = sorted({(level, code) for level, code, variable in rows if variable in variables})
    with path.open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["level", "geoid", *variables])
        for level, code in places:
            cells = [rows.get((level, code, variable), ("", ""))[0] for variable in variables]
            out.writerow([level, code, *cells])
