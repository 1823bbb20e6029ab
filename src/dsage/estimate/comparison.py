"""Compare two models, samplers or graphs: the difference of each feature's values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import refusal
from dsage._random import Streams
from dsage.estimate.inference import holm, intervals, p_values, simultaneous_intervals
from dsage.estimate.result import Estimate
from dsage.estimate.running.run import run
from dsage.estimate.running.stopping import AbsoluteTolerance, Stopping
from dsage.games.base import Floats, Game
from dsage.games.boundary import Boundary
from dsage.games.difference import Difference
from dsage.graphs.grouped import GroupedOracle
from dsage.graphs.separation import Consensus, Oracle, SeparationOracle
from dsage.orderings import as_orderings

TOLERANCE = 0.005
"""The default rule: this share of what all features are worth to the better of the two games."""
# The worth of all features is only to set a scale: so many rows will do.
_ROWS = 1024


@dataclass(frozen=True, eq=False)
class GameComparison:
    """How much more each feature is worth in one game than in another.

    Attributes
    ----------
    difference : Estimate
        The values of the first game less those of the second, with their errors. Its `n_evaluated`
        counts coalitions and rows once, though two models were evaluated on them.
    """

    difference: Estimate

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return differences, errors, intervals and tests, the largest difference first.

        ``lower`` and ``upper`` enclose the difference for these evaluation rows, one feature at a
        time, ``lower_all`` and ``upper_all`` for all at once. ``p_value`` tests, two-sided, that
        there is no difference in the population; it counts the error of the rows as well, and is
        adjusted for the number of features (Holm).
        """
        known = self.difference
        lower, upper = intervals(known.values, known.se, confidence, df=known.df)
        lowest, highest = simultaneous_intervals(known.values, known.se, confidence, df=known.df)
        frame = pd.DataFrame(
            {
                "feature": list(known.feature_names),
                "difference": known.values,
                "se": known.se,
                "lower": lower,
                "upper": upper,
                "lower_all": lowest,
                "upper_all": highest,
                "se_rows": known.se_rows,
                "p_value": holm(_two_sided(known.values, known.se_total, known.df_total)),
            }
        )
        order = np.argsort(-np.abs(known.values), kind="stable")
        return frame.iloc[order].reset_index(drop=True)


def compare_games(
    a: Game,
    b: Game,
    *,
    oracle: Oracle | tuple[Oracle | None, Oracle | None] | None = None,
    stopping: Stopping | None = None,
    **options: Any,  # noqa: ANN401
) -> GameComparison:
    """Estimate how much more each feature is worth in one game than in another.

    Both games are evaluated at the same coalitions, rows and noise, and only the difference is
    averaged; see :class:`~dsage.games.Difference`. That is far more precise than two runs.

    Parameters
    ----------
    a, b : Game
        The games: two models, two samplers, or one game twice, for two graphs.
    oracle : Oracle, or pair of Oracle or None, optional
        What is separated, in both games; or one for each, where their graphs differ, None for plain
        SAGE. With a pair both games are played at the boundaries of their own graphs, and there is
        no audit. With one oracle the audit is of the differences, and so is its 2 % of the range.
    stopping : Stopping, optional
        When to stop. A share of the range of the differences would never be reached where there is
        no difference, so by default the errors are held against the games: the largest is to be
        at most 0.5 % of what all features together are worth to the game to which they are worth
        more, ``max of L(empty) - L(all)``. (As the largest value is often a quarter to a half of
        that, it is about the precision of a run on its own.)
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
    given = as_orderings(options.get("orderings", "antithetic"), game.feature_names, Streams(0))
    if stopping is None and given.n_batches is None:
        stopping = AbsoluteTolerance(TOLERANCE * _scale(game))
    return GameComparison(run(game, stopping=stopping, **options))


def _at_boundaries(
    a: Game, b: Game, pair: tuple[Oracle | None, ...], options: dict[str, Any]
) -> tuple[Difference, Oracle | None]:
    """Return the difference at the boundaries of two graphs, and what both of them separate.

    Let B be the union of the boundaries of S in the two graphs. Each lies in B, and B in S, so
    each is the boundary of B, too: the difference at B is that at S, to the bit. So an oracle with
    the boundaries B changes nothing, and lets coalitions be shared and skipped. That is so in
    graphs. Without one on one side, or with a vote of several, B is S.
    """
    if len(pair) != 2:
        raise refusal("oracle", "one oracle, or a pair of them", pair, "Give one for each game")
    for option, only in (("estimand", "d-sage"), ("semantics", "boundary"), ("audit", False)):
        if options.get(option, only) != only:
            raise refusal(
                option,
                f"{only!r} where each game has a graph of its own",
                options[option],
                "Give one oracle for both games, or none",
            )
    one, other = pair
    game = Difference(
        a if one is None else Boundary(a, one), b if other is None else Boundary(b, other)
    )
    common = None
    if one is not None and other is not None and _is_of_a_graph(one) and _is_of_a_graph(other):
        common = Consensus([one, other], share=1.0)
    return game, common


def _is_of_a_graph(oracle: Oracle) -> bool:
    inner = oracle.oracle if isinstance(oracle, GroupedOracle) else oracle
    return isinstance(inner, SeparationOracle)


def _scale(game: Difference) -> float:
    """Return what all features are worth to the game to which they are worth more."""
    n_rows = min(game.n_rows, _ROWS)
    rows = np.linspace(0, game.n_rows - 1, n_rows).astype(np.intp)
    ends = np.repeat([[False], [True]], len(game.feature_names), axis=1)
    worth = []
    for each in (game.a, game.b):
        nothing, everything = each.risks(ends, rows).mean(axis=(1, 2))
        worth.append(abs(float(nothing - everything)))
    if not max(worth) > 0:
        raise refusal(
            "stopping",
            "given where all features together are worth nothing to both games",
            None,
            "Give as_stopping(absolute=...) or as_stopping(n_orderings=...)",
        )
    return max(worth)


def _two_sided(values: Floats, se: Floats, df: Floats) -> Floats:
    """Return for each feature the p-value of "there is no difference"."""
    smaller = np.minimum(p_values(values, se, df=df), p_values(-values, se, df=df))
    both: Floats = np.minimum(2.0 * smaller, 1.0)
    return both
