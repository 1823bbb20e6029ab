import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from dsage.games import LossGame, OutputGame
from dsage.games.additive_terms import AdditiveTerms
from dsage.games.functions import Functions
from dsage.games.row_control import RowControl, _choose_functions
from dsage.samplers import Gaussian, Marginal

GENERATOR = np.random.default_rng(0)
TRAINING = GENERATOR.normal(size=(60, 4)) @ GENERATOR.normal(size=(4, 4))
X = GENERATOR.normal(size=(40, 4))
Y = X[:, 0] + GENERATOR.normal(size=40)
CLASSES = (Y > 0).astype(int)
MARGINAL = Marginal().fit(TRAINING)
COALITIONS = np.array(list(itertools.product([False, True], repeat=4)))
ROWS = np.arange(len(X))


def bent(rows):
    rows = np.asarray(rows)
    return np.sin(rows[:, 0]) + rows[:, 1] ** 2 / 4 - rows[:, 2] + 0.1 * rows[:, 0] * rows[:, 3]


def probabilities(rows):
    p = expit(bent(rows))
    return np.column_stack([1 - p, p])


def product(rows):
    return np.sign(np.prod(np.asarray(rows), axis=1))


def mean_predictions(predict):
    """Return the means over all training rows, (n_coalitions, n_rows, ...), one by one."""
    mixed = np.where(COALITIONS[:, None, None], X[:, None], TRAINING)
    flat = predict(mixed.reshape(-1, 4))
    return flat.reshape(*mixed.shape[:3], *flat.shape[1:]).mean(axis=2)


def risks_of(game, n_epochs):
    return np.stack([game.risks(COALITIONS, ROWS, epoch) for epoch in range(n_epochs)])


def control_of(predict=bent, sampler=MARGINAL, n_rows=1024):
    rng = np.random.default_rng(1)
    mixed = sampler.equal_rows[rng.integers(60, size=(n_rows, 4)), np.arange(4)]
    return RowControl.fit(sampler, mixed, predict(mixed).reshape(n_rows, -1), np.zeros(4, int))


def test_unknown_features_are_those_of_the_picked_rows():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0, 4.0], "b": pd.Categorical(list("xyxz"))})
    sampler = Marginal().fit(frame)
    noise = np.random.default_rng(0).random((4, 7, 2))
    picked = sampler.pick_rows(noise)
    assert picked.shape == (4, 7)
    for known in np.array([[False, False], [True, False], [False, True]]):
        drawn = sampler.draw(frame, known, noise)[:, :, ~known]
        np.testing.assert_array_equal(drawn, sampler.equal_rows[picked][:, :, ~known])


@pytest.mark.parametrize("sampler", [Marginal(joint=False).fit(TRAINING), Gaussian().fit(TRAINING)])
def test_other_samplers_pick_no_rows(sampler):
    assert sampler.equal_rows is None
    with pytest.raises(TypeError, match="draws training rows with equal probability"):
        sampler.pick_rows(np.full((1, 1, 4), 0.5))


def test_noise_is_zero_on_average_over_the_training_rows():
    everyone = np.zeros((1, 60, 4))
    everyone[0, :, 0] = (np.arange(60) + 0.5) / 60
    noise = control_of().noise(COALITIONS, everyone)
    assert noise.shape == (16, 1, 60, 1)
    assert np.abs(noise.mean(axis=2)).max() < 1e-8
    assert (noise.std(axis=2)[:-2] > 0.5).all()
    assert not noise[-1].any()


def test_noise_does_not_depend_on_the_number_of_draws():
    control, noise = control_of(), np.random.default_rng(3).random((30, 8, 4))
    together = control.noise(COALITIONS, noise)
    # Fewer draws than training rows: only their terms are added up.
    alone = control.noise(COALITIONS[5:6], noise[7:8])
    np.testing.assert_array_equal(alone[0, 0], together[5, 7])


def test_noise_of_one_output_a_row():
    control = control_of(probabilities)
    outputs = np.array([0, 1, 1])
    for n_draws in (4, 50):
        noise = np.random.default_rng(3).random((3, n_draws, 4))
        whole, some = control.noise(COALITIONS, noise), control.noise(COALITIONS, noise, outputs)
        for row, output in enumerate(outputs):
            np.testing.assert_array_equal(some[:, row], whole[:, row, :, output])


def test_interactions_have_no_control():
    assert control_of(product) is None
    assert LossGame(product, MARGINAL, X, Y, loss="squared_error")._row_control is None


def test_constant_models_have_no_control():
    game = LossGame(lambda rows: np.zeros(len(rows)), MARGINAL, X, Y, loss="squared_error")
    assert game._row_control is None


