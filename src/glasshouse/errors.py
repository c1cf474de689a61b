"""What can go wrong? Either the user's input, or us; never anything in between."""

from __future__ import annotations

import resource

from glasshouse.limits import CHOICES, COMPLAINT_LENGTH, NAME_LENGTH
from glasshouse.text import plain

_LEFT_OUT = " [...] "


class InputError(Exception):
    """The input or the request is wrong; the message says where, what was found, and the remedy.

    Several mistakes have a line each: `InputError(first, second)`. Whatever a file says, a line stays one: what would
    steer a terminal or end the line is spelt out, and a long line loses its middle.
    """

    def __init__(self, *lines: object) -> None:
        super().__init__(*map(_line, lines))

    def __str__(self) -> str:
        return "\n".join(self.args)

    def add_where(self, where: object) -> None:
        """Say where it is wrong, in front of each line that does not say so already."""
        place = plain(str(where))
        self.args = tuple(line if place in line else _line(f"{place}: {line}") for line in self.args)


def _line(said: object) -> str:
    line = plain(str(said))
    half = (COMPLAINT_LENGTH - len(_LEFT_OUT)) // 2
    return line if len(line) <= COMPLAINT_LENGTH else f"{line[:half]}{_LEFT_OUT}{line[-half:]}"


class GlasshouseBug(Exception):  # noqa: N818  # it is a bug, and named so
    """Something we promised does not hold; the message says what to report."""


def unknown(kind: str, name: str, known: object) -> InputError:
    """The error for a name that is not known: it lists the names that are."""
    names = [str(item) for item in sorted(known)]  # type: ignore[call-overload]  # any collection of names
    more = f", and {len(names) - CHOICES:,} more" if len(names) > CHOICES else ""
    return InputError(
        f"unknown {kind} '{str(name)[:NAME_LENGTH]}'; known: {', '.join(names[:CHOICES]) or 'none'}{more}"
    )


class MachineFailed(InputError):  # noqa: N818  # a fact, not a fault
    """Workers, a disk or a network failed; it says nothing of the unit that was in hand, which is done again."""


def refuse_few_addresses(needed: int, what: str) -> None:
    """Refuse a limit on addresses (`ulimit -v`) at which libraries abort, hang, or end with a code of their own."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit not in (resource.RLIM_INFINITY, -1) and limit < needed:
        raise MachineFailed(
            f"the limit on address space (ulimit -v) is {limit >> 20:,} MiB; {what} needs {needed >> 20:,} MiB, most "
            "of it never used; raise the limit, or remove it (ulimit -v unlimited)"
        )
