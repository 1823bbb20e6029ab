"""A linear-Gaussian structural model: a DAG with weights, its covariance and data from it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import check_count, message
from dsage._random import RandomState, Streams
from dsage.graphs.graph import Graph


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
        if not graph.is_dag:
            raise ValueError(
                message("graph", "a DAG", graph, "Remove the cycles and bidirected edges")
            )
        if odd := sorted(set(weights) ^ set(graph.edges)):
            raise ValueError(
                message("weights", "given for the edges of the graph, no others", odd, "See these")
            )
        if odd_names := sorted(set(error_variances) ^ set(graph.names)):
            raise ValueError(
                message("error_variances", "given for the nodes, no others", odd_names, "See these")
            )
        for edge, weight in weights.items():
            if not np.isfinite(weight):
                raise ValueError(message("weights", "finite", (edge, weight), "Correct this one"))
        for name, variance in error_variances.items():
            if not (np.isfinite(variance) and variance > 0):
                raise ValueError(
                    message("error_variances", "positive", (name, variance), "Correct this one")
                )
        self.graph = graph
        self.weights = dict(weights)
        self.error_variances = dict(error_variances)

    def covariance(self) -> pd.DataFrame:
        """Return the exact population covariance, ``(I - W')^-1 D (I - W)^-1``."""
        names = list(self.graph.names)
        root = np.linalg.solve(np.eye(len(names)) - self._matrix().T, np.diag(self._deviations()))
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
        # Columns are contiguous: each is written once and read once a child.
        values = np.asfortranarray(generator.standard_normal((n_rows, len(self.graph))))
        values *= self._deviations()
        position = {name: index for index, name in enumerate(self.graph.names)}
        for name in self.graph.topological_order():
            for parent in self.graph.parents(name):
                values[:, position[name]] += (
                    self.weights[parent, name] * values[:, position[parent]]
                )
        return pd.DataFrame(values, columns=list(self.graph.names), copy=False)

    def standardised(self) -> LinearGaussian:
        """Return the model of the same variables, each divided by its standard deviation."""
        scale = dict(
            zip(self.graph.names, np.sqrt(np.diag(self.covariance())).tolist(), strict=True)
        )
        return LinearGaussian(
            self.graph,
            {(i, j): weight * scale[i] / scale[j] for (i, j), weight in self.weights.items()},
            {name: value / scale[name] ** 2 for name, value in self.error_variances.items()},
        )

    def _matrix(self) -> npt.NDArray[np.float64]:
        position = {name: index for index, name in enumerate(self.graph.names)}
        matrix = np.zeros((len(position), len(position)))
        for (tail, head), weight in self.weights.items():
            matrix[position[tail], position[head]] = weight
        return matrix

    def _deviations(self) -> npt.NDArray[np.float64]:
        return np.sqrt([self.error_variances[name] for name in self.graph.names])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.graph!r})"
