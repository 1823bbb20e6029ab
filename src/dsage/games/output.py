"""The game of a model's output, row by row and without a loss, for local values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dsage._check import refusal, shown
from dsage.data.groups import Groups
from dsage.data.layout import Layout
from dsage.games.base import Floats, Rows
from dsage.games.linear import LinearOutput
from dsage.games.model_game import ModelGame
from dsage.games.options import GameOptions
from dsage.models.adapt import adapt
from dsage.models.affine import Affine
from dsage.models.leaves import Leaves
from dsage.models.link_scores import Scores
from dsage.models.losses import gives_classes
from dsage.models.model import Model, as_model
from dsage.models.scores import AffineScores
from dsage.models.torch_module import TorchPredictor
from dsage.models.tree_masks import TreeMasks
from dsage.samplers.base import Sampler


class OutputGame(ModelGame):
    """The prediction for a row of a model that knows only a coalition: ``f_S(x) = E[f(X) | x_S]``.

    The risk is ``-f_S(x)``, so that a surplus is the change of the prediction by a feature:

        risk(S) - risk(S + j) = f_{S+j}(x) - f_S(x).

    The expectation is a mean over draws of the unknown features, in independent replicates. The
    mean of each is unbiased, so no correction is needed. An affine model with a sampler that knows
    conditional means needs no draws.

    Parameters
    ----------
    model : estimator, callable or Model
        The fitted model, see :func:`dsage.models.as_model`. A classifier's output is the
        probability of one class.
    sampler : Sampler
        A fitted sampler.
    X : data frame or array of shape (n_rows, n_features)
        The rows to explain.
    output : optional
        The output to explain, if the model has several: the label of a class for a classifier,
        otherwise the number of a column, starting at 0. By default the second of two classes;
        required for more outputs. Leave it out for a model with one output.
    background : data frame or array of shape (n_others, n_features), optional
        Further rows, such as training rows, from which the linear predictor of the first level is
        learned: those to explain may be too few for it.
    **options
        See :class:`~dsage.games.GameOptions`; `sample_weight` is not among them.

    Attributes
    ----------
    data : data frame or array of shape (n_rows, n_features)
        The rows as given.
    matrix : array of shape (n_rows, n_features)
        The rows, classes as codes.
    predictions : array of shape (n_rows,)
        The model's, with all features known.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from dsage.samplers import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = LinearRegression().fit(X, 2 * X[:, 0] - X[:, 1] + 1)
    >>> sampler = Gaussian.from_moments(np.zeros(2), [[1.0, 0.5], [0.5, 1.0]], ["a", "b"])
    >>> game = OutputGame(model, sampler, [[3.0, -1.0]])
    >>> known = np.array([[False, False], [True, False], [True, True]])
    >>> (-game.risks(known, np.array([0]))).round(6)[:, 0, 0]
    array([1. , 5.5, 8. ])
    """

    n_draws_default: ClassVar[int] = 8
    """Draws for each row and coalition, unless the user says otherwise: a mean has no bias."""

    @property
    def corrects_means(self) -> bool:
        """Whether means may leave the range of the model: they may, as their means do not."""
        return True

    def __init__(
        self,
        model: Any,  # noqa: ANN401
        sampler: Sampler,
        X: Any,  # noqa: ANN401
        *,
        output: Any = None,  # noqa: ANN401
        background: Any = None,  # noqa: ANN401
        **options: Any,  # noqa: ANN401
    ) -> None:
        checked = GameOptions.read(options, "output", "background")
        if checked.sample_weight is not None:
            advice = "Each row is explained on its own"
            raise refusal("sample_weight", "left out", checked.sample_weight, advice)
        checked = checked.with_draws(self.n_draws_default)
        super().__init__(_OneOutput(_as_model(model), output), sampler, X, checked)
        self.data = X
        self._background = None if background is None else self.layout.encode(background)
        self._full = -self.predictions
        self._control = self._find_control()
        self._row_control = self._find_row_control()

    def _to_risks(self, means: Floats, rows: Rows) -> Floats:  # noqa: ARG002
        return -means

    @cached_property
    def base_value(self) -> float:
        """The mean prediction with no feature known, ``E[f(X)]``; from 4,096 draws, if any."""
        return float(self._mean())

    def linear_game(self, groups: Groups | None = None) -> LinearOutput:
        """Return a cheap game similar to this one: the best linear predictor, also of groups."""
        X, output = self.matrix, self.predictions
        if self._background is not None:
            more = self._background
            X = np.concatenate([X, more])
            output = np.concatenate([output, self._predict_rows(more)])
        return LinearOutput(X, output, self.feature_names, groups)


class _OneOutput:
    """One output of a model; see :class:`~dsage.games.predictor.Predictor`."""

    def __init__(self, model: Model, output: object) -> None:
        self._model, self._output = model, output
        self.name, self.may_be_copied = model.name, model.may_be_copied

    def predict(self, X: Any, *, is_disposable: bool = False) -> Floats:  # noqa: ANN401
        """Return the output, (n_rows,)."""
        return self._pick(self._model.predict(X, is_disposable=is_disposable))

    def encoded(self, layout: Layout, X: Floats) -> Callable[[Floats], Floats] | None:
        """Return a function that predicts the output for encoded rows; None if there is none."""
        predict = self._model.encoded(layout, X)
        return None if predict is None else partial(self._pick_from, predict)

    def _pick_from(self, predict: Callable[[Floats], Floats], X: Floats) -> Floats:
        return self._pick(predict(X))

    def _pick(self, predicted: Floats) -> Floats:
        """Return the output, (n_rows,), of what the model predicts."""
        if predicted.ndim == 2:
            return predicted[:, self._column(predicted.shape[1])]
        if self._is_first_of_two:
            return 1.0 - predicted
        if self._output is not None and self._model.classes is None:
            condition = f"left out for {self.name}, which has only one"
            raise refusal("output", condition, self._output, "Leave it out")
        return predicted

    @property
    def _is_first_of_two(self) -> bool:
        """Whether the first of two classes is wanted, while the model predicts the second."""
        classes = self._model.classes
        return classes is not None and self._class(classes) == 0

    @property
    def predictor(self) -> TorchPredictor | None:
        """The caller of the module, for PyTorch models."""
        return self._model.predictor

    def check_means(self, means: Floats, n_outputs: tuple[int, ...]) -> Floats:
        """Check means computed on a device and return the output."""
        checked = self._model.check_means(means, n_outputs)
        if n_outputs:
            return checked[..., self._column(*n_outputs)]
        return 1.0 - checked if self._is_first_of_two else checked

    def affine(self, layout: Layout, X: Any) -> Affine | None:  # noqa: ANN401
        """Return the affine map of the output, or None if it is not known to be affine."""
        affine = self._model.affine(layout, X)
        if affine is None:
            return None
        if len(affine.intercept) == 1:
            is_other = self._is_first_of_two
            return Affine(1.0 - affine.intercept, -affine.weights) if is_other else affine
        column = self._column(len(affine.intercept))
        return Affine(affine.intercept[[column]], affine.weights[:, [column]])

    def leaves(self, layout: Layout, X: Floats) -> Leaves | None:
        """Return the leaves of trees whose sum is the output; None for other models."""
        leaves = self._model.leaves(layout, X)
        if leaves is None or (leaves.n_outputs == 1 and self._is_first_of_two):
            return None
        return leaves if leaves.n_outputs == 1 else leaves.output(self._column(leaves.n_outputs))

    def scores(self, layout: Layout, X: Floats) -> Scores | None:
        """Return scores that give the output; None for other models."""
        scores = self._model.scores(layout, X)
        if scores is None or scores.link == "exp":
            return scores
        return scores.pick(self._column(max(scores.n_scores, 2)))

    def tree_masks(self, layout: Layout, X: Floats) -> TreeMasks | None:
        """Return small trees that give the output, in a form that predicts faster."""
        masks = self._model.tree_masks(layout, X)
        if masks is None or masks.n_outputs == 1:
            return None if self._is_first_of_two else masks
        return masks.pick(self._column(masks.n_outputs))

    def affine_scores(self, layout: Layout, X: Floats) -> AffineScores | None:
        """Return affine scores that give the output; None for other models."""
        scores = self._model.affine_scores(layout, X)
        if scores is None or scores.link == "exp":
            return scores
        return scores.pick(self._column(max(scores.n_scores, 2)))

    def _column(self, n_outputs: int) -> int:
        """Return the number of the chosen column."""
        if self._model.classes is not None:
            return self._class(self._model.classes)
        output = self._output
        is_number = isinstance(output, (int, np.integer)) and not isinstance(output, bool)
        if not is_number or not 0 <= output < n_outputs:  # type: ignore[operator]
            condition = f"the number of one of the {n_outputs} columns of {self.name}"
            raise refusal("output", condition, output, "They count from 0")
        return int(output)  # type: ignore[call-overload, no-any-return]

    def _class(self, classes: npt.NDArray[Any]) -> int:
        """Return the position of the chosen class."""
        if self._output is None and len(classes) == 2:
            return 1
        labels = classes.tolist()
        if self._output is None or self._output not in labels:
            condition = f"one of the classes of {self.name}"
            raise refusal("output", condition, self._output, f"They are {shown(labels)}")
        return int(labels.index(self._output))


def _as_model(model: Any) -> Model:  # noqa: ANN401
    """Return the model; a classifier outputs probabilities."""
    if isinstance(model, Model):
        return model
    model = adapt(model)
    is_classifier = gives_classes(model) and not isinstance(model, type)
    if is_classifier and not hasattr(model, "predict_proba"):
        condition = "a classifier with predict_proba, or a function that returns numbers"
        advice = "Use sklearn.calibration.CalibratedClassifierCV, or pass its decision_function"
        raise refusal("model", condition, type(model).__name__, advice, TypeError)
    return as_model(model, "brier" if is_classifier else "squared_error")
