"""Which results have certificates, and of which facts? Those of four commands, each with its kinds of facts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from glasshouse.commands.result import Result
from glasshouse.errors import unknown

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.commands.proving.prove import Proved

S = TypeVar("S")
SOLVAR, CERTAIN, LEAST, MOST, CONTRADICTION = "solvar", "certain", "least", "most", "contradiction"
FACTS = {"vary": (SOLVAR, CERTAIN), "bounds": (LEAST, MOST, CONTRADICTION), "verify": (LEAST, MOST)}


class Provable(Result[S]):
    """A result whose facts can be handed over with certificates."""

    def prove(self, tables: Path | str, *, facts: str | Sequence[str] = (), **more: Any) -> Proved:
        """Certificates of what was found, or of some kinds of it, from the same published tables (`gh.prove`)."""
        from glasshouse.commands.proving.prove import prove

        given, some = cast(Path, self), cast(tuple[str, ...], facts)  # where a folder is expected, a result will do
        return prove(given, tables=cast(Path, tables), facts=some, **more)


def chosen_facts(of: str, named: Sequence[str]) -> frozenset[str]:
    """The kinds of facts of a command's result that are proved: those named, or all."""
    for one in named:
        if one not in FACTS[of]:
            raise unknown(f"kind of fact of a result of {of}", one, FACTS[of])
    return frozenset(named or FACTS[of])
