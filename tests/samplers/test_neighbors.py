import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest

from dsage.games import LossGame
from dsage.samplers import Marginal, Neighbors, inversion


def correlated(n_rows, seed=0):
    """Rows of a Gaussian with three dependent features, and its covariance."""
    mixing = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.5, -0.5, 0.7]])
    return np.random.default_rng(seed).normal(size=(n_rows, 3)) @ mixing.T, mixing @ mixing.T


def mixed(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    number = rng.normal(size=n_rows)
    return pd.DataFrame(
        {
            "number": number,
            "class": np.where(number + 0.2 * rng.normal(size=n_rows) > 0, "hi", "lo"),
            "other": rng.integers(3, size=n_rows).astype(str),
        }
    )


def frequencies(sampler, row, known, n_grid=20_000):
    """How often each training row (in the sampler's order) is drawn, on an even grid of noise."""
    noise = np.full((1, n_grid, sampler.n_features_), 0.5)
    noise[0, :, 0] = (np.arange(n_grid) + 0.5) / n_grid
    draws = sampler.draw(row, known, noise)[0]
    unknown = ~known
    counts = [(draws[:, unknown] == other[unknown]).all(axis=1).sum() for other in sampler.rows_]
    return np.array(counts) / n_grid


def test_rows_are_drawn_with_the_kernels_weights_of_mahalanobis_distance():
    X, _ = correlated(40)
    known = np.array([True, True, False])
    bandwidth = 0.4
    sampler = Neighbors(bandwidth=bandwidth).fit(X)
    covariance = np.cov(X[:, known].T, bias=True)
    point = np.array([[0.5, -0.3, 0.0]])
    difference = sampler.rows_[:, known] - point[:, known]
    squares = np.einsum("ij,jk,ik->i", difference, np.linalg.inv(covariance), difference) / (2 * 2)
    weights = np.exp(-squares / (2 * bandwidth**2))
    expected = weights / weights.sum()
    observed = frequencies(sampler, point, known)
    # Every row takes an interval of the grid: at most one point off at either end.
    assert np.abs(observed - expected).max() <= 2 / 20_000


def test_rows_are_drawn_with_the_kernels_weights_of_gowers_distance():
    frame = mixed(40)
    known = np.array([True, True, False])
    sampler = Neighbors(bandwidth=0.3, discrete=()).fit(frame)
    # Distances are compared up to their scale, which is estimated from random pairs.
    row = sampler.layout_.encode(frame)[:1]
    spread = np.ptp(frame["number"])
    gower = (
        np.abs(sampler.rows_[:, 0] - row[0, 0]) / spread + (sampler.rows_[:, 1] != row[0, 1])
    ) / 2
    weights = sampler._weights(row, known)[0]
    logs = -np.log(weights)
    np.testing.assert_allclose(logs / logs.max(), gower**2 / (gower**2).max(), atol=1e-12)


def test_strangers_are_at_distance_one_for_any_coalition():
    X, _ = correlated(400)
    sampler = Neighbors(bandwidth=1.0).fit(X)
    for known in ([True, False, False], [True, True, False], [True, True, True]):
        squares = sampler._mahalanobis(X, np.array(known))
        assert squares.mean() == pytest.approx(1.0, rel=1e-9)
    frame = mixed(400)
    sampler = Neighbors(bandwidth=1.0).fit(frame)
    matrix = sampler.layout_.encode(frame)
    for known in ([True, False, False], [False, True, True], [True, True, True]):
        squares = sampler._gower(matrix, np.array(known))
        # Estimated from 4,096 random pairs.
        assert squares.mean() == pytest.approx(1.0, abs=5 * squares.std() / np.sqrt(4096))


def test_unknown_features_are_copied_together_from_one_training_row():
    X, _ = correlated(60)
    known = np.array([True, False, False])
    noise = np.random.default_rng(1).random((5, 20, 3))
    draws = Neighbors().fit(X).draw(X[:5], known, noise)
    seen = {tuple(row) for row in X[:, 1:].tolist()}
    assert {tuple(row) for row in draws[:, :, 1:].reshape(-1, 2).tolist()} <= seen


def test_a_tiny_bandwidth_finds_the_row_itself_and_a_huge_one_forgets():
    X, _ = correlated(50)
    known = np.array([True, True, False])
    noise = np.random.default_rng(1).random((50, 30, 3))
    near = Neighbors(bandwidth=1e-6).fit(X).draw(X, known, noise)
    np.testing.assert_array_equal(near, np.repeat(X[:, None], 30, axis=1))
    far = frequencies(Neighbors(bandwidth=1e6).fit(X), X[:1], known)
    np.testing.assert_allclose(far, 1 / 50, atol=2 / 20_000)


@pytest.mark.parametrize("far", [1e9, 1e17, 1e160, 1.7e308])
def test_a_row_far_from_all_gets_the_nearest(far):
    X, _ = correlated(50)
    known, noise = np.array([True, False, False]), np.full((2, 1, 3), 0.5)
    points = np.array([[far, 0.0, 0.0], [-far, 0.0, 0.0]])
    ends = [np.argmax(X[:, 0]), np.argmin(X[:, 0])]
    sampler = Neighbors(bandwidth=1e-3).fit(X)
    np.testing.assert_array_equal(sampler.draw(points, known, noise)[:, 0, 1:], X[ends, 1:])
    np.testing.assert_allclose(sampler.mean(points, known)[:, 1:], X[ends, 1:])
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(b=np.where(X[:, 1] > 0, "hi", "lo"))
    rows = frame.iloc[:2].assign(a=[far, -far])
    draws = Neighbors(bandwidth=1e-3).fit(frame).draw(rows, known, noise)
    np.testing.assert_array_equal(draws[:, 0, 2], X[ends, 2])


def test_only_the_nearest_rows_are_drawn_when_their_number_is_given():
    X, _ = correlated(50)
    known = np.array([True, False, False])
    sampler = Neighbors(bandwidth=10.0, n_neighbors=4).fit(X)
    drawn = frequencies(sampler, X[:1], known) > 0
    nearest = np.argsort(np.abs(sampler.rows_[:, 0] - X[0, 0]))[:4]
    assert set(np.flatnonzero(drawn)) == set(nearest)
    assert (frequencies(Neighbors(bandwidth=10.0, n_neighbors=500).fit(X), X[:1], known) > 0).all()


def test_nothing_known_is_the_marginal_distribution():
    X, _ = correlated(50)
    observed = frequencies(Neighbors().fit(X), X[:1], np.zeros(3, bool))
    np.testing.assert_allclose(observed, 1 / 50, atol=2 / 20_000)


def test_draws_approach_the_conditional_distribution_of_a_gaussian():
    X, covariance = correlated(20_000)
    sampler = Neighbors().fit(X)
    known = np.array([True, False, True])
    rows = correlated(40, seed=5)[0]
    slope = covariance[1, [0, 2]] @ np.linalg.inv(covariance[np.ix_([0, 2], [0, 2])])
    exact = rows[:, [0, 2]] @ slope
    variance = covariance[1, 1] - slope @ covariance[[0, 2], 1]
    means = sampler.mean(rows, known)[:, 1]
    # Smoothing biases the mean towards the middle; it is a tenth of what the features explain.
    explained = np.sqrt(covariance[1, 1] - variance)
    assert np.sqrt(np.mean((means - exact) ** 2)) < 0.1 * explained
    noise = np.random.default_rng(2).random((40, 500, 3))
    spread = sampler.draw(rows, known, noise)[:, :, 1].var(axis=1).mean()
    assert spread == pytest.approx(variance, rel=0.15)


def energy_score(draws, rows):
    miss = np.linalg.norm(draws - rows[:, None], axis=2).mean()
    n_draws = draws.shape[1]
    pairs = np.linalg.norm(draws[:, :, None] - draws[:, None], axis=3).sum(axis=(1, 2)).mean()
    return miss - pairs / (2 * n_draws * (n_draws - 1))


@pytest.mark.parametrize("kind", ["continuous", "mixed"])
def test_it_beats_the_marginal_distribution_on_held_out_rows(kind):
    train, test = (
        (correlated(500)[0], correlated(200, 1)[0])
        if kind == "continuous"
        else (mixed(500), mixed(200, 1))
    )
    noise = np.random.default_rng(2).random((200, 30, 3))
    known = np.array([False, True, False])
    scores = []
    for sampler in (Neighbors().fit(train), Marginal().fit(train)):
        draws = sampler.draw(test, known, noise)[:, :, [0]]
        scores.append(energy_score(draws, sampler.layout_.encode(test)[:, [0]]))
    assert scores[0] < 0.85 * scores[1]


def test_the_mean_is_the_weighted_mean_of_training_rows():
    X, _ = correlated(30)
    sampler = Neighbors(bandwidth=0.5).fit(X)
    known = np.array([True, False, False])
    weights = sampler._weights(X[:4], known)
    expected = weights @ sampler.rows_[:, 1:] / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(sampler.mean(X[:4], known)[:, 1:], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "share"), [(lambda: correlated(90)[0], 1.0), (lambda: mixed(90), 0.5)]
)
@pytest.mark.parametrize("n_known", [1, 2])
def test_the_default_bandwidth_is_scotts_rule(make, share, n_known):
    X = make()
    known = np.arange(3) < n_known
    rule = share * 90 ** (-1 / (n_known + 4)) / np.sqrt(2 * n_known)
    noise = np.random.default_rng(0).random((90, 40, 3))
    drawn = [
        Neighbors(**options).fit(X).draw(X, known, noise) for options in ({}, {"bandwidth": rule})
    ]
    np.testing.assert_array_equal(*drawn)
    assert (Neighbors(bandwidth=2 * rule).fit(X).draw(X, known, noise) != drawn[0]).any()


