"""Compare two games: the difference of each feature's values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import refusal
from dsage._random import Streams
from dsage.estimate.inference import holm, interval_columns, p_values
from dsage.estimate.options import PlanOptions
from dsage.estimate.result import Estimate
from dsage.estimate.running.run import run
from dsage.estimate.running.stopping import AbsoluteTolerance, Stopping
from dsage.games.base import Floats, Game
from dsage.games.boundary import Boundary
from dsage.games.difference import Difference
from dsage.graphs.separation import Consensus, Oracle, as_oracle
from dsage.orderings import as_orderings

TOLERANCE = 0.005
"""The default tolerance, as a share of the larger of the two games' total values."""
# Rows to estimate the total values, which only set the scale.
_ROWS = 1024


@dataclass(frozen=True, eq=False)
class GameComparison:
    """The differences of the values of each feature between two games.

    Attributes
    ----------
    difference : Estimate
        The values of the first game minus the values of the second, with errors. Its `n_evaluated`
        counts each pair of a coalition and a row once, though both games evaluate it.
    """

    difference: Estimate

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return differences, errors, intervals and tests, the largest difference first.

        ``lower`` and ``upper`` enclose the difference for these evaluation rows, one feature at a
        time, ``lower_all`` and ``upper_all`` for all at once. ``p_value`` is two-sided, for no
        difference in the population; it includes the error from rows and is adjusted for the
        number of features (Holm).
        """
        found = self.difference
        frame = pd.DataFrame(
            {
                "feature": list(found.feature_names),
                "difference": found.values,
                **interval_columns(found.values, found.se, confidence, found.df),
                "se_rows": found.se_rows,
                "p_value": holm(two_sided(found.values, found.se_total, found.df_total)),
            }
        )
        order = np.argsort(-np.abs(found.values), kind="stable")
        return frame.iloc[order].reset_index(drop=True)


def compare_games(
    a: Game,
    b: Game,
    *,
    oracle: Oracle | tuple[Oracle | None, Oracle | None] | None = None,
    stopping: Stopping | None = None,
    **options: Any,  # noqa: ANN401
) -> GameComparison:
    """Estimate the difference of each feature's values between two games.

    Both games are evaluated at the same coalitions, rows and noise, and only the difference is
    averaged; see :class:`~dsage.games.Difference`. This is far more precise than two runs.

    Parameters
    ----------
    a, b : Game
        The games: two models, two samplers, or one game twice, for two graphs.
    oracle : Oracle, or pair of Oracle or None, optional
        The separations in both games; or a pair, if their graphs differ, with None for plain
        SAGE. With a pair, each game is evaluated at the boundaries of its own graph, and there is
        no audit. With one oracle, the audit concerns the differences and their range.
    stopping : Stopping, optional
        When to stop. A tolerance relative to the differences would never be met by equal games, so
        the default is relative to the games: the largest error is at most 0.5 % of the larger
        total value ``L(empty) - L(all)``. (As the largest value is often a quarter to a half of
        the total, this is about the precision of a single run.)
    **options
        As for :func:`~dsage.estimate.run`.

    Returns
    -------
    GameComparison

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression, Ridge
    >>> from dsage.games import LossGame
    >>> from dsage.samplers import Gaussian
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(500, 3))
    >>> y = X @ [1.0, 2.0, 0.0] + generator.normal(size=500)
    >>> sampler = Gaussian().fit(X)
    >>> a, b = (LossGame(model.fit(X, y), sampler, X, y, random_state=0)
    ...         for model in (LinearRegression(), Ridge(alpha=200.0)))
    >>> frame = compare_games(a, b).to_frame()
    >>> frame["feature"].tolist(), bool((frame["difference"][:2] > 0).all())
    (['X2', 'X1', 'X3'], True)
    """
    game = Difference(a, b)
    if isinstance(oracle, tuple):
        game, common = _at_boundaries(a, b, oracle, options)
        options |= {"oracle": common, "audit": False}
    else:
        options["oracle"] = oracle
    kind = options.get("orderings", PlanOptions.orderings)
    given = as_orderings(kind, game.feature_names, Streams(0))
    if stopping is None and given.n_batches is None:
        stopping = AbsoluteTolerance(TOLERANCE * _scale(game))
    return GameComparison(run(game, stopping=stopping, **options))


def _at_boundaries(
    a: Game, b: Game, pair: tuple[Oracle | None, ...], options: dict[str, Any]
) -> tuple[Difference, Oracle | None]:
    """Return the difference at the boundaries of two graphs, and their common oracle.

    Let B be the union of the boundaries of S in the two graphs. Both lie in B, and B in S, so both
    are also the boundaries of B: the difference at B equals that at S, to the bit. So an oracle
    with the boundaries B changes nothing, and lets coalitions be shared and skipped. This holds for
    graphs; without a graph on one side, or with a vote of several, B is S.
    """
    if len(pair) != 2:
        raise refusal("oracle", "one oracle, or a pair of them", pair, "Pass one per game")
    for option, only in (("estimand", "d-sage"), ("semantics", "boundary"), ("audit", False)):
        if options.get(option, only) != only:
            condition = f"{only!r} if each game has its own graph"
            advice = "Pass one oracle for both games, or none"
            raise refusal(option, condition, options[option], advice)
    one, other = (None if each is None else as_oracle(each) for each in pair)
    game = Difference(
        a if one is None else Boundary(a, one), b if other is None else Boundary(b, other)
    )
    common = None
    if one is not None and other is not None and one.is_of_graph and other.is_of_graph:
        common = Consensus([one, other], share=1.0)
    return game, common


def _scale(game: Difference) -> float:
    """Return the larger of the two games' total values."""
    n_rows = min(game.n_rows, _ROWS)
    rows = np.linspace(0, game.n_rows - 1, n_rows).astype(np.intp)
    ends = np.repeat([[False], [True]], len(game.feature_names), axis=1)
    worth = []
    for each in (game.a, game.b):
        nothing, everything = each.risks(ends, rows).mean(axis=(1, 2))
        worth.append(abs(float(nothing - everything)))
    if not max(worth) > 0:
        condition = "given if the total values of both games are zero"
        advice = "Use as_stopping(absolute=...) or as_stopping(n_orderings=...)"
        raise refusal("stopping", condition, None, advice)
    return max(worth)


def two_sided(values: Floats, se: Floats, df: Floats) -> Floats:
    """Return the two-sided p-value of each feature."""
    smaller = np.minimum(p_values(values, se, df=df), p_values(-values, se, df=df))
    return np.minimum(2.0 * smaller, 1.0)
