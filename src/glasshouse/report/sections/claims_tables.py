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

WORDS = {SINGLETON: "exactly one household", EVERY: "any number of households"}
_WORSE = "More is worse for the households."
_SOURCE = "Published: Liu et al., Generate-then-Verify (paper 002); 500 blocks of the 2010 privacy-protected microdata."


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


def _table(number: int, title: str, notes: Sequence[str], frame: pl.DataFrame, columns: Sequence[Column]) -> PaperTable:
    names = [column.name for column in columns]
    said = notes if not any(column.published for column in columns) else (*notes, _SOURCE)
    return PaperTable(f"V{number}", title, tuple(said), frame.select(names), tuple(columns))


def _key(name: str, heading: str) -> Column:
    return Column(name, "key", ("", "", heading))


def _count(name: str, top: str, heading: str, *, theirs: bool = False) -> Column:
    return Column(name, "count", ("", top, heading), published=theirs)


def _share(name: str, top: str, heading: str, of: tuple[str, str] | None = None, *, theirs: bool = False) -> Column:
    return Column(name, "share", ("", top, heading), published=theirs, ratio=None if of is None else (*of, 1))


def _interval(share: str, top: str) -> tuple[Column, Column]:
    """The two ends of the interval of a share, which in a page stand in one cell."""
    low, high = (Column(f"{share}_{end}", end, ("", top, end)) for end in ("low", "high"))
    return low, Column(high.name, high.kind, high.headings, joined=" to ")


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
        _key("records", "What"), _count("part", "Ours", "number"), _count("whole", "Ours", "of"),
        _share("share", "Ours", "share", ("part", "whole")), *_interval("share", "Ours, 95% interval"),
        _count("part_published", "Published", "number", theirs=True),
        _count("whole_published", "Published", "of", theirs=True),
    ]  # fmt: skip
    types = {"key": pl.String, "count": pl.Int64}
    frame = pl.DataFrame(rows, {c.name: types.get(c.kind, pl.Float64) for c in columns}, orient="row")
    notes = (
        f"A {place} is known as a whole when only one data set fits its tables. {_WORSE}",
        f"The interval of the first row reaches as far as if every undecided {place} were known as a whole.",
    )
    return _table(1, f"Which {blocks} are known as a whole, and what could not be decided", notes, frame, columns)


def _blocks(found: pl.DataFrame, place: str) -> PaperTable:
    blocks, top = plural(place), "Share with a verified claim"
    told = beside_paper(found).select("multiplicity", "k", "block_share_published")
    frame = found.join(told, on=["multiplicity", "k"], how="left", maintain_order="left").with_columns(_panel())
    columns = [
        _key("panel", ""), _key("k", "Columns"), _count("blocks", blocks.capitalize(), "all"),
        _count("blocks_with_claim", blocks.capitalize(), "with a verified claim"),
        _share("block_share", top, "ours", ("blocks_with_claim", "blocks")),
        _share("block_share_published", top, "published", theirs=True), *_interval("block_share", "95% interval"),
        _count("claims", "Verified claims", "all"), _count("kinds", "Verified claims", "distinct"),
    ]  # fmt: skip
    notes = (
        f"A claim is verified when it holds in every data set that fits the tables of its {place}. {_WORSE}",
        "Claims that the same possible households match are one distinct claim, named in several ways.",
        "The published shares are approximate, from the text on figure 3.",
    )
    return _table(2, f"{blocks.capitalize()} with at least one verified claim (figures 3 and 5)", notes, frame, columns)


def _households(found: pl.DataFrame) -> PaperTable:
    frame = beside_paper(found).join(
        found.select("multiplicity", "k", "households", "represented_least", "represented_most", "represented"),
        on=["multiplicity", "k"], how="left", maintain_order="left",
    ).with_columns(_panel())  # fmt: skip
    top = "Share of all households"
    columns = [
        _key("panel", ""), _key("k", "Columns"), _count("households", "Households", "all"),
        _count("represented_least", "Represented", "at least"), _count("represented_most", "Represented", "at most"),
        _count("represented", "Represented", "in truth"),
        _share("share_least", top, "at least", ("represented_least", "households")),
        _share("share_most", top, "at most"),
        _share("share", top, "in truth"), *_interval("share", "95% interval"),
        _share("state_published", "Published", "state median", theirs=True),
        _share("country_published", "Published", "country median", theirs=True),
    ]  # fmt: skip
    notes = (
        f"A household is represented by a claim if it matches its description. {_WORSE}",
        "At least and at most are proved; the truth is known only where it was given. Without it, the interval reaches "
        "from that of the least to that of the most.",
        "Published: 250 blocks each of the median size of their state, and of the country (10 households). Tables 4 "
        "and 7 print 2,500 and 2,430 households the other way round, it seems; here they are put right. The averages "
        "that they print for the country's median are over 232 blocks.",
    )
    return _table(3, "Households represented by verified claims (tables 4 and 7)", notes, frame, columns)


