"""What does a command give back? A frozen result: frames named as its files, a typed summary, pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from glasshouse.errors import InputError, unknown

if TYPE_CHECKING:  # heavy modules are imported when a result is looked at
    import polars as pl

    from glasshouse.engine.ledger import Refusal
    from glasshouse.engine.lifecycle import Ended
    from glasshouse.report.figure import Drawn

S = TypeVar("S")
DONE, FINDINGS, BAD_INPUT, OUR_BUG, INTERRUPTED = 0, 1, 2, 3, 130
SHOWN_ROWS, SHOWN_FRAMES, SHOWN_REFUSED = 10, 3, 10


@dataclass(frozen=True, repr=False)
class Result(Generic[S]):
    """What a command found. With `out` its files are there; without, they are held in memory until `write`."""

    ended: Ended[S]
    always_told: ClassVar[bool] = True  # its lines are printed even when the command is told to be quiet
    shown: ClassVar[tuple[str, ...]] = ()  # the frames that matter most: a notebook shows them first

    @property
    def unit(self) -> str:
        """What one part of the work is called."""
        return self.ended.unit

    @property
    def command(self) -> str:
        return self.ended.command

    @property
    def summary(self) -> S:
        """What was found, in a few typed numbers."""
        return self.ended.summary

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be known of the result besides its numbers."""
        return self.ended.notes

    @property
    def refused(self) -> Mapping[str, Refusal]:
        """Units that were left out, and why."""
        return self.ended.refused

    @property
    def out(self) -> Path | None:
        return self.ended.out

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the result's files."""
        return self.ended.files.names

    def frame(self, name: str) -> pl.DataFrame:
        """A data file as a frame, by its name without the ending."""
        import polars as pl

        frames = self._files_of_frames()
        if name not in frames:
            raise unknown(f"frame of {self.command}", name, frames)
        source = self.ended.files.open(frames[name])
        return pl.read_parquet(source) if frames[name].endswith(".parquet") else pl.read_csv(source, infer_schema=False)

    def __getattr__(self, name: str) -> pl.DataFrame:
        """A frame, by the name of its file: `found.places`; a result declares those that it may have."""
        declared = any(name in vars(kind).get("__annotations__", {}) for kind in type(self).__mro__)
        if name == "ended" or not declared:
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")
        return self.frame(name.replace("_", "-"))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name.replace("-", "_") for name in self._files_of_frames())]

    def _files_of_frames(self) -> dict[str, str]:
        return {one.partition(".")[0]: one for one in self.files if one.endswith(FRAMES)}

    def figure(self, name: str = "") -> Drawn:
        """A picture of the result: the first one, or that of this name."""
        from glasshouse.report.figure import Drawn

        pictures = {one.removesuffix(".svg"): one for one in self.files if one.endswith(".svg")}
        if not pictures:
            raise InputError(
                f"this result of {self.command} has no picture; its frames: {', '.join(self._files_of_frames())}"
            )
        if name and name not in pictures:
            raise unknown(f"picture of {self.command}", name, pictures)
        return Drawn(self.ended.files.read(pictures[name or next(iter(pictures))]).decode())

    def write(self, folder: str | Path) -> Path:
        """Write the files of the result into a new folder, for the owner alone."""
        from glasshouse.files.output import private_file, private_folder
        from glasshouse.files.rooms import passing_folder, sync

        path = Path(folder)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(f"{path} is there already; name a new folder")
        with private_folder(path.parent), passing_folder(path.parent) as draft:
            for name in self.files:
                with private_file(draft / name) as stream:
                    stream.write(self.ended.files.read(name))
            draft.replace(path)  # all of it, or nothing
            sync(path.parent)
        return path

    # How a result ends: for the terminal, and for whoever builds on it

    @property
    def code(self) -> int:
        """The exit code: 0 done, 1 done with findings, 3 a bug of ours in some unit."""
        ended = self.ended
        if ended.bugs:
            return OUR_BUG
        return FINDINGS if ended.refused or ended.stopped_by_clock or ended.findings else DONE

    def said(self) -> dict[str, object]:
        """The result for scripts: one JSON object."""
        from glasshouse.engine.plain import plain

        ended = self.ended
        where = {"out": str(ended.out) if ended.out else None} if ended.writes else {}
        said = {"command": self.command, **where, **plain(ended.summary)}
        if ended.over_units:
            said |= {
                "refused": plain(ended.refused), "bugs": ended.bugs, "stopped_by_clock": list(ended.stopped_by_clock),
            }  # fmt: skip
        said |= {"findings": list(ended.findings)} if ended.findings else {}
        said |= {"notes": list(ended.notes)} if ended.notes or ended.over_units or not ended.writes else {}
        return said | ({"unchanged": True} if ended.unchanged else {})

    def lines(self) -> list[str]:
        """The result for people, in a few lines."""
        before = [f"{self.out} is up to date"] if self.ended.unchanged else []
        lines = list(self.ended.lines)
        if self.out is not None:  # on the line itself, if there is only one
            lines = [f"{lines[0]} -> {self.out}"] if len(lines) == 1 else [*lines, f"-> {self.out}"]
        return [*before, *lines]

    # Where a file or folder is expected, a result will do

    def filed(self, into: Path) -> Path:
        """Where the result lies: its folder, or the file if it is one."""
        return self.out if self.out is not None else self.write(into / self.command.replace(" ", "-"))

    def told(self) -> Mapping[str, object]:
        return {"scenario": self.ended.scenario} if self.ended.scenario else {}

    def __repr__(self) -> str:
        return "\n".join([f"<{self.command}>", *self.lines()])

    def _repr_html_(self) -> str:
        return "".join(self._html())

    def _glance(self) -> Iterator[tuple[str, int, pl.DataFrame]]:
        """The frames that matter most: the name of each, how many rows it has, and the first of them."""
        import polars as pl

        files = self._files_of_frames()
        first = [name for name in self.shown if name in files]
        for name in [*first, *(name for name in files if name not in first)][:SHOWN_FRAMES]:
            source = self.ended.files.open(files[name])
            whole = self.frame(name).lazy() if not files[name].endswith(".parquet") else pl.scan_parquet(source)
            rows = whole.select(pl.len()).collect().item()
            yield name.replace("-", "_"), int(rows), whole.head(SHOWN_ROWS).collect()

    def _html(self) -> Iterator[str]:
        yield f"<div><b>glasshouse {escape(self.command)}</b>"
        yield f"<pre>{escape(chr(10).join(self.lines()))}</pre>"
        for note in self.notes:
            yield f"<p><small>{escape(note)}</small></p>"
        if any(name.endswith(".svg") for name in self.files):
            yield self.figure()._repr_html_()
        for name, rows, head in self._glance():
            yield f"<p><code>.{escape(name)}</code>: {rows:,} rows</p>{head._repr_html_()}"
        yield "</div>"


FRAMES = (".parquet", ".csv", ".csv.gz")


@dataclass(frozen=True, repr=False)
class FileResult(Result[S]):
    """What a command found that writes one file."""

    always_told: ClassVar[bool] = False

    @property
    def file(self) -> str:
        return self.files[0]

    def write(self, path: str | Path) -> Path:
        """Write the file, for the owner alone; its ending is that of the result."""
        from glasshouse.files.output import private_file

        with private_file(Path(path)) as stream:
            stream.write(self.ended.files.read(self.file))
        return Path(path)

    def filed(self, into: Path) -> Path:
        return self.out if self.out is not None else self.write(into / self.file)
