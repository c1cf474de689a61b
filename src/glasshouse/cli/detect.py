"""The command that joins the numbers of two agencies about the same households: detect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glasshouse.cli.attacking import (
    EFFORT,
    SECONDS,
    Assume,
    Codebook_,
    Effort,
    Executor,
    Given,
    Out,
    Overwrite,
    Prepared,
    Seconds,
    Seed,
    TableFile_,
    Workers,
    run_attack,
)
from glasshouse.cli.options import Json, Mapping_, Quiet, ScenarioName, Verbose, chosen_scenario
from glasshouse.errors import InputError, unknown

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    from glasshouse.engine.folder import Folder
    from glasshouse.engine.job import Item, Job
    from glasshouse.engine.runner import Tally
    from glasshouse.files.properties import PropertyFile
    from glasshouse.scenarios.occupancy import Occupancy

app = typer.Typer(rich_markup_mode=None)

SCENARIO = "subsidised-housing"
TIES = ("any", "fewest")


@app.command(
    epilog="Example:  glasshouse detect tables.parquet --properties housing.parquet --why --out found\n\n"
    "With the truth of a synthetic county, as the paper does:  glasshouse detect tables.parquet --properties "
    "housing.parquet --sample sample.parquet --solutions 100 --truth households.parquet --out found\n\n"
    "What is certain is a result: exit code 0. 1: some units were refused or stopped by the clock. 2: bad input or "
    "usage. 130: interrupted; the same command goes on."
)
def detect(
    tables: TableFile_,
    properties: Annotated[
        Path, typer.Option("--properties", help="Subsidised properties: HUD's Picture, project level, with blocks.")
    ],
    scenario: ScenarioName = SCENARIO,
    out: Out = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="sharp|paper",
            help="How the numbers are read: as precisely as they are published, or as appendix E of the paper is "
            "written. A proof is only as right as its model.",
        ),
    ] = "sharp",
    block_key: Annotated[
        Path | None,
        typer.Option("--property-blocks", metavar="FILE", help="The block of each property: columns code and block."),
    ] = None,
    programs: Annotated[
        list[str], typer.Option("--program", help="Only properties of this program (program_label); may be repeated.")
    ] = [],  # noqa: B006  # typer copies it
    why: Annotated[
        bool, typer.Option("--why", help="For every certain block, a smallest set of published numbers that imply it.")
    ] = False,
    sample: Annotated[
        Path | None,
        typer.Option("--sample", metavar="PERSONS", help="A public-use sample: which households are likely."),
    ] = None,
    solutions: Annotated[
        int,
        typer.Option(
            "--solutions",
            "-t",
            min=0,
            max=10_000,
            help="The T most likely data sets of certain blocks (needs --sample).",
        ),
    ] = 0,
    ties: Annotated[
        str,
        typer.Option(
            "--ties",
            metavar="any|fewest",
            help="Which of equally likely data sets come first: any, by the seed, or those with the fewest violations.",
        ),
    ] = "any",
    everywhere: Annotated[bool, typer.Option("--every-block", help="The same for every block that fits.")] = False,
    solvar: Annotated[
        bool, typer.Option("--solvar", help="How different other data sets can be (needs --sample).")
    ] = False,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="Where nothing fits (noise): the closest data set, by squared error.")
    ] = False,
    truth: Annotated[
        Path | None,
        typer.Option("--truth", metavar="HOUSEHOLDS", help="The true households: how often is the attacker right?"),
    ] = None,
    holder: Annotated[
        bool,
        typer.Option(
            "--i-am-the-data-holder",
            help="Allow results about single households of real places. Without it, only synthetic ones.",
        ),
    ] = False,
    seed: Seed = 1,
    codebook: Codebook_ = None,
    assume: Assume = "seen",
    mapping: Mapping_ = [],  # noqa: B006  # typer copies it
    overwrite: Overwrite = False,
    workers: Workers = None,
    executor: Executor = None,
    effort: Effort = EFFORT,
    seconds: Seconds = SECONDS,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Where must somebody break an occupancy rule? What two agencies' numbers say of the same blocks together."""
    chosen = chosen_scenario(scenario, "", mapping)
    if chosen.occupancy is None:
        raise InputError(f"scenario {chosen.name} says nothing of a second agency; known: {SCENARIO}")
    chosen.occupancy.model(model)
    if (solutions or solvar) and sample is None:
        raise InputError(f"--{'solutions' if solutions else 'solvar'} needs --sample, which says what is likely")
    if ties not in TIES:
        raise unknown("order of ties", ties, TIES)
    if everywhere and not solutions:
        raise InputError("--every-block says where --solutions are listed; give it too")
    inputs = {"properties": properties, "property blocks": block_key, "sample": sample, "truth": truth}
    options = {
        "model": model, "why": why, "solutions": solutions, "everywhere": everywhere, "solvar": solvar,
        "nearest": nearest, "ties": ties, "truth": truth is not None, "programs": list(programs), "holder": holder,
    }  # fmt: skip
    given = Given(
        tables, chosen, scenario, out, chosen.geography.place, seed, codebook, assume, mapping, overwrite, workers,
        executor, effort, seconds, as_json, quiet, {role: path for role, path in inputs.items() if path}, options,
    )  # fmt: skip
    return run_attack(_Detect(), given)


