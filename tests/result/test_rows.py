"""What a user reads in explained rows."""

import numpy as np
import pandas as pd
import pytest

import row_cases as cases
from dsage.result.row_values import Positions, show_value


@pytest.fixture(scope="module")
def explained():
    return cases.explained()


@pytest.fixture(scope="module")
def classified():
    return cases.classified()


def test_rows_are_counted_indexed_and_visited(explained):
    assert len(explained) == 12
    third = explained[2]
    assert len(third) == 1
    assert third.row_names == ("tree 2",)
    np.testing.assert_array_equal(third.values, explained.values[2:3])
    assert third.texts == explained.texts[2:3]
    assert explained[-1].row_names == ("tree 11",)
    assert explained[[3, 1]].row_names == ("tree 3", "tree 1")
    assert explained[:5].rows.shape == (5, 4)
    assert [row.row_names[0] for row in explained] == list(explained.row_names)


def test_rows_that_do_not_exist_are_refused(explained):
    with pytest.raises(IndexError, match="the row must be a position from 0 to 11; got 12"):
        explained[12]
    with pytest.raises(TypeError, match="the index must be positions of rows; got 'size'"):
        explained["size"]


def test_the_frame_has_a_line_for_each_row_and_feature(explained):
    frame = explained.to_frame()
    assert frame.columns.tolist() == [
        *("row", "feature", "feature_value", "value", "se", "lower", "upper")
    ]
    assert len(frame) == 48
    line = frame[(frame["row"] == "tree 3") & (frame["feature"] == "kind")].iloc[0]
    assert line["feature_value"] == explained.texts[3][1]
    assert line["value"] == explained.values[3, 1]
    assert (frame["lower"] <= frame["value"]).all()


def test_frames_of_several_outputs_name_them(classified):
    frame = classified.to_frame()
    assert frame["output"].unique().tolist() == ["elm", "fir", "oak"]
    assert len(frame) == 3 * 12 * 2
    means = classified.mean_frame()
    assert means.columns[0] == "output"
    expected = np.abs(classified.values).mean(axis=0)
    found = means.set_index(["output", "feature"])["mean_absolute"]
    assert found["fir", "size"] == pytest.approx(expected[0, 1])


def test_one_output_can_be_taken(classified, explained):
    one = classified.of_output("fir")
    np.testing.assert_array_equal(one.values, classified.values[..., 1])
    np.testing.assert_array_equal(one.base_values, classified.base_values[:, 1])
    assert one.outputs == ("fir",)
    with pytest.raises(ValueError, match="output must be one of the explained outputs; got None"):
        classified.of_output()
    assert explained.of_output() is explained


def test_text_and_html_show_rows_bases_and_predictions(explained, classified):
    text = repr(explained)
    assert text.startswith("Conditional SHAP values of Numbers: prediction of height, 12 rows")
    assert "... and 7 more rows; to_frame() has them all" in text
    assert "the values of a row add up to its prediction minus base" in text
    assert "stopped because all 24 orderings are done" in text
    assert "<td" in explained._repr_html_()
    assert "3 outputs" in repr(classified)
    assert "elm" in repr(classified)


def test_shap_gets_values_data_and_outputs(explained, classified):
    pytest.importorskip("shap")
    found = explained.to_shap()
    np.testing.assert_array_equal(found.values, explained.values)
    assert found.data.shape == (12, 4)
    assert found.feature_names == ["size", "kind", "day", "flag"]
    several = classified.to_shap()
    assert several.values.shape == (12, 2, 3)
    assert several.base_values.shape == (12, 3)
    assert several.output_names == ["elm", "fir", "oak"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2007, "2007"),
        (123456, "123,456"),
        (np.int64(-12345), "-12,345"),
        (0.000012345, "1.234e-05"),
        (1234567.8, "1,234,568"),
        (np.bool_(True), "True"),
        (pd.Timestamp("2024-05-01 12:30"), "2024-05-01 12:30:00"),
        (np.datetime64("2024-05-01"), "2024-05-01"),
        ("<b>", "<b>"),
    ],
)
def test_values_are_shown_as_people_write_them(value, text):
    assert show_value(value) == text


def test_positions_of_numbers_go_from_low_to_high():
    numbers = np.array([5.0, np.nan, 1.0, 9.0])
    found = Positions.of_number(numbers, np.isnan(numbers))
    assert found.shares[2] == 0.0
    assert found.shares[3] == 1.0
    assert 0.4 < found.shares[0] < 0.6
    assert np.isnan(found.shares[1])
    assert found.is_number


def test_equal_and_missing_numbers_have_positions():
    same = Positions.of_number(np.ones(3), np.zeros(3, bool))
    assert same.shares.tolist() == [0.5] * 3
    nothing = Positions.of_number(np.full(2, np.nan), np.ones(2, bool))
    assert not nothing.is_number


def test_rare_categories_are_one():
    texts = [f"kind {at % 8}" for at in range(64)] + ["missing"]
    is_missing = np.array([False] * 64 + [True])
    found = Positions.of_class(texts, is_missing)
    assert len(found.categories) == 6
    assert found.codes.max() == 6
    assert found.codes[-1] == -1
