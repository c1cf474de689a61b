"""Which codes are totals of others? By what they are called, by what the file tells, by bins, and by the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.describing.asking import Inquiry
from glasshouse.files.describing.bins import OLDEST, Bin, is_of_ages, read_bins
from glasshouse.files.describing.columns import is_total
from glasshouse.files.describing.figures import Printed
from glasshouse.files.describing.looking import Column, Look

Numbers = NDArray[np.float64]
ENOUGH = 10  # sums that agree, of numbers that are not 0, before numbers alone are taken for a reason
NONE = "none"


@dataclass(frozen=True)
class Agreement:
    """How many sums were compared, how many agree, and the first that does not."""

    compared: int = 0
    agree: int = 0
    told: int = 0  # of those that agree, how many are not 0
    with_gaps: int = 0  # of those compared, how many lack a row of a part
    below: bool = True  # are all that disagree totals above the sum of their parts?
    first: tuple[int, int] | None = None

    @property
    def said(self) -> str:
        return f"{self.agree:,} of {self.compared:,} sums agree" if self.compared else "no sum could be compared"


@dataclass(frozen=True)
class Tree:
    """The codes of a column: the total, what is divided into what, which are bins of whole numbers, and why."""

    column: Column
    total: str | None = None
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bins: Mapping[str, Bin] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)
    whole: bool = True  # do the codes make up the total? otherwise some are not printed
    adds_up: bool = False  # was that seen in exact numbers?
    gaps_are_zero: bool | None = None  # of rows that are absent, if sums tell

    @property
    def ages(self) -> bool:
        texts = [self.column.name, self.column.title, *(self.column.label(code) for code in list(self.bins)[:5])]
        return is_of_ages([text for text in texts if text])


def agreement(matrix: Numbers, whole: int, parts: Sequence[int], slack: int) -> Agreement:
    """Compare a column of totals with the sum of its parts, wherever none of them is hidden."""
    total, some = matrix[:, whole], matrix[:, list(parts)]
    rows = (total >= 0) & ~np.isnan(some).any(axis=1) & (some >= 0).any(axis=1)
    total, some = total[rows], some[rows]
    summed = np.where(some < 0, 0, some).sum(axis=1)
    fits = np.abs(total - summed) <= slack
    bad = np.flatnonzero(~fits)
    first = (int(total[bad[0]]), int(summed[bad[0]])) if len(bad) else None
    above = bool((total[bad] > summed[bad]).all())
    gaps = int(((some < 0).any(axis=1)).sum())
    return Agreement(len(total), int(fits.sum()), int((fits & (total > 0)).sum()), gaps, above, first)


def find_tree(look: Look, column: Column, printed: Printed, inquiry: Inquiry) -> Tree:
    """The total and the subtotals of a column, checked with the numbers."""
    matrix = look.matrix(column.name)
    at = {code: index for index, code in enumerate(column.codes)}
    total = _total(look, column, matrix, printed, inquiry)
    rest = {code: column.labels.get(code, "") for code in column.codes if code != total}
    bins = read_bins(column.title or column.name, rest)
    parts: dict[str, tuple[str, ...]] = {}
    why: dict[str, str] = {}
    for code, some in _told_groups(column, inquiry).items():
        parts[code], why[code] = some, "told so (--group)"
    below: dict[str, list[str]] = {code: [] for code in rest}
    for one in rest:
        below.get(column.parents.get(one, ""), []).append(one)
    for code, some_below in below.items():
        if some_below and code not in parts:
            parts[code], why[code] = tuple(some_below), "the file tells its parts"
    if not parts and len(bins) < len(rest):
        parts, why = _by_prefix(column, [code for code in rest if code not in bins], matrix, at, printed)
    if not parts and not bins and printed.exact and total != NONE:
        parts, why = _by_numbers(look, column, list(rest), matrix, at, inquiry)
    for code, some in parts.items():
        _check(
            look,
            column,
            code,
            agreement(matrix, at[code], [at[one] for one in some], printed.slack(len(some))),
            inquiry,
        )
    why |= _check_bins(look, column, bins, matrix, at, printed, inquiry)
    tree = Tree(column, total, parts, bins, why)
    return _checked_total(look, tree, matrix, at, printed, inquiry)


def roots(tree: Tree) -> list[str]:
    """The codes that are no part of another."""
    inside = {one for some in tree.parts.values() for one in some}
    codes = [code for code in tree.column.codes if code != tree.total and code not in inside]
    top = _top(tree)
    spans = {code: tree.bins[code].range(top) for code in codes if code in tree.bins}
    within, furthest = set(), 0
    for span in sorted(set(spans.values()), key=lambda one: (one.start, -one.stop)):  # whoever is around comes first
        if span.stop <= furthest:
            within.add(span)
        furthest = max(furthest, span.stop)
    return [code for code in codes if spans.get(code) not in within]


def _top(tree: Tree) -> int:
    return max(max(one.first, one.last or 0) for one in tree.bins.values()) + 1 if tree.bins else OLDEST


def _total(look: Look, column: Column, matrix: Numbers, printed: Printed, inquiry: Inquiry) -> str | None:
    """The code that counts everybody: as told, as it is called, or as the numbers have it."""
    told = inquiry.answers.total.get(column.name)
    if told is not None:
        if told != NONE and told not in column.codes:
            raise InputError(f"--total {column.name}={told}: {look.path.name} has no such code; or say {NONE}")
        return None if told == NONE else told
    called = [code for code in column.codes if is_total(column, code)]
    if len(column.codes) == 1:
        return called[0] if called else None
    if len(called) > 1:
        inquiry.ask(
            f"{look.path.name}: {' and '.join(repr(column.label(code)) for code in called[:3])} of "
            f"'{column.name}' are both "
            "called totals",
            f"--total '{column.name}=CODE'",
        )
    if called:
        return called[0]
    tops = [code for code in column.codes if not column.parents.get(code) and code in column.parents.values()]
    if len(tops) == 1 and all(code == tops[0] or column.parents.get(code) for code in column.codes):
        return tops[0]
    labels = {code: column.labels.get(code, "") for code in column.codes}
    if len(column.codes) > 2 and not read_bins(column.title or column.name, labels):
        for index in (0, len(column.codes) - 1):
            others = [other for other in range(len(column.codes)) if other != index]
            rows, sure = _holds_others(matrix, index, others, printed.slack(len(others)))
            if rows >= ENOUGH // 2:
                code = column.codes[index]
                inquiry.ask(
                    f"{look.path.name}: '{column.label(code)}' of '{column.name}' is as much as the others "
                    f"together in all "
                    f"{rows:,} rows where it is not 0; is it the total?",
                    f"--total '{column.name}={code}' or --total '{column.name}={NONE}'",
                    code if sure >= ENOUGH and printed.exact else "",
                )
                return code
    return None


def _holds_others(matrix: Numbers, whole: int, parts: Sequence[int], slack: int) -> tuple[int, int]:
    """In how many rows a number can be the sum of others, and is it for certain; none if it cannot be in one of them.

    Where some of the others are hidden, it may be more than the rest; but not mostly.
    """
    total, some = matrix[:, whole], matrix[:, list(parts)]
    rows = total > 0
    total, some = total[rows], some[rows]
    hidden = np.isnan(some).any(axis=1)
    summed = np.where(np.isnan(some) | (some < 0), 0, some).sum(axis=1)
    fits = np.where(hidden, summed <= total + slack, np.abs(total - summed) <= slack)
    if not fits.all() or 2 * summed.sum() < total.sum() or ((some > 0).any(axis=0)).sum() < 2:
        return 0, 0
    return len(total), int((~hidden).sum())


def _told_groups(column: Column, inquiry: Inquiry) -> dict[str, tuple[str, ...]]:
    found = {}
    for name, codes in inquiry.answers.group.items():
        of, _, code = name.partition(":")
        if of == column.name and code in column.codes:
            some = tuple(one.strip() for one in codes.split("|"))
            if all(one in column.codes for one in some):  # else of another table, where its parts stand
                found[code] = some
    return found


def _by_prefix(
    column: Column, codes: Sequence[str], matrix: Numbers, at: Mapping[str, int], printed: Printed
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Codes that begin those of their parts, where the numbers say so too."""
    parts: dict[str, tuple[str, ...]] = {}
    why: dict[str, str] = {}
    known = set(codes) - {""}
    longer: dict[str, list[str]] = {code: [] for code in codes}
    for one in codes:
        begins = next((one[:end] for end in range(len(one) - 1, 0, -1) if one[:end] in known), None)
        if begins is not None:
            longer[begins].append(one)
    for code, direct in longer.items():
        if len(direct) > 1:
            seen = agreement(matrix, at[code], [at[one] for one in direct], printed.slack(len(direct)))
            if seen.told and seen.agree == seen.compared:
                parts[code], why[code] = tuple(direct), f"its code begins those of its parts; {seen.said}"
    return parts, why


