"""Use games in other packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dsage._check import check_count, refusal
from dsage.games import Boundary, Cached, Game
from dsage.games.base import Floats, Rows
from dsage.graphs.separation import Oracle

__all__ = ["to_shapiq"]

if TYPE_CHECKING:
    import shapiq

# Coalitions evaluated at a time: a risk has a number for each row and replicate, of which only the
# mean is used.
_AT_ONCE = 64


def to_shapiq(
    game: Game,
    oracle: Oracle | None = None,
    rows: npt.ArrayLike | None = None,
    *,
    epoch: int = 0,
) -> shapiq.Game:
    """Convert a game for the approximators and interaction indices of shapiq.

    The value of a coalition is the reduction of risk, ``v(S) = L(empty) - L(S)``, a mean over rows
    and draws; the value of the empty coalition is zero, so the game is normalized. The jackknife
    removes the bias of few draws from the values, and from every index, which is linear in the
    values. All coalitions share their draws: the error of the draws does not decrease with the
    number of coalitions, and shapiq does not estimate it. Compare two epochs to see it.

    Parameters
    ----------
    game : Game
        The game.
    oracle : Oracle, optional
        Evaluates each coalition at its Markov boundary, as in d-SAGE: coalitions that share one are
        evaluated once. By default every coalition itself is evaluated.
    rows : int array, optional
        Positions of the evaluation rows to average over; all by default.
    epoch : int, default=0
        The realization of the noise: epochs are independent.

    Returns
    -------
    shapiq.Game
        With the features as player names, and `n_evaluated`, the number of evaluated pairs of a
        coalition and a row. It is evaluated on demand, and keeps risks in memory.

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
    >>> round(float(pairs[(0, 1)]), 2)  # b contains what a tells
    -1.08
    """
    try:
        import shapiq  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(
            "to_shapiq needs shapiq; install it with: pip install 'dsage[shapiq]'."
        ) from error
    epoch = check_count(epoch, "epoch", minimum=0)
    cached = Cached(game)
    played = cached if oracle is None else Boundary(cached, oracle)
    chosen = _check_rows(rows, played.n_rows)

    class CoalitionGame(shapiq.Game):
        """A game of dsage as a game of shapiq."""

        def __init__(self) -> None:
            names = list(played.feature_names)
            super().__init__(len(names), normalization_value=0.0, player_names=names)

        @property
        def n_evaluated(self) -> int:
            """Pairs of a coalition and a row that were evaluated."""
            return cached.n_evaluated

        def value_function(self, coalitions: npt.NDArray[np.bool_]) -> Floats:
            """Return ``L(empty) - L(S)`` of coalitions, (n_coalitions,)."""
            asked = np.asarray(coalitions).astype(np.bool_)
            known = np.concatenate([np.zeros_like(asked[:1]), asked])
            risks = np.empty(len(known))
            for first in range(0, len(known), _AT_ONCE):
                at = slice(first, first + _AT_ONCE)
                risks[at] = played.risks(known[at], chosen, epoch).mean(axis=(1, 2))
            worth: Floats = risks[0] - risks[1:]
            return worth

    return CoalitionGame()


def _check_rows(rows: npt.ArrayLike | None, n_rows: int) -> Rows:
    """Return positions of rows; refuse those outside the data."""
    if rows is None:
        return np.arange(n_rows)
    chosen = np.asarray(rows)
    if chosen.ndim != 1 or not len(chosen) or chosen.dtype.kind not in "iu":
        raise refusal("rows", "positions of rows, at least one", rows, "Pass ints", TypeError)
    if chosen.min() < 0 or chosen.max() >= n_rows:
        bad = int(chosen.min() if chosen.min() < 0 else chosen.max())
        raise refusal("rows", f"from 0 to {n_rows - 1}", bad, "Leave it out")
    return chosen.astype(np.intp)
