"""Expected predictions of normal scores behind a link."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_expit, logsumexp

from dsage.models import normal_links
from dsage.models.normal_links import expected_outputs


def expected_sigmoid(centers, deviation):
    """Return the two means for one deviation."""
    found = normal_links.expected_sigmoid(centers[None], np.array([deviation]))
    return tuple(each[0] for each in found)


def log_mean(center, deviation):
    """The logarithm of E[sigmoid], from a fine trapezoidal rule that reaches far."""
    z = np.linspace(-12.0, 12.0 + deviation, 40_001)
    logs = log_expit(center + deviation * z) - z * z / 2.0
    return logsumexp(logs) + np.log((z[1] - z[0]) / np.sqrt(2.0 * np.pi))


@settings(deadline=None)
@given(st.floats(-300.0, 300.0), st.floats(0.0, 20.0))
def test_both_probabilities_have_nine_digits(center, deviation):
    mean, rest = (each[0] for each in expected_sigmoid(np.array([center]), deviation))
    for found, sign in ((mean, 1.0), (rest, -1.0)):
        wanted = log_mean(sign * center, deviation)
        assert np.log(found) == pytest.approx(wanted, abs=1e-9 + 1e-11 * abs(wanted))


@given(st.lists(st.floats(-50.0, 50.0), min_size=2, max_size=9), st.floats(0.0, 12.0))
def test_a_row_does_not_depend_on_the_rows_beside_it(centers, deviation):
    together = np.stack(expected_sigmoid(np.array(centers), deviation), axis=1)
    alone = [np.stack(expected_sigmoid(np.array([each]), deviation), axis=1) for each in centers]
    assert np.array_equal(together, np.concatenate(alone))


def test_without_spread_it_is_the_sigmoid():
    centers = np.array([-700.0, -30.0, -1.0, 0.0, 2.0, 700.0])
    mean, rest = expected_sigmoid(centers, 0.0)
    np.testing.assert_allclose(mean, np.exp(log_expit(centers)), rtol=1e-10)
    np.testing.assert_allclose(rest, np.exp(log_expit(-centers)), rtol=1e-10)
    assert expected_sigmoid(np.array([-800.0]), 0.0)[0] == 0.0


def test_the_mean_is_continuous_where_the_formula_changes():
    centers = np.linspace(-30.0, 30.0, 101)
    below, above = (expected_sigmoid(centers, each)[0] for each in (4.0, 4.0 + 1e-12))
    np.testing.assert_allclose(below, above, rtol=2e-9)


def test_the_mean_of_an_exponential():
    found = expected_outputs("exp", np.array([[0.0, 1.0]]), np.array([2.0]))
    np.testing.assert_allclose(found[0], np.exp([[1.0], [2.0]]))


def test_many_laws_at_once_are_those_of_each():
    rng = np.random.default_rng(0)
    centers, deviations = rng.normal(scale=5.0, size=(40, 300)), rng.uniform(0.0, 8.0, size=40)
    together = normal_links.expected_sigmoid(centers, deviations)
    for number, deviation in enumerate(deviations):
        alone = expected_sigmoid(centers[number], deviation)
        assert np.array_equal(together[0][number], alone[0])
        assert np.array_equal(together[1][number], alone[1])
