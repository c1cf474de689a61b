"""The job behind `glasshouse tradeoff`: whole fronts of privacy and utility, and what their points do to the data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from glasshouse.assess.front.choosing import Chosen, Target, choose
from glasshouse.assess.front.released import Elements, protection_of, released
from glasshouse.assess.frontier import (
    Aggregation,
    aggregate,
    aggregate_relocation,
    baselines,
    characteristics,
    explained,
    flows,
    largest_receiver,
    least_squares,
    measures,
    population_change,
    summary,
)
from glasshouse.commands.relocating.theta import theta_frame
from glasshouse.commands.words.tradeoff import (
    Baseline,
    Breakpoint,
    ChosenTold,
    FitTold,
    FrontTold,
    PointTold,
    ProtectedTold,
    Summary,
)
from glasshouse.engine.plain import plain
from glasshouse.errors import InputError, unknown
from glasshouse.files.output import private_file, row_writer
from glasshouse.protection.relocation.front import Front, Point, Relocation, Rules, Spread, front, verify
from glasshouse.protection.relocation.rules import Floats, Matrix, staying
from glasshouse.report.figure import Figure
from glasshouse.report.sections.frontier import (
    baselines_picture,
    change_map,
    change_picture,
    changes_pictures,
    front_picture,
    protected_picture,
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
    at: tuple[Target, ...]  # the points whose relocations are told place by place
    spread: Spread
    looks: Mapping[str, Aggregation]  # coarser looks at the combinations, by name
    shares: tuple[Aggregation, ...]  # attributes that may explain how places change
    variables: tuple[str, ...]  # of those that the shares make: a model of these alone
    beside: Mapping[str, tuple[Elements, str]]  # protected versions of the data, and how it is known who stayed
    coordinates: Floats | None
    degrees: bool


@dataclass(frozen=True, eq=False)
class Stop:
    """A point of a front that was asked for, and a relocation there."""

    front: Front
    chosen: Chosen
    relocation: Relocation

    @property
    def risk(self) -> int:
        return int(self.front.rules.risk)

    @property
    def panel(self) -> str:
        asked = self.chosen.target
        return f"λ = {self.risk}, {asked.kind if asked.kind != 'tau' else 'τ'} = {asked.value:g}"


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
    stops = [_stop(asked, one, target) for one in found for target in asked.at]
    chosen = tuple(_told(asked, stop) for stop in stops)
    frames = {
        "fronts": pl.concat([_breakpoints(one) for one in found]),
        "points": pl.DataFrame(points, schema=list(PointRow._fields), orient="row").rename({"lambda_": "lambda"}),
        "baselines": _baselines(asked),
        "chosen": pl.DataFrame([plain(one) for one in chosen]),
        "changes": pl.concat([_changes(asked, stop) for stop in stops]),
        "theta": pl.concat([theta_frame(asked.matrix, stop.relocation, stop.risk, stop.chosen.q) for stop in stops]),
    }
    explained = _explained(asked, stops, frames) if asked.shares else None
    protected = tuple(_released(name, *beside) for name, beside in asked.beside.items())
    if protected:
        frames["protected"] = _protected(asked, protected)
    said = Summary(
        tuple(told), tuple(Baseline(**row) for row in frames["baselines"].to_dicts()), explained, chosen, protected
    )
    outputs = []
    for name, frame in frames.items():
        with row_writer(folder / f"{name}.parquet") as writer:
            writer.write(frame)
        outputs.append(f"{name}.parquet")
    outputs += _pictures(asked, folder, frames, stops)
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


def _stop(asked: Asked, one: Front, target: Target) -> Stop:
    chosen = choose(one, target, asked.spread)
    return Stop(one, chosen, one.relocation(chosen.point, asked.spread))


def _told(asked: Asked, stop: Stop) -> ChosenTold:
    """A point that was asked for, in numbers."""
    seen = measures(asked.matrix, stop.relocation)
    change = population_change(asked.matrix, stop.relocation)
    return ChosenTold(
        stop.risk, str(stop.chosen.target), stop.chosen.q, stop.chosen.point.P, stop.chosen.point.U, seen.tau, seen.phi,
        float(stop.relocation.people(asked.matrix).sum()), int((change > 0).sum()), int((change < 0).sum()),
        int((change == 0).sum()),
    )  # fmt: skip


def _changes(asked: Asked, stop: Stop) -> pl.DataFrame:
    """What a chosen relocation does to each place."""
    many = len(asked.matrix.places)
    return pl.DataFrame(
        {
            "lambda": np.full(many, stop.risk, np.int64),
            "q": np.full(many, stop.chosen.q),
            "place": pl.Series(asked.matrix.places, dtype=pl.String),
            "population": asked.matrix.population,
            "change": population_change(asked.matrix, stop.relocation),
        }
    )


def _released(name: str, of: Elements, stayed: str) -> ProtectedTold:
    found = released(of)
    return ProtectedTold(name, found.tau, found.phi, found.utility, found.left, found.appeared, stayed)


def _protected(asked: Asked, told: Sequence[ProtectedTold]) -> pl.DataFrame:
    """Protected versions of the data: P for each lambda, and what does not depend on it."""
    rows = [
        {"lambda": int(rules.risk), "P": protection_of(asked.beside[one.name][0], rules)} | plain(one)
        for one in told
        for rules in asked.rules
    ]
    return pl.DataFrame(rows).select("name", "lambda", "P", pl.exclude("name", "lambda", "P"))


def _explained(asked: Asked, stops: Sequence[Stop], frames: dict[str, pl.DataFrame]) -> dict[str, FitTold]:
    """Tables 3 and 4: what the places are like, and what explains how they change."""
    variables = characteristics(asked.matrix, asked.shares)
    for name in asked.variables:
        if name not in variables:
            raise unknown("variable", name, variables)
    frames["places"] = summary(variables)
    told: dict[str, FitTold] = {}
    tables = []
    for stop in stops:
        change = population_change(asked.matrix, stop.relocation)
        which = (
            f"{stop.risk}"
            if len(asked.at) == 1
            else f"{stop.risk}_{stop.chosen.target.kind}{stop.chosen.target.value:g}"
        )
        if not np.any(change):
            continue
        try:
            fit = explained(change, variables)
            models = {"stepwise": fit.stepwise, "plain": fit.plain}
            if asked.variables:
                models["named"] = least_squares(change, {name: variables[name] for name in asked.variables})
        except InputError as error:  # too few places for so many variables
            told[f"lambda_{which}"] = FitTold(not_explained=str(error))
            continue
        for model, some in models.items():
            words = [
                pl.lit(model).alias("model"), pl.lit(stop.risk, pl.Int64).alias("lambda"),
                pl.lit(stop.chosen.q, pl.Float64).alias("q"),
            ]  # fmt: skip
            tables.append(some.frame().select(*words, pl.all()))
            told[f"{model}_{which}"] = FitTold(some.r2, some.adjusted_r2, some.left_out)
    if tables:
        frames["explained"] = pl.concat(tables)
    return told


def _pictures(asked: Asked, folder: Path, frames: dict[str, pl.DataFrame], stops: Sequence[Stop]) -> list[str]:
    points = frames["points"].rename({"lambda": "risk"})
    own = points.filter(pl.col("data") == DATA)
    pictures: dict[str, Figure] = {
        "front": front_picture(frames["fronts"].rename({"lambda": "risk"}), own),
        "risk": risk_picture(points.with_columns(U="utility")),  # each of its own
        "protection": protection_picture(own),
        "baselines": baselines_picture(frames["baselines"]),
        "changes": _places_picture(asked, frames["changes"], stops),
    }
    if "protected" in frames:
        pictures["protected"] = protected_picture(own, frames["protected"].rename({"lambda": "risk"}))
    for name, picture in pictures.items():
        picture.save(folder / f"{name}.svg")
    return [f"{name}.svg" for name in pictures]


def _places_picture(asked: Asked, changes: pl.DataFrame, stops: Sequence[Stop]) -> Figure:
    """How places change: a map for each point asked for; without coordinates, the places in order."""
    if asked.coordinates is not None:
        return _map(asked, stops, asked.coordinates)
    if len(asked.at) > 1:
        return changes_pictures({stop.panel: population_change(asked.matrix, stop.relocation) for stop in stops})
    last = changes.filter(pl.col("lambda") == changes["lambda"][-1])
    return change_picture(last, f" ({stops[-1].panel})")


def _map(asked: Asked, stops: Sequence[Stop], coordinates: Floats) -> Figure:
    changes, joined = [], []
    for stop in stops:
        panel = pl.lit(stop.panel).alias("panel")
        change = pl.Series("change", population_change(asked.matrix, stop.relocation))
        changes.append(pl.DataFrame([change]).with_row_index("place").select(panel, "place", "change"))
        moved = flows(asked.matrix, stop.relocation)
        receiver = largest_receiver(moved)  # None where nobody moves
        into = moved.clear() if receiver is None else moved.filter(pl.col("target") == receiver)
        joined.append(into.select(panel, "source", "target"))
    return change_map(pl.concat(changes), pl.concat(joined), coordinates, degrees=asked.degrees)
