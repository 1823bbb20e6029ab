"""Models: split rows for them, load or fit them, and check that they match the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from dsage._check import record_warnings, refusal, shown
from dsage.cli.commands import ExplainCommand
from dsage.cli.options import FITS
from dsage.cli.output import note
from dsage.cli.tables import TargetRequest
from dsage.data.categories import sort_labels
from dsage.data.columns import column_kind
from dsage.data.layout import Layout
from dsage.data.targets import codes, values
from dsage.models.adapt import adapt
from dsage.models.calling import some_rows
from dsage.models.files import load_model
from dsage.models.losses import as_loss, choose_loss, gives_classes
from dsage.models.model import as_model
from dsage.models.origin import names_file
from dsage.models.statsmodels_results import ResultsOfNumbers

Indices = npt.NDArray[np.intp]

_MIN_ROWS = 10
# With pure leaves, forests predict probabilities of 0 and 1, and cross entropy would be infinite.
_MIN_LEAF = 5
# Rarer categories are merged; gradient boosting takes 255 at most.
_MAX_CATEGORIES = 100
_BOOLEANS = {"true": True, "false": False}


# Rows to learn from, and rows to evaluate


class Split(NamedTuple):
    """Training and evaluation rows, and the kinds of the features.

    `classes` are the features that are classes, by their type or as set by the user, `discrete` the
    numeric columns among them, and `times` the columns of dates and times. `has_gaps` is whether
    numbers or times are missing. `is_shared` is whether both have all rows.
    """

    X_train: pd.DataFrame
    y_train: pd.Series[Any]
    X_test: pd.DataFrame
    y_test: pd.Series[Any]
    classes: tuple[str, ...]
    discrete: tuple[str, ...]
    times: tuple[str, ...]
    has_gaps: bool
    is_classification: bool
    is_shared: bool


def split_rows(
    table: pd.DataFrame,
    target: str,
    *,
    test: pd.DataFrame | None,
    test_size: float,
    discrete: Sequence[str],
    is_classification: bool,
    seed: int,
) -> Split:
    """Split a table into training and evaluation rows.

    `test` are the evaluation rows, which may be the table itself; None holds out some rows of the
    table: the fraction `test_size` or, if it is 1 or more, this number of rows.
    """
    kinds = {str(name): column_kind(table[name]) for name in table.columns if name != target}
    classes = tuple(name for name, kind in kinds.items() if kind == "class" or name in discrete)
    train, evaluation = table, test
    if evaluation is None:
        labels = table[target] if is_classification else None
        kept, held = _hold_out(len(table), labels, test_size, seed)
        train, evaluation = table.iloc[kept], table.iloc[held]
    train, evaluation = train.reset_index(drop=True), evaluation.reset_index(drop=True)
    numbers = [name for name in kinds if name not in classes]
    return Split(
        X_train=train.drop(columns=target),
        y_train=train[target],
        X_test=evaluation.drop(columns=target),
        y_test=evaluation[target],
        classes=classes,
        discrete=tuple(name for name in classes if kinds[name] == "number"),
        times=tuple(name for name in numbers if kinds[name] == "time"),
        has_gaps=any(bool(each[numbers].isna().any(axis=None)) for each in (train, evaluation)),
        is_classification=is_classification,
        is_shared=test is table,
    )


def _hold_out(
    n_rows: int, labels: pd.Series[Any] | None, test_size: float, seed: int
) -> tuple[Indices, Indices]:
    """Return training and evaluation rows; all labels of the target occur in the former."""
    if n_rows < _MIN_ROWS:
        advice = "Add rows, or provide evaluation rows with --test"
        raise refusal("the data", f"{_MIN_ROWS} rows or more", n_rows, advice)
    size = round(test_size * n_rows) if test_size < 1 else int(test_size)
    # One row cannot be learned from.
    if not 1 <= size <= n_rows - 2:
        advice = "Use a fraction such as 0.25, or a number of rows"
        raise refusal("--test-size", f"fewer than all {n_rows} rows", test_size, advice)
    counts = None if labels is None else labels.value_counts()
    can_stratify = (
        counts is not None and int(counts.min()) >= 2 and len(counts) <= min(size, n_rows - size)
    )
    kept, held = train_test_split(
        np.arange(n_rows),
        test_size=size,
        random_state=seed,
        stratify=labels if can_stratify else None,
    )
    is_new = np.zeros(len(held), bool)
    if labels is not None:
        is_new = ~labels.iloc[held].isin(labels.iloc[kept].unique()).to_numpy()
    if is_new.all():
        advice = "Choose a larger --test-size, or remove classes that occur once"
        condition = "of classes that also occur in other rows"
        raise refusal("some held-out rows", condition, f"{size} rows", advice)
    return np.sort(np.concatenate([kept, held[is_new]])), np.sort(held[~is_new])


# The model of a command


def read_model(command: ExplainCommand) -> Any:  # noqa: ANN401
    """Return the model of ``--model``, or None."""
    if command.model is None:
        return None
    trusted = tuple(command.trust or ())
    return load_model(command.model, trusted=trusted, trust_pickle=command.trust_pickle)


def find_request(command: ExplainCommand, model: Any) -> TargetRequest | None:  # noqa: ANN401
    """Return the kind of target that model or loss need; None if the options leave it open."""
    if command.fit in ("lm", "logistic"):
        return TargetRequest("--fit", command.fit, command.fit == "logistic")
    if command.loss != "auto":
        return TargetRequest("--loss", command.loss, as_loss(command.loss).is_of_classes)
    if model is None:
        return None
    is_of_classes = bool(command.labels) or gives_classes(model)
    return TargetRequest("--model", str(command.model), is_of_classes)


def ready_model(
    command: ExplainCommand,
    model: Any,  # noqa: ANN401
    split: Split,
    options: dict[str, Any],
) -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    """Return the fitted model, with training and evaluation rows in the form that it takes.

    The classes of a loaded model are added to `options`.
    """
    if model is None:
        return fit_model(command, split), split.X_train, split.X_test
    X_train, X_test = (align_columns(model, each) for each in (split.X_train, split.X_test))
    note_column_order(model, X_train)
    if command.labels:
        options["classes"] = parse_labels(command.labels, split.y_train, split.y_test)
    return model, X_train, X_test


def fit_model(command: ExplainCommand, split: Split) -> Any:  # noqa: ANN401
    """Return a model fitted to the training rows."""
    reason = "" if command.fit else ", since neither --model nor --fit is given"
    model = new_model(command, split, f"to {len(split.y_train)} rows{reason}")
    return model.fit(split.X_train, split.y_train)


def new_model(command: ExplainCommand, split: Split, where: str) -> Any:  # noqa: ANN401
    """Return the unfitted model of ``--fit``; a note says `where` it is fitted."""
    fit = command.fit or "rf"
    kind = "classes" if split.is_classification else "numbers"
    note(f"Fitting {FITS[fit]} of {kind} {where}.", quiet=command.quiet)
    return make_model(
        fit,
        split.classes,
        split.times,
        has_gaps=split.has_gaps,
        is_classification=split.is_classification,
        seed=command.seed,
    )


# Models to fit


class TimesToNumbers(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn columns of dates and times into distances from the earliest one; missing ones into NaN.

    Attributes
    ----------
    layout_ : Layout
        The columns of the training rows.
    """

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:  # noqa: ARG002
        """Learn the columns."""
        with record_warnings(show=False):
            self.layout_ = Layout.of(X)
        return self

    def transform(self, X: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Return the columns as floats."""
        return self.layout_.encode(X)


class EmptyToZero(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fill numeric columns that are empty in training with 0, for gradient boosting.

    Attributes
    ----------
    is_empty_ : bool array of shape (n_features,)
        The columns that were empty.
    """

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ANN401, ARG002
        """Learn which columns are empty."""
        self.is_empty_ = np.isnan(np.asarray(X, np.float64)).all(axis=0)
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: ANN401
        """Return the columns as floats."""
        numbers = np.asarray(X, np.float64)
        return np.where(self.is_empty_, 0.0, numbers) if self.is_empty_.any() else numbers


def make_model(
    fit: str,
    classes: Sequence[str],
    times: Sequence[str] = (),
    *,
    has_gaps: bool = False,
    is_classification: bool,
    seed: int,
) -> Any:  # noqa: ANN401
    """Return an unfitted model: encoders of classes and times, imputers, scalers, an estimator.

    Missing values of classes are one category, and rare categories together are another. Trees
    take missing numbers as they are. For linear models, missing numbers are replaced by the mean,
    and an indicator is added.
    """
    if fit == "lm" and is_classification:
        advice = "Choose --fit logistic, rf or hgb"
        raise refusal("--fit", "a classifier if the target is a class", fit, advice)
    if fit in ("lm", "logistic"):
        linear = LinearRegression() if fit == "lm" else LogisticRegression(max_iter=1000)
        filled = [SimpleImputer(add_indicator=True, keep_empty_features=True)] if has_gaps else []
        steps = [*filled, StandardScaler()]
        return _join(_one_hot(), classes, times, steps, linear)
    if fit == "rf":
        kind = RandomForestClassifier if is_classification else RandomForestRegressor
        forest = kind(100, min_samples_leaf=_MIN_LEAF, random_state=seed)
        return _join(_one_hot(), classes, times, [], forest)
    boosted = HistGradientBoostingClassifier if is_classification else HistGradientBoostingRegressor
    ordinal = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, max_categories=_MAX_CATEGORIES
    )
    which = {"categorical_features": list(range(len(classes)))} if classes else {}
    steps = [EmptyToZero()] if has_gaps else []
    return _join(ordinal, classes, times, steps, boosted(random_state=seed, **which))


