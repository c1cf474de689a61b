"""How does a result hand over its facts with certificates? It is given to `prove` as its folder would be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from glasshouse.commands.result import Result

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.commands.proving.prove import Proved

S = TypeVar("S")


class Provable(Result[S]):
    """A result of which some facts have certificates."""

    def prove(self, tables: Path | str, *, facts: str | Sequence[str] = (), **more: Any) -> Proved:
        """Certificates of what was found, or of some kinds of it, from the same published tables (`gh.prove`)."""
        from glasshouse.commands.proving.prove import prove

        given, some = cast(Path, self), cast(tuple[str, ...], facts)  # where a folder is expected, a result will do
        return prove(given, tables=cast(Path, tables), facts=some, **more)
