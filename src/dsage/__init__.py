"""How much each feature contributes to a model's predictive performance."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dsage._version import __version__

if TYPE_CHECKING:
    from dsage import (
        datasets,
        estimate,
        games,
        graphs,
        models,
        orderings,
        samplers,
        structure,
    )
    from dsage.explain import explain
    from dsage.graphs import Graph
    from dsage.result import Explanation, FoldedExplanation, load
    from dsage.result.flow import FlowExplanation
    from dsage.result.rows import RowExplanation
    from dsage.structure import learn_graph, score_graph
    from dsage.workflows.combine import combine
    from dsage.workflows.compare import compare
    from dsage.workflows.drift import compare_data
    from dsage.workflows.explainer import Explainer
    from dsage.workflows.flow import explain_flow
    from dsage.workflows.folds import explain_cv
    from dsage.workflows.measures import Measures, explain_measures
    from dsage.workflows.rows import explain_rows
    from dsage.workflows.selector import FeatureSelector

__all__ = [
    "Explainer",
    "Explanation",
    "FeatureSelector",
    "FlowExplanation",
    "FoldedExplanation",
    "Graph",
    "Measures",
    "RowExplanation",
    "__version__",
    "combine",
    "compare",
    "compare_data",
    "datasets",
    "estimate",
    "explain",
    "explain_cv",
    "explain_flow",
    "explain_measures",
    "explain_rows",
    "games",
    "graphs",
    "learn_graph",
    "load",
    "models",
    "orderings",
    "samplers",
    "score_graph",
    "structure",
]

# Names that are not subpackages, and the modules that define them.
_HOMES = {
    "Explainer": "dsage.workflows.explainer",
    "Explanation": "dsage.result",
    "FeatureSelector": "dsage.workflows.selector",
    "FlowExplanation": "dsage.result.flow",
    "FoldedExplanation": "dsage.result",
    "Graph": "dsage.graphs",
    "Measures": "dsage.workflows.measures",
    "RowExplanation": "dsage.result.rows",
    "combine": "dsage.workflows.combine",
    "compare": "dsage.workflows.compare",
    "compare_data": "dsage.workflows.drift",
    "explain": "dsage.explain",
    "explain_cv": "dsage.workflows.folds",
    "explain_flow": "dsage.workflows.flow",
    "explain_measures": "dsage.workflows.measures",
    "explain_rows": "dsage.workflows.rows",
    "learn_graph": "dsage.structure",
    "load": "dsage.result",
    "score_graph": "dsage.structure",
}


if not TYPE_CHECKING:  # type checkers know the names above only

    def __getattr__(name: str) -> Any:  # noqa: ANN401
        """Import a name when it is first used, since importing everything takes seconds."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name not in _HOMES:
            return import_module(f"dsage.{name}")
        found = getattr(import_module(_HOMES[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Keeps ``dsage.explain`` the function when the module of that name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
