"""What can go wrong? Either the user's input, or us; never anything in between."""

from __future__ import annotations


class InputError(Exception):
    """The input or the request is wrong; the message says where, what was found, and the remedy.

    Several mistakes have a line each: `InputError(first, second)`.
    """

    def __str__(self) -> str:
        return "\n".join(str(line) for line in self.args)


class GlasshouseBug(Exception):  # noqa: N818  # it is a bug, and named so
    """Something we promised does not hold; the message says what to report."""


def unknown(kind: str, name: str, known: object) -> InputError:
    """The error for a name that is not known: it lists the names that are."""
    choices = ", ".join(str(item) for item in sorted(known))  # type: ignore[call-overload]  # any collection of names
    return InputError(f"unknown {kind} '{name}'; known: {choices or 'none'}")
