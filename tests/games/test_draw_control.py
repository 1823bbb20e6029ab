import numpy as np
import pytest
from scipy.special import expit

from dsage.games import LossGame, OutputGame
from dsage.games.draw_control import DrawControl
from dsage.samplers import Gaussian, GaussianCopula, normal_scores
from dsage.samplers.latent import Latent

GENERATOR = np.random.default_rng(0)
MEAN = np.array([1.0, -2.0, 0.0, 3.0])
ROOT = GENERATOR.normal(size=(4, 4))
COVARIANCE = ROOT @ ROOT.T + np.eye(4)
X = GENERATOR.multivariate_normal(MEAN, COVARIANCE, 500, method="cholesky")
Y = X[:, 0] + np.sin(X[:, 1]) + GENERATOR.normal(size=500)
GAUSSIAN = Gaussian.from_moments(MEAN, COVARIANCE, list("abcd"))
COPULA = GaussianCopula().fit(np.exp(X / 4))
ORDER = np.array([2, 0, 3, 1])


def bent(rows):
    rows = np.asarray(rows)
    return rows[:, 0] + 2.0 * np.sin(rows[:, 1]) + 0.2 * rows[:, 0] * rows[:, 2]


def probabilities(rows):
    p = expit(bent(rows))
    return np.column_stack([1 - p, p])


def switched(rows):
    """Depends on the sign of a product only: no sum of functions of one feature explains it."""
    rows = np.asarray(rows) - MEAN
    return np.sign(rows[:, 0] * rows[:, 1] * rows[:, 2] * rows[:, 3])


def fitted(outputs=None, n_rows=4000):
    scores = np.random.default_rng(1).normal(size=(3, n_rows))
    if outputs is None:
        outputs = np.stack([scores[0] + np.cos(scores[1]), np.sin(2 * scores[2])], axis=1)
    return DrawControl.fit(scores, outputs)


@pytest.mark.parametrize(("sampler", "rows"), [(GAUSSIAN, X), (COPULA, np.exp(X / 4))])
def test_scores_behind_draws_have_the_law_that_is_told(sampler, rows):
    n_draws = 4000
    scores = normal_scores(np.random.default_rng(2).random((3, n_draws, 4)))
    found = list(sampler.ordering(ORDER).latent_prefixes(rows[:3], scores, [0, 1, 3]))
    assert [length for length, _, _ in found] == [0, 1, 3]
    for length, _, latent in found:
        np.testing.assert_array_equal(latent.variables, ORDER[length:])
        z = (latent.scores - latent.centers) / latent.spreads
        assert np.abs(z.mean(axis=2)).max() < 4.5 / np.sqrt(n_draws)
        assert np.abs(z.std(axis=2) - 1.0).max() < 4.5 / np.sqrt(2 * n_draws)


@pytest.mark.parametrize(("sampler", "rows"), [(GAUSSIAN, X), (COPULA, np.exp(X / 4))])
def test_draws_with_their_scores_are_the_draws(sampler, rows):
    scores = normal_scores(np.random.default_rng(2).random((3, 5, 4)))
    ordering = sampler.ordering(ORDER)
    told = [(n, draws.copy()) for n, draws, _ in ordering.latent_prefixes(rows[:3], scores)]
    for (n, draws), (m, plain) in zip(told, ordering.prefixes(rows[:3], scores), strict=True):
        assert n == m
        np.testing.assert_array_equal(draws, plain)


def test_noise_has_mean_zero_given_what_is_known():
    control, n_draws = fitted(), 20_000
    centers, spreads = np.array([[0.3], [-1.0]]), np.array([0.5, 1.2])
    z = np.random.default_rng(3).normal(size=(2, 1, n_draws))
    scores = centers[:, :, None] + spreads[:, None, None] * z
    latent = Latent(np.array([2, 1]), scores, centers[:, :, None], spreads[:, None, None])
    noise = control.noise(latent)
    assert noise.shape == (1, n_draws, 2)
    assert (noise.std(axis=1) > 0.1).all()
    assert (np.abs(noise.mean(axis=1)) < 4.5 * noise.std(axis=1) / np.sqrt(n_draws)).all()


def test_noise_is_that_of_the_function():
    control = fitted()
    # Few rows lie farther out.
    scores = np.linspace(-2.0, 2.0, 100).reshape(1, 1, -1)
    latent = Latent(np.array([1]), scores, np.zeros((1, 1, 1)), np.ones((1, 1, 1)))
    expected = np.cos(scores[0, 0]) - np.exp(-0.5)
    np.testing.assert_allclose(control.noise(latent)[0, :, 0], expected, atol=0.05)


