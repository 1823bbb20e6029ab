"""CSV: texts that a spreadsheet would run are made harmless, numbers and other texts are not."""

import io

import pandas as pd
import pytest

from dsage.data.csv_text import to_csv


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-x", "\tx", "\rx"])
def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text):
    frame = pd.DataFrame({"feature": [text, "age"], text: [1.0, -2.0]})
    found = pd.read_csv(io.StringIO(to_csv(frame)), keep_default_na=False)
    assert found["feature"].tolist() == [f"'{text}", "age"]
    assert list(found.columns) == ["feature", f"'{text}"]
    raw = pd.read_csv(io.StringIO(to_csv(frame, is_raw=True)), keep_default_na=False)
    assert raw["feature"].tolist() == [text, "age"]


def test_numbers_and_other_texts_stay_as_they_are():
    frame = pd.DataFrame({"feature": ["-1.5", "a=b", "'=1"], "value": [-1.5, 0.1, 2.0]})
    assert to_csv(frame) == to_csv(frame, is_raw=True)
    assert frame["feature"].tolist() == ["-1.5", "a=b", "'=1"]