def test_features_that_the_model_does_not_use_get_no_noise():
    def some(rows):
        return np.sin(np.asarray(rows)[:, 0]) - np.asarray(rows)[:, 2] + np.asarray(rows)[:, 0] ** 2

    game = LossGame(some, MARGINAL, X, Y, loss="squared_error", random_state=0)
    with_both = COALITIONS[:, [0, 2]].all(axis=1)
    risks = game.risks(COALITIONS[with_both], ROWS)
    np.testing.assert_array_equal(risks, np.broadcast_to(risks[-1], risks.shape))


@pytest.mark.parametrize(
    ("options", "has_one"),
    [
        ({}, True),
        ({"draw_control": "none"}, False),
        ({"loss": "brier", "model": probabilities, "y": CLASSES}, False),
        ({"loss": "cross_entropy", "model": probabilities, "y": CLASSES}, True),
        ({"sampler": Gaussian().fit(TRAINING)}, False),
    ],
)
def test_when_there_is_a_control(options, has_one):
    given = {"model": bent, "sampler": MARGINAL, "y": Y, "loss": "squared_error"} | options
    model, sampler, y = (given.pop(name) for name in ("model", "sampler", "y"))
    assert (LossGame(model, sampler, X, y, **given)._row_control is not None) == has_one


def test_squared_error_is_unbiased_and_far_less_noisy():
    options = {"loss": "squared_error", "random_state": 0}
    controlled = risks_of(LossGame(bent, MARGINAL, X, Y, **options), 200).mean(axis=3)
    plain = LossGame(bent, MARGINAL, X, Y, draw_control="none", **options)
    before = risks_of(plain, 200).mean(axis=3)
    exact = (Y - mean_predictions(bent)) ** 2
    off = (controlled - exact).mean(axis=(0, 2))
    se = controlled.mean(axis=2).std(axis=0, ddof=1) / np.sqrt(200)
    assert (np.abs(off) < 4.5 * se + 1e-9).all()
    assert controlled.var(axis=0).mean() < before.var(axis=0).mean() / 5


def test_cross_entropy_is_less_noisy_and_no_more_biased():
    options = {"loss": "cross_entropy", "random_state": 0}
    controlled, before = (
        risks_of(LossGame(probabilities, MARGINAL, X, CLASSES, **given), 200).mean(axis=3)
        for given in (options, options | {"draw_control": "none"})
    )
    likely = mean_predictions(probabilities)[:, ROWS, CLASSES]
    exact = -np.log(likely)
    assert controlled.var(axis=0).mean() < before.var(axis=0).mean() / 2
    # The few draws of a logarithm have a bias of higher order, with and without a control.
    difference = (controlled - before).mean(axis=2)
    se = difference.std(axis=0, ddof=1) / np.sqrt(200)
    assert (np.abs(difference.mean(axis=0)) < 4.5 * se + 1e-9).all()
    assert np.abs(controlled.mean(axis=(0, 2)) - exact.mean(axis=1)).max() < 0.01


def test_outputs_of_rows_are_unbiased_and_less_noisy():
    controlled, before = (
        -risks_of(OutputGame(bent, MARGINAL, X, random_state=0, **given), 100).mean(axis=3)
        for given in ({}, {"draw_control": "none"})
    )
    off = controlled.mean(axis=0) - mean_predictions(bent)
    se = controlled.std(axis=0, ddof=1) / np.sqrt(100)
    assert (np.abs(off) < 5.0 * se + 1e-9).all()
    assert controlled.var(axis=0).mean() < before.var(axis=0).mean() / 5


def test_risks_do_not_depend_on_what_is_evaluated_with_them():
    game = LossGame(bent, MARGINAL, X, Y, loss="squared_error", random_state=0)
    small = LossGame(bent, MARGINAL, X, Y, loss="squared_error", random_state=0, max_bytes=4096)
    together = game.risks(COALITIONS, ROWS, 3)
    np.testing.assert_array_equal(small.risks(COALITIONS, ROWS, 3), together)
    np.testing.assert_array_equal(game.risks(COALITIONS[6:7], ROWS[4:5], 3), together[6:7, 4:5])


def test_several_outputs_and_classes_among_the_features():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"a": rng.normal(size=50), "b": pd.Categorical(rng.choice(list("xyz"), 50))}
    )

    def two(rows):
        code = rows["b"].map({"x": 0.0, "y": 1.0, "z": 3.0}).astype(float)
        return np.column_stack([rows["a"] + code, rows["a"] ** 2 - code])

    y = two(frame)
    sampler = Marginal().fit(frame)
    controlled, plain = (
        LossGame(two, sampler, frame, y, loss="squared_error", random_state=0, **given)
        for given in ({}, {"draw_control": "none"})
    )
    known = np.array([[True, False]])
    means = two(frame)[:, :] - two(frame.assign(b="x").astype({"b": frame["b"].dtype}))
    exact = ((means - means.mean(axis=0)) ** 2).sum(axis=1).mean()
    # Additive: nothing is left of the noise.
    assert abs(controlled.risks(known, np.arange(50)).mean() - exact) < 1e-2 * exact
    assert abs(plain.risks(known, np.arange(50)).mean() - exact) > 1e-2 * exact


