import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plot_cases as cases

mpl.use("agg")

from matplotlib import pyplot as plt

from dsage.estimate.accumulate.history import History
from dsage.plots import convergence
from dsage.plots.history import _apart


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def named(ax):
    return [text.get_text() for text in ax.texts]


def test_lines_follow_the_looks_and_end_at_the_values():
    explanation = cases.made_up(cases.plain_names(3))
    ax = convergence(explanation)
    frame = explanation.to_frame()
    assert named(ax) == frame["feature"].tolist()
    ends = [line.get_ydata()[-1] for line in ax.lines[:3]]
    assert ends == pytest.approx(frame["value"])
    assert ax.get_ylabel().split() == ["d-SAGE", "value", "(reduction", "of", "squared", "error)"]
    assert ax.lines[0].get_xdata().tolist() == explanation.estimate.history.n_evaluated.tolist()


def test_the_last_band_is_the_interval_of_the_run():
    explanation = cases.made_up(["a"], df=np.array([5.0]))
    (band,) = convergence(explanation, confidence=0.8).collections
    last = band.get_paths()[0].vertices
    last = last[last[:, 0] == explanation.estimate.history.n_evaluated[-1], 1]
    frame = explanation.to_frame(0.8)
    assert [last.min(), last.max()] == pytest.approx([frame["lower"][0], frame["upper"][0]])


def test_only_the_top_are_named_and_the_others_are_counted():
    explanation = cases.made_up(cases.plain_names(30))
    ax = convergence(explanation, top=3)
    assert named(ax) == explanation.to_frame()["feature"].tolist()[:3]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["27 others"]
    assert len(ax.collections) == 3


def test_the_features_asked_for_are_named():
    explanation = cases.made_up(cases.plain_names(30))
    assert named(convergence(explanation, features="feature 7")) == ["feature 7"]
    assert named(convergence(explanation, features=["feature 9", "feature 2"])) == [
        "feature 9",
        "feature 2",
    ]
    with pytest.raises(ValueError, match="features must be one of the features; got 'feature_7'"):
        convergence(explanation, features=["feature_7"])


def test_many_evaluations_are_on_a_logarithmic_axis_and_few_are_not():
    history = cases.made_up(["a"]).estimate.history
    assert convergence(cases.made_up(["a"])).get_xscale() == "log"
    short = History(**{name: looks[-2:] for name, looks in vars(history).items()})
    assert convergence(cases.made_up(["a"], history=short)).get_xscale() == "linear"


def test_a_single_look_is_a_point_with_its_interval():
    history = cases.made_up(["a", "b"]).estimate.history
    one = History(**{name: looks[-1:] for name, looks in vars(history).items()})
    ax = convergence(cases.made_up(["a", "b"], history=one))
    ax.figure.draw_without_rendering()
    assert ax.lines[0].get_marker() == "o"
    assert ax.get_xticks().tolist() == one.n_evaluated.tolist()
    assert "95 % intervals at the only look" in ax.get_legend().get_title().get_text()
    assert named(ax)


def test_a_huge_band_at_the_start_does_not_flatten_the_lines():
    explanation = cases.made_up(["a", "b"])
    history = explanation.estimate.history
    se = history.se.copy()
    se[0] = 100.0
    wide = History(history.n_units, history.n_evaluated, history.seconds, history.values, se)
    ax = convergence(cases.made_up(["a", "b"], history=wide))
    assert np.ptp(ax.get_ylim()) < 3 * np.ptp(history.values)


@given(st.lists(st.tuples(st.floats(-0.2, 1.2), st.floats(0.01, 0.05)), min_size=1, max_size=19))
def test_names_at_the_ends_never_overlap_and_stay_in_the_frame(wanted_heights):
    wanted, heights = np.array(wanted_heights).T
    places = _apart(wanted, heights)
    order = np.argsort(wanted, kind="stable")
    low, high = (places - heights / 2)[order], (places + heights / 2)[order]
    assert (low[1:] >= high[:-1] - 1e-9).all()
    assert low.min() >= -1e-9
    assert high.max() <= 1 + 1e-9


def test_names_with_room_stand_where_their_lines_end():
    wanted = np.array([0.5, 0.2, 0.9])
    assert _apart(wanted, np.full(3, 0.1)) == pytest.approx(wanted)
