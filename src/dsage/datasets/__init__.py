"""Models and data that ship with the package."""

from dsage.datasets.paper import PAPER_GRAPHS, PaperGraph, paper_graph

__all__ = ["PAPER_GRAPHS", "PaperGraph", "paper_graph"]
