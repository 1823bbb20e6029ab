"""Estimations for a seed evaluate the same, and give the same numbers, as when they were frozen.

The parity tests do so for whole explanations; these are tiny, and one of them concerns each kind of
decision: when noise is kept, which term is next, which features are evaluated further.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from dsage.estimate.plan import Plan
from frozen_paths import Many, numbers_of, paths

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


def test_the_time_of_a_unit_is_estimated_from_its_size_alone():
    # An ordering and its reverse on ten rows: 41 coalitions each, at 30 microseconds if drawn.
    drawn = Plan(Many(0.5), rows_per_ordering=10, random_state=0)
    assert drawn.seconds_a_unit == pytest.approx(2 * 41 * 10 * 3e-5)
    exact = Plan(Many(0.0), rows_per_ordering=10, random_state=0)
    alone = exact.seconds_a_unit - 2 * 41 * 10 * 4e-7
    # Matrices take as long as there are squares of features, on however many rows.
    wide = Plan(Many(0.0), rows_per_ordering=30, random_state=0)
    assert alone == pytest.approx(2 * 4e-8 * 40**2)
    assert wide.seconds_a_unit == pytest.approx(alone + 2 * 41 * 30 * 4e-7)
