"""How does work travel to a worker, and its answer home? A job is packed once; an error that cannot travel is told."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any
from uuid import uuid4

from glasshouse.errors import GlasshouseBug

_KEPT = 2  # jobs, in the worker of a cluster that serves several commands
_unpacked: dict[str, Any] = {}
_unpacking = threading.Lock()


@dataclass(frozen=True, repr=False)
class PackedJob:
    """The job as it left us; a worker unpacks it once and keeps it, even if it is sent the same package again."""

    token: str
    content: bytes

    @classmethod
    def of(cls, job: object) -> PackedJob:
        return cls(uuid4().hex, bytes(ForkingPickler.dumps(job)))

    def job(self) -> Any:
        with _unpacking:
            if self.token not in _unpacked:
                while len(_unpacked) >= _KEPT:
                    del _unpacked[next(iter(_unpacked))]
                _unpacked[self.token] = ForkingPickler.loads(self.content)
            return _unpacked[self.token]


def fit_to_travel(error: Exception) -> Exception:
    """The error, if it survives the way home from a worker; else a bug of ours that names it."""
    try:
        ForkingPickler.loads(bytes(ForkingPickler.dumps(error)))
    except Exception:
        return GlasshouseBug(f"a worker raised {type(error).__name__}, which cannot be sent home")
    return error
