"""The base class of games: from coalitions of known features to risks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from dsage._check import refusal
from dsage.graphs.interventions import GroupedInterventions, Interventions

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Orders = npt.NDArray[np.intp]

_Entry = TypeVar("_Entry", bound=np.generic)

# Entries along an axis that are added up one after the other.
_FEW = 8
# Coalitions whose risks on all rows are held in memory at a time.
_AT_ONCE = 64
# Rows on which an ordering is evaluated if each has few draws, and how many draws are few.
_ROWS_DRAWN, _FEW_DRAWS = 64, 8


class Game(ABC):
    """The risk of every coalition, row by row.

    ``L(S)`` is the mean over rows of the loss of ``E[f(X) | x_S]``; the value of a coalition is
    ``L(empty) - L(S)``. A subclass sets `feature_names` and `n_rows`, also `n_replicates` if
    risks are drawn, and implements `risks`. Everything else has a default.

    Attributes
    ----------
    feature_names : tuple of str
        The players.
    n_rows : int
        Number of evaluation rows.
    n_replicates : int, default=1
        Number of pseudo-values per risk.
    weights : array of shape (n_rows,) or None, default=None
        Weights of the rows, with mean one, if `risks` multiplies by them; None for equal
        weights. The standard error of the choice of rows, `se_rows`, depends on them.
    has_paths : bool, default=False
        Whether `path_risks` is implemented.
    has_position_means : bool, default=False
        Whether `position_means` is implemented.
    n_outputs : int, default=1
        Number of outputs whose pseudo-values follow one another in the last axis of the risks;
        above 1 only for the games that `apart` returns.
    cost : float, default=1.0
        The cost of `mean_path_risks` of an ordering, in any unit that a game shares with its first
        level.
    pairs_at_once : int or None, default=None
        Pairs of a coalition and a row that are best evaluated together, if that is far from the
        best number for a CPU.
    risk_scale : float, default=0.0
        The mean risk with all features known, or 0 if it is unknown: values far below are rounding
        errors.
    interventions : Interventions, GroupedInterventions or None, default=None
        The effects of interventions, for a game in which known features are set, not observed. Its
        values have a direct and an indirect part, and its coalitions may have twice as many
        columns: the features that are set, and then those whose values the model receives.
    may_be_copied : bool, default=False
        Whether other processes may evaluate copies of the game automatically: risks depend on
        nothing else, evaluating them has no side effects, and copies are small.

    Examples
    --------
    >>> class Additive(Game):
    ...     feature_names, n_rows = ("a", "b"), 1
    ...
    ...     def risks(self, known, rows, epoch=0):
    ...         return np.repeat(3.0 - known @ [2.0, 1.0], len(rows)).reshape(len(known), -1, 1)
    >>> from dsage.estimate import run
    >>> run(Additive()).values
    array([2., 1.])
    """

    feature_names: tuple[str, ...]
    n_rows: int
    n_replicates: int = 1
    weights: Floats | None = None
    has_paths: bool = False
    has_position_means: bool = False
    n_outputs: int = 1
    cost: float = 1.0
    pairs_at_once: int | None = None
    risk_scale: float = 0.0
    interventions: Interventions | GroupedInterventions | None = None
    may_be_copied: bool = False

    @abstractmethod
    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of coalitions.

        Parameters
        ----------
        known : bool array of shape (n_coalitions, n_features)
            The coalitions.
        rows : int array of shape (n_rows,)
            Positions of evaluation rows.
        epoch : int
            The realization of the noise: epochs are independent. Within one, the same coalition
            has the same risk, to the bit.

        Returns
        -------
        array of shape (n_coalitions, n_rows, n_replicates)
            Pseudo-values: their mean over the last axis estimates the risk of the row, and they
            differ by independent noise.
        """

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:  # noqa: ARG002
        """Return the risks of all prefixes of orderings, if that is cheaper than one by one.

        Parameters
        ----------
        orders : int array of shape (n_orderings, n_features)
            The orderings.
        rows, epoch
            As for `risks`. Draws belong to the ordering: in another ordering, and in `risks`, the
            same coalition may have other draws.
        needed : bool array of shape (n_orderings, n_features + 1)
            Prefixes to evaluate; the results of the others are arbitrary.

        Returns
        -------
        array of shape (n_orderings, n_features + 1, n_rows, n_replicates)
        """
        raise refusal("game", "one with path_risks", self, "Ask for coalitions", TypeError)

    def answers(self, requests: Sequence[Request]) -> list[Floats]:
        """Return the answers to several requests, by default one after the other."""
        return [ask(self, request) for request in requests]

    def first_level(self) -> Game | None:
        """Return a similar game whose `mean_risks` are cheap, to serve as a control; or None.

        The first level of a cheap game is an even cheaper one.
        """
        return None

    def apart(self) -> Game | None:
        """Return the same game with separate risks of its outputs; None if it has only one.

        Its risks have `n_outputs` times the pseudo-values, starting with the first output. They are
        `n_outputs` times the risk of the output, so that their mean is the risk in this game.
        """
        return None

    def draw_bias(self) -> Game | None:
        """Return a game whose risks are the biases from few draws in the risks of this game.

        They are estimates of the size, from the same draws; None if the biases are negligible.
        """
        return None

    def known_total(self) -> tuple[float, float] | None:
        """Return the risk with no feature known minus that with all of them, and its error.

        The means over all rows, if they are known better than single risks; otherwise None.
        """
        return None

    def first_levels(self) -> tuple[Game, ...]:
        """Return a `first_level` for each of the separate outputs, if there are any."""
        level = self.first_level()
        return () if level is None else (level,)

    def mean_risks(self, known: Mask) -> Floats:
        """Return the means over all rows of the risks of coalitions, (n_coalitions,)."""
        rows = np.arange(self.n_rows)
        chunks = [known[at : at + _AT_ONCE] for at in range(0, len(known), _AT_ONCE)]
        means = [self.risks(chunk, rows).mean(axis=(1, 2)) for chunk in chunks]
        return np.concatenate([np.zeros(0), *means])

    def mean_path_risks(self, orders: Orders) -> Floats:
        """Return the `mean_risks` of all prefixes of orderings, (n_orderings, n_features + 1)."""
        known = prefixes(orders)
        return self.mean_risks(known.reshape(-1, known.shape[-1])).reshape(known.shape[:2])

    def position_means(self, orders: Orders) -> Floats:  # noqa: ARG002
        """Return estimates of the values of all rows from orderings, (n_orderings, n_features).

        They are means over coalitions of all sizes, so that they vary less than what features add
        along the ordering, but they do not add up. They are unbiased for uniform orderings.
        """
        raise refusal("game", "one with position_means", self, "Use mean_path_risks", TypeError)

    @property
    def is_drawn(self) -> bool:
        """Whether risks are estimated from random draws."""
        return self.n_replicates > 1

    @property
    def has_dear_rows(self) -> bool:
        """Whether rows cost more than orderings: then few rows are evaluated per ordering."""
        return self.is_drawn

    @property
    def draws_per_risk(self) -> int:
        """The number of draws for each risk, of all replicates; 0 if it is not known."""
        return max((game.draws_per_risk for game in self.inner.values()), default=0)

    @property
    def has_cheap_draws(self) -> bool:
        """Whether predictions for draws take less time than the calls that make them."""
        inner = self.inner.values()
        return bool(inner) and all(game.has_cheap_draws for game in inner)

    @property
    def rows_of_unit(self) -> int:
        """The number of rows on which an ordering is evaluated, if rows are dear.

        Half as many with more draws for each than squared error has by default, unless these are
        cheap.
        """
        is_half = self.draws_per_risk > _FEW_DRAWS and not self.has_cheap_draws
        return _ROWS_DRAWN // 2 if is_half else _ROWS_DRAWN

    @property
    def n_predicted(self) -> int:
        """Number of rows predicted by the model so far; 0 for a game without a model."""
        return 0

    @property
    def members(self) -> dict[str, tuple[str, ...]] | None:
        """The members of each group, if players are groups of features; None otherwise."""
        return None

    @property
    def inner(self) -> dict[str, Game]:
        """The games that this one is made of, by attribute name; empty for most games."""
        return {}

    @property
    def parts(self) -> tuple[Game, ...]:
        """The innermost games: the game itself, unless it is made of others."""
        return tuple(part for game in self.inner.values() for part in game.parts) or (self,)


