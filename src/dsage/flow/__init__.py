"""Flows along the edges of a causal graph: mechanisms, orderings of edges, payoffs."""

from dsage.flow.estimate import FlowEstimate, estimate_flow
from dsage.flow.game import FlowGame
from dsage.flow.mechanisms import Mechanism, fit_mechanisms
from dsage.flow.network import Network

__all__ = [
    "FlowEstimate",
    "FlowGame",
    "Mechanism",
    "Network",
    "estimate_flow",
    "fit_mechanisms",
]
