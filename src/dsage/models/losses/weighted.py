"""Cross entropy in which classes have weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import check_real, refusal, shown
from dsage.data.categories import sort_labels
from dsage.data.targets import as_classes, find_codes, values
from dsage.models.losses.base import Array, Floats, Loss


@dataclass(frozen=True)
class ClassWeighted(Loss):
    """Cross entropy times the weight of the class, which is part of the target.

    The target is a matrix (n_rows, n_classes) with the weight of the class of the row in the
    column of the class, which the kernel of cross entropy multiplies with.
    """

    class_weight: tuple[tuple[Any, float], ...] = ()

    def target(
        self,
        y: Any,  # noqa: ANN401
        classes: Sequence[Any] | Array | None = None,
        n_classes: int | None = None,
    ) -> Array:
        """Return the target of cross entropy, as probabilities times weights."""
        found = super().target(y, classes, n_classes)
        if classes is None:
            labels = sort_labels(list(pd.unique(pd.Series(values(y))))) if found.ndim == 1 else None
        else:
            labels = list(as_classes(classes))
        if labels is None:
            advice = "Pass class labels as y, or name the classes with classes="
            raise refusal("y", f"labels for {self.name}", "probabilities", advice, TypeError)
        weights = self._by_class(labels)
        soft: Floats = np.eye(len(labels))[found] if found.ndim == 1 else found
        return soft * weights

    def target_for(
        self,
        prediction: Floats,
        y: Any = None,  # noqa: ANN401
        classes: Sequence[Any] | Array | None = None,
    ) -> Array:
        """Return the target; without `y`, the model's own probabilities times weights."""
        found = super().target_for(prediction, y, classes)
        return self.target(found, classes) if y is None else found

    def _by_class(self, labels: list[Any]) -> Floats:
        """Return the weights of classes; those without one have the weight 1."""
        named = [label for label, _ in self.class_weight]
        at = find_codes(np.array(named, dtype=object), labels)
        if (at < 0).any():
            unknown = [label for label, code in zip(named, at, strict=True) if code < 0]
            condition = f"of the model's classes ({shown(labels)})"
            raise refusal("class_weight", condition, unknown, "Leave these out")
        weights = np.ones(len(labels))
        weights[at] = [weight for _, weight in self.class_weight]
        return weights


@dataclass(frozen=True)
class Balanced(ClassWeighted):
    """Cross entropy with weights, counted in the training rows, that balance the classes."""

    def fitted_to(self, y: Array) -> Loss:
        """Return the loss with the weights n / (k n_c) of the k classes of targets.

        Parameters
        ----------
        y : array of shape (n_rows,)
            The targets; n of them, n_c of class c.
        """
        counts = pd.Series(values(y)).value_counts(sort=False)
        weights = len(y) / (len(counts) * counts)
        own: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(Loss)}
        return ClassWeighted(**own, class_weight=tuple(weights.items()))

    def target(
        self,
        y: Any,  # noqa: ANN401
        classes: Sequence[Any] | Array | None = None,
        n_classes: int | None = None,
    ) -> Array:
        """Return the target with weights from these rows, if there are no training targets."""
        return self.fitted_to(y).target(y, classes, n_classes)


def weigh_classes(loss: Loss, class_weight: Mapping[Any, float] | str) -> Loss:
    """Return cross entropy with weights of the classes; classes without one have the weight 1.

    The loss of a row is multiplied with the weight of its class. Weights are not scaled: with
    weights of 10, all values are ten times as large. ``"balanced"`` gives all classes the same
    total weight.

    Examples
    --------
    >>> from dsage.models import as_loss
    >>> loss = as_loss("cross_entropy", class_weight={"ill": 10.0})
    >>> y = loss.target(["ill", "well"])
    >>> loss(y, np.array([0.5, 0.5])).round(2)
    array([6.93, 0.69])
    """
    if loss.name != "cross_entropy":
        advice = "For another loss, pass sample_weight= with the weight of the class of each row"
        raise refusal(
            "class_weight", "given for 'cross_entropy' only", loss.name, advice, TypeError
        )
    own: dict[str, Any] = {field.name: getattr(loss, field.name) for field in fields(Loss)}
    if isinstance(class_weight, str) and class_weight == "balanced":
        return Balanced(**own | {"name": f"{loss.name}(balanced)"})
    if not isinstance(class_weight, Mapping) or not class_weight:
        condition = "a mapping of classes, or 'balanced'"
        advice = "Pass a weight for each class, such as {'ill': 10.0}"
        raise refusal("class_weight", condition, class_weight, advice, TypeError)
    largest = np.finfo(np.float64).max
    weights = tuple(
        (label, check_real(weight, f"class_weight[{label!r}]", above=0.0, high=largest))
        for label, weight in class_weight.items()
    )
    words = ", ".join(f"{label}: {weight:g}" for label, weight in weights)
    own["name"] = f"{loss.name}({words})"
    return ClassWeighted(**own, class_weight=weights)
