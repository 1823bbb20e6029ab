import itertools
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from dsage.samplers import Categorical


def network(n_rows, seed):
    """Rows of a discrete Bayesian network a -> b, a -> c, (b, c) -> d, and its joint table."""
    p_a = np.array([0.5, 0.3, 0.2])
    p_b = np.array([[0.8, 0.2], [0.4, 0.6], [0.1, 0.9]])
    p_c = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    p_d = np.array([[[0.9, 0.1], [0.6, 0.4], [0.5, 0.5]], [[0.3, 0.7], [0.2, 0.8], [0.05, 0.95]]])
    joint = np.einsum("a,ab,ac,bcd->abcd", p_a, p_b, p_c, p_d)
    cells = np.random.default_rng(seed).choice(joint.size, size=n_rows, p=joint.ravel())
    codes = np.stack(np.unravel_index(cells, joint.shape), axis=1)
    labels = [
        np.array(list("pqr")),
        np.array([False, True]),
        np.array(["u", "v", "w"]),
        np.arange(2) + 5,
    ]
    frame = {name: labels[j][codes[:, j]] for j, name in enumerate("abcd")}
    return pd.DataFrame(frame), codes, joint


def all_masks(n_features):
    return [np.array(mask) for mask in itertools.product([False, True], repeat=n_features)]


def even_noise(counts, n_features, unknown):
    """Noise on an even grid: each of the unknown features meets its quantiles equally often."""
    axes = [(np.arange(count) + 0.5) / count for count in counts]
    points = np.array(list(itertools.product(*axes)))
    noise = np.full((1, len(points), n_features), 0.5)
    noise[0, :, unknown] = points.T
    return noise


def test_draws_of_one_feature_have_exactly_the_empirical_conditional_frequencies():
    frame, codes, _ = network(300, seed=0)
    sampler = Categorical(discrete="d").fit(frame)
    for j in range(4):
        known = np.arange(4) != j
        for row in range(0, 300, 25):
            agree = (codes[:, known] == codes[row, known]).all(axis=1)
            n_agree = int(agree.sum())
            noise = even_noise([n_agree], 4, [j])
            drawn = sampler.draw(frame.iloc[[row]], known, noise)[0, :, j]
            np.testing.assert_array_equal(
                np.bincount(drawn.astype(int), minlength=3),
                np.bincount(codes[agree, j], minlength=3),
            )


def test_joint_draws_have_exactly_the_empirical_conditional_frequencies():
    # Eight rows with the known value: 4, 2 and 2 of the first unknown, halves of the second.
    pairs = [(0, 0), (0, 0), (0, 1), (0, 1), (1, 0), (1, 1), (2, 0), (2, 0)]
    X = np.array([(0, *pair) for pair in pairs] + [(1, 2, 1)])
    sampler = Categorical(discrete=["X1", "X2", "X3"]).fit(X)
    known = np.array([True, False, False])
    draws = sampler.draw(X[:1], known, even_noise([8, 2], 3, [1, 2]))[0].astype(int)
    found, counts = np.unique(draws[:, 1:], axis=0, return_counts=True)
    assert dict(zip(map(tuple, found.tolist()), counts.tolist(), strict=True)) == {
        (0, 0): 4, (0, 1): 4, (1, 0): 2, (1, 1): 2, (2, 0): 4,
    }  # fmt: skip


def test_draws_approach_the_conditionals_of_the_network():
    frame, codes, joint = network(200_000, seed=1)
    sampler = Categorical(discrete="d").fit(frame)
    rng = np.random.default_rng(2)
    n_draws = 4000
    for known in all_masks(4):
        if known.all():
            continue
        row = int(rng.integers(len(codes)))
        draws = sampler.draw(frame.iloc[[row]], known, rng.random((1, n_draws, 4)))[0].astype(int)
        index = tuple(codes[row, j] if known[j] else slice(None) for j in range(4))
        exact = joint[index] / joint[index].sum()
        observed = np.zeros(exact.shape)
        np.add.at(observed, tuple(draws[:, ~known].T), 1 / n_draws)
        # Variance of the draws, and of the training rows that agree.
        n_agree = (codes[:, known] == codes[row, known]).all(axis=1).sum()
        error = np.sqrt(exact * (1 - exact) * (1 / n_draws + 1 / n_agree))
        assert (np.abs(observed - exact) <= 5 * error).all()


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_without_back_off_every_draw_is_a_training_row_that_agrees(data):
    n_rows, n_features = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(3, size=(n_rows, n_features))
    sampler = Categorical(discrete=[f"X{j + 1}" for j in range(n_features)]).fit(X)
    known = rng.random(n_features) < 0.5
    draws = sampler.draw(X, known, rng.uniform(1e-12, 1 - 1e-12, (n_rows, 3, n_features)))
    seen = {tuple(row) for row in sampler.layout_.encode(X).tolist()}
    assert {tuple(row) for row in draws.reshape(-1, n_features).tolist()} <= seen
    assert (sampler.n_dropped(X, known) == 0).all()


