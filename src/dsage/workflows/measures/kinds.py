"""The measures, and the question that each answers."""

from __future__ import annotations

from typing import Literal, NamedTuple

MeasureName = Literal["shapley", "total", "first-order", "cfi", "pfi", "loco"]


class Measure(NamedTuple):
    """A measure of importance: its title, and the question that it answers."""

    title: str
    question: str


MEASURES: dict[str, Measure] = {
    "shapley": Measure(
        "SAGE", "What is the feature's share of the performance, averaged over all orderings?"
    ),
    "total": Measure("total", "What is lost if only this feature becomes unknown?"),
    "first-order": Measure("first-order", "What is gained if only this feature becomes known?"),
    "cfi": Measure(
        "CFI", "How much worse is the model if the feature is redrawn given the others?"
    ),
    "pfi": Measure(
        "PFI", "How much worse is the model if the feature is redrawn regardless of the others?"
    ),
    "loco": Measure("LOCO", "How much worse is a model that is fitted without the feature?"),
}
"""The measures by name."""
