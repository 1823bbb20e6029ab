"""Plots of folds, of combined explanations, and of comparisons."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt
from sklearn.linear_model import LinearRegression, Ridge

import dsage
from dsage import plots
from fold_case import QUICK, table


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def folded():
    return dsage.explain_cv(LinearRegression(), *table(), cv=3, **QUICK)


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_folds_are_drawn_with_both_intervals(folded):
    ax = folded.plot.folds(confidence=0.9)
    assert labels(ax) == folded.to_frame()["feature"].tolist()
    assert legend(ax) == [
        "value of a fold (3 folds)",
        "all folds",
        "90 % interval for these models, on the population",
        "90 % interval for the learning procedure",
    ]
    drawn = [line.get_xdata() for line in ax.lines if line.get_marker() == "o"]
    first = folded.feature_names.index(labels(ax)[0])
    np.testing.assert_allclose([each[0] for each in drawn], folded.fold_values[:, first])


def test_only_the_top_features_are_drawn(folded):
    ax = folded.plot.folds(top=1)
    assert labels(ax) == ["much"]
    assert ax.get_legend().get_title().get_text() == "the top 1 of 3 features"


def test_axes_of_the_user_are_used(folded):
    _, own = plt.subplots()
    assert plots.folds(folded, ax=own) is own


def test_combined_explanations_are_drawn(folded):
    combined = dsage.combine(list(folded.folds))
    ax = combined.plot.values()
    assert legend(ax)[:3] == [
        "value of an explanation (3 of them)",
        "their mean",
        "95 % interval for the mean",
    ]


def test_differences_of_models_and_of_data_are_drawn():
    X, y = table()
    models = {"plain": LinearRegression().fit(X, y), "ridge": Ridge(30.0).fit(X, y)}
    rows = table(30, seed=1)
    options = {"sampler": "gaussian", "random_state": 0, "progress": False}
    found = dsage.compare(models, X, y, *rows, **options)
    left, right = found.plot.differences()
    assert left.get_xlabel() == "SAGE value (reduction of squared error)"
    assert right.get_xlabel() == "difference: ridge minus plain"
    marks = [line for line in right.lines if line.get_marker() == "s"]
    order = [found.feature_names.index(name) for name in labels(left)]
    np.testing.assert_allclose(marks[0].get_xdata(), found.differences["ridge"].values[order])
    sets = {"one": rows, "two": table(30, seed=2)}
    drift = dsage.compare_data(models["plain"], X, y, sets, **options)
    assert drift.plot.differences()[1].get_xlabel() == "change: two minus one"


@pytest.mark.parametrize(
    "draw", [plots.folds, plots.combined, plots.compare_models, plots.compare_data]
)
def test_other_objects_are_refused(draw):
    with pytest.raises(TypeError, match=r"Pass the result of dsage\."):
        draw(3)
