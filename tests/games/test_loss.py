import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dsage._random import Streams
from dsage.estimate.walk import prefixes
from dsage.games import LossGame
from dsage.games.first_level import N_DRAWN
from dsage.games.link_game import LinkGame
from dsage.models import as_model
from dsage.models.losses import as_loss
from dsage.samplers import Gaussian, Marginal, normal_scores
from dsage.samplers.noise import Noise
from given import all_coalitions

FEW_DRAWS = pytest.mark.filterwarnings("ignore:For .* of the risks some draws")
N_ROWS = 40
EVERY = all_coalitions(3)
ROWS, FIRST = np.arange(N_ROWS), np.arange(8)
GENERATOR = np.random.default_rng(0)
X = pd.DataFrame(
    GENERATOR.normal(size=(N_ROWS, 3)) @ GENERATOR.normal(size=(3, 3)) + 1, columns=list("abc")
)
Y = X.to_numpy() @ [1.0, -1.0, 0.5] + GENERATOR.normal(size=N_ROWS)
CODES = np.digitize(Y, [-0.5, 1.5])
LABELS = np.array(["no", "maybe", "yes"])[CODES]
SAMPLER = Gaussian().fit(X)
FOREST = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, Y)
CLASSIFIER = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, LABELS)
LINEAR = LinearRegression().fit(X, Y)


def bent(frame):
    values = np.asarray(frame)
    return np.abs(values[:, 0]) + values[:, 1] * values[:, 2]


def three(frame):
    """Probabilities of three classes, never equal."""
    scores = np.exp(np.asarray(frame) @ [[1.0, -1.0, 0.3], [0.2, 0.7, -1.0], [0.0, 0.4, 0.9]])
    return scores / scores.sum(axis=1, keepdims=True)


def skewed(y, prediction):
    return np.exp(0.1 * (y - prediction))


def naive(game, model, y, loss, *, n_replicates, n_draws, noise, weights=None, seed=7):
    """The jackknife by its formula, a coalition, one of the first rows and a group at a time."""
    made = Noise(
        Streams(seed), 3, n_replicates=n_replicates, n_draws=n_draws // n_replicates, kind=noise
    )
    loss = as_loss(loss)
    y = loss.target(y, getattr(model, "classes_", None))
    weights = np.ones(N_ROWS) if weights is None else weights / weights.mean()
    predict = getattr(model, "predict_proba", getattr(model, "predict", model))
    out = np.empty((len(EVERY), len(FIRST), n_replicates))
    for at, known in enumerate(EVERY):
        draws = SAMPLER.draw(X.iloc[FIRST], known, made(FIRST, 0))
        for row in FIRST:
            predicted = predict(pd.DataFrame(draws[row], columns=list("abc")))
            groups = np.split(predicted, n_replicates)
            target = y[row : row + 1]

            def mean_loss(chosen, target=target):
                mean = np.mean([group.mean(axis=0) for group in chosen], axis=0)
                return loss(target, np.asarray(mean)[None]).item()

            for g in range(n_replicates):
                others = groups[:g] + groups[g + 1 :]
                pseudo = mean_loss(groups)
                if others:
                    pseudo = n_replicates * pseudo - (n_replicates - 1) * mean_loss(others)
                out[at, row, g] = weights[row] * pseudo
    return out


# Risks


@pytest.mark.parametrize(
    ("model", "y", "loss"),
    [
        (bent, Y, "squared_error"),
        (FOREST, Y, "absolute_error"),
        (bent, Y, "pinball(0.8)"),
        (bent, Y, skewed),
        (CLASSIFIER, LABELS, "brier"),
        (CLASSIFIER, LABELS, "linear"),
    ],
)
@pytest.mark.parametrize(("n_replicates", "n_draws"), [(2, 4), (3, 3)])
def test_risks_are_the_jackknife_over_replicates(model, y, loss, n_replicates, n_draws):
    weights = np.linspace(0.0, 3.0, N_ROWS)
    options = {"n_replicates": n_replicates, "n_draws": n_draws, "noise": "sobol"}
    game = LossGame(
        model, SAMPLER, X, y, loss=loss, random_state=7, sample_weight=weights, **options
    )
    risks = game.risks(EVERY, FIRST)
    expected = naive(game, model, y, loss, weights=weights, **options)
    np.testing.assert_allclose(risks, expected, rtol=1e-9, atol=1e-10)


