"""The interface of models that games predict with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dsage.data.layout import Layout
from dsage.games.base import Floats
from dsage.models.affine import Affine
from dsage.models.leaves import Leaves
from dsage.models.link_scores import Scores
from dsage.models.scores import AffineScores
from dsage.models.torch_module import TorchPredictor
from dsage.models.tree_masks import TreeMasks


class Predictor(Protocol):
    """The interface of a model, as :class:`~dsage.models.Model` has it."""

    @property
    def name(self) -> str:
        """The name used in errors."""

    @property
    def predictor(self) -> TorchPredictor | None:
        """The caller of a PyTorch module; None for other models."""

    @property
    def may_be_copied(self) -> bool:
        """Whether copies in other processes predict the same, and gain time."""

    def predict(self, X: Any, *, is_disposable: bool = False) -> Floats:  # noqa: ANN401
        """Return checked predictions, (n_rows,) or (n_rows, n_outputs).

        The model may change rows that are disposable; of others it gets a copy.
        """

    def affine(self, layout: Layout, X: Any) -> Affine | None:  # noqa: ANN401
        """Return the model as an affine map, or None if it is not known to be one."""

    def leaves(self, layout: Layout, X: Floats) -> Leaves | None:
        """Return the leaves of trees whose sum the model predicts; None for other models."""

    def scores(self, layout: Layout, X: Floats) -> Scores | None:
        """Return scores of whose sums the model predicts a link; None for other models."""

    def tree_masks(self, layout: Layout, X: Floats) -> TreeMasks | None:
        """Return small trees in a form that predicts faster; None for other models."""

    def affine_scores(self, layout: Layout, X: Floats) -> AffineScores | None:
        """Return the affine functions behind a model with a link; None for other models."""

    def encoded(self, layout: Layout, X: Floats) -> Callable[[Floats], Floats] | None:
        """Return a function that predicts encoded rows in less time; None if there is none."""

    def check_means(self, means: Floats, n_outputs: tuple[int, ...]) -> Floats:
        """Check means (..., *n_outputs) and return them as the game uses them."""
