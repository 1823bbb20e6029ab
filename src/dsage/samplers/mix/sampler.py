"""The mixture sampler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dsage._check import check_count
from dsage._random import RandomState, Streams
from dsage.data.layout import Layout
from dsage.samplers.base import BaseSampler, Sampler
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.device import DeviceMix, DeviceSampler, Place
from dsage.samplers.gaps import read_rows
from dsage.samplers.mix.paths import Drawer, Path
from dsage.samplers.mix.select import fit_mixture
from dsage.samplers.mix.variables import Variables
from dsage.samplers.projections import Projected
from dsage.samplers.registry import ANY_DATA, SAMPLERS

_PREFIX_BYTES = 2**26  # of the draws for several prefixes at a time


@SAMPLERS.register(
    "mix",
    summary="a mixture of normals times tables, for mixed, clustered, curved and incomplete data",
    fits=ANY_DATA,
    candidate_for=ANY_DATA,
    complexity=3,
    draw_cost=0.12,
    call_cost=100.0,
    fit_cost=4.0,
    fit_seconds=0.1,
)
@dataclass(kw_only=True, eq=False, repr=False)
class Mix(BaseSampler):
    r"""Draw from a mixture of Gaussians times tables.

    With weights :math:`w_k`, numbers z and table variables b,

    .. math:: p(x) = \sum_k w_k \, N(z; m_k, S_k) \prod_b T_{kb}[x_b \mid x_{parent(b)}].

    Tables have the states of a class, of codes (numbers with few values), of columns of zeros and
    ones that exclude each other, and of the special values of a number: missing, and values that
    many rows share. Within a component, numbers are Gaussian and independent of the tables; tables
    are independent, or form trees (Chow & Liu) if that fits better. Given the known features,
    Bayes' rule gives the probabilities of the components. So a missing value can be conditioned on,
    and values are drawn as missing with their conditional probability.

    The likelihood of held-out rows chooses the number of components, whether tables form trees,
    whether numbers are turned into normal scores, and how much covariances are shrunk to the pooled
    one. The sampler is the average of several fits from different starts: a single fit can be far
    off.

    Rare categories of a class with many categories share a state with similar ones. Categories
    that do not occur in training have no influence on other features.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of components of each fit.
    n_fits : int, default=5
        Number of fits that are averaged.
    random_state : int, numpy Generator or None, default=0
        Seed of the fits; draws depend on their noise only.
    discrete, kinds, groups, dtype, max_bytes
        As in :class:`~dsage.samplers.base.BaseSampler`.

    Attributes
    ----------
    fit_ : dsage.samplers.mix.select.Fit
        The components, the margins of numbers, and the held-out likelihoods of all choices.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> side = rng.choice([-3.0, 3.0], 400)
    >>> X = np.column_stack([side, side]) + rng.standard_normal((400, 2))
    >>> sampler = Mix().fit(X)
    >>> draws = sampler.draw([[3.0, 0.0]], np.array([True, False]), rng.random((1, 100, 2)))
    >>> bool(draws[0, :, 1].mean() > 2)
    True
    """

    n_components: int | Literal["auto"] = "auto"
    n_fits: int = 5
    random_state: RandomState = 0
    takes_missing = True

    def _fit(self, X: Floats) -> None:
        size = self.n_components
        variables = Variables.of(X, self.layout_)
        values, states = variables.read(X)
        self.fit_ = fit_mixture(
            values,
            states,
            variables.n_states,
            Streams(self.random_state),
            size=None if size == "auto" else check_count(size, "n_components"),
            n_fits=check_count(self.n_fits, "n_fits"),
        )
        fit = self.fit_
        self._drawer = Drawer(variables, fit.components, fit.margins, fit.trees)

    def usable(self, rows: Floats) -> Mask:
        """Return that all entries can be conditioned on: what is new to the fit says nothing."""
        return np.ones(rows.shape, bool)

    def _draw(self, X: Floats, known: Mask, noise: Floats) -> Floats:
        order = np.flatnonzero(known)
        drawn: Floats = self._drawer.along(X, noise, order).draw([len(order)])[0]
        return drawn[..., ~known]

    @property
    def n_scores(self) -> int:  # type: ignore[override]
        """Number of columns that are drawn as numbers; see :class:`Sampler`."""
        return len(self._drawer.variables.numbers) if self.is_fitted else 0

    def ordering(self, order: Sequence[int] | npt.NDArray[np.intp]) -> MixOrdering:
        """Return an object that draws for all prefixes of an ordering of the features."""
        positions = self._check_order(order)
        return MixOrdering(self._drawer, self.layout_, positions)

    @property
    def draws_on_device(self) -> bool:  # type: ignore[override]
        """Whether `on_device` is available: all columns are numbers without special values."""
        is_able = super().draws_on_device
        return is_able and (not self.is_fitted or self._drawer.variables.is_plain)

    def on_device(self, device: Any, dtype: Any) -> DeviceSampler:  # noqa: ANN401
        """Return an object that draws on a device of PyTorch, in the precision of `dtype`."""
        if not self.draws_on_device:
            return Sampler.on_device(self, device, dtype)
        drawer = self._drawer
        place = Place(device, dtype)
        return DeviceMix(drawer.components, drawer.margins, self.layout_, place)

    def prepare(self, noise: Floats) -> Floats:
        """Return the noise itself, which `ordering` takes."""
        return noise

    def _bytes_per_row(self, known: Mask, n_draws: int) -> int:
        n_numbers = len(self._drawer.variables.numbers)
        n_components = len(self._drawer.components)
        return 8 * (
            n_draws * (5 * n_numbers + 2 * len(known) + 8) + n_components * (4 * n_numbers + 4)
        )


class MixOrdering:
    """All prefixes of one ordering, from one factorization (made by :meth:`Mix.ordering`)."""

    def __init__(self, drawer: Drawer, layout: Layout, order: Ints) -> None:
        self._drawer, self._layout, self.order = drawer, layout, order

    def prefixes(
        self,
        X: Any,  # noqa: ANN401
        noise: Floats,
        lengths: Iterable[int] | None = None,
    ) -> Iterator[tuple[int, Floats]]:
        """Draw the features after each prefix of the ordering, given the prefix.

        Parameters
        ----------
        X : data frame or array of shape (n_rows, n_features)
            Rows. The distribution of draws for a prefix depends on its features only.
        noise : array of shape (n_rows, n_draws, n_features)
            Uniforms in (0, 1).
        lengths : iterable of int, optional
            The lengths of the prefixes, ascending; by default all, 0 to n_features.

        Yields
        ------
        int, array of shape (n_rows, n_draws, n_features)
            The length of a prefix, and the draws.
        """
        for some, path in self._chunks(X, noise, lengths):
            for length, draws in zip(some, path.draw(some), strict=True):
                yield length, self._move(draws, length)

    def projected_prefixes(
        self,
        X: Any,  # noqa: ANN401
        noise: Floats,
        weights: Floats,
        lengths: Iterable[int] | None = None,
    ) -> Iterator[tuple[int, Floats, Projected]]:
        """Draw as `prefixes` does, and also return sums of the scores behind the draws.

        The scores are those of the numbers, on the scale of the mixture.

        Parameters
        ----------
        X, noise, lengths
            As in `prefixes`.
        weights : array of shape (n_scores, n_sums)
            The weights of the scores in the sums.

        Yields
        ------
        int, array of shape (n_rows, n_draws, n_features), Projected
            The length of a prefix, the draws, and the sums.
        """
        for some, path in self._chunks(X, noise, lengths):
            drawn, sums = path.draw_sums(some, weights)
            for length, draws, projected in zip(some, drawn, sums, strict=True):
                yield length, self._move(draws, length), projected

    def _chunks(
        self,
        X: Any,  # noqa: ANN401
        noise: Floats,
        lengths: Iterable[int] | None,
    ) -> Iterator[tuple[list[int], Path]]:
        """Yield lengths of prefixes to draw for at a time, and the path that they share."""
        chosen = list(range(len(self.order) + 1) if lengths is None else lengths)
        rows = read_rows(self._layout, X, np.ones(len(self.order), bool))
        n_numbers = len(self._drawer.variables.numbers)
        each = 8 * noise.shape[0] * noise.shape[1] * (4 * n_numbers + 2 * len(self.order) + 8)
        at_once = max(1, _PREFIX_BYTES // max(1, each))
        path = self._drawer.along(rows, noise, self.order)
        for first in range(0, len(chosen), at_once):
            yield chosen[first : first + at_once], path

    def _move(self, draws: Floats, length: int) -> Floats:
        """Move draws for a prefix to possible values, in place."""
        known = np.zeros(len(self.order), bool)
        known[self.order[:length]] = True
        self._layout.possible.snap(draws, known)
        return draws