def _ablation(results: Results, place: str) -> PaperTable:
    frame = beside_paper(results.by_columns).filter(multiplicity=SINGLETON)
    left = results.dropped
    columns = [
        _key("k", "Columns"), _share("share_least", "Ours", "at least"), _share("share_most", "Ours", "at most"),
        _share("share", "Ours", "in truth"), *_interval("share", "95% interval"),
        _share("country_published", "Published, queries left out", "none", theirs=True),
        _share("without_ones_published", "Published, queries left out", "ones", theirs=True),
        _share("without_zeros_published", "Published, queries left out", "zeros", theirs=True),
        _share("without_both_published", "Published, queries left out", "zeros and ones", theirs=True),
    ]  # fmt: skip
    gone = published("5").filter(column="queries_removed")["value"]
    notes = (
        f"Shares of all households. In this run {left.share_mean:.2%} of a {place}'s queries were left out (mean "
        f"over {plural(place)}; from {left.share_least:.2%} to {left.share_most:.2%}); in the paper's columns "
        + ", ".join(f"{part:.2%}" for part in gone) + ".",
        _WORSE,
    )  # fmt: skip
    return _table(4, "Households singled out, and the paper's ablation of queries (table 5)", notes, frame, columns)


def _probabilities(found: pl.DataFrame, place: str) -> PaperTable:
    panel = pl.format(
        "Claims about {}, guessed from the {}", pl.col("multiplicity").replace_strict(WORDS), "prior"
    ).alias("panel")
    box = {
        "whisker_low": "low whisker", "q1": "first quartile", "median": "median", "q3": "third quartile",
        "whisker_high": "high whisker", "p90": "90th percentile", "max": "largest",
    }  # fmt: skip
    columns = [
        _key("panel", ""), _key("k", "Columns"), _count("claims", "Verified claims", "number"),
        *(_share(name, "Baseline probability", word) for name, word in box.items()),
        _share("surprising", "Below 2%", "share of claims"), *_interval("surprising", "Below 2%, 95% interval"),
    ]  # fmt: skip
    limit = {row["column"]: row["value"] for row in published("figure 3").iter_rows(named=True)}
    notes = [
        f"How probable the claim is in a {place} of that size drawn from its tract or state (equation 4). Lower is "
        "worse for the households: the claim would hardly have been guessed.",
        f"The paper says of its figure 3: medians below {limit['median_below']:.0%} (not for 10 columns), third "
        f"quartiles below {limit['upper_quartile_below']:.0%}, 90th percentiles below {limit['p90_below']:.0%}, none "
        f"above {limit['max_below']:.0%}.",
    ]
    return _table(5, "How probable verified claims were to begin with", notes, found.with_columns(panel), columns)


def _columns(found: pl.DataFrame) -> PaperTable:
    frame = found.with_columns(_panel()).rename({"low": "share_low", "high": "share_high"})
    columns = [
        _key("panel", ""), _key("k", "Columns"), _key("column", "Column"),
        _count("hits", "Verified claims", "that name it"), _count("claims", "Verified claims", "all"),
        _share("share", "Share", "ours", ("hits", "claims")), *_interval("share", "95% interval"),
    ]  # fmt: skip
    notes = ("A column that many claims name is given away more easily: worse for the households. Were all columns "
             "alike, each would be in k of them all.",)  # fmt: skip
    return _table(6, "Which columns verified claims name (figure 4)", notes, frame, columns)


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
        _key("panel", ""), _key("k", "Columns"), _key("rank", "Rank"),
        Column("named", "word", ("", "Columns named", "ours")), _count("hits", "Verified claims", "of this set"),
        _share("share", "Share of claims", "ours", ("hits", "claims")),
        _share("share_published", "Share of claims", "published", theirs=True), *_interval("share", "95% interval"),
        _count("claims", "Verified claims", "all"),
    ]  # fmt: skip
    notes = (
        "The published shares are those of the same rank, not of the same columns; the most common set of 9 columns "
        "omits HHT2 there, the next TP65. Of 7 columns four ranks are known.",
        "What is named together by many claims is given away more easily: worse for the households.",
    )
    return _table(7, "The sets of columns that most verified claims name (table 6)", notes, frame, columns)


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
        _key("records", "Households"), _count("blocks", blocks.capitalize(), "of this size"),
        _count("all", blocks.capitalize(), "all"), _share("share", "Share", "ours", ("blocks", "all")),
        *_interval("share", "95% interval"),
    ]  # fmt: skip
    notes = (
        f"The median {place} has {results.median_size:g} households; the median of the paper's country has 10. Its "
        f"{blocks} of figure 2 have 2 to 20. {blocks.capitalize()} without households are left out.",
        "Households of small ones are singled out more easily: worse for them.",
    )
    return _table(8, f"How many households the {blocks} have (figure 2)", notes, frame, columns)


def _sets(found: pl.DataFrame) -> PaperTable:
    columns = [
        _key("k", "Columns"), _count("sets", "Sets of columns", "ours"),
        _count("sets_published", "Sets of columns", "published", theirs=True),
    ]  # fmt: skip
    notes = (
        "A table counts by the widest set of columns of its lines; whether a home is occupied is not counted, since "
        "every household's is. More sets, and wider ones, tell more: worse for the households.",
    )
    return _table(9, "How many sets of columns the tables look at (table 3)", notes, found, columns)


def whom(made: Sequence[PaperTable], results: Results) -> dict[str, list[int]]:
    """The households that the rows of a table without counts are about: of each k."""
    households = dict(results.by_columns.select("k", "households").iter_rows())
    return {one.name: [households.get(k, 0) for k in one.frame["k"]] for one in made if one.name == "V4"}
