"""Conditional samplers: draws of unknown features given known ones, as pure functions of noise."""

from dsage.samplers.base import BaseSampler, Sampler, check_sampler
from dsage.samplers.choose import Auto, Choice, choose_sampler
from dsage.samplers.conditioning import normal_scores
from dsage.samplers.copula import GaussianCopula
from dsage.samplers.evaluation import Evaluation, evaluate, plot_evaluations
from dsage.samplers.function import FunctionSampler
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.info import Decision, SamplerInfo, SamplerSource
from dsage.samplers.interventional import Interventional
from dsage.samplers.marginal import Marginal
from dsage.samplers.mix import Mix
from dsage.samplers.mixture import GaussianMixture
from dsage.samplers.neighbors import Neighbors
from dsage.samplers.registry import SAMPLERS
from dsage.samplers.sequential import Sequential

__all__ = [
    "SAMPLERS",
    "Auto",
    "BaseSampler",
    "Choice",
    "Decision",
    "Evaluation",
    "FunctionSampler",
    "Gaussian",
    "GaussianCopula",
    "GaussianMixture",
    "Interventional",
    "Marginal",
    "Mix",
    "Neighbors",
    "Sampler",
    "SamplerInfo",
    "SamplerSource",
    "Sequential",
    "check_sampler",
    "choose_sampler",
    "evaluate",
    "normal_scores",
    "plot_evaluations",
]
