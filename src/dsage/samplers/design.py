"""Features as columns of linear models: of training rows, and of rows that are being drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.conditioning import combine, lanes

# With more categories than this, categories with fewer rows than this share a column, and so do
# categories beyond this many most frequent ones.
_FEW_CATEGORIES, _MIN_ROWS, _MAX_LEVELS = 20, 20, 64


class Encoder:
    """Features as columns: numbers standardized, classes as one column per category.

    Rare categories of a class with many of them share one column, the last: `levels` has the
    column of each category of a class, counted from the first one of the class.
    """

    def __init__(self, X: Floats, n_categories: Ints) -> None:
        deviation = X.std(axis=0)
        self.n_categories = n_categories
        self.center = np.where(n_categories == 0, np.median(X, axis=0), 0.0)
        self.scale = np.where((n_categories == 0) & (deviation > 0), deviation, 1.0)
        self.levels = {
            int(at): _levels(X[:, at], n_categories[at]) for at in n_categories.nonzero()[0]
        }
        widths = [
            int(self.levels[at].max()) + 1 if at in self.levels else 1 for at in range(len(X.T))
        ]
        self.ends = np.cumsum(widths)
        self.starts = self.ends - widths
        self.is_class: Mask = np.repeat(n_categories > 0, widths)

    @property
    def n_columns(self) -> int:
        """The number of columns of all features."""
        return len(self.is_class)

    def columns_of(self, features: Sequence[int] | Ints) -> Ints:
        """Return the positions of the columns of some features."""
        ranges = [np.arange(self.starts[at], self.ends[at]) for at in features]
        return np.concatenate([np.empty(0, np.intp), *ranges])

    def standardize(self, feature: int, values: Floats) -> Floats:
        """Return numbers in units of their standard deviation."""
        standard: Floats = (values - self.center[feature]) / self.scale[feature]
        return standard

    def matrix(self, X: Floats, features: Sequence[int] | None = None) -> Floats:
        """Return the columns of some features, by default all, of rows (n_rows, n_features)."""
        columns = []
        for feature in range(X.shape[1]) if features is None else features:
            if feature in self.levels:
                level = self.levels[feature][X[:, feature].astype(np.intp)]
                columns += [(level == each) * 1.0 for each in range(self.width(feature))]
            else:
                columns.append(self.standardize(feature, X[:, feature]))
        return np.stack(columns, axis=1)

    def width(self, feature: int) -> int:
        """Return the number of columns of a feature."""
        return int(self.ends[feature] - self.starts[feature])


def _levels(codes: Floats, n_categories: int) -> Ints:
    """Return the column of each category."""
    counts = np.bincount(codes.astype(np.intp), minlength=n_categories)
    if n_categories <= _FEW_CATEGORIES:
        return np.arange(n_categories)
    order = np.argsort(-counts, kind="stable")[:_MAX_LEVELS]
    frequent = np.sort(order[counts[order] >= _MIN_ROWS])
    levels = np.full(n_categories, len(frequent))
    levels[frequent] = np.arange(len(frequent))
    return levels


class Design:
    """The known features of rows, and the draws so far, as columns of linear models.

    The sums of a draw do not depend on the other draws, to the bit.
    """

    def __init__(self, encoder: Encoder, X: Floats, known: Mask, n_draws: int) -> None:
        self._encoder, self._n_draws = encoder, n_draws
        self._shape = len(X), n_draws
        self._X, self._known = X, known
        self._values: dict[int, Floats] = {}
        numbers = np.flatnonzero(known & (encoder.n_categories == 0))
        self._numbers = numbers
        self._rows = lanes((X[:, numbers] - encoder.center[numbers]) / encoder.scale[numbers])
        classes = np.flatnonzero(known & (encoder.n_categories > 0)).tolist()
        self._row_levels = {at: self._level(at, X[:, at]) for at in classes}
        n_unknown = int((~known & (encoder.n_categories == 0)).sum())
        size = lanes(np.empty((X.shape[0] * n_draws, 0))).shape[1]
        self._drawn = np.zeros((n_unknown, size))
        self._drawn_numbers: list[int] = []
        self._drawn_levels: dict[int, Ints] = {}

    def _level(self, feature: int, codes: Floats) -> Ints:
        return self._encoder.levels[feature][codes.astype(np.intp)]

    def add(self, feature: int, values: Floats) -> None:
        """Add draws (n_rows, n_draws) of a feature."""
        self._values[feature] = values
        if feature in self._encoder.levels:
            self._drawn_levels[feature] = self._level(feature, values.ravel())
            return
        flat = self._encoder.standardize(feature, values).ravel()
        self._drawn[len(self._drawn_numbers), : len(flat)] = flat
        self._drawn_numbers.append(feature)

    def lines(self, intercepts: Floats, slopes: Floats) -> Floats:
        """Return ``intercepts + slopes columns``, (n_lines, n_rows * n_draws).

        `slopes` has shape (n_lines, n_columns); slopes of features that are neither known nor drawn
        are not used.
        """
        starts, n_rows = self._encoder.starts, self._shape[0]
        of_rows = combine(slopes[:, starts[self._numbers]], self._rows)[:, :n_rows]
        of_rows += intercepts[:, None]
        for feature, level in self._row_levels.items():
            of_rows += np.take(slopes, starts[feature] + level, axis=1)
        n_drawn, size = len(self._drawn_numbers), n_rows * self._n_draws
        own = slopes[:, starts[self._drawn_numbers]] if n_drawn else slopes[:, :0]
        lines = combine(own, self._drawn[:n_drawn])[:, :size]
        for feature, level in self._drawn_levels.items():
            lines += np.take(slopes, starts[feature] + level, axis=1)
        lines = lines.reshape(len(intercepts), n_rows, self._n_draws)
        return (lines + of_rows[:, :, None]).reshape(len(intercepts), size)

    def matrix(self, features: Sequence[int]) -> Floats:
        """Return the columns of some features, (n_rows * n_draws, n_columns)."""
        wide = np.zeros((self._shape[0] * self._n_draws, self._X.shape[1]))
        for feature in features:
            known = self._X[:, feature, None]
            values = known if self._known[feature] else self._values[feature]
            wide[:, feature] = np.broadcast_to(values, self._shape).ravel()
        return self._encoder.matrix(wide, features)
