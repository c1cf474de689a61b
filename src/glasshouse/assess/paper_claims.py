"""How do our claims stand beside the paper's? Its tables and what it says of its figures, with the line of each.

The paper is that of generating and verifying claims about households (paper 002). Its printed figures are in the file
beside this module, with a note where they contradict each other.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import polars as pl

from glasshouse.errors import unknown
from glasshouse.model.release import counted
from glasshouse.scenarios.load import Scenario

_GROUP = ["multiplicity", "k"]
# the paper's panels of tables 4 and 7: 250 blocks each of the median size of their state, or of the country; the
# numbers of households are printed the other way round (the file of published figures says why)
_PANELS = {"state": "country", "country": "state"}
_ABLATIONS = {
    "without_ones_published": "without ones",
    "without_zeros_published": "without zeros",
    "without_both_published": "without zeros and ones",
}


# The tables themselves


def marginal_sets(scenario: Scenario) -> pl.DataFrame:
    """How many sets of k columns the tables look at (table 3): `k, sets`, and the paper's `sets_published`.

    A table counts by the widest set of columns of its lines. A column is left out if the word for the records of a
    claim pins it to one value (a household is an occupied home, always); a table of nothing else is not counted.
    """
    pinned = {name for name, levels in scenario.wording.noun.where.sets if len(levels) == 1}
    found = set()
    for table in scenario.tables:
        named = [frozenset(some.by_attribute) for line in table.lines for some in counted(table, line)]
        found.add(max((columns - pinned for columns in named), key=len, default=frozenset()))
    sizes = [len(columns) for columns in found if columns]
    theirs = {row["k"]: int(row["value"]) for row in published("3").iter_rows(named=True) if row["k"] is not None}
    steps = range(1, max([*sizes, *theirs]) + 1)
    return pl.DataFrame(
        {"k": list(steps), "sets": [sizes.count(k) for k in steps], "sets_published": [theirs.get(k) for k in steps]},
        schema=dict.fromkeys(("k", "sets", "sets_published"), pl.Int64),
    )


# Beside the paper


@cache
def _every_published() -> pl.DataFrame:
    with resources.as_file(resources.files("glasshouse") / "assess" / "published_claims.csv") as path:
        printed = pl.read_csv(path, schema_overrides={"table": pl.String, "k": pl.Int64, "printed": pl.Float64})
    return printed.with_columns((pl.col("printed") * pl.col("scale")).round(6).alias("value"))


def published(table: str) -> pl.DataFrame:
    """What the paper prints in a table, or says of a figure: one row per figure, as printed and as a `value`."""
    every = _every_published()
    if table not in every["table"]:
        raise unknown("published table", table, every["table"].unique())
    return every.filter(pl.col("table") == table)


def beside_paper(found: pl.DataFrame) -> pl.DataFrame:
    """Ours against the paper's by multiplicity and k, as shares of blocks and of households; `found` is `by_columns`.

    The paper's households are of two sets of 250 blocks, each of the median size of its `state` or of the `country`;
    its ablation leaves out queries that are 1, 0 or either, for the blocks of the country's median size.
    """
    columns = {"block_share_published": published("figure 3").filter(column="block_share").select(*_GROUP, "value")}
    tables = pl.concat([published("4"), published("7")])
    for panel, other in _PANELS.items():
        homes = tables.filter(panel=other, column="households").select("multiplicity", "value")
        columns[f"{panel}_published"] = _over(tables.filter(panel=panel, column="represented"), homes)
    of_country = tables.filter(panel=_PANELS["country"], column="households").select("multiplicity", "value")
    for name, panel in _ABLATIONS.items():
        columns[name] = _over(published("5").filter(panel=panel, column="represented"), of_country)
    theirs = pl.concat(frame.select(_GROUP) for frame in columns.values()).unique()
    ours = ["block_share", "block_share_low", "block_share_high"]
    ours += ["share", "share_low", "share_high", "share_least", "share_most"]
    rows = found.select(*_GROUP, *ours).join(theirs, on=_GROUP, how="full", coalesce=True)
    for name, frame in columns.items():
        rows = rows.join(frame.rename({"value": name}), on=_GROUP, how="left")
    return rows.sort(_GROUP, descending=[True, False])


def _over(part: pl.DataFrame, homes: pl.DataFrame) -> pl.DataFrame:
    """The represented households as shares of all."""
    joined = part.select(*_GROUP, "value").join(homes, on="multiplicity", suffix="_of")
    return joined.select(*_GROUP, pl.col("value") / pl.col("value_of"))
