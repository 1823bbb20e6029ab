"""How much each feature contributes to a model's predictive performance."""

from dsage import datasets, graphs
from dsage.graphs import Graph

__all__ = ["Graph", "__version__", "datasets", "graphs"]

__version__ = "0.1.0.dev0"
