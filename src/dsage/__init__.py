"""How much each feature contributes to a model's predictive performance."""

from dsage import datasets, estimate, games, graphs, losses, models, orderings, samplers, structure
from dsage._version import __version__
from dsage.graphs import Graph
from dsage.structure import learn_graph, score_graph

__all__ = [
    "Graph",
    "__version__",
    "datasets",
    "estimate",
    "games",
    "graphs",
    "learn_graph",
    "losses",
    "models",
    "orderings",
    "samplers",
    "score_graph",
    "structure",
]
