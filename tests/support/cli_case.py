"""A table whose ranking is known, and what a command left behind."""

import numpy as np
import pandas as pd

N_ROWS = 90


def table(n_rows=N_ROWS, seed=0):
    """Numbers of which the target is a sum, but for noise; `idle` tells nothing."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(n_rows, 3)), columns=["dose", "age", "idle"])
    X["age"] += X["dose"]
    return X.assign(outcome=2 * X["dose"] + X["age"] + random.normal(0, 0.5, n_rows))


class Ran:
    """What a command wrote, and how it ended."""

    def __init__(self, result):
        self.code, self.out, self.err = result.exit_code, result.stdout, result.stderr
        self.exception = result.exception

    @property
    def error(self):
        """The one line of an error."""
        assert self.code == 2, (self.code, self.out, self.err)
        lines = [line for line in self.err.splitlines() if line.startswith("Error: ")]
        assert len(lines) == 1, self.err
        assert self.err.splitlines()[-1] == lines[0]
        assert "Traceback" not in self.err + self.out
        return lines[0]
