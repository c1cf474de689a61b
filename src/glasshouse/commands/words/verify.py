"""What does `glasshouse verify` say at the end? Who is singled out, how many, how surprising it is, what is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from glasshouse.commands.attack import Attacked, Concluded, write_summary
from glasshouse.commands.work.questions import AboutClaims
from glasshouse.model.geography import plural

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.assess.claims import Results
    from glasshouse.engine.runner import Tally
    from glasshouse.report.sections.claims_tables import Names
    from glasshouse.scenarios.load import Scenario

Row = Mapping[str, str | int | float | list[str] | None]  # of a table, by the names of its columns
PICTURE, COLUMNS, LEAKS = "claims-by-columns.svg", "columns-used.svg", "leaks.svg"
SHOWN = 5  # tables in the lines for people
_CHANGES = {"withheld": "claims lost when a table is withheld", "added": "claims gained when a table is added"}


@dataclass(frozen=True)
class Summary(Attacked):
    """What was verified, in sums over places and nothing of any one of them; where nobody lives, `claims` alone."""

    claims: int
    unique: Row | None = None  # how many places are known as a whole
    by_columns: tuple[Row, ...] | None = None
    baselines: tuple[Row, ...] | None = None
    columns_used: tuple[Row, ...] | None = None
    combinations: tuple[Row, ...] | None = None
    sizes: tuple[Row, ...] | None = None
    median_size: float | None = None  # None also where the tables leave it open
    queries_left_out: Row | None = None
    undecided: Row | None = None
    marginal_sets: tuple[Row, ...] | None = None
    leaks: tuple[Row, ...] | None = None  # by table, the worst first
    reasons: int | None = None  # claims explained
    absent: int | None = None  # descriptions that nobody fits
    cannot: int | None = None  # counts ruled out
    printed: int | None = None  # claims that a line of a table says already
    generated: tuple[Row, ...] | None = None  # what data sets that were drawn agree on, beside what is certain


def summarise(
    folder: Path, scenario: Scenario, asked: AboutClaims, settings: Sequence[str], tally: Tally, said: Attacked
) -> Concluded[Summary]:
    """The summary for scripts, in words, and the further files that were written; `settings`: how it was asked."""
    import polars as pl

    from glasshouse.assess.claimed_places import MAY_HAVE_ONE
    from glasshouse.assess.claims import summed_up
    from glasshouse.assess.leaks import by_table
    from glasshouse.assess.paper_claims import marginal_sets
    from glasshouse.report.beside import unpublished
    from glasshouse.report.sections import leaks as leaking
    from glasshouse.report.sections.claims import columns_picture, picture
    from glasshouse.report.sections.claims import write as write_tables
    from glasshouse.report.sections.claims_tables import Names

    geography = scenario.geography
    place, unit = geography.place, geography.unit
    places = pl.read_parquet(folder / "places.parquet").rename({place: "place"}, strict=False)
    if places.filter(MAY_HAVE_ONE).is_empty():
        what = f"every {unit} was left out" if tally.refused else f"no {place} has any {scenario.wording.records[1]}"
        nothing = Summary(**asdict(said), claims=0)
        return Concluded(nothing, [what], [write_summary(folder, nothing)])
    counts = pl.read_parquet(folder / "counts.parquet").rename({place: "place"}, strict=False)
    claims = pl.scan_parquet(folder / "claims.parquet").rename({place: "place"}, strict=False)
    results = summed_up(claims, counts, places, scenario.wording.columns, marginal_sets(scenario))
    names = Names(place, *scenario.wording.records)
    summary, lines = summed(said, tally.counts["claims"], results), lines_for_people(results, names)
    picture(results.by_columns, results.baselines, names).save(folder / PICTURE)
    columns_picture(results.columns_used, names).save(folder / COLUMNS)
    done = geography.told({place: tally.counts["places"], unit: tally.units - len(tally.refused)})
    about = [f"{scenario.title}; {done}; claims that name at least {asked.columns} columns.", *settings]
    files = [PICTURE, COLUMNS, *write_tables(folder, results, about, names)]
    lines += unpublished(files)
    if asked.leaks:
        found = by_table(pl.read_parquet(folder / "leaks.parquet"))
        summary = replace(summary, leaks=tuple(found.to_dicts()))
        leaking.picture(found).save(folder / LEAKS)
        files.append(LEAKS)
        lines += ["", *_leaks(found)]
    printed = int(claims.select(pl.col("printed").sum()).collect().item())
    summary = replace(summary, printed=printed)
    lines.append(f"    {'printed in a table anyway':<26}{printed:,} of {tally.counts['claims']:,} claims")
    if asked.reconstructions:
        from glasshouse.assess.generated import left_over

        drawn = left_over(pl.scan_parquet(folder / "generated.parquet").rename({place: "place"}, strict=False))
        summary = replace(summary, generated=tuple(drawn.to_dicts()))
        lines += ["", *_generated(drawn, asked)]
    numbers: dict[str, int] = {}
    for name, wanted, what in (("reasons", asked.why, "claims explained"),
                               ("absent", asked.absent, "descriptions that nobody fits"),
                               ("cannot", asked.cannot, "counts ruled out")):  # fmt: skip
        if wanted:
            numbers[name] = int(pl.scan_parquet(folder / f"{name}.parquet").select(pl.len()).collect().item())
            lines.append(f"    {what:<30}{numbers[name]:,} ({name}.parquet)")
    summary = replace(
        summary, reasons=numbers.get("reasons"), absent=numbers.get("absent"), cannot=numbers.get("cannot")
    )
    return Concluded(summary, lines, [write_summary(folder, summary), *files])


def summed(said: Attacked, claims: int, results: Results) -> Summary:
    """The results for scripts."""
    sets = results.marginal_sets
    return Summary(
        **asdict(said),
        claims=claims,
        unique=asdict(results.unique),
        by_columns=tuple(results.by_columns.to_dicts()),
        baselines=tuple(results.baselines.to_dicts()),
        columns_used=tuple(results.columns_used.to_dicts()),
        combinations=tuple(results.combinations.to_dicts()),
        sizes=tuple(results.sizes.to_dicts()),
        median_size=results.median_size,
        queries_left_out=asdict(results.dropped),
        undecided=asdict(results.undecided),
        marginal_sets=None if sets is None else tuple(sets.to_dicts()),
    )


def lines_for_people(results: Results, names: Names) -> list[str]:
    """The few lines that a person reads after a run; every rate has its 95% interval in brackets."""
    from glasshouse.assess.claims import EVERY, SINGLETON

    heads = {
        SINGLETON: f"a {names.record} singled out for certain",
        EVERY: f"{names.records} counted for certain, one or several",
    }
    found, place, blocks = results.by_columns, names.place, plural(names.place)
    lines = [f"{_number(results.unique.blocks, place)}, {names.counted(found)}; {_whole(results)}"]
    for multiplicity, head in heads.items():
        rows = found.filter(multiplicity=multiplicity)
        if rows.height:
            lines += ["", f"    {head}", f"    {'columns':<10}{'of ' + blocks:<26}of {names.records} (95% intervals)"]
            lines += [_line(row) for row in rows.iter_rows(named=True)]
    lines += ["", *_surprise(results.baselines)]
    if results.dropped.dropped:
        lines.append(f"    queries left out          {results.dropped.share_mean:.2%} of a {place}'s, in the mean")
    if results.unique.undecided:
        lines.append(f"    {blocks + ' undecided':<26}{results.unique.undecided:,} of {results.unique.blocks:,}")
    return [*lines, f"    undecided                 {_undecided(results)}"]


def _number(count: int, word: str) -> str:
    return f"{count:,} {word if count == 1 else plural(word)}"


def _whole(results: Results) -> str:
    unique = results.unique
    share = f"{unique.unique:,} of {unique.blocks:,}, 95% interval {unique.low:.1%} to {unique.high:.1%}"
    if not unique.unique:
        return f"none is known as a whole ({share})"
    verb = "is" if unique.unique == 1 else "are"
    return f"{unique.share:.1%} {verb} known as a whole ({share})"


def _line(row: Row) -> str:
    blocks = f"{row['block_share']:.1%} ({row['block_share_low']:.1%} to {row['block_share_high']:.1%})"
    return f"    {row['k']:<10}{blocks:<26}{_households(row)} ({row['share_low']:.1%} to {row['share_high']:.1%})"


def _households(row: Row) -> str:
    """The share that is represented: the true one if it is known, or else what is proved."""
    if row["share"] is not None:
        return f"{row['share']:.1%}"
    if row["share_least"] == row["share_most"]:
        return f"{row['share_least']:.1%}"
    return f"{row['share_least']:.1%} to {row['share_most']:.1%}"


def _surprise(baselines: pl.DataFrame) -> list[str]:
    """How often a claim that singles out somebody would hardly have been guessed; over the claims of every k."""
    from glasshouse.assess.claims import SINGLETON, SURPRISING

    single = baselines.filter(multiplicity=SINGLETON)
    if single.is_empty():
        return []
    lines = [f"    singled out where guessing would be right in fewer than {SURPRISING:.0%} of cases (higher is worse)"]
    priors = single["prior"].unique(maintain_order=True)
    lines.append(f"    {'columns':<10}" + "".join(f"{_by(prior):<26}" for prior in priors).rstrip())
    for (k,), rows in single.group_by("k", maintain_order=True):
        of = {row["prior"]: row for row in rows.iter_rows(named=True)}
        shares = "".join(f"{_surprising(of[prior]) if prior in of else '':<26}" for prior in priors)
        lines.append(f"    {k:<10}{shares}".rstrip())
    return [*lines, ""]


def _by(prior: str) -> str:
    return "where all is equally likely" if prior == "uniform" else f"by the {prior}"


def _surprising(row: Row) -> str:
    return f"{row['surprising']:.1%} ({row['surprising_low']:.1%} to {row['surprising_high']:.1%})"


def _undecided(results: Results) -> str:
    told = results.undecided
    said = f"{told.undecided:,} of {_number(told.claims, 'claim')}"
    return said if told.share is None else f"{said} ({told.low:.1%} to {told.high:.1%})"


def _generated(drawn: pl.DataFrame, asked: AboutClaims) -> list[str]:
    """What K data sets agree on though another refutes it, over all numbers of columns."""
    import polars as pl

    from glasshouse.assess.claims import EVERY, SINGLETON

    lines = ["    claims that all of K drawn data sets agree on, and those that another data set refutes all the same"]
    which = SINGLETON if asked.singletons else EVERY
    for k in asked.reconstructions:
        rows = drawn.filter(pl.col("reconstructions") == k, pl.col("multiplicity") == which)
        agreed, wrong = int(rows["agreed"].sum()), int(rows["left_over"].sum())
        share = f" ({wrong / agreed:.1%})" if agreed else ""
        lines.append(f"    K = {k:<22,}{agreed:,} agreed, {wrong:,} of them not certain{share}")
    return lines


def _leaks(found: pl.DataFrame) -> list[str]:
    """The tables on which most claims depend."""
    import polars as pl

    lines = []
    for change, head in _CHANGES.items():
        rows = found.filter(change=change)
        if rows.height:
            lines.append(f"    {head}")
            lines += [f"    {_leak(row)}" for row in rows.head(SHOWN).iter_rows(named=True)]
            if rows.height > SHOWN:
                rest = rows.slice(SHOWN)
                none = rest.filter(pl.col("claims") == 0).height
                lines.append(f"    {rest.height:,} more in leaks.parquet; {none:,} of them change nothing alone")
    return lines


def _leak(row: Row) -> str:
    share = "" if row["share"] is None else f" ({row['share']:.1%}"
    ends = f"; {row['low']:.1%} to {row['high']:.1%})" if row["low"] is not None else ")" if share else ""
    return f"{row['table']:<10}{row['claims']:,} of {row['certain']:,}{share}{ends}"
