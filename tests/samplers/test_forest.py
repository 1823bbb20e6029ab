import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from dsage.samplers.clustered import ClusteredGaussian
from dsage.samplers.evaluation import evaluate
from dsage.samplers.forest import Forest, draw_within, find_boxes
from dsage.samplers.leaves import (
    Boxes,
    Leaves,
    Posterior,
    choose_leaves,
    match_moments,
    truncated_moments,
)
from dsage.samplers.marginal import Marginal

TRUTH = ClusteredGaussian.random(3, 3, random_state=3)
TRAIN = TRUTH.sample(1500, random_state=5)
HOLDOUT = TRUTH.sample(300, random_state=99)
N_FEATURES = TRAIN.shape[1]
FOREST = Forest(n_trees=20, random_state=0).fit(TRAIN)


def uniforms(*shape, seed=0):
    return np.random.default_rng(seed).uniform(1e-12, 1, shape)


def test_draws_beat_the_marginal_for_every_size_of_coalition_and_near_the_truth():
    forest, marginal, truth = (
        evaluate(sampler, HOLDOUT, n_coalitions=16)
        for sampler in (FOREST, Marginal().fit(TRAIN), TRUTH)
    )
    gain = forest.compare(marginal).drop(index=[0, "all"])
    assert (gain["difference"] < -4 * gain["se"]).all()
    left = forest.compare(truth).loc["all", "difference"]
    assert left < 0.25 * marginal.compare(truth).loc["all", "difference"]


def test_score_approaches_that_of_the_truth_as_rows_grow():
    best = evaluate(TRUTH, HOLDOUT, n_coalitions=16)
    off = []
    for n_rows in (150, 1500, 6000):
        forest = Forest(n_trees=10, random_state=0).fit(TRUTH.sample(n_rows, random_state=8))
        off.append(
            evaluate(forest, HOLDOUT, n_coalitions=16).compare(best).loc["all", "difference"]
        )
    assert off[0] > 1.5 * off[1] > 2 * off[2]


