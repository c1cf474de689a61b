"""Who moves where, with which chance? Theta as a file: written by `tradeoff` and `protect relocate`, and read back.

A row is a way that people can go: of the `people` of one `combination` in `source`, each goes to `target` with
`chance`. What an element's chances lack to 1 is the chance to stay. `lambda` and `q` say which relocation a row is of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.frames import Source, need_columns, open_source, refuse_control
from glasshouse.protection.relocation.rules import Matrix, Relocation

SCHEMA = pl.Schema(
    {
        "lambda": pl.Int64, "q": pl.Float64, "combination": pl.String, "source": pl.String, "target": pl.String,
        "people": pl.Int64, "chance": pl.Float64,
    }
)  # fmt: skip
_WORDS = ("combination", "source", "target")
_NUMBERS = ("lambda", "q", "people", "chance")
_SAME = 1e-9  # values of q within this are one


def theta_frame(matrix: Matrix, relocation: Relocation, risk: int, q: float) -> pl.DataFrame:
    """The chances of a relocation as the rows of a file."""
    kinds, places = (pl.Series(names, dtype=pl.String) for names in (matrix.combinations, matrix.places))
    rows = {
        "combination": kinds.gather(relocation.combination),
        "source": places.gather(relocation.source),
        "target": places.gather(relocation.target),
        "people": matrix.counts[relocation.combination, relocation.source],
        "chance": relocation.share,
    }
    which = [pl.lit(int(risk), pl.Int64).alias("lambda"), pl.lit(float(q), pl.Float64).alias("q")]
    return pl.DataFrame(rows).select(*which, pl.all()).cast(SCHEMA)


def read_theta(path: Path, matrix: Matrix, risk: int, q: float | None = None) -> tuple[Relocation, float]:
    """The relocation of a lambda and a q from a file of chances, and that q; it must be of this very matrix.

    Without a q, the file must have one of that lambda.
    """
    source = open_source(path)
    need_columns(source, tuple(SCHEMA), "the columns of theta.parquet, as tradeoff writes it")
    parts, known = [], set[tuple[int, float]]()
    for chunk in source.chunks(tuple(SCHEMA)):
        frame = _typed(source, chunk.frame, chunk.first).with_row_index("line", chunk.first)
        known |= set(frame.select("lambda", "q").unique().iter_rows())
        asked = pl.lit(True) if q is None else (pl.col("q") - q).abs() <= _SAME
        parts.append(frame.filter((pl.col("lambda") == risk) & asked))
    rows = pl.concat(parts) if parts else pl.DataFrame()
    if not rows.height or rows["q"].n_unique() > 1:
        there = ", ".join(f"lambda {one:g} with q {other!r}" for one, other in sorted(known)) or "no row at all"
        which = f"lambda {risk} and one q" if q is None else f"lambda {risk} and q {q!r}"
        raise InputError(f"{path.name}: expected rows of {which}; found {there}")
    numbers = {
        name: _numbered(source, rows, name, names)
        for name, names in (
            ("combination", matrix.combinations), ("source", matrix.places), ("target", matrix.places))
    }  # fmt: skip
    kind, begin, end = (numbers[name] for name in _WORDS)
    counts = matrix.counts[kind, begin]
    _refuse(source, rows, counts != rows["people"].to_numpy(), "the element has another number of people in the data")
    _refuse(source, rows, begin == end, "source and target are one place")
    _refuse(source, rows, matrix.counts[kind, end] < 1, "nobody of the combination is in the target")
    _refuse(source, rows, rows.select(pl.struct(_WORDS).is_duplicated()).to_series().to_numpy(), "the way stands twice")
    return Relocation(kind, begin, end, rows["chance"].to_numpy().copy()), float(rows["q"][0])


def _typed(source: Source, frame: pl.DataFrame, first: int) -> pl.DataFrame:
    """The columns with their types; the first field that has another is refused."""
    columns = []
    for name in SCHEMA:
        given = frame[name]
        if name in _WORDS:
            if given.dtype.is_numeric():
                raise InputError(f"{source.path.name}: column '{name}' holds numbers; codes are text")
            columns.append(refuse_control(source, first, given.cast(pl.String)))
            bad = columns[-1].is_null()
        else:
            number = given.cast(pl.Float64, strict=False)
            columns.append(number.alias(name))
            bad = (number.is_null() | ~number.is_finite()).fill_null(True)
            if name == "chance":
                bad |= ((number <= 0) | (number > 1)).fill_null(True)
        if bad.any():
            wanted = {"chance": "a chance above 0, at most 1"}.get(name, "a number" if name in _NUMBERS else "a name")
            raise InputError(f"{source.where(first + int(bad.arg_max() or 0))}: column '{name}': expected {wanted}")
    return pl.DataFrame(columns)


def _numbered(
    source: Source, rows: pl.DataFrame, name: str, names: Sequence[str]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The numbers of names in the matrix."""
    position = {one: number for number, one in enumerate(names)}
    found = [position.get(one, -1) for one in rows[name]]
    number = np.array(found, np.int64)
    _refuse(source, rows, number < 0, f"the {name} is not in the data")
    return number


def _refuse(source: Source, rows: pl.DataFrame, bad: Iterable[bool], why: str) -> None:
    first = next((line for line, wrong in zip(rows["line"], bad, strict=True) if wrong), None)
    if first is not None:
        raise InputError(f"{source.where(int(first))}: {why}; expected the theta of this very data")
