"""Samplers draw, learn and score as when they were frozen, on tiny tables of every kind."""

import json
from pathlib import Path

import numpy as np
import pytest

from frozen_samplers import cases, numbers_of

_FROZEN = json.loads(Path(__file__).with_name("frozen_samplers.json").read_text(encoding="utf-8"))
# Rounding is carried along by the steps of fits.
_ROUNDING = 1e-6


@pytest.mark.parametrize("name", _FROZEN)
def test_the_numbers_of_a_sampler_are_the_same(name):
    found, frozen = numbers_of(cases()[name]), _FROZEN[name]
    assert list(found) == list(frozen)
    for part, numbers in frozen.items():
        scale = np.abs(numbers).max(initial=0.0)
        np.testing.assert_allclose(
            found[part], numbers, rtol=_ROUNDING, atol=_ROUNDING * scale, err_msg=part
        )


def test_every_case_is_frozen():
    assert list(cases()) == list(_FROZEN)
