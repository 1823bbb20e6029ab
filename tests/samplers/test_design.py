"""Columns of linear models against one column per category, and sums over columns."""

import numpy as np
import pytest

from dsage.samplers.design import Design, Encoder


def mixed_rows(n_rows=40, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.integers(3, size=n_rows),
            rng.normal(3.0, 2.0, n_rows),
            np.full(n_rows, 7.0),
            np.zeros(n_rows),
            rng.integers(2, size=n_rows),
            rng.exponential(size=n_rows),
        ]
    ).astype(float)
    return X, np.array([3, 0, 0, 1, 2, 0])


def plain_columns(X, train, n_categories):
    """One column per category, and numbers in standard deviations from the median."""
    columns = []
    for at, n in enumerate(n_categories):
        if n:
            columns += [(X[:, at] == category) * 1.0 for category in range(n)]
        else:
            spread = train[:, at].std() or 1.0
            columns.append((X[:, at] - np.median(train[:, at])) / spread)
    return np.stack(columns, axis=1)


def test_features_become_standardized_numbers_and_indicators():
    X, n_categories = mixed_rows()
    encoder = Encoder(X, n_categories)
    np.testing.assert_allclose(encoder.matrix(X), plain_columns(X, X, n_categories))
    assert encoder.n_columns == 9
    assert encoder.starts.tolist() == [0, 3, 4, 5, 6, 8]
    assert encoder.ends.tolist() == [3, 4, 5, 6, 8, 9]
    assert encoder.is_class.tolist() == [True] * 3 + [False] * 2 + [True] * 3 + [False]
    assert [encoder.width(at) for at in range(6)] == [3, 1, 1, 1, 2, 1]
    assert encoder.columns_of([4, 0, 5]).tolist() == [6, 7, 0, 1, 2, 8]
    assert encoder.columns_of([]).dtype == np.intp
    np.testing.assert_allclose(encoder.matrix(X, [5, 0]), encoder.matrix(X)[:, [8, 0, 1, 2]])
    np.testing.assert_allclose(encoder.standardize(1, X[:, 1]), encoder.matrix(X)[:, 3])


@pytest.mark.parametrize("n_categories", [20, 21, 70])
def test_rare_categories_of_many_share_the_last_column(n_categories):
    rng = np.random.default_rng(0)
    counts = rng.permutation(np.repeat([19, 20, 21, 40], -(-n_categories // 4))[:n_categories])
    codes = rng.permutation(np.repeat(np.arange(n_categories), counts)).astype(float)
    encoder = Encoder(codes[:, None], np.array([n_categories]))
    levels = encoder.levels[0]
    if n_categories == 20:
        assert levels.tolist() == list(range(20))
        return
    frequent = [at for at in range(n_categories) if counts[at] >= 20]
    assert len(frequent) < 64
    for at in range(n_categories):
        assert levels[at] == (frequent.index(at) if at in frequent else len(frequent))
    assert encoder.n_columns == len(frequent) + 1


def test_at_most_64_categories_have_their_own_columns():
    counts = np.repeat([30, 25, 22], [30, 34, 10])[::-1]
    codes = np.repeat(np.arange(74), counts).astype(float)
    levels = Encoder(codes[:, None], np.array([74])).levels[0]
    assert levels.tolist() == [64] * 10 + list(range(64))


@pytest.mark.parametrize("n_draws", [1, 3])
@pytest.mark.parametrize("known", [(), (0, 1), (3, 5), (1, 2, 4), (0, 1, 2, 3, 4, 5)])
def test_lines_are_sums_over_the_columns_of_known_and_drawn_features(known, n_draws):
    rng = np.random.default_rng(1)
    train, n_categories = mixed_rows()
    encoder = Encoder(train, n_categories)
    X, _ = mixed_rows(7, seed=2)
    is_known = np.isin(np.arange(6), known)
    design = Design(encoder, X, is_known, n_draws)
    full = np.repeat(X[:, None], n_draws, axis=1)
    slopes, intercepts = rng.normal(size=(3, 9)), rng.normal(size=3)
    unknown = rng.permutation(np.flatnonzero(~is_known)).tolist()
    for n_added in range(len(unknown) + 1):
        have = [*known, *unknown[:n_added]]
        used = np.zeros(9)
        used[encoder.columns_of(have)] = 1.0
        flat = full.reshape(-1, 6)
        columns = plain_columns(flat, train, n_categories)
        expected = intercepts[:, None] + (slopes * used) @ columns.T
        np.testing.assert_allclose(design.lines(intercepts, slopes), expected, atol=1e-12)
        matrix = encoder.matrix(flat)[:, encoder.columns_of(have)] if have else np.empty((0, 0))
        if have:
            np.testing.assert_allclose(design.matrix(have), matrix)
        if n_added < len(unknown):
            at = unknown[n_added]
            n = n_categories[at]
            values = (
                rng.integers(n, size=(7, n_draws)) * 1.0 if n else rng.normal(size=(7, n_draws))
            )
            full[:, :, at] = values
            design.add(at, values)