def test_scores_far_out_follow_the_function_and_leave_other_rows_alone():
    control, period = fitted(), 9.0
    near = np.random.default_rng(4).normal(size=(2, 1, 50))
    turns = np.array([1.0, -3.0])[:, None, None]
    centers, spreads = np.zeros((2, 2, 1)), np.ones((2, 1, 1))
    scales = control._scales[[0, 2], None, None]
    scores = np.concatenate([near, near + turns * period * scales], axis=1)
    noise = control.noise(Latent(np.array([0, 2]), scores, centers, spreads))
    # The waves are the same, the linear parts are those of further periods.
    linear = (control._linear[:, [0, 2]] * turns[:, 0, 0] * period).sum(axis=1)
    np.testing.assert_allclose(noise[1] - noise[0], np.tile(linear, (50, 1)), atol=1e-9)
    alone = control.noise(Latent(np.array([0, 2]), near, centers[:, :1], spreads))
    np.testing.assert_array_equal(noise[:1], alone)
    edges = np.array([-4.5, 4.5, -4.5 - 1e-12])[None, None] * control._scales[1] + control._means[1]
    found = control.noise(Latent(np.array([1]), edges, centers[:1, :1], spreads[:1]))
    np.testing.assert_allclose(found[:, 0], found[:, 2], atol=1e-9)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("outputs", [None, np.array([1, 0, 1])])
def test_noise_of_a_row_does_not_depend_on_the_other_rows(outputs):
    control, generator = fitted(), np.random.default_rng(5)
    at, centers = np.arange(3), generator.normal(size=(3, 3, 1))
    scores, spreads = centers + generator.normal(size=(3, 3, 7)), np.ones((3, 1, 1))
    whole = control.noise(Latent(at, scores, centers, spreads), outputs)
    for row in range(3):
        own = Latent(at, scores[:, [row]], centers[:, [row]], spreads)
        alone = control.noise(own, None if outputs is None else outputs[[row]])
        np.testing.assert_array_equal(alone[0], whole[row])


def test_what_no_sum_of_functions_explains_has_no_control():
    scores = np.random.default_rng(1).normal(size=(3, 4000))
    assert fitted(np.sign(scores.prod(axis=0))[:, None]) is None
    assert fitted(np.ones((4000, 1))) is None


def test_few_rows_for_many_variables_have_no_control():
    scores = np.random.default_rng(1).normal(size=(30, 700))
    assert DrawControl.fit(scores, scores.sum(axis=0)[:, None]) is None
    # Fewer harmonics need fewer rows.
    assert DrawControl.fit(scores[:20], scores[:20].sum(axis=0)[:, None]) is not None


@pytest.mark.parametrize("sampler", [GAUSSIAN, COPULA], ids=["gaussian", "copula"])
@pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
def test_a_control_lowers_the_noise_and_keeps_the_mean(sampler, loss):
    rows = X if sampler is GAUSSIAN else np.exp(X / 4)
    is_numeric = loss == "squared_error"
    model, y = (bent, Y) if is_numeric else (probabilities, (Y > 0).astype(int))
    game, plain = (
        LossGame(model, sampler, rows[:40], y[:40], loss=loss, random_state=0) for _ in range(2)
    )
    plain._control = None
    everything, needed = np.arange(40), np.ones((1, 5), bool)
    epochs = range(40)
    found, other = (
        np.array([each.path_risks(ORDER[None], everything, at, needed)[0] for at in epochs])
        for each in (game, plain)
    )
    found, other = (risks.mean(axis=3)[:, 1:-1] for risks in (found, other))
    assert found.var(axis=0).mean() < 0.6 * other.var(axis=0).mean()
    se = np.sqrt((found.var(axis=0, ddof=1) + other.var(axis=0, ddof=1)) / len(epochs))
    z = (found.mean(axis=0) - other.mean(axis=0)) / se
    # About normal: the mean square of 120 of them is 1 +- sqrt(2 / 120).
    assert np.square(z).mean() < 1.0 + 4.5 * np.sqrt(2 / z.size)


def test_probabilities_are_not_corrected_but_their_losses_are():
    labels = (Y > 0).astype(int)
    game = LossGame(probabilities, GAUSSIAN, X[:20], labels[:20], loss="cross_entropy")
    assert not game.corrects_means
    np.testing.assert_array_equal(game.outputs_of(np.arange(20)), labels[:20])
    assert OutputGame(bent, GAUSSIAN, X[:20]).corrects_means
    # The slope of this loss says nothing about its jumps.
    jumping = LossGame(probabilities, GAUSSIAN, X[:20], labels[:20], loss="zero_one")
    assert jumping.outputs_of(np.arange(20)) is None
    assert jumping._control is None


def test_a_useless_control_is_left_out():
    with_control = LossGame(bent, GAUSSIAN, X[:20], Y[:20], random_state=0)
    without = LossGame(switched, GAUSSIAN, X[:20], Y[:20], random_state=0)
    assert with_control._control is not None
    assert without._control is None


