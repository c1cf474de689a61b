"""How much privacy for how much utility? The whole front of relocating people at risk, exact."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import OutFolder, Overwrite, inputs_of
from glasshouse.commands.relocating.options import AT, BY, Relocating, SpreadName
from glasshouse.commands.result import Result
from glasshouse.commands.words.tradeoff import Summary, lines
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.assess.frontier import Aggregation
    from glasshouse.engine.lifecycle import Made, Workplace
    from glasshouse.protection.relocation.rules import Matrix
    from glasshouse.report.figure import Drawn


class Tradeoff(Result[Summary]):
    """Fronts of privacy and utility, and what their points do to the data."""

    fronts: pl.DataFrame  # every breakpoint of every front
    points: pl.DataFrame  # points of each front, evenly in U, and what the data and its aggregates are like there
    baselines: pl.DataFrame  # the risk of the data and of its aggregates before anybody moves
    chosen: pl.DataFrame  # the points asked for: their numbers, and how many places gain and lose people
    changes: pl.DataFrame  # how each place changes, at the points asked for
    theta: pl.DataFrame  # who moves where, with which chance, at the points asked for: as confidential as the data
    protected: pl.DataFrame  # protected versions of the data, as they are, if there are any
    places: pl.DataFrame  # what the places are like, if there are attributes or groups that say so
    explained: pl.DataFrame  # what explains how places change, if there are attributes or groups that may

    def figure(self, name: str = "front") -> Drawn:
        """A picture: front, risk, protection, baselines, changes, or protected."""
        return super().figure(name)

    def said(self) -> dict[str, object]:
        return {**super().said(), "unchanged": self.ended.unchanged}


@command(
    example="glasshouse tradeoff tract_ver.csv --lambda 1 --lambda 2 --lambda 3 --capacity 20 "
    "--attributes age,ethnicity,race --drop ER=age --drop R=age,ethnicity --out front\n\n"
    "A point by its risk:  --at tau=0.1    Twelve maps:  --at 0.25 --at 0.5 --at 0.75 --at 1 --coordinates tracts.csv"
    "\n\nOther protections beside the front:  --by sex,race --protected swapped.parquet --person person_id"
)
def tradeoff(
    matrix: Annotated[
        Path, Opt("Counts: a row per place, a column per combination; or records, see --by.", metavar="FILE")
    ],
    *,
    risk: Annotated[
        tuple[int, ...],
        Opt(
            "Elements of 1 to N people are at risk; may be repeated.",
            flag="--lambda",
            metavar="N",
            least=0,
            repeated=True,
        ),
    ] = (3,),
    out: OutFolder = None,
    points: Annotated[int, Opt("Points of each front to measure, evenly in U.", least=2)] = 21,
    at: Annotated[
        tuple[str | float, ...],
        Opt(f"{AT}; its relocation is told place by place; may be repeated.", metavar="Q|U=|P=|tau=", repeated=True),
    ] = ("1",),
    by: Annotated[tuple[str, ...], Opt(BY, metavar="COLUMNS")] = (),
    attributes: Annotated[
        tuple[str, ...], Opt("What a combination's name is made of, joined by _.", metavar="NAMES")
    ] = (),
    drop: Annotated[
        Mapping[str, str] | None, Opt("Measure an aggregate without these, too.", metavar="NAME=ATTRIBUTES")
    ] = None,
    aggregate: Annotated[
        Mapping[str, Path] | None, Opt("The same by a file: combination, group.", metavar="NAME=FILE")
    ] = None,
    explain: Annotated[
        tuple[Path, ...],
        Opt("Groups whose shares may explain how places change: combination, group.", metavar="FILE", repeated=True),
    ] = (),
    variables: Annotated[
        tuple[str, ...], Opt("Explain how places change by these variables alone, too, as white,total population.")
    ] = (),
    protected: Annotated[
        tuple[tuple[str, Path], ...],
        Opt("A protected version of the data, to stand beside the front; repeatable.", metavar="[NAME=]FILE"),
    ] = (),
    person: Annotated[str, Opt("Of records: the column that names people, to count by name who stayed.")] = "",
    rules: Relocating = Relocating(),  # noqa: B008  # frozen
    degrees: Annotated[bool, Opt("Coordinates are longitude and latitude.")] = False,
    spread: SpreadName = "whole",
    overwrite: Overwrite = False,
) -> Tradeoff:
    """How much privacy for how much utility? The whole front of relocating people at risk, exact."""
    from glasshouse.assess.front.choosing import Target
    from glasshouse.commands.relocating.judged import elements
    from glasshouse.commands.work.tradeoff import Asked, trade
    from glasshouse.engine.lifecycle import Made, in_folder
    from glasshouse.engine.manifest import Manifest
    from glasshouse.protection.relocation.front import Spread

    if len(set(risk)) < len(risk):
        raise InputError(f"--lambda {max(risk, key=risk.count)} is given twice; expected different ones")
    if degrees and rules.coordinates is None:
        raise InputError("--degrees says what --coordinates are; it needs them")
    targets = tuple(Target.read(str(one), "--at") for one in at)
    twice = next((one for one in targets if targets.count(one) > 1), None)
    if twice is not None or not targets:
        raise InputError(f"--at {twice}: it is given twice; expected different points" if twice else "--at is empty")
    if person and not (by and protected):
        raise InputError("--person needs --by and --protected: records whose people are looked for")
    others = _named(protected)
    drop, aggregate, risk = drop or {}, aggregate or {}, tuple(sorted(risk))
    inputs = rules.inputs(matrix) | inputs_of(
        {f"explain {number}": path for number, path in enumerate(explain, start=1)}
        | {f"aggregate {name}": path for name, path in aggregate.items()}
        | {f"protected {name}": path for name, path in others.items()}
    )
    found = rules.matrix(matrix, by)
    looks = _looks(found, attributes or by, drop, aggregate)
    shares = _shares(found, attributes or by, explain)
    if variables and not shares:
        raise InputError("--variables needs --attributes, --by or --explain: what the variables are made of")
    beside = {name: elements(matrix, found, path, by, rules.place, person) for name, path in others.items()}
    asked = Asked(
        found, rules.rules(found, risk), str(rules.capacity), points, targets, Spread(spread), looks, shares, variables,
        beside, rules.where(found), degrees,
    )  # fmt: skip
    parameters = {
        "lambda": list(risk), "capacity": str(rules.capacity), "points": points,
        "at": [str(one) for one in targets], "by": ",".join(by),
        "place": rules.place if by else "", "attributes": ",".join(attributes),
        "drop": [f"{name}={rest}" for name, rest in drop.items()], "weight": rules.weight,
        "coverage": rules.coverage, "within": rules.within, "aggregate": list(aggregate), "degrees": degrees,
        "spread": spread, "variables": list(variables), "protected": list(others), "person": person,
    }  # fmt: skip

    def work(place: Workplace) -> Made[Summary]:
        summary, outputs = trade(asked, place.path, place.bar)
        return Made(summary, outputs, lines(summary, found))

    return Tradeoff(in_folder(Manifest("tradeoff", parameters, inputs), Summary, work, out=out, overwrite=overwrite))


def _named(protected: tuple[tuple[str, Path], ...]) -> dict[str, Path]:
    """Protected versions by name; without one, that of the file."""
    found: dict[str, Path] = {}
    for given, path in protected:
        name = given or path.name.partition(".")[0]
        if name in found:
            raise InputError(f"--protected {path}: two files go by the name {name}; name one yourself, as NAME=FILE")
        found[name] = path
    return found


def _looks(
    matrix: Matrix, attributes: tuple[str, ...], drop: Mapping[str, str], aggregate: Mapping[str, Path]
) -> dict[str, Aggregation]:
    """Coarser looks at the combinations, by name."""
    from glasshouse.assess.frontier import Aggregation
    from glasshouse.commands.work.tradeoff import DATA
    from glasshouse.files.matrix import read_groups

    if drop and not attributes:
        raise InputError("--drop needs --attributes: what a combination's name is made of")
    if DATA in drop or DATA in aggregate:
        raise InputError(f"the name {DATA} is that of the matrix itself; choose another for the aggregate")
    dropped = {
        name: Aggregation.dropping(matrix.combinations, attributes, [part.strip() for part in rest.split(",")])
        for name, rest in drop.items()
    }
    return dropped | {
        name: Aggregation.by_name(matrix.combinations, read_groups(path, matrix.combinations))
        for name, path in aggregate.items()
    }


def _shares(matrix: Matrix, attributes: tuple[str, ...], explain: tuple[Path, ...]) -> tuple[Aggregation, ...]:
    """What may explain how places change: groups of files, or each attribute alone, by the shares of its values."""
    from glasshouse.assess.frontier import Aggregation
    from glasshouse.files.matrix import read_groups

    if explain:
        groups = (read_groups(path, matrix.combinations) for path in explain)
        return tuple(Aggregation.by_name(matrix.combinations, one) for one in groups)
    alone = {
        name: Aggregation.dropping(matrix.combinations, attributes, [other for other in attributes if other != name])
        for name in attributes
    }
    every = [group for look in alone.values() for group in look.groups]
    if len(set(every)) == len(every):
        return tuple(alone.values())
    return tuple(look.renamed({group: f"{name}={group}" for group in look.groups}) for name, look in alone.items())
