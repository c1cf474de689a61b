"""What do verified claims come to, in tables? Ours beside the published, for the office and for everyone.

They hold sums over blocks only: never a block's code, never a description; large blocks are counted together. What
everybody may see of them is the rule of `report.publish`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from glasshouse.assess.claims import EVERY, SINGLETON, Results
from glasshouse.assess.paper_claims import beside_paper, published
from glasshouse.assess.paper_tables import Column, PaperTable
from glasshouse.assess.rates import wilson
from glasshouse.model.geography import plural
from glasshouse.report.words import phrase, plain
from glasshouse.report.words import table as texts

NOT_KNOWN = "not known"  # the name of a row, in the data files too: the same in every language


@dataclass(frozen=True)
class Names:
    """What the scenario calls a place, and one or several of its records."""

    place: str = "block"
    record: str = "household"
    records: str = "households"

    @property
    def fields(self) -> dict[str, str]:
        """As texts name them."""
        places = plural(self.place)
        return {
            "place": self.place, "places": places, "Places": places.capitalize(), "record": self.record,
            "records": self.records, "Records": self.records.capitalize(),
        }  # fmt: skip

    @property
    def about(self) -> dict[str, str]:
        """Whom claims are about; names of rows, too."""
        return {SINGLETON: f"exactly one {self.record}", EVERY: f"any number of {self.records}"}

    def counted(self, by_columns: pl.DataFrame) -> str:
        """How many records the places have, or between which bounds that is proved to lie."""
        ends = by_columns.select("households", "households_least", "households_most")
        number, least, most = ends.row(0) if ends.height else (0, 0, 0)
        key = "exact" if number is not None else "between" if most is not None else "at_least"
        word = self.record if number == 1 else self.records
        return phrase(f"claims.counted.{key}", number=number or 0, least=least, most=most or 0, records=word)


def tables(results: Results, names: Names = Names()) -> list[PaperTable]:  # noqa: B008  # frozen
    """The results as tables, ours beside the published."""
    made = [
        _whole(results, names),
        _blocks(results.by_columns, names),
        _households(results.by_columns, names),
        _ablation(results, names),
        _probabilities(results.baselines, names),
        _columns(results.columns_used, names),
        _combinations(results.combinations, names),
        _sizes(results, names),
    ]
    if results.marginal_sets is not None:
        made.append(_sets(results.marginal_sets, names))
    return made


def _table(
    number: int, frame: pl.DataFrame, columns: Sequence[Column], names: Names, notes: Sequence[str] | None = None
) -> PaperTable:
    """A table with the title and notes of the language, unless others are given."""
    shown, key, fields = [column.name for column in columns], f"tables.V{number}", names.fields
    said = notes or tuple(phrase(f"{key}.{note}", **fields) for note in texts(key) if note.startswith("note"))
    theirs = (phrase("tables.source"),) if any(column.published for column in columns) else ()
    title = phrase(f"{key}.title", **fields)
    return PaperTable(f"V{number}", title, (*said, *theirs), frame.select(shown), tuple(columns))


def _head(name: str) -> str:
    """A heading of the language; the name of the places stays as it is."""
    return plain(f"tables.heads.{name}", name)


def _key(name: str, heading: str) -> Column:
    return Column(name, "key", ("", "", _head(heading) if heading else ""))


def _count(name: str, top: str, heading: str, *, theirs: bool = False) -> Column:
    return Column(name, "count", ("", _head(top), _head(heading)), published=theirs)


def _share(name: str, top: str, heading: str, of: tuple[str, str] | None = None, *, theirs: bool = False) -> Column:
    ratio = None if of is None else (*of, 1)
    return Column(name, "share", ("", _head(top), _head(heading)), published=theirs, ratio=ratio)


def _interval(share: str, top: str) -> tuple[Column, Column]:
    """The two ends of the interval of a share."""
    low, high = (Column(f"{share}_{end}", end, ("", _head(top), _head(end))) for end in ("low", "high"))
    return low, high


def _panel(names: Names) -> pl.Expr:
    return pl.format("Claims about {}", pl.col("multiplicity").replace_strict(names.about)).alias("panel")


def _whole(results: Results, names: Names) -> PaperTable:
    unique, claims = results.unique, results.undecided
    blocks = plural(names.place)
    rows = [
        (f"{blocks} known as a whole", unique.unique, unique.blocks, unique.share, unique.low,
         unique.high, 0, 500),
        (f"{blocks} undecided", unique.undecided, unique.blocks, unique.undecided / unique.blocks, None,
         None, None, None),
        ("claims undecided", claims.undecided, claims.claims, claims.share, claims.low, claims.high,
         None, None),
    ]  # fmt: skip
    columns = [
        _key("records", "what"), _count("part", "our_figures", "number"), _count("whole", "our_figures", "of"),
        _share("share", "our_figures", "share", ("part", "whole")), *_interval("share", "ours_interval"),
        _count("part_published", "published_figures", "number", theirs=True),
        _count("whole_published", "published_figures", "of", theirs=True),
    ]  # fmt: skip
    types = {"key": pl.String, "count": pl.Int64}
    frame = pl.DataFrame(rows, {c.name: types.get(c.kind, pl.Float64) for c in columns}, orient="row")
    return _table(1, frame, columns, names)


def _blocks(found: pl.DataFrame, names: Names) -> PaperTable:
    blocks, top = plural(names.place), "share_with_a_verified_claim"
    told = beside_paper(found).select("multiplicity", "k", "block_share_published")
    frame = found.join(told, on=["multiplicity", "k"], how="left", maintain_order="left").with_columns(_panel(names))
    columns = [
        _key("panel", ""), _key("k", "columns"), _count("blocks", blocks.capitalize(), "all"),
        _count("blocks_with_claim", blocks.capitalize(), "with_a_verified_claim"),
        _share("block_share", top, "ours", ("blocks_with_claim", "blocks")),
        _share("block_share_published", top, "published", theirs=True), *_interval("block_share", "interval"),
        _count("claims", "verified_claims", "all"), _count("kinds", "verified_claims", "distinct"),
    ]  # fmt: skip
    return _table(2, frame, columns, names)


def _households(found: pl.DataFrame, names: Names) -> PaperTable:
    own = ["households", "households_least", "households_most", "represented_least", "represented_most", "represented"]
    keys = ["multiplicity", "k"]
    joined = beside_paper(found).join(found.select(*keys, *own), on=keys, how="left", maintain_order="left")
    frame = joined.with_columns(_panel(names))
    top, all_ = phrase("tables.share_of_all", **names.fields), names.records.capitalize()
    columns = [
        _key("panel", ""), _key("k", "columns"), _count("households", all_, "all"),
        _count("households_least", all_, "at_least"), _count("households_most", all_, "at_most"),
        _count("represented_least", "represented", "at_least"), _count("represented_most", "represented", "at_most"),
        _count("represented", "represented", "in_truth"),
        _share("share_least", top, "at_least", ("represented_least", "households_most")),
        _share("share_most", top, "at_most"),
        _share("share", top, "in_truth"), *_interval("share", "interval"),
        _share("state_published", "published_figures", "state_median", theirs=True),
        _share("country_published", "published_figures", "country_median", theirs=True),
    ]  # fmt: skip
    return _table(3, frame, columns, names)


def _ablation(results: Results, names: Names) -> PaperTable:
    frame = beside_paper(results.by_columns).filter(multiplicity=SINGLETON)
    left = results.dropped
    columns = [
        _key("k", "columns"), _share("share_least", "our_figures", "at_least"),
        _share("share_most", "our_figures", "at_most"), _share("share", "our_figures", "in_truth"),
        *_interval("share", "interval"),
        _share("country_published", "published_queries_left_out", "none", theirs=True),
        _share("without_ones_published", "published_queries_left_out", "ones", theirs=True),
        _share("without_zeros_published", "published_queries_left_out", "zeros", theirs=True),
        _share("without_both_published", "published_queries_left_out", "zeros_and_ones", theirs=True),
    ]  # fmt: skip
    gone = published("5").filter(column="queries_removed")["value"]
    gone_ = ", ".join(f"{part:.2%}" for part in gone)
    shares = {"mean": left.share_mean, "least": left.share_least, "most": left.share_most}
    note = phrase("tables.V4.left_out", gone=gone_, **shares, **names.fields)
    return _table(4, frame, columns, names, (note, phrase("tables.V4.note", **names.fields)))


def _probabilities(found: pl.DataFrame, names: Names) -> PaperTable:
    panel = pl.format(
        "Claims about {}, guessed from the {}", pl.col("multiplicity").replace_strict(names.about), "prior"
    ).alias("panel")
    box = ("whisker_low", "q1", "median", "q3", "whisker_high", "p90", "max")
    columns = [
        _key("panel", ""), _key("k", "columns"), _count("claims", "verified_claims", "number"),
        *(_share(name, "baseline_probability", name) for name in box),
        _share("surprising", "below", "share_of_claims"), *_interval("surprising", "below_interval"),
    ]  # fmt: skip
    limit = {row["column"]: row["value"] for row in published("figure 3").iter_rows(named=True)}
    note = phrase(
        "tables.V5.paper", median=limit["median_below"], upper=limit["upper_quartile_below"], p90=limit["p90_below"],
        most=limit["max_below"],
    )  # fmt: skip
    return _table(5, found.with_columns(panel), columns, names, (phrase("tables.V5.note", **names.fields), note))


def _columns(found: pl.DataFrame, names: Names) -> PaperTable:
    frame = found.with_columns(_panel(names)).rename({"low": "share_low", "high": "share_high"})
    columns = [
        _key("panel", ""), _key("k", "columns"), _key("column", "column"),
        _count("hits", "verified_claims", "that_name_it"), _count("claims", "verified_claims", "all"),
        _share("share", "shares", "ours", ("hits", "claims")), *_interval("share", "interval"),
    ]  # fmt: skip
    return _table(6, frame, columns, names)


def _combinations(found: pl.DataFrame, names: Names) -> PaperTable:
    theirs = published("6").select(
        "multiplicity", "k", pl.col("panel").str.strip_prefix("rank ").cast(pl.Int64).alias("rank"),
        pl.col("value").alias("share_published"),
    )  # fmt: skip
    keys = ["multiplicity", "k", "rank"]
    frame = found.join(theirs, on=keys, how="left", maintain_order="left").with_columns(
        _panel(names), pl.col("columns").list.join(", ").alias("named")
    )
    frame = frame.rename({"low": "share_low", "high": "share_high"})
    columns = [
        _key("panel", ""), _key("k", "columns"), _key("rank", "rank"),
        Column("named", "word", ("", _head("columns_named"), _head("ours"))),
        _count("hits", "verified_claims", "of_this_set"),
        _share("share", "shares_of_claims", "ours", ("hits", "claims")),
        _share("share_published", "shares_of_claims", "published", theirs=True), *_interval("share", "interval"),
        _count("claims", "verified_claims", "all"),
    ]  # fmt: skip
    return _table(7, frame, columns, names)


def _sizes(results: Results, names: Names) -> PaperTable:
    # large ones together: the size of a single large block would point at it
    ends = {20: "21 to 50", 50: "51 to 100", 100: "more than 100"}
    label = pl.col("households").cast(pl.String).fill_null(NOT_KNOWN)
    for above, word in ends.items():
        label = pl.when(pl.col("households") > above).then(pl.lit(word)).otherwise(label)
    frame = (
        results.sizes.group_by(label.alias("records"), maintain_order=True)
        .agg(pl.col("blocks").sum())
        .with_columns(pl.col("blocks").sum().alias("all"))
        .with_columns((pl.col("blocks") / pl.col("all")).alias("share"))
    )
    low, high = wilson(frame["blocks"].to_numpy(), frame["all"].to_numpy())
    frame = frame.with_columns(pl.Series("share_low", low), pl.Series("share_high", high))
    blocks = plural(names.place)
    columns = [
        _key("records", names.records.capitalize()), _count("blocks", blocks.capitalize(), "of_this_size"),
        _count("all", blocks.capitalize(), "all"), _share("share", "shares", "ours", ("blocks", "all")),
        *_interval("share", "interval"),
    ]  # fmt: skip
    median = results.median_size
    middle = (
        phrase("tables.V8.median_open", **names.fields) if median is None
        else phrase("tables.V8.median", median=median, **names.fields)
    )  # fmt: skip
    notes = (middle, phrase("tables.V8.sizes", **names.fields), phrase("tables.V8.note", **names.fields))
    return _table(8, frame, columns, names, notes)


def _sets(found: pl.DataFrame, names: Names) -> PaperTable:
    columns = [
        _key("k", "columns"), _count("sets", "sets_of_columns", "ours"),
        _count("sets_published", "sets_of_columns", "published", theirs=True),
    ]  # fmt: skip
    return _table(9, found, columns, names)


def whom(made: Sequence[PaperTable], results: Results) -> dict[str, list[int]]:
    """The households that the rows of a table without counts are about: of each k; the least of them, if open."""
    households = dict(results.by_columns.select("k", "households_least").iter_rows())
    return {one.name: [households.get(k, 0) for k in one.frame["k"]] for one in made if one.name == "V4"}
