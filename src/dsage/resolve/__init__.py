"""The one place where names become objects: models with their losses, graphs, samplers."""

from dsage.resolve.graph import GraphFound, find_graph
from dsage.resolve.model import find_model
from dsage.resolve.sampler import SAMPLERS, SamplerFound, as_sampler, find_sampler

__all__ = [
    "SAMPLERS",
    "GraphFound",
    "SamplerFound",
    "as_sampler",
    "find_graph",
    "find_model",
    "find_sampler",
]
