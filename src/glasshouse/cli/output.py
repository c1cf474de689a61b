"""What does a person see of a result, and how does it end? Notes on stderr, lines or JSON on stdout, an exit code."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO, cast

from glasshouse.commands.result import Result
from glasshouse.text import plain

SHOWN_REFUSED = 10


class Stopped(Exception):  # noqa: N818  # it is no error; it says what is kept
    """Ctrl-C in a command that keeps what is done; typer would take a KeyboardInterrupt for itself."""


class Patient:
    """A stream whose reader may leave (`| head -1`): the rest goes nowhere, and the work ends as it would have."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        try:
            return self.stream.write(text)
        except BrokenPipeError:
            self.nobody_reads()
            return len(text)

    def flush(self) -> None:
        try:
            self.stream.flush()
        except BrokenPipeError:
            self.nobody_reads()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def nobody_reads(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stream.fileno())  # what is still in the buffer goes there too
        os.close(nowhere)


def take_any_terminal() -> None:
    """Print on whatever stdout and stderr are: not UTF-8, closed, or read by someone who leaves before the end."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name) or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # until the very end
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, cast(TextIO, Patient(stream)))


def tell(
    function: Callable[..., Result[Any]],
    positional: Sequence[Any],
    given: Mapping[str, Any],
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    """Call a command aloud, tell its result, and return the exit code."""
    from glasshouse.engine.lifecycle import Interrupted
    from glasshouse.engine.progress import aloud

    try:
        with aloud(bars=not quiet, lines=not quiet and not as_json):
            result = function(*positional, **given)
    except Interrupted as error:
        raise Stopped(str(error)) from None
    if as_json:
        print(json.dumps(result.said()))
        return result.code
    say(*([] if quiet else result.notes), *_refusals(result))
    if not quiet or result.always_told:
        print(plain("\n".join(result.lines()), lines=True))
    return result.code


def _refusals(result: Result[Any]) -> list[str]:
    refused = result.refused
    lines = [f"{result.unit} {code} is left out: {why.reason}" for code, why in list(refused.items())[:SHOWN_REFUSED]]
    if len(refused) > SHOWN_REFUSED:
        lines.append(f"... and {len(refused) - SHOWN_REFUSED:,} more (all of them with --json, and in manifest.json)")
    return lines


def say(*lines: str) -> None:
    """Say something on stderr; a stray line end or escape sequence of a file is spelt out."""
    for line in lines:
        print(plain(line, lines=True), file=sys.stderr)


def flushed() -> bool:
    """Is everything out that was printed? Not on a full disk."""
    try:
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError):
            say(f"glasshouse: output: {error.strerror or error}")
        cast(Patient, sys.stdout).nobody_reads()
        return False
    return True
