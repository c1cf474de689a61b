"""The paper's Gibbs sampler for two levels, compiled: an oracle for tests and the peer of a benchmark, nothing else."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def gibbs(rate1, rate2, others, prior, x1, x2, y1, draws, seed, forget):  # type: ignore[no-untyped-def]
    """Draw (X1, X2) given one release, known = 0; returns how often X1 was 1.

    `forget` drops the condition k1 <= k2 when X1 is drawn, which is what the printed numbers look like.
    """
    np.random.seed(seed)
    both = rate2 + rate1 / others
    reach = int(np.ceil(np.sqrt(40 / both))) + 1
    weights = np.empty(2 * reach + 2)
    k1, ones = 0, 0
    for _ in range(draws):
        centre = (rate2 * x2 + rate1 / others * (y1 + k1)) / both
        low = max(k1, int(np.floor(centre)) - reach)
        total = 0.0
        size = max(int(np.ceil(centre)) + reach, low + reach) - low + 1
        if size > len(weights):
            size = len(weights)
        first = both * (low - centre) ** 2 if low > centre else 0.0
        for i in range(size):
            total += np.exp(-both * (low + i - centre) ** 2 + first)
            weights[i] = total
        k2 = low + np.searchsorted(weights[:size], np.random.random() * total)
        log_odds = np.log(prior / (1 - prior)) + rate1 * (2 * x1 - 1)
        log_odds += rate1 / others * ((y1 - k2) ** 2 - (y1 - k2 + 1) ** 2)
        possible = k2 >= 1 or forget
        k1 = 1 if possible and np.random.random() < 1 / (1 + np.exp(-log_odds)) else 0
        ones += k1
    return ones


def share_of_ones(*arguments: float, draws: int, seed: int, forget: bool = False) -> float:
    """The sampler's estimate of P[X1 = 1 | release]."""
    return float(gibbs(*arguments, draws, seed, forget)) / draws
