"""Draws against the exact conditional distributions, within Monte-Carlo error.

A test compares many estimates with what they estimate: each divided by its standard error must be
below the bound that all of them together exceed with a probability of 1e-4.
"""

import numpy as np
import pytest
from scipy import stats

from dsage.datasets import paper_graph
from dsage.graphs import random_dag, random_linear_gaussian
from dsage.samplers.conditioning import normal_scores
from dsage.samplers.copula import GaussianCopula
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.mixture import GaussianMixture

N_DRAWS = 20_000


def bound(n_estimates):
    return stats.norm.isf(1e-4 / (2 * n_estimates))


def exact_conditional(mean, covariance, known, x):
    """The mean and the covariance of the unknown features given x, by a general solver."""
    unknown = ~known
    across = covariance[np.ix_(unknown, known)]
    weights = np.linalg.solve(covariance[np.ix_(known, known)], across.T).T
    return (
        mean[unknown] + weights @ (x[known] - mean[known]),
        covariance[np.ix_(unknown, unknown)] - weights @ across.T,
    )


def z_scores(drawn, mean, covariance):
    """Means and covariances of draws (n_draws, n_unknown) in standard errors from the exact ones."""
    n_draws = len(drawn)
    variances = covariance.diagonal()
    of_mean = (drawn.mean(axis=0) - mean) / np.sqrt(variances / n_draws)
    apart = drawn - mean
    error = np.sqrt((np.outer(variances, variances) + covariance**2) / n_draws)
    of_covariance = (apart.T @ apart / n_draws - covariance) / error
    return np.concatenate([of_mean, of_covariance[np.triu_indices(len(mean))]])


def models():
    for seed in (0, 1):
        graph = random_dag(8, 3, random_state=seed)
        yield f"random {seed}", random_linear_gaussian(graph, random_state=seed)
    yield "dag_s(3)", paper_graph("dag_s(3)")
    yield "dag_sm(4)", paper_graph("dag_sm(4)")


@pytest.mark.parametrize(("name", "model"), list(models()), ids=lambda value: str(value)[:9])
def test_draws_have_the_conditional_means_and_covariances(name, model):
    covariance = model.covariance().to_numpy()
    n_features = len(covariance)
    rng = np.random.default_rng(len(name))
    mean = rng.standard_normal(n_features)
    sampler = Gaussian.from_moments(mean, covariance)
    coalitions = [np.zeros(n_features, bool), *(rng.random((5, n_features)) < rng.random((5, 1)))]
    found = []
    for known in coalitions:
        x = mean + rng.standard_normal(n_features)
        expected = exact_conditional(mean, covariance, known, x)
        np.testing.assert_allclose(
            sampler.mean(x[None], known)[0, ~known], expected[0], rtol=1e-9, atol=1e-9
        )
        drawn = sampler.draw(x[None], known, rng.random((1, N_DRAWS, n_features)))[0]
        assert (drawn[:, known] == x[known]).all()
        found.append(z_scores(drawn[:, ~known], *expected))
    z = np.concatenate(found)
    assert np.abs(z).max() < bound(len(z))
    assert z.std() == pytest.approx(1, abs=0.25)  # not closer than random draws can be, either


def test_all_features_known_leave_nothing_to_draw():
    sampler = Gaussian.from_moments(np.zeros(3), np.eye(3))
    x = np.array([[1.0, 2.0, 3.0]])
    known = np.ones(3, bool)
    assert (sampler.draw(x, known, np.full((1, 5, 3), 0.1)) == x).all()
    assert (sampler.mean(x, known) == x).all()


def test_prefixes_of_an_ordering_have_the_conditional_means_and_covariances():
    covariance = paper_graph("dag_s(4)").covariance().to_numpy()
    n_features = len(covariance)
    rng = np.random.default_rng(3)
    mean, order = rng.standard_normal(n_features), rng.permutation(n_features)
    ordering = Gaussian.from_moments(mean, covariance).ordering(order)
    x = rng.standard_normal(n_features)
    z = ordering.whitened(x[None])
    np.testing.assert_allclose(ordering.factor @ z[0], (x - mean)[order])
    scores = normal_scores(rng.random((1, N_DRAWS, n_features)))
    found = []
    for n_known, draws in ordering.prefixes(x[None], scores, range(n_features)):
        known = np.zeros(n_features, bool)
        known[order[:n_known]] = True
        drawn = draws[0]
        assert (drawn[:, known] == x[known]).all()
        found.append(z_scores(drawn[:, ~known], *exact_conditional(mean, covariance, known, x)))
    assert np.abs(np.concatenate(found)).max() < bound(len(np.concatenate(found)))


def test_a_fitted_sampler_approaches_the_model():
    model = paper_graph("dag_s(2)")
    covariance = model.covariance().to_numpy()
    n_features, n_rows = len(covariance), 20_000
    sampler = Gaussian().fit(model.sample(n_rows, random_state=0))
    known = np.arange(n_features) % 2 == 0
    x = np.ones(n_features)
    mean, spread = exact_conditional(np.zeros(n_features), covariance, known, x)
    # The error of a regression's prediction at x, its intercept included.
    leverage = 1 + x[known] @ np.linalg.solve(covariance[np.ix_(known, known)], x[known])
    error = np.sqrt(spread.diagonal() * leverage / n_rows)
    z = (sampler.mean(x[None], known)[0, ~known] - mean) / error
    assert np.abs(z).max() < bound(len(z))


