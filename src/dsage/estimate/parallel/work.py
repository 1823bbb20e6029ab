"""Work of the workers: they receive a game once, and answer requests to it."""

from __future__ import annotations

import io
import pickle
import signal
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from threading import Lock, current_thread, main_thread
from time import perf_counter
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
import numpy.typing as npt

from dsage._check import Setting, Text, record_warnings, refusal
from dsage.estimate.parallel.pools import steady_digits
from dsage.games.base import Floats, Game, Request
from dsage.games.cached import in_turn
from dsage.games.model_game import ModelGame

# Games that a worker keeps, because several runs may share it: their number, their bytes, and the
# number that is kept whatever their size.
_N_KEPT, _BYTES_KEPT, _LEAST_KEPT = 8, 2**28, 2

Payload = npt.NDArray[np.uint8]
Warned = tuple[str, type[Warning], tuple[str, int]]
"""The text of a warning, its class, and where it was raised."""


class Done(NamedTuple):
    """The result of a task: answers, seconds and warnings."""

    answers: list[Floats]
    seconds: float
    warned: list[Warned]


_lock = Lock()
_games: OrderedDict[str, tuple[Game, int]] = OrderedDict()


def work(
    token: str, payload: Payload | None, requests: Sequence[Request]
) -> Done | Exception | None:
    """Answer requests in another process; return None if it does not have the game.

    Errors are returned: if they were raised, loky would restart its workers, and an error that
    cannot be unpickled would break them.
    """
    try:
        game = _unpack(token, payload)
        if game is None:
            return None
        with _record_warnings() as warned:
            done = work_here(game, requests)
    except Exception as error:
        return _make_portable(error)
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
def _record_warnings() -> Iterator[list[Warned]]:
    """Record all warnings in our own processes, and only this package's warnings in threads.

    To record all is to change the filters of all threads, which may belong to the user's process.
    """
    found: list[Warned] = []
    if current_thread() is not main_thread():
        with record_warnings(show=False) as own:
            yield found
        found += [(str(each), type(each), (str(each), 0)) for each in own]
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    found += [(str(each.message), each.category, (each.filename, each.lineno)) for each in caught]


def work_here(
    game: Game,
    requests: Sequence[Request],
    n_threads: int | None = None,
    on_piece: Callable[[int, int], None] | None = None,
) -> Done:
    """Answer requests in this process, with `n_threads` threads of OpenMP."""
    start = perf_counter()
    with steady_digits(n_threads):
        answers = in_turn(game, requests, on_piece)
    return Done(answers, perf_counter() - start, [])


def ignore_interrupts() -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the one that runs the loop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


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


class TooLargeError(Exception):
    """A game has more bytes than it may have."""


class _Bytes(io.BytesIO):
    """Bytes, up to a number of them."""

    def __init__(self, most: int | None) -> None:
        super().__init__()
        self._most = most

    def write(self, data: Any) -> int:  # noqa: ANN401
        """Add bytes; refuse those that are too many before they are copied."""
        if self._most is not None and self.tell() + memoryview(data).nbytes > self._most:
            raise TooLargeError
        return super().write(data)


def pack(game: Game, n_jobs: int | None, most_bytes: int | None = None) -> tuple[str, Payload]:
    """Return a game as bytes, with their name.

    With `most_bytes`, a larger game raises :class:`TooLargeError` before it takes more memory.
    """
    stream = _Bytes(most_bytes)
    try:
        cloudpickle.dump(game, stream)
    except TooLargeError:
        raise
    except Exception as error:
        condition, found = (
            f"possible to pickle for {n_jobs} jobs",
            f"{type(error).__name__}: {error}",
        )
        threads = ", or in Python threads: with joblib.parallel_config(backend='threading')"
        advice = Text(["Use ", Setting("n_jobs", 1), threads])
        raise refusal(_culprit(game), condition, found, advice, TypeError) from error
    packed = stream.getbuffer()
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
