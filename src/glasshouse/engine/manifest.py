"""What made this file? Command, parameters, versions and the hash of every input, written beside it."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from glasshouse.engine.plain import Json
from glasshouse.errors import InputError
from glasshouse.files.output import private_file

FORMAT_VERSION = 1
_RECORDED = ("numpy", "numba", "polars", "pyarrow", "scipy", "highspy", "ortools")


class Occupied(InputError):  # noqa: N818  # a place, not a mistake
    """The place to write holds the result of something else; --overwrite replaces it."""


@dataclass(frozen=True)
class Manifest:
    """What a result depends on. Results with the same key are the same."""

    command: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, Path]
    started: float = field(default_factory=time.perf_counter)
    started_cpu: float = field(default_factory=time.process_time)

    @cached_property
    def hashes(self) -> dict[str, str]:
        return {role: sha256(path) for role, path in self.inputs.items()}

    def key(self) -> str:
        said = {
            "command": self.command,
            "parameters": dict(self.parameters),
            "inputs": self.hashes,
            "code": code_hash(),
            "format_version": FORMAT_VERSION,
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def differs(self, told: Mapping[str, Any]) -> str:
        """What another run, by its manifest, had otherwise: for the complaint that it is another one."""
        found = [] if told.get("command") == self.command else [f"command {told.get('command')}"]
        theirs = told.get("parameters", {})
        for name, value in self.parameters.items():
            if theirs.get(name) != value:
                found.append(f"{name} {theirs.get(name)}, now {value}")
        hashes = {role: entry.get("sha256") for role, entry in told.get("inputs", {}).items()}
        found += [f"another {role}" for role, value in self.hashes.items() if hashes.get(role) != value]
        found += [f"with {role}" for role in hashes if role not in self.hashes]
        if told.get("code") != code_hash():
            found.append("another version of glasshouse")
        return "; ".join(found) or "otherwise made"

    def done(self, out: Path, *, overwrite: bool) -> Json | None:
        """What was said of the result, if it is there already. The result of something else is refused."""
        beside = manifest_path(out)
        for role, path in self.inputs.items():
            if out.exists() and out.samefile(path):
                raise InputError(f"{out} is an input of this command ({role}); name another file to write")
        if out.is_dir():
            raise InputError(f"{out} is a directory; expected the name of a file to write")
        if not out.exists() or overwrite:
            beside.unlink(missing_ok=True)  # it would vouch for a file that is about to change
            return None
        try:
            told = json.loads(beside.read_text(encoding="utf-8"))
            same = told.get("key") == self.key() and told.get("output") == sha256(out)
        except (OSError, ValueError, AttributeError):
            same = False
        if not same:
            raise Occupied(
                f"{out} exists and is not (or no longer) the result of this command on these inputs; "
                "remove it or add --overwrite"
            )
        return dict(told)

    def write(self, out: Path, counts: Mapping[str, Any]) -> None:
        """Write the manifest beside a finished file."""
        said = self.told(counts) | {"output": sha256(out)}
        with private_file(manifest_path(out)) as stream:
            stream.write((json.dumps(said, indent=2, sort_keys=True) + "\n").encode())

    def told(self, counts: Mapping[str, Any]) -> Json:
        """What a result was made from, and how long it took."""
        return {
            "command": self.command,
            "parameters": dict(self.parameters),
            "key": self.key(),
            "format_version": FORMAT_VERSION,
            "inputs": {role: {"name": self.inputs[role].name, "sha256": value} for role, value in self.hashes.items()},
            "counts": dict(counts),
            "versions": versions(),
            "code": code_hash(),
            "wall_seconds": round(time.perf_counter() - self.started, 3),
            "cpu_seconds": round(time.process_time() - self.started_cpu, 3),
        }


def manifest_path(out: Path) -> Path:
    """A file keeps its manifest beside it (a folder inside: see `folder`)."""
    return out.with_name(out.name + ".manifest.json")


def versions() -> dict[str, str]:
    return {"glasshouse": metadata.version("glasshouse"), "python": platform.python_version()} | {
        name: metadata.version(name) for name in _RECORDED
    }


def sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@cache
def code_hash() -> str:
    """The hash of the sources that compute: a result of other code is another result."""
    digest = hashlib.sha256()
    root = Path(str(resources.files("glasshouse")))
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".toml", ".csv", ".j2", ".css", ".js"):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
