"""The user's model as a checked function from rows to predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt

from dsage._check import Setting, Text, refusal, shown
from dsage.data.frames import take_rows
from dsage.data.layout import Layout
from dsage.data.targets import are_numbers, as_classes, find_codes
from dsage.models.adapt import adapt
from dsage.models.affine import Affine, column_precision, is_affine_type, probe
from dsage.models.calling import (
    call,
    check_predicts,
    copy_rows,
    name_model,
    prediction_function,
    some_rows,
)
from dsage.models.copies import may_be_copied
from dsage.models.forests import ask_trees
from dsage.models.leaves import Leaves, agree, find_leaves, mix_rows
from dsage.models.link_scores import Scores
from dsage.models.losses import Loss, as_loss
from dsage.models.losses.choose import CALIBRATE, as_column, gives_classes
from dsage.models.origin import file_of, names_file, naming_file
from dsage.models.pipelines import EncodedPipeline, find_pipeline
from dsage.models.scores import AffineScores, find_affine_scores, find_scores
from dsage.models.torch_module import Probabilities, TorchPredictor, as_predictor
from dsage.models.tree_masks import TreeMasks, find_tree_masks

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

_FLOAT = np.dtype(np.float64)
# Rows that are encoded at a time, and from which an affine map is found.
_N_PROBED = 20_000


class Model:
    """A model whose predictions are checked; :func:`as_model` returns one.

    Games and searches use a model through these attributes and methods only.

    Attributes
    ----------
    name : str
        The class of the model, or the name of the function.
    classes : array or None
        The classes, in the order of the columns of its probabilities, if they are known.
    predictor : TorchPredictor or None
        The predictor that calls the module of a PyTorch model; None for other models.
    has_voted : bool
        Whether the model has predicted labels, which were treated as votes.
    may_be_copied : bool
        Whether copies in other processes predict the same, and gain time.

    Examples
    --------
    >>> model = as_model(lambda X: X.sum(axis=1), "squared_error")
    >>> model.predict(np.ones((2, 3)))
    array([3., 3.])
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        name: str,
        loss: Loss,
        classes: Array | None = None,
        trusted: bool = False,
        claimed: bool = False,
        predictor: TorchPredictor | None = None,
        may_be_copied: bool = False,
        trees: object = None,
        method: str = "",
        file: str = "",
    ) -> None:
        self.name = name
        self._file = file
        self.may_be_copied = may_be_copied
        self._trees, self._method = trees, method
        self.classes = classes
        self.predictor = predictor
        self._function = function
        self._loss = loss
        self._trusted = trusted
        self._claimed = claimed
        self.has_voted = False
        # Whether classes that the model predicts can be treated as votes.
        self._takes_votes = loss.accepts_votes and classes is not None

    @property
    def loss(self) -> Loss:
        """The loss that the predictions are for."""
        return self._loss

    def __repr__(self) -> str:
        return f"Model({self.name}, loss={self._loss.name!r})"

    def predict(self, X: Any, *, is_disposable: bool = False) -> Floats:  # noqa: ANN401
        """Return the predictions for rows.

        Parameters
        ----------
        X : data frame or array of n_rows
            Rows, in the container that the model was fitted with.
        is_disposable : bool, default=False
            Whether nothing reads `X` afterwards. Otherwise the model receives a copy, since some
            models change their input in place, and the result is a copy, too.

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_outputs)
            A single column is returned as a vector. The model runs with one job, so that repeated
            predictions are equal to the bit.

        Raises
        ------
        ValueError
            If there is not one finite prediction of at most 1e70 per row. Errors of the model
            itself are passed on with a note, unless it was loaded from a file by
            :func:`~dsage.models.files.load_model`.
        """
        # A module receives a copy anyway, as tensors.
        is_safe = is_disposable or self.predictor is not None
        raw = call(self._function, self.name, X if is_safe else copy_rows(X), self._file)
        prediction = self._check(raw, len(X))
        return prediction if is_safe else prediction.copy()

    def _check(self, raw: Any, n_rows: int) -> Floats:  # noqa: ANN401
        """Return what the model returned for rows as floats, after checking it."""
        is_float = type(raw) is np.ndarray and raw.dtype == _FLOAT and not self._takes_votes
        prediction: Floats = raw if is_float else self._to_floats(raw)
        shape = prediction.shape
        if len(shape) == 2 and shape[1] == 1:
            prediction = prediction[:, 0]
        elif len(shape) not in (1, 2):
            raise self._refuse("of shape (n_rows,) or (n_rows, n_outputs)", shape, _ONE_PER_ROW)
        if shape[0] != n_rows:
            raise self._refuse(f"of {n_rows} rows, as X is", f"shape {shape}", _ONE_PER_ROW)
        if prediction.size and not (prediction.max() <= LARGEST and prediction.min() >= -LARGEST):
            raise self._refuse_numbers(prediction)
        return prediction

    def check_means(self, means: Floats, n_outputs: tuple[int, ...]) -> Floats:
        """Check means of predictions that were computed elsewhere, such as on a device.

        Parameters
        ----------
        means : array of shape (...,) or (..., n_outputs)
            Means over draws.
        n_outputs : tuple
            Empty, or the number of outputs.

        Raises
        ------
        ValueError
            If a mean is not finite, or not a probability although the loss needs one.
        """
        if not np.isfinite(means).all():
            found = f"{int((~np.isfinite(means)).sum())} of {means.size} means that are not"
            raise self._refuse("finite", found, _WHERE.capitalize())
        if isinstance(self._function, Probabilities):
            return self._function.check(means, has_columns=bool(n_outputs))
        return means

    def affine(self, layout: Layout, X: Any) -> Affine | None:  # noqa: ANN401
        """Return the model as an affine map, or None if it is not known to be one.

        The map is found, and verified, by a probe of predictions. Only types that are known to be
        affine are probed, and models that the user declared affine; and only if all columns are
        floats without missing values, since integers are rounded before the model sees them, and no
        affine function is defined for missing values.

        Parameters
        ----------
        layout : Layout
            The columns.
        X : data frame or array of shape (n_rows, n_features)
            Some rows, for the location and the scale of the probe.

        Raises
        ------
        ValueError
            If the model was declared affine, and is not.
        """
        if not (self._trusted or self._claimed):
            return None
        precision = column_precision(layout)
        if not precision.all():
            if self._claimed:
                rounded = [layout.names[at] for at in np.flatnonzero(precision == 0)]
                condition = "False if columns are classes or integers"
                advice = "Convert these columns to floats, or leave affine=True out"
                raise refusal("affine", condition, rounded, advice)
            return None
        incomplete = layout.may_miss.copy()
        # In portions: all rows at once would be another copy of the data.
        for first in range(0, len(X), _N_PROBED):
            at = np.arange(first, min(first + _N_PROBED, len(X)))
            part = X if len(X) <= _N_PROBED else take_rows(X, at)
            incomplete |= layout.is_missing(layout.encode(part)).any(axis=0)
        if incomplete.any():
            if self._claimed:
                columns = [layout.names[at] for at in np.flatnonzero(incomplete)]
                condition = "False if columns have missing values"
                advice = "Fill or drop these columns, or leave affine=True out"
                raise refusal("affine", condition, columns, advice)
            return None
        single = bool((precision == 1).any())
        if self.predictor is not None:
            single |= self.predictor.is_single
        rows = X if len(X) <= _N_PROBED else some_rows(X, _N_PROBED)
        affine, error = probe(self.predict, layout, rows, single=single)
        holds = error <= 1.0
        if self._claimed and not holds:
            condition = f"False for {self.name}, which is not affine"
            advice = (
                f"Its predictions are {error:.3g} times farther from an affine map than rounding"
                " explains; leave affine=True out"
            )
            raise refusal("affine", condition, True, advice)
        return affine if holds else None

    def leaves(self, layout: Layout, X: Floats) -> Leaves | None:
        """Return the leaves of an ensemble of trees whose predictions are sums over leaves.

        None for other models, and where that cannot be verified. `X` are encoded rows.
        """
        if self._trees is None:
            return None
        with naming_file(self._file):
            return find_leaves(self._trees, self.predict, layout, X)

    def scores(self, layout: Layout, X: Floats) -> Scores | None:
        """Return the scores of a model whose predictions are a link of sums.

        None for other models, and where that cannot be verified. `X` are encoded rows.
        """
        if self._trees is None:
            return None
        with naming_file(self._file):
            return find_scores(self._trees, self.predict, layout, X)

    def tree_masks(self, layout: Layout, X: Floats) -> TreeMasks | None:
        """Return an ensemble of small trees in a form that predicts faster, verified.

        None for other models, and where that cannot be verified. `X` are encoded rows.
        """
        if self._trees is None:
            return None
        with naming_file(self._file):
            return find_tree_masks(self._trees, self.predict, layout, X)

    def affine_scores(self, layout: Layout, X: Floats) -> AffineScores | None:
        """Return the scores of a model whose predictions are a link of affine functions.

        None for other models, and where that cannot be verified. `X` are encoded rows.
        """
        if self._trees is None:
            return None
        with naming_file(self._file):
            return find_affine_scores(self._trees, self.predict, layout, X)

    def encoded(self, layout: Layout, X: Floats) -> Callable[[Floats], Floats] | None:
        """Return a function that predicts encoded rows as the model predicts decoded ones.

        It takes less time; its results are checked as in :meth:`predict`. There is one for
        pipelines and other estimators of scikit-learn; None for other models, and where its
        predictions for some of the encoded rows `X`, as they are and with their features mixed,
        are not those of the model.
        """
        if not self._method:
            return None
        points = mix_rows(X)
        # Transformers and estimators may do anything with rows that the user would not give them.
        try:
            with joblib.parallel_config(backend="sequential"), np.errstate(all="ignore"):
                found = find_pipeline(self._trees, self._method, layout, points)
                if found is None:
                    return None
                predict = partial(self._predict_encoded, found)
                own = self.predict(layout.decode(points.copy()))
                return predict if agree(predict(points.copy()), own) else None
        except Exception:
            return None

    def _predict_encoded(self, pipeline: EncodedPipeline, X: Floats) -> Floats:
        return self._check(call(pipeline.predict, self.name, X, self._file), len(X))

    def _to_floats(self, raw: Any) -> Floats:  # noqa: ANN401
        """Return the model's output as floats, and labels as votes; refuse other labels."""
        array = as_column(np.asarray(raw))
        if array.dtype.kind == "O" and are_numbers(array):
            array = array.astype(np.float64)
        kind = array.dtype.kind
        if self._takes_votes and self._are_labels(array):
            return self._votes(array)
        probabilities = self._loss.output == "probability"
        whole = kind in "iub" and array.ndim == 1 and not self._loss.accepts_votes
        if (probabilities and whole) or kind not in "fiub":
            wanted, advice = "numbers", "Choose a loss of classes, such as 'cross_entropy'"
            if probabilities:
                wanted = "probabilities"
                advice = "Pass a function that returns them, of shape (n_rows, n_classes)"
            found = f"labels, such as {array.ravel()[:1].tolist()}"
            raise self._refuse(f"{wanted} for {self._loss.name}", found, advice, TypeError)
        return array.astype(np.float64, copy=False)

    def _are_labels(self, array: Array) -> bool:
        """Return whether an output is labels of the classes, not their probabilities."""
        if array.ndim != 1 or array.dtype.kind != "f" or self.classes is None:
            return array.ndim == 1
        # A number for each row can only be the probability of the second of two classes. Where the
        # classes are 0 and 1, it does not matter what it is.
        if len(self.classes) > 2:
            return True
        are_codes = self.classes.dtype.kind == "b" or set(self.classes.tolist()) == {0, 1}
        return not are_codes and bool(np.isin(array, self.classes).all())

    def _votes(self, labels: Array) -> Floats:
        """Return labels as probabilities of 0 and 1, (n_rows, n_classes)."""
        if self.classes is None:
            raise self._refuse("of known classes", labels[:1].tolist(), _NAME_CLASSES)
        self.has_voted = True
        found = find_codes(labels, self.classes)
        if (found < 0).any():
            unknown = labels[found < 0][:1].tolist()
            raise self._refuse(
                f"one of the classes, {shown(self.classes.tolist())}", unknown, _NAME_CLASSES
            )
        return np.eye(len(self.classes))[found]

    def _refuse_numbers(self, prediction: Floats) -> Exception:
        """Return the error for predictions that are not finite, or too large to be squared."""
        by_row = prediction.reshape(len(prediction), -1)
        bad = np.flatnonzero(~np.isfinite(by_row).all(axis=1))
        if len(bad):
            found = f"{len(bad)} of {len(by_row)} rows that are not"
            return self._refuse("finite", found, f"Row {bad[0]} is the first: {_WHERE}")
        largest = float(by_row.ravel()[np.argmax(np.abs(by_row))])
        advice = "Squares of larger numbers overflow: divide the target and the predictions by a"
        return self._refuse(f"at most {LARGEST:.0e} in size", largest, f"{advice} constant")

    def _refuse(
        self,
        condition: str,
        value: object,
        advice: str | Text,
        kind: type[Exception] = ValueError,
    ) -> Exception:
        return refusal(f"the prediction of {self.name}", condition, value, advice, kind)


