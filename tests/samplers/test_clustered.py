"""The benchmark of mixed data: its draws against the conditionals that its parameters give."""

import numpy as np
import pandas as pd
import pytest

from dsage.samplers.clustered import ClusteredGaussian

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
