"""What comes of a run of `glasshouse detect`? How many places, how sure, how often right; pictures and a few lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from glasshouse.commands.attack import Attacked, Concluded, write_summary
from glasshouse.commands.work.questions import AboutOccupancy
from glasshouse.model.geography import plural

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.runner import Tally
    from glasshouse.files.properties import PropertyFile
    from glasshouse.scenarios.load import Scenario

RATES, BY_SIZE, SOLVAR, MATCHED = "rates.parquet", "certain-by-size.svg", "solvar.svg", "matched.svg"
OVER_ALL, BY_SHARE, NARROW = "rates-over-all.parquet", "certain-by-share.svg", "solvar-by-share.svg"
UNIQUE, CURVES, MATCH_RATE, VIOLATIONS = (
    "matched-unique.svg",
    "precision-recall.svg",
    "match-rate.svg",
    "violations.svg",
)
NOT_IN_TABLES = "not in the tables"


@dataclass(frozen=True)
class Nearest:
    """Of places where nothing fits: how far the closest data sets are."""

    blocks: int
    with_violations: int
    mean_squared_error: float


@dataclass(frozen=True)
class Different:
    """How different other data sets can be, by one measure."""

    blocks: int
    mean: float
    one_solution: int
    all_can_differ: int


@dataclass(frozen=True)
class Agreed:
    """Households of places where all data sets agree on a measure's attributes, or nearly; those alone with them."""

    over: str
    band: str
    blocks: int
    households: int
    subsidised: int
    violations: int
    unique: int
    unique_subsidised: int
    unique_violations: int


@dataclass(frozen=True)
class UsualReason:
    """The published numbers that most often leave no other possibility."""

    numbers: tuple[str, ...]
    blocks: int


@dataclass(frozen=True)
class Rated:
    """A rate with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PlacesRight:
    """How often places are found rightly, beside choosing them at random."""

    blocks: int
    with_violations: int
    putative: int
    confirmed: int
    contradictions: int
    decided: int
    precision: Rated | None
    recall: Rated | None
    precision_by_chance: float | None
    recall_by_chance: float | None


@dataclass(frozen=True)
class Found:
    """How many households an attacker points at, and how often that is right."""

    putative: int
    confirmed: int
    precision: float | None
    low: float
    high: float
    recall: float | None
    match_rate: float


@dataclass(frozen=True)
class HouseholdsRight:
    """The same of one attacker with one key: with all kinds that are ranked, and with the `first` of each place."""

    attacker: str
    blocks: str
    key: str
    households: str
    k: int
    population: int
    violations: int
    putative: int
    confirmed: int
    precision: float | None
    low: float
    high: float
    recall: float | None
    match_rate: float
    baseline: float | None
    first: Found | None


@dataclass(frozen=True)
class Summary(Attacked):
    """What two agencies' numbers say together, in sums over places."""

    model: str
    properties: int
    properties_left_out: Mapping[str, int]
    blocks: int
    blocks_left_out: Mapping[str, int]
    households: int
    subsidised: int
    certain: int
    open: int
    contradiction: int
    undecided: int
    violations_at_least: int
    nearest: Nearest | None = None
    solvar: Mapping[str, Different] | None = None
    groups: tuple[Agreed, ...] | None = None  # households in places where little can be otherwise
    usual_reason: UsualReason | None = None
    blocks_right: PlacesRight | None = None
    households_right: tuple[HouseholdsRight, ...] | None = None
    untrue: int = 0  # places whose numbers need a violation and the true households have none
    not_in_sample: int = 0
    no_sample: int = 0


RUN = ("untrue", "not_in_sample", "no_sample")  # what the file of the summary leaves out


