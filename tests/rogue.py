"""What could a rogue worker or a rogue scheduler send? Loaded by them with --preload; the file `mode` says what to do.

Everything that they send would, if the receiver unpickled it, write a file named as the receiver's process.
"""

from __future__ import annotations

import copyreg
import os
import pickle
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("ROGUE_FOLDER", "."))


def mode() -> str:
    return (FOLDER / "mode").read_text()


def explode(folder: str) -> str:
    (Path(folder) / str(os.getpid())).touch()
    return "exploded"


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return explode, (str(FOLDER),)


class BombError(Exception):
    def __reduce__(self) -> tuple[Any, ...]:
        return explode, (str(FOLDER),)


class OfBombs(type):
    """Whose classes explode too: Dask sends the type of a result as a pickle of its own."""


class Typed(metaclass=OfBombs):
    pass


copyreg.pickle(OfBombs, lambda _: (explode, (str(FOLDER),)))  # type: ignore[arg-type]  # of a class, not an object


def send(*_: object) -> object:
    """What a rogue worker answers in the place of glasshouse.engine.dask._work_on."""
    from distributed import get_worker

    worker = get_worker()
    match mode():
        case "result":
            return Bomb()
        case "list":
            return [Bomb(), {"deep": Bomb()}]
        case "array":
            import numpy as np

            return np.array([Bomb()], dtype=object)
        case "bytes":
            return pickle.dumps(Bomb())
        case "type":
            return Typed()
        case "error" | "traceback":
            raise BombError
        case "warning":
            worker.log_event("warn", {"message": pickle.dumps(Bomb()), "category": pickle.dumps(Bomb())})
            return b"warned"
        case "print":
            worker.log_event("print", {"args": ("printed by a worker",), "file": 1})
            return b"printed"
    raise AssertionError(mode())


def dask_setup(node: Any) -> None:
    """Called by Dask when a worker or a scheduler starts."""
    import distributed.worker as of_worker
    from distributed.protocol import ToPickle

    if hasattr(node, "handlers") and "identity" in node.handlers and type(node).__name__ == "Scheduler":
        identity = node.handlers["identity"]
        node.handlers["identity"] = lambda *args, **given: {**identity(*args, **given), "bomb": ToPickle(Bomb())}
        return
    import glasshouse.engine.dask as of_ours

    told = of_worker.error_message

    def with_bombs(*args: Any, **given: Any) -> Any:
        said = told(*args, **given)
        if mode() == "traceback":
            said["traceback"] = of_worker.to_serialize(pickle.dumps(Bomb()))
        else:
            said["exception"] = of_worker.to_serialize(pickle.dumps(BombError()))
        return said

    of_worker.error_message = with_bombs
    of_ours._work_on = send
