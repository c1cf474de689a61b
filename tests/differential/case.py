"""What is a case, and how is it asked about? A folder, what the model makes of it, and the commands run on it."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jinja2

import glasshouse as gh
from tests.differential.model import Key, Program, Release
from tests.differential.scenario import Read, read_scenario

_COMPILED: dict[Any, Any] = {}  # templates


@dataclass
class Findings:
    """What came of one case, or of many."""

    wrong: list[tuple[str, str]] = field(default_factory=list)  # kind, text
    counts: Counter[str] = field(default_factory=Counter)

    def blame(self, kind: str, text: str) -> None:
        self.wrong.append((kind, text))


class Case:
    """A folder, and what the model makes of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: dict[str, Any] = json.loads((folder / "case.json").read_text())
        self.scenario: Read = read_scenario(folder / "scenario")
        self.only: list[str] | None = self.told.get("only")
        self.release = Release(self.scenario, folder / "tables.csv", self.only)
        with (folder / "records.csv").open(newline="") as stream:
            rows = list(csv.reader(stream))[1:]
        self.truth: Counter[Key] = Counter((row[0], self.scenario.kind(row[1:])) for row in rows)
        self.seed: int = self.told["seed"]
        self.changed = bool(self.told.get("changed"))

    @cached_property
    def level(self) -> dict[str, str]:
        """The option that says which tables are used, if it is given."""
        asked = self.told.get("level")
        return {"level": asked} if asked in (*self.release.levels_around, self.scenario.place) else {}

    @cached_property
    def around(self) -> str | None:
        """The level whose numbers are used besides those of the places: the coarsest, unless another is asked for."""
        if self.level:
            return None if self.level["level"] == self.scenario.place else self.level["level"]
        return next(iter(self.release.levels_around), None)

    @cached_property
    def cells(self) -> list[Hashable]:
        return self.release.compared(self.around)

    @cached_property
    def tells_nothing(self) -> bool:
        """Do the tables used tell no attribute at all? Then nothing is certain and everything may differ."""
        return not self.scenario.looked_at(self.release.tables(self.scenario.place, self.around))

    @cached_property
    def areas(self) -> list[str]:
        """What is solved jointly: the areas around, or each place by itself."""
        return sorted(self.release.codes[self.around]) if self.around else sorted(self.release.named)

    def alone(self, place: str) -> Program:
        return self._kept(("alone", place), lambda: self.release.alone(place, self.around))

    def joint(self, area: str, *, open_: bool) -> Program:
        if not self.around:
            return self._kept(("own", area), lambda: self.release.alone(area, None))
        levels = [self.scenario.place, self.around]
        return self._kept(("joint", area, open_), lambda: self.release.together(levels, area, open_=open_))

    def jointly(self, area: str) -> list[Program]:
        """By each reading of which places exist."""
        return [self.joint(area, open_=not known) for known in self.release.places_known]

    def own(self, place: str) -> Program:
        return self._kept(("own", place), lambda: self.release.alone(place, None))

    def whole(self, *, open_: bool) -> Program:
        """Everything that the file says, at once."""
        return self._kept(("whole", open_), lambda: self.release.together(self.scenario.levels, open_=open_))

    def documented(self, *, open_: bool) -> bool:
        """Does something fit as far as docs/check.md says: the places with each level within a unit?"""
        lengths = self.scenario.lengths
        inside = [at for at in self.release.variables if lengths[at] >= lengths[self.scenario.unit]]
        return all(self.release.together([self.scenario.place, level], open_=open_).fits for level in inside)

    @cached_property
    def truth_fits(self) -> bool:
        """Do the true records, all in places that are named, give every number that is used?"""
        return {place for place, _ in self.truth} <= self.release.named and all(
            self.joint(area, open_=False).holds({key: n for key, n in self.truth.items() if key[0].startswith(area)})
            for area in self.areas
        )

    @cached_property
    def _programs(self) -> dict[object, Program]:
        return {}

    def _kept(self, key: object, make: Callable[[], Program]) -> Program:
        if key not in self._programs:
            self._programs[key] = make()
        return self._programs[key]

    def options(self, **more: Any) -> dict[str, Any]:
        options = {"scenario": str(self.folder / "scenario"), **more}
        return options | ({"only": self.only} if self.only else {})

    @property
    def tables(self) -> Path:
        return self.folder / "tables.csv"


def run(found: Findings, what: str, command: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The result of a command; None, and a disagreement, when it crashes or blames the input."""
    try:
        result = command(*arguments, **options)
    except gh.InputError as error:
        found.blame(f"{what}: input blamed", str(error).splitlines()[0][-300:])
    except Exception as error:  # whatever it is, it is a finding
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        where = f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}" if at else "?"
        found.blame(f"{what}: crash", f"{type(error).__name__} at {where}: {str(error)[:200]}")
    else:
        found.counts[what] += 1
        for refusal in result.refused.values():
            if result.ended.bugs and "a bug of ours" in refusal.reason:
                found.blame(f"{what}: crash", refusal.reason)
                return None
        return result
    return None


@contextmanager
def quickly() -> Iterator[None]:
    """Without what takes most of the time and is not compared: pictures, templates, versions, waiting for the disk."""
    compile_ = jinja2.Environment.compile

    def compiled(self: jinja2.Environment, source: Any, *arguments: Any, **options: Any) -> Any:
        if source not in _COMPILED:
            _COMPILED[source] = compile_(self, source, *arguments, **options)
        return _COMPILED[source]

    def drawn(spec: Any, **options: Any) -> str:
        return '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" viewBox="0 0 9 9"></svg>'

    with (
        patch.object(jinja2.Environment, "compile", compiled),
        patch("vl_convert.vegalite_to_svg", drawn),
        patch("os.fsync", lambda file: None),
        patch("importlib.metadata.version", cache(metadata.version)),
    ):
        yield


def smallest(case: Path) -> int:
    """How large a case is, to show the smallest first."""
    read = read_scenario(case / "scenario")
    rows = (case / "tables.csv").read_text().count("\n")
    return rows * 3 + len(read.kinds) + len(read.lines)