def means_of_replicates(model, n_replicates, n_draws, seed=7):
    """Mean predictions (n_coalitions, n_rows, n_replicates, n_classes) of the first rows."""
    noise = Noise(Streams(seed), 3, n_replicates=n_replicates, n_draws=n_draws)(FIRST, 0)
    draws = np.stack([SAMPLER.draw(X.iloc[FIRST], known, noise) for known in EVERY])
    predicted = model(draws.reshape(-1, 3))
    shape = (len(EVERY), len(FIRST), n_replicates, n_draws, predicted.shape[1])
    return predicted.reshape(shape).mean(axis=3)


@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize(("n_replicates", "n_draws"), [(2, 2), (3, 1)])
def test_risks_of_cross_entropy_are_delta_pseudo_values(n_replicates, n_draws, is_soft):
    """``-log p - v / (2 p^2) + c (p - g) / p`` for the probability of the class.

    The spread over replicates is that of the losses ``-log g``, or up to a third of it.
    """
    options = {"n_replicates": n_replicates, "n_draws": n_replicates * n_draws, "random_state": 7}
    model = as_model(three, "cross_entropy", classes=[0, 1, 2])
    y = three(X.to_numpy()[:, ::-1]) if is_soft else CODES
    game = LossGame(model, SAMPLER, X, y, loss="cross_entropy", **options)
    each = means_of_replicates(three, n_replicates, n_draws)
    mean = each.mean(axis=2, keepdims=True)
    variance = each.var(axis=2, ddof=1, keepdims=True) / n_replicates
    weights = (y if is_soft else np.eye(3)[y])[FIRST][:, None, :]
    center = ((-np.log(mean) - variance / (2 * mean**2)) * weights).sum(axis=-1)
    slopes = ((mean - each) / mean * weights).sum(axis=-1)
    own = (-np.log(each) * weights).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = own.std(axis=2, keepdims=True) / np.sqrt((slopes**2).mean(axis=2, keepdims=True))
    expected = center + np.clip(np.nan_to_num(spread, nan=1.0), 1.0, 3.0) * slopes
    found = game.risks(EVERY, FIRST)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert (found.std(axis=2) > 1.01 * np.sqrt((slopes**2).mean(axis=2))).any()


def test_one_probability_and_two_have_the_same_risks():
    def one(frame):
        return three(frame)[:, 0]

    def two(frame):
        return np.stack([1 - one(frame), one(frame)], axis=1)

    y = (CODES > 0).astype(int)
    games = [
        LossGame(as_model(model, "cross_entropy", classes=[0, 1]), SAMPLER, X, y, random_state=0,
                 loss="cross_entropy")
        for model in (one, two)
    ]  # fmt: skip
    a, b = (game.risks(EVERY, ROWS) for game in games)
    np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("n_replicates", [2, 3])
def test_risks_of_a_loss_that_jumps_are_plain_losses_with_the_spread_of_the_jackknife(n_replicates):
    game = LossGame(three, SAMPLER, X, CODES, loss="zero_one", n_draws=2 * n_replicates,
                    n_replicates=n_replicates, random_state=7)  # fmt: skip
    risks = game.risks(EVERY, FIRST)
    each = means_of_replicates(three, n_replicates, 2)
    wrong = each.mean(axis=2).argmax(axis=-1) != CODES[FIRST]
    np.testing.assert_allclose(risks.mean(axis=2), wrong, atol=1e-12)
    others = (each.sum(axis=2, keepdims=True) - each).argmax(axis=-1) != CODES[FIRST][:, None]
    spread = (n_replicates - 1) ** 2 * others.var(axis=2, ddof=1)
    np.testing.assert_allclose(risks.var(axis=2, ddof=1), spread, atol=1e-12)


@pytest.mark.parametrize("loss", ["linear", "brier", "squared_error"])
def test_two_draws_leave_no_bias_of_a_linear_or_quadratic_loss(loss):
    model = (lambda frame: three(frame)[:, 0]) if loss == "squared_error" else three
    y = Y if loss == "squared_error" else CODES
    options = {"loss": loss, "noise": "independent"}
    few = LossGame(model, SAMPLER, X, y, n_draws=2, random_state=0, **options)
    many = LossGame(model, SAMPLER, X, y, n_draws=2048, random_state=1, **options)
    known = EVERY[[0, 1, 6]]
    risks = np.array([few.risks(known, FIRST, epoch).mean(axis=(1, 2)) for epoch in range(400)])
    se = risks.std(axis=0, ddof=1) / np.sqrt(len(risks))
    expected = many.risks(known, FIRST)
    se = np.hypot(se, np.sqrt(expected.var(axis=2, ddof=1).sum(axis=1) / 2) / len(FIRST))
    assert (np.abs(risks.mean(axis=0) - expected.mean(axis=(1, 2))) < 4.5 * se).all()