@settings(max_examples=25, deadline=None)
@given(
    known=st.lists(st.booleans(), min_size=N_FEATURES, max_size=N_FEATURES),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    n_draws=st.integers(1, 9),
)
def test_draws_and_means_are_the_same_to_the_bit_in_any_batch(known, cuts, n_draws):
    known = np.array(known)
    rows, noise = HOLDOUT[:40], uniforms(40, n_draws, N_FEATURES)
    whole = FOREST.draw(rows, known, noise)
    edges = sorted({0, 40, *cuts})
    parts = [FOREST.draw(rows[a:b], known, noise[a:b]) for a, b in itertools.pairwise(edges)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    one = FOREST.draw(rows, known, noise[:, :1])
    np.testing.assert_array_equal(whole[:, :1], one)
    if known[[0, -1]].all():
        single = FOREST.mean(rows[7:8], known)
        np.testing.assert_array_equal(FOREST.mean(rows, known)[7:8], single)


def test_mean_is_the_mean_of_the_draws():
    known = np.array([True, False, True, False, True])
    rows = HOLDOUT[:5]
    draws = FOREST.draw(rows, known, uniforms(5, 20_000, N_FEATURES))
    error = draws.std(axis=1) / np.sqrt(20_000)
    off = np.abs(draws.mean(axis=1) - FOREST.mean(rows, known))
    assert (off[:, ~known] < 4.5 * error[:, ~known]).all()


def test_conditional_class_probabilities_are_bayes_rule_on_the_joint_draws():
    # A discrete pair: joint draws with nothing known have the frequencies of the conditional ones.
    nothing = np.zeros(N_FEATURES, bool)
    joint = FOREST.draw(HOLDOUT[:1], nothing, uniforms(1, 60_000, N_FEATURES))[0]
    known = nothing.copy()
    known[-1] = True
    for child in range(3):
        at = TRUTH.layout_.encode(HOLDOUT[:1])
        at[0, -1] = child
        cluster = FOREST.draw(at, known, uniforms(1, 20_000, N_FEATURES, seed=1))[0, :, 0]
        expected = joint[joint[:, -1] == child, 0]
        for category in range(3):
            share, other = (cluster == category).mean(), (expected == category).mean()
            error = np.sqrt(other * (1 - other) * (1 / 20_000 + 1 / len(expected)))
            assert abs(share - other) < 4.5 * error + 1e-9


def test_leaf_and_what_is_left_of_the_noise_are_independent_and_uniform():
    weights = np.array([0.2, 0.0, 0.4, 0.3, 0.1])
    posterior = Posterior(np.array([0, 5]), np.arange(5), weights)
    leaf, rest = choose_leaves(posterior, np.array([0, 1, 0, 1, 1]), uniforms(1, 40_000, 2))
    counts = np.bincount(leaf[0], minlength=5)
    assert counts[1] == 0
    some = [0, 2, 3, 4]
    assert stats.chisquare(counts[some], 40_000 * weights[some]).pvalue > 1e-4
    for number in some:
        left = rest[leaf == number]
        for feature in range(2):
            assert stats.kstest(left[:, feature], "uniform").pvalue > 1e-4
        assert abs(np.corrcoef(left.T)[0, 1]) < 4.5 / np.sqrt(len(left))


def test_extreme_uniforms_never_choose_a_leaf_without_weight():
    weights = np.array([0.0, 1e-300, 0.0, 1.0, 0.0])
    posterior = Posterior(np.array([0, 5]), np.arange(5), weights)
    extreme = np.array([2.0**-1074, 2.0**-54, 0.5, 1 - 2.0**-53])
    leaf, rest = choose_leaves(posterior, np.zeros(5, int), extreme[None, :, None])
    assert set(leaf[0]) <= {1, 3}
    assert ((rest > 0) & (rest < 1)).all()


def test_leaves_of_hardly_any_weight_are_no_cause_for_a_warning():
    posterior = Posterior(np.array([0, 2]), np.array([0, 1]), np.array([1e-310, 1.0]))
    leaf, rest = choose_leaves(posterior, np.zeros(2, np.intp), np.array([[[0.5]]]))
    assert leaf.tolist() == [[1]]
    np.testing.assert_allclose(rest, 0.5)


def test_leaves_partition_the_rows_and_hold_at_least_min_leaf_of_them():
    X = np.random.default_rng(0).standard_normal((400, 3))
    X[:, 1] += X[:, 0] ** 2
    both = np.concatenate([X, X[np.random.default_rng(1).permutation(400)][:, [1, 0, 2]]])
    told = RandomForestClassifier(5, random_state=0).fit(both, np.repeat([1, 0], 400))
    boxes = find_boxes(told, X, 15)
    assert np.bincount(boxes.leaf_of.ravel()).min() >= 15
    for leaves in boxes.leaf_of:
        assert ((boxes.low[leaves] < X) & (boxes.high[leaves] >= X)).all()
        # Any point is in exactly one leaf of a tree.
        of_tree = np.unique(leaves)
        points = np.random.default_rng(3).normal(0, 3, (200, 1, 3))
        inside = ((points > boxes.low[of_tree]) & (points <= boxes.high[of_tree])).all(axis=2)
        assert (inside.sum(axis=1) == 1).all()


def test_each_leaf_has_the_moments_of_all_its_rows_in_all_trees():
    X = np.array([[1.0], [4.0], [10.0], [13.0], [19.0]])
    leaf_of = np.array([[0, 0, 1, 1, 1], [2, 2, 2, 3, 3]])
    whole = np.full((4, 1), np.inf)
    leaves = Leaves(X, np.zeros(1, int), Boxes(-whole, whole, leaf_of), 1.0)
    rows = [X[leaf_of[tree] == leaf, 0] for tree, leaf in ((0, 0), (1, 2), (0, 1), (1, 3))]
    np.testing.assert_allclose(leaves.mean[0], [values.mean() for values in rows])
    np.testing.assert_allclose(leaves.scale[0], [values.std(ddof=1) for values in rows])
    np.testing.assert_allclose(np.exp(leaves.log_weight), [len(values) / 10 for values in rows])


def test_synthetic_rows_keep_within_the_values_of_one_leaf():
    X = np.column_stack([np.arange(6.0), np.arange(6.0)])
    leaf_of = np.array([[0, 0, 0, 1, 1, 1], [2, 2, 2, 2, 3, 3]])
    made = draw_within(X, leaf_of, np.random.default_rng(0))
    together = [{0, 1, 2}, {3, 4, 5}, {0, 1, 2, 3}, {4, 5}]
    assert all(any({a, b} <= group for group in together) for a, b in made)


def test_truncated_moments_agree_with_scipy():
    rng = np.random.default_rng(0)
    centre, scale = rng.normal(size=50), rng.uniform(0.2, 3, 50)
    low, high = centre + rng.normal(-1, 1, 50), np.full(50, np.inf)
    high[:25] = low[:25] + rng.uniform(0.1, 2, 25)
    mean, variance = truncated_moments(centre, scale, low, high)
    exact = stats.truncnorm((low - centre) / scale, (high - centre) / scale, centre, scale)
    np.testing.assert_allclose(mean, exact.mean(), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(variance, exact.var(), rtol=1e-5)


def test_matched_normals_have_the_moments_asked_for():
    low, high = np.array([-1.0, -np.inf, 0.0]), np.array([1.0, 0.5, np.inf])
    mean, deviation = np.array([0.2, -0.6, 0.9]), np.array([0.45, 0.7, 0.6])
    centre, scale = match_moments(mean, deviation, low, high)
    got, variance = truncated_moments(centre, scale, low, high)
    np.testing.assert_allclose(got, mean, atol=0.02)
    np.testing.assert_allclose(np.sqrt(variance), deviation, rtol=0.05)


def test_constant_column_stays_constant_to_the_bit():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(200), np.full(200, 0.1 + 0.2)])
    draws = (
        Forest(n_trees=5, random_state=0)
        .fit(X)
        .draw(X[:10], np.zeros(2, bool), uniforms(10, 20, 2))
    )
    assert (draws[:, :, 1] == 0.1 + 0.2).all()


