"""What do tables that nobody described say of themselves? A scenario is written from them; what is open is asked."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import OutFolder, Overwrite, inputs_of
from glasshouse.commands.result import Result
from glasshouse.commands.words.describe import Summary, lines, summarise
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.engine.lifecycle import Made, Workplace
    from glasshouse.scenarios.load import Scenario

Named = Mapping[str, str] | None


class Described(Result[Summary]):
    """A scenario that was found in tables."""

    @property
    def scenario(self) -> str:
        """The text of scenario.toml."""
        return self.ended.files.read("scenario.toml").decode()

    @property
    def audit(self) -> str:
        """The text of audit.toml, a small configuration of an audit."""
        return self.ended.files.read("audit.toml").decode()


@dataclass(frozen=True)
class Told:
    """What the user says of tables, where they do not say it themselves."""

    value: Annotated[str, Opt("The column of the numbers; several, with commas, are categories of one dimension.")] = ""
    status: Annotated[str, Opt("The column of marks beside the numbers.", metavar="COLUMN")] = ""
    place: Annotated[str, Opt("The column of places.", metavar="COLUMN")] = ""
    area: Annotated[str, Opt("No column says the place: all numbers are of this area.", metavar="CODE")] = ""
    ignore: Annotated[
        tuple[str, ...], Opt("A column that says nothing; may be repeated.", metavar="COLUMN", repeated=True)
    ] = ()
    keep: Annotated[
        Named, Opt("Describe only the rows with this code; may be repeated.", flag="--only", metavar="COLUMN=CODE")
    ] = None
    attribute: Annotated[
        Named, Opt("The attribute that a column is; columns of one name are linked.", metavar="COLUMN=NAME")
    ] = None
    total: Annotated[Named, Opt("The code of everybody in a column, or none.", metavar="COLUMN=CODE|none")] = None
    group: Annotated[Named, Opt("A code that adds up others.", metavar="COLUMN:CODE=CODE|CODE")] = None
    universe: Annotated[
        Named, Opt("Whom a file counts, by codes of another's column.", metavar="FILE:COLUMN=CODE|CODE")
    ] = None
    marker: Annotated[
        Named, Opt("What a text instead of a number means: 0, 1..4, 3.., any, shown.", metavar="TEXT=MEANING")
    ] = None
    rounded: Annotated[
        str, Opt("What the numbers are rounded to, and how (random, nearest, down), or none.", metavar="BASE:HOW|none")
    ] = ""
    noise_within: Annotated[
        int | None, Opt("The numbers were perturbed, each by at most this much.", metavar="N", least=1)
    ] = None
    missing: Annotated[Literal["", "zero", "hidden"], Opt("What a number is that has no row: 0, or hidden.")] = ""
    thousands: Annotated[
        str,
        Opt("What separates thousands, or none if the digits behind a point or comma are decimals.", metavar=".|none"),
    ] = ""
    places: Annotated[
        Path | None,
        Opt("Which places lie in which: the columns code and parent, or one of codes for each level.", metavar="FILE"),
    ] = None
    levels: Annotated[tuple[str, ...], Opt("Names for the levels of places, coarse to fine.", metavar="NAMES")] = ()
    title: Annotated[str, Opt("The title of the scenario.")] = ""
    accept: Annotated[bool, Opt("Take every proposal that is safe, instead of asking.")] = False


@command(
    example="glasshouse describe population.csv --out my-country\n\n"
    "What the tables do not tell is asked for, everything at once, each with the option that answers it (exit code 2). "
    "Then: glasshouse audit --config my-country/audit.toml --out report"
)
def describe(
    tables: Annotated[tuple[Path, ...], Opt("Tables as an office writes them: a row for each number.", metavar="FILE")],
    *,
    told: Told = Told(),  # noqa: B008  # frozen
    out: OutFolder = None,
    overwrite: Overwrite = False,
) -> Described:
    """Find the dimensions, totals, places and links of tables, and write a scenario that a person can correct."""
    from glasshouse.engine.lifecycle import Made, in_folder
    from glasshouse.engine.manifest import Manifest
    from glasshouse.engine.plain import plain
    from glasshouse.files.describing.asking import Answers
    from glasshouse.files.describing.describe import describe as found_in
    from glasshouse.files.describing.writing import audit_toml, places_csv, scenario_toml
    from glasshouse.files.output import private_file

    if not tables:
        raise InputError("tables is missing: expected files of tables")
    if len({path.absolute() for path in tables}) < len(tables):
        raise InputError("the same file is given twice; expected different ones")
    for name in told.marker or {}:
        if not name.strip():
            raise InputError("--marker: a text without letters cannot be named; a blank is called blank")
    inputs = inputs_of({f"tables {number}": path for number, path in enumerate(tables, 1)} | {"places": told.places})
    answers = Answers(
        told.value, told.status, told.place, told.area, told.ignore, told.keep or {}, told.attribute or {},
        told.total or {}, told.group or {}, told.universe or {}, told.marker or {}, told.rounded,
        told.noise_within, told.missing, told.thousands, told.levels, told.title, told.accept,
    )  # fmt: skip
    parameters = {"tables": [path.name for path in tables], **plain(answers)}

    def work(at: Workplace) -> Made[Summary]:
        found = found_in(tables, answers, told.places)
        texts = {"scenario.toml": scenario_toml(found), "audit.toml": audit_toml(found, tables, out)}
        if found.places.listed:
            texts["places.csv"] = places_csv(found)
        loaded = _loaded(texts, at.path / "proper")
        for name, text in texts.items():
            with private_file(at.path / name) as stream:
                stream.write(text.encode())
        summary = summarise(found, loaded, tables)
        return Made(summary, list(texts), lines(summary), replaces=["places.csv"])

    return Described(in_folder(Manifest("describe", parameters, inputs), Summary, work, out=out, overwrite=overwrite))


def _loaded(texts: Mapping[str, str], folder: Path) -> Scenario:
    """The scenario, loaded: what is written can be used, or is refused before anything is."""
    from glasshouse.files.output import private_file
    from glasshouse.scenarios.load import load

    for name, text in texts.items():
        with private_file(folder / name) as stream:
            stream.write(text.encode())
    try:
        return load(str(folder))
    except InputError as error:
        said = (line.removeprefix(f"{folder / 'scenario.toml'}: ") for line in error.args)
        raise InputError(*(f"the tables make no scenario that could be used: {line}" for line in said)) from None
    finally:
        shutil.rmtree(folder)
