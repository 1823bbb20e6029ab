"""Models that change their input, answer at random, or overflow."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dsage
from dsage.games import LossGame, OutputGame
from dsage.models import as_model
from dsage.samplers import Gaussian, Marginal
from explain_case import SHORT

OPTIONS = {"graph": None, "n_orderings": 16, **SHORT}
RNG = np.random.default_rng(0)
ARRAY = RNG.normal(size=(80, 3))
Y = ARRAY[:, 0] + np.sin(ARRAY[:, 1])


def honest(rows):
    rows = np.asarray(rows)
    return rows[:, 0] + np.sin(rows[:, 1])


def scales(rows):
    """Doubles what it is given, in place."""
    rows *= 2
    return honest(np.asarray(rows) / 2)


def overwrites(rows):
    """Writes into the column of a frame, in place."""
    kept = rows.to_numpy().copy()
    rows["a"] = -3.0
    rows.iloc[:, 1] *= 7.0
    return honest(kept)


CASES = {
    "array": (ARRAY, scales),
    "array of floats": (ARRAY.astype(np.float32), scales),
    "pandas": (pd.DataFrame(ARRAY, columns=list("abc")), scales),
    "column": (pd.DataFrame(ARRAY, columns=list("abc")), overwrites),
    "integers": (pd.DataFrame(ARRAY, columns=list("abc")).assign(c=range(80)), overwrites),
}


@pytest.mark.filterwarnings("ignore:.*like an identifier")
@pytest.mark.parametrize("sampler", ["gaussian", "marginal", "neighbors"])
@pytest.mark.parametrize(("X", "model"), CASES.values(), ids=CASES)
def test_a_model_that_changes_its_input_has_the_values_of_one_that_does_not(X, model, sampler):
    before = X.copy()
    rows = (X[:40], Y[:40], X[40:], Y[40:])
    expected = dsage.explain(honest, *rows, sampler=sampler, **OPTIONS)
    found = dsage.explain(model, *rows, sampler=sampler, **OPTIONS)
    np.testing.assert_array_equal(found.values, expected.values)
    assert (np.asarray(X) == np.asarray(before)).all()


def test_frames_that_cannot_be_changed_are_not_copied():
    seen = []

    def model(rows):
        seen.append(rows)
        return np.zeros(len(rows))

    frame = pl.DataFrame(ARRAY, schema=list("abc"))
    as_model(model, "squared_error").predict(frame)
    assert seen[0] is frame


@pytest.mark.parametrize("make", [LossGame, OutputGame])
def test_games_keep_their_rows_and_predictions(make):
    buffer = np.zeros(1024)

    def model(rows):
        """Changes its input, and returns the same array each time."""
        buffer[: len(rows)] = honest(rows)
        rows[:] = 0.0
        return buffer[: len(rows)]

    given = (Y,) if make is LossGame else ()
    options = {"loss": "squared_error"} if make is LossGame else {}
    game = make(model, Marginal().fit(ARRAY), ARRAY, *given, random_state=0, **options)
    game.risks(np.zeros((1, 3), dtype=bool), np.arange(5))
    np.testing.assert_array_equal(game.matrix, ARRAY)
    np.testing.assert_array_equal(game.predictions, honest(ARRAY))


def test_an_affine_map_is_found_for_a_model_that_changes_its_input():
    def model(rows):
        found = rows @ np.array([1.0, -2.0, 0.5])
        rows += 1.0
        return found

    claimed = as_model(model, "squared_error", affine=True)
    game = LossGame(claimed, Gaussian().fit(ARRAY), ARRAY, Y)
    assert not game.is_drawn


def test_a_model_that_answers_at_random_is_warned_of():
    random = np.random.default_rng(1)
    rows = (ARRAY[:40], Y[:40], ARRAY[40:], Y[40:])
    with pytest.warns(UserWarning, match=r"the function .*at random.*Fix its random state"):
        dsage.explain(lambda X: random.normal(size=len(X)), *rows, sampler="gaussian", **OPTIONS)


@pytest.mark.filterwarnings("ignore:With zero_one, few draws")
def test_labels_at_random_are_warned_of():
    random = np.random.default_rng(1)

    def coin(X):
        return random.choice(["no", "yes"], len(X))

    labels = np.where(Y > 0, "yes", "no")
    rows = (ARRAY[:40], labels[:40], ARRAY[40:], labels[40:])
    with pytest.warns(UserWarning, match="coin .*at random"):
        dsage.explain(coin, *rows, loss="zero_one", sampler="gaussian", **OPTIONS)


def test_a_model_whose_answer_depends_on_the_other_rows_is_warned_of():
    rows = (ARRAY[:40], Y[:40], ARRAY[40:], Y[40:])
    with pytest.warns(UserWarning, match="depends on the other rows.*means or scales"):
        dsage.explain(lambda X: honest(X) - honest(X).mean(), *rows, sampler="gaussian", **OPTIONS)


def test_rounding_is_not_taken_for_chance():
    random = np.random.default_rng(1)
    rows = (ARRAY[:40], Y[:40], ARRAY[40:], Y[40:])
    dsage.explain(
        lambda X: honest(X) * (1 + 1e-7 * random.normal(size=len(X))),
        *rows,
        sampler="gaussian",
        **OPTIONS,
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_predictions_whose_squares_overflow_are_refused(sign):
    rows = (ARRAY[:40], Y[:40], ARRAY[40:], Y[40:])
    with pytest.raises(ValueError, match=r"at most 1e\+70 in size; got .*e\+(199|200). .*divide"):
        dsage.explain(lambda X: sign * 1e200 * honest(X), *rows, sampler="gaussian", **OPTIONS)


def test_targets_whose_losses_overflow_are_refused():
    with pytest.raises(ValueError, match=r"the losses .*targets up to .*e\+20\d"):
        LossGame(honest, Gaussian().fit(ARRAY), ARRAY, 1e200 * Y, loss="squared_error")


def test_large_numbers_that_do_not_overflow_are_explained():
    rows = (ARRAY[:40], Y[:40], ARRAY[40:], Y[40:])
    expected = dsage.explain(honest, *rows, sampler="gaussian", **OPTIONS)
    large = [rows[0], 2.0**200 * rows[1], rows[2], 2.0**200 * rows[3]]
    found = dsage.explain(lambda X: 2.0**200 * honest(X), *large, sampler="gaussian", **OPTIONS)
    np.testing.assert_allclose(found.values / 2.0**400, expected.values, rtol=1e-12)
    np.testing.assert_allclose(found.se / 2.0**400, expected.se, rtol=1e-9)
