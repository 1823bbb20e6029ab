"""What a game is: from coalitions to risks."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dsage._check import refusal

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Orders = npt.NDArray[np.intp]


class Game(Protocol):
    """The risk of every coalition, row by row.

    ``L(S)`` is the mean over rows of the loss of ``E[f(X) | x_S]``; the value of a coalition is
    ``L(empty) - L(S)``.
    """

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The players."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of evaluation rows."""
        ...

    @property
    def n_replicates(self) -> int:
        """Number of pseudo-values a risk has; 1 where nothing is drawn."""
        ...

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of coalitions.

        Parameters
        ----------
        known : bool array of shape (n_coalitions, n_features)
            The coalitions.
        rows : int array of shape (n_rows,)
            Which evaluation rows, by their numbers.
        epoch : int
            Which noise: epochs are independent, and within one the same coalition has the same
            risk, to the bit.

        Returns
        -------
        array of shape (n_coalitions, n_rows, n_replicates)
            Pseudo-values: their mean over the last axis estimates the risk of the row, and they
            differ by independent noise.
        """
        ...


@runtime_checkable
class Paths(Protocol):
    """What a game may have beside: all prefixes of an ordering at the cost of a few."""

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return the risks of prefixes, (n_orderings, n_features + 1, n_rows, n_replicates).

        What is not `needed`, (n_orderings, n_features + 1), may be anything. Draws belong to the
        ordering: the same coalition may have other draws in another one, and in `risks`.
        """
        ...


class Coalitions(NamedTuple):
    """A question to a game: the risks of coalitions, see :meth:`Game.risks`."""

    known: Mask
    rows: Rows
    epoch: int


class Along(NamedTuple):
    """A question to a game: the risks along orderings, see :meth:`Paths.path_risks`."""

    orders: Orders
    rows: Rows
    epoch: int
    needed: Mask


Request = Coalitions | Along


def ask(game: Game, request: Request) -> Floats:
    """Return what a game answers."""
    if isinstance(request, Along):
        if not isinstance(game, Paths):
            raise refusal("game", "one with path_risks", game, "Ask for coalitions", TypeError)
        return game.path_risks(*request)
    return game.risks(*request)


def parts_of(game: Any) -> list[Any]:  # noqa: ANN401
    """Return the games that a game made of others is made of, without what they are wrapped in.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> one, two = SimpleNamespace(name="one"), SimpleNamespace(name="two")
    >>> difference = SimpleNamespace(a=SimpleNamespace(game=one), b=two)
    >>> [part.name for part in parts_of(SimpleNamespace(game=difference))]
    ['one', 'two']
    """
    if hasattr(game, "game"):
        return parts_of(game.game)
    if hasattr(game, "a") and hasattr(game, "b"):
        return [*parts_of(game.a), *parts_of(game.b)]
    return [game]


def check_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> Floats:
    """Return weights of rows with mean one."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise refusal("sample_weight", f"of shape ({n_rows},)", weights.shape, "Give one a row")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        bad = weights[~(np.isfinite(weights) & (weights >= 0))]
        shown = float(bad[0]) if len(bad) else 0.0
        raise refusal("sample_weight", "finite, not negative, not all 0", shown, "Correct it")
    scaled: Floats = weights / weights.mean()
    return scaled
