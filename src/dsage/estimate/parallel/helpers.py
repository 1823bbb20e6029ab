"""Processes that help with a long run automatically, if that is safe.

The process of the run answers requests itself. If that takes some seconds, or the forecast is that
it will, it starts helpers on the idle processors, continues until they have the game, and then
shares the requests with them. The answers are the same to the bit. The progress bar and the log
name the processes.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from pathlib import Path
from threading import current_thread, main_thread
from time import perf_counter
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor
from joblib.parallel import get_active_backend

from dsage.estimate.parallel.pools import steady_digits
from dsage.estimate.parallel.spare import Recently, count_idle, count_processors, is_overloaded
from dsage.estimate.parallel.work import Done, Payload, ignore_interrupts, pack, work
from dsage.games.base import Floats, Game, Request, ask

# Seconds of evaluations from which a run is long: starting a process takes about half of that,
# and a run that has taken so long usually takes as long again.
_SECONDS_ALONE = 4.0
# The same if so many more are expected.
_SECONDS_TO_SEE, _LONG = 0.5, 8.0
# Seconds for which idle helpers wait for the next run.
_SECONDS_IDLE = 60
# Bytes of a game up to which copies are made.
_MOST_BYTES = 2**27
# Requests that are under way for each helper: one to work on, and the next one.
_AT_ONCE = 2
# Settings that keep a helper to one processor; some models use joblib's count.
_ONE = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "LOKY_MAX_CPU_COUNT",
    ),
    "1",
)

# Interpreters that can be started again; a program that embeds Python would start itself.
_INTERPRETERS = "python", "pypy"

OnPiece = Callable[[int, int], None]
Meanwhile = Callable[[Callable[[], bool]], None]

logger = logging.getLogger("dsage")


class Helpers:
    """Answers the requests of a run in this process, and in others once the run is long.

    There are none if the user said how many jobs there should be, by `n_jobs` or by joblib, or
    that there should be one thread, by ``OMP_NUM_THREADS``; in a process or a thread that is itself
    one of several; if processors or memory are busy; and for games that may not be copied, see
    :attr:`dsage.games.Game.may_be_copied`.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._game: Game | None = None
        self._is_refused = False
        self._is_working = False
        self._token = ""
        self._payload: Payload | None = None
        self._executor: Any = None
        self._loading: list[Future[Any]] = []
        self._n_helpers = 0
        self._look_from = _SECONDS_ALONE
        self._recently = Recently()

    @property
    def n_working(self) -> int:
        """The helpers that work on the run now."""
        return self._n_helpers if self._is_working else 0

    def expect(self, seconds_left: float) -> None:
        """Note how long the run will probably continue."""
        if seconds_left >= _LONG and self._look_from == _SECONDS_ALONE:
            self._look_from = _SECONDS_TO_SEE

    def answers(
        self,
        game: Game,
        requests: Sequence[Request],
        on_piece: OnPiece | None = None,
        meanwhile: Meanwhile | None = None,
    ) -> Done:
        """Return the answers of a game to requests.

        While helpers work, `meanwhile` is called with a function that gives them more to do, and
        returns whether they have nothing left.
        """
        start = perf_counter()
        found: dict[int, Floats] = {}
        left = deque(range(len(requests)))
        warned: list[Any] = []
        if game is not self._game:
            self._leave(game)
        with steady_digits(1 if is_overloaded() else None):
            while left and not self._is_working:
                if on_piece is not None:
                    on_piece(len(found), len(requests))
                at = left.popleft()
                found[at] = ask(game, requests[at])
                self._look(game, requests[at], perf_counter() - start)
        if left:
            with steady_digits(1):
                shared = _Shared(self, requests, left, found, on_piece)
                warned = shared.run(game, meanwhile)
        seconds = perf_counter() - start
        self._seconds += seconds
        return Done([found[at] for at in range(len(requests))], seconds, warned)

    def _leave(self, game: Game) -> None:
        """Begin with another game."""
        self._game, self._seconds = game, 0.0
        self._is_working, self._loading = False, []
        self._look_from = _SECONDS_ALONE
        self._recently = Recently()
        self._is_refused = not _is_allowed(game)

    def _look(self, game: Game, request: Request, seconds: float) -> None:
        """Start helpers once the run is long, and let them work once one of them is ready.

        A request that was answered here makes them ready: what a game finds at its first one is
        found before anything depends on them.
        """
        if self._is_refused or self._seconds + seconds < self._look_from:
            return
        if not self._loading:
            self._start(game, request)
            if not self._loading:
                # Processors that are busy now may be idle later.
                self._look_from = 2 * (self._seconds + seconds)
                self._recently = Recently()
            return
        done = [each for each in self._loading if each.done()]
        if done:
            is_well = all(each.exception() is None for each in done)
            self.keep(is_well=is_well and all(isinstance(each.result(), Done) for each in done))

    def keep(self, *, is_well: bool) -> None:
        """Let the helpers work, or do without them from now on."""
        self._is_working, self._is_refused = is_well, not is_well

    def _start(self, game: Game, request: Request) -> None:
        """Send the game and a request to helpers, without waiting for them."""
        if count_idle(0, self._recently) == 0:
            return
        try:
            self._token, self._payload = pack(game, None, _MOST_BYTES)
            self._n_helpers = count_idle(self._payload.nbytes, self._recently)
            if self._n_helpers:
                self._executor = _executors.get(self._n_helpers)
                self._loading = [self._send([request]) for _ in range(self._n_helpers)]
                text = "starting helper processes: %d (n_jobs=1 prevents it)"
                logger.info(text, self._n_helpers)
        except Exception as error:
            # It is not an error if a game is too large, or if a process cannot be copied to or
            # started: this process continues alone.
            logger.info("no helper processes: %r", error)
            self._is_refused = True

    def _send(self, requests: Sequence[Request], *, has_game: bool = False) -> Future[Any]:
        payload = None if has_game else self._payload
        sent: Future[Any] = self._executor.submit(work, self._token, payload, requests)
        return sent

    def try_to_send(self, request: Request, *, has_game: bool) -> Future[Any] | None:
        """Send a request to the helpers; return None if that is not possible any more."""
        try:
            return self._send([request], has_game=has_game)
        except Exception as error:
            # The executor is broken, was shut down, or cannot start a process again.
            logger.info("no helper processes any more: %r", error)
            self.keep(is_well=False)
            return None


