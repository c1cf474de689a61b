"""What does a protection write? One file of records or tables, and others beside it that come and go with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from glasshouse.commands.declaration import Opt
from glasshouse.commands.options import Cluster, Insecure, OutFile, Overwrite, Processes, crew_of
from glasshouse.commands.result import FileResult
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.lifecycle import Ended, Made
    from glasshouse.engine.manifest import Manifest
    from glasshouse.engine.progress import Bar
    from glasshouse.engine.workers import Crew

S = TypeVar("S")
SeedOrSecure = Annotated[
    int | None, Opt("Noise of the simulator: the same seed, the same file; 1 if not given.", flag="--seed")
]
Secure = Annotated[bool, Opt("Noise from a secure source, for a real release; it has no seed.")]
SIMULATED = "note: noise of the seeded simulator, for studies; --secure is for a real release"


class Protected(FileResult[S]):
    """What a protection made."""

    def said(self) -> dict[str, object]:
        """The result for scripts: its notes are always said."""
        return {**super().said(), "notes": list(self.notes)}


class ProtectedRecords(Protected[S]):
    """Records that are protected."""

    @property
    def records(self) -> pl.DataFrame:
        return self.frame(self.file.partition(".")[0])


class ProtectedTables(Protected[S]):
    """Tables that are protected."""

    @property
    def tables(self) -> pl.DataFrame:
        return self.frame(self.file.partition(".")[0])


@dataclass(frozen=True)
class ToFile:
    """Where the one file of a protection goes."""

    out: OutFile = None
    overwrite: Overwrite = False

    def write(
        self, manifest: Manifest, kind: type[S], work: Callable[[Path, Bar], Made[S]], *, name: str,
        beside: Sequence[Path | None] = (),
    ) -> Ended[S]:  # fmt: skip
        """Do the work unless its result is there; without a place to write the file has this `name`, in memory.

        Files `beside` it are written to `draft_of` the path that the work is given.
        """
        from glasshouse.engine.lifecycle import in_file
        from glasshouse.files.output import check_kind

        if self.out is not None:
            check_kind(self.out)
        others = [path for path in beside if path is not None]
        return in_file(manifest, kind, work, out=self.out, overwrite=self.overwrite, name=name, beside=others)

    def refuse_beside(self, option: str, path: Path | None, others: Iterable[Path | None]) -> None:
        """Refuse a second file that would replace something else."""
        from glasshouse.files.output import check_kind

        if path is None:
            return
        check_kind(path)
        if path.resolve() in {other.resolve() for other in (self.out, *others) if other is not None}:
            raise InputError(f"{option} {path}: that is another file of this command; name another")


@dataclass(frozen=True)
class ToFileInUnits(ToFile):
    """The same, made unit by unit by whoever does the work."""

    workers: Processes = None
    executor: Cluster = None
    insecure: Insecure = False

    @property
    def crew(self) -> Crew:
        return crew_of(self.workers, self.executor, insecure=self.insecure)


def chance_of(seed: int | None, *, secure: bool) -> int | None:
    """The seed of the simulator; None for noise from the secure source."""
    if secure and seed is not None:
        raise InputError("--secure has no seed: its noise cannot be drawn again; give one or the other")
    return None if secure else 1 if seed is None else seed
