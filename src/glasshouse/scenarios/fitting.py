"""Which built-in scenario of persons has records with these columns? Asked where a command needs none to be named."""

from __future__ import annotations

from collections.abc import Collection

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.scenarios.households import Household, spelled
from glasshouse.scenarios.load import Scenario, known_scenarios, load


def of_persons(columns: Collection[str]) -> tuple[Scenario, Household]:
    """The scenario that says what households are and lacks the fewest of its columns here.

    Scenarios that say the same of them are as good as each other; between others, one must be named.
    """
    found = [(one, one.household) for one in map(load, known_scenarios()) if one.household is not None]
    if not found:
        raise GlasshouseBug("no built-in scenario says what a household is")
    missing = [len({*home.columns(one.schema), one.geography.place}.difference(columns)) for one, home in found]
    fitting = [pair for pair, lacks in zip(found, missing, strict=True) if lacks == min(missing)]
    if any(_told(*pair) != _told(*fitting[0]) for pair in fitting):
        names = ", ".join(one.name for one, _ in fitting)
        raise InputError(f"the columns of the records fit several scenarios: {names}; choose one with --scenario")
    return fitting[0]


def _told(scenario: Scenario, home: Household) -> tuple[object, ...]:
    """All that a swap goes by."""
    names = [*home.adult.by_attribute, *home.stand_out]
    spellings = [(spelled(scenario.schema.attribute(name)), scenario.schema.attribute(name).levels) for name in names]
    return home, scenario.geography.place, dict(scenario.geography.lengths), spellings
