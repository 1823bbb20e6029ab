"""The game of a model's output: no loss, row by row, for local values."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dsage._check import refusal
from dsage._random import RandomState
from dsage.data.columns import shown
from dsage.data.layout import Layout
from dsage.games.base import Floats, Mask, Orders, Rows
from dsage.games.expected import Expected
from dsage.games.linear import LinearOutput
from dsage.models.affine import Affine
from dsage.models.boosters import as_booster
from dsage.models.losses import gives_classes
from dsage.models.model import Model, as_model
from dsage.models.torch_module import TorchPredictor
from dsage.samplers.base import Sampler
from dsage.samplers.noise import Noise


class OutputGame:
    """What a model that knows a coalition predicts for a row: ``f_S(x) = E[f(X) | x_S]``.

    It is a :class:`~dsage.games.Game` whose risk is ``-f_S(x)``, so that a surplus is what a
    feature adds to the prediction:

        risk(S) - risk(S + j) = f_{S+j}(x) - f_S(x).

    The expectation is a mean over draws of the unknown features, in independent groups; the mean of
    each group is unbiased, so there is nothing to correct. An affine model with a sampler that
    knows conditional means needs no draws.

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
        Which output, where the model has several: for a classifier the label of a class, and for
        others the number of a column, from 0 on. By default the second class of two; in all other
        cases it has to be given. Leave it out for a model of one output.
    n_draws : int, default=8
        Draws for each row and coalition; a multiple of `n_replicates`.
    n_replicates : int, default=2
        Independent groups of draws. One alone tells nothing of its error.
    noise : {"sobol", "independent"}, default="sobol"
        How the draws of a group are made, see :class:`~dsage.samplers.noise.Noise`.
    random_state : int, numpy Generator or None, default=None
        Seed of the noise.
    max_bytes : int, default=2**28
        Coalitions and rows are evaluated in blocks so small that draws and predictions stay
        within this budget.

    Attributes
    ----------
    data : data frame or array of shape (n_rows, n_features)
        The rows as given.
    matrix : array of shape (n_rows, n_features)
        The rows, classes as codes.
    predictions : array of shape (n_rows,)
        The model's, with all features known.
    is_drawn : bool
        False where conditional means do.

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

    def __init__(
        self,
        model: Any,  # noqa: ANN401
        sampler: Sampler,
        X: Any,  # noqa: ANN401
        *,
        output: Any = None,  # noqa: ANN401
        n_draws: int = 8,
        n_replicates: int = 2,
        noise: Literal["sobol", "independent"] = "sobol",
        random_state: RandomState = None,
        max_bytes: int = 2**28,
    ) -> None:
        self.data = X
        self.sampler = sampler
        self.model = _OneOutput(_as_model(model), output)
        self._expected = Expected(
            self.model,
            sampler,
            X,
            n_draws=n_draws,
            n_replicates=n_replicates,
            noise=noise,
            random_state=random_state,
            max_bytes=max_bytes,
        )
        self.layout: Layout = self._expected.layout
        self.matrix = self._expected.matrix
        self.feature_names = self._expected.feature_names
        self.n_rows = self._expected.n_rows
        self.predictions = self._expected.predictions
        self.is_drawn = self._expected.is_drawn
        self.n_replicates = self._expected.n_replicates
        if self._expected.has_paths:
            self.path_risks = self._path_risks

    @property
    def noise(self) -> Noise:
        """What the draws are made of: games with the same noise can be compared."""
        return self._expected.noise

    @property
    def n_predicted(self) -> int:
        """Rows that the model was asked for."""
        return self._expected.n_predicted

    @cached_property
    def base_value(self) -> float:
        """The mean prediction where nothing is known, ``E[f(X)]``; from 4,096 draws, if any."""
        return float(self._expected.mean())

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return ``-f_S(x)`` of coalitions, group by group; see :class:`Game`."""
        out = np.empty((len(known), len(rows), self.n_replicates))
        out[known.all(axis=1)] = -self.predictions[rows, None]
        for at, here, groups in self._expected.parts(known, rows, epoch):
            out[at, here] = -groups
        return out

    def _path_risks(self, orders: Orders, rows: Rows, epoch: int, needed: Mask) -> Floats:
        """Return ``-f_S(x)`` of the needed prefixes of orderings; see :class:`Paths`."""
        out = np.zeros((*needed.shape, len(rows), self.n_replicates))
        out[:, -1] = -self.predictions[rows, None]
        for number, (at, here, groups) in self._expected.paths(orders, rows, epoch, needed):
            out[number, at, here] = -groups
        return out

    def linear_game(self) -> LinearOutput:
        """Return the cheap game that resembles this one: the best linear predictor."""
        return LinearOutput(self.matrix, self.predictions, self.feature_names)


class _OneOutput:
    """A model of which one output is looked at; see :class:`~dsage.games.expected.Predictor`."""

    def __init__(self, model: Model, output: object) -> None:
        self._model, self._output = model, output
        self.name = model.name

    def predict(self, X: Any) -> Floats:  # noqa: ANN401
        """Return the output, (n_rows,)."""
        predicted = self._model.predict(X)
        if predicted.ndim == 2:
            return predicted[:, self._column(predicted.shape[1])]
        if self._is_first_of_two:
            return 1.0 - predicted
        if self._output is not None and self._model.classes is None:
            raise refusal(
                "output",
                f"left out for {self.name}, which has one",
                self._output,
                "There is nothing to choose",
            )
        return predicted

    @property
    def _is_first_of_two(self) -> bool:
        """Whether the first of two classes is wanted where the model tells of the second."""
        classes = self._model.classes
        return classes is not None and self._class(classes) == 0

    @property
    def predictor(self) -> TorchPredictor | None:
        """What calls the module, where the model is one of PyTorch."""
        return self._model.predictor

    def check_means(self, means: Floats, n_outputs: tuple[int, ...]) -> Floats:
        """Return the output of means that were computed on a device, once they are checked."""
        checked = self._model.check_means(means, n_outputs)
        if n_outputs:
            return checked[..., self._column(*n_outputs)]
        return 1.0 - checked if self._is_first_of_two else checked

    def affine(self, layout: Layout, X: Any) -> Affine | None:  # noqa: ANN401
        """Return the affine map of the output, or None where it is not known to be one."""
        affine = self._model.affine(layout, X)
        n_outputs = 1 if affine is None else len(affine.intercept)
        if affine is None:
            return None
        if n_outputs == 1:
            is_other = self._is_first_of_two
            return Affine(1.0 - affine.intercept, -affine.weights) if is_other else affine
        column = self._column(n_outputs)
        return Affine(affine.intercept[[column]], affine.weights[:, [column]])

    def _column(self, n_outputs: int) -> int:
        """Return the number of the column that was chosen."""
        if self._model.classes is not None:
            return self._class(self._model.classes)
        output = self._output
        is_number = isinstance(output, (int, np.integer)) and not isinstance(output, bool)
        if not is_number or not 0 <= output < n_outputs:  # type: ignore[operator]
            raise refusal(
                "output",
                f"the number of one of the {n_outputs} columns of {self.name}",
                output,
                "They count from 0",
            )
        return int(output)  # type: ignore[call-overload, no-any-return]

    def _class(self, classes: npt.NDArray[Any]) -> int:
        """Return the position of the class that was chosen."""
        if self._output is None and len(classes) == 2:
            return 1
        labels = classes.tolist()
        if self._output is None or self._output not in labels:
            raise refusal(
                "output",
                f"one of the classes of {self.name}",
                self._output,
                f"They are {shown(labels)}",
            )
        return int(labels.index(self._output))


def _as_model(model: Any) -> Model:  # noqa: ANN401
    """Return the model, with probabilities for its output where it is a classifier."""
    if isinstance(model, Model):
        return model
    model = as_booster(model)
    is_classifier = gives_classes(model) and not isinstance(model, type)
    if is_classifier and not hasattr(model, "predict_proba"):
        raise refusal(
            "model",
            "a classifier with predict_proba, or a function of numbers",
            type(model).__name__,
            "Wrap it in sklearn.calibration.CalibratedClassifierCV, or give its decision_function",
            TypeError,
        )
    return as_model(model, "brier" if is_classifier else "squared_error")
