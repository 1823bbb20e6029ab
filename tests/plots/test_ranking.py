import matplotlib as mpl
import numpy as np
import pytest

import plot_cases as cases
from explanations import with_check

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from dsage.plots import bar


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def explained(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def lines(ax, number):
    return np.array([segment[:, 0] for segment in ax.collections[number].get_segments()])


def test_the_largest_value_is_on_top_and_bars_end_at_the_values():
    explanation = cases.made_up(cases.plain_names(12))
    ax = bar(explanation)
    frame = explanation.to_frame()
    assert [label.get_text() for label in ax.get_yticklabels()] == frame["feature"].tolist()
    assert [each.get_width() for each in ax.patches] == pytest.approx(frame["value"])
    heights = [each.get_y() for each in ax.patches]
    assert heights == sorted(heights)
    assert ax.yaxis_inverted()


def test_the_thick_interval_is_of_computing_and_the_thin_one_of_the_population():
    explanation = cases.made_up(cases.plain_names(5))
    ax = bar(explanation, confidence=0.9)
    frame = explanation.to_frame(0.9)
    assert lines(ax, 0) == pytest.approx(frame[["lower", "upper"]].to_numpy())
    assert lines(ax, 1) == pytest.approx(frame[["lower_total", "upper_total"]].to_numpy())
    assert ax.collections[0].get_linewidths()[0] > 2 * ax.collections[1].get_linewidths()[0]
    computing, population = explained(ax)[:2]
    assert computing.startswith("90 % interval for these rows")
    assert population.startswith("90 % interval for the population")


def test_an_interval_that_is_not_known_is_neither_drawn_nor_explained():
    explanation = cases.made_up(cases.plain_names(4), audited=False, se_rows=np.full(4, np.nan))
    ax = bar(explanation)
    assert len(lines(ax, 1)) == 0
    (text,) = explained(ax)
    assert "for these rows" in text


def test_an_exact_value_has_no_interval_of_computing_to_explain():
    nothing = np.zeros(4)
    explanation = cases.made_up(
        cases.plain_names(4), audited=False, se_orderings=nothing, se_draws=nothing
    )
    (text,) = explained(bar(explanation))
    assert "for the population" in text


def test_the_others_share_a_bar_without_interval():
    explanation = cases.made_up(cases.plain_names(30), seed=1)
    ax = bar(explanation, top=25)
    values = explanation.to_frame()["value"]
    assert ax.patches[-1].get_width() == pytest.approx(values[25:].sum())
    assert ax.get_yticklabels()[-1].get_text().startswith("5 others: their sum,")
    assert len(lines(ax, 0)) == 25


def test_a_sum_that_would_dwarf_the_rest_is_cut_and_says_its_size():
    explanation = cases.made_up(cases.plain_names(100))
    ax = bar(explanation)
    total = explanation.to_frame()["value"][20:].sum()
    largest = explanation.to_frame()["upper_total"].max()
    assert ax.patches[-1].get_width() == pytest.approx(1.25 * largest)
    assert [text.get_text() for text in ax.texts] == [f"{total:.3g} → "]


def test_a_negative_sum_is_cut_at_the_other_side():
    values = np.full(30, -1.0)
    values[0] = 1.0
    ax = bar(cases.made_up(cases.plain_names(30), values=values), top=5)
    assert ax.patches[-1].get_width() < -1.25
    assert [text.get_text() for text in ax.texts] == [" ← -25"]


def test_one_feature_more_than_the_top_is_shown_rather_than_called_the_others():
    ax = bar(cases.made_up(cases.plain_names(6)), top=5)
    assert len(ax.get_yticklabels()) == 6


@pytest.mark.parametrize(
    ("estimand", "word"), [("sage", "corrected by"), ("d-sage", "differs from SAGE by")]
)
def test_features_for_which_the_audit_matters_stand_out(estimand, word):
    explanation = cases.made_up(cases.plain_names(5), estimand=estimand)
    ax = bar(explanation)
    frame = explanation.to_frame()
    colors = np.array([to_hex(each.get_facecolor()) for each in ax.patches])
    assert frame["audit_matters"].tolist().count(True) == 1
    assert len(set(colors[frame["audit_matters"]]) | set(colors[~frame["audit_matters"]])) == 2
    assert f"audit: {word} over 2 % of the range" in explained(ax)
    label = "SAGE value" if estimand == "sage" else "d-SAGE value"
    assert ax.get_xlabel() == f"{label} (reduction of squared error)"


@pytest.mark.parametrize(
    ("estimand", "word"), [("sage", "only the correction"), ("d-sage", "zero")]
)
def test_a_feature_that_is_always_separated_is_marked(estimand, word):
    explanation = cases.made_up(cases.plain_names(5), estimand=estimand)
    ax = bar(explanation)
    (marks,) = [line for line in ax.lines if line.get_marker() == "o"]
    where = explanation.to_frame()["feature"].tolist().index("feature 4")
    assert marks.get_ydata().tolist() == [ax.get_yticks()[where]]
    assert explained(ax)[-1] == f"always separated: {word}"


def test_nothing_is_explained_that_is_not_there():
    assert len(explained(bar(cases.made_up(cases.plain_names(5), audited=False)))) == 2


def test_the_error_of_the_sampler_is_drawn_to_both_sides_of_the_value():
    explanation = cases.made_up(cases.plain_names(4), audited=False)
    assert len(explained(bar(explanation))) == 2
    checked = with_check(explanation, [0.0, 0.1, 0.2, 0.3], se=0.0)
    ax = bar(checked)
    frame = checked.to_frame()
    shown = frame[frame["se_sampler"] > 0]
    low, high = (line.get_xdata() for line in ax.lines if line.get_marker() in ("$[$", "$]$"))
    np.testing.assert_allclose(low, shown["value"] - shown["se_sampler"])
    np.testing.assert_allclose(high, shown["value"] + shown["se_sampler"])
    assert "change with another sampler" in explained(ax)
