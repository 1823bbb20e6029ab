"""The chain of Bubley and Dyer (1999): linear extensions of orders too large to count.

A step picks places p and p + 1 of the n with probability proportional to p (n - p), and swaps the
features there with probability 1/2 if the order allows it. The expected distance of two coupled
chains that differ by a transposition falls by a share 1 / K per step, K = (n^3 - n) / 6 (path
coupling). The distance of two extensions is at most the number of unordered pairs, n_open, so the
total variation distance to the uniform distribution is below e after

    K log(n_open / e)

steps from any start, and stays below it. States that are a quarter of these steps apart are almost
independent.
"""

from __future__ import annotations

from math import ceil, log

import numpy as np
import numpy.typing as npt

_AT_ONCE = 1 << 16


class Chain:
    """Draw linear extensions that are uniform up to a total variation distance, `tolerance`.

    Entry [i, j] of `before`, transitively closed, is whether i comes before j.
    """

    def __init__(self, before: npt.NDArray[np.bool_], tolerance: float) -> None:
        n = len(before)
        is_open = ~(before | before.T)
        n_open = (int(is_open.sum()) - n) // 2
        places = np.arange(1, n)
        self._weights = np.cumsum(places * (n - places))
        self._may_swap: list[list[bool]] = is_open.tolist()
        self._start: list[int] = np.argsort(before.sum(axis=0), kind="stable").tolist()
        total = (n**3 - n) // 6
        self.n_steps = ceil(total * log(n_open / tolerance)) if n_open else 0

    def draw(self, generator: np.random.Generator, n_orderings: int) -> list[list[int]]:
        """Return states of one run, each uniform, and almost independent."""
        ordering = self._start.copy()
        self._run(ordering, self.n_steps, generator)
        drawn = [ordering.copy()]
        while len(drawn) < n_orderings:
            self._run(ordering, -(-self.n_steps // 4), generator)
            drawn.append(ordering.copy())
        return drawn

    def _run(self, ordering: list[int], n_steps: int, generator: np.random.Generator) -> None:
        may_swap = self._may_swap
        # Half of the steps never swap, so they are only counted.
        n_left = int(generator.binomial(n_steps, 0.5))
        while n_left:
            n_now = min(n_left, _AT_ONCE)
            picked = generator.integers(self._weights[-1], size=n_now)
            for place in np.searchsorted(self._weights, picked, side="right").tolist():
                one, other = ordering[place], ordering[place + 1]
                if may_swap[one][other]:
                    ordering[place], ordering[place + 1] = other, one
            n_left -= n_now