@pytest.mark.parametrize("noise", ["sobol", "independent"])
def test_two_draws_are_enough_for_an_unbiased_squared_error(noise):
    """E[f | x_S] of ``a b`` given nothing or one feature is known for independent normals."""
    sampler = Gaussian.from_moments(np.zeros(2), np.eye(2), ["a", "b"])
    rows = pd.DataFrame({"a": [0.5, -1.0], "b": [2.0, 1.0]})
    game = LossGame(
        lambda frame: np.asarray(frame).prod(axis=1), sampler, rows, [1.0, 0.3],
        loss="squared_error", n_draws=2, n_replicates=2, noise=noise, random_state=1,
    )  # fmt: skip
    known = np.array([[False, False], [True, False], [False, True]])
    risks = np.array([game.risks(known, np.arange(2), epoch) for epoch in range(500)]).mean(axis=3)
    se = risks.std(axis=0, ddof=1) / np.sqrt(len(risks))
    assert (np.abs(risks.mean(axis=0) - np.array([1.0, 0.3]) ** 2) < 4.5 * se).all()


def test_pseudo_values_of_replicates_vary_as_their_mean_does():
    """Their variance, divided by their number, is that of the risk over epochs."""
    game = LossGame(
        bent, SAMPLER, X, Y, n_draws=8, n_replicates=4, noise="independent", random_state=0
    )
    known = EVERY[[1, 4]]
    risks = np.array([game.risks(known, ROWS, epoch) for epoch in range(400)])
    claimed = (risks.var(axis=3, ddof=1) / 4).mean(axis=(0, 2))
    spread = risks.mean(axis=3).var(axis=0, ddof=1)
    assert claimed == pytest.approx(spread.mean(axis=1), rel=0.1)


@pytest.mark.parametrize("model", [FOREST, LINEAR, bent])
def test_chunks_change_nothing_to_the_bit(model):
    options = {"random_state": 3, "n_draws": 4}
    whole = LossGame(model, SAMPLER, X, Y, **options)
    expected = whole.risks(EVERY, ROWS, 1)
    orders, needed = np.array([[2, 0, 1], [1, 0, 2]]), np.ones((2, 4), dtype=bool)
    paths = whole.path_risks(orders, ROWS, 1, needed)
    for max_bytes in (1, 2000, 5000, 40_000):
        game = LossGame(model, SAMPLER, X, Y, max_bytes=max_bytes, **options)
        np.testing.assert_array_equal(game.risks(EVERY, ROWS, 1), expected)
        np.testing.assert_array_equal(game.path_risks(orders, ROWS, 1, needed), paths)


@pytest.mark.parametrize(("model", "y"), [(FOREST, Y), (LINEAR, Y), (CLASSIFIER, LABELS)])
def test_risks_do_not_depend_on_other_rows_and_coalitions_to_the_bit(model, y):
    game = LossGame(model, SAMPLER, X, y, random_state=3)
    whole = game.risks(EVERY, ROWS)
    some = np.array([31, 2, 7])
    np.testing.assert_array_equal(game.risks(EVERY, some), whole[:, some])
    np.testing.assert_array_equal(game.risks(EVERY[[6, 1]], ROWS), whole[[6, 1]])
    np.testing.assert_array_equal(game.risks(EVERY[[5]], some[:1])[0, 0], whole[5, 31])


def test_a_budget_bounds_what_the_model_is_asked_for_at_a_time():
    sizes = []

    def noted(frame):
        sizes.append(len(frame))
        return bent(frame)

    # Six numbers a draw and feature, and two a prediction.
    game = LossGame(noted, SAMPLER, X, Y, n_draws=4, max_bytes=8 * 4 * (6 * 3 + 2) * 10)
    sizes.clear()
    before = game.n_predicted
    game.risks(EVERY, ROWS)
    assert max(sizes) == 10 * 4
    assert sum(sizes) == 7 * N_ROWS * 4
    assert game.n_predicted - before == sum(sizes)


