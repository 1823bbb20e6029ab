"""Native boosters of XGBoost and LightGBM as models; neither package is imported here.

Their predictions do not depend on the number of threads or on the rows predicted together, to the
bit, so they keep their own threads.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from dsage._check import check_shape, refusal, shown
from dsage.data.columns import is_numeric
from dsage.data.frames import Frame, check_columns

Array = npt.NDArray[Any]

# The output of each objective: the probability of the second class, its logit, logits or
# probabilities of each class, or a number. Other objectives return scores that no loss can judge.
# fmt: off
_XGBOOST = {
    "binary:logistic": "second", "binary:logitraw": "logit", "multi:softmax": "logits",
    "multi:softprob": "each",
    **dict.fromkeys((
        "count:poisson", "reg:absoluteerror", "reg:expectileerror", "reg:gamma", "reg:linear",
        "reg:logistic", "reg:pseudohubererror", "reg:quantileerror", "reg:squarederror",
        "reg:squaredlogerror", "reg:tweedie",
    ), "number"),
}
_LIGHTGBM = {
    "binary": "second", "cross_entropy": "second", "multiclass": "each",
    "multiclassova": "each",
    **dict.fromkeys((
        "fair", "gamma", "huber", "mape", "poisson", "quantile", "regression", "regression_l1",
        "tweedie",
    ), "number"),
}
# fmt: on


class BoosterOfNumbers:
    """A booster that predicts numbers; :func:`as_booster` returns one.

    Columns of data frames are matched by name to those of the training data, in any order.
    Categories must be those of the training data.
    """

    def __init__(self, booster: Any, objective: str) -> None:  # noqa: ANN401
        self.booster = booster
        self.objective = objective
        self.is_xgboost = _is_of("xgboost", booster)
        self.__name__ = "xgboost.Booster" if self.is_xgboost else "lightgbm.Booster"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__name__}, objective={self.objective!r})"

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the objective, such as a quantile, if the booster stores them."""
        if not self.is_xgboost:
            return dict(self.booster.params)
        config = json.loads(self.booster.save_config())["learner"]["objective"]
        groups = [group for group in config.values() if isinstance(group, dict)]
        return {name: _number(text) for group in groups for name, text in group.items()}

    def predict(self, X: Any, **options: Any) -> Array:  # noqa: ANN401
        """Return the output of ``booster.predict``, (n_rows,) or (n_rows, n_outputs)."""
        names = self._feature_names()
        frame = Frame(X)
        rows = frame.matrix() if frame.is_array else self._order_columns(frame, names)
        width = self.booster.num_features() if self.is_xgboost else self.booster.num_feature()
        advice = f"Its columns are {shown(names)}" if names else "Pass those of the training data"
        check_shape(rows, ("n_rows", width), f"the data for {self.__name__}", advice)
        if not self.is_xgboost:
            return np.asarray(self.booster.predict(rows, **options))
        described: dict[str, Any] = {}
        if frame.is_array:
            described = {"feature_names": names, "feature_types": self.booster.feature_types}
        data = sys.modules["xgboost"].DMatrix(rows, enable_categorical=True, **described)
        # A booster that was trained on an array has no names to compare with.
        return np.asarray(self.booster.predict(data, validate_features=bool(names), **options))

    def _order_columns(self, frame: Frame, names: list[str] | None) -> Any:  # noqa: ANN401
        """Return the columns in the order of the training data, in a form for the booster."""
        columns = list(frame.names)
        if names is not None:
            # LightGBM writes its names without spaces.
            space = " " if self.is_xgboost else "_"
            by_name = {column.replace(" ", space): column for column in columns}
            check_columns(list(by_name), names, f"the columns for {self.__name__}", only=True)
            columns = [by_name[name] for name in names]
        rows = frame.select(columns)
        dtypes = {name: frame.dtypes[name] for name in columns}
        if all(map(is_numeric, dtypes.values())):
            return rows
        pandas = nw.from_native(rows, eager_only=True).to_pandas()
        texts = [name for name in columns if isinstance(dtypes[name], nw.String | nw.Object)]
        if not texts:
            return pandas
        self._check_categories(texts)
        return pandas.astype(dict.fromkeys(texts, "category"))

    def _check_categories(self, texts: list[str]) -> None:
        """Refuse strings if the booster does not know their codes in training."""
        if self.is_xgboost:
            # Versions before 3.1 do not store categories.
            get = getattr(self.booster, "get_categories", None)
            types = self.booster.feature_types
            known = get is not None and types is not None and "c" in types
        else:
            known = bool(self.booster.pandas_categorical)
        if not known:
            condition = "of numbers, or of the categories of the training data"
            advice = "The booster does not store them: pass pandas categories in the same order"
            raise refusal(f"the columns for {self.__name__}", condition, texts, advice, TypeError)

    def _feature_names(self) -> list[str] | None:
        """Return the names of the columns, None if the booster was trained on an array."""
        if self.is_xgboost:
            names: list[str] | None = self.booster.feature_names
            return names
        written: list[str] = self.booster.feature_name()
        is_array = written == [f"Column_{number}" for number in range(len(written))]
        return None if is_array else written


