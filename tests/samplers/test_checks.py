"""Which arguments samplers refuse, and what they warn about."""

import numpy as np
import pandas as pd
import pytest

from dsage.data.layout import Layout
from dsage.samplers.checks import (
    check_coalition,
    check_draws,
    check_noise,
    check_sizes,
    warn_of_copies,
)


def layout_of(X, classes=()):
    frame = pd.DataFrame(X, columns=[f"X{at + 1}" for at in range(np.shape(X)[1])])
    return Layout.of(frame, discrete=list(classes))


def test_sizes_of_columns_are_checked_without_missing_values_and_classes():
    X = np.array([[1.0, np.nan, 2.0], [2.0, 5.0, 2.0], [3.0, 6.0, np.nan]])
    check_sizes(X, layout_of(X))
    for value in (-2e150, 2e150):
        large = X.copy()
        large[:, 1] = value
        with pytest.raises(ValueError, match=r"got \['X2'\]"):
            check_sizes(large, layout_of(X))
    small = X * np.array([1.0, 1e-151, 1.0])
    with pytest.raises(ValueError, match=r"got \['X2'\]"):
        check_sizes(small, layout_of(X))
    wide = np.array([[-1.7e308, 0.0, 0.0], [1.7e308, 0.0, 0.0]])
    with pytest.raises(ValueError, match=r"got \['X1'\]"):
        check_sizes(wide, layout_of(X))


def test_copies_are_named_with_what_they_repeat():
    rng = np.random.default_rng(0)
    a = rng.normal(size=10)
    X = np.column_stack([a, np.ones(10), a, -a, np.ones(10), a, 0.0 * a, -0.0 * a])
    X[0, [6, 7]] = 0.5
    with pytest.warns(UserWarning, match="copies") as caught:
        warn_of_copies(X, layout_of(X), "So what.")
    (found,) = caught
    assert str(found.message) == (
        "Some columns are copies: 'X3' repeats 'X1', 'X6' repeats 'X1', 'X8' repeats 'X7'. So what."
    )
    among = np.array([True, True, False, True, True, True, False, True])
    with pytest.warns(UserWarning, match=r"copies: 'X6' repeats 'X1'\. So what"):
        warn_of_copies(X, layout_of(X), "So what.", among)


@pytest.mark.parametrize(("n_copies", "ending"), [(10, "repeats 'X1'"), (12, "'X1' and 2 more")])
def test_of_many_copies_ten_are_named(n_copies, ending):
    X = np.tile(np.random.default_rng(0).normal(size=(9, 1)), (1, n_copies + 1))
    with pytest.warns(UserWarning, match=rf"{ending}\. So what") as caught:
        warn_of_copies(X, layout_of(X), "So what.")
    assert str(caught[0].message).count("repeats") == 10


@pytest.mark.filterwarnings("error")
def test_a_class_and_a_number_with_its_codes_are_no_copies():
    codes = np.tile([0.0, 1.0, 2.0], 4)
    frame = pd.DataFrame({"X1": codes, "X2": codes})
    layout = Layout.of(frame, discrete=["X2"])
    warn_of_copies(layout.encode(frame), layout, "")


@pytest.mark.parametrize(("n_features", "shown"), [(6, "e, f"), (7, "e, f, ...")])
def test_a_coalition_has_one_entry_per_feature(n_features, shown):
    names = list("abcdefg")[:n_features]
    with pytest.raises(ValueError, match=f"each of the features a, b, c, d, {shown}"):
        check_coalition(np.zeros(3, bool), names)
    with pytest.raises(TypeError, match="boolean array"):
        check_coalition(np.zeros(n_features), names)
    assert check_coalition([True] * n_features, names).all()


def test_noise_is_strictly_between_zero_and_one():
    noise = np.full((2, 3, 4), 0.5)
    assert check_noise(noise, 2, 4) is noise
    assert check_noise(np.empty((0, 3, 4)), 0, 4).shape == (0, 3, 4)
    for bad in (0.0, 1.0, -1.0, 2.0, np.nan):
        wrong = noise.copy()
        wrong[1, 2, 0] = bad
        with pytest.raises(ValueError, match=f"strictly between 0 and 1; got {bad}"):
            check_noise(wrong, 2, 4)
    for n_rows, n_features in ((3, 4), (2, 5)):
        with pytest.raises(ValueError, match="noise must be of shape"):
            check_noise(noise, n_rows, n_features)
    with pytest.raises(ValueError, match="at least one draw"):
        check_noise(noise[:, :0], 2, 4)


def test_draws_are_finite_but_for_columns_that_may_miss():
    draws, nothing = np.zeros((2, 3, 3)), np.zeros(3, bool)
    draws[1, 2, 0], draws[0, 0, 1] = np.nan, np.inf
    unknown, names = np.array([True, True, True]), ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"finite; got \['a', 'b'\]"):
        check_draws(draws, (2, 3, 3), unknown, names, nothing)
    with pytest.raises(ValueError, match=r"finite; got \['b'\]"):
        check_draws(draws, (2, 3, 3), unknown, names, np.ones(3, bool))
    # Known columns are as in the rows.
    check_draws(draws, (2, 3, 3), np.array([False, False, True]), names, nothing)
    with pytest.raises(ValueError, match="draws must be of shape"):
        check_draws(draws, (2, 3, 4), unknown, names, nothing)
