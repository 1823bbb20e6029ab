"""A control of the draws of a mixture: unbiased, and worth its while for smooth models."""

import numpy as np
import pandas as pd
import pytest

from dsage._random import Streams
from dsage.games import LossGame
from dsage.games.controls import fit_control
from dsage.games.quadratic_control import QuadraticControl, _choose_pairs, _Form
from dsage.samplers import Mix
from dsage.samplers.projections import Projected

GENERATOR = np.random.default_rng(0)
SIDE = GENERATOR.choice([-1.5, 1.5], 600)
CODE = np.where(GENERATOR.random(600) < 0.3 + 0.2 * (SIDE > 0), "a", "b")
NUMBERS = SIDE[:, None] + GENERATOR.normal(size=(600, 3))
GAPS = GENERATOR.random(600) < 0.2
X = pd.DataFrame(NUMBERS, columns=list("xyz")).assign(
    w=np.where(GAPS, np.nan, NUMBERS[:, 0] + GENERATOR.normal(size=600)), code=CODE
)
Y = NUMBERS[:, 0] + GENERATOR.normal(size=600)
MIX = Mix().fit(X)
ORDER = np.array([2, 4, 0, 3, 1])


def smooth(rows):
    """Has interactions, and no effect of a missing number."""
    return rows["x"] * rows["y"] + rows["z"] + 0.5 * rows["w"].fillna(0.0) + (rows["code"] == "a")


def rough(rows):
    return np.sign(np.sin(20.0 * rows["x"]))


def classify(rows):
    p = 1.0 / (1.0 + np.exp(-smooth(rows)))
    return np.column_stack([1.0 - p, p])


def sums_of(scores, weights):
    """Return the sums of scores (n_rows, n_draws, n_scores) from two known components."""
    drawn = np.moveaxis(scores @ weights, 2, 0)
    n_rows = len(scores)
    means = np.stack([np.full((n_rows, 2), [0.3, -1.0]) * each for each in weights.sum(axis=0)])
    variances = np.repeat((weights**2).sum(axis=0)[:, None, None], 2, axis=2)
    return Projected(drawn, np.full((n_rows, 2), [0.25, 0.75]), means, variances)


def test_noise_has_mean_zero_given_what_is_known():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(4000, 3))
    outputs = np.stack([scores[:, 0] * scores[:, 1] + scores[:, 2], scores[:, 1] ** 2], axis=1)
    control = QuadraticControl.fit(scores, outputs)
    n_draws = 40_000
    centers = rng.choice([0.3, -1.0], size=(1, n_draws, 1), p=[0.25, 0.75])
    drawn = sums_of(centers + rng.normal(size=(1, n_draws, 3)), control._weights)
    noise = control.noise(drawn)
    assert noise.shape == (1, n_draws, 2)
    assert (noise.std(axis=1) > 0.5).all()
    assert (np.abs(noise.mean(axis=1)) < 4.5 * noise.std(axis=1) / np.sqrt(n_draws)).all()
    # One output for each row is the same as that output of all.
    for output in (0, 1):
        np.testing.assert_array_equal(control.noise(drawn, np.array([output])), noise[..., output])


def test_a_quadratic_function_is_followed_exactly():
    scores = np.random.default_rng(1).normal(size=(4000, 3))
    output = 2.0 + scores[:, 0] * scores[:, 1] + scores[:, 2] - 0.5 * scores[:, 2] ** 2
    control = QuadraticControl.fit(3.0 * scores - 1.0, output[:, None])
    sums = sums_of((3.0 * scores - 1.0)[None], control._weights)
    noise = control.noise(sums)[0, :, 0]
    # Up to a constant, and what the penalty of 2 / 4,000 shrinks.
    assert np.std(noise - output) < 2e-3 * np.std(output)


@pytest.mark.parametrize("output", ["rough", "constant"])
def test_what_no_quadratic_function_explains_has_no_control(output):
    scores = np.random.default_rng(1).normal(size=(4000, 3))
    found = np.sign(np.sin(20.0 * scores[:, 0])) if output == "rough" else np.ones(4000)
    assert QuadraticControl.fit(scores, found[:, None]) is None
    # Its noise is zero beside another output that has one.
    both = QuadraticControl.fit(scores, np.stack([found, scores[:, 0]], axis=1))
    noise = both.noise(sums_of(scores[None], both._weights))
    assert not noise[..., 0].any()
    assert noise[..., 1].any()


def test_many_scores_have_products_of_the_strongest_ones_only():
    scores = np.random.default_rng(1).normal(size=(4000, 60))
    output = 3.0 * scores[:, 50] + 3.0 * scores[:, 7] + 2.0 * scores[:, 7] * scores[:, 50]
    control = QuadraticControl.fit(scores, output[:, None])
    noise = control.noise(sums_of(scores[None], control._weights))[0, :, 0]
    assert np.var(noise - output) < 0.05 * np.var(output)
    assert QuadraticControl.fit(scores[:400], output[:400, None]) is None


