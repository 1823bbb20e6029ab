import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from dsage._check import DsageWarning
from dsage.games import LossGame
from dsage.samplers.copula import GaussianCopula
from dsage.samplers.curve import Curves
from dsage.samplers.possible_steps import PossibleSteps


def skewed(n_rows=400, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    mixing = np.eye(n_features) + 0.6 * rng.standard_normal((n_features, n_features))
    return np.exp(rng.standard_normal((n_rows, n_features)) @ mixing)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_rows_are_the_same_to_the_bit_in_any_split(data):
    n_rows, n_draws = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 40))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    # Fewer quantiles than draws, or more: interpolation has a path for either.
    sampler = GaussianCopula(n_quantiles=data.draw(st.sampled_from([20, 300]))).fit(skewed())
    X, noise = skewed(n_rows, seed=1), rng.random((n_rows, n_draws, 4))
    known = rng.random(4) < 0.5
    whole = sampler.draw(X, known, noise)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(n_rows - 1, 1)), max_size=4)))
    for rows in np.split(np.arange(n_rows), cuts):
        assert np.array_equal(sampler.draw(X[rows], known, noise[rows]), whole[rows])
    tight = clone(sampler).set_params(max_bytes=1).fit(skewed())
    assert np.array_equal(tight.draw(X, known, noise), whole)


def test_draws_stay_within_the_training_values():
    X = skewed()
    sampler = GaussianCopula().fit(X)
    noise = np.random.default_rng(0).random((50, 100, 4))
    noise[:, 0], noise[:, 1] = 1e-300, 1 - 2**-53
    for known in (np.zeros(4, bool), np.array([True, False, False, True])):
        drawn = sampler.draw(X[:50], known, noise)
        assert (drawn >= X.min(axis=0)).all()
        assert (drawn <= X.max(axis=0)).all()


def test_a_known_value_outside_counts_as_the_extreme_but_is_kept():
    X = skewed()
    sampler = GaussianCopula().fit(X)
    known, noise = np.array([True, False, False, False]), np.full((2, 1, 4), 0.3)
    rows = np.tile(X[:1], (2, 1))
    rows[0, 0], rows[1, 0] = X[:, 0].max(), 1e6
    drawn = sampler.draw(rows, known, noise)
    assert np.array_equal(drawn[0, 0, 1:], drawn[1, 0, 1:])
    assert drawn[1, 0, 0] == 1e6


def test_monotone_changes_of_units_change_only_the_units():
    X = skewed()
    noise, known = (
        np.random.default_rng(0).random((20, 30, 4)),
        np.array([True, True, False, False]),
    )
    raw = GaussianCopula().fit(X)
    cubed = GaussianCopula().fit(X**3)
    np.testing.assert_array_equal(raw.correlation_, cubed.correlation_)
    at_knots = np.sort(X, axis=0)
    drawn = raw.draw(X[:20], known, noise)[:, :, 2:]
    other = cubed.draw(X[:20] ** 3, known, noise)[:, :, 2:]
    # Between the same two training values.
    for column in (0, 1):
        knots = at_knots[:, 2 + column]
        low = np.searchsorted(knots, drawn[:, :, column] * (1 - 1e-9), side="left")
        assert (other[:, :, column] <= knots[np.minimum(low + 1, 399)] ** 3 * (1 + 1e-9)).all()
        assert (other[:, :, column] >= knots[np.maximum(low - 1, 0)] ** 3 * (1 - 1e-9)).all()


def test_the_margins_are_those_of_the_data():
    X = skewed(2000)
    sampler = GaussianCopula().fit(X)
    even = (np.arange(2000) + 0.5) / 2000
    noise = np.stack([np.random.default_rng(column).permutation(even) for column in range(4)], 1)
    drawn = sampler.draw(X[:1], np.zeros(4, bool), noise[None])[0]
    # The first column's draws are its quantiles at evenly spaced levels: the data themselves.
    np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(X[:, 0]), rtol=2e-4)


