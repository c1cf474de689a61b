"""What does `glasshouse reidentify` say at the end? Rates, tables, a picture, and a few lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.assess.people.facts import Reidentification
    from glasshouse.engine.ledger import Ledger
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.runner import Tally

SUMMARY, PICTURE = "summary.json", "precision-by-size.svg"
Row = Mapping[str, Any]  # of a frame, by the names of its columns


@dataclass(frozen=True)
class Summary:
    """How many people could be identified: rates of all sizes of place together; the rest is in the frames."""

    scenario: str
    seed: int
    units: int
    units_from_before: int
    persons: int
    data_defined: int
    rates: tuple[Row, ...]
    agreement: tuple[Row, ...]
    guessers: tuple[Row, ...]
    uniques: tuple[Row, ...] = ()
    leave_one_out: tuple[Row, ...] | None = None


def conclude(
    folder: Path,
    ledger: Ledger,
    job: Reidentification,
    tally: Tally,
    *,
    left: Tally | None,
    swapped: bool,
    truth: Path,
    vary: Path | None,
) -> Made[Summary]:
    """Write the files of a run, and say what came of it.

    `left` counts those who were left out in turn; `truth` is the file whose origin the tables tell, `vary` the places
    of a vary run.
    """
    import polars as pl

    from glasshouse.assess.people.leaving_out import outcome
    from glasshouse.assess.reidentification import (
        AGREEMENT,
        COUNTS,
        REACH,
        UNIQUES,
        added,
        agreement_rates,
        rates,
        reach_rates,
        unique_shares,
    )
    from glasshouse.commands.work.reidentify import LINKS
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.plain import plain
    from glasshouse.engine.runner import put_together
    from glasshouse.files.output import private_file, row_writer
    from glasshouse.model.bands import ALL
    from glasshouse.report.beside import unpublished
    from glasshouse.report.sections.reidentification import picture

    found = {
        "rates": rates(added(_parts(ledger, "counts"), COUNTS)),
        "agreement": agreement_rates(added(_parts(ledger, "agreement"), AGREEMENT)),
        "guessers": reach_rates(added(_parts(ledger, "reach"), REACH)),
        "uniques": unique_shares(added(_parts(ledger, "alone"), UNIQUES)),
    }
    if left is not None:
        found["leave-one-out"] = outcome(_parts(ledger, "leaving"), job.attackers)
    outputs = []
    for name, frame in found.items():
        with row_writer(folder / f"{name}.parquet") as writer:
            writer.write(frame)
        outputs.append(f"{name}.parquet")
    if job.links:
        put_together(ledger, folder, {"links": LINKS})
        outputs.append("links.parquet")
    learnt = " and ".join(job.features.sensitive)
    outputs += _tables(folder, ledger, job, tally, found, truth, vary)
    picture(found["rates"], learnt, job.scenario.geography.place).save(folder / PICTURE)
    whole = {name: frame.filter(pl.col("band") == ALL) for name, frame in found.items() if "band" in frame.columns}
    summary = Summary(
        job.scenario.name, job.seed, tally.units, tally.earlier, tally.counts["persons"], tally.counts["defined"],
        tuple(whole["rates"].drop("band").to_dicts()), tuple(whole["agreement"].to_dicts()),
        tuple(whole["guessers"].to_dicts()), tuple(whole["uniques"].to_dicts()),
        None if left is None else tuple(found["leave-one-out"].to_dicts()),
    )  # fmt: skip
    lines = _lines(job, tally, found)
    if left is not None:
        lines += _left_lines(found["leave-one-out"])
    aside = ("scenario", "seed", "units", "units_from_before")
    told = {name: value for name, value in plain(summary).items() if name not in aside}
    with private_file(folder / SUMMARY) as stream:
        stream.write((json.dumps(told, indent=2) + "\n").encode())
    notes = [*_notes(job, tally, left, swapped=swapped), *unpublished(outputs)]
    return Made(summary, [*outputs, SUMMARY, PICTURE], lines, notes, tally)


def _tables(
    folder: Path,
    ledger: Ledger,
    job: Reidentification,
    tally: Tally,
    found: dict[str, pl.DataFrame],
    truth: Path,
    vary: Path | None,
) -> list[str]:
    """The paper's tables with our figures: exact for the office, and what everybody may see."""
    from glasshouse.assess.paper_tables import behind, paper_tables
    from glasshouse.report.beside import write_tables
    from glasshouse.report.sections.reidentification import left_out_table

    overlap = {attacker: _overlap(found["rates"], attacker) for attacker in job.attackers}
    places = None if vary is None else _places(vary, _parts(ledger, "uniques"), job)
    tables = paper_tables(found["rates"], found["agreement"], overlap, places)
    if "leave-one-out" in found:
        tables.append(left_out_table(found["leave-one-out"]))
    about = [
        _origin(truth),
        *_part(job, tally),
        "Published figures are of the 2010 Census of the United States (paper 000).",
    ]
    return write_tables(tables, folder, about, behind(tables))


