"""Where does noise come from? A seeded simulator for studies, and a secure source for real releases."""

from __future__ import annotations

from math import sqrt
from typing import cast

import numpy as np
from numpy.typing import NDArray

from glasshouse.mechanism.gaussian import DiscreteGaussian


def simulate(noise: DiscreteGaussian, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw noise for a simulation: fast, repeatable with the seed, and not fit to protect anything real."""
    return np.searchsorted(noise.cumulative, rng.random(size), side="right") - noise.radius()


def draw_securely(noise: DiscreteGaussian, size: int) -> NDArray[np.int64]:
    """Draw noise for a real release, from a secure source of randomness with exact arithmetic (OpenDP); no seed."""
    import opendp.prelude as dp  # late: only real releases need it

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    measurement = dp.m.make_gaussian(*space, scale=sqrt(1 / (2 * noise.rate)))
    return np.array(cast(list[int], measurement([0] * size)), np.int64)
