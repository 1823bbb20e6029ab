"""Plots of explained rows."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

import row_cases as cases

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from dsage.plots import beeswarm, scatter, style, waterfall


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def explained():
    return cases.explained()


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_a_waterfall_leads_from_the_base_value_to_the_prediction(explained):
    ax = explained.plot.waterfall(4)
    values = explained.values[4]
    bars = ax.patches
    sizes = np.array([bar.get_width() for bar in bars])
    np.testing.assert_allclose(np.sort(np.abs(sizes)), np.sort(np.abs(values)))
    assert bars[0].get_x() == pytest.approx(explained.base_values[4])
    last = bars[-1]
    assert last.get_x() + last.get_width() == pytest.approx(explained.predictions[4])
    names = labels(ax)
    assert names[0] == "mean prediction"
    assert names[-1] == "prediction of row tree 4"
    assert f"kind = {explained.texts[4][1]}" in names


def test_missing_values_are_named_in_a_waterfall(explained):
    row = next(at for at, texts in enumerate(explained.texts) if texts[0] == "missing")
    assert "size = missing" in labels(waterfall(explained, row))


def test_what_a_graph_does_not_explain_has_a_bar(explained):
    estimate = explained.estimates[0]
    short = replace(estimate, values=0.5 * estimate.values, estimand="d-sage")
    ax = waterfall(replace(explained, estimates=(short,)), 0)
    assert labels(ax)[-2] == "not explained by the graph"
    assert to_hex(ax.patches[-1].get_facecolor()) == style.LIGHT.lower()


def test_losses_fall_in_a_waterfall(explained):
    estimate = explained.estimates[0]
    base = np.full(12, estimate.base_value)
    lost = replace(
        estimate,
        is_loss=True,
        base_value=base,
        predictions=base - estimate.values.sum(axis=1),
    )
    ax = waterfall(replace(explained, estimates=(lost,)), 1)
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(np.sum(widths), -estimate.values[1].sum())
    assert labels(ax)[0] == "no feature known"


def test_the_others_share_a_bar_of_a_waterfall(explained):
    ax = waterfall(explained, 0, top=2)
    assert labels(ax)[3] == "2 others"


def test_a_waterfall_of_classes_is_of_the_largest_prediction():
    found = cases.classified()
    best = found.outputs[int(np.argmax(found.predictions[0]))]
    assert waterfall(found, 0).get_xlabel() == f"probability of kind = {best}"
    assert waterfall(found, 0, output="oak").get_xlabel() == "probability of kind = oak"


def test_a_beeswarm_has_a_point_for_each_row_and_feature(explained):
    ax = explained.plot.beeswarm()
    order = explained.mean_frame()["feature"].tolist()
    assert labels(ax) == order
    points = [each for each in ax.collections if len(each.get_offsets()) == 12]
    assert len(points) == 4
    for name, each in zip(order, points, strict=True):
        drawn = np.sort(each.get_offsets()[:, 0])
        expected = explained.values[:, explained.feature_names.index(name)]
        np.testing.assert_allclose(drawn, np.sort(expected))
    assert legend(ax) == ["mean over the rows", "missing"]


def test_the_categories_of_a_class_are_named_in_a_beeswarm(explained):
    ax = beeswarm(explained)
    named = [area.get_text() for box in ax.artists for area in box.offsetbox.get_children()]
    assert {"oak", "elm", "fir", "True", "False"} <= set(named)


def test_a_beeswarm_needs_an_output_and_tells_what_it_leaves_out(explained):
    with pytest.raises(ValueError, match="output must be one of the explained outputs"):
        cases.classified().plot.beeswarm()
    assert "2 features not shown" in legend(beeswarm(explained, top=2))


@pytest.mark.parametrize("feature", ["size", "kind", "day", "flag"])
@pytest.mark.parametrize("color", [None, "size", "kind"])
def test_a_scatter_stands_over_the_values_of_the_feature(explained, feature, color):
    ax = explained.plot.scatter(feature, color=color)
    (points,) = [each for each in ax.collections if len(each.get_offsets()) == 12]
    at = explained.feature_names.index(feature)
    np.testing.assert_allclose(points.get_offsets()[:, 1], explained.values[:, at])
    ticks = [tick.get_text() for tick in ax.get_xticklabels()]
    if feature == "size":
        assert ticks[-1] == "missing"
    if feature == "kind":
        assert ticks == ["elm", "fir", "oak"]
    if feature == "day":
        assert all(tick.startswith("2024-") for tick in ticks)
    ax.figure.canvas.draw()


def test_scatters_refuse_what_they_cannot_draw(explained):
    with pytest.raises(ValueError, match="Did you mean 'size'"):
        scatter(explained, "sise")
    with pytest.raises(ValueError, match="color must be one of the explained features"):
        scatter(explained, "size", color="shape")
    grouped = replace(explained, groups={"size": ("size", "kind")})
    with pytest.raises(ValueError, match="feature must be a single feature; got 'size'"):
        scatter(grouped, "size")


@pytest.mark.parametrize("plot", [waterfall, beeswarm])
def test_other_objects_are_refused(plot):
    with pytest.raises(TypeError, match="explanation must be a RowExplanation; got 'int'"):
        plot(3)


def test_plots_use_given_axes_and_are_listed(explained):
    _, ax = plt.subplots()
    assert waterfall(explained, 0, ax=ax) is ax
    assert repr(explained.plot) == "RowPlotter(waterfall, beeswarm, scatter)"
