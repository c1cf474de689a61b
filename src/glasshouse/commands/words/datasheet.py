"""What should a reader know of a synthetic county? One page beside its files."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from glasshouse.files.output import private_file
from glasshouse.population.preset import Preset


def datasheet(folder: Path, preset: Preset, parameters: Mapping[str, Any], counts: Mapping[str, Any]) -> None:
    """Write datasheet.md."""
    template = (resources.files("glasshouse") / "commands" / "words" / "datasheet.md").read_text(encoding="utf-8")
    text = template.format(
        preset=preset.name,
        title=preset.title,
        seed=parameters["seed"],
        records=counts["records"],
        households=counts["households"],
        commercial=parameters["commercial"],
        commercial_rows=counts["commercial_records"],
        data_defined=counts["data_defined"],
        blocks=counts["blocks"],
        share=counts["data_defined"] / counts["records"],
        swapped=counts["swapped_households"],
        swap_base=parameters["swap_base"],
        swap_risky=parameters["swap_risky"],
        subsidised=counts["subsidised_households"],
        violations=counts["violations"],
        alpha=parameters["alpha"],
    )
    with private_file(folder / "datasheet.md") as stream:
        stream.write(text.encode())