class _Detect:
    command = "detect"
    file: PropertyFile
    too_large = 0

    def prepare(self, given: Given, job: Job, items: Iterator[Item], near: Path) -> Prepared:
        from glasshouse.commands.work.detect import enquiry, examine, properties_by_block, schemas, with_truth
        from glasshouse.commands.work.detect_truth import sampled_rankings, true_households
        from glasshouse.files.properties import read_properties
        from glasshouse.files.sample import read_sample
        from glasshouse.files.units import by_unit

        occupancy = _occupancy(given)
        self.file = read_properties(
            given.inputs["properties"], given.scenario.geography, occupancy.shares,
            blocks=given.inputs.get("property blocks"), programs=given.options["programs"], exclusive=occupancy.wholes,
        )  # fmt: skip
        _refuse_untold(given, job, self.file)
        known = properties_by_block(self.file.frame)
        if given.options["solutions"] or given.options["truth"]:
            _refuse_real(known, occupancy, given)
        samples = read_sample(given.inputs["sample"]) if "sample" in given.inputs else {}
        self._refuse_no_sample(known, samples, given)
        rankings, truth = {}, None
        if "truth" in given.inputs:
            path = given.inputs["truth"]
            rankings = sampled_rankings(true_households(path, given.scenario), known, given.scenario, given.seed)
            truth = by_unit(true_households(path, given.scenario), given.scenario.geography, near)
        asked = enquiry(job, known, samples, rankings)
        kinds = schemas(given.scenario, given.options)
        return Prepared(asked, with_truth(items, given.scenario, truth), examine, kinds)

    def _refuse_no_sample(self, known: Any, samples: Any, given: Given) -> None:
        """A sample that has nobody of any state asked about answers nothing."""
        geography = given.scenario.geography
        states = {geography.code(place, geography.coarsest) for place in known}
        if samples and not states & set(samples):
            raise InputError(
                f"{given.inputs['sample'].name}: a sample of state {', '.join(sorted(samples))}; the properties are in "
                f"{', '.join(sorted(states))}; give the sample of these states"
            )

    def notes(self, given: Given, job: Job, tally: Tally) -> list[str]:
        model = _occupancy(given).model(given.options["model"])
        notes = [f"note: model {model.name}: {model.title}"]
        if protected := _protected(given.tables) or _protected(given.inputs["properties"]):
            notes.append(
                f"warning: {protected[0]} comes from glasshouse {protected[1]}: what is certain here is certain of "
                "these numbers, not of people"
            )
        if not tally.counts["blocks"] and not tally.counts["left_out"]:
            notes.append("warning: no block of the property file is in the tables; are they of the same places?")
        if self.file.left_out:
            said = ", ".join(f"{number:,} {reason}" for reason, number in self.file.left_out.items())
            notes.append(f"note: properties left out: {said}")
        if self.file.absent:
            notes.append(f"warning: the property file has no {', '.join(self.file.absent)}: taken as unknown")
        if tally.counts["untrue"]:
            notes.append(
                f"warning: in {tally.counts['untrue']:,} blocks a violation is certain from the numbers and there is "
                "none in the true households (--truth): the numbers are not exactly theirs (protected, or of another "
                "time), or the model is not right"
            )
        if tally.counts["no_sample"]:
            notes.append(
                f"warning: the sample has nobody of the state of {tally.counts['no_sample']:,} blocks; they have no "
                "likely data sets"
            )
        if tally.counts["not_in_sample"]:
            notes.append(
                f"warning: no data set of {tally.counts['not_in_sample']:,} blocks is made of households of the sample "
                "alone; they have no likely data sets"
            )
        return notes

    def end(self, given: Given, job: Job, tally: Tally, folder: Folder) -> tuple[dict[str, Any], list[str], list[str]]:
        from glasshouse.commands.words.detect import ended

        said, lines, files = ended(folder.path, given.scenario, given.options, self.file)
        counts = {name: tally.counts[name] for name in ("untrue", "not_in_sample", "no_sample")}
        return said | counts, lines, files


def _occupancy(given: Given) -> Occupancy:
    assert given.scenario.occupancy is not None  # others have been refused
    return given.scenario.occupancy


def _refuse_untold(given: Given, job: Job, file: PropertyFile) -> None:
    """Without the number of households, or without a property that can be used, there is nothing to ask."""
    households = _occupancy(given).households
    if households not in job.published.variables:
        raise InputError(
            f"{given.tables.name}: no number {households} (households) at level {given.scenario.geography.place}; "
            f"expected tables of scenario {given.scenario.name} (glasshouse tabulate makes them)"
        )
    if file.frame.is_empty():
        left = ", ".join(f"{number:,} {reason}" for reason, number in file.left_out.items())
        raise InputError(f"{given.inputs['properties'].name}: no property can be used ({left or 'there is none'})")


def _protected(path: Path) -> tuple[str, str] | None:
    """The name of a file that a protection has made, as its manifest says, and which."""
    beside = path.with_name(f"{path.name}.manifest.json")
    if not beside.is_file():
        return None
    try:
        command = str(json.loads(beside.read_text("utf-8")).get("command", ""))
    except (OSError, ValueError, AttributeError):
        return None
    return (path.name, command) if command.startswith("protect") else None


def _refuse_real(known: Any, occupancy: Occupancy, given: Given) -> None:
    """Households of real places are nobody's business but the data holder's: the paper's own safeguard."""
    real = sum(not block.startswith(occupancy.unreal) for block in known)
    if real and not given.options["holder"]:
        raise InputError(
            f"{given.inputs['properties'].name}: {real:,} blocks are of real places; --solutions and --truth tell of "
            "single households there. If the data are yours to protect, say so with --i-am-the-data-holder; what is "
            "certain of blocks is told without it"
        )
