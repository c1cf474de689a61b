"""Where does chance come from? From the seed, the unit and the question, so that order and workers do not matter."""

from __future__ import annotations

import hashlib

import numpy as np


def chance(seed: int, unit: str, question: str) -> np.random.Generator:
    """Chance for a unit: its own, whoever does it and when."""
    digest = hashlib.sha256(f"{seed}/{unit}/{question}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, np.uint32))