def informative():
    """In training, `strong` determines the target and `weak` says nothing; (1, 1) never occurs."""
    rows = [("s0", "w0", "t0")] * 6 + [("s0", "w1", "t0")] * 6 + [("s1", "w0", "t1")] * 6
    return pd.DataFrame(rows, columns=["strong", "weak", "target"])


UNSEEN = pd.DataFrame({"strong": ["s1"], "weak": ["w1"], "target": ["t0"]})
NOT_TARGET = np.array([True, True, False])


def test_back_off_drops_the_least_informative_feature_first_and_says_so():
    sampler = Categorical().fit(informative())
    assert sampler.information_[0, 2] > sampler.information_[1, 2]
    noise = np.random.default_rng(0).random((1, 50, 3))
    with pytest.warns(UserWarning, match="1 of 1 rows do not occur .*columns 'weak' were dropped"):
        draws = sampler.draw(UNSEEN, NOT_TARGET, noise)
    assert (draws[0, :, 2] == 1).all()
    np.testing.assert_array_equal(draws[0, :, :2], np.ones((50, 2)))
    assert sampler.n_dropped(UNSEEN, NOT_TARGET).tolist() == [1]


def test_back_off_goes_on_until_rows_agree():
    # No two of the row's known values occur together; `a` alone tells the target.
    X = np.array([["a", "B", "C", "t"], ["A", "b", "C", "T"], ["A", "B", "c", "T"]])
    row = np.array([["a", "b", "c", "T"]])
    known = np.array([True, True, True, False])
    sampler = Categorical().fit(X)
    assert sampler.n_dropped(row, known).tolist() == [2]
    with pytest.warns(UserWarning, match="columns 'X2', 'X3' were dropped"):
        draws = sampler.draw(row, known, np.full((1, 1, 4), 0.5))
    assert sampler.layout_.decode(draws[0]).tolist() == [["a", "b", "c", "t"]]


def test_among_equally_informative_features_the_last_column_goes_first():
    X = np.array([["a", "b", "t"], ["A", "B", "T"]] * 3)
    row = np.array([["a", "B", "T"]])
    sampler = Categorical(on_unseen="ignore").fit(X)
    draws = sampler.draw(row, np.array([True, True, False]), np.full((1, 1, 3), 0.5))
    assert sampler.layout_.decode(draws[0]).tolist() == [["a", "B", "t"]]


def test_a_row_does_not_lose_features_because_another_row_does():
    frame = informative()
    both = pd.concat([UNSEEN, frame.iloc[[0]]])
    assert Categorical().fit(frame).n_dropped(both, NOT_TARGET).tolist() == [1, 0]


