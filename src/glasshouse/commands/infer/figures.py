"""What do the figures of Kazan and Reiter look like, computed exactly? Pictures, each with its data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.result import Result
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.progress import Bar


@dataclass(frozen=True)
class Written:
    """Which files there are."""

    written: tuple[str, ...]


class Figures(Result[Written]):
    """Pictures (`figure("figure-05")`) and their data (`frame("figure-05")`)."""

    def said(self) -> dict[str, object]:
        return {"written": list(self.summary.written)}


@command(example="glasshouse infer figures --out figures --only 1,5")
def figures(
    *,
    out: Annotated[
        Path | None, Opt("A folder for the pictures (SVG) and their data (CSV); it may hold others.", short="-o")
    ] = None,
    only: Annotated[tuple[str, ...], Opt("Which figures of the paper, as in 1,5; default: all twelve.")] = (),
) -> Figures:
    """Draw the paper's figures anew, exactly."""
    from glasshouse.commands.words.infer_figures import FIGURES, draw
    from glasshouse.engine.lifecycle import Made, added_to_folder

    for one in only:
        if one not in FIGURES:
            raise InputError(f"unknown figure '{one}'; known: {', '.join(FIGURES)}")

    def work(folder: Path, bar: Bar) -> Made[Written]:
        names = [path.name for path in draw(folder, only or tuple(FIGURES), bar)]
        return Made(Written(tuple(str(out / name) if out else name for name in names)), names, names)

    return Figures(added_to_folder("infer figures", work, out=out))
