"""Results of statsmodels as models; the package is not imported here."""

from __future__ import annotations

import sys
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import refusal, shown
from dsage.data.frames import Frame, check_columns

Array = npt.NDArray[Any]

# Models whose mean is linear in the columns of the design; those of two classes, which predict the
# probability of the second; those of several classes, which predict the probability of each.
_LINEAR = frozenset(("OLS", "WLS", "GLS", "GLSAR", "QuantReg", "RLM"))
_BINARY = frozenset(("Logit", "Probit"))
_SEVERAL = frozenset(("MNLogit", "OrderedModel"))


class ResultsOfNumbers:
    """The results of a fitted model that predicts numbers; :func:`as_results` returns one.

    A model with a formula receives a data frame, with the columns that the formula names. Any other
    receives the columns that it was fitted to, a constant among them; if these have names, columns
    are matched by name, in any order (statsmodels itself uses their position).
    """

    _estimator_type = "regressor"

    def __init__(self, results: Any) -> None:  # noqa: ANN401
        self.results = results
        self.kind = type(results.model).__name__
        self.__name__ = self.kind
        self._formula: Any = getattr(results.model, "formula", None)
        self._width = len(results.model.exog_names)
        exog: Any = getattr(results.model.data, "orig_exog", None)
        is_named = self._formula is None and isinstance(exog, pd.DataFrame)
        self._names = [str(name) for name in exog.columns] if is_named else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kind})"

    @property
    def matches_names(self) -> bool:
        """Whether columns are found by their names; otherwise their order counts."""
        return self._formula is not None or self._names is not None

    @property
    def is_affine(self) -> bool:
        """Whether the prediction is an affine function of the columns, by the type of the model."""
        model = self.results.model
        family = getattr(model, "family", None)
        is_plain = self.kind == "GLM" and _type_name(family) == "Gaussian"
        is_plain = is_plain and _type_name(getattr(family, "link", None)) == "Identity"
        # In a formula, a term that is a name is that column; functions and classes have brackets.
        columns = all(str(name).isidentifier() for name in model.exog_names)
        return (self.kind in _LINEAR or is_plain) and (self._formula is None or columns)

    @property
    def family(self) -> str:
        """The distribution of the target, such as ``"Gamma"``, if it has a name."""
        family = getattr(self.results.model, "family", None)
        return self.kind if family is None else _type_name(family)

    def predict(self, X: Any) -> Array:  # noqa: ANN401
        """Return the predictions for rows, (n_rows,) or (n_rows, n_classes)."""
        frame = Frame(X)
        rows = self._matrix(frame) if self._formula is None else self._frame(frame, X)
        return np.asarray(self.results.predict(rows))

    def _frame(self, frame: Frame, X: Any) -> pd.DataFrame:  # noqa: ANN401
        if frame.is_array:
            condition = f"a data frame for {self.kind}"
            advice = f"It was fitted with the formula {str(self._formula)!r}: pass its columns"
            raise refusal("X", condition, type(X).__name__, advice, TypeError)
        pandas: pd.DataFrame = nw.from_native(X, eager_only=True).to_pandas()
        return pandas

    def _matrix(self, frame: Frame) -> Array:
        names = self._names
        if frame.is_array or names is None:
            if len(frame.names) == self._width:
                return frame.matrix()
            if len(frame.names) == self._width - 1 and self._constant is not None:
                raise self._without_constant(list(frame.names))
            condition = f"of {self._width} columns, as {self.kind} was fitted to"
            advice = f"Its columns are {shown(self.results.model.exog_names)}"
            raise refusal("X", condition, len(frame.names), advice)
        if self._constant is not None and [*{*names} - {*frame.names}] == [self._constant]:
            raise self._without_constant(list(frame.names))
        check_columns(list(frame.names), names, f"the columns for {self.kind}", only=True)
        return frame.matrix(names)

    @property
    def _constant(self) -> str | None:
        """The name of the constant column; None without one."""
        place = getattr(self.results.model.data, "const_idx", None)
        return None if place is None else str(self.results.model.exog_names[place])

    def _without_constant(self, columns: list[str]) -> Exception:
        condition = f"with the constant column {self._constant!r} that {self.kind} was fitted with"
        advice = (
            "Pass a function as the model, which adds it: lambda X:"
            " results.predict(sm.add_constant(X, has_constant='add'))"
        )
        return refusal("X", condition, columns, advice)


class ResultsOfClasses(ResultsOfNumbers):
    """The results of a fitted model that predicts probabilities of classes.

    The classes are 0 and 1 where there are two; the labels of several are not known.
    """

    _estimator_type = "classifier"

    def __init__(self, results: Any) -> None:  # noqa: ANN401
        super().__init__(results)
        self.classes_ = None if self.kind in _SEVERAL else np.array([0, 1])

    def predict_proba(self, X: Any) -> Array:  # noqa: ANN401
        """Return the probabilities of rows, (n_rows, n_classes)."""
        predicted = self.predict(X)
        if predicted.ndim == 2:
            return predicted
        return np.stack((1.0 - predicted, predicted), axis=1)


def as_results(model: Any) -> Any:  # noqa: ANN401
    """Wrap results of statsmodels; return any other model unchanged.

    Results of time series, which do not predict rows, are refused.
    """
    if not _are_results(model):
        return model
    fitted = model.model
    if type(fitted).__module__.startswith("statsmodels.tsa"):
        condition = "one that predicts from the features of a row"
        advice = "Models of time series predict from the past; pass a function of rows"
        raise refusal("model", condition, type(fitted).__name__, advice, TypeError)
    return (ResultsOfClasses if _predicts_classes(fitted) else ResultsOfNumbers)(model)


def _are_results(model: object) -> bool:
    kinds = [
        getattr(sys.modules[module], name)
        for module, name in (
            ("statsmodels.base.wrapper", "ResultsWrapper"),
            ("statsmodels.base.model", "Results"),
        )
        if module in sys.modules
    ]
    return isinstance(model, tuple(kinds)) and hasattr(model, "predict") and hasattr(model, "model")


def _predicts_classes(fitted: Any) -> bool:  # noqa: ANN401
    """Return whether a model is one of classes; proportions of a binomial are numbers."""
    name = type(fitted).__name__
    if name in _SEVERAL:
        return True
    is_binary = name in _BINARY or _type_name(getattr(fitted, "family", None)) == "Binomial"
    return is_binary and bool(np.isin(np.asarray(fitted.endog), (0.0, 1.0)).all())


def _type_name(value: object) -> str:
    return type(value).__name__
