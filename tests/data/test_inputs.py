"""Rows and targets are checked together; what only evaluation rows have is told once."""

import numpy as np
import pandas as pd
import pytest

from dsage._check import record_warnings
from dsage.data.inputs import check_inputs
from dsage.data.kinds import Kind

RNG = np.random.default_rng(0)
TRAIN = pd.DataFrame(
    {"x": RNG.normal(size=30), "zip": RNG.choice(["u", "v"], 30), "n": RNG.integers(0, 90, 30)}
)
TEST = pd.DataFrame({"x": [0.5, 1.5, 2.5, 3.5], "zip": list("uvuv"), "n": [1, 2, 3, 4]})
Y_TRAIN, Y_TEST = RNG.normal(size=30), RNG.normal(size=4)


def checked(train=TRAIN, test=TEST, **options):
    with record_warnings(show=False) as told:
        inputs = check_inputs(train, Y_TRAIN, test, Y_TEST, **options)
    return inputs, [str(warning) for warning in told]


def test_complete_rows_are_taken_in_silence():
    inputs, told = checked()
    assert told == []
    assert inputs.layout.kinds == (Kind.NUMBER, Kind.CLASS, Kind.INTEGER)


def test_missing_features_are_taken_in_silence_where_training_has_some():
    gaps = TRAIN.mask(RNG.random(TRAIN.shape) < 0.2)
    inputs, told = checked(gaps, TEST.mask(np.eye(4, 3, dtype=bool)))
    assert told == []
    assert inputs.layout.may_miss.all()
    assert inputs.first_rows(4).isna().to_numpy().tolist() == np.eye(4, 3, dtype=bool).tolist()


def test_categories_that_training_lacks_are_told_once():
    inputs, told = checked(test=TEST.assign(zip=list("bcau")))
    assert told == [
        (
            "Column 'zip' has 3 categories in X_test that X_train lacks ('a', 'b', 'c'): nothing is"
            " known about them, draws ignore them."
        )
    ]
    assert inputs.first_rows(4)["zip"].tolist() == list("bcau")
    one = checked(test=TEST.assign(zip=list("uvua")))[1]
    assert one == [
        (
            "Column 'zip' has 1 category in X_test that X_train lacks ('a'): nothing is known about it,"
            " draws ignore it."
        )
    ]


def test_missing_values_that_training_lacks_are_told_once():
    test = TEST.assign(x=np.nan, zip=["u", None, "v", "u"], n=[1, np.nan, 2, 3])
    inputs, told = checked(test=test)
    assert len(told) == 1
    assert told[0].startswith("Columns 'x', 'zip', 'n' have missing values in X_test, but none in")
    rows = inputs.first_rows(4)
    assert rows["n"].isna().tolist() == [False, True, False, False]


def test_identifiers_are_told_unless_the_user_says_what_they_are():
    train, test = TRAIN.assign(key=np.arange(30)), TEST.assign(key=[5, 6, 7, 8])
    _, told = checked(train, test)
    assert len(told) == 1
    assert "Column 'key'" in told[0]
    assert "kinds={'key': 'integer'}" in told[0]
    assert checked(train, test, kinds={"key": "integer"})[1] == []


def test_kinds_and_groups_are_kept_for_others():
    inputs, _ = checked(kinds={"n": "class"}, discrete=(), groups={"g": ["x", "n"]})
    assert inputs.discrete == ("n",)
    assert inputs.kinds == {"n": "class"}
    assert inputs.groups == {"g": ("x", "n")}


def test_missing_targets_are_refused():
    broken = Y_TRAIN.copy()
    broken[3] = np.nan
    with pytest.raises(
        ValueError, match=r"y must be finite and without missing values; got '1 of 30"
    ):
        check_inputs(TRAIN, broken, TEST, Y_TEST)


def test_the_share_of_missing_values_is_that_of_all_rows():
    train = TRAIN.assign(zip=["u", None] * 15)
    inputs, _ = checked(train, TEST.assign(zip=[None, None, None, "u"]))
    assert inputs.share_missing() == {"x": 0.0, "zip": 18 / 34, "n": 0.0}


def test_wrong_kinds_and_groups_are_not_blamed_on_the_rows():
    for options in ({"kinds": {"z": "class"}}, {"groups": {"g": ["z"]}}, {"discrete": "z"}):
        with pytest.raises(ValueError, match="got 'z'") as caught:
            checked(**options)
        assert not getattr(caught.value, "__notes__", [])


def test_booleans_among_objects_are_booleans():
    """Such as a column of objects from which missing values were dropped."""
    X = pd.DataFrame({"a": np.arange(4.0), "b": [1.0, 0.0, 2.0, 1.0]})
    y = pd.Series([True, False, None, True, False], dtype=object).dropna().reset_index(drop=True)
    found = check_inputs(X, y, X, y)
    assert found.y_train.dtype == found.y_test.dtype == np.bool_
    mixed = pd.Series([True, "no", False, True], dtype=object)
    assert check_inputs(X, mixed, X, mixed).y_train.dtype == object