def summarise(
    folder: Path, scenario: Scenario, asked: AboutOccupancy, file: PropertyFile, tally: Tally, said: Attacked
) -> Concluded[Summary]:
    """The summary for scripts, in words, and the further files that were written."""
    import polars as pl

    from glasshouse.assess.occupancy import settled_groups
    from glasshouse.engine.plain import typed
    from glasshouse.report.sections.occupancy import by_households, by_share, narrow_by_share, variability

    place = scenario.geography.place
    places = pl.read_parquet(folder / "places.parquet")
    left = _left_out(folder, places, file, place)
    summary = _summed(places, left, file, asked, tally, said)
    files, lines = [], _lines(summary, place)
    if places.height:
        by_households(places).save(folder / BY_SIZE)
        by_share(places).save(folder / BY_SHARE)
        files += [BY_SIZE, BY_SHARE]
        if asked.solvar and places["solvar"].drop_nulls().len():
            variability(places).save(folder / SOLVAR)
            narrow_by_share(places).save(folder / NARROW)
            files += [SOLVAR, NARROW]
            solvar = _solvar(places)
            summary = replace(summary, solvar=solvar)
            lines += _solvar_lines(solvar, place)
            if asked.groups:
                measures = [name for name in solvar if f"{name}_unique" in places.columns]
                groups = tuple(typed(Agreed, asdict(one)) for one in settled_groups(places, measures))
                summary = replace(summary, groups=groups)
                lines += _group_lines(groups, place)
    if asked.why and summary.certain:
        reasons = pl.read_parquet(folder / "reasons.parquet")
        usual = _usual(reasons)
        summary = replace(summary, usual_reason=usual)
        often = f"{usual.blocks:,} of {reasons.height:,} {plural(place)}"
        lines.append(f"    the usual reason: {', '.join(usual.numbers)} ({often})")
    if asked.truth and places.height:
        right, matches, more = _compared(folder, places)
        summary = replace(summary, blocks_right=right, households_right=matches)
        files += more
        lines += ["", *_right(right, matches, place)]
    return Concluded(summary, lines, [write_summary(folder, summary, but=RUN), *files])


def _usual(reasons: pl.DataFrame) -> UsualReason:
    counted = reasons["numbers"].list.join(", ").value_counts(sort=True)
    numbers, often = counted.sort("count", "numbers", descending=[True, False]).select("numbers", "count").row(0)
    return UsualReason(tuple(numbers.split(", ")), int(often))


def _compared(folder: Path, places: pl.DataFrame) -> tuple[PlacesRight, tuple[HouseholdsRight, ...], list[str]]:
    """How often the attacker is right about places and households, and the files with that."""
    import polars as pl

    from glasshouse.assess.occupancy import LIKELY, of_households, of_places, told
    from glasshouse.engine.plain import typed
    from glasshouse.files.output import row_writer
    from glasshouse.report.sections.occupancy import match_rates, matched, precision_recall, violations

    matches = pl.scan_parquet(folder / "matches.parquet")
    rates, over_all = of_households(matches), of_households(matches, over_all=True)
    for name, frame in ((RATES, rates), (OVER_ALL, over_all)):
        with row_writer(folder / name) as writer:
            writer.write(frame)
    files = [RATES, OVER_ALL]
    if rates.filter(pl.col("attacker") == LIKELY).height:
        matched(rates).save(folder / MATCHED)
        matched(rates, unique=True).save(folder / UNIQUE)
        precision_recall(over_all, unique=True).save(folder / CURVES)
        match_rates(rates).save(folder / MATCH_RATE)
        violations(places).save(folder / VIOLATIONS)
        files += [MATCHED, UNIQUE, CURVES, MATCH_RATE, VIOLATIONS]
    households = tuple(typed(HouseholdsRight, row) for row in told(rates))
    return typed(PlacesRight, asdict(of_places(places))), households, files


def _left_out(folder: Path, places: pl.DataFrame, file: PropertyFile, place: str) -> pl.DataFrame:
    """The blocks left out, now also those with a property of which the tables say nothing."""
    import polars as pl

    from glasshouse.files.output import row_writer

    path = folder / "left-out.parquet"
    left = pl.read_parquet(path).filter(pl.col("reason") != NOT_IN_TABLES)
    missing = sorted({*file.frame["block"].to_list()} - {*places[place].to_list(), *left[place].to_list()})
    if missing:
        more = pl.DataFrame({place: missing, "reason": [NOT_IN_TABLES] * len(missing)}, schema=left.schema)
        left = pl.concat([left, more]).sort(place)
        with row_writer(path) as writer:
            writer.write(left)
    return left


def _summed(
    places: pl.DataFrame, left: pl.DataFrame, file: PropertyFile, asked: AboutOccupancy, tally: Tally, said: Attacked
) -> Summary:
    import polars as pl

    answers = dict(places.group_by("answer").len().iter_rows())
    certain = places.filter(pl.col("answer") == "certain")
    return Summary(
        **asdict(said),
        model=asked.model,
        properties=file.properties,
        properties_left_out=dict(file.left_out),
        blocks=places.height,
        blocks_left_out=dict(left.group_by("reason").len().sort("reason").iter_rows()),
        households=int(places["households"].sum()),
        subsidised=int(places["subsidised"].sum()),
        certain=answers.get("certain", 0),
        open=answers.get("open", 0),
        contradiction=answers.get("contradiction", 0),
        undecided=int((places["proof"] == "undecided").sum()),
        violations_at_least=int(certain["violations_low"].sum()),
        nearest=_nearest(places) if asked.nearest else None,
        untrue=tally.counts["untrue"],
        not_in_sample=tally.counts["not_in_sample"],
        no_sample=tally.counts["no_sample"],
    )


