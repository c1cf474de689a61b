"""The command line: what users type, what they see, and how it ends (exit codes are a contract)."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glasshouse.cli import noise, properties, swap, table_protections, topdown  # noqa: F401  # they add to protect
from glasshouse.cli.attack import app as attack_app
from glasshouse.cli.audit import app as audit_app
from glasshouse.cli.compare import app as compare_app
from glasshouse.cli.detect import app as detect_app
from glasshouse.cli.infer import app as infer_app
from glasshouse.cli.options import (
    BAD_INPUT,
    DONE,
    FINDINGS,
    INTERRUPTED,
    OUR_BUG,
    Interrupted,
    Json,
    Mapping_,
    Quiet,
    ScenarioName,
    Tables,
    Verbose,
    Workers,
    chosen_scenario,
    finish,
    inputs_of,
    notes_on,
    refuse_no_file,
    say,
)
from glasshouse.cli.population import app as population_app
from glasshouse.cli.protecting import protect_app
from glasshouse.cli.reidentify import app as reidentify_app
from glasshouse.cli.tradeoff import app as tradeoff_app
from glasshouse.cli.verify import app as verify_app
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    from glasshouse.model.identities import Finding

SHOWN_FINDINGS = 20
STOPPED = "interrupted; nothing was left behind; the same command starts over"

app = typer.Typer(
    name="glasshouse",
    help="Shows a statistical office what its published tables give away.\n\n"
    "Glasshouse is a tool of defence: use it on your own tables, on synthetic data, or on data already published.",
    epilog="Example:  glasshouse check tables.csv.gz --scenario sf1-person",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(population_app)
app.add_typer(attack_app)
app.add_typer(verify_app)
app.add_typer(detect_app)
app.add_typer(reidentify_app)
app.add_typer(tradeoff_app)
app.add_typer(protect_app, name="protect")
app.add_typer(compare_app)
app.add_typer(infer_app)
app.add_typer(audit_app)


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        print(f"glasshouse {installed('glasshouse')}")
        raise typer.Exit()
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


@app.command(
    epilog="Example:  glasshouse tabulate records.parquet --scenario sf1-person --out tables.parquet\n\n"
    "An --out that ends in .zip is written as the office's own archive, for instance al2010.sf1.zip."
)
def tabulate(
    records: Annotated[Path, typer.Argument(help="Records: CSV, CSV.gz or Parquet (also PPMF person files).")],
    scenario: ScenarioName,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write: .csv, .csv.gz, .parquet or .zip.")
    ] = None,
    tables: Tables = "",
    levels: Annotated[
        str, typer.Option("--levels", help="Further, coarser levels to count at, as in county,state.")
    ] = "",
    mapping: Mapping_ = [],  # noqa: B006  # typer copies it
    subtotals: Annotated[bool, typer.Option("--subtotals", help="Write the official subtotals too.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing --out that differs.")] = False,
    workers: Workers = 1,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Count records into the tables of a scenario."""
    from glasshouse.commands.work.tabulate import archive_for, make_plan, tabulate_file
    from glasshouse.engine.manifest import Manifest
    from glasshouse.engine.progress import progress

    if out is None and not as_json:
        raise InputError(
            "--out is missing: say where to write the tables (or ask for --json alone, which writes nothing)"
        )
    chosen = chosen_scenario(scenario, tables, mapping)
    further = [level.strip() for level in levels.split(",") if level.strip()]
    for level in chosen.geography.mappings:
        if level not in further:
            raise InputError(f"level '{level}' has a mapping and is not counted at; add it to --levels")
    archive = archive_for(out, chosen) if out is not None and out.suffix.lower() == ".zip" else None
    plan = make_plan(chosen, further=further, subtotals=subtotals, archive=archive)
    refuse_no_file(records)
    parameters = {
        "scenario": chosen.name,
        "tables": [t.name for t in chosen.tables],
        "levels": levels,
        "subtotals": subtotals,
    }
    manifest = Manifest("tabulate", parameters, inputs_of({"records": records}, scenario, mapping))
    if out is not None and manifest.done(out, overwrite=overwrite):
        return finish(
            {"command": "tabulate", "out": str(out), "unchanged": True}, as_json, quiet, [f"{out} is up to date"]
        )
    with progress("tabulate", shown=not quiet) as watch:
        done = tabulate_file(records, plan, out, workers=workers, watch=watch)
    counts = {"records": done.records, "cells": done.cells, "places": dict(sorted(done.places.items()))}
    if out is not None:
        manifest.write(out, counts)
    said = {
        "command": "tabulate",
        "scenario": chosen.name,
        "tables": len(plan.scenario.tables),
        "out": str(out) if out else None,
        **counts,
    }
    where = chosen.geography.told(done.places)
    line = f"{done.records:,} records, {len(plan.scenario.tables)} tables, {done.cells:,} non-zero cells in {where}"
    lines = [f"{line}{f' -> {out}' if out else ''}"]
    if done.left_out:
        said["left_out"] = done.left_out
        lines.append(f"Left out, as the scenario says: {done.left_out:,} rows with {_codes_told(chosen.leave_out)}.")
    return finish(said, as_json, quiet, lines)


