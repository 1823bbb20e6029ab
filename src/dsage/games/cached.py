"""A game with a cache: no risk is evaluated twice."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._check import check_count
from dsage._files import Arrays
from dsage.games.base import (
    Along,
    Coalitions,
    Floats,
    Game,
    Mask,
    Orders,
    Request,
    Rows,
    Wrapped,
    count_pairs,
)

Key = tuple[bytes, bytes, int]
"""A coalition, a digest of the rows, and an epoch."""

Evaluate = Callable[[Game, Sequence[Request]], Sequence[Floats]]
"""Answers requests to a game: one after the other here, or in parallel elsewhere."""

# Bytes of a digest: enough that two never agree by chance.
_DIGEST = 16
# Overhead of an entry: key, array object, place in the table. Measured.
_BYTES_AN_ENTRY = 320
# Pairs of a coalition and a row in a piece of work: enough to keep a model busy, and few enough to
# keep several processors busy. Where rows cost less than orderings, a piece along an ordering has
# more of them, as each piece begins by preparing the ordering.
_PAIRS_DRAWN, _PAIRS_EXACT, _PAIRS_CHEAP = 1 << 12, 1 << 16, 1 << 18
# Rows of a piece along orderings: with fewer, a step along them would cost more than its rows.
_FEWEST_ROWS = 4


def in_turn(
    game: Game,
    requests: Sequence[Request],
    on_piece: Callable[[int, int], None] | None = None,
) -> list[Floats]:
    """Return the answers of a game to requests, one after the other.

    `on_piece` is called before each, with the number of those that are done, and of all.
    """
    answers: list[Floats] = []
    while len(answers) < len(requests):
        n_done = len(answers)
        if on_piece is not None:
            on_piece(n_done, len(requests))
        answers += game.answers(
            requests[n_done : n_done + _count_together(game, requests[n_done:])]
        )
    return answers


def _count_together(game: Game, requests: Sequence[Request]) -> int:
    """Return how many requests, from the first on, a game should evaluate together."""
    if game.pairs_at_once is None:
        return 1
    n_pairs = np.cumsum([count_pairs(request) for request in requests])
    return max(1, int(np.searchsorted(n_pairs, game.pairs_at_once, side="right")))


class Cached(Wrapped):
    """A game that evaluates each coalition once for the same rows and epoch.

    Large requests are cut into pieces in a way that depends on the request alone, so that the game
    receives the same requests in any process.

    Parameters
    ----------
    game : Game
        The game.
    max_bytes : int, default=2**28
        Memory for risks; the least recently used are removed first. This costs time and changes
        nothing else.
    evaluate : callable, optional
        Answers the pieces of requests; by default the game does, one after the other.

    Attributes
    ----------
    n_evaluated : int
        Pairs of a coalition and a row that were evaluated.
    n_shared : int
        Pairs that were answered from memory.
    n_distinct : int
        Pairs that would have been evaluated with unlimited memory.
    """

    def __init__(self, game: Game, *, max_bytes: int = 2**28, evaluate: Evaluate = in_turn) -> None:
        super().__init__(game)
        self.has_paths = self.game.has_paths
        self._evaluate = evaluate
        usual = _PAIRS_DRAWN if self.is_drawn else _PAIRS_EXACT
        self._n_pairs = usual if self.pairs_at_once is None else self.pairs_at_once
        self._n_pairs_along = self._n_pairs if self.has_dear_rows else _PAIRS_CHEAP
        self._max_bytes = check_count(max_bytes, "max_bytes", minimum=0)
        self._bytes = 0
        self._kept: OrderedDict[Key, Floats] = OrderedDict()
        self._seen: dict[int, set[int]] = {}
        self.n_evaluated = 0
        self.n_shared = 0
        self.n_distinct = 0

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of coalitions; see :class:`Game`."""
        return self.answers([Coalitions(known, rows, epoch)])[0]

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return the risks of prefixes, which are not kept; see :class:`Game`."""
        return self.answers([Along(orders, rows, epoch, needed)])[0]

    def draw_bias(self) -> Game | None:
        """Return the game of the bias that few draws leave, without a memory."""
        return self.game.draw_bias()

    def known_total(self) -> tuple[float, float] | None:
        """Return what all features together lower the risk by, and its error."""
        return self.game.known_total()

    def answers(self, requests: Sequence[Request]) -> list[Floats]:
        """Return the answers to several requests; all new risks are evaluated together."""
        new: dict[Key, tuple[int, int]] = {}
        keys: list[list[Key]] = []
        wanted: list[Request] = []
        for number, request in enumerate(requests):
            if isinstance(request, Along):
                keys.append([])
                wanted.append(request)
                continue
            keys.append(_keys(request))
            places: list[int] = []
            for at, key in enumerate(keys[number]):
                if key not in self._kept and key not in new:
                    new[key] = (number, len(places))
                    places.append(at)
            wanted.append(request._replace(known=request.known[places]))
        found = self._evaluate_pieces(wanted)
        answers = []
        for request, own, value in zip(requests, keys, found, strict=True):
            if isinstance(request, Along):
                answers.append(value)
                continue
            out = np.empty((len(own), len(request.rows), self.n_replicates))
            for at, key in enumerate(own):
                place = new.get(key)
                if place is None:
                    out[at] = self._kept[key]
                    self._kept.move_to_end(key)
                else:
                    out[at] = found[place[0]][place[1]]
            answers.append(out)
        self._count(requests, new)
        self._keep({key: found[number][at] for key, (number, at) in new.items()})
        return answers

    def _evaluate_pieces(self, requests: Sequence[Request]) -> list[Floats]:
        """Return the answers of the game, evaluated piece by piece."""
        pieces: list[Request] = []
        targets: list[tuple[int, tuple[slice, ...]]] = []
        out: list[Floats] = []
        for number, request in enumerate(requests):
            out.append(np.empty((*_shape(request), self.n_replicates)))
            is_along = isinstance(request, Along)
            for at, piece in _cut(request, self._n_pairs_along if is_along else self._n_pairs):
                pieces.append(piece)
                targets.append((number, at))
        values = self._evaluate(self.game, pieces) if pieces else []
        for (number, at), value in zip(targets, values, strict=True):
            out[number][at] = value
        return out

    def _count(self, requests: Sequence[Request], new: Mapping[Key, tuple[int, int]]) -> None:
        for request in requests:
            if isinstance(request, Along):
                self.n_evaluated += count_pairs(request)
                self.n_distinct += count_pairs(request)
            else:
                self.n_shared += count_pairs(request)
        for key, (number, _) in new.items():
            n_rows = len(requests[number].rows)
            self.n_evaluated += n_rows
            self.n_shared -= n_rows
            seen = self._seen.setdefault(key[2], set())
            n_before = len(seen)
            seen.add(_digest(key))
            self.n_distinct += (len(seen) - n_before) * n_rows

    def forget(self, epoch: int) -> None:
        """Forget the risks of one epoch."""
        self._seen.pop(epoch, None)
        for key in [key for key in self._kept if key[2] == epoch]:
            self._bytes -= _n_bytes(self._kept.pop(key))

    def _keep(self, found: Mapping[Key, Floats]) -> None:
        for key, value in found.items():
            self._kept[key] = value.copy()
            self._bytes += _n_bytes(value)
        while self._bytes > self._max_bytes and self._kept:
            self._bytes -= _n_bytes(self._kept.popitem(last=False)[1])

    def state(self) -> Arrays:
        """Return the memory as arrays."""
        n_bytes = max(map(len, (key[0] for key in self._kept)), default=1)
        values = list(self._kept.values())
        return {
            "counts": np.array([self.n_evaluated, self.n_shared, self.n_distinct]),
            "coalitions": _as_bytes([key[0] for key in self._kept], n_bytes),
            "rows": _as_bytes([key[1] for key in self._kept], _DIGEST),
            "epochs": np.array([key[2] for key in self._kept], dtype=np.int64),
            "sizes": np.array([len(value) for value in values], dtype=np.int64),
            "risks": np.concatenate([np.zeros((0, self.n_replicates)), *values]),
            "seen_epochs": np.array(list(self._seen), dtype=np.int64),
            "seen_sizes": np.array([len(seen) for seen in self._seen.values()], dtype=np.int64),
            "seen": np.array(
                [each for seen in self._seen.values() for each in sorted(seen)], dtype=np.uint64
            ),
        }

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Replace the memory by one that `state` returned; ValueError if its parts do not fit."""
        _check_sizes(state)
        self.n_evaluated, self.n_shared, self.n_distinct = state["counts"].tolist()
        coalitions, rows = state["coalitions"], state["rows"]
        risks = _split(state["risks"], state["sizes"])
        self._kept.clear()
        self._bytes = 0
        self._keep(
            {
                (coalitions[at].tobytes(), rows[at].tobytes(), epoch): risks[at]
                for at, epoch in enumerate(state["epochs"].tolist())
            }
        )
        seen = _split(state["seen"], state["seen_sizes"])
        self._seen = {
            epoch: set(each.tolist())
            for epoch, each in zip(state["seen_epochs"].tolist(), seen, strict=True)
        }


