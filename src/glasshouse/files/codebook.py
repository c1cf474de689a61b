"""What do the columns of an NHGIS extract mean? Its codebook says which official table each code stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from glasshouse.errors import InputError
from glasshouse.scenarios.load import Scenario, spell


@dataclass(frozen=True)
class Codebook:
    """Names of columns that stand for official variables."""

    names: Mapping[str, str] = field(default_factory=dict)

    def translate(self, name: str) -> str:
        """The official name of a column; any other name stays as it is."""
        return self.names.get(name, name)

    @staticmethod
    def read(path: Path, scenario: Scenario) -> Codebook:
        """Read the text that NHGIS sends with an extract: pairs of `Source code:` and `NHGIS code:` lines."""
        try:
            text = path.read_text(encoding="latin-1")  # codes are ASCII; names of areas may be in either encoding
        except OSError as error:
            raise InputError(f"{path}: not a readable codebook ({error.__class__.__name__})") from None
        pairs = re.findall(r"Source code:\s*(\S+)\s+NHGIS code:\s*(\S+)", text)
        lines = {entry.table: entry.lines for entry in scenario.catalogue}
        if not pairs:
            raise InputError(
                f"{path}: no 'Source code:' and 'NHGIS code:' lines; expected the codebook of an NHGIS extract"
            )
        return Codebook(
            {
                f"{code}{line:03d}": spell(scenario.patterns[0], table, line)
                for table, code in pairs
                for line in range(1, lines.get(table, 0) + 1)
            }
        )

    @staticmethod
    def beside(path: Path, scenario: Scenario) -> Codebook:
        """The codebook that lies beside an extract under its usual name, if there is one."""
        stem = path.name.removesuffix(".gz").removesuffix(".csv")
        usual = path.with_name(f"{stem}_codebook.txt")
        return Codebook.read(usual, scenario) if usual.is_file() else Codebook()
