"""``dsage.explain_rows``: from a model and rows to values."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

import dsage
import row_cases as cases
from dsage import Graph
from dsage.samplers import Gaussian

QUIET = cases.QUIET
NAMES = ["a", "b", "c", "d"]
GENERATOR = np.random.default_rng(0)
X = pd.DataFrame(GENERATOR.normal(size=(120, 4)) @ GENERATOR.normal(size=(4, 4)), columns=NAMES)
Y = pd.Series(X.to_numpy() @ [1.0, -1.0, 0.5, 0.0] + GENERATOR.normal(size=120), name="y")
TRAIN = X[:100], Y[:100]
ROWS, TARGETS = X[112:], Y[112:]
FOREST = RandomForestRegressor(4, max_depth=5, random_state=0).fit(*TRAIN)
LINEAR = LinearRegression().fit(*TRAIN)
GRAPH = Graph([*NAMES, "y"], [("a", "b"), ("b", "y"), ("c", "y"), ("y", "d")])
# A sampler that is already fitted is not scored, which saves time.
PLAIN = {"graph": None, "sampler": Gaussian().fit(TRAIN[0]), **QUIET}


def test_a_linear_model_of_independent_features_has_the_closed_form():
    # phi_j = w_j (x_j - mean of x_j), as shap's LinearExplainer has it.
    cov = np.diag([1.0, 4.0, 0.25, 2.0])
    mean = np.array([1.0, 0.0, -1.0, 2.0])
    sampler = Gaussian.from_moments(mean, cov, NAMES)
    found = dsage.explain_rows(LINEAR, *TRAIN, ROWS, graph=None, sampler=sampler, **QUIET)
    expected = LINEAR.coef_ * (ROWS.to_numpy() - mean)
    np.testing.assert_allclose(found.values, expected, atol=1e-9)
    np.testing.assert_allclose(found.se, 0.0)
    np.testing.assert_allclose(
        found.base_values, float(LINEAR.intercept_ + LINEAR.coef_ @ mean), atol=1e-9
    )


def test_values_add_up_to_the_predictions():
    found = dsage.explain_rows(FOREST, *TRAIN, ROWS, tolerance=0.1, **PLAIN)
    np.testing.assert_allclose(found.predictions, FOREST.predict(ROWS))
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total, found.predictions, atol=1e-9)
    assert np.abs(found.unexplained).max() < 1e-9
    assert found.se.max() <= 0.1 * np.ptp(found.values)


@pytest.mark.parametrize("graph", [None, GRAPH])
def test_the_mean_of_the_values_of_losses_is_the_sage_value(graph):
    # A linear model needs no draws, and few features allow all orderings: nothing is random.
    options = {**PLAIN, "graph": graph, "exact": "always", "audit": False}
    local = dsage.explain_rows(LINEAR, *TRAIN, ROWS, TARGETS, values="loss", **options)
    sage = dsage.explain(LINEAR, *TRAIN, ROWS, TARGETS, sampler_check=False, **options)
    np.testing.assert_allclose(local.values.mean(axis=0), sage.values, rtol=1e-9, atol=1e-12)
    means = local.mean_frame().set_index("feature")["mean"]
    np.testing.assert_allclose(means[NAMES], sage.values, rtol=1e-9, atol=1e-12)


def test_the_mean_of_the_values_of_losses_is_the_sage_value_within_errors():
    options = {**PLAIN, "tolerance": 0.1}
    local = dsage.explain_rows(FOREST, *TRAIN, ROWS, TARGETS, values="loss", **options)
    options["random_state"] = 1
    sage = dsage.explain(FOREST, *TRAIN, ROWS, TARGETS, sampler_check=False, **options)
    error = np.hypot(local.mean_frame().set_index("feature")["se"][NAMES], sage.se)
    assert (np.abs(local.values.mean(axis=0) - sage.values) < 4 * error).all()
    np.testing.assert_allclose(local.predictions, (TARGETS - FOREST.predict(ROWS)) ** 2)


def test_a_graph_makes_separated_features_zero_and_is_audited():
    with pytest.warns(UserWarning, match=r"Skipping by separation changes the values of \['a'"):
        found = dsage.explain_rows(
            lambda rows: np.asarray(rows)[:, 0] ** 2, *TRAIN, ROWS, target="y",
            graph=GRAPH, sampler="gaussian", tolerance=0.1, **QUIET,
        )  # fmt: skip
    assert found.estimand == "d-sage"
    frame = found.to_frame()
    assert {"audit_difference", "audit_se", "audit_matters"} <= set(frame.columns)
    assert frame.loc[frame["audit_matters"], "feature"].isin(["a", "b", "c"]).all()
    assert "d-SHAP values" in repr(found)
    assert "audit: the graph changes the values of a (" in repr(found)
    assert "that the graph does not explain" in repr(found)


def test_the_correction_makes_plain_values():
    options = {**PLAIN, "tolerance": 0.1}
    plain = dsage.explain_rows(FOREST, *TRAIN, ROWS, **options)
    options |= {"graph": GRAPH, "estimand": "sage"}
    found = dsage.explain_rows(FOREST, *TRAIN, ROWS, **options)
    assert (np.abs(found.values - plain.values) < 6 * np.hypot(found.se, plain.se)).all()
    assert "that the graph does not explain" not in repr(found)


def test_groups_have_values_of_their_own():
    options = {**PLAIN, "groups": {"pair": ["a", "b"]}}
    found = dsage.explain_rows(LINEAR, *TRAIN, ROWS, **options)
    assert found.feature_names == ("pair", "c", "d")
    np.testing.assert_allclose(found.unexplained, 0.0, atol=1e-9)
    assert found.texts[0][0] == f"{ROWS['a'].iloc[0]:.4g}, {ROWS['b'].iloc[0]:.4g}"


def test_a_graph_of_groups_is_used():
    options = {**PLAIN, "graph": GRAPH, "groups": {"pair": ["b", "c"]}, "audit": False}
    found = dsage.explain_rows(LINEAR, *TRAIN, ROWS, **options)
    assert found.feature_names == ("pair", "a", "d")
    assert found.estimand == "d-sage"


def test_a_checkpoint_resumes_the_run(tmp_path):
    options = {**PLAIN, "exact": "never", "checkpoint": tmp_path / "state"}
    dsage.explain_rows(FOREST, *TRAIN, ROWS[:3], n_orderings=8, **options)
    resumed = dsage.explain_rows(FOREST, *TRAIN, ROWS[:3], n_orderings=24, **options)
    del options["checkpoint"]
    whole = dsage.explain_rows(FOREST, *TRAIN, ROWS[:3], n_orderings=24, **options)
    np.testing.assert_array_equal(resumed.values, whole.values)
    assert resumed.choices.run.checkpoint == str(tmp_path / "state")


def test_every_output_has_a_checkpoint(tmp_path):
    def both(rows):
        return np.stack([FOREST.predict(rows), -FOREST.predict(rows)], axis=1)

    y = np.stack([TRAIN[1], -TRAIN[1]], axis=1)
    options = {**PLAIN, "n_orderings": 8, "checkpoint": tmp_path / "state"}
    found = dsage.explain_rows(both, TRAIN[0], y, ROWS[:2], **options)
    assert {file.name for file in tmp_path.iterdir()} == {"state", "state.output2"}
    assert found.values.shape == (2, 4, 2)
    np.testing.assert_allclose(found.values[..., 0], -found.values[..., 1], atol=1e-9)
    assert found.outputs == (0, 1)
    first = dsage.explain_rows(both, TRAIN[0], y, ROWS[:2], output=0, **PLAIN, n_orderings=8)
    np.testing.assert_allclose(first.values, found.of_output(0).values)


def test_two_classes_have_one_output_and_more_have_all():
    labels = np.where(Y > 0, "yes", "no")
    model = LogisticRegression().fit(X, labels)
    options = {**PLAIN, "n_orderings": 8}
    found = dsage.explain_rows(model, X, labels, ROWS[:3], **options)
    assert found.outputs == ("yes",)
    other = dsage.explain_rows(model, X, labels, ROWS[:3], output="no", **options)
    np.testing.assert_allclose(other.values, -found.values, atol=1e-9)
    assert cases.classified().outputs == ("elm", "fir", "oak")
    np.testing.assert_allclose(cases.classified().predictions.sum(axis=1), 1.0)


def test_tables_are_taken_as_they_are():
    found = cases.explained()
    assert found.values.shape == (12, 4)
    texts = np.array(found.texts)
    rows = cases.tables()[2]
    assert (texts[:, 0] == "missing").tolist() == rows["size"].isna().tolist()
    assert texts[0, 1] == rows["kind"].iloc[0]
    assert texts[0, 2] == str(rows["day"].iloc[0])[:10]
    assert set(texts[:, 3]) == {"True", "False"}
    assert found.row_names[0] == "tree 0"
    # The model ignores nothing but may miss the flag: the sizes matter more.
    sizes = np.abs(found.values).mean(axis=0)
    assert sizes[0] > sizes[3]


def test_penguins_with_missing_values_are_explained():
    penguins = dsage.datasets.load_penguins().dropna(subset="body_mass_g")
    y = penguins["body_mass_g"]
    penguins = penguins[["species", "flipper_length_mm", "sex"]]
    model = cases.HistGradientBoostingRegressor(
        max_iter=10, categorical_features="from_dtype", random_state=0
    ).fit(penguins, y)
    absent = penguins[penguins["sex"].isna()][:2]
    found = dsage.explain_rows(model, penguins, y, absent, graph=None, sampler="mix", **cases.FEW)
    assert [row[found.feature_names.index("sex")] for row in found.texts] == ["missing"] * 2
    np.testing.assert_allclose(found.unexplained, 0.0, atol=1e-6)


def test_marginal_values_are_called_so():
    options = {**PLAIN, "sampler": "marginal", "n_orderings": 4}
    found = dsage.explain_rows(LINEAR, *TRAIN, ROWS[:2], **options)
    assert repr(found).startswith("Marginal SHAP values of LinearRegression")
    # Draws are training rows, so that the means of the features are those of training.
    expected = LINEAR.coef_ * (ROWS[:2] - TRAIN[0].mean()).to_numpy()
    assert np.abs(found.values - expected).max() < 0.5 * np.ptp(expected)


def test_arrays_have_numbered_rows():
    found = dsage.explain_rows(
        lambda rows: rows.sum(axis=1), X.to_numpy(), Y.to_numpy(), ROWS.to_numpy()[:2],
        graph=None, sampler="gaussian", **QUIET,
    )  # fmt: skip
    assert found.row_names == (0, 1)
    assert found.feature_names == ("X1", "X2", "X3", "X4")


def test_jobs_and_seeds_behave_as_those_of_explain():
    options = {**PLAIN, "n_orderings": 8, "exact": "never"}
    one = dsage.explain_rows(FOREST, *TRAIN, ROWS[:3], **options)
    with joblib.parallel_config(backend="threading"):
        two = dsage.explain_rows(FOREST, *TRAIN, ROWS[:3], **(options | {"n_jobs": 2}))
    np.testing.assert_array_equal(one.values, two.values)
    other = dsage.explain_rows(FOREST, *TRAIN, ROWS[:3], **(options | {"random_state": 5}))
    assert (other.values != one.values).any()
    assert one.choices.run.random_state == "0"


def test_the_choices_tell_what_was_done():
    choices = cases.explained().choices
    assert choices.sampler.name == "Mix"
    assert (choices.data.n_rows_train, choices.data.n_rows_evaluation) == (100, 12)
    assert choices.estimate.n_draws == 4
    assert choices.evaluations.n_made > 0
    default = dsage.explain_rows(LINEAR, *TRAIN, ROWS[:2], **PLAIN).choices
    assert default.estimate.stopping == "Tolerance(relative=0.02, min_units=10)"
    assert default.estimate.n_draws == 8


def test_progress_is_reported_by_phase():
    seen = []
    options = {**PLAIN, "progress": lambda event: seen.append(type(event).__name__)}
    dsage.explain_rows(FOREST, *TRAIN, ROWS[:2], n_orderings=8, **options)
    assert seen.count("PhaseStarted") == 3
    assert "EstimateProgressed" in seen


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        ((None,), {}, TypeError, "rows must be the rows to explain; got None"),
        ((ROWS,), {"values": "loss"}, TypeError, "y_rows must be given for values='loss'"),
        ((ROWS,), {"values": "losses"}, ValueError, "Did you mean 'loss'"),
        ((ROWS[:0],), {}, ValueError, "rows must be at least one row; got 0"),
        ((ROWS, TARGETS[:3]), {}, ValueError, "y_rows must be of 8 rows, as rows is; got 3"),
        ((ROWS.to_numpy(),), {}, TypeError, "X_train and rows must be of one kind"),
        ((ROWS.drop(columns="c"),), {}, ValueError, "These are missing: 'c'"),
        ((ROWS,), {"output": 3}, ValueError, "output must be left out for LinearRegression"),
        ((ROWS,), {"sample_weight": 1}, ValueError, "each option must be one of the options of ex"),
        ((ROWS,), {"n_draw": 1}, ValueError, "Did you mean 'n_draws'"),
    ],
)
def test_wrong_inputs_are_refused(arguments, options, error, text):
    with pytest.raises(error, match=text):
        dsage.explain_rows(LINEAR, *TRAIN, *arguments, **(PLAIN | options))


def test_errors_name_the_argument_and_the_column():
    odd = ROWS.assign(c="many")
    with pytest.raises((TypeError, ValueError), match="'c'") as caught:
        dsage.explain_rows(LINEAR, *TRAIN, odd, **PLAIN)
    assert caught.value.__notes__ == ["This is about rows."]
    endless = ROWS.copy()
    endless.iloc[3, 1] = np.inf
    with pytest.raises(ValueError, match="'b'"):
        dsage.explain_rows(LINEAR, *TRAIN, endless, **PLAIN)


def test_a_class_that_does_not_exist_is_refused():
    labels = np.where(Y > 0, "yes", "no")
    model = LogisticRegression().fit(X, labels)
    with pytest.raises(ValueError, match="output must be one of the classes of LogisticRegression"):
        dsage.explain_rows(model, X, labels, ROWS[:3], output="maybe", **PLAIN)


def test_very_many_outputs_need_a_name():
    def many(rows):
        return np.repeat(np.asarray(rows)[:, :1], 30, axis=1)

    y = np.repeat(np.asarray(Y)[:100, None], 30, axis=1)
    with pytest.raises(ValueError, match="output must be one of the 30 outputs of many"):
        dsage.explain_rows(many, TRAIN[0], y, ROWS[:2], **PLAIN)


def test_categories_that_training_lacks_are_told():
    X, y, rows, _ = cases.tables()
    new = rows[:2].assign(kind=pd.Categorical(["yew", "oak"]))
    with pytest.warns(UserWarning, match="'kind' has 1 category in rows that X_train lacks"):
        dsage.explain_rows(lambda rows: rows["size"].fillna(0.0).to_numpy(), X, y, new,
                           graph=None, sampler="mix", **cases.FEW)  # fmt: skip


@pytest.mark.parametrize(("seed", "n_draws"), [(0, 8), (1, 4)])
def test_values_add_up_where_all_draws_agree_by_chance(seed, n_draws):
    generator = np.random.default_rng(0)
    sides = generator.choice(["x", "y", "z"], 80)
    coins = pd.DataFrame({"side": sides, "b": generator.normal(size=80)})

    def is_x(rows):
        return (rows["side"] == "x").to_numpy(float)

    found = dsage.explain_rows(
        is_x, coins, is_x(coins), coins[:9], loss="squared_error", graph=None, sampler="mix",
        n_draws=n_draws, n_orderings=4, **QUIET | {"random_state": seed},
    )  # fmt: skip
    assert (found.se == 0).all(axis=1).any()
    assert np.abs(found.unexplained).max() < 1e-12
