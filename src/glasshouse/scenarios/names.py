"""How does an office call a variable whose name follows from no pattern? A list of names beside the scenario."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping
from pathlib import Path

from glasshouse.errors import InputError, unknown
from glasshouse.limits import NAME_LENGTH, SPELLINGS, TOML_BYTES
from glasshouse.model.release import Table
from glasshouse.text import harmful

COLUMNS = ("name", "variable")


def read(path: Path, tables: Collection[Table]) -> dict[str, tuple[str, int]]:
    """Names of variables, with their table and line. Each is of one variable; others have none."""
    known = {line.variable: (table.name, number) for table in tables for number, line in enumerate(table.lines, 1)}
    if path.is_file() and path.stat().st_size > TOML_BYTES:
        raise InputError(f"{path.name}: more than {TOML_BYTES >> 20} MiB; expected a list of names of at most that")
    found: dict[str, tuple[str, int]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        try:
            rows = csv.DictReader(file)
            if not set(COLUMNS) <= set(rows.fieldnames or ()):
                raise InputError(f"{path.name}: expected the columns name and variable")
            for line, row in enumerate(rows, 2):
                if len(found) >= SPELLINGS:
                    raise InputError(f"{path.name}: more than {SPELLINGS:,} names; expected fewer")
                try:
                    found[_name(row, found)] = known[row["variable"] or ""]
                except KeyError:
                    raise InputError(
                        f"{path.name}, line {line}: {unknown('variable', row['variable'], known)}"
                    ) from None
                except InputError as error:
                    error.add_where(f"{path.name}, line {line}")
                    raise
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"{path.name}: cannot be read ({error}); expected a CSV file in UTF-8") from None
    return found


def _name(row: Mapping[str, str], known: Collection[str]) -> str:
    name = row["name"] or ""
    if not name or len(name) > NAME_LENGTH or harmful(name) is not None or name in known:
        raise InputError(f"the name is '{name[:40]}'; expected one that no other variable has")
    return name
