"""Values add up although features have different numbers of units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.estimate.accumulate.balance import Balance, PairTally, _adjust, divide
from dsage.estimate.accumulate.tally import Tally

SHARDS = [np.arange(0, 3), np.arange(3, 6), np.arange(6, 9), np.arange(9, 12)]
N_FEATURES = 4


def orderings(rng, n_units, scales):
    """Mean surpluses of units whose sum does not depend on the ordering."""
    raw = rng.normal(size=(n_units, len(scales))) * scales
    share = np.square(scales) / np.square(scales).sum()
    return raw - raw.sum(axis=1, keepdims=True) * share


def play(balance, rng, scales, first=40, more=120, wanted=(True, True, False, False), noise=0.0):
    """Units of all features, then units of some; return the means of features by hand."""
    effects = orderings(rng, first + more, np.array(scales))
    levels = np.random.default_rng(5).normal(size=(len(SHARDS), N_FEATURES))
    sums, counts = np.zeros((len(SHARDS), N_FEATURES)), np.zeros((len(SHARDS), N_FEATURES))
    for number, effect in enumerate(effects):
        shard = number % len(SHARDS)
        draws = noise * rng.normal(size=(3, 2, N_FEATURES))
        surplus = levels[shard] + effect + draws
        some = None if number < first else np.array(wanted)
        balance.add(shard, surplus, np.zeros(N_FEATURES), some)
        here = np.ones(N_FEATURES, dtype=bool) if some is None else some
        sums[shard, here] += surplus.mean(axis=(0, 1))[here]
        counts[shard, here] += 1
    return (sums / counts).mean(axis=0), levels.mean(axis=0)


@given(
    seed=st.integers(0, 2**32 - 1),
    wanted=st.lists(st.booleans(), min_size=N_FEATURES, max_size=N_FEATURES).filter(
        lambda some: 0 < sum(some) < N_FEATURES
    ),
    more=st.integers(1, 60),
)
@settings(max_examples=40, deadline=None)
def test_adjusted_values_add_up_to_the_total(seed, wanted, more):
    balance = Balance(SHARDS, N_FEATURES, 2)
    rng = np.random.default_rng(seed)
    means, exact = play(balance, rng, [3.0, 2.0, 1.0, 0.5], more=more, wanted=wanted)
    found = balance.adjust(0.0, np.ones(N_FEATURES), np.zeros(N_FEATURES))
    assert means.sum() != pytest.approx(exact.sum(), abs=1e-9)
    assert (means + found.shift).sum() == pytest.approx(exact.sum(), abs=1e-9)
    assert (found.factor <= 1.05).all()


def test_features_with_the_most_units_hardly_change_and_others_become_more_precise():
    before, after, claimed = [], [], []
    for seed in range(200):
        balance = Balance(SHARDS, N_FEATURES, 2)
        means, exact = play(balance, np.random.default_rng(seed), [3.0, 2.0, 1.0, 0.5])
        found = balance.adjust(0.0, np.ones(N_FEATURES), np.zeros(N_FEATURES))
        before.append(means - exact)
        after.append(means + found.shift - exact)
        claimed.append(found.factor)
    real = np.mean(np.square(after), axis=0) / np.mean(np.square(before), axis=0)
    stated = np.mean(np.square(claimed), axis=0)
    np.testing.assert_allclose(real[:2], 1.0, atol=0.1)
    # Three quarters of the units have the first two features only. Their sum tells much about the
    # third one, which varies more than the fourth.
    assert real[2] < 0.5
    assert real[3] < 0.95
    np.testing.assert_allclose(stated, real, atol=0.15)
    bound = 4 * np.std(after, axis=0) / np.sqrt(len(after))
    assert (np.abs(np.mean(after, axis=0)) < bound).all()


def test_values_of_equally_many_units_are_left_alone():
    balance = Balance(SHARDS, N_FEATURES, 2)
    play(balance, np.random.default_rng(0), [3.0, 2.0, 1.0, 0.5], more=0)
    assert balance.adjust(0.0, np.ones(N_FEATURES), np.zeros(N_FEATURES)) is None


def test_noise_of_the_total_is_divided_by_what_it_tells():
    errors = {"sum": [], "adjusted": []}
    for seed in range(100):
        balance = Balance(SHARDS, N_FEATURES, 2)
        rng = np.random.default_rng(seed)
        means, exact = play(balance, rng, [3.0, 2.0, 1.0, 0.5], noise=1.0)
        found = balance.adjust(0.0, np.ones(N_FEATURES), np.zeros(N_FEATURES))
        errors["sum"].append((means - exact).sum())
        errors["adjusted"].append((means + found.shift - exact).sum())
    # Units of all features alone measure the total with the noise of six draws each.
    of_total = np.sqrt(N_FEATURES / (40 * 6))
    assert np.std(errors["sum"]) > 1.2 * of_total
    assert np.std(errors["adjusted"]) < 1.15 * of_total


def test_covariances_are_those_of_the_units():
    tally = PairTally([np.arange(3)], 3)
    units = np.random.default_rng(0).normal(size=(50, 3)) @ [[1, 1, 0], [0, 1, 2], [0, 0, 1]]
    cheap = np.random.default_rng(1).normal(size=(50, 3))
    for unit, control in zip(units, cheap, strict=True):
        tally.add(0, unit, control)
    found, freedom = tally.covariances(0.5, np.zeros((3, 3)))
    assert freedom == 49
    np.testing.assert_allclose(found, np.cov((units - 0.5 * cheap).T) / 50, rtol=1e-10)
    plain = Tally([np.arange(3)], 3)
    for unit, control in zip(units, cheap, strict=True):
        plain.add(0, unit, control)
    expected = plain.variance(0.5) * (49 - 1 / 3) / 49
    np.testing.assert_allclose(found.diagonal(), expected, rtol=1e-10)


def test_covariances_of_draws_are_those_between_replicates():
    balance = Balance(SHARDS, 2, 2)
    rng = np.random.default_rng(0)
    loud = rng.normal(size=(12, 2, 1)) * [1.0, 3.0]
    for shard, rows in enumerate(SHARDS):
        balance.add(shard, loud[rows], np.zeros(2), None)
    real = loud.var(axis=1, ddof=1).sum(axis=0) / 2 / 12**2
    found = balance._drawn(real)
    np.testing.assert_allclose(found.diagonal(), [*real, (1 + 3) ** 2 * real[0]])
    np.testing.assert_allclose(found[0, 1], 3 * real[0])


def test_the_state_can_be_restored():
    one, other = (Balance(SHARDS, N_FEATURES, 2) for _ in range(2))
    play(one, np.random.default_rng(0), [3.0, 2.0, 1.0, 0.5], noise=0.5)
    other.restore({name: np.array(value) for name, value in one.state().items()})
    drawn = np.full(N_FEATURES, 0.01)
    for mine, yours in zip(
        one.adjust(0.0, 2 * drawn, drawn), other.adjust(0.0, 2 * drawn, drawn), strict=True
    ):
        np.testing.assert_array_equal(mine, yours)


def test_beyond_its_memory_every_kth_shard_is_tracked():
    few = Balance(SHARDS, 2, 2, max_bytes=8 * 2 * 3 * 6)
    rng = np.random.default_rng(0)
    for shard, rows in enumerate(SHARDS):
        few.add(shard, rng.normal(size=(len(rows), 2, 2)), np.zeros(2), None)
    assert few.state()["rows/replicates"].shape == (6, 2, 3)
    assert np.isfinite(few._drawn(np.full(2, 0.1))).all()


@pytest.mark.parametrize("variance", [0.0, np.inf, np.nan])
def test_without_a_known_variance_nothing_is_divided(variance):
    assert divide(np.array(1.0), np.ones(2), np.array(variance)).tolist() == [0.0, 0.0]


def balanced_by_hand(z, covariances, freedom, most, se_total=0.0):
    """Generalized least squares: values, and the factors of their errors."""
    w = np.append(-np.ones(len(z) - 1), 1.0)
    off, variance = covariances @ w, w @ covariances @ w
    moved = z - off * (w @ z) / variance
    explained = np.minimum(off[:-1] ** 2 / (covariances.diagonal()[:-1] * variance), most)
    more = (explained > 0) / (freedom - 2)
    left = (1 - explained) * (1 + more) + explained * se_total**2 / variance
    return moved[:-1], np.sqrt(left)


def partial_units(shards, n_whole, n_more, wanted, order):
    """A balance of units with a control, and what was added, by column of values and total."""
    rng = np.random.default_rng(8)
    balance = Balance(shards, 3, 1)
    mixing = np.array([[1.0, 0.4, 0.0], [0.0, 0.8, -0.3], [0.0, 0.0, 0.5]])
    units, controls = [], []
    for number in range(n_whole + n_more):
        n_rows = len(shards[order[number]])
        surplus = (rng.normal(size=(n_rows, 1, 3)) @ mixing) + [1.0, 2.0, 3.0]
        control = 0.3 * surplus.mean(axis=(0, 1)) + 0.2 * rng.normal(size=3)
        some = None if number < n_whole else np.array(wanted)
        balance.add(order[number], surplus, control, some)
        units.append(surplus.mean(axis=(0, 1)))
        controls.append(control)
    units, controls = np.array(units), np.array(controls)
    return balance, *(np.column_stack([each, each.sum(axis=1)]) for each in (units, controls))


@pytest.mark.parametrize("total", [None, (5.5, 0.0), (5.5, 0.02)])
@pytest.mark.parametrize("slope", [0.0, 0.7])
def test_values_on_one_shard_are_those_of_generalized_least_squares(slope, total):
    balance, units, controls = partial_units(
        [np.arange(4)], 20, 30, [True, False, True], np.zeros(50, int)
    )
    left = units - slope * controls
    has = np.ones((50, 4), bool)
    has[20:, [1, 3]] = False
    z = np.array([left[has[:, at], at].mean() for at in range(4)])
    counts = has.sum(axis=0)
    common = has.T.astype(float) @ has
    covariances = np.cov(left[:20].T) * common / np.outer(counts, counts)
    most = 1 - counts[:3] / 50
    cheap, find_total = 0.0, lambda: total
    before = z[:3].copy()
    if total is not None:
        cheap, most = 0.25, np.full(3, 0.9)
        covariances[3] = covariances[:, 3] = 0.0
        z[3] = total[0] - cheap
    moved, factor = balanced_by_hand(z, covariances, 19, most, 0.0 if total is None else total[1])
    found = balance.adjust(slope, np.ones(3), np.zeros(3), cheap, find_total)
    np.testing.assert_allclose(before + found.shift, moved, rtol=1e-9)
    np.testing.assert_allclose(found.factor, factor, rtol=1e-9)


def test_shards_count_by_their_rows_and_visits():
    shards = [np.arange(0, 4), np.arange(4, 6)]
    order = np.arange(40) % 2
    order[30:] = 0
    balance, units, _ = partial_units(shards, 24, 16, [True, True, False], order)
    visits = np.full((2, 4), 12)
    visits[0, :2] = (order == 0).sum()
    visits[1, :2] = (order == 1).sum()
    whole = [units[:24][order[:24] == shard] for shard in (0, 1)]
    pooled = sum((len(each) - 1) * np.cov(each.T) for each in whole) / 22
    shares = np.array([4, 2])[:, None] / 6
    counts = visits.sum(axis=0)
    common = np.minimum.outer(counts, counts)
    uneven = np.sqrt((shares**2 / visits).sum(axis=0) * counts)
    wanted = pooled * common / np.outer(counts, counts) * np.outer(uneven, uneven)
    found, freedom = balance._tally.covariances(0.0, np.full((4, 4), 0.01))
    assert freedom == 22
    np.testing.assert_allclose(found, wanted + 0.01, rtol=1e-9)
    assert balance._tally.n_whole == 24
    assert balance._tally.counts_of_columns.tolist() == counts.tolist()


@pytest.mark.parametrize(("n_whole", "is_known"), [(1, False), (2, True), (12, True)])
def test_before_all_shards_are_visited_all_units_are_compared(n_whole, is_known):
    shards = [np.array([row]) for row in range(30)]
    order = np.arange(n_whole + 6)
    balance, units, _ = partial_units(shards, n_whole, 6, [True, False, True], order)
    found = balance._tally.covariances(0.0, np.full((4, 4), 7.0))
    assert (found is not None) == is_known
    if is_known:
        counts = np.array([n_whole + 6, n_whole, n_whole + 6, n_whole])
        together = np.minimum.outer(counts, counts) / np.outer(counts, counts)
        # Draws are part of the differences between units.
        np.testing.assert_allclose(found[0], np.cov(units[:n_whole].T) * together, rtol=1e-9)
        assert found[1] == n_whole - 1


def test_without_covariances_a_remainder_goes_to_the_features_with_few_units():
    shards = [np.array([row]) for row in range(30)]
    balance, units, _ = partial_units(shards, 1, 3, [True, False, False], np.arange(4))
    found = balance.adjust(0.0, np.array([5.0, 1.0, 3.0]), np.zeros(3))
    remainder = units[0, 3] - units[:, 0].mean() - units[0, 1] - units[0, 2]
    np.testing.assert_allclose(found.shift, remainder * np.array([0.0, 0.25, 0.75]))
    assert found.factor.tolist() == [1.0, 1.0, 1.0]


def test_epochs_and_the_order_of_columns_change_what_they_must():
    rng = np.random.default_rng(1)
    one, other = PairTally([np.arange(3)], 2), PairTally([np.arange(3)], 2)
    units = rng.normal(size=(30, 2))
    for number, unit in enumerate(units):
        if number == 12:
            for tally in (one, other):
                tally.next_epoch()
        # Epochs differ by a constant, which is not part of the variance within them.
        level = 5.0 * (number >= 12)
        one.add(0, unit + level, np.zeros(2))
        other.add(0, unit[::-1] + level, np.zeros(2), np.ones(2, bool))
    found, freedom = one.covariances(0.0, np.zeros((2, 2)))
    parts = units[:12], units[12:]
    pooled = sum((len(each) - 1) * np.cov(each.T) for each in parts) / 28
    assert freedom == 28
    np.testing.assert_allclose(found, pooled / 30, rtol=1e-9)
    np.testing.assert_allclose(other.covariances(0.0, np.zeros((2, 2)))[0], found[::-1, ::-1])


def test_replicates_of_visited_rows_tell_the_covariances_from_draws():
    shards = [np.arange(0, 2), np.arange(2, 4), np.arange(4, 6)]
    balance, rng = Balance(shards, 2, 3), np.random.default_rng(3)
    added = np.zeros((6, 3, 3))
    # Two shards are visited, one of them twice by the first feature.
    for shard, some in ((0, None), (1, None), (1, np.array([True, False]))):
        surplus = rng.normal(size=(2, 3, 2))
        balance.add(shard, surplus, np.zeros(2), some)
        with_total = np.concatenate([surplus, surplus.sum(axis=2, keepdims=True)], axis=2)
        added[shards[shard]] += with_total * (1.0 if some is None else np.array([1.0, 0.0, 0.0]))
    means = added / np.repeat([[1, 1, 1], [2, 1, 1], [1, 1, 1]], 2, axis=0)[:, None]
    off = (means - means.mean(axis=1, keepdims=True)).reshape(18, 3) / 4
    raw = off.T @ off / 6
    drawn = raw.diagonal()[:2] * [0.25, 4.0]
    factors = np.sqrt([0.25, 1.0, min(drawn.sum() / raw.diagonal()[:2].sum(), 1.0)])
    np.testing.assert_allclose(balance._drawn(drawn), raw * np.outer(factors, factors), rtol=1e-9)
    assert not Balance(shards, 2, 3)._drawn(np.ones(2)).any()
    assert Balance(shards, 2, 1)._drawn(np.ones(2)).tolist() == np.zeros((3, 3)).tolist()


@pytest.mark.parametrize(("max_bytes", "step"), [(576, 1), (575, 2), (288, 2), (287, 3), (191, 4)])
def test_as_many_shards_are_tracked_as_fit(max_bytes, step):
    # Twelve rows of two replicates and three columns: 576 bytes.
    balance = Balance(SHARDS, 2, 2, max_bytes=max_bytes)
    kept = np.concatenate(SHARDS[::step])
    assert balance.state()["rows/replicates"].shape == (len(kept), 2, 3)
    values = np.random.default_rng(0).normal(size=(12, 2, 2))
    for shard, rows in enumerate(SHARDS):
        balance.add(shard, values[rows], np.zeros(2), None)
    raw = values[kept].var(axis=1, ddof=1).mean(axis=0) / 2 / 12
    found = balance._drawn(np.full(2, 1e6)).diagonal()[:2]
    np.testing.assert_allclose(found, raw)


def test_rounding_errors_are_not_divided():
    covariances = np.full((3, 3), 1.0)
    covariances[2] = covariances[:, 2] = 2.0
    covariances[2, 2] = 4.0
    assert _adjust(1e-9, covariances, 10, np.ones(2), 0.0) is None
    found = _adjust(1.0, np.diag([1.0, 0.0, 3.0]), 10, np.ones(2), 0.0)
    np.testing.assert_allclose(found.shift, [0.25, 0.0])
    np.testing.assert_allclose(found.factor, [np.sqrt(0.75 * (1 + 1 / 8)), 1.0])


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_what_is_missing_is_divided_alike_on_any_scale(scale):
    found = _adjust(scale, scale**2 * np.diag([1.0, 0.0, 3.0]), 10, np.ones(2), 0.0)
    np.testing.assert_allclose(found.shift, [0.25 * scale, 0.0])