def _codes_told(leave_out: Mapping[str, Sequence[str]]) -> str:
    return " or ".join(f"{column} {' or '.join(codes)}" for column, codes in leave_out.items())


@app.command(
    epilog="Example:  glasshouse check tables.csv.gz --scenario sf1-person\n\n"
    "Exit code 0: everything agrees. 1: some numbers cannot all be true. 2: the input cannot be read."
)
def check(
    tables: Annotated[
        Path, typer.Argument(help="Published tables: long or wide CSV, CSV.gz or Parquet, or an office's zip.")
    ],
    scenario: ScenarioName,
    only: Tables = "",
    codebook: Annotated[Path | None, typer.Option("--codebook", help="The codebook of an NHGIS extract.")] = None,
    assume: Annotated[
        str,
        typer.Option(
            "--assume-published",
            metavar="all|seen|LIST",
            help="Of tables with no number in the file: which were published, all zero?",
        ),
    ] = "seen",
    mapping: Mapping_ = [],  # noqa: B006  # typer copies it
    workers: Workers = 1,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Can all numbers be true? If not: which few cannot."""
    from glasshouse.commands.work.check import check_file
    from glasshouse.engine.progress import progress
    from glasshouse.files.tables import open_tables
    from glasshouse.program.search import is_compiled

    chosen = chosen_scenario(scenario, only, mapping)
    refuse_no_file(tables)
    file = open_tables(tables, chosen, codebook)
    if not quiet and sys.stderr.isatty() and not is_compiled():
        say("The core is compiled for this machine first, once; that takes about half a minute.")
    with progress("check", shown=not quiet) as watch:
        checked = check_file(file, assume=assume, workers=workers, watch=watch)
    notes = notes_on(file, chosen, assume)
    said: dict[str, Any] = {
        "command": "check",
        "scenario": chosen.name,
        "tables": str(tables),
        "agrees": not checked.findings,
        "places": dict(sorted(checked.places.items())),
        "numbers": file.seen.cells,
        "identities": dict(sorted(checked.identities.items())),
        "undecided": dict(sorted(checked.undecided.items())),
        "ignored": dict(sorted(file.seen.ignored.items())),
        "absent": list(file.absent(assume)),
        "notes": notes,
        "findings": [_finding(finding) for finding in checked.findings],
    }
    if not quiet and not as_json:
        say(*notes)
    places = chosen.geography.told(checked.places)
    if not checked.findings:
        rules = sum(checked.identities.values())
        lines = [f"All numbers agree: {file.seen.cells:,} numbers, {rules:,} identities, {places}."]
        if rules == 0:
            lines = [f"Nothing to compare: {file.seen.cells:,} numbers, and no identity ties them ({places})."]
        if checked.undecided:
            told = chosen.geography.told(checked.undecided)
            lines.append(f"Not decided whether any records fit them: {told}.")
    else:
        lines = [line for f in checked.findings[:SHOWN_FINDINGS] for line in _spoken(f, checked.findings)]
        if len(checked.findings) > SHOWN_FINDINGS:
            lines.append(f"... and {len(checked.findings) - SHOWN_FINDINGS:,} more places (all of them with --json)")
        wrong = len(checked.findings)
        has = "1 place has" if wrong == 1 else f"{wrong:,} places have"
        lines.append(f"{has} numbers that cannot all be true (checked: {places}).")
    finish(said, as_json, quiet, lines, always=True)
    return FINDINGS if checked.findings else DONE


@app.command(epilog="Example:  glasshouse scenarios sf1-person")
def scenarios(
    name: Annotated[str | None, typer.Argument(help="A scenario; without one, the built-in ones are listed.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """List scenarios, or the tables and record columns of one."""
    from glasshouse.scenarios.load import known_scenarios, load

    if name is None:
        titles = {known: load(known).title for known in known_scenarios()}
        return finish(
            {"scenarios": titles}, as_json, False, [f"{known:<14} {title}" for known, title in titles.items()]
        )
    chosen = load(name)
    place = chosen.geography.place
    columns = [place, *(column for attribute in chosen.schema.attributes for column in attribute.readings[0].columns)]
    tables = [{"table": t.name, "level": t.level, "lines": len(t.lines), "title": t.title} for t in chosen.tables]
    lines = [chosen.title, f"levels: {', '.join(chosen.geography.levels)}", f"record columns: {', '.join(columns)}"]
    lines += [f"    {t.name:<8} {t.level:<10} {len(t.lines):>4} lines  {t.title}" for t in chosen.tables]
    said = {"scenario": chosen.name, "title": chosen.title, "levels": list(chosen.geography.levels), "columns": columns}
    return finish({**said, "tables": tables}, as_json, False, lines)


def _finding(finding: Finding) -> dict[str, Any]:
    said = asdict(finding)
    said["cells"] = [{"geoid": finding.geoid, **cell} for cell in said["cells"]]
    said["suspects"] = [
        {"variable": suspect.cell.variable, "value": suspect.cell.lower, "would_agree": suspect.agrees}
        for suspect in finding.suspects
    ]
    return said


def _spoken(finding: Finding, others: Sequence[Finding]) -> list[str]:
    lines = [f"{finding.level} {finding.geoid}: {finding.statement}"]
    if 0 < len(finding.suspects) <= 3:
        mended = " or ".join(f"{s.cell.variable} were {s.agrees}" for s in finding.suspects)
        lines.append(f"    everything at this place would agree if {mended}")
    inside = [f for f in others if f is not finding and f.level != finding.level and f.geoid.startswith(finding.geoid)]
    if inside and any(cell.summed for cell in finding.cells):
        lines.append(f"    perhaps because of {inside[0].level} {inside[0].geoid}, which lies in it")
    return lines


def _printable(text: str) -> str:
    """Text in which a stray line end or escape sequence of a file is spelt out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def main(arguments: list[str] | None = None, *, aloud: bool = True) -> int:
    """Run the command line and return its exit code; every ending has its own. Not `aloud`: another command says it."""
    given = sys.argv[1:] if arguments is None else arguments
    fail: Callable[..., int] = partial(_fail, as_json="--json" in given, aloud=aloud)
    try:
        result = app(args=given, prog_name="glasshouse", standalone_mode=False)
        if result == INTERRUPTED:  # how typer passes on Ctrl-C
            return fail(STOPPED, code=INTERRUPTED)
        return result if isinstance(result, int) else DONE
    except typer.Exit as error:
        return error.exit_code
    except typer.TyperException as error:
        return fail(f"{error.format_message()} (glasshouse COMMAND --help lists its options)", code=BAD_INPUT)
    except InputError as error:
        return fail(*error.args, code=BAD_INPUT)
    except Interrupted as error:
        return fail(str(error), code=INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        return fail(STOPPED, code=INTERRUPTED)
    except BrokenPipeError:
        return DONE
    except OSError as error:
        return fail(f"{error.filename or 'output'}: {error.strerror or error}", code=BAD_INPUT)
    except Exception as error:  # the last resort: say that it is our fault, without the data an exception may carry
        if "--verbose" in given or "-v" in given:
            say(*(line.rstrip() for line in traceback.format_tb(error.__traceback__)))
        at = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(at.filename).name}:{at.lineno}"
        return fail(
            f"a bug of ours ({type(error).__name__} at {place}); please report it, with --verbose for the details",
            code=OUR_BUG,
        )


def _fail(*mistakes: str, code: int, as_json: bool, aloud: bool) -> int:
    """Say what went wrong, on one line for each mistake."""
    lines = [_printable(str(mistake)) for mistake in mistakes]
    if aloud:
        say(*(f"glasshouse: {line}" for line in lines))
    if as_json:
        print(json.dumps({"error": "\n".join(lines), "exit_code": code}))
    return code


def entry() -> None:
    """What the installed command calls."""
    sys.exit(main())
