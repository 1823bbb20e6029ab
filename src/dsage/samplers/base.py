"""What a conditional sampler is, and what the samplers of the package share.

A sampler is a pure function of noise: the same rows, coalition and noise give the same draws, to
the bit, in any batch, process or order. It keeps no generator.

Any object with `fit` and `draw` is accepted as a sampler; its `mean` is used if it has one.
:class:`BaseSampler` makes it easy to write one, and
:class:`~dsage.samplers.FunctionSampler` turns a function into one.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from dsage._check import check_count, refusal
from dsage.data.layout import Layout
from dsage.samplers.checks import Floats, Mask, check_coalition, check_noise, check_sizes, pick

if TYPE_CHECKING:
    from dsage.samplers.device import DeviceGaussian
    from dsage.samplers.ordering import Ordering

T = TypeVar("T")


class Sampler(ABC):
    """Draws of the unknown features given the known ones.

    `fit` and `draw` are required. The rest is optional: attributes say whether a sampler has it.

    Attributes
    ----------
    layout_ : Layout or None
        The columns that the sampler was fitted to; None if it does not know them.
    feature_names_ : tuple of str or None
        Their names; None if it does not know them.
    has_mean : bool
        Whether `mean` is available; affine models then need no draws.
    has_orderings : bool
        Whether `ordering` is available, which draws for all prefixes of an ordering at once.
    draws_on_device : bool
        Whether `on_device` is available, which draws on a device of PyTorch.
    is_marginal : bool
        Whether draws ignore the known features: marginal SAGE, which is another estimand.
    """

    layout_: Layout | None = None
    feature_names_: tuple[str, ...] | None = None
    has_mean: bool = False
    has_orderings: bool = False
    draws_on_device: bool = False
    is_marginal: ClassVar[bool] = False

    @abstractmethod
    def fit(self, X: Any) -> Self:  # noqa: ANN401
        """Learn the joint distribution from rows (n_rows, n_features): a frame or an array."""

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

    @property
    def name(self) -> str:
        """The name of the sampler in tables and messages."""
        return type(self).__name__

    @property
    def is_fitted(self) -> bool:
        """Whether the sampler can draw."""
        return _is_fitted(self)

    def clone(self) -> Self:
        """Return a copy with the same options, to be fitted."""
        return _clone(self)

    def mean(self, X: Any, known: Mask) -> Floats:  # noqa: ANN401, ARG002
        """Return the conditional expectation of all features, (n_rows, n_features)."""
        raise self._lacks("that knows conditional means", "Use draw instead")

    def ordering(self, order: Sequence[int] | npt.NDArray[np.intp]) -> Ordering:  # noqa: ARG002
        """Return an object that draws for all prefixes of an ordering of the features."""
        raise self._lacks("that draws along orderings", "Draw for the coalitions instead")

    def on_device(self, device: Any, dtype: Any) -> DeviceGaussian:  # noqa: ANN401, ARG002
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
        return _is_fitted(self.given)

    def clone(self) -> Self:
        """Return an adapter of a copy of the object."""
        return type(self)(_clone(self.given))


def _clone(sampler: T) -> T:
    copied: T = clone(sampler) if hasattr(sampler, "get_params") else copy.deepcopy(sampler)
    return copied


def _is_fitted(sampler: object) -> bool:
    """Return whether an object has fitted attributes; it need not be scikit-learn's kind."""
    names = getattr(sampler, "__dict__", {})
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


