"""Who may move where? The options that `tradeoff` and `protect relocate` share, and the rules that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.declaration import Opt
from glasshouse.commands.options import inputs_of
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    from glasshouse.protection.relocation.rules import Floats, Matrix, Rules

BY = "Of records: the columns that form a combination, as a,b,c."
WeightName = Literal["inverse-quadratic", "constant", "inverse-linear", "inverse-cubic", "inverse-exponential"]
CoverageName = Literal["row-wise", "relaxed"]
SpreadName = Annotated[
    Literal["whole", "even"],
    Opt("Of people alike: whole (elements are emptied one by one) or even (the same chance)."),
]
AT = (
    "A point of the front: the share of the utility that can be lost (0.5), or U=0.9, P=500, tau=0.1 (the most utility "
    "with at most this tau)"
)


@dataclass(frozen=True)
class Relocating:
    """Where people are, how many may arrive in a place, what moving a person is worth, and how far they may go."""

    place: Annotated[str, Opt("Of records: the column of the place's code, free text.")] = "block"
    capacity: Annotated[
        str | float,
        Opt(
            "How many may arrive in a place, on average: a number, a share of its people, or a file place,capacity.",
            metavar="N|N%|FILE",
        ),
    ] = "20"
    weight: Annotated[
        WeightName,
        Opt(
            "What moving a person is worth: inverse-quadratic, constant, inverse-linear, inverse-cubic, "
            "inverse-exponential (in the people of their element)."
        ),
    ] = "inverse-quadratic"
    coverage: Annotated[CoverageName, Opt("Who may receive: row-wise (not at risk in that row), or relaxed.")] = (
        "row-wise"
    )
    near: Annotated[Path | None, Opt("Only to places near: pairs of codes, two columns.", metavar="FILE")] = None
    coordinates: Annotated[Path | None, Opt("Where places are: code, x, y.", metavar="FILE")] = None
    within: Annotated[float, Opt("Only to places at most so far, in units of --coordinates.", metavar="D")] = 0.0

    def inputs(self, data: Path) -> dict[str, Path]:
        """Every file that is read, by its role; one that is not there is refused."""
        capacity = Path(str(self.capacity)) if Path(str(self.capacity)).is_file() else None
        return inputs_of({"data": data, "near": self.near, "coordinates": self.coordinates, "capacity": capacity})

    def matrix(self, data: Path, by: Sequence[str]) -> Matrix:
        """How many people of each combination are in each place: from a file of counts, or, by columns, of records."""
        from glasshouse.files.matrix import matrix_of, read_matrix, record_frames
        from glasshouse.protection.relocation.rules import Matrix

        found = matrix_of(record_frames(data, self.place, by), by) if by else read_matrix(data)
        return Matrix(found.combinations, found.places, found.counts)

    def where(self, matrix: Matrix) -> Floats | None:
        """The coordinates of the places, if they are given."""
        from glasshouse.files.surroundings import numbers_of

        return numbers_of(self.coordinates, matrix.places, ("x", "y")) if self.coordinates else None

    def rules(self, matrix: Matrix, risks: Iterable[int]) -> tuple[Rules, ...]:
        """What a relocation must respect, for each lambda: elements of 1 to lambda people are at risk."""
        from glasshouse.files.surroundings import neighbours_of, within
        from glasshouse.protection.relocation.rules import Coverage, Rules, Weight

        if self.near is not None and self.within:
            raise InputError("--near and --within both say which places are near; give one or the other")
        where = self.where(matrix)
        if self.within and where is None:
            raise InputError("--within needs --coordinates: where the places are")
        reach = neighbours_of(self.near, matrix.places) if self.near is not None else None
        if self.within and where is not None:
            reach = within(where, self.within)
        room = self._room(matrix)
        return tuple(Rules(risk, room, Weight(self.weight), Coverage(self.coverage), reach) for risk in risks)

    def _room(self, matrix: Matrix) -> Floats:
        from glasshouse.files.surroundings import numbers_of
        from glasshouse.protection.relocation.rules import capacities

        text = str(self.capacity)
        try:
            value = float(text.removesuffix("%"))
        except ValueError:
            if not Path(text).is_file():
                raise InputError(f"--capacity {text}: expected a number, a percentage such as 5%, or a file") from None
            return numbers_of(Path(text), matrix.places, ("capacity",), least=0)[:, 0]
        if not 0 <= value < float("inf"):
            raise InputError(f"--capacity {text}: expected a number from 0")
        return capacities(matrix, share=value / 100) if text.endswith("%") else capacities(matrix, value)
