"""What does the head of a PX file say? Keywords with values, each ended by a semicolon, in one of many code pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from glasshouse.errors import InputError
from glasshouse.files.formats.crossing import shown
from glasshouse.limits import TEXT_FILE_BYTES

PIECE = 1 << 20
_QUOTED = rb'"[^"]*+"'
# KEYWORD[language]("subject","subject")=value; the quantifiers give nothing back: a file without an end costs no time
_STATEMENT = re.compile(
    rb"\s*+([A-Za-z][\w-]*+)(?:\[([^\]\"]{0,20}+)\])?(?:\(((?:\s*+" + _QUOTED + rb"\s*+,?+)*+)\s*+\))?\s*+=\s*+"
    rb"((?:[^\";]++|" + _QUOTED + rb")*+);"
)
_DATA = re.compile(rb"(?:^|;)\s*+DATA\s*+=")
_ITEM = re.compile(rb'"([^"]*+)"|(,)|([^",\s]++)')
_PAIR = re.compile(rb'"([^"]*+)"\s*+:\s*+"([^"]*+)"')
_PAGES = re.compile(r"(utf-?8|(iso-?8859-?|latin-?|windows-?|cp-?)\d{1,4}|ascii|us-ascii|koi8-[ru])", re.IGNORECASE)


@dataclass(frozen=True)
class Statement:
    """A keyword's value: its texts, and its bytes as they stand."""

    texts: tuple[str, ...]
    raw: bytes


@dataclass(frozen=True)
class Head:
    """All that stands before the numbers, in the main language, by keyword and subjects; and where numbers begin."""

    path: Path
    page: str
    said: Mapping[tuple[str, tuple[str, ...]], Statement]
    data: int  # bytes before the numbers

    def texts(self, keyword: str, *subjects: str) -> tuple[str, ...]:
        """What is said under a keyword; nothing if it is not there."""
        found = self.said.get((keyword, subjects))
        return found.texts if found else ()

    def text(self, keyword: str, *subjects: str) -> str:
        return " ".join(self.texts(keyword, *subjects))

    def pairs(self, keyword: str, *subjects: str) -> list[tuple[str, str]]:
        """What is said as "one":"other"."""
        found = self.said.get((keyword, subjects))
        return [(self.decoded(one), self.decoded(other)) for one, other in (_PAIR.findall(found.raw) if found else ())]

    def subjects(self, keyword: str) -> set[str]:
        """Of whom a keyword speaks."""
        return {subjects[0] for known, subjects in self.said if known == keyword and subjects}

    def decoded(self, raw: bytes) -> str:
        return _decoded(self.path, raw, self.page)


def read_head(path: Path) -> Head:
    """The head of a file."""
    head = _before_data(path)
    found: list[tuple[str, bytes, bytes, bytes]] = []
    at = 0
    while head[at:].strip() if len(head) - at < 1_000 else True:
        match = _STATEMENT.match(head, at)
        if match is None:
            line = head[:at].count(b"\n") + 1
            raise InputError(
                f"{path.name}, after line {line}: not a keyword with a value and a semicolon; expected a PX file; "
                "cut short or damaged: get it again"
            )
        keyword, language, subjects, value = match.groups()
        found.append((keyword.decode("ascii", "replace").upper(), language or b"", subjects or b"", value))
        at = match.end()
    page = _page(path, found, head)
    main = next((value.strip(b' "\r\n\t') for keyword, _, _, value in found if keyword == "LANGUAGE"), b"")
    said: dict[tuple[str, tuple[str, ...]], Statement] = {}
    for keyword, language, subjects, value in found:
        if language in (b"", main):
            key = (keyword, tuple(_decoded(path, one, page) for one in _texts(subjects)))
            if key in said and keyword in ("VALUES", "CODES", "STUB", "HEADING"):
                raise InputError(f"{path.name}: {keyword} stands twice for the same; expected it once")
            said[key] = Statement(tuple(_decoded(path, one, page) for one in _texts(value)), value)
    return Head(path, page, said, len(head) + _data_length(path, len(head)))


def _before_data(path: Path) -> bytes:
    head = b""
    counted, open_ = 0, False  # up to where quotation marks were counted, and whether a text is open there
    try:
        with path.open("rb") as stream:
            while piece := stream.read(PIECE):
                known = max(len(head) - 1_000, 0)
                head += piece
                for match in _DATA.finditer(head, known):
                    end = match.start() + (head[match.start() : match.start() + 1] == b";")
                    if end >= counted:  # each of them once: a text may say DATA= a million times
                        open_ ^= head.count(b'"', counted, end) % 2 == 1
                        counted = end
                        if not open_:
                            return head[:end]
                if len(head) > TEXT_FILE_BYTES:
                    raise InputError(
                        f"{path.name}: more than {TEXT_FILE_BYTES >> 20} MiB before DATA=; expected a PX file"
                    )
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    raise InputError(f"{path.name}: no DATA=; expected a PX file; cut short or damaged: get it again")


def _data_length(path: Path, after: int) -> int:
    with path.open("rb") as stream:
        stream.seek(after)
        return stream.read(2_000).find(b"=") + 1


def _page(path: Path, found: list[tuple[str, bytes, bytes, bytes]], head: bytes) -> str:
    """The code page: as the file says; without a word, only letters that are the same in all."""
    said = {
        keyword: value.strip(b' "\r\n\t').decode("ascii", "replace")
        for keyword, _, _, value in found
        if keyword in ("CODEPAGE", "CHARSET")
    }
    if head.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    page = said.get("CODEPAGE", "")
    if page:
        if not _PAGES.fullmatch(page):
            raise InputError(f"{path.name}: the code page '{shown(page)}' is not known; expected such as utf-8")
        try:
            "".encode(page)
        except LookupError:
            raise InputError(
                f"{path.name}: the code page '{shown(page)}' is not known; expected such as utf-8"
            ) from None
        return page
    if said.get("CHARSET", "").upper() == "ANSI":
        return "cp1252"
    if head.isascii():
        return "ascii"
    raise InputError(
        f"{path.name}: letters beyond ASCII, and neither CODEPAGE nor CHARSET says which; add a line such as "
        'CODEPAGE="utf-8"; or CHARSET="ANSI";'
    )


def _decoded(path: Path, raw: bytes, page: str) -> str:
    try:
        return raw.decode(page)
    except UnicodeDecodeError:
        raise InputError(
            f"{path.name}: a text is not in the code page {page}; expected it to be; mend CODEPAGE"
        ) from None


def _texts(value: bytes) -> list[bytes]:
    """Texts between commas; one that is written in several lines is put together."""
    texts: list[bytes] = []
    fresh = True
    for quoted, comma, bare in _ITEM.findall(value):
        if comma:
            fresh = True
        elif fresh:
            texts.append(quoted or bare)
            fresh = False
        else:
            texts[-1] += quoted or bare
    return texts
