"""Small searches take the same steps as when they were frozen."""

import json
from pathlib import Path

import numpy as np
import pytest

from frozen_scores import numbers_of
from frozen_searches import cases

_FROZEN = json.loads(Path(__file__).with_name("frozen_searches.json").read_text(encoding="utf-8"))
# Scores of logistic regressions have single precision.
_ROUNDING = 1e-4


@pytest.mark.parametrize("name", _FROZEN)
def test_the_steps_are_the_same(name):
    found, frozen = numbers_of(cases()[name]), _FROZEN[name]
    assert list(found) == list(frozen)
    for part, numbers in frozen.items():
        scale = np.abs(numbers).max(initial=0.0)
        np.testing.assert_allclose(
            found[part], numbers, rtol=_ROUNDING, atol=_ROUNDING * scale, err_msg=part
        )


def test_every_search_is_frozen():
    assert list(cases()) == list(_FROZEN)
