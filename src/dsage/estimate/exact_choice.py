"""Whether averaging over all orderings is cheaper than sampling them, for the same error."""

from __future__ import annotations

import numpy as np

from dsage.estimate.exact import Enumeration
from dsage.estimate.walk import Walk, play
from dsage.games.base import Floats, Game
from dsage.games.cached import Cached
from dsage.orderings import Orderings

# Rows and batches of orderings on which both ways are tried, and the first epoch of their noise,
# which no estimate reaches.
_ROWS, _BATCHES, _EPOCH = 16, 4, 1 << 39
# Batches of orderings that no term uses.
_FIRST_BATCH = 3 << 41


def enumeration_pays(
    game: Cached,
    enumeration: Enumeration,
    orderings: Orderings,
    walk: Walk,
    control: tuple[Game, Walk] | None,
) -> bool:
    """Return whether all orderings on a row cost less than sampled ones, for the same error.

    Draws add to the error in both ways. For a row, let an average over all orderings have the cost
    C and the variance D, from its draws; and a sampled batch with its own draws the cost c and
    the variance V, after the first level is subtracted. All orderings pay if ``C D < c V``. The
    variances are estimated from a few rows. If that takes as many evaluations as all orderings on
    all rows, all orderings are used at once.

    Parameters
    ----------
    game : Cached
        The game.
    enumeration : Enumeration
        The average over all orderings.
    orderings : Orderings
        The orderings that would be sampled.
    walk : Walk
        Turns them into surpluses of the game.
    control : pair of a game and its walk, or None
        The first level.
    """
    if game.n_replicates == game.n_outputs:
        # Nothing is drawn, or a single replicate does not tell the error of the draws.
        return True
    n_tried = _BATCHES * orderings.batch_size * (len(game.feature_names) + 1)
    if enumeration.n_coalitions * game.n_rows <= _ROWS * (n_tried + enumeration.n_coalitions):
        return True
    rows = np.linspace(0, game.n_rows - 1, min(_ROWS, game.n_rows)).astype(np.intp)
    batches = range(_FIRST_BATCH, _FIRST_BATCH + _BATCHES)
    before = game.n_distinct
    found = [
        play(walk(orderings.batch(at), rows, _EPOCH + 1 + number), game).values
        for number, at in enumerate(batches)
    ]
    cost = (game.n_distinct - before) / (_BATCHES * len(rows))
    values = _within_rows([values.mean(axis=(0, 2)) for values in found])
    if control is not None:
        cheap, cheap_walk = control
        played = [play(cheap_walk(orderings.batch(at), rows, 0), cheap).values for at in batches]
        controls = _within_rows([each.mean(axis=(0, 2)) for each in played])
        square = float((controls * controls).sum())
        if square > 0:
            values = values - float((values * controls).sum()) / square * controls
    varied = float((values**2).sum()) / ((_BATCHES - 1) * len(rows))
    risks = game.risks(enumeration.coalitions, rows, _EPOCH)
    for epoch in range(_EPOCH, _EPOCH + 1 + _BATCHES):
        game.forget(epoch)
    exact = np.einsum("fc,crg->rgf", enumeration.coefficients, risks)
    # Pseudo-values of outputs stand one after the other.
    exact = exact.reshape(len(rows), game.n_outputs, -1, exact.shape[-1]).mean(axis=1)
    drawn = float((exact.var(axis=1, ddof=1) / exact.shape[1]).mean(axis=0).sum())
    return enumeration.n_coalitions * drawn < cost * varied


def _within_rows(values: list[Floats]) -> Floats:
    """Return the values of batches, (n_batches, n_rows, n_features), less the mean of each row."""
    stacked = np.stack(values)
    centered: Floats = stacked - stacked.mean(axis=0)
    return centered
