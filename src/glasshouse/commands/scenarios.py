"""Which scenarios are there, and what is in one? Its tables, and the columns of its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.result import Result

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


class Scenarios(Result[Listed]):
    """Scenarios, or one of them."""


@command(example="glasshouse scenarios sf1-person")
def scenarios(
    name: Annotated[str | None, Opt("A scenario; without one, the built-in ones are listed.")] = None,
) -> Scenarios:
    """List scenarios, or the tables and record columns of one."""
    from glasshouse.engine.lifecycle import told
    from glasshouse.scenarios.load import known_scenarios, load

    if name is None:
        titles = {known: load(known).title for known in known_scenarios()}
        lines = [f"{known:<14} {title}" for known, title in titles.items()]
        return Scenarios(told("scenarios", Listed(scenarios=titles), lines))
    chosen = load(name)
    place = chosen.geography.place
    columns = (place, *(column for attribute in chosen.schema.attributes for column in attribute.readings[0].columns))
    lines = [chosen.title, f"levels: {', '.join(chosen.geography.levels)}", f"record columns: {', '.join(columns)}"]
    lines += [f"    {t.name:<8} {t.level:<10} {len(t.lines):>4} lines  {t.title}" for t in chosen.tables]
    tables: tuple[Mapping[str, str | int], ...] = tuple(
        {"table": t.name, "level": t.level, "lines": len(t.lines), "title": t.title} for t in chosen.tables
    )
    listed = Listed(None, chosen.name, chosen.title, tuple(chosen.geography.levels), columns, tables)
    return Scenarios(told("scenarios", listed, lines))


def scenario(name: str) -> Scenario:
    """A scenario by its name, or by the path of its folder."""
    from glasshouse.scenarios.load import load

    return load(str(name))
