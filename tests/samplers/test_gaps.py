"""Missing values and categories that training lacks, in samplers that know neither."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dsage._random import Streams
from dsage.samplers import (
    SAMPLERS,
    BaseSampler,
    Gaussian,
    GaussianCopula,
    Marginal,
    Sequential,
    evaluate,
)
from dsage.samplers.gaps import Gaps, other_uniforms, split_by_pattern
from dsage.samplers.noise import Noise
from mix_stand_in import near_rows  # noqa: F401
from small_games import EmpiricalTable

filled = pytest.mark.usefixtures("near_rows")


def numbers(n_rows=400, seed=0):
    """Two numbers that depend on each other; the second one is often missing if the first is low."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(n_rows)
    b = 0.8 * a + 0.6 * rng.standard_normal(n_rows)
    b[rng.random(n_rows) < np.where(a < 0, 0.6, 0.1)] = np.nan
    return pd.DataFrame({"a": a, "b": b, "c": b**3 + rng.standard_normal(n_rows)})


def uniforms(*shape, seed=1):
    return np.random.default_rng(seed).uniform(1e-9, 1 - 1e-9, shape)


class Recorder(BaseSampler):
    """Draws the middle of what it was fitted to, and keeps what it was called with."""

    def _fit(self, X):
        self.X_, self.calls_ = X, []

    def _draw(self, X, known, noise):
        self.calls_.append((X.copy(), known.copy()))
        return np.broadcast_to(self.X_.mean(axis=0)[~known], (*noise.shape[:2], (~known).sum()))

    def _mean(self, X, known):
        return np.broadcast_to(self.X_.mean(axis=0)[~known], (len(X), (~known).sum()))


@filled
def test_a_sampler_is_fitted_to_rows_whose_gaps_are_filled_by_values_that_go_with_them():
    X = numbers(1000)
    got = Recorder().fit(X).X_
    present = X.notna().to_numpy()
    np.testing.assert_array_equal(got[present], X.to_numpy()[present])
    assert np.isfinite(got).all()
    gaps = ~present[:, 1]
    low, high = gaps & (X["a"] < -1), gaps & (X["a"] > 0)
    assert got[low, 1].mean() < got[high, 1].mean() - 0.5
    assert np.abs(got[:, 1]).max() < 2 * X["b"].abs().max()


@filled
def test_gaps_of_a_column_that_is_always_missing_where_they_are_get_some_present_value():
    group = np.repeat(["x", "y"], 50)
    X = pd.DataFrame(
        {"group": group, "only_x": np.where(group == "x", np.arange(100) % 7.5, np.nan)}
    )
    got = Recorder().fit(X).X_[:, 1]
    assert (np.abs(got - 3.5) <= 4).all()
    assert len(np.unique(got[50:])) > 3


@filled
def test_copies_are_filled_alike_and_columns_without_values_with_zeros():
    X = numbers()[["a", "b"]]
    X = X.assign(again=X["b"], nothing=np.nan)
    sampler = Recorder().fit(X)
    np.testing.assert_array_equal(sampler.X_[:, 1], sampler.X_[:, 2])
    assert (sampler.X_[:, 3] == 0).all()
    draws = sampler.draw(X[:9], np.zeros(4, bool), uniforms(9, 5, 4))
    assert np.isnan(draws[:, :, 3]).all()


@filled
def test_known_missing_values_are_kept_and_left_out_of_the_coalition_of_their_rows():
    X = numbers()
    sampler = Recorder().fit(X)
    known = np.array([True, True, False])
    draws = sampler.draw(X[:60], known, uniforms(60, 4, 3))
    absent = X["b"][:60].isna().to_numpy()
    assert 0 < absent.sum() < 60
    np.testing.assert_array_equal(np.isnan(draws[:, :, 1]), np.repeat(absent[:, None], 4, axis=1))
    calls = {bool(passed[1]): rows for rows, passed in sampler.calls_}
    assert len(sampler.calls_) == 2
    np.testing.assert_array_equal(calls[True], np.where(known, X[:60][~absent], 0.0))
    np.testing.assert_array_equal(calls[False], X[:60][absent].assign(b=0.0, c=0.0))


