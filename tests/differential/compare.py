"""Where do the commands and the model disagree? Every command on one case, each answer beside the model's.

A disagreement has a *kind*, so that many cases can be counted, and a text with the numbers. Nothing that is called
`exact` or `two-engines` may differ, bounds must hold, a crash is a disagreement, and what cannot be true must be
found or be called undecided. What was not decided is counted, not blamed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import glasshouse as gh
from tests.differential.bounds import compare_bounds
from tests.differential.case import Case, Findings, run
from tests.differential.model import Key, Program, Release
from tests.differential.scenario import descriptions

PROVED = ("exact", "two-engines")
ENDLESS = 10**11  # the tool says 10^12 or so where there is no limit
COMMANDS = ("tabulate", "check", "vary", "--scope", "--schema", "--tighten", "--from", "--tables", "verify", "bounds")


def examine(folder: Path, commands: Collection[str] = COMMANDS) -> Findings:
    """Run commands on a case, and compare; `vary` after `reconstruct`, where it starts, with some of its options."""
    found, case = Findings(), Case(folder)
    found.counts["cases"] += 1
    found.counts[f"style {case.told.get('style')}"] += 1
    if "tabulate" in commands:
        _tabulate(case, found)
    if "check" in commands:
        _check(case, found)
    if "vary" in commands and (histogram := _reconstruct(case, found)) is not None:
        _vary(case, found, histogram, commands)
    if "verify" in commands:
        _verify(case, found)
    if "bounds" in commands:
        compare_bounds(case, found)
    return found


# Each command beside the model


def _tabulate(case: Case, found: Findings) -> None:
    """Both count the same; otherwise nothing below means anything."""
    levels = [level for level in case.scenario.levels if level != case.scenario.place]
    told = run(
        found, "tabulate", gh.tabulate, case.folder / "records.csv", subtotals=True, levels=levels,
        scenario=str(case.folder / "scenario"),
    )  # fmt: skip
    if told is None:
        return
    again = gh.read_tables(told, scenario=str(case.folder / "scenario")).frame
    theirs = {
        (row["level"], row["geoid"], row["variable"]): row["lower"]
        for row in again.iter_rows(named=True)
        if row["lower"]
    }
    ours: Counter[tuple[str, str, str]] = Counter()
    for (place, kind), count in case.truth.items():
        for level in case.scenario.levels:
            for line in case.scenario.lines:
                ours[level, case.release.code(place, level), line.variable] += count * line.times[kind]
    for key in {*theirs, *(+ours)}:
        published = key in theirs or case.scenario.level_of[case.scenario.owner[key[2]]] == key[0]
        if published and theirs.get(key, 0) != ours[key]:
            found.blame("tabulate: count", f"{key}: {theirs.get(key, 0)}, the model {ours[key]}")


def _check(case: Case, found: Findings) -> None:
    told = run(found, "check", gh.check, case.tables, **case.options())
    if told is None:
        return
    agrees, undecided = told.summary.agrees, sum(told.summary.undecided.values())
    readings = [case.whole(open_=not known).fits for known in case.release.places_known]
    found.counts["release fits" if any(readings) else "release contradicts"] += 1
    if agrees and undecided:
        found.counts["check undecided"] += 1
    if all(readings) and not agrees:
        found.blame("check: contradiction of what fits", str(told.summary.findings[0]["statement"]))
    if not any(readings) and agrees and not undecided:
        documented = case.documented(open_=not case.release.places_known[0])
        levels = " (seen by more levels together than check looks at)" if documented else ""
        found.blame(f"check: agrees with what cannot be{levels}", f"changed: {case.told['changed']}")


def _refusals(case: Case, found: Findings, what: str, result: Any) -> None:
    """Is what is refused what cannot be?"""
    units: dict[str, list[str]] = {}
    for area in case.areas:
        units.setdefault(case.release.code(area, case.scenario.unit), []).append(area)
    for unit, areas in units.items():
        known = case.release.places_known
        fits = [all(case.joint(area, open_=not all_).fits for area in areas) for all_ in known]
        if unit in result.refused:
            reason = result.refused[unit].reason
            endless = any(case.alone(place).free for place in case.release.named if place.startswith(unit))
            if "within the limits" in reason:
                found.counts[f"{what} undecided"] += 1
            elif "no published number limits" in reason and endless and what.startswith("vary"):
                found.counts[f"{what} refused, no limit"] += 1  # convention 19
            elif all(fits):
                found.blame(f"{what}: refuses what fits", f"{unit}: {reason}")
        elif not any(fits):
            found.blame(f"{what}: accepts what cannot be", f"{unit}; changed: {case.told['changed']}")


def _histogram(case: Case, records: Any) -> Counter[Key]:
    found: Counter[Key] = Counter()
    for row in records.iter_rows(named=True):
        found[row[case.scenario.place], case.scenario.kind([str(row[name]) for name in case.scenario.attributes])] += 1
    return found


def _reconstruct(case: Case, found: Findings) -> Counter[Key] | None:
    """The records that `reconstruct` finds, when they fit; places of refused units have none."""
    told = run(found, "reconstruct", gh.reconstruct, case.tables, seed=case.seed, **case.options(**case.level))
    if told is None:
        return None
    _refusals(case, found, "reconstruct", told)
    try:
        histogram = _histogram(case, told.records)
    except ValueError:
        found.blame("reconstruct: impossible record", str(told.records.head(3).rows()))
        return None
    for area in case.areas:
        if case.release.code(area, case.scenario.unit) in told.refused:
            continue
        mine = {key: count for key, count in histogram.items() if key[0].startswith(area)}
        if not any(program.holds(mine) for program in case.jointly(area)):
            found.blame("reconstruct: does not fit", f"{area}: {mine}")
            return None
    return histogram


def _judge(
    row: Mapping[str, Any], distance: int | None, certain: int, people: int | None, what: str
) -> Iterable[tuple[str, str]]:
    """Of one place or area: what is said of the farthest and of the certain records, beside what is so."""
    if "population_upper" in row and row["population_upper"] < (ENDLESS if people is None else people):
        yield f"{what}: population_upper too small", f"{row['population_upper']}, the model {people}"
    low, high, proof = row["distance"], row["distance_upper"], row["proof"]
    far = "without limit" if distance is None else str(distance)
    said = f"{low}..{high} {proof}, the model {far}; start has {row['population']}"
    if distance is None:
        if proof in PROVED and (low is not None and low < ENDLESS):
            yield f"{what}: distance called {proof} though there is no limit", said
        elif high is not None and high < ENDLESS:
            yield f"{what}: distance_upper too small", said
    else:
        if low > distance:
            yield f"{what}: distance too large" + (" (proved)" if proof in PROVED else ""), said
        if high is not None and high < distance:
            yield f"{what}: distance_upper too small" + (" (proved)" if proof in PROVED else ""), said
        if proof in PROVED and low < distance and not (high is not None and high < distance):
            yield f"{what}: distance not {proof}", said
    low, high, proof = row["certain"], row["certain_upper"], row["certain_proof"]
    said = f"{low}..{high} {proof}, the model {certain}; start has {row['population']}"
    if low > certain:
        yield f"{what}: certain too large", said
    if high is not None and high < certain:
        yield f"{what}: certain_upper too small", said
    if proof in PROVED and low < certain and not (high is not None and high < certain):
        yield f"{what}: certain not {proof}", said
    for name in ("solvar", "solvar_upper"):
        if row[name] is not None and not 0 <= row[name] <= 1:
            yield f"{what}: {name} above 1", f"{row[name]}"
    if row["solvar"] is not None and row["solvar_upper"] is not None and row["solvar"] > row["solvar_upper"]:
        yield f"{what}: solvar above its upper end", f"{row['solvar']} {row['solvar_upper']}"


def _vary(case: Case, found: Findings, start: Counter[Key], options: Collection[str]) -> None:
    told = _varied(case, found, "vary", start)
    if told is None:
        return
    if case.around and "--scope" in options:
        _varied(case, found, "vary --scope area", start, jointly=True, scope=case.around)
    if case.around and "--schema" in options:
        finest = _varied(case, found, "vary --schema finest", start, finest=True, schema="finest")
        _law_coarser(case, found, told, finest)
    if case.around and "--tighten" in options:
        _tightened(case, found, start)
    if "--from" in options and case.truth_fits:
        _varied(case, found, "vary --from truth", case.truth, start=case.folder / "records.csv")
    if "--tables" in options:
        _law_withholding(case, found, told)


def _varied(
    case: Case, found: Findings, what: str, begin: Counter[Key], *, jointly: bool = False, finest: bool = False,
    **options: Any,
) -> Any:  # fmt: skip
    """Run vary once, and judge every place and area."""
    told = run(found, what, gh.vary, case.tables, seed=case.seed, **case.options(**case.level, **options))
    if told is None:
        return None
    _refusals(case, found, what, told)
    cells, whole = (case.release.compared(case.around, finest=finest, whole=whole) for whole in (False, True))
    listed = set()
    for row in told.places.iter_rows(named=True):
        place = row[case.scenario.place]
        listed.add(place)
        area = case.release.code(place, case.around) if case.around else place
        if row["population"] != sum(count for key, count in begin.items() if key[0] == place):
            found.blame(f"{what}: population", f"{place}: {row['population']}")
            continue
        readings = case.jointly(area) if jointly else [case.alone(place)]
        _judged(case, found, what, row, readings, begin, cells, [place])
        fitting = [program for program in readings if program.fits]
        if "certain_whole" in row and fitting:
            most = max(program.certain(whole, [place]) for program in fitting)
            if row["certain_whole"] > most:
                found.blame(f"{what}: certain_whole too large", f"{place}: {row['certain_whole']}, the model {most}")
        found.counts[f"{what}: places"] += 1
        found.counts[f"{what}: places proved"] += row["proof"] in PROVED
        found.counts[f"{what}: places with certain proved"] += row["certain_proof"] in PROVED
    refused = set(told.refused)
    missing = case.release.codes.get(case.scenario.place, set()) - listed
    missing = {place for place in missing if case.release.code(place, case.scenario.unit) not in refused}
    if missing:
        found.blame(f"{what}: places left out", ", ".join(sorted(missing)))
    if not case.around:
        return told
    for row in told.areas.iter_rows(named=True):
        area = row[case.around]
        inside = [place for place in sorted(case.release.named) if place.startswith(area)]
        readings = case.jointly(area)
        _judged(case, found, f"{what} (areas)", row, readings, begin, cells, inside)
    return told


def _judged(
    case: Case, found: Findings, what: str, row: Mapping[str, Any], readings: Sequence[Program], begin: Counter[Key],
    cells: Sequence[Hashable], places: Collection[str],
) -> None:  # fmt: skip
    """Judge by each reading of which places exist; that the file names all is accepted where it does."""
    blamed: list[list[tuple[str, str]]] = []
    for program in readings:
        named = [place for place in program.places if not place.endswith("*")]
        mine = {key: count for key, count in begin.items() if key[0] in named}
        if not program.holds(mine):
            blamed.append([(f"{what}: the start does not fit", "")])
            continue
        people = program.most([key for key in program.keys if key[0] in places])
        distance, certain = program.farthest(begin, cells, places), program.certain(cells, places)
        if case.tells_nothing:
            distance, certain = None if people is None else row["population"] + people, 0
        said = _judge(row, distance, certain, people, what)
        blamed.append([(kind, f"{','.join(places)}: {text}") for kind, text in said])
    if all(blamed):
        found.wrong += blamed[0]


def _law_coarser(case: Case, found: Findings, coarse: Any, fine: Any) -> None:
    """A distance in coarser cells never exceeds that in finer ones."""
    if coarse is None or fine is None:
        return
    place = case.scenario.place
    most = {row[place]: row["distance_upper"] for row in fine.places.iter_rows(named=True)}
    for row in coarse.places.iter_rows(named=True):
        if row[place] in most and most[row[place]] is not None and row["distance"] > most[row[place]]:
            said = f"{row[place]}: {row['distance']} in bins, at most {most[row[place]]} in finer cells"
            found.blame("law: a coarser distance exceeds a finer one", said)


def _tightened(case: Case, found: Findings, start: Counter[Key]) -> None:
    """With differences as limits: between equation 8 and the area as a whole."""
    told = run(
        found, "vary --tighten", gh.vary, case.tables, seed=case.seed, **case.options(**case.level, tighten=True)
    )
    if told is None:
        return
    for row in told.places.iter_rows(named=True):
        place = row[case.scenario.place]
        whole, alone = case.joint(case.release.code(place, case.around or ""), open_=True), case.alone(place)
        if not whole.holds({key: count for key, count in start.items() if key[0] in whole.places}):
            continue
        if case.tells_nothing:
            continue
        ends = [(one.farthest(start, case.cells, [place]), one.certain(case.cells, [place])) for one in (whole, alone)]
        found.wrong += [(f"vary --tighten: {kind}", f"{place}: {text}") for kind, text in _between(row, *ends)]


def _between(
    row: Mapping[str, Any], whole: tuple[int | None, int], alone: tuple[int | None, int]
) -> Iterable[tuple[str, str]]:
    """Is what is said of a place between what is so of it in its area, and alone?"""
    (least, most), (known, sure) = (whole[0], alone[0]), (whole[1], alone[1])
    said = f"{row['distance']}..{row['distance_upper']}, the model between {least} and {most}"
    if row["distance_upper"] is not None and row["distance_upper"] < (ENDLESS if least is None else least):
        yield "distance_upper too small", said
    if most is not None and row["distance"] > most:
        yield "distance too large", said
    said = f"{row['certain']}..{row['certain_upper']}, the model between {sure} and {known}"
    if row["certain"] > known:
        yield "certain too large", said
    if row["certain_upper"] is not None and row["certain_upper"] < sure:
        yield "certain_upper too small", said


def _law_withholding(case: Case, found: Findings, told: Any) -> None:
    """Withholding a table never makes the same cells more certain."""
    tables = sorted(case.release.tables(case.scenario.place, case.around))
    if len(tables) < 2:
        return
    withheld = tables[case.seed % len(tables)]
    kept = [table for table in tables if table != withheld]
    fewer = Release(case.scenario, case.tables, kept)
    around = case.around if case.level else next(iter(fewer.levels_around), None)
    if around != case.around or not {around or case.scenario.place, case.scenario.place} <= set(fewer.variables):
        return
    less = run(found, "vary with a table withheld", gh.vary, case.tables, seed=case.seed,
               **{**case.options(**case.level), "only": kept})  # fmt: skip
    if less is None:
        return
    place = case.scenario.place
    more = {row[place]: row for row in told.places.iter_rows(named=True)}
    same = alike(fewer.compared(case.around)) == alike(case.cells)
    for row in less.places.iter_rows(named=True):
        other = more.get(row[place])
        if other and same and other["certain_upper"] is not None and row["certain"] > other["certain_upper"]:
            said = f"{row[place]}: {row['certain']} without {withheld}, at most {other['certain_upper']} with it"
            found.blame("law: withholding a table makes the same cells more certain", said)
        proved = other is not None and "certain_whole" in other and other["certain_proof"] in PROVED
        if other and proved and row["certain_whole"] > other["certain_whole"]:
            said = f"{row[place]}: {row['certain_whole']} without {withheld}, {other['certain_whole']} with it"
            found.blame("law: withholding a table makes whole records more certain", said)


def _verify(case: Case, found: Findings) -> None:
    """Every claim that is listed is so, and those of one solution that are so are listed."""
    options: dict[str, Any] = {"columns": 1}
    if case.seed % 3 == 1 and all(case.own(place).holds({k: c for k, c in case.truth.items() if k[0] == place})
                                  for place in case.release.named):  # fmt: skip
        options |= {"truth": case.folder / "records.csv", "prior_area": case.folder / "records.csv"}
    if case.seed % 3 == 2:
        options |= {"why": 1, "absent": 1, "cannot": [0], "leaks": "table"}
    told = run(found, "verify", gh.verify, case.tables, seed=case.seed, **case.options(**options))
    if told is None:
        return
    for unit in {case.release.code(place, case.scenario.unit) for place in case.release.codes[case.scenario.place]}:
        mine = [place for place in case.release.codes[case.scenario.place] if place.startswith(unit)]
        fits = all(case.own(place).fits for place in mine)
        if unit in told.refused and fits and "within the limits" not in told.refused[unit].reason:
            found.blame("verify: refuses what fits", f"{unit}: {told.refused[unit].reason}")
        elif unit not in told.refused and not fits:
            found.blame("verify: accepts what cannot be", unit)
    listed: dict[str, dict[frozenset[int], tuple[Any, ...]]] = {}
    for row in told.claims.iter_rows(named=True):
        place, program = row[case.scenario.place], case.own(row[case.scenario.place])
        if not program.fits:
            continue
        sets = {}
        for name, value in zip(row["columns"], row["values"], strict=True):
            labels = case.scenario.attributes[name]
            sets[name] = frozenset(labels.index(code) for code in value.split(";"))
        kinds = case.scenario.matching(sets)
        listed.setdefault(place, {})[kinds] = (row["m"], row["low"], row["high"])
        least, most = _range(case, place, kinds)
        said = (
            f"{place} {row['description']} {row['m']} {row['low']}..{row['high']} {row['proof']}, model {least}..{most}"
        )
        if row["m"] is not None and not (row["m"] == least == most):
            found.blame("verify: claim is not so", said)
        elif (
            row["low"] > least or (most is None and row["high"] < ENDLESS) or (most is not None and row["high"] < most)
        ):
            found.blame("verify: bounds of a claim", said)
        found.counts["verify: claims"] += 1
    _complete(case, found, told, listed)


def _range(case: Case, place: str, kinds: frozenset[int]) -> tuple[int, int | None]:
    """The least and the most of a count, asked once."""
    program = case.own(place)
    keys = frozenset((place, kind) for kind in kinds)
    known = program.__dict__.setdefault("ranges", {})
    live = keys & {*program.x, *program.free}
    if live not in known:
        known[live] = program.least(live), program.most(live)
    return known[live]  # type: ignore[no-any-return]


def _complete(case: Case, found: Findings, told: Any, listed: Mapping[str, Mapping[frozenset[int], Any]]) -> None:
    """What is so of the records of a solution is listed; of records as the claims' columns name them."""
    for row in told.places.iter_rows(named=True):
        place = row[case.scenario.place]
        program = case.own(place)
        if not program.fits or row["undecided"]:
            continue
        mine = listed.get(place, {})
        kinds = sorted({kind for _, kind in program.met[0]})[:3]
        for kind in kinds:
            for sets in descriptions(case.scenario, kind, case.release.variables[case.scenario.place]):
                matching = case.scenario.matching(sets)
                counts = {sum(x.get((place, one), 0) for one in matching) for x in program.met}
                if len(counts) > 1 or matching in mine:
                    continue
                least, most = _range(case, place, matching)
                if least == most:
                    live = {one for one in matching if (place, one) in program.x}
                    if not any(live == {one for one in other if (place, one) in program.x} for other in mine):
                        found.blame("verify: a claim is missing", f"{place}: {sets} counts {least}")


def alike(cells: Sequence[Hashable]) -> list[int]:
    """The first kind of the cell of each kind: the same for cells that divide kinds alike."""
    return [cells.index(cell) for cell in cells]
