"""Evaluate requests in parallel: in threads, processes, or the workers of a cluster.

The process that runs the loop makes all decisions and holds the only cache of risks. Workers
receive requests to the game and return the answers; they keep nothing but the game itself. So the
results do not depend on where they are computed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from threading import Event, Thread
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend

from dsage._check import DsageWarning, Setting, Text, refusal, warn
from dsage.data.pools import single_blas
from dsage.estimate.parallel.cluster import Cluster, is_cluster
from dsage.estimate.parallel.helpers import Helpers, Meanwhile
from dsage.estimate.parallel.work import Done, Payload, pack, work, work_here
from dsage.games.base import Floats, Game, Request, count_pairs

# Seconds per task: long compared with sending it, short compared with a run.
_SECONDS_A_TASK = 1.0
# With less work than that: tasks per job, and the minimum seconds of each.
_TASKS_A_JOB, _SHORTEST_TASK = 8, 0.05


@contextmanager
def _beside(work: Meanwhile | None) -> Iterator[None]:
    """Let a thread work until the end of the block; errors in it are ignored here."""
    if work is None:
        yield
        return
    is_over = Event()

    def run() -> None:
        with suppress(Exception), single_blas():
            work(is_over.is_set)

    # The thread inherits the settings of this one, such as NumPy's error handling.
    thread = Thread(target=copy_context().run, args=(run,), name="dsage-beside", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def check_n_jobs(n_jobs: int | None) -> int | None:
    """Return a number of jobs, as joblib counts them."""
    if n_jobs == 0 or not (n_jobs is None or isinstance(n_jobs, (int, np.integer))):
        raise refusal("n_jobs", "a number other than 0", n_jobs, "Use -1 for all processors")
    return None if n_jobs is None else int(n_jobs)


class Jobs:
    """Evaluate requests with joblib: see :data:`dsage.games.cached.Evaluate`.

    The number of jobs counts as in joblib: -1 for all processors; by default the number of
    ``joblib.parallel_config``, or else one, which gets :class:`~dsage.estimate.parallel.helpers.\
Helpers` in long runs. The backend is also joblib's, such as
    ``joblib.parallel_config(backend="dask")`` for a cluster.

    `on_piece` is called between requests that are answered one after the other in this process,
    with the number of those that are done, and of all. `meanwhile` is called while other processes
    answer, in a thread unless they are helpers, with a function that returns whether they have done
    so.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = check_n_jobs(n_jobs)
        self.on_piece: Callable[[int, int], None] | None = None
        self.meanwhile: Meanwhile | None = None
        self._game: Game | None = None
        self._token = ""
        self._payload: Payload | None = None
        self._is_sent = False
        self._cluster: Cluster | None = None
        self._helpers = Helpers()
        self._seconds = self._n_pairs = 0.0
        self._warned: set[tuple[str, int]] = set()

    @property
    def n_helpers(self) -> int:
        """The number of processes that currently help automatically, without `n_jobs`."""
        return self._helpers.n_working

    def expect(self, seconds_left: float | None) -> None:
        """Note how long the run will probably continue; None if that is unknown."""
        if seconds_left is not None:
            self._helpers.expect(seconds_left)

    def __call__(self, game: Game, requests: Sequence[Request]) -> list[Floats]:
        """Return the answers of the game to requests."""
        backend, _ = get_active_backend()
        self._cluster = self._find_cluster(backend)
        if self._cluster is None:
            n_jobs = joblib.effective_n_jobs(self.n_jobs)
            if n_jobs == 1 and self.n_jobs is None:
                done_here = self._helpers.answers(game, requests, self.on_piece, self.meanwhile)
                self._warn([done_here])
                return done_here.answers
            if n_jobs == 1:
                return work_here(game, requests, on_piece=self.on_piece).answers
        else:
            n_jobs = self._cluster.n_jobs()
        parts = self._part(requests, n_jobs)
        bundles = self._bundle([part for of_one in parts for part in of_one], n_jobs)
        # Threads of this process may do the work.
        with single_blas():
            # Only backends of joblib that use threads have this attribute.
            if getattr(backend, "uses_threads", False):
                n_threads = max(1, joblib.cpu_count() // n_jobs)
                done = self._parallel(
                    joblib.delayed(work_here)(game, bundle, n_threads) for bundle in bundles
                )
            else:
                # If processes are forked, a copy of this thread's locks would never be free.
                is_safe = self._cluster is not None or type(backend).__name__ == "LokyBackend"
                with _beside(self.meanwhile if is_safe else None):
                    done = self._send(game, bundles)
        self._seconds += sum(each.seconds for each in done)
        self._n_pairs += sum(map(count_pairs, requests))
        self._warn(done)
        answers = iter([answer for each in done for answer in each.answers])
        joined = []
        for of_one in parts:
            found = [next(answers) for _ in of_one]
            # The last axis but one of an answer is that of the rows.
            joined.append(found[0] if len(found) == 1 else np.concatenate(found, axis=-2))
        return joined

    def _find_cluster(self, backend: Any) -> Cluster | None:  # noqa: ANN401
        """Return the cluster of the backend, if any: the same one as before if it is unchanged."""
        if not is_cluster(backend):
            return None
        if self._cluster is None or self._cluster.client is not backend.client:
            return Cluster(backend)
        return self._cluster

    def _parallel(self, tasks: Any) -> list[Any]:  # noqa: ANN401
        try:
            return list(joblib.Parallel(n_jobs=self.n_jobs, batch_size=1)(tasks))
        except BrokenExecutor as error:
            advice = (
                "The model crashed, or memory was too small for its copies: use fewer jobs, or "
            )
            text = Text([advice, Setting("n_jobs", 1), " to see the crash"])
            condition = "running until their work is done"
            raise refusal(
                "worker processes", condition, "one that ended", text, RuntimeError
            ) from error

    def _send(self, game: Game, bundles: Sequence[Sequence[Request]]) -> list[Done]:
        """Return the results of other processes; the game is sent to each of them once."""
        if game is not self._game:
            self._token, self._payload = pack(game, self.n_jobs)
            self._game, self._is_sent = game, False
        if self._cluster is not None and self._payload is not None:
            done = self._cluster.results(work, self._token, self._payload, bundles)
        else:
            done = self._run_in_processes(bundles)
        for each in done:
            if isinstance(each, Exception):
                raise each
        return done

    def _run_in_processes(self, bundles: Sequence[Sequence[Request]]) -> list[Any]:
        payload = None if self._is_sent else self._payload
        done = self._parallel(
            joblib.delayed(work)(self._token, payload, bundle) for bundle in bundles
        )
        self._is_sent = True
        # New workers do not have the game, and others may have dropped it.
        missing = [number for number, each in enumerate(done) if each is None]
        if missing:
            again = self._parallel(
                joblib.delayed(work)(self._token, self._payload, bundles[number])
                for number in missing
            )
            for number, each in zip(missing, again, strict=True):
                done[number] = each
        return done

    def _part(self, requests: Sequence[Request], n_jobs: int) -> list[list[Request]]:
        """Return each request in parts of its rows: most in one part, the last ones in several.

        If the jobs have few requests each, some would get one more than others. These are divided.
        """
        parts = [[request] for request in requests]
        n_more = len(requests) % n_jobs
        if not self._n_pairs or len(requests) > _TASKS_A_JOB * n_jobs:
            return parts
        for at in range(len(requests) - n_more, len(requests)):
            request = requests[at]
            seconds = count_pairs(request) * self._seconds / self._n_pairs
            if seconds > _SHORTEST_TASK:
                n_parts = min(n_jobs, len(request.rows))
                parts[at] = [
                    request._replace(rows=rows) for rows in np.array_split(request.rows, n_parts)
                ]
        return parts

    def _bundle(self, requests: Sequence[Request], n_jobs: int) -> list[list[Request]]:
        """Return requests in tasks of about a second, or less if there is not much to do.

        There are a few tasks per job, so that slower jobs get fewer of them.
        """
        sizes = np.array(list(map(count_pairs, requests)), dtype=np.float64)
        # At first, nothing is known about the time.
        a_job = _TASKS_A_JOB * _SHORTEST_TASK
        if self._n_pairs:
            a_job = sizes.sum() * self._seconds / self._n_pairs / n_jobs
        seconds = min(max(a_job / _TASKS_A_JOB, _SHORTEST_TASK), _SECONDS_A_TASK)
        n_bundles = min(len(requests), n_jobs * max(1, round(a_job / seconds)))
        middles = np.cumsum(sizes) - sizes / 2
        at = np.minimum(middles / max(sizes.sum(), 1.0) * n_bundles, n_bundles - 1).astype(int)
        bundles: list[list[Request]] = [[] for _ in range(n_bundles)]
        for number, request in zip(at.tolist(), requests, strict=True):
            bundles[number].append(request)
        return [bundle for bundle in bundles if bundle]

    def _warn(self, done: Sequence[Done]) -> None:
        """Repeat the warnings of workers, each once."""
        for each in done:
            for text, category, where in each.warned:
                if where not in self._warned:
                    self._warned.add(where)
                    if issubclass(category, DsageWarning):
                        warn(text, category)
                    else:
                        warnings.warn(text, category, stacklevel=2)