@filled
@pytest.mark.parametrize("name", ["gaussian", "copula", "mixture", "neighbors"])
def test_draws_are_missing_with_their_conditional_probability(name):
    X = numbers(1500)
    sampler = SAMPLERS[name]().fit(X)
    assert not sampler.takes_missing
    rows = pd.DataFrame({"a": [-1.5, 1.5], "b": 0.0, "c": 0.0})
    draws = sampler.draw(rows, np.array([True, False, False]), uniforms(2, 2000, 3))
    shares = np.isnan(draws).mean(axis=1)
    assert (shares[:, 0] == 0).all()
    # The stand-in blurs the probabilities, 0.6 and 0.1.
    np.testing.assert_allclose(shares[:, 1], [0.6, 0.1], atol=0.1)
    # One is missing exactly if the other is.
    np.testing.assert_array_equal(np.isnan(draws[..., 1]), np.isnan(draws[..., 2]))


@filled
def test_values_that_are_present_have_the_distribution_of_the_sampler():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 2))
    X[rng.random(2000) < 0.5, 0] = np.nan
    sampler = Gaussian().fit(X)
    draws = sampler.draw(X[:1], np.array([False, True]), uniforms(1, 4000, 2))[0, :, 0]
    present = draws[~np.isnan(draws)]
    conditional = stats.norm(sampler.mean_[0], np.sqrt(sampler.covariance_[0, 0]))
    assert stats.kstest(present, conditional.cdf).pvalue > 1e-3


@filled
def test_draws_of_rows_with_different_gaps_are_the_same_to_the_bit_in_any_split():
    X = numbers()
    for sampler in (Gaussian().fit(X), GaussianCopula(max_bytes=2000).fit(X)):
        noise = uniforms(50, 3, 3)
        for known in ([True, True, False], [False, True, True], [True, False, True]):
            whole = sampler.draw(X[:50], np.array(known), noise)
            parts = [
                sampler.draw(X[i:j], np.array(known), noise[i:j])
                for i, j in ((0, 7), (7, 8), (8, 50))
            ]
            np.testing.assert_array_equal(whole, np.concatenate(parts))


@filled
def test_means_orderings_and_devices_are_for_tables_without_gaps():
    full = Gaussian().fit(numbers().dropna())
    assert full.has_mean
    assert full.has_orderings
    assert full.draws_on_device
    sampler = Gaussian().fit(numbers())
    assert not sampler.has_mean
    assert not sampler.has_orderings
    assert not sampler.draws_on_device
    with pytest.raises(TypeError, match="one that draws along orderings; got 'Gaussian'"):
        sampler.ordering([0, 1, 2])
    with pytest.raises(TypeError, match="one that knows conditional means; got 'Gaussian'"):
        sampler.mean(numbers()[:1], np.zeros(3, bool))


def test_the_mean_of_rows_with_new_missing_values_is_that_without_these():
    X = numbers().dropna()
    sampler = Recorder().fit(X)
    rows = X[:4].assign(b=[np.nan, 1.0, np.nan, 2.0])
    means = sampler.mean(rows, np.array([True, True, False]))
    np.testing.assert_array_equal(means[:, 1], rows["b"])
    np.testing.assert_allclose(means[:, 2], X["c"].mean())


def test_along_an_ordering_missing_values_are_refused_by_name():
    X = numbers().dropna()
    ordering = Gaussian().fit(X).ordering([0, 1, 2])
    rows = X[:2].assign(b=np.nan)
    with pytest.raises(ValueError, match=r"without missing values; got \['b'\]"):
        ordering.prefixes(rows, np.zeros((2, 1, 3)))
    with pytest.raises(ValueError, match=r"without missing values; got \['b'\]"):
        ordering.whitened(rows)


