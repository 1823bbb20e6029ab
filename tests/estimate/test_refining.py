"""How precise the first level is made: its goal, and the rate at which it has to pay off."""

import numpy as np
import pytest

from dsage.estimate.loop import Estimation
from dsage.games import Game


class Pairs(Game):
    """Neighboring features together lower the risk of a row; a first level knows how, roughly."""

    n_rows = 12

    def __init__(self, n_features, n_replicates=1, *, is_first=True):
        self.feature_names = tuple(f"x{j}" for j in range(n_features))
        self.n_replicates = n_replicates
        rng = np.random.default_rng(0 if is_first else 1)
        self._single = np.random.default_rng(2).normal(size=n_features)
        self._paired = 1.0 + 0.1 * rng.normal(size=(n_features - 1, self.n_rows))
        self._is_first, self._rng = is_first, rng

    def risks(self, known, rows, epoch=0):
        together = (known[:, 1:] & known[:, :-1]) @ self._paired[:, rows]
        risks = 9.0 - (known @ self._single)[:, None] - together
        seeds = known @ np.arange(1.0, 1.0 + known.shape[1])
        noise = np.sin(
            50.0 * seeds[:, None, None] + 7.0 * rows[:, None] + np.arange(self.n_replicates)
        )
        return risks[:, :, None] + (0.3 * noise if self.n_replicates > 1 else 0.0)

    def first_level(self):
        return Pairs(len(self.feature_names), is_first=False) if self._is_first else None


@pytest.mark.parametrize(("n_features", "n_replicates"), [(6, 1), (6, 2), (34, 1), (34, 2)])
def test_the_first_level_adds_a_fifth_of_the_variance_and_has_to_pay_off(n_features, n_replicates):
    game = Pairs(n_features, n_replicates)
    options = {"exact": "never", "rows_per_ordering": 4, "random_state": 0}
    estimation, asked = Estimation(game, **options), []
    control, totals = estimation.plan.control, estimation._totals
    refine = control.refine

    def record(bound, n_main, is_over, rate, wanted):
        before = totals.tallies[0].n_units
        rest = (totals.own_variance(0) + totals.draw_variance(0))[wanted].sum() / totals.slope**2
        asked.append((bound / rest, n_main / before, rate / rest, wanted.mean(), before))
        return refine(bound, n_main, is_over, rate, wanted)

    control.refine = record
    steps = estimation.steps()
    for _ in range(3):
        next(steps)
    if n_replicates > 1:
        # Of half of the features, a unit takes as long as of all; of a quarter, half as long.
        estimation._wanted[: -(n_features // 4)] = False
        estimation._refined_at = -1
        estimation._refine_control()
        assert asked[-1][3] < 0.3
    assert len(asked) >= 2
    for bound, n_main, rate, share, n_units in asked:
        assert (bound, n_main) == pytest.approx((0.2, 1.0))
        # In few features the first level is cheap.
        seconds = estimation.plan.seconds_a_unit * min(2 * share, 1.0)
        expected = 1.0 / n_units / seconds if n_features > 32 or share < 1.0 else 0.0
        assert rate == pytest.approx(expected)
    # Once per look.
    n_asked = len(asked)
    estimation._refine_control()
    assert len(asked) == n_asked
