"""Models and data that ship with the package or can be downloaded."""

from dsage.datasets.drug import (
    DRUG_CATEGORICAL,
    DRUG_FEATURES,
    DRUG_SUBSTANCES,
    drug_consumption,
)
from dsage.datasets.paper import PAPER_GRAPHS, PaperGraph, paper_graph
from dsage.datasets.penguins import load_penguins

__all__ = [
    "DRUG_CATEGORICAL",
    "DRUG_FEATURES",
    "DRUG_SUBSTANCES",
    "PAPER_GRAPHS",
    "PaperGraph",
    "drug_consumption",
    "load_penguins",
    "paper_graph",
]
