"""What do verified claims come to, in tables? Ours beside the published, for the office and for everyone.

They hold sums over blocks only: never a block's code, never a description; large blocks are counted together. What
everybody may see of them is the rule of `report.publish`.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from glasshouse.assess.claims import EVERY, SINGLETON, Results
from glasshouse.assess.paper_claims import beside_paper, published
from glasshouse.assess.paper_tables import Column, PaperTable
from glasshouse.assess.rates import wilson
from glasshouse.model.geography import plural
from glasshouse.report.words import phrase, plain
from glasshouse.report.words import table as texts

# names of rows, in the data files too: the same in every language
WORDS = {SINGLETON: "exactly one household", EVERY: "any number of households"}


def tables(results: Results, place: str = "block") -> list[PaperTable]:
    """The results as tables, ours beside the published."""
    made = [
        _whole(results, place),
        _blocks(results.by_columns, place),
        _households(results.by_columns),
        _ablation(results, place),
        _probabilities(results.baselines, place),
        _columns(results.columns_used),
        _combinations(results.combinations),
        _sizes(results, place),
    ]
    if results.marginal_sets is not None:
        made.append(_sets(results.marginal_sets))
    return made


def _table(
    number: int, frame: pl.DataFrame, columns: Sequence[Column], notes: Sequence[str] | None = None, **fields: str
) -> PaperTable:
    """A table with the title and notes of the language, unless others are given."""
    names, key = [column.name for column in columns], f"tables.V{number}"
    said = notes or tuple(phrase(f"{key}.{note}", **fields) for note in texts(key) if note.startswith("note"))
    theirs = (phrase("tables.source"),) if any(column.published for column in columns) else ()
    title = phrase(f"{key}.title", **fields)
    return PaperTable(f"V{number}", title, (*said, *theirs), frame.select(names), tuple(columns))


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


def _panel() -> pl.Expr:
    return pl.format("Claims about {}", pl.col("multiplicity").replace_strict(WORDS)).alias("panel")


def _whole(results: Results, place: str) -> PaperTable:
    unique, claims = results.unique, results.undecided
    blocks = plural(place)
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
    return _table(1, frame, columns, place=place, places=blocks)


def _blocks(found: pl.DataFrame, place: str) -> PaperTable:
    blocks, top = plural(place), "share_with_a_verified_claim"
    told = beside_paper(found).select("multiplicity", "k", "block_share_published")
    frame = found.join(told, on=["multiplicity", "k"], how="left", maintain_order="left").with_columns(_panel())
    columns = [
        _key("panel", ""), _key("k", "columns"), _count("blocks", blocks.capitalize(), "all"),
        _count("blocks_with_claim", blocks.capitalize(), "with_a_verified_claim"),
        _share("block_share", top, "ours", ("blocks_with_claim", "blocks")),
        _share("block_share_published", top, "published", theirs=True), *_interval("block_share", "interval"),
        _count("claims", "verified_claims", "all"), _count("kinds", "verified_claims", "distinct"),
    ]  # fmt: skip
    return _table(2, frame, columns, place=place, places=blocks.capitalize())


def _households(found: pl.DataFrame) -> PaperTable:
    frame = beside_paper(found).join(
        found.select("multiplicity", "k", "households", "represented_least", "represented_most", "represented"),
        on=["multiplicity", "k"], how="left", maintain_order="left",
    ).with_columns(_panel())  # fmt: skip
    top = "share_of_all_households"
    columns = [
        _key("panel", ""), _key("k", "columns"), _count("households", "households", "all"),
        _count("represented_least", "represented", "at_least"), _count("represented_most", "represented", "at_most"),
        _count("represented", "represented", "in_truth"),
        _share("share_least", top, "at_least", ("represented_least", "households")),
        _share("share_most", top, "at_most"),
        _share("share", top, "in_truth"), *_interval("share", "interval"),
        _share("state_published", "published_figures", "state_median", theirs=True),
        _share("country_published", "published_figures", "country_median", theirs=True),
    ]  # fmt: skip
    return _table(3, frame, columns)


def _ablation(results: Results, place: str) -> PaperTable:
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
    note = phrase("tables.V4.left_out", place=place, places=plural(place), gone=gone_, **shares)
    return _table(4, frame, columns, (note, phrase("tables.V4.note")))


def _probabilities(found: pl.DataFrame, place: str) -> PaperTable:
    panel = pl.format(
        "Claims about {}, guessed from the {}", pl.col("multiplicity").replace_strict(WORDS), "prior"
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
    return _table(5, found.with_columns(panel), columns, (phrase("tables.V5.note", place=place), note))


def _columns(found: pl.DataFrame) -> PaperTable:
    frame = found.with_columns(_panel()).rename({"low": "share_low", "high": "share_high"})
    columns = [
        _key("panel", ""), _key("k", "columns"), _key("column", "column"),
        _count("hits", "verified_claims", "that_name_it"), _count("claims", "verified_claims", "all"),
        _share("share", "shares", "ours", ("hits", "claims")), *_interval("share", "interval"),
    ]  # fmt: skip
    return _table(6, frame, columns)


def _combinations(found: pl.DataFrame) -> PaperTable:
    theirs = published("6").select(
        "multiplicity", "k", pl.col("panel").str.strip_prefix("rank ").cast(pl.Int64).alias("rank"),
        pl.col("value").alias("share_published"),
    )  # fmt: skip
    keys = ["multiplicity", "k", "rank"]
    frame = found.join(theirs, on=keys, how="left", maintain_order="left").with_columns(
        _panel(), pl.col("columns").list.join(", ").alias("named")
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
    return _table(7, frame, columns)


def _sizes(results: Results, place: str) -> PaperTable:
    # large ones together: the size of a single large block would point at it
    ends = {20: "21 to 50", 50: "51 to 100", 100: "more than 100"}
    label = pl.col("households").cast(pl.String)
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
    blocks = plural(place)
    columns = [
        _key("records", "households"), _count("blocks", blocks.capitalize(), "of_this_size"),
        _count("all", blocks.capitalize(), "all"), _share("share", "shares", "ours", ("blocks", "all")),
        *_interval("share", "interval"),
    ]  # fmt: skip
    sizes = phrase("tables.V8.sizes", place=place, median=results.median_size, places=blocks, large=blocks.capitalize())
    return _table(8, frame, columns, (sizes, phrase("tables.V8.note")), places=blocks)


def _sets(found: pl.DataFrame) -> PaperTable:
    columns = [
        _key("k", "columns"), _count("sets", "sets_of_columns", "ours"),
        _count("sets_published", "sets_of_columns", "published", theirs=True),
    ]  # fmt: skip
    return _table(9, found, columns)


def whom(made: Sequence[PaperTable], results: Results) -> dict[str, list[int]]:
    """The households that the rows of a table without counts are about: of each k."""
    households = dict(results.by_columns.select("k", "households").iter_rows())
    return {one.name: [households.get(k, 0) for k in one.frame["k"]] for one in made if one.name == "V4"}