def test_epochs_and_seeds_have_other_draws_and_the_same_seed_the_same():
    options = {"loss": "squared_error", "n_draws": 4}
    game = LossGame(bent, SAMPLER, X, Y, random_state=1, **options)
    known = EVERY[:7]
    first = game.risks(known, ROWS)
    assert not np.isclose(first, game.risks(known, ROWS, 1)).any(axis=(1, 2)).all()
    other = LossGame(bent, SAMPLER, X, Y, random_state=2, **options).risks(known, ROWS)
    assert not np.array_equal(first, other)
    again = LossGame(bent, SAMPLER, X, Y, random_state=1, **options)
    np.testing.assert_array_equal(again.risks(known, ROWS), first)
    np.testing.assert_array_equal(game.risks(known, ROWS), first)


def test_everything_known_is_the_loss_of_the_model():
    for game in (LossGame(FOREST, SAMPLER, X, Y), LossGame(LINEAR, SAMPLER, X, Y)):
        risks = game.risks(EVERY[-1:], ROWS)
        expected = (game.model.predict(X) - Y) ** 2
        expected = np.repeat(expected[None, :, None], game.n_replicates, axis=2)
        np.testing.assert_allclose(risks, expected, rtol=1e-10)


def test_no_coalition_and_no_row_are_allowed():
    game = LossGame(FOREST, SAMPLER, X, Y)
    assert game.risks(EVERY[:0], ROWS).shape == (0, N_ROWS, 2)
    assert game.risks(EVERY, ROWS[:0]).shape == (8, 0, 2)


# Affine models


