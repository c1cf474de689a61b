"""How does one command call another? As a user would, and it reads what that says to scripts."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from glasshouse.cli.options import BAD_INPUT, DONE, FINDINGS, INTERRUPTED
from glasshouse.errors import GlasshouseBug, InputError


def call(arguments: Sequence[str | Path], who: str, *, shown: bool = False) -> dict[str, Any]:
    """Run a command; what it says to scripts. `shown`: its progress is seen. A complaint of its is one about `who`."""
    from glasshouse.cli.main import main  # late: the command line knows the jobs that call it

    said = io.StringIO()
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(said))
        if not shown:
            stack.enter_context(redirect_stderr(io.StringIO()))
        code = main([*map(str, arguments), "--json", *([] if shown else ["--quiet"])], aloud=False)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    lines = said.getvalue().splitlines()
    told: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    if code == BAD_INPUT:
        raise InputError(f"{who}: {told.get('error', 'refused')}")
    if code not in (DONE, FINDINGS):
        raise GlasshouseBug(f"{who}: glasshouse {arguments[0]} ended with {code}")
    return told
