"""How is the answer of `bounds` shown? As one page: what is given away, and the office's tables as they are printed.

The internal page is for the owner alone: it has exact ranges of hidden numbers. The public one has shares by table, by
the rules of `report.publish`; what is hidden in the tables is hidden in it. The same results give the same bytes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from glasshouse.files.output import private_file
from glasshouse.report.attacked import given_away
from glasshouse.report.description import Report, Section
from glasshouse.report.publish import THRESHOLD, Rule, publish
from glasshouse.report.sections.bounds import Bounds, headline, verdicts
from glasshouse.report.sections.bounds import given_away as bounds_section
from glasshouse.report.sections.methods import definitions, terms_of
from glasshouse.report.sections.printed import as_printed
from glasshouse.report.words import phrase
from glasshouse.scenarios.load import Scenario

PAGE, PUBLIC_PAGE = "bounds.html", "bounds-public.html"


def sections(found: Bounds) -> tuple[Section, ...]:
    """The parts of a report about hidden numbers: what is given away and, for the office alone, its own tables."""
    tables = as_printed(found)
    return (bounds_section(found), tables) if tables.blocks else (bounds_section(found),)


def report_of(found: Bounds, title: str) -> Report:
    """The internal report of the hidden numbers alone."""
    about = phrase("bounds.about", scenario=found.scenario.title, threshold=THRESHOLD, fewest=Rule(THRESHOLD).fewest)
    cards = verdicts(found) if found.each.height else ()
    first, *rest = sections(found)
    parts = (replace(first, lead=""), *rest) if cards else ()  # the page itself begins with that sentence
    made = Report(title, about, "internal", cards, (), parts, (), (), verdict=headline(found), listed=False)
    return replace(made, definitions=definitions(terms_of(made)))


def write_page(
    frame: pl.DataFrame | pl.LazyFrame,
    reasons: pl.DataFrame | pl.LazyFrame | None,
    scenario: Scenario,
    title: str,
    path: Path,
    public: bool,
    *,
    printed: pl.DataFrame | None = None,
    width: int = 1,
    percent: float = 0.0,
    conflicts: int = 0,
    threshold: int = THRESHOLD,
) -> tuple[str, ...]:
    """Write the page of `bounds.parquet` (and `reasons.parquet`) to a file.

    `printed` has what was published of numbers that the frame does not have; it is needed for the places that
    `sections.printed.chosen` names, and for the internal page alone. Returns the tables of which a public page would
    give a small number away: if there is one, the page is not written.
    """
    from glasshouse.report.render.page import page  # renderers are slow to load

    report = report_of(Bounds(frame, scenario, reasons, printed, width, percent, conflicts), title)
    if public:
        shared = publish(report, threshold)
        if away := given_away(report, shared, threshold):
            return away
        report = shared
    with private_file(path) as stream:
        stream.write(page(report).encode())
    return ()
