"""Places in errors, and collections of warnings inside each other."""

import warnings

import pytest

from dsage._check import DsageWarning, name_place, record_warnings, refusal, warn


def test_an_error_starts_with_its_place_also_where_its_parts_are_worded_anew():
    text = r"^fold 2 of 5: model 'a': loss must be"
    outer, inner = name_place("fold 2 of 5"), name_place("model 'a'")
    with pytest.raises(ValueError, match=text) as found, outer, inner:
        raise refusal("loss", "known", "x", "Name it")
    problem = found.value.problem
    assert problem.worded("--loss", str) == (
        "fold 2 of 5: model 'a': --loss must be known; got 'x'. Name it."
    )


def test_an_error_without_text_gets_a_note():
    with pytest.raises(OSError, match="No such") as found, name_place("fold 2 of 5"):
        raise FileNotFoundError(2, "No such file")
    assert found.value.__notes__ == ["This is about fold 2 of 5."]


def test_a_collection_shows_what_the_one_around_it_shows():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with record_warnings(show=False), record_warnings() as inner:
            warn("unseen")
    assert [str(each) for each in inner] == ["unseen"]
    outer, inner = record_warnings(show=False), record_warnings(show=True)
    with pytest.warns(DsageWarning, match="seen"), outer, inner:
        warn("seen")
