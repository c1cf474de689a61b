"""What does `glasshouse bounds` say at the end? How many hidden numbers are given away, and by table which."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glasshouse.commands.attack import Asking, Attacked, Concluded, write_summary
from glasshouse.commands.words.protection import FILE as PROTECTION
from glasshouse.commands.words.protection import Protection, protection

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.assess.hidden import Known
    from glasshouse.assess.protection import Judging
    from glasshouse.commands.work.bounds import Bounding
    from glasshouse.engine.runner import Tally

PICTURE = "bounds-by-table.svg"
PRINTED = "printed.parquet"
_GIVEN_AWAY = "are exact, or narrow although the print was not; what was printed so narrow is not counted"
SHOWN = 5  # contradictions in the lines for people
Row = Mapping[str, str | int | float | None]  # how well the numbers of a level or a table are known


@dataclass(frozen=True)
class Summary(Attacked):
    """How well hidden numbers are known, in counts; `share_given_away` is None where nothing is hidden."""

    width: int
    percent: float
    numbers: int  # that were asked for
    hidden: int  # of them, not printed exactly
    exact: int
    narrow: int
    narrow_as_printed: int
    wide: int
    given_away: int
    share_given_away: float | None
    present: int
    alike: int
    undecided: int
    contradictions: int  # places whose numbers cannot all be true
    by_level: tuple[Row, ...]
    by_table: tuple[Row, ...]
    by_scope: Mapping[str, int]  # the largest level whose numbers were used, and for how many numbers
    explained: int | None = None  # numbers whose reasons were asked for and found
    most: float | None = None  # the limit of the share given away
    protection: Protection | None = None  # of sensitive sums, where contributions were given


def summarise(
    folder: Path, asking: Asking, job: Bounding, tally: Tally, most: float | None, said: Attacked,
    judging: Judging | None = None,
) -> Concluded[Summary]:  # fmt: skip
    """The summary for scripts, in words, and the further files that were written."""
    import polars as pl

    from glasshouse.assess.hidden import known
    from glasshouse.report.sections.bounds_chart import picture

    bounds = pl.scan_parquet(folder / "bounds.parquet")
    conflicts = pl.read_parquet(folder / "conflicts.parquet")
    (whole,) = known(bounds, job.rule)
    by_table = known(bounds, job.rule, ("level", "table"))
    scopes = bounds.group_by("scope").len().sort("scope").collect()
    explained = None
    if job.why:
        reasons = pl.scan_parquet(folder / "reasons.parquet")
        explained = reasons.select(pl.struct("level", "geoid", "variable").n_unique()).collect().item()
    judged = None if judging is None else protection(folder, asking, job, judging, job.told)
    summary = Summary(
        **asdict(said),
        width=job.rule.width,
        percent=job.rule.percent,
        **{name: value for name, value in asdict(whole).items() if name not in ("level", "table")},
        contradictions=conflicts.height,
        by_level=tuple(_row(one, "level") for one in known(bounds, job.rule, ("level",))),
        by_table=tuple(_row(one, "level", "table") for one in by_table),
        by_scope=dict(scopes.iter_rows()),
        explained=explained,
        most=most,
        protection=judged,
    )
    files = [write_summary(folder, summary, but=() if judged else ("protection",)), PICTURE]
    files += [PROTECTION] if judged else []
    picture(by_table).save(folder / PICTURE)
    pages = _pages(folder, asking, job, conflicts.height)
    findings = [*_findings(summary), *(judged.findings() if judged else ())]
    sums = judged.lines() if judged else []
    lines = [*_lines(summary, job, tally), *sums, *_contradictions(conflicts), *_unpublished(pages), *findings]
    return Concluded(summary, lines, [*files, *pages], findings)


def _pages(folder: Path, asking: Asking, job: Bounding, conflicts: int) -> list[str]:
    """Write what was found as pages, for the office and for everyone; the names of the files.

    For the office some of its tables stand there as it prints them: what was published of those few places is read
    once more, and kept.
    """
    import polars as pl

    from glasshouse.commands.work.bounds import printed_in
    from glasshouse.files.output import row_writer
    from glasshouse.report.bounds import PAGE, PUBLIC_PAGE, write_page
    from glasshouse.report.sections.bounds import Bounds
    from glasshouse.report.sections.printed import chosen
    from glasshouse.report.words import phrase

    frame = pl.scan_parquet(folder / "bounds.parquet")
    reasons = pl.scan_parquet(folder / "reasons.parquet") if job.why else None
    rule, scenario = job.rule, job.scenario
    places: dict[str, set[str]] = {}
    for one in chosen(Bounds(frame, scenario, width=rule.width, percent=rule.percent)):
        places.setdefault(one.level, set()).update(one.places)
    file = asking.read.open(asking.tables, scenario)
    printed = printed_in(file, places, asking.read.assume_published)
    with row_writer(folder / PRINTED) as writer:
        writer.write(printed)
    title = phrase("bounds.page")
    files = [PRINTED]
    for name in (PAGE, PUBLIC_PAGE):
        away = write_page(
            frame, reasons, scenario, title, folder / name, name == PUBLIC_PAGE, printed=printed, width=rule.width,
            percent=rule.percent, conflicts=conflicts,
        )  # fmt: skip
        files += [] if away else [name]
    return files


def _unpublished(files: Collection[str]) -> list[str]:
    from glasshouse.report.bounds import PUBLIC_PAGE
    from glasshouse.report.words import phrase

    return [] if PUBLIC_PAGE in files else [phrase("bounds.not_written", file=PUBLIC_PAGE)]


def _row(one: Known, *keys: str) -> Row:
    return {key: getattr(one, key) for key in keys} | {
        name: value for name, value in asdict(one).items() if name not in ("level", "table")
    }


def _findings(summary: Summary) -> list[str]:
    """What the exit code must tell."""
    found = []
    share = summary.share_given_away
    if summary.most is not None and share is not None and share > summary.most:
        found.append(
            f"{share:.2%} of the hidden numbers are given away; the limit (--most) is {summary.most:.2%} of them"
        )
    if summary.contradictions:
        places = "1 place" if summary.contradictions == 1 else f"{summary.contradictions:,} places"
        found.append(f"The numbers of {places} cannot all be true; nothing is said of them (conflicts.parquet)")
    return found


def _lines(summary: Summary, job: Bounding, tally: Tally) -> list[str]:
    geography, rule = job.scenario.geography, job.rule
    places = {level: tally.counts[f"places {level}"] for level in geography.levels if tally.counts[f"places {level}"]}
    told = geography.told(places)
    if not summary.hidden:
        left = f"; {summary.numbers:,} numbers are told" if summary.numbers else ""
        return [f"No number is hidden: every number is printed exactly ({told}){left}"]

    def line(what: str, number: int, meaning: str) -> str:
        return f"    {what:<14}{number:>10,}{number / summary.hidden:>9.2%}  {meaning}"

    lines = [
        f"{summary.hidden:,} hidden numbers (not printed exactly) in {told}",
        line("exact", summary.exact, "have one value left: it is known"),
        line("narrow", summary.narrow, f"have a least and a most that are {rule.told}{_as_printed(summary)}"),
        line("wide", summary.wide, "can be more"),
        line("given away", summary.given_away, _GIVEN_AWAY),
        line("present", summary.present, "are 1 or more for certain, although 0 was possible as printed"),
        line("alike", summary.alike, "are for certain the whole of their group, which is not empty"),
    ]
    if summary.undecided:
        lines.append(line("undecided", summary.undecided, "have bounds that are proved, but may be too wide"))
    lines += ["", f"    {'table':<14}{'hidden':>10}{'exact':>9}{'narrow':>9}{'wide':>9}{'given away':>13}"]
    for row in summary.by_table:
        if row["hidden"]:
            name = f"{row['table']}, {row['level']}" if len(places) > 1 else str(row["table"])
            numbers = f"{row['hidden']:>10,}{row['exact']:>9,}{row['narrow']:>9,}{row['wide']:>9,}"
            lines.append(f"    {name:<14}{numbers}{row['share_given_away']:>13.1%}")
    return lines


def _as_printed(summary: Summary) -> str:
    printed = summary.narrow_as_printed
    if not printed:
        return ""
    return f" ({'all' if printed == summary.narrow else f'{printed:,}'} of them as printed)"


def _contradictions(conflicts: pl.DataFrame) -> list[str]:
    lines = [f"{row['level']} {row['geoid']}: {row['statement']}{_nearest(row)}" for row in
             conflicts.head(SHOWN).iter_rows(named=True)]  # fmt: skip
    if conflicts.height > SHOWN:
        lines.append(f"... and {conflicts.height - SHOWN:,} more places (conflicts.parquet)")
    return ["", *lines] if lines else []


def _nearest(row: Mapping[str, Any]) -> str:
    """By how little the numbers of a place must change."""
    if row["nearest"] is None:
        return ""
    least = f"{row['nearest']:,} or less" if row["nearest_proof"] == "undecided" else f"{row['nearest']:,} at least"
    return f". For some records to fit, its numbers must change by {least} in all, as here: {row['changes']}"
