"""What samplers do exactly at the limits that they state."""

import numpy as np
import pandas as pd
import pytest

from dsage.samplers import Gaussian, Marginal, choose_sampler, regression
from dsage.samplers.base import BaseSampler
from dsage.samplers.conditioning import TOLERANCE
from dsage.samplers.design import Encoder
from dsage.samplers.regression import Training, _is_regular, some_rows


@pytest.mark.parametrize(("spread", "is_refused"), [(2e-150, False), (1.99e-150, True)])
def test_the_least_range_of_a_column(spread, is_refused):
    X = np.array([[0.0, 1.0], [spread, 2.0], [0.0, 4.0]])
    if is_refused:
        with pytest.raises(ValueError, match="X1"):
            Marginal().fit(X)
    else:
        assert Marginal().fit(X).n_features_ == 2


@pytest.mark.parametrize(("largest", "is_refused"), [(1e150, False), (1.01e150, True)])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_largest_number_of_a_column(largest, sign, is_refused):
    X = np.array([[0.0, 1.0], [sign * largest, 2.0], [0.0, 4.0]])
    if is_refused:
        with pytest.raises(ValueError, match="X1"):
            Marginal().fit(X)
    else:
        assert Marginal().fit(X).n_features_ == 2


@pytest.mark.parametrize(
    ("n_rows", "why"), [(19, "19 rows are too few"), (20, "Too few of the 20")]
)
def test_why_samplers_are_not_scored(n_rows, why):
    X = pd.DataFrame({"name": [f"n{at}" for at in range(n_rows)]})
    with pytest.warns(UserWarning, match=why):
        choice = choose_sampler(X, [Marginal()])
    assert choice.scores.empty


@pytest.mark.parametrize(
    ("share", "is_regular"), [(60, False), (99, False), (101, True), (150, True)]
)
def test_a_column_follows_from_another_if_hardly_any_variance_is_left(share, is_regular):
    r = np.sqrt(1.0 - share * TOLERANCE)
    moments = np.array([[1.0, r, 0.0], [r, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert _is_regular(moments, np.array([True, True, False])) == is_regular


def training_of(n_rows=50):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(3.0, 2.0, n_rows), rng.integers(3, size=n_rows), rng.normal(size=n_rows)]
    )
    X[:, 2] += X[:, 0] + (X[:, 1] == 1)
    encoder = Encoder(X, np.array([0, 3, 0]))
    return X, encoder, Training(encoder, X)


@pytest.mark.parametrize("most", [7, 49, 50])
def test_moments_are_of_all_rows_though_few_are_kept(monkeypatch, most):
    monkeypatch.setattr(regression, "_MAX_ROWS", most)
    monkeypatch.setattr(regression, "_MAX_RESIDUALS", 5)
    X, encoder, training = training_of()
    columns = encoder.matrix(X)
    np.testing.assert_allclose(training.middle, columns.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(training.moments, np.cov(columns.T, ddof=0), atol=1e-12)
    kept = some_rows(50, most)
    np.testing.assert_allclose(training.columns.T, columns[kept] - columns.mean(axis=0))
    np.testing.assert_array_equal(training.codes[1], X[kept, 1])
    np.testing.assert_array_equal(training.counts[1], np.bincount(X[:, 1].astype(int)))
    residuals = training.regress([0], int(encoder.columns_of([2])[0]))[2]
    assert len(residuals) == 5


def test_some_rows_are_distinct_in_order_and_the_same_each_time():
    found = some_rows(100, 30)
    assert len(set(found.tolist())) == 30
    assert (np.diff(found) > 0).all()
    assert found.max() < 100
    np.testing.assert_array_equal(found, some_rows(100, 30))
    np.testing.assert_array_equal(some_rows(30, 30), np.arange(30))


def test_with_many_rows_slopes_are_those_of_least_squares_and_one_row_at_the_mean():
    X, encoder, training = training_of(200)
    target = int(encoder.columns_of([2])[0])
    columns, slopes, errors = training.regress([0, 1], target)
    wide = encoder.matrix(X) - encoder.matrix(X).mean(axis=0)
    one_more = np.diag([1.0 if at in encoder.columns_of([1]) else 0.0 for at in columns])
    A, y = wide[:, columns], wide[:, target]
    expected = np.linalg.solve(A.T @ A + one_more, A.T @ y)
    np.testing.assert_allclose(slopes, expected, rtol=1e-8)
    np.testing.assert_allclose(errors, (y - A @ expected) / (1 - (len(columns) + 1) / 200))


def test_with_few_rows_a_penalty_is_chosen_by_leaving_rows_out():
    X, encoder, training = training_of(15)
    target = int(encoder.columns_of([2])[0])
    columns, slopes, errors = training.regress([0], target)
    wide = encoder.matrix(X)
    A, y = wide[:, columns], wide[:, target]
    best = {}
    for penalty in (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0):

        def fit(rows, penalty=penalty):
            a, b = A[rows] - A[rows].mean(axis=0), y[rows] - y[rows].mean()
            return np.linalg.solve(a.T @ a + 15 * penalty * np.eye(len(columns)), a.T @ b)

        every = np.arange(15)
        own = fit(every)
        a, b = A - A.mean(axis=0), y - y.mean()
        hat = a @ np.linalg.solve(a.T @ a + 15 * penalty * np.eye(len(columns)), a.T) + 1 / 15
        left_out = (b - a @ own) / (1 - hat.diagonal())
        best[float(left_out @ left_out)] = own, left_out
    expected, left_out = best[min(best)]
    np.testing.assert_allclose(slopes, expected, rtol=1e-8)
    np.testing.assert_allclose(errors, left_out, rtol=1e-8)


class Counting(BaseSampler):
    """Draws zeros, and notes how many rows come at a time."""

    def _fit(self, X):
        self.sizes = []

    def _draw(self, X, known, noise):
        self.sizes.append(len(X))
        return np.zeros((*noise.shape[:2], int((~known).sum())))


def test_rows_are_drawn_in_chunks_that_fit_the_budget():
    # A row takes 4 numbers of 8 bytes for each of 10 draws and 3 features.
    sampler = Counting(max_bytes=4 * 8 * 10 * 3 * 7).fit(
        np.random.default_rng(0).normal(size=(20, 3))
    )
    sampler.draw(np.zeros((20, 3)), np.zeros(3, bool), np.full((20, 10, 3), 0.5))
    assert sampler.sizes == [7, 7, 6]
    assert Gaussian().max_bytes == 2**28
