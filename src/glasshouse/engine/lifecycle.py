"""How does a run begin and end? Its place is claimed, the work done or gone on with, the files kept or handed over.

There is one life cycle for folders and one for single files. A result that is there already is read back. Without a
place to write, the work is done in a private folder that is gone afterwards; its files are handed over in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from glasshouse.engine.folder import MANIFEST, Folder
from glasshouse.engine.ledger import Ledger, Refusal
from glasshouse.engine.manifest import Manifest
from glasshouse.engine.plain import plain, typed
from glasshouse.engine.progress import Bar, progress
from glasshouse.engine.runner import Tally

S = TypeVar("S")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a run that keeps what is done; the message says so."""


@dataclass(frozen=True)
class Held:
    """The files of a result: in a folder on disk, or in memory."""

    names: tuple[str, ...]
    folder: Path | None = None
    content: Mapping[str, bytes] = field(default_factory=dict)

    def open(self, name: str) -> Path | BinaryIO:
        """A file, as readers take it."""
        return self.folder / name if self.folder is not None else BytesIO(self.content[name])

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes() if self.folder is not None else self.content[name]

    @classmethod
    def taken(cls, folder: Path, names: Sequence[str]) -> Held:
        """The files of a folder that will be gone."""
        return cls(tuple(names), None, {name: (folder / name).read_bytes() for name in names})


@dataclass(frozen=True)
class Made(Generic[S]):
    """What the work of a run came to: a summary, its files, and what is said of it."""

    summary: S
    outputs: Sequence[str] = ()
    lines: Sequence[str] = ()
    notes: Sequence[str] = ()
    tally: Tally | None = None  # of a run over units
    findings: Sequence[str] = ()  # what the exit code must tell
    complete: bool = True  # False: another run could do better


@dataclass(frozen=True)
class Ended(Generic[S]):
    """How a run ended: what was found, which files there are, what was left out."""

    command: str
    summary: S
    files: Held
    out: Path | None
    unchanged: bool
    notes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    bugs: int = 0
    stopped_by_clock: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    over_units: bool = False  # units could be refused, stopped, or fail
    writes: bool = True  # the command has a place to write
    unit: str = "unit"  # what one that was refused is called
    scenario: str = ""  # the name or folder it was asked by


def told(command: str, summary: S, lines: Sequence[str], notes: Sequence[str] = ()) -> Ended[S]:
    """An answer that is only told: nothing is written."""
    return Ended(command, summary, Held(()), None, False, tuple(notes), tuple(lines), writes=False)


@dataclass(frozen=True)
class Workplace:
    """Where a run works: its folder, the ledger of finished units, and the bar that tells how far it is."""

    folder: Folder
    ledger: Ledger
    bar: Bar

    @property
    def path(self) -> Path:
        return self.folder.path

    def clear(self) -> None:
        """Remove an older result, now that the new one is about to be written."""
        self.folder.make_room()

    @contextmanager
    def all_or_nothing(self, outputs: Sequence[str]) -> Iterator[None]:
        """Within this, files are written in the place of an older result; of work that ends badly none is left."""
        self.clear()
        try:
            yield
        except BaseException:
            self.folder.remove(outputs)
            raise


def in_folder(
    manifest: Manifest,
    kind: type[S],
    work: Callable[[Workplace], Made[S]],
    *,
    out: Path | None,
    overwrite: bool,
    unit: str = "unit",
    notes: Sequence[str] = (),
) -> Ended[S]:
    """Do the work unless its result is there. What an interrupted run has finished is kept, and gone on with."""
    with _somewhere(out) as where:
        folder = Folder(where, manifest)
        told = folder.done(overwrite=overwrite)
        if told is not None:
            files = Held((*told["outputs"], MANIFEST), where)
            return _again(manifest.command, kind, told["counts"], files, where, notes, unit)
        try:
            made = _worked(folder, work, overwrite=overwrite)
        except KeyboardInterrupt:
            if out is None or not folder.ledger.folder.exists():
                raise  # nothing is kept
            raise Interrupted("interrupted; the units that are done are kept; the same command goes on") from None
        return _ended(manifest.command, made, where, [*sorted(made.outputs), MANIFEST], out, notes, unit)


