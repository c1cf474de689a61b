"""What do the questions about noisy counts share? How an adversary is described, and what an answer is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Generic, Literal, TypeVar

from glasshouse.commands.declaration import Opt
from glasshouse.commands.result import SHOWN_ROWS, Result
from glasshouse.errors import InputError, unknown

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.attack.infer.expected import Tier
    from glasshouse.attack.infer.hierarchy import Level
    from glasshouse.engine.lifecycle import Ended

S = TypeVar("S")
L = TypeVar("L")
Number = str | float  # text is read exactly: a decimal or a fraction
Rho = Annotated[Number, Opt("Privacy loss of the count: a decimal or a fraction.")]
Prior = Annotated[Number, Opt("The adversary's belief beforehand: 0.5 or 1/864.", short="-p")]
Known = Annotated[int, Opt("How many others the adversary knows to share the characteristics.")]
Rhos = Annotated[
    tuple[Number, ...],
    Opt("Privacy loss; repeat it for releases, or for levels at which the target is unique.", repeated=True),
]
RhosAbove = Annotated[tuple[Number, ...], Opt("Privacy loss one level up; repeat it for releases.", repeated=True)]
TrueAbove = Annotated[int | None, Opt("The true count one level up.")]
TrueLevels = Annotated[
    tuple[str, ...],
    Opt("A level as RHO:TRUE[:OTHERS], finest first; RHO,RHO for releases.", flag="--level", repeated=True),
]
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
Delta = Annotated[float, Opt("For the reading as epsilon.")]
Significance = Annotated[
    float, Opt("Of the membership test: how often it may take somebody for a member who is none.", metavar="A")
]

DEFAULTS = {"--x2-prior": "uniform", "--noise-sum": "approx", "--mode": "exact"}  # where they say nothing
OF_ABOVE = "speaks of the level above, whose --rho2 is missing"
OF_LEVELS = "is said by --level already: leave it out"


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


def seen_level(text: str, neighbours: str) -> list[Level]:
    """A level as the adversary sees it: RHO:NOISY, or RHO:NOISY:OTHERS:NOISY_OTHERS, with commas between releases."""
    from glasshouse.attack.infer.hierarchy import Level

    expected = "RHO:NOISY or RHO:NOISY:OTHERS:NOISY_OTHERS, whole numbers but for rho"
    rhos, (noisy, *rest) = _level(text, (1, 3), expected)
    others, sums = rest or ([0], [0] * len(rhos))
    if len(others) > 1:
        raise InputError(f"--level {text}: expected {expected}")
    as_many({"RHO": rhos, "NOISY": noisy, "NOISY_OTHERS": sums}, f"--level {text}: ")
    return [Level(rate(rho, neighbours), x, others[0], y) for rho, x, y in zip(rhos, noisy, sums, strict=True)]


def true_level(text: str, neighbours: str) -> Tier:
    """A level as the data holder knows it: RHO:TRUE, or RHO:TRUE:OTHERS, with commas between the rho of releases."""
    from glasshouse.attack.infer.expected import Tier

    expected = "RHO:TRUE or RHO:TRUE:OTHERS, whole numbers but for rho"
    rhos, numbers = _level(text, (1, 2), expected)
    if any(len(one) > 1 for one in numbers):
        raise InputError(f"--level {text}: expected {expected}")
    return Tier(tuple(rate(rho, neighbours) for rho in rhos), *(one[0] for one in numbers))


def _level(text: str, parts: Sequence[int], expected: str) -> tuple[list[str], list[list[int]]]:
    """The rho of a level's releases, and so many further parts."""
    rhos, *rest = (part.split(",") for part in text.split(":"))
    try:
        numbers = [[int(one) for one in part] for part in rest]
    except ValueError:
        numbers = []
    if len(numbers) not in parts:
        raise InputError(f"--level {text}: expected {expected}")
    return rhos, numbers


def tiers(
    levels: Sequence[str],
    rho: Sequence[Number],
    rho2: Sequence[Number],
    others: int | None,
    true1: int,
    true2: int | None,
    neighbours: str,
) -> list[Tier]:
    """The levels of a question about every release that can happen: one, two, or each as it is written."""
    from glasshouse.attack.infer.expected import Tier, check_top

    if levels:
        written = [true_level(text, neighbours) for text in levels]
        check_top(written)
        return written
    if not rho:
        raise InputError("--rho is missing (or --level for each level)")
    own, above = (tuple(rate(one, neighbours) for one in some) for some in (rho, rho2))
    if not rho2:
        return [Tier(own, true1)]
    if others is None or true2 is None:
        raise InputError("two levels need --others and --true2")
    return [Tier(own, true1, others), Tier(above, true2)]


def as_many(given: Mapping[str, Sequence[object]], where: str = "") -> None:
    """Each of these says one thing of every release."""
    if len({len(values) for values in given.values()}) > 1:
        counts = ", ".join(f"{len(values)} of {name}" for name, values in given.items())
        raise InputError(f"{where}{counts}; expected as many of each, one for each release")


def belief_about(attack: str | None) -> str | None:
    """What the prior is a belief about, when that was said."""
    from glasshouse.attack.infer.onelevel import ATTACKS

    return None if attack is None else ATTACKS[attack]


def each_once(levels: Sequence[str]) -> None:
    """A level that is named twice would be counted once."""
    for level in levels:
        if levels.count(level) > 1:
            raise InputError(f"--levels: {level} is given {levels.count(level)} times; expected each level once")


def refuse(given: Mapping[str, object], why: str) -> None:
    """Options that would not be heard: one that says something else than its default is refused."""
    for flag, value in given.items():
        if value not in (None, (), DEFAULTS.get(flag)):
            raise InputError(f"{flag} {why}")


def spelled(said: Mapping[str, object], names: Iterable[str]) -> list[str]:
    """Some of what is said, a line each."""
    return [f"{name.replace('_', ' ')}: {said[name]}" for name in names if name in said]


def printed(levels: Sequence[Sequence[L]]) -> Sequence[Sequence[L]]:
    """What the paper's sampler is about."""
    if [len(releases) for releases in levels] != [1, 1]:
        raise InputError("--mode printed is about two levels with one release each, as in the paper")
    return levels


def answered(question: str, summary: S, lines: list[str]) -> Ended[S]:
    """An answer in words, with what was asked besides."""
    from glasshouse.engine.lifecycle import told
    from glasshouse.engine.plain import plain

    further = spelled(plain(summary), ("belief_in_truth", "attack", "belief"))
    return told(f"infer {question}", summary, [*lines, *further])
