"""Scores and links: predictions that are functions of sums over features or over trees.

Scores of rows that mix known features of one row with unknown ones of another follow from parts of
both, so their mean predictions need no calls of the model.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

# Products of the exponentials of two such scores are numbers.
_FARTHEST = 350.0
# Pairs of rows that are treated at a time, and rows in a product of matrices.
_PAIRS_AT_ONCE, _WIDTH = 1 << 15, 16


def apply_link(link: str, scores: Floats) -> Floats:
    """Return predictions (n_outputs, ...) of scores (n_scores, ...), which are overwritten.

    Examples
    --------
    >>> apply_link("logistic", np.zeros((1, 1)))[:, 0], apply_link("exp", np.zeros((1, 1)))[:, 0]
    (array([0.5, 0.5]), array([1.]))
    """
    if link == "softmax":
        scores -= scores.max(axis=0)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=0)
        return scores
    if link == "exp":
        return np.exp(scores, out=scores)
    with np.errstate(over="ignore"):
        np.exp(-scores, out=scores)
    scores += 1.0
    np.divide(1.0, scores, out=scores)
    return np.concatenate([1.0 - scores, scores])


def invert_link(link: str, predicted: Floats) -> Floats:
    """Return scores (n_scores, ...) of predictions (n_outputs, ...); up to a constant for softmax.

    They are infinite where probabilities are 0 or 1.
    """
    with np.errstate(divide="ignore"):
        found: Floats = np.log(predicted)
        return found[1:] - found[:1] if link == "logistic" else found


class Scores(ABC):
    """Scores of rows that have some features from x and the others from b.

    Attributes
    ----------
    link : {"logistic", "softmax", "exp"}
        The function that turns scores into predictions.
    n_scores : int
        Number of scores.
    output : int or None
        The only output that matters; None for all.
    """

    link: str
    n_scores: int
    output: int | None = None

    def pick(self, output: int) -> Self:
        """Return the scores of a single output of the model."""
        picked = copy.copy(self)
        picked.output = output
        return picked

    @property
    @abstractmethod
    def n_steps(self) -> float:
        """Lookups for one more known feature of a pair of rows, on average."""

    @abstractmethod
    def encode(self, X: Floats) -> npt.NDArray[Any]:
        """Return rows (n_rows, n_features) in the form that the other methods take."""

    @abstractmethod
    def means(self, known: Mask, x: npt.NDArray[Any], b: npt.NDArray[Any]) -> Floats:
        """Return the means over b of predictions, (n_x, n_outputs), known features from x."""

    @abstractmethod
    def path_means(self, order: Rows, x: npt.NDArray[Any], b: npt.NDArray[Any]) -> Floats:
        """Return the means (n_features, n_x, n_outputs) of all proper prefixes of an ordering."""

    def _pick_output(self, means: Floats) -> Floats:
        """Return the outputs that matter of means (..., n_outputs)."""
        return means if self.output is None else means[..., [self.output]]


def _portions(n: int, n_pairs: int) -> Iterator[slice]:
    """Yield portions of `n` sets of pairs that stay in the cache."""
    most = max(1, _PAIRS_AT_ONCE // max(n_pairs, 1))
    for first in range(0, n, most):
        yield slice(first, first + most)


def _softmax_means(own: Floats, other: Floats) -> Floats:
    """Return the means (n, n_scores, n_x) of a softmax from the exponentials of two parts.

    They are products of matrices of a fixed width: the rounding of a row would depend on the number
    of rows.
    """
    n, n_scores, n_rows = own.shape
    n_blocks = -(-n_rows // _WIDTH)
    padded = np.ones((n, n_scores, n_blocks * _WIDTH))
    padded[:, :, :n_rows] = own
    blocks = padded.reshape(n, n_scores, n_blocks, _WIDTH).swapaxes(1, 2)
    means: Floats = np.empty((n, n_blocks, n_scores, _WIDTH))
    for some in _portions(n, n_blocks * _WIDTH * other.shape[2]):
        rest = other[some, None]
        pairs = rest.swapaxes(2, 3) @ blocks[some]
        np.divide(1.0 / pairs.shape[2], pairs, out=pairs)
        np.multiply(blocks[some], rest @ pairs, out=means[some])
    return means.swapaxes(1, 2).reshape(n, n_scores, -1)[:, :, :n_rows]


def _doubled(x: Floats) -> Floats:
    """Return a single row twice: alone, its sums would be rounded otherwise than with others."""
    return np.repeat(x, 2, axis=2)


class SumScores(Scores):
    """Scores that are sums of a term for each feature.

    The score of a pair is the sum of the terms of known features of x and unknown features of b.
    Its exponential is a product of two factors, so no exponential per pair is needed, unless a
    score is huge.

    Parameters
    ----------
    link : str
        The link.
    intercept : array of shape (n_scores,)
        The constant that is added to the terms.
    """

    def __init__(self, link: str, intercept: Floats) -> None:
        self.link, self.n_scores, self._intercept = link, len(intercept), intercept

    @property
    def n_steps(self) -> float:
        """One for each score."""
        return float(self.n_scores)

    @abstractmethod
    def encode(self, X: Floats) -> Floats:
        """Return the terms of the features, (n_features, n_scores, n_rows)."""

    def means(self, known: Mask, x: Floats, b: Floats) -> Floats:
        """Return the means of a coalition."""
        if x.shape[2] == 1:
            return self.means(known, _doubled(x), b)[:1]
        own, other = x[known].sum(axis=0), b[~known].sum(axis=0) + self._intercept[:, None]
        means: Floats = self._means_of(own[None], other[None])[0]
        return means

    def means_of_all(self, known: Mask, x: Floats, b: Floats) -> Floats:
        """Return the means (n_coalitions, n_x, n_outputs) of several coalitions."""
        # Not a matrix product, in which the rounding of one would depend on the others.
        own = np.einsum("nf,fkr->nkr", known.astype(np.float64), x)
        other = np.einsum("nf,fkb->nkb", (~known).astype(np.float64), b)
        return self._means_of(own, other + self._intercept[:, None])

    def path_means(self, order: Rows, x: Floats, b: Floats) -> Floats:
        """Return the means of all proper prefixes."""
        own = np.zeros((len(order), *x.shape[1:]))
        np.cumsum(x[order[:-1]], axis=0, out=own[1:])
        other = np.cumsum(b[order[::-1]], axis=0)[::-1] + self._intercept[:, None]
        return self._means_of(own, other)

    def _means_of(self, own: Floats, other: Floats) -> Floats:
        """Return means (n, n_x, n_outputs) of sums (n, n_scores, n_x) and (n, n_scores, n_b)."""
        if own.shape[2] == 1:
            return self._means_of(_doubled(own), other)[:, :1]
        if self.link == "exp":
            means = np.exp(own) * np.exp(other).mean(axis=2, keepdims=True)
        elif self.link == "logistic":
            factors = [np.exp(-np.clip(each[:, 0], -_FARTHEST, _FARTHEST)) for each in (own, other)]
            first: Floats = np.empty_like(factors[0])
            for some in _portions(len(first), first.shape[1] * other.shape[2]):
                pairs = factors[0][some, :, None] * factors[1][some, None, :]
                pairs += 1.0
                np.divide(1.0 / pairs.shape[2], pairs, out=pairs)
                # NumPy is slow to sum along an axis of a few entries.
                np.einsum("nrb->nr", pairs, out=first[some])
            means = np.stack([1.0 - first, first], axis=1)
        else:
            mine, rest = (np.exp(np.clip(each, -_FARTHEST, _FARTHEST)) for each in (own, other))
            means = _softmax_means(mine, rest)
        means = np.moveaxis(means, 1, 2)
        if self.link != "exp":
            far_b = np.abs(other).max(axis=(1, 2)) > _FARTHEST
            is_far: Mask = (np.abs(own).max(axis=1) > _FARTHEST) | far_b[:, None]
            for at in np.flatnonzero(is_far.any(axis=1)):
                rows = np.flatnonzero(is_far[at])
                scores = own[at][:, rows, None] + other[at][:, None, :]
                means[at, rows] = apply_link(self.link, scores).mean(axis=2).T
        return self._pick_output(means)
