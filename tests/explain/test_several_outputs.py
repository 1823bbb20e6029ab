"""Targets of several columns: values in sum, and for each output."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import dsage
from dsage.models import as_loss
from explain_case import QUIET

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(160, 3)), columns=["a", "b", "c"])
X["b"] += X["a"]
Y = pd.DataFrame(
    {
        "height": 2 * X["a"] + X["b"] * X["c"] + 0.3 * RNG.normal(size=160),
        "weight": np.sin(X["b"]) + X["c"] + 0.3 * RNG.normal(size=160),
    }
)
ROWS = (X[:80], Y[:80], X[80:], Y[80:])
TREES = MultiOutputRegressor(DecisionTreeRegressor(max_depth=4, random_state=0)).fit(*ROWS[:2])
OPTIONS = {"graph": None, "sampler": "gaussian", **QUIET}
# Without a first level, whose slope depends on all columns, and with given numbers of orderings.
ALIKE = {
    **OPTIONS, "first_level": "none", "exact": "never", "n_orderings": 24, "n_draws": 8,
    "draw_control": "none",
}  # fmt: skip


def one(at, model, **options):
    """A run with one of the outputs."""
    name = Y.columns[at]
    rows = (ROWS[0], ROWS[1][name], ROWS[2], ROWS[3][name])
    return dsage.explain(lambda X: np.asarray(model.predict(X))[:, at], *rows, **options)


def sum_squares(y, prediction):
    return ((y - prediction) ** 2).sum(axis=1)


summed = as_loss(sum_squares, curve="quadratic")


def test_the_values_are_those_of_the_sum_and_each_output_has_those_of_its_own_run():
    found = dsage.explain(TREES, *ROWS, **ALIKE)
    runs = [one(at, TREES, **ALIKE) for at in (0, 1)]
    np.testing.assert_allclose(found.values, sum(run.values for run in runs), rtol=1e-9)
    same = dsage.explain(TREES, *ROWS, loss=summed, **ALIKE)
    np.testing.assert_allclose(found.values, same.values, rtol=1e-9)
    np.testing.assert_allclose(found.se, same.se, rtol=1e-9)
    np.testing.assert_allclose(found.estimate.se_rows, same.estimate.se_rows, rtol=1e-9)
    assert found.estimate.n_evaluated == same.estimate.n_evaluated == runs[0].estimate.n_evaluated
    for at, run in enumerate(runs):
        own = found.estimate.of_output(at)
        for name in ("values", "se_orderings", "se_draws", "se_rows"):
            expected = getattr(run.estimate, name)
            np.testing.assert_allclose(getattr(own, name), expected, rtol=1e-7, atol=1e-12)


def test_a_first_level_keeps_the_sum_exact():
    found = dsage.explain(TREES, *ROWS, **OPTIONS, exact="never", n_orderings=24)
    assert len(found.estimate.terms) == 2
    np.testing.assert_allclose(found.estimate.outputs.values.sum(axis=0), found.values, rtol=1e-9)
    truth = dsage.explain(TREES, *ROWS, **OPTIONS, exact="always", n_draws=256, n_orderings=1)
    for estimate, exact in (
        (found.estimate, truth.estimate),
        *((found.estimate.of_output(at), truth.estimate.of_output(at)) for at in (0, 1)),
    ):
        assert (np.abs(estimate.values - exact.values) <= 4.5 * estimate.se + 0.02).all()


def test_outputs_of_a_linear_regression_are_exact():
    model = LinearRegression().fit(*ROWS[:2])
    found = dsage.explain(model, *ROWS, **OPTIONS)
    assert found.estimate.is_exact
    for at, name in enumerate(Y.columns):
        alone = LinearRegression().fit(ROWS[0], ROWS[1][name])
        rows = (ROWS[0], ROWS[1][name], ROWS[2], ROWS[3][name])
        expected = dsage.explain(alone, *rows, **OPTIONS)
        np.testing.assert_allclose(
            found.estimate.outputs.values[at], expected.values, rtol=1e-9, atol=1e-12
        )


def test_tables_have_a_column_for_each_output():
    found = dsage.explain(TREES, *ROWS, **OPTIONS, n_orderings=8)
    frame = found.to_frame()
    np.testing.assert_allclose(frame["value[height]"] + frame["value[weight]"], frame["value"])
    assert {"se[height]", "se[weight]"} <= set(frame.columns)
    assert "values are sums over 2 outputs (height, weight)" in repr(found)
    heads = repr(found).splitlines()[2].split()
    assert heads[-2:] == ["height", "weight"]
    per_output = found.per_output
    assert per_output["output"].tolist() == ["height"] * 3 + ["weight"] * 3
    for name, part in per_output.groupby("output"):
        assert part["value"].is_monotonic_decreasing
        expected = frame.set_index("feature").loc[part["feature"], f"value[{name}]"]
        np.testing.assert_array_equal(part["value"], expected)
    assert (per_output["lower_total"] <= per_output["lower"]).all()
    assert (per_output["upper"] <= per_output["upper_total"]).all()
    assert found._repr_html_().count("height") == 2


def test_one_output_has_no_such_columns():
    found = one(0, TREES, **OPTIONS, n_orderings=8)
    assert found.per_output is None
    assert not [name for name in found.to_frame().columns if "[" in name]
    with pytest.raises(ValueError, match="output must be the number of one of 0 outputs; got 0"):
        found.estimate.of_output(0)


def test_outputs_are_saved_reported_and_drawn(tmp_path):
    found = dsage.explain(TREES, *ROWS, **OPTIONS, n_orderings=8)
    again = dsage.load(found.save(tmp_path / "run.dsage"))
    pd.testing.assert_frame_equal(again.per_output, found.per_output)
    pd.testing.assert_frame_equal(again.to_frame(), found.to_frame())
    assert "height" in found.report(tmp_path / "run.html").read_text()
    found.plot.bar()


def test_arrays_have_numbered_outputs():
    rows = [np.asarray(each) for each in ROWS]
    model = DecisionTreeRegressor(max_depth=3).fit(*rows[:2])
    found = dsage.explain(model, *rows, **OPTIONS, n_orderings=8)
    assert found.choices.data.outputs == ("target_1", "target_2")


def test_no_graph_is_learned_and_the_user_is_told():
    with pytest.warns(
        UserWarning, match="The target has 2 columns, and a graph is learned for one"
    ):
        found = dsage.explain(TREES, *ROWS, sampler="gaussian", n_orderings=8, **QUIET)
    assert found.graph is None
    with pytest.raises(ValueError, match="A graph is learned for one target"):
        dsage.explain(TREES, *ROWS, sampler="gaussian", **{**QUIET, "graph": "boss"})


@pytest.mark.filterwarnings("ignore:Skipping by separation")
@pytest.mark.parametrize("estimand", ["d-sage", "sage"])
@pytest.mark.parametrize("semantics", ["boundary", "skip"])
def test_a_graph_can_be_given(estimand, semantics):
    graph = dsage.Graph(["a", "b", "c", "target"], [("a", "b"), ("b", "target"), ("c", "target")])
    options = {**ALIKE, "graph": graph, "estimand": estimand, "semantics": semantics}
    found = dsage.explain(TREES, *ROWS, **options)
    same = dsage.explain(TREES, *ROWS, loss=summed, **options)
    np.testing.assert_allclose(found.values, same.values, rtol=1e-9)
    np.testing.assert_allclose(found.estimate.audit.values, same.estimate.audit.values, rtol=1e-9)
    np.testing.assert_allclose(found.estimate.outputs.values.sum(axis=0), found.values, rtol=1e-9)
    for name in ("surplus", "n_rows"):
        np.testing.assert_allclose(
            found.estimate.skipped_surpluses[name], same.estimate.skipped_surpluses[name]
        )


@pytest.mark.filterwarnings("ignore:With absolute_error, few draws")
def test_groups_weights_and_other_losses():
    options = {
        **ALIKE, "groups": {"both": ["a", "b"]}, "loss": "absolute_error",
        "sample_weight": np.linspace(0.5, 1.5, 80),
    }  # fmt: skip
    found = dsage.explain(TREES, *ROWS, **options)
    runs = [one(at, TREES, **options) for at in (0, 1)]
    assert found.feature_names == ("both", "c")
    for at, run in enumerate(runs):
        np.testing.assert_allclose(found.estimate.outputs.values[at], run.values, rtol=1e-9)


def test_a_checkpoint_is_gone_on_with(tmp_path):
    path = tmp_path / "run.npz"
    options = {**OPTIONS, "exact": "never"}
    dsage.explain(TREES, *ROWS, **options, n_orderings=8, checkpoint=path)
    found = dsage.explain(TREES, *ROWS, **options, n_orderings=64, checkpoint=path)
    whole = dsage.explain(TREES, *ROWS, **options, n_orderings=64)
    np.testing.assert_array_equal(found.values, whole.values)
    np.testing.assert_array_equal(found.estimate.outputs.se, whole.estimate.outputs.se)


MODELS = {
    "forest": RandomForestRegressor(5, max_depth=3, random_state=0),
    "scaled targets": TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_other_models_of_several_outputs(model):
    found = dsage.explain(model.fit(*ROWS[:2]), *ROWS, **OPTIONS, n_orderings=16)
    height, weight = found.estimate.outputs.values
    assert height[0] > 1
    assert weight[2] > 0.3
    assert found.choices.loss.name == "squared_error"


def test_catboost_of_several_outputs():
    catboost = pytest.importorskip("catboost")
    options = {"iterations": 20, "depth": 3, "verbose": False, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(loss_function="MultiRMSE", **options).fit(*ROWS[:2])
    found = dsage.explain(model, *ROWS, **OPTIONS, n_orderings=16)
    assert found.per_output.iloc[0]["feature"] == "a"


def test_a_module_of_several_outputs():
    torch = pytest.importorskip("torch")
    fitted = LinearRegression().fit(*ROWS[:2])
    module = torch.nn.Linear(3, 2, dtype=torch.float64)
    with torch.no_grad():
        module.weight[:] = torch.as_tensor(fitted.coef_)
        module.bias[:] = torch.as_tensor(fitted.intercept_)
    found = dsage.explain(module, *ROWS, **ALIKE)
    expected = dsage.explain(fitted.predict, *ROWS, **ALIKE)
    np.testing.assert_allclose(
        found.estimate.outputs.values, expected.estimate.outputs.values, rtol=1e-6, atol=1e-9
    )


def test_a_function_of_several_outputs():
    found = dsage.explain(TREES.predict, *ROWS, **ALIKE)
    same = dsage.explain(TREES, *ROWS, **ALIKE)
    np.testing.assert_array_equal(found.values, same.values)


def test_predictions_that_do_not_match_the_target_are_refused():
    with pytest.raises(ValueError, match=r"\(n_rows, 2\); got \(16, 3\).*one column for each"):
        dsage.explain(np.asarray, *ROWS, **OPTIONS)
    with pytest.raises(ValueError, match=r"\(n_rows, 2\); got \(16,\)"):
        dsage.explain(lambda X: np.asarray(X)[:, 0], *ROWS, **OPTIONS)
    single = (ROWS[0], ROWS[1]["height"], ROWS[2], ROWS[3]["height"])
    with pytest.raises(ValueError, match="Pass y with one column per output"):
        dsage.explain(TREES, *single, **OPTIONS)
    with pytest.raises(ValueError, match=r"y_test must be of the columns of y_train"):
        dsage.explain(TREES, *ROWS[:3], ROWS[3]["height"], **OPTIONS)
