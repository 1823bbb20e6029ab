"""The Gaussian copula: any continuous margins, Gaussian dependence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from dsage._check import check_count, check_member
from dsage.data.layout import Layout
from dsage.samplers.base import BaseSampler, Sampler
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.conditioning import Normal
from dsage.samplers.curve import Curves
from dsage.samplers.device import DeviceCopula, DeviceSampler, Place
from dsage.samplers.gaussian import (
    COVARIANCES,
    estimate,
    require_continuous,
    require_rows,
    warn_determined,
)
from dsage.samplers.ordering import Ordering
from dsage.samplers.possible_steps import PossibleSteps
from dsage.samplers.registry import NUMBERS, SAMPLERS


@SAMPLERS.register(
    "copula",
    summary="any continuous margins, Gaussian dependence",
    fits=NUMBERS,
    candidate_for=NUMBERS,
    complexity=2,
    draw_cost=0.08,
    call_cost=15.0,
    fit_cost=0.5,
)
@dataclass(kw_only=True, eq=False, repr=False)
class GaussianCopula(BaseSampler):
    """Draw from a Gaussian copula with the margins of the data.

    Each feature is turned into normal scores, ``z = ndtri(F(x))``, the scores are drawn as
    :class:`Gaussian` draws, and turned back. F is the empirical distribution made continuous: the
    i-th smallest of n values has ``F = (i - 1/2) / n``, and between neighbors x is linear in z.

    - **Tails**: draws stay within the smallest and the largest training value, which each have a
      probability of ``1 / (2 n)``. A known value outside counts as the extreme next to it.
    - **Ties**: a value that occurs c times is drawn with probability ``(c - 1) / n`` or more, so
      that draws of a column with few values are mostly these values. As a known value it has the
      score of its middle rank, which weakens its dependence somewhat.
    - **Singular dependence**: as in :class:`Gaussian`, with the same warnings.

    There is no `mean`: the mean of the draws is not the image of the mean score.

    Parameters
    ----------
    covariance : {"empirical", "ledoit-wolf", "oas"}, default="empirical"
        The estimate of the correlations of the scores.
    n_quantiles : int, default=2000
        With more rows than this, F is interpolated between this many of the ordered values, at
        evenly spaced ranks from the smallest to the largest.
    dtype, max_bytes
        As in :class:`~dsage.samplers.base.BaseSampler`.

    Attributes
    ----------
    correlation_ : array of shape (n_features, n_features)
        Correlations of the scores; 0 on the diagonal for a constant column.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a = rng.standard_normal(2000)
    >>> X = np.exp(np.column_stack([a, a + rng.standard_normal(2000)]))
    >>> sampler = GaussianCopula().fit(X)
    >>> draws = sampler.draw(X[:5], np.array([True, False]), rng.random((5, 100, 2)))
    >>> bool((draws[..., 1] > 0).all())
    True
    """

    has_latent = True
    covariance: Literal["empirical", "ledoit-wolf", "oas"] = "empirical"
    n_quantiles: int = 2000
    discrete: str | Iterable[str] = field(default=(), init=False)

    def _fit(self, X: Floats) -> None:
        check_member(self.covariance, COVARIANCES, "covariance", "the estimates of a covariance")
        n_quantiles = check_count(self.n_quantiles, "n_quantiles", minimum=2)
        require_continuous(self)
        require_rows(X)
        self._margins = [Margin(column, n_quantiles) for column in X.T]
        # Columns of as many rows have the same scores.
        self._values = Curves(
            self._margins[0].scores, np.stack([margin.values for margin in self._margins])
        )
        # Made when it is first needed.
        self._shown: PossibleSteps | None = None
        _, covariance = estimate(self._score(X, range(X.shape[1])), self.covariance)
        # Scores of tied values have a variance below one, but what is drawn must have one.
        self.correlation_ = Normal(np.zeros(len(covariance)), covariance).correlation
        self._normal = Normal(np.zeros(len(covariance)), self.correlation_)
        warn_determined(self._normal, self.feature_names_)

    def _score(self, X: Floats, features: Iterable[int]) -> Floats:
        """Return the normal scores of some features, (n_rows, n_chosen)."""
        scores = [self._margins[at].score(X[:, at]) for at in features]
        return np.column_stack([np.empty((len(X), 0)), *scores])

    def ordering(self, order: Sequence[int] | Ints) -> CopulaOrdering:
        """Return an object that draws for all prefixes of an ordering, from one Cholesky factor.

        See :meth:`~dsage.samplers.Gaussian.ordering`.

        Parameters
        ----------
        order : sequence of int
            The positions of the features, each once.
        """
        checked = self._check_order(order)
        if self._shown is None:
            self._shown = PossibleSteps(self._values, self.layout_.possible)
        return CopulaOrdering(self._normal, self.layout_, checked, self._margins, self._shown)

    def on_device(self, device: Any, dtype: Any) -> DeviceSampler:  # noqa: ANN401
        """Return an object that draws on a device of PyTorch, in the precision of `dtype`."""
        if not self.draws_on_device:
            return Sampler.on_device(self, device, dtype)
        place, every = Place(device, dtype), range(self.n_features_)
        to_latent = partial(self._score, features=every)
        return DeviceCopula(self._normal, self.layout_, place, to_latent, self._values)

    def _draw(self, X: Floats, known: Mask, noise: Floats) -> Floats:
        scores = self._score(X, np.flatnonzero(known))
        draws = self._normal.given(known).draw(scores, noise)
        columns, unknown = draws.transpose(2, 0, 1), np.flatnonzero(~known)
        self._values.write(columns, columns, np.arange(len(unknown)), unknown)
        return draws

    def _bytes_per_row(self, known: Mask, n_draws: int) -> int:
        # The draws, a few columns of them, and a few copies of the row and of its mean.
        return 8 * (n_draws * (int((~known).sum()) + 6) + 5 * len(known))


class Margin:
    """A column's values and their normal scores, by interpolation."""

    def __init__(self, column: Floats, n_quantiles: int) -> None:
        n_rows = len(column)
        n_knots = min(n_rows, n_quantiles)
        ranks = np.rint(np.linspace(0, n_rows - 1, n_knots)).astype(np.intp)
        self.values: Floats = np.sort(column)[ranks]
        probabilities = (ranks + 0.5) / n_rows
        self.scores: Floats = ndtri(probabilities)
        # A tied value has the score of its middle rank.
        self.distinct, first, counts = np.unique(self.values, return_index=True, return_counts=True)
        middle = (probabilities[first] + probabilities[first + counts - 1]) / 2
        self.distinct_scores: Floats = ndtri(middle)

    def score(self, x: Floats) -> Floats:
        """Return the normal scores of values."""
        return np.interp(x, self.distinct, self.distinct_scores)


