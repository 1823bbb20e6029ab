"""The `plot` attribute of results, whose methods draw plots and return their axes."""

from __future__ import annotations

from typing import Any


class _Plots:
    """The plots of a result."""

    def __init__(self, result: object) -> None:
        self._result = result

    def _draw(self, name: str, *others: object, **options: Any) -> Any:  # noqa: ANN401
        from dsage import plots  # noqa: PLC0415

        return getattr(plots, name)(self._result, *others, **options)

    def __repr__(self) -> str:
        own = [name for name in vars(type(self)) if not name.startswith("_")]
        return f"{type(self).__name__}({', '.join(own)})"


class Plotter(_Plots):
    """The plots of an explanation."""

    def bar(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw the ranking with intervals; see :func:`dsage.plots.bar`."""
        return self._draw("bar", **options)

    def convergence(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw how values and errors developed; see :func:`dsage.plots.convergence`."""
        return self._draw("convergence", **options)

    def graph(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw the graph with the target and its blanket; see :func:`dsage.plots.graph`."""
        return self._draw("graph", **options)

    def audit(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw what skipping changed; see :func:`dsage.plots.audit`."""
        return self._draw("audit", **options)

    def parts(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw direct and indirect parts of causal values; see :func:`dsage.plots.parts`."""
        return self._draw("parts", **options)

    def graph_range(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw causal values with each possible graph; see :func:`dsage.plots.graph_range`."""
        return self._draw("graph_range", **options)

    def sage_and_dsage(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw SAGE against d-SAGE; see :func:`dsage.plots.sage_and_dsage`."""
        return self._draw("sage_and_dsage", **options)

    def compare(self, *others: object, **options: Any) -> Any:  # noqa: ANN401
        """Draw this next to other explanations; see :func:`dsage.plots.compare`."""
        return self._draw("compare", *others, **options)


class RowPlotter(_Plots):
    """The plots of explained rows."""

    def waterfall(self, row: int = 0, **options: Any) -> Any:  # noqa: ANN401
        """Draw how features lead to the prediction of a row; see :func:`dsage.plots.waterfall`."""
        return self._draw("waterfall", row, **options)

    def beeswarm(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw the values of all rows, feature by feature; see :func:`dsage.plots.beeswarm`."""
        return self._draw("beeswarm", **options)

    def scatter(self, feature: str, **options: Any) -> Any:  # noqa: ANN401
        """Draw the SHAP values of a feature over the feature; see :func:`dsage.plots.scatter`."""
        return self._draw("scatter", feature, **options)


class FoldPlotter(_Plots):
    """The plots of a result of cross-validation."""

    def folds(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw the values of all folds with two intervals; see :func:`dsage.plots.folds`."""
        return self._draw("folds", **options)


class CombinedPlotter(_Plots):
    """The plots of combined explanations."""

    def values(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw the values of all explanations with their mean; see :func:`dsage.plots.combined`."""
        return self._draw("combined", **options)


class ComparisonPlotter(_Plots):
    """The plots of a comparison, which the function `name` of :mod:`dsage.plots` draws."""

    def __init__(self, result: object, name: str) -> None:
        super().__init__(result)
        self._name = name

    def differences(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw values and differences; see :func:`dsage.plots.compare_models`."""
        return self._draw(self._name, **options)


class FlowPlotter(_Plots):
    """The plots of a flow along the edges of a graph."""

    def flow(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw the graph with edges as wide as their flow; see :func:`dsage.plots.flow`."""
        return self._draw("flow", **options)
