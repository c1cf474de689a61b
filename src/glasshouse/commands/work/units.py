"""What does an attack do in its folder? It reads the file, does the units, puts their rows together, says the end."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from typing import TypeVar

from glasshouse.commands.attack import Asking, Attack, Attacked
from glasshouse.commands.options import notes_on
from glasshouse.engine.job import Asked
from glasshouse.engine.lifecycle import Made, Workplace
from glasshouse.engine.progress import say
from glasshouse.engine.runner import Pace, put_together, run, timings
from glasshouse.files.output import row_writer
from glasshouse.model.geography import Geography, plural
from glasshouse.program.search import is_compiled

S = TypeVar("S", bound=Attacked)
MANY = 50  # units that take a while


def _only(asking: Asking, items: Iterator[Asked], there: Collection[str]) -> tuple[Iterator[Asked], int]:
    """The units that are asked for, and how many they are."""
    if not asking.units:
        return items, len(there)
    wanted = frozenset(asking.units)
    return (item for item in items if item.code in wanted), len(wanted)


def _not_all_named(geography: Geography, elsewhere: int) -> str:
    """Where a file leaves out zeros and no table counts everybody, there may be places of which it says nothing."""
    places = plural(geography.place)
    return (
        f"warning: no table in the file counts every record of a {geography.place}, so there may be {places} that it "
        f"does not name, and nothing rests on there being none; {elsewhere:,} records of these areas were put there, "
        f"and are in no result (--all-places FILE says which {places} there are)"
    )


def units_done(attack: Attack[S], asking: Asking, at: Workplace) -> Made[S]:
    """Do the units, put the files together, say what came of it."""
    if not is_compiled():
        say("The core is compiled for this machine first, once; that takes about half a minute.")
    file = asking.read.open(asking.tables, asking.scenario)
    geography, assume = asking.scenario.geography, asking.read.assume_published
    pace = Pace(at.bar, geography)
    releases = file.releases(assume=assume, near=at.ledger.folder, watch=pace.reading, units=asking.units)
    opened = attack.open(asking, file, releases)
    items, number = _only(asking, opened.items, opened.codes)
    pace.begin(number)
    at.ledger.tell(units=pace.units)
    if asking.run.out and pace.units >= MANY and not sys.stderr.isatty():
        units = geography.told({geography.unit: pace.units})
        say(f"note: {units} to do; glasshouse status {asking.run.out} tells how far it is")
    prepared = attack.prepare(asking, opened.job, items, at.ledger.folder)
    tally = run(prepared.job, prepared.work, prepared.kinds, prepared.items, at.ledger, asking.run.crew, pace)
    notes = [*notes_on(file, asking.scenario, assume), *attack.notes(asking, prepared.job, tally), *prepared.notes]
    if attack.puts_records and prepared.job.area_level and not file.seen.names_places(asking.scenario):
        notes.append(_not_all_named(geography, tally.counts["elsewhere"]))
    if tally.clocked:
        units = geography.told({geography.unit: len(tally.clocked)})
        notes.append(f"warning: the clock (--seconds) stopped work on {units}; the same command does them again")
    put_together(at.ledger, at.path, prepared.kinds, prepared.order)
    with row_writer(at.path / "timings.parquet") as writer:
        writer.write(timings(at.ledger, geography))
    level = opened.job.area_level or geography.place
    said = Attacked(asking.scenario.name, level, asking.seed, tally.units, tally.earlier)
    concluded = attack.conclude(asking, prepared.job, tally, at.path, said)
    outputs = [*(f"{name}.parquet" for name in prepared.kinds), *concluded.files]
    return Made(concluded.summary, outputs, concluded.lines, notes, tally, concluded.findings)
