"""Games made of other games: at boundaries, and with a memory."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from dsage._check import check_count, message
from dsage.games.base import Floats, Game, Mask, Orders, Paths, Rows
from dsage.games.moment import CheapGame
from dsage.graphs.separation import Oracle


def require_game(game: object, parameter: str = "game") -> None:
    """Refuse what is no game: a model is the usual mistake."""
    if not (hasattr(game, "risks") and hasattr(game, "feature_names")):
        advice = "Make one with LossGame(model, sampler, X, y)"
        raise TypeError(message(parameter, "a game", type(game).__name__, advice))


def require_same_features(oracle: Oracle, game: Game) -> None:
    """Refuse an oracle about other features than the game's, or in another order."""
    if tuple(oracle.feature_names) != tuple(game.feature_names):
        raise ValueError(
            message(
                "oracle",
                f"about the features of the game in their order, {tuple(game.feature_names)}",
                tuple(oracle.feature_names),
                "Make it with graph.oracle(target, features=...)",
            )
        )


Key = tuple[bytes, bytes, int]
"""A coalition, rows, and an epoch."""

# What an entry takes beside its numbers: key, array object, place in the table. Measured.
_BYTES_AN_ENTRY = 320


class Boundary:
    """A game played at Markov boundaries: the risk of S is that of M(S).

    For an optimal model, and a graph that tells the truth, nothing changes: given M(S) the target
    does not depend on the rest of S. But many coalitions share a boundary.

    Parameters
    ----------
    game : Game
        The game.
    oracle : Oracle
        Knows the boundaries; of the same features in the same order.
    """

    def __init__(self, game: Game, oracle: Oracle) -> None:
        require_same_features(oracle, game)
        self.game = game
        self.oracle = oracle
        self.feature_names = game.feature_names
        self.n_rows = game.n_rows
        self.n_groups = game.n_groups
        self.is_drawn: bool = getattr(game, "is_drawn", game.n_groups > 1)
        self.weights: Floats | None = getattr(game, "weights", None)

    @property
    def n_predicted(self) -> int:
        """Rows that the model was asked for; 0 for a game without a model."""
        return int(getattr(self.game, "n_predicted", 0))

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of the boundaries of the coalitions, each evaluated once a call."""
        distinct, place = distinct_boundaries(self.oracle, known)
        return self.game.risks(distinct, rows, epoch)[place]

    def moment_game(self) -> CheapGame | None:
        """Return the cheap game at the same boundaries; None where there is none."""
        make = getattr(self.game, "moment_game", None)
        cheap = None if make is None else make()
        return None if cheap is None else _BoundaryOfMoments(cheap, self.oracle)


class _BoundaryOfMoments(Boundary):
    """A cheap game at boundaries; see :class:`CheapGame`."""

    game: CheapGame

    def mean_risks(self, known: Mask) -> Floats:
        """Return the means over all rows of the risks of boundaries, (n_coalitions,)."""
        distinct, place = distinct_boundaries(self.oracle, known)
        return self.game.mean_risks(distinct)[place]

    def mean_path_risks(self, orders: Orders) -> Floats:
        """Return the `mean_risks` of all prefixes of orderings, (n_orderings, n_features + 1)."""
        position = np.argsort(orders, axis=1)
        known = position[:, None, :] < np.arange(orders.shape[1] + 1)[:, None]
        return self.mean_risks(known.reshape(-1, orders.shape[1])).reshape(known.shape[:2])


def distinct_boundaries(oracle: Oracle, known: Mask) -> tuple[Mask, Rows]:
    """Return the distinct boundaries of coalitions, and the place of each coalition's among them.

    Examples
    --------
    >>> from dsage import Graph
    >>> oracle = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")]).oracle("y")
    >>> distinct_boundaries(oracle, np.array([[True, True], [False, True], [True, False]]))
    (array([[False,  True],
           [ True, False]]), array([0, 0, 1]))
    """
    boundaries = oracle.boundary(known)
    packed = np.packbits(boundaries, axis=1)
    keys = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return boundaries[first], place


class Cached:
    """A game that remembers: each coalition is evaluated once for the same rows and epoch.

    Parameters
    ----------
    game : Game
        The game.
    max_bytes : int, default=2**28
        Memory for what is kept; the least recently used is forgotten first. Forgetting costs
        time and changes nothing else.

    Attributes
    ----------
    n_evaluated : int
        Pairs of a coalition and a row that the game was asked for.
    n_shared : int
        Pairs that were known already.
    n_distinct : int
        Pairs that would have been evaluated with room for all.
    """

    def __init__(self, game: Game, *, max_bytes: int = 2**28) -> None:
        self.game = game
        self.feature_names = game.feature_names
        self.n_rows = game.n_rows
        self.n_groups = game.n_groups
        self._max_bytes = check_count(max_bytes, "max_bytes", minimum=0)
        self._bytes = 0
        self._kept: OrderedDict[Key, Floats] = OrderedDict()
        self._seen: dict[int, set[int]] = {}
        self.n_evaluated = 0
        self.n_shared = 0
        self.n_distinct = 0
        if isinstance(game, Paths):
            self._paths = game.path_risks
            self.path_risks = self._path_risks

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of coalitions; see :class:`Game`."""
        n_rows, which = len(rows), rows.tobytes()
        keys = [(row.tobytes(), which, epoch) for row in np.packbits(known, axis=1)]
        new = {key: at for at, key in enumerate(keys) if key not in self._kept}
        found: dict[Key, Floats] = {}
        if new:
            values = self.game.risks(known[list(new.values())], rows, epoch)
            found = dict(zip(new, values, strict=True))
        out = np.empty((len(keys), n_rows, self.n_groups))
        for at, key in enumerate(keys):
            value = found.get(key)
            if value is None:
                value = self._kept[key]
                self._kept.move_to_end(key)
            out[at] = value
        self._keep(found)
        seen = self._seen.setdefault(epoch, set())
        n_before = len(seen)
        seen.update(map(hash, new))
        self.n_distinct += (len(seen) - n_before) * n_rows
        self.n_evaluated += len(new) * n_rows
        self.n_shared += (len(keys) - len(new)) * n_rows
        return out

    def _path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return the risks of prefixes; they are not kept. See :class:`Paths`."""
        n_evaluated = int(needed.sum()) * len(rows)
        self.n_evaluated += n_evaluated
        self.n_distinct += n_evaluated
        return self._paths(orders, rows, epoch, needed)

    def forget(self, epoch: int) -> None:
        """Forget the risks of one epoch."""
        self._seen.pop(epoch, None)
        for key in [key for key in self._kept if key[2] == epoch]:
            self._bytes -= _n_bytes(self._kept.pop(key))

    def _keep(self, found: dict[Key, Floats]) -> None:
        for key, value in found.items():
            self._kept[key] = value.copy()
            self._bytes += _n_bytes(value)
        while self._bytes > self._max_bytes and self._kept:
            self._bytes -= _n_bytes(self._kept.popitem(last=False)[1])


def _n_bytes(value: Floats) -> int:
    return value.nbytes + _BYTES_AN_ENTRY
