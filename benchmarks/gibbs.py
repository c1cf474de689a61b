"""The paper's Gibbs sampler for two levels, compiled: an oracle for tests and the peer of a benchmark, nothing else."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def gibbs(rate1, rate2, others, prior, x1, x2, y1, draws, seed, forget):  # type: ignore[no-untyped-def]
    """Draw (X1, X2) given one release, known = 0; returns how often X1 was 1.

    `forget` drops the condition k1 <= k2 when X1 is drawn, which is what the printed numbers look like. Both full
    conditionals are tabulated once per release, as a careful author would.
    """
    np.random.seed(seed)
    both = rate2 + rate1 / others
    reach = int(np.ceil(np.sqrt(45 / both))) + 2
    lows = np.empty(2, np.int64)
    cumulative = np.zeros((2, 4 * reach))
    for k1 in range(2):
        centre = (rate2 * x2 + rate1 / others * (y1 + k1)) / both
        low = max(k1, int(np.floor(centre)) - reach)
        lows[k1] = low
        least = both * (low - centre) ** 2 if low > centre else 0.0
        total = 0.0
        for i in range(4 * reach):
            total += np.exp(-both * (low + i - centre) ** 2 + least)
            cumulative[k1, i] = total
    chances = np.empty((2, 4 * reach))
    for k1 in range(2):
        for i in range(4 * reach):
            k2 = lows[k1] + i
            log_odds = np.log(prior / (1 - prior)) + rate1 * (2 * x1 - 1)
            log_odds += rate1 / others * ((y1 - k2) ** 2 - (y1 - k2 + 1) ** 2)
            chances[k1, i] = 1 / (1 + np.exp(-log_odds)) if k2 >= 1 or forget else 0.0
    k1, ones = 0, 0
    for _ in range(draws):
        i = np.searchsorted(cumulative[k1], np.random.random() * cumulative[k1, -1])
        k1 = 1 if np.random.random() < chances[k1, i] else 0
        ones += k1
    return ones


def share_of_ones(*arguments: float, draws: int, seed: int, forget: bool = False) -> float:
    """The sampler's estimate of P[X1 = 1 | release]."""
    return float(gibbs(*arguments, draws, seed, forget)) / draws