def _one_hot() -> OneHotEncoder:
    # Categories that training lacks are encoded as rare ones, or as zeros.
    return OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=_MAX_CATEGORIES, sparse_output=False
    )


def _join(
    encoder: Any,  # noqa: ANN401
    classes: Sequence[str],
    times: Sequence[str],
    steps: list[Any],
    estimator: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return a pipeline: encode classes, convert times, apply `steps` to the rest, estimate."""
    if not (classes or times):
        # A pipeline of affine steps is affine: then risks need no draws.
        return make_pipeline(*steps, estimator) if steps else estimator
    parts = []
    if classes:
        parts.append((encoder, list(classes)))
    if times:
        parts.append((make_pipeline(TimesToNumbers(), *steps), list(times)))
    rest = "passthrough" if not steps else steps[0] if len(steps) == 1 else make_pipeline(*steps)
    return make_pipeline(make_column_transformer(*parts, remainder=rest), estimator)


# Loaded models


@names_file
def align_columns(model: Any, X: pd.DataFrame) -> pd.DataFrame:  # noqa: ANN401
    """Return the columns in the order in which the model was fitted, if it stores their names."""
    names = _column_names(model)
    if names is None:
        n_wanted = getattr(model, "n_features_in_", None)
        if isinstance(n_wanted, int) and n_wanted != X.shape[1]:
            advice = "Leave columns out with --drop, or use the data that the model was fitted to"
            raise refusal("the number of features", f"the model's, {n_wanted}", X.shape[1], advice)
        return X
    absent = [str(name) for name in names if name not in X.columns]
    extra = [str(name) for name in X.columns if name not in set(names)]
    if absent or extra:
        advice = f"These are missing: {', '.join(map(repr, absent))}"
        if not absent:
            dropped = " ".join(f"--drop {name!r}" for name in extra)
            advice = f"Leave out the columns that the model does not know: {dropped}"
        raise refusal("the features", "the features of the model", list(X.columns), advice)
    return X[list(names)]


def _column_names(model: Any) -> Sequence[Any] | None:  # noqa: ANN401
    """Return the names of the columns that an estimator was fitted to; None without names."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        # CatBoost's name; it numbers columns without names from 0.
        names = getattr(model, "feature_names_", None)
        if names is not None and list(names) == [str(at) for at in range(len(names))]:
            names = None
    return names


def parse_labels(
    texts: Sequence[str], y_train: pd.Series[Any], y_test: pd.Series[Any]
) -> list[str | int | float | bool]:
    """Return the labels of ``--classes`` in the type of the target."""
    both = pd.concat([y_train, y_test])
    try:
        labels = [_parse_label(text.strip(), both.dtype) for text in texts]
    except (KeyError, ValueError):
        kind = "true or false" if both.dtype == np.bool_ else "numbers"
        advice = f"The target has {shown(both.unique().tolist()[:6])}"
        raise refusal("--classes", f"{kind}, as in the target", ",".join(texts), advice) from None
    if absent := [label for label in both.unique().tolist() if label not in labels]:
        advice = f"The target also has {shown(absent)}: name all classes, in the model's order"
        raise refusal("--classes", "all classes of the model", labels, advice)
    return labels


def _parse_label(text: str, dtype: Any) -> str | int | float | bool:  # noqa: ANN401
    if dtype == np.bool_:
        return _BOOLEANS[text.lower()]
    if pd.api.types.is_integer_dtype(dtype):
        return int(text)
    return float(text) if pd.api.types.is_numeric_dtype(dtype) else text


@names_file
def note_column_order(model: Any, X: pd.DataFrame) -> None:  # noqa: ANN401
    """Warn about the assumed order of columns if the model does not store their names.

    ``--quiet`` does not silence the warning: another order gives wrong results.
    """
    if not _has_names(adapt(model)):
        note(
            "Warning: the model has no column names; its columns are assumed to be in this order:"
            f" {', '.join(map(str, X.columns))}."
        )


def _has_names(model: Any) -> bool:  # noqa: ANN401
    if _column_names(model) is not None:
        return True
    if isinstance(model, ResultsOfNumbers):
        return model.matches_names
    inner: Any = getattr(model, "booster", None)
    named = getattr(inner, "feature_names", None)
    if named is None and hasattr(inner, "feature_name"):
        # LightGBM's names for columns without names.
        named = [name for name in inner.feature_name() if not name.startswith("Column_")]
    # ONNX models find columns by name if each column is a separate input.
    return bool(named) or len(getattr(model, "__dict__", {}).get("_inputs", ())) > 1


@names_file
def score_held_out(
    model: Any,  # noqa: ANN401
    X: pd.DataFrame,
    y: pd.Series[Any],
    *,
    loss: str,
    labels: Sequence[Any],
    classes: Sequence[Any] | None = None,
) -> tuple[str, float]:
    """Return the name of a score, R2 or accuracy, and its value on some rows.

    It reveals a wrong order of columns or classes. The classes of a model that does not store them
    are `classes`, or by default the sorted `labels` of the target.
    """
    target = values(y)
    chosen = as_loss("cross_entropy" if loss == "auto" else loss)
    if loss == "auto" and not classes:
        chosen = choose_loss(model, target, some_rows(X))
    checked = as_model(model, chosen, classes=classes)
    predicted = checked.predict(X)
    if not chosen.is_of_classes:
        numbers = target.astype(np.float64)
        spread = float(((numbers - numbers.mean()) ** 2).sum())
        error = float(((numbers - predicted) ** 2).sum())
        return "R2", 1 - error / spread if spread else float("nan")
    if predicted.ndim == 1:
        predicted = chosen.expand(predicted[None])[0]
    n_columns = predicted.shape[1]
    if classes is not None and len(classes) != n_columns:
        condition = f"{n_columns} labels, one per column of the model's probabilities"
        raise refusal("--classes", condition, list(classes), "Name them in the model's order")
    order = checked.classes
    if order is None:
        order = np.array(sort_labels(labels))
    return "accuracy", float(np.mean(predicted.argmax(axis=1) == codes(target, order, None)))