class CopulaOrdering(Ordering):
    """All prefixes of one ordering, from one Cholesky factor (see :meth:`GaussianCopula.ordering`).

    The normal scores of the features are drawn from a Gaussian; the scores of unknown features are
    turned into values for each prefix.
    """

    def __init__(
        self,
        normal: Normal,
        layout: Layout,
        order: Ints,
        margins: Sequence[Margin],
        shown: PossibleSteps,
    ) -> None:
        super().__init__(normal, layout, order)
        self._margins, self._shown = margins, shown

    def whitened(self, X: Any) -> Floats:  # noqa: ANN401
        """Return ``z = L^-1 s`` of the normal scores s of rows, in the ordering's order."""
        rows, _ = self._read(X, None)
        return np.ascontiguousarray(self._whiten(self._to_scores(rows), len(self.order)).T)

    def _to_scores(self, rows: Floats) -> Floats:
        scores = [
            margin.score(column) for margin, column in zip(self._margins, rows.T, strict=True)
        ]
        return np.stack(scores, axis=1)

    def _prefixes(
        self, rows: Floats, z: Floats, scores: Floats, lengths: list[int]
    ) -> Iterator[tuple[int, Floats, Floats]]:
        shown = np.empty((rows.shape[1], *scores.shape[:2]))
        view = shown.transpose(1, 2, 0)
        at = 0
        # The scores of known features are not read.
        for length, drawn in self._steps(rows, z, scores, lengths):
            new = self.order[at:length]
            shown[new] = rows.T[new, :, None]
            at = length
            self._shown.write(shown, drawn, self._is_known(length))
            read_only = view.view()
            read_only.flags.writeable = False
            yield length, read_only, drawn
