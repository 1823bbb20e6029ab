import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

import dsage.samplers.noise
from dsage._random import Streams
from dsage.samplers.noise import KINDS, Noise

kinds = pytest.mark.parametrize("kind", KINDS)


def make(kind="sobol", n_features=3, n_replicates=2, n_draws=8, seed=0):
    return Noise(Streams(seed), n_features, n_replicates=n_replicates, n_draws=n_draws, kind=kind)


def correlation(one, other):
    return np.corrcoef(one.ravel(), other.ravel())[0, 1]


# Distribution


@kinds
def test_each_draw_of_each_feature_is_uniform_over_rows(kind):
    noise = make(kind)(np.arange(3000), 0)
    p = [
        stats.kstest(noise[:, draw, feature], "uniform").pvalue
        for draw in range(noise.shape[1])
        for feature in range(noise.shape[2])
    ]
    assert min(p) > 0.001 / len(p)


@kinds
def test_noise_lies_strictly_between_0_and_1(kind):
    noise = make(kind)(np.arange(5000), 0)
    assert noise.min() > 0
    assert noise.max() < 1


def test_a_digit_pattern_of_zeros_is_kept_away_from_0(monkeypatch):
    noise = make(n_replicates=1, n_draws=1, n_features=1)
    net = noise._net(0)
    noise._chunks._values[0, 0] = np.full((256, 1, 1, 1), net[0, 0, 0])
    assert noise(np.arange(1), 0).item() == 2.0**-53


@kinds
def test_rows_replicates_epochs_and_features_are_uncorrelated(kind):
    noise = make(kind)
    n_rows = 6000
    first, second = noise(np.arange(n_rows), 0), noise(np.arange(n_rows), 1)
    means = first.reshape(n_rows, 2, 8, 3).mean(axis=2)
    bound = 4.5 / np.sqrt(n_rows)
    for draw in (0, 5):
        values = first[:, draw]
        assert abs(correlation(values[:-1, 0], values[1:, 0])) < bound, "neighbouring rows"
        assert abs(correlation(values[:-256, 0], values[256:, 0])) < bound, "rows of other chunks"
        assert abs(correlation(values[:, 0], second[:, draw, 0])) < bound, "epochs"
        assert abs(correlation(values[:, 0], first[:, 8 + draw, 0])) < bound, "replicates"
        assert abs(correlation(values[:, 0], values[:, 1])) < bound, "features"
    assert abs(correlation(means[:, 0, 0], means[:, 1, 0])) < bound, "means of replicates"
    assert abs(correlation(means[:-1, 0, 0], means[1:, 0, 0])) < bound, "means of rows"


def test_independent_draws_of_a_replicate_are_uncorrelated_and_those_of_a_net_are_not():
    rows = np.arange(6000)
    bound = 4.5 / np.sqrt(len(rows))
    independent, net = make("independent")(rows, 0), make("sobol")(rows, 0)
    assert abs(correlation(independent[:, 0, 0], independent[:, 1, 0])) < bound
    # Two points of a net lie in different strata: on average their values repel each other.
    pairs = [correlation(net[:, i, 0], net[:, j, 0]) for i in range(8) for j in range(i)]
    assert np.mean(pairs) < -bound


@pytest.mark.parametrize("n_draws", [2, 4, 16])
def test_a_net_has_one_draw_in_each_stratum_of_each_feature_of_each_row(n_draws):
    n_rows = 700
    noise = make(n_features=5, n_replicates=3, n_draws=n_draws)(np.arange(n_rows), 2)
    strata = np.floor(noise.reshape(n_rows, 3, n_draws, 5) * n_draws)
    expected = np.broadcast_to(np.arange(n_draws)[:, None], strata.shape)
    np.testing.assert_array_equal(np.sort(strata, axis=2), expected)


def test_a_net_fills_two_features_evenly():
    # The first two columns of Sobol' points are a (0, m, 2)-net: one point in each of 4 x 4 boxes.
    noise = make(n_features=2, n_replicates=1, n_draws=16)(np.arange(300), 0)
    boxes = np.floor(noise[..., 0] * 4) * 4 + np.floor(noise[..., 1] * 4)
    np.testing.assert_array_equal(np.sort(boxes, axis=1), np.tile(np.arange(16.0), (300, 1)))


def test_a_number_of_draws_that_is_no_power_of_two_is_the_beginning_of_a_net():
    rows = np.arange(40)
    six = make(n_replicates=1, n_draws=6)(rows, 0)
    eight = make(n_replicates=1, n_draws=8)(rows, 0)
    np.testing.assert_array_equal(six, eight[:, :6])


