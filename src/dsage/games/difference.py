"""The difference of two games: two models, samplers or graphs on common rows and noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from dsage._check import refusal, warn
from dsage.games.base import Floats, Game, Mask, Orders, Paths, Rows, parts_of
from dsage.games.moment import CheapGame
from dsage.games.wrap import members_of, require_game

PathRisks = Callable[[Orders, Rows, int, Mask], Floats]


class Difference:
    """The game whose risks are those of one game less those of another.

    Shapley values are linear in the game, so its values are the differences ``phi_a - phi_b``.
    Both games see the same orderings, rows and noise. What these do to both alike cancels, before
    any mean is taken: the differences are known far better than from two runs.

    Parameters
    ----------
    a, b : Game
        Of the same features in the same order, on the same rows with the same weights. For common
        noise make both with the same `random_state`, `n_draws`, `n_replicates` and `noise`; you are
        warned where these differ. A game that needs no draws may be compared with one that does.

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
        require_game(a, "a")
        require_game(b, "b")
        self.a, self.b = a, b
        self.feature_names = tuple(a.feature_names)
        self.n_rows = a.n_rows
        self.is_drawn = _is_drawn(a) or _is_drawn(b)
        self.weights: Floats | None = getattr(a, "weights", None)
        self._check()
        self.n_replicates = max(a.n_replicates, b.n_replicates)
        if isinstance(a, Paths) and isinstance(b, Paths):
            self._paths: tuple[PathRisks, PathRisks] = a.path_risks, b.path_risks
            self.path_risks = self._path_risks

    def _check(self) -> None:
        """Refuse games that cannot be compared, and warn of those that have other noise."""
        a, b = self.a, self.b
        if tuple(b.feature_names) != self.feature_names:
            _refuse(f"the features of a, {self.feature_names}", tuple(b.feature_names))
        if b.n_rows != a.n_rows:
            _refuse(f"the {a.n_rows} rows of a", b.n_rows)
        if not _same(_weights(a), _weights(b)):
            _refuse("the sample weights of a", "others")
        if a.n_replicates != b.n_replicates and not (_is_single(a) or _is_single(b)):
            _refuse(f"{a.n_replicates} groups of draws, as a has", b.n_replicates)
        one, *_ = parts_of(a)
        other, *_ = parts_of(b)
        _check_rows(one, other)
        if tuple(one.feature_names) == tuple(other.feature_names):
            ours, theirs = members_of(a), members_of(b)
            if ours != theirs and ours is not None and theirs is not None:
                _refuse(f"the groups of a, {ours}", theirs)
        if _is_drawn(a) and _is_drawn(b) and not _has_common_noise(one, other):
            warn(
                "The two games have different noise, so less of it cancels, and the errors are "
                "larger than they need be. Make both games with the same random_state (an int), "
                "n_draws, n_replicates and noise."
            )

    @property
    def n_predicted(self) -> int:
        """Rows that the models were asked for, in all; 0 for games without a model."""
        return sum(int(getattr(game, "n_predicted", 0)) for game in (self.a, self.b))

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the differences of the risks of coalitions; see :class:`Game`."""
        # A game that is not drawn has one pseudo-value, which stands for all.
        return self.a.risks(known, rows, epoch) - self.b.risks(known, rows, epoch)

    def _path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return the differences of the risks of prefixes; see :class:`Paths`."""
        a, b = (paths(orders, rows, epoch, needed) for paths in self._paths)
        return a - b

    def moment_game(self) -> CheapGame | None:
        """Return the difference of the two cheap games; None where one has none."""
        a, b = (_cheap(game) for game in (self.a, self.b))
        return None if a is None or b is None else _DifferenceOfMoments(a, b)


class _DifferenceOfMoments(Difference):
    """The difference of two cheap games; see :class:`CheapGame`."""

    a: CheapGame
    b: CheapGame

    def mean_risks(self, known: Mask) -> Floats:
        """Return the means over all rows of the risks of coalitions, (n_coalitions,)."""
        return self.a.mean_risks(known) - self.b.mean_risks(known)

    def mean_path_risks(self, orders: Orders) -> Floats:
        """Return the `mean_risks` of all prefixes of orderings, (n_orderings, n_features + 1)."""
        return self.a.mean_path_risks(orders) - self.b.mean_path_risks(orders)


def _is_drawn(game: Game) -> bool:
    return bool(getattr(game, "is_drawn", game.n_replicates > 1))


def _is_single(game: Game) -> bool:
    """Tell whether the one pseudo-value of a risk is exact, and can stand for many."""
    return game.n_replicates == 1 and not _is_drawn(game)


def _has_common_noise(a: Game, b: Game) -> bool:
    """Tell whether two games have the same noise; games that do not show theirs count as such."""
    one, other = getattr(a, "noise", None), getattr(b, "noise", None)
    return one is None or other is None or bool(one.is_same(other))


def _cheap(game: Game) -> CheapGame | None:
    make = getattr(game, "moment_game", None)
    return None if make is None else make()


def _weights(game: Game) -> Floats:
    weights: Floats | None = getattr(game, "weights", None)
    return np.ones(game.n_rows) if weights is None else weights


def _same(one: Floats, other: Floats) -> bool:
    return one.shape == other.shape and bool((one == other).all())


def _check_rows(a: Game, b: Game) -> None:
    """Refuse games of models that were given other rows, targets or losses, as far as they tell."""
    one, other = getattr(a, "matrix", None), getattr(b, "matrix", None)
    if one is not None and other is not None and not _same(one, other):
        # Groups may hold other columns in one game than in the other.
        theirs = dict(zip(b.feature_names, other.T, strict=True))
        differ = [
            name
            for name, values in zip(a.feature_names, one.T, strict=True)
            if name in theirs and not _same(values, theirs[name])
        ]
        if differ:
            _refuse("the evaluation rows of a", f"other values of {', '.join(differ)}")
    losses = [getattr(getattr(game, "loss", None), "name", None) for game in (a, b)]
    if None not in losses and losses[0] != losses[1]:
        _refuse(f"the loss of a, {losses[0]!r}", losses[1])
    targets = [getattr(game, "target", None) for game in (a, b)]
    if targets[0] is None or targets[1] is None or all(map(_explains_itself, (a, b))):
        return
    if not _same(targets[0], targets[1]):
        _refuse("the targets of a", "others")


def _explains_itself(game: Game) -> bool:
    """Tell whether the model's own output stands for the target."""
    return _same(game.target, game.predictions)  # type: ignore[attr-defined]


def _refuse(condition: str, found: object) -> NoReturn:
    advice = "Make both games from the same rows, with the same options"
    raise refusal("b", f"a game with {condition}", found, advice)
