"""How sure is a reconstruction, over all places? Solvar by quantile, by size of place, and in one headline.

The input has one row per place: `place, area, population, population_upper, distance, distance_upper, certain,
certain_upper, unique, proof`; the area is what is worked on at once. `population` is that of the start, and no fitting
set has more than `population_upper`; where totals are published the two are the same. `distance` is an L1 distance that
another fitting set of records is known to reach, `distance_upper` one that none exceeds; over the sum of both
populations they are solvar and its upper bound, so none is above 1. In sums a place counts by its population: a
distance is first brought to the scale of twice that, which changes nothing where totals are published.
`certain_whole` persons are certain in every attribute that the scenario's tables tell, of `untold` ones some is not.
`certain` persons are the same in every fitting set, at most `certain_upper` are; `unique` persons are alone in the
place with what people are known by. Places without people are left out. Tables that are written call places blocks, as
the contract has it.

Lower solvar is worse for the people: 0 means that their records are known. Shares of persons have no binomial interval,
since the persons of a place share their fate; where they have another end (`_upper`), it is proved.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np
import polars as pl

from glasshouse.assess.headline import Headline
from glasshouse.assess.one_solution import one_solution
from glasshouse.assess.rates import Rate, wilson
from glasshouse.errors import InputError, unknown
from glasshouse.model.bands import ALL, BANDS, band_of
from glasshouse.model.records import UNLIMITED
from glasshouse.program.integer import Proof

WORDS = ("place", "area", "proof")
WHOLE = {"certain_whole": pl.col("certain"), "untold": pl.lit(0, pl.Int64)}  # and what they are where all is told
NUMBERS = ("population", "population_upper", "distance", "distance_upper", "certain", "certain_upper", "unique")

ZERO = one_solution()
_UNDECIDED = pl.col("proof") == Proof.UNDECIDED
_IN_ORDER = (  # what must hold of every place, and how to say it
    (pl.min_horizontal(NUMBERS) >= 0, "0 <= every number"),
    (pl.col("distance") <= pl.col("distance_upper"), "distance <= distance_upper"),
    (pl.col("certain") <= pl.col("certain_upper"), "certain <= certain_upper"),
    (pl.col("population") <= pl.col("population_upper"), "population <= population_upper"),
    (
        pl.col("distance_upper") <= pl.min_horizontal(pl.col("population") + pl.col("population_upper"), UNLIMITED),
        "distance_upper <= population + population_upper",
    ),
    (pl.col("unique") <= pl.col("population"), "unique <= population"),
    (pl.col("certain_whole") <= pl.col("certain"), "certain_whole <= certain"),
    (pl.col("untold") <= pl.col("population"), "untold <= population"),
)


def inhabited(places: pl.DataFrame) -> pl.DataFrame:
    """The places that have people, after a check that each row makes sense; a frame without any is refused.

    Distances come on the scale of twice the population.
    """
    if "population_upper" not in places.columns and "population" in places.columns:  # totals are published
        places = places.with_columns(pl.col("population").alias("population_upper"))
    for name, usual in WHOLE.items():
        if name not in places.columns and "certain" in places.columns:  # everything is told
            places = places.with_columns(usual.alias(name))
    missing = [name for name in (*WORDS, *NUMBERS) if name not in places.columns]
    if missing:
        raise InputError(f"the places have no column '{missing[0]}'; expected {', '.join((*WORDS, *NUMBERS))}")
    found = places.select(*WORDS, pl.col(*NUMBERS, *WHOLE).cast(pl.Int64))
    for name in found.columns:
        if found[name].null_count():
            raise InputError(f"the column '{name}' of the places has a blank; expected a value in every row")
    words = set(found["proof"].unique()) - set(Proof)
    if words:
        raise unknown("proof", min(words), tuple(Proof))
    holds = found.select(rule.all().alias(said) for rule, said in _IN_ORDER).row(0, named=True)
    for said, right in holds.items():
        if not right:
            raise InputError(f"a row of the places breaks {said}; was the file changed after it was written?")
    if found["place"].n_unique() < found.height:
        raise InputError("a place is in two rows; expected one row for each")
    found = found.filter(pl.col("population") > 0)
    if found.is_empty():
        raise InputError("none of the places has any people; there is nothing to sum up")
    both = pl.min_horizontal(pl.col("population") + pl.col("population_upper"), UNLIMITED)
    return found.with_columns(pl.col("distance", "distance_upper") * 2 * pl.col("population") / both)


def quantiles(places: pl.DataFrame, step: int = 5, of: str = "distance") -> pl.DataFrame:
    """Solvar over the places in increasing order, at every `step` percent of them (the paper's Table S4).

    `quantile` is the smallest solvar that at least `percent` of the places do not exceed. `population` is that of the
    places since the last row; `cumulative_population` and `distance` (L1) are of all places so far, and
    `cumulative_solvar` is the second over twice the first. The paper breaks ties between places by chance; here is what
    that gives on average: places of equal solvar share their people evenly over the ranks they hold, and a rank that
    a row's end cuts is shared too. So the populations are not whole numbers. `of="distance_upper"` takes the bounds.

    The paper prints beside each row the quantile where its interval begins, so ours of 95 percent is its of 100.
    """
    if step < 1 or 100 % step:
        raise InputError(f"the step is {step} percent; expected a whole number that divides 100, such as 5")
    if of not in ("distance", "distance_upper"):
        raise unknown("distance", of, ("distance", "distance_upper"))
    # equal fractions give equal doubles, and different ones of fewer than 10^7 people different doubles
    tied = (
        inhabited(places)
        .group_by(pl.col(of) / (2 * pl.col("population")))
        .agg(pl.len().cast(pl.Int64).alias("blocks"), pl.col("population").sum(), pl.col(of).sum().alias("sum"))
        .sort(of)
    )
    percent = np.arange(step, 101, step)
    rank = tied["blocks"].cum_sum().to_numpy()
    at = np.searchsorted(100 * rank, percent * rank[-1])
    ends, cut = np.append(0, rank), percent * rank[-1] / 100
    people = np.interp(cut, ends, np.append(0, tied["population"].cum_sum().to_numpy()))
    distance = np.interp(cut, ends, np.append(0, tied["sum"].cum_sum().to_numpy()))
    return pl.DataFrame(
        {
            "percent": percent.astype(np.int64),
            "quantile": tied[of].to_numpy()[at],
            "population": np.diff(people, prepend=0.0),
            "cumulative_population": people,
            "distance": distance,
            "cumulative_solvar": distance / (2 * people),
        }
    )


def by_size(places: pl.DataFrame) -> pl.DataFrame:
    """Who is unique, who is certain and which places are known, by the size of the place (the paper's Table S5).

    `zero` places are those proved to have one solution; a place that is undecided is not counted among them. The
    interval of `zero_share` is Wilson's. A band without places has no shares (null). The last row is of all places.
    """
    known = inhabited(places)
    banded = known.with_columns(pl.Series("band", list(BANDS))[band_of(known["population"].to_numpy())])
    names = pl.DataFrame({"band": [*BANDS, ALL]})
    counted = pl.concat([_counted(banded.group_by("band")), _counted(known.group_by(pl.lit(ALL).alias("band")))])
    table = names.join(counted, on="band", how="left", maintain_order="left").with_columns(
        pl.exclude("band").fill_null(0)
    )
    low, high = wilson(table["zero_blocks"].to_numpy(), table["blocks"].to_numpy())
    return table.select(
        "band",
        "blocks",
        "population",
        _share("unique", "population").alias("unique_share"),
        "zero_blocks",
        "zero_population",
        _share("zero_blocks", "blocks").alias("zero_share"),
        _where_any(pl.Series(low)).alias("zero_share_low"),
        _where_any(pl.Series(high)).alias("zero_share_high"),
        _share("zero_population", "population").alias("zero_population_share"),
        _share("certain", "population").alias("certain_share"),
        "undecided",
    )


def _counted(groups: Any) -> pl.DataFrame:
    found: pl.DataFrame = groups.agg(
        pl.len().cast(pl.Int64).alias("blocks"),
        pl.col("population").sum(),
        pl.col("unique").sum(),
        ZERO.sum().cast(pl.Int64).alias("zero_blocks"),
        pl.col("population").filter(ZERO).sum().alias("zero_population"),
        pl.col("certain").sum(),
        _UNDECIDED.sum().cast(pl.Int64).alias("undecided"),
    )
    return found


def _where_any(value: pl.Series | pl.Expr) -> pl.Expr:
    return pl.when(pl.col("blocks") > 0).then(value)


def _share(part: str, whole: str) -> pl.Expr:
    return _where_any(pl.col(part) / pl.col(whole))


def headline(places: pl.DataFrame) -> Headline:
    """The whole release in a few numbers."""
    known = inhabited(places)
    sums = known.select(pl.col(NUMBERS).sum()).row(0, named=True)
    population = sums["population"]
    sure, zero_population, between = known.select(
        ZERO.sum(),
        pl.col("population").filter(ZERO).sum().alias("zero_population"),
        # population times min(2 solvar_upper, 1 - certain share)
        pl.min_horizontal("distance_upper", pl.col("population") - _in_every("certain")).sum().alias("between"),
    ).row(0)
    areas = known.group_by("area").agg(ZERO.all().alias("zero"))
    proofs = dict(known.group_by("proof").len().iter_rows())
    zero = Rate.of(sure, known.height)
    return Headline(
        blocks=known.height,
        population=population,
        zero_solvar_share=zero.value,
        zero_solvar_share_low=zero.low,
        zero_solvar_share_high=zero.high,
        zero_solvar_population_share=zero_population / population,
        solvar_mean=sums["distance"] / (2 * population),
        solvar_mean_upper=sums["distance_upper"] / (2 * population),
        most_between_any_two=between / population,
        share_certain=sums["certain"] / population,
        share_certain_upper=sums["certain_upper"] / population,
        undecided=proofs.get(Proof.UNDECIDED.value, 0),
        proofs={proof.value: proofs.get(proof.value, 0) for proof in Proof},
        tracts=areas.height,
        zero_tracts=int(areas["zero"].sum()),
        share_certain_whole=known["certain_whole"].sum() / population,
        zero_solvar_share_whole=known.select((ZERO & (pl.col("untold") == 0)).sum()).item() / known.height,
        solvar_mean_whole=known.select(pl.max_horizontal("distance", 2 * pl.col("untold")).sum()).item()
        / (2 * population),
    )


def _in_every(certain: str) -> pl.Expr:
    """Those who are certain, as a share of the largest set that fits, times the population."""
    return pl.col(certain) * pl.col("population") / pl.col("population_upper")


def published(table: str) -> pl.DataFrame:
    """A table as printed for the 2010 Census of the United States, in the units and column names of ours.

    `S4` goes with `quantiles`, `S5` with `by_size`; their populations are in whole thousands, their shares have three
    decimals. The file beside this module holds the numbers as printed, with the scale of each.
    """
    with resources.as_file(resources.files("glasshouse") / "assess" / "published_variability.csv") as path:
        printed = pl.read_csv(path, schema_overrides={"row": pl.String})
    if table not in printed["table"]:
        raise unknown("published table", table, printed["table"].unique())
    wide = (
        printed.filter(pl.col("table") == table)
        .with_columns((pl.col("printed") * pl.col("scale")).round(4))
        .pivot("column", index="row", values="printed", maintain_order=True)
    )
    counts = [name for name in wide.columns if name.endswith(("blocks", "population", "distance"))]
    wide = wide.with_columns(pl.col(counts).cast(pl.Int64))
    if table == "S4":
        return wide.with_columns(pl.col("row").cast(pl.Int64)).rename({"row": "percent"})
    return wide.rename({"row": "band"})
