"""The report of a comparison."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

import dsage
from dsage.report import comparison_report_data, to_html
from fold_case import table

QUICK = {"sampler": "gaussian", "random_state": 0, "progress": False}
X, Y = table()
ROWS = *table(), *table(40, seed=1)
PLAIN, SHRUNK = LinearRegression().fit(X, Y), Ridge(60.0).fit(X, Y)


@pytest.fixture(scope="module")
def models():
    three = {"plain": PLAIN, "shrunk": SHRUNK, "</script>": Ridge(1.0).fit(X, Y)}
    return dsage.compare(three, *ROWS, **QUICK)


@pytest.fixture(scope="module")
def drift():
    X_new, y_new = table(50, seed=2)
    data = {"before": ROWS[2:], "after": (X_new, y_new - 2.0 * X_new["much"])}
    return dsage.compare_data(PLAIN, *ROWS[:2], data, **QUICK)


def test_every_difference_is_in_the_data(models):
    data = comparison_report_data(models)
    frame = models.to_frame()
    assert data["series"] == ["plain", "shrunk", "</script>"]
    assert [part["name"] for part in data["parts"]] == ["shrunk", "</script>"]
    for feature in data["features"]:
        lines = frame[frame["feature"] == feature["name"]]
        found = [each["value"] for each in feature["differences"]]
        np.testing.assert_allclose(found, lines["difference"])
        assert len(feature["values"]) == 3
        assert all(len(each["cells"]) == 6 for each in feature["differences"])
    json.dumps(data, allow_nan=False)


def test_the_headline_names_the_largest_sure_difference(models):
    sentences = comparison_report_data(models)["headline"]
    assert sentences[0].startswith("much contributes less in shrunk than in plain: by ")
    assert sentences[1].endswith(f"risk on these rows, {min(models.risks.values()):.2f}.")


def test_without_a_sure_difference_the_headline_says_so():
    same = dsage.compare({"one": PLAIN, "other": PLAIN}, *ROWS, **QUICK)
    assert "No feature" in comparison_report_data(same)["headline"][0]


def test_parts_of_a_change_in_risk_are_explained(drift):
    data = comparison_report_data(drift)
    assert data["headline"][0].startswith("From before to after the risk rises by ")
    assert "The contribution of much" in data["headline"][1]
    frame = drift.to_frame().set_index("feature")
    for feature in data["features"]:
        (found,) = feature["differences"]
        line = frame.loc[feature["name"]]
        assert found["value"] == line["explained"]
        assert found["lower_total"] == -line["upper_total"]
        assert found["lower"] <= found["value"] <= found["upper"]


def test_names_are_text_in_the_page(models, tmp_path):
    file = models.report(tmp_path / "models.html")
    page = file.read_text(encoding="utf-8")
    assert page == to_html(comparison_report_data(models), "comparison")
    assert page.count("</script>") == 2
    assert "{{" not in page


def test_both_kinds_of_comparison_write_a_report(drift, tmp_path):
    assert drift.report(tmp_path / "drift.html").exists()
    with pytest.raises(ValueError, match="path must be in an existing folder"):
        drift.report(tmp_path / "absent" / "drift.html")


def test_a_single_row_has_no_intervals_for_the_population():
    found = dsage.compare({"one": PLAIN, "other": SHRUNK}, *ROWS[:2], X[:1], Y[:1], **QUICK)
    data = comparison_report_data(found)
    assert data["features"][0]["differences"][0]["lower_total"] is None
    assert "unknown" in data["features"][0]["differences"][0]["cells"]
