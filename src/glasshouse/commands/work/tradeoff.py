"""The job behind `glasshouse tradeoff`: whole fronts of privacy and utility, and what their points do to the data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from glasshouse.assess.frontier import (
    Aggregation,
    aggregate,
    aggregate_relocation,
    baselines,
    characteristics,
    explained,
    flows,
    largest_receiver,
    measures,
    population_change,
    summary,
)
from glasshouse.commands.words.tradeoff import Baseline, Breakpoint, FitTold, FrontTold, PointTold, Summary
from glasshouse.engine.plain import plain
from glasshouse.errors import InputError
from glasshouse.files.output import private_file, row_writer
from glasshouse.protection.relocation.front import Front, Point, Relocation, Rules, Spread, front, verify
from glasshouse.protection.relocation.rules import Floats, Matrix, staying
from glasshouse.report.figure import Figure
from glasshouse.report.sections.frontier import (
    baselines_picture,
    change_map,
    change_picture,
    front_picture,
    protection_picture,
    risk_picture,
)

DATA = "data"  # the matrix itself, among its aggregates
SUMMARY = "summary.json"
VERIFIED = 5  # points of each front at which duality is checked
GAP = 1e-7  # relative: a front is not given out with more


@dataclass(frozen=True)
class Asked:
    """What is to be found out."""

    matrix: Matrix
    rules: tuple[Rules, ...]  # one for each lambda
    capacity: str  # as it was given
    points: int
    at: float  # the share of utility lost (q) whose relocation is told place by place
    spread: Spread
    looks: Mapping[str, Aggregation]  # coarser looks at the combinations, by name
    shares: tuple[Aggregation, ...]  # attributes that may explain how places change
    coordinates: Floats | None
    degrees: bool


class PointRow(NamedTuple):
    """What the data, or one of its aggregates, is like at a point of a front."""

    lambda_: int
    q: float
    P: float
    U: float
    data: str
    tau: float
    phi: float
    utility: float
    unique_staying: float


def trade(asked: Asked, folder: Path, watch: Callable[[float, str], None]) -> tuple[Summary, list[str]]:
    """Find the fronts, measure their points, write the files; what to say, and the names of the files."""
    found: list[Front] = []
    told: list[FrontTold] = []
    points: list[PointRow] = []
    for number, rules in enumerate(asked.rules):
        one = front(asked.matrix, rules)
        steps = [one.at_share(q) for q in np.linspace(0, 1, asked.points)]
        gap = verify(asked.matrix, rules, one, [one.at_share(q) for q in np.linspace(0, 1, VERIFIED)])
        if gap > GAP:
            raise InputError(
                f"the front for lambda {rules.risk} is off by {gap:.1e} of P_max, by duality: the numbers are too far "
                "apart for floating point; use capacities and counts of like size"
            )
        found.append(one)
        told.append(_front(asked, one, steps, gap))
        for share, point in enumerate(steps):
            points += _measured(asked, one, point, share / (asked.points - 1))
            done = (number + (share + 1) / len(steps)) / len(asked.rules)
            watch(0.95 * done, f"lambda {rules.risk}, {share + 1} of {len(steps)} points measured")
    frames = {
        "fronts": pl.concat([_breakpoints(one) for one in found]),
        "points": pl.DataFrame(points, schema=list(PointRow._fields), orient="row").rename({"lambda_": "lambda"}),
        "baselines": _baselines(asked),
        "changes": pl.concat([_changes(asked, one) for one in found]),
    }
    explained = _explained(asked, found, frames) if asked.shares else None
    said = Summary(tuple(told), tuple(Baseline(**row) for row in frames["baselines"].to_dicts()), explained)
    outputs = []
    for name, frame in frames.items():
        with row_writer(folder / f"{name}.parquet") as writer:
            writer.write(frame)
        outputs.append(f"{name}.parquet")
    outputs += _pictures(asked, folder, frames, found)
    with private_file(folder / SUMMARY) as stream:
        stream.write((json.dumps(plain(said), indent=2) + "\n").encode())
    return said, [*outputs, SUMMARY]


def _front(asked: Asked, one: Front, steps: Sequence[Point], gap: float) -> FrontTold:
    shares = np.linspace(0, 1, len(steps))
    capacity = np.unique(one.rules.capacity)
    return FrontTold(
        lambda_=int(one.rules.risk),
        capacity=float(capacity[0]) if len(capacity) == 1 else Path(asked.capacity).name,
        method=one.method,
        why=one.why,
        duality_gap=gap,
        P_max=one.P_max,
        U_min=one.U_min,
        breakpoints=tuple(Breakpoint(float(p), float(u)) for p, u in zip(one.P, one.U, strict=True)),
        points=tuple(PointTold(round(float(q), 12), point.P, point.U) for q, point in zip(shares, steps, strict=True)),
    )


def _breakpoints(one: Front) -> pl.DataFrame:
    columns = {"lambda": np.full(len(one.P), one.rules.risk, np.int64), "P": one.P, "U": one.U}
    return pl.DataFrame(columns)


def _measured(asked: Asked, one: Front, point: Point, q: float) -> list[PointRow]:
    relocation = one.relocation(point, asked.spread)
    rows = []
    for name, look in {DATA: None, **asked.looks}.items():
        found = measures(asked.matrix, relocation, look)
        rows.append(
            PointRow(
                int(one.rules.risk), round(q, 12), point.P, point.U, name, found.tau, found.phi, found.utility,
                _staying(asked, relocation, look),
            )
        )  # fmt: skip
    return rows


def _staying(asked: Asked, relocation: Relocation, look: Aggregation | None) -> float:
    """How many people who were unique are expected to be where they were."""
    matrix, moved = asked.matrix, relocation
    if look is not None:
        matrix, moved = aggregate(matrix, look), aggregate_relocation(matrix, relocation, look)
    return float(staying(matrix, moved)[matrix.counts == 1].sum())


def _baselines(asked: Asked) -> pl.DataFrame:
    rows = []
    for name, look in {DATA: None, **asked.looks}.items():
        matrix = asked.matrix if look is None else aggregate(asked.matrix, look)
        tau, phi = baselines(matrix)
        rows.append({"data": name, "tau": tau, "phi": phi, "unique": int((matrix.counts == 1).sum())})
    return pl.DataFrame(rows)


def _chosen(asked: Asked, one: Front) -> Relocation:
    return one.relocation(one.at_share(asked.at), asked.spread)


def _changes(asked: Asked, one: Front) -> pl.DataFrame:
    """What the chosen relocation does to each place."""
    relocation = _chosen(asked, one)
    return pl.DataFrame(
        {
            "lambda": np.full(len(asked.matrix.places), one.rules.risk, np.int64),
            "place": pl.Series(asked.matrix.places, dtype=pl.String),
            "population": asked.matrix.population,
            "change": population_change(asked.matrix, relocation),
        }
    )


def _explained(asked: Asked, found: Sequence[Front], frames: dict[str, pl.DataFrame]) -> dict[str, FitTold]:
    """Tables 3 and 4: what the places are like, and what explains how they change."""
    variables = characteristics(asked.matrix, asked.shares)
    frames["places"] = summary(variables)
    told: dict[str, FitTold] = {}
    tables = []
    for one in found:
        change = population_change(asked.matrix, _chosen(asked, one))
        if not np.any(change):
            continue
        try:
            fit = explained(change, variables)
        except InputError as error:  # too few places for so many variables
            told[f"lambda_{one.rules.risk}"] = FitTold(not_explained=str(error))
            continue
        for model, some in (("stepwise", fit.stepwise), ("plain", fit.plain)):
            words = [pl.lit(model).alias("model"), pl.lit(int(one.rules.risk), pl.Int64).alias("lambda")]
            tables.append(some.frame().select(*words, pl.all()))
            told[f"{model}_{one.rules.risk}"] = FitTold(some.r2, some.adjusted_r2, some.left_out)
    if tables:
        frames["explained"] = pl.concat(tables)
    return told


def _pictures(asked: Asked, folder: Path, frames: dict[str, pl.DataFrame], found: Sequence[Front]) -> list[str]:
    points = frames["points"].rename({"lambda": "risk"})
    own = points.filter(pl.col("data") == DATA)
    pictures: dict[str, Figure] = {
        "front": front_picture(frames["fronts"].rename({"lambda": "risk"}), own),
        "risk": risk_picture(points.with_columns(U="utility")),  # each of its own
        "protection": protection_picture(own),
        "baselines": baselines_picture(frames["baselines"]),
    }
    changes = frames["changes"]
    if asked.coordinates is None:
        last = changes.filter(pl.col("lambda") == changes["lambda"][-1])
        pictures["changes"] = change_picture(last, f" (λ = {last['lambda'][0]}, q = {asked.at:g})")
    else:
        pictures["changes"] = _map(asked, found, asked.coordinates)
    for name, picture in pictures.items():
        picture.save(folder / f"{name}.svg")
    return [f"{name}.svg" for name in pictures]


def _map(asked: Asked, found: Sequence[Front], coordinates: Floats) -> Figure:
    changes, joined = [], []
    for one in found:
        relocation = _chosen(asked, one)
        panel = pl.lit(f"λ = {one.rules.risk}, q = {asked.at:g}").alias("panel")
        change = pl.Series("change", population_change(asked.matrix, relocation))
        changes.append(pl.DataFrame([change]).with_row_index("place").select(panel, "place", "change"))
        moved = flows(asked.matrix, relocation)
        receiver = largest_receiver(moved)  # None where nobody moves
        into = moved.clear() if receiver is None else moved.filter(pl.col("target") == receiver)
        joined.append(into.select(panel, "source", "target"))
    return change_map(pl.concat(changes), pl.concat(joined), coordinates, degrees=asked.degrees)
