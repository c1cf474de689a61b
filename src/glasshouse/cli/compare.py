"""The command that puts every protection through the same attacks: compare."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glasshouse.cli.attacking import Out, Overwrite, Workers
from glasshouse.cli.options import Json, Quiet, Verbose, inputs_of, refuse_no_file
from glasshouse.cli.session import in_folder, refuse_nowhere
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    import polars as pl

    from glasshouse.commands.work.compare import Compared
    from glasshouse.engine.folder import Folder

app = typer.Typer(rich_markup_mode=None)

MEASURES, SUMMARY, FRONT, CHART = "measures.parquet", "summary.parquet", "front.parquet", "risk-utility.svg"
USES_FILE = "uses.parquet"  # every error of every table, and what typical uses make of them


@app.command(
    epilog="Example:  glasshouse compare county --out compared\n\n"
    "DIR is a folder of synthesize, or several folders of compare, whose results are put side by side. With data of "
    "your own say --truth and --attacker. A plan is a TOML file with settings; --show-plan prints the built-in one."
)
def compare(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[DIR]...", help="A county of synthesize, or folders of compare.")
    ] = None,
    plan: Annotated[
        str, typer.Option("--plan", metavar="NAME|FILE", help="Which protections: a plan by name, or a TOML file.")
    ] = "standard",
    only: Annotated[
        list[str] | None, typer.Option("--setting", metavar="NAME", help="Only this setting of the plan; repeatable.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=0, help="How many of the plan's seeds; 0 for all.")] = 0,
    scenario: Annotated[
        str, typer.Option("--scenario", "-s", help="The tables that are published, instead of those of the plan.")
    ] = "",
    truth: Annotated[
        Path | None, typer.Option("--truth", metavar="RECORDS", help="The true records, instead of a county.")
    ] = None,
    attacker: Annotated[
        list[str] | None,
        typer.Option("--attacker", metavar="[NAME=]FILE", help="A list of names, place, sex and age; repeatable."),
    ] = None,
    blocks: Annotated[
        Path | None, typer.Option("--blocks", metavar="FILE", help="Every place there is, with x and y if known.")
    ] = None,
    out: Out = None,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Keep the files of every run there: they hold records.")
    ] = None,
    show_plan: Annotated[bool, typer.Option("--show-plan", help="Print the plan, and stop.")] = False,
    overwrite: Overwrite = False,
    workers: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """The same attacks on every protection, side by side: risk, and what is left of the data's use."""
    from dataclasses import replace

    from glasshouse.commands.compare_plan import plan_path, read_plan
    from glasshouse.engine.manifest import Manifest
    from glasshouse.scenarios.load import load

    if show_plan:
        print(plan_path(plan).read_text(encoding="utf-8"), end="")
        return 0
    refuse_nowhere(out, as_json=as_json)
    given = folders or []
    if given and all((folder / MEASURES).is_file() for folder in given):
        return _side_by_side(given, out, overwrite=overwrite, as_json=as_json, quiet=quiet)
    chosen = replace(read_plan(plan), chosen=tuple(only or ()))
    if seeds > len(chosen.seeds):
        raise InputError(f"--seeds {seeds}: the plan has {len(chosen.seeds)}; add to its seeds = [...]")
    chosen = replace(chosen, seeds=chosen.seeds[: seeds or None])
    chosen = replace(chosen, scenario=scenario or chosen.scenario)
    load(chosen.scenario)  # refused here, before any work
    truth, lists, blocks = _data(given, truth, attacker or [], blocks, chosen.attackers)
    inputs = {"truth": truth, "plan": plan_path(plan)} | {f"attacker {name}": path for name, path in lists}
    inputs |= {"blocks": blocks} if blocks else {}
    inputs |= {f"{one.name}: {key}": path for one in chosen.settings for key, path in one.files.items()}
    scenarios = {str(one.options["scenario"]) for one in chosen.settings if "scenario" in one.options}
    for name in sorted({chosen.scenario, *scenarios}):
        inputs |= {f"{name}: {role}": path for role, path in inputs_of({}, name, []).items()}
    for path in inputs.values():
        refuse_no_file(path)
    parameters = {
        "plan": chosen.name, "settings": [one.name for one in chosen.asked], "seeds": list(chosen.seeds),
        "scenario": chosen.scenario, "attackers": [name for name, _ in lists],
    }  # fmt: skip
    manifest = Manifest("compare", parameters, inputs)

    def work(folder: Folder) -> dict[str, Any]:
        from glasshouse.commands.work.compare import Compared

        job = Compared(chosen, truth, lists, blocks, folder.ledger.folder, keep)
        return _work(job, folder, workers=workers, overwrite=overwrite, quiet=quiet)

    return in_folder(
        manifest, work, out=out, overwrite=overwrite, as_json=as_json, quiet=quiet, unit="setting and seed"
    )


