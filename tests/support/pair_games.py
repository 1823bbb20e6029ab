"""A game of pairs of features, with noise if it is wanted, and a first level."""

import numpy as np

from dsage.games import Game


class Pairs(Game):
    """Neighboring features together lower the risk of a row; a first level knows how, roughly."""

    n_rows = 12

    def __init__(self, n_features, n_replicates=1, *, is_first=True):
        self.feature_names = tuple(f"x{j}" for j in range(n_features))
        self.n_replicates = n_replicates
        rng = np.random.default_rng(0 if is_first else 1)
        self._single = np.random.default_rng(2).normal(size=n_features)
        self._paired = 1.0 + 0.1 * rng.normal(size=(n_features - 1, self.n_rows))
        self._is_first, self._rng = is_first, rng

    def risks(self, known, rows, epoch=0):
        together = (known[:, 1:] & known[:, :-1]) @ self._paired[:, rows]
        risks = 9.0 - (known @ self._single)[:, None] - together
        seeds = known @ np.arange(1.0, 1.0 + known.shape[1])
        noise = np.sin(
            50.0 * seeds[:, None, None] + 7.0 * rows[:, None] + np.arange(self.n_replicates)
        )
        return risks[:, :, None] + (0.3 * noise if self.n_replicates > 1 else 0.0)

    def first_level(self):
        return Pairs(len(self.feature_names), is_first=False) if self._is_first else None
