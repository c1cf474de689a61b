"""How do our figures stand beside the paper's? Its tables, row by row as printed, ours in front of the published.

The tables are 3 to 6, S1 and S4 to S13 of Abowd et al. on the 2010 Census. The printed figures in the file beside this
module set the rows and columns, a description beside it says which of our figures go there. What a run lacks is null,
and what was published is shown all the same. Counts are of persons or blocks, shares lie between 0 and 1.

Two attackers have a place in the paper: COMRCL, which `commercial` plays, and CEFatkr, which `attacker-perfect` plays.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import polars as pl

from glasshouse.assess.variability import by_size, inhabited, quantiles
from glasshouse.assess.variability import published as published_variability
from glasshouse.errors import InputError, unknown
from glasshouse.model.bands import ALL, BANDS

PLAYS = {"commercial": "COMRCL", "attacker-perfect": "CEFatkr"}
ATTACKERS = tuple(PLAYS.values())
DECIMALS = 3

_RATES = {
    **dict.fromkeys(("data", "attacker", "group", "band"), pl.String),
    **dict.fromkeys(("population", "putative", "confirmed"), pl.Int64),
    **dict.fromkeys(("precision", "low", "high", "baseline"), pl.Float64),
    "guesser": pl.String,
}
_ENDS = tuple(f"{how}_{end}" for how in ("exact", "binned") for end in ("low", "high"))
_AGREEMENT = {
    **dict.fromkeys(("data", "with", "group", "band"), pl.String),
    **dict.fromkeys(("population", "exact", "binned"), pl.Int64),
    **dict.fromkeys(("exact_share", "binned_share", *_ENDS, "baseline"), pl.Float64),
}
_AFTER = ("precision_low", "precision_high", "baseline", "guesser")  # what a precision has beside it


@dataclass(frozen=True)
class Column:
    """A column of a table: what it holds, its headings from the top down, and what a share is a share of."""

    name: str
    kind: str  # key, count, share, low or high (ends of a share's interval), word
    headings: tuple[str, str, str]
    published: bool = False
    ratio: tuple[str, str, int] | None = None  # the first count over the second so many times
    joined: str | None = None  # where room is short it may stand in the cell of the column before, after this


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper with our figures beside the published ones; `columns` are those of the frame, in order."""

    name: str
    title: str
    notes: tuple[str, ...]
    frame: pl.DataFrame
    columns: tuple[Column, ...]


def paper_tables(
    rates: pl.DataFrame,
    agreement: pl.DataFrame,
    overlap: Mapping[str, Mapping[str, int]],
    places: pl.DataFrame | None,
) -> list[PaperTable]:
    """Every table, those of the main text first, from the figures of one run.

    Rows of data that the paper does not know come after the paper's in each panel or band, without a published figure;
    attackers that it does not know are named in the notes. `places` are those of a run of vary, if there was one.
    """
    rates = _checked(rates, "rates", _RATES).with_columns(pl.col("attacker").replace(PLAYS))
    rates = _once(rates, "rates", ("data", "attacker", "group", "band"))
    agreement = _once(_checked(agreement, "agreement", _AGREEMENT), "agreement", ("data", "with", "group", "band"))
    tables = []
    for name, plan in _described()["table"].items():
        match plan["of"]:
            case "rates":
                tables.append(_of_rates(name, rates))
            case "agreement":
                tables.append(_of_agreement(name, agreement))
            case "overlap":
                tables.append(_of_overlap(name, overlap))
            case "quantiles":
                tables.append(_of_quantiles(name, places))
            case _:
                tables.append(_of_sizes(name, places))
    return tables


def behind(tables: Sequence[PaperTable]) -> dict[str, list[int]]:
    """Of a table that shows shares without the counts behind them: whom each row is about, at least."""
    found = {one.name: one.frame for one in tables}
    putative = [f"{attacker}_putative" for attacker in ATTACKERS]
    least = pl.min_horizontal(putative).fill_null(0).alias("least")
    told = found["S8"].select(pl.col("panel").str.head(7), "data", least)  # the same people, with their counts
    rows = found["6"].select(pl.col("panel").str.head(7), "data")
    return {
        "6": rows.join(told, on=["panel", "data"], how="left", maintain_order="left")["least"].fill_null(0).to_list()
    }


def printed(table: str) -> pl.DataFrame:
    """A published table in persons and shares: its rows (`panel, data, with, band`, those it has) and its columns."""
    every = _every_printed()
    if table not in every["table"]:
        raise unknown("published table", table, every["table"].unique())
    figures = every.filter(pl.col("table") == table)
    keys = [key for key in ("panel", "data", "with", "band") if figures[key].null_count() == 0]
    wide = figures.pivot("column", index=keys, values="value", maintain_order=True)
    counts = [name for name in wide.columns if name not in keys and _kind(name) == "count"]
    return wide.with_columns(pl.col(counts).cast(pl.Int64))


