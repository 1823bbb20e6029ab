"""What a conditional sampler is, and what all of ours share.

A sampler is a pure function of noise: the same rows, coalition and noise give the same draws, to
the bit, in any batch, process or order. It keeps no generator.

Any object with `fit` and `draw` as in :class:`Sampler` is accepted wherever a sampler is; a `mean`
is used where there is one. :class:`BaseSampler` is the shorter way to such an object, and
:class:`~dsage.samplers.FunctionSampler` makes one of a function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dsage._check import check_count, refusal, warn
from dsage.data.layout import Layout

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

LARGEST = 1e150
"""Numbers beyond this have no square among floats."""


@runtime_checkable
class Sampler(Protocol):
    """Draws of the unknown features given the known ones: any object with these methods will do."""

    def fit(self, X: Any) -> Self:  # noqa: ANN401
        """Learn the joint distribution from rows (n_rows, n_features): a frame or an array."""
        ...

    def draw(self, X: Any, known: Mask, noise: Floats) -> Floats:  # noqa: ANN401
        """Draw the unknown features jointly, given the known ones.

        Parameters
        ----------
        X : data frame or array of shape (n_rows, n_features)
            The rows; what stands in the columns of unknown features is not looked at.
        known : bool array of shape (n_features,)
            The coalition.
        noise : array of shape (n_rows, n_draws, n_features)
            Uniforms in (0, 1), one a feature: the only source of randomness.

        Returns
        -------
        array of shape (n_rows, n_draws, n_features)
            Known features keep their values; categories are codes.
        """
        ...


def check_sampler(sampler: object, parameter: str = "sampler") -> Sampler:
    """Return `sampler` if it has the methods of a sampler: any object with `fit` and `draw`.

    Examples
    --------
    >>> check_sampler("gaussian")
    Traceback (most recent call last):
    TypeError: sampler must be an object with fit and draw; got 'gaussian'. Give a sampler of
    dsage.samplers, or wrap a function with FunctionSampler.
    """
    if isinstance(sampler, type) or not isinstance(sampler, Sampler):
        advice = "Give a sampler of dsage.samplers, or wrap a function with FunctionSampler"
        if isinstance(sampler, type):
            advice = f"Make an instance: {sampler.__name__}()"
        raise refusal(parameter, "an object with fit and draw", sampler, advice, TypeError)
    return sampler


def _has_mean(sampler: object) -> bool:
    return hasattr(sampler, "_mean")


class BaseSampler(BaseEstimator):  # type: ignore[misc]
    """All of a sampler but the distribution: checks, frames, blocks of rows, known features.

    A sampler derives from this class and implements

    - ``_fit(X)``, X of shape (n_rows, n_features), float64, classes as codes;
    - ``_draw(X, known, noise) -> (n_rows, n_draws, n_unknown)``: the unknown features only, in
      the order of the columns. It is called with at least one row, one draw and one unknown
      feature, and must treat each row alone: to the bit the same whatever the other rows are.
      Unknown columns of X are 0. `noise` has all features, (n_rows, n_draws, n_features);
    - optionally ``_mean(X, known) -> (n_rows, n_unknown)``, the conditional expectation; `mean`
      exists only where this does;
    - optionally ``_bytes_a_row(known, n_draws)``, what `_draw` needs for one row.

    Parameters
    ----------
    discrete : str or iterable of str, default=()
        Columns of numbers that are classes. Strings, booleans and categories always are.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        The type of the result; computations are in float64.
    max_bytes : int, default=2**28
        Rows are drawn in blocks so small that a block's working memory stays within this
        budget (beside the result), or one at a time.

    Attributes
    ----------
    layout_ : dsage.data.layout.Layout
        Turns draws back into frames like the one given to `fit`: ``layout_.decode(draws[:, 0])``.
    feature_names_ : tuple of str
        The columns, in the order of the last axis of draws.
    n_features_ : int
        Their number.
    n_levels_ : int array of shape (n_features,)
        Number of levels of each feature, 0 where it is continuous.
    """

    layout_: Layout
    feature_names_: tuple[str, ...]
    n_features_: int
    n_levels_: npt.NDArray[np.intp]

    def __init__(
        self,
        *,
        discrete: str | Iterable[str] = (),
        dtype: npt.DTypeLike = np.float64,
        max_bytes: int = 2**28,
    ) -> None:
        self.discrete = discrete
        self.dtype = dtype
        self.max_bytes = max_bytes

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ANN401, ARG002
        """Learn the joint distribution of the features.

        A fit that fails leaves the sampler as it was.

        Parameters
        ----------
        X : data frame (pandas, polars, pyarrow) or array of shape (n_rows, n_features)
            Training rows, without missing values. Numbers must not exceed 1e150 nor, unless they
            are constant, vary by less than 1e-150, lest their squares leave the range of floats.
        y : object, optional
            Ignored; as in scikit-learn.
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
        self.layout_ = layout
        self.feature_names_ = layout.names
        self.n_features_ = len(layout.names)
        self.n_levels_ = layout.n_categories
        try:
            self._fit(matrix)
        except BaseException:
            # Half of one fit and half of another would draw without complaint.
            self.__dict__ = before
            raise
        return self

    def draw(self, X: Any, known: Mask, noise: Floats) -> Floats:  # noqa: ANN401
        """Draw the unknown features jointly, given the known ones.

        Parameters
        ----------
        X : data frame or array of shape (n_rows, n_features)
            The rows. Columns of a frame are found by name; what stands in those of unknown
            features is not looked at. Where `fit` had a frame, an array is one that is encoded
            already, classes as codes.
        known : bool array of shape (n_features,)
            The coalition.
        noise : array of shape (n_rows, n_draws, n_features)
            Uniforms in (0, 1), one a feature: the only source of randomness.

        Returns
        -------
        array of shape (n_rows, n_draws, n_features)
            Known features keep their values; classes are codes. ``layout_.decode`` makes a frame
            of it.
        """
        check_is_fitted(self)
        known = check_coalition(known, self.feature_names_)
        rows = self.layout_.encode(X, known)
        noise = check_noise(noise, len(rows), self.n_features_)
        n_draws = noise.shape[1]
        drawn = np.empty(noise.shape, self._result_type())
        drawn[:, :, known] = rows[:, None, known]
        if not known.all():
            for block in self._blocks(len(rows), known, n_draws):
                drawn[block, :, ~known] = self._draw(rows[block], known, noise[block])
        return drawn

    @available_if(_has_mean)  # type: ignore[untyped-decorator]
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
        check_is_fitted(self)
        known = check_coalition(known, self.feature_names_)
        if (discrete := ~known & (self.n_levels_ > 0)).any():
            classes = [self.feature_names_[at] for at in np.flatnonzero(discrete)]
            raise refusal(
                "known",
                "true for all columns of classes when a mean is asked for",
                classes,
                "Classes have no mean: use draw, or make these columns known",
            )
        rows = self.layout_.encode(X, known)
        means = rows.astype(self._result_type())
        if not known.all():
            for block in self._blocks(len(rows), known, 1):
                means[block, ~known] = self._mean(rows[block], known)
        return means

    def _fit(self, X: Floats) -> None:
        raise NotImplementedError

    def _draw(self, X: Floats, known: Mask, noise: Floats) -> Floats:
        raise NotImplementedError

    def _bytes_a_row(self, known: Mask, n_draws: int) -> int:
        """Return the memory that `_draw` needs for a row: here, four arrays as large as noise."""
        return 4 * 8 * n_draws * len(known)

    def _blocks(self, n_rows: int, known: Mask, n_draws: int) -> Iterator[slice]:
        step = max(1, self.max_bytes // self._bytes_a_row(known, n_draws))
        for start in range(0, n_rows, step):
            yield slice(start, min(start + step, n_rows))

    def _result_type(self) -> np.dtype[Any]:
        try:
            dtype = np.dtype(self.dtype)
        except TypeError:
            dtype = np.dtype(object)
        if dtype not in (np.float64, np.float32):
            raise refusal("dtype", "float64 or float32", self.dtype, "Use one of numpy's two")
        return dtype


def check_sizes(matrix: Floats, layout: Layout) -> None:
    """Refuse numbers whose squares are no floats, by the names of their columns."""
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    huge = np.maximum(-low, high) > LARGEST
    # Halved, for the spread of numbers near the largest float is none.
    tiny = (low < high) & (high / 2 - low / 2 < 1 / LARGEST)
    bad = (layout.n_categories == 0) & (huge | tiny)
    if bad.any():
        raise refusal(
            "X",
            f"of columns that stay below {LARGEST:g} and vary by more than {1 / LARGEST:g}",
            [layout.names[at] for at in np.flatnonzero(bad)],
            "Use other units for these columns",
        )


def warn_of_copies(X: Floats, layout: Layout, consequence: str, among: Mask | None = None) -> None:
    """Warn of columns that repeat others, by name; constants repeat nothing."""
    first: dict[tuple[bool, bytes], str] = {}
    copies = []
    for at, (name, column) in enumerate(zip(layout.names, X.T, strict=True)):
        if (among is not None and not among[at]) or column.min() == column.max():
            continue
        # Zero is added to make one zero of two.
        key = bool(layout.n_categories[at]), (column + 0.0).tobytes()
        if key in first:
            copies.append(f"{name!r} repeats {first[key]!r}")
        first.setdefault(key, name)
    if copies:
        more = f" and {len(copies) - 10} more" if len(copies) > 10 else ""
        warn(f"Some columns are copies: {', '.join(copies[:10])}{more}. {consequence}")


def check_coalition(known: npt.ArrayLike, feature_names: Sequence[str]) -> Mask:
    """Return one coalition as a boolean array (n_features,)."""
    array = np.asarray(known)
    if array.dtype != np.bool_:
        raise refusal(
            "known", "a boolean array", array.dtype, "Use np.asarray(known, dtype=bool)", TypeError
        )
    if array.shape != (len(feature_names),):
        shown = ", ".join(feature_names[:6]) + (", ..." if len(feature_names) > 6 else "")
        raise refusal(
            "known",
            f"of shape ({len(feature_names)},)",
            array.shape,
            f"Give one entry for each of the features {shown}",
        )
    return array


def check_noise(noise: npt.ArrayLike, n_rows: int, n_features: int) -> Floats:
    """Return noise as floats (n_rows, n_draws, n_features), all strictly between 0 and 1."""
    array = np.asarray(noise, dtype=np.float64)
    shape = f"({n_rows}, n_draws, {n_features})"
    if array.ndim != 3 or array.shape[0] != n_rows or array.shape[2] != n_features:
        raise refusal("noise", f"of shape {shape}", array.shape, "Give one uniform a feature")
    if array.shape[1] < 1:
        raise refusal("noise", f"of shape {shape}", array.shape, "Give at least one draw")
    if array.size and not (array.min() > 0.0 and array.max() < 1.0):
        bad = array[~((array > 0.0) & (array < 1.0))][0]
        raise refusal("noise", "strictly between 0 and 1", float(bad), "Draw uniforms in (0, 1)")
    return array
