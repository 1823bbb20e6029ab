"""Models, rows and targets at the edge of what makes sense, or beyond it."""

import numpy as np
import pandas as pd
import pytest

from dsage.estimate.running.run import run
from dsage.estimate.running.stopping import NOrderings, as_stopping
from dsage.games import LossGame
from dsage.models import as_model
from dsage.samplers import Gaussian, Marginal
from small_games import FEATURES, ORACLE, exact_sampler, gaussian_game, suboptimal_gaussian_case

CASE = suboptimal_gaussian_case()
X, Y = CASE.sample(30, np.random.default_rng(0))


def game_of(model, X=X, y=Y, loss="squared_error", **options):
    return LossGame(model, exact_sampler(CASE), X, y, loss=loss, random_state=0, **options)


def later(bad):
    """A model that is good for the evaluation rows, and bad for draws."""
    state = {"n_calls": 0}

    def model(Z):
        state["n_calls"] += 1
        return CASE.predict(Z) if state["n_calls"] == 1 else bad(np.asarray(Z))

    return model


def failing(Z):
    raise RuntimeError("the model is out of order")


def not_a_number(Z):
    out = Z.sum(axis=1)
    out[3] = np.nan
    return out


WRONG = {
    "a row too few": (lambda Z: Z.sum(axis=1)[1:], "must be of .* rows"),
    "a single number": (lambda Z: 1.0, "must be of shape"),
    "three axes": (lambda Z: np.zeros((len(Z), 2, 2)), "must be of shape"),
    "nan": (not_a_number, "must be finite; got '1 of .* Row 3 is the first"),
    "infinite": (lambda Z: Z.sum(axis=1) / 0.0, "must be finite"),
    "labels": (lambda Z: np.array(["yes"] * len(Z)), "labels, such as"),
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("when", ["at once", "for draws"])
@pytest.mark.parametrize(("bad", "match"), WRONG.values(), ids=WRONG)
def test_a_model_that_does_not_return_one_number_per_row_is_refused(bad, match, when):
    if when == "at once":
        with pytest.raises((ValueError, TypeError), match=match):
            game_of(lambda Z: bad(np.asarray(Z)))
    else:
        with pytest.raises((ValueError, TypeError), match=match):
            run(game_of(later(bad)), random_state=0)


@pytest.mark.parametrize("exact", ["always", "never"])
@pytest.mark.parametrize("oracle", [None, ORACLE], ids=["plain", "graph"])
def test_errors_of_a_model_are_raised_with_a_note(exact, oracle):
    with pytest.raises(RuntimeError, match="out of order") as caught:
        game_of(failing)
    assert "predictions of 30 rows" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="out of order"):
        run(game_of(later(failing)), exact=exact, oracle=oracle, random_state=0)


def test_a_model_whose_draws_have_another_number_of_outputs_is_refused():
    two = later(lambda Z: np.column_stack([Z.sum(axis=1)] * 2))
    with pytest.raises(ValueError, match="predict"):
        run(game_of(two), random_state=0)


def test_probabilities_beyond_one_are_refused():
    with pytest.raises(ValueError, match="prob"):
        game_of(lambda Z: np.full(len(Z), 1.5), y=(Y > 0).astype(int), loss="cross_entropy")


@pytest.mark.parametrize("exact", ["always", "never"])
@pytest.mark.parametrize("is_drawn", [False, True])
def test_one_row_is_enough(exact, is_drawn):
    game = gaussian_game(CASE, X[:1], Y[:1], is_drawn=is_drawn, random_state=0)
    found = run(game, exact=exact, stopping=as_stopping(tolerance=0.02), random_state=0)
    truth = CASE.values(data=(X[:1], Y[:1]))
    assert (np.abs(found.values - truth) <= 4.5 * found.se + 1e-9).all()
    assert np.isnan(found.se_rows).all()
    assert len(found.to_frame()) == 4


@pytest.mark.parametrize("exact", ["always", "never"])
@pytest.mark.parametrize("is_drawn", [False, True])
def test_one_feature_gets_all_there_is(exact, is_drawn):
    x, y = X[:, :1], Y
    sampler = Gaussian.from_moments([1.0], [[1.0]])
    model = lambda Z: 3.0 + 0.5 * np.asarray(Z)[:, 0]  # noqa: E731
    given = model if is_drawn else as_model(model, "squared_error", affine=True)
    game = LossGame(given, sampler, x, y, loss="squared_error", random_state=0)
    found = run(game, exact=exact, stopping=as_stopping(tolerance=0.02), random_state=0)
    worth = np.mean((y - 3.5) ** 2) - np.mean((y - model(x)) ** 2)
    assert abs(found.values[0] - worth) <= 4.5 * found.se[0] + 1e-9
    assert found.values.shape == (1,)


