"""Draw training rows for any coalition: the marginal SAGE values of Covert et al."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dsage.data.possible import Possible
from dsage.samplers.base import BaseSampler
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.registry import ANY_DATA, SAMPLERS


@SAMPLERS.register(
    "marginal",
    summary="training rows, ignoring the known features (marginal SAGE)",
    fits=ANY_DATA,
    draw_cost=0.01,
    call_cost=5.0,
    fit_cost=0.5,
)
@dataclass(kw_only=True, eq=False, repr=False)
class Marginal(BaseSampler):
    """Draw unknown features from the training rows, ignoring the known ones.

    With ``joint=True`` all unknown features come from one training row, number
    ``floor(n_rows u)``, where u is the noise of the *first* feature, known or not: coalitions that
    share noise share the row. With ``joint=False`` feature j is the empirical quantile
    ``x_(floor(n_rows u_j))`` at its own noise, and features are independent.

    Parameters
    ----------
    joint : bool, default=True
        Whether unknown features are drawn together, or each from its own marginal distribution.
    discrete, dtype, max_bytes
        As in :class:`~dsage.samplers.base.BaseSampler`.

    Attributes
    ----------
    background_ : array of shape (n_rows, n_features)
        The training rows; with ``joint=False``, each column sorted.

    Examples
    --------
    >>> sampler = Marginal().fit(np.array([[1.0, 10.0], [2.0, 20.0]]))
    >>> noise = np.array([[[0.3, 0.9], [0.8, 0.1]]])
    >>> sampler.draw(np.array([[5.0, 5.0]]), np.array([True, False]), noise)
    array([[[ 5., 10.],
            [ 5., 20.]]])
    """

    takes_missing = True
    joint: bool = True
    is_marginal: ClassVar[bool] = True

    def _fit(self, X: Floats) -> None:
        self.background_ = X if self.joint else np.sort(X, axis=0)
        self._means = X.mean(axis=0)

    @property
    def equal_rows(self) -> Floats | None:
        """The training rows, unless features are drawn apart."""
        return self.background_ if self.joint and type(self) is Marginal else None

    def pick_rows(self, noise: Floats) -> Ints:
        """Return the numbers of the training rows; see :meth:`Sampler.pick_rows`."""
        return self._rows(noise[:, :, 0]) if self.joint else super().pick_rows(noise)

    @property
    def _possible(self) -> Possible:
        return self.layout_.possible.together

    def _draw(self, X: Floats, known: Mask, noise: Floats) -> Floats:  # noqa: ARG002
        background = self.background_[:, ~known]
        if self.joint:
            return background[self._rows(noise[:, :, 0])]
        return np.take_along_axis(background[None], self._rows(noise[:, :, ~known]), axis=1)

    def draw_coalitions(self, rows: Floats, known: Mask, noise: Floats) -> Floats:
        """Draw for several coalitions; see :meth:`Sampler.draw_coalitions`."""
        is_plain = self.equal_rows is not None and self._possible.is_free
        if not is_plain or self._result_type() != np.float64:
            return super().draw_coalitions(rows, known, noise)
        # Draws do not depend on what is known: the same rows for all coalitions.
        n_draws, shape = noise.shape[1], (len(known), *noise.shape[:2], rows.shape[1])
        drawn = self.background_[self._rows(noise[:, :, 0])]
        own = np.repeat(rows, n_draws, axis=0)
        is_own = np.tile(known, (1, len(own)))
        return np.where(is_own, own.reshape(1, -1), drawn.reshape(1, -1)).reshape(shape)

    def _mean(self, X: Floats, known: Mask) -> Floats:
        return np.broadcast_to(self._means[~known], (len(X), int((~known).sum())))

    def mean_effects(self, known: Mask, weights: Floats) -> tuple[Floats, Floats] | None:
        """Return the expectation of an affine function; see :meth:`Sampler.mean_effects`."""
        if type(self)._mean is not Marginal._mean or not self.has_mean:
            return None
        return self._means[~known] @ weights[~known], np.where(known[:, None], weights, 0.0)

    def _rows(self, noise: Floats) -> Ints:
        n_rows = len(self.background_)
        return np.minimum((n_rows * noise).astype(np.intp), n_rows - 1)