def test_a_control_lowers_the_noise_and_keeps_the_mean():
    rows, y = X[:40], Y[:40]
    game = LossGame(smooth, MIX, rows, y, random_state=0)
    plain = LossGame(smooth, MIX, rows, y, random_state=0, draw_control="none")
    assert isinstance(game._control, QuadraticControl)
    everything, needed, epochs = np.arange(40), np.ones((1, 6), bool), range(40)
    found, other = (
        np.array([each.path_risks(ORDER[None], everything, at, needed)[0] for at in epochs])
        for each in (game, plain)
    )
    found, other = (risks.mean(axis=3)[:, 1:-1] for risks in (found, other))
    assert found.var(axis=0).mean() < 0.6 * other.var(axis=0).mean()
    se = np.sqrt((found.var(axis=0, ddof=1) + other.var(axis=0, ddof=1)) / len(epochs))
    z = (found.mean(axis=0) - other.mean(axis=0))[se > 0.0] / se[se > 0.0]
    # The risks of a row for the four prefixes are correlated: about 40 are independent.
    assert np.square(z).mean() < 1.0 + 4.5 * np.sqrt(2 / 40)


def test_there_is_none_for_probabilities_and_for_rough_models():
    labels = (Y[:40] > 0).astype(int)
    game = LossGame(classify, MIX, X[:40], labels, loss="cross_entropy", random_state=0)
    assert game._control is None
    assert LossGame(rough, MIX, X[:40], Y[:40], random_state=0)._control is None


def test_risks_do_not_depend_on_chunks_or_other_rows():
    needed = np.ones((1, 6), bool)
    whole = LossGame(smooth, MIX, X[:30], Y[:30], random_state=0)
    small = LossGame(smooth, MIX, X[:30], Y[:30], random_state=0, max_bytes=5_000)
    some = np.array([3, 17, 29])
    one = whole.path_risks(ORDER[None], np.arange(30), 0, needed)
    np.testing.assert_array_equal(one, small.path_risks(ORDER[None], np.arange(30), 0, needed))
    np.testing.assert_array_equal(one[:, :, some], whole.path_risks(ORDER[None], some, 0, needed))


@pytest.mark.parametrize("n_variances", [1, 3])
def test_noise_is_what_its_definition_says(n_variances):
    rng = np.random.default_rng(2)
    forms = [_Form(slice(0, 3), np.array([0.7, -1.2])), None, _Form(slice(3, 4), np.zeros(0))]
    offsets = rng.normal(size=4)
    sums = Projected(
        rng.normal(size=(4, 3, 5)),
        rng.dirichlet(np.ones(2), size=3),
        rng.normal(size=(4, 3, 2)),
        rng.random((4, n_variances, 2)),
    )
    control = QuadraticControl(np.eye(4), offsets, forms)
    found, some = control.noise(sums), control.noise(sums, np.array([2, 1, 0]))
    variances = np.broadcast_to(sums.variances, (4, 3, 2))
    for row in range(3):
        m, v, share = sums.means[:, row] - offsets[:, None], variances[:, row], sums.shares[row]
        mean = m[0] + 0.7 * (m[1] ** 2 + v[1]) - 1.2 * (m[2] ** 2 + v[2])
        for draw in range(5):
            p = sums.drawn[:, row, draw] - offsets
            first = p[0] + 0.7 * p[1] ** 2 - 1.2 * p[2] ** 2 - share @ mean
            wanted = [first, 0.0, p[3] - share @ m[3]]
            np.testing.assert_allclose(found[row, draw], wanted, atol=1e-12)
    np.testing.assert_array_equal(some, np.stack([found[0, :, 2], found[1, :, 1], found[2, :, 0]]))


def standardized(n_rows, n_scores):
    scores = np.random.default_rng(4).normal(size=(n_rows, n_scores))
    return (scores - scores.mean(axis=0)) / scores.std(axis=0)


@pytest.mark.parametrize(("n_outputs", "n_kept"), [(1, 8), (3, 8), (4, 6), (30, 1)])
def test_the_largest_squares_are_kept(n_outputs, n_kept):
    z = standardized(4000, 10)
    sizes = np.geomspace(1.0, 0.4, 10)[::-1]
    parts = sizes * z**2
    outputs = np.repeat(parts.sum(axis=1)[:, None] + 3.0 * z[:, :1], n_outputs, axis=1)
    control = QuadraticControl.fit(z, outputs)
    noise = control.noise(sums_of(z[None], control._weights))[0]
    largest = parts[:, 10 - n_kept :].sum(axis=1) + 3.0 * z[:, 0]
    for each in noise.T:
        assert np.std(each - largest) < 0.02 * np.std(largest)
    assert [len(form.slopes) for form in control._forms] == [n_kept] * n_outputs
    assert control._weights.shape == (10, n_outputs * (1 + n_kept))


