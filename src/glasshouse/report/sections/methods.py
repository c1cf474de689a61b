"""Which words does the audit use, and what do they mean? Definitions and methods from one data file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

from glasshouse.report.description import Block, Definition, Report, Section, Words


@cache
def _told() -> dict[str, Any]:
    return tomllib.loads((resources.files("glasshouse") / "report" / "text" / "en.toml").read_text(encoding="utf-8"))


def definitions(used: Iterable[str]) -> tuple[Definition, ...]:
    """The definitions of the terms that are used, in the order of the file."""
    wanted = set(used)
    return tuple(Definition(**entry) for entry in _told()["definition"] if entry["term"] in wanted)


def label(name: str) -> str:
    """A name of the scenario, written out where the file has words for it."""
    return str(_told()["labels"].get(name, name.replace("_", " ")))


def methods(left_out: Sequence[tuple[str, str, str]]) -> Section:
    """How it was done, what it does not say, and what was left out."""
    told = _told()["methods"]
    blocks: list[Block] = [Words(tuple(told["paragraphs"])), Words(("What to keep in mind:",), tuple(told["points"]))]
    if left_out:
        blocks.append(
            Words(("Left out of this audit:",), tuple(f"{what} ({name}): {why}." for name, what, why in left_out))
        )
    return Section("methods", "Methods and limits", told["lead"], tuple(blocks))


def terms_of(report: Report) -> set[str]:
    """Every term that a number of the report refers to."""
    columns = [column for table in report.tables() for column in table.columns]
    return {verdict.term for verdict in report.verdicts} | {column.term for column in columns if column.term}
