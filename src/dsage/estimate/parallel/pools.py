"""Let models predict the same digits everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import joblib

from dsage.data.pools import single_blas
from dsage.models.torch_tools import one_thread


@contextmanager
def steady_digits(n_threads: int | None = None) -> Iterator[None]:
    """Let a model predict the same last digits everywhere, with `n_threads` threads of OpenMP.

    A model with its own jobs uses one: the processors are busy, and the last digits of a forest
    that sums its trees in several threads vary.
    """
    with (
        joblib.parallel_config(backend="sequential"),
        single_blas() as pools,
        one_thread(),
        # Unlike the limit of BLAS, this one applies to the calling thread only.
        pools.limit(limits=n_threads, user_api="openmp"),
    ):
        yield
