"""Which letters may a text have? Those that are drawn; what steers a terminal or turns the reading round is spelt out.

Names and labels come from files, and go to terminals, pages and pictures. A control character moves a cursor, ends a
drawing, or is forbidden in XML; a bidirectional override shows another text than the one that is there. Joiners and
marks that languages need are letters like others.
"""

from __future__ import annotations

import re

_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_TURNS = r"\u202a-\u202e\u2066-\u2069"
_NOT_UNICODE = "\ud800-\udfff\ufdd0-\ufdef" + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}"
                                                     for plane in range(17))  # fmt: skip
_HARMFUL = re.compile(f"[{_CONTROL}{_TURNS}{_NOT_UNICODE}]")


def harmful(text: str) -> str | None:
    """The first character of a text that is not to be printed as it is, spelt out; None if there is none."""
    found = _HARMFUL.search(text)
    return None if found is None else _spelt(found)


def plain(text: str, *, lines: bool = False) -> str:
    r"""The text with every such character spelt out; of several `lines`, the line ends and tabs stay.

    >>> plain("a \x1b[31mred\nherring")
    'a \\x1b[31mred\\nherring'
    """
    return _HARMFUL.sub(lambda one: one[0] if lines and one[0] in "\n\t" else _spelt(one), text)


def is_whole(text: str) -> bool:
    """Is it a whole number from 0 up, in digits that everyone reads, and short enough for every program?"""
    return text.isascii() and text.isdigit() and len(text) <= 15


def _spelt(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
