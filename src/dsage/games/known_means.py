"""Find how mean predictions are known without draws of the features."""

from __future__ import annotations

import numpy as np

from dsage.data.layout import Layout
from dsage.games.base import Floats
from dsage.games.exact_means import ExactMeans
from dsage.games.leaf_means import LeafMeans
from dsage.games.normal_means import NormalDraws, NormalMeans
from dsage.games.predictor import Predictor
from dsage.games.score_means import ScoreMeans
from dsage.models.scores import AffineScores
from dsage.samplers.base import Sampler


def find_scores(
    model: Predictor, layout: Layout, frames: Layout, matrix: Floats
) -> AffineScores | None:
    """Return the affine scores behind a model's link; None if there are none, or for gaps.

    `layout` is the layout of the encoded rows `matrix`, and `frames` that of the model's rows.
    """
    is_complete = not layout.may_miss.any() and bool(np.isfinite(matrix).all())
    if not is_complete or layout.names != frames.names:
        return None
    return model.affine_scores(frames, matrix)


def find_normal_means(
    scores: AffineScores, sampler: Sampler, matrix: Floats
) -> NormalMeans | NormalDraws:
    """Return the means of scores that a sampler with `has_sums` makes normal.

    Those of several classes are found from draws of the scores.
    """
    if scores.link == "softmax":
        return NormalDraws(scores, sampler, matrix)
    return NormalMeans(scores, sampler, matrix)


def find_marginal_means(
    model: Predictor, sampler: Sampler, frames: Layout, matrix: Floats, max_bytes: int
) -> ExactMeans | None:
    """Return the means over all rows of a marginal sampler; None if they are not known."""
    background = sampler.equal_rows
    if background is None:
        return None
    leaves = model.leaves(frames, background)
    if leaves is not None:
        pays = LeafMeans.pays(leaves, len(background), len(matrix), max_bytes)
        return LeafMeans(leaves, background, matrix) if pays else None
    scores = model.scores(frames, background)
    if scores is None or not ScoreMeans.pays(scores, len(background)):
        return None
    return ScoreMeans(scores, background, matrix)
