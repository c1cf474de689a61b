"""Are tables 1 and 2 of paper 000 on the page what its script computes?"""

from __future__ import annotations

import numpy as np
import pytest

from glasshouse.scenarios.load import load
from tests.test_readme import ROOT, module

made_part = module(ROOT / "docs" / "made_part.py")
page = module(ROOT / "docs" / "make_reidentify_tables.py")


def test_the_rank_of_known_matrices() -> None:
    rng = np.random.default_rng(4)
    for rows, columns, inner in ((5, 9, 3), (20, 12, 7), (12, 12, 12), (3, 40, 2)):
        left, right = rng.integers(0, 3, (rows, inner)), rng.integers(0, 3, (inner, columns))
        assert page.rank(left @ right) == np.linalg.matrix_rank(left @ right)
    assert page.rank(np.zeros((3, 4), np.int64)) == 0


def test_the_block_tables_have_678_independent_cells_of_775() -> None:
    """FINDINGS A: the rank of the block tables. The paper's "independent" 8.6 billion are all cells of all blocks."""
    assert page.independent(load("sf1-person"), "block") == (775, 678)
    assert 775 * page.PLACES["block"] == pytest.approx(8.6e9, rel=0.005)
    assert 3296 * page.PLACES["tract"] == pytest.approx(241e6, rel=0.005)


@pytest.mark.slow
def test_table_2_on_the_page() -> None:
    made = made_part.part_of(page.PAGE, "make_reidentify_tables.py")
    assert all(line in made.splitlines() for line in page.table_2())
    assert "| 3,296 | 2,884 |" in made
