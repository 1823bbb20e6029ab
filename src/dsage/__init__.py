"""How much each feature contributes to a model's predictive performance."""

from dsage import datasets, graphs, samplers, structure
from dsage.graphs import Graph
from dsage.structure import learn_graph, score_graph

__all__ = [
    "Graph",
    "__version__",
    "datasets",
    "graphs",
    "learn_graph",
    "samplers",
    "score_graph",
    "structure",
]

__version__ = "0.1.0.dev0"
