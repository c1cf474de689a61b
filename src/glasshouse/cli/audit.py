"""The command that does all of it and writes one report: audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glasshouse.cli.options import (
    Executor,
    Json,
    Overwrite,
    Quiet,
    Verbose,
    Workers,
    chosen_scenario,
    finish,
    inputs_of,
    refuse_no_file,
    say,
)
from glasshouse.cli.session import in_folder, refuse_two_crews
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    from glasshouse.commands.auditing.config import Config
    from glasshouse.commands.auditing.files import Files
    from glasshouse.commands.auditing.steps import Step
    from glasshouse.engine.folder import Folder

app = typer.Typer(rich_markup_mode=None)


@app.command(
    epilog="Example:  glasshouse audit --out out/audit        (a synthetic county, some minutes)\n\n"
    "Your own:  glasshouse audit --show-config > mine.toml, edit it, glasshouse audit --config mine.toml --dry-run, "
    "then the same with --out DIR. Interrupted or killed, the same command goes on.\n\n"
    "Exit code 0: done. 1: a risk passes a threshold of the configuration (the last line says which). 2: bad input."
)
def audit(
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="A TOML file; default: a synthetic county.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder to write; the same command goes on in it.")
    ] = None,
    public: Annotated[
        bool,
        typer.Option("--public", help="Write the report, its workbook and figures only as the public may see them."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the steps and what they may take, and stop.")
    ] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the configuration's JSON Schema, and stop.")] = False,
    show_config: Annotated[
        bool, typer.Option("--show-config", help="Print the built-in configuration, or --config, and stop.")
    ] = False,
    overwrite: Overwrite = False,
    workers: Workers = None,
    executor: Executor = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """All of it, one report: what is certain, who is at risk, and what each protection would change."""
    from glasshouse.commands.auditing import config as audit_config
    from glasshouse.commands.auditing.files import files_of, refuse_unreadable
    from glasshouse.commands.auditing.steps import refuse_unknown, refuse_unmeasured, steps_of

    if schema:
        print(audit_config.schema())
        return 0
    path = audit_config.config_path(config)
    if show_config:
        print(path.read_text(encoding="utf-8"), end="")
        return 0
    chosen = audit_config.read_config(path)
    if out is None and not dry_run:
        raise InputError("--out is missing: say which folder to write (or --dry-run, which writes nothing)")
    refuse_two_crews(workers, executor)
    files = files_of(chosen, out or Path("audit"))
    steps = steps_of(chosen, files)
    refuse_unmeasured(chosen, steps)
    refuse_unknown(chosen)
    refuse_unreadable(chosen, files, chosen_scenario(chosen.scenario, ",".join(chosen.tables), []))
    if dry_run:
        return _planned(chosen, files, steps, as_json=as_json)
    from glasshouse.engine.manifest import Manifest

    inputs = {"config": path, **files.given, **inputs_of({}, chosen.scenario, [])}
    for extra in (chosen.claims, chosen.occupancy):
        if extra is not None:
            name = Path(extra.scenario).name
            inputs |= {f"{name}: {role}": one for role, one in inputs_of({}, extra.scenario, []).items()}
    named = {
        "plan": chosen.protections and chosen.protections.plan, "budget": chosen.noise and chosen.noise.budget,
        "preset": chosen.synthetic and chosen.synthetic.preset,
    }  # fmt: skip
    inputs |= {role: Path(name) for role, name in named.items() if name and Path(name).is_file()}
    for one in inputs.values():
        refuse_no_file(one)
    manifest = Manifest("audit", {"title": chosen.title, "seed": chosen.seed, "public": public}, inputs)

    def work(folder: Folder) -> dict[str, Any]:
        return _work(chosen, files, steps, folder, public=public, overwrite=overwrite, workers=workers,
                     executor=executor, quiet=quiet or as_json)  # fmt: skip

    return in_folder(manifest, work, out=out, overwrite=overwrite, as_json=as_json, quiet=quiet, unit="step")


def _planned(config: Config, files: Files, steps: tuple[Step, ...], *, as_json: bool) -> int:
    """The steps, what they may take on two cores, and what is left out and why."""
    total = sum(step.seconds for step in steps if not step.without)
    said = {
        "command": "audit", "dry_run": True, "title": config.title, "persons_about": round(files.persons),
        "seconds_about": round(total),
        "steps": [
            {"step": step.name, "says": step.says, "seconds_about": None if step.without else round(step.seconds),
             "left_out": step.without or None}
            for step in steps
        ],
    }  # fmt: skip
    width = max(len(step.name) for step in steps)
    lines = [f"{config.title}: about {files.persons:,.0f} persons"]
    for step in steps:
        time = f"left out: {step.without}" if step.without else f"about {_told(step.seconds)}"
        lines.append(f"    {step.name:<{width}}  {step.says:<48}  {time}")
    lines.append(f"in all about {_told(total)} on two cores, and the report; nothing was done yet")
    return finish(said, as_json, False, lines)


def _told(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"


def _work(
    config: Config, files: Files, steps: tuple[Step, ...], folder: Folder, *, public: bool, overwrite: bool,
    workers: int | None, executor: str | None, quiet: bool,
) -> dict[str, Any]:  # fmt: skip
    from glasshouse.commands.auditing.findings import find
    from glasshouse.commands.auditing.steps import Caller
    from glasshouse.commands.auditing.writing import certificate, write_report
    from glasshouse.engine.ledger import Entry, Notes

    todo = [step for step in steps if not step.without]
    said: dict[str, dict[str, Any]] = {}
    about = {"command": "audit", "parameters": dict(folder.manifest.parameters)}
    with folder.working(about, overwrite=overwrite) as ledger:
        ledger.tell(units=len(todo))
        for number, step in enumerate(todo, start=1):
            if not quiet:
                say(f"[{number}/{len(todo)}] {step.name}: {step.says} (about {_told(step.seconds)})")
            said[step.name] = step.do(Caller(workers, executor, not quiet, said))
            if said[step.name].get("unchanged") and not quiet:
                say("    done before")
            ledger.put(Entry(f"{number:02d}{step.name}", Notes(), {}))
        folder.make_room()
        found = find(config, files, steps, certificate(config, folder.manifest, steps))
        outputs = write_report(found, folder.path, config.public.threshold, public=public)
        result = {
            **found.summary, "findings": list(found.passed), "refused": {}, "bugs": 0, "stopped_by_clock": [],
            "notes": _notes(said), "lines": _lines(found.summary, found.passed, folder.path, public=public),
        }  # fmt: skip
        stopped = any(told.get("stopped_by_clock") for told in said.values())  # such a step is done again next time
        folder.write(result, outputs, cpu=0.0, complete=not stopped)
    ledger.forget()
    return result


def _notes(said: dict[str, dict[str, Any]]) -> list[str]:
    """What steps left out, or could not do in time."""
    notes = []
    for name, told in said.items():
        if name == "compare":
            reasons = {what: why["reason"].partition(": ")[2] for what, why in told.get("refused", {}).items()}
            notes += [f"warning: {what} is left out: {why}" for what, why in reasons.items()]
        elif told.get("refused"):
            why = next(iter(told["refused"].values()))["reason"]
            notes.append(f"warning: {name}: {len(told['refused']):,} units were left out; the first: {why}")
        if told.get("stopped_by_clock"):
            notes.append(f"warning: {name}: {len(told['stopped_by_clock']):,} units were stopped by the clock")
        if told.get("agrees") is False:
            notes.append(f"warning: {name}: {len(told['findings']):,} places have numbers that cannot all be true")
    return notes


def _lines(summary: dict[str, Any], passed: tuple[str, ...], path: Path, *, public: bool) -> list[str]:
    def share(key: str) -> str:
        return "not measured" if summary[key] is None else f"{summary[key]:.1%}"

    guess = "" if summary["precision_guess"] is None else f" (guessing {summary['precision_guess']:.1%})"
    lines = [
        f"{summary['title']}: {summary['persons']:,} persons in {summary['blocks']:,} places",
        f"    certain records               {share('share_certain')}",
        f"    places with one solution      {share('zero_solvar_share')}",
        f"    could differ (solvar)         {share('solvar_mean')}",
        f"    precision, most exposed       {share('precision_exposed')}{guess}",
    ]
    front = [one["setting"] for one in summary["protections"] if not one["dominated"] and one["protect"]]
    if front:
        lines.append(f"    protections on the front      {'; '.join(front)}")
    lines += [f"    left out: {name}: {why}" for name, why in summary["skipped"].items()]
    lines.append(f"-> {path / ('report-public.html' if public else 'report.html')}")
    return [*lines, *(f"passed: {line}" for line in passed)]
