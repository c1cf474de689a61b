"""Which other scenario knows this variable, or these tables? For whoever named the wrong one."""

from __future__ import annotations

from collections.abc import Iterable

from glasshouse.scenarios.load import Scenario, known_scenarios, load


def scenarios_with_variable(name: str, scenario: Scenario) -> list[str]:
    """Other built-in scenarios in which it is official; if some use its table, these."""
    known = [other for other in _others(scenario) if name in other.official]
    used = [other for other in known if other.official[name][0] in other.by_table]
    return [other.name for other in used or known]


def scenarios_with_tables(tables: Iterable[str], scenario: Scenario) -> list[str]:
    """Other built-in scenarios that use one of the tables."""
    wanted = set(tables)
    return [other.name for other in _others(scenario) if wanted & set(other.by_table)]


def scenarios_with_columns(columns: Iterable[str]) -> list[str]:
    """Built-in scenarios whose variables most of the columns are, of those that look like a variable at all."""
    names = set(columns)
    known = {name: load(name) for name in known_scenarios()}
    used = {
        name: sum(column in one.official and one.official[column][0] in one.by_table for column in names)
        for name, one in known.items()
    }
    most = max(used.values(), default=0)
    return [name for name, number in used.items() if number == most and number > 1]


def _others(scenario: Scenario) -> list[Scenario]:
    return [load(name) for name in known_scenarios() if name != scenario.name]
