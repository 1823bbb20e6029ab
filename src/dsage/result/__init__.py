"""The result of a run: values, errors and everything that they rest on; saved and shown."""

from dsage.result.explanation import Explanation, load

__all__ = ["Explanation", "load"]
