"""Times of bnlearn 5.2.1 (R 4.2.2), measured apart from these experiments, for comparison."""

from __future__ import annotations

from collections.abc import Mapping

from dsage.datasets import PAPER_GRAPHS

N_ROWS = 10_000
"""Rows of the paper's own data that they were measured on: best of three, one core."""

_HC = (0.04, 0.12, 0.10, 0.23, 0.74, 1.46, 1.01, 2.69, 6.19, 24.26, 24.84, 79.07)
_TABU = (0.11, 0.28, 0.13, 0.36, 1.23, 2.11, 1.66, 3.69, 10.01, 24.74, 33.23, 78.72)

SECONDS: Mapping[str, Mapping[str, float]] = {
    "hc": dict(zip(PAPER_GRAPHS, _HC, strict=True)),
    "tabu": dict(zip(PAPER_GRAPHS, _TABU, strict=True)),
}
"""Seconds by method and graph."""

MORE_ROWS: Mapping[tuple[str, str, int], float] = {
    ("tabu", "dag_s(2)", 100_000): 1.6,
    ("tabu", "dag_sm(4)", 100_000): 28.2,
    ("hc", "dag_m(4)", 100_000): 163.0,
    ("tabu", "dag_m(4)", 100_000): 239.0,
}
"""Seconds by method, graph and number of rows."""