def test_means_over_a_net_are_much_less_variable_than_over_independent_draws():
    def spread(kind):
        noise = make(kind, n_replicates=1, n_draws=16)(np.arange(2000), 0)
        return stats.norm.ppf(noise).sum(axis=2).mean(axis=1).var()

    # A sample variance of 2,000 rows is known to 3 %: the factor is about 50.
    assert spread("independent") > 20 * spread("sobol")


# Keys


@kinds
def test_any_rows_in_any_order_and_number_have_the_same_noise_to_the_bit(kind):
    noise = make(kind)
    whole = noise(np.arange(1000), 3)
    for some in ([999, 0, 256, 255], [7], [5, 5, 5], [], np.arange(300, 700)[::-1]):
        rows = np.asarray(some, dtype=np.intp)
        np.testing.assert_array_equal(make(kind)(rows, 3), whole[rows])
        np.testing.assert_array_equal(noise(rows, 3), whole[rows])


@kinds
def test_epochs_can_be_asked_for_in_any_order(kind):
    rows = np.arange(20)
    noise = make(kind)
    first = {epoch: noise(rows, epoch) for epoch in (0, 1, 2)}
    for epoch in (2, 0, 1):
        np.testing.assert_array_equal(noise(rows, epoch), first[epoch])
    assert not np.array_equal(first[0], first[1])


@kinds
def test_what_is_forgotten_comes_back_the_same(kind, monkeypatch):
    rows = np.arange(3000)
    expected = make(kind)(rows, 0)
    monkeypatch.setattr(dsage.samplers.noise, "_KEPT_BYTES", 1)
    noise = make(kind)
    for _ in range(2):
        np.testing.assert_array_equal(noise(rows, 0), expected)
    assert len(noise._chunks._values) == 1


def test_memory_of_what_is_kept_is_bounded():
    noise = make("independent", n_features=100, n_replicates=2, n_draws=8)
    noise(np.arange(256 * 14), 0)
    kept = noise._chunks._values.values()
    assert 1 < len(kept) < 14
    assert sum(chunk.nbytes for chunk in kept) <= dsage.samplers.noise._KEPT_BYTES


@kinds
def test_threads_get_the_same_noise(kind, monkeypatch):
    monkeypatch.setattr(dsage.samplers.noise, "_KEPT_BYTES", 1 << 16)
    noise = make(kind)
    rows = np.arange(1500)
    expected = [make(kind)(rows, epoch) for epoch in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda call: noise(rows, call % 4), range(24)))
    for call, each in enumerate(found):
        np.testing.assert_array_equal(each, expected[call % 4])


@kinds
def test_pickling_keeps_the_noise_and_not_the_memory(kind):
    noise = make(kind)
    rows = np.arange(600)
    expected = noise(rows, 1)
    text = pickle.dumps(noise)
    assert len(text) < 2000
    np.testing.assert_array_equal(pickle.loads(text)(rows, 1), expected)


def test_seeds_and_replicates_differ_and_the_caller_may_change_what_it_gets():
    rows = np.arange(10)
    noise = make()
    first = noise(rows, 0)
    kept = first.copy()
    assert not np.array_equal(first, make(seed=1)(rows, 0))
    assert not np.array_equal(first[:, :8], first[:, 8:])
    first[:] = 0.5
    np.testing.assert_array_equal(noise(rows, 0), kept)


# Errors


@pytest.mark.parametrize("name", ["n_features", "n_replicates", "n_draws"])
@pytest.mark.parametrize("value", [0, -1, 1.5])
def test_counts_must_be_positive_whole_numbers(name, value):
    with pytest.raises((ValueError, TypeError), match=f"{name} must be"):
        make(**{name: value})


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="noise must be one of the kinds of noise"):
        make("halton")


def test_noise_is_the_same_for_equal_seeds_and_shapes():
    noise = make()
    assert noise.is_same(make())
    assert not noise.is_same(make(n_draws=4))
    assert not noise.is_same(make(seed=99))


# Noise made ahead


@kinds
def test_noise_made_ahead_is_the_same(kind):
    rows = np.arange(300, 900)
    ahead, plain = make(kind), make(kind)
    ahead.prepare(rows, 3)
    assert len(ahead._chunks._values) == 3
    assert np.array_equal(ahead(rows, 3), plain(rows, 3))


@pytest.mark.parametrize(("n_rows", "n_made"), [(1, 1), (512, 2), (513, 0)])
def test_noise_is_made_ahead_if_that_of_another_epoch_is_still_kept(monkeypatch, n_rows, n_made):
    # Five chunks of 256 rows, 2 replicates and 3 features are kept.
    monkeypatch.setattr(dsage.samplers.noise, "_KEPT_BYTES", 5 * 8 * 256 * 2 * 3)
    noise = make()
    noise.prepare(np.arange(n_rows), 1)
    assert len(noise._chunks._values) == n_made
