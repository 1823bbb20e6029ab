"""Numbers that were frozen: for a seed they stay the same.

To the bit with the same processor and libraries as when they were frozen; elsewhere up to rounding.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from frozen_runs import machine, numbers_of, runs

_FROZEN = json.loads(Path(__file__).with_name("frozen_runs.json").read_text(encoding="utf-8"))
_IS_SAME_MACHINE = machine() == _FROZEN["machine"]
# Rounding is carried along by sums over thousands of rows, and by iterations that stop early.
_ROUNDING = 1e-6


@pytest.mark.parametrize("name", sorted(_FROZEN["runs"]))
def test_numbers_of_a_run_are_the_same(name):
    found, frozen = numbers_of(runs()[name]), _FROZEN["runs"][name]
    if _IS_SAME_MACHINE:
        assert found == frozen
        return
    assert set(found) == set(frozen)
    for part, texts in frozen.items():
        numbers = np.array([float.fromhex(text) for text in texts])
        tolerance = _ROUNDING * np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)
        np.testing.assert_allclose(
            [float.fromhex(text) for text in found[part]], numbers, rtol=0, atol=tolerance
        )


def test_every_run_is_frozen():
    assert set(runs()) == set(_FROZEN["runs"])