LARGEST = 1e70
"""The largest prediction: the variance of squared errors is a fourth power, and must be finite."""
_WHERE = "check the model there; draws may lie far from its training data"
_NAME_CLASSES = Text(["Name all classes that it predicts with ", Setting("classes")])
_ONE_PER_ROW = "Return one prediction, or one row of predictions, per row of X"


@names_file
def as_model(
    model: Any,  # noqa: ANN401
    loss: str | Callable[..., Any] | Loss,
    *,
    classes: Sequence[Any] | Array | None = None,
    affine: bool = False,
) -> Model:
    """Return a model that predicts what a loss needs.

    Parameters
    ----------
    model : estimator, callable, torch.nn.Module, booster, results of statsmodels or Model
        A fitted estimator or pipeline, of which `predict_proba` is used for classifiers and
        `predict` for others; or a function from rows to predictions. For ``"zero_one"`` a
        classifier without `predict_proba`, and a function that returns labels, vote: 1 for their
        class, 0 for the others. PyTorch modules are called, see
        :class:`~dsage.models.torch_module.TorchPredictor`; for a loss of classes they must return
        probabilities, not logits. For native boosters of XGBoost and LightGBM see
        :func:`~dsage.models.boosters.as_booster`, for results of statsmodels
        :func:`~dsage.models.statsmodels_results.as_results`.
    loss : str, callable or Loss
        The loss, as for :func:`~dsage.models.losses.as_loss`.
    classes : sequence, optional
        The classes, in the order of the columns, for a function or a module that returns
        probabilities; or all labels that a function may return. By default the sorted labels of
        the target. An estimator knows its own.
    affine : bool, default=False
        Declare that the model is an affine function of float columns, so that no draws are needed;
        this is verified. Linear regressions of scikit-learn, and pipelines of scalers that end in
        one, are recognized without it.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = np.array([[0.0], [1.0]])
    >>> tree = DecisionTreeClassifier().fit(X, ["no", "yes"])
    >>> model = as_model(tree, "cross_entropy")
    >>> model.predict(X)
    array([[1., 0.],
           [0., 1.]])
    >>> model.classes.tolist()
    ['no', 'yes']
    """
    checked = as_loss(loss)
    if isinstance(model, Model):
        if classes is not None or affine:
            condition = "given with an estimator or a function"
            advice = "Pass them to the as_model call that made this Model"
            raise refusal("classes and affine", condition, model, advice, TypeError)
        return model
    model = adapt(model)
    predictor = as_predictor(model)
    name = name_model(model) if predictor is None else predictor.name
    check_predicts(model)
    known = _find_classes(model, name, classes, checked)
    function: Callable[[Any], Any]
    method = ""
    if predictor is None:
        chosen = _choose_method(model, name, checked, known)
        function = ask_trees(chosen, model)
        if getattr(chosen, "__self__", None) is model:
            method = chosen.__name__
    else:
        function = Probabilities(predictor) if checked.output == "probability" else predictor
    return Model(
        function,
        name=name,
        loss=checked,
        classes=known,
        trusted=is_affine_type(model),
        claimed=affine,
        predictor=predictor,
        may_be_copied=may_be_copied(model),
        trees=model if predictor is None else None,
        method=method,
        file=file_of(model),
    )


