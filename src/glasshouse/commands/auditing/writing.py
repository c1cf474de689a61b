"""Which files does an audit write? The report in both versions, a workbook, every number, figures, a summary."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from glasshouse.commands.auditing.config import Config
from glasshouse.commands.auditing.findings import Findings
from glasshouse.commands.auditing.steps import Step
from glasshouse.engine.manifest import Manifest, code_hash, versions
from glasshouse.engine.plain import plain
from glasshouse.errors import InputError
from glasshouse.files.output import private_file, private_folder
from glasshouse.report.attacked import given_away
from glasshouse.report.description import Chart, Map, Report
from glasshouse.report.publish import publish
from glasshouse.report.render.drawing import svg
from glasshouse.report.render.numbers import numbers
from glasshouse.report.render.page import page
from glasshouse.report.render.sheets import sheets
from glasshouse.report.render.vega import png
from glasshouse.report.words import phrase

INTERNAL, PUBLIC, FIGURES = "report.html", "report-public.html", "figures"


def certificate(config: Config, manifest: Manifest, steps: Sequence[Step]) -> list[tuple[str, str]]:
    """What this run was: enough to do it again, and to see that it is the same."""
    noise = config.noise
    told = [
        ("title", config.title), ("scenario", Path(config.scenario).name),
        ("seed", str(config.seed)), ("steps", ", ".join(step.name for step in steps if not step.without)),
        ("left out", ", ".join(step.name for step in steps if step.without) or "nothing"),
        ("privacy budget looked at", "none" if noise is None else noise.budget or f"rho {noise.rho:g}"),
        ("budget of time", "none" if config.minutes is None else f"{config.minutes:g} minutes"),
        ("public threshold", f"{config.public.threshold} persons"),
    ]  # fmt: skip
    told += [(f"version of {name}", version) for name, version in sorted(versions().items())]
    return [*told, ("hash of the code", code_hash())]


def digests(manifest: Manifest) -> list[tuple[str, str]]:
    """The digest of the run and of every input: for the office alone, since they can be used to try out a guess."""
    return [("run", manifest.key()), *((f"input: {role}", one) for role, one in sorted(manifest.hashes.items()))]


def write_report(
    found: Findings, folder: Path, threshold: int, *, public: bool, key: bytes | None = None
) -> tuple[list[str], tuple[str, ...]]:
    """Write every file; their names, and why there is no public one, if it would give somebody away.

    With `public` only what others may read is written, and the summary.
    """
    written = []

    def put(name: str, content: bytes) -> None:
        with private_file(folder / name) as stream:
            stream.write(content)
        written.append(name)

    shared = publish(found.report, threshold, key)
    away = given_away(found.report, shared, threshold)
    refused = tuple(phrase("page.gives_away", where=", ".join(away), file=PUBLIC) for _ in away[:1])
    if refused:
        if public:
            raise InputError(*refused)
    else:
        put(PUBLIC, page(shared).encode())
        (folder / PUBLIC).chmod(0o644)  # the one file that is for everybody
    report: Report = shared if public else found.report
    if not public:
        put(INTERNAL, page(report).encode())
    put("tables.xlsx", sheets(report))
    put("numbers.csv", numbers(report).encode())
    put("summary.json", (json.dumps(plain(found.summary), indent=2, sort_keys=True) + "\n").encode())
    return [*written, *_figures(report, folder / FIGURES)], refused


def earlier_files(folder: Path) -> list[str]:
    """What an earlier audit may have written that must not stay beside another: it goes unless it is written anew."""
    return [INTERNAL, PUBLIC, *(f"{FIGURES}/{path.name}" for path in (folder / FIGURES).glob("*") if path.is_file())]


def _figures(report: Report, folder: Path) -> list[str]:
    """Every chart and map as SVG and PNG, for papers and decks."""
    written = []
    with private_folder(folder):
        for section in report.sections:
            for block in section.blocks:
                if isinstance(block, (Chart, Map)):
                    drawn = svg(block, themed=False)
                    for suffix, content in ((".svg", drawn.encode()), (".png", png(drawn))):
                        with private_file(folder / f"{block.name}{suffix}") as stream:
                            stream.write(content)
                        written.append(f"{folder.name}/{block.name}{suffix}")
    return written