class Wrapped(Game):
    """A game made from another one, whose description it inherits.

    A subclass implements `risks`; and `path_risks` (with `has_paths`), `first_level`, `mean_risks`
    and `mean_path_risks` if the wrapped game's carry over.

    Parameters
    ----------
    game : Game
        The game to wrap.
    """

    def __init__(self, game: Game) -> None:
        self.game = as_game(game)
        self.feature_names = tuple(self.game.feature_names)
        self.n_rows = self.game.n_rows
        self.n_replicates = self.game.n_replicates
        self.weights = self.game.weights
        self.n_outputs = self.game.n_outputs
        self.cost = self.game.cost
        self.pairs_at_once = self.game.pairs_at_once
        self.risk_scale = self.game.risk_scale
        self.interventions = self.game.interventions

    @property
    def is_drawn(self) -> bool:
        """Whether risks are estimated from random draws."""
        return self.game.is_drawn

    @property
    def has_dear_rows(self) -> bool:
        """Whether rows cost more than orderings."""
        return self.game.has_dear_rows

    @property
    def n_predicted(self) -> int:
        """Number of rows predicted by the model so far."""
        return self.game.n_predicted

    @property
    def members(self) -> dict[str, tuple[str, ...]] | None:
        """The members of each group, if players are groups of features."""
        return self.game.members

    @property
    def inner(self) -> dict[str, Game]:
        """The wrapped game."""
        return {"game": self.game}


