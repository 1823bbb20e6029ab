"""What holds for all plots: they render with any names, inside the figure, and touch nothing else."""

import dataclasses
import io
import subprocess
import sys
from functools import cache

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.text import Text

import plot_cases as cases
from dsage import plots
from dsage.result.explanation import Explanation
from explanations import make_explanation

PLOTS = {
    "bar": plots.bar,
    "compare": lambda explanation, **options: plots.compare(
        explanation, other_than(explanation), **options
    ),
    "sage_and_dsage": plots.sage_and_dsage,
    "convergence": plots.convergence,
    "audit": plots.audit,
    "graph": plots.graph,
}
LABEL = "a gradient boosting machine of many trees, calibrated, and with monotone constraints"


def other_than(explanation):
    if not isinstance(explanation, Explanation):
        return explanation
    model = dataclasses.replace(explanation.choices.model, name=LABEL)
    choices = dataclasses.replace(explanation.choices, model=model)
    return dataclasses.replace(explanation, choices=choices)


N_AXES = {"bar": 1, "convergence": 1, "graph": 1, "compare": 2, "sage_and_dsage": 2, "audit": 2}
real_run = cache(lambda: make_explanation(3))
NAMES = {"long": cases.long_names, "foreign": cases.foreign_names}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def texts(figure):
    """All that is written, but for ticks outside the limits, which are not drawn."""
    for ax in figure.axes:
        ticks = [
            tick.label1
            for axis in (ax.xaxis, ax.yaxis)
            for tick in axis.get_major_ticks()
            if tick.label1.get_text() and _is_inside(tick.get_loc(), *axis.get_view_interval())
        ]
        legend = ax.get_legend()
        explained = [] if legend is None else [*legend.get_texts(), legend.get_title()]
        yield from ticks if ax.axison else ()
        yield from [*ax.texts, *explained]
        yield from [ax.xaxis.label, ax.yaxis.label] if ax.axison else ()


def _is_inside(place, one, other):
    return min(one, other) <= place <= max(one, other)


def joined(text):
    return "".join(text.split())


def assert_inside(figure):
    frame = figure.bbox
    for text in texts(figure):
        extent = text.get_window_extent()
        if not text.get_text():
            continue
        assert extent.x0 >= frame.x0 - 1, text
        assert extent.x1 <= frame.x1 + 1, text
        assert extent.y0 >= frame.y0 - 1, text
        assert extent.y1 <= frame.y1 + 1, text


def assert_apart(written):
    extents = [Text.get_window_extent(text) for text in written]  # without its arrow
    for number, one in enumerate(extents):
        for other in extents[:number]:
            across = min(one.x1, other.x1) - max(one.x0, other.x0)
            along = min(one.y1, other.y1) - max(one.y0, other.y0)
            assert min(across, along) <= 1.0


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("n_features", [1, 100])
@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_shows_any_names_in_full(name, n_features, kind):
    explanation = cases.made_up(NAMES[kind](n_features))
    drawn = np.atleast_1d(PLOTS[name](explanation))
    figure = drawn[0].figure
    figure.canvas.draw()
    assert_inside(figure)
    written = {joined(text.get_text()) for text in texts(figure)}
    full = {joined(each) for each in explanation.feature_names}
    if kind == "long":
        assert len(written & full) >= min(n_features, 8)
    for ax in drawn:
        assert_apart([label for label in ax.get_yticklabels() if label.get_text()])
        assert_apart(ax.texts)


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_draws_a_real_run(name):
    explanation = real_run()
    figure = np.atleast_1d(PLOTS[name](explanation))[0].figure
    figure.savefig(io.BytesIO(), format="svg")
    figure.draw_without_rendering()
    assert_inside(figure)
    written = {text.get_text() for text in texts(figure)}
    assert set(explanation.feature_names) <= written


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_draws_where_told_and_nowhere_else(name):
    explanation = cases.made_up(cases.plain_names(3))
    figure, given = plt.subplots(1, N_AXES[name], layout="constrained")
    before = dict(mpl.rcParams)
    drawn = PLOTS[name](explanation, ax=given)
    assert np.array_equal(np.atleast_1d(drawn), np.atleast_1d(given))
    assert plt.get_fignums() == [figure.number]
    assert dict(mpl.rcParams) == before
    assert all(ax.has_data() or ax.texts for ax in np.atleast_1d(drawn))


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_returns_its_axes_in_one_new_figure(name):
    drawn = PLOTS[name](cases.made_up(cases.plain_names(3)))
    assert all(isinstance(ax, mpl.axes.Axes) for ax in np.atleast_1d(drawn))
    assert len(np.atleast_1d(drawn)) == N_AXES[name]
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_refuses_what_is_no_record(name):
    with pytest.raises(TypeError, match=r"explanation must be an Explanation; got 'dict'"):
        PLOTS[name]({})


@pytest.mark.parametrize("name", [name for name, n_axes in N_AXES.items() if n_axes == 2])
def test_plots_of_two_panels_need_two_axes(name):
    _, ax = plt.subplots()
    explanation = cases.made_up(cases.plain_names(3))
    for given in (ax, [ax], ["a", "b"]):
        with pytest.raises(ValueError, match="ax must be two Axes"):
            PLOTS[name](explanation, ax=given)


@pytest.mark.parametrize("name", [name for name in PLOTS if name != "graph"])
def test_top_must_be_a_count(name):
    with pytest.raises(ValueError, match="top must be at least 1; got 0"):
        PLOTS[name](cases.made_up(cases.plain_names(3)), top=0)


@pytest.mark.parametrize("name", [name for name in PLOTS if name != "graph"])
def test_level_must_be_a_probability(name):
    with pytest.raises(ValueError, match="confidence must be between 0 and 1; got 95"):
        PLOTS[name](cases.made_up(cases.plain_names(3)), confidence=95)


def test_matplotlib_is_imported_only_by_the_plots_and_named_where_it_is_missing():
    code = (
        "import sys, dsage\n"
        "if 'matplotlib' in sys.modules: raise SystemExit(3)\n"
        "sys.modules['matplotlib'] = None\n"
        "import dsage.plots\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert (
        "dsage.plots needs matplotlib; install it with: pip install 'dsage[plot]'" in ended.stderr
    )
