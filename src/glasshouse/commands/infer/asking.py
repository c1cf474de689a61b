"""What do the questions about noisy counts share? How an adversary is described, and what an answer is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Generic, Literal, TypeVar

from glasshouse.commands.declaration import Opt
from glasshouse.commands.result import SHOWN_ROWS, Result
from glasshouse.errors import InputError, unknown

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.attack.infer.hierarchy import Level

S = TypeVar("S")
Number = str | float  # text is read exactly: a decimal or a fraction
Rho = Annotated[Number, Opt("Privacy loss of the count: a decimal or a fraction.")]
Prior = Annotated[Number, Opt("The adversary's belief beforehand: 0.5 or 1/864.", short="-p")]
Known = Annotated[int, Opt("How many others the adversary knows to share the characteristics.")]
RhoAbove = Annotated[Number | None, Opt("Privacy loss one level up.")]
Others = Annotated[int | None, Opt("How many other groups make up the level above.")]
PriorAbove = Annotated[str, Opt("Belief about the count above: uniform, uniform:10, point:1, or 0.5,0.3,0.2.")]
NoiseSum = Annotated[Literal["exact", "approx"], Opt("The others' noise: exact, or approx as in eq. 3.7.")]
Mode = Annotated[Literal["exact", "printed"], Opt("exact, or printed: the paper's printed two-level numbers.")]
Relation = Literal["add-remove", "change-one"]
Neighbours = Annotated[Relation, Opt("add-remove (noise parameter 1/(2 rho)) or change-one (1/rho, production).")]
About = Annotated[
    Literal["characteristics", "participation", "honesty", "attribute"] | None,
    Opt("What the prior is a belief about: characteristics, participation, honesty, attribute."),
]
BudgetName = Annotated[str | None, Opt("A named budget (paper-2020, pl94-2020) or a TOML file.", short="-a")]
Query = Annotated[str, Opt("Which query of the allocation.")]


class Answer(Result[S], Generic[S]):
    """An answer that is told and not written; where it is a table, that is a frame."""

    def said(self) -> dict[str, object]:
        """The answer for scripts: its numbers alone."""
        from glasshouse.engine.plain import plain

        return dict(plain(self.summary))

    @property
    def frames(self) -> Mapping[str, pl.DataFrame]:
        """The answer as frames, where it is a table."""
        return {}

    def _glance(self) -> Iterator[tuple[str, int, pl.DataFrame]]:
        for name, frame in self.frames.items():
            yield name, frame.height, frame.head(SHOWN_ROWS)

    def frame(self, name: str) -> pl.DataFrame:
        frames = self.frames
        if name not in frames:
            raise unknown(f"frame of {self.command}", name, frames)
        return frames[name]


def number(text: Number, what: str) -> float:
    from glasshouse.mechanism.account import fraction

    return float(fraction(str(text), what))


def rate(rho: Number, neighbours: str) -> float:
    from glasshouse.mechanism.gaussian import rate_of

    return rate_of(number(rho, "rho"), neighbours)


def level(text: str, neighbours: str) -> Level:
    """A level as it is written: RHO:NOISY, or RHO:NOISY:OTHERS:NOISY_OTHERS."""
    from glasshouse.attack.infer.hierarchy import Level

    rho, *rest = text.split(":")
    try:
        numbers = [int(part) for part in rest]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 3):
        raise InputError(
            f"--level {text}: expected RHO:NOISY or RHO:NOISY:OTHERS:NOISY_OTHERS, whole numbers but for rho"
        )
    return Level(rate(rho, neighbours), *numbers)


def belief_about(attack: str | None) -> str | None:
    """What the prior is a belief about, when that was said."""
    from glasshouse.attack.infer.onelevel import ATTACKS

    return None if attack is None else ATTACKS[attack]


def only_with_rho2(given: Mapping[str, float | None]) -> None:
    for flag, value in given.items():
        if value is not None:
            raise InputError(f"{flag} speaks of the level above, whose --rho2 is missing")


def spelled(said: Mapping[str, object], names: Iterable[str]) -> list[str]:
    """Some of what is said, a line each."""
    return [f"{name.replace('_', ' ')}: {said[name]}" for name in names if name in said]
