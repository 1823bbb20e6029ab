"""Comparisons of models on common rows, and of one model on two sets of rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

import dsage
from dsage.estimate import compare_games, run
from dsage.games import LossGame
from dsage.samplers import Gaussian
from fold_case import table

QUICK = {"sampler": "gaussian", "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def rows():
    return *table(), *table(40, seed=1)


@pytest.fixture(scope="module")
def models(rows):
    X, y = rows[:2]
    return {
        "plain": LinearRegression().fit(X, y),
        "ridge": Ridge(30.0).fit(X, y),
        "tree": DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y),
    }


def test_differences_are_those_of_games_on_common_noise(models, rows):
    two = {name: models[name] for name in ("plain", "ridge")}
    found = dsage.compare(two, *rows, **QUICK)
    sampler = Gaussian().fit(rows[0])
    a, b = (LossGame(each, sampler, *rows[2:], random_state=0) for each in two.values())
    np.testing.assert_allclose(found.differences["ridge"].values, run(b).values - run(a).values)
    frame = found.to_frame()
    np.testing.assert_allclose(
        frame["difference"], frame["value"] - frame["value_reference"], atol=1e-9
    )
    risks = {name: ((rows[3] - each.predict(rows[2])) ** 2).mean() for name, each in two.items()}
    assert found.risks == pytest.approx(risks)


def test_drawn_models_are_compared_as_compare_games_does(models, rows):
    two = {name: models[name] for name in ("plain", "tree")}
    found = dsage.compare(two, *rows, n_orderings=8, exact="never", **QUICK)
    estimate = found.differences["tree"]
    sampler = Gaussian().fit(rows[0])
    b, a = (LossGame(each, sampler, *rows[2:], random_state=0) for each in two.values())
    from dsage.estimate import as_stopping

    own = compare_games(
        a, b, stopping=as_stopping(n_orderings=8), exact="never", random_state=0
    ).difference
    np.testing.assert_allclose(estimate.values, own.values)
    np.testing.assert_allclose(estimate.se, own.se)


def test_several_models_are_compared_with_the_reference(models, rows):
    found = dsage.compare(models, *rows, reference="ridge", n_orderings=8, **QUICK)
    frame = found.to_frame()
    assert frame["model"].unique().tolist() == ["plain", "tree"]
    assert len(frame) == 6
    assert (frame["p_value"] <= 1).all()
    reference = found.estimates["ridge"].values
    own = frame[frame["model"] == "tree"].set_index("feature").loc[list(found.feature_names)]
    np.testing.assert_array_equal(own["value_reference"], reference)
    text = repr(found)
    assert text.startswith("SAGE values of 3 models: outcome, squared_error, 40 evaluation rows")
    assert "risks on these rows: plain" in text
    assert found.to_html().count("<tr>") == 7


def test_equal_models_do_not_differ(models, rows):
    found = dsage.compare({"a": models["plain"], "b": models["plain"]}, *rows, **QUICK)
    frame = found.to_frame()
    np.testing.assert_array_equal(frame["difference"], 0.0)
    np.testing.assert_array_equal(frame["p_value"], 1.0)


def test_groups_are_compared(models, rows):
    groups = {"both": ["much", "little"]}
    two = {name: models[name] for name in ("plain", "ridge")}
    found = dsage.compare(two, *rows, groups=groups, **QUICK)
    assert set(found.feature_names) == {"both", "idle"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"models": [1, 2]}, "models must be models by name; got 'list'"),
        ({"models": {"a": 1}}, "models must be two or more; got \\['a'\\]"),
        ({"reference": "plian"}, "Did you mean 'plain'"),
        ({"tolerence": 0.1}, "Did you mean 'tolerance'"),
        ({"loss": "msee"}, "^model 'plain': loss must be"),
    ],
)
def test_a_bad_argument_is_named(models, rows, change, text):
    given = {"models": {name: models[name] for name in ("plain", "ridge")}, **QUICK, **change}
    named = given.pop("models")
    with pytest.raises((ValueError, TypeError), match=text):
        dsage.compare(named, *rows, **given)


def test_a_model_that_fails_is_named(models, rows):
    def fails(X):
        raise RuntimeError("no prediction")

    with pytest.raises(RuntimeError, match=r"^model 'bad': "):
        dsage.compare({"plain": models["plain"], "bad": fails}, *rows, **QUICK)


def test_models_with_different_losses_are_refused(models, rows):
    X, y, X_test, y_test = rows
    labels, test = (y > 0).astype(int), (y_test > 0).astype(int)
    both = {"numbers": models["plain"], "classes": LogisticRegression().fit(X, labels)}
    with pytest.raises(ValueError, match="loss must be the same for all models"):
        dsage.compare(both, X, labels, X_test, test, **QUICK)


# One model on two sets of rows


def drifted(seed=2):
    """Rows in which the first feature says less than before."""
    X, y = table(60, seed=seed)
    return X, y - 1.5 * X["much"]


def test_a_change_in_risk_is_the_sum_of_what_features_explain(models, rows):
    X, y, X_test, y_test = rows
    sets = {"before": (X_test, y_test), "after": drifted()}
    found = dsage.compare_data(models["plain"], X, y, sets, **QUICK)
    frame = found.to_frame()
    assert frame["feature"][0] == "much"
    assert frame["p_value"][0] < 0.05
    risks = {name: ((b - models["plain"].predict(a)) ** 2).mean() for name, (a, b) in sets.items()}
    assert found.change == pytest.approx(risks["after"] - risks["before"])
    total = found.change_without_features + frame["explained"].sum()
    assert total == pytest.approx(found.change)
    # The model without features predicts one number, on both sets the same.
    constant = models["plain"].predict(X).mean()
    base = {name: ((b - constant) ** 2).mean() for name, (_, b) in sets.items()}
    assert found.change_without_features == pytest.approx(base["after"] - base["before"])
    lines = found.risk_frame().set_index("of")
    assert lines["risk"]["change"] == pytest.approx(found.change)
    assert "risk: before" in repr(found)
    assert "<table>" in found._repr_html_()


def test_both_sets_have_the_values_of_separate_runs(models, rows):
    X, y, *test = rows
    found = dsage.compare_data(models["plain"], X, y, {"a": test, "b": drifted()}, **QUICK)
    alone = dsage.explain(
        models["plain"], X, y, *drifted(), graph=None, sampler_check=False, **QUICK
    )
    np.testing.assert_allclose(found.estimates["b"].values, alone.values)
    np.testing.assert_allclose(
        found.difference.se_total,
        np.hypot(found.estimates["a"].se_total, found.estimates["b"].se_total),
    )


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([1, 2], "data must be two sets by name; got 'list'"),
        ({"a": (1, 2)}, r"data must be two sets by name; got \['a'\]"),
        ({"a": 3, "b": (1, 2)}, "data 'a' must be a pair of rows and targets; got 'int'"),
        (
            {"a": table(), "b": (table()[0], table(5)[1])},
            "data 'b': y_test must be of 60 rows",
        ),
        (
            {"a": table(), "b": (pd.DataFrame({"much": [1.0]}), [1.0])},
            "^data 'b': ",
        ),
    ],
)
def test_bad_sets_are_named(models, rows, data, text):
    with pytest.raises((ValueError, TypeError), match=text):
        dsage.compare_data(models["plain"], *rows[:2], data, **QUICK)


def test_weights_are_refused_for_two_sets(models, rows):
    sets = {"a": rows[2:], "b": drifted()}
    with pytest.raises(ValueError, match="sample_weight must be left out"):
        dsage.compare_data(models["plain"], *rows[:2], sets, sample_weight=[1.0], **QUICK)
