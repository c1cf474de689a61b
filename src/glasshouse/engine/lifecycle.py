"""How does a run begin and end? Its place is claimed, the work done or gone on with, the files kept or handed over.

There is one life cycle for folders and one for single files. A result that is there already is read back. Without a
place to write, the work is done in a private folder that is gone afterwards; its files are handed over in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from glasshouse.engine.draft import commit, draft_of, drafting, room_of
from glasshouse.engine.folder import MANIFEST, Folder
from glasshouse.engine.ledger import Ledger, Refusal
from glasshouse.engine.manifest import Manifest, manifest_path, sha256
from glasshouse.engine.plain import plain, typed
from glasshouse.engine.progress import Bar, progress
from glasshouse.engine.runner import Tally
from glasshouse.files.output import private_file, private_folder
from glasshouse.files.rooms import passing_folder, sweep

S = TypeVar("S")
DRAWN = "drawn"  # in the room of a file: noise was drawn from a secure source
DRAWN_ANEW = (
    "warning: an earlier run of this command was killed before its noise was whole; what it had drawn was removed, "
    "unpublished, and the noise was drawn anew"
)


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
    replaces: Sequence[str] = ()  # names that must not stay of an older result, even if its manifest is lost


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
        """Where the files of the result are written: the draft, which becomes the result as a whole."""
        return self.folder.draft


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
            raise Interrupted(
                "interrupted; the units that are done are kept; run the same command again to resume"
            ) from None
        return _ended(manifest.command, made, where, [*sorted(made.outputs), MANIFEST], out, notes, unit)


def in_file(
    manifest: Manifest,
    kind: type[S],
    work: Callable[[Path, Bar], Made[S]],
    *,
    out: Path | None,
    overwrite: bool,
    name: str,
    beside: Sequence[Path] = (),
) -> Ended[S]:
    """Do the work, which writes one file, unless that is there. Without a place to write, the file has this `name`.

    The work is given a draft, and others go to `draft_of` them: all files get their names together.
    """
    with _somewhere(out) as where:
        path = where if out is not None else where / name
        again = _tidied(path, manifest)
        told = manifest.done(path, beside, overwrite=overwrite)
        if told is None:
            with drafting(path) as room:
                told = manifest.done(path, beside, overwrite=overwrite)  # another run may just have written it
                if told is None:
                    made = _drafted(manifest, work, path, beside, room, again)
                    return _ended(manifest.command, made, path.parent, [path.name], out)
        return _again(manifest.command, kind, told["counts"], Held((path.name,), path.parent), path)


def _tidied(out: Path, manifest: Manifest) -> Sequence[str]:
    """End what a killed run has begun for this file: its result gets its names, or its half goes. What is said of it.

    A secure draw that was never given out is drawn anew, and not in silence.
    """
    if not room_of(out).is_dir():
        return ()
    with drafting(out) as room:
        return [DRAWN_ANEW] if manifest.drawn_once and (room / DRAWN).exists() else ()


def _drafted(
    manifest: Manifest, work: Callable[[Path, Bar], Made[S]], path: Path, beside: Sequence[Path], room: Path,
    notes: Sequence[str],
) -> Made[S]:  # fmt: skip
    """Do the work in a room, and commit what it wrote."""
    for folder in {path.parent, *(other.parent for other in beside if other.parent.is_dir())}:
        sweep(folder)
    if manifest.drawn_once:
        with private_file(room / DRAWN):
            pass
    draft = room / path.name
    with progress(manifest.command) as bar:
        made = work(draft, bar)
    made = replace(made, notes=[*made.notes, *notes])
    drafts = {draft_of(draft, other): other for other in beside}
    said = manifest.told(_counts(made)) | {"output": sha256(draft)}
    said |= {"beside": {other.name: sha256(one) for one, other in drafts.items()}} if drafts else {}
    manifest.write(manifest_path(draft), said)
    moves = [(draft, path), *drafts.items(), (manifest_path(draft), manifest_path(path))]
    commit(room, moves, [manifest_path(path), room / DRAWN])
    return made


def added_to_folder(command: str, work: Callable[[Path, Bar], Made[S]], *, out: Path | None) -> Ended[S]:
    """Do the work, which adds files to a folder that may hold others: it is done anew each time, without a manifest."""
    with _somewhere(out) as where, private_folder(where):
        with drafting(where / command) as room, progress(command) as bar:
            sweep(where)
            made = work(room, bar)
            commit(room, [(room / name, where / name) for name in made.outputs], ())
        return _ended(command, made, where, list(made.outputs), out)


@contextmanager
def _somewhere(out: Path | None) -> Iterator[Path]:
    """Where to write: the place asked for, or a private folder that is gone afterwards."""
    if out is not None:
        yield out
        return
    with passing_folder() as folder:
        yield folder


def _worked(folder: Folder, work: Callable[[Workplace], Made[S]], *, overwrite: bool) -> Made[S]:
    with ExitStack() as stack:
        ledger = stack.enter_context(folder.working(folder.manifest.about(), overwrite=overwrite))
        bar = stack.enter_context(progress(folder.manifest.command))
        made = work(Workplace(folder, ledger, bar))
        complete = made.complete and (made.tally is None or made.tally.complete)
        cpu = made.tally.cpu if made.tally else 0.0
        folder.write(_counts(made), list(made.outputs), made.replaces, cpu=cpu, complete=complete)
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