def _by_numbers(
    look: Look, column: Column, codes: Sequence[str], matrix: Numbers, at: Mapping[str, int], inquiry: Inquiry
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Codes that are the sum of those right below them, everywhere: asked for, since no word says so."""
    parts: dict[str, tuple[str, ...]] = {}
    why: dict[str, str] = {}
    known = matrix[~np.isnan(matrix).any(axis=1)]
    known = np.where(known < 0, 0, known)
    index = 0
    while index < len(codes) - 2:
        whole = known[:, at[codes[index]]]
        sums = np.cumsum(known[:, [at[one] for one in codes[index + 1 :]]], axis=1)
        several = ((known[:, [at[one] for one in codes[index + 1 :]]] > 0).any(axis=0)).cumsum() > 1
        hits = np.flatnonzero((sums == whole[:, None]).all(axis=0) & several)
        if len(hits) and hits[0] >= 1 and (whole > 0).sum() >= ENOUGH // 2:
            some = tuple(codes[index + 1 : index + 2 + int(hits[0])])
            code = codes[index]
            told = int((whole > 0).sum())
            inquiry.ask(
                f"{look.path.name}: '{column.label(code)}' of '{column.name}' is the sum of the {len(some)} "
                f"codes below it in "
                f"all {len(known):,} rows; is it their subtotal?",
                f"--group '{column.name}:{code}={'|'.join(some)}' or --total '{column.name}={NONE}'",
                "that" if told >= ENOUGH else "",
            )
            parts[code], why[code] = some, f"{told:,} of {told:,} sums agree, and no word says so"
            index += len(some)
        index += 1
    return parts, why


def _check(look: Look, column: Column, code: str, seen: Agreement, inquiry: Inquiry) -> None:
    if seen.agree == seen.compared or seen.first is None:
        return
    inquiry.ask(
        f"{look.path.name}: '{column.label(code)}' of '{column.name}' is not the sum of its parts in "
        f"{seen.compared - seen.agree:,} of {seen.compared:,} rows (first: {seen.first[0]:,} printed, "
        f"{seen.first[1]:,} "
        "added up); are the numbers rounded or perturbed?",
        f"--rounded BASE or --noise-within N; --group '{column.name}:{code}=CODES' if its parts are others",
    )


def _check_bins(
    look: Look, column: Column, bins: Mapping[str, Bin], matrix: Numbers, at: Mapping[str, int], printed: Printed,
    inquiry: Inquiry,
) -> dict[str, str]:  # fmt: skip
    """Wider bins against the narrower ones that make them up."""
    why = {}
    top = max((max(one.first, one.last or 0) for one in bins.values()), default=0) + 1
    spans = {code: frozenset(one.range(top)) for code, one in bins.items()}
    for code, span in spans.items():
        inside = [other for other, some in spans.items() if some < span]
        direct = [one for one in inside if not any(spans[one] < spans[other] for other in inside)]
        if direct and frozenset().union(*(spans[one] for one in direct)) == span:
            seen = agreement(matrix, at[code], [at[one] for one in direct], printed.slack(len(direct)))
            _check(look, column, code, seen, inquiry)
            why[code] = f"the bins inside it make it up; {seen.said}"
    return why


def _checked_total(
    look: Look, tree: Tree, matrix: Numbers, at: Mapping[str, int], printed: Printed, inquiry: Inquiry
) -> Tree:
    """The tree with what the numbers say of its total."""
    if tree.total is None or len(tree.column.codes) == 1:
        return tree
    column, total, top = tree.column, tree.total, roots(tree)
    seen = agreement(matrix, at[total], [at[one] for one in top], printed.slack(len(top)))
    why = {**tree.why, total: seen.said}
    agrees = seen.agree == seen.compared
    zero = None if not seen.with_gaps or not printed.exact else agrees
    if not agrees and printed.exact and seen.below and not tree.bins and seen.first:
        inquiry.ask(
            f"{look.path.name}: '{column.label(total)}' of '{column.name}' is more than its parts in "
            f"{seen.compared - seen.agree:,} of {seen.compared:,} rows (first: {seen.first[0]:,} and "
            f"{seen.first[1]:,}); are "
            "there people of whom the table prints no part, or are the numbers perturbed?",
            f"--noise-within N if they are perturbed; --total '{column.name}={NONE}' if it is no total",
            "that some parts are not printed",
        )
        return Tree(column, total, tree.parts, tree.bins, why, whole=False, gaps_are_zero=None)
    _check(look, column, total, seen, inquiry)
    return Tree(column, total, tree.parts, tree.bins, why, True, agrees and printed.exact and seen.told > 0, zero)
