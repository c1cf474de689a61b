"""What does `glasshouse prove` say at the end? How much of what was claimed is certified, and what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from glasshouse.commands.attack import Attacked, Concluded

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.commands.proving.files import Written

CERTIFIED, WEAKER, OPEN, REFUSED = "certified", "weaker", "open", "refused"


@dataclass(frozen=True)
class Summary(Attacked):
    """How many facts have certificates that our own checker accepted, by what was claimed before."""

    of: str
    facts: int
    certified: int  # the fact itself, accepted
    weaker: int  # less than was claimed, accepted
    open: int  # no certificate within the limits
    not_accepted: int  # by our own checker: a bug of ours
    by_fact: Mapping[str, Mapping[str, int]]
    by_proof_before: Mapping[str, Mapping[str, int]]
    files: int
    bytes: int
    records_certain: int | None  # records of which it is certified that every set that fits has them


def summarise(folder: Path, found: Written, said: Attacked, of: str) -> Concluded[Summary]:
    """The summary for scripts, and in words."""
    rows = found.rows
    status = Counter(row.status for row in rows)
    by_fact = {fact: dict(sorted(Counter(r.status for r in rows if r.fact == fact).items()))
               for fact in sorted({row.fact for row in rows})}  # fmt: skip
    before = {proof: dict(sorted(Counter(r.status for r in rows if r.before == proof).items()))
              for proof in sorted({row.before for row in rows})}  # fmt: skip
    certain = sum(row.shown for row in rows if row.fact == "certain" and row.status in (CERTIFIED, WEAKER))
    summary = Summary(
        **{name: getattr(said, name) for name in ("scenario", "level", "seed", "units", "units_from_before")},
        of=of, facts=len(rows), certified=status[CERTIFIED], weaker=status[WEAKER], open=status[OPEN],
        not_accepted=status[REFUSED], by_fact=by_fact, by_proof_before=before, files=found.files, bytes=found.bytes,
        records_certain=certain if of == "vary" else None,
    )  # fmt: skip
    share = f" ({status[CERTIFIED] / len(rows):.1%})" if rows else ""
    lines = [
        f"{status[CERTIFIED]:,} of {len(rows):,} facts certified{share}: our own checker accepted each file",
        f"{status[WEAKER]:,} with a weaker bound certified, {status[OPEN]:,} without a certificate",
        f"{found.files:,} certificates, {found.bytes:,} bytes",
    ]
    if of == "vary":
        lines.append(f"{certain:,} records are certified to be in every set of records that fits")
    findings = [f"{status[REFUSED]:,} certificates were not accepted; please report this"] if status[REFUSED] else []
    return Concluded(summary, lines, found.names, findings)