def test_levels_of_a_column_of_few_values_come_out_again():
    rng = np.random.default_rng(0)
    a = rng.standard_normal(1000)
    frame = pd.DataFrame({"a": a, "level": np.digitize(a + rng.standard_normal(1000), [-1, 0, 1])})
    sampler = GaussianCopula().fit(frame)
    known, n_draws = np.array([False, False]), 4000
    drawn = sampler.draw(frame.head(1), known, rng.random((1, n_draws, 2)))[0, :, 1]
    share = np.isin(drawn, [0, 1, 2, 3]).mean()
    expected = 1 - 3 / 1000
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / n_draws)
    for level, count in frame["level"].value_counts().items():
        p = (count - 1) / 1000
        assert abs((drawn == level).mean() - p) < 4 * np.sqrt(p * (1 - p) / n_draws) + 1e-3


def test_constant_and_copied_columns_are_named_and_reproduced():
    X = skewed(200, 2)
    frame = pd.DataFrame({"a": X[:, 0], "fixed": 3.0, "copy": X[:, 0], "b": X[:, 1]})
    with pytest.warns(UserWarning, match=r"\['fixed'\] are constant|\['copy'\] follow") as caught:
        sampler = GaussianCopula().fit(frame)
    assert len(caught) == 2
    noise = np.random.default_rng(0).random((10, 20, 4))
    for known in ([False] * 4, [True, False, False, False], [False, False, True, False]):
        drawn = sampler.draw(frame.head(10), np.array(known), noise)
        assert (drawn[:, :, 1] == 3.0).all()
        np.testing.assert_allclose(drawn[:, :, 2], drawn[:, :, 0], rtol=1e-5)


def test_many_rows_are_summarised_by_quantiles():
    X = skewed(5000)
    sampler = GaussianCopula(n_quantiles=100).fit(X)
    assert all(len(margin.values) == 100 for margin in sampler._margins)
    full = GaussianCopula(n_quantiles=5000).fit(X)
    noise, known = (
        np.random.default_rng(0).random((50, 20, 4)),
        np.array([True, False, True, False]),
    )
    one, other = (s.draw(X[:50], known, noise)[:, :, 1] for s in (sampler, full))
    inner = (other > np.quantile(X[:, 1], 0.02)) & (other < np.quantile(X[:, 1], 0.98))
    assert np.abs(np.log(one / other))[inner].max() < 0.1


def test_prefixes_of_the_columns_in_their_order_are_the_draws_for_these_coalitions():
    X = skewed()
    sampler, noise = GaussianCopula().fit(X), np.random.default_rng(0).random((20, 30, 4))
    for length, draws in sampler.ordering(range(4)).prefixes(X[:20], sampler.prepare(noise)):
        known = np.arange(4) < length
        expected = sampler.draw(X[:20], known, noise)
        np.testing.assert_allclose(draws, expected, rtol=1e-4)
        np.testing.assert_array_equal(draws[:, :, known], expected[:, :, known])


def test_prefixes_of_any_ordering_have_the_distribution_of_the_draws():
    X = skewed(2000)
    sampler, noise = GaussianCopula().fit(X), np.random.default_rng(0).random((1, 4000, 4))
    order = [2, 0, 3, 1]
    for length, draws in sampler.ordering(order).prefixes(X[7:8], sampler.prepare(noise)):
        known = np.isin(np.arange(4), order[:length])
        expected = np.log(sampler.draw(X[7:8], known, noise)[0])
        got = np.log(draws[0])
        error = 5 * expected.std(axis=0) / np.sqrt(2000)
        assert (np.abs(got.mean(axis=0) - expected.mean(axis=0)) <= error + 1e-12).all()
        unknown = np.flatnonzero(~known)
        if len(unknown) > 1:
            one, other = (np.corrcoef(each[:, unknown].T) for each in (got, expected))
            assert np.abs(one - other).max() < 0.1


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_prefixes_are_the_same_to_the_bit_in_any_split_and_for_any_lengths(data):
    n_rows, n_draws = data.draw(st.integers(2, 60)), data.draw(st.integers(1, 20))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    sampler = GaussianCopula().fit(skewed())
    X, noise = skewed(n_rows, seed=1), rng.random((n_rows, n_draws, 4))
    ordering, scores = sampler.ordering(rng.permutation(4)), sampler.prepare(noise)
    whole = {length: draws.copy() for length, draws in ordering.prefixes(X, scores)}
    cut = data.draw(st.integers(1, n_rows - 1))
    for rows in (slice(None, cut), slice(cut, None)):
        for length, draws in ordering.prefixes(X[rows], scores[rows]):
            np.testing.assert_array_equal(draws, whole[length][rows])
    for length, draws in ordering.prefixes(X, scores, [1, 3]):
        np.testing.assert_array_equal(draws, whole[length])
        with pytest.raises(ValueError, match="read-only"):
            draws[0] = 0.0


