"""Draws under interventions: known features are set, not observed."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from dsage._check import check_shape, refusal
from dsage.data.layout import Layout
from dsage.graphs.graph import Graph
from dsage.graphs.interventions import Interventions, Mechanism
from dsage.samplers.base import BaseSampler, Sampler, check_sampler
from dsage.samplers.checks import Floats, Mask
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.mechanisms import Drawer, LinearDrawer, SampledDrawer

Key = tuple[int, tuple[int, ...]]
"""A variable, and those that its mechanism depends on."""


class _Training(NamedTuple):
    """The training rows, encoded: the features and, if it matters, the target."""

    layout: Layout
    matrix: Floats


@dataclass(kw_only=True, eq=False, repr=False)
class Interventional(BaseSampler):
    """Draw the unknown features after an intervention that *sets* the known ones to their values.

    The draws have the distribution ``p(x_unknown | do(x_known))``. Unknown features are drawn in a
    topological order of the graph, each given its parents: known parents at their values, unknown
    ones as they were drawn. Variables that are not effects of the known features keep their
    distribution and, with the same noise, their draws.

    Each variable is drawn by a copy of `sampler` that is fitted to the variable and its parents
    alone. A Gaussian sampler is not copied: its means and covariances give the regressions of all
    variables on their parents, so that the means of all features after an intervention are known
    in closed form.

    Parameters
    ----------
    sampler : Sampler
        What draws a variable given others, such as ``Gaussian()`` or ``Mix()``. A fitted Gaussian
        is used unchanged.
    graph : Graph
        A graph without directed cycles; see :class:`~dsage.graphs.interventions.Interventions` for
        bidirected edges and for hidden nodes.
    target : str, optional
        The target, if it is a node of the graph. If features depend on it, it is drawn, too, from
        its own noise (the last column), and `fit` needs its values.
    is_class : bool, default=False
        Whether a target of numbers is a class.
    dtype, max_bytes
        As in :class:`~dsage.samplers.base.BaseSampler`.

    Examples
    --------
    A cause and its effect: setting the effect says nothing about the cause.

    >>> graph = Graph(["cause", "effect"], [("cause", "effect")])
    >>> seen = Gaussian.from_moments([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]], ["cause", "effect"])
    >>> rows = pd.DataFrame({"cause": [0.0, 1.0], "effect": [0.0, 1.0]})
    >>> sampler = Interventional(sampler=seen, graph=graph).fit(rows)
    >>> X = np.array([[2.0, 2.0]])
    >>> sampler.mean(X, np.array([True, False])), sampler.mean(X, np.array([False, True]))
    (array([[2. , 1.6]]), array([[0., 2.]]))
    >>> seen.mean(X, np.array([False, True]))
    array([[1.6, 2. ]])
    """

    takes_missing = True
    sampler: Any
    graph: Graph
    target: str | None = None
    is_class: bool = False
    interventions: Interventions | None = field(init=False, default=None)
    n_hidden: int = field(init=False, default=0)

    @property
    def may_be_copied(self) -> bool:  # type: ignore[override]
        """Whether copies may draw in other processes: if that holds for the sampler."""
        return check_sampler(self.sampler).may_be_copied

    @property
    def name(self) -> str:
        """The name of the sampler that draws each variable."""
        return check_sampler(self.sampler).name

    @property
    def is_fitted(self) -> bool:
        """Whether the sampler can draw."""
        return self.interventions is not None

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ANN401
        """Learn the mechanism of each feature.

        Parameters
        ----------
        X : data frame (pandas, polars, pyarrow) or array of shape (n_rows, n_features)
            Training rows.
        y : array of shape (n_rows,), optional
            The target; needed if features depend on it.
        """
        before = self.__dict__.copy()
        self._y = None if y is None or self.target is None else y
        self.n_hidden = 0
        try:
            return super().fit(X)
        except BaseException:
            self.__dict__ = before
            raise
        finally:
            self.__dict__.pop("_y", None)

    def fit_rows(self, X: Any, y: Any = None) -> Self:  # noqa: ANN401
        """Learn from the rows and the target."""
        return self.fit(X, y)

    def _fit(self, X: Floats) -> None:
        base = check_sampler(self.sampler)
        if base.is_marginal:
            advice = "Marginal draws ignore what causes what: use 'gaussian', 'mix' or another"
            raise refusal("sampler", "a conditional one", base.name, advice)
        self.interventions = self._find_interventions(self.graph)
        layout, matrix = self.layout_, X
        if self._y is not None:
            column_of_y = pd.DataFrame({str(self.target): np.asarray(self._y)})
            own = Layout.of(column_of_y, discrete=[str(self.target)] if self.is_class else ())
            column = own.encode(column_of_y)
            check_shape(column, (len(X), 1), "y", "Pass one target per row")
            layout, matrix = layout.beside(own), np.concatenate([X, column], axis=1)
            self.n_hidden = 1
        elif self.interventions.target is not None and not self._is_given(base):
            advice = "Features depend on the target: pass its values"
            raise refusal("y", "given", None, advice, TypeError)
        self._training = _Training(layout, matrix)
        self._drawers: dict[Key, Drawer] = {}
        self._gaussian = self._fit_gaussian(base)
        if self.interventions.target is not None:
            self.n_hidden = 1
        self._prepare()

    def _find_interventions(self, graph: Graph) -> Interventions:
        target = self.target if self.target in graph else None
        return Interventions(graph, self.feature_names_, target)

    @staticmethod
    def _is_given(base: Sampler) -> bool:
        """Whether means and covariances are given."""
        return type(base) is Gaussian and base.is_fitted

    def _fit_gaussian(self, base: Sampler) -> Gaussian | None:
        """Return the Gaussian whose moments give all mechanisms; None for other samplers."""
        layout, matrix = self._training
        if type(base) is not Gaussian or layout.may_miss.any():
            return None
        if not base.is_fitted:
            return base.clone().fit_encoded(layout, matrix)
        names = (*self.feature_names_, *([] if self.target is None else [self.target]))
        least = self._need_of_target.names
        if base.feature_names_ not in (names, least):
            condition = f"fitted to {list(least)}, in this order"
            advice = "These are the features and, if features depend on it, the target"
            raise refusal("sampler", condition, list(base.feature_names_), advice)
        return base

    @property
    def _need_of_target(self) -> Interventions:
        if self.interventions is None:
            raise refusal("sampler", "fitted", self, "Call fit first")
        return self.interventions

    def with_graph(self, graph: Graph) -> Self:
        """Return the same sampler for another graph of the same variables.

        Mechanisms that both graphs have in common are fitted once.
        """
        other = copy.copy(self)
        other.graph = graph
        other.interventions = other._find_interventions(graph)
        n_variables = len(self._training.layout.names)
        if self._gaussian is not None:
            n_variables = len(self._gaussian.feature_names_)
        if len(other.interventions.names) > n_variables:
            advice = "Features depend on the target: fit the sampler with its values"
            raise refusal("graph", "one without causes among the targets", self.target, advice)
        other._prepare()
        return other

    def _prepare(self) -> None:
        for mechanism in self._need_of_target.mechanisms:
            key = mechanism.node, mechanism.given
            if key not in self._drawers:
                self._drawers[key] = self._make_drawer(*key)

    def _make_drawer(self, node: int, given: Sequence[int]) -> Drawer:
        if self._gaussian is not None:
            moments = self._gaussian.mean_, self._gaussian.covariance_
            return LinearDrawer(*moments, node, given)
        layout, matrix = self._training
        base, max_bytes = check_sampler(self.sampler), max(1, self.max_bytes // 4)
        return SampledDrawer(base, layout, matrix, node, given, max_bytes)

    def _bytes_per_row(self, known: Mask, n_draws: int) -> int:
        widest = max(len(each.given) for each in self._need_of_target.mechanisms)
        # All variables as drawn, and for one of them rows, noise and draws of its family.
        return 8 * n_draws * (2 * len(known) + 12 * (widest + 1))

    def _draw(self, X: Floats, known: Mask, noise: Floats) -> Floats:
        n_features = len(known)
        shape = (*noise.shape[:2], int((~known).sum()))
        draws, place = np.empty(shape), np.cumsum(~known) - 1
        actual: dict[int, Floats] = {int(at): X[:, at, None] for at in np.flatnonzero(known)}
        # The values that variables have, or would have had without the intervention.
        natural: dict[int, Floats] = {}
        for node, given, are_natural in self._needed(known):
            sources = [
                (natural if is_natural else actual)[each]
                for each, is_natural in zip(given, are_natural, strict=True)
            ]
            uniforms = np.ascontiguousarray(noise[:, :, node])
            natural[node] = self._drawers[node, given].draw(sources, uniforms)
            actual.setdefault(node, natural[node])
            if node < n_features and not known[node]:
                draws[:, :, place[node]] = natural[node]
        return draws

    def _needed(self, known: Mask) -> Iterator[Mechanism]:
        """Yield the mechanisms that draws given a coalition need, causes first."""
        mechanisms, n_features = self._need_of_target.mechanisms, len(known)
        needed = {int(at) for at in np.flatnonzero(~known)}
        for node, given, are_natural in reversed(mechanisms):
            if node in needed:
                for each, is_natural in zip(given, are_natural, strict=True):
                    if is_natural or each >= n_features or not known[each]:
                        needed.add(each)
        return (each for each in mechanisms if each.node in needed)

    @property
    def has_mean(self) -> bool:  # type: ignore[override]
        """Whether `mean` is available: all mechanisms are linear."""
        return self.is_fitted and self._gaussian is not None

    def _mean(self, X: Floats, known: Mask) -> Floats:
        intercept, effects = self._effects(known, np.eye(len(known))[:, ~known])
        means: Floats = intercept + np.einsum("rf,fo->ro", X[:, known], effects[known])
        return means

    def mean_effects(self, known: Mask, weights: Floats) -> tuple[Floats, Floats] | None:
        """Return the expectation of an affine function; see :meth:`Sampler.mean_effects`."""
        return self._effects(known, weights) if self.has_mean else None

    def _effects(self, known: Mask, weights: Floats) -> tuple[Floats, Floats]:
        """Return intercept and effects of ``E[weights' X | do(x_known)]``, from effects to causes.

        The weight of an unknown variable passes to those that its mechanism depends on.
        """
        n_names = len(self._need_of_target.names)
        actual = np.zeros((n_names, weights.shape[1]))
        actual[: len(weights)] = weights
        natural = np.zeros_like(actual)
        intercept = np.zeros(weights.shape[1])
        for node, given, are_natural in reversed(self._need_of_target.mechanisms):
            own = natural[node]
            if node >= len(known) or not known[node]:
                own = own + actual[node]
                actual[node] = 0.0
            drawer = self._drawers[node, given]
            if not isinstance(drawer, LinearDrawer):
                raise self._lacks("that knows conditional means", "Use draw instead")
            intercept += drawer.intercept * own
            for slope, each, is_natural in zip(drawer.slopes, given, are_natural, strict=True):
                (natural if is_natural else actual)[each] += slope * own
        return intercept, actual[: len(known)]