def _part(job: Reidentification, tally: Tally) -> list[str]:
    """That units are missing, if any are."""
    if not tally.refused:
        return []
    units = job.scenario.geography.told({job.scenario.geography.unit: len(tally.refused)})
    return [f"Not of everybody: {units} had to be left out."]


def _overlap(found: pl.DataFrame, attacker: str) -> dict[str, int]:
    """How much of a list the truth has (Table S1)."""
    import polars as pl

    from glasshouse.assess.people.facts import TRUTH
    from glasshouse.model.bands import ALL

    rows = found.filter(pl.col("attacker") == attacker, pl.col("band") == ALL, pl.col("data") == TRUTH)
    counts = dict(rows.select("group", "population").iter_rows())
    matching, listed = counts.get("matching", 0), counts.get("all", 0)
    defined = counts.get("modal", 0) + counts.get("nonmodal", 0)
    return {"matching": matching, "not_matching": listed - matching, "list": listed, "data_defined": defined}


def _places(vary: Path, uniques: Iterator[pl.DataFrame], job: Reidentification) -> pl.DataFrame | None:
    """How sure each place is, with its uniques counted among the data-defined persons of the truth."""
    import polars as pl

    geography = job.scenario.geography
    places = pl.read_parquet(vary).rename({geography.place: "place", geography.unit: "area"})
    if places.filter(pl.col("population") > 0).is_empty():
        return None
    counted = pl.concat([pl.DataFrame(schema={"geoid": pl.String, "unique": pl.Int64}), *uniques])
    joined = places.drop("unique").join(counted, left_on="place", right_on="geoid", how="left", maintain_order="left")
    # tables of another file than the truth may have fewer persons in a place
    return joined.with_columns(pl.min_horizontal(pl.col("unique").fill_null(0), "population").alias("unique"))


def _origin(truth: Path) -> str:
    from glasshouse.engine.folder import read_manifest

    told = read_manifest(truth.parent)
    if told and told["command"] == "synthesize":
        chosen = told["parameters"]
        persons = told["counts"].get("records", chosen.get("persons", 0))
        return f"Ours are of a synthetic county of {persons:,} persons (glasshouse synthesize): nobody in it is real."
    return "Ours are of the files that this run was given; its manifest.json says which."


def _parts(ledger: Ledger, name: str) -> Iterator[pl.DataFrame]:
    for unit in ledger.held():
        entry = ledger.read(unit)
        if name in entry.frames:
            yield entry.frames[name]


def _notes(job: Reidentification, tally: Tally, left: Tally | None, *, swapped: bool) -> list[str]:
    """What was left aside, and why."""
    from glasshouse.assess.paper_tables import PLAYS
    from glasshouse.model.geography import plural

    counts, notes = tally.counts, []
    place = job.scenario.geography.place
    for attacker in job.attackers:
        if some := counts[f"{attacker}: nameless"]:
            notes.append(f"note: {some:,} records of {attacker} have no person_id and were left aside")
        if some := counts[f"{attacker}: twice"]:
            notes.append(
                f"note: {some:,} records of {attacker} repeat a person in a {place}; one of each was kept, by a draw"
            )
        if counts[f"{attacker}: listed"] and not counts[f"{attacker}: known"]:
            notes.append(
                f"warning: the truth has nobody of {attacker} under that person_id in that {place}: nobody can be "
                "confirmed, and a precision of 0 says nothing; are identifiers spelled alike in both files?"
            )
        if some := counts[f"{attacker}: nowhere"]:
            notes.append(
                f"note: {some:,} records of {attacker} are in {plural(place)} where the truth has nobody; "
                "they count among all, and none can be confirmed"
            )
    if some := counts["other vary"]:
        notes.append(
            f"warning: of {some:,} {plural(place)} of --vary the published file has another number of records; "
            "was it made from tables of another file?"
        )
    if some := counts["not in vary"]:
        notes.append(
            f"warning: {some:,} {plural(place)} with people are not in --vary; they do not count as having one solution"
        )
    if left is not None and not swapped:
        notes += _other_worlds(job, left)
    if swapped:
        notes.append("note: --swap: households were swapped anew, with and without; so `with` is not the rate above")
    for name in job.rebuilt:
        if some := counts[f"{name}: other"]:
            notes.append(
                f"warning: in {some:,} {plural(place)} {name} has other people than the published file, "
                f"by {' and '.join(job.scenario.unique_on)}; was it rebuilt from tables of another file?"
            )
    unshown = [name for name in job.attackers if name not in (*PLAYS, *PLAYS.values())]
    if unshown:
        notes.append(
            f"note: the paper's tables have columns for two lists; to see {unshown[0]} there, name it "
            f"{' or '.join(f'{ours}=FILE' for ours in PLAYS)} (rates.parquet has every list)"
        )
    return notes