def test_whitened_rows_are_those_of_the_scores():
    X = skewed()
    ordering = GaussianCopula().fit(X).ordering([2, 0, 3, 1])
    z = ordering.whitened(X)
    assert np.abs(np.cov(z.T) - np.eye(4)).max() < 0.05


def test_games_draw_along_orderings():
    X = pd.DataFrame(skewed(), columns=list("abcd"))
    model, y = lambda frame: np.log(frame["a"]), X["b"][:30]
    game = LossGame(model, GaussianCopula().fit(X), X[:30], y, draw_control="none")
    assert game.has_paths
    known = np.arange(4) < np.arange(5)[:, None]
    orders, rows = np.arange(4)[None], np.arange(30)
    along = game.path_risks(orders, rows, 0, np.ones((1, 5), bool))[0]
    np.testing.assert_allclose(along, game.risks(known, rows, 0), rtol=1e-3)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 3000), st.integers(0, 2**32 - 1))
def test_a_curve_is_linear_interpolation_to_the_bit(n_knots, seed):
    rng = np.random.default_rng(seed)
    knots = np.cumsum(rng.random(n_knots) ** rng.choice([1, 8]) + 1e-9) - 3
    values = rng.standard_normal((2, n_knots))
    x = np.concatenate([rng.uniform(knots[0] - 1, knots[-1] + 1, 4000), knots, knots + 1e-13])
    found = Curves(knots, values)(np.stack([x, x[::-1]]), np.array([1, 0]))
    np.testing.assert_array_equal(found[0], np.interp(x, knots, values[1]))
    np.testing.assert_array_equal(found[1], np.interp(x, knots, values[0])[::-1])


def test_there_is_no_mean():
    assert not GaussianCopula().fit(skewed()).has_mean


def test_pickles():
    X = skewed(50)
    sampler = GaussianCopula(covariance="ledoit-wolf").fit(X)
    noise, known = np.random.default_rng(0).random((50, 2, 4)), np.array([True, False, False, True])
    again = pickle.loads(pickle.dumps(sampler))
    assert np.array_equal(again.draw(X, known, noise), sampler.draw(X, known, noise))


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="n_quantiles must be at least 2; got 1"):
        GaussianCopula(n_quantiles=1).fit(skewed())
    with pytest.raises(ValueError, match="covariance must be one of"):
        GaussianCopula(covariance="none").fit(skewed())
    with pytest.raises(TypeError, match=r"continuous columns for GaussianCopula; got \['c'\]"):
        GaussianCopula().fit(pd.DataFrame({"c": ["x", "y"], "d": [1.0, 2.0]}))


def test_steps_are_the_curves_moved_to_possible_values():
    rng = np.random.default_rng(0)
    n_rows = 300
    X = np.column_stack(
        [
            rng.integers(0, 17, n_rows),
            rng.choice([0.5, 2.0, 7.0], n_rows),
            np.ones(n_rows),
            rng.normal(size=n_rows),
            rng.integers(0, 5_000, n_rows),
        ]
    ).astype(float)
    with pytest.warns(DsageWarning, match="constant"):
        sampler = GaussianCopula().fit(X)
    possible, curves = sampler.layout_.possible, sampler._values
    assert {0, 1, 4} <= set(possible.columns)
    shown = PossibleSteps(curves, possible)
    scores = rng.normal(size=(5, 50, 40))
    # Also at the knots themselves, and beyond the ends.
    scores[:, 0] = rng.choice(curves.knots, (5, 40))
    scores[:, 1] *= 5
    for known in (np.zeros(5, bool), np.array([1, 0, 0, 0, 0], bool)):
        found, expected = np.zeros((2, *scores.shape))
        shown.write(found, scores, known)
        rest = np.flatnonzero(~known)
        curves.write(expected, scores, rest, rest)
        possible.snap(expected.transpose(1, 2, 0), known)
        np.testing.assert_array_equal(found, expected)
