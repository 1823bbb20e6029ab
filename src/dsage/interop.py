"""Hand games to other packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dsage._check import check_count, refusal
from dsage.games.base import Floats, Game, Rows
from dsage.games.wrap import require_game, require_same_features
from dsage.graphs.separation import Oracle

if TYPE_CHECKING:
    import shapiq

# Coalitions that are evaluated at a time: a risk is a number for each row and group of draws, of
# which the mean alone is kept.
_AT_ONCE = 64


class Worths:
    """What coalitions are worth: ``v(S) = L(empty) - L(S)``, each evaluated once.

    Parameters
    ----------
    game : Game
        The game.
    oracle : Oracle, optional
        Each coalition stands for its Markov boundary, so those that share one are evaluated once.
    rows : int array, optional
        The evaluation rows that are averaged over, by their numbers; all by default.
    epoch : int, default=0
        Which noise.

    Attributes
    ----------
    n_evaluated : int
        Pairs of a coalition and a row that the game was asked for.

    Examples
    --------
    >>> from dsage import Graph
    >>> from dsage.games import MomentGame
    >>> generator = np.random.default_rng(0)
    >>> a = generator.normal(size=1000)
    >>> X = np.stack([a, a + generator.normal(size=1000)], axis=1)
    >>> game = MomentGame(X, X[:, 1], X[:, 1], ["a", "b"])
    >>> oracle = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")]).oracle("y")
    >>> worths = Worths(game, oracle)
    >>> worths(np.array([[False, True], [True, True]])).round(2)
    array([2.12, 2.12])
    >>> worths.n_evaluated  # nothing, and {b}
    2000
    """

    def __init__(
        self,
        game: Game,
        oracle: Oracle | None = None,
        rows: npt.ArrayLike | None = None,
        epoch: int = 0,
    ) -> None:
        require_game(game)
        if oracle is not None:
            require_same_features(oracle, game)
        self._game, self._oracle = game, oracle
        self._rows = _checked(rows, game.n_rows)
        self._epoch = check_count(epoch, "epoch", minimum=0)
        self._risks: dict[bytes, float] = {}
        self.n_evaluated = 0

    def __call__(self, known: npt.ArrayLike) -> Floats:
        """Return what coalitions (n_coalitions, n_features) are worth, (n_coalitions,)."""
        asked = np.asarray(known).astype(np.bool_)
        nothing = np.zeros((1, asked.shape[1]), dtype=np.bool_)
        coalitions = np.concatenate([nothing, asked])
        if self._oracle is not None:
            coalitions = self._oracle.boundary(coalitions)
        keys = [row.tobytes() for row in np.packbits(coalitions, axis=1)]
        new = {key: at for at, key in enumerate(keys) if key not in self._risks}
        places = list(new.values())
        for first in range(0, len(places), _AT_ONCE):
            at = places[first : first + _AT_ONCE]
            risks = self._game.risks(coalitions[at], self._rows, self._epoch).mean(axis=(1, 2))
            self._risks.update(zip((keys[each] for each in at), risks.tolist(), strict=True))
            self.n_evaluated += len(at) * len(self._rows)
        found = np.array([self._risks[key] for key in keys])
        worth: Floats = found[0] - found[1:]
        return worth


def to_shapiq(
    game: Game,
    oracle: Oracle | None = None,
    rows: npt.ArrayLike | None = None,
    *,
    epoch: int = 0,
) -> shapiq.Game:
    """Hand a game to shapiq, for its approximators and its interaction indices.

    The value of a coalition is what it takes from the risk, ``v(S) = L(empty) - L(S)``, a mean over
    rows and draws; that of no features is zero, so the game is normalised. With the jackknife a
    value is estimated without the bias of few draws, and so is every index, which is linear in the
    values. The draws are the same in all coalitions: their error does not fall with the
    number of coalitions, and shapiq does not know of it. Compare two epochs to see it.

    Parameters
    ----------
    game : Game
        The game.
    oracle : Oracle, optional
        Each coalition stands for its Markov boundary, as in d-SAGE: coalitions that share one are
        evaluated once. By default each stands for itself.
    rows : int array, optional
        The evaluation rows that are averaged over, by their numbers; all by default.
    epoch : int, default=0
        Which noise: epochs are independent.

    Returns
    -------
    shapiq.Game
        With the features for player names, and `n_evaluated`, the pairs of a coalition and a row
        that the model's game was asked for. It is evaluated when shapiq asks.

    Examples
    --------
    >>> from dsage.games import MomentGame
    >>> generator = np.random.default_rng(0)
    >>> a = generator.normal(size=1000)
    >>> X = np.stack([a, a + generator.normal(size=1000)], axis=1)
    >>> game = to_shapiq(MomentGame(X, X[:, 1], X[:, 1], ["a", "b"]))
    >>> game([("a",), ("b",), ("a", "b")]).round(2)
    array([1.08, 2.12, 2.12])
    >>> from shapiq import ExactComputer
    >>> pairs = ExactComputer(game)("k-SII", order=2)
    >>> round(float(pairs[(0, 1)]), 2)  # what a tells, b tells as well
    -1.08
    """
    try:
        import shapiq  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(
            "to_shapiq needs shapiq; install it with: pip install 'dsage[shapiq]'."
        ) from error
    worths = Worths(game, oracle, rows, epoch)

    class CoalitionGame(shapiq.Game):
        """A game of dsage in the dress of shapiq."""

        def __init__(self) -> None:
            names = list(game.feature_names)
            super().__init__(len(names), normalization_value=0.0, player_names=names)

        @property
        def n_evaluated(self) -> int:
            """Pairs of a coalition and a row that the game was asked for."""
            return worths.n_evaluated

        def value_function(self, coalitions: npt.NDArray[np.bool_]) -> Floats:
            """Return what coalitions are worth."""
            return worths(coalitions)

    return CoalitionGame()


def _checked(rows: npt.ArrayLike | None, n_rows: int) -> Rows:
    """Return the numbers of rows, each that of a row."""
    if rows is None:
        return np.arange(n_rows)
    chosen = np.asarray(rows)
    if chosen.ndim != 1 or not len(chosen) or chosen.dtype.kind not in "iu":
        raise refusal("rows", "numbers of rows, at least one", rows, "Give ints", TypeError)
    if chosen.min() < 0 or chosen.max() >= n_rows:
        bad = int(chosen.min() if chosen.min() < 0 else chosen.max())
        raise refusal("rows", f"from 0 to {n_rows - 1}", bad, "Leave it out")
    return chosen.astype(np.intp)