def _data(
    folders: list[Path], truth: Path | None, attackers: list[str], blocks: Path | None, wanted: tuple[str, ...]
) -> tuple[Path, tuple[tuple[str, Path], ...], Path | None]:
    """The truth, the lists and the places: those of a county, or as they are given."""
    from glasshouse.commands.work.linking import listed

    if len(folders) > 1:
        raise InputError("several folders, and not all of them of compare; expected one county, or results of compare")
    county = folders[0] if folders else None
    if county is not None and not (county / "cef.parquet").is_file():
        raise InputError(
            f"{county}: no cef.parquet and no {MEASURES} there; expected a folder of synthesize, or of compare"
        )
    if county is None and truth is None:
        raise InputError("nothing to compare on: name a folder of synthesize, or --truth RECORDS and --attacker FILE")
    lists = tuple(listed(*_pair(one)) for one in attackers)
    if county is not None:
        lists = lists or tuple((name, county / f"{name}.parquet") for name in wanted)
        blocks = blocks or (county / "blocks.parquet" if (county / "blocks.parquet").is_file() else None)
        truth = truth or county / "cef.parquet"
    if not lists:
        raise InputError("--attacker is missing: a list of people's names (person_id), places, sexes and ages")
    assert truth is not None
    return truth, lists, blocks


def _pair(given: str) -> tuple[str, Path]:
    name, equals, rest = given.partition("=")
    return (name, Path(rest)) if equals else ("", Path(given))


def _work(job: Compared, folder: Folder, *, workers: int | None, overwrite: bool, quiet: bool) -> dict[str, Any]:
    from glasshouse.assess.comparison import MEASURES as SCHEMA
    from glasshouse.commands.work.compare import USES, compare_one, runs
    from glasshouse.engine.progress import progress
    from glasshouse.engine.runner import Tally, put_together, run
    from glasshouse.engine.workers import Crew

    every = list(runs(job.plan))
    with ExitStack() as stack:
        about = {"command": "compare", "parameters": dict(folder.manifest.parameters)}
        ledger = stack.enter_context(folder.working(about, overwrite=overwrite))
        bar = stack.enter_context(progress("compare", shown=not quiet))
        ledger.tell(units=len(every))

        def watch(tally: Tally) -> None:
            bar(tally.units / len(every), f"{tally.units} of {len(every)} runs")

        tally = run(job, compare_one, every, ledger, Crew(workers or len(os.sched_getaffinity(0))), watch)
        folder.make_room()
        put_together(ledger, folder.path, {"measures": SCHEMA, "uses": USES})
        refused = {_name(every, code): why for code, why in tally.refused.items()}
        said, outputs = _conclude(folder.path, job.plan.title)
        said |= {"refused": refused, "bugs": tally.bugs, "stopped_by_clock": [], "runs": len(every)}
        said["truth"] = folder.manifest.hashes["truth"]
        said["notes"] += [
            f"note: '{one.name}' publishes some tables only; its error is over those, not comparable with others"
            for one in job.plan.asked
            if "tables" in one.options
        ]
        folder.write(said, [MEASURES, USES_FILE, *outputs], cpu=tally.cpu, complete=tally.complete)
    if tally.complete:
        ledger.forget()
    return said


def _name(every: list[Any], code: str) -> str:
    one = next(run for run in every if run.code == code)
    return f"'{one.setting.name}', seed {one.seed}"


def _conclude(folder: Path, title: str) -> tuple[dict[str, Any], list[str]]:
    """The summary, the front and the chart from the measures in a folder; what is said of them."""
    import polars as pl

    from glasshouse.assess.comparison import COST, RISK, cost_of, front, summarised
    from glasshouse.files.output import row_writer
    from glasshouse.report.sections.comparison import risk_utility

    summary = summarised(pl.read_parquet(folder / MEASURES))
    points = front(summary)
    outputs = [SUMMARY, FRONT]
    for name, frame in ((SUMMARY, summary), (FRONT, points)):
        with row_writer(folder / name) as writer:
            writer.write(frame)
    if points.height:
        level = cost_of(summary).removeprefix(COST).replace("_", " ")
        risk_utility(f"{title}: risk against error", points, level).save(folder / CHART)
        outputs.append(CHART)
    best = points.filter(~pl.col("dominated")).sort("cost")["setting"].to_list()
    said = {
        "settings": points.height,
        "risk": RISK,
        "cost": cost_of(summary),
        "front": best,
        "lines": lines_of(summary, points, folder),
        "notes": _notes(summary),
    }
    return said, outputs


