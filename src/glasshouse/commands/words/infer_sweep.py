"""What does a grid of rho and priors say? The risk of each pair, as a table, as tiles, and as lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import expit

from glasshouse.attack.infer.hierarchy import CountPrior
from glasshouse.attack.infer.onelevel import check_prior, decide, logit, marginal
from glasshouse.attack.infer.twolevel import TwoLevels, correct_decision
from glasshouse.errors import InputError
from glasshouse.files.output import row_writer
from glasshouse.mechanism.account import fraction
from glasshouse.mechanism.gaussian import rate_of
from glasshouse.report.description import Column, Table, Tiles
from glasshouse.report.figure import Figure
from glasshouse.report.framed import Axis, lines, number
from glasshouse.report.words import phrase

MOST_TILES, MOST_LINES = 20, 8  # of a side of the map; priors that are told apart as lines
_RHO = Axis("rho", "rho", log=True)
MEASURES = ("posterior", "risk", "correct")


@dataclass(frozen=True)
class Above:
    """The level above the target's group: its rate, the other groups, its true count, what is believed of it."""

    rate: float
    others: int
    true: int
    prior: str


@dataclass(frozen=True)
class Grid:
    """What is asked: every rho with every prior."""

    rhos: tuple[float, ...]
    priors: tuple[float, ...]
    shares: tuple[float, ...]  # of rho, for each level at which the target is unique
    above: Above | None
    ties: str
    neighbours: str

    @property
    def size(self) -> int:
        return len(self.rhos) * len(self.priors)

    def at(self, rho: float, prior: float) -> tuple[float, float, float]:
        """The average posterior of the truth, its ratio to the prior, how often the likelier value is right."""
        rates = [rate_of(rho * share, self.neighbours) for share in self.shares]
        if self.above is None:
            found = marginal(rates, prior)
            return found.posterior, found.ratio, decide(rates, prior, ties=self.ties).probability
        known = CountPrior.read(self.above.prior)
        attack = TwoLevels(rates[0], self.above.rate, self.above.others, prior, above=known)
        both = correct_decision(attack, true2=self.above.true, ties=self.ties)
        return both.belief.posterior, both.belief.ratio, both.probability


def grid(text: str, what: str, *, odds: bool) -> tuple[float, ...]:
    """Values between commas, or FROM:TO:N: evenly in the logarithm, or of probabilities in the log odds."""
    parts = text.split(":")
    if len(parts) == 1:
        values = [float(fraction(part.strip(), what)) for part in text.split(",")]
        if len(set(values)) < len(values):
            raise InputError(f"{what} {text}: a value is given twice; expected different ones")
    else:
        values = _even(parts, text, what, odds=odds)
    for value in values:
        if odds:
            check_prior(value)
        elif not value > 0:
            raise InputError(f"{what} {text}: {value:g} buys nothing; expected values above 0")
    return tuple(sorted(values))


def _even(parts: list[str], text: str, what: str, *, odds: bool) -> list[float]:
    try:
        many = int(parts[2]) if len(parts) == 3 else 0
    except ValueError:
        many = 0
    if many < 2:
        raise InputError(f"{what} {text}: expected FROM:TO:N, with N from 2 up, or values between commas")
    ends = [float(fraction(part.strip(), what)) for part in parts[:2]]
    if not 0 < ends[0] < ends[1] or (odds and ends[1] >= 1):
        wanted = "0 < FROM < TO < 1" if odds else "0 < FROM < TO"
        raise InputError(f"{what} {text}: expected {wanted}")
    first, last = ends
    evenly = expit(np.linspace(logit(first), logit(last), many)) if odds else np.geomspace(first, last, many)
    return [first, *(float(value) for value in evenly[1:-1]), last]


def swept(asked: Grid, folder: Path, watch: Callable[[float, str], None]) -> tuple[pl.DataFrame, list[str]]:
    """Work out every point of a grid, write the table and the pictures; the table, and the names of the files."""
    rows = []
    for prior in asked.priors:
        for rho in asked.rhos:
            rows.append((rho, prior, *asked.at(rho, prior)))
            watch(len(rows) / asked.size, f"{len(rows):,} of {asked.size:,} pairs")
    frame = pl.DataFrame(rows, schema=dict.fromkeys(("rho", "prior", *MEASURES), pl.Float64), orient="row")
    with row_writer(folder / "sweep.parquet") as writer:
        writer.write(frame)
    pictures = {"map": _map(frame)} if max(len(asked.rhos), len(asked.priors)) <= MOST_TILES else {}
    if len(asked.priors) <= MOST_LINES:
        pictures |= {"average": _lines(frame), "decision": _right(frame)}
    for name, picture in pictures.items():
        picture.save(folder / f"{name}.svg")
    return frame, ["sweep.parquet", *(f"{name}.svg" for name in pictures)]


def _map(frame: pl.DataFrame) -> Figure:
    """Tiles: the darker, the more is believed of the truth on average."""
    title = phrase("infer.map")
    rows = tuple(
        (f"{row['rho']:.3g}", f"p = {row['prior']:.3g}", number(round(row["posterior"], 3)))
        for row in frame.sort("prior", "rho", descending=[True, False]).iter_rows(named=True)
    )
    columns = (Column("rho"), Column(phrase("infer.prior")), Column(phrase("infer.posterior")))
    table = Table("map", title, columns, rows, "sweep.parquet", keys=2)
    return Figure.of(Tiles("map", title, phrase("infer.map_says"), table, 2, 0, 1, columns[2].title))


def _lines(frame: pl.DataFrame) -> Figure:
    """Figure 2 of the paper for one's own numbers: what is believed on average, and how many times the prior it is."""
    long = pl.concat(
        _spelled(frame).select(
            pl.lit(phrase(f"infer.{name}")).alias("measure"), "prior", "rho", pl.col(name).alias("value")
        )
        for name in ("posterior", "risk")
    )
    return lines(
        phrase("infer.sweep"), long, _RHO, Axis("value", "", log=True), Axis("prior", phrase("infer.prior")), "measure",
        points=True,
    )  # fmt: skip


def _right(frame: pl.DataFrame) -> Figure:
    """Figure 3: how often an adversary who picks the likelier value is right."""
    y = Axis("correct", phrase("infer.correct"), zero=True)
    group = Axis("prior", phrase("infer.prior"))
    return lines(phrase("infer.decision"), _spelled(frame), _RHO, y, group, points=True)


def _spelled(frame: pl.DataFrame) -> pl.DataFrame:
    """The priors as words, the largest first."""
    words = pl.col("prior").map_elements(lambda value: f"{value:.3g}", return_dtype=pl.String)
    return frame.sort("prior", "rho", descending=[True, False]).with_columns(words)
