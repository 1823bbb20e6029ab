"""A mixture of Gaussians times tables: the sampler for mixed, clustered and curved data."""

from dsage.samplers.mix.sampler import Mix, MixOrdering

__all__ = ["Mix", "MixOrdering"]
