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

from dsage._check import message

# How long to wait between looks at the cluster, and for a scheduler that does not answer.
_SECONDS_A_LOOK, _SECONDS_UNREACHABLE = 0.5, 10.0
# How long, at least, to wait for workers where there were some before.
_SECONDS_WITHOUT_WORKERS = 60.0
# How often data may be lost with their workers before that is an error, and the time for others to
# come before they are sent again.
_MOST_LOSSES, _SECONDS_TO_RECOVER = 8, 0.5

Payload = npt.NDArray[np.uint8]


class Cluster:
    """The workers of a Dask cluster.

    Parameters
    ----------
    backend : joblib's Dask back end
        Gives the client, how long to wait for workers, and options of its ``submit``.

    Notes
    -----
    Data go to all workers at once and stay there while this object lives, so they travel once to
    each, and survive the death of one. A task whose worker dies is done by another.
    """

    def __init__(self, backend: Any) -> None:  # noqa: ANN401
        self._backend = backend
        self.client = backend.client
        self._token = ""
        self._data: Any = None
        self._alone_since: float | None = None

    def n_jobs(self) -> int:
        """Return how many tasks can be under way: one at least, as workers may be yet to come."""
        self._require_scheduler()
        try:
            return max(1, self._n_threads())
        except _LossError:
            return 1

    def results(
        self, work: Callable[..., Any], token: str, payload: Payload, pieces: Sequence[Any]
    ) -> list[Any]:
        """Return what workers give for the pieces.

        Parameters
        ----------
        work : callable
            Is called with the token, the payload and a piece. Should it be called twice for one
            piece, because a worker died, it must give the same.
        token : str
            A name of the payload.
        payload : uint8 array
            What all pieces need.
        pieces : sequence
            The pieces of work.
        """
        found: dict[int, Any] = {}
        for _ in range(_MOST_LOSSES):
            left = [number for number in range(len(pieces)) if number not in found]
            if not left:
                return [found[number] for number in range(len(pieces))]
            # In a task of the same cluster, lets others have the place of this one.
            with self._backend.retrieval_context():
                found |= self._attempt(work, token, payload, {at: pieces[at] for at in left})
        raise ConnectionError(
            message(
                "the Dask cluster",
                "able to keep data",
                f"{_MOST_LOSSES} losses",
                "Its workers die together, again and again: look at their logs and their memory",
            )
        )

    def _attempt(
        self, work: Callable[..., Any], token: str, payload: Payload, pieces: dict[int, Any]
    ) -> dict[int, Any]:
        """Return what is found; without the pieces that were lost with data that they need."""
        from distributed import CancelledError, KilledWorker  # noqa: PLC0415

        self._require_scheduler()
        futures: dict[int, Any] = {}
        try:
            data = self._sent(token, payload)
            options = self._backend.submit_kwargs
            for number, piece in pieces.items():
                futures[number] = self.client.submit(
                    work, token, data, piece, pure=False, **options
                )
            self._wait(list(futures.values()))
            return dict(zip(futures, self.client.gather(list(futures.values())), strict=True))
        except (CancelledError, _LossError):
            # Data went with the last worker that had them, or the scheduler did.
            self._data = None
            time.sleep(_SECONDS_TO_RECOVER)
            self._require_scheduler()
            return {}
        except KilledWorker as error:
            raise RuntimeError(
                message(
                    "a task",
                    "possible to finish on a worker",
                    f"{type(error).__name__}: {error}",
                    "All workers that tried it died. Give them more memory, or the game a smaller "
                    "max_bytes",
                )
            ) from error
        finally:
            for future in futures.values():
                future.release()

    def _sent(self, token: str, payload: Payload) -> Any:  # noqa: ANN401
        """Return the payload as it is known on the cluster."""
        if token != self._token or self._data is None or self._data.status != "finished":
            if self._n_threads() == 0:
                # Some clusters start workers when there is something to do.
                self._wait([self.client.submit(_nothing, pure=False)])
            try:
                self._data = self.client.scatter(payload, broadcast=True, hash=False)
            except OSError as error:
                # A worker, or the scheduler, died on the way.
                raise _LossError from error
            self._token = token
        return self._data

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
        if seconds and self._token:
            seconds = max(seconds, _SECONDS_WITHOUT_WORKERS)
        if seconds and now - self._alone_since > seconds:
            raise ConnectionError(
                message(
                    "the Dask cluster",
                    "one with workers",
                    f"none for {seconds} s",
                    "Start some, or wait longer with joblib.parallel_config(backend='dask', "
                    "wait_for_workers_timeout=...)",
                )
            )

    def _n_threads(self) -> int:
        try:
            return int(sum(self.client.nthreads().values()))
        except OSError as error:
            raise _LossError from error


class _LossError(Exception):
    """Something was lost on the way, and may be had again."""


def _nothing() -> None:
    """Do nothing."""


def is_cluster(backend: object) -> bool:
    """Return whether joblib's back end is the one for Dask."""
    return "dask" in type(backend).__module__ and hasattr(backend, "client")


def _unreachable(what: object) -> ConnectionError:
    advice = "Start a cluster anew; a run that has a checkpoint can go on from it, here or there"
    return ConnectionError(message("the Dask scheduler", "within reach", str(what), advice))
