"""Measures of importance side by side: on the same rows, sampler, loss and groups."""

from dsage.workflows.measures.explain import explain_measures
from dsage.workflows.measures.kinds import Measure
from dsage.workflows.measures.result import Measures

__all__ = ["Measure", "Measures", "explain_measures"]
