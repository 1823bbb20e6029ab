"""Scores of a node and its parents, one file a family of distributions."""

from dsage.structure.scores.base import Score
from dsage.structure.scores.choose import SCORES, choose_score

__all__ = ["SCORES", "Score", "choose_score"]
