"""Numbers that were frozen before the package was rearranged: for a seed, the same to the bit."""

import json
from pathlib import Path

import pytest

from frozen_runs import machine, numbers_of, runs

_FROZEN = json.loads(Path(__file__).with_name("frozen_runs.json").read_text(encoding="utf-8"))

pytestmark = pytest.mark.skipif(
    machine() != _FROZEN["machine"],
    reason="the last bits depend on the processor and on the versions of numerical libraries",
)


@pytest.mark.parametrize("name", sorted(_FROZEN["runs"]))
def test_numbers_of_a_run_are_the_same_to_the_bit(name):
    assert numbers_of(runs()[name]) == _FROZEN["runs"][name]


def test_every_run_is_frozen():
    assert set(runs()) == set(_FROZEN["runs"])
