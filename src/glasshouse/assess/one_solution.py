"""Which places have one solution? Those of which it is proved that no other set of records fits their tables.

This is the only place that says so. A bound of 0 that one engine gives and nothing confirms is undecided: it does not
count. `distance_upper` and `solvar_upper` are 0 together, so the rule may be put to either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.program.integer import Proof


def one_solution(upper: str = "distance_upper", proof: str = "proof") -> pl.Expr:
    """Of each row of a frame of places: is its one solution proved? By its upper bound, and how sure that is."""
    return (pl.col(upper) == 0) & (pl.col(proof) != Proof.UNDECIDED)


def have_one_solution(upper: NDArray[np.int64], proof: Sequence[str]) -> NDArray[np.bool_]:
    """The same of arrays."""
    proved = np.array([how != Proof.UNDECIDED for how in proof], np.bool_)
    return np.asarray((upper == 0) & proved)
