"""The report of explained rows."""

import json
from dataclasses import replace

import pytest

import row_cases as cases
from dsage.report import row_report_data, to_html, write_row_report


@pytest.fixture(scope="module")
def data():
    return row_report_data(cases.explained())


def test_the_data_hold_every_row_and_feature(data):
    found = cases.explained()
    assert data["rows"] == list(found.row_names)
    assert [feature["name"] for feature in data["features"]] == list(found.feature_names)
    (output,) = data["outputs"]
    assert len(output["values"]) == 12
    assert output["values"][3][1] == pytest.approx(found.values[3, 1], rel=1e-5)
    assert output["full"][3] == pytest.approx(found.predictions[3], rel=1e-5)
    size, kind = data["features"][:2]
    assert kind["categories"] == ["elm", "fir", "oak"]
    assert [row for row in range(12) if size["shares"][row] is None] == size["missing"]
    json.dumps(data, allow_nan=False)


def test_the_headline_names_the_feature_that_moves_most(data):
    first = cases.explained().mean_frame()["feature"].iloc[0]
    assert data["headline"][0].startswith(f"{first} moves the predictions most: by ")
    assert data["title"] == "What the predictions of height are made of, row by row"


def test_losses_have_their_own_words():
    found = cases.explained()
    lost = replace(found, estimates=(replace(found.estimates[0], is_loss=True),))
    data = row_report_data(lost)
    assert "removes the most loss" in data["headline"][0]
    assert data["is_loss"]


def test_outputs_are_named():
    data = row_report_data(cases.classified())
    assert [output["name"] for output in data["outputs"]] == ["elm", "fir", "oak"]
    assert data["outputs"][0]["label"] == "probability of kind = elm"


def test_a_page_holds_names_as_text(tmp_path):
    found = replace(cases.explained(), target="<script>alert(1)</script>")
    page = to_html(row_report_data(found), "rows")
    assert "<script>alert" not in page
    file = write_row_report(found, tmp_path / "rows.html")
    assert file.read_text(encoding="utf-8") == page
    assert found.report(tmp_path / "again.html").exists()
