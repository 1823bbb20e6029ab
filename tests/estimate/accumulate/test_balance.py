"""Values add up although features have different numbers of units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.estimate.accumulate.balance import Balance, PairTally, divide
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
