"""How precise the first level is made: its goal, and the rate at which it has to pay off."""

import pytest

from dsage.estimate.loop import Estimation
from pair_games import Pairs


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
        # In few features the first level is cheap, next to draws.
        seconds = estimation.plan.seconds_a_unit * min(2 * share, 1.0)
        is_cheap = n_features <= 32 and n_replicates > 1 and share == 1.0
        expected = 0.0 if is_cheap else 1.0 / n_units / seconds
        assert rate == pytest.approx(expected)
    # Once per look.
    n_asked = len(asked)
    estimation._refine_control()
    assert len(asked) == n_asked