@pytest.mark.parametrize("sampler", [SAMPLER, Marginal().fit(X)])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", skewed])
def test_an_affine_model_needs_no_draws_and_agrees_with_them(sampler, loss):
    pipeline = make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y)
    exact = LossGame(pipeline, sampler, X, Y, loss=loss)
    assert (exact.is_drawn, exact.n_replicates, exact.n_predicted) == (False, 1, N_ROWS)
    drawn = LossGame(pipeline.predict, sampler, X, Y, loss=loss, n_draws=16, random_state=0)
    assert drawn.is_drawn
    expected = exact.risks(EVERY, ROWS)[..., 0].mean(axis=1)
    risks = np.array([drawn.risks(EVERY, ROWS, epoch) for epoch in range(40)]).mean(axis=(2, 3))
    se = risks.std(axis=0, ddof=1) / np.sqrt(len(risks))
    # For other losses the jackknife leaves a bias of second order.
    bias = 1e-10 if loss == "squared_error" else 0.01
    assert (np.abs(risks.mean(axis=0) - expected) <= 4.5 * se + bias * expected).all()
    assert exact.n_predicted == N_ROWS


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_paths_of_an_affine_model_are_its_risks(loss):
    game = LossGame(LINEAR, SAMPLER, X, Y, loss=loss, sample_weight=np.linspace(0, 1, N_ROWS))
    assert game.has_paths
    orders = np.array([[0, 1, 2], [2, 0, 1], [1, 2, 0]])
    rows = np.array([5, 1, 39])
    found = game.path_risks(orders, rows, 0, np.ones((3, 4), dtype=bool))
    expected = game.risks(prefixes(orders).reshape(-1, 3), rows).reshape(3, 4, 3, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(found[:, -1], expected[:, -1])


def test_paths_of_an_affine_model_survive_a_copied_column():
    frame = X.assign(d=X["a"])
    with pytest.warns(UserWarning, match="follow from the columns before"):
        sampler = Gaussian().fit(frame)
    model = as_model(
        lambda rows: np.asarray(rows) @ [1.0, 2.0, 3.0, -4.0], "squared_error", affine=True
    )
    game = LossGame(model, sampler, frame, Y)
    assert not game.is_drawn
    orders = np.array([[3, 0, 1, 2], [0, 1, 3, 2]])
    found = game.path_risks(orders, ROWS, 0, np.ones((2, 5), dtype=bool))
    expected = game.risks(prefixes(orders).reshape(-1, 4), ROWS).reshape(found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found[0, 1], found[0, 2], rtol=1e-9)


def test_a_sampler_without_means_makes_an_affine_model_draw():
    class Own:
        def fit(self, X):
            return self

        def draw(self, X, known, noise):
            return np.where(known, np.asarray(X)[:, None], noise)

    game = LossGame(LINEAR, Own(), X, Y, n_draws=2)
    assert game.is_drawn
    assert not game.has_paths
    assert game.risks(EVERY, ROWS).shape == (8, N_ROWS, 2)


# Paths of draws


def test_drawn_paths_are_the_jackknife_over_draws_of_the_ordering():
    game = LossGame(bent, SAMPLER, X, Y, n_draws=6, n_replicates=3, random_state=7)
    # With all their noise.
    game._control = None
    order, rows = np.array([2, 0, 1]), np.array([9, 3, 30])
    noise = Noise(Streams(7), 3, n_replicates=3, n_draws=2)(rows, 1)
    found = game.path_risks(order[None], rows, 1, np.ones((1, 4), dtype=bool))[0]
    for length, draws in SAMPLER.ordering(order).prefixes(X.iloc[rows], normal_scores(noise)):
        predicted = bent(draws.reshape(-1, 3)).reshape(3, 3, 2).mean(axis=2)
        whole = (predicted.mean(axis=1) - Y[rows]) ** 2
        for g in range(3):
            without = (np.delete(predicted, g, axis=1).mean(axis=1) - Y[rows]) ** 2
            np.testing.assert_allclose(found[length, :, g], 3 * whole - 2 * without, rtol=1e-9)


def test_drawn_paths_evaluate_what_is_needed_and_it_is_the_same():
    game = LossGame(FOREST, SAMPLER, X, Y, n_draws=4, random_state=0)
    orders = np.array([[2, 0, 1], [1, 2, 0]])
    whole = game.path_risks(orders, ROWS, 0, np.ones((2, 4), dtype=bool))
    needed = np.array([[True, False, True, True], [False, False, True, True]])
    before = game.n_predicted
    some = game.path_risks(orders, ROWS, 0, needed)
    assert game.n_predicted - before == 3 * N_ROWS * 4
    np.testing.assert_array_equal(some[needed], whole[needed])


def test_drawn_paths_have_the_mean_of_risks():
    game = LossGame(bent, SAMPLER, X, Y, n_draws=8, random_state=0)
    orders = np.array([[2, 0, 1], [0, 1, 2]])
    known, needed = prefixes(orders), np.ones((2, 4), dtype=bool)
    difference = np.array(
        [
            (
                game.path_risks(orders, ROWS, epoch, needed)
                - game.risks(known.reshape(-1, 3), ROWS, 1000 + epoch).reshape(2, 4, N_ROWS, 2)
            ).mean(axis=(2, 3))
            for epoch in range(100)
        ]
    )
    se = difference.std(axis=0, ddof=1) / np.sqrt(len(difference))
    assert (np.abs(difference.mean(axis=0)) <= 4.5 * se).all()


# What the model is given


def test_the_model_sees_frames_as_it_was_given_them():
    frame = pd.DataFrame(
        {
            "size": np.linspace(0, 1, 12, dtype=np.float32),
            "count": np.arange(12),
            "kind": pd.Categorical(list("uvw") * 4, categories=list("wvux")),
            "flag": [True, False] * 6,
            "word": ["one", "two", "three"] * 4,
        }
    )
    seen = []

    def model(rows):
        seen.append(rows)
        return rows["size"].to_numpy(dtype=float) + (rows["kind"] == "u") + rows["flag"]

    game = LossGame(model, Marginal().fit(frame), frame, np.zeros(12), loss="squared_error")
    game.risks(all_coalitions(5)[[0, 7, 19]], np.arange(12))
    assert len(seen) >= 2
    for rows in seen:
        assert type(rows) is pd.DataFrame
        pd.testing.assert_series_equal(rows.dtypes, frame.dtypes)
        assert rows["kind"].cat.categories.tolist() == list("wvux")
        assert set(rows["word"]) <= {"one", "two", "three"}


def test_known_columns_keep_their_values_and_unknown_ones_are_drawn():
    seen = []

    def model(rows):
        seen.append(np.asarray(rows))
        return bent(rows)

    game = LossGame(model, SAMPLER, X, Y, n_draws=4)
    seen.clear()
    game.risks(np.array([[True, False, True]]), np.array([5, 8]))
    drawn = np.concatenate(seen).reshape(2, 4, 3)
    np.testing.assert_array_equal(
        drawn[:, :, [0, 2]], X.to_numpy()[[5, 8]][:, None, [0, 2]] + np.zeros((1, 4, 1))
    )
    assert len(np.unique(drawn[:, :, 1])) == 8


def test_polars_frames_arrive_as_polars():
    frame = pl.from_pandas(X)
    seen = []

    def model(rows):
        seen.append(type(rows))
        return bent(rows.to_numpy())

    game = LossGame(model, Gaussian().fit(frame), frame, Y, n_draws=4, random_state=0)
    risks = game.risks(EVERY, ROWS)
    assert set(seen) == {pl.DataFrame}
    expected = LossGame(bent, SAMPLER, X, Y, n_draws=4, random_state=0).risks(EVERY, ROWS)
    np.testing.assert_allclose(risks, expected, rtol=1e-9)


def test_columns_in_another_order_are_found_by_name():
    mixed = LossGame(FOREST, SAMPLER, X[["c", "a", "b"]], Y, random_state=0)
    assert mixed.feature_names == ("a", "b", "c")
    expected = LossGame(FOREST, SAMPLER, X, Y, random_state=0).risks(EVERY, ROWS)
    np.testing.assert_array_equal(mixed.risks(EVERY, ROWS), expected)


# Targets and weights


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_without_a_target_the_own_output_is_explained(loss):
    game = LossGame(FOREST, SAMPLER, X, None, loss=loss, random_state=0)
    same = LossGame(FOREST, SAMPLER, X, FOREST.predict(X), loss=loss, random_state=0)
    np.testing.assert_array_equal(game.risks(EVERY, ROWS), same.risks(EVERY, ROWS))
    np.testing.assert_array_equal(game.risks(EVERY[-1:], ROWS), 0.0)


@pytest.mark.parametrize("loss", ["cross_entropy", "brier", "zero_one"])
def test_without_a_target_the_own_probabilities_are_explained(loss):
    game = LossGame(CLASSIFIER, SAMPLER, X, None, loss=loss, random_state=0)
    own = CLASSIFIER.predict_proba(X)
    y = CLASSIFIER.predict(X) if loss == "zero_one" else own
    same = LossGame(CLASSIFIER, SAMPLER, X, y, loss=loss, random_state=0)
    np.testing.assert_array_equal(game.risks(EVERY, ROWS), same.risks(EVERY, ROWS))


def probability(frame):
    return 1 / (1 + np.exp(-bent(frame)))


@pytest.mark.parametrize("loss", ["cross_entropy", "brier", "zero_one"])
@pytest.mark.parametrize("own", [True, False])
def test_one_probability_is_that_of_the_second_of_two_classes(loss, own):
    def both(frame):
        return np.column_stack([1 - probability(frame), probability(frame)])

    y = None if own else (Y > 0.5).astype(int)
    one = LossGame(probability, SAMPLER, X, y, loss=loss, random_state=0)
    two = LossGame(both, SAMPLER, X, y, loss=loss, random_state=0)
    np.testing.assert_allclose(
        one.risks(EVERY, ROWS), two.risks(EVERY, ROWS), rtol=1e-9, atol=1e-12
    )


def test_weights_multiply_the_risks_of_rows():
    weights = np.arange(N_ROWS, dtype=float)
    game = LossGame(FOREST, SAMPLER, X, Y, random_state=0, sample_weight=weights)
    plain = LossGame(FOREST, SAMPLER, X, Y, random_state=0)
    scaled = (weights / weights.mean())[:, None]
    np.testing.assert_allclose(
        game.risks(EVERY, ROWS), scaled * plain.risks(EVERY, ROWS), rtol=1e-12
    )


# The first level


def test_the_first_level_is_the_moment_game_of_the_output_and_the_target():
    weights = np.linspace(0, 1, N_ROWS)
    game = LossGame(LINEAR, SAMPLER, X, Y, sample_weight=weights)
    moment = game.first_level()
    assert moment.feature_names == ("a", "b", "c")
    full = game.risks(EVERY[-1:], ROWS).mean()
    assert moment.mean_risks(EVERY[-1:])[0] == pytest.approx(full, rel=1e-4)


def squared_level(game):
    """Return the first level, or the one of squared errors under one on another scale."""
    level = game.first_level()
    return level.first_level() if isinstance(level, LinkGame) else level


def test_the_first_level_of_a_classifier_has_one_output_per_class():
    game = LossGame(CLASSIFIER, SAMPLER, X, LABELS, random_state=0)
    _, output = game.draw_unknown(N_DRAWN)
    assert output.shape == (N_DRAWN, 3)
    target = (LABELS[:, None] == CLASSIFIER.classes_).astype(float)
    expected = ((target - output.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert squared_level(game).mean_risks(EVERY[:1])[0] == pytest.approx(expected)


@pytest.mark.parametrize("loss", ["cross_entropy", "brier", "zero_one"])
@pytest.mark.parametrize("y", [None, (Y > 0.5).astype(int)])
def test_the_first_level_of_one_probability_is_about_the_second_class(loss, y):
    game = LossGame(probability, SAMPLER, X, y, loss=loss, random_state=0)
    output = probability(X)
    target = y if y is not None else output if loss != "zero_one" else output > 0.5
    expected = ((target - game.draw_unknown(N_DRAWN)[1].mean()) ** 2).mean()
    assert squared_level(game).mean_risks(EVERY[:1])[0] == pytest.approx(expected)


def test_there_is_no_first_level_where_output_and_target_cannot_be_compared():
    def quantiles(frame):
        return np.column_stack([bent(frame) - 1, bent(frame) + 1])

    def misses(y, prediction):
        return ((y < prediction[:, 0]) | (y > prediction[:, 1])).astype(float)

    def differs(y, prediction):
        return (y != np.where(prediction > 0, "yes", "no")).astype(float)

    assert LossGame(quantiles, SAMPLER, X, 100 * Y, loss=misses).first_level() is None
    assert LossGame(bent, SAMPLER, X, LABELS, loss=differs).first_level() is None


# Errors


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"n_draws": 5}, "n_draws must be a multiple of n_replicates, 2; got 5"),
        ({"n_replicates": 0}, "n_replicates must be"),
        ({"n_draws": 0}, "n_draws must be"),
        ({"max_bytes": 0}, "max_bytes must be"),
        ({"noise": "halton"}, "noise must be one of"),
        ({"sample_weight": [1.0]}, "sample_weight must be of shape"),
        ({"loss": "squared_eror"}, "Did you mean 'squared_error'"),
    ],
)
def test_impossible_options_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        LossGame(FOREST, SAMPLER, X, Y, **options)


