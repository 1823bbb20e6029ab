"""What a drawn row costs, with bounds that only another order of magnitude exceeds."""

import time

import numpy as np
import pandas as pd
import pytest

from dsage.samplers import SAMPLERS

_MOST = 50e-6  # seconds a drawn row


def table(n_rows):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(n_rows, 8)) @ rng.normal(size=(8, 8))
    frame = pd.DataFrame(numbers, columns=[f"x{at}" for at in range(8)])
    return frame, frame.assign(
        side=pd.Categorical(np.where(numbers[:, 0] > 0, "right", "left")),
        kind=pd.Categorical(rng.choice(["a", "b", "c"], n_rows)),
    )


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_a_drawn_row_costs_at_most_fifty_microseconds(name):
    numbers, mixed = table(300)
    rows = numbers if name in {"gaussian", "copula", "mixture"} else mixed
    sampler = SAMPLERS[name]().fit(rows)
    noise = np.random.default_rng(1).uniform(0.01, 0.99, (50, 64, rows.shape[1]))
    known = np.arange(rows.shape[1]) % 2 == 0
    seconds = []
    for _ in range(3):
        start = time.process_time()
        sampler.draw(rows[:50], known, noise)
        seconds.append(time.process_time() - start)
    assert min(seconds) / (50 * 64) < _MOST
