"""What does a person see of a result, and how does it end? Notes on stderr, lines or JSON on stdout, an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from glasshouse.commands.result import Result

SHOWN_REFUSED = 10


class Stopped(Exception):  # noqa: N818  # it is no error; it says what is kept
    """Ctrl-C in a command that keeps what is done; typer would take a KeyboardInterrupt for itself."""


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
        print("\n".join(result.lines()))
    return result.code


def _refusals(result: Result[Any]) -> list[str]:
    refused = result.refused
    lines = [f"{result.unit} {code} is left out: {why.reason}" for code, why in list(refused.items())[:SHOWN_REFUSED]]
    if len(refused) > SHOWN_REFUSED:
        lines.append(f"... and {len(refused) - SHOWN_REFUSED:,} more (all of them with --json, and in manifest.json)")
    return lines


def say(*lines: str) -> None:
    for line in lines:
        print(line, file=sys.stderr)
