"""Graph and sampler learned once, for many models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dsage._check import check_member, refusal
from dsage._random import RandomState
from dsage.data.inputs import Inputs, check_inputs
from dsage.data.kinds import Kind, guess_number
from dsage.data.targets import are_numbers
from dsage.estimate import PlanOptions
from dsage.explain import explain
from dsage.games import GameOptions
from dsage.graphs import Graph
from dsage.models.losses import Loss, as_loss
from dsage.models.resolve import find_model
from dsage.orderings import Order, Orderings
from dsage.result.events import Event
from dsage.result.explanation import Explanation
from dsage.samplers.base import Sampler
from dsage.steps import Clock, Learned, Settings, learn_parts, split_options
from dsage.structure.causes import CausesFound
from dsage.structure.knowledge import Knowledge

# Options that `fit` has used, which `explain` must not change.
_OF_FIT = (
    "graph", "sampler", "target", "discrete", "kinds", "groups", "n_resamples", "min_share",
    "tiers", "forbidden", "required", "random_state", "rng",
)  # fmt: skip
_LIMITS = ("tolerance", "absolute", "top_k", "seconds", "n_orderings")


@dataclass(kw_only=True, eq=False, repr=False)
class Explainer(BaseEstimator):  # type: ignore[misc]
    """Learn graph and sampler once, and explain many models with them.

    The options are those of :func:`dsage.explain`, as attributes, with the conventions of
    scikit-learn: `get_params`, `set_params`, and :func:`sklearn.base.clone`. ``fit`` learns the
    graph and the sampler from the training rows; ``explain`` explains a model with them. All
    models are explained with the same orderings and the same noise, so differences between models
    are not due to randomness in these.

    Parameters
    ----------
    graph, sampler, loss, estimand, tolerance, absolute, top_k, seconds, n_orderings, groups, \
    orderings, target, classes, discrete, kinds, n_resamples, min_share, tiers, forbidden, \
    required, sampler_check, n_jobs, random_state, keep_losses, progress
        As for :func:`dsage.explain`.
    n_draws, n_replicates, noise, draw_control, max_bytes
        As for :class:`dsage.games.GameOptions`.
    semantics, first_level, exact, rows_per_ordering, audit, cache_bytes
        As for :class:`dsage.estimate.PlanOptions`.

    Attributes
    ----------
    graph_ : Graph or None
        The graph; None if there is none, or if a vote of graphs or an oracle takes its place.
    sampler_ : Sampler
        The fitted sampler.
    sampler_scores_ : pandas.DataFrame or None
        The held-out scores of the sampler and of alternatives, see :class:`dsage.Explanation`.
    seed_ : int
        The seed of everything, also of each explanation.
    target_ : str
        The name of the target.
    feature_names_in_ : array of str
        The features.
    n_features_in_ : int
        Their number.

    Notes
    -----
    The training rows are kept, without a copy: the classes of a target, and the comparison with
    other samplers, need them.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression, Ridge
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> options = {"sampler": "gaussian", "sampler_check": False, "graph": None}
    >>> explainer = Explainer(**options, random_state=0, progress=False)
    >>> explainer = explainer.fit(X[:300], y[:300])
    >>> for model in (LinearRegression(), Ridge(alpha=0.1)):
    ...     explanation = explainer.explain(model.fit(X[:300], y[:300]), X[300:], y[300:])
    ...     print(explanation.to_frame()["feature"][0])
    bmi
    bmi
    """

    graph: Any = "auto"
    sampler: Any = "auto"
    loss: str | Callable[..., Any] | Loss = "auto"
    estimand: Literal["d-sage", "sage", "causal"] = PlanOptions.estimand
    tolerance: float | None = None
    absolute: float | None = None
    top_k: int | None = None
    seconds: float | None = None
    n_orderings: int | None = None
    groups: Mapping[str, Iterable[str]] | None = None
    orderings: str | Order | Sequence[Sequence[str] | Sequence[int]] | Orderings = (
        PlanOptions.orderings
    )
    target: str | None = None
    classes: Sequence[Any] | None = None
    discrete: str | Iterable[str] = ()
    kinds: Mapping[str, str] | None = None
    n_resamples: int | None = None
    min_share: float | None = None
    tiers: Iterable[Iterable[str]] | None = None
    forbidden: Iterable[tuple[str, str]] = ()
    required: Iterable[tuple[str, str]] = ()
    sampler_check: bool = True
    n_jobs: int | None = None
    random_state: RandomState = None
    keep_losses: bool = False
    progress: bool | Callable[[Event], None] = True
    n_draws: int | None = GameOptions.n_draws
    n_replicates: int = GameOptions.n_replicates
    noise: Literal["sobol", "independent"] = GameOptions.noise
    draw_control: Literal["auto", "none"] = GameOptions.draw_control
    max_bytes: int = GameOptions.max_bytes
    semantics: Literal["boundary", "skip"] = PlanOptions.semantics
    first_level: Literal["auto", "none"] = PlanOptions.first_level
    exact: Literal["auto", "always", "never"] = PlanOptions.exact
    rows_per_ordering: int | None = PlanOptions.rows_per_ordering
    audit: bool = PlanOptions.audit
    cache_bytes: int = PlanOptions.cache_bytes
    graph_: Graph | None = field(init=False)
    sampler_: Sampler = field(init=False)
    sampler_scores_: pd.DataFrame | None = field(init=False)
    seed_: int = field(init=False)
    target_: str = field(init=False)
    _learned: Learned = field(init=False)

    def fit(self, X: Any, y: Any, model: Any = None) -> Self:  # noqa: ANN401
        """Learn graph and sampler.

        Parameters
        ----------
        X, y : data frame or array of shape (n_rows, n_features), array of shape (n_rows,)
            Training rows.
        model : estimator, pipeline, booster, torch.nn.Module or callable, optional
            A fitted model that is used to compare samplers, for ``sampler="auto"``: they are scored
            by how well their draws reproduce its predictions (the MSEv), and by the energy score.
            Pass the model, or one of the models, that you are going to explain: then the sampler is
            the one that :func:`dsage.explain` would choose for it. Without a model, only the energy
            score is used: how well draws reproduce the features.

        Returns
        -------
        Explainer
            The explainer itself.

        Notes
        -----
        Without a model, the graph treats the target as a class if `loss` or `classes` imply it, if
        its values are not numbers, or if they are few whole numbers (the kind "codes" of
        :mod:`dsage.data.kinds`).
        """
        if y is None:
            raise refusal("y", "the targets of the rows", None, "Pass one per row", TypeError)
        params = self.get_params(deep=False)
        columns = {name: params[name] for name in ("discrete", "kinds", "groups", "target")}
        inputs = check_inputs(X, y, X, y, **columns)
        resolved = None
        if model is not None:
            resolved = find_model(model, self.loss, self.classes, inputs)
        settings = self._settings(inputs, None if resolved is None else resolved.loss)
        is_of_classes = self._is_class(inputs) if resolved is None else resolved.loss.is_of_classes
        learned = learn_parts(
            inputs,
            settings,
            Clock(self.progress if callable(self.progress) else None),
            graph=self.graph,
            sampler=self.sampler,
            is_of_classes=is_of_classes,
            predict=None if resolved is None else resolved.model.predict,
            n_resamples=self.n_resamples,
            min_share=self.min_share,
            knowledge=Knowledge.read(
                [*inputs.names, inputs.target],
                tiers=self.tiers,
                forbidden=self.forbidden,
                required=self.required,
            ),
        )
        self._learned, self._X, self._y = learned, X, y
        self.graph_, self.sampler_ = learned.graph.graph, learned.sampler.sampler
        self.sampler_scores_ = learned.sampler.scores
        self.seed_, self.target_ = settings.seed, inputs.target
        self.feature_names_in_ = np.array(inputs.names, dtype=object)
        self.n_features_in_ = len(inputs.names)
        return self

    def explain(self, model: Any, X_test: Any, y_test: Any, **options: Any) -> Explanation:  # noqa: ANN401
        """Estimate the values of a model with the graph and the sampler that `fit` learned.

        Parameters
        ----------
        model : estimator, pipeline, booster, torch.nn.Module or callable
            The fitted model.
        X_test, y_test : data frame or array, array
            Rows on which it is evaluated: it must not have been fitted to them.
        **options
            Options of :func:`dsage.explain` that override those of the explainer, such as
            `n_orderings`, `sample_weight` or `checkpoint`. Options that `fit` uses cannot be
            changed here.

        Returns
        -------
        Explanation
        """
        check_is_fitted(self, "sampler_")
        params = self.get_params(deep=False)
        known = [*params, *GameOptions.names(), *PlanOptions.names(), "checkpoint", "rng"]
        for name, value in options.items():
            check_member(name, known, "each option", "the options of explain")
            if name in _OF_FIT:
                advice = "Set it with set_params, and fit again"
                raise refusal(name, "an option of the explainer itself", value, advice)
        is_causal = isinstance(self._learned.graph, CausesFound)
        if (params | options)["estimand"] != "causal" and is_causal:
            advice = "The fitted sampler draws from interventions: fit again for other values"
            raise refusal("estimand", "'causal', as in fit", options.get("estimand"), advice)
        if options.get("estimand") == "causal" and not is_causal:
            advice = "Set it with set_params, and fit again"
            raise refusal("estimand", "an option of the explainer itself", "causal", advice)
        params |= options
        learned = {"graph": self._learned.graph, "sampler": self._learned.sampler}
        fixed = {"target": self.target_, "random_state": self.seed_, "min_share": None}
        return explain(model, self._X, self._y, X_test, y_test, **(params | learned | fixed))

    def _settings(self, inputs: Inputs, loss: Loss | None) -> Settings:
        params = self.get_params(deep=False)
        engine = (*GameOptions.names(), *PlanOptions.names())
        options = {name: value for name, value in params.items() if name in engine}
        options.pop("random_state")
        of_game, of_plan = split_options(options, explain)
        return Settings.read(
            inputs,
            loss,
            limits={name: params[name] for name in _LIMITS},
            groups=self.groups,
            checkpoint=None,
            random_state=self.random_state,
            of_game=of_game,
            of_plan=of_plan,
            sampler_check=self.sampler_check,
            progress=self.progress is True,
        )

    def _is_class(self, inputs: Inputs) -> bool:
        """Return whether the target is a class, as far as can be determined without a model."""
        if not (isinstance(self.loss, str) and self.loss == "auto"):
            return as_loss(self.loss).output == "probability"
        y = inputs.y_train
        if self.classes is not None or not are_numbers(y):
            return True
        numbers = y.astype(np.float64)
        is_whole = bool((numbers == np.rint(numbers)).all())
        return y.ndim == 1 and is_whole and guess_number(numbers, len(y))[0] is Kind.CODES
