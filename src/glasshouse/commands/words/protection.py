"""What does `glasshouse bounds` say of sensitive sums? How many there are, and how many are protected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from glasshouse.commands.attack import Asking

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.assess.protection import Judging
    from glasshouse.commands.work.bounds import Bounding

FILE = "protection.parquet"


@dataclass(frozen=True)
class Protection:
    """How many numbers are sensitive by a rule, and what became of them; all in counts."""

    rules: str
    sensitive: int  # numbers, hidden or printed
    protected: int
    not_protected: int
    printed: int  # sensitive, and printed exactly
    undecided: int
    not_sensitive: int  # hidden all the same
    not_judged: int  # hidden, and their contributions are not told
    sums: int  # of hidden numbers, known to everybody and sensitive

    @property
    def unsafe(self) -> int:
        return self.not_protected + self.printed

    def lines(self) -> list[str]:
        """For people."""

        def line(what: str, number: int, meaning: str) -> str:
            return f"    {what:<14}{number:>10,}  {meaning}"

        lines = ["", f"{self.sensitive:,} sensitive numbers ({self.rules})"]
        if self.sensitive:
            lines += [
                line("protected", self.protected, "can be as much more and less as the rule needs"),
                line("not protected", self.not_protected, "cannot: the largest contribution is known too well"),
                line("printed", self.printed, "are printed exactly"),
            ]
        if self.undecided:
            lines.append(line("undecided", self.undecided, "have ends that are proved, but perhaps not met"))
        if self.not_judged:
            lines.append(line("not judged", self.not_judged, "hidden numbers whose contributions are not told"))
        if self.sums:
            lines.append(line("sums", self.sums, "sums of hidden numbers that everybody knows are sensitive, too"))
        return lines

    def findings(self) -> list[str]:
        """What the exit code must tell."""
        found = []
        if self.unsafe:
            are = "1 sensitive number is" if self.unsafe == 1 else f"{self.unsafe:,} sensitive numbers are"
            found.append(f"{are} printed, or not protected ({FILE})")
        if self.sums:
            are = "1 sum of hidden numbers is" if self.sums == 1 else f"{self.sums:,} sums of hidden numbers are"
            found.append(f"{are} known to everybody, and sensitive ({FILE})")
        return found


def protection(folder: Path, asking: Asking, job: Bounding, judging: Judging, told: str | None) -> Protection:
    """Judge the numbers of a run, and write what was found; `told` is the only level that is told."""
    import polars as pl

    from glasshouse.assess.protection import judged, numbers_of
    from glasshouse.commands.work.bounds import printed_in
    from glasshouse.files.output import row_writer

    geography = asking.scenario.geography
    bounds = pl.read_parquet(folder / "bounds.parquet")
    skipped = set(pl.read_parquet(folder / "conflicts.parquet").select("level", "geoid").iter_rows())
    places: dict[str, set[str]] = {}
    keys = {(cell.level, cell.geoid) for cell in judging.contributed.cells} | set(
        bounds.select("level", "geoid").iter_rows()
    )
    for level, geoid in keys:
        unit = geography.code(geoid, geography.unit) if geography.within_unit(level) else ""
        inside = not asking.units or unit in asking.units
        if told in (None, level) and inside:
            places.setdefault(level, set()).add(geoid)
    file = asking.read.open(asking.tables, asking.scenario)
    printed = printed_in(file, places, asking.read.assume_published)
    words = {name: (one.table, one.description) for name, one in job.described.items()}
    found = judged(numbers_of(bounds, printed, skipped), judging, asking.scenario.tables, words)
    with row_writer(folder / FILE) as writer:
        writer.write(found)
    return counted(found, judging.told)


def counted(found: pl.DataFrame, rules: str) -> Protection:
    """The rows of protection.parquet in counts."""
    import polars as pl

    from glasshouse.assess.sensitive import NOT_JUDGED, NOT_PROTECTED, NOT_SENSITIVE, PRINTED, PROTECTED, UNDECIDED

    alone = found.filter(pl.col("cells") == 1)
    number: Mapping[str, int] = dict(alone.group_by("verdict").len().iter_rows())
    one = {name: number.get(name, 0) for name in
           (PROTECTED, NOT_PROTECTED, PRINTED, UNDECIDED, NOT_SENSITIVE, NOT_JUDGED)}  # fmt: skip
    return Protection(
        rules, one[PROTECTED] + one[NOT_PROTECTED] + one[PRINTED] + one[UNDECIDED], one[PROTECTED], one[NOT_PROTECTED],
        one[PRINTED], one[UNDECIDED], one[NOT_SENSITIVE], one[NOT_JUDGED], found.height - alone.height,
    )  # fmt: skip
