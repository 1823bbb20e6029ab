"""Training rows near the prefixes of an ordering, whose distances are sums over its features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsage.data.layout import Layout
from dsage.data.missing import check_finite
from dsage.samplers.checks import Floats, Ints, Mask, check_noise
from dsage.samplers.inversion import draw_positions, rows_at_once
from dsage.samplers.ordering import check_lengths

Measure = Callable[[Floats, int], Floats]
"""Turns rows and a length into the coordinates of the rows on the features of a prefix."""

Kernel = Callable[[Floats, int, float, Floats], object]
"""Writes weights: of squared distances, for a number of known features and their mean square."""


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances from training rows on the prefixes of an ordering.

    A feature adds one term for all prefixes that have it. The squared distance is the sum of
    squared differences (Mahalanobis), or the square of the sum of their sizes, which for classes
    are 0 or 1 (Gower).

    Parameters
    ----------
    measure : callable
        ``measure(rows, length)`` returns coordinates (length, n_rows) of rows (n_rows, n_features).
    coordinates : array of shape (n_features, n_training_rows)
        Those of training rows, in the ordering's order.
    is_class : bool array of shape (n_features,)
        Which of them are classes.
    is_squared : bool
        Whether terms are squares.
    mean_squares : array of shape (n_features + 1,)
        Means of the squared distances of each prefix between training rows; 1 if they are 0.
    """

    measure: Measure
    coordinates: Floats
    is_class: Mask
    is_squared: bool
    mean_squares: Floats

    def add(self, total: Floats, at: int, x: Floats, spare: Floats) -> None:
        """Add the terms of one more feature to the sums (n_rows, n_training_rows)."""
        ours, theirs = x[:, None], self.coordinates[at]
        if self.is_class[at]:
            np.not_equal(ours, theirs, out=spare)
        else:
            np.subtract(ours, theirs, out=spare)
            if self.is_squared:
                np.multiply(spare, spare, out=spare)
            else:
                np.abs(spare, out=spare)
        total += spare

    def squares(self, total: Floats, spare: Floats) -> Floats:
        """Return the squared distances for sums, which may be in `spare`."""
        return total if self.is_squared else np.multiply(total, total, out=spare)


class NeighborsOrdering:
    """All prefixes of one ordering, from one pass over it (made by :meth:`Neighbors.ordering`).

    Draws equal those of :meth:`Neighbors.draw`, up to the rounding of distances. If features
    determine one another, Mahalanobis' distance leaves out those that the features before them
    determine, and :meth:`Neighbors.draw` the directions in which training rows do not vary.
    """

    def __init__(
        self, rows: Floats, layout: Layout, order: Ints, distances: Distances, kernel: Kernel
    ) -> None:
        self.order = order
        self._rows, self._layout = rows, layout
        self._distances, self._kernel = distances, kernel

    def prefixes(
        self,
        X: Any,  # noqa: ANN401
        noise: Floats,
        lengths: Iterable[int] | None = None,
    ) -> Iterator[tuple[int, Floats]]:
        """Draw the features after each prefix of the ordering, given the prefix.

        The draws for a length do not depend on the other lengths, nor the draws of a row on the
        other rows, to the bit. Besides the arguments it needs memory for two arrays of draws, and
        for the distances of a few rows from all training rows.

        Parameters
        ----------
        X : data frame or array of shape (n_rows, n_features)
            Rows. Features in none of the prefixes are ignored.
        noise : array of shape (n_rows, n_draws, n_features)
            Uniforms in (0, 1).
        lengths : iterable of int, optional
            The lengths of the prefixes, ascending; by default all, 0 to n_features.

        Yields
        ------
        int, array of shape (n_rows, n_draws, n_features)
            The length of a prefix, and the draws: a read-only view of an array that the next step
            changes.
        """
        n_features = len(self.order)
        wanted = check_lengths(range(n_features + 1) if lengths is None else lengths, n_features)
        rows = self._layout.encode(X, self._is_known(max(wanted, default=0)))
        check_finite(rows, self._layout.names)
        return self._prefixes(rows, check_noise(noise, *rows.shape), wanted)

    def _is_known(self, length: int) -> Mask:
        known = np.zeros(len(self.order), bool)
        known[self.order[:length]] = True
        return known

    def _prefixes(
        self, rows: Floats, noise: Floats, lengths: list[int]
    ) -> Iterator[tuple[int, Floats]]:
        possible = self._layout.possible.together
        chosen = self._choose(rows, noise[:, :, 0], lengths)
        draws = np.empty(noise.shape)
        view = draws.view()
        view.flags.writeable = False
        for length, picked in zip(lengths, chosen, strict=True):
            known = self._is_known(length)
            np.take(self._rows, picked, axis=0, out=draws, mode="clip")
            draws[..., self.order[:length]] = rows[:, None, self.order[:length]]
            possible.snap(draws, known)
            yield length, view

    def _choose(self, rows: Floats, u: Floats, lengths: list[int]) -> Ints:
        """Return which training rows are drawn, (n_lengths, n_rows, n_draws)."""
        distances, n_training = self._distances, len(self._rows)
        x = distances.measure(rows, max(lengths, default=0))
        chosen = np.empty((len(lengths), *u.shape), np.intp)
        size = rows_at_once(n_training)
        for start in range(0, len(rows), size):
            here = slice(start, start + size)
            total = np.zeros((len(rows[here]), n_training))
            spare = np.empty_like(total)
            at = 0
            for position, length in enumerate(lengths):
                for feature in range(at, length):
                    distances.add(total, feature, x[feature, here], spare)
                at = length
                squares = distances.squares(total, spare)
                self._kernel(squares, length, float(distances.mean_squares[length]), spare)
                chosen[position, here] = draw_positions(spare, u[here])
        return chosen