@dataclass(kw_only=True, eq=False, repr=False)
class BaseSampler(BaseEstimator, Sampler):  # type: ignore[misc]
    """Base class of samplers: checks, frames, chunks of rows and known features.

    A subclass implements

    - ``_fit(X)``, X of shape (n_rows, n_features), float64, classes as codes;
    - ``_draw(X, known, noise) -> (n_rows, n_draws, n_unknown)``: the unknown features only, in
      the order of the columns. It is called with at least one row, one draw and one unknown
      feature. The draws of a row must not depend on the other rows, to the bit. Unknown columns
      of X are 0. `noise` has all features, (n_rows, n_draws, n_features);
    - optionally ``_mean(X, known) -> (n_rows, n_unknown)``, the conditional expectation, which
      makes `mean` available;
    - optionally ``_bytes_per_row(known, n_draws)``, the memory that `_draw` needs for one row.

    Parameters
    ----------
    discrete : str or iterable of str, default=()
        Columns of numbers that are classes. Strings, booleans and categories always are.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        The type of the result; computations are in float64.
    max_bytes : int, default=2**28
        Budget of the working memory, beside the result: rows are drawn in chunks that stay within
        it, or one at a time.

    Attributes
    ----------
    layout_ : dsage.data.layout.Layout
        Turns draws back into frames like the one passed to `fit`: ``layout_.decode(draws[:, 0])``.
    feature_names_ : tuple of str
        The columns, in the order of the last axis of draws.
    n_features_ : int
        Their number.
    n_categories_ : int array of shape (n_features,)
        Number of categories of each feature, 0 if it is continuous.
    """

    discrete: str | Iterable[str] = ()
    dtype: npt.DTypeLike = np.float64
    max_bytes: int = 2**28
    layout_: Layout = field(init=False)
    feature_names_: tuple[str, ...] = field(init=False)

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ANN401, ARG002
        """Learn the joint distribution of the features.

        A fit that fails leaves the sampler as it was.

        Parameters
        ----------
        X : data frame (pandas, polars, pyarrow) or array of shape (n_rows, n_features)
            Training rows, without missing values. Numbers must not exceed 1e150 nor, unless they
            are constant, vary by less than 1e-150: their squares must be floats.
        y : object, optional
            Ignored; present by convention.
        """
        self._result_type()
        check_count(self.max_bytes, "max_bytes")
        layout = Layout.of(X, discrete=self.discrete)
        matrix = layout.encode(X)
        for size, what in zip(matrix.shape, ("row", "column"), strict=True):
            if not size:
                raise refusal("X", f"of at least one {what}", matrix.shape, "Add some")
        check_sizes(matrix, layout)
        before = self.__dict__.copy()
        self._set_layout(layout)
        try:
            self._fit(matrix)
        except BaseException:
            # Half of one fit and half of another would draw without an error.
            self.__dict__ = before
            raise
        return self

    def _set_layout(self, layout: Layout) -> None:
        self.layout_ = layout
        self.feature_names_ = layout.names
        self.n_features_ = len(layout.names)
        self.n_categories_ = layout.n_categories

    def draw(self, X: Any, known: Mask, noise: Floats) -> Floats:  # noqa: ANN401
        """Draw the unknown features jointly, given the known ones; see :meth:`Sampler.draw`.

        Columns of a frame are found by name. If `fit` received a frame, an array is taken as
        encoded already, classes as codes. ``layout_.decode`` converts draws into a frame.
        """
        rows, known = self._encode(X, known)
        noise = check_noise(noise, len(rows), self.n_features_)
        drawn = np.empty(noise.shape, self._result_type())
        drawn[:, :, known] = rows[:, None, known]
        if not known.all():
            for chunk in self._chunks(len(rows), known, noise.shape[1]):
                drawn[chunk, :, ~known] = self._draw(rows[chunk], known, noise[chunk])
        return drawn

    def _encode(self, X: Any, known: npt.ArrayLike) -> tuple[Floats, Mask]:  # noqa: ANN401
        """Return rows as a matrix, unknown columns as 0, and the coalition, both checked."""
        check_is_fitted(self)
        known = check_coalition(known, self.feature_names_)
        return self.layout_.encode(X, known), known

    @property
    def has_mean(self) -> bool:  # type: ignore[override]
        """Whether `mean` is available: `_mean` is implemented."""
        return type(self)._mean is not BaseSampler._mean

    def mean(self, X: Any, known: Mask) -> Floats:  # noqa: ANN401
        """Return the conditional expectation of the features given the known ones.

        Parameters
        ----------
        X : data frame or array of shape (n_rows, n_features)
            The rows, as for `draw`.
        known : bool array of shape (n_features,)
            The coalition. Unknown features must be continuous: classes have no mean.

        Returns
        -------
        array of shape (n_rows, n_features)
            Known features keep their values.
        """
        if not self.has_mean:
            return Sampler.mean(self, X, known)
        rows, known = self._encode(X, known)
        if discrete := pick(self.feature_names_, ~known & (self.n_categories_ > 0)):
            advice = "Classes have no mean: use draw, or make these columns known"
            raise refusal("known", "true for all columns of classes", discrete, advice)
        means = rows.astype(self._result_type())
        if not known.all():
            for chunk in self._chunks(len(rows), known, 1):
                means[chunk, ~known] = self._mean(rows[chunk], known)
        return means

    def _fit(self, X: Floats) -> None:
        raise NotImplementedError

    def _draw(self, X: Floats, known: Mask, noise: Floats) -> Floats:
        raise NotImplementedError

    def _mean(self, X: Floats, known: Mask) -> Floats:
        raise NotImplementedError

    def _bytes_per_row(self, known: Mask, n_draws: int) -> int:
        """Return the memory that `_draw` needs for a row: four arrays as large as the noise."""
        return 4 * 8 * n_draws * len(known)

    def _chunks(self, n_rows: int, known: Mask, n_draws: int) -> Iterator[slice]:
        step = max(1, self.max_bytes // self._bytes_per_row(known, n_draws))
        for start in range(0, n_rows, step):
            yield slice(start, min(start + step, n_rows))

    def _result_type(self) -> np.dtype[Any]:
        try:
            dtype = np.dtype(self.dtype)
        except TypeError:
            dtype = np.dtype(object)
        if dtype not in (np.float64, np.float32):
            raise refusal("dtype", "float64 or float32", self.dtype, "Use one of these of NumPy")
        return dtype
