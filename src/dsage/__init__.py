"""How much each feature contributes to a model's predictive performance."""

from dsage import datasets, estimate, games, graphs, losses, models, orderings, samplers, structure
from dsage._version import __version__
from dsage.explain import explain
from dsage.explanation import Explanation, load
from dsage.graphs import Graph
from dsage.structure import learn_graph, score_graph

__all__ = [
    "Explanation",
    "Graph",
    "__version__",
    "datasets",
    "estimate",
    "explain",
    "games",
    "graphs",
    "learn_graph",
    "load",
    "losses",
    "models",
    "orderings",
    "samplers",
    "score_graph",
    "structure",
]
