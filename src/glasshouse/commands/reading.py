"""How are tables and records taken in once, and used often? Read and checked, with how they are to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.door import FRAME
from glasshouse.commands.options import ScenarioName, SomeTables, chosen_scenario, inputs_of

if TYPE_CHECKING:  # heavy modules are imported when they are needed
    import polars as pl

    from glasshouse.scenarios.load import Scenario


READ_AGAIN = (  # what a second reading of the same file must know
    "only", "codebook", "assume_published", "missing", "mapping", "rounded", "cell_key", "noise_within", "marker",
    "thousands", "exact",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class _Read:
    """Something that was read: as the command got it, and as the scenario understands it."""

    scenario_name: str
    source: Path | tuple[str, bytes]  # the file as it was given; of a frame, its name and content
    frame: pl.DataFrame  # as the scenario understands it
    options: Mapping[str, object]

    @cached_property
    def scenario(self) -> Scenario:
        return chosen_scenario(self.scenario_name)

    def filed(self, into: Path) -> Path:
        """The same again as a file, for a command that reads one."""
        from glasshouse.files.output import private_file

        if isinstance(self.source, Path):
            return self.source
        name, content = self.source
        with private_file(into / name) as stream:
            stream.write(content)
        return into / name

    def told(self) -> Mapping[str, object]:
        return {"scenario": self.scenario_name, **self.options}

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} of {self.scenario_name}: {self.frame.height:,} rows>\n{self.frame!r}"

    def _repr_html_(self) -> str:
        return f"<p>{self.frame.height:,} rows of {self.scenario_name}</p>{self.frame.head(10)._repr_html_()}"


class Tables(_Read):
    """Published tables: `level, geoid, table, variable, lower, upper`."""


class Records(_Read):
    """Records as their scenario spells them."""


@command(name="read_tables")
def read_tables(
    source: Annotated[Path, Opt("Published tables: a path, or a frame.")],
    *,
    scenario: ScenarioName,
    read: SomeTables = SomeTables(),  # noqa: B008  # frozen
) -> Tables:
    """Read published tables once, so that several commands can use them: `gh.vary(gh.read_tables(...))`."""
    import polars as pl

    chosen = read.scenario(scenario, read.only)
    inputs_of({"source": source}, scenario, read.mapping)
    file = read.open(source, chosen)
    rows = pl.concat(list(file.rows())).filter(pl.col("variable").is_not_null())
    table = {line.variable: one.name for one in chosen.tables for line in one.lines}
    named = pl.col("variable").replace_strict(table, return_dtype=pl.String).alias("table")
    frame = rows.select("level", "geoid", named, "variable", "lower", "upper").sort("level", "geoid", "variable")
    return Tables(scenario, _kept(source), frame, _options(read))


@command(name="read_records")
def read_records(source: Annotated[Path, Opt("Records: a path, or a frame.")], *, scenario: ScenarioName) -> Records:
    """Read records once, so that several commands can use them: `gh.tabulate(gh.read_records(...))`."""
    import numpy as np
    import polars as pl

    from glasshouse.files.records import level_matrix, open_records, record_frame

    chosen = chosen_scenario(scenario)
    inputs_of({"source": source}, scenario)
    frames = pl.concat(list(open_records(source, chosen).frames()))
    places = frames["geoid"].unique().sort()
    at = places.search_sorted(frames["geoid"]).to_numpy().astype(np.int32)
    frame = record_frame(chosen, places.to_list(), at, level_matrix(frames, chosen.schema), {})
    return Records(scenario, _kept(source), frame, {})


def _kept(source: Path) -> Path | tuple[str, bytes]:
    """A frame's file is gone when the command ends; what is in it is not."""
    return (source.name, source.read_bytes()) if source.name.startswith(FRAME) else source


def _options(read: SomeTables) -> dict[str, Any]:
    """How the tables are to be read, where it is not as usual."""
    usual = SomeTables()
    given = {name: getattr(read, name) for name in READ_AGAIN}
    return {name: value for name, value in given.items() if value != getattr(usual, name)}
