"""What may a caller hand over? A path, a frame, tables that were read, or an earlier result; inside, all are files.

A frame (of polars, pandas or pyarrow: anything with the Arrow C stream) is written into a private folder that is gone
when the command ends. So a frame goes the same way as a file, and the same complaints name the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from numbers import Real
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from glasshouse.errors import InputError

FRAME = "frame-of-"  # what the file of a frame is called; complaints name it


@runtime_checkable
class Frame(Protocol):
    """A table in memory, as most libraries offer it."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


@runtime_checkable
class Filed(Protocol):
    """Something of ours that can be used where a file or folder is expected."""

    def filed(self, into: Path) -> Path:
        """Where it lies; if it is in memory, it is written `into` a folder."""
        ...

    def told(self) -> Mapping[str, object]:
        """What it says about how it is to be read, by the names of options."""
        ...


class Door:
    """Takes what callers hand over, and clears it away when the command has ended."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.folder: Path | None = None
        self.taken = 0

    def __enter__(self) -> Door:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stack.close()

    def path(self, value: Any, name: str) -> Path:
        """The file or folder that an argument stands for."""
        if isinstance(value, (str, Path)):
            return Path(value)
        if isinstance(value, Filed):
            return value.filed(self._room())
        if isinstance(value, Frame):
            return self._written(value, self._room() / f"{FRAME}{name}.parquet")
        raise InputError(
            f"{name} is of type {type(value).__name__}; expected a path, a frame (polars, pandas, pyarrow) or a result"
        )

    def text(self, value: Any, name: str) -> str:
        """An argument that is text: a name, the path of something, or a number, which is spelt."""
        if isinstance(value, (str, Path, Real)) and not isinstance(value, bool):
            return str(value)
        source = getattr(value, "source", None)  # a scenario knows where it was loaded from
        if isinstance(source, str) and source:
            from glasshouse.scenarios.load import load

            if load(source) != value:
                raise InputError(
                    f"{name}: this scenario was changed in Python; give its name, and `only` for some tables"
                )
            return source
        raise InputError(f"{name} is of type {type(value).__name__}; expected text")

    def look(self, values: Iterable[Any]) -> None:
        """Notice the files that are given, before any of them is read: at the end they must be the same."""
        from glasshouse.files.seen import seeing

        self.stack.enter_context(seeing(path for value in values for path in _files(value)))

    def said_by(self, value: Any) -> Mapping[str, object]:
        return value.told() if isinstance(value, Filed) else {}

    def _room(self) -> Path:
        from glasshouse.files.rooms import passing_folder

        if self.folder is None:
            self.folder = self.stack.enter_context(passing_folder())
        self.taken += 1
        room = self.folder / str(self.taken)
        room.mkdir(mode=0o700)
        return room

    def _written(self, frame: Frame, path: Path) -> Path:
        import polars as pl

        from glasshouse.files.output import row_writer

        try:
            table = frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame)
        except Exception as error:  # whatever the other library says
            raise InputError(f"{path.stem}: the frame cannot be read ({type(error).__name__})") from None
        if not table.width:
            raise InputError(f"{path.stem}: the frame has no columns; expected a header and rows")
        with row_writer(path) as writer:
            writer.write(table)
        return path


def _files(value: Any) -> Iterator[Path]:
    """The files that an argument names: itself, its parts, or what is in the folder of a scenario."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple):
        for part in value:
            yield from _files(part)
    elif isinstance(value, (str, Path)) and value:
        path = Path(value)
        yield from path.iterdir() if (path / "scenario.toml").is_file() else (path,)
