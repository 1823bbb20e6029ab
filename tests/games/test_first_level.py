"""How much of the variance over orderings a first level leaves."""

import numpy as np
import pytest

from dsage.games.first_level import _join_classes, _Predictors, _shares_left
from dsage.games.functions import Functions
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


def explained_by_hand(functions, drawn, outputs):
    """What ridge regression on standardized columns leaves, by least squares with further rows."""
    columns = functions(drawn).columns
    Z = columns - columns.mean(axis=0)
    Z /= np.where(Z.std(axis=0) > 0, Z.std(axis=0), 1.0)
    n_rows, left = len(Z), 0.0
    for output in outputs:
        y = output.reshape(n_rows, -1) - output.reshape(n_rows, -1).mean(axis=0)
        above = np.vstack([Z, np.sqrt(2.0) * np.eye(Z.shape[1])])
        below = np.vstack([y, np.zeros((Z.shape[1], y.shape[1]))])
        slopes = np.linalg.lstsq(above, below, rcond=None)[0]
        left += ((y - Z @ slopes) ** 2).sum() / n_rows + 2.0 / n_rows * (slopes**2).sum()
    return left


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_functions_are_used_if_they_leave_a_tenth_less_than_the_linear_predictor(n_outputs):
    rng, decisions = np.random.default_rng(0), []
    drawn = rng.normal(size=(300, 3))
    drawn[:, 2] = rng.integers(0, 3, size=300)
    n_categories = np.array([0, 0, 3])
    predictors = _Predictors(drawn, n_categories)
    for bend in np.linspace(0.0, 0.6, 25):
        outputs = [
            drawn[:, 0] + bend * drawn[:, 1] ** 2 + (drawn[:, 2] == 1) + 0.8 * rng.normal(size=300)
            for _ in range(n_outputs)
        ]
        left = {n: explained_by_hand(Functions.fit(drawn, n_categories, n), drawn, outputs)
                for n in (1, 2, 4)}  # fmt: skip
        for n, expected in left.items():
            level = predictors.fit(outputs, n)
            np.testing.assert_allclose(level.unexplained, expected, rtol=1e-9)
            assert len(level.predictors) == n_outputs
            assert level.functions.n_columns == 2 * n + 2
        found = predictors.find_additive(outputs)
        decisions.append(bool(found))
        assert decisions[-1] == (left[4] <= 0.9 * left[1])
        # Few functions first, then as many as there may be.
        assert [level.functions.n_columns for level in found] == [6, 10][: 2 * len(found)]
    assert 5 < sum(decisions) < 20


@pytest.mark.parametrize(
    ("most", "n_functions"), [(8, [2, 4]), (7, [2, 3]), (6, [2, 3]), (5, [2]), (4, [2]), (3, [])]
)
def test_functions_are_as_many_as_columns_are_allowed(monkeypatch, most, n_functions):
    monkeypatch.setattr("dsage.games.first_level._MOST_COLUMNS", most)
    drawn = np.random.default_rng(0).normal(size=(400, 2))
    predictors = _Predictors(drawn, np.zeros(2, dtype=np.intp))
    found = predictors.find_additive([(drawn**2).sum(axis=1)])
    assert [level.functions.n_columns for level in found] == [2 * n for n in n_functions]
    assert predictors.fit([drawn[:, 0]], 5) is None
    assert (predictors.fit([drawn[:, 0]], 1) is None) == (most < 2)


def test_two_classes_are_one_output_with_the_same_squared_error():
    rng = np.random.default_rng(0)
    p, y = rng.random(50), rng.integers(2, size=50)
    both, targets = np.column_stack([1 - p, p]), np.eye(2)[y]
    one, target = _join_classes(both, targets)
    wanted = ((both - targets) ** 2).sum(axis=1)
    np.testing.assert_allclose((one - target) ** 2, wanted, atol=1e-12)
    others = [(2 * both, targets), (both, 2 * targets), (np.eye(3)[y], np.eye(3)[y]), (p, p)]
    for output, aim in others:
        found = _join_classes(output, aim)
        assert found[0] is output
        assert found[1] is aim
