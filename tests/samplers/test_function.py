import numpy as np
import pandas as pd
import pytest

from dsage.samplers import FunctionSampler

KNOWN = np.array([True, False, True])


def normal(x_known, known, rng):
    return x_known.sum(axis=1, keepdims=True) + rng.standard_normal((len(x_known), (~known).sum()))


def uniforms(n_rows, n_draws=4, seed=0):
    return np.random.default_rng(seed).random((n_rows, n_draws, 3))


def test_the_function_gets_one_row_at_a_time_repeated_for_each_draw():
    calls = []

    def record(x_known, known, rng):
        calls.append((x_known.copy(), known.copy()))
        return np.zeros((len(x_known), 1))

    X = np.arange(6.0).reshape(2, 3)
    FunctionSampler(record).fit(X).draw(X, KNOWN, uniforms(2))
    assert len(calls) == 2
    for row, (x_known, known) in enumerate(calls):
        np.testing.assert_array_equal(x_known, np.repeat(X[row : row + 1, KNOWN], 4, axis=0))
        np.testing.assert_array_equal(known, KNOWN)


def test_draws_are_the_functions_with_a_generator_that_depends_on_the_rows_noise_only():
    X = np.zeros((3, 3))
    sampler = FunctionSampler(normal).fit(X)
    noise = uniforms(3)
    noise[2] = noise[0]
    draws = sampler.draw(X, KNOWN, noise)
    np.testing.assert_array_equal(draws[0], draws[2])
    assert (draws[0, :, 1] != draws[1, :, 1]).all()
    assert len(set(draws[0, :, 1])) == 4


def test_any_feature_of_the_noise_changes_the_stream():
    X = np.zeros((1, 3))
    sampler = FunctionSampler(normal).fit(X)
    noise = uniforms(1)
    for feature in range(3):
        other = noise.copy()
        other[0, 3, feature] = np.nextafter(other[0, 3, feature], 1.0)
        assert (sampler.draw(X, KNOWN, other) != sampler.draw(X, KNOWN, noise))[:, :, 1].all()


def test_coalitions_that_share_noise_share_the_stream():
    def first(x_known, known, rng):
        return np.repeat(rng.random((len(x_known), 1)), (~known).sum(), axis=1)

    X = np.zeros((1, 3))
    sampler = FunctionSampler(first).fit(X)
    noise = uniforms(1)
    one = sampler.draw(X, np.array([False, False, True]), noise)
    other = sampler.draw(X, np.array([True, False, True]), noise)
    np.testing.assert_array_equal(one[:, :, 1], other[:, :, 1])


def test_streams_of_different_rows_are_uniform_and_uncorrelated():
    def one(x_known, known, rng):
        return rng.random((len(x_known), 1))

    n_rows = 2000
    X = np.zeros((n_rows, 3))
    draws = FunctionSampler(one).fit(X).draw(X, KNOWN, uniforms(n_rows, 2))[:, :, 1]
    assert abs(draws.mean() - 0.5) < 5 * np.sqrt(1 / 12 / draws.size)
    assert abs(np.corrcoef(draws.T)[0, 1]) < 5 / np.sqrt(n_rows)
    assert abs(np.corrcoef(draws[:-1, 0], draws[1:, 0])[0, 1]) < 5 / np.sqrt(n_rows)


def test_changing_its_mask_does_not_change_the_coalition():
    def vandal(x_known, known, rng):
        known[:] = True
        x_known[:] = -1.0
        return np.zeros((len(x_known), 1))

    X = np.ones((2, 3))
    draws = FunctionSampler(vandal).fit(X).draw(X, KNOWN, uniforms(2))
    np.testing.assert_array_equal(draws[0, 0], [1.0, 0.0, 1.0])


def test_results_of_the_wrong_shape_are_refused():
    X = np.zeros((1, 3))
    sampler = FunctionSampler(lambda x_known, known, rng: np.zeros(len(x_known))).fit(X)
    with pytest.raises(
        ValueError, match=r"result of function must be of shape .*\(4, 1\); got \(4,\)"
    ):
        sampler.draw(X, KNOWN, uniforms(1))


@pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "a"), (np.inf, "a"), (2.0, "b"), (0.5, "b"), (-1.0, "b")]
)
def test_results_that_are_not_finite_or_no_codes_are_refused(value, name):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [1.0, 2.0]})

    def draw(x_known, known, rng):
        made = np.zeros((len(x_known), 2))
        made[-1, 0 if name == "a" else 1] = value
        return made

    sampler = FunctionSampler(draw).fit(frame)
    with pytest.raises(ValueError, match=rf"got \['{name}'\]\. The draws of these columns are not"):
        sampler.draw(frame, np.array([False, False, True]), uniforms(2))


def test_what_is_no_function_is_refused():
    with pytest.raises(
        TypeError, match=r"function must be a callable \(x_known, known, rng\) -> draws"
    ):
        FunctionSampler("normal").fit(np.zeros((1, 2)))
