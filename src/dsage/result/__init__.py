"""The result of a run: values, errors and everything that they rest on; saved and shown."""

from dsage.result.explanation import Explanation, FeatureRecord
from dsage.result.run_info import RunInfo
from dsage.result.saving import load

__all__ = ["Explanation", "FeatureRecord", "RunInfo", "load"]