@cache
def _every_printed() -> pl.DataFrame:
    with resources.as_file(resources.files("glasshouse") / "assess" / "published_reidentification.csv") as path:
        figures = pl.read_csv(path, schema_overrides={"table": pl.String})
    return figures.with_columns((pl.col("printed") * pl.col("scale")).round(DECIMALS).alias("value"))


@cache
def _described() -> dict[str, Any]:
    return tomllib.loads((resources.files("glasshouse") / "assess" / "paper_tables.toml").read_text(encoding="utf-8"))


def _share(part: str, whole: str, times: int = 1) -> pl.Expr:
    return pl.when(pl.col(whole) > 0).then(pl.col(part) / (times * pl.col(whole)))


# Our figures in the shape of the printed ones


def _checked(frame: pl.DataFrame, name: str, schema: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    missing = [column for column in schema if column not in frame.columns]
    if missing:
        raise InputError(f"the {name} have no column '{missing[0]}'; expected {', '.join(schema)}")
    strange = {str(band) for band in frame["band"].unique()} - {*BANDS, ALL}
    if strange:
        raise unknown(f"band of the {name}", min(strange), (*BANDS, ALL))
    return frame.select(pl.col(column).cast(kind) for column, kind in schema.items())


def _once(frame: pl.DataFrame, name: str, keys: Sequence[str]) -> pl.DataFrame:
    """The frame, if no row comes twice: which of two figures to print is not ours to choose."""
    twice = frame.filter(pl.struct(keys).is_duplicated())
    if not twice.is_empty():
        said = ", ".join(f"{key} {value}" for key, value in zip(keys, twice.select(keys).row(0), strict=True))
        raise InputError(f"the {name} have two rows of {said}; expected one (do two attackers play one part?)")
    return frame


def _of_rates(name: str, rates: pl.DataFrame) -> PaperTable:
    paper, panels = printed(name), _described()["table"][name]["panels"]
    alone = "attacker" in panels[0]
    parts = []
    for panel in panels:
        group = rates.filter(pl.col("group") == panel["group"])
        if alone:
            ours = _of_attacker(group, panel["attacker"], "")
        else:
            one, two = (_of_attacker(group, attacker, f"{attacker}_") for attacker in ATTACKERS)
            ours = one.join(two, on=("data", "band"), how="full", coalesce=True)
            ours = ours.with_columns(pl.coalesce("CEFatkr_population", "COMRCL_population").alias("population"))
        parts.append(ours.with_columns(pl.lit(panel.get("name"), pl.String).alias("panel")))
    ours = pl.concat(parts)
    if "band" not in paper.columns:
        ours = ours.filter(pl.col("band") == ALL)
    after = _AFTER if alone else [f"{attacker}_{column}" for attacker in ATTACKERS for column in _AFTER]
    strange = sorted(set(rates["attacker"]) - set(ATTACKERS))
    notes = [f"Attackers of this run that the paper does not have: {', '.join(strange)}; not shown."] if strange else []
    return _beside(name, ours, paper, after, _unknown_to_the_paper(ours, paper), notes)


def _of_attacker(rates: pl.DataFrame, attacker: str, prefix: str) -> pl.DataFrame:
    """The figures of one attacker, their names with a prefix."""
    found = rates.filter(pl.col("attacker") == attacker).select(
        *("data", "band", "population", "putative", "confirmed", "precision", "baseline", "guesser"),
        _share("putative", "population").alias("putative_share"),
        _share("confirmed", "population").alias("confirmed_share"),
        precision_low="low",
        precision_high="high",
    )
    return found.rename({name: f"{prefix}{name}" for name in found.columns if name not in ("data", "band")})


def _of_agreement(name: str, agreement: pl.DataFrame) -> PaperTable:
    paper = printed(name)
    ours = agreement.filter(pl.col("group") == "all", pl.col("with").is_in(paper["with"].unique().to_list()))
    named = {end: end.replace("_", "_share_") for end in _ENDS}
    ours = ours.rename(named)
    return _beside(name, ours, paper, (*named.values(), "baseline"), _unknown_to_the_paper(ours, paper))


def _unknown_to_the_paper(ours: pl.DataFrame, paper: pl.DataFrame) -> pl.DataFrame:
    """The rows of data that no table of the paper has, in each panel or band that this one has."""
    known = _every_printed().filter(pl.col("table") != "S1")["data"].unique().to_list()  # its rows are no data
    names = [key for key in ("data", "with") if key in paper.columns]
    strange = ours.filter(~pl.col("data").is_in(known)).select(names).unique().sort(names)
    groups = paper.select(key for key in ("panel", "band") if key in paper.columns).unique(maintain_order=True)
    return groups.join(strange, how="cross")


def _of_overlap(name: str, overlap: Mapping[str, Mapping[str, int]]) -> PaperTable:
    rows: list[tuple[str | int | None, ...]] = []
    for attacker, count in sorted(overlap.items()):
        panel = PLAYS.get(attacker, attacker)
        rows.append((panel, "in the list", count["matching"], count["not_matching"], count["list"]))
        rows.append((panel, "not in the list", count["data_defined"] - count["matching"], None, None))
        rows.append((panel, "total", count["data_defined"], None, None))
    paper = printed(name).rename({"data": "records"})
    ours = _once(pl.DataFrame(rows, paper.schema, orient="row"), "overlaps", ("panel", "records"))
    return _beside(name, ours, paper, others=ours.filter(~pl.col("panel").is_in(paper["panel"].unique().to_list())))


def _of_quantiles(name: str, places: pl.DataFrame | None) -> PaperTable:
    paper = published_variability(name).rename({"quantile": "quantile_at_begin"})
    if places is None:
        return _beside(name, paper.clear(), paper)
    least = inhabited(places).select((pl.col("distance") / (2 * pl.col("population"))).min()).item()
    ours = quantiles(places).with_columns(
        pl.col("population", "cumulative_population", "distance").round().cast(pl.Int64),
        pl.col("quantile").shift(1, fill_value=least).alias("quantile_at_begin"),
    )
    return _beside(name, ours, paper)


def _of_sizes(name: str, places: pl.DataFrame | None) -> PaperTable:
    paper = published_variability(name)
    ours = paper.clear() if places is None else by_size(places)
    after = ("zero_share_low", "zero_share_high", "certain_share", "undecided")
    return _beside(name, ours, paper, after, ours.filter(~pl.col("band").is_in(paper["band"].to_list())))


# Ours and theirs in one frame


def _beside(
    name: str,
    ours: pl.DataFrame,
    paper: pl.DataFrame,
    after: Sequence[str] = (),
    others: pl.DataFrame | None = None,
    notes: Iterable[str] = (),
) -> PaperTable:
    """The table: the paper's rows, then `others` in each panel or band; the paper's columns, then those of `after`."""
    described = _described()
    keys = [column for column in paper.columns if column in described["key"]]
    numbers = [column for column in paper.columns if column not in keys]
    rows = paper.select(keys)
    if others is not None:
        group = "panel" if "panel" in keys else "band"
        rank = {value: at for at, value in enumerate(rows[group].unique(maintain_order=True))}
        rows = pl.concat([rows, others.select(keys)])  # the sort is stable; groups that the paper has not come last
        rows = rows.sort(pl.col(group).replace_strict(rank, default=len(rank)), maintain_order=True)
    theirs = paper.rename({column: f"{column}_published" for column in numbers})
    frame = rows.join(ours, on=keys, how="left", maintain_order="left", validate="m:1")
    frame = frame.join(theirs, on=keys, how="left", maintain_order="left", validate="m:1")
    columns = tuple(_columns(keys, numbers, after))
    types = {"count": pl.Int64, "word": pl.String}
    absent = [column for column in columns if column.name not in frame.columns]
    frame = frame.with_columns(pl.lit(None, types.get(c.kind, pl.Float64)).alias(c.name) for c in absent)
    plan = described["table"][name]
    said = (*(described["note"][note] for note in plan["notes"]), *notes, described["source"])
    return PaperTable(name, plan["title"], said, frame.select(c.name for c in columns), columns)


def _columns(keys: Sequence[str], numbers: Sequence[str], after: Sequence[str]) -> Iterable[Column]:
    described = _described()
    for key in keys:
        yield Column(key, "key", ("", "", described["key"][key]))
    for name in numbers:
        attacker, number = _parted(name)
        told, prefix = described["number"][number], f"{attacker}_" if attacker else ""
        shown = "of" in told and all(prefix + part in numbers or part in numbers for part in told["of"])
        ratio = (prefix + told["of"][0], prefix + told["of"][1], told.get("times", 1)) if shown else None
        over = f"Attacker {attacker}" if attacker else ""
        yield Column(name, _kind(name), (over, told["heading"], "ours"), ratio=ratio)
        yield Column(f"{name}_published", _kind(name), (over, told["heading"], "published"), published=True)
    for name in after:
        attacker, number = _parted(name)
        over = f"Ours, {attacker}" if attacker else "Ours"
        share, _, end = number.rpartition("_")
        if end in ("low", "high"):
            label = f"95% interval of {described['number'][share]['heading'].lower()}"
            yield Column(name, end, (over, label, end), joined=" to " if end == "high" else None)
        elif number == "guesser":
            yield Column(name, "word", (over, "Baseline", number), joined=", ")
        else:
            yield Column(name, _kind(name), (over, described["number"][number]["heading"], _kind(name)))


def _parted(name: str) -> tuple[str, str]:
    """The attacker that a column is about (or none), and the number that it holds."""
    attacker, _, number = name.partition("_")
    return (attacker, number) if attacker in ATTACKERS else ("", name)


def _kind(name: str) -> str:
    told = _described()["number"][_parted(name)[1]]
    return "share" if "of" in told or "share" in told else "count"
