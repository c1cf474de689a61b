"""How large is a place? Bands of its population, as the tables of paper 000 have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BANDS = {"1-9": 1, "10-49": 10, "50-99": 50, "100-249": 100, "250-499": 250, "500-999": 500, "1000+": 1000}
ALL = "all"  # a row of all places, beside those of bands


def band_of(population: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of the band of each place; -1 for one without people."""
    return np.searchsorted(list(BANDS.values()), population, side="right") - 1
