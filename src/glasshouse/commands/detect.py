"""Where can two agencies' numbers all be true only if a household exceeds an occupancy limit?"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.attack import Asking, Attack, Attacked, Concluded, Prepared
from glasshouse.commands.declaration import Opt, command, declaration
from glasshouse.commands.options import Reading, Seed, Solving, TablesGiven
from glasshouse.commands.over_units import over_units
from glasshouse.commands.proving.provable import Provable
from glasshouse.commands.words.detect import Summary, summarise
from glasshouse.commands.work.questions import AboutOccupancy
from glasshouse.engine.plain import plain
from glasshouse.errors import InputError
from glasshouse.model.geography import Geography, plural

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.job import Item, Job
    from glasshouse.engine.runner import Tally
    from glasshouse.files.properties import PropertyFile
    from glasshouse.scenarios.occupancy import Occupancy


class Detected(Provable[Summary]):
    """What is certain of places with subsidised households; and what was asked besides."""

    shown = ("places", "reasons", "rates")

    places: pl.DataFrame
    left_out: pl.DataFrame  # places of which nothing is asked, and why
    reasons: pl.DataFrame  # for every certain place, published numbers that leave no other possibility (`why`)
    solutions: pl.DataFrame  # the most likely data sets (`solutions`)
    # Kinds of household that break the rule in the likely data sets, the most frequent first (`solutions`).
    ranking: pl.DataFrame
    matches: pl.DataFrame  # who of the true households each attacker would point at (`truth`)
    rates: pl.DataFrame  # how often attackers are right (`truth`)


@command(
    example="glasshouse detect tables.parquet --properties housing.parquet --why --out found\n\n"
    "With the truth of a synthetic county, as the paper does:  glasshouse detect tables.parquet --properties "
    "housing.parquet --sample sample.parquet --solutions 100 --truth households.parquet --out found\n\n"
    "What is certain is a result: exit code 0. 1: some units were refused or stopped by the clock. 2: bad input or "
    "usage. 130: interrupted; run the same command again to resume."
)
def detect(
    tables: TablesGiven,
    *,
    properties: Annotated[Path, Opt("Subsidised properties: HUD's Picture, project level, with blocks.")],
    scenario: Annotated[
        str | None,
        Opt(
            "A built-in scenario (see glasshouse scenarios) or the path of a folder; default: the built-in one that "
            "has a rule of occupancy.",
            short="-s",
        ),
    ] = None,
    model: Annotated[
        str,
        Opt(
            "How the numbers are read: as precisely as they are published, in every way that they may be meant, or as "
            "appendices D and E of the paper are written. A proof is only as right as its model.",
            metavar="sharp|paper",
        ),
    ] = "sharp",
    property_places: Annotated[
        Path | None,
        Opt("The block of each property: columns code and block.", flag="--property-blocks", metavar="FILE"),
    ] = None,
    programs: Annotated[
        tuple[str, ...],
        Opt("Only properties of this program (program_label); may be repeated.", flag="--program", repeated=True),
    ] = (),
    why: Annotated[bool, Opt("For every certain place, a smallest set of published numbers that imply it.")] = False,
    sample: Annotated[Path | None, Opt("A public-use sample: which households are likely.", metavar="PERSONS")] = None,
    solutions: Annotated[
        int, Opt("The T most likely data sets of certain places (needs --sample).", short="-t", least=0, most=10_000)
    ] = 0,
    ties: Annotated[
        Literal["any", "fewest"],
        Opt(
            "Which of equally likely data sets come first: any, by the seed, or those with the fewest violations.",
            metavar="any|fewest",
        ),
    ] = "any",
    everywhere: Annotated[bool, Opt("The same for every place that fits.", flag="--every-block")] = False,
    solvar: Annotated[bool, Opt("How different other data sets can be (needs --sample).")] = False,
    solvar_among: Annotated[
        Literal["all", "sample"],
        Opt(
            "Which other data sets --solvar looks at: all that fit, or only those of kinds that the sample has.",
            metavar="all|sample",
        ),
    ] = "all",
    groups: Annotated[
        bool,
        Opt(
            "How many households are alone with their attributes in their block, and above the limit, where all or "
            "nearly all data sets agree (needs --solvar)."
        ),
    ] = False,
    nearest: Annotated[bool, Opt("Where nothing fits (noise): the closest data set, by squared error.")] = False,
    truth: Annotated[
        Path | None, Opt("The true households: how often is the attacker right?", metavar="HOUSEHOLDS")
    ] = None,
    i_am_the_data_holder: Annotated[
        bool, Opt("Allow results about single households of real places. Without it, only synthetic ones.")
    ] = False,
    seed: Seed = 1,
    read: Reading = Reading(),  # noqa: B008  # frozen
    run: Solving = Solving(),  # noqa: B008  # frozen
) -> Detected:
    """Where can two agencies' numbers all be true only if a household exceeds an occupancy limit?"""
    named = scenario or _usual_scenario()
    chosen = read.scenario(named)
    if chosen.occupancy is None:
        from glasshouse.scenarios.load import scenarios_with

        known = ", ".join(scenarios_with("occupancy"))
        raise InputError(f"scenario {chosen.name} says nothing of a second agency; known: {known}")
    chosen.occupancy.model(model)
    if (solutions or solvar) and sample is None:
        raise InputError(f"--{'solutions' if solutions else 'solvar'} needs --sample, which says what is likely")
    if solvar_among != "all" and not solvar:
        raise InputError("--solvar-among says which other data sets --solvar looks at; give it too")
    if groups and not solvar:
        raise InputError("--groups says of whom data sets agree; it needs --solvar, which says how far they do")
    if everywhere and not solutions:
        flag = declaration(detect).by_name["everywhere"].flag
        raise InputError(f"{flag} says where --solutions are listed; give it too")
    asked = AboutOccupancy(
        model, why, solutions, everywhere, solvar, nearest, ties, truth is not None, solvar_among, groups
    )
    attack = _Detect(
        asked, chosen.geography, chosen.occupancy, properties, property_places, programs, sample, truth,
        i_am_the_data_holder,
    )  # fmt: skip
    parameters = {**plain(asked), "programs": list(programs), "holder": i_am_the_data_holder}
    inputs = {
        "properties": properties, f"property {plural(chosen.geography.place)}": property_places, "sample": sample,
        "truth": truth,
    }  # fmt: skip
    asking = Asking(tables, chosen, named, chosen.geography.place, seed, read, run, parameters, inputs)
    return Detected(over_units(attack, asking))