def test_zero_inflated_feature_keeps_its_zeros():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(2000)
    X = np.column_stack([x, np.where(x > 0, np.exp(x), 0.0)])
    forest = Forest(n_trees=10, random_state=0).fit(X)
    at = np.array([[-1.0, 0.0], [1.5, 0.0]])
    draws = forest.draw(at, np.array([True, False]), uniforms(2, 1000, 2))[:, :, 1]
    assert (draws[0] == 0).mean() > 0.95
    assert (draws[1] == 0).mean() < 0.05


def test_values_too_far_out_are_drawn_as_if_nothing_was_known_with_a_warning():
    X = np.random.default_rng(0).standard_normal((200, 2))
    forest = Forest(n_trees=5, random_state=0).fit(X)
    noise = uniforms(2, 50, 2)
    rows = np.array([[1e200, 0.0], [0.5, 0.0]])
    known = np.array([True, False])
    with pytest.warns(UserWarning, match="1 rows have values of .'X1'. that no leaf"):
        draws = forest.draw(rows, known, noise)
    np.testing.assert_array_equal(draws[0, :, 1], forest.draw(rows, ~known & False, noise)[0, :, 1])
    np.testing.assert_array_equal(draws[1:], forest.draw(rows[1:], known, noise[1:]))


def test_units_do_not_matter_even_far_from_zero():
    # Trees compare in single precision: standardising keeps their digits.
    numbers = TRAIN[["x1", "x2", "x3"]]
    known, noise = np.array([True, False, False]), uniforms(50, 20, 3)
    plain = Forest(n_trees=5, random_state=0).fit(numbers).draw(numbers[:50], known, noise)
    other = 1e-3 * numbers + 1e6
    drawn = Forest(n_trees=5, random_state=0).fit(other).draw(other[:50], known, noise)
    # On average: at the edge between two leaves a last digit may decide.
    assert np.abs(1e3 * (drawn - 1e6) - plain).mean() < 1e-4


def lognormals(n_rows, sigma, seed):
    """Two columns whose logarithms, over sigma, are standard normals with a correlation of 0.9."""
    rng = np.random.default_rng(seed)
    first, other = rng.standard_normal((2, n_rows))
    return np.exp(sigma * np.column_stack([first, 0.9 * first + np.sqrt(0.19) * other]))


@pytest.mark.parametrize("sigma", [1.0, 3.0, 5.0])
def test_heavy_tails_do_not_hide_the_relation_of_the_others(sigma):
    forest = Forest(random_state=0).fit(lognormals(2000, sigma, 0))
    at = np.exp(sigma * np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]))
    draws = forest.draw(at, np.array([True, False]), uniforms(3, 2000, 2))[:, :, 1]
    logs = np.log(np.maximum(np.median(draws, axis=1), 1e-300)) / sigma
    # The conditional medians are -0.9, 0 and 0.9, the deviations of both sides 0.44; independent
    # draws would have medians of 0.
    assert (np.abs(logs - [-0.9, 0.0, 0.9]) < 0.44).all()


def test_a_column_of_hardly_any_spread_but_far_values_is_scaled_within_single_precision():
    X = np.random.default_rng(0).standard_normal((200, 2))
    X[:, 0] *= 1e-60
    X[0, 0] = 1.0
    draws = Forest(n_trees=3, random_state=0).fit(X).draw(X, np.zeros(2, bool), uniforms(200, 5, 2))
    assert np.isfinite(draws).all()


@pytest.mark.filterwarnings("ignore:Some columns are copies")
def test_without_smoothing_levels_never_seen_together_are_told():
    X = np.array([[0, 0, 1], [1, 1, 0]] * 50).astype(str)
    forest = Forest(n_trees=3, min_leaf=30, smoothing=0.0, random_state=0).fit(X)
    known = np.array([True, True, False])
    with pytest.warns(UserWarning, match="1 rows have values of .'X1', 'X2'."):
        draws = forest.draw(np.array([["0", "1", "0"]]), known, uniforms(1, 500, 3))
    assert 0.3 < draws[0, :, 2].mean() < 0.7
    sure = Forest(n_trees=3, min_leaf=30, random_state=0).fit(X)
    assert np.isfinite(sure.draw(np.array([["0", "1", "0"]]), known, uniforms(1, 5, 3))).all()


