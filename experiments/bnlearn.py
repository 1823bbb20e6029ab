"""Times of bnlearn 5.2.1 (R 4.2.2) for comparison, measured outside these experiments."""

from __future__ import annotations

from collections.abc import Mapping

from dsage.datasets import PAPER_GRAPHS

N_ROWS = 10_000
"""Number of rows of the paper's own data that were used; best of three runs on one core."""

_TABU = (0.11, 0.28, 0.13, 0.36, 1.23, 2.11, 1.66, 3.69, 10.01, 24.74, 33.23, 78.72)

TABU_SECONDS: Mapping[str, float] = dict(zip(PAPER_GRAPHS, _TABU, strict=True))
"""Seconds that TABU takes, by graph."""
