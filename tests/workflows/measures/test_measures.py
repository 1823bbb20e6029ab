"""Measures of linear models of normal features, which have closed forms; and their table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

import dsage
from dsage.games import LossGame
from dsage.games.redrawn import Redrawn
from dsage.models import as_loss, as_model
from dsage.samplers import Gaussian
from dsage.workflows.measures.averages import average
from dsage.workflows.measures.kinds import MEASURES

RNG = np.random.default_rng(0)
NAMES = ["a", "b", "c"]
WEIGHTS = np.array([1.0, -2.0, 0.5])
COVARIANCE = np.array([[1.0, 0.6, 0.0], [0.6, 2.0, 0.5], [0.0, 0.5, 1.0]])
N_ROWS = 300
X = pd.DataFrame(
    RNG.multivariate_normal(np.zeros(3), COVARIANCE, size=N_ROWS, method="cholesky"), columns=NAMES
)
Y = X.to_numpy() @ WEIGHTS + RNG.normal(size=N_ROWS)
SAMPLER = Gaussian.from_moments(np.zeros(3), COVARIANCE, NAMES)
LINEAR = LinearRegression().fit(X, X.to_numpy() @ WEIGHTS)
SINGLE = ["total", "first-order", "cfi", "pfi", "loco"]


def measured(model=LINEAR, measures=SINGLE, **options):
    options = {"sampler": SAMPLER, "random_state": 0, "progress": False} | options
    return dsage.explain_measures(model, X, Y, X, Y, measures=measures, **options)


@pytest.fixture(scope="module")
def all_found():
    return measured(n_draws=32)


def left_over(at):
    """The residuals of a feature given the others, and their variance."""
    others = [other for other in range(3) if other != at]
    slopes = np.linalg.solve(COVARIANCE[np.ix_(others, others)], COVARIANCE[others, at])
    variance = COVARIANCE[at, at] - COVARIANCE[at, others] @ slopes
    return X.to_numpy()[:, at] - X.to_numpy()[:, others] @ slopes, variance


def expected(name, at):
    """The closed form of a measure, as a mean over the rows."""
    rows, error = X.to_numpy(), Y - X.to_numpy() @ WEIGHTS
    off, variance = left_over(at)
    if name == "total":
        return ((error + WEIGHTS[at] * off) ** 2 - error**2).mean()
    if name == "cfi":
        redrawn = (error + WEIGHTS[at] * off) ** 2 + WEIGHTS[at] ** 2 * variance
        return (redrawn - error**2).mean()
    if name == "pfi":
        # Draws are those of the training rows, here the same.
        shift = error + WEIGHTS[at] * (rows[:, at] - rows[:, at].mean())
        return (shift**2 + WEIGHTS[at] ** 2 * rows[:, at].var() - error**2).mean()
    if name == "loco":
        kept = X.drop(columns=NAMES[at])
        without = LinearRegression().fit(kept, Y).predict(kept)
        return ((Y - without) ** 2 - error**2).mean()
    known = rows[:, at] * (WEIGHTS @ COVARIANCE[:, at]) / COVARIANCE[at, at]
    return (Y**2 - (Y - known) ** 2).mean()


@pytest.mark.parametrize("name", SINGLE)
def test_linear_models_of_normal_features_have_closed_forms(all_found, name):
    found = all_found.averages[name]
    exact = [expected(name, at) for at in range(3)]
    assert (np.abs(found.values - exact) < 4 * found.se + 1e-9).all()
    assert found.se.max() < 0.05 * np.ptp(exact)


def test_the_population_has_the_known_values_within_the_errors_of_the_rows(all_found):
    for name, factor in (("total", 1.0), ("cfi", 2.0)):
        found = all_found.averages[name]
        exact = [factor * WEIGHTS[at] ** 2 * left_over(at)[1] for at in range(3)]
        assert (np.abs(found.values - exact) < 4 * np.hypot(found.se, found.se_rows)).all()


def test_errors_of_draws_are_those_between_seeds():
    loss = as_loss("squared_error")
    every, one = np.ones((3, 3), dtype=bool), np.eye(3, dtype=bool)

    def run_of(seed):
        options = {"loss": loss, "n_draws": 8, "random_state": seed}
        return average(Redrawn(as_model(LINEAR, loss), SAMPLER, X, Y, **options), ~one, every)

    runs = [run_of(seed) for seed in range(20)]
    spread = np.std([run.values for run in runs], axis=0, ddof=1)
    claimed = np.sqrt(np.mean([run.se**2 for run in runs], axis=0))
    # The standard deviation of 20 has a relative error of 16 %.
    np.testing.assert_allclose(spread / claimed, 1.0, atol=0.5)


def test_errors_of_rows_are_those_between_samples():
    every, one = np.ones((3, 3), dtype=bool), np.eye(3, dtype=bool)

    def values(seed):
        rng = np.random.default_rng(seed)
        rows = pd.DataFrame(
            rng.multivariate_normal(np.zeros(3), COVARIANCE, 300, method="cholesky"), columns=NAMES
        )
        y = rows.to_numpy() @ WEIGHTS + rng.normal(size=300)
        return average(LossGame(LINEAR, SAMPLER, rows, y), ~one, every)

    runs = [values(seed) for seed in range(40)]
    spread = np.std([run.values for run in runs], axis=0, ddof=1)
    claimed = np.sqrt(np.mean([run.se_rows**2 for run in runs], axis=0))
    np.testing.assert_allclose(spread / claimed, 1.0, atol=0.35)


def test_total_and_first_order_of_a_model_with_draws_are_those_of_its_linear_twin():
    """A function is not known to be affine, so its risks are drawn and corrected."""
    drawn = measured(lambda rows: np.asarray(rows) @ WEIGHTS, measures=["total", "first-order"])
    exact = measured(measures=["total", "first-order"])
    for name, found in drawn.averages.items():
        assert (found.se > 0).all()
        assert (np.abs(found.values - exact.averages[name].values) < 4 * found.se).all()
        assert (exact.averages[name].se == 0).all()


def test_sage_values_are_those_of_explain():
    found = measured(measures=["shapley", "total"])
    own = dsage.explain(LINEAR, X, Y, X, Y, sampler=SAMPLER, graph=None, estimand="sage",
                        sampler_check=False, random_state=0, progress=False)  # fmt: skip
    np.testing.assert_array_equal(found.averages["shapley"].values, own.values)
    assert found.explanation is not None


def test_groups_are_redrawn_and_left_out_together():
    found = measured(groups={"pair": ["a", "b"]}, n_draws=32)
    assert found.feature_names == ("pair", "c")
    off = X.to_numpy()[:, :2] - np.outer(X["c"], COVARIANCE[:2, 2])
    left = COVARIANCE[:2, :2] - np.outer(COVARIANCE[:2, 2], COVARIANCE[:2, 2])
    error = Y - X.to_numpy() @ WEIGHTS
    total = ((error + off @ WEIGHTS[:2]) ** 2 - error**2).mean()
    np.testing.assert_allclose(found.averages["total"].values[0], total)
    cfi = found.averages["cfi"]
    assert abs(cfi.values[0] - total - WEIGHTS[:2] @ left @ WEIGHTS[:2]) < 4 * cfi.se[0]
    without = LinearRegression().fit(X[["c"]], Y).predict(X[["c"]])
    loco = ((Y - without) ** 2 - error**2).mean()
    np.testing.assert_allclose(found.averages["loco"].values[0], loco)


def test_weights_of_rows_count_in_all_measures():
    weights = np.where(X["a"] > 0, 3.0, 1.0)
    found = measured(measures=["total", "loco"], sample_weight=weights)
    off, _ = left_over(1)
    error = Y - X.to_numpy() @ WEIGHTS
    losses = (error + WEIGHTS[1] * off) ** 2 - error**2
    np.testing.assert_allclose(
        found.averages["total"].values[1], np.average(losses, weights=weights)
    )


@pytest.fixture(scope="module")
def classified():
    """A classifier of labels, with a feature that has missing values."""
    rows = X.copy()
    rows.loc[::7, "c"] = np.nan
    y = np.where(Y > 0, "high", "low")
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(rows[:200], y[:200])
    options = {"sampler": "mix", "measures": SINGLE, "interactions": True}
    options |= {"loss": "brier", "n_draws": 4}
    rows = rows[:200], y[:200], rows[200:240], y[200:240]
    return dsage.explain_measures(model, *rows, random_state=0, progress=False, **options)


def test_classes_and_missing_values_have_all_measures(classified):
    table = classified.table()
    assert table.shape == (3, 5)
    assert np.isfinite(table.to_numpy()).all()
    assert table.index[0] == "b"
    assert classified.loss == "brier"
    assert (table.loc["b"] > 0).all()


def test_interactions_are_a_table_of_pairs(classified):
    pairs = classified.interactions
    assert pairs.columns.tolist() == ["feature", "other", "value", "se"]
    assert len(pairs) == 3
    assert pairs["value"].abs().is_monotonic_decreasing
    assert (pairs["se"] > 0).all()


def test_one_table_has_all_measures(all_found):
    frame = all_found.to_frame()
    assert len(frame) == 3 * len(SINGLE)
    assert frame["measure"].unique().tolist() == SINGLE
    assert (frame["lower_total"] <= frame["lower"] + 1e-12).all()
    assert frame[frame["measure"] == "cfi"]["feature"].iloc[0] == "b"
    assert all_found["cfi"]["p_value"].iloc[0] < 1e-6
    assert "total" in str(all_found)
    assert "<table" in all_found._repr_html_()
    with pytest.raises(KeyError, match="measure must be one that was estimated; got 'sage'"):
        all_found["sage"]


def test_one_plot_has_a_panel_for_each_measure(all_found):
    pytest.importorskip("matplotlib")
    axes = all_found.plot(top=2)
    assert [ax.get_title() for ax in axes] == [MEASURES[name].title for name in SINGLE]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["b", "a"]
    assert len({ax.get_xlim() for ax in axes}) == 1


def test_a_kinked_loss_has_its_bias_in_the_errors():
    found = measured(lambda rows: np.asarray(rows) @ WEIGHTS, "total", loss="mae", n_draws=4)
    more = measured(lambda rows: np.asarray(rows) @ WEIGHTS, "total", loss="mae", n_draws=256)
    assert (found.averages["total"].se > more.averages["total"].se).all()
    change = found.averages["total"].values - more.averages["total"].values
    assert (np.abs(change) < 4 * found.averages["total"].se).all()


def test_a_single_row_has_no_error_of_rows():
    found = dsage.explain_measures(LINEAR, X, Y, X[:1], Y[:1], sampler=SAMPLER, measures="total",
                                   random_state=0, progress=False)  # fmt: skip
    assert np.isnan(found.averages["total"].se_rows).all()
    assert found.to_frame()["p_value"].isna().all()


def test_seeds_repeat_results(all_found):
    again = measured(n_draws=32)
    pd.testing.assert_frame_equal(all_found.to_frame(), again.to_frame())


def test_loco_needs_a_model_that_can_be_fitted_again():
    with pytest.raises(TypeError, match=r"an estimator that can be cloned, for LOCO; .*refit="):
        measured(lambda rows: np.zeros(len(rows)), measures="loco")
    with pytest.raises(TypeError, match="refit must be a function"):
        measured(measures="loco", refit=3)
    found = measured(lambda rows: np.asarray(rows) @ WEIGHTS, measures="loco",
                     refit=LinearRegression().fit)  # fmt: skip
    np.testing.assert_allclose(found.averages["loco"].values[2], expected("loco", 2))


def test_an_error_of_a_refit_names_the_feature():
    def refit(rows, y):
        if "b" not in rows:
            raise RuntimeError("b is needed")
        return LinearRegression().fit(rows, y)

    with pytest.raises(RuntimeError, match="b is needed") as caught:
        measured(measures="loco", refit=refit)
    assert "the model without 'b'" in caught.value.__notes__[0]


def test_loco_needs_two_features():
    model = LinearRegression().fit(X[["a"]], Y)
    with pytest.raises(ValueError, match="of two features or groups for LOCO"):
        dsage.explain_measures(model, X[["a"]], Y, X[["a"]], Y, measures="loco",
                               sampler="gaussian", progress=False)  # fmt: skip


def test_unknown_measures_and_options_are_refused():
    with pytest.raises(ValueError, match=r"measures must be one of the measures; .*'total'"):
        measured(measures="totl")
    with pytest.raises(ValueError, match="each option must be one of the options of explain"):
        measured(measures="total", tolerence=0.1)
    with pytest.raises(TypeError, match="tolerance must be given for 'shapley' only"):
        measured(measures="total", tolerance=0.1)


def test_each_draw_has_a_loss_of_its_own():
    loss = as_loss("squared_error")
    model = as_model(LINEAR, loss)
    game = Redrawn(model, SAMPLER, X, Y, loss=loss, n_draws=4, random_state=0)
    rows = np.arange(N_ROWS)
    drawn = game.risks(np.zeros((1, 3), dtype=bool), rows)
    assert drawn.shape == (1, N_ROWS, 4)
    draws = SAMPLER.draw(X, np.zeros(3, dtype=bool), game.noise(rows, 0))
    np.testing.assert_allclose(drawn[0], (draws @ WEIGHTS - Y[:, None]) ** 2, atol=1e-9)
    full = game.risks(np.ones((1, 3), dtype=bool), rows)
    np.testing.assert_allclose(full[0, :, 0], (Y - X.to_numpy() @ WEIGHTS) ** 2, atol=1e-9)
    assert game.draw_bias() is None
    assert game.first_level() is None
    assert game.first_levels() == ()
