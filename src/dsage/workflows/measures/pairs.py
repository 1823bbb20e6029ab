"""Interactions of pairs of features, computed with shapiq."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from dsage._check import import_extra, refusal
from dsage.games import Game
from dsage.interop import to_shapiq

# With at most this many players, all coalitions are evaluated; with more, as many as for this.
_MOST_EXACT = 10
# Realizations of the noise, from which the error is estimated.
_N_EPOCHS = 3


def find_interactions(game: Game) -> pd.DataFrame:
    """Return the interaction of each pair of players, the strongest first.

    They are the k-Shapley interaction indices of order two: negative if two features are
    redundant, positive if they complement each other. With more than ten players they are
    approximated from 1,024 coalitions.

    Returns
    -------
    pandas.DataFrame
        ``feature``, ``other``, ``value``, and ``se``, the error from the draws, estimated from
        three realizations of the noise; zero if nothing is drawn. It does not include the errors
        from the choice of the rows and from the approximation.

    Examples
    --------
    >>> from dsage.games import MomentGame
    >>> generator = np.random.default_rng(0)
    >>> a = generator.normal(size=1000)
    >>> X = np.stack([a, a + generator.normal(size=1000)], axis=1)
    >>> find_interactions(MomentGame(X, X[:, 1], X[:, 1], ["a", "b"])).round(2)
      feature other  value   se
    0       a     b  -1.08  0.0
    """
    shapiq = import_extra("shapiq", "interactions", "shapiq")
    n_players = len(game.feature_names)
    if n_players < 2:
        condition, advice = "False if there is one feature or group", "There are no pairs"
        raise refusal("interactions", condition, True, advice)
    pairs = list(combinations(range(n_players), 2))
    found = []
    for epoch in range(_N_EPOCHS if game.is_drawn else 1):
        handed = to_shapiq(game, epoch=epoch)
        if n_players <= _MOST_EXACT:
            index = shapiq.ExactComputer(handed)("k-SII", order=2)
        else:
            make = shapiq.KernelSHAPIQ(n=n_players, max_order=2, index="k-SII", random_state=0)
            index = make.approximate(budget=2**_MOST_EXACT, game=handed)
        found.append([float(index[pair]) for pair in pairs])
    values = np.mean(found, axis=0)
    se = np.zeros(len(pairs))
    if len(found) > 1:
        se = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    names = game.feature_names
    frame = pd.DataFrame(
        {
            "feature": [names[one] for one, _ in pairs],
            "other": [names[other] for _, other in pairs],
            "value": values,
            "se": se,
        }
    )
    order = np.argsort(-np.abs(values), kind="stable")
    return frame.iloc[order].reset_index(drop=True)
