"""What is not told by the tables, and who decides it? Questions, each with the option that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Question:
    """Something the numbers do not tell: a sentence, the option that answers it, and what would be safe to take."""

    sentence: str
    option: str
    proposal: str = ""  # what --accept takes; empty: nothing is safe

    @property
    def said(self) -> str:
        taken = f" (--accept takes {self.proposal})" if self.proposal else ""
        return f"{self.sentence}{' Say ' if self.sentence.endswith('?') else '; say '}{self.option}{taken}"


@dataclass(frozen=True)
class Answers:
    """What the user says of the tables."""

    value: str = ""
    status: str = ""
    place: str = ""
    area: str = ""
    ignore: tuple[str, ...] = ()
    only: Mapping[str, str] = field(default_factory=dict)  # column: the code whose rows are kept
    attribute: Mapping[str, str] = field(default_factory=dict)  # column: the name of its attribute
    total: Mapping[str, str] = field(default_factory=dict)  # column: the code of everybody, or none
    group: Mapping[str, str] = field(default_factory=dict)  # COLUMN:CODE: the codes it adds up, with | between
    universe: Mapping[str, str] = field(default_factory=dict)  # FILE:COLUMN: the codes of those whom a file counts
    marker: Mapping[str, str] = field(default_factory=dict)  # text instead of a number: what the number may be
    rounded: str = ""  # BASE, BASE:HOW, or none
    within: int | None = None
    missing: str = ""
    thousands: str = ""
    levels: tuple[str, ...] = ()
    title: str = ""
    accept: bool = False


class Inquiry:
    """Collects what is open, and what was taken because the user accepts what is safe."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.open: list[Question] = []
        self.taken: list[Question] = []
        self.values: list[str] = []  # the columns of numbers, and of marks beside them, as files were opened
        self.statuses: list[str] = []

    def ask(self, sentence: str, option: str, proposal: str = "") -> None:
        """Ask, unless the user accepts proposals and there is one. Whoever asks goes on with the proposal."""
        question = Question(sentence, option, proposal)
        if question not in self.open and question not in self.taken:
            (self.taken if proposal and self.answers.accept else self.open).append(question)