def two_components():
    rng = np.random.default_rng(0)
    weights = np.array([0.35, 0.65])
    means = np.array([[-0.5, 0.0, 0.3, 0.5], [0.5, 0.2, -0.3, -0.5]])
    roots = rng.standard_normal((2, 4, 12))
    return weights, means, roots @ roots.transpose(0, 2, 1) / 12


def exact_mixture(known, x):
    """Components' probabilities, and their conditional means and covariances, given x."""
    weights, means, covariances = two_components()
    densities = np.array(
        [
            stats.multivariate_normal.pdf(x[known], mean[known], spread[np.ix_(known, known)])
            if known.any()
            else 1.0
            for mean, spread in zip(means, covariances, strict=True)
        ]
    )
    shares = weights * densities
    parts = [
        exact_conditional(mean, spread, known, x)
        for mean, spread in zip(means, covariances, strict=True)
    ]
    return shares / shares.sum(), parts


@pytest.mark.parametrize("known", [(), (0,), (3,), (0, 2), (1, 2, 3)])
def test_a_mixture_has_the_exact_conditional_probabilities_and_moments(known):
    flags = np.isin(np.arange(4), known)
    rng = np.random.default_rng(len(known))
    x = 0.5 * rng.standard_normal(4)
    sampler = GaussianMixture.from_parameters(*two_components())
    shares, parts = exact_mixture(flags, x)
    assert 0.05 < shares[0] < 0.95  # else there is little to see
    np.testing.assert_allclose(sampler.responsibilities(x[None], flags)[0], shares, rtol=1e-9)
    mean = sum(share * center for share, (center, _) in zip(shares, parts, strict=True))
    np.testing.assert_allclose(sampler.mean(x[None], flags)[0, ~flags], mean, rtol=1e-9)

    noise = rng.random((1, N_DRAWS, 4))
    drawn = sampler.draw(x[None], flags, noise)[0][:, ~flags]
    # The component is what the first column's noise says: each one's draws are normal.
    chosen = noise[0, :, 0] > shares[0]
    z = np.concatenate([z_scores(drawn[chosen == part], *parts[part]) for part in (0, 1)])
    assert np.abs(z).max() < bound(len(z))


def test_a_mixture_draws_the_first_column_independently_of_the_component_choice():
    sampler = GaussianMixture.from_parameters(*two_components())
    flags, x = np.array([False, True, False, False]), np.zeros(4)
    shares, parts = exact_mixture(flags, x)
    noise = np.random.default_rng(9).random((1, N_DRAWS, 4))
    first = sampler.draw(x[None], flags, noise)[0, :, 0]
    chosen = (noise[0, :, 0] > shares[0]).astype(int)
    means = np.array([center[0] for center, _ in parts])
    spreads = np.sqrt([spread[0, 0] for _, spread in parts])
    for part in (0, 1):
        own = (first[chosen == part] - means[part]) / spreads[part]
        assert stats.kstest(own, stats.norm.cdf).pvalue > 1e-4


def test_a_copula_has_the_conditional_quantiles_of_lognormal_data():
    correlation = np.array([[1.0, 0.7, 0.3], [0.7, 1.0, 0.5], [0.3, 0.5, 1.0]])
    rng = np.random.default_rng(0)
    n_fits, n_rows, scale = 30, 4000, np.array([0.5, 1.0, 0.25])
    known, z = np.array([True, False, True]), np.array([1.0, 0.0, -0.5])
    center, spread = exact_conditional(np.zeros(3), correlation, known, z)
    shares = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    expected = center[0] + np.sqrt(spread[0, 0]) * stats.norm.ppf(shares)
    noise = np.repeat(shares[None, :, None], 3, axis=2)
    point = np.exp(z * scale)[None]
    quantiles = {"copula": [], "gaussian": []}
    for _ in range(n_fits):
        X = np.exp(scale * (rng.standard_normal((n_rows, 3)) @ np.linalg.cholesky(correlation).T))
        for name, sampler in (("copula", GaussianCopula()), ("gaussian", Gaussian())):
            draws = sampler.fit(X).draw(point, known, noise)[0, :, 1]
            quantiles[name].append(np.log(np.maximum(draws, 1e-9)) / scale[1])
    # The error of a fit is that of margins and correlations together: fits tell how large it is.
    # Its bias, of the order 1 / n_rows, is small beside the error of the mean of the fits.
    found = np.array(quantiles["copula"])
    z = (found.mean(axis=0) - expected) / (found.std(axis=0, ddof=1) / np.sqrt(n_fits))
    assert np.abs(z).max() < stats.t.isf(1e-4 / (2 * len(z)), n_fits - 1)
    # Beside one fit's own error, too, a Gaussian on the raw values is far off.
    off = np.abs(np.array(quantiles["gaussian"]).mean(axis=0) - expected)
    assert off.max() > 10 * found.std(axis=0, ddof=1).max()
