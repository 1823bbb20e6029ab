"""Learn the graph from data, and measure its stability."""

from dsage.data.stream import Stream
from dsage.structure.constraints import Constraints
from dsage.structure.counts import Counts
from dsage.structure.degeneracies import Degeneracies, degeneracies
from dsage.structure.info import GraphInfo, GraphSource
from dsage.structure.learn import learn_graph, score_graph, search_graph
from dsage.structure.moments import Moments
from dsage.structure.result import SearchResult, Step
from dsage.structure.scores import SCORES, Score, choose_score
from dsage.structure.searches.base import METHODS
from dsage.structure.searches.bes import bes
from dsage.structure.searches.boss import boss
from dsage.structure.searches.local import hill_climb, tabu
from dsage.structure.stability import Stability, stability

__all__ = [
    "METHODS",
    "SCORES",
    "Constraints",
    "Counts",
    "Degeneracies",
    "GraphInfo",
    "GraphSource",
    "Moments",
    "Score",
    "SearchResult",
    "Stability",
    "Step",
    "Stream",
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
