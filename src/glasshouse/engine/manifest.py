"""What made this file? Command, parameters, versions and the hash of every input, written beside it."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from glasshouse.engine.plain import Json, read_json
from glasshouse.errors import InputError
from glasshouse.files.output import private_file
from glasshouse.files.seen import Seen, seen

FORMAT_VERSION = 1
_KINDS = {"command": str, "key": str, "parameters": dict, "inputs": dict, "versions": dict, "counts": dict}
_RECORDED = ("numpy", "numba", "polars", "pyarrow", "scipy", "highspy", "ortools", "opendp")


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
        """What the inputs hold, found by the first who asks: before they are read (see `unchanged`)."""
        return {role: self._seen.hashed(path) for role, path in self.inputs.items()}

    @cached_property
    def _seen(self) -> Seen:
        return seen()

    def unchanged(self) -> None:
        """Refuse a result whose inputs were changed or replaced since the command began: which bytes were read?"""
        self._seen.unchanged()

    @property
    def drawn_once(self) -> bool:
        """Its chance comes from a secure source: a second draw would spend the privacy budget twice."""
        return self.parameters.get("secure") is True

    def about(self) -> Json:
        """What the result depends on: results of which this is the same are the same."""
        return {
            "command": self.command,
            "parameters": dict(self.parameters),
            "inputs": {role: {"name": self.inputs[role].name, "sha256": value} for role, value in self.hashes.items()},
            "versions": versions(),
            "code": code_hash(),
            "format_version": FORMAT_VERSION,
        }

    def key(self) -> str:
        return hashlib.sha256(json.dumps(self.about() | {"inputs": self.hashes}, sort_keys=True).encode()).hexdigest()

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
        theirs = told.get("versions", {})
        for name, version in versions().items():
            if theirs.get(name) != version:
                found.append(f"{name} {theirs.get(name)}, now {version}")
        if told.get("code") != code_hash():
            found.append("another version of glasshouse")
        return "; ".join(found) or "otherwise made"

    def done(self, out: Path, beside: Sequence[Path], *, overwrite: bool) -> Json | None:
        """What was said of a single file (and those beside it), if it is there. The result of another is refused."""
        for role, path in self.inputs.items():
            if out.exists() and out.samefile(path):
                raise InputError(f"{out} is an input of this command ({role}); name another file to write")
        if out.is_dir():
            raise InputError(f"{out} is a directory; expected the name of a file to write")
        told = said_by(manifest_path(out))
        damaged, told = told == {}, told or {}
        same = told.get("key") == self.key()
        files = {out: told.get("output")} | {path: told.get("beside", {}).get(path.name) for path in beside}
        whole = same and all(path.is_file() and sha256(path) == value for path, value in files.items())
        if self.drawn_once and (damaged or self._same_release(told)) and (overwrite or not whole):
            says = "is damaged, and may have said" if damaged else "says"
            raise InputError(
                f"{manifest_path(out).name} {says} that this release was drawn before, from the secure source; a "
                "second draw would spend its privacy budget twice; if nobody has seen the first, remove it and its "
                "manifest"
            )
        if whole and not overwrite:
            return told
        there = [path for path in files if path.exists()]
        if overwrite or not there:
            return None
        if len(there) < len(files):
            absent = next(path for path in files if path not in there)
            raise Occupied(f"{there[0]} exists, and {absent.name} does not; remove it or add --overwrite")
        differs = f" ({self.differs(told)})" if told and not same else ""
        raise Occupied(
            f"{out} exists and is not (or no longer) the result of this command on these inputs{differs}; "
            "remove it or add --overwrite"
        )

    def _same_release(self, told: Mapping[str, Any]) -> bool:
        """The same numbers of the same data: whatever version of glasshouse drew them."""
        theirs = {role: entry.get("sha256") for role, entry in told.get("inputs", {}).items()}
        return (told.get("command"), told.get("parameters"), theirs) == (
            self.command, json.loads(json.dumps(self.parameters)), self.hashes,
        )  # fmt: skip

    def write(self, to: Path, said: Mapping[str, Any]) -> None:
        """Write the manifest, once it is sure that the inputs are the files that were hashed."""
        self.unchanged()
        with private_file(to) as stream:
            stream.write((json.dumps(said, indent=2, sort_keys=True) + "\n").encode())

    def told(self, counts: Mapping[str, Any]) -> Json:
        """What a result was made from, and how long it took."""
        return self.about() | {
            "key": self.key(),
            "counts": dict(counts),
            "wall_seconds": round(time.perf_counter() - self.started, 3),
            "cpu_seconds": round(time.process_time() - self.started_cpu, 3),
        }


def manifest_path(out: Path) -> Path:
    """A file keeps its manifest beside it (a folder inside: see `folder`)."""
    return out.parent / f"{out.name}.manifest.json"


def said_by(manifest: Path) -> Json | None:
    """What a manifest says: None if it is not there, nothing if it is damaged or none of ours."""
    told = read_json(manifest)
    if not told:
        return told
    ours = all(isinstance(told.get(name), kind) for name, kind in _KINDS.items())
    whole = ours and all(isinstance(one, dict) for one in (*told["inputs"].values(), told.get("outputs", {})))
    return told if whole else {}


@cache
def versions() -> dict[str, str]:
    """What computes: another version may round, draw or search otherwise."""
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
