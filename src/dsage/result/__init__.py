"""Results of runs: values, errors and everything they are based on; shown, saved and loaded."""

from dsage.result.combined import CombinedExplanation
from dsage.result.comparison import DataComparison, ModelComparison
from dsage.result.explanation import Explanation, FeatureRecord
from dsage.result.flow import FlowEdge, FlowExplanation
from dsage.result.folded import FoldedExplanation
from dsage.result.run_info import RunInfo
from dsage.result.saving import load

__all__ = [
    "CombinedExplanation",
    "DataComparison",
    "Explanation",
    "FeatureRecord",
    "FlowEdge",
    "FlowExplanation",
    "FoldedExplanation",
    "ModelComparison",
    "RunInfo",
    "load",
]
