"""Are these certificates true? The standalone checker, run on a folder of proofs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import Reading
from glasshouse.commands.result import DONE, FINDINGS, Result
from glasshouse.errors import InputError

SHOWN = 20
INDEX, PUBLISHED = "index.csv", "published.csv"


@dataclass(frozen=True)
class Verdicts:
    """How many certificates were accepted, and why others were not."""

    tables: str
    certificates: int
    accepted: int
    refused: int
    reasons: tuple[str, ...]
    of_excerpt: bool  # the certificates are about an excerpt, which was compared with the file


class ProofsChecked(Result[Verdicts]):
    """Whether certificates are accepted."""

    @property
    def code(self) -> int:
        return DONE if self.summary.accepted and not self.summary.refused else FINDINGS


@command(
    name="check-proof",
    example="glasshouse check-proof proofs --tables tables.csv.gz\n\n"
    "Exit code 0: all accepted. 1: some refused. 2: the input cannot be read. "
    "The same without Glasshouse: python proofs/check_proof.py proofs --tables tables.csv.gz",
)
def check_proof(
    proofs: Annotated[Path, Opt("The folder of prove.", metavar="PROOFS")],
    *,
    tables: Annotated[Path, Opt("The published tables.", metavar="TABLES")],
    scenario: Annotated[
        str, Opt("The folder of the scenario, where it is no built-in one and the tables are no long CSV.", short="-s")
    ] = "",
    properties: Annotated[
        Path | None, Opt("The property file, where certificates are of detect.", metavar="FILE")
    ] = None,
    property_places: Annotated[
        Path | None, Opt("The block of each property, as detect had it.", flag="--property-blocks", metavar="FILE")
    ] = None,
    read: Reading = Reading(),  # noqa: B008  # frozen
) -> ProofsChecked:
    """Are these certificates true? Checked in fractions against the published numbers, by a program on its own."""
    from glasshouse.engine.lifecycle import told as ended
    from glasshouse.proofs.check_proof import DEFINITIONS, VIPR, Refused, check

    if not (proofs / DEFINITIONS).is_file():
        raise InputError(f"{proofs}: no {DEFINITIONS} there; expected the --out folder of prove")
    if not tables.exists():
        raise InputError(f"{tables}: there is no such file")
    files = sorted(proofs.glob(f"*{VIPR}"))
    told = _definitions(proofs / DEFINITIONS)
    made_from, second = _made_from(proofs / DEFINITIONS, told), told.get("second_from")
    reasons: list[str] = []
    if second is not None:
        if properties is None:
            raise InputError(f"{proofs}: its certificates rest on a second file, too; give it with --properties")
        reasons += _second_wrong(proofs, told, properties, property_places, scenario, read)
    published = tables
    if made_from is not None:
        published = proofs / PUBLISHED
        reasons += _excerpt_wrong(proofs, tables, made_from, scenario, read)
    accepted = 0
    statements: dict[str, str] = {}
    try:
        for path, fine, said in check(proofs, published, files) if not reasons else ():
            accepted += fine
            statements[path.name] = said
            if not fine:
                reasons.append(f"{path.name}: {said}")
        if not reasons:
            reasons += _index_wrong(proofs / INDEX, statements)
    except Refused as error:
        reasons.append(str(error))
    refused = len(files) - accepted
    lines = [*reasons[:SHOWN], *([f"... and {len(reasons) - SHOWN:,} more"] if len(reasons) > SHOWN else [])]
    lines.append(f"{accepted:,} certificates accepted, {refused:,} refused")
    summary = Verdicts(
        str(tables), len(files), accepted, max(refused, len(reasons)), tuple(reasons), made_from is not None
    )
    return ProofsChecked(ended("check-proof", summary, lines))


def _definitions(path: Path) -> Mapping[str, Any]:
    from glasshouse.proofs.check_proof import DEFINITIONS_BYTES

    try:
        with path.open("rb") as stream:
            told: Any = json.loads(stream.read(DEFINITIONS_BYTES))
        return dict(told)
    except (ValueError, TypeError, RecursionError):
        raise InputError(f"{path}: not the definitions of certificates") from None


def _made_from(path: Path, told: Mapping[str, Any]) -> dict[str, str] | None:
    """The file that published.csv was taken from, if the certificates are about that."""
    try:
        found = told.get("made_from")
        return None if found is None else {name: str(found[name]) for name in ("name", "sha256")}
    except (KeyError, TypeError):
        raise InputError(f"{path}: not the definitions of certificates") from None


def _second_wrong(
    proofs: Path, told: Mapping[str, Any], properties: Path, places: Path | None, scenario: str, read: Reading
) -> list[str]:
    """Is second.csv what this property file says, and is that read as Glasshouse reads it?"""
    from glasshouse.commands.proving.occupancy import lines_of, readings_defined, second_file
    from glasshouse.engine.manifest import sha256
    from glasshouse.files.properties import open_properties
    from glasshouse.proofs.check_proof import SECOND

    chosen = read.scenario(scenario or str(told["scenario"]))
    second, occupancy = told["second_from"], chosen.occupancy
    if sha256(properties) != second["sha256"] or occupancy is None:
        return [f"the certificates are about another property file than {properties.name}"]
    model = occupancy.model(str(second["model"]))
    lines = lines_of(
        open_properties(properties, chosen.geography, occupancy, places, list(second["programs"])), occupancy, model
    )
    printed = (proofs / SECOND).read_bytes()
    inside = {line.partition(",")[0] for line in printed.decode().splitlines()[1:]}
    readings = readings_defined(chosen.schema, occupancy, model)
    said = {level: some for level, some in told["numbers"].items() if level in readings}
    same = second_file(lines, inside) == printed and said == readings
    return [] if same else [f"{SECOND}, or how it is read, is not what {properties.name} says"]


def _excerpt_wrong(proofs: Path, tables: Path, made_from: dict[str, str], scenario: str, read: Reading) -> list[str]:
    """Is published.csv what this file says? It is read by Glasshouse, as the result was."""
    import csv

    from glasshouse.commands.proving.files import excerpt
    from glasshouse.engine.job import make_job
    from glasshouse.engine.manifest import sha256

    told: Any = json.loads((proofs / "definitions.json").read_bytes())
    if tables.is_file() and sha256(tables) != made_from["sha256"]:
        return [f"the certificates are about another file than {tables.name}"]
    chosen = read.scenario(scenario or str(told["scenario"]))
    names = {str(said["table"]) for some in told["numbers"].values() for said in some.values()}
    chosen = chosen.choose([table.name for table in chosen.tables if table.name in names])
    file = read.open(tables, chosen)
    levels = [level for level, some in told["numbers"].items() if not any("second" in one for one in some.values())]
    area = next((level for level in levels if level != told["place"]), told["place"])
    job, _ = make_job(file, file.releases(assume=read.assume_published), level=area, seed=1, effort=1.0, seconds=None)
    with (proofs / PUBLISHED).open(encoding="utf-8", newline="") as stream:
        places = {row[1] for row in csv.reader(stream) if row[0] == told["place"]}
    used = {name for some in told["numbers"].values() for name in some}
    same = excerpt(file, job, sorted(places), read.assume_published, used) == (proofs / PUBLISHED).read_bytes()
    return [] if same else [f"{PUBLISHED} is not what {tables.name} says"]


def _index_wrong(path: Path, statements: dict[str, str]) -> list[str]:
    """Does the index say what the certificates show?"""
    import csv

    from glasshouse.proofs.check_proof import form

    if not path.is_file():
        return []
    with form(path.name), path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    wrong = [row for row in rows if row.get("file") and statements.get(row["file"] or "") != row.get("statement")]
    return [f"{path.name}: what it says of {row['file']} is not what that shows" for row in wrong]
