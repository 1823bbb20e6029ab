"""The interface of conditional samplers.

A sampler is a pure function of noise: the same rows, coalition and noise give the same draws, to
the bit, in any batch, process or order. It keeps no generator.

Any object with `fit` and `draw` is accepted as a sampler; its `mean` is used if it has one.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from dsage._check import refusal
from dsage.data.layout import Layout
from dsage.graphs.interventions import Interventions
from dsage.samplers.checks import Floats, Mask
from dsage.samplers.conditioning import normal_scores
from dsage.samplers.latent import Latent
from dsage.samplers.projections import Projected
from dsage.samplers.sums import SumLaw
from dsage.samplers.training import Training

if TYPE_CHECKING:
    from dsage.samplers.device import DeviceSampler

T = TypeVar("T")


class Prefixes(Protocol):
    """Draws along an ordering of the features."""

    def prefixes(
        self,
        X: Any,  # noqa: ANN401
        noise: Floats,
        /,
        lengths: Iterable[int] | None = None,
    ) -> Iterator[tuple[int, Floats]]:
        """Yield lengths of prefixes, and draws given these prefixes.

        See :meth:`dsage.samplers.ordering.Ordering.prefixes`; the noise is as `prepare` returns it.
        """
        ...


class LatentPrefixes(Prefixes, Protocol):
    """Draws along an ordering of the features, with the normal scores behind them."""

    def latent_prefixes(
        self,
        X: Any,  # noqa: ANN401
        noise: Floats,
        /,
        lengths: Iterable[int] | None = None,
    ) -> Iterator[tuple[int, Floats, Latent]]:
        """Yield lengths of prefixes, draws given these prefixes, and their scores."""
        ...


class ProjectedPrefixes(Prefixes, Protocol):
    """Draws along an ordering of the features, with weighted sums of the scores behind them."""

    def projected_prefixes(
        self,
        X: Any,  # noqa: ANN401
        noise: Floats,
        weights: Floats,
        /,
        lengths: Iterable[int] | None = None,
    ) -> Iterator[tuple[int, Floats, Projected]]:
        """Yield lengths of prefixes, draws given these prefixes, and the sums of their scores."""
        ...


class SumPrefixes(Prefixes, Protocol):
    """Draws along an ordering of the features, with the distributions of weighted sums of them."""

    def sum_laws(self, rows: Floats, weights: Floats, /) -> Iterator[SumLaw]:
        """Yield the distributions of sums for all proper prefixes; see :meth:`Sampler.sum_law`."""
        ...


class Sampler(ABC):
    """Draws of the unknown features given the known ones.

    `fit` and `draw` are required. Everything else is optional: attributes say what is available.

    Attributes
    ----------
    layout_ : Layout or None
        The columns that the sampler was fitted to; None if it does not know them.
    feature_names_ : tuple of str or None
        Their names; None if it does not know them.
    takes_missing : bool
        Whether missing numbers are treated as values that are learned, conditioned on and drawn.
    has_mean : bool
        Whether `mean` is available; affine models then need no draws.
    is_marginal : bool
        Whether draws ignore the known features: marginal SAGE, which is a different estimand.
    has_orderings : bool
        Whether `ordering` is available, which draws for all prefixes of an ordering at once.
    has_factors : bool
        Whether orderings are :class:`~dsage.samplers.ordering.Ordering`, with the means and the
        factor of a multivariate normal, which affine models use.
    has_sums : bool
        Whether `sum_law` is available, and `sum_laws` if there are orderings: weighted sums of the
        features given a coalition are normal, or mixtures of normals. Models that predict a link of
        such sums then need no draws of features.
    has_latent : bool
        Whether orderings also return the normal scores behind their draws (`latent_prefixes`).
    n_scores : int
        Number of scores behind the draws of which orderings return weighted sums, with their
        distributions (`projected_prefixes`); 0 if they do not.
    draws_on_device : bool
        Whether `on_device` is available, which draws on a device of PyTorch.
    interventions : Interventions or None
        The effects of interventions, if known features are set rather than observed; None for
        conditional samplers.
    n_hidden : int
        Number of hidden variables that are drawn along with the features. Noise has a column for
        each of them, after the columns of the features.
    may_be_copied : bool
        Whether other processes may draw with copies automatically: draws are the same, and have no
        side effects. This holds for the samplers of this package, except those of functions.
    """

    layout_: Layout | None = None
    feature_names_: tuple[str, ...] | None = None
    takes_missing: ClassVar[bool] = False
    is_marginal: ClassVar[bool] = False
    has_mean: bool = False
    has_orderings: bool = False
    has_factors: bool = False
    has_sums: bool = False
    has_latent: bool = False
    n_scores: int = 0
    draws_on_device: bool = False
    interventions: Interventions | None = None
    n_hidden: int = 0
    may_be_copied: bool = False

    @property
    def equal_rows(self) -> Floats | None:
        """The training rows, encoded, if each is drawn with equal probability for any coalition.

        None for other samplers. Trees then need no draws.
        """
        return None

    def pick_rows(self, noise: Floats) -> npt.NDArray[np.intp]:  # noqa: ARG002
        """Return which of the `equal_rows` noise draws, (n_rows, n_draws).

        Unknown features are those of these rows, for any coalition.
        """
        condition = "one that draws training rows with equal probability"
        raise refusal("sampler", condition, self, "See `equal_rows`", TypeError)

    @abstractmethod
    def fit(self, X: Any) -> Self:  # noqa: ANN401
        """Learn the joint distribution from rows (n_rows, n_features): a frame or an array."""

    def fit_rows(self, X: Any, y: Any = None) -> Self:  # noqa: ANN401, ARG002
        """Learn as `fit` does; `y` is the target, which conditional samplers ignore."""
        return self.fit(X)

    def fit_training(self, training: Training) -> Self:
        """Learn as `fit` does, from rows that other samplers are fitted to as well."""
        return self.fit(training.X)

    @abstractmethod
    def draw(self, X: Any, known: Mask, noise: Floats) -> Floats:  # noqa: ANN401
        """Draw the unknown features jointly, given the known ones.

        Parameters
        ----------
        X : data frame or array of shape (n_rows, n_features)
            The rows. The columns of unknown features are ignored.
        known : bool array of shape (n_features,)
            The coalition.
        noise : array of shape (n_rows, n_draws, n_features)
            Uniforms in (0, 1), one per feature: the only source of randomness.

        Returns
        -------
        array of shape (n_rows, n_draws, n_features)
            Known features keep their values; classes are codes.
        """

    def draw_rows(self, rows: Floats, known: Mask, noise: Floats) -> Floats:
        """Draw as `draw` does, for rows that were encoded and checked before.

        Games draw for the same rows again and again. Checks that were made once need not be
        repeated; by default they are.
        """
        return self.draw(rows, known, noise)

    def draw_coalitions(self, rows: Floats, known: Mask, noise: Floats) -> Floats:
        """Draw as `draw_rows` does, for several coalitions with the same noise.

        Parameters
        ----------
        rows : array of shape (n_rows, n_features)
            Encoded rows.
        known : bool array of shape (n_coalitions, n_features)
            The coalitions.
        noise : array of shape (n_rows, n_draws, n_features)
            As for `draw`.

        Returns
        -------
        array of shape (n_coalitions, n_rows, n_draws, n_features)
        """
        draws = np.empty((len(known), *noise.shape[:2], rows.shape[1]))
        for each, out in zip(known, draws, strict=True):
            out[...] = self.draw_rows(rows, each, noise)
        return draws

    @property
    def name(self) -> str:
        """The name of the sampler in tables and messages."""
        return type(self).__name__

    @property
    def is_fitted(self) -> bool:
        """Whether the sampler can draw."""
        return _has_fitted(vars(self))

    def clone(self) -> Self:
        """Return a copy with the same options, to be fitted."""
        return _clone(self)

    def for_part(self) -> Sampler:
        """Return a copy with the same options, to be fitted to some of the columns."""
        return self.clone()

    def usable(self, matrix: Floats) -> Mask:
        """Return the entries of encoded rows (n_rows, n_features) on which draws can depend.

        The others are left out of the coalition if they are known.
        """
        return np.ones(matrix.shape, bool)

    def mean(self, X: Any, known: Mask) -> Floats:  # noqa: ANN401, ARG002
        """Return the conditional expectation of all features, (n_rows, n_features)."""
        raise self._lacks("that knows conditional means", "Use draw instead")

    def mean_effects(
        self,
        known: Mask,  # noqa: ARG002
        weights: Floats,  # noqa: ARG002
    ) -> tuple[Floats, Floats] | None:
        """Return the expectation of an affine function as a function of the known features.

        None if it is not affine, or not known: then use `mean` row by row.

        Parameters
        ----------
        known : bool array of shape (n_features,)
            The coalition.
        weights : array of shape (n_features, n_outputs)
            The function is ``weights' x``.

        Returns
        -------
        intercept : array of shape (n_outputs,)
        effects : array of shape (n_features, n_outputs)
            ``E[weights' X | x_S] = intercept + effects' x``; zero for unknown features.
        """
        return None

    def sum_law(self, rows: Floats, known: Mask, weights: Floats) -> SumLaw:  # noqa: ARG002
        """Return the distribution of weighted sums of the features, given a coalition.

        Parameters
        ----------
        rows : array of shape (n_rows, n_features)
            Encoded rows. The columns of unknown features are ignored.
        known : bool array of shape (n_features,)
            The coalition.
        weights : array of shape (n_features, n_sums)
            The sums are ``weights' x``.
        """
        raise self._lacks("that knows the distributions of sums", "Use draw instead")

    def ordering(self, order: Sequence[int] | npt.NDArray[np.intp]) -> Prefixes:  # noqa: ARG002
        """Return an object that draws for all prefixes of an ordering of the features."""
        raise self._lacks("that draws along orderings", "Draw for the coalitions instead")

    def prepare(self, noise: Floats) -> Floats:
        """Return noise in the form that draws along orderings take, by default normal scores.

        It is made once, and used for many orderings. It has the shape of the noise.
        """
        return normal_scores(noise)

    def on_device(self, device: Any, dtype: Any) -> DeviceSampler:  # noqa: ANN401, ARG002
        """Return an object that draws on a device of PyTorch, in the precision of `dtype`."""
        advice = "Draw on the CPU instead: TorchPredictor(module, draws='host')"
        raise self._lacks("that draws on a device", advice)

    def _lacks(self, condition: str, advice: str) -> Exception:
        return refusal("sampler", f"one {condition}", self.name, advice, TypeError)


class AdaptedSampler(Sampler):
    """A user's object with `fit` and `draw`, and maybe `mean`, as a :class:`Sampler`."""

    def __init__(self, given: Any) -> None:  # noqa: ANN401
        self._adopt(given)

    def _adopt(self, given: Any) -> None:  # noqa: ANN401
        self.given = given
        self.has_mean = hasattr(given, "mean")
        self.layout_ = getattr(given, "layout_", None)
        names = getattr(given, "feature_names_", None)
        self.feature_names_ = None if names is None else tuple(names)

    def __repr__(self) -> str:
        return repr(self.given)

    def fit(self, X: Any) -> Self:  # noqa: ANN401
        """Fit the object."""
        self._adopt(self.given.fit(X))
        return self

    def draw(self, X: Any, known: Mask, noise: Floats) -> Floats:  # noqa: ANN401
        """Draw from the object."""
        draws: Floats = self.given.draw(X, known, noise)
        return draws

    def mean(self, X: Any, known: Mask) -> Floats:  # noqa: ANN401
        """Return the object's conditional expectation."""
        means: Floats = self.given.mean(X, known)
        return means

    @property
    def name(self) -> str:
        """The class of the object."""
        return type(self.given).__name__

    @property
    def is_fitted(self) -> bool:
        """Whether the object has fitted attributes, which end in an underscore."""
        return _has_fitted(getattr(self.given, "__dict__", {}))

    def clone(self) -> Self:
        """Return an adapter of a copy of the object."""
        return type(self)(_clone(self.given))


def _clone(sampler: T) -> T:
    copied: T = clone(sampler) if hasattr(sampler, "get_params") else copy.deepcopy(sampler)
    return copied


def _has_fitted(names: Iterable[str]) -> bool:
    """Return whether some of an object's attributes are fitted; it need not be scikit-learn's."""
    return any(name.endswith("_") and not name.startswith("__") for name in names)


def check_sampler(sampler: object, parameter: str = "sampler") -> Sampler:
    """Return a sampler, or an object with `fit` and `draw` as one.

    Examples
    --------
    >>> check_sampler("gaussian")
    Traceback (most recent call last):
    TypeError: sampler must be an object with fit and draw; got 'gaussian'. Pass a sampler of
    dsage.samplers, or wrap a function with FunctionSampler.
    """
    condition = "an object with fit and draw"
    if isinstance(sampler, type):
        advice = f"Make an instance: {sampler.__name__}()"
        raise refusal(parameter, condition, sampler, advice, TypeError)
    if isinstance(sampler, Sampler):
        return sampler
    if not (hasattr(sampler, "fit") and hasattr(sampler, "draw")):
        advice = "Pass a sampler of dsage.samplers, or wrap a function with FunctionSampler"
        raise refusal(parameter, condition, sampler, advice, TypeError)
    return AdaptedSampler(sampler)
