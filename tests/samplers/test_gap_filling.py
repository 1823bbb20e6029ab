"""How gaps of training rows are filled, with made-up draws in place of the mixture."""

import numpy as np
import pytest

from dsage.samplers.gaps import Gaps, _first_present, other_uniforms


def uniforms(*shape):
    return np.random.default_rng(1).uniform(1e-9, 1 - 1e-9, shape)


class Told:
    """In place of the mixture: the first draws are missing, or all are."""

    def __init__(self, n_missing):
        self.n_missing, self.calls = np.array(n_missing), []

    def draw_encoded(self, rows, known, noise):
        self.calls.append((rows.copy(), known.copy(), noise.shape))
        draws = np.full(noise.shape, 0.0) + 100.0 * np.arange(noise.shape[1])[:, None]
        draws += np.arange(noise.shape[2])
        is_missing = np.arange(noise.shape[1])[:, None] < self.n_missing
        draws[np.broadcast_to(is_missing, draws.shape)] = np.nan
        return np.where(known, rows[:, None], draws)


def told_gaps(X, n_missing, copies=None):
    gaps = object.__new__(Gaps)
    gaps._columns = np.flatnonzero(np.isnan(X).any(axis=0))
    gaps._never, gaps._copies = np.isnan(X).all(axis=0), copies or {}
    gaps._mix = Told(n_missing)
    return gaps


def test_gaps_are_filled_pattern_by_pattern_the_most_frequent_first():
    nan = np.nan
    X = np.array(
        [
            [1.0, nan, 5.0, nan], [2.0, 6.0, nan, nan], [3.0, nan, 7.0, nan], [4.0, 8.0, 9.0, nan],
            [5.0, nan, nan, nan],
        ]
    )  # fmt: skip
    gaps = told_gaps(X, [0, 3, 3, 0])
    filled = gaps.fill(X)
    calls = gaps._mix.calls
    assert calls[0][1].tolist() == [True, False, True, True]
    assert sorted(len(rows) for rows, _, _ in calls) == [1, 1, 2]
    assert all(shape == (len(rows), 16, 4) for rows, _, shape in calls)
    # What is not known is zero, as is a column without any values.
    np.testing.assert_array_equal(calls[0][0], [[1.0, 0.0, 5.0, 0.0], [3.0, 0.0, 7.0, 0.0]])
    # The fourth draw is the first one that has both numbers.
    expected = X.copy()
    expected[:, 3] = 0.0
    expected[[0, 2, 4], 1], expected[[1, 4], 2] = 301.0, 302.0
    np.testing.assert_array_equal(filled, expected)


def test_gaps_that_are_never_drawn_get_present_values_and_copies_are_filled_alike():
    X = np.array([[1.0, 2.0, 2.0], [2.0, np.nan, np.nan], [3.0, 4.0, 4.0]] * 30)
    filled = told_gaps(X, 99, {2: 1}).fill(X)
    assert set(filled[1::3, 1]) == {2.0, 4.0}
    np.testing.assert_array_equal(filled[:, 1], filled[:, 2])
    np.testing.assert_array_equal(filled[:, 0], X[:, 0])


@pytest.mark.parametrize("chunk", [1, 4, 1024])
def test_rows_of_a_pattern_are_filled_in_chunks(chunk, monkeypatch):
    monkeypatch.setattr("dsage.samplers.gaps._CHUNK", chunk)
    X = np.column_stack([np.arange(10.0), np.where(np.arange(10) < 7, np.nan, 1.0)])
    gaps = told_gaps(X, 0)
    filled = gaps.fill(X)
    sizes = [len(rows) for rows, _, _ in gaps._mix.calls]
    assert sizes == [len(part) for part in np.split(np.arange(7), range(chunk, 7, chunk))]
    assert (filled[:7, 1] == 1.0).all()


def test_the_first_draw_with_all_numbers_is_taken_or_the_first_of_each():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(60, 4, 3))
    draws[rng.random(draws.shape) < 0.5] = np.nan
    found = _first_present(draws)
    for own, lines in zip(found, draws, strict=True):
        whole = [line for line in lines if not np.isnan(line).any()]
        if whole:
            expected = whole[0]
        else:
            present = [column[~np.isnan(column)] for column in lines.T]
            expected = [column[0] if len(column) else np.nan for column in present]
        np.testing.assert_array_equal(own, expected)


def test_draws_are_missing_where_those_of_the_mixture_are_from_other_uniforms():
    X = np.array([[1.0, np.nan, np.nan, 2.0], [2.0, 3.0, np.nan, 2.5]])
    gaps = told_gaps(X, [0, 2, 0, 0])
    noise = uniforms(2, 4, 4)
    for known in ([0, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 0]):
        mask = np.array(known, bool)
        draws = np.full((2, 4, 4), 5.0)
        gaps.hide(draws, X, mask, noise)
        expected = np.full((2, 4, 4), 5.0)
        if not mask[1]:
            expected[:, :2, 1] = np.nan
        if not mask[2]:
            # Never present in training.
            expected[:, :, 2] = np.nan
        np.testing.assert_array_equal(draws, expected)
    # With nothing that could be missing, nothing is drawn.
    assert len(gaps._mix.calls) == 2


def test_other_uniforms_are_the_digits_after_the_sixteenth():
    u = np.array([0.123456789, 0.9999, 3 * 2.0**-17, 0.5 + 2.0**-18])
    steps = u * 2**16 + 0.5
    np.testing.assert_allclose(other_uniforms(u), steps - np.floor(steps), atol=1e-15)
    assert other_uniforms(np.array([2.0**-17])).item() == 2.0**-54
