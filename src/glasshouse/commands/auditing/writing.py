"""Which files does an audit write? The report in both versions, a workbook, every number, figures, a summary."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from glasshouse.commands.auditing.config import Config
from glasshouse.commands.auditing.findings import Findings
from glasshouse.commands.auditing.steps import Step
from glasshouse.engine.manifest import Manifest, code_hash, versions
from glasshouse.files.output import private_file, private_folder
from glasshouse.report.description import Chart, Map, Report
from glasshouse.report.publish import publish
from glasshouse.report.render.drawing import svg
from glasshouse.report.render.numbers import numbers
from glasshouse.report.render.page import page
from glasshouse.report.render.sheets import sheets
from glasshouse.report.render.vega import png

INTERNAL, PUBLIC, FIGURES = "report.html", "report-public.html", "figures"


def certificate(config: Config, manifest: Manifest, steps: Sequence[Step]) -> list[tuple[str, str]]:
    """What this run was: enough to do it again, and to see that it is the same."""
    noise = config.noise
    told = [
        ("run", manifest.key()), ("title", config.title), ("scenario", Path(config.scenario).name),
        ("seed", str(config.seed)), ("steps", ", ".join(step.name for step in steps if not step.without)),
        ("left out", ", ".join(step.name for step in steps if step.without) or "nothing"),
        ("privacy budget looked at", "none" if noise is None else noise.budget or f"rho {noise.rho:g}"),
        ("budget of time", "none" if config.minutes is None else f"{config.minutes:g} minutes"),
        ("public threshold", f"{config.public.threshold} persons"),
    ]  # fmt: skip
    told += [(f"input: {role}", f"SHA-256 {digest}") for role, digest in sorted(manifest.hashes.items())]
    told += [(f"version of {name}", version) for name, version in sorted(versions().items())]
    return [*told, ("hash of the code", code_hash())]


def write_report(found: Findings, folder: Path, threshold: int, *, public: bool) -> list[str]:
    """Write every file, and return their names. With `public` only what others may read, and the summary."""
    written = []

    def put(name: str, content: bytes) -> None:
        with private_file(folder / name) as stream:
            stream.write(content)
        written.append(name)

    shared = publish(found.report, threshold)
    put(PUBLIC, page(shared).encode())
    (folder / PUBLIC).chmod(0o644)  # the one file that is for everybody
    report: Report = shared if public else found.report
    if not public:
        put(INTERNAL, page(report).encode())
    put("tables.xlsx", sheets(report))
    put("numbers.csv", numbers(report).encode())
    put("summary.json", (json.dumps(found.summary, indent=2, sort_keys=True) + "\n").encode())
    if public:
        with suppress(FileNotFoundError):
            (folder / INTERNAL).unlink()
    return [*written, *_figures(report, folder / FIGURES)]


def _figures(report: Report, folder: Path) -> list[str]:
    """Every chart and map as SVG and PNG, for papers and decks; those of another version go."""
    shutil.rmtree(folder, ignore_errors=True)
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
