"""What did noise cost? The account of a release: exact numbers as text, and what the total means as an epsilon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # heavy, and a summary needs only the names
    from glasshouse.mechanism.account import Ledger

DELTA = 1e-10  # the Census Bureau's, for the epsilon that is told beside rho


@dataclass(frozen=True)
class Spent:
    """What was spent of a budget, on what, and for which neighbours."""

    neighbours: str
    rho: str  # in all
    rho_spent: str
    rho_spent_decimal: float
    rho_left: str
    epsilon: float
    delta: float
    ledger: Mapping[str, str]  # by purpose

    @classmethod
    def of(cls, ledger: Ledger, neighbours: str) -> Spent:
        from glasshouse.mechanism.account import epsilon

        spent = ledger.total - ledger.left
        return Spent(
            neighbours, str(ledger.total), str(spent), float(spent), str(ledger.left), epsilon(float(spent), DELTA),
            DELTA, {purpose: str(price) for purpose, price in ledger.spent.items()},
        )  # fmt: skip
