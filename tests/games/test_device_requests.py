"""Which requests to a device are answered together."""

import numpy as np
import pytest

pytest.importorskip("torch")

from dsage.games.base import Along, Coalitions
from dsage.games.device_requests import can_merge


def coalitions(n_rows, epoch=0, n_columns=3):
    return Coalitions(np.zeros((2, n_columns), dtype=bool), np.arange(n_rows), epoch)


def along(n_rows, epoch=0):
    orders = np.array([[0, 1, 2]])
    return Along(orders, np.arange(n_rows), epoch, np.ones((1, 4), dtype=bool))


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([coalitions(8), along(8)], True),
        ([coalitions(8, 2), along(8, 2), along(6, 2)], True),
        # The noise of an epoch is that of all draws.
        ([coalitions(8, 1), along(8, 2)], False),
        # Three quarters of the rows of the largest are enough, less is filled up in vain.
        ([coalitions(6), along(8)], True),
        ([coalitions(5), along(8)], False),
        ([coalitions(8)], False),
        ([], False),
        ([coalitions(0), along(0)], False),
        # What is set, and what the model receives.
        ([coalitions(8, n_columns=6), along(8)], False),
        ([along(8), coalitions(8, n_columns=6)], False),
    ],
)
def test_requests_with_the_same_noise_and_similar_numbers_of_rows_are_merged(requests, expected):
    assert can_merge(requests, 3) is expected