def test_a_target_of_another_length_is_refused():
    with pytest.raises(ValueError, match="y must be of 40 rows"):
        LossGame(FOREST, SAMPLER, X, Y[:7])


def test_something_else_than_a_sampler_is_refused():
    with pytest.raises(TypeError, match="sampler must be an object with fit and draw"):
        LossGame(FOREST, "gaussian", X, Y)


def test_a_model_that_fails_on_draws_says_so():
    calls = []

    def breaks(frame):
        calls.append(len(frame))
        values = bent(frame)
        if len(calls) > 1:
            values[3] = np.nan
        return values

    with pytest.raises(ValueError, match="breaks must be finite; got '1 of 4096 rows"):
        LossGame(breaks, SAMPLER, X, Y, loss="squared_error")
    calls.clear()
    with pytest.raises(ValueError, match="breaks must be finite; got '1 of 1024 rows"):
        LossGame(breaks, Marginal().fit(X), X, Y, loss="squared_error")
    calls.clear()
    options = {"loss": "squared_error", "draw_control": "none"}
    with pytest.raises(ValueError, match="breaks must be finite; got '1 of 320 rows"):
        LossGame(breaks, Marginal().fit(X), X, Y, **options).risks(EVERY[:1], ROWS)


def test_the_model_gets_the_container_that_the_user_gave():
    kinds = []

    def noted(rows):
        kinds.append(type(rows))
        return np.asarray(rows).sum(axis=1)

    sampler = Gaussian.from_moments(np.zeros(2), np.eye(2))  # knows names, but no container
    rows = np.random.default_rng(0).normal(size=(4, 2))
    LossGame(noted, sampler, rows, rows[:, 0]).risks(np.zeros((1, 2), dtype=bool), np.arange(4))
    assert set(kinds) == {np.ndarray}


