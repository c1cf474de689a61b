"""Which of the people of a group live in which child, when the answers about single cells hardly tell?

Least squares and rounding find how many of each group of cells each child has. Inside a group they go wrong: noise that
is larger than any count makes a choice out of chance, and all people of a cell are put into the child with the largest
draw. That is the best table if all tables are as likely as each other. But people are placed, not tables: a table in
which the people of a cell are apart comes about in many ways, one in which they are together in one way.

So people are placed anew, inside the groups. Each way to place them that leaves every child as many of the group has

    exp( - w / 2  sum over cells j, children c of (x_jc - m_jc)^2 )

as its likelihood, with m the answers about single cells and w one over the variance of their noise, if without the
answers no way is likelier than another. A table x comes about in ways in proportion to 1 / product of x_jc!.

Two people of a group, chosen by chance, change places if that is likelier, again and again: so the likeliest table is
climbed, on which the levels below can rest. At the last level, where the table is the people, a way to place them is
drawn instead, by Metropolis' rule: the likeliest table of few people is more even than people are. Either begins at the
table that was rounded, and never leaves what that one keeps: rows, sums of groups, places where some may not be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from glasshouse.protection.topdown.least_squares import Answers, alone
from glasshouse.protection.topdown.measurements import Flags, Ints

ROUNDS = 4  # exchanges tried for each person and each doubling of their number: a pack of cards is mixed by fewer


def place(
    x: Ints, group: Ints, answers: Sequence[Answers], allowed: Flags, rng: np.random.Generator, *, draw: bool
) -> Ints:
    """Another table of whole numbers with the same rows and the same sums of groups in every child."""
    told = alone(answers, len(x))
    weight = float(sum(one.weight for one in told))
    wish = sum((one.weight * one.noisy[one.group] for one in told), np.zeros(x.shape))
    row, child = np.nonzero(x)
    cells, children = np.repeat(row, x[row, child]), np.repeat(child, x[row, child])  # of each person
    order = np.argsort(group[cells], kind="stable")
    first = np.searchsorted(group[cells[order]], np.arange(int(group.max(initial=-1)) + 2))
    placed = x.copy()
    seed = int(rng.integers(2**31))
    _exchange(placed, cells[order], children[order], first, wish, weight, allowed, draw, seed)
    return placed


@njit(cache=True, nogil=True)
def _exchange(x, cell, child, first, wish, weight, allowed, draw, seed):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Let people of each group change places, in x and in the child of each; `wish` is the weight times the answers."""
    np.random.seed(seed)
    for number in range(len(first) - 1):
        begin, end = first[number], first[number + 1]
        people = end - begin
        for _ in range(int(ROUNDS * people * np.log2(people)) if people > 1 else 0):
            one, other = np.random.randint(begin, end), np.random.randint(begin, end)
            i, a, j, b = cell[one], child[one], cell[other], child[other]
            if i == j or a == b or not allowed[i, b] or not allowed[j, a]:
                continue
            before = weight * (x[i, a] + x[j, b]) - wish[i, a] - wish[j, b]
            after = weight * (x[i, b] + x[j, a]) - wish[i, b] - wish[j, a]
            gain = before - after - 2 * weight
            if draw:
                change = gain >= 0 or np.random.random() < np.exp(gain)
            else:  # tables, not people: the ways of one over those of the other
                gain += np.log(x[i, a] * x[j, b] / ((x[i, b] + 1) * (x[j, a] + 1)))
                change = gain > 0
            if change:
                x[i, a] -= 1
                x[j, b] -= 1
                x[i, b] += 1
                x[j, a] += 1
                child[one], child[other] = b, a
