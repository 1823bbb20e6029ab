"""Draws of parametric samplers from their formulas, one row and one draw at a time."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri
from sklearn.mixture import GaussianMixture as Other

from dsage.samplers import Gaussian, GaussianCopula, GaussianMixture
from dsage.samplers.mechanisms import LinearDrawer
from given import all_coalitions

N_FEATURES = 4


def moments(seed=0, n_features=N_FEATURES):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(n_features, n_features + 1)) * np.exp(
        rng.normal(size=(n_features, 1))
    )
    return 3 * rng.normal(size=n_features), factor @ factor.T


def plain_condition(mean, cov, known, x):
    """Return mean and covariance of the unknown features given those of a row."""
    at, rest = np.flatnonzero(known), np.flatnonzero(~known)
    gain = cov[np.ix_(rest, at)] @ np.linalg.inv(cov[np.ix_(at, at)])
    left = cov[np.ix_(rest, rest)] - gain @ cov[np.ix_(at, rest)]
    return mean[rest] + gain @ (x[at] - mean[at]), left


def plain_draw(mean, cov, known, x, normals):
    """Return one draw of all features; `normals` are those of the unknown ones."""
    out = np.array(x, float)
    if (~known).any():
        center, left = plain_condition(mean, cov, known, x)
        out[~known] = center + np.linalg.cholesky(left) @ normals
    return out


@pytest.fixture(scope="module")
def cases():
    rng = np.random.default_rng(5)
    return rng.normal(size=(3, N_FEATURES)) * 4, rng.random((3, 2, N_FEATURES))


def test_a_gaussian_draws_the_conditional_mean_plus_its_factor_times_normal_scores(cases):
    X, noise = cases
    mean, cov = moments()
    sampler = Gaussian.from_moments(mean, cov)
    weights = np.random.default_rng(0).normal(size=(N_FEATURES, 2))
    for known in all_coalitions(N_FEATURES):
        draws, means = sampler.draw(X, known, noise), sampler.mean(X, known)
        law = sampler.sum_law(X, known, weights)
        intercept, effects = sampler.mean_effects(known, weights)
        for row, x in enumerate(X):
            for draw, u in enumerate(noise[row]):
                expected = plain_draw(mean, cov, known, x, ndtri(u[~known]))
                np.testing.assert_allclose(draws[row, draw], expected, rtol=1e-5, atol=1e-5)
            center, spread = x.copy(), np.zeros((N_FEATURES, N_FEATURES))
            if not known.all():
                center[~known], left = plain_condition(mean, cov, known, x)
                spread[np.ix_(~known, ~known)] = left
            np.testing.assert_allclose(means[row], center, rtol=1e-8)
            np.testing.assert_allclose(law.means[0, row], center @ weights, rtol=1e-8, atol=1e-9)
            expected = weights.T @ spread @ weights
            np.testing.assert_allclose(law.covariances[0], expected, rtol=1e-7, atol=1e-9)
            sums = intercept + x @ effects
            np.testing.assert_allclose(sums, center @ weights, rtol=1e-8, atol=1e-9)
        assert (effects[~known] == 0).all()


def test_prefixes_of_an_ordering_use_the_factor_in_its_order(cases):
    X, noise = cases
    mean, cov = moments()
    sampler = Gaussian.from_moments(mean, cov)
    order = [2, 0, 3, 1]
    ordering = sampler.ordering(order)
    lower = np.linalg.cholesky(cov[np.ix_(order, order)])
    z = np.linalg.solve(lower, (X - mean)[:, order].T)
    np.testing.assert_allclose(ordering.whitened(X), z.T, rtol=1e-8)
    weights = np.random.default_rng(0).normal(size=(N_FEATURES, 2))
    laws = list(ordering.sum_laws(X, weights))
    assert len(laws) == N_FEATURES
    steps = ordering.latent_prefixes(X, sampler.prepare(noise))
    for length, draws, latent in steps:
        e = ndtri(noise[:, :, order])
        mixed = np.concatenate(
            [np.broadcast_to(z.T[:, None, :length], (3, 2, length)), e[:, :, length:]], axis=2
        )
        expected = np.empty_like(draws)
        expected[:, :, order] = mean[order] + mixed @ lower.T
        np.testing.assert_allclose(draws, expected, rtol=1e-5, atol=1e-5)
        known = np.isin(np.arange(N_FEATURES), order[:length])
        rest = order[length:]
        assert latent.variables.tolist() == rest
        np.testing.assert_allclose(latent.scores, draws.transpose(2, 0, 1)[rest])
        for row, x in enumerate(X):
            if length == N_FEATURES:
                continue
            center, left = plain_condition(mean, cov, known, x)
            place = {at: number for number, at in enumerate(np.flatnonzero(~known).tolist())}
            own = [place[at] for at in rest]
            np.testing.assert_allclose(latent.centers[:, row, 0], center[own], rtol=1e-6)
            spread = np.sqrt(np.diag(left)[own])
            np.testing.assert_allclose(latent.spreads[:, 0, 0], spread, rtol=1e-6)
            full = x.copy()
            full[~known] = center
            np.testing.assert_allclose(laws[length].means[0, row], full @ weights, rtol=1e-7)
            inner = weights[~known].T @ left @ weights[~known]
            np.testing.assert_allclose(laws[length].covariances[0], inner, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("given", [(), (2,), (3, 0), (0, 1, 3)])
def test_a_mechanism_is_a_regression_with_the_noise_that_is_left(given):
    mean, cov = moments(seed=1)
    node = 2 if 2 not in given else 1
    drawer = LinearDrawer(mean, cov, node, given)
    at = list(given)
    slopes = np.linalg.solve(cov[np.ix_(at, at)], cov[at, node]) if at else np.zeros(0)
    left = cov[node, node] - slopes @ cov[at, node]
    np.testing.assert_allclose(drawer.slopes, slopes, rtol=1e-8)
    assert drawer.intercept == pytest.approx(mean[node] - slopes @ mean[at])
    assert drawer.spread == pytest.approx(np.sqrt(left))
    rng = np.random.default_rng(0)
    u, values = (
        rng.random((3, 4)),
        [rng.normal(size=(3, 1 if n % 2 else 4)) for n, _ in enumerate(at)],
    )
    expected = drawer.intercept + drawer.spread * ndtri(u)
    for slope, value in zip(slopes, values, strict=True):
        expected = expected + slope * value
    np.testing.assert_allclose(drawer.draw(values, u), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("factor", "is_exact"), [(0.5, True), (2.0, False)])
def test_what_hardly_varies_given_others_has_no_noise(factor, is_exact):
    left = factor * 1e-10
    cov = 9.0 * np.array([[1.0, np.sqrt(1 - left)], [np.sqrt(1 - left), 1.0]])
    assert (LinearDrawer(np.zeros(2), cov, 0, [1]).spread == 0) == is_exact
    assert LinearDrawer(np.zeros(2), np.zeros((2, 2)), 0, [1]).spread == 0


# Mixtures


def mixture(n_components=3):
    weights = np.array([0.5, 0.2, 0.3])[:n_components]
    parts = [moments(seed) for seed in range(10, 10 + n_components)]
    return weights / weights.sum(), np.array([m for m, _ in parts]), np.array([c for _, c in parts])


def plain_shares(weights, means, covs, known, x):
    at = np.flatnonzero(known)
    dens = [
        weight
        * (stats.multivariate_normal(m[at], c[np.ix_(at, at)]).pdf(x[at]) if len(at) else 1.0)
        for weight, m, c in zip(weights, means, covs, strict=True)
    ]
    return np.array(dens) / sum(dens)


def test_a_mixture_draws_from_the_component_that_the_first_noise_chooses(cases):
    _, noise = cases
    weights, means, covs = mixture()
    X = means + 0.5
    sampler = GaussianMixture.from_parameters(3 * weights, means, covs)
    mean = weights @ means
    pooled = sum(
        weight * (cov + np.outer(own - mean, own - mean))
        for weight, own, cov in zip(weights, means, covs, strict=True)
    )
    np.testing.assert_allclose(sampler._pooled.mean, mean)
    np.testing.assert_allclose(sampler._pooled.scale, np.sqrt(np.diag(pooled)))
    scale = np.outer(sampler._pooled.scale, sampler._pooled.scale)
    np.testing.assert_allclose(sampler._pooled.correlation, pooled / scale)
    for known in all_coalitions(N_FEATURES):
        draws, own = sampler.draw(X, known, noise), sampler.mean(X, known)
        shares = sampler.responsibilities(X, known)
        for row, x in enumerate(X):
            expected = plain_shares(weights, means, covs, known, x)
            np.testing.assert_allclose(shares[row], expected, rtol=1e-8, atol=1e-12)
            center = x.copy()
            if not known.all():
                each = [
                    plain_condition(m, c, known, x)[0] for m, c in zip(means, covs, strict=True)
                ]
                center[~known] = expected @ np.array(each)
            np.testing.assert_allclose(own[row], center, rtol=1e-7)
            bounds = np.append(0.0, np.cumsum(expected))
            for draw, u in enumerate(noise[row]):
                at = int((u[0] > bounds[1:-1]).sum())
                v = u.copy()
                v[0] = (u[0] - bounds[at]) / expected[at]
                one = plain_draw(means[at], covs[at], known, x, ndtri(v[~known]))
                np.testing.assert_allclose(draws[row, draw], one, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_fit_is_that_of_standardized_columns_in_the_units_of_the_data(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1.0, 20.0, 0.1] + 5.0
    X[:100] += [5.0, 0.0, -1.0]
    sampler = GaussianMixture(n_components=2, covariance_type=kind).fit(X)
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    seed = 1
    other = Other(2, covariance_type=kind, random_state=seed).fit(Z)
    order = [np.argsort(m[:, 0]) for m in (sampler.means_, other.means_)]
    scale = X.std(axis=0, ddof=1)
    expected = X.mean(axis=0) + other.means_[order[1]] * scale
    np.testing.assert_allclose(sampler.means_[order[0]], expected, rtol=1e-3)
    np.testing.assert_allclose(sampler.weights_[order[0]], other.weights_[order[1]], rtol=1e-3)
    shapes = {
        "full": lambda c: c,
        "tied": lambda c: np.stack([c, c]),
        "diag": lambda c: np.stack([np.diag(each) for each in c]),
        "spherical": lambda c: np.stack([each * np.eye(3) for each in c]),
    }
    full = shapes[kind](other.covariances_) * np.outer(scale, scale)
    where = order[1] if kind != "tied" else [0, 1]
    np.testing.assert_allclose(sampler.covariances_[order[0]], full[where], rtol=5e-3, atol=1e-5)


# The copula


@pytest.mark.parametrize("n_quantiles", [2000, 20])
def test_a_copula_draws_normal_scores_and_interpolates_the_margins(n_quantiles, cases):
    _, noise = cases
    rng = np.random.default_rng(3)
    n = 60
    a = rng.normal(size=n)
    X = np.column_stack(
        [
            np.exp(a),
            a + rng.normal(size=n),
            np.round(2 * a + rng.normal(size=n)) + 0.5,
            (a + rng.normal(size=n)) ** 3,
        ]
    )
    sampler = GaussianCopula(n_quantiles=n_quantiles).fit(X)
    if n_quantiles < n:
        ranks = np.rint(np.linspace(0, n - 1, n_quantiles)).astype(int)
    else:
        ranks = np.arange(n)
    p = (ranks + 0.5) / n
    knots = [np.sort(column)[ranks] for column in X.T]
    curves = []
    for line in knots:
        values = sorted(set(line.tolist()))
        middles = [(p[line == v].min() + p[line == v].max()) / 2 for v in values]
        curves.append((values, ndtri(middles)))

    def score(rows):
        return np.column_stack(
            [np.interp(x, *curve) for x, curve in zip(rows.T, curves, strict=True)]
        )

    correlation = np.corrcoef(score(X).T)
    np.testing.assert_allclose(sampler.correlation_, correlation, rtol=1e-8, atol=1e-10)
    rows = X[[3, 10, 31]] + [[0.01, 0.0, 0.2, 99.0], [-99.0, 0.1, 0.0, 0.0], [0.0] * 4]
    Z = score(rows)
    for known in all_coalitions(N_FEATURES):
        draws = sampler.draw(rows, known, noise)
        for row, draw in itertools.product(range(3), range(2)):
            z = plain_draw(np.zeros(4), correlation, known, Z[row], ndtri(noise[row, draw][~known]))
            expected = [
                np.interp(value, ndtri(p), line) for value, line in zip(z, knots, strict=True)
            ]
            expected = np.where(known, rows[row], expected)
            kinds = sampler.layout_.value_kinds[2]
            if kinds == "codes" and not known[2]:
                codes = np.unique(X[:, 2])
                expected[2] = codes[np.abs(codes - expected[2]).argmin()]
            np.testing.assert_allclose(draws[row, draw], expected, rtol=1e-4, atol=1e-4)
