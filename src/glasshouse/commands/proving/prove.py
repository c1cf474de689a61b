"""Can strangers check it? Certificates of what a result says is proved, with the program that checks them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from glasshouse.commands.attack import Asking, Attack, Attacked, Concluded, Opened, Prepared
from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import Reading, Solving
from glasshouse.commands.over_units import over_units
from glasshouse.commands.proving.chosen import CONTRADICTION, FACTS, chosen_facts
from glasshouse.commands.proving.words import Summary
from glasshouse.commands.reconstruct import Units
from glasshouse.commands.result import Result
from glasshouse.errors import InputError
from glasshouse.model.geography import plural

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.job import Job
    from glasshouse.engine.runner import Tally
    from glasshouse.files.tables import TableFile
    from glasshouse.model.release import Release


class Proved(Result[Summary]):
    """Certificates, and what each of them says."""

    shown = ("index",)

    index: pl.DataFrame  # a row for each fact: its place, what it says, its file, and whether our checker accepted it
    certificates: pl.DataFrame  # the same with the text of each file: all in one


@command(
    example="glasshouse prove solvar --tables tables.csv.gz --out proofs\n\n"
    "Then anybody: python proofs/check_proof.py proofs --tables tables.csv.gz\n\n"
    "Exit code 0: done. 1: some units were refused, or a certificate of ours was not accepted. 2: bad input or usage. "
    "130: interrupted; run the same command again to resume."
)
def prove(
    result: Annotated[Path, Opt("The folder of vary, bounds, verify or detect.", metavar="DIR")],
    *,
    tables: Annotated[Path, Opt("The published tables that the result was made from.", metavar="TABLES")],
    scenario: Annotated[str, Opt("The folder of the scenario, where it is no built-in one.", short="-s")] = "",
    start: Annotated[
        Path | None,
        Opt("The records that vary started from, where it did.", flag="--from", metavar="DIR"),
    ] = None,
    facts: Annotated[
        tuple[str, ...],
        Opt(
            "Only these kinds of facts, separated by commas: solvar, certain (of vary); least, most (of bounds, "
            "verify, detect); contradiction (of bounds, detect).",
            metavar="LIST",
        ),
    ] = (),
    properties: Annotated[Path | None, Opt("The property file that detect was given.", metavar="FILE")] = None,
    property_places: Annotated[
        Path | None,
        Opt("The block of each property, as detect had it.", flag="--property-blocks", metavar="FILE"),
    ] = None,
    units: Units = (),
    read: Reading = Reading(),  # noqa: B008  # frozen
    run: Solving = Solving(),  # noqa: B008  # frozen
) -> Proved:
    """Certificates of what a result says is proved: strangers can check them, trusting neither us nor any solver."""
    from glasshouse.engine.folder import MANIFEST, read_manifest

    told = read_manifest(result) if result.is_dir() else None
    if told is None or told.get("command") not in FACTS:
        raise InputError(f"{result}: no result of {', '.join(FACTS)} there; expected the --out folder of one")
    some = chosen_facts(told["command"], facts)
    made = told["parameters"]
    name = scenario or made["scenario"]
    chosen = read.scenario(name)
    if chosen.name != made["scenario"]:
        raise InputError(f"{result} is about scenario {made['scenario']}; found {chosen.name}")
    if made["tables"] != [table.name for table in chosen.tables]:
        chosen = chosen.choose(made["tables"])
    if told["command"] == "verify":
        from glasshouse.commands.work.questions import ZEROS

        chosen = chosen.with_zeros(ZEROS[made["zeros"]])
    same = {one: made.get(one) for one in {**Reading().parameters, **_READ}} != {
        one: read.parameters.get(one) for one in {**Reading().parameters, **_READ}
    }
    if same:
        told_as = ", ".join(f"--{one.replace('_', '-')} {made[one]}" for one in _READ if one in made)
        raise InputError(f"{result} was made with its tables read otherwise ({told_as or 'as usual'}); give the same")
    records = start / "records.parquet" if start is not None and start.is_dir() else start
    if ("from" in told["inputs"]) != (records is not None):
        how = "started from records; give them with --from" if records is None else "did not start from given records"
        raise InputError(f"{result}: the run {how}")
    second = {"properties": properties, f"property {plural(chosen.geography.place)}": property_places}
    for role, path in second.items():
        if role in told["inputs"] and path is None:
            raise InputError(f"{result}: the run was given {told['inputs'][role]['name']} ({role}); give it too")
    attack = _Prove(told["command"], result, made, records, properties, property_places, some)
    inputs = {"from": records, **second, "result": result / MANIFEST}
    parameters = {"of": told["command"], "made": told["key"], **({"facts": sorted(some)} if facts else {})}
    asking = Asking(
        tables, chosen, name, made["level"], made["seed"], read, replace(run, effort=made["effort"]), parameters,
        inputs, tuple(sorted(set(units))),
    )  # fmt: skip
    _refuse_other_files(told["inputs"], asking)
    return Proved(over_units(attack, asking))


_READ: dict[str, None] = dict.fromkeys(("missing", "rounded", "noise_within", "marker", "thousands", "exact"))


def _refuse_other_files(theirs: dict[str, dict[str, str]], asking: Asking) -> None:
    """The tables, the records and the scenario must be the files that the result was made from."""
    from glasshouse.commands.options import inputs_of
    from glasshouse.engine.manifest import sha256

    mine = {role: path for role, path in asking.inputs.items() if role != "result"}
    given = {"tables": asking.tables, **mine, **asking.read.inputs}
    for role, path in inputs_of(given, asking.scenario_name, asking.read.mapping).items():
        known = theirs.get(role, {}).get("sha256")
        if known != sha256(path):
            said = "is another file than" if known else "is none of the files that"
            raise InputError(f"{path}: {said} the result was made from ({role}); give the same")


@dataclass(frozen=True)
class _Prove(Attack[Summary]):
    of: str
    result: Path
    made: dict[str, object]
    start: Path | None
    properties: Path | None
    property_places: Path | None
    facts: frozenset[str]
    held: dict[str, Any] = field(default_factory=dict)  # the file, once it is open, and what is said of it
    command = "prove"
    kind = Summary

    def open(self, asking: Asking, file: TableFile, releases: Iterator[Release]) -> Opened:
        if self.of == "bounds":  # its level says what is told; all levels are used
            asking = replace(asking, level=None)
        opened = super().open(asking, file, releases)
        self.held["file"] = file
        return opened

    def prepare(self, asking: Asking, job: Job, items: Iterator[Any], near: Path) -> Prepared:
        from glasshouse.commands.proving.areas import said_of_areas
        from glasshouse.commands.proving.counts import Counting, asked_counts, conflicts_of, prove_counts
        from glasshouse.commands.proving.defining import defining
        from glasshouse.commands.proving.facts import CERTIFICATES, Proving, prove_unit, said_of
        from glasshouse.commands.proving.files import is_plain

        file: Any = self.held["file"]
        assume, plain = asking.read.assume_published, is_plain(asking, file)
        if self.of == "detect":
            return self._housing(asking, job, items)
        from glasshouse.commands.work.vary import starts, with_starts

        if self.start is not None:
            items = with_starts(items, starts(self.start, asking.scenario, near), asking.scenario)
        finest = bool(self.made.get("finest", False))
        self.held["defining"] = defining(job, file, finest=finest, assume=assume, plain=plain)
        about = self.held["defining"].content()
        if self.of == "vary":
            jointly = bool(self.made["jointly"])
            asked = job.asking(
                Proving,
                finest=finest,
                tighten=bool(self.made["tighten"]),
                jointly=jointly,
                definitions=about,
                said=said_of(self.result, asking.scenario),
                areas=said_of_areas(self.result, job.area_level) if jointly and job.area_level else {},
                facts=self.facts,
            )
            return Prepared(asked, items, prove_unit, {"certificates": CERTIFICATES})
        counts = asked_counts(self.of, self.result, asking.scenario, self.facts)
        places = conflicts_of(self.result, asking.scenario) if CONTRADICTION in self.facts else ()
        counting = job.asking(Counting, definitions=about, counts=counts, conflicts=places)
        return Prepared(counting, items, prove_counts, {"certificates": CERTIFICATES})

    def _housing(self, asking: Asking, job: Job, items: Iterator[Any]) -> Prepared:
        """What detect says, and what is printed of the properties."""
        from glasshouse.commands.proving import occupancy as housing
        from glasshouse.commands.proving.defining import Defining, assumed_numbers
        from glasshouse.commands.proving.facts import CERTIFICATES
        from glasshouse.commands.proving.files import Second, is_plain
        from glasshouse.commands.work.detect import properties_by_block
        from glasshouse.engine.manifest import sha256
        from glasshouse.files.properties import open_properties
        from glasshouse.proofs.definitions import boxed

        scenario, file, assume = asking.scenario, self.held["file"], asking.read.assume_published
        occupancy, programs = scenario.occupancy, [str(one) for one in cast(list[str], self.made["programs"])]
        assert occupancy is not None and self.properties is not None  # the run has refused others
        model, schema, place = occupancy.model(str(self.made["model"])), scenario.schema, scenario.geography.place
        known = open_properties(self.properties, scenario.geography, occupancy, self.property_places, programs)
        variables = {place: [one for one in occupancy.variables(model) if one in job.published.variables]}
        plain = is_plain(asking, file)
        assumed = assumed_numbers(scenario, file, variables) if plain and assume != "seen" else ()
        compare = [[0] * len(one) for one in schema.attributes]  # no records are named
        second, covered = housing.readings_defined(schema, occupancy, model), housing.is_covered(occupancy, model)
        made = Defining(scenario, schema, compare, variables, False, tuple(assumed), second)
        lines = housing.lines_of(known, occupancy, model)
        told = {"name": self.properties.name, "sha256": sha256(self.properties), "programs": programs,
                "model": model.name}  # fmt: skip
        self.held.update({"defining": made, "second": Second(lines, told), "covered": covered})
        asked = job.asking(
            housing.Housing,
            definitions=made.content(),
            lines=lines,
            readings=housing.readings_of_places(occupancy, model, properties_by_block(known)),
            said=housing.said_of_places(self.result, place),
            broken=tuple(boxed(schema, one) for one in occupancy.breaks) if covered else (),
            facts=self.facts,
        )
        return Prepared(asked, items, housing.prove_housing, {"certificates": CERTIFICATES})

    def notes(self, asking: Asking, job: Job, tally: Tally) -> list[str]:
        notes = []
        how = "is about whole areas" if self.made.get("jointly") else "took differences of an area's numbers as limits"
        if (self.made.get("jointly") or self.made.get("tighten")) and not self.held["defining"].all_places:
            notes.append(
                f"note: the result {how}, and the checker cannot see that all places are there: it sees that in a "
                "long CSV that names every place; certificates are about single places, with the printed numbers of "
                "the area around as limits from above"
            )
        if not self.held.get("covered", True):
            notes.append(
                f"warning: how model {self.made['model']} reads the numbers is not what the checker works out; its "
                "facts are open"
            )
        return notes

    def conclude(self, asking: Asking, job: Job, tally: Tally, folder: Path, said: Attacked) -> Concluded[Summary]:
        from glasshouse.commands.proving.files import written
        from glasshouse.commands.proving.words import summarise

        found = written(folder, job, self.held["file"], asking, self.held["defining"], self.held.get("second"))
        return summarise(folder, found, said, self.of)
