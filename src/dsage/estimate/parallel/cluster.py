"""Run tasks on the workers of a Dask cluster, and handle the failures of workers.

joblib chooses the cluster. Its backend could also submit the tasks, but it waits forever if Dask
gives up a task, such as one whose workers run out of memory repeatedly or one whose error cannot be
unpickled. So the tasks are submitted to Dask directly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._check import refusal

# Seconds between two checks of the cluster, and until an unresponsive scheduler is given up.
_SECONDS_A_LOOK, _SECONDS_UNREACHABLE = 0.5, 10.0
# Minimum seconds to wait for workers if there were some before.
_SECONDS_WITHOUT_WORKERS = 60.0
# How often tasks may be lost before an error is raised, and the seconds to wait for workers before
# they are submitted again.
_MOST_LOSSES, _SECONDS_TO_RECOVER = 8, 0.5

Payload = npt.NDArray[np.uint8]
Work = Callable[[str, Payload | None, Any], Any]


class Cluster:
    """The workers of a Dask cluster, from joblib's Dask backend.

    The payload that all tasks need is sent to each worker once, and again to a restarted one. It is
    not scattered, because Dask drops copies of scattered data and fetches them again. A task whose
    worker dies is done by another worker.
    """

    def __init__(self, backend: Any) -> None:  # noqa: ANN401
        self._backend = backend
        self.client = backend.client
        self._token = ""
        self._had_workers = False
        self._alone_since: float | None = None

    def n_jobs(self) -> int:
        """Return the number of threads; at least one, because workers may still be starting."""
        self._require_scheduler()
        try:
            return max(1, self._n_threads())
        except _LossError:
            return 1

    def results(self, work: Work, token: str, payload: Payload, tasks: Sequence[Any]) -> list[Any]:
        """Return the results of the tasks, which all need the payload.

        `work` is called with the token, which names the payload, the payload or None, and a task;
        it returns None if the worker does not have the payload. It may be called twice for a task,
        because a worker died, and must return the same result. The empty tuple is a valid task.
        """
        found: dict[int, Any] = {}
        n_attempts = 0
        while left := {at: task for at, task in enumerate(tasks) if at not in found}:
            if n_attempts == _MOST_LOSSES:
                advice = "All workers died repeatedly: check their logs and their memory"
                condition = "one whose workers stay alive"
                raise _broken("cluster", condition, f"{_MOST_LOSSES} losses", advice)
            # Within a task of the same cluster, this frees its place for others.
            with self._backend.retrieval_context():
                found |= self._attempt(work, token, payload, left)
            n_attempts += 1
        return [found[at] for at in range(len(tasks))]

    def _attempt(
        self, work: Work, token: str, payload: Payload, tasks: dict[int, Any]
    ) -> dict[int, Any]:
        """Return the results of the tasks that were not lost."""
        from distributed import CancelledError, KilledWorker  # noqa: PLC0415

        self._require_scheduler()
        futures: dict[int, Any] = {}
        try:
            if token != self._token:
                self._send(work, token, payload)
            options = self._backend.submit_kwargs
            for at, task in tasks.items():
                futures[at] = self.client.submit(work, token, None, task, pure=False, **options)
            self._wait(list(futures.values()))
            gathered = self.client.gather(list(futures.values()))
        except (CancelledError, _LossError):
            time.sleep(_SECONDS_TO_RECOVER)
            self._require_scheduler()
            return {}
        except KilledWorker as error:
            condition, what = "possible to finish on a worker", f"{type(error).__name__}: {error}"
            advice = "All that tried died. Use more memory, or a smaller max_bytes in the game"
            raise refusal("a task", condition, what, advice, RuntimeError) from error
        finally:
            for future in futures.values():
                future.release()
        found = {at: each for at, each in zip(futures, gathered, strict=True) if each is not None}
        if len(found) < len(tasks):
            # Some workers are new.
            self._token = ""
        return found

    def _send(self, work: Work, token: str, payload: Payload) -> None:
        """Send the payload to all workers that do not have it."""
        try:
            # Unresponsive workers are ignored; if they return, they count as new.
            have = self.client.run(work, token, None, (), on_error="ignore")
            new = [worker for worker, each in have.items() if each is None]
            if new:
                have = self.client.run(work, token, payload, (), workers=new, on_error="ignore")
        except OSError as error:
            raise _LossError from error
        for each in have.values():
            if isinstance(each, Exception):
                raise each
        self._token = token

    def _wait(self, futures: Sequence[Any]) -> None:
        """Wait until all tasks are done, or one has failed."""
        from distributed import wait  # noqa: PLC0415

        self._alone_since = None
        while True:
            try:
                # `wait` uses the current client, which may be another one or none.
                with self.client.as_current():
                    wait(futures, timeout=_SECONDS_A_LOOK)  # type: ignore[no-untyped-call]
                return
            except TimeoutError:
                if any(future.status == "error" for future in futures):
                    return
                self._require_scheduler()
                self._require_workers()

    def _require_scheduler(self) -> None:
        """Wait some time for a lost scheduler, then raise an error."""
        start = time.monotonic()
        while self.client.status != "running":
            is_over = time.monotonic() - start > _SECONDS_UNREACHABLE
            if is_over or self.client.status != "connecting":
                advice = "Restart the cluster; a run with a checkpoint can resume on any machine"
                found = f"a client that is {self.client.status}"
                raise _broken("scheduler", "reachable", found, advice)
            time.sleep(0.05)

    def _require_workers(self) -> None:
        """Wait for workers up to the timeout of the backend, then raise an error."""
        now = time.monotonic()
        if self._n_threads() > 0:
            self._alone_since = None
            return
        self._alone_since = self._alone_since or now
        seconds = self._backend.wait_for_workers_timeout
        if seconds and self._had_workers:
            seconds = max(seconds, _SECONDS_WITHOUT_WORKERS)
        if seconds and now - self._alone_since > seconds:
            longer = "joblib.parallel_config(backend='dask', wait_for_workers_timeout=...)"
            advice = f"Start some, or wait longer with {longer}"
            raise _broken("cluster", "one with workers", f"none for {seconds} s", advice)

    def _n_threads(self) -> int:
        try:
            n_threads = int(sum(self.client.nthreads().values()))
        except OSError as error:
            raise _LossError from error
        self._had_workers = self._had_workers or n_threads > 0
        return n_threads


class _LossError(Exception):
    """Tasks or connections were lost, and may be recovered."""


def is_cluster(backend: object) -> bool:
    """Return whether a joblib backend is the one for Dask."""
    return "dask" in type(backend).__module__ and hasattr(backend, "client")


def _broken(part: str, condition: str, found: str, advice: str) -> Exception:
    return refusal(f"the Dask {part}", condition, found, advice, ConnectionError)
