import dataclasses

import matplotlib as mpl
import numpy as np
import pytest

import plot_cases as cases
from explanations import make_explanation

mpl.use("agg")

from matplotlib import pyplot as plt

from dsage.plots import audit


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def rows(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_the_largest_differences_come_first_with_their_intervals():
    explanation = cases.made_up(cases.plain_names(6))
    left, right = audit(explanation)
    frame = explanation.to_frame().set_index("feature").loc[rows(left)]
    assert (np.diff(frame["audit_difference"].abs()) <= 0).all()
    drawn = np.vstack([[s[:, 0] for s in part.get_segments()] for part in right.collections])
    expected = frame[["audit_lower", "audit_upper"]].to_numpy()
    assert np.sort(drawn, axis=0) == pytest.approx(np.sort(expected, axis=0))


def test_a_difference_that_matters_has_a_mark_of_its_own():
    explanation = cases.made_up(cases.plain_names(6))
    _, right = audit(explanation)
    frame = explanation.to_frame()
    by_marker = {line.get_marker(): line.get_xdata() for line in right.lines}
    assert by_marker["D"] == pytest.approx(frame["audit_difference"][frame["audit_matters"]])
    assert len(by_marker["o"]) == 5
    explained = [text.get_text() for text in right.get_legend().get_texts()]
    assert explained == [
        "difference with 95 % interval",
        "it matters",
        "2 % of the range of the values",
    ]


def test_boxes_are_quartiles_of_the_skipped_surpluses():
    explanation = cases.made_up(cases.plain_names(3))
    left, _ = audit(explanation)
    skipped = explanation.estimate.skipped_surpluses
    for box in left.patches:
        place = int(np.argmin(np.abs(left.get_yticks() - (box.get_y() + box.get_height() / 2))))
        own = skipped.loc[skipped["feature"] == rows(left)[place], "surplus"]
        low, high = own.quantile([0.25, 0.75])
        assert [box.get_x(), box.get_x() + box.get_width()] == pytest.approx([low, high])
    assert len(left.patches) == 2
    assert [text.get_text() for text in left.texts] == ["never skipped"]


def test_features_that_are_not_drawn_are_counted_with_their_largest_difference():
    explanation = cases.made_up(cases.plain_names(30))
    left, _ = audit(explanation, top=5)
    differences = np.sort(np.abs(explanation.estimate.audit.values))[::-1]
    title = left.get_legend().get_title().get_text()
    assert title.startswith("25 others")
    assert f"{differences[5]:.2g}" in title
    assert len(rows(left)) == 5


def test_without_an_audit_or_anything_skipped_it_says_so():
    with pytest.raises(ValueError, match=r"explanation must be .*audit.*graph='learn'"):
        audit(make_explanation(2, audited=False))
    with pytest.raises(ValueError, match=r"explanation must be .*skipped.*d-SAGE equals SAGE"):
        audit(make_explanation(1))


def test_values_without_a_range_have_no_zone():
    explanation = cases.made_up(["a", "b"])
    equal = dataclasses.replace(explanation.estimate, values=np.ones(2))
    _, right = audit(dataclasses.replace(explanation, estimate=equal))
    explained = [text.get_text() for text in right.get_legend().get_texts()]
    assert not any("range" in text for text in explained)