class _Shared:
    """Requests that this process and helpers answer together."""

    def __init__(
        self,
        helpers: Helpers,
        requests: Sequence[Request],
        left: deque[int],
        found: dict[int, Floats],
        on_piece: OnPiece | None,
    ) -> None:
        self._helpers = helpers
        self._requests, self._left, self._found = requests, left, found
        self._on_piece = on_piece
        self._sent: dict[Future[Any], int] = {}
        self._warned: list[Any] = []
        self._has_game = True

    def run(self, game: Game, meanwhile: Meanwhile | None) -> list[Any]:
        """Answer all requests; return the warnings of the helpers."""
        try:
            if meanwhile is not None and not self._is_idle():
                # What goes wrong in it is raised where its results are needed.
                with suppress(Exception):
                    meanwhile(self._is_idle)
            while not self._is_done():
                if self._left:
                    at = self._left.popleft()
                    self._found[at] = ask(game, self._requests[at])
                else:
                    wait(self._sent, return_when=FIRST_COMPLETED)
        except BaseException:
            # After an interrupt, tasks that have not started are cancelled.
            for future in self._sent:
                future.cancel()
            raise
        return self._warned

    def _is_idle(self) -> bool:
        """Give the helpers something to do; return whether they have nothing."""
        return self._is_done() or not self._sent

    def _is_done(self) -> bool:
        """Take answers, and give the helpers something to do; return whether nothing is left."""
        self._collect()
        if self._on_piece is not None:
            self._on_piece(len(self._found), len(self._requests))
        # The last requests are better answered here than waited for.
        while len(self._left) > 1 and len(self._sent) < _AT_ONCE * self._helpers.n_working:
            at = self._left[0]
            future = self._helpers.try_to_send(self._requests[at], has_game=self._has_game)
            if future is None:
                break
            self._sent[future], self._has_game = at, True
            self._left.popleft()
        return not (self._left or self._sent)

    def _collect(self) -> None:
        """Take the answers that have arrived."""
        for future in [each for each in self._sent if each.done()]:
            at = self._sent.pop(future)
            done = None if future.exception() is not None else future.result()
            if isinstance(done, Done):
                self._found[at] = done.answers[0]
                self._warned += done.warned
                continue
            # A new helper needs the game. An error is best raised here; if it does not occur
            # here, or a helper died, this process continues alone.
            self._has_game = False
            if self._helpers.n_working:
                self._helpers.keep(is_well=done is None and future.exception() is None)
            self._left.append(at)


class _Executors:
    """The processes of this process, which wait for further runs."""

    def __init__(self) -> None:
        self._kept: Any = None
        self._of = (0, 0)

    def get(self, n_helpers: int) -> Any:  # noqa: ANN401
        """Return an executor with this many processes, a new one if the last is broken.

        The executor of a process that was forked from this one would wait for threads that are not
        there.
        """
        wanted, kept = (os.getpid(), n_helpers), self._kept
        if kept is None or kept._flags.broken or kept._flags.shutdown or self._of != wanted:
            if kept is not None and self._of[0] == os.getpid():
                kept.shutdown(wait=False)
            kept = ProcessPoolExecutor(
                n_helpers, timeout=_SECONDS_IDLE, initializer=ignore_interrupts, env=dict(_ONE)
            )
            self._kept, self._of = kept, wanted
        return kept


_executors = _Executors()


def _is_allowed(game: Game) -> bool:
    """Return whether helpers may be started for a game, here and now."""
    backend, n_jobs = get_active_backend()
    is_first = current_thread() is main_thread() and multiprocessing.parent_process() is None
    is_first = is_first and backend.nesting_level == 0
    is_free = n_jobs is None and type(backend).__name__ == "LokyBackend"
    if not (is_first and is_free and _can_start() and count_processors() > 1):
        return False
    return all(part.may_be_copied for part in game.parts)


def _can_start() -> bool:
    """Return whether the program that runs is an interpreter, which can be started again."""
    name = Path(sys.executable or "").name.lower()
    return name.startswith(_INTERPRETERS) and not hasattr(sys, "frozen")
