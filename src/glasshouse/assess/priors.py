"""How surprising is a claim? The chance that it holds in a place drawn from the people around (paper 002, equation 4).

With a share p of the tract's (or state's) records matching a description, exactly m of n records drawn from there match
with probability C(n, m) p^m (1 - p)^(n - m). Records that are reported apart (vacant units) are in neither n nor p,
unless all units are asked for, as the paper has it. The uniform prior knows nobody: every value of a column is as
likely as any other, whatever the other columns say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

Ints = NDArray[np.int64]


@dataclass
class Prior:
    """Records that a place is drawn from: their different values, a row each, and how many have them.

    Counts by a set of columns are made when the set is first asked for.
    """

    values: NDArray[np.int16]
    weight: Ints
    _tables: dict[bytes, tuple[Ints, Ints, Ints]] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(values: NDArray[np.int16]) -> Prior:
        """The prior that these records make."""
        kinds, weight = np.unique(values, axis=0, return_counts=True)
        return Prior(kinds, weight.astype(np.int64))

    @property
    def total(self) -> int:
        return int(self.weight.sum())

    def counts(self, descriptions: NDArray[np.int16]) -> Ints:
        """How many records match each description; -1 stands for a column that is not named."""
        found = np.zeros(len(descriptions), np.int64)
        named = descriptions >= 0
        sets, of = np.unique(named, axis=0, return_inverse=True)
        for number, chosen in enumerate(sets):
            mine = of.reshape(-1) == number
            sizes, keys, totals = self._table(chosen)
            wanted = _key(descriptions[mine][:, chosen], sizes)
            at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
            found[mine] = np.where(keys[at] == wanted, totals[at], 0) if len(keys) else 0
        return found

    def chance(self, descriptions: NDArray[np.int16], m: Ints, records: int) -> NDArray[np.float64]:
        """The probability that exactly m of so many records drawn from here match each description."""
        return binomial(self.counts(descriptions) / max(self.total, 1), m, records)

    def _table(self, chosen: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
        if chosen.tobytes() not in self._tables:
            sizes = self.values.max(axis=0, initial=0).astype(np.int64)[chosen] + 2
            keys, inverse = np.unique(_key(self.values[:, chosen], sizes), return_inverse=True)
            totals = np.bincount(inverse.reshape(-1), weights=self.weight, minlength=len(keys)).astype(np.int64)
            self._tables[chosen.tobytes()] = sizes, keys, totals
        return self._tables[chosen.tobytes()]


@dataclass(frozen=True)
class Uniform:
    """Values that are drawn column by column: `shares[c][v]` is the share of the levels of column c with value v."""

    shares: tuple[NDArray[np.float64], ...]

    @property
    def total(self) -> int:
        """It is drawn from no file, and is always there."""
        return 1

    def chance(self, descriptions: NDArray[np.int16], m: Ints, records: int) -> NDArray[np.float64]:
        """The probability that exactly m of so many records that are drawn in this way match each description."""
        share = np.ones(len(descriptions))
        for column, shares in enumerate(self.shares):
            values = descriptions[:, column]
            share *= np.where(values >= 0, shares[np.maximum(values, 0)], 1.0)
        return binomial(share, m, records)


def binomial(share: NDArray[np.float64], m: Ints, records: int) -> NDArray[np.float64]:
    """The probability that exactly m of so many independent draws succeed, each with its share (equation 4)."""
    ways = gammaln(records + 1) - gammaln(m + 1) - gammaln(records - m + 1)
    return np.asarray(np.exp(ways + xlogy(m, share) + xlog1py(records - m, -share)))


def _key(values: NDArray[np.int16], sizes: Ints) -> Ints:
    """A combination of values as one number; a value larger than any known gets one of its own."""
    large = prod(int(size) for size in sizes) >= 2**62
    key = np.zeros(len(values), object if large else np.int64)  # whole numbers of any size, where it takes them
    for column, size in enumerate(sizes):
        key = key * int(size) + np.minimum(values[:, column].astype(np.int64), size - 1)
    return key