def test_marginal_draws_are_training_rows_with_their_gaps():
    X = numbers()
    noise = uniforms(1, 3000, 3)
    for joint in (True, False):
        sampler = Marginal(joint=joint).fit(X)
        draws = sampler.draw(X[:1], np.zeros(3, bool), noise)[0]
        assert np.isnan(draws[:, 1]).mean() == pytest.approx(X["b"].isna().mean(), abs=0.03)
        assert np.nanmean(draws[:, 1]) == pytest.approx(X["b"].mean(), abs=0.06)
        assert not sampler.has_mean


def test_a_missing_class_is_a_category():
    frame = pd.DataFrame({"a": ["x", "y", None] * 20, "b": ["u", "u", None] * 20})
    sampler = EmpiricalTable().fit(frame)
    draws = sampler.draw(frame[:3], np.array([True, False]), uniforms(3, 4, 2))
    decoded = sampler.layout_.decode(draws[:, 0])
    assert decoded["b"].tolist()[:2] == ["u", "u"]
    assert decoded.isna().to_numpy().tolist() == [[False] * 2, [False] * 2, [True] * 2]


@filled
def test_classes_and_numbers_are_missing_together_with_a_sampler_for_both():
    rng = np.random.default_rng(0)
    word = np.where(rng.random(300) < 0.3, None, np.where(rng.random(300) < 0.5, "x", "y"))
    a = np.where(pd.isna(word), np.nan, rng.standard_normal(300))
    frame = pd.DataFrame({"word": word, "a": a, "b": rng.standard_normal(300)})
    sampler = Sequential(random_state=0).fit(frame)
    draws = sampler.draw(frame[:50], np.array([True, False, True]), uniforms(50, 20, 3))
    gone = sampler.layout_.is_missing(draws)
    assert gone[pd.isna(word[:50]), :, 1].mean() > 0.8
    assert gone[~pd.isna(word[:50]), :, 1].mean() < 0.2
    copied = pickle.loads(pickle.dumps(sampler))
    np.testing.assert_array_equal(
        draws, copied.draw(frame[:50], np.array([True, False, True]), uniforms(50, 20, 3))
    )


@filled
def test_the_sampler_warns_of_its_columns_once():
    X = numbers().assign(fixed=2.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Gaussian().fit(X)
    assert len(caught) == 1


def test_codes_beyond_those_of_training_are_categories_that_it_lacks():
    frame = pd.DataFrame({"a": ["x", "y"] * 20, "b": ["u", "v", "v", "u"] * 10})
    sampler = EmpiricalTable().fit(frame)
    known, noise = np.array([True, False]), uniforms(2, 3, 2)
    draws = sampler.draw(np.array([[7.0, 0.0], [1.0, 0.0]]), known, noise)
    np.testing.assert_array_equal(draws[:, :, 0], [[7.0] * 3, [1.0] * 3])
    nothing = sampler.draw(frame[:2], np.zeros(2, bool), noise)
    np.testing.assert_array_equal(draws[0, :, 1], nothing[0, :, 1])
    for odd in (-1.0, 0.5, np.inf):
        with pytest.raises(ValueError, match=r"whole numbers from 0 to 1|must be finite"):
            sampler.draw(np.array([[odd, 0.0]]), known, noise[:1])


def test_rows_are_split_by_what_can_be_used_of_what_is_known():
    usable = np.array([[1, 0, 1], [1, 1, 0], [1, 0, 0], [1, 1, 1]], bool)
    known = np.array([True, True, False])
    parts = {tuple(given): rows.tolist() for rows, given in split_by_pattern(usable, known)}
    assert parts == {(True, False, False): [0, 2], (True, True, False): [1, 3]}
    ((rows, given),) = split_by_pattern(usable, np.array([True, False, False]))
    assert rows == slice(None)
    assert given.tolist() == [True, False, False]


@pytest.mark.parametrize("kind", ["independent", "sobol"])
def test_other_uniforms_are_uniform_and_tell_nothing_about_the_first_ones(kind):
    noise = Noise(Streams(0), 2, n_replicates=2, n_draws=16, kind=kind)(np.arange(400), 0)
    other = other_uniforms(noise)
    assert stats.kstest(other.ravel(), "uniform").statistic < 0.02
    table = np.histogram2d(noise.ravel(), other.ravel(), 8)[0]
    assert np.abs(table / table.mean() - 1).max() < 0.25
    assert (other_uniforms(np.array([0.5, 0.25])) == 0.5).all()


class WithShare:
    """Draws a number that is missing with a fixed probability, and normal otherwise."""

    def __init__(self, layout, share):
        self.layout_, self.share = layout, share

    def fit(self, X):
        return self

    def draw(self, X, known, noise):
        present = np.clip((noise - self.share) / (1 - self.share), 1e-12, 1 - 1e-12)
        return np.where(noise < self.share, np.nan, stats.norm.ppf(present))


def test_the_energy_score_is_lowest_for_the_true_probability_of_missing_values():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.standard_normal(4000)})
    X.loc[rng.permutation(4000)[:1200], "a"] = np.nan
    layout = Marginal().fit(X).layout_
    nothing = np.zeros((1, 1), bool)
    shares = [0.0, 0.15, 0.3, 0.45, 0.6]
    scores = [
        evaluate(WithShare(layout, share), X, coalitions=nothing, n_draws=40).score
        for share in shares
    ]
    assert np.argmin(scores) == 2
    # The excess grows with the square of the error.
    excess = np.array(scores) - scores[2]
    np.testing.assert_allclose(excess[[0, 4]] / excess[[1, 3]].mean(), 4.0, rtol=0.3)


