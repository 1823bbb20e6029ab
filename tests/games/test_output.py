import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.svm import LinearSVC

from dsage._random import Streams
from dsage.estimate.walk import prefixes
from dsage.games import Cached, LossGame, OutputGame
from dsage.games.output import _OneOutput
from dsage.models import as_model
from dsage.samplers import Gaussian, Marginal, normal_scores
from dsage.samplers.noise import Noise
from given import all_coalitions
from small_games import exact_sampler, suboptimal_gaussian_case

N_ROWS = 30
EVERY = all_coalitions(3)
ROWS = np.arange(N_ROWS)
GENERATOR = np.random.default_rng(0)
X = pd.DataFrame(
    GENERATOR.normal(size=(N_ROWS, 3)) @ GENERATOR.normal(size=(3, 3)) + 1, columns=list("abc")
)
Y = X.to_numpy() @ [1.0, -1.0, 0.5] + GENERATOR.normal(size=N_ROWS)
LABELS = np.array(["no", "maybe", "yes"])[np.digitize(Y, [-0.5, 1.5])]
SAMPLER = Gaussian().fit(X)
MARGINAL = Marginal().fit(X)
FOREST = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, Y)
CLASSIFIER = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, LABELS)
BINARY = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, Y > 0)
LINEAR = LinearRegression().fit(X, Y)
TWO = LinearRegression().fit(X, np.column_stack([Y, Y**2]))
ORDERS = np.array([[2, 0, 1], [1, 0, 2]])
ALL = np.ones((2, 4), dtype=bool)


def bent(frame):
    values = np.asarray(frame)
    return np.abs(values[:, 0]) + values[:, 1] * values[:, 2]


def two_columns(frame):
    return np.column_stack([bent(frame), 2 * bent(frame)])


# Outputs


@pytest.mark.parametrize(("n_replicates", "n_draws"), [(1, 4), (2, 4), (3, 3)])
@pytest.mark.parametrize("noise", ["sobol", "independent"])
@pytest.mark.parametrize("sampler", [SAMPLER, MARGINAL])
def test_a_risk_is_minus_the_mean_prediction_of_each_replicate(
    sampler, noise, n_replicates, n_draws
):
    options = {"n_replicates": n_replicates, "n_draws": n_draws, "noise": noise}
    game = OutputGame(bent, sampler, X, random_state=7, draw_control="none", **options)
    made = Noise(
        Streams(7), 3, n_replicates=n_replicates, n_draws=n_draws // n_replicates, kind=noise
    )
    rows = np.array([4, 19])
    risks = game.risks(EVERY, rows, 2)
    assert risks.shape == (8, 2, n_replicates)
    for known, risk in zip(EVERY, risks, strict=True):
        draws = sampler.draw(X.iloc[rows], known, made(rows, 2))
        means = bent(draws.reshape(-1, 3)).reshape(2, n_replicates, -1).mean(axis=2)
        np.testing.assert_allclose(-risk, means, rtol=1e-12)


@pytest.mark.parametrize("model", [FOREST, LINEAR, bent])
def test_everything_known_is_the_prediction(model):
    game = OutputGame(model, SAMPLER, X)
    np.testing.assert_allclose(game.predictions, getattr(model, "predict", model)(X), rtol=1e-12)
    expected = np.repeat(game.predictions[:, None], game.n_replicates, axis=1)
    np.testing.assert_array_equal(-game.risks(EVERY[-1:], ROWS)[0], expected)
    np.testing.assert_array_equal(-game.path_risks(ORDERS, ROWS, 0, ALL)[:, -1], [expected] * 2)


def test_an_affine_model_gives_the_exact_expectations_without_draws():
    case = suboptimal_gaussian_case()
    rows, _ = case.sample(6, np.random.default_rng(3))
    model = as_model(case.predict, "squared_error", affine=True)
    game = OutputGame(model, exact_sampler(case), rows)
    assert (game.is_drawn, game.n_replicates, game.n_predicted) == (False, 1, 6)
    every = all_coalitions(4)
    found = -game.risks(every, np.arange(6))[:, :, 0]
    expected = [case.predict_given(rows, np.flatnonzero(known)) for known in every]
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_draws_of_an_affine_model_have_the_mean_of_the_exact_expectations():
    exact = OutputGame(LINEAR, SAMPLER, X)
    drawn = OutputGame(LINEAR.predict, SAMPLER, X, random_state=0)
    assert drawn.is_drawn
    found = np.array([drawn.risks(EVERY, ROWS[:5], epoch).mean(axis=2) for epoch in range(200)])
    se = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    expected = exact.risks(EVERY, ROWS[:5])[..., 0]
    assert (np.abs(found.mean(axis=0) - expected) <= 4.5 * se + 1e-10).all()
    assert se[:7].max() < 0.05


