"""Find the scores of logistic regressions, boosted classifiers and models with a log link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dsage.data.layout import Layout
from dsage.models.affine import Affine, column_precision, is_affine_transformer, probe
from dsage.models.calling import sklearn_name
from dsage.models.leaves import TOLERANCE, mix_rows
from dsage.models.link_scores import Floats, Scores, SumScores, apply_link, invert_link
from dsage.models.tree_scores import MOST_LEAVES, TreeScores
from dsage.models.trees import Ensemble, read_trees

# Memory of the tables of a model.
_MOST_BYTES = 1 << 27
# Classifiers of scikit-learn whose probabilities are a link of affine scores, and regressors whose
# predictions are exponentials of one.
_LINEAR = frozenset(
    ("LinearDiscriminantAnalysis", "LogisticRegression", "LogisticRegressionCV", "SGDClassifier")
)
_LOG_LINEAR = frozenset(("GammaRegressor", "PoissonRegressor"))


class AffineScores(SumScores):
    """Scores that are affine in the features.

    Features are centered, so that terms of features far from zero are not huge.

    Attributes
    ----------
    affine : Affine
        The scores as a function of encoded rows.
    """

    def __init__(self, affine: Affine, link: str, center: Floats) -> None:
        super().__init__(link, affine.intercept + center @ affine.weights)
        self.affine, self._center = affine, center

    def encode(self, X: Floats) -> Floats:
        """Return the terms of the features, (n_features, n_scores, n_rows)."""
        terms: Floats = np.einsum("nf,fk->fkn", X - self._center, self.affine.weights)
        return terms

    def predict(self, X: Floats) -> Floats:
        """Return the predictions (..., n_outputs) for sets of encoded rows (..., n_features).

        There is a product for each set, so that its rounding does not depend on the others.
        """
        scores = np.matmul(X, self.affine.weights) + self.affine.intercept
        predicted = apply_link(self.link, np.ascontiguousarray(np.moveaxis(scores, -1, 0)))
        return self._pick_output(np.moveaxis(predicted, 0, -1))


def find_scores(
    model: Any,  # noqa: ANN401
    predict: Callable[[Any], Floats],
    layout: Layout,
    X: Floats,
) -> Scores | None:
    """Return the scores of a model, verified by its predictions; None for other models.

    These are logistic regressions and linear discriminants of scikit-learn, after scalers and
    projections, Poisson and gamma regressions, and gradient boosting of classes, or with a
    logarithm as its link, of scikit-learn, LightGBM and XGBoost. Tables with classes have none.
    The predictions that follow from the scores are compared with the model's own for some of the
    rows `X`, as they are and with their features mixed.
    """
    if layout.n_categories.any():
        return None
    ensemble = read_trees(model)
    if ensemble is not None:
        return _of_trees(ensemble, predict, layout, mix_rows(X))
    return find_affine_scores(model, predict, layout, X)


def _of_trees(
    ensemble: Ensemble, predict: Callable[[Any], Floats], layout: Layout, points: Floats
) -> Scores | None:
    n_leaves = max((len(tree) + 1) // 2 for tree in ensemble.trees)
    n_splits = sum(len(tree) // 2 for tree in ensemble.trees)
    # A table has at most a column for each split, and a mask for each tree.
    n_bytes = 8 * (n_splits + len(layout.names)) * len(ensemble.trees)
    if ensemble.link == "identity" or n_leaves > MOST_LEAVES or n_bytes > _MOST_BYTES:
        return None
    scores = TreeScores(ensemble, points.shape[1])
    own = _by_output(predict(layout.decode(points)))
    if not _fits(scores, own):
        return None
    everything = np.ones(points.shape[1], dtype=np.bool_)
    sums = scores.at(everything, scores.encode(points), scores.encode(points[:1]))[:, :, 0]
    shift = invert_link(scores.link, own) - sums
    if scores.link == "softmax":
        shift -= shift[:1]
    with np.errstate(invalid="ignore"):
        # Boosting starts from a constant.
        scores.intercept += np.median(shift, axis=1)
    return scores if _is_same(scores, points, own) else None


def find_affine_scores(
    model: Any,  # noqa: ANN401
    predict: Callable[[Any], Floats],
    layout: Layout,
    X: Floats,
) -> AffineScores | None:
    """Return the scores of a model if they are affine, see `find_scores`; None for others."""
    steps = [step for _, step in model.steps] if sklearn_name(model) == "Pipeline" else [model]
    name = sklearn_name(steps[-1])
    is_known = name in _LINEAR | _LOG_LINEAR and all(map(is_affine_transformer, steps[:-1]))
    if not is_known or not column_precision(layout).all():
        return None
    points = mix_rows(X)
    if not np.isfinite(points).all():
        return None

    def score(rows: Any) -> Floats:  # noqa: ANN401
        found = (
            np.log(model.predict(rows)) if name in _LOG_LINEAR else model.decision_function(rows)
        )
        return np.asarray(found, dtype=np.float64)

    own = _by_output(predict(layout.decode(points)))
    single = bool((column_precision(layout) == 1).any())
    affine, error = probe(score, layout, layout.decode(points), single=single)
    link = "exp" if name in _LOG_LINEAR else "logistic" if len(own) == 2 else "softmax"
    scores = AffineScores(affine, link, points.mean(axis=0))
    if error > 1.0 or not _fits(scores, own):
        return None
    return scores if _is_same(scores, points, own) else None


def _by_output(predicted: Floats) -> Floats:
    """Return predictions as (n_outputs, n_rows)."""
    return np.asarray(predicted, dtype=np.float64).reshape(len(predicted), -1).T


def _fits(scores: Scores, own: Floats) -> bool:
    """Return whether predictions have the outputs of the scores."""
    return len(own) == (2 if scores.link == "logistic" else scores.n_scores)


def _is_same(scores: Scores, points: Floats, own: Floats) -> bool:
    """Return whether the predictions of the scores are the model's own."""
    everything = np.ones(points.shape[1], dtype=np.bool_)
    found = scores.means(everything, scores.encode(points), scores.encode(points[:1])).T
    size = np.abs(own).max() + np.ptp(own)
    return bool((np.abs(own - found) <= TOLERANCE * size).all())
