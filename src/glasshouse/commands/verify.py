"""What must be true of the records? Every claim that holds in all data sets that fit the tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.attack import Asking, Attack, Attacked, Concluded, Prepared
from glasshouse.commands.declaration import Opt, command, declaration
from glasshouse.commands.options import ScenarioName, Seed, Solving, SomeTables, TablesGiven, chosen_scenario
from glasshouse.commands.over_units import over_units
from glasshouse.commands.proving.provable import Provable
from glasshouse.commands.words.verify import Summary, summarise
from glasshouse.commands.work.questions import ZEROS, AboutClaims
from glasshouse.engine.plain import plain
from glasshouse.errors import InputError
from glasshouse.model.geography import plural
from glasshouse.scenarios.toml import is_there

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.job import Item, Job
    from glasshouse.engine.runner import Tally


class Verified(Provable[Summary]):
    """What is certain of the records, place by place; and what was asked besides."""

    shown = ("claims", "places", "counts")

    claims: pl.DataFrame  # descriptions that exactly m records fit, for certain; undecided ones have low < high
    places: pl.DataFrame
    counts: pl.DataFrame  # how many records the claims of each number of columns are about
    apart: pl.DataFrame  # what is certain of records that are reported apart (homes where nobody lives)
    reasons: pl.DataFrame  # the fewest published numbers that make a claim certain (`why`)
    leaks: pl.DataFrame  # claims that depend on each table (`leaks`)
    absent: pl.DataFrame  # the coarsest descriptions that nobody fits (`absent`)
    cannot: pl.DataFrame  # descriptions whose count cannot be m (`cannot`)
    generated: pl.DataFrame  # what most of the data sets that were drawn agree on (`reconstructions`)


@command(
    example="glasshouse verify tables.csv.gz --scenario dhc-household --out claims\n\n"
    "As the paper does, with the truth beside it:  glasshouse verify tables.csv.gz --scenario dhc-household "
    "--pick median:5 --singletons --truth households.parquet --prior-tract households.parquet --out claims\n\n"
    "A verified claim is a result: exit code 0. 1: some units were left out (their numbers cannot all be true) or "
    "stopped by the clock. 2: bad input or usage. 130: interrupted; run the same command again to resume."
)
def verify(
    tables: TablesGiven,
    *,
    scenario: ScenarioName,
    columns: Annotated[int, Opt("Claims that name at least so many columns.", short="-k", least=1)] = 6,
    singletons: Annotated[bool, Opt("Only claims about exactly one household (m = 1).")] = False,
    absent: Annotated[
        int, Opt("Also the coarsest descriptions of up to N columns that nobody fits.", least=0, most=5)
    ] = 0,
    cannot: Annotated[
        tuple[int, ...],
        Opt("Also descriptions whose count cannot be M (0: somebody fits).", least=0, repeated=True),
    ] = (),
    why: Annotated[int, Opt("Explain up to N claims of a place by the fewest published numbers.", least=0)] = 0,
    leaks: Annotated[
        Literal["", "table", "family"],
        Opt(
            "Claims lost when each table (or a table with its iterations) is withheld; gained when one that --tables "
            "leaves out is added.",
            metavar="table|family",
        ),
    ] = "",
    drop_cells: Annotated[
        tuple[int, ...], Opt("Leave out published numbers with these values.", metavar="0,1", least=0)
    ] = (),
    zeros: Annotated[
        Literal["all", "certain", "paper"],
        Opt(
            "Structural zeros used: all, those without the office's edit rules, or only what the paper states.",
            metavar="all|certain|paper",
        ),
    ] = "all",
    places: Annotated[
        tuple[str, ...],
        Opt("Only these places: a file with a code a line, or codes.", flag="--blocks", metavar="FILE|LIST"),
    ] = (),
    pick: Annotated[
        str,
        Opt(
            "Only N places of each of the coarsest areas, drawn among those of a size: state-median:5, median:5 or "
            "10:5.",
            metavar="SIZE:N",
        ),
    ] = "",
    truth: Annotated[Path | None, Opt("The true records: how many households are known.", metavar="RECORDS")] = None,
    prior_area: Annotated[
        Path | None,
        Opt(
            "How probable a claim is, drawing from the records of its area (tract) here.",
            flag="--prior-tract",
            metavar="RECORDS",
        ),
    ] = None,
    prior_coarsest: Annotated[
        Path | None,
        Opt("The same, drawing from its whole coarsest area (state).", flag="--prior-state", metavar="RECORDS"),
    ] = None,
    prior_uniform: Annotated[
        bool, Opt("The same, where every value of a column is as likely as any other, as one who knows nothing has it.")
    ] = False,
    counting: Annotated[
        Literal["households", "units"],
        Opt(
            "What N counts, in --pick and in priors: households, or all units, vacant ones too, as in the paper.",
            metavar="households|units",
        ),
    ] = "households",
    reconstructions: Annotated[
        tuple[int, ...],
        Opt(
            "Also what K data sets that are drawn agree on, as the paper generates claims, beside what is certain.",
            metavar="10,100",
            least=1,
            most=10_000,
        ),
    ] = (),
    seed: Seed = 1,
    read: SomeTables = SomeTables(),  # noqa: B008  # frozen
    run: Solving = Solving(),  # noqa: B008  # frozen
) -> Verified:
    """What must be true of the households? Every claim that holds in all data sets that fit the tables."""
    if places and pick:
        raise InputError(f"{_flag('places')} and --pick: give one or the other")
    planned = bool(leaks and read.only)  # tables that are not used may be added, so they are read too
    chosen = read.scenario(scenario, () if planned else read.only).with_zeros(ZEROS[zeros])
    used = tuple(table.name for table in chosen_scenario(scenario, read.only).tables) if planned else ()
    geography = chosen.geography
    if columns > len(chosen.wording.columns):
        raise InputError(f"--columns {columns}: a record of this scenario has {len(chosen.wording.columns)} columns")
    if prior_area and prior_coarsest and geography.unit == geography.coarsest:
        both = f"{_flag('prior_area')} and {_flag('prior_coarsest')}"
        raise InputError(f"{both}: a {geography.unit} is the coarsest area of this scenario; give one or the other")
    if pick:
        from glasshouse.commands.work.picked_places import parse_pick

        parse_pick(pick, geography)
    units = counting == "units"
    if units and chosen.wording.apart is None:
        raise InputError("--counting units: this scenario reports no records apart, so N and priors count all already")
    asked = AboutClaims(
        columns, singletons, absent, tuple(sorted(set(cannot))), why, leaks, tuple(sorted(set(drop_cells))), used,
        units, prior_uniform, tuple(sorted(set(reconstructions))),
    )  # fmt: skip
    listed = ",".join(places)
    file = Path(listed) if is_there(listed) else None
    parameters = {**plain(asked), "zeros": zeros, plural(geography.place): "" if file else listed, "pick": pick}
    inputs = {
        "truth": truth, f"prior {geography.unit}": prior_area, f"prior {geography.coarsest}": prior_coarsest,
        plural(geography.place): file,
    }  # fmt: skip
    attack = _Verify(asked, zeros, listed, pick, truth, prior_area, prior_coarsest)
    asking = Asking(tables, chosen, scenario, geography.place, seed, read, run, parameters, inputs)
    return Verified(over_units(attack, asking))


def _flag(name: str) -> str:
    """How a keyword is called on the command line."""
    return declaration(verify).by_name[name].flag


@dataclass(frozen=True)
class _Verify(Attack[Summary]):
    asked: AboutClaims
    zeros: str
    listed: str  # places by their codes, or a file of them
    pick: str
    truth: Path | None
    prior_area: Path | None
    prior_coarsest: Path | None
    command = "verify"
    kind = Summary

    def prepare(self, asking: Asking, job: Job, items: Iterator[Item], near: Path) -> Prepared:
        from glasshouse.commands.work.claims.beside import coarsest_priors, with_records
        from glasshouse.commands.work.picked_places import chosen_places
        from glasshouse.commands.work.verify import Enquiry, examine, schemas
        from glasshouse.files.records import open_records
        from glasshouse.files.units import by_unit

        scenario = asking.scenario
        chosen, short = self._chosen(asking, near)
        if chosen is not None:
            items = chosen_places(items, chosen)

        def records(path: Path) -> Iterator[pl.DataFrame]:
            columns = scenario.wording.columns  # all of them, whichever the tables look at
            return open_records(path, scenario, columns).frames()

        truth, around = (
            None if path is None else by_unit(records(path), scenario.geography, near)
            for path in (self.truth, self.prior_area)
        )
        enquiry = job.asking(Enquiry, asked=self.asked, priors={})
        if self.prior_coarsest:
            every = records(self.prior_coarsest)
            priors = coarsest_priors(every, scenario, enquiry.wording, units=self.asked.units)
            enquiry = replace(enquiry, priors=priors)
        items_with_records = with_records(items, scenario, enquiry.wording, truth, around, units=self.asked.units)
        kinds = schemas(scenario, self.asked)
        return Prepared(enquiry, items_with_records, examine, kinds, (short,) if short else ())

    def _chosen(self, asking: Asking, near: Path) -> tuple[frozenset[str] | None, str]:
        """The places asked for (None when all are), and what to say if there are fewer; the file is read once more."""
        from glasshouse.commands.work.picked_places import listed, parse_pick, picked, places_in, sizes

        scenario, read = asking.scenario, asking.read
        geography = scenario.geography
        file = read.open(asking.tables, scenario)
        releases = file.releases(assume=read.assume_published, near=near)
        if self.listed:
            wanted = listed(self.listed, geography)
            found = wanted & places_in(releases, geography)
            flag, missing = _flag("places"), len(wanted) - len(found)
            if not found:
                raise InputError(f"{flag}: none of the {len(wanted):,} codes asked for is in {asking.tables.name}")
            short = f"warning: {missing:,} of the {len(wanted):,} codes of {flag} are not in the file"
            return found, short if missing else ""
        if not self.pick:
            return None, ""
        found, number = picked(
            sizes(releases, scenario, units=self.asked.units), parse_pick(self.pick, geography), geography, asking.seed
        )
        short = f"note: --pick {self.pick}: only {len(found):,} of {number:,} are there to be picked"
        return found, short if len(found) < number else ""

    def notes(self, asking: Asking, job: Job, tally: Tally) -> list[str]:
        from glasshouse.commands.work.verify import Enquiry

        assert isinstance(job, Enquiry)
        geography, counts = asking.scenario.geography, tally.counts
        said, groups = job.claimable, asking.scenario.wording.groups
        unseen = [name for name, seen in zip(said.wording.columns, said.looked_at, strict=True) if not seen]
        coarser = [
            f"{name} in {len(found)} groups"
            for name, found in said.wording.groups.items()
            if len(found) < len(groups[name])
        ]
        notes = [
            f"warning: {table.name}: {table.doubt}; with an office's own file, leave it out (--tables)"
            for table in job.published.tables
            if table.doubt and (not self.asked.used or table.name in self.asked.used)
        ]
        if coarser:
            notes.append(f"note: claims name what the published tables tell apart: {', '.join(coarser)}")
        if unseen:
            place = geography.place
            names = ", ".join(unseen)
            notes.append(f"note: no table looks at {names}; whether a {place} is known as a whole is said without it")
        if other := counts["other_truth"]:
            places = geography.told({geography.place: other})
            notes.append(
                f"warning: in {places} the true records (--truth) do not give the published numbers, so a claim can be "
                f"certain from the tables and not true of them: {counts['untrue']:,} of {counts['claims']:,} claims are"
            )
        priors = {"prior_area": (geography.unit, "nobody_around"),
                  "prior_coarsest": (geography.coarsest, "nobody_coarsest")}  # fmt: skip
        for name, (level, counted) in priors.items():
            if counts[counted]:
                places = geography.told({geography.place: counts[counted]})
                notes.append(
                    f"warning: {_flag(name)}: nobody of the {level} of {places} is in that file; no probability"
                )
        return notes

    def conclude(self, asking: Asking, job: Job, tally: Tally, folder: Path, said: Attacked) -> Concluded[Summary]:
        settings = []
        if self.asked.drop:
            values = " or ".join(str(value) for value in self.asked.drop)
            settings.append(f"Published numbers equal to {values} were left out.")
        if self.asked.units:
            settings.append("N and priors count all units, vacant ones too.")
        if self.zeros != "all":
            settings.append(f"Structural zeros: {self.zeros}.")
        if self.pick:
            settings.append(f"{plural(asking.scenario.geography.place).capitalize()} picked: {self.pick}.")
        return summarise(folder, asking.scenario, self.asked, settings, tally, said)