def test_a_surplus_is_what_the_squared_loss_is_made_of():
    """(y - f_S)^2 of an affine model is the risk of its LossGame, exactly."""
    outputs = -OutputGame(LINEAR, SAMPLER, X).risks(EVERY, ROWS)
    losses = LossGame(LINEAR, SAMPLER, X, Y, loss="squared_error").risks(EVERY, ROWS)
    np.testing.assert_allclose((Y[:, None] - outputs) ** 2, losses, rtol=1e-12)


def test_outputs_and_losses_share_their_draws():
    options = {"n_draws": 4, "n_replicates": 1, "random_state": 5}
    outputs = -OutputGame(bent, SAMPLER, X, **options).risks(EVERY, ROWS, 3)
    losses = LossGame(bent, SAMPLER, X, Y, loss="squared_error", **options).risks(EVERY, ROWS, 3)
    np.testing.assert_array_equal((Y[:, None] - outputs) ** 2, losses)


def test_the_base_value_is_the_mean_prediction():
    case = suboptimal_gaussian_case()
    rows, _ = case.sample(2, np.random.default_rng(3))
    exact = OutputGame(
        as_model(case.predict, "squared_error", affine=True), exact_sampler(case), rows
    )
    mean = case.predict(case.mean[None, :4])[0]
    assert exact.base_value == pytest.approx(mean, rel=1e-12)
    for max_bytes in (2**28, 50_000):
        drawn = OutputGame(
            case.predict, exact_sampler(case), rows, random_state=0, max_bytes=max_bytes
        )
        before = drawn.n_predicted
        # A net of 4,096 points: far better than as many independent draws.
        assert drawn.base_value == pytest.approx(mean, abs=0.005)
        assert drawn.base_value == pytest.approx(mean, abs=0.005)
        assert drawn.n_predicted - before == 4096


# Paths