def test_no_rows_and_no_columns_are_refused():
    with pytest.raises(ValueError, match="X must be of at least one row"):
        game_of(CASE.predict, X=X[:0], y=Y[:0])
    with pytest.raises(ValueError, match=r"column|feature|X must"):
        LossGame(CASE.predict, Marginal().fit(X), X[:, :0], Y, loss="squared_error")


@pytest.mark.parametrize("y", [Y[:-1], np.append(Y, 1.0)])
def test_a_target_of_another_length_than_the_rows_is_refused(y):
    with pytest.raises(ValueError, match=r"y must be of .*30"):
        game_of(CASE.predict, y=y)


@pytest.mark.parametrize("exact", ["always", "never"])
def test_a_constant_target_has_values_that_add_up(exact):
    """What the model knows is of no use, and its values are what it loses by it."""
    y = np.full(30, 3.0)
    game = gaussian_game(CASE, X, y)
    found = run(game, exact=exact, stopping=NOrderings(24), random_state=0)
    worth = np.mean((y - CASE.predict_given(X, frozenset())) ** 2)
    worth -= np.mean((y - CASE.predict(X)) ** 2)
    assert found.values.sum() == pytest.approx(worth, abs=1e-10)
    if exact == "always":
        np.testing.assert_allclose(found.values, CASE.values(data=(X, y)), atol=1e-10)


@pytest.mark.parametrize("exact", ["always", "never"])
@pytest.mark.parametrize("oracle", [None, ORACLE], ids=["plain", "graph"])
def test_a_constant_model_has_values_of_exactly_zero(exact, oracle):
    game = game_of(lambda Z: np.full(len(Z), 2.0))
    found = run(game, exact=exact, oracle=oracle, random_state=0)
    assert np.abs(found.values).max() < 1e-13
    assert found.se.max() < 1e-13
    assert found.reason.numbers["se"] == 0


def test_without_a_target_the_model_s_own_output_is_explained():
    """Then the values add up to the variance of the output, as far as the law is right."""
    game, same = gaussian_game(CASE, X, None), gaussian_game(CASE, X, CASE.predict(X))
    found = run(game)
    np.testing.assert_array_equal(found.values, run(same).values)
    expected = CASE.predict_given(X, frozenset())
    worth = np.mean((CASE.predict(X) - expected) ** 2)
    assert found.values.sum() == pytest.approx(worth, abs=1e-10)


def test_without_a_target_a_classifier_is_explained_too():
    def probabilities(Z):
        one = 1 / (1 + np.exp(-CASE.predict(Z)))
        return np.column_stack([1 - one, one])

    game = game_of(probabilities, y=None, loss="cross_entropy")
    found = run(game, stopping=as_stopping(tolerance=0.03), random_state=0)
    same = game_of(probabilities, y=probabilities(X), loss="cross_entropy")
    again = run(same, stopping=as_stopping(tolerance=0.03), random_state=0)
    np.testing.assert_array_equal(found.values, again.values)
    assert found.values.sum() > 0


def test_the_model_sees_the_container_that_it_was_given_rows_in():
    seen = []

    def model(Z):
        seen.append(type(Z))
        return CASE.predict(Z)

    frame = pd.DataFrame(X, columns=FEATURES)
    for data in (frame, X):
        seen.clear()
        sampler = Gaussian().fit(data)
        run(LossGame(model, sampler, data, Y, loss="squared_error", random_state=0), exact="always")
        assert set(seen) == {type(data)}


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        (np.ones(29), "of shape"),
        (-np.ones(30), "not negative"),
        (np.zeros(30), "not all 0"),
        (np.full(30, np.nan), "finite"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights, match):
    with pytest.raises(ValueError, match=f"sample_weight must be .*{match}"):
        game_of(CASE.predict, sample_weight=weights)


def test_rows_of_weight_zero_do_not_count():
    weights = np.repeat([1.0, 0.0], 15)
    found = run(gaussian_game(CASE, X, Y, sample_weight=weights))
    np.testing.assert_allclose(found.values, CASE.values(data=(X[:15], Y[:15])), rtol=0, atol=1e-10)


def test_a_number_of_draws_that_is_not_a_multiple_of_the_replicates_is_refused():
    with pytest.raises(ValueError, match="n_draws must be a multiple of n_replicates, 2; got 5"):
        game_of(CASE.predict, n_draws=5)
