"""Which whole numbers does a label mean? `Aged 5 to 9 years`, `Y_LT15`, `85+` and `Y15T29` are bins."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

OLDEST = 110  # where an open bin of ages ends, unless the labels go on
_FILLER = re.compile(
    r"\b(?:aged?|ages|years?|yrs?|old|of|persons?|people|rooms?|jahren?|jahr|alter|ans?|años?|anos?|age|members?|"
    r"children|child|cars?|vans?|år|edad|vuotta)\b|\bâge\b|^de\b"
)
_N = r"(\d{1,4})"
_MORE = r"(?:\+|plus|(?:and|or) (?:over|more|older|above|up)|und (?:älter|mehr)|et plus|ou plus|y más|e più|over)"
_LESS = r"(?:and|or) (?:under|younger|less|below|fewer)|und jünger"
_BELOW = r"(?:lt|<|under|less than|below|younger than|unter|moins de|menos de|fewer than)"
_UP_TO = r"(?:le|<=|up to|bis)"
_FROM = r"(?:ge|>=|from|ab)"
_TO = r"(?:-|to|t|bis|until|through|à|a|/)"


@dataclass(frozen=True, order=True)
class Bin:
    """Whole numbers from one to another; without a last one it is open."""

    first: int
    last: int | None

    def range(self, top: int) -> range:
        return range(self.first, (top if self.last is None else self.last) + 1)


def read_bin(label: str) -> Bin | None:
    """The bin that a label or code means, if it means one.

    >>> read_bin("Aged 5 to 9 years"), read_bin("Y_GE85"), read_bin("Y_LT15"), read_bin("Aged 4 years and under")
    (Bin(first=5, last=9), Bin(first=85, last=None), Bin(first=0, last=14), Bin(first=0, last=4))
    """
    text = re.sub("[\u2010-\u2015]", "-", label.strip().lower())
    text = re.sub(r"^y_?(?=\d|lt|ge|le)", "", text).replace("_", " ")
    text = re.sub(r"(?<=\d)(?=[a-zà-ÿ+<>])|(?<=[a-zà-ÿ=<>])(?=\d)", " ", text)
    text = " ".join(_FILLER.sub(" ", text).split()).strip(" :;,")
    patterns: dict[str, Callable[[int], Bin | None]] = {
        rf"{_N}": lambda one: Bin(one, one),
        rf"{_N} ?{_MORE}|{_FROM} {_N}": lambda one: Bin(one, None),
        rf"{_BELOW} {_N}": lambda one: Bin(0, one - 1) if one > 0 else None,
        rf"{_N} (?:{_LESS})|{_UP_TO} {_N}": lambda one: Bin(0, one),
    }
    for pattern, made in patterns.items():
        if match := re.fullmatch(pattern, text):
            return made(int(next(group for group in match.groups() if group is not None)))
    if match := re.fullmatch(rf"{_N} ?{_TO} ?{_N}(?: inclusive)?", text):
        first, last = int(match[1]), int(match[2])
        return Bin(first, last) if first <= last else None
    return None


def is_of_ages(texts: Sequence[str]) -> bool:
    """Do names or labels speak of ages?"""
    words = re.compile(
        r"(?:^|[^a-z])(?:aged?|ages|years?|yrs|alter|jahre?n?|âge|ans|edad|años|ikä|ålder|alder|år|y(?:_|\d|ge|lt))"
    )
    return any(words.search(text.lower()) for text in texts)


def read_bins(name: str, labels: Mapping[str, str]) -> Mapping[str, Bin]:
    """The bin of each code that has one, by its label or, without one, by itself; none if these are no whole numbers.

    Codes that are bare numbers mean whole numbers only where the name or other labels speak of them: 1 and 2 may be
    codes of anything.
    """
    found = {
        code: read_bin(label or code) or (read_bin(code) if label and not code.isdigit() else None)
        for code, label in labels.items()
    }
    bins = {code: one for code, one in found.items() if one is not None}
    spoken = [labels[code] or code for code in bins if not (labels[code] or code).strip().isdigit()]
    if 3 * len(bins) < 2 * len(labels) or len(bins) < 2:
        return {}
    wide = [one for one in bins.values() if one.last is None or one.last > one.first]
    evidence = is_of_ages([name]) or (spoken and (wide or len(spoken) == len(bins)))
    return bins if evidence else {}