@pytest.mark.parametrize(("share", "n_kept"), [(0.049, 0), (0.051, 1)])
def test_squares_that_vary_little_are_left_out(share, n_kept):
    z = standardized(4000, 2)
    square = z[:, 1] ** 2
    # Uncorrelated with the other part, so that the share of the sum's deviation is known.
    square -= z[:, 0] * (z[:, 0] @ square) / len(z)
    output = np.sqrt(1.0 - share**2) * z[:, 0] + share * square / square.std()
    control = QuadraticControl.fit(z, output[:, None])
    assert len(control._forms[0].slopes) == n_kept


@pytest.mark.parametrize(("rest", "has_one"), [(0.66, True), (0.684, False)])
def test_a_quarter_of_the_variance_must_be_explained(rest, has_one):
    z = standardized(48, 2)
    columns = np.column_stack([np.ones(48), z, z**2, z[:, :1] * z[:, 1:]])
    other = np.random.default_rng(5).normal(size=48)
    other -= columns @ np.linalg.lstsq(columns, other, rcond=None)[0]
    output = np.sqrt(1 - rest) * z[:, 0] + np.sqrt(rest) * other / other.std()
    # The five coefficients count: 0.75 = 0.672 * 48 / 43.
    assert (QuadraticControl.fit(z, output[:, None]) is not None) == has_one


