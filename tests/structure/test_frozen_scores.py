"""Scores, tests and their parts have the same numbers on small tables as when they were frozen."""

import json
from pathlib import Path

import numpy as np
import pytest

from frozen_scores import cases, numbers_of

_FROZEN = json.loads(Path(__file__).with_name("frozen_scores.json").read_text(encoding="utf-8"))
# Rounding is carried along by factors of correlations; logistic regressions have single precision.
_ROUNDING, _SINGLE = 1e-6, 1e-3


@pytest.mark.parametrize("name", _FROZEN)
def test_the_numbers_are_the_same(name):
    found, frozen = numbers_of(cases()[name]), _FROZEN[name]
    assert list(found) == list(frozen)
    is_exact = not name.startswith(("softmax", "logistic", "basis", "overlooked", "screening"))
    rounding = _ROUNDING if is_exact else _SINGLE
    for part, numbers in frozen.items():
        scale = np.abs(numbers).max(initial=0.0)
        np.testing.assert_allclose(
            found[part], numbers, rtol=rounding, atol=rounding * scale, err_msg=part
        )


def test_every_case_is_frozen():
    assert list(cases()) == list(_FROZEN)


def test_units_do_not_matter_to_the_look_at_wide_tables():
    found, other = (numbers_of(cases()[name]) for name in ("screening", "screening, other units"))
    assert found["suspects"] == pytest.approx(other["suspects"], rel=1e-4)