def _choose_method(
    model: Any,  # noqa: ANN401
    name: str,
    loss: Loss,
    classes: Array | None,
) -> Callable[[Any], Any]:
    """Return the method that predicts what the loss needs."""
    if not gives_classes(model):
        return prediction_function(model)
    if loss.output == "value":
        condition = f"one of classes for the classifier {name}"
        advice = "Choose 'cross_entropy', 'brier' or 'zero_one', or pass a function such as"
        advice += " lambda X: model.predict_proba(X)[:, 1] as the model"
        raise refusal("loss", condition, loss.name, advice, TypeError)
    if loss.output == "score":
        if not hasattr(model, "decision_function"):
            condition = f"a classifier with decision_function for {loss.name}"
            remedy = Text(["Choose ", Setting("loss", "cross_entropy"), " or another loss"])
            raise refusal("model", condition, name, remedy, TypeError)
        scores: Callable[[Any], Any] = model.decision_function
        return scores
    if hasattr(model, "predict_proba"):
        probabilities: Callable[[Any], Any] = model.predict_proba
        return probabilities
    if loss.accepts_votes and classes is not None:
        return prediction_function(model)
    condition = f"a classifier with predict_proba for {loss.name}"
    raise refusal("model", condition, name, CALIBRATE, TypeError)


def _find_classes(
    model: Any,  # noqa: ANN401
    name: str,
    given: Sequence[Any] | Array | None,
    loss: Loss,
) -> Array | None:
    """Return the classes of the model, its own or the given ones; refuse contradictions."""
    own = getattr(model, "classes_", None) if gives_classes(model) else None
    if isinstance(own, list) and any(np.ndim(classes) for classes in own):
        advice = "Explain one at a time, with a function that returns its probabilities"
        found = f"{name} with {len(own)} targets"
        raise refusal("model", "a classifier of one target", found, advice)
    if given is None:
        return None if own is None else np.asarray(own)
    if loss.output == "value":
        condition, advice = f"left out for {loss.name}", "It is a loss of numbers"
        raise refusal("classes", condition, given, advice, TypeError)
    index = as_classes(given)
    if not index.is_unique or len(index) < 2:
        raise refusal("classes", "two or more, each once", list(given), "Pass one per column")
    if own is not None and list(index) != list(own):
        condition = f"those of {name}, in its order: {shown(np.asarray(own).tolist())}"
        raise refusal("classes", condition, list(given), "Leave them out: the model knows them")
    return index.to_numpy()