def test_copied_and_constant_columns_are_named_in_a_warning_and_left_out():
    X, _ = correlated(60)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(copy=X[:, 0], same=1.0)
    with pytest.warns(UserWarning, match=r"\['a', 'copy', 'same'\] are constant or determine"):
        sampler = Neighbors(bandwidth=0.3).fit(frame)
    plain = Neighbors(bandwidth=0.3).fit(frame[["a", "b", "c"]])
    noise = np.random.default_rng(0).random((60, 5, 5))
    drawn = sampler.draw(frame, np.array([True, True, False, True, True]), noise)
    expected = plain.draw(frame, np.array([True, True, False]), noise[:, :, :3])
    # The orders of the training rows may differ: compare the weights instead of the draws.
    np.testing.assert_allclose(
        np.sort(sampler._weights(drawn[:, 0], np.array([True, True, False, True, True])), axis=1),
        np.sort(plain._weights(expected[:, 0], np.array([True, True, False])), axis=1),
        atol=1e-9,
    )


def test_data_without_degeneracy_fit_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Neighbors().fit(correlated(60)[0])


def test_bad_options_are_refused():
    X, _ = correlated(10)
    with pytest.raises(ValueError, match="bandwidth must be \"scott\" or a number; got 'wide'"):
        Neighbors(bandwidth="wide").fit(X)
    with pytest.raises(ValueError, match=r"bandwidth must be in \(0"):
        Neighbors(bandwidth=0.0).fit(X)
    with pytest.raises(ValueError, match="n_neighbors must be at least 1"):
        Neighbors(n_neighbors=0).fit(X)