def hard(frame):
    """Probabilities of zero and one."""
    is_second = (np.asarray(frame)[:, 0] > 1).astype(float)
    return np.stack([1 - is_second, is_second], axis=1)


@pytest.mark.parametrize("columns", [1, 2])
def test_cross_entropy_of_probabilities_of_zero_is_warned_of_once(columns):
    """A class that one draw in a hundred gives: many draws of a replicate have none of them."""
    above = X["a"].mean() + 2.3 * X["a"].std()

    def predict(frame):
        is_second = (np.asarray(frame)[:, 0] > above).astype(float)
        return is_second if columns == 1 else np.stack([1 - is_second, is_second], axis=1)

    model = as_model(predict, "cross_entropy", classes=[0, 1])
    y = np.ones(N_ROWS, dtype=int)
    game = LossGame(model, SAMPLER, X, y, loss="cross_entropy", random_state=0)
    with pytest.warns(UserWarning, match="loss='brier'"):
        game.risks(EVERY, ROWS)
    game.risks(EVERY, ROWS, 1)  # a second warning would be an error


def test_risks_are_drawn_again_where_a_replicate_has_only_zeros():
    """The class has a probability of one in twenty: eight draws often miss it, sixty-four do not."""
    sampler = Gaussian.from_moments(np.zeros(2), np.eye(2))
    rows = np.zeros((50, 2))

    def tail(frame):
        return (np.asarray(frame)[:, 0] > 1.645).astype(float)

    model = as_model(tail, "cross_entropy", classes=[0, 1])
    game = LossGame(model, sampler, rows, np.ones(50, dtype=int), random_state=0)
    known = np.zeros((1, 2), dtype=bool)
    before = game.n_predicted
    risks = np.array([game.risks(known, np.arange(50), epoch).mean(axis=2) for epoch in range(20)])
    n_asked = (game.n_predicted - before) / (20 * 50 * 16)
    # Cut off at 2.2e-16, a single risk would be 36.
    assert risks.max() < -np.log(0.05) + 3.0
    se = risks.std(ddof=1) / np.sqrt(risks.size)
    assert abs(risks.mean() + np.log(0.05)) < 4.5 * se + 0.1
    # Eight times as many draws for the risks where one of the two nets of eight has no hit.
    assert 1.0 < n_asked < 9.0