def test_paths_of_an_affine_model_are_its_risks():
    game = OutputGame(LINEAR, SAMPLER, X)
    found = game.path_risks(ORDERS, ROWS, 0, ALL)
    expected = game.risks(prefixes(ORDERS).reshape(-1, 3), ROWS).reshape(found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_drawn_paths_are_the_means_over_draws_of_the_ordering():
    options = {"n_draws": 6, "n_replicates": 3, "draw_control": "none"}
    game = OutputGame(bent, SAMPLER, X, random_state=7, **options)
    rows = np.array([9, 3, 20])
    noise = Noise(Streams(7), 3, n_replicates=3, n_draws=2)(rows, 1)
    found = -game.path_risks(ORDERS[:1], rows, 1, ALL[:1])[0]
    for length, draws in SAMPLER.ordering(ORDERS[0]).prefixes(X.iloc[rows], normal_scores(noise)):
        expected = bent(draws.reshape(-1, 3)).reshape(3, 3, 2).mean(axis=2)
        np.testing.assert_allclose(found[length], expected, rtol=1e-9)


def test_drawn_paths_evaluate_what_is_needed():
    game = OutputGame(FOREST, SAMPLER, X, n_draws=4, random_state=0)
    whole = game.path_risks(ORDERS, ROWS, 0, ALL)
    needed = np.array([[True, False, True, True], [False, False, True, True]])
    before = game.n_predicted
    some = game.path_risks(ORDERS, ROWS, 0, needed)
    assert game.n_predicted - before == 3 * N_ROWS * 4
    np.testing.assert_array_equal(some[needed], whole[needed])


def test_a_marginal_sampler_draws_no_paths():
    assert OutputGame(FOREST, SAMPLER, X).has_paths
    # The means of the trees themselves are known along orderings.
    assert OutputGame(FOREST, MARGINAL, X).has_paths
    game = OutputGame(bent, MARGINAL, X)
    assert not game.has_paths
    with pytest.raises(TypeError, match="draws along orderings; got 'Marginal'"):
        game.path_risks(ORDERS, ROWS, 0, ALL)


@pytest.mark.parametrize("model", [FOREST, LINEAR, bent])
def test_chunks_change_nothing_to_the_bit(model):
    options = {"random_state": 3, "n_draws": 4}
    whole = OutputGame(model, SAMPLER, X, **options)
    expected = whole.risks(EVERY, ROWS, 1)
    paths = whole.path_risks(ORDERS, ROWS, 1, ALL)
    for max_bytes in (1, 2000, 5000):
        game = OutputGame(model, SAMPLER, X, max_bytes=max_bytes, **options)
        np.testing.assert_array_equal(game.risks(EVERY, ROWS, 1), expected)
        np.testing.assert_array_equal(game.path_risks(ORDERS, ROWS, 1, ALL), paths)


def test_a_row_does_not_depend_on_other_rows_to_the_bit():
    some = np.array([21, 2, 7])
    for model in (FOREST, LINEAR):
        game = OutputGame(model, SAMPLER, X, random_state=3)
        np.testing.assert_array_equal(game.risks(EVERY, some), game.risks(EVERY, ROWS)[:, some])


def test_a_copy_of_the_game_gives_the_same():
    game = OutputGame(FOREST, SAMPLER, X, random_state=0)
    copy = pickle.loads(pickle.dumps(game))
    np.testing.assert_array_equal(copy.risks(EVERY, ROWS), game.risks(EVERY, ROWS))
    np.testing.assert_array_equal(
        copy.path_risks(ORDERS, ROWS, 0, ALL), game.path_risks(ORDERS, ROWS, 0, ALL)
    )


def test_the_game_can_be_given_a_memory():
    game = Cached(OutputGame(FOREST, MARGINAL, X, random_state=0))
    first = game.risks(EVERY, ROWS)
    np.testing.assert_array_equal(game.risks(EVERY, ROWS), first)
    assert (game.n_evaluated, game.n_shared) == (8 * N_ROWS, 8 * N_ROWS)


# Which output


@pytest.mark.parametrize("label", ["no", "maybe", "yes", np.str_("yes")])
def test_a_class_is_named_by_its_label(label):
    game = OutputGame(CLASSIFIER, SAMPLER, X, output=label)
    column = CLASSIFIER.classes_.tolist().index(label)
    np.testing.assert_array_equal(game.predictions, CLASSIFIER.predict_proba(X)[:, column])


def test_probabilities_of_all_classes_sum_to_one_for_every_coalition():
    games = [
        OutputGame(CLASSIFIER, SAMPLER, X, output=label, random_state=0)
        for label in CLASSIFIER.classes_
    ]
    total = sum(-game.risks(EVERY, ROWS) for game in games)
    np.testing.assert_allclose(total, 1.0, atol=1e-12)


def test_the_second_of_two_classes_is_the_default():
    game = OutputGame(BINARY, SAMPLER, X)
    np.testing.assert_array_equal(game.predictions, BINARY.predict_proba(X)[:, 1])
    other = OutputGame(BINARY, SAMPLER, X, output=False)
    np.testing.assert_array_equal(other.predictions, BINARY.predict_proba(X)[:, 0])


def test_a_column_of_several_is_named_by_its_number():
    game = OutputGame(two_columns, SAMPLER, X, output=1)
    np.testing.assert_array_equal(game.predictions, 2 * bent(X))


def test_one_output_of_an_affine_model_needs_no_draws():
    game = OutputGame(TWO, SAMPLER, X, output=1)
    alone = OutputGame(LinearRegression().fit(X, Y**2), SAMPLER, X)
    assert not game.is_drawn
    np.testing.assert_allclose(game.risks(EVERY, ROWS), alone.risks(EVERY, ROWS), rtol=1e-8)
    np.testing.assert_allclose(
        game.path_risks(ORDERS, ROWS, 0, ALL), alone.path_risks(ORDERS, ROWS, 0, ALL), rtol=1e-8
    )


@pytest.mark.parametrize(
    ("model", "output", "text"),
    [
        (CLASSIFIER, None, "got None. They are 'maybe', 'no', 'yes'"),
        (CLASSIFIER, "perhaps", "one of the classes of RandomForestClassifier; got 'perhaps'"),
        (CLASSIFIER, 1, "one of the classes of RandomForestClassifier; got 1"),
        (FOREST, 0, "output must be left out for RandomForestRegressor, which has only one; got 0"),
        (two_columns, None, "one of the 2 columns of two_columns; got None. They count from 0"),
        (two_columns, 2, "one of the 2 columns of two_columns; got 2"),
        (two_columns, -1, "got -1"),
        (two_columns, True, "got True"),
        (two_columns, "a", "got 'a'"),
    ],
)
def test_an_output_that_is_not_there_is_refused(model, output, text):
    with pytest.raises(ValueError, match=text):
        OutputGame(model, SAMPLER, X, output=output)


def test_a_classifier_without_probabilities_is_refused():
    model = LinearSVC().fit(X, Y > 0)
    with pytest.raises(TypeError, match=r"with predict_proba, .* got 'LinearSVC'"):
        OutputGame(model, SAMPLER, X)
    assert OutputGame(model.decision_function, SAMPLER, X).n_rows == N_ROWS


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"n_draws": 5}, "n_draws must be a multiple of n_replicates, 2; got 5"),
        ({"max_bytes": 0}, "max_bytes must be"),
        ({"noise": "halton"}, "noise must be one of"),
    ],
)
def test_impossible_options_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        OutputGame(FOREST, SAMPLER, X, **options)


