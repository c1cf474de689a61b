"""How far is a run? What is done, what is left, since when."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.result import Result
from glasshouse.engine.state import State, state_of


class Status(Result[State]):
    """How far a run is."""

    def said(self) -> dict[str, object]:
        """The state for scripts; `command` is that of the run."""
        from glasshouse.engine.plain import plain

        return dict(plain(self.summary))


@command(example="glasshouse status rebuilt")
def status(folder: Annotated[Path, Opt("The --out folder of a command that works unit by unit.")]) -> Status:
    """What is done, what is left, since when."""
    from glasshouse.engine.lifecycle import told

    state, lines = state_of(folder)
    return Status(told("status", state, lines))
