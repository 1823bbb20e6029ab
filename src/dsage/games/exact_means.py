"""Mean predictions without draws, for models and samplers that allow it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from dsage._check import refusal
from dsage.games.base import Floats, Mask, Rows


class ExactMeans(ABC):
    """Means of a model's predictions given the known features.

    Attributes
    ----------
    has_paths : bool
        Whether all prefixes of an ordering together take less time than one by one.
    has_cheap_rows : bool
        Whether rows cost less than orderings.
    cost : float
        The cost of one more known feature of a row, in exponentials or so; 0 if it is not known.
    """

    has_paths: bool = False
    has_cheap_rows: bool = False
    cost: float = 0.0

    @abstractmethod
    def means(self, known: Mask, rows: Rows) -> Floats:
        """Return the means (n_coalitions, n_rows, n_outputs)."""

    def path_means(self, order: Rows, rows: Rows) -> Floats:  # noqa: ARG002
        """Return the means (n_features, n_rows, n_outputs) of all proper prefixes."""
        raise refusal("means", "of a kind with paths", self, "Ask for coalitions", TypeError)