def _nearest(places: pl.DataFrame) -> Nearest:
    found = places.drop_nulls("nearest_violations")
    error = float(found["nearest_error"].mean() or 0)  # type: ignore[arg-type]  # numbers
    return Nearest(found.height, int((found["nearest_violations"] > 0).sum()), error)


def _lines(summary: Summary, place: str) -> list[str]:
    """The result in a few lines."""
    number, blocks = summary.blocks, plural(place)
    lines = [f"{number:,} {blocks} with {summary.subsidised:,} subsidised of {summary.households:,} households; "
             f"by model {summary.model}, both agencies' numbers can all be true"]  # fmt: skip
    for count, what in (
        (summary.certain, "only if a household exceeds the limit"),
        (summary.open, "also if no household does"),
        (summary.contradiction, "in no case (a contradiction, no detection)"),
    ):
        lines.append(_line(what, count, number))
    if summary.undecided:
        lines.append(_line("of these not decided within the limits", summary.undecided, number))
    lines.append(_line("households above the limit there, at least", summary.violations_at_least))
    if (near := summary.nearest) and near.blocks:
        what = f"closest data sets where nothing fits ({near.with_violations:,} with violations)"
        lines.append(_line(what, near.blocks))
    return lines + [_line(f"{blocks} left out: {why}", left) for why, left in summary.blocks_left_out.items()]


def _line(what: str, count: int, of: int = 0) -> str:
    share = f" ({count / of:.1%})" if of else ""
    return f"    {what:<44}{count:>8,}{share}"


def _solvar(places: pl.DataFrame) -> dict[str, Different]:
    from glasshouse.assess.occupancy import measures_of
    from glasshouse.assess.one_solution import one_solution

    found = {}
    for name in measures_of(places):
        known = places.drop_nulls(name)
        zero = known.filter(one_solution(f"{name}_upper", f"{name}_proof")).height
        mean = float(known[name].mean() or 0)  # type: ignore[arg-type]  # a column of numbers
        found[name] = Different(known.height, mean, zero, int((known[name] == 1).sum()))
    return found


def _solvar_lines(solvar: Mapping[str, Different], place: str) -> list[str]:
    head = "how different other data sets can be         mean  one solution  all differ"
    lines = ["", f"    {head}  of {plural(place)}"]
    for name, one in solvar.items():
        lines.append(f"    {name:<42}{one.mean:>7.1%}{one.one_solution:>14,}{one.all_can_differ:>12,}"
                     f"{one.blocks:>11,}")  # fmt: skip
    return lines


def _group_lines(groups: tuple[Agreed, ...], place: str) -> list[str]:
    """Households where little can be otherwise."""
    head = f"{plural(place):>8}{'households':>12}{'alone':>8}{'subsidised':>12}{'above limit':>13}"
    lines = ["", f"    {'households of places where data sets agree':<56}{head}"]
    for one in groups:
        numbers = f"{one.blocks:>8,}{one.households:>12,}{one.unique:>8,}{one.unique_subsidised:>12,}"
        lines.append(f"    {one.over + ', ' + one.band:<56}{numbers}{one.unique_violations:>13,}")
    return lines


def _right(right: PlacesRight, matches: tuple[HouseholdsRight, ...], place: str) -> list[str]:
    """How often the attacker is right, beside chance."""
    from glasshouse.assess.occupancy import EVERYBODY

    lines = [
        f"    {plural(place) + ' with violations':<44}{right.with_violations:>8,} of {right.blocks:,}",
        f"    {place + ' precision':<16}{_rate(right.precision)}; by chance {_percent(right.precision_by_chance)}",
        f"    {place + ' recall':<16}{_rate(right.recall)}; by chance {_percent(right.recall_by_chance)}",
    ]
    head = ("k = 1", "recall", "k = all", "recall", "chance")
    lines += ["", f"    {'households found through a key: precision with':<70}" + "".join(f"{w:>9}" for w in head)]
    return [*lines, *(_told(row, place) for row in matches if row.households == EVERYBODY)]


def _told(row: HouseholdsRight, place: str) -> str:
    """Precision and recall with the first kind of each place, and with all that were ranked."""
    from glasshouse.assess.occupancy import LIKELY

    where = "" if row.attacker == LIKELY else f", {row.blocks} {plural(place)}"
    first = (row.first.precision, row.first.recall) if row.first else (None, None)
    shares = [*first, row.precision, row.recall, row.baseline]
    return f"    {row.key + ' (' + row.attacker + where + ')':<70}" + "".join(f"{_percent(s):>9}" for s in shares)


def _rate(rate: Rated | None) -> str:
    return "none" if rate is None else f"{rate.value:.1%} ({rate.low:.1%} to {rate.high:.1%})"


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"
