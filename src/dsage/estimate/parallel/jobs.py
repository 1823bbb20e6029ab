"""Evaluate requests in parallel: in threads, processes, or the workers of a cluster.

The process that runs the loop makes all decisions and holds the only cache of risks. Workers
receive requests to the game and return the answers; they keep nothing but the game itself. So the
results do not depend on where they are computed.
"""

from __future__ import annotations

import pickle
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from hashlib import blake2b
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple

import cloudpickle
import joblib
import numpy as np
import numpy.typing as npt
from joblib.parallel import get_active_backend

from dsage._check import DsageWarning, Setting, Text, refusal, warn
from dsage.estimate.parallel.cluster import Cluster, is_cluster
from dsage.estimate.parallel.pools import single_blas, steady_digits
from dsage.games.base import Floats, Game, Request, count_pairs
from dsage.games.cached import in_turn
from dsage.games.model_game import ModelGame

# Seconds per task: long compared with sending it, short compared with a run.
_SECONDS_A_TASK = 1.0
# With less work than that: tasks per job, and the minimum seconds of each.
_TASKS_A_JOB, _SHORTEST_TASK = 4, 0.05
# Games that a worker keeps, because several runs may share it: their number, their bytes, and the
# number that is kept whatever their size.
_N_KEPT, _BYTES_KEPT, _LEAST_KEPT = 8, 2**28, 2

Payload = npt.NDArray[np.uint8]


def check_n_jobs(n_jobs: int | None) -> int | None:
    """Return a number of jobs, as joblib counts them."""
    if n_jobs == 0 or not (n_jobs is None or isinstance(n_jobs, (int, np.integer))):
        raise refusal("n_jobs", "a number other than 0", n_jobs, "Use -1 for all processors")
    return None if n_jobs is None else int(n_jobs)


class Jobs:
    """Evaluate requests with joblib: see :data:`dsage.games.cached.Evaluate`.

    The number of jobs counts as in joblib: -1 for all processors; by default that of
    ``joblib.parallel_config``, or else one. The backend is also that of joblib, such as
    ``joblib.parallel_config(backend="dask")`` for a cluster.

    `on_piece` is called between requests that are answered one after the other in this process,
    with the number of those that are done, and of all.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = check_n_jobs(n_jobs)
        self.on_piece: Callable[[int, int], None] | None = None
        self._game: Game | None = None
        self._token = ""
        self._payload: Payload | None = None
        self._is_sent = False
        self._cluster: Cluster | None = None
        self._seconds = self._n_pairs = 0.0
        self._warned: set[tuple[str, int]] = set()

    def __call__(self, game: Game, requests: Sequence[Request]) -> list[Floats]:
        """Return the answers of the game to requests."""
        backend, _ = get_active_backend()
        self._cluster = self._find_cluster(backend)
        if self._cluster is None:
            n_jobs = joblib.effective_n_jobs(self.n_jobs)
            if n_jobs == 1:
                return _work_here(game, requests, on_piece=self.on_piece).answers
        else:
            n_jobs = self._cluster.n_jobs()
        bundles = self._bundle(requests, n_jobs)
        # Threads of this process may do the work.
        with single_blas():
            # Only backends of joblib that use threads have this attribute.
            if getattr(backend, "uses_threads", False):
                n_threads = max(1, joblib.cpu_count() // n_jobs)
                done = self._parallel(
                    joblib.delayed(_work_here)(game, bundle, n_threads) for bundle in bundles
                )
            else:
                done = self._send(game, bundles)
        self._seconds += sum(each.seconds for each in done)
        self._n_pairs += sum(map(count_pairs, requests))
        self._warn(done)
        return [answer for each in done for answer in each.answers]

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

    def _send(self, game: Game, bundles: Sequence[Sequence[Request]]) -> list[_Done]:
        """Return the results of other processes; the game is sent to each of them once."""
        if game is not self._game:
            self._token, self._payload = _pack(game, self.n_jobs)
            self._game, self._is_sent = game, False
        if self._cluster is not None and self._payload is not None:
            done = self._cluster.results(_work, self._token, self._payload, bundles)
        else:
            done = self._run_in_processes(bundles)
        for each in done:
            if isinstance(each, Exception):
                raise each
        return done

    def _run_in_processes(self, bundles: Sequence[Sequence[Request]]) -> list[Any]:
        payload = None if self._is_sent else self._payload
        done = self._parallel(
            joblib.delayed(_work)(self._token, payload, bundle) for bundle in bundles
        )
        self._is_sent = True
        # New workers do not have the game, and others may have dropped it.
        missing = [number for number, each in enumerate(done) if each is None]
        if missing:
            again = self._parallel(
                joblib.delayed(_work)(self._token, self._payload, bundles[number])
                for number in missing
            )
            for number, each in zip(missing, again, strict=True):
                done[number] = each
        return done

    def _bundle(self, requests: Sequence[Request], n_jobs: int) -> list[list[Request]]:
        """Return requests in tasks of about a second, or less where there is not much to do.

        There are a few tasks per job, so that slower jobs get fewer of them.
        """
        sizes = np.array(list(map(count_pairs, requests)), dtype=np.float64)
        a_job = sizes.sum() * self._seconds / max(self._n_pairs, 1.0) / n_jobs
        seconds = min(max(a_job / _TASKS_A_JOB, _SHORTEST_TASK), _SECONDS_A_TASK)
        n_bundles = min(len(requests), n_jobs * max(1, round(a_job / seconds)))
        middles = np.cumsum(sizes) - sizes / 2
        at = np.minimum(middles / max(sizes.sum(), 1.0) * n_bundles, n_bundles - 1).astype(int)
        bundles: list[list[Request]] = [[] for _ in range(n_bundles)]
        for number, request in zip(at.tolist(), requests, strict=True):
            bundles[number].append(request)
        return [bundle for bundle in bundles if bundle]

    def _warn(self, done: Sequence[_Done]) -> None:
        """Repeat the warnings of workers, each once."""
        for each in done:
            for text, category, where in each.warned:
                if where not in self._warned:
                    self._warned.add(where)
                    if issubclass(category, DsageWarning):
                        warn(text, category)
                    else:
                        warnings.warn(text, category, stacklevel=2)


class _Done(NamedTuple):
    """The result of a task: answers, seconds and warnings."""

    answers: list[Floats]
    seconds: float
    warned: list[tuple[str, type[Warning], tuple[str, int]]]


_lock, _recording = Lock(), Lock()
_games: OrderedDict[str, tuple[Game, int]] = OrderedDict()


def _work(
    token: str, payload: Payload | None, requests: Sequence[Request]
) -> _Done | Exception | None:
    """Answer requests in another process; return None if it does not have the game.

    Errors are returned: if they were raised, loky would restart its workers, and an error that
    cannot be unpickled would break them.
    """
    try:
        game = _unpack(token, payload)
        if game is None:
            return None
        with _record_warnings() as caught:
            done = _work_here(game, requests)
    except Exception as error:
        return _make_portable(error)
    warned = [(str(each.message), each.category, (each.filename, each.lineno)) for each in caught]
    return done._replace(warned=warned)


def _make_portable(error: Exception) -> Exception:
    """Return an error that can be pickled, with a note of where it was raised."""
    where = "".join(traceback.format_exception(error))
    try:
        found: Exception = pickle.loads(cloudpickle.dumps(error))
    except Exception:
        found = RuntimeError(f"{type(error).__name__}: {error}")
    found.add_note(f"Raised by a worker:\n{where}")
    return found


@contextmanager
def _record_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Record warnings in one thread at a time; it records those of all threads."""
    if not _recording.acquire(blocking=False):
        yield []
        return
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield caught
    finally:
        _recording.release()


