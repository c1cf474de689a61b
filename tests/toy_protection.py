"""A protection of one's own, in one file: nobody is older than a limit. One line adds it to the register."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import polars as pl

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import RecordsGiven
from glasshouse.commands.protect.files import ProtectedRecords, ToFile
from glasshouse.commands.protect.register import Protection, add
from glasshouse.engine.lifecycle import Made
from glasshouse.engine.manifest import Manifest
from glasshouse.engine.progress import Bar
from glasshouse.files.output import row_writer


@dataclass(frozen=True)
class Capped:
    """How many records were changed."""

    records: int
    changed: int


@command(example="glasshouse protect cap people.parquet --oldest 85 --out capped.parquet")
def cap(
    records: RecordsGiven,
    *,
    oldest: Annotated[int, Opt("The highest age that is told.", least=1)] = 85,
    to: ToFile = ToFile(),  # noqa: B008  # frozen
) -> ProtectedRecords[Capped]:
    """Tell no age above a limit."""

    def work(path: Path, bar: Bar) -> Made[Capped]:
        frame = pl.read_parquet(records)
        older = frame["age"] > oldest
        with row_writer(path) as writer:
            writer.write(frame.with_columns(pl.col("age").clip(upper_bound=oldest)))
        summary = Capped(frame.height, int(older.sum()))
        return Made(summary, [path.name], [f"{summary.changed:,} of {summary.records:,} ages told as {oldest}"])

    manifest = Manifest("protect cap", {"oldest": oldest}, {"records": records})
    return ProtectedRecords(to.write(manifest, Capped, work, name="records.parquet"))


add(Protection("cap", "tests.toy_protection", "records"))
