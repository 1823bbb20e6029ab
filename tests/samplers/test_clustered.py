"""The benchmark of mixed data: its draws against the conditionals that its parameters give."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dsage.samplers.clustered import ClusteredGaussian
from given import all_coalitions

TRUTH = ClusteredGaussian(
    [0.3, 0.7],
    [[-2.0, 0.0], [2.0, 1.0]],
    [[[1.0, 0.6], [0.6, 1.0]], [[1.0, -0.5], [-0.5, 2.0]]],
    [[0.9, 0.1], [0.2, 0.8]],
)
ROW = TRUTH.sample(1, random_state=0)
N_DRAWS = 20_000


def draw(name, value):
    """Draw everything given one column; return the columns."""
    row = ROW.copy()
    if name.startswith("x"):
        row[name] = value
    else:
        row[name] = pd.Categorical.from_codes([value], dtype=ROW[name].dtype)
    noise = np.random.default_rng(1).random((1, N_DRAWS, 4))
    return TRUTH.draw(row, np.array(TRUTH.feature_names_) == name, noise)[0].T


@pytest.mark.parametrize("cluster", [0, 1])
def test_given_the_cluster_numbers_and_class_are_its_own(cluster):
    clusters, x1, _, child = draw("cluster", cluster)
    assert (clusters == cluster).all()
    assert x1.mean() == pytest.approx([-2.0, 2.0][cluster], abs=4 / np.sqrt(N_DRAWS))
    share = [0.1, 0.8][cluster]
    assert child.mean() == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / N_DRAWS))


def test_given_a_number_the_cluster_follows_from_the_rule_of_bayes():
    clusters, x1, x2, _ = draw("x1", 0.5)
    assert (x1 == 0.5).all()
    odds = 0.7 / 0.3 * np.exp(-0.5 * (1.5**2 - 2.5**2))
    share = odds / (1 + odds)
    assert clusters.mean() == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / N_DRAWS))
    # In the second cluster the slope of x2 on x1 is -0.5.
    second = x2[clusters == 1]
    error = 4 * np.sqrt(1.75 / len(second))
    assert second.mean() == pytest.approx(1.0 - 0.5 * (0.5 - 2.0), abs=error)
    assert second.std() == pytest.approx(np.sqrt(1.75), abs=0.05)


def test_given_the_last_number_the_others_follow_from_it():
    clusters, x1, x2, _ = draw("x2", 2.0)
    assert (x2 == 2.0).all()
    # The slopes of x1 on x2 are 0.6 and -0.25.
    for cluster, mean, variance in ((0, -2.0 + 0.6 * 2.0, 0.64), (1, 2.0 - 0.25 * 1.0, 0.875)):
        own = x1[clusters == cluster]
        assert own.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / len(own)))


def test_given_the_class_the_cluster_follows_from_the_rule_of_bayes():
    clusters, *_ = draw("child", 0)
    share = 0.7 * 0.2 / (0.7 * 0.2 + 0.3 * 0.9)
    assert clusters.mean() == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / N_DRAWS))


def first_above(shares, u):
    return next(
        at for at, bound in enumerate([*np.cumsum(shares)[:-1].tolist(), 9.0]) if u <= bound
    )


def plain_clustered(truth, x, known, u):
    """Draw for one row from one line of uniforms."""
    n_clusters = len(truth.weights)
    at = np.flatnonzero(known[1:-1])
    weights = []
    for k in range(n_clusters):
        weight = truth.weights[k]
        if len(at):
            block = truth.covariances[k][np.ix_(at, at)]
            weight *= stats.multivariate_normal(truth.means[k][at], block).pdf(x[1 + at])
        if known[-1]:
            weight *= truth.child[k, int(x[-1])]
        weights.append(weight)
    k = int(x[0]) if known[0] else first_above(np.array(weights) / sum(weights), u[0])
    out = np.array(x, float)
    out[0] = k
    rest = np.flatnonzero(~known[1:-1])
    if len(rest):
        cov, mean = truth.covariances[k], truth.means[k]
        gain = cov[np.ix_(rest, at)] @ np.linalg.inv(cov[np.ix_(at, at)])
        center = mean[rest] + gain @ (x[1 + at] - mean[at])
        left = cov[np.ix_(rest, rest)] - gain @ cov[np.ix_(at, rest)]
        out[1 + rest] = center + np.linalg.cholesky(left) @ stats.norm.ppf(u[1 + rest])
    if not known[-1]:
        out[-1] = first_above(truth.child[k], u[-1])
    return out


@pytest.mark.parametrize("seed", [0, 1])
def test_draws_of_the_benchmark_follow_from_its_parameters(seed):
    truth = ClusteredGaussian.random(3, 3, n_classes=4, random_state=seed)
    frame = truth.sample(3, random_state=seed)
    X = truth.layout_.encode(frame)
    noise = np.random.default_rng(seed).random((3, 4, 5))
    for known in all_coalitions(5):
        draws = truth.draw(frame, known, noise)
        for row, draw in itertools.product(range(3), range(4)):
            expected = plain_clustered(truth, X[row], known, noise[row, draw])
            np.testing.assert_allclose(draws[row, draw], expected, rtol=1e-9, atol=1e-9)


def test_parameters_of_the_benchmark_are_random_and_rows_have_its_types():
    truth = ClusteredGaussian.random(4, 2, n_classes=3, spread=0.0, random_state=0)
    assert (truth.means == 0).all()
    assert truth.means.shape == (4, 2)
    assert truth.covariances.shape == (4, 2, 2)
    assert truth.child.shape == (4, 3)
    np.testing.assert_allclose(truth.child.sum(axis=1), 1.0)
    assert truth.weights.sum() == pytest.approx(1.0)
    assert truth.feature_names_ == ("cluster", "x1", "x2", "child")
    wide = ClusteredGaussian.random(400, 3, spread=2.0, random_state=0)
    assert wide.means.std() == pytest.approx(2.0, abs=0.2)
    # Wishart with two degrees of freedom more than numbers: the mean is the identity.
    np.testing.assert_allclose(wide.covariances.mean(axis=0), np.eye(3), atol=0.25)
    rows = truth.sample(500, random_state=1)
    assert rows["cluster"].cat.categories.tolist() == ["g0", "g1", "g2", "g3"]
    assert rows["child"].cat.categories.tolist() == ["c0", "c1", "c2"]
    assert truth.fit(None) is truth
