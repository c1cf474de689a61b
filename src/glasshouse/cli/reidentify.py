"""The command that tells who could be identified: reidentify."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glasshouse.cli.options import (
    Executor,
    Json,
    Out,
    Overwrite,
    Quiet,
    Seed,
    Verbose,
    Workers,
    chosen_scenario,
    inputs_of,
    refuse_no_file,
)
from glasshouse.cli.session import in_folder, refuse_nowhere, refuse_two_crews
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    from glasshouse.commands.work.linking import Attacked, Files
    from glasshouse.commands.work.reidentify import Reidentification
    from glasshouse.engine.folder import Folder
    from glasshouse.engine.ledger import Ledger
    from glasshouse.engine.runner import Tally
    from glasshouse.engine.workers import Crew
    from glasshouse.protection.swap.by_rates import Rates
    from glasshouse.scenarios.load import Scenario

app = typer.Typer(rich_markup_mode=None)


@dataclass(frozen=True)
class _Given:
    """What the command is given, checked."""

    data: tuple[Attacked, ...]
    scenario: Scenario
    truth: Path
    published: Path
    attackers: tuple[tuple[str, Path], ...]
    vary: Path | None
    out: Path | None
    seed: int
    links: bool
    leave_out: int
    rates: Rates | None
    overwrite: bool
    workers: int | None
    executor: str | None
    as_json: bool
    quiet: bool


@app.command(
    epilog="Example:  glasshouse reidentify rebuilt --vary solvar --truth cef.parquet --published hdf.parquet "
    "--attacker commercial.parquet --attacker attacker-perfect.parquet --out risk\n\n"
    "Exit code 0: done. 1: done, but some units were left out. 2: bad input or usage. "
    "130: interrupted; the same command goes on."
)
def reidentify(
    rebuilt: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...",
            help="Reconstructions to attack with: folders of reconstruct; NAME=DIR or NAME=RECORDS names another file.",
        ),
    ],
    truth: Annotated[
        Path, typer.Option("--truth", help="The confidential records, with person_id (and data_defined).")
    ],
    published: Annotated[Path, typer.Option("--published", help="The records that the tables were made from.")],
    attacker: Annotated[
        list[str],
        typer.Option("--attacker", metavar="[NAME=]FILE", help="A list of named people: person_id, place, sex, age."),
    ],
    vary: Annotated[
        Path | None, typer.Option("--vary", metavar="DIR", help="A folder of vary: which blocks have one solution.")
    ] = None,
    out: Out = None,
    scenario: Annotated[
        str, typer.Option("--scenario", "-s", help="How records are spelled; default: as the reconstruction was made.")
    ] = "",
    links: Annotated[
        bool, typer.Option("--links", help="Also write who was linked to which record (confidential): links.parquet.")
    ] = False,
    leave_one_out: Annotated[
        int,
        typer.Option(
            "--leave-one-out",
            metavar="N",
            min=0,
            help="Do it again without a person, for N persons of each group: what did their own answer give away?",
        ),
    ] = 0,
    swap: Annotated[
        str,
        typer.Option(
            "--swap",
            metavar="BASE,RISKY",
            help="With --leave-one-out: swap households again in both worlds, with these chances "
            "(default: the swap is held as it was).",
        ),
    ] = "",
    seed: Seed = 1,
    overwrite: Overwrite = False,
    workers: Workers = None,
    executor: Executor = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Who could be identified? Links records to named lists, checks against the truth, compares with guessing."""
    from glasshouse.commands.work.linking import PLACES, attacked, listed

    if swap and not leave_one_out:
        raise InputError("--swap is of use with --leave-one-out alone; say how many persons to leave out")
    data = tuple(attacked(given) for given in rebuilt)
    lists = tuple(listed(given) for given in attacker)
    for path in (truth, published, *(path for _, path in lists)):
        refuse_no_file(path)
    _refuse_twice([file.name for file in data], "NAME=DIR")
    _refuse_twice([name for name, _ in lists], "NAME=FILE")
    if vary is not None and not (vary / PLACES).is_file():
        raise InputError(f"--vary {vary}: no {PLACES} there; expected the --out folder of vary")
    refuse_two_crews(workers, executor)
    refuse_nowhere(out, as_json=as_json)
    name = scenario or _scenario_of(data)
    rates = None
    if swap:
        from glasshouse.commands.work.leaving_plan import rates_of

        rates = rates_of(swap)
    given = _Given(
        data, chosen_scenario(name, "", []), truth, published, lists, vary, out, seed, links, leave_one_out,
        rates, overwrite, workers,
        executor, as_json, quiet,
    )  # fmt: skip
    return _run(given, name)


