"""Games for a seed have the same risks, and the same first levels, as when they were frozen.

The parity tests do so for whole explanations; these games are tiny, and there is one of each kind.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from frozen_risks import games, numbers_of

_FROZEN = json.loads(Path(__file__).with_name("frozen_risks.json").read_text(encoding="utf-8"))
# Rounding is carried along by factors of covariances, and by sums over thousands of draws.
_ROUNDING = 1e-6


@pytest.mark.parametrize("name", _FROZEN)
def test_the_risks_of_a_game_are_the_same(name):
    found, frozen = numbers_of(games()[name]), _FROZEN[name]
    assert list(found) == list(frozen)
    for part, numbers in frozen.items():
        scale = np.abs(numbers).max(initial=0.0)
        np.testing.assert_allclose(
            found[part], numbers, rtol=_ROUNDING, atol=_ROUNDING * scale, err_msg=part
        )


def test_every_game_is_frozen():
    assert list(games()) == list(_FROZEN)