@runtime_checkable
class _Basic(Protocol):
    """The members that an object needs to be used as a game."""

    feature_names: tuple[str, ...]
    n_rows: int
    n_replicates: int

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats: ...


class _Adapted(Game):
    """An object with the basic members of a game, and maybe weights, as a game."""

    def __init__(self, game: _Basic) -> None:
        self._game = game
        self.feature_names = tuple(game.feature_names)
        self.n_rows, self.n_replicates = game.n_rows, game.n_replicates
        self.weights = getattr(game, "weights", None)

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        return self._game.risks(known, rows, epoch)


def as_game(game: object, parameter: str = "game") -> Game:
    """Return a game: `game` itself, or an adapter of an object with the basic members of one.

    An object that is not a :class:`Game` needs `feature_names`, `n_rows`, `n_replicates` and
    `risks`; of the other members, only `weights` is used.

    Examples
    --------
    >>> as_game(3)
    Traceback (most recent call last):
    TypeError: game must be a game; got 'int'. Make one with LossGame(model, sampler, X, y).
    """
    if isinstance(game, Game):
        return game
    if isinstance(game, _Basic) and not isinstance(game, type):
        return _Adapted(game)
    advice = "Make one with LossGame(model, sampler, X, y)"
    raise refusal(parameter, "a game", type(game).__name__, advice, TypeError)


class Coalitions(NamedTuple):
    """A request to a game: the risks of coalitions, see :meth:`Game.risks`."""

    known: Mask
    rows: Rows
    epoch: int


class Along(NamedTuple):
    """A request to a game: the risks along orderings, see :meth:`Game.path_risks`."""

    orders: Orders
    rows: Rows
    epoch: int
    needed: Mask


Request = Coalitions | Along


def ask(game: Game, request: Request) -> Floats:
    """Return a game's answer to a request."""
    return game.path_risks(*request) if isinstance(request, Along) else game.risks(*request)


def count_pairs(request: Request) -> int:
    """Return the number of pairs of a coalition and a row in a request."""
    n_coalitions = int(request.needed.sum()) if isinstance(request, Along) else len(request.known)
    return n_coalitions * len(request.rows)


def prefixes(orders: Orders) -> Mask:
    """Return the coalitions along orderings, (n_orderings, n_features + 1, n_features)."""
    n_features = orders.shape[1]
    position = np.empty_like(orders)
    np.put_along_axis(position, orders, np.arange(n_features), axis=1)
    known: Mask = position[:, None, :] < np.arange(n_features + 1)[:, None]
    return known


def by_feature(steps: npt.NDArray[_Entry], orders: Orders) -> npt.NDArray[_Entry]:
    """Reorder values by position, (n_orderings, n_features, ...), to the order of the features."""
    out = np.empty_like(steps)
    out[np.arange(len(orders))[:, None], orders] = steps
    return out


def mean_within(values: Floats, axis: int) -> Floats:
    """Return means within the range of the values: the mean of equal values is exactly that value.

    >>> np.full(3, 0.1).mean() == 0.1, mean_within(np.full((1, 3), 0.1), axis=1) == 0.1
    (np.False_, array([ True]))
    """
    if not 1 < values.shape[axis] < _FEW:
        means: Floats = values.mean(axis=axis)
        return np.clip(means, values.min(axis=axis), values.max(axis=axis), out=means)
    # The same to the bit, several times as fast: NumPy is slow along an axis of a few entries.
    first, *others = np.moveaxis(values, axis, 0)
    total: Floats = first.copy()
    low, high = first.copy(), first.copy()
    for each in others:
        total += each
        np.minimum(low, each, out=low)
        np.maximum(high, each, out=high)
    total /= values.shape[axis]
    return np.clip(total, low, high, out=total)
