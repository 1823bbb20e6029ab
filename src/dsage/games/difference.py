"""The difference of two games: two models, samplers or graphs on common rows and noise."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dsage._check import refusal, warn
from dsage.games.base import Floats, Game, Mask, Orders, Rows, as_game
from dsage.games.model_game import ModelGame


class Difference(Game):
    """The game whose risks are the risks of one game minus the risks of another.

    Shapley values are linear in the game, so its values are the differences ``phi_a - phi_b``.
    Both games use the same orderings, rows and noise, whose common effects cancel before any mean
    is taken: the differences are far more precise than from two runs.

    Parameters
    ----------
    a, b : Game
        Games of the same features in the same order, on the same rows with the same weights. For
        common noise make both with the same `random_state`, `n_draws`, `n_replicates` and `noise`;
        a warning says if these differ. A game without draws can be compared with one that draws.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression, Ridge
    >>> from dsage.estimate import run
    >>> from dsage.games import LossGame
    >>> from dsage.samplers import Gaussian
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(200, 2))
    >>> y = X @ [1.0, 2.0] + generator.normal(size=200)
    >>> sampler = Gaussian().fit(X)
    >>> games = [LossGame(model.fit(X, y), sampler, X, y, random_state=0)
    ...          for model in (LinearRegression(), Ridge(alpha=50.0))]
    >>> difference = run(Difference(*games)).values
    >>> bool(np.allclose(difference, run(games[0]).values - run(games[1]).values))
    True
    """

    def __init__(self, a: Game, b: Game) -> None:
        self.a, self.b = as_game(a, "a"), as_game(b, "b")
        self.feature_names = tuple(self.a.feature_names)
        self.n_rows = self.a.n_rows
        self.weights = self.a.weights
        self._check()
        self.n_replicates = max(self.a.n_replicates, self.b.n_replicates)
        self.has_paths = self.a.has_paths and self.b.has_paths
        self.risk_scale = self.a.risk_scale + self.b.risk_scale

    def _check(self) -> None:
        """Refuse games that cannot be compared, and warn if their noise differs."""
        a, b = self.a, self.b
        if tuple(b.feature_names) != self.feature_names:
            _refuse(f"the features of a, {self.feature_names}", tuple(b.feature_names))
        if b.n_rows != a.n_rows:
            _refuse(f"the {a.n_rows} rows of a", b.n_rows)
        if not _are_equal(_weights(a), _weights(b)):
            _refuse("the sample weights of a", "others")
        if a.n_replicates != b.n_replicates and not (_is_single(a) or _is_single(b)):
            _refuse(f"n_replicates={a.n_replicates}, as a has", b.n_replicates)
        one, other = a.parts[0], b.parts[0]
        if tuple(one.feature_names) == tuple(other.feature_names):
            ours, theirs = a.members, b.members
            if ours != theirs and ours is not None and theirs is not None:
                _refuse(f"the groups of a, {ours}", theirs)
        # The noise of other games is not accessible.
        if not (isinstance(one, ModelGame) and isinstance(other, ModelGame)):
            return
        _check_models(one, other)
        if a.is_drawn and b.is_drawn and not one.noise.is_same(other.noise):
            warn(
                "The two games have different noise, so less of it cancels, and the errors are "
                "larger than necessary. Make both games with the same random_state (an int), "
                "n_draws, n_replicates and noise."
            )

    @property
    def is_drawn(self) -> bool:
        """Whether the risks of one of the games are estimated from draws."""
        return self.a.is_drawn or self.b.is_drawn

    @property
    def has_dear_rows(self) -> bool:
        """Whether rows of either game cost more than orderings."""
        return self.a.has_dear_rows or self.b.has_dear_rows

    @property
    def n_predicted(self) -> int:
        """Number of rows predicted by both models so far."""
        return self.a.n_predicted + self.b.n_predicted

    @property
    def inner(self) -> dict[str, Game]:
        """The two games."""
        return {"a": self.a, "b": self.b}

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the differences of the risks of coalitions; see :class:`Game`."""
        # The one pseudo-value of a game without draws is broadcast.
        return self.a.risks(known, rows, epoch) - self.b.risks(known, rows, epoch)

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return the differences of the risks of prefixes; see :class:`Game`."""
        a, b = (game.path_risks(orders, rows, epoch, needed) for game in (self.a, self.b))
        return a - b

    def first_level(self) -> Game | None:
        """Return the difference of the first levels of both games; None if one has none."""
        a, b = self.a.first_level(), self.b.first_level()
        return None if a is None or b is None else Difference(a, b)

    def draw_bias(self) -> Game | None:
        """Return the difference of what few draws leave in both games."""
        a, b = self.a.draw_bias(), self.b.draw_bias()
        return Difference(a, b) if a is not None and b is not None else a or b

    def known_total(self) -> tuple[float, float] | None:
        """Return the difference of the totals, and its error."""
        a, b = self.a.known_total(), self.b.known_total()
        return None if a is None or b is None else (a[0] - b[0], float(np.hypot(a[1], b[1])))

    def mean_risks(self, known: Mask) -> Floats:
        """Return the means over all rows of the risks of coalitions, (n_coalitions,)."""
        return self.a.mean_risks(known) - self.b.mean_risks(known)

    def mean_path_risks(self, orders: Orders) -> Floats:
        """Return the `mean_risks` of all prefixes of orderings, (n_orderings, n_features + 1)."""
        return self.a.mean_path_risks(orders) - self.b.mean_path_risks(orders)


def _is_single(game: Game) -> bool:
    """Return whether the one pseudo-value of a risk is exact, and can be broadcast."""
    return game.n_replicates == 1 and not game.is_drawn


def _weights(game: Game) -> Floats:
    return np.ones(game.n_rows) if game.weights is None else game.weights


def _are_equal(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Return whether all values are equal, or missing in both."""
    if one.shape != other.shape:
        return False
    # Only what is missing differs from itself.
    return bool(((one == other) | ((one != one) & (other != other))).all())


def _check_models(a: ModelGame, b: ModelGame) -> None:
    """Refuse games of models with different rows, losses or targets."""
    # With groups, the two games may have different columns.
    theirs = dict(zip(b.feature_names, b.matrix.T, strict=True))
    differ = [
        name
        for name, values in zip(a.feature_names, a.matrix.T, strict=True)
        if name in theirs and not _are_equal(values, theirs[name])
    ]
    if differ:
        _refuse("the evaluation rows of a", f"other values of {', '.join(differ)}")
    if a.loss is None or b.loss is None or a.target is None or b.target is None:
        return
    if a.loss.name != b.loss.name:
        _refuse(f"the loss of a, {a.loss.name!r}", b.loss.name)
    # Two models that explain their own outputs have different targets.
    are_outputs = _are_equal(a.target, a.predictions) and _are_equal(b.target, b.predictions)
    if not are_outputs and not _are_equal(a.target, b.target):
        _refuse("the targets of a", "others")


def _refuse(condition: str, found: object) -> NoReturn:
    advice = "Make both games from the same rows, with the same options"
    raise refusal("b", f"a game with {condition}", found, advice)
