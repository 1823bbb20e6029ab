"""Estimations for a seed evaluate the same, and give the same numbers, as when they were frozen.

The parity tests do so for whole explanations; these are tiny, and one of them concerns each kind of
decision: when noise is kept, which term is next, which features are evaluated further.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from frozen_paths import numbers_of, paths

_FROZEN = json.loads(Path(__file__).with_name("frozen_paths.json").read_text(encoding="utf-8"))
# Far above rounding, and below any change of a decision.
_ROUNDING = 1e-7


@pytest.mark.parametrize("name", _FROZEN)
def test_the_path_of_an_estimation_is_the_same(name):
    found, frozen = numbers_of(paths()[name]), _FROZEN[name]
    assert set(found) == set(frozen)
    for part, numbers in frozen.items():
        scale = np.abs(np.array(numbers)[np.isfinite(numbers)]).max(initial=0.0)
        np.testing.assert_allclose(
            found[part], numbers, rtol=_ROUNDING, atol=_ROUNDING * scale, err_msg=part
        )


def test_every_path_is_frozen():
    assert list(paths()) == list(_FROZEN)