@pytest.mark.parametrize("n_rows", [16, 23, 24, 39, 40, 63, 64, 104, 400])
def test_there_are_as_many_products_as_the_rows_determine(n_rows):
    rng = np.random.default_rng(0)
    first, second = _choose_pairs(rng.normal(size=(n_rows, 2)), rng.normal(size=n_rows))
    n_chosen = max(k for k in range(3) if 8 * (2 + k * (k + 1) // 2) <= n_rows)
    assert len(first) == len(second) == n_chosen * (n_chosen + 1) // 2
    assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == len(first)


@pytest.mark.parametrize(("size", "chosen"), [(0.8, 3), (1.3, 1)])
def test_scores_are_chosen_by_themselves_or_by_their_squares(size, chosen):
    z = standardized(40, 4)
    squares = z[:, 1] ** 2 - 1.0
    # Room for one product: of 40 rows, four scores take 32.
    centered = z[:, 3] + size * squares / squares.std() + 0.5 * z[:, 0]
    first, second = _choose_pairs(z, centered - centered.mean())
    assert (first.tolist(), second.tolist()) == ([chosen], [chosen])


@pytest.mark.parametrize(("n_rows", "has_one"), [(23, False), (24, True)])
def test_eight_rows_for_each_score_are_needed(n_rows, has_one):
    z = standardized(n_rows, 3)
    assert (QuadraticControl.fit(z, z[:, :1]) is not None) == has_one
    assert QuadraticControl.fit(z[:, :0], z[:, :1]) is None


def test_scores_that_do_not_vary_are_left_alone():
    z = np.column_stack([standardized(200, 1), np.full(200, 3.0)])
    control = QuadraticControl.fit(z, z[:, :1])
    assert np.isfinite(control._weights).all()


def test_it_is_fitted_to_draws_with_no_feature_known():
    seen = []

    def predict(rows):
        seen.append(rows)
        return rows[:, :1] * rows[:, 1:2]

    numbers = Mix().fit(X[["x", "y", "z"]])
    row = np.zeros((1, 3))
    found = fit_control(numbers, row, Streams(0), predict, corrects_means=True)
    assert isinstance(found, QuadraticControl)
    assert [rows.shape for rows in seen] == [(4096, 3)]
    assert (seen[0].std(axis=0) > 0.5).all()
    assert fit_control(numbers, row, Streams(0), predict, corrects_means=False) is None
    assert len(seen) == 1


def naive_form(z, output, most):
    """The linear part and the matrix of a quadratic function of scores, or None."""
    n_rows, n_scores = z.shape
    centered = output - output.mean()
    room = n_rows // 8 - n_scores
    n_chosen = max(k for k in range(n_scores + 1) if k * (k + 1) // 2 <= room)
    linear = np.abs(z.T @ centered)
    curved = np.abs((z**2 - 1).T @ centered) / (z**2).std(axis=0)
    strongest = sorted(np.argsort(-np.maximum(linear, curved))[:n_chosen])
    pairs = [(i, j) for at, i in enumerate(strongest) for j in strongest[at:]]
    columns = np.column_stack([z, *(z[:, i] * z[:, j] for i, j in pairs)])
    # Ridge regression as least squares with further rows.
    above = np.vstack([columns - columns.mean(axis=0), np.sqrt(2) * np.eye(columns.shape[1])])
    below = np.concatenate([centered, np.zeros(columns.shape[1])])
    slopes = np.linalg.lstsq(above, below, rcond=None)[0]
    matrix = np.zeros((n_scores, n_scores))
    for slope, (i, j) in zip(slopes[n_scores:], pairs, strict=True):
        matrix[i, j] += slope / 2
        matrix[j, i] += slope / 2
    values, vectors = np.linalg.eigh(matrix)
    size = np.array([np.std(v * (z @ a) ** 2) for v, a in zip(values, vectors.T, strict=True)])
    kept = [k for k in np.argsort(-size)[:most] if size[k] > 0.05 * output.std()]
    matrix = sum((values[k] * np.outer(vectors[:, k], vectors[:, k]) for k in kept), 0 * matrix)
    h = z @ slopes[:n_scores] + np.einsum("ri,ij,rj->r", z, matrix, z)
    left = np.square((output - h) - (output - h).mean()).sum() / (n_rows - columns.shape[1])
    return (slopes[:n_scores], matrix) if left <= 0.75 * output.var() else None


@pytest.mark.parametrize(
    ("n_scores", "n_rows", "n_outputs"),
    [(1, 16, 1), (2, 24, 2), (3, 40, 3), (4, 56, 4), (4, 200, 13), (3, 72, 30)],
)
def test_the_form_is_that_of_a_regression_on_products(n_scores, n_rows, n_outputs):
    rng, decisions = np.random.default_rng(n_rows), []
    for _ in range(12):
        scores = 2.0 * rng.normal(size=(n_rows, n_scores)) + 1.0
        curves = rng.normal(size=(n_outputs, n_scores, n_scores)) * rng.choice([0.05, 0.5])
        outputs = scores @ rng.normal(size=(n_scores, n_outputs))
        outputs += np.einsum("ri,oij,rj->ro", scores, curves, scores)
        outputs += outputs.std(axis=0) * rng.normal(size=outputs.shape) * rng.uniform(0.6, 2.0)
        control = QuadraticControl.fit(scores, outputs)
        means, scales = scores.mean(axis=0), scores.std(axis=0)
        most = max(1, min(8, 24 // n_outputs))
        forms = [naive_form((scores - means) / scales, each, most) for each in outputs.T]
        decisions += [form is not None for form in forms]
        if control is None:
            assert not any(decisions[-n_outputs:])
            continue
        # Draws from two components whose scores have known means and unit variance.
        drawn = rng.normal(size=(1, 6, n_scores))
        sums = sums_of(drawn, control._weights)
        noise = control.noise(sums)[0]
        for form, found in zip(forms, noise.T, strict=True):
            expected = np.zeros(6)
            if form is not None:
                slopes, matrix = form
                z = (drawn[0] - means) / scales
                expected = z @ slopes + np.einsum("ri,ij,rj->r", z, matrix, z)
                for share, center in ((0.25, 0.3), (0.75, -1.0)):
                    at = (center - means) / scales
                    known = at @ slopes + at @ matrix @ at + (matrix.diagonal() / scales**2).sum()
                    expected = expected - share * known
            np.testing.assert_allclose(found, expected, atol=1e-5 * outputs.std())
    assert 0 < sum(decisions) < len(decisions)


@pytest.mark.parametrize(("n_rows", "has_one"), [(23, False), (24, True)])
def test_every_coefficient_of_scores_has_eight_rows(n_rows, has_one):
    scores = np.random.default_rng(0).normal(size=(n_rows, 3))
    found = QuadraticControl.fit(scores, scores @ np.array([[1.0], [2.0], [-1.0]]))
    assert (found is not None) == has_one
    assert QuadraticControl.fit(scores[:, :0], scores[:, :1]) is None


def test_rows_may_have_variances_of_their_own():
    scores = np.random.default_rng(1).normal(size=(400, 2))
    control = QuadraticControl.fit(scores, np.stack([scores[:, 0] ** 2, scores[:, 1]], axis=1))
    drawn = sums_of(np.random.default_rng(2).normal(size=(3, 5, 2)), control._weights)
    rows = np.array([[1.0], [4.0], [9.0]])
    own = drawn._replace(variances=drawn.variances * rows)
    for output in (None, np.array([0, 1, 0])):
        change = control.noise(drawn, output) - control.noise(own, output)
        alone = change[..., 0] if output is None else change
        # What is known of the square: its mean and its variance.
        np.testing.assert_allclose(alone[[0, 2]], (rows[[0, 2]] - 1) * np.ones(5), rtol=0.05)
        assert not (change[..., 1] if output is None else change[1]).any()