# Draws along orderings


def one_hot(n_rows, seed=0):
    """A number, codes, and three columns of zeros and ones that exclude each other."""
    rng = np.random.default_rng(seed)
    number = rng.normal(size=n_rows)
    state = np.digitize(number + rng.normal(size=n_rows), [-0.5, 0.5])
    return pd.DataFrame(
        {
            "number": number,
            "codes": 2.5 * np.digitize(number + rng.normal(size=n_rows), [-1.0, 1.0]),
            **{f"is_{k}": (state == k).astype(float) for k in range(3)},
        }
    )


MADE = {
    "numbers": lambda n_rows, seed=0: correlated(n_rows, seed)[0],
    "mixed": mixed,
    "one-hot": one_hot,
}


@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
@pytest.mark.parametrize("options", [{}, {"bandwidth": 0.2}, {"n_neighbors": 7}])
@pytest.mark.parametrize("kind", MADE)
def test_prefixes_of_any_ordering_are_the_draws_for_these_coalitions(kind, options):
    sampler, rng = Neighbors(**options).fit(MADE[kind](200)), np.random.default_rng(3)
    X, n_features = MADE[kind](30, 1), sampler.n_features_
    noise = rng.random((30, 20, n_features))
    for order in (rng.permutation(n_features) for _ in range(4)):
        for length, draws in sampler.ordering(order).prefixes(X, sampler.prepare(noise)):
            known = np.isin(np.arange(n_features), order[:length])
            # Rounding might move one draw in 1e12 to the next training row.
            np.testing.assert_array_equal(draws, sampler.draw(X, known, noise))


