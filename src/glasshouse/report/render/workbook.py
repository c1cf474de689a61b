"""How is a workbook begun and ended, so that the same numbers give the same bytes and no text becomes a formula?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from io import BytesIO
from typing import Any

import xlsxwriter

_CREATED = datetime(2010, 4, 1)  # any fixed day, so that the bytes stay the same


def workbook(title: str, fill: Callable[[Any], None]) -> bytes:
    """A workbook that `fill` puts its sheets into."""
    stream = BytesIO()
    # text is text: never a formula, never a link
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    book = xlsxwriter.Workbook(stream, options)
    book.set_properties({"title": title, "created": _CREATED})
    fill(book)
    book.close()
    return stream.getvalue()
