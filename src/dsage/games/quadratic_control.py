"""A control of the draws that is a quadratic function of the scores behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self, cast

import numpy as np

from dsage.games.base import Floats, Rows
from dsage.games.draw_control import DIGITS, LEAST_EXPLAINED, RIDGE, ROWS_PER_COEFFICIENT
from dsage.samplers.interface import Prefixes, ProjectedPrefixes
from dsage.samplers.projections import Projected

# Most squares of an output, and of all outputs together.
_MOST_SQUARES, _MOST_OF_ALL = 8, 24
# Squares whose standard deviation is a smaller share of the output's are left out.
_LEAST_SHARE = 0.05


class _Form(NamedTuple):
    """The quadratic function of an output: a sum, and a weighted sum of squares of sums."""

    sums: slice  # which sums: the first as it is, the others squared
    slopes: Floats  # of the squares


class QuadraticControl:
    """A quadratic function of the scores behind draws, with known conditional expectations.

    The model's output is approximated by ``h = p_0 + sum over r of s_r p_r^2``, where each p is a
    weighted sum of the scores. Given what is known and the component of the mixture, p is normal,
    ``N(m, v)``, so that the expectation of its square is ``m^2 + v``. Sums take little time, even
    with many components, and squares of sums have the interactions of smooth models.

    The mean over draws of ``h - E[h]`` is noise of mean zero, as in
    :class:`~dsage.games.draw_control.DrawControl`.

    Parameters
    ----------
    weights : array of shape (n_scores, n_sums)
        The weights of the sums.
    offsets : array of shape (n_sums,)
        What is subtracted from them.
    forms : sequence of _Form or None
        The functions of the outputs; None for outputs without one.
    """

    def __init__(self, weights: Floats, offsets: Floats, forms: Sequence[_Form | None]) -> None:
        self._weights, self._offsets, self._forms = weights, offsets, forms

    @classmethod
    def fit(cls, scores: Floats, outputs: Floats) -> Self | None:
        """Fit to drawn rows; None if all outputs depend too much on other things.

        Parameters
        ----------
        scores : array of shape (n_rows, n_scores)
            The scores behind rows that were drawn with no feature known.
        outputs : array of shape (n_rows, n_outputs)
            The model's output for them.
        """
        n_rows, n_scores = scores.shape
        if not n_scores or n_rows < ROWS_PER_COEFFICIENT * n_scores:
            return None
        means, scales = scores.mean(axis=0), scores.std(axis=0)
        scales = np.where(scales > 0.0, scales, 1.0)
        z = (scores - means) / scales
        most = max(1, min(_MOST_SQUARES, _MOST_OF_ALL // outputs.shape[1]))
        found = [_fit_output(z, output, most) for output in outputs.T]
        if all(each is None for each in found):
            return None
        forms: list[_Form | None] = []
        first = 0
        for each in found:
            if each is None:
                forms.append(None)
                continue
            directions, slopes = each
            forms.append(_Form(slice(first, first + len(directions)), slopes))
            first += len(directions)
        weights = np.concatenate([each[0] for each in found if each is not None]).T
        weights /= scales[:, None]
        return cls(weights, means @ weights, forms)

    def draw(
        self,
        ordering: Prefixes,
        X: Floats,
        noise: Floats,
        lengths: Sequence[int],
        outputs: Rows | None,
    ) -> Iterator[tuple[Floats, Floats]]:
        """Yield the draws of prefixes and their noise; see :meth:`DrawControl.draw`."""
        drawing = cast(ProjectedPrefixes, ordering)
        for _, draws, sums in drawing.projected_prefixes(X, noise, self._weights, lengths):
            yield draws, self.noise(sums, outputs)

    def noise(self, sums: Projected, outputs: Rows | None = None) -> Floats:
        """Return ``h - E[h]`` of draws, (n_rows, n_draws, n_outputs).

        With `outputs`, the number of one output for each row, return the noise of these outputs,
        (n_rows, n_draws).
        """
        if outputs is None:
            every = slice(None)
            return np.stack([self._noise(sums, form, every) for form in self._forms], axis=-1)
        found = np.empty(sums.drawn.shape[1:])
        for output in np.unique(outputs):
            rows = np.flatnonzero(outputs == output)
            found[rows] = self._noise(sums, self._forms[output], rows)
        return found

    def _noise(self, sums: Projected, form: _Form | None, rows: Rows | slice) -> Floats:
        """Return the noise (n_rows, n_draws) of one output for some rows."""
        if form is None:
            return np.zeros_like(sums.drawn[0, rows])
        drawn, means, variances = (
            each[form.sums] for each in (sums.drawn, sums.means, sums.variances)
        )
        if len(variances[0]) > 1:
            variances = variances[:, rows]
        offsets = self._offsets[form.sums]
        h, expected = drawn[0, rows] - offsets[0], means[0, rows] - offsets[0]
        for at, slope in enumerate(form.slopes, 1):
            h += slope * (drawn[at, rows] - offsets[at]) ** 2
            expected += slope * ((means[at, rows] - offsets[at]) ** 2 + variances[at])
        noise: Floats = h - (sums.shares[rows] * expected).sum(axis=1)[:, None]
        return noise


def _fit_output(z: Floats, output: Floats, most: int) -> tuple[Floats, Floats] | None:
    """Return directions (1 + n_squares, n_scores), and slopes of squares; None if useless."""
    n_rows, n_scores = z.shape
    centered = output - output.mean()
    variance = float((centered**2).mean())
    if not variance > 0.0:
        return None
    pairs = _choose_pairs(z, centered)
    columns = np.concatenate([z, z[:, pairs[0]] * z[:, pairs[1]]], axis=1)
    columns -= columns.mean(axis=0)
    moments = columns.T @ columns / n_rows
    moments[np.diag_indices(len(moments))] += RIDGE / n_rows
    slopes = np.linalg.solve(moments, columns.T @ centered / n_rows)
    # Last digits, which may depend on the threads of a model, are dropped.
    unit = DIGITS * np.sqrt(variance)
    slopes = np.rint(slopes / unit) * unit
    matrix = np.zeros((n_scores, n_scores))
    matrix[pairs] = 0.5 * slopes[n_scores:]
    matrix += matrix.T
    values, vectors = np.linalg.eigh(matrix)
    squares = (z @ vectors) ** 2
    size = np.abs(values) * squares.std(axis=0)
    kept = np.argsort(-size, kind="stable")[:most]
    kept = kept[size[kept] > _LEAST_SHARE * np.sqrt(variance)]
    h = z @ slopes[:n_scores] + squares[:, kept] @ values[kept]
    left = float(((centered - (h - h.mean())) ** 2).sum()) / (n_rows - len(slopes))
    if left > (1.0 - LEAST_EXPLAINED) * variance:
        return None
    return np.concatenate([slopes[None, :n_scores], vectors.T[kept]]), values[kept]


def _choose_pairs(z: Floats, centered: Floats) -> tuple[Rows, Rows]:
    """Return pairs of scores, each score with itself included, as many as the rows determine.

    If that are not all, they are of the scores that are correlated most with the output or whose
    squares are.
    """
    n_rows, n_scores = z.shape
    room = n_rows // ROWS_PER_COEFFICIENT - n_scores
    n_chosen = min(n_scores, int((np.sqrt(8.0 * room + 1.0) - 1.0) / 2.0))
    squares = z**2
    size = np.abs(z.T @ centered)
    size = np.maximum(size, np.abs(squares.T @ centered) / np.maximum(squares.std(axis=0), 1e-9))
    chosen = np.sort(np.argsort(-size, kind="stable")[:n_chosen])
    first, second = np.triu_indices(n_chosen)
    return chosen[first], chosen[second]
