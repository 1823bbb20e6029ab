"""Linear-Gaussian structural models: a DAG with weights, its covariance, and samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import check_count, refusal
from dsage._random import RandomState, Streams
from dsage.graphs.graph import Graph, check_dag


class LinearGaussian:
    """Each variable is a weighted sum of its parents plus independent Gaussian noise.

    ``X_j = sum_i w_ij X_i + e_j`` with ``e_j ~ N(0, error_variance_j)``; all means are zero.

    Parameters
    ----------
    graph : Graph
        A DAG.
    weights : mapping from (str, str) to float
        The weight of every edge of the graph.
    error_variances : mapping from str to float
        The variance of every node's noise, positive.

    Examples
    --------
    >>> graph = Graph(["a", "b"], [("a", "b")])
    >>> model = LinearGaussian(graph, {("a", "b"): 0.6}, {"a": 1.0, "b": 0.64})
    >>> model.covariance()
         a    b
    a  1.0  0.6
    b  0.6  1.0
    >>> model.sample(1000, random_state=0).shape
    (1000, 2)
    """

    def __init__(
        self,
        graph: Graph,
        weights: Mapping[tuple[str, str], float],
        error_variances: Mapping[str, float],
    ) -> None:
        check_dag(graph)
        _check_numbers(weights, graph.edges, "weights", "the edges", "finite", np.isfinite)
        _check_numbers(
            error_variances, graph.names, "error_variances", "the nodes", "positive", _is_positive
        )
        self.graph = graph
        self.weights = dict(weights)
        self.error_variances = dict(error_variances)

    def covariance(self) -> pd.DataFrame:
        """Return the exact population covariance, ``(I - W')^-1 D (I - W)^-1``."""
        names = list(self.graph.names)
        root = self._root()
        return pd.DataFrame(root @ root.T, index=names, columns=names)

    def sample(self, n_rows: int, random_state: RandomState = None) -> pd.DataFrame:
        """Draw `n_rows` independent observations.

        Parameters
        ----------
        n_rows : int
            Number of observations.
        random_state : int, numpy Generator or None, default=None
            Seed.

        Returns
        -------
        pandas.DataFrame of shape (n_rows, n_nodes)
        """
        n_rows = check_count(n_rows, "n_rows")
        generator = Streams(random_state)("linear-gaussian")
        # Contiguous columns: each is written once and read once per child.
        values = np.asfortranarray(generator.standard_normal((n_rows, len(self.graph))))
        values *= self._deviations()
        position = {name: index for index, name in enumerate(self.graph.names)}
        for name in self.graph.topological_order():
            for parent in self.graph.parents(name):
                values[:, position[name]] += (
                    self.weights[parent, name] * values[:, position[parent]]
                )
        return pd.DataFrame(values, columns=list(self.graph.names), copy=False)

    def standardized(self) -> LinearGaussian:
        """Return the model of the variables divided by their standard deviations."""
        deviations = np.linalg.norm(self._root(), axis=1)
        scale = dict(zip(self.graph.names, deviations.tolist(), strict=True))
        return LinearGaussian(
            self.graph,
            {(i, j): weight * scale[i] / scale[j] for (i, j), weight in self.weights.items()},
            {name: value / scale[name] ** 2 for name, value in self.error_variances.items()},
        )

    def _root(self) -> npt.NDArray[np.float64]:
        """Return the effect of each standardized noise (column) on each variable (row).

        Substitution from causes to effects keeps its accuracy even if the variances become large,
        unlike a general solver.
        """
        position = {name: index for index, name in enumerate(self.graph.names)}
        root = np.diag(self._deviations())
        with np.errstate(over="ignore", invalid="ignore"):
            for name in self.graph.topological_order():
                for parent in self.graph.parents(name):
                    root[position[name]] += self.weights[parent, name] * root[position[parent]]
        # The covariance holds the squares.
        if not (np.abs(root) < 1e150).all():
            name = self.graph.names[int(np.argmax(~(np.abs(root) < 1e150).all(axis=1)))]
            advice = "The variance of this node is too large: use smaller weights"
            raise refusal("weights", "small enough for finite variances", name, advice)
        return root

    def _deviations(self) -> npt.NDArray[np.float64]:
        return np.sqrt([self.error_variances[name] for name in self.graph.names])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.graph!r})"


def _check_numbers(
    given: Mapping[Any, float],
    keys: Iterable[Any],
    parameter: str,
    of: str,
    condition: str,
    holds: Callable[[float], bool],
) -> None:
    """Check that `given` has a number that meets the condition for every key, and no other key."""
    if not isinstance(given, Mapping):
        raise refusal(parameter, f"a dict from {of} to numbers", given, "Pass a dict", TypeError)
    if odd := sorted(set(given) ^ set(keys), key=str):
        raise refusal(parameter, f"given for exactly {of} of the graph", odd, "Add or remove these")
    for key, value in given.items():
        is_number = isinstance(value, (int, float, np.integer, np.floating))
        if not (is_number and holds(value)):
            raise refusal(parameter, condition, (key, value), "Correct this entry")


def _is_positive(value: float) -> bool:
    return 0 < value < np.inf
