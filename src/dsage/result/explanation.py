"""The result that a user holds: to read, plot, report, save."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsage.report import write_report
from dsage.result.record import Record
from dsage.result.saving import load_record, save_record
from dsage.result.tables import as_html, as_text


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Record):
    """How much each feature contributes to a model's predictive performance.

    :func:`dsage.explain` makes one. It shows as a table in a terminal and in a notebook.

    Attributes
    ----------
    values, se : arrays of shape (n_features,)
        The SAGE values and their standard errors, in the order of `feature_names`.
    feature_names : tuple of str
        The features, or the groups.
    choices : Choices
        Everything that was chosen, and by whom; print it.
    plot : Plotter
        The pictures: ``bar``, ``convergence``, ``graph``, ``audit``, ``compare``,
        ``sage_and_dsage``.
    estimate, target, graph, edge_strength, sampler_scores, groups, warnings
        What it rests on, see :class:`dsage.result.record.Record`.
    """

    @property
    def plot(self) -> Plotter:
        """The pictures of this explanation."""
        return Plotter(self)

    def report(self, path: str | Path) -> Path:
        """Write the report, one HTML file that needs nothing else, and return its path."""
        return write_report(self, path)

    def save(self, path: str | Path) -> Path:
        """Write everything into one file, JSON and arrays; :func:`dsage.load` reads it."""
        return save_record(self, path)

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def load(path: str | Path) -> Explanation:
    """Return the explanation that :meth:`Explanation.save` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    FileNotFoundError, ValueError
        Where there is no file, or one that is damaged or something else.
    """
    return load_record(path, Explanation)


class Plotter:
    """The pictures of an explanation; each returns the axes that it drew on.

    Parameters
    ----------
    explanation : Explanation
        What is drawn.
    """

    def __init__(self, explanation: Explanation) -> None:
        self._explanation = explanation

    def bar(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw the ranking with intervals; see :func:`dsage.plots.bar`."""
        return self._drawn("bar", **options)

    def convergence(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw how values and errors developed; see :func:`dsage.plots.convergence`."""
        return self._drawn("convergence", **options)

    def graph(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw the graph with the target and its blanket; see :func:`dsage.plots.graph`."""
        return self._drawn("graph", **options)

    def audit(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw what skipping changed; see :func:`dsage.plots.audit`."""
        return self._drawn("audit", **options)

    def sage_and_dsage(self, **options: Any) -> Any:  # noqa: ANN401
        """Draw SAGE against d-SAGE; see :func:`dsage.plots.sage_and_dsage`."""
        return self._drawn("sage_and_dsage", **options)

    def compare(self, *others: Record, **options: Any) -> Any:  # noqa: ANN401
        """Draw this beside other explanations; see :func:`dsage.plots.compare`."""
        return self._drawn("compare", *others, **options)

    def _drawn(self, name: str, *others: Record, **options: Any) -> Any:  # noqa: ANN401
        from dsage import plots  # noqa: PLC0415

        return getattr(plots, name)(self._explanation, *others, **options)

    def __repr__(self) -> str:
        return "Plotter(bar, convergence, graph, audit, sage_and_dsage, compare)"