def test_risks_that_are_drawn_again_do_not_depend_on_chunks_or_other_rows():
    model = RandomForestClassifier(3, random_state=0).fit(X, LABELS)
    options = {"random_state": 3, "n_draws": 4}
    whole = LossGame(model, SAMPLER, X, LABELS, **options)
    expected = whole.risks(EVERY, ROWS, 1)
    orders, needed = np.array([[2, 0, 1], [1, 0, 2]]), np.ones((2, 4), dtype=bool)
    paths = whole.path_risks(orders, ROWS, 1, needed)
    assert whole.n_predicted > N_ROWS + (7 + 6) * N_ROWS * 4
    for max_bytes in (1, 5000):
        game = LossGame(model, SAMPLER, X, LABELS, max_bytes=max_bytes, **options)
        np.testing.assert_array_equal(game.risks(EVERY, ROWS, 1), expected)
        np.testing.assert_array_equal(game.path_risks(orders, ROWS, 1, needed), paths)
    some = np.array([31, 2, 7])
    np.testing.assert_array_equal(whole.risks(EVERY[[6, 1]], some, 1), expected[[6, 1]][:, some])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("loss", ["brier", "cross_entropy"])
def test_zeros_are_not_warned_of_where_there_are_none_or_they_do_no_harm(loss):
    predict = hard if loss == "brier" else (lambda frame: 0.98 * hard(frame) + 0.01)
    model = as_model(predict, loss, classes=[0, 1])
    y = np.asarray(hard(X)[:, 1], dtype=int)
    LossGame(model, SAMPLER, X, y, loss=loss, random_state=0).risks(EVERY, ROWS)


def test_probabilities_without_a_loss_of_classes_are_told_apart_from_several_outputs():
    with pytest.raises(ValueError, match="choose a loss of classes such as 'cross_entropy'"):
        LossGame(hard, SAMPLER, X, (Y > 0).astype(int), loss="squared_error")


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_the_known_total_is_that_of_means_over_many_draws(n_outputs):
    weights = np.random.default_rng(3).uniform(0.5, 1.5, size=len(X))

    def predict(rows):
        rows = np.asarray(rows)
        both = np.stack([np.abs(rows[:, 0]) * 3 + rows[:, 1], np.exp(rows[:, 1] / 2)], axis=1)
        return both if n_outputs == 2 else both[:, 0]

    y = predict(X) + np.random.default_rng(4).normal(size=predict(X).shape)
    game = LossGame(predict, SAMPLER, X, y, sample_weight=weights, random_state=0)
    predicted = game.draw_unknown(4096)[1].reshape(4096, -1)
    y, weights = y.reshape(len(X), -1), weights / weights.mean()

    def risk(mean):
        return (weights * ((y - mean) ** 2).sum(axis=1)).mean()

    total, error = game.known_total()
    everything = risk(predict(X).reshape(len(X), -1))
    assert total == pytest.approx(risk(predicted.mean(axis=0)) - everything, rel=1e-9)
    one, other = (risk(half.mean(axis=0)) for half in (predicted[:2048], predicted[2048:]))
    assert error == pytest.approx(abs(one - other) / 2, rel=1e-9)
    assert error > 0