def _other_worlds(job: Reidentification, left: Tally) -> list[str]:
    """Reconstructions that came out otherwise here than in their folders, with nobody left out."""
    from glasshouse.model.geography import plural

    unit = plural(job.scenario.geography.unit)
    other = {name: left.units - left.counts[f"same {name}"] for name in job.data if f"same {name}" in left.counts}
    return [
        f"note: with nobody left out, {name} is not as in its folder in {some:,} of {left.units:,} {unit} "
        "(another swap, or tables of another file); both worlds that are compared were rebuilt here"
        for name, some in other.items()
        if some
    ]


def _lines(job: Reidentification, tally: Tally, found: dict[str, pl.DataFrame]) -> list[str]:
    import polars as pl

    from glasshouse.assess.people.facts import PUBLISHED, TRUTH
    from glasshouse.assess.people.groups import EVERYBODY, EXPOSED, EXPOSED_EXACTLY, NONMODAL
    from glasshouse.assess.reidentification import GUESSERS, ZERO_SOLVAR
    from glasshouse.model.bands import ALL

    counts, agreement = tally.counts, found["agreement"].filter(pl.col("band") == ALL, pl.col("group") == ALL)
    lines = [f"{counts['persons']:,} persons, {counts['defined']:,} of them data-defined"]
    place = job.scenario.geography.place
    for row in found["uniques"].filter(pl.col("band") == ALL).iter_rows(named=True):
        exactly, binned = " and ".join(job.features.known), " and ".join(job.scenario.unique_on)
        lines.append(
            f"    alone in their {place} with their {exactly}: {row['unique_exact_share']:.1%} of all persons; with "
            f"their {binned}: {row['unique_share']:.1%}"
        )
    for data, other, share in agreement.filter(~pl.col("data").is_in(GUESSERS)).select(
        "data", "with", "binned_share"
    ).iter_rows():  # fmt: skip
        lines.append(f"    {data + ' agrees with ' + other:<28}{share:8.2%} of records (age in bins)")
    for attacker in job.attackers:
        lines += ["", f"    people of {attacker}", f"    {'':<38}{'putative':>10}{'confirmed':>11}   precision"]
        for group in (EVERYBODY, NONMODAL, EXPOSED, EXPOSED_EXACTLY, f"{ZERO_SOLVAR}{EXPOSED}"):
            rows = found["rates"].filter(
                pl.col("attacker") == attacker, pl.col("group") == group, pl.col("band") == ALL,
                pl.col("data").is_in([TRUTH, *GUESSERS]).not_(),
            )  # fmt: skip
            lines += [_line(row, group) for row in rows.iter_rows(named=True) if row["data"] != PUBLISHED]
    return lines


def _left_lines(found: pl.DataFrame) -> list[str]:
    """What each person's own answer gave away."""
    import polars as pl

    from glasshouse.assess.people.facts import PUBLISHED

    lines = []
    for (attacker,), rows in found.group_by("attacker", maintain_order=True):
        lines += [
            "", f"    one person left out: how often is {attacker} right about them?",
            f"    {'':<30}{'with':>8}{'without':>9}   because they answered",
        ]  # fmt: skip
        for row in rows.filter(~pl.col("data").str.starts_with(PUBLISHED)).iter_rows(named=True):
            lines.append(
                f"    {row['data'] + ' ' + row['group']:<30}{row['share_in']:>8.1%}{row['share_out']:>9.1%}   "
                f"{_points(row['difference'])} points ({_points(row['low'])} to {_points(row['high'])}), "
                f"{_told_of(row)}"
            )
    return lines


def _points(difference: float) -> str:
    """A difference of two shares, in percentage points."""
    return f"{100 * difference:+.1f}"


def _told_of(row: Row) -> str:
    """Of how many persons a difference is."""
    listed = "" if row["listed"] == row["persons"] else f", {row['listed']:,} of them listed"
    return f"{row['persons']:,} persons{listed}"


def _line(row: Row, group: str) -> str:
    said = f"    {row['data'] + ' ' + group:<38}{row['putative']:>10,}{row['confirmed']:>11,}"
    if row["precision"] is None:
        return f"{said}   nobody to count"
    said += f"   {row['precision']:.1%} ({row['low']:.1%} to {row['high']:.1%})"
    if row["baseline"] is None:
        return said
    return f"{said}, {verdict(row)}"


def verdict(row: Row) -> str:
    """Is it better than guessing? Of the same people, so the difference decides."""
    guess = f"guessing {row['baseline']:.1%} ({row['guesser']})"
    if row["advantage_low"] > 0:
        return guess
    return f"{guess}: " + ("no better than" if row["advantage_high"] <= 0 else "not distinguishable from") + " guessing"