def test_chunks_of_rows_do_not_change_the_risks():
    options = {"random_state": 0}
    whole = LossGame(bent, GAUSSIAN, X[:30], Y[:30], **options)
    small = LossGame(bent, GAUSSIAN, X[:30], Y[:30], max_bytes=5_000, **options)
    everything, needed = np.arange(30), np.ones((1, 5), bool)
    one, other = (game.path_risks(ORDER[None], everything, 0, needed) for game in (whole, small))
    np.testing.assert_array_equal(one, other)


def test_a_control_does_not_depend_on_the_unit_of_the_output():
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(2, 2000))
    output = (np.sin(scores[0]) + scores[1])[:, None]
    one = DrawControl.fit(scores, output)
    # A power of two, so that nothing is rounded on the way.
    for unit in (2.0**-40, 2.0**40):
        other = DrawControl.fit(scores, unit * output)
        np.testing.assert_allclose(other._linear, unit * one._linear, rtol=1e-6)
        np.testing.assert_allclose(other._waves, unit * one._waves, rtol=1e-3, atol=1e-8 * unit)


@pytest.mark.parametrize(("n_variables", "n_rows"), [(1, 24), (2, 80), (3, 300)])
def test_a_control_is_kept_if_regression_leaves_less_than_three_quarters(n_variables, n_rows):
    rng, decisions = np.random.default_rng(0), []
    for _ in range(60):
        scores = rng.normal(size=(n_variables, n_rows))
        outputs = 0.7 * scores[0] + rng.normal(size=n_rows) * rng.uniform(0.8, 1.6)
        n_harmonics = DrawControl.count_harmonics(n_variables, n_rows)
        z = (scores - scores.mean(axis=1)[:, None]) / scores.std(axis=1)[:, None]
        angles = [2 * np.pi / 9 * q * z for q in range(1, n_harmonics + 1)]
        columns = np.concatenate([z, *np.cos(angles), *np.sin(angles)])
        columns -= columns.mean(axis=1)[:, None]
        # Ridge regression as least squares with further rows.
        above = np.vstack([columns.T, np.sqrt(2.0) * np.eye(len(columns))])
        target = np.concatenate([outputs - outputs.mean(), np.zeros(len(columns))])
        slopes = np.linalg.lstsq(above, target, rcond=None)[0]
        left = ((target[:n_rows] - columns.T @ slopes) ** 2).sum() / (n_rows - len(columns))
        found = DrawControl.fit(scores, outputs[:, None])
        assert (found is not None) == (left < 0.75 * outputs.var())
        decisions.append(found is not None)
        if found is None:
            continue
        # The noise of the function, at scores whose law is known.
        center, spread = (
            rng.normal(size=(n_variables, 1, 1)),
            rng.uniform(0.2, 1, (n_variables, 1, 1)),
        )
        drawn = center + spread * rng.normal(size=(n_variables, 1, 5))
        latent = Latent(np.arange(n_variables), drawn, center, spread)
        expected = _noise_by_quadrature(slopes.reshape(-1, n_variables), scores, latent)
        np.testing.assert_allclose(found.noise(latent)[0, :, 0], expected, atol=1e-4)
    assert 0 < sum(decisions) < len(decisions)


def _noise_by_quadrature(slopes, scores, latent):
    """``h(z) - E[h(z)]`` with a linear part and harmonics, the expectation by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    n_harmonics = (len(slopes) - 1) // 2
    total = 0.0
    for j, (mean, scale) in enumerate(zip(scores.mean(axis=1), scores.std(axis=1), strict=True)):

        def h(x, j=j, mean=mean, scale=scale):
            z = (x - mean) / scale
            found = slopes[0, j] * z
            for q in range(1, n_harmonics + 1):
                found = found + slopes[q, j] * np.cos(2 * np.pi / 9 * q * z)
                found = found + slopes[n_harmonics + q, j] * np.sin(2 * np.pi / 9 * q * z)
            return found

        known = h(latent.centers[j, 0, 0] + latent.spreads[j, 0, 0] * nodes) @ weights
        total = total + h(latent.scores[j, 0]) - known / weights.sum()
    return total


@pytest.mark.parametrize(
    ("n_variables", "n_rows", "n_harmonics"),
    [(0, 100, 0), (1, 7, 0), (1, 23, 0), (1, 24, 1), (1, 39, 1), (1, 40, 2), (1, 71, 3), (1, 72, 4),
     (1, 1000, 4), (5, 119, 0), (5, 120, 1)],
)  # fmt: skip
def test_every_coefficient_has_eight_rows(n_variables, n_rows, n_harmonics):
    assert DrawControl.count_harmonics(n_variables, n_rows) == n_harmonics
