import numpy as np
import pandas as pd
import pytest

from dsage.samplers import Marginal


def grid(n_rows, n_features):
    """One draw in the middle of each interval of length 1 / n_rows, the same for all features."""
    middle = (np.arange(n_rows) + 0.5) / n_rows
    return np.tile(middle[None, :, None], (1, 1, n_features))


def background(seed=0, n_rows=7):
    return np.random.default_rng(seed).normal(size=(n_rows, 3))


def test_joint_draws_are_the_background_rows_each_once():
    X = background()
    known = np.array([False, True, False])
    draws = Marginal().fit(X).draw(np.full((1, 3), 9.0), known, grid(7, 3))
    np.testing.assert_array_equal(draws[0][:, ~known], X[:, ~known])
    assert (draws[0, :, 1] == 9.0).all()


def test_joint_draws_take_the_row_from_the_first_features_noise_alone():
    X = background()
    sampler = Marginal().fit(X)
    noise = np.random.default_rng(1).random((4, 5, 3))
    other = noise.copy()
    other[:, :, 1:] = 0.5
    for known in ([False, False, False], [True, False, False]):
        mask = np.array(known)
        np.testing.assert_array_equal(
            sampler.draw(X[:4], mask, noise), sampler.draw(X[:4], mask, other)
        )


def test_coalitions_that_share_noise_share_the_background_row():
    X = background()
    sampler = Marginal().fit(X)
    noise = np.random.default_rng(1).random((2, 50, 3))
    none = sampler.draw(X[:2], np.zeros(3, bool), noise)
    one = sampler.draw(X[:2], np.array([True, False, False]), noise)
    np.testing.assert_array_equal(none[:, :, 1:], one[:, :, 1:])


def test_independent_draws_are_quantiles_of_their_own_noise():
    X = background()
    noise = grid(7, 3)
    noise[:, :, 1] = noise[:, ::-1, 1]
    draws = Marginal(joint=False).fit(X).draw(X[:1], np.zeros(3, bool), noise)[0]
    ordered = np.sort(X, axis=0)
    np.testing.assert_array_equal(draws[:, 0], ordered[:, 0])
    np.testing.assert_array_equal(draws[:, 1], ordered[::-1, 1])


def test_independent_draws_have_no_correlation_where_the_background_has():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(500, 1)), 2, axis=1)
    noise = rng.random((1, 4000, 2))
    joint, apart = (
        np.corrcoef(Marginal(joint=value).fit(X).draw(X[:1], np.zeros(2, bool), noise)[0].T)[0, 1]
        for value in (True, False)
    )
    assert joint > 1 - 1e-12
    assert abs(apart) < 5 / np.sqrt(4000)


def test_the_mean_is_that_of_the_background():
    X = background()
    known = np.array([False, True, False])
    for joint in (True, False):
        means = Marginal(joint=joint).fit(X).mean(X[:2], known)
        np.testing.assert_array_equal(means[:, 1], X[:2, 1])
        np.testing.assert_allclose(means[:, [0, 2]], X.mean(axis=0)[[0, 2]][None].repeat(2, axis=0))


def test_noise_at_the_ends_stays_inside():
    X = background()
    ends = np.tile(np.array([np.nextafter(0, 1), np.nextafter(1, 0)])[None, :, None], (1, 1, 3))
    draws = Marginal().fit(X).draw(X[:1], np.zeros(3, bool), ends)[0]
    np.testing.assert_array_equal(draws, X[[0, -1]])


def test_rows_that_are_drawn_alike_are_told_only_of_joint_draws():
    X = np.arange(12.0).reshape(4, 3)

    class Own(Marginal):
        """Might draw otherwise."""

    np.testing.assert_array_equal(Marginal().fit(X).equal_rows, X)
    assert Marginal(joint=False).fit(X).equal_rows is None
    assert Own().fit(X).equal_rows is None


def one_by_one(sampler, rows, known, noise):
    return np.stack([sampler.draw_rows(rows, each, noise) for each in known])


@pytest.mark.parametrize("options", [{}, {"joint": False}, {"dtype": "float32"}])
def test_several_coalitions_at_once_are_drawn_as_one_by_one(options):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 4))
    X[rng.random(X.shape) < 0.2] = np.nan
    sampler = Marginal(**options).fit(X)
    known, noise = rng.random((9, 4)) < 0.5, rng.random((6, 5, 4))
    known[0], known[1] = False, True
    found = sampler.draw_coalitions(X[:6], known, noise)
    np.testing.assert_array_equal(found, one_by_one(sampler, X[:6], known, noise))


def test_columns_that_exclude_each_other_do_so_in_several_coalitions():
    rng = np.random.default_rng(3)
    X = np.column_stack([np.eye(3)[rng.integers(3, size=40)], rng.normal(size=40)])
    frame = pd.DataFrame(X, columns=list("abcd"))
    sampler = Marginal(groups={"one": ["a", "b", "c"]}).fit(frame)
    assert sampler.layout_.exclusive
    known, noise = rng.random((12, 4)) < 0.5, rng.random((8, 5, 4))
    found = sampler.draw_coalitions(X[:8], known, noise)
    np.testing.assert_array_equal(found, one_by_one(sampler, X[:8], known, noise))
    assert (found[..., :3].sum(axis=-1) == 1.0).all()
