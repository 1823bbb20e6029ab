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


class ByOrdering(TableGame):
    """A table whose risks along orderings are half of those of coalitions, with two replicates."""

    has_paths = True

    def path_risks(self, orders, rows, epoch, needed):
        out = np.empty((*needed.shape, len(rows), 2))
        for order, risks in zip(orders, out, strict=True):
            for size in range(len(order) + 1):
                code = sum(1 << int(each) for each in order[:size])
                risks[size] = self.table[code][rows][:, None] * [0.4, 0.6]
        return out


def surpluses_by_hand(game, orders, rows):
    """Of a pair of an ordering and its reverse, a feature and a row, less the mean of all pairs."""
    table = game.table / 2 if isinstance(game, ByOrdering) else game.table
    n_features = orders.shape[1]
    found = np.zeros((len(orders) // 2, n_features, len(rows)))
    for number, order in enumerate(orders):
        code = 0
        for feature in map(int, order):
            after = code | 1 << feature
            found[number // 2, feature] += (table[code] - table[after])[rows] / 2
            code = after
    return found - found.mean(axis=0)


def variance_by_hand(surpluses, n_rows):
    """Of a mean over rows that have a common part and one of their own, by analysis of variance."""
    n_few = surpluses.shape[2]
    whole = np.square(surpluses).sum(axis=(0, 1)).mean()
    own = whole
    if n_few > 1:
        own = surpluses.var(axis=2, ddof=1).sum()
    common = whole - own
    return common + own / n_rows if common > 0 else whole / n_rows


@pytest.mark.parametrize("n_rows", [1, 2, 7, 16, 40, 100])
@pytest.mark.parametrize("by_row", [True, False])
def test_shares_are_those_of_an_analysis_of_variance(n_rows, by_row):
    generator = np.random.default_rng(n_rows)
    common, own = (generator.normal(size=(16, 1)), generator.normal(size=(16, n_rows)))
    for weight in (0.0, 0.5, 3.0):
        table = weight * common + own
        levels = [
            TableGame(table + generator.normal(size=own.shape)),
            ByOrdering(common + 0.1 * own),
            TableGame(-own),
        ]
        for game in (TableGame(table), ByOrdering(table)):
            rng = np.random.default_rng(0)
            rows = np.sort(rng.choice(n_rows, min(16, n_rows), replace=False))
            first = [rng.permutation(4) for _ in range(6)]
            orders = np.array([each for one in first for each in (one, one[::-1])])
            x = surpluses_by_hand(game, orders, rows)
            # A unit has 64 rows, or all of them; otherwise it has these few.
            n_unit = min(64, n_rows) if by_row else len(rows)
            expected = []
            for level in levels:
                c = surpluses_by_hand(level, orders, rows)
                a, b = x.mean(axis=2).ravel(), c.mean(axis=2).ravel()
                left = x - c * (a @ b) / (b @ b)
                expected.append(variance_by_hand(left, n_unit) / variance_by_hand(x, n_unit))
            found = _shares_left(game, levels, by_row=by_row)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