@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
@pytest.mark.parametrize("kind", MADE)
def test_prefixes_are_the_same_in_any_split_and_for_any_lengths(kind, monkeypatch):
    sampler, X = Neighbors().fit(MADE[kind](100)), MADE[kind](50, 1)
    n_features = sampler.n_features_
    noise = np.random.default_rng(0).random((50, 6, n_features))
    ordering = sampler.ordering(np.arange(n_features)[::-1])
    whole = {length: draws.copy() for length, draws in ordering.prefixes(X, noise)}
    for rows in (slice(0, 1), slice(1, 30), slice(30, 50)):
        for length, draws in ordering.prefixes(X[rows], noise[rows], [1, n_features - 1]):
            np.testing.assert_array_equal(draws, whole[length][rows])
            with pytest.raises(ValueError, match="read-only"):
                draws[0] = 0.0
    monkeypatch.setattr(inversion, "CELLS", 250)
    for length, draws in ordering.prefixes(X, noise):
        np.testing.assert_array_equal(draws, whole[length])


def test_prefixes_leave_out_columns_that_the_ones_before_determine():
    X, _ = correlated(80)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(copy=X[:, 0], same=1.0)
    with pytest.warns(UserWarning, match="are constant or determine"):
        sampler = Neighbors().fit(frame)
    noise = np.random.default_rng(0).random((80, 10, 5))
    for order in ([4, 0, 3, 1, 2], [3, 1, 0, 4, 2]):
        for length, draws in sampler.ordering(order).prefixes(frame, noise):
            known = np.isin(np.arange(5), order[:length])
            np.testing.assert_array_equal(draws, sampler.draw(frame, known, noise))


def test_a_class_that_random_pairs_share_still_counts():
    frame = mixed(40_000).assign(rare=["b"] + ["a"] * 39_999)
    sampler = Neighbors().fit(frame)
    assert sampler._products[3, 3] == 0.0
    noise = np.random.default_rng(0).random((1, 5, 4))
    ((_, draws),) = sampler.ordering([3, 0, 1, 2]).prefixes(frame[:1], noise, [1])
    known = np.array([False, False, False, True])
    np.testing.assert_array_equal(draws, sampler.draw(frame[:1], known, noise))


