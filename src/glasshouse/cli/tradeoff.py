"""The commands about relocation: tradeoff, and protect relocate."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glasshouse.cli.options import Json, Quiet, Verbose, finish, refuse_no_file
from glasshouse.cli.session import refuse_nowhere
from glasshouse.errors import InputError, unknown

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    from glasshouse.protection.relocation.rules import Matrix, Rules

app = typer.Typer(rich_markup_mode=None)

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the result of another run in --out.")]
By = Annotated[
    str,
    typer.Option("--by", metavar="COLUMNS", help="Of records: the columns that form a combination, as a,b,c."),
]
Place = Annotated[str, typer.Option("--place", help="Of records: the column of the place's code, free text.")]
Capacity = Annotated[
    str,
    typer.Option(
        "--capacity",
        metavar="N|N%|FILE",
        help="How many may arrive in a place, on average: a number, a share of its people, or a file place,capacity.",
    ),
]
Weight_ = Annotated[
    str,
    typer.Option(
        "--weight",
        help="What moving a person is worth: inverse-quadratic, constant, inverse-linear, inverse-cubic, "
        "inverse-exponential (in the people of their element).",
    ),
]
Coverage_ = Annotated[
    str, typer.Option("--coverage", help="Who may receive: row-wise (not at risk in that row), or relaxed.")
]
Near = Annotated[
    Path | None, typer.Option("--near", metavar="FILE", help="Only to places near: pairs of codes, two columns.")
]
Coordinates = Annotated[
    Path | None, typer.Option("--coordinates", metavar="FILE", help="Where places are: code, x, y.")
]
Within = Annotated[
    float, typer.Option("--within", metavar="D", help="Only to places at most so far, in units of --coordinates.")
]
Spread_ = Annotated[
    str,
    typer.Option(
        "--spread", help="Of people alike: whole (elements are emptied one by one) or even (the same chance)."
    ),
]


@app.command(
    epilog="Example:  glasshouse tradeoff tract_ver.csv --lambda 1 --lambda 2 --lambda 3 --capacity 20 "
    "--attributes age,ethnicity,race --drop ER=age --drop R=age,ethnicity --out front"
)
def tradeoff(
    matrix: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Counts: a row per place, a column per combination; or records, see --by."),
    ],
    risk: Annotated[
        list[int],
        typer.Option("--lambda", metavar="N", min=0, help="Elements of 1 to N people are at risk; may be repeated."),
    ] = [3],  # noqa: B006  # typer copies it
    capacity: Capacity = "20",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The folder to write.")] = None,
    points: Annotated[int, typer.Option("--points", min=2, help="Points of each front to measure, evenly in U.")] = 21,
    at: Annotated[
        float,
        typer.Option("--at", metavar="Q", min=0, max=1, help="The point whose relocation is told place by place."),
    ] = 1.0,
    by: By = "",
    place: Place = "block",
    attributes: Annotated[
        str, typer.Option("--attributes", metavar="NAMES", help="What a combination's name is made of, joined by _.")
    ] = "",
    drop: Annotated[
        list[str], typer.Option("--drop", metavar="NAME=ATTRIBUTES", help="Measure an aggregate without these, too.")
    ] = [],  # noqa: B006
    aggregate: Annotated[
        list[str], typer.Option("--aggregate", metavar="NAME=FILE", help="The same by a file: combination, group.")
    ] = [],  # noqa: B006
    explain: Annotated[
        list[Path],
        typer.Option(
            "--explain", metavar="FILE", help="Groups whose shares may explain how places change: combination, group."
        ),
    ] = [],  # noqa: B006
    weight: Weight_ = "inverse-quadratic",
    coverage: Coverage_ = "row-wise",
    near: Near = None,
    coordinates: Coordinates = None,
    within: Within = 0.0,
    degrees: Annotated[bool, typer.Option("--degrees", help="Coordinates are longitude and latitude.")] = False,
    spread: Spread_ = "whole",
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """How much privacy for how much utility? The whole front of relocating people at risk, exact."""
    from glasshouse.assess.frontier import Aggregation
    from glasshouse.commands.work.tradeoff import DATA, Asked, lines, trade
    from glasshouse.engine.folder import Folder
    from glasshouse.engine.manifest import Manifest
    from glasshouse.engine.progress import progress
    from glasshouse.files.matrix import read_groups
    from glasshouse.files.surroundings import numbers_of
    from glasshouse.protection.relocation.front import Spread

    refuse_nowhere(out, as_json=as_json)
    if len(set(risk)) < len(risk):
        raise InputError(f"--lambda {max(risk, key=risk.count)} is given twice; expected different ones")
    found = _matrix(matrix, by, place)
    names = tuple(name.strip() for name in (attributes or by).split(",") if name.strip())
    looks = _looks(found, names, drop)
    for name, path in _named(aggregate, "--aggregate", "NAME=FILE"):
        looks[name] = Aggregation.by_name(found.combinations, read_groups(Path(path), found.combinations))
    shares = tuple(Aggregation.by_name(found.combinations, read_groups(path, found.combinations)) for path in explain)
    if DATA in looks:
        raise InputError(f"the name {DATA} is that of the matrix itself; choose another for the aggregate")
    if names and not shares:
        shares = _shares(found, names)
    where = numbers_of(coordinates, found.places, ("x", "y")) if coordinates else None
    rules = tuple(_rules(found, number, capacity, weight, coverage, near, where, within) for number in sorted(risk))
    if spread not in tuple(Spread):
        raise unknown("--spread", spread, tuple(Spread))
    if degrees and where is None:
        raise InputError("--degrees says what --coordinates are; it needs them")
    asked = Asked(found, rules, capacity, points, at, Spread(spread), looks, shares, where, degrees)
    parameters = {
        "lambda": sorted(risk), "capacity": capacity, "points": points, "at": at, "by": by,
        "place": place if by else "", "attributes": attributes, "drop": drop, "weight": weight,
        "coverage": coverage, "within": within, "aggregate": [entry.split("=")[0] for entry in aggregate],
        "degrees": degrees, "spread": spread,
    }  # fmt: skip
    inputs = _inputs(matrix, capacity, near, coordinates)
    inputs |= {f"explain {number}": path for number, path in enumerate(explain, start=1)}
    inputs |= {f"aggregate {name}": Path(path) for name, path in _named(aggregate, "--aggregate", "NAME=FILE")}
    manifest = Manifest("tradeoff", parameters, inputs)
    with ExitStack() as stack:
        folder = Folder(out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="glasshouse-"))), manifest)
        told = folder.done(overwrite=overwrite)
        said: dict[str, Any] = dict(told["counts"]) if told else {}
        if told is None:
            about = {"command": "tradeoff", "parameters": parameters}
            with folder.working(about, overwrite=overwrite) as ledger, progress("tradeoff", shown=not quiet) as watch:
                folder.make_room()
                said, outputs = trade(asked, folder.path, watch)
                folder.write(said, outputs, cpu=0.0, complete=True)
            ledger.forget()
    told_lines = [f"{out} is up to date"] if told else [*lines(said, asked), f"-> {out}"]
    json_ = {"command": "tradeoff", "out": str(out) if out else None, **said, "unchanged": told is not None}
    return finish(json_, as_json, quiet, told_lines, always=True)


def _matrix(path: Path, by: str, place: str) -> Matrix:
    from glasshouse.files.matrix import matrix_of, read_matrix, record_frames
    from glasshouse.protection.relocation.rules import Matrix

    refuse_no_file(path)
    if by:
        columns = [name.strip() for name in by.split(",")]
        found = matrix_of(record_frames(path, place, columns), columns)
    else:
        found = read_matrix(path)
    return Matrix(found.combinations, found.places, found.counts)


def _rules(
    matrix: Matrix, risk: int, capacity: str, weight: str, coverage: str, near: Path | None, where: Any, within_: float
) -> Rules:
    from glasshouse.files.surroundings import neighbours_of, within
    from glasshouse.protection.relocation.rules import Coverage, Rules, Weight

    if weight not in tuple(Weight):
        raise unknown("--weight", weight, tuple(Weight))
    if coverage not in tuple(Coverage):
        raise unknown("--coverage", coverage, tuple(Coverage))
    if near is not None and within_:
        raise InputError("--near and --within both say which places are near; give one or the other")
    if within_ and where is None:
        raise InputError("--within needs --coordinates: where the places are")
    reach = neighbours_of(near, matrix.places) if near is not None else within(where, within_) if within_ else None
    return Rules(risk, _capacity(matrix, capacity), Weight(weight), Coverage(coverage), reach)


def _capacity(matrix: Matrix, text: str) -> Any:
    from glasshouse.files.surroundings import numbers_of
    from glasshouse.protection.relocation.rules import capacities

    number = text.removesuffix("%")
    try:
        value = float(number)
    except ValueError:
        if not Path(text).is_file():
            raise InputError(f"--capacity {text}: expected a number, a percentage such as 5%, or a file") from None
        return numbers_of(Path(text), matrix.places, ("capacity",), least=0)[:, 0]
    if not 0 <= value < float("inf"):
        raise InputError(f"--capacity {text}: expected a number from 0")
    return capacities(matrix, share=value / 100) if text.endswith("%") else capacities(matrix, value)


def _inputs(data: Path, capacity: str, near: Path | None, coordinates: Path | None) -> dict[str, Path]:
    inputs = {"data": data} | ({"near": near} if near else {}) | ({"coordinates": coordinates} if coordinates else {})
    return inputs | ({"capacity": Path(capacity)} if Path(capacity).is_file() else {})


def _named(given: list[str], option: str, how: str) -> list[tuple[str, str]]:
    found = []
    for entry in given:
        name, equals, rest = entry.partition("=")
        if not equals or not name or not rest:
            raise InputError(f"{option} {entry}: expected {how}")
        found.append((name, rest))
    return found


def _looks(matrix: Matrix, attributes: tuple[str, ...], drop: list[str]) -> dict[str, Any]:
    from glasshouse.assess.frontier import Aggregation

    if drop and not attributes:
        raise InputError("--drop needs --attributes: what a combination's name is made of")
    return {
        name: Aggregation.dropping(matrix.combinations, attributes, [part.strip() for part in rest.split(",")])
        for name, rest in _named(drop, "--drop", "NAME=ATTRIBUTES")
    }


def _shares(matrix: Matrix, attributes: tuple[str, ...]) -> tuple[Any, ...]:
    """Each attribute alone: what share of a place's people has each of its values."""
    from glasshouse.assess.frontier import Aggregation

    alone = {
        name: Aggregation.dropping(matrix.combinations, attributes, [other for other in attributes if other != name])
        for name in attributes
    }
    every = [group for look in alone.values() for group in look.groups]
    if len(set(every)) == len(every):
        return tuple(alone.values())
    return tuple(look.renamed({group: f"{name}={group}" for group in look.groups}) for name, look in alone.items())
