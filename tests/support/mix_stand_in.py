"""A small sampler that takes missing values, in the place of the mixture that fills gaps."""

from dataclasses import dataclass

import numpy as np
import pytest

from dsage.data.registry import _Entry
from dsage.samplers import SAMPLERS, BaseSampler


@dataclass(kw_only=True, eq=False, repr=False)
class NearRows(BaseSampler):
    """Draws training rows near the known values, where missing is near to missing only."""

    takes_missing = True
    random_state: object = None

    def _fit(self, X):
        self._rows = X
        self._scale = np.nan_to_num(np.nanstd(np.where(np.isnan(X).all(axis=0), 0.0, X), axis=0))
        self._scale = np.where(self._scale > 0, self._scale, 1.0)

    def _draw(self, X, known, noise):
        off = np.zeros((len(X), len(self._rows)))
        for j in np.flatnonzero(known):
            x, rows = X[:, j, None], self._rows[:, j]
            is_class = self.n_categories_[j] > 0
            apart = (x != rows) * 3.0 if is_class else np.abs(x - rows) / self._scale[j] * 2
            gone = np.isnan(x) != np.isnan(rows)
            off += np.where(gone, 5.0, np.where(np.isnan(apart), 0.0, apart))
        weights = np.exp(-(off - off.min(axis=1, keepdims=True)))
        sums = np.cumsum(weights, axis=1)
        targets = noise[:, :, 0] * sums[:, -1:]
        at = [np.searchsorted(row, target) for row, target in zip(sums, targets, strict=True)]
        return self._rows[np.array(at).reshape(targets.shape)][:, :, ~known]


@pytest.fixture
def near_rows(monkeypatch):
    """Fill gaps by :class:`NearRows`."""
    entry = _Entry(NearRows, "a stand-in", {"fits": ("numbers", "classes", "mixed")})
    monkeypatch.setitem(SAMPLERS._load(), "mix", entry)
