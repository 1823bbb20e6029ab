"""Base class of the package's samplers: checks, frames, chunks, missing and possible values.

See :mod:`dsage.samplers.interface` for what a sampler is. :class:`BaseSampler` makes it easy to
write one, and :class:`~dsage.samplers.FunctionSampler` turns a function into one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dsage._check import check_count, refusal
from dsage.data.layout import Layout
from dsage.data.possible import Possible
from dsage.samplers.checks import (
    Floats,
    Ints,
    Mask,
    check_coalition,
    check_noise,
    check_sizes,
    pick,
)
from dsage.samplers.gaps import Gaps, read_rows, split_by_pattern
from dsage.samplers.interface import AdaptedSampler, Sampler, check_sampler
from dsage.samplers.training import Training

__all__ = ["AdaptedSampler", "BaseSampler", "Result", "Sampler", "Write", "check_sampler"]

Result = npt.NDArray[np.floating[Any]]
Write = Callable[[Result, Floats, Mask, Floats], None]


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

    Neither receives categories that training lacks, nor missing numbers, unless `takes_missing` is
    set on the class: then missing numbers are NaN, in the columns where training has some
    (``layout_.may_miss``). For other samplers the base class fills the gaps of training rows, draws
    which unknown numbers are missing, and leaves known ones that are missing out of the coalition;
    see :class:`~dsage.samplers.gaps.Gaps`. A missing class is a category.

    Parameters
    ----------
    discrete : str or iterable of str, default=()
        Columns of numbers that are classes. Strings, booleans and categories always are.
    kinds : dict of str to str, optional
        Kinds of columns that would be guessed wrong, such as ``{"zip": "class"}``; see
        :mod:`dsage.data.kinds`.
    groups : dict of str to list of str, optional
        Groups of columns: zeros and ones in one group may exclude each other.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        The type of the result; computations are in float64.
    max_bytes : int, default=2**28
        Budget of the working memory, without the result: rows are drawn in chunks that stay within
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
    kinds: Mapping[str, str] | None = None
    groups: Mapping[str, Iterable[str]] | None = None
    dtype: npt.DTypeLike = np.float64
    max_bytes: int = 2**28
    layout_: Layout = field(init=False)
    feature_names_: tuple[str, ...] = field(init=False)
    _gaps: Gaps | None = field(init=False, default=None)

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ANN401, ARG002
        """Learn the joint distribution of the features.

        A fit that fails leaves the sampler as it was.

        Parameters
        ----------
        X : data frame (pandas, polars, pyarrow) or array of shape (n_rows, n_features)
            Training rows. Numbers must not exceed 1e150 nor, unless they are constant, vary by less
            than 1e-150: their squares must be floats.
        y : object, optional
            Ignored; present by convention.
        """
        self._check_options()
        layout = Layout.of(X, **self._columns)
        return self.fit_encoded(layout, layout.encode(X))

    def fit_training(self, training: Training) -> Self:
        """Learn as `fit` does, from rows that other samplers are fitted to as well."""
        if type(self).fit is not BaseSampler.fit:
            # A class with its own `fit`.
            return self.fit(training.X)
        self._check_options()
        return self.fit_encoded(*training.read(**self._columns))

    @property
    def _columns(self) -> dict[str, Any]:
        """The options with which columns are read."""
        return {"discrete": self.discrete, "kinds": self.kinds, "groups": self.groups}

    def _check_options(self) -> None:
        self._result_type()
        check_count(self.max_bytes, "max_bytes")

    def fit_encoded(self, layout: Layout, matrix: Floats) -> Self:
        """Learn from rows that are encoded already, see :meth:`fit`."""
        for size, what in zip(matrix.shape, ("row", "column"), strict=True):
            if not size:
                raise refusal("X", f"of at least one {what}", matrix.shape, "Add some")
        check_sizes(matrix, layout)
        before = self.__dict__.copy()
        self._set_layout(layout)
        try:
            if self._has_gaps and not self.takes_missing:
                gaps = self._gaps = Gaps(layout, matrix, self.max_bytes)
                matrix = gaps.fill(matrix)
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
        self._gaps = None

    @property
    def may_be_copied(self) -> bool:  # type: ignore[override]
        """Whether other processes may draw with copies automatically: not for users' subclasses."""
        return type(self).__module__.startswith("dsage.samplers.")

    @property
    def _possible(self) -> Possible:
        """The values to which draws are moved."""
        return self.layout_.possible

    @property
    def _has_gaps(self) -> bool:
        """Whether numbers are missing in training."""
        return self.is_fitted and bool((self.layout_.may_miss & (self.n_categories_ == 0)).any())

    def draw(self, X: Any, known: Mask, noise: Floats) -> Floats:  # noqa: ANN401
        """Draw the unknown features jointly, given the known ones; see :meth:`Sampler.draw`.

        Columns of a frame are found by name. If `fit` received a frame, an array is taken as
        encoded already, classes as codes. ``layout_.decode`` converts draws into a frame.

        Draws are possible values: codes that occur in training, whole numbers and times within
        the range of training, and patterns of training for columns that exclude each other (see
        :class:`~dsage.data.possible.Possible`). Other draws are moved to the nearest one.

        Known categories that training lacks, and known missing values in columns that had none, are
        kept, but draws do not depend on them. ``layout_.extend(X)`` defines their codes.
        """
        return self.draw_encoded(*self._encode(X, known), noise)

    def draw_rows(self, rows: Floats, known: Mask, noise: Floats) -> Floats:
        """Draw as `draw` does, for rows that were encoded and checked before."""
        if type(self).draw is not BaseSampler.draw:
            # A class with its own `draw`.
            return self.draw(rows, known, noise)
        return self.draw_encoded(np.where(known, rows, 0.0), known, noise)

    def draw_encoded(self, rows: Floats, known: Mask, noise: Floats) -> Floats:
        """Draw for rows (n_rows, n_features) that are encoded, with unknown columns as 0."""
        checked = check_noise(noise, len(rows), rows.shape[1] + self.n_hidden)
        return self._fill(rows, known, checked, self._write)

    def _fill(self, rows: Floats, known: Mask, noise: Floats, write: Write) -> Floats:
        """Return draws of all features in chunks of rows, moved to possible values."""
        shape = (*noise.shape[:2], rows.shape[1])
        drawn = np.empty(shape, self._result_type())
        if known.all():
            drawn[...] = rows[:, None]
            return drawn
        possible = self._possible
        # Draws are moved before they are rounded to another precision.
        is_direct = possible.is_free or drawn.dtype == np.float64
        for here, given in self._portions(rows, known, noise.shape[1]):
            some, part_noise = rows[here], noise[here]
            part = drawn[here] if is_direct else np.empty((*part_noise.shape[:2], shape[2]))
            is_whole = given is known
            write(part, some if is_whole else np.where(given, some, 0.0), given, part_noise)
            if not is_whole:
                part[:, :, known] = some[:, None, known]
            if self._gaps is not None:
                self._gaps.hide(part, some, known, part_noise)
            possible.snap(part, known)
            if not (is_direct and isinstance(here, slice)):
                drawn[here] = part
        return drawn

    def _portions(
        self, rows: Floats, known: Mask, n_draws: int
    ) -> Iterator[tuple[Ints | slice, Mask]]:
        """Yield chunks of rows, each with the known features on which its draws can depend."""
        for at, given in split_by_pattern(self.usable(rows), known):
            n_rows = len(rows) if isinstance(at, slice) else len(at)
            for chunk in self._chunks(n_rows, given, n_draws):
                yield (chunk if isinstance(at, slice) else at[chunk]), given

    def usable(self, matrix: Floats) -> Mask:
        """Return the entries of encoded rows on which draws can depend: those known to training."""
        is_seen = (self.n_categories_ == 0) | (matrix < self.n_categories_)
        takes_it = self.takes_missing & self.layout_.may_miss
        found: Mask = is_seen & (takes_it | ~np.isnan(matrix))
        return found

    def _write(self, out: Result, rows: Floats, known: Mask, noise: Floats) -> None:
        """Write all features of a chunk of rows into `out`."""
        out[:, :, known] = rows[:, None, known]
        out[:, :, ~known] = self._draw(rows, known, noise)

    def _encode(self, X: Any, known: npt.ArrayLike) -> tuple[Floats, Mask]:  # noqa: ANN401
        """Return rows as a matrix, unknown columns as 0, and the coalition, both checked."""
        check_is_fitted(self)
        known = check_coalition(known, self.feature_names_)
        return read_rows(self.layout_, X, known), known

    @property
    def has_mean(self) -> bool:  # type: ignore[override]
        """Whether `mean` is available: `_mean` is implemented, and no numbers are missing."""
        return type(self)._mean is not BaseSampler._mean and not self._has_gaps

    @property
    def has_orderings(self) -> bool:  # type: ignore[override]
        """Whether `ordering` is available: it is implemented, for missing numbers too if any."""
        is_able = self.takes_missing or not self._has_gaps
        return is_able and type(self).ordering is not Sampler.ordering

    def _check_order(self, order: Sequence[int] | Ints) -> Ints:
        """Return an ordering as the positions of all features, each once."""
        check_is_fitted(self)
        if not self.has_orderings:
            raise self._lacks("that draws along orderings", "Draw for the coalitions instead")
        positions = np.asarray(order)
        is_whole = positions.dtype.kind in "iu"
        if not is_whole or sorted(positions.tolist()) != list(range(self.n_features_)):
            condition = f"a permutation of 0 .. {self.n_features_ - 1}"
            advice = "Pass the position of each feature once"
            raise refusal("order", condition, positions.tolist(), advice)
        return positions.astype(np.intp)

    @property
    def draws_on_device(self) -> bool:  # type: ignore[override]
        """Whether `on_device` is available: nothing has to be moved to possible values."""
        is_free = not self.is_fitted or self._possible.is_free
        return is_free and not self._has_gaps and type(self).on_device is not Sampler.on_device

    def mean(self, X: Any, known: Mask) -> Floats:  # noqa: ANN401
        """Return the conditional expectation of the features given the known ones.

        This is the mean of the distribution itself, before draws are moved to possible values: the
        mean of a column of zeros and ones is the share of ones, not 0 or 1.

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
        for here, given in self._portions(rows, known, 1):
            if not given.all():
                of_unknown = self._mean(np.where(given, rows[here], 0.0), given)
                part = means[here]
                part[:, ~known] = of_unknown[:, ~known[~given]]
                means[here] = part
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