def test_a_row_far_from_all_gets_the_nearest_along_an_ordering():
    X, _ = correlated(50)
    points = np.array([[1e17, 0.0, 0.0], [-1e17, 0.0, 0.0]])
    ordering = Neighbors(bandwidth=1e-3).fit(X).ordering([0, 1, 2])
    ((_, draws),) = ordering.prefixes(points, np.full((2, 1, 3), 0.5), [1])
    ends = [np.argmax(X[:, 0]), np.argmin(X[:, 0])]
    np.testing.assert_array_equal(draws[:, 0, 1:], X[ends, 1:])


@pytest.mark.filterwarnings("ignore:The columns:UserWarning")
def test_patterns_of_exclusive_columns_that_are_known_in_part_occur():
    X = one_hot(300)
    sampler = Neighbors(bandwidth=100.0).fit(X)
    noise = np.random.default_rng(0).random((300, 10, 5))
    for length, draws in sampler.ordering([2, 0, 3, 1, 4]).prefixes(X, noise):
        assert (draws[..., 2:].sum(axis=-1) == 1).all(), length
        assert np.isin(draws[..., 1], X["codes"]).all()


def test_features_after_the_last_prefix_are_not_looked_at_and_others_are_checked():
    X, _ = correlated(40)
    ordering, noise = Neighbors().fit(X).ordering([2, 0, 1]), np.full((5, 3, 3), 0.3)
    hidden = X[:5].copy()
    hidden[:, 1] = np.nan
    for length, draws in ordering.prefixes(hidden, noise, [0, 2]):
        ((_, expected),) = ordering.prefixes(X[:5], noise, [length])
        np.testing.assert_array_equal(draws, expected)
    with pytest.raises(ValueError, match="finite and without missing values"):
        ordering.prefixes(hidden, noise, [3])
    with pytest.raises(ValueError, match="lengths must be ascending"):
        ordering.prefixes(X[:5], noise, [2, 1])
    with pytest.raises(ValueError, match="noise must be of shape"):
        ordering.prefixes(X[:5], noise[1:])
    with pytest.raises(ValueError, match=r"order must be a permutation of 0 \.\. 2"):
        Neighbors().fit(X).ordering([0, 0, 1])


def test_a_sampler_is_pickled_without_the_orderings_that_it_used():
    X, _ = correlated(500)
    sampler = Neighbors().fit(X)
    before = len(pickle.dumps(sampler))
    sampler.ordering([2, 0, 1])
    assert len(pickle.dumps(sampler)) == before


def test_memory_along_an_ordering_is_that_of_draws_and_a_few_distances():
    X = MADE["numbers"](4000)
    ordering = Neighbors().fit(X).ordering([1, 2, 0])
    noise = np.random.default_rng(0).random((2000, 8, 3))
    tracemalloc.start()
    try:
        for _ in ordering.prefixes(X[:2000], noise):
            pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Four prefixes of three features: numbers of rows, draws, and the rows themselves in some
    # copies. All distances at once would be 64 MB.
    assert peak < 3 * noise.nbytes + 8 * X[:2000].nbytes + 8 * 8 * inversion.CELLS


def test_games_draw_along_orderings():
    X = pd.DataFrame(correlated(200)[0], columns=list("abc"))
    game = LossGame(lambda frame: frame["a"] * frame["b"], Neighbors().fit(X), X[:30], X["c"][:30])
    assert game.has_paths
    orders, rows = np.array([[2, 0, 1], [1, 2, 0]]), np.arange(30)
    along = game.path_risks(orders, rows, 0, np.ones((2, 4), bool))
    for order, risks in zip(orders, along, strict=True):
        known = np.array([np.isin(np.arange(3), order[:length]) for length in range(4)])
        np.testing.assert_allclose(risks, game.risks(known, rows, 0), rtol=1e-12)


def test_rows_with_categories_that_training_lacks_are_drawn_for_coalition_by_coalition():
    frame = mixed(100)
    target = pd.Series(np.arange(5.0))

    def count(rows):
        return (rows["class"] == "hi").to_numpy(float)

    plain = LossGame(count, Neighbors().fit(frame), frame[:5], target)
    odd = LossGame(count, Neighbors().fit(frame), frame[:5].assign(other="odd"), target)
    assert plain.has_paths
    assert not odd.has_paths


