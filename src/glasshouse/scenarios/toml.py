"""How is a TOML file read without being harmed by it? Its size and depth first, then every text and number in it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import date, datetime, time
from math import isfinite
from pathlib import Path
from typing import Any

from glasshouse.errors import InputError
from glasshouse.limits import NAME_LENGTH, TEXT_LENGTH, TOML_BYTES, TOML_DEPTH, WHOLE_NUMBER
from glasshouse.text import harmful, plain

SHOWN = 60  # letters of a wrong value that a complaint repeats
# a.b.c and so on: the time that such a key takes grows with the square of its parts, so they are counted before
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:{_PART}){{{TOML_DEPTH}}}")


def read_toml(path: Path, called: str = "") -> dict[str, Any]:
    """The entries of a TOML file, each of which can be printed, drawn and counted with."""
    name = called or str(path)
    try:
        with path.open("rb") as file:
            raw = file.read(TOML_BYTES + 1)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror}); expected a TOML file") from None
    if len(raw) > TOML_BYTES:
        raise InputError(f"{name}: more than {TOML_BYTES >> 20} MiB; expected a TOML file of at most that")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not UTF-8 at byte {error.start}; expected a TOML file in UTF-8") from None
    too_deep = f"{name}: entries nested more than {TOML_DEPTH} deep; expected at most that"
    if _DEEP_KEY.search(text):
        raise InputError(too_deep)
    try:
        toml = tomllib.loads(text.replace("\r\n", "\n"))
    except RecursionError:
        raise InputError(too_deep) from None
    except ValueError as error:  # also a number of thousands of digits
        raise InputError(f"{name}: not valid TOML: {error}") from None
    for where, fault in _faults(toml):
        raise InputError(f"{name}: {where} {fault}")
    return toml


def is_there(name: str | Path, *, folder: bool = False) -> bool:
    """Is there such a file (or folder)? Not under a name that none can have, either."""
    try:
        return Path(name).is_dir() if folder else Path(name).is_file()
    except (OSError, ValueError):  # too long, or with a zero byte
        return False


def found(value: Any) -> str:
    """A value of a TOML file as a complaint repeats it."""
    said = "true" if value is True else "false" if value is False else repr(value)
    return said if len(said) <= SHOWN else f"{said[: SHOWN - 3]}..."


def _faults(toml: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What cannot be used, whatever it is for, with the entry that it stands in."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), toml)]
    while waiting:
        where, value = waiting.pop()
        place = f"'{plain('.'.join(where))[:NAME_LENGTH]}'"
        fault = _fault(value)
        if fault is not None:
            yield place, fault
        if len(where) > TOML_DEPTH:
            yield place, f"is nested more than {TOML_DEPTH} deep; expected at most that"
        elif isinstance(value, dict):
            for key, inside in value.items():
                if harmful(key) is not None or len(key) > NAME_LENGTH:
                    yield "a key" if not where else f"a key in {place}", _fault(key, NAME_LENGTH) or ""
                waiting.append(((*where, key), inside))
        elif isinstance(value, list):
            waiting += [((*where, str(number)), inside) for number, inside in enumerate(value, 1)]


def _fault(value: Any, longest: int = TEXT_LENGTH) -> str | None:
    if isinstance(value, str):
        if len(value) > longest:
            return f"has {len(value):,} letters; expected at most {longest:,}"
        control = harmful(value)
        return control and f"has the control character {control}; expected letters that can be printed"
    if isinstance(value, float) and not isfinite(value):
        return f"is {value}; expected a finite number"
    if isinstance(value, int) and abs(value) > WHOLE_NUMBER:
        return f"is a whole number beyond {WHOLE_NUMBER:,}; expected a smaller one"
    if isinstance(value, (date, datetime, time)):
        return f"is the date or time {value}; expected a text (in quotes) or a number"
    return None
