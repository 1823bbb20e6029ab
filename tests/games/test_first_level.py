"""How much of the variance over orderings a first level leaves."""

import numpy as np
import pytest

from dsage.games.first_level import _shares_left
from small_games import TableGame

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(16, 30))


@pytest.mark.parametrize("by_row", [True, False])
def test_a_first_level_leaves_what_it_does_not_resemble(by_row):
    flat = TableGame(np.ones((16, 30)))
    same, scaled = TableGame(TABLE), TableGame(1 - 3 * TABLE)
    noisy = TableGame(TABLE + 0.7 * RNG.normal(size=(16, 30)))
    found = _shares_left(same, (same, scaled, flat, noisy), by_row=by_row)
    np.testing.assert_allclose(found[:3], [0.0, 0.0, 1.0], atol=1e-12)
    assert 0.1 < found[3] < 1.0
    # Nothing varies, so that nothing can be explained.
    assert _shares_left(flat, (same,), by_row=by_row) == [1.0]


def test_rows_that_cancel_each_other_give_no_slope():
    signs = np.tile([1.0, -1.0], 15)
    opposed = TableGame(RNG.integers(-5, 6, size=(16, 1)) * signs)
    assert _shares_left(TableGame(TABLE[:, :10]), (TableGame(opposed.table[:, :10]),)) == [1.0]
