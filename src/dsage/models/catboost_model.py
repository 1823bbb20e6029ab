"""Models of CatBoost's base class, which predict scores unless they are asked for probabilities.

`CatBoostClassifier` and `CatBoostRegressor` have the interface of scikit-learn.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

_OF_CLASSES = frozenset(("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll"))


class CatBoostOfClasses:
    """A `catboost.CatBoost` whose loss function is one of classes."""

    _estimator_type = "classifier"

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        self.model = model
        self.classes_ = np.asarray(model.classes_)
        self.__name__ = "CatBoost"

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        """Return the classes of rows, (n_rows,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: ANN401
        """Return the probabilities of rows, (n_rows, n_classes)."""
        return np.asarray(self.model.predict(X, prediction_type="Probability"))


def as_catboost(model: Any) -> Any:  # noqa: ANN401
    """Wrap a classifier of CatBoost's base class; return any other model unchanged."""
    module = sys.modules.get("catboost")
    if module is None or type(model) is not module.CatBoost or not model.is_fitted():
        return model
    objective = str(model.get_all_params().get("loss_function", "")).partition(":")[0]
    return CatBoostOfClasses(model) if objective in _OF_CLASSES else model