def _refuse_twice(names: list[str], how: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two files go by the name {name}; name one of them yourself, as {how}")


def _scenario_of(data: tuple[Attacked, ...]) -> str:
    """The scenario that the reconstructions were made with."""
    told = [file.told for file in data]
    found = {str(t["parameters"]["scenario"]) for t in told if t and isinstance(t.get("parameters"), dict)}  # type: ignore[index]  # a manifest of ours
    if len(found) != 1:
        raise InputError("--scenario is missing: the files to attack do not say one scenario that they were made with")
    return found.pop()


def _run(given: _Given, scenario_name: str) -> int:
    from glasshouse.commands.work.linking import PLACES
    from glasshouse.engine.manifest import Manifest

    inputs = {"truth": given.truth, "published": given.published}
    inputs |= {f"data {file.name}": file.path for file in given.data}
    inputs |= {f"attacker {name}": path for name, path in given.attackers}
    inputs |= {"vary": given.vary / PLACES} if given.vary else {}
    parameters = {
        "scenario": given.scenario.name,
        "data": [file.name for file in given.data],
        "attackers": [name for name, _ in given.attackers],
        "seed": given.seed,
        "links": given.links,
        "leave_one_out": given.leave_out,
        "swap": [given.rates.base, given.rates.risky] if given.rates else None,
    }
    manifest = Manifest("reidentify", parameters, inputs_of(inputs, scenario_name, []))
    notes = [note for file in given.data for note in file.doubts]
    if given.leave_out:
        notes += _leaving_notes(given)
    if given.links and given.out is None:
        notes.append("note: --links without --out: who was linked to whom is not kept")
    return in_folder(
        manifest,
        lambda folder: _work(given, folder),
        out=given.out,
        overwrite=given.overwrite,
        as_json=given.as_json,
        quiet=given.quiet,
        unit=given.scenario.geography.unit,
        notes=notes,
    )


def _work(given: _Given, folder: Folder) -> dict[str, Any]:
    from glasshouse.attack.people.reidentify import compile_once
    from glasshouse.commands.words.reidentify import conclude
    from glasshouse.commands.work.linking import Files
    from glasshouse.commands.work.reidentify import Reidentification, identify
    from glasshouse.engine.progress import progress
    from glasshouse.engine.runner import Pace, run
    from glasshouse.engine.workers import Crew

    files = Files(given.scenario, given.truth, given.published, given.data, given.attackers, given.vary)
    with ExitStack() as stack:
        about = {"command": "reidentify", "parameters": dict(folder.manifest.parameters)}
        ledger = stack.enter_context(folder.working(about, overwrite=given.overwrite))
        pace = Pace(stack.enter_context(progress("reidentify", shown=not given.quiet)), given.scenario.geography)
        items = files.read(ledger.folder, lambda share: pace.reading(share / 2))
        first = next(items)
        pace.begin(len(files.units))
        ledger.tell(units=pace.units)
        job = Reidentification(
            given.scenario, tuple(file.name for file in given.data), tuple(name for name, _ in given.attackers),
            files.nations, given.vary is not None, given.seed, given.links,
            tuple(file.name for file in given.data if file.folder is not None),
        )  # fmt: skip
        crew = Crew(given.workers or len(os.sched_getaffinity(0)), given.executor)

        def every() -> Any:
            yield first
            yield from items

        compile_once()  # before several workers would do it at the same time
        tally = run(job, identify, every(), ledger, crew, pace)
        left = _leave_out(given, ledger, job, files, crew, tally) if given.leave_out else None
        folder.make_room()
        said, outputs = conclude(
            folder.path,
            ledger,
            job,
            tally,
            left=left,
            swapped=given.rates is not None,
            truth=given.truth,
            vary=files.vary,
        )
        folder.write(said, outputs, cpu=tally.cpu, complete=tally.complete)
    if tally.complete:
        ledger.forget()
    return said


def _leaving_notes(given: _Given) -> list[str]:
    """What is not left out of, and how a person is found."""
    from glasshouse.commands.work.leave_one_out import HOUSEHOLD
    from glasshouse.files.frames import open_source

    aside = [file.name for file in given.data if file.folder is None]
    notes = [f"note: --leave-one-out: {name} is no reconstruction of ours and was not made again" for name in aside]
    columns = [open_source(path).columns for path in (given.truth, given.published)]
    if given.rates is None and not all(HOUSEHOLD in some for some in columns):
        notes.append(
            f"note: --leave-one-out: without {HOUSEHOLD} in truth and published file a person's record is taken to be "
            "one like it in the same place; where there is none, nothing changes"
        )
    return notes


def _leave_out(
    given: _Given, ledger: Ledger, job: Reidentification, files: Files, crew: Crew, tally: Tally
) -> Tally | None:  # fmt: skip
    """The same again without a person, for many persons one by one; counted into the ledger."""
    from glasshouse.commands.work.leave_one_out import LeavingOut, Targets, leave_out
    from glasshouse.commands.work.leaving_plan import attacks_of, everyone, plan
    from glasshouse.engine.progress import progress
    from glasshouse.engine.runner import run

    chosen = plan(ledger, job, given.leave_out)
    attacks = attacks_of(given.data, given.scenario)
    swapped = everyone(files.truth, given.scenario, given.rates, given.seed, job) if given.rates else None
    again = LeavingOut(job, attacks, swapped)
    units = len(chosen)
    ledger.tell(units=tally.units + units)
    with progress("leave one out", shown=not given.quiet) as bar:
        items = (
            Targets(item, chosen[item.code])
            for item in files.read(ledger.folder, lambda share: bar(0.05 * share, "reading"), households=True)
            if item.code in chosen
        )

        def watch(found: Tally) -> None:
            bar(0.05 + 0.95 * found.units / max(units, 1), f"{found.counts['left_out']:,} persons left out")

        found = run(again, leave_out, items, ledger, crew, watch)
    tally.refused |= found.refused
    tally.bugs += found.bugs
    tally.cpu += found.cpu
    return found