def test_unseen_cells_can_be_an_error_or_be_ignored():
    noise = np.full((1, 1, 3), 0.5)
    with pytest.raises(
        ValueError, match="known values must be a combination that occurs in training"
    ):
        Categorical(on_unseen="raise").fit(informative()).draw(UNSEEN, NOT_TARGET, noise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Categorical(on_unseen="ignore").fit(informative()).draw(UNSEEN, NOT_TARGET, noise)


def test_smoothing_adds_pseudo_rows_spread_like_the_margin():
    X = np.array([["x", "p"]] * 3 + [["x", "q"]] + [["y", "q"]] * 4)
    known = np.array([True, False])
    # P(q | x) = (1 + 4 * 5 / 8) / (4 + 4), on a grid of 16.
    draws = Categorical(smoothing=4.0).fit(X).draw(X[:1], known, even_noise([16], 2, [1]))
    assert (draws[0, :, 1] == 1).sum() == 7
    plain = Categorical().fit(X).draw(X[:1], known, even_noise([16], 2, [1]))
    assert (plain[0, :, 1] == 1).sum() == 4


def test_huge_smoothing_forgets_what_is_known():
    frame, codes, _ = network(400, seed=3)
    sampler = Categorical(smoothing=1e12, discrete="d").fit(frame)
    noise = np.random.default_rng(0).random((1, 3000, 4))
    draws = sampler.draw(frame.iloc[:1], np.array([True, False, False, False]), noise)[0]
    for j in (1, 2, 3):
        share = np.bincount(codes[:, j], minlength=3) / len(codes)
        observed = np.bincount(draws[:, j].astype(int), minlength=3) / 3000
        assert (np.abs(observed - share) <= 5 * np.sqrt(share * (1 - share) / 3000)).all()


def test_information_is_that_of_the_pairs_less_its_bias():
    X = np.array([["x", "p"], ["x", "p"], ["y", "q"], ["y", "q"]])
    information = Categorical().fit(X).information_
    np.testing.assert_allclose(information, (np.log(2) - 1 / 8) * (1 - np.eye(2)))


def test_cells_are_the_distinct_rows_with_their_counts():
    sampler = Categorical().fit(np.array([["b", "x"], ["a", "y"], ["b", "x"]]))
    np.testing.assert_array_equal(sampler.cells_, [[0, 1], [1, 0]])
    np.testing.assert_array_equal(sampler.counts_, [1, 2])


def test_declared_categories_that_never_occur_back_off():
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y"], ["x", "y", "z"]), "b": ["p", "q"]})
    sampler = Categorical().fit(frame)
    row = pd.DataFrame({"a": ["z"], "b": ["p"]})
    with pytest.warns(UserWarning, match="columns 'a' were dropped"):
        sampler.draw(row, np.array([True, False]), np.full((1, 1, 2), 0.5))


def test_many_features_do_not_overflow():
    rng = np.random.default_rng(0)
    X = rng.integers(4, size=(200, 40)).astype(str)
    sampler = Categorical(on_unseen="ignore").fit(X)
    known = np.arange(40) % 2 == 0
    draws = sampler.draw(X[:20], known, rng.random((20, 2, 40)))
    np.testing.assert_array_equal(draws[:, 0], sampler.layout_.encode(X[:20]))


def test_what_it_is_not_for_is_refused():
    mixed = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [1, 2]})
    with pytest.raises(ValueError, match=r"X must be made of discrete columns; got \['a', 'c'\]"):
        Categorical().fit(mixed)
    with pytest.raises(ValueError, match=r"smoothing must be in \[0"):
        Categorical(smoothing=-1.0).fit(mixed[["b"]])
    with pytest.raises(ValueError, match="on_unseen must be one of the reactions"):
        Categorical(on_unseen="stop").fit(mixed[["b"]])
    with pytest.raises(NotFittedError):
        Categorical().n_dropped(mixed[["b"]], np.array([True]))


def test_noise_next_to_one_stays_among_the_rows_that_agree():
    # 1000 + (1 - 2 ** -53) rounds to 1001, where the rows of the next known value begin.
    X = np.array([["a", "x"]] * 1000 + [["b", "y"], ["c", "z"]])
    noise = np.full((1, 1, 2), np.nextafter(1.0, 0.0))
    sampler = Categorical().fit(X)
    draws = sampler.draw(X[[1000]], np.array([True, False]), noise)
    assert sampler.layout_.decode(draws[0]).tolist() == [["b", "y"]]


def test_many_levels_need_no_table_of_all_pairs():
    rng = np.random.default_rng(0)
    X = rng.permuted(np.tile(np.arange(3000), (3, 1)), axis=1).T
    X[:, 2] = X[:, 0] % 3
    tracemalloc.start()
    try:
        sampler = Categorical(discrete=["X1", "X2", "X3"]).fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # All pairs of levels, a number each, would take 72 MB.
    assert peak < 20e6
    # The third column is known from the first, which takes each value once.
    assert sampler.information_[0, 2] == pytest.approx(np.log(3) - 2999 * 2 / 6000, rel=1e-6)
