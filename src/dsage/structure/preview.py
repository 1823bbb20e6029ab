"""A quick preview of how much a graph of a table may separate, before one is learned."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dsage.data.frames import take_rows
from dsage.data.inputs import Inputs
from dsage.graphs import Graph, Oracle
from dsage.structure.learn import search_graph

# Number of rows that are used, and of columns from which only a tabu search is run.
_MAX_ROWS, _MANY_COLUMNS = 10_000, 200


def preview_oracle(inputs: Inputs, seed: int) -> Oracle:
    """Return the separations of the target by linear regressions, classes as their codes.

    They take a second or two for several hundred columns, and are not meant to be used: on tables
    that are not linear-Gaussian many are wrong. But where linear regressions separate next to
    nothing, the dependences that they miss leave even less.
    """
    n_rows = len(inputs.y_train)
    at = np.linspace(0, n_rows - 1, min(n_rows, _MAX_ROWS)).astype(np.intp)
    rows = inputs.layout.encode(take_rows(inputs.X_train, at))
    absent = np.isnan(rows)
    means = np.nanmean(np.where(absent.all(axis=0), 0.0, rows), axis=0)
    columns = dict(zip(inputs.names, np.where(absent, means, rows).T, strict=True))
    columns[inputs.target] = _as_numbers(inputs.y_train)[at]
    varying = {name: column for name, column in columns.items() if np.ptp(column) > 0}
    if inputs.target not in varying:
        return Graph([*inputs.names, inputs.target], []).oracle(inputs.target, inputs.names)
    method = "auto" if len(varying) < _MANY_COLUMNS else "tabu"
    found = search_graph(
        pd.DataFrame(varying), method=method, score="ebic", random_state=seed
    ).graph
    return Graph([*inputs.names, inputs.target], found.edges).oracle(inputs.target, inputs.names)


def _as_numbers(target: object) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return a target as numbers; classes as codes in the order in which they appear."""
    values = pd.Series(np.asarray(target))
    if values.dtype.kind not in "biuf":
        values = pd.Series(pd.factorize(values)[0])
    return values.to_numpy(dtype=np.float64)
