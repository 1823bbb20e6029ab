"""Scores of a node and its parents, one file per family of distributions."""

from dsage.structure.scores.base import SCORES, Score
from dsage.structure.scores.choose import choose_score
from dsage.structure.scores.penalized import default_gamma

__all__ = ["SCORES", "Score", "choose_score", "default_gamma"]
