"""Which scenarios are there, and what is in one? Its tables, and the columns of its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.result import Result
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.scenarios.load import Scenario


@dataclass(frozen=True)
class Listed:
    """The built-in scenarios with their titles, or what is in one."""

    scenarios: Mapping[str, str] | None = None
    scenario: str | None = None
    title: str | None = None
    levels: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    tables: tuple[Mapping[str, str | int], ...] | None = None
    lines: tuple[Mapping[str, str], ...] | None = None


class Scenarios(Result[Listed]):
    """Scenarios, or one of them."""


@command(example="glasshouse scenarios sf1-person")
def scenarios(
    name: Annotated[str | None, Opt("A scenario; without one, the built-in ones are listed.")] = None,
    *,
    lines: Annotated[bool, Opt("List what every line of its tables means: variable, level and words.")] = False,
) -> Scenarios:
    """List scenarios, or the tables and record columns of one."""
    from glasshouse.engine.lifecycle import told
    from glasshouse.scenarios.load import known_scenarios, load

    if name is None and lines:
        raise InputError("--lines needs a scenario: glasshouse scenarios NAME --lines")
    if name is None:
        titles = {known: load(known).title for known in known_scenarios()}
        width = max(map(len, titles))
        listing = [f"{known:<{width}} {title}" for known, title in titles.items()]
        return Scenarios(told("scenarios", Listed(scenarios=titles), listing))
    chosen = load(name)
    place = chosen.geography.place
    columns = (place, *(column for attribute in chosen.schema.attributes for column in attribute.readings[0].columns))
    said = [chosen.title, f"levels: {', '.join(chosen.geography.levels)}", f"record columns: {', '.join(columns)}"]
    said += [f"    {t.name:<8} {t.level:<10} {len(t.lines):>4} lines  {t.title}" for t in chosen.tables]
    tables: tuple[Mapping[str, str | int], ...] = tuple(
        {"table": t.name, "level": t.level, "lines": len(t.lines), "title": t.title} for t in chosen.tables
    )
    every = tuple(_lines(chosen)) if lines else None
    for one in every or ():
        said.append(f"{one['variable']:<12} {one['level']:<10} {one['words']}")
    listed = Listed(None, chosen.name, chosen.title, tuple(chosen.geography.levels), columns, tables, every)
    return Scenarios(told("scenarios", listed, said))


def _lines(chosen: Scenario) -> Iterator[Mapping[str, str]]:
    """Every line of every table: its name, the level of its table, what it counts, and how a table prints it."""
    for table in chosen.tables:
        for line in table.lines:
            words = {"words": chosen.said(table, line), "label": line.label}
            yield {"table": table.name, "variable": line.variable, "level": table.level, **words}


def scenario(name: str) -> Scenario:
    """A scenario by its name, or by the path of its folder."""
    from glasshouse.scenarios.load import load

    return load(str(name))