def test_no_rows_and_other_things_than_samplers_are_refused():
    with pytest.raises(ValueError, match="X must be of at least one row"):
        OutputGame(FOREST, SAMPLER, X[:0])
    with pytest.raises(TypeError, match="sampler must be an object with fit and draw"):
        OutputGame(FOREST, "gaussian", X)


# What the model is given


def test_the_model_sees_frames_as_it_was_given_them():
    seen = []

    def model(rows):
        seen.append(type(rows))
        return bent(rows.to_numpy())

    frame = pl.from_pandas(X)
    game = OutputGame(model, Gaussian().fit(frame), frame, n_draws=4, random_state=0)
    risks = game.risks(EVERY, ROWS)
    assert set(seen) == {pl.DataFrame}
    expected = OutputGame(bent, SAMPLER, X, n_draws=4, random_state=0).risks(EVERY, ROWS)
    np.testing.assert_allclose(risks, expected, rtol=1e-9)
    assert game.data is frame


def test_one_column_tells_of_both_classes():
    def probability(frame):
        return 1.0 / (1.0 + np.exp(-np.asarray(frame).sum(axis=1)))

    model = as_model(probability, "cross_entropy", classes=["n", "p"])
    first, second, default = (
        OutputGame(model, SAMPLER, X, output=label, random_state=0) for label in ("n", "p", None)
    )
    np.testing.assert_array_equal(second.predictions, default.predictions)
    np.testing.assert_allclose(first.predictions, 1.0 - probability(X))
    risks = first.risks(EVERY, ROWS) + second.risks(EVERY, ROWS)
    np.testing.assert_allclose(risks, -1.0)
    with pytest.raises(ValueError, match="one of the classes"):
        OutputGame(model, SAMPLER, X, output="q")


@pytest.mark.parametrize(
    ("n_outputs", "classes", "output", "expected"),
    [
        (1, None, None, "all"),
        (3, None, 2, 2),
        # One column is the probability of the second class.
        (1, ["no", "yes"], "yes", "all"),
        (1, ["no", "yes"], None, "all"),
        (1, ["no", "yes"], "no", None),
        (2, ["no", "yes"], "no", 0),
        (2, ["no", "yes"], None, 1),
        (3, ["a", "b", "c"], "c", 2),
        (0, ["no", "yes"], "no", None),
    ],
)
def test_leaves_are_those_of_the_output(n_outputs, classes, output, expected):
    leaves = SimpleNamespace(n_outputs=n_outputs, output=lambda column: column)
    model = SimpleNamespace(
        name="trees",
        may_be_copied=True,
        classes=None if classes is None else np.array(classes),
        leaves=lambda layout, rows: leaves if n_outputs else None,
    )
    found = _OneOutput(model, output).leaves(None, None)
    assert found is leaves if expected == "all" else found == expected


@pytest.mark.parametrize("label", [0, 1])
def test_an_affine_probability_is_explained_for_either_class(label):
    given = np.random.default_rng(4).uniform(size=(40, 3))
    chances = LinearRegression().fit(given, given @ [0.1, 0.3, 0.2] + 0.2)
    model = as_model(chances.predict, "cross_entropy", classes=[0, 1], affine=True)
    game = OutputGame(model, Gaussian().fit(given), given, output=label, random_state=0)
    assert game.is_affine
    second = chances.predict(given)
    full = -game.risks(np.ones((1, 3), dtype=bool), np.arange(40))[0, :, 0]
    np.testing.assert_allclose(full, second if label else 1 - second)
    alone = -game.risks(np.array([[True, True, False]]), np.arange(40))[0, :, 0]
    # Almost the same, as the third feature is almost independent: not one of far larger numbers.
    np.testing.assert_allclose(alone, second if label else 1 - second, atol=0.15)