@pytest.mark.parametrize(
    ("n_features", "n_rows"), [(1, 1024), (8, 1024), (9, 1152), (63, 8064), (64, 8192), (200, 8192)]
)
def test_the_number_of_mixed_rows_grows_with_the_features(n_features, n_rows):
    assert RowControl.count_rows(n_features) == n_rows


@pytest.mark.parametrize("sizes", [(2**21, 1, 1), (2**11, 2**10, 1), (2**11, 2**6, 2**4)])
def test_terms_are_kept_up_to_16_megabytes(sizes):
    n_rows, n_features, n_outputs = sizes
    assert RowControl.fits(n_rows, n_features, n_outputs)
    assert not RowControl.fits(n_rows + 1, n_features, n_outputs)


@pytest.mark.parametrize("n_rows", [23, 24, 47, 48, 71, 72, 95, 96, 200])
def test_there_are_as_many_functions_as_the_rows_determine(n_rows):
    rows = np.random.default_rng(0).normal(size=(n_rows, 3))
    functions = _choose_functions(rows, np.zeros(3, int))
    n_functions = max(n for n in range(5) if 8 * 3 * n <= n_rows)
    assert (0 if functions is None else functions.n_columns) == 3 * n_functions


def test_terms_are_those_of_a_penalized_regression():
    rng = np.random.default_rng(6)
    rows = np.column_stack([rng.normal(size=(50, 2)), rng.integers(3, size=50)])
    outputs = rng.normal(size=(50, 2)) + rows[:, :1]
    functions = Functions.fit(rows, np.array([0, 0, 3]), 2)
    additive = AdditiveTerms(functions, rows, outputs)
    basis = functions(rows)
    center, scale = basis.columns.mean(axis=0), basis.columns.std(axis=0)
    Z = (basis.columns - center) / scale
    slopes = np.linalg.solve(Z.T @ Z + 2.0 * np.eye(6), Z.T @ (outputs - outputs.mean(axis=0)))
    other = np.column_stack([rng.normal(size=(7, 2)), rng.integers(3, size=7)])
    found = additive(other)
    assert found.shape == (3, 2, 7)
    assert additive.n_columns.tolist() == [2, 2, 2]
    np.testing.assert_allclose(additive.mean, outputs.mean(axis=0))
    off = (functions(other).columns - center) / scale
    for feature in range(3):
        own = slice(2 * feature, 2 * feature + 2)
        np.testing.assert_allclose(found[feature], (off[:, own] @ slopes[own]).T, atol=1e-10)


def _mixed(n_rows):
    rng = np.random.default_rng(1)
    return TRAINING[rng.integers(60, size=(n_rows, 4)), np.arange(4)]


@pytest.mark.parametrize(("share", "has_one"), [(0.70, True), (0.72, True), (0.77, False)])
def test_a_quarter_of_the_variance_must_be_explained(share, has_one):
    mixed = _mixed(200)
    functions = Functions.fit(mixed, np.zeros(4, int), 4)
    columns = np.column_stack([np.ones(200), functions(mixed).columns])
    rest = np.random.default_rng(2).normal(size=200)
    rest -= columns @ np.linalg.lstsq(columns, rest, rcond=None)[0]
    additive = mixed[:, 2] - mixed[:, 2].mean()
    # The sixteen coefficients take degrees of freedom.
    level = share * (200 - 16) / 200
    output = np.sqrt(1 - level) * additive / additive.std() + np.sqrt(level) * rest / rest.std()
    control = RowControl.fit(MARGINAL, mixed, output[:, None], np.zeros(4, int))
    assert (control is not None) == has_one
    if has_one:
        # The other features explain nothing, and get no noise.
        terms = control._terms[:, 0]
        assert np.flatnonzero(terms.any(axis=1)).tolist() == [2]
        wanted = np.sqrt(1 - level) * (TRAINING[:, 2] - TRAINING[:, 2].mean()) / additive.std()
        np.testing.assert_allclose(terms[2], wanted, atol=0.05 * np.abs(wanted).max())


