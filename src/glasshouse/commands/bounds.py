"""What can every hidden number be? Its least and its most over all data that fit everything published, proved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from glasshouse.commands.attack import Asking, Attack, Attacked, Concluded, Opened, Prepared
from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import ScenarioName, Solving, SomeTables, TablesGiven
from glasshouse.commands.over_units import over_units
from glasshouse.commands.proving.provable import Provable
from glasshouse.commands.reconstruct import Units
from glasshouse.commands.words.bounds import Summary, summarise
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.assess.hidden import Rule
    from glasshouse.assess.protection import Judging
    from glasshouse.engine.job import Job
    from glasshouse.engine.runner import Tally
    from glasshouse.files.tables import TableFile
    from glasshouse.model.release import Release
    from glasshouse.model.schema import Predicate
    from glasshouse.scenarios.load import Scenario


class Bounded(Provable[Summary]):
    """What every hidden number can be, and on request which published numbers give it away."""

    shown = ("bounds", "reasons", "conflicts")

    bounds: pl.DataFrame  # a row for each number that was asked for
    conflicts: pl.DataFrame  # places whose numbers cannot all be true
    printed: pl.DataFrame  # what was published of the places that the page prints
    protection: pl.DataFrame  # which sums are sensitive, and whether they are protected (`contributions`)
    reasons: pl.DataFrame  # the fewest published numbers that give a number away (`why`)

    def page(self, *, public: bool = False) -> str:
        """The page as HTML: for the office, with its own tables as they are printed, or as the public may see it."""
        name = "bounds-public.html" if public else "bounds.html"
        if name not in self.files:
            raise InputError(f"{name} was not written: it would give a number away that is about too few")
        return self.ended.files.read(name).decode()


@command(
    example="glasshouse bounds tables.csv.gz --scenario sf1-person --out bounds\n\n"
    "How many girls under 5 are there, and what gives it away?  glasshouse bounds tables.csv.gz --scenario sf1-person "
    '--count "sex=female;age=0..4" --why 3 --out bounds\n\n'
    "Exit code 0: done. 1: a larger share of the hidden numbers than --most is given away, or a sensitive sum is not "
    "protected, or some numbers cannot all be true, or the clock stopped some units. "
    "2: bad input or usage. 130: interrupted; run the same command again to "
    "resume."
)
def bounds(
    tables: TablesGiven,
    *,
    scenario: ScenarioName,
    level: Annotated[
        str | None,
        Opt("Tell the numbers of this level only; those of all levels are used.", metavar="LEVEL"),
    ] = None,
    width: Annotated[
        int, Opt("A number is narrow if its least and its most are at most so far apart (1 or more).")
    ] = 1,
    percent: Annotated[
        float, Opt("... or if they are at most so many percent of its most apart (0 to 100).", metavar="PERCENT")
    ] = 0.0,
    numbers: Annotated[
        Literal["hidden", "all"],
        Opt("Which numbers: those that are not printed exactly, or all lines of the tables.", metavar="hidden|all"),
    ] = "hidden",
    count: Annotated[
        tuple[str, ...],
        Opt(
            "Also a count that no table need have: levels by their labels, or from one to another.",
            metavar='"ATTRIBUTE=LEVEL|LEVEL;ATTRIBUTE=FROM..TO"',
            repeated=True,
        ),
    ] = (),
    why: Annotated[
        int,
        Opt("Explain up to N numbers of a unit by the fewest published numbers, exact ones first.", least=0),
    ] = 0,
    most: Annotated[
        float | None,
        Opt("Exit code 1 if a larger share of the hidden numbers is given away.", metavar="SHARE", least=0, most=1),
    ] = None,
    contributions: Annotated[
        Path | None,
        Opt(
            "Tables of sums: the largest contributions of each number, or records with a contribution each (needs a "
            "rule).",
            metavar="FILE",
        ),
    ] = None,
    p_percent: Annotated[
        Fraction | None,
        Opt("A rule: no contributor may know the largest contribution to within p percent.", metavar="P"),
    ] = None,
    dominance: Annotated[
        tuple[str, ...],
        Opt("A rule: the n largest contributions may not be more than k percent.", metavar="N:K", repeated=True),
    ] = (),
    units: Units = (),
    read: SomeTables = SomeTables(),  # noqa: B008  # frozen
    run: Solving = Solving(),  # noqa: B008  # frozen
) -> Bounded:
    """What can every hidden, rounded or perturbed number be? Its least and its most, proved, and what gives it away."""
    from glasshouse.assess.hidden import Rule
    from glasshouse.scenarios.counting import read_count

    chosen = read.scenario(scenario, read.only)
    rule = Rule(width, percent)
    if level is not None:
        chosen.geography.known(level)
    asked: dict[str, Predicate] = {}
    for one in count:
        predicate = read_count(chosen.schema, one)
        if predicate in asked.values():
            raise InputError(f"--count {one}: this count is asked for twice; expected different ones")
        asked[one.strip()] = predicate
    judging = _judging(contributions, p_percent, dominance, chosen)
    attack = _Bounds(rule, numbers == "all", asked, why, most, level, judging)
    parameters: dict[str, object] = {
        "width": width, "percent": percent, "numbers": numbers, "count": list(asked), "why": why, "most": most,
    }  # fmt: skip
    if judging is not None:
        parameters |= {"p_percent": None if p_percent is None else str(p_percent), "dominance": list(dominance)}
    codes = tuple(sorted(set(units)))
    inputs = {"contributions": contributions}
    asking = Asking(tables, chosen, scenario, level, 1, read, run, parameters, inputs, codes)
    return Bounded(over_units(attack, asking))


def _judging(path: Path | None, p_percent: Fraction | None, dominance: tuple[str, ...], of: Scenario) -> Judging | None:
    """By what sums are judged, if they are; what is wrong with it is said before anything is done."""
    if path is None and p_percent is None and not dominance:
        return None
    if path is None:
        given = "--dominance" if p_percent is None else "--p-percent"
        raise InputError(f"{given} needs --contributions: a rule about contributors is judged by what each gives")
    if p_percent is None and not dominance:
        raise InputError("--contributions needs a rule: --p-percent P, or --dominance N:K, or both")
    from glasshouse.assess.protection import Judging
    from glasshouse.assess.sensitive import PPercent, SensitivityRule, read_dominance
    from glasshouse.files.contributions import read_contributions

    rules: list[SensitivityRule] = [] if p_percent is None else [PPercent(p_percent)]
    rules += [read_dominance(one) for one in dominance]
    depth = max(rule.number for rule in rules)
    return Judging(read_contributions(path, of, depth), tuple(rules))


@dataclass(frozen=True)
class _Bounds(Attack[Summary]):
    rule: Rule
    every: bool
    asked: dict[str, Predicate]
    why: int
    most: float | None
    level: str | None
    judging: Judging | None
    command = "bounds"
    kind = Summary
    puts_records = False

    def open(self, asking: Asking, file: TableFile, releases: Iterator[Release]) -> Opened:
        from glasshouse.commands.work.bounds import Bounding, open_levels

        run = asking.run
        job, items, codes = open_levels(
            file, releases, level=self.level, effort=run.effort, seconds=run.seconds or None
        )
        bounding = job.asking(
            Bounding, whole=file.seen.names_places(asking.scenario), asked=self.asked, every=self.every, rule=self.rule,
            told=self.level, why=self.why,
        )  # fmt: skip
        return Opened(bounding, items, codes)

    def prepare(self, asking: Asking, job: Job, items: Iterator[Any], near: Path) -> Prepared:
        from glasshouse.commands.work.bounds import bound, schemas

        kinds = schemas(self.why)
        levels = "level", asking.scenario.geography.levels
        return Prepared(job, items, bound, kinds, order=dict.fromkeys(kinds, levels))

    def notes(self, asking: Asking, job: Job, tally: Tally) -> list[str]:
        from glasshouse.commands.work.bounds import Bounding
        from glasshouse.model.geography import plural

        assert isinstance(job, Bounding)
        geography = asking.scenario.geography
        larger = [level for level in geography.levels if not geography.within_unit(level)]
        notes = [
            f"note: a {level} is larger than a {geography.unit}, so its numbers are bounded by its own tables alone; "
            "numbers of what lies in it could only make them narrower"
            for level in larger
            if tally.counts[f"places {level}"]
        ]
        if job.area_level and not job.whole:
            places = plural(geography.place)
            notes.append(
                f"warning: no table in the file counts every record of a {geography.place}, so there may be {places} "
                f"that it does not name, and nothing rests on there being none (--all-places FILE says which {places} "
                "there are)"
            )
        return notes

    def conclude(self, asking: Asking, job: Job, tally: Tally, folder: Path, said: Attacked) -> Concluded[Summary]:
        from glasshouse.commands.work.bounds import Bounding

        assert isinstance(job, Bounding)
        return summarise(folder, asking, job, tally, self.most, said, self.judging)