def _notes(summary: pl.DataFrame) -> list[str]:
    """What must be known of runs that did not go as they should."""
    import polars as pl

    from glasshouse.commands.work.compare import LEFT_OUT, NEAR, UNMATCHED

    notes = []
    for name, value in summary.filter(pl.col("measure") == LEFT_OUT).select("setting", "value").iter_rows():
        if value:
            notes.append(f"warning: '{name}': {value:g} units a run were left out, or stopped by the clock")
    for name, value in summary.filter(pl.col("measure") == UNMATCHED).select("setting", "value").iter_rows():
        if value > NEAR:
            notes.append(f"warning: '{name}': no budget with the noise asked for was found; it is {value:.0%} off")
    return notes


SHOWN = {
    "found_exposed": "exposed found", "precision_exposed": "precision", "agreement": "agreement",
    "certain": "certain", "table_error_block": "block error", "table_error_tract": "tract error",
}  # fmt: skip


def lines_of(summary: pl.DataFrame, points: pl.DataFrame, folder: Path) -> list[str]:
    """One table for people."""
    import polars as pl

    names = points["setting"].to_list()
    beaten = dict(zip(names, points["dominated"].to_list(), strict=True))
    width = max([len(name) for name in names] + [7])
    lines = [f"{'setting':{width}}  " + "  ".join(f"{word:>14}" for word in SHOWN.values()) + "  "]
    for name in names:
        cells = []
        for measure in SHOWN:
            some = summary.filter((pl.col("setting") == name) & (pl.col("measure") == measure))
            cells.append(f"{some['value'][0]:>14.1%}" if some.height and some["value"][0] is not None else f"{'-':>14}")
        lines.append(
            f"{name:{width}}  "
            + "  ".join(cells)
            + ("  another is better in both" if beaten[name] else "  on the front")
        )
    low, high = points["baseline"].min(), points["baseline"].max()
    if isinstance(low, float) and isinstance(high, float):
        guess = f"{low:.1%}" if low == high else f"{low:.1%} to {high:.1%}"
        lines.append(
            f"guessing from the same release finds {guess} of the exposed; means over seeds (intervals: {SUMMARY})"
        )
    return [*lines, f"-> {folder}"]


def _side_by_side(folders: list[Path], out: Path | None, *, overwrite: bool, as_json: bool, quiet: bool) -> int:
    """Results of several comparisons together: settings of the same name are the same setting."""
    import polars as pl

    from glasshouse.assess.comparison import MEASURES as SCHEMA
    from glasshouse.engine.folder import read_manifest
    from glasshouse.engine.manifest import Manifest
    from glasshouse.files.output import row_writer

    inputs = {f"compared {number}": folder / MEASURES for number, folder in enumerate(folders, start=1)}
    manifest = Manifest("compare", {"folders": len(folders)}, inputs)

    def work(folder: Folder) -> dict[str, Any]:
        frames = [pl.read_parquet(path) for path in inputs.values()]
        for path, frame in zip(inputs.values(), frames, strict=True):
            if frame.schema != SCHEMA:
                raise InputError(f"{path}: other columns than compare writes; was it made by another version?")
        truths = {str((read_manifest(one) or {}).get("counts", {}).get("truth")) for one in folders}
        if len(truths) > 1:
            raise InputError("the comparisons were made with other records; side by side stands what has one truth")
        _refuse_clash(pl.concat(frames))
        about = {"command": "compare", "parameters": dict(manifest.parameters)}
        with folder.working(about, overwrite=overwrite) as ledger:
            folder.make_room()
            with row_writer(folder.path / MEASURES) as writer:
                writer.write(pl.concat(frames).unique(maintain_order=True))
            said, outputs = _conclude(folder.path, "Side by side")
            said |= {"refused": {}, "bugs": 0, "stopped_by_clock": [], "truth": truths.pop()}
            folder.write(said, [MEASURES, *outputs], cpu=0.0, complete=True)
        ledger.forget()
        return said

    return in_folder(manifest, work, out=out, overwrite=overwrite, as_json=as_json, quiet=quiet, unit="comparison")


def _refuse_clash(measures: pl.DataFrame) -> None:
    """One setting with one seed has one answer, wherever it was made; what is there twice counts once."""
    import polars as pl

    once = measures.unique(maintain_order=True)
    twice = once.filter(pl.struct("setting", "seed", "kind", "measure").is_duplicated())
    kinds = once.select("setting", "protect").unique().filter(pl.col("setting").is_duplicated())
    for frame, what in ((kinds, "is the name of two protections"), (twice, "has other results with the same seed")):
        if frame.height:
            raise InputError(f"setting '{frame['setting'][0]}' {what} in these comparisons; give one another name")