@pytest.mark.parametrize(("ratio", "is_kept"), [(7.0, False), (9.0, True)])
def test_terms_count_from_eight_times_what_chance_explains(ratio, is_kept):
    mixed = _mixed(400)
    columns = np.column_stack(
        [np.ones(400), Functions.fit(mixed, np.zeros(4, int), 4)(mixed).columns]
    )
    rest = np.random.default_rng(2).normal(size=400)
    rest -= columns @ np.linalg.lstsq(columns, rest, rcond=None)[0]
    rest *= np.sqrt((400 - 16) / 400) / rest.std()
    # The variance left is one, of which chance explains four coefficients.
    small, large = ((mixed[:, at] - mixed[:, at].mean()) / mixed[:, at].std() for at in (1, 2))
    small = small - (small @ large) / 400 * large
    output = 2.0 * large + np.sqrt(ratio * 4 / 400) * small / small.std() + rest
    control = RowControl.fit(MARGINAL, mixed, output[:, None], np.zeros(4, int))
    assert control._terms[1].any() == is_kept
    assert control._terms[2].any()
    assert not control._terms[[0, 3]].any()


def test_there_is_none_if_its_terms_would_take_too_much_memory(monkeypatch):
    n_bytes = 8 * 60 * 4
    monkeypatch.setattr("dsage.games.row_control._MOST_BYTES", n_bytes)
    assert LossGame(bent, MARGINAL, X, Y, loss="squared_error")._row_control is not None
    monkeypatch.setattr("dsage.games.row_control._MOST_BYTES", n_bytes - 1)
    assert LossGame(bent, MARGINAL, X, Y, loss="squared_error")._row_control is None


def naive_terms(mixed, outputs, background):
    """The terms of an additive regression for the rows that draws come from, (d, o, n) or None."""
    n_rows, n_features = mixed.shape
    n_functions = max(n for n in (1, 2, 3, 4) if 8 * n * n_features <= n_rows)
    functions = Functions.fit(mixed, np.zeros(n_features, int), n_functions)
    columns, ours = functions(mixed).columns, functions(background).columns
    center, scale = columns.mean(axis=0), columns.std(axis=0)
    Z, ours = (columns - center) / scale, (ours - center) / scale
    found = np.zeros((n_features, outputs.shape[1], len(background)))
    for at, output in enumerate(outputs.T):
        above = np.vstack([Z, np.sqrt(2) * np.eye(Z.shape[1])])
        below = np.concatenate([output - output.mean(), np.zeros(Z.shape[1])])
        slopes = np.linalg.lstsq(above, below, rcond=None)[0]
        left = ((below[:n_rows] - Z @ slopes) ** 2).sum() / (n_rows - Z.shape[1])
        if left >= 0.75 * output.var():
            continue
        for feature in range(n_features):
            own = slice(n_functions * feature, n_functions * (feature + 1))
            # Eight times the variance that a useless feature would have by chance.
            if (Z[:, own] @ slopes[own]).var() > 8 * left * n_functions / n_rows:
                found[feature, at] = ours[:, own] @ slopes[own]
    return found - found.mean(axis=2, keepdims=True)


@pytest.mark.parametrize(("n_rows", "n_outputs"), [(32, 1), (64, 2), (96, 1), (127, 3), (128, 2)])
def test_terms_are_those_of_a_regression_on_functions_of_single_features(n_rows, n_outputs):
    rng, kept = np.random.default_rng(n_rows), []
    noise = rng.random((5, 3, 4))
    picked = MARGINAL.pick_rows(noise)
    for _ in range(25):
        mixed = MARGINAL.equal_rows[rng.integers(60, size=(n_rows, 4)), np.arange(4)]
        sizes = rng.uniform(0.0, 1.5, size=(4, n_outputs))
        outputs = np.tanh(mixed) @ sizes
        outputs += outputs.std(axis=0) * rng.uniform(0.5, 2.0) * rng.normal(size=outputs.shape)
        expected = naive_terms(mixed, outputs, MARGINAL.equal_rows)
        control = RowControl.fit(MARGINAL, mixed, outputs, np.zeros(4, int))
        kept += (expected != 0).any(axis=(1, 2)).tolist()
        if control is None:
            assert not expected.any()
            continue
        found = control.noise(COALITIONS, noise)
        for known, each in zip(COALITIONS, found, strict=True):
            total = expected[~known].sum(axis=0)
            np.testing.assert_allclose(each, np.moveaxis(total[:, picked], 0, 2), atol=1e-6)
    assert 0.2 < np.mean(kept) < 0.95
    few = RowControl.fit(MARGINAL, mixed[:31], outputs[:31], np.zeros(4, int))
    assert few is None


@pytest.mark.parametrize(
    ("n_features", "n_rows"), [(1, 1024), (8, 1024), (9, 1152), (64, 8192), (99, 8192)]
)
def test_a_control_has_128_rows_for_each_feature_within_limits(n_features, n_rows):
    assert RowControl.count_rows(n_features) == n_rows
