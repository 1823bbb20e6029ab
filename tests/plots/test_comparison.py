import matplotlib as mpl
import numpy as np
import pytest

import plot_cases as cases
from explanations import make_explanation

mpl.use("agg")

from matplotlib import pyplot as plt

from dsage.estimate import intervals
from dsage.plots import compare, sage_and_dsage

NAMES = cases.plain_names(4)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def marks(ax):
    """The drawn numbers, a row an explanation."""
    return np.array([line.get_xdata() for line in ax.lines if line.get_linestyle() == "None"])


def rows(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def explained(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_values_at_the_left_and_differences_to_the_first_at_the_right():
    one, two, three = (cases.made_up(NAMES, seed=seed) for seed in range(3))
    left, right = compare(one, two, three, labels=["a", "b", "c"])
    order = [NAMES.index(name) for name in rows(left)]
    values = np.stack([each.values[order] for each in (one, two, three)])
    assert marks(left) == pytest.approx(values)
    assert marks(right) == pytest.approx(values[1:] - values[0])
    assert (np.diff(values.mean(axis=0)) <= 0).all()
    assert explained(left)[:3] == ["a", "b", "c"]
    assert right.get_xlabel() == "difference: each minus a"


def test_differences_have_the_errors_of_two_independent_runs():
    one, two = (cases.made_up(["a"], seed=seed) for seed in (0, 1))
    _, right = compare(one, two)
    thick, thin = ([part.get_segments()[0][:, 0] for part in right.collections][k] for k in (0, 1))
    difference = two.values - one.values
    for drawn, error in (
        (thick, np.hypot(one.se, two.se)),
        (thin, np.hypot(one.estimate.se_total, two.estimate.se_total)),
    ):
        low, high = intervals(difference, error)
        # Student's quantile for many degrees of freedom is a little larger.
        assert drawn == pytest.approx([low[0], high[0]], rel=0.03)
        assert drawn[1] - drawn[0] > high[0] - low[0]


def test_features_are_matched_by_name_and_the_others_counted():
    one, two = cases.made_up(["a", "b", "c"]), cases.made_up(["c", "b", "d"], seed=1)
    left, _ = compare(one, two)
    assert sorted(rows(left)) == ["b", "c"]
    number = rows(left).index("c")
    assert marks(left)[:, number] == pytest.approx([one.values[2], two.values[0]])
    assert left.get_legend().get_title().get_text().startswith("2 features")


def test_only_the_top_are_drawn_and_that_is_said():
    one, two = (cases.made_up(cases.plain_names(30), seed=seed) for seed in (0, 1))
    left, _ = compare(one, two, top=5)
    assert len(rows(left)) == 5
    assert left.get_legend().get_title().get_text() == "the top 5 of 30 features"


@pytest.mark.parametrize(
    ("others", "labels"),
    [
        ([{"model": "Tree"}], ["Forest", "Tree"]),
        ([{"estimand": "sage"}], ["Forest, d-SAGE", "Forest, SAGE"]),
        ([{}, {}], ["Forest 1", "Forest 2", "Forest 3"]),
    ],
)
def test_labels_tell_the_explanations_apart(others, labels):
    left, _ = compare(cases.made_up(NAMES), *(cases.made_up(NAMES, **each) for each in others))
    assert explained(left)[: len(labels)] == labels


def test_what_is_compared_is_named_with_its_unit():
    one, two = cases.made_up(NAMES), cases.made_up(NAMES, estimand="sage")
    assert compare(one, one)[0].get_xlabel() == "d-SAGE value (reduction of squared error)"
    assert compare(one, two)[0].get_xlabel() == "value (reduction of squared error)"


def test_what_cannot_be_compared_is_refused():
    explanation = cases.made_up(NAMES)
    with pytest.raises(ValueError, match=r"others must be one explanation or more"):
        compare(explanation)
    with pytest.raises(TypeError, match="others must be an Explanation; got 'int'"):
        compare(explanation, 3)
    with pytest.raises(
        ValueError, match=r"others must be explanations that share .*'z'.*'feature 0'"
    ):
        compare(explanation, cases.made_up(["z"]))
    with pytest.raises(
        ValueError, match=r"explained with the loss 'squared error'; got \['log loss'\]"
    ):
        compare(explanation, cases.made_up(NAMES, loss="log_loss"))
    with pytest.raises(ValueError, match=r"labels must be 2 names; got \['a'\]"):
        compare(explanation, explanation, labels=["a"])
    with pytest.raises(ValueError, match="labels must be distinct; got 'a'"):
        compare(explanation, explanation, labels=["a", "a"])


@pytest.mark.parametrize("estimand", ["sage", "d-sage"])
def test_both_estimands_of_one_run_differ_by_the_audit(estimand):
    explanation = cases.made_up(NAMES, estimand=estimand)
    left, right = sage_and_dsage(explanation)
    order = [NAMES.index(name) for name in rows(left)]
    sage, dsage = marks(left)
    assert explained(left)[:2] == ["SAGE", "d-SAGE"]
    assert sage - dsage == pytest.approx(explanation.estimate.audit.values[order])
    assert (sage if estimand == "sage" else dsage) == pytest.approx(explanation.values[order])
    assert marks(right)[0] == pytest.approx(dsage - sage)


@pytest.mark.parametrize("estimand", ["sage", "d-sage"])
def test_the_intervals_are_those_of_the_run_and_of_the_audit(estimand):
    explanation = cases.made_up(NAMES, estimand=estimand)
    left, right = sage_and_dsage(explanation)
    frame = explanation.to_frame()
    own = left.collections[0 if estimand == "sage" else 2]
    drawn = np.array([segment[:, 0] for segment in own.get_segments()])
    assert drawn == pytest.approx(frame[["lower", "upper"]].to_numpy())
    differences = np.array([segment[:, 0] for segment in right.collections[0].get_segments()])
    assert differences == pytest.approx(frame[["audit_lower", "audit_upper"]].to_numpy())
    assert len(right.collections[1].get_segments()) == 0


def test_the_value_that_was_not_estimated_has_an_error_made_of_the_terms():
    for estimand in ("sage", "d-sage"):
        explanation = cases.made_up(["a"], estimand=estimand)
        left, _ = sage_and_dsage(explanation)
        known = explanation.estimate
        main = known.terms[0].se
        other = np.hypot(main, known.se_draws)
        if estimand == "d-sage":
            other = np.hypot(known.se, known.audit.se)
        drawn = left.collections[2 if estimand == "sage" else 0].get_segments()[0][:, 0]
        population = left.collections[3 if estimand == "sage" else 1]
        assert len(population.get_segments()) == 0
        assert np.ptp(drawn) / 2 == pytest.approx(1.98 * other[0], rel=0.01)


def test_the_zone_is_two_percent_of_the_range():
    explanation = cases.made_up(NAMES)
    _, right = sage_and_dsage(explanation)
    (zone,) = right.patches
    assert zone.get_width() == pytest.approx(0.04 * np.ptp(explanation.values))
    assert explained(right) == ["2 % of the range of the values"]
    _, alone = sage_and_dsage(cases.made_up(["a"]))
    assert alone.get_legend() is None


def test_without_an_audit_there_is_nothing_to_set_beside():
    with pytest.raises(ValueError, match=r"explanation must be .*audit"):
        sage_and_dsage(make_explanation(2, audited=False))