def in_file(
    manifest: Manifest,
    kind: type[S],
    work: Callable[[Path, Bar], Made[S]],
    *,
    out: Path | None,
    overwrite: bool,
    name: str,
) -> Ended[S]:
    """Do the work, which writes one file, unless that is there. Without a place to write, the file has this `name`."""
    with _somewhere(out) as where:
        path = where if out is not None else where / name
        told = manifest.done(path, overwrite=overwrite)
        if told is not None:
            return _again(manifest.command, kind, told["counts"], Held((path.name,), path.parent), path)
        with progress(manifest.command) as bar:
            made = work(path, bar)
        manifest.write(path, _counts(made))
        return _ended(manifest.command, made, path.parent, [path.name], out)


def added_to_folder(command: str, work: Callable[[Path, Bar], Made[S]], *, out: Path | None) -> Ended[S]:
    """Do the work, which adds files to a folder that may hold others: it is done anew each time, without a manifest."""
    with _somewhere(out) as where, progress(command) as bar:
        made = work(where, bar)
        return _ended(command, made, where, list(made.outputs), out)


@contextmanager
def _somewhere(out: Path | None) -> Iterator[Path]:
    """Where to write: the place asked for, or a private folder that is gone afterwards."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="glasshouse-") as folder:
        yield Path(folder)


def _worked(folder: Folder, work: Callable[[Workplace], Made[S]], *, overwrite: bool) -> Made[S]:
    about = {"command": folder.manifest.command, "parameters": dict(folder.manifest.parameters)}
    with ExitStack() as stack:
        ledger = stack.enter_context(folder.working(about, overwrite=overwrite))
        bar = stack.enter_context(progress(folder.manifest.command))
        made = work(Workplace(folder, ledger, bar))
        complete = made.complete and (made.tally is None or made.tally.complete)
        cpu = made.tally.cpu if made.tally else 0.0
        try:
            folder.write(_counts(made), list(made.outputs), cpu=cpu, complete=complete)
        except BaseException:
            folder.remove(made.outputs)
            raise
    if complete:
        ledger.forget()
    return made


def _counts(made: Made[Any]) -> dict[str, object]:
    """What a manifest keeps of a result: enough to say it again."""
    said: dict[str, object] = {**plain(made.summary), "notes": list(made.notes), "lines": list(made.lines)}
    if made.tally is not None:
        tally = made.tally
        said |= {"refused": plain(tally.refused), "bugs": tally.bugs, "stopped_by_clock": list(tally.clocked)}
    return said | ({"findings": list(made.findings)} if made.findings else {})


def _ended(
    command: str, made: Made[S], folder: Path, names: Sequence[str], out: Path | None,
    notes: Sequence[str] = (), unit: str = "unit",
) -> Ended[S]:  # fmt: skip
    """A result of this run; if its folder will be gone, with the files in memory."""
    tally = made.tally or Tally()
    files = Held(tuple(names), folder) if out is not None else Held.taken(folder, names)
    return Ended(
        command, made.summary, files, out, False, (*made.notes, *notes), tuple(made.lines), tally.refused, tally.bugs,
        tuple(tally.clocked), tuple(made.findings), over_units=made.tally is not None, unit=unit,
    )  # fmt: skip


def _again(
    command: str, kind: type[S], counts: Mapping[str, Any], files: Held, out: Path, notes: Sequence[str] = (),
    unit: str = "unit",
) -> Ended[S]:  # fmt: skip
    """A result that an earlier run has written, as its manifest tells it."""
    refused = {unit: Refusal(why["reason"], tuple(why["cells"])) for unit, why in counts.get("refused", {}).items()}
    return Ended(
        command, typed(kind, counts), files, out, True, (*counts.get("notes", ()), *notes),
        tuple(counts.get("lines", ())), refused, counts.get("bugs", 0), tuple(counts.get("stopped_by_clock", ())),
        tuple(counts.get("findings", ())), over_units="refused" in counts, unit=unit,
    )  # fmt: skip
