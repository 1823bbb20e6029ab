"""The first level of a marginal sampler: an additive predictor on the scale of a link."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dsage.games.additive_terms import AdditiveTerms
from dsage.games.base import Floats, Game, Mask, Orders, Rows
from dsage.games.functions import Functions
from dsage.models.link_scores import SumScores, invert_link

# Number of training rows that represent all: spread evenly over their scores.
_N_POINTS = 16
# Cost of a pair of an evaluation row and such a point per score, see `Game.cost`.
_COST_OF_A_PAIR = 0.02
# Functions of a number, and columns in total: more would take longer than they save.
_N_FUNCTIONS, _MOST_COLUMNS = (4, 3, 2, 1), 240
# Mixed rows to which scores are fitted, for each function of a feature, and in total.
_ROWS_PER_COLUMN, _FEWEST_ROWS = 32, 1024
# Memory of the terms of all rows.
_MOST_BYTES = 2**26
# Probabilities below this count as this on the scale of the link.
_SMALLEST = 1e-3


class AdditiveScores(SumScores):
    """Scores that are sums of functions of the features, fitted to scores of some rows.

    Parameters
    ----------
    link : str
        The link.
    functions : Functions
        The functions of the features.
    rows : array of shape (n_rows, n_features)
        Rows, classes as codes.
    scores : array of shape (n_rows, n_scores)
        Their scores.
    """

    def __init__(self, link: str, functions: Functions, rows: Floats, scores: Floats) -> None:
        self._terms = AdditiveTerms(functions, rows, scores)
        super().__init__(link, self._terms.mean)

    def encode(self, X: Floats) -> Floats:
        """Return the terms of the features, (n_features, n_scores, n_rows)."""
        return self._terms(X)


class ScoreGame(Game):
    """The loss of expected outputs that are computed from additive scores, for a marginal sampler.

    Unknown features come from a few training rows. For squared error and an additive model the
    game is quadratic, and an ordering and its reverse have the same mean: a first level gains
    nothing. Behind a link it is not, and most differences between the orderings of a
    classifier also occur in this game.

    Parameters
    ----------
    scores : SumScores
        The scores.
    background, matrix : array of shape (n_training, n_features), (n_rows, n_features)
        The training rows, and the evaluation rows.
    losses : callable
        Maps predictions (n_times, n_rows, ...) and the positions of their rows to weighted losses
        (n_times, n_rows).
    feature_names : sequence of str
        The features.
    weights : array of shape (n_rows,)
        Weights of the rows, with mean one.
    """

    has_paths = True
    weights: Floats

    def __init__(
        self,
        scores: SumScores,
        background: Floats,
        matrix: Floats,
        losses: Callable[[Floats, Rows], Floats],
        feature_names: tuple[str, ...],
        weights: Floats,
    ) -> None:
        self.feature_names, self.weights = tuple(feature_names), weights
        self.n_rows = len(matrix)
        self._scores, self._losses = scores, losses
        self._terms = scores.encode(matrix)
        self._points = _choose_points(scores.encode(background))
        everything = np.ones((1, len(feature_names)), dtype=np.bool_)
        self._full = self.risks(everything, np.arange(self.n_rows))[0, :, 0]
        # Exponentials or so of a prefix of an ordering.
        self.cost_of_prefix = float(self.n_rows * self._points.shape[2] * scores.n_scores)
        self.cost = _COST_OF_A_PAIR * self.cost_of_prefix * len(feature_names)

    @staticmethod
    def fits(n_rows: int, n_features: int, n_scores: int) -> bool:
        """Whether the terms of all rows are few enough to be kept."""
        return 8 * n_rows * n_features * n_scores <= _MOST_BYTES

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:  # noqa: ARG002
        """Return the risks of coalitions; see :class:`Game`."""
        terms = self._terms[:, :, rows]
        means = self._scores.means_of_all(known, terms, self._points)
        return self._losses_of(means, rows)[:, :, None]

    def path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:  # noqa: ARG002
        """Return the risks of all prefixes of orderings; see :class:`Game`."""
        out = np.empty((*needed.shape, len(rows), 1))
        out[:, -1, :, 0] = self._full[rows]
        terms = self._terms[:, :, rows]
        for order, risks in zip(orders, out, strict=True):
            means = self._scores.path_means(order, terms, self._points)
            risks[:-1, :, 0] = self._losses_of(means, rows)
        return out

    def mean_path_risks(self, orders: Orders) -> Floats:
        """Return the `mean_risks` of all prefixes of orderings, (n_orderings, n_features + 1)."""
        rows = np.arange(self.n_rows)
        needed = np.ones((1, len(self.feature_names) + 1), dtype=np.bool_)
        means = [self.path_risks(order[None], rows, 0, needed)[0].mean((1, 2)) for order in orders]
        return np.stack(means)

    def _losses_of(self, means: Floats, rows: Rows) -> Floats:
        """Return the losses (n, n_rows) of mean outputs (n, n_rows, n_outputs)."""
        return self._losses(means[..., 0] if means.shape[-1] == 1 else means, rows)


def count_rows(n_categories: npt.NDArray[np.intp]) -> int:
    """Return the number of mixed rows that determine additive scores."""
    n_columns = int(np.where(n_categories > 0, n_categories, _N_FUNCTIONS[0]).sum())
    return max(_FEWEST_ROWS, _ROWS_PER_COLUMN * min(n_columns, _MOST_COLUMNS))


def fit_scores(
    link: str, rows: Floats, predicted: Floats, n_categories: npt.NDArray[np.intp]
) -> AdditiveScores | None:
    """Return additive scores of a model's predictions for rows; None if they had many columns.

    `predicted` has a column for each class, or is the probability of the second of two, or are
    positive numbers.
    """
    is_one = predicted.ndim == 1
    if link == "exp":
        smallest = max(_SMALLEST * float(predicted.mean()), np.finfo(np.float64).tiny)
        outputs = np.maximum(predicted[None], smallest)
    else:
        outputs = np.stack([1.0 - predicted, predicted]) if is_one else predicted.T
        outputs = np.clip(outputs, _SMALLEST, 1.0 - _SMALLEST)
    scores = invert_link(link, outputs).T
    if link == "softmax":
        scores -= scores.mean(axis=1, keepdims=True)
    widest = Functions.fit(rows, n_categories, _N_FUNCTIONS[0])
    for n_functions in _N_FUNCTIONS:
        functions = widest.first(n_functions)
        if functions.n_columns <= _MOST_COLUMNS:
            found = AdditiveScores(link, functions, rows, scores)
            return found.pick(1) if is_one and link == "logistic" else found
    return None


def _choose_points(terms: Floats) -> Floats:
    """Return the terms of training rows (n_features, n_scores, n_points) that represent all.

    They are spread evenly over the first principal component of the scores.
    """
    scores = terms.sum(axis=0)
    centered = scores - scores.mean(axis=1, keepdims=True)
    axis = np.linalg.svd(centered, full_matrices=False)[0][:, 0]
    order = np.argsort(axis @ centered, kind="stable")
    n_points = min(_N_POINTS, len(order))
    places = ((np.arange(n_points) + 0.5) * len(order) / n_points).astype(np.intp)
    return terms[:, :, np.sort(order[places])]
