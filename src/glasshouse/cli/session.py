"""How does a command that works unit by unit in a folder begin and end? Claimed, done or gone on with, and told."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glasshouse.cli.options import DONE, FINDINGS, OUR_BUG, Interrupted, finish, say
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    from glasshouse.engine.folder import Folder
    from glasshouse.engine.manifest import Manifest

SHOWN_REFUSED = 10


def refuse_nowhere(out: Path | None, *, as_json: bool) -> None:
    """A result must go somewhere."""
    if out is None and not as_json:
        raise InputError("--out is missing: say which folder to write (or ask for --json alone, which keeps nothing)")


def refuse_two_crews(workers: int | None, executor: str | None) -> None:
    if workers is not None and executor is not None:
        raise InputError("--workers and --executor: the cluster has its own workers; give one or the other")


def in_folder(
    manifest: Manifest,
    work: Callable[[Folder], dict[str, Any]],
    *,
    out: Path | None,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    unit: str,
    notes: Iterable[str] = (),
) -> int:
    """Do the work unless its result is there, say what came of it, and return the exit code.

    `work` returns what is to be said: with `refused` units, `bugs`, units `stopped_by_clock`, `notes` and `lines`;
    `findings` are what the exit code must tell.
    """
    from glasshouse.engine.folder import Folder

    with ExitStack() as stack:
        where = out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="glasshouse-")))
        folder = Folder(where, manifest)
        told = folder.done(overwrite=overwrite)
        try:
            found = work(folder) if told is None else {**told["counts"], "unchanged": True}
        except KeyboardInterrupt:
            if out is None or not folder.ledger.folder.exists():
                raise  # nothing is kept
            raise Interrupted("interrupted; the units that are done are kept; the same command goes on") from None
        said = {"command": manifest.command, "out": str(out) if out else None, **found}
        said["notes"] = [*said["notes"], *notes]
        lines = [f"{where} is up to date", *said["lines"]] if told else said["lines"]
        if not as_json:
            say(*([] if quiet else said["notes"]), *_refusals(said["refused"], unit))
        finish({key: value for key, value in said.items() if key != "lines"}, as_json, quiet, lines, always=True)
    if said["bugs"]:
        return OUR_BUG
    return FINDINGS if said["refused"] or said["stopped_by_clock"] or said.get("findings") else DONE


def _refusals(refused: dict[str, dict[str, Any]], unit: str) -> list[str]:
    lines = [f"{unit} {code} is left out: {why['reason']}" for code, why in list(refused.items())[:SHOWN_REFUSED]]
    if len(refused) > SHOWN_REFUSED:
        lines.append(f"... and {len(refused) - SHOWN_REFUSED:,} more (all of them with --json, and in manifest.json)")
    return lines