def test_calibration_counts_missing_values_as_the_lowest():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.standard_normal(3000)})
    X.loc[rng.random(3000) < 0.3, "a"] = np.nan
    layout = Marginal().fit(X).layout_
    options = {"coalitions": np.zeros((1, 1), bool), "n_draws": 50}
    right, wrong = (
        evaluate(WithShare(layout, share), X, **options).calibration for share in (0.3, 0.8)
    )
    assert (np.abs(right["observed"] - right["nominal"]) < 4 * right["se"]).all()
    assert (np.abs(wrong["observed"] - wrong["nominal"]) > 4 * wrong["se"]).all()


def test_rows_with_categories_that_training_lacks_are_scored():
    frame = pd.DataFrame({"a": ["x", "y"] * 50, "b": np.arange(100) / 7})
    test = pd.DataFrame({"a": ["x", "z", None, "y"], "b": [1.0, np.nan, 2.0, 3.0]})
    evaluation = evaluate(Marginal().fit(frame), test)
    assert np.isfinite(evaluation.row_scores).all()


def test_missing_draws_are_refused_where_nothing_is_missing_in_training():
    X = pd.DataFrame({"a": np.arange(50) / 7})
    layout = Marginal().fit(X).layout_
    with pytest.raises(ValueError, match=r"the sampler's draws must be finite; got \['a'\]"):
        evaluate(WithShare(layout, 0.5), X)


@filled
def test_rows_with_rare_patterns_of_gaps_are_filled_column_by_column(monkeypatch):
    monkeypatch.setattr("dsage.samplers.gaps._N_PATTERNS", 1)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 1)) + 0.1 * rng.standard_normal((800, 4))
    X[:, 1:][rng.random((800, 3)) < 0.2] = np.nan
    got = Recorder().fit(X).X_
    present = ~np.isnan(X)
    np.testing.assert_array_equal(got[present], X[present])
    assert np.isfinite(got).all()
    assert np.corrcoef(got.T).min() > 0.8


@filled
def test_gaps_are_filled_the_same_way_each_time():
    X = numbers()
    layout = Marginal().fit(X).layout_
    matrix = layout.encode(X)
    first, second = (Gaps(layout, matrix, 2**28).fill(matrix) for _ in range(2))
    np.testing.assert_array_equal(first, second)
