"""Are these certificates true? The standalone checker, run on a folder of proofs."""

from __future__ import annotations

import json
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
    read: Reading = Reading(),  # noqa: B008  # frozen
) -> ProofsChecked:
    """Are these certificates true? Checked in fractions against the published numbers, by a program on its own."""
    from glasshouse.engine.lifecycle import told
    from glasshouse.proofs.check_proof import DEFINITIONS, VIPR, Refused, check

    if not (proofs / DEFINITIONS).is_file():
        raise InputError(f"{proofs}: no {DEFINITIONS} there; expected the --out folder of prove")
    if not tables.exists():
        raise InputError(f"{tables}: there is no such file")
    files = sorted(path for path in proofs.glob(f"*{VIPR}") if path.is_file())  # no pipe, which would have no end
    made_from = _made_from(proofs / DEFINITIONS)
    reasons: list[str] = []
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
    except (Refused, OSError) as error:
        reasons.append(str(error))
    if not reasons:
        reasons += _index_wrong(proofs / INDEX, statements)
    refused = len(files) - accepted
    lines = [*reasons[:SHOWN], *([f"... and {len(reasons) - SHOWN:,} more"] if len(reasons) > SHOWN else [])]
    lines.append(f"{accepted:,} certificates accepted, {refused:,} refused")
    summary = Verdicts(
        str(tables), len(files), accepted, max(refused, len(reasons)), tuple(reasons), made_from is not None
    )
    return ProofsChecked(told("check-proof", summary, lines))


def _made_from(path: Path) -> dict[str, str] | None:
    """The file that published.csv was taken from, if the certificates are about that."""
    from glasshouse.proofs.check_proof import DEFINITIONS_BYTES

    try:
        with path.open("rb") as stream:
            told: Any = json.loads(stream.read(DEFINITIONS_BYTES))
        found = told.get("made_from")
        return None if found is None else {name: str(found[name]) for name in ("name", "sha256")}
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        raise InputError(f"{path}: not the definitions of certificates") from None


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
    levels = list(told["numbers"])
    area = next((level for level in levels if level != told["place"]), told["place"])
    job, _ = make_job(file, file.releases(assume=read.assume_published), level=area, seed=1, effort=1.0, seconds=None)
    with (proofs / PUBLISHED).open(encoding="utf-8", newline="") as stream:
        places = {row[1] for row in csv.reader(stream) if row[0] == told["place"]}
    same = excerpt(file, job, sorted(places), read.assume_published) == (proofs / PUBLISHED).read_bytes()
    return [] if same else [f"{PUBLISHED} is not what {tables.name} says"]


def _index_wrong(path: Path, statements: dict[str, str]) -> list[str]:
    """Does the index say what the certificates show?"""
    import csv

    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    wrong = [row for row in rows if row.get("file") and statements.get(row["file"] or "") != row.get("statement")]
    return [f"{path.name}: what it says of {row['file']} is not what that shows" for row in wrong]
