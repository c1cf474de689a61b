"""Which table gives claims away? Of all verified claims, the share lost when a table is withheld, gained when added.

More is worse: a table whose withholding loses many claims is what makes them certain. Shares are over all blocks, with
intervals that allow for the claims of a block sharing their fate; tables overlap, so shares do not add up.
"""

from __future__ import annotations

import polars as pl

from glasshouse.assess.rates import clustered


def by_table(leaks: pl.DataFrame) -> pl.DataFrame:
    """A row for each table and change: claims, the share of those certain before, blocks; the worst first."""
    rows = []
    for (change, table), part in leaks.group_by("change", "table", maintain_order=True):
        certain, changed = int(part["of"].sum()), int(part["claims"].sum())
        low, high = _interval(part) if certain and change == "withheld" else (None, None)
        rows.append(
            {
                "change": str(change), "table": str(table), "certain": certain, "claims": changed,
                "kinds": int(part["kinds"].sum()), "undecided": int(part["undecided"].sum()),
                "blocks": int((part["claims"] > 0).sum()), "share": changed / certain if certain else None,
                "low": low, "high": high,
            }
        )  # fmt: skip
    schema = {"change": pl.String, "table": pl.String, "certain": pl.Int64, "claims": pl.Int64, "kinds": pl.Int64,
              "undecided": pl.Int64, "blocks": pl.Int64, "share": pl.Float64, "low": pl.Float64,
              "high": pl.Float64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema).sort("change", "claims", "table", descending=[True, True, False])


def _interval(part: pl.DataFrame) -> tuple[float, float]:
    """Of the share lost, when a block's claims share their fate."""
    k, n = part["claims"].to_numpy(), part["of"].to_numpy()
    ends = clustered(k.sum(), n.sum(), (k * k).sum(), (k * n).sum(), (n * n).sum(), int((n > 0).sum()))
    return float(ends[0]), float(ends[1])
