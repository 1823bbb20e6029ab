"""Have tasks done by the workers of a Dask cluster, and notice what befalls it.

joblib chooses the cluster. Its back end would send the tasks too, but waits for ever where Dask
itself gives a task up: a worker that runs out of memory again and again, or an error that cannot be
unpickled. So the tasks go to Dask directly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._check import refusal

# How long to wait between looks at the cluster, and for a scheduler that does not answer.
_SECONDS_A_LOOK, _SECONDS_UNREACHABLE = 0.5, 10.0
# How long, at least, to wait for workers where there were some before.
_SECONDS_WITHOUT_WORKERS = 60.0
# How often tasks may be lost before that is an error, and the time for workers to come before they
# are sent again.
_MOST_LOSSES, _SECONDS_TO_RECOVER = 8, 0.5

Payload = npt.NDArray[np.uint8]
Work = Callable[[str, Payload | None, Any], Any]


class Cluster:
    """The workers of a Dask cluster.

    Parameters
    ----------
    backend : joblib's Dask back end
        Gives the client, how long to wait for workers, and options of its ``submit``.

    Notes
    -----
    What all tasks need is given to each worker once, and again to one that comes back from the
    dead. It is no data of the cluster's: Dask drops copies of these as it sees fit, and fetches
    them again. A task whose worker dies is done by another.
    """

    def __init__(self, backend: Any) -> None:  # noqa: ANN401
        self._backend = backend
        self.client = backend.client
        self._token = ""
        self._had_workers = False
        self._alone_since: float | None = None

    def n_jobs(self) -> int:
        """Return how many tasks can be under way: one at least, as workers may be yet to come."""
        self._require_scheduler()
        try:
            return max(1, self._n_threads())
        except _LossError:
            return 1

    def results(self, work: Work, token: str, payload: Payload, pieces: Sequence[Any]) -> list[Any]:
        """Return what workers give for the pieces.

        Parameters
        ----------
        work : callable
            Is called with the token, the payload or None, and a piece; returns None where it
            has yet to see the payload. It may be called twice for one piece, because a worker
            died, and must give the same then. The empty tuple is a piece, too.
        token : str
            A name of the payload.
        payload : uint8 array
            What all pieces need.
        pieces : sequence
            The pieces of work.
        """
        found: dict[int, Any] = {}
        for _ in range(_MOST_LOSSES):
            left = {at: piece for at, piece in enumerate(pieces) if at not in found}
            if not left:
                return [found[at] for at in range(len(pieces))]
            # In a task of the same cluster, lets others have the place of this one.
            with self._backend.retrieval_context():
                found |= self._attempt(work, token, payload, left)
        raise refusal(
            "the Dask cluster",
            "one whose workers live",
            f"{_MOST_LOSSES} losses",
            "They die together, again and again: look at their logs and their memory",
            ConnectionError,
        )

    def _attempt(
        self, work: Work, token: str, payload: Payload, pieces: dict[int, Any]
    ) -> dict[int, Any]:
        """Return what is found; without the pieces that were lost."""
        from distributed import CancelledError, KilledWorker  # noqa: PLC0415

        self._require_scheduler()
        futures: dict[int, Any] = {}
        try:
            if token != self._token:
                self._give(work, token, payload)
            options = self._backend.submit_kwargs
            for at, piece in pieces.items():
                futures[at] = self.client.submit(work, token, None, piece, pure=False, **options)
            self._wait(list(futures.values()))
            given = self.client.gather(list(futures.values()))
        except (CancelledError, _LossError):
            time.sleep(_SECONDS_TO_RECOVER)
            self._require_scheduler()
            return {}
        except KilledWorker as error:
            raise refusal(
                "a task",
                "possible to finish on a worker",
                f"{type(error).__name__}: {error}",
                "All workers that tried it died. Give them more memory, or the game a smaller "
                "max_bytes",
                RuntimeError,
            ) from error
        finally:
            for future in futures.values():
                future.release()
        found = {at: each for at, each in zip(futures, given, strict=True) if each is not None}
        if len(found) < len(pieces):
            # Some workers are new.
            self._token = ""
        return found

    def _give(self, work: Work, token: str, payload: Payload) -> None:
        """Give the payload to all workers that do not have it."""
        try:
            # Workers that do not answer are left out; they are new when they come back.
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
        """Wait until all is done, or one has failed."""
        from distributed import wait  # noqa: PLC0415

        self._alone_since = None
        while True:
            try:
                wait(futures, timeout=_SECONDS_A_LOOK)  # type: ignore[no-untyped-call]
                return
            except TimeoutError:
                if any(future.status == "error" for future in futures):
                    return
                self._require_scheduler()
                self._require_workers()

    def _require_scheduler(self) -> None:
        """Wait some time for a lost scheduler, then give up."""
        start = time.monotonic()
        while self.client.status != "running":
            is_over = time.monotonic() - start > _SECONDS_UNREACHABLE
            if is_over or self.client.status != "connecting":
                raise _unreachable(f"a client that is {self.client.status}")
            time.sleep(0.05)

    def _require_workers(self) -> None:
        """Wait as long for workers as the back end says, then give up."""
        now = time.monotonic()
        if self._n_threads() > 0:
            self._alone_since = None
            return
        self._alone_since = self._alone_since or now
        seconds = self._backend.wait_for_workers_timeout
        if seconds and self._had_workers:
            seconds = max(seconds, _SECONDS_WITHOUT_WORKERS)
        if seconds and now - self._alone_since > seconds:
            raise refusal(
                "the Dask cluster",
                "one with workers",
                f"none for {seconds} s",
                "Start some, or wait longer with joblib.parallel_config(backend='dask', "
                "wait_for_workers_timeout=...)",
                ConnectionError,
            )

    def _n_threads(self) -> int:
        try:
            n_threads = int(sum(self.client.nthreads().values()))
        except OSError as error:
            raise _LossError from error
        self._had_workers = self._had_workers or n_threads > 0
        return n_threads


class _LossError(Exception):
    """Something was lost on the way, and may be had again."""


def is_cluster(backend: object) -> bool:
    """Return whether joblib's back end is the one for Dask."""
    return "dask" in type(backend).__module__ and hasattr(backend, "client")


def _unreachable(what: object) -> Exception:
    advice = "Start a cluster anew; a run that has a checkpoint can go on from it, here or there"
    return refusal("the Dask scheduler", "within reach", str(what), advice, ConnectionError)