def _work_here(
    game: Game,
    requests: Sequence[Request],
    n_threads: int | None = None,
    on_piece: Callable[[int, int], None] | None = None,
) -> _Done:
    """Answer requests in this process, with `n_threads` threads of OpenMP."""
    start = perf_counter()
    with steady_digits(n_threads):
        answers = in_turn(game, requests, on_piece)
    return _Done(answers, perf_counter() - start, [])


def _unpack(token: str, payload: Payload | None) -> Game | None:
    with _lock:
        if token not in _games and payload is not None:
            try:
                _games[token] = (pickle.loads(payload.data), payload.nbytes)
            except Exception as error:
                error.add_note("Raised when a worker unpacked the model, the sampler and the data.")
                raise
            while len(_games) > _LEAST_KEPT and _are_too_many():
                _games.popitem(last=False)
        if token not in _games:
            return None
        _games.move_to_end(token)
        return _games[token][0]


def _are_too_many() -> bool:
    n_bytes = sum(size for _, size in _games.values())
    return len(_games) > _N_KEPT or n_bytes > _BYTES_KEPT


def _pack(game: Game, n_jobs: int | None) -> tuple[str, Payload]:
    """Return a game as bytes, with their name."""
    try:
        packed = cloudpickle.dumps(game)
    except Exception as error:
        condition, found = (
            f"possible to pickle for {n_jobs} jobs",
            f"{type(error).__name__}: {error}",
        )
        threads = ", or in Python threads: with joblib.parallel_config(backend='threading')"
        advice = Text(["Use ", Setting("n_jobs", 1), threads])
        raise refusal(_culprit(game), condition, found, advice, TypeError) from error
    return blake2b(packed, digest_size=16).hexdigest(), np.frombuffer(packed, dtype=np.uint8)


def _culprit(game: Game) -> str:
    """Return the part of a game that cannot be pickled."""
    for part in game.parts:
        if not isinstance(part, ModelGame):
            continue
        loss = "none" if part.loss is None else part.loss.name
        for name, used in (
            (f"the model, {part.model.name},", part.model),
            (f"the sampler, {type(part.sampler).__name__},", part.sampler),
            (f"the loss, {loss},", part.loss),
        ):
            try:
                cloudpickle.dumps(used)
            except Exception:
                return name
    return f"the game, {type(game).__name__},"