@pytest.mark.parametrize("is_mixed", [False, True])
def test_rows_are_kept_in_the_order_of_their_first_principal_component(is_mixed):
    rng = np.random.default_rng(0)
    z = rng.normal(size=60)
    X = np.column_stack(
        [10 * z + rng.normal(size=60), rng.normal(size=60), z - 0.3 * rng.normal(size=60)]
    )
    X = np.column_stack([X, np.full(60, 4.0)])
    if is_mixed:
        X[:, 1] = rng.integers(3, size=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = Neighbors(discrete=["X2"] if is_mixed else ()).fit(X)
    standard = (X - X.mean(axis=0))[:, :3] / X[:, :3].std(axis=0)
    first = standard @ np.linalg.svd(standard, full_matrices=False)[2][0]
    order = np.argsort(first)
    kept = sampler.rows_
    assert np.array_equal(kept, X[order]) or np.array_equal(kept, X[order[::-1]])


@pytest.mark.parametrize("is_mixed", [False, True])
@pytest.mark.parametrize("n_neighbors", [None, 1, 7, 30])
def test_weights_are_those_of_plain_distances(is_mixed, n_neighbors):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4)) @ np.triu(np.ones((4, 4)))
    if is_mixed:
        X[:, 1], X[:, 3] = rng.integers(3, size=30), rng.integers(2, size=30)
    classes = [1, 3] if is_mixed else []
    names = [f"X{at + 1}" for at in classes]
    sampler = Neighbors(discrete=names, n_neighbors=n_neighbors).fit(X)
    point, rows = X[:1] + 0.1 * ~np.isin(np.arange(4), classes), sampler.rows_
    for known in ([0], [1], [2, 0], [3, 1], [0, 1, 2], [0, 1, 2, 3]):
        mask = np.isin(np.arange(4), known)
        bandwidth = 30 ** (-1 / (len(known) + 4)) / np.sqrt(2 * len(known))
        if is_mixed:
            bandwidth /= 2

            def gower(a, b, known=known):
                parts = [
                    (a[at] != b[at]) if at in classes else abs(a[at] - b[at]) / np.ptp(X[:, at])
                    for at in known
                ]
                return sum(parts)

            squares = np.array([gower(point[0], row) ** 2 for row in rows])
            # Of random pairs, which are estimated.
            unit = np.mean([gower(a, b) ** 2 for a in rows for b in rows])
        else:
            inverse = np.linalg.inv(np.cov(X[:, known].T, bias=True).reshape(len(known), -1))
            off = (rows - point)[:, known]
            squares, unit = np.einsum("ij,jk,ik->i", off, inverse, off), 2 * len(known)
        squares = squares - squares.min()
        weights = np.exp(-squares / (2 * bandwidth**2 * unit))
        if n_neighbors is not None:
            weights[squares > np.sort(squares)[n_neighbors - 1]] = 0.0
        found = sampler._weights(point, mask)[0]
        np.testing.assert_allclose(
            found, weights, rtol=0.05 if is_mixed else 1e-8, atol=0.01 * is_mixed
        )


def test_a_class_of_one_category_is_a_class_too():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=40), "b": rng.normal(size=40), "c": "only"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = Neighbors(bandwidth=0.3).fit(frame)
    rows, known = sampler.rows_, np.array([True, True, True])
    apart = (np.abs(rows - rows[:1]) / np.array([*np.ptp(rows[:, :2], axis=0), 1.0])).sum(axis=1)
    weights = sampler._weights(rows[:1], known)[0]
    # Gower's distance adds differences, not their squares: only their scale is estimated.
    ratio = np.log(weights[1:]) / apart[1:] ** 2
    np.testing.assert_allclose(ratio, ratio[0])