class BoosterOfClasses(BoosterOfNumbers):
    """A booster that predicts classes, with one probability per class.

    XGBoost's ``multi:softmax`` and ``binary:logitraw`` predict classes and logits: probabilities
    are computed from their margins. LightGBM's ``multiclassova`` predicts a separate probability
    for each class, which are divided by their sum. The labels of the classes are unknown, since
    boosters are trained on codes.
    """

    def __init__(self, booster: Any, objective: str, output: str) -> None:  # noqa: ANN401
        super().__init__(booster, objective)
        self._output = output

    def predict_proba(self, X: Any) -> Array:  # noqa: ANN401
        """Return the probabilities of rows, (n_rows, n_classes)."""
        margin = {"output_margin": True} if self._output.startswith("logit") else {}
        raw = self.predict(X, **margin).astype(np.float64)
        if self._output == "logits":
            raw = np.exp(raw - raw.max(axis=1, keepdims=True))
        elif self._output == "logit":
            raw = 0.5 * (1.0 + np.tanh(0.5 * raw))
        if raw.ndim == 1:
            return np.stack((1.0 - raw, raw), axis=1)
        shares: Array = raw / raw.sum(axis=1, keepdims=True)
        return shares


def as_booster(model: Any) -> Any:  # noqa: ANN401
    """Wrap a native booster of XGBoost or LightGBM; return any other model unchanged.

    Objectives that yield scores (ranking, survival, hinge) are refused.
    """
    if _is_of("xgboost", model):
        objective = json.loads(model.save_config())["learner"]["objective"]["name"]
        outputs = _XGBOOST
    elif _is_of("lightgbm", model):
        objective, outputs = _lightgbm_objective(model), _LIGHTGBM
    else:
        return model
    output = outputs.get(objective)
    if output is None:
        condition = "one of numbers or of probabilities"
        advice = "It yields scores: pass a function from rows to predictions, and a loss"
        raise refusal("the objective of the booster", condition, objective, advice)
    if output == "number":
        return BoosterOfNumbers(model, objective)
    return BoosterOfClasses(model, objective, output)


def _lightgbm_objective(booster: Any) -> str:  # noqa: ANN401
    """Return the objective that a booster stores; a custom one predicts raw numbers."""
    for line in booster.model_to_string(num_iteration=1).splitlines():
        if line.startswith("objective="):
            return str(line.removeprefix("objective=").split()[0])
        if line.startswith("Tree="):
            break
    return "regression"


def _number(text: str) -> float | None:
    """Return a number as XGBoost writes it, in brackets if there may be several."""
    try:
        return float(text.strip("[]"))
    except ValueError:
        return None


def _is_of(package: str, model: object) -> bool:
    # A booster exists only if its package has been imported.
    module = sys.modules.get(package)
    return module is not None and isinstance(model, module.Booster)