def test_shared_noise_couples_the_draws_of_nested_coalitions():
    smaller = np.array([True, False, False, False, False])
    larger = np.array([True, False, True, False, False])
    noise, other = uniforms(200, 20, N_FEATURES), uniforms(200, 20, N_FEATURES, seed=1)
    rows = HOLDOUT[:200]
    first, second = (FOREST.draw(rows, known, noise)[:, :, 3] for known in (smaller, larger))
    apart = FOREST.draw(rows, larger, other)[:, :, 3]
    assert (first - second).var() < 0.5 * (first - apart).var()


def test_polars_frames_come_back_as_they_were():
    frame = pl.from_pandas(TRAIN[:200])
    forest = Forest(n_trees=3, random_state=0).fit(frame)
    draws = forest.draw(frame[:5], np.arange(N_FEATURES) == 0, uniforms(5, 2, N_FEATURES))
    assert forest.layout_.decode(draws[:, 0]).schema == frame.schema


def test_level_without_a_row_can_be_known_and_is_rarely_drawn():
    frame = pd.DataFrame(
        {"c": pd.Categorical(["a", "b"] * 100, ["a", "b", "never"]), "x": np.tile([0.0, 5.0], 100)}
    )
    frame["x"] += np.random.default_rng(0).standard_normal(200)
    forest = Forest(n_trees=5, random_state=0).fit(frame)
    at = pd.DataFrame({"c": pd.Categorical(["never"], ["a", "b", "never"]), "x": [0.0]})
    drawn = forest.draw(at, np.array([True, False]), uniforms(1, 100, 2))
    assert np.isfinite(drawn).all()
    codes = forest.draw(at, np.zeros(2, bool), uniforms(1, 5000, 2))[0, :, 0]
    assert (codes == 2).mean() < 0.05


def test_rounds_end_when_the_forest_cannot_tell_rows_apart():
    independent = np.random.default_rng(0).standard_normal((1000, 3))
    forest = Forest(n_trees=20, random_state=0).fit(independent)
    assert len(forest.accuracies_) < 11
    assert FOREST.accuracies_[0] > 0.6
    assert Forest(n_trees=5, n_rounds=0, random_state=0).fit(TRAIN).accuracies_.__len__() == 1


def test_seed_makes_the_fit_reproducible_and_seeds_differ():
    known, noise = np.zeros(N_FEATURES, bool), uniforms(5, 5, N_FEATURES)
    again = clone(FOREST).fit(TRAIN).draw(HOLDOUT[:5], known, noise)
    np.testing.assert_array_equal(again, FOREST.draw(HOLDOUT[:5], known, noise))
    other = clone(FOREST).set_params(random_state=1).fit(TRAIN)
    assert not np.array_equal(other.draw(HOLDOUT[:5], known, noise), again)


def test_pickled_copy_and_threads_draw_the_same():
    known, noise = np.arange(N_FEATURES) % 2 == 0, uniforms(30, 5, N_FEATURES)
    expected = FOREST.draw(HOLDOUT[:30], known, noise)
    copied = pickle.loads(pickle.dumps(FOREST))
    np.testing.assert_array_equal(copied.draw(HOLDOUT[:30], known, noise), expected)
    with ThreadPoolExecutor(4) as pool:
        for drawn in pool.map(lambda _: FOREST.draw(HOLDOUT[:30], known, noise), range(8)):
            np.testing.assert_array_equal(drawn, expected)


@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_few_rows_make_one_leaf(n_rows):
    X = np.random.default_rng(0).standard_normal((n_rows, 3))
    with pytest.warns(UserWarning, match=f"cannot split {n_rows} rows into leaves of 10") as told:
        forest = Forest(n_trees=3, random_state=0).fit(X)
    assert len(told) == 1
    assert forest.n_leaves_ == 3
    assert np.isfinite(forest.draw(X, np.array([True, False, False]), uniforms(n_rows, 3, 3))).all()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("n_trees", 0, "n_trees must be at least 1; got 0"),
        ("min_leaf", 1.5, "min_leaf must be an integer; got 1.5"),
        ("n_rounds", -1, "n_rounds must be at least 0; got -1"),
        ("smoothing", -1.0, "smoothing must be in"),
    ],
)
def test_wrong_options_are_refused(option, value, words):
    with pytest.raises((TypeError, ValueError), match=words):
        Forest(**{option: value}).fit(np.eye(5))
