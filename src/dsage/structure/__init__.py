"""Learn the graph from data, and tell how sure it is."""

from dsage.structure.bes import bes
from dsage.structure.boss import boss
from dsage.structure.constraints import Constraints
from dsage.structure.counts import Counts
from dsage.structure.degeneracies import Degeneracies, degeneracies
from dsage.structure.learn import METHODS, learn_graph, score_graph, search_graph
from dsage.structure.moments import Moments
from dsage.structure.result import SearchResult, Step
from dsage.structure.scores import SCORES, Score, choose_score
from dsage.structure.search import hill_climb, tabu
from dsage.structure.stability import Stability, stability

__all__ = [
    "METHODS",
    "SCORES",
    "Constraints",
    "Counts",
    "Degeneracies",
    "Moments",
    "Score",
    "SearchResult",
    "Stability",
    "Step",
    "bes",
    "boss",
    "choose_score",
    "degeneracies",
    "hill_climb",
    "learn_graph",
    "score_graph",
    "search_graph",
    "stability",
    "tabu",
]
