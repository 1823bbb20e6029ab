"""Simulate the data and the separation queries of the experiments."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from dsage.datasets import paper_graph
from dsage.graphs import LinearGaussian, Oracle
from dsage.structure import Moments, search_graph
from experiments.store import seed_of

# With 100 columns these take 40 MB; a million rows would not be held in memory at once.
ROWS_AT_ONCE = 50_000


def simulate_moments(model: LinearGaussian, n_rows: int, seed: int) -> tuple[Moments, float]:
    """Return the moments of simulated rows, and the seconds to compute them on one thread.

    Rows are simulated in chunks, so memory does not grow with their number; the first chunk has
    the given seed. Simulating is not timed.

    Examples
    --------
    >>> from dsage.datasets import paper_graph
    >>> moments, seconds = simulate_moments(paper_graph("dag_s(2)"), 60_000, seed=0)
    >>> moments
    Moments(60000 rows, 10 nodes: X1, X2, X3, X4, X5, X6, ...)
    """
    moments, seconds = None, 0.0
    for start in range(0, n_rows, ROWS_AT_ONCE):
        size = min(ROWS_AT_ONCE, n_rows - start)
        chunk = model.sample(size, random_state=seed_of(seed, start) if start else seed)
        with threadpool_limits(1):
            began = time.perf_counter()
            added = Moments.from_frame(chunk)
            moments = added if moments is None else moments + added
            seconds += time.perf_counter() - began
    if moments is None:
        raise ValueError(f"n_rows must be at least 1; got {n_rows!r}. Simulate some rows.")
    return moments, seconds


def warm_up() -> None:
    """Compute moments and search once, untimed, so that code is loaded."""
    moments, _ = simulate_moments(paper_graph("dag_s(2)"), 100, seed=0)
    with threadpool_limits(1):
        search_graph(moments)


@dataclass(frozen=True)
class Questions:
    """The queries of d-SAGE along orderings: whether the next feature is separated.

    Attributes
    ----------
    orderings : int array of shape (n_orderings, n_features)
        Feature at each position of each ordering.
    """

    orderings: npt.NDArray[np.intp]

    @classmethod
    def draw(cls, n_features: int, n_orderings: int, seed: int) -> Questions:
        """Draw uniform orderings.

        Examples
        --------
        >>> Questions.draw(3, 2, seed=0).known().shape
        (6, 3)
        """
        rng = np.random.default_rng(seed)
        return cls(rng.permuted(np.tile(np.arange(n_features), (n_orderings, 1)), axis=1))

    def __len__(self) -> int:
        return self.orderings.size

    def first(self, n_orderings: int) -> Questions:
        """Return the questions of the first orderings."""
        return Questions(self.orderings[:n_orderings])

    def known(self) -> npt.NDArray[np.bool_]:
        """Return the features before each position, shape (n_orderings * n_features, n_features).

        Examples
        --------
        >>> Questions(np.array([[1, 0]])).known()
        array([[False, False],
               [False,  True]])
        """
        n_features = self.orderings.shape[1]
        position = np.argsort(self.orderings, axis=1)
        before = position[:, None, :] < np.arange(n_features)[None, :, None]
        return before.reshape(-1, n_features)

    def answers(self, oracle: Oracle) -> npt.NDArray[np.bool_]:
        """Return whether each next feature is separated, shape (n_orderings, n_features)."""
        separated = oracle.separated(self.known())
        answers = separated[np.arange(len(self)), self.orderings.ravel()]
        return answers.reshape(self.orderings.shape)
