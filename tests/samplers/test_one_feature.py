"""Models of one feature, and regressions, against their formulas and plain refits."""

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dsage.samplers import one_feature, regression
from dsage.samplers.design import Design, Encoder
from dsage.samplers.one_feature import (
    Fitted,
    Linear,
    Logistic,
    Marginal,
    Residuals,
    clone_with_seed,
    find_codes,
    invert,
)
from dsage.samplers.regression import Training, some_rows


def rows(n_rows=90, seed=0):
    """Two numbers, a constant, a class of three, and a number that depends on all."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.normal(5.0, 3.0, n_rows),
            rng.exponential(size=n_rows),
            np.full(n_rows, 2.0),
            rng.integers(3, size=n_rows),
            rng.normal(size=n_rows),
        ]
    )
    X[:, 4] += 2 * X[:, 0] - X[:, 1] + 3 * (X[:, 3] == 1)
    return X, np.array([0, 0, 0, 3, 0])


@pytest.fixture(scope="module")
def trained():
    X, n_categories = rows()
    encoder = Encoder(X, n_categories)
    return X, encoder, Training(encoder, X)


# Residuals


@pytest.mark.parametrize("n_errors", [1, 2, 3, 50, 1001])
def test_empirical_residuals_are_interpolated_quantiles_of_the_errors(n_errors):
    errors = np.random.default_rng(0).normal(size=n_errors)
    u = np.append(np.random.default_rng(1).random(30), [2.0**-53, 1 - 2.0**-53]).reshape(8, 4)
    found = Residuals(errors, "empirical").draw(u)
    np.testing.assert_allclose(found, np.quantile(errors, u), rtol=1e-12, atol=1e-12)


def test_of_many_errors_evenly_spaced_quantiles_are_kept(monkeypatch):
    monkeypatch.setattr(one_feature, "N_QUANTILES", 11)
    errors = np.random.default_rng(0).normal(size=100)
    kept = np.quantile(errors, np.linspace(0, 1, 11))
    u = np.random.default_rng(1).random((5, 4))
    found = Residuals(errors, "empirical").draw(u)
    np.testing.assert_allclose(found, np.quantile(kept, u))


def test_gaussian_residuals_have_the_mean_square_of_the_errors():
    errors = np.array([1.0, -2.0, 5.0, 0.0])
    u = np.array([[0.1, 0.5], [0.9, 0.99]])
    found = Residuals(errors, "gaussian").draw(u)
    np.testing.assert_allclose(found, np.sqrt(30 / 4) * ndtri(u))


# Codes


def test_codes_are_found_by_cumulated_shares():
    u = np.array([[0.01, 0.25, 0.2501], [0.5, 0.76, 0.999]])
    bounds = np.array([0.5, 0.5, 1.5, 2.0])
    expected = [[0, 0, 2], [2, 3, 3]]
    assert find_codes(bounds, u).tolist() == expected
    weights = [np.full(u.shape, share) for share in (0.5, 0.0, 1.0, 0.5)]
    assert invert(weights, u).tolist() == expected
    assert invert(weights[:1], u).tolist() == [[0] * 3] * 2


def test_a_class_has_the_shares_of_its_rows_and_a_number_its_quantiles():
    y = np.array([2.0, 0.0, 2.0, 2.0])
    u = np.array([[0.2, 0.25, 0.26, 0.9]])
    assert Marginal(y, 4, "empirical").draw(None, u).tolist() == [[0.0, 0.0, 2.0, 2.0]]
    y = np.array([1.0, 4.0, 10.0, 11.0])
    np.testing.assert_allclose(Marginal(y, 0, "empirical").draw(None, u), np.quantile(y, u))
    expected = 6.5 + y.std() * ndtri(u)
    np.testing.assert_allclose(Marginal(y, 0, "gaussian").draw(None, u), expected)
    same = Marginal(np.full(7, 0.1), 0, "empirical").draw(None, u)
    assert (same == 0.1).all()


# Training rows


def test_training_rows_have_the_moments_of_their_columns(trained):
    X, encoder, training = trained
    wide = encoder.matrix(X)
    np.testing.assert_allclose(training.middle, wide.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(training.moments, np.cov(wide.T, bias=True), atol=1e-12)
    np.testing.assert_allclose(training.columns, (wide - wide.mean(axis=0)).T, atol=1e-12)
    assert training.codes.tolist() == [*[[0] * 90] * 3, X[:, 3].astype(int).tolist(), [0] * 90]
    assert training.counts[3].tolist() == np.bincount(X[:, 3].astype(int)).tolist()
    assert training.columns_of([4, 2, 3]).tolist() == [6, 3, 4, 5]
    assert training.n_rows == 90


def test_moments_are_those_of_all_rows_in_any_parts(monkeypatch, trained):
    X, encoder, whole = trained
    monkeypatch.setattr(regression, "_MAX_ROWS", 40)
    monkeypatch.setattr(regression, "_MAX_RESIDUALS", 7)
    training = Training(encoder, X)
    np.testing.assert_allclose(training.moments, whole.moments, atol=1e-12)
    np.testing.assert_allclose(training.middle, whole.middle, atol=1e-12)
    kept = some_rows(90, 40)
    np.testing.assert_allclose(training.columns, whole.columns[:, kept], atol=1e-12)
    assert training.codes[3].tolist() == X[kept, 3].astype(int).tolist()
    assert training.counts[3].sum() == 90
    *_, errors = training.regress([0], 1)
    assert len(errors) == 7


def test_some_rows_are_random_and_in_their_order():
    found = some_rows(1000, 100)
    assert len(found) == len(set(found.tolist())) == 100
    assert (np.diff(found) > 0).all()
    assert (found == some_rows(1000, 100)).all()
    assert 350 < found.mean() < 650
    assert len(np.unique(found % 4)) == 4
    assert some_rows(5, 5).tolist() == some_rows(5, 9).tolist() == [0, 1, 2, 3, 4]


# Numbers


@pytest.mark.parametrize("features", [[0], [0, 1], [1, 2, 3], [3], [0, 1, 3]])
def test_with_many_rows_a_number_is_regressed_by_least_squares(features, monkeypatch, trained):
    X, encoder, training = trained
    monkeypatch.setattr(regression, "_MANY_ROWS", 1)
    columns, slopes, errors = training.regress(features, int(encoder.starts[4]))
    assert columns.tolist() == training.columns_of(features).tolist()
    wide = encoder.matrix(X) - encoder.matrix(X).mean(axis=0)
    # A row more at the mean of the classes, as a penalty.
    extra = np.sqrt(np.diag(np.where(encoder.is_class, 1.0, 0.0)))[:, columns]
    left, right = np.vstack([wide[:, columns], extra]), np.append(wide[:, 6], np.zeros(7))
    expected = np.linalg.lstsq(left, right, rcond=None)[0]
    np.testing.assert_allclose(slopes, expected, atol=1e-9)
    off = (wide[:, 6] - wide[:, columns] @ slopes) / (1 - (len(columns) + 1) / 90)
    np.testing.assert_allclose(errors, off, atol=1e-9)


@pytest.mark.parametrize(("n_rows", "is_ridge"), [(39, True), (40, False)])
def test_with_fewer_than_twenty_rows_per_column_there_is_a_penalty(n_rows, is_ridge, monkeypatch):
    X, n_categories = rows(n_rows)
    training = Training(Encoder(X, n_categories), X)
    called = []
    ridge = Training._ridge_regress
    monkeypatch.setattr(Training, "_ridge_regress", lambda *some: called.append(1) or ridge(*some))
    training.regress([0, 1], 6)
    assert called == [1] * is_ridge


@pytest.mark.parametrize("n_rows", [12, 25])
def test_the_penalty_has_the_smallest_error_of_refits_without_each_row(n_rows):
    X, n_categories = rows(n_rows, seed=3)
    X[:, 4] += np.random.default_rng(9).normal(0, 8, n_rows)
    encoder = Encoder(X, n_categories)
    training = Training(encoder, X)
    columns, slopes, errors = training.regress([0, 1], 6)
    wide = encoder.matrix(X)
    Z, y = wide[:, columns], wide[:, 6]

    def fit(at, penalty):
        Zc, yc = Z[at] - Z[at].mean(axis=0), y[at] - y[at].mean()
        found = np.linalg.solve(Zc.T @ Zc + penalty * n_rows * np.eye(len(columns)), Zc.T @ yc)
        return found, y[at].mean() - Z[at].mean(axis=0) @ found

    tried = {}
    for penalty in (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0):
        off = []
        for row in range(n_rows):
            own, intercept = fit(np.arange(n_rows) != row, penalty)
            off.append(y[row] - intercept - Z[row] @ own)
        tried[penalty] = np.array(off)
    best = min(tried, key=lambda penalty: tried[penalty] @ tried[penalty])
    np.testing.assert_allclose(errors, tried[best], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(slopes, fit(np.arange(n_rows), best)[0], rtol=1e-7, atol=1e-9)


def draws_of(model, trained, features, u, n_rows=4):
    """Draw given features of the first rows."""
    X, encoder, _ = trained
    known = np.isin(np.arange(5), features)
    return model.draw(Design(encoder, X[:n_rows], known, u.shape[1]), u)


@pytest.mark.parametrize("residuals", ["empirical", "gaussian"])
def test_a_number_is_its_regression_plus_residuals_in_its_own_units(residuals, trained):
    X, encoder, training = trained
    u = np.random.default_rng(0).random((4, 6))
    for features, target in (([0, 1, 3], 4), ([4, 3], 0), ([0], 1)):
        found = draws_of(Linear(training, features, target, residuals), trained, features, u)
        at = int(encoder.starts[target])
        columns, slopes, errors = training.regress(features, at)
        wide = encoder.matrix(X)
        standard = wide[:, at].mean() + (wide[:4, columns] - wide[:, columns].mean(axis=0)) @ slopes
        center = X[:, target].std() * standard + np.median(X[:, target])
        noise = Residuals(errors * X[:, target].std(), residuals).draw(u)
        np.testing.assert_allclose(found, center[:, None] + noise, rtol=1e-9)


# Classes


def test_a_class_has_the_probabilities_of_a_logistic_regression(trained):
    X, encoder, training = trained
    u = np.tile((np.arange(2000) + 0.5) / 2000, (4, 1))
    found = draws_of(Logistic(training, [0, 1, 4], 3), trained, [0, 1, 4], u)
    wide = encoder.matrix(X)[:, [0, 1, 6]]
    model = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(wide, X[:, 3])
    expected = model.predict_proba(wide[:4])
    shares = np.stack([(found == code).mean(axis=1) for code in range(3)], axis=1)
    np.testing.assert_allclose(shares, expected, atol=0.02)
    # Larger uniforms have larger codes.
    assert (np.diff(found, axis=1) >= 0).all()


def test_rare_categories_have_their_shares_in_a_common_level():
    rng = np.random.default_rng(0)
    counts = np.append([60, 40], np.append([4, 12], np.full(20, 1)))
    codes = rng.permutation(np.repeat(np.arange(24), counts)).astype(float)
    X = np.column_stack([codes, rng.normal(size=len(codes)) + (codes == 0)])
    encoder = Encoder(X, np.array([24, 0]))
    assert encoder.n_columns == 4
    training = Training(encoder, X)
    model = Logistic(training, [1], 0)
    u = np.tile((np.arange(20000) + 0.5) / 20000, (1, 1))
    design = Design(encoder, np.array([[0.0, 0.4]]), np.array([False, True]), 20000)
    shares = np.bincount(model.draw(design, u)[0].astype(int), minlength=24) / 20000
    rare = shares[2:]
    np.testing.assert_allclose(rare / rare.sum(), counts[2:] / 36, atol=2e-3)
    assert shares[0] > shares[1] > 0
    # The levels follow each other, and in the common one its categories.
    assert (np.diff(model.draw(design, u)[0]) >= 0).all()


def test_levels_without_a_row_among_those_kept_have_their_share_of_all_rows(monkeypatch):
    rng = np.random.default_rng(0)
    codes = np.repeat([0.0, 1.0, 2.0], [60, 37, 3])
    X = np.column_stack([codes, rng.normal(size=100)])
    monkeypatch.setattr(regression, "_MAX_ROWS", 20)
    kept = some_rows(100, 20)
    # The rare category is in none of the kept rows.
    rare = np.setdiff1d(np.arange(100), kept)[:3]
    order = np.setdiff1d(np.arange(100), rare)
    X[rare, 0], X[order, 0] = 2.0, rng.permutation(np.repeat([0.0, 1.0], [60, 37]))
    encoder = Encoder(X, np.array([3, 0]))
    model = Logistic(Training(encoder, X), [1], 0)
    u = np.tile((np.arange(5000) + 0.5) / 5000, (3, 1))
    design = Design(encoder, X[:3], np.array([False, True]), 5000)
    shares = (model.draw(design, u) == 2.0).mean(axis=1)
    # Three for 97 others.
    np.testing.assert_allclose(shares, 0.03, atol=1e-3)


def test_other_models_are_asked_for_predictions_of_encoded_rows(trained):
    X, encoder, _ = trained
    u = np.random.default_rng(0).random((4, 3))
    model = Fitted(encoder, [0, 3], X, X[:, 4], 0, "gaussian", LinearRegression(), 0)
    wide = encoder.matrix(X, [0, 3])
    mean = LinearRegression().fit(wide, X[:, 4]).predict(wide[:4])
    found = draws_of(model, trained, [0, 3], u)
    spread = (found - mean[:, None]) / ndtri(u)
    np.testing.assert_allclose(spread, spread[0, 0])
    # Out-of-sample errors are larger than those in the sample.
    own = X[:, 4] - LinearRegression().fit(wide, X[:, 4]).predict(wide)
    assert 1.0 < spread[0, 0] / own.std() < 1.2
    tree = DecisionTreeClassifier(max_depth=2, random_state=5).fit(wide[:, :1], X[:, 3].astype(int))
    model = Fitted(encoder, [0], X, X[:, 3], 3, "gaussian", DecisionTreeClassifier(max_depth=2), 5)
    shares = np.cumsum(tree.predict_proba(wide[:4, :1]), axis=1)
    expected = (u[:, :, None] > shares[:, None, :-1]).sum(axis=2)
    assert draws_of(model, trained, [0], u).tolist() == expected.tolist()


def test_categories_that_a_model_has_not_seen_are_not_drawn(trained):
    X, encoder, _ = trained
    y = np.where(X[:, 3] == 1, 2.0, X[:, 3])
    model = Fitted(encoder, [0], X, y, 3, "gaussian", DecisionTreeClassifier(max_depth=1), 0)
    u = np.tile((np.arange(50) + 0.5) / 50, (4, 1))
    assert set(np.unique(draws_of(model, trained, [0], u))) == {0.0, 2.0}


def test_all_seeds_of_a_model_are_set_and_nothing_else():
    made = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3))
    found = clone_with_seed(made, 7)
    assert found is not made
    assert found.get_params()["decisiontreeclassifier__random_state"] == 7
    assert found.get_params()["decisiontreeclassifier__max_depth"] == 3
    assert clone_with_seed(DecisionTreeClassifier(), 3).random_state == 3
    assert clone_with_seed(LinearRegression(), 3).get_params() == LinearRegression().get_params()