def _usual_scenario() -> str:
    """The built-in scenario that has a rule of occupancy."""
    from glasshouse.scenarios.load import scenarios_with

    known = scenarios_with("occupancy")
    if len(known) != 1:
        raise InputError(f"--scenario is missing; those with a rule of occupancy: {', '.join(known)}")
    return known[0]


@dataclass(frozen=True)
class _Detect(Attack[Summary]):
    asked: AboutOccupancy
    geography: Geography
    occupancy: Occupancy
    properties: Path
    property_places: Path | None
    programs: tuple[str, ...]
    sample: Path | None
    truth: Path | None
    holder: bool
    command = "detect"
    kind = Summary

    @cached_property
    def file(self) -> PropertyFile:
        from glasshouse.files.properties import open_properties

        return open_properties(self.properties, self.geography, self.occupancy, self.property_places, self.programs)

    def prepare(self, asking: Asking, job: Job, items: Iterator[Item], near: Path) -> Prepared:
        from glasshouse.commands.work.detect import Enquiry, examine, properties_by_block, schemas, with_truth
        from glasshouse.commands.work.detect_truth import sampled_rankings, true_households
        from glasshouse.files.sample import read_sample
        from glasshouse.files.units import by_unit

        scenario = asking.scenario
        self._refuse_untold(asking, job)
        known = properties_by_block(self.file)
        if self.asked.solutions or self.asked.truth or self.asked.groups:
            self._refuse_real(known)
        samples = read_sample(self.sample) if self.sample else {}
        self._refuse_no_sample(known, samples)
        rankings, truth = {}, None
        if self.truth is not None:
            rankings = sampled_rankings(true_households(self.truth, scenario), known, scenario, asking.seed)
            truth = by_unit(true_households(self.truth, scenario), self.geography, near)
        asked = job.asking(Enquiry, asked=self.asked, properties=known, samples=samples, rankings=rankings)
        return Prepared(asked, with_truth(items, scenario, truth), examine, schemas(scenario, self.asked))

    def _refuse_untold(self, asking: Asking, job: Job) -> None:
        """Without the number of households, or without a property that can be used, there is nothing to ask."""
        households = self.occupancy.households
        if households not in job.published.variables:
            raise InputError(
                f"{asking.tables.name}: no number {households} (households) at level {self.geography.place}; "
                f"expected tables of scenario {asking.scenario.name} (glasshouse tabulate makes them)"
            )
        if self.file.frame.is_empty():
            left = ", ".join(f"{number:,} {reason}" for reason, number in self.file.left_out.items())
            raise InputError(f"{self.properties.name}: no property can be used ({left or 'there is none'})")

    def _refuse_real(self, known: Collection[str]) -> None:
        """Households of real places are nobody's business but the data holder's: the paper's own safeguard."""
        real = sum(not place.startswith(self.occupancy.unreal) for place in known)
        if real and not self.holder:
            what = plural(self.geography.place)
            raise InputError(
                f"{self.properties.name}: {real:,} {what} are of real places; --solutions, --groups and --truth tell "
                f"of single households there. If the data are yours to protect, say so with --i-am-the-data-holder; "
                f"what is certain of {what} is told without it"
            )

    def _refuse_no_sample(self, known: Collection[str], samples: Collection[str]) -> None:
        """A sample that has nobody of any area asked about answers nothing."""
        level = self.geography.coarsest
        areas = {self.geography.code(place, level) for place in known}
        if self.sample and samples and not areas & set(samples):
            raise InputError(
                f"{self.sample.name}: a sample of {level} {', '.join(sorted(samples))}; the properties are in "
                f"{', '.join(sorted(areas))}; give the sample of these {plural(level)}"
            )

    def notes(self, asking: Asking, job: Job, tally: Tally) -> list[str]:
        model, counts, place = self.occupancy.model(self.asked.model), tally.counts, self.geography.place
        notes = [f"note: model {model.name}: {model.title}"]
        if protected := _protected(asking.tables) or _protected(self.properties):
            notes.append(
                f"warning: {protected[0]} comes from glasshouse {protected[1]}: what is certain here is certain of "
                "these numbers, not of people"
            )
        if not counts["blocks"] and not counts["left_out"]:
            notes.append(f"warning: no {place} of the property file is in the tables; are they of the same places?")
        if self.file.left_out:
            said = ", ".join(f"{number:,} {reason}" for reason, number in self.file.left_out.items())
            notes.append(f"note: properties left out: {said}")
        if self.file.absent:
            notes.append(f"warning: the property file has no {', '.join(self.file.absent)}: taken as unknown")
        if self.file.spelled:
            said = ", ".join(f"{other} as {name}" for name, other in self.file.spelled.items())
            notes.append(
                f"warning: read {said}: householders whom another column counts too make these shares too large"
            )
        if self.occupancy.units in self.file.absent:
            notes.append("warning: without the number of units, percentages of bedrooms say nothing of households")
        if counts["untrue"]:
            notes.append(
                f"warning: in {self._told(counts['untrue'])} the numbers need a violation and there is none in the "
                "true households (--truth): the numbers are not exactly theirs (protected, or of another time), "
                "or the model is not right"
            )
        if counts["no_sample"]:
            notes.append(
                f"warning: the sample has nobody of the {self.geography.coarsest} of "
                f"{self._told(counts['no_sample'])}; they have no likely data sets"
            )
        if counts["not_in_sample"]:
            notes.append(
                f"warning: no data set of {self._told(counts['not_in_sample'])} is made of households of the sample "
                "alone; they have no likely data sets"
            )
        return notes

    def _told(self, places: int) -> str:
        return self.geography.told({self.geography.place: places})

    def conclude(self, asking: Asking, job: Job, tally: Tally, folder: Path, said: Attacked) -> Concluded[Summary]:
        return summarise(folder, asking.scenario, self.asked, self.file, tally, said)


def _protected(path: Path) -> tuple[str, str] | None:
    """The name of a file that a protection has made, as its manifest says, and which."""
    from glasshouse.engine.manifest import manifest_path, said_by

    told = said_by(manifest_path(path))
    made_by = told["command"] if told else ""
    return (path.name, made_by) if made_by.startswith("protect") else None
