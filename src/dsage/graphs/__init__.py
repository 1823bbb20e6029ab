"""Graphs, the separations that they imply, and functions to compare and generate them."""

from dsage.graphs.comparison import GraphComparison, compare_graphs
from dsage.graphs.convert import as_graph
from dsage.graphs.equivalence import (
    CPDAG,
    cpdag,
    markov_equivalent,
    structural_hamming_distance,
)
from dsage.graphs.generate import random_dag, random_linear_gaussian
from dsage.graphs.graph import Graph
from dsage.graphs.grouped import GroupedOracle
from dsage.graphs.linear_gaussian import LinearGaussian
from dsage.graphs.partial import PartialGraph
from dsage.graphs.parts import PartsOracle
from dsage.graphs.separation import (
    Consensus,
    NoSeparation,
    Oracle,
    SeparationOracle,
    as_oracle,
    is_oracle,
)

__all__ = [
    "CPDAG",
    "Consensus",
    "Graph",
    "GraphComparison",
    "GroupedOracle",
    "LinearGaussian",
    "NoSeparation",
    "Oracle",
    "PartialGraph",
    "PartsOracle",
    "SeparationOracle",
    "as_graph",
    "as_oracle",
    "compare_graphs",
    "cpdag",
    "is_oracle",
    "markov_equivalent",
    "random_dag",
    "random_linear_gaussian",
    "structural_hamming_distance",
]
