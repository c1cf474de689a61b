"""Can all numbers be true? If not: which few cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from glasshouse.commands.declaration import command
from glasshouse.commands.options import ScenarioName, SomeTables, TablesGiven, Threads, inputs_of, notes_on
from glasshouse.commands.result import DONE, FINDINGS, SHOWN_ROWS, Result

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.commands.work.check import Checked as Found
    from glasshouse.files.tables import TableFile
    from glasshouse.model.identities import Finding
    from glasshouse.scenarios.load import Scenario

SHOWN_FINDINGS = 20


@dataclass(frozen=True)
class Agreement:
    """Whether the numbers agree, how many were compared, and every place where some cannot all be true."""

    scenario: str
    tables: str
    agrees: bool
    places: Mapping[str, int]
    numbers: int
    identities: Mapping[str, int]
    undecided: Mapping[str, int]
    ignored: Mapping[str, int]
    absent: tuple[str, ...]
    findings: tuple[Mapping[str, object], ...]


class Checked(Result[Agreement]):
    """Whether the numbers agree."""

    @property
    def code(self) -> int:
        return DONE if self.summary.agrees else FINDINGS

    @property
    def findings(self) -> pl.DataFrame:
        """Places whose numbers cannot all be true, with the statement that is broken."""
        import polars as pl

        rows = [(one["level"], one["geoid"], one["statement"]) for one in self.summary.findings]
        return pl.DataFrame(rows, schema={"level": pl.String, "geoid": pl.String, "statement": pl.String}, orient="row")

    def _glance(self) -> Iterator[tuple[str, int, pl.DataFrame]]:
        yield "findings", self.findings.height, self.findings.head(SHOWN_ROWS)


@command(
    example="glasshouse check tables.csv.gz --scenario sf1-person\n\n"
    "Exit code 0: everything agrees. 1: some numbers cannot all be true. 2: the input cannot be read."
)
def check(
    tables: TablesGiven,
    *,
    scenario: ScenarioName,
    read: SomeTables = SomeTables(),  # noqa: B008  # frozen
    workers: Threads = 1,
) -> Checked:
    """Can all numbers be true? If not: which few cannot."""
    from glasshouse.commands.work.check import check_file
    from glasshouse.engine.lifecycle import told
    from glasshouse.engine.progress import progress, say
    from glasshouse.program.search import is_compiled

    chosen = read.scenario(scenario, read.only)
    inputs_of({"tables": tables}, scenario, read.mapping)
    file = read.open(tables, chosen)
    if not is_compiled():
        say("The core is compiled for this machine first, once; that takes about half a minute.")
    with progress("check") as bar:
        found = check_file(file, assume=read.assume_published, workers=workers, watch=bar)
    summary = _summary(file, chosen, found, tables, read.assume_published)
    lines = _lines(chosen, found, file.seen.cells)
    return Checked(told("check", summary, lines, notes_on(file, chosen, read.assume_published)))


def _summary(file: TableFile, scenario: Scenario, found: Found, tables: Path, assume: str) -> Agreement:
    return Agreement(
        scenario.name, str(tables), not found.findings, dict(sorted(found.places.items())), file.seen.cells,
        dict(sorted(found.identities.items())), dict(sorted(found.undecided.items())),
        dict(sorted(file.seen.ignored.items())), tuple(file.absent(assume)),
        tuple(_finding(finding) for finding in found.findings),
    )  # fmt: skip


def _lines(scenario: Scenario, found: Found, numbers: int) -> list[str]:
    places = scenario.geography.told(found.places)
    if found.findings:
        lines = [line for one in found.findings[:SHOWN_FINDINGS] for line in _spoken(one, found.findings)]
        if len(found.findings) > SHOWN_FINDINGS:
            lines.append(f"... and {len(found.findings) - SHOWN_FINDINGS:,} more places (all of them with --json)")
        wrong = len(found.findings)
        has = "1 place has" if wrong == 1 else f"{wrong:,} places have"
        return [*lines, f"{has} numbers that cannot all be true (checked: {places})."]
    rules = sum(found.identities.values())
    lines = [f"All numbers agree: {numbers:,} numbers, {rules:,} identities, {places}."]
    if rules == 0:
        lines = [f"Nothing to compare: {numbers:,} numbers, and no identity ties them ({places})."]
    if found.undecided:
        lines.append(f"Not decided whether any records fit them: {scenario.geography.told(found.undecided)}.")
    return lines


def _finding(finding: Finding) -> Mapping[str, object]:
    said: dict[str, object] = asdict(finding)
    said["cells"] = [{"geoid": finding.geoid, **asdict(cell)} for cell in finding.cells]
    said["suspects"] = [
        {"variable": suspect.cell.variable, "value": suspect.cell.lower, "would_agree": suspect.agrees}
        for suspect in finding.suspects
    ]
    return said


def _spoken(finding: Finding, others: Sequence[Finding]) -> list[str]:
    lines = [f"{finding.level} {finding.geoid}: {finding.statement}"]
    if 0 < len(finding.suspects) <= 3:
        mended = " or ".join(f"{s.cell.variable} were {s.agrees}" for s in finding.suspects)
        lines.append(f"    everything at this place would agree if {mended}")
    inside = [f for f in others if f is not finding and f.level != finding.level and f.geoid.startswith(finding.geoid)]
    if inside and any(cell.summed for cell in finding.cells):
        lines.append(f"    perhaps because of {inside[0].level} {inside[0].geoid}, which lies in it")
    return lines