def _check_sizes(state: Mapping[str, npt.NDArray[Any]]) -> None:
    sizes, seen = state["sizes"], state["seen_sizes"]
    lengths = {len(state[name]) for name in ("coalitions", "rows", "epochs", "sizes")}
    is_negative = (sizes < 0).any() or (seen < 0).any()
    n_risks, n_seen = len(state["risks"]), len(state["seen"])
    fits = int(sizes.sum()) == n_risks and int(seen.sum()) == n_seen and len(lengths) == 1
    if is_negative or not fits or len(seen) != len(state["seen_epochs"]):
        raise ValueError("the parts of its memory have different lengths")


def _keys(request: Coalitions) -> list[Key]:
    rows = blake2b(request.rows.tobytes(), digest_size=_DIGEST).digest()
    return [(row.tobytes(), rows, request.epoch) for row in np.packbits(request.known, axis=1)]


def _digest(key: Key) -> int:
    """Return a hash of a coalition and rows, the same in every process."""
    return int.from_bytes(blake2b(key[0] + key[1], digest_size=8).digest(), "little")


def _as_bytes(strings: Sequence[bytes], size: int) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(strings), dtype=np.uint8).reshape(-1, size)


def _split(values: npt.NDArray[Any], sizes: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Split values into consecutive parts of given sizes."""
    stops = np.cumsum(sizes)
    return [values[stop - size : stop] for size, stop in zip(sizes, stops, strict=True)]


def _shape(request: Request) -> tuple[int, ...]:
    if isinstance(request, Along):
        return (*request.needed.shape, len(request.rows))
    return (len(request.known), len(request.rows))


def _cut(request: Request, n_pairs: int) -> list[tuple[tuple[slice, ...], Request]]:
    """Return the pieces of a request, each with its place in the answer.

    It is cut by coalitions or orderings first, because their preparation is shared by all rows.
    """
    asked = request.orders if isinstance(request, Along) else request.known
    each = asked.shape[1] + 1 if isinstance(request, Along) else 1
    n_rows = len(request.rows)
    most = max(1, n_pairs // (n_rows * each))
    fewest = _FEWEST_ROWS if isinstance(request, Along) else 1
    rows_at_once = n_rows if n_rows * each <= n_pairs else max(fewest, n_pairs // each)
    pieces: list[tuple[tuple[slice, ...], Request]] = []
    for first in range(0, len(asked), most):
        here = slice(first, min(first + most, len(asked)))
        for start in range(0, n_rows, rows_at_once):
            some = slice(start, min(start + rows_at_once, n_rows))
            rows = request.rows[some]
            if isinstance(request, Along):
                piece: Request = Along(
                    request.orders[here], rows, request.epoch, request.needed[here]
                )
                pieces.append(((here, slice(None), some), piece))
            else:
                pieces.append(((here, some), Coalitions(request.known[here], rows, request.epoch)))
    return pieces


def _n_bytes(value: Floats) -> int:
    return value.nbytes + _BYTES_AN_ENTRY
