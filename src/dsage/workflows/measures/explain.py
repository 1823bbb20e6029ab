"""Several measures of importance in one call."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dsage._check import (
    check_member,
    check_members,
    record_warnings,
    refusal,
    shown,
    warn,
)
from dsage._random import RandomState, RngLike, Streams, one_seed
from dsage.data.groups import Groups
from dsage.data.inputs import Inputs, check_inputs
from dsage.estimate import PlanOptions
from dsage.explain import explain
from dsage.games import Game, GameOptions, Grouped, LossGame
from dsage.games.redrawn import Redrawn
from dsage.models.losses import Loss
from dsage.models.resolve import ResolvedModel, find_model
from dsage.result.explanation import Explanation
from dsage.samplers.base import Sampler
from dsage.samplers.choose import fit_to_all
from dsage.samplers.resolve import find_sampler, parse_sampler
from dsage.workflows.measures.averages import Average, average
from dsage.workflows.measures.kinds import MEASURES
from dsage.workflows.measures.pairs import find_interactions
from dsage.workflows.measures.refits import Refit, as_refit, leave_out
from dsage.workflows.measures.result import Measures

# Draws of a row at a time for measures that average the losses of single draws.
_N_REDRAWN = 8
_SEED_BITS = 32
_OF_EXPLAIN = "the options of explain"
_DEFAULT = ("shapley", "total", "first-order", "cfi", "pfi")


def explain_measures(
    model: Any,  # noqa: ANN401
    X_train: Any,  # noqa: ANN401
    y_train: Any,  # noqa: ANN401
    X_test: Any = None,  # noqa: ANN401
    y_test: Any = None,  # noqa: ANN401
    *,
    measures: str | Iterable[str] = _DEFAULT,
    sampler: Any = "auto",  # noqa: ANN401
    loss: str | Callable[..., Any] | Loss = "auto",
    groups: Mapping[str, Iterable[str]] | None = None,
    refit: Refit | None = None,
    interactions: bool = False,
    target: str | None = None,
    classes: Sequence[Any] | None = None,
    discrete: str | Iterable[str] = (),
    kinds: Mapping[str, str] | None = None,
    random_state: RandomState = None,
    rng: RngLike = None,
    progress: bool = True,
    **options: Any,  # noqa: ANN401
) -> Measures:
    """Estimate several measures of importance on the same rows, sampler, loss and groups.

    With L(S) the risk of the model that knows the features S, and D all features:

    - ``"shapley"``: SAGE values, the mean of ``L(S) - L(S + j)`` over orderings.
    - ``"total"``: ``L(D - j) - L(D)``, what is lost if only j becomes unknown.
    - ``"first-order"``: ``L(empty) - L(j)``, what is gained if only j becomes known.
    - ``"cfi"``: conditional feature importance, the mean loss of predictions in which j is redrawn
      given the other features, minus ``L(D)``. Here the losses of the draws are averaged; in
      ``"total"``, their predictions. For squared error, ``"cfi"`` is larger by the variance of the
      predictions over the draws.
    - ``"pfi"``: the same with j from random training rows, regardless of the other features
      (permutation feature importance).
    - ``"loco"``: the loss of a model that was fitted without j, minus ``L(D)``.

    Parameters
    ----------
    model, X_train, y_train, X_test, y_test
        As for :func:`dsage.explain`. For ``"loco"``, the model must have been fitted to the
        training rows.
    measures : str or iterable of str
        One of these measures, or several; all except ``"loco"`` by default.
    sampler, loss, groups, target, classes, discrete, kinds
        As for :func:`dsage.explain`; the sampler is chosen once. ``"pfi"`` does not use it.
    refit : callable, optional
        A function (X, y) -> fitted model, for ``"loco"``: it gets training rows without the columns
        of a feature. By default a clone of the model is fitted.
    interactions : bool, default=False
        Whether to estimate the interaction of each pair of features, too, with shapiq (extra
        ``dsage[shapiq]``).
    random_state : int, numpy Generator or None, default=None
        Seed of everything.
    rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
        Another name for `random_state`, as in SciPy; pass one of the two.
    progress : bool, default=True
        Show progress bars.
    **options
        Other options of :func:`dsage.explain`: `n_draws`, `sample_weight`, ... for all measures,
        `tolerance`, `n_jobs`, ... for ``"shapley"``.

    Returns
    -------
    Measures
        With one table (`to_frame`, `table`) and one plot. The draws of the measures other than
        ``"shapley"`` are repeated until their error is at most a third of the error from the
        choice of the rows, or 1 % of the range.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> X = X[["bmi", "bp", "s5"]]
    >>> model = LinearRegression().fit(X[:300], y[:300])
    >>> found = explain_measures(model, X[:300], y[:300], X[300:], y[300:], sampler="gaussian",
    ...                          measures=["total", "cfi", "loco"], random_state=0, progress=False)
    >>> found.table().index.tolist()
    ['bmi', 's5', 'bp']
    >>> found.names
    ('total', 'cfi', 'loco')
    """
    names = check_members(measures, tuple(MEASURES), "measures", "the measures")
    if not names:
        raise refusal("measures", "one or more", measures, f"They are {shown(tuple(MEASURES))}")
    if refit is not None and "loco" not in names:
        advice = "Leave it out, or add 'loco' to the measures"
        raise refusal("refit", "given for 'loco' only", refit, advice, TypeError)
    random_state = one_seed(random_state, rng)
    refitter = as_refit(model, refit) if "loco" in names else None
    _check_options(options, names)
    seed = secrets.randbits(_SEED_BITS) if random_state is None else Streams(random_state).entropy
    with record_warnings(show="shapley" not in names) as warned:
        columns: dict[str, Any] = {"discrete": discrete, "kinds": kinds, "groups": groups}
        inputs = check_inputs(X_train, y_train, X_test, y_test, target=target, **columns)
        resolved = find_model(model, loss, classes, inputs)
        of_game = {name: options[name] for name in GameOptions.names() if name in options}
        parts = _Parts(inputs, resolved, groups, of_game, seed)
        fitted = _fit_sampler(sampler, inputs, seed, progress=progress)
        game = parts.game(fitted)
    explanation = None
    if "shapley" in names:
        chosen = {"graph": None, "estimand": "sage", "sampler_check": False, **options}
        chosen |= {"target": target, "classes": classes, **columns, "progress": progress}
        rows = X_train, y_train, X_test, y_test
        is_chosen = isinstance(sampler, str) and sampler == "auto"
        chosen["sampler"] = fitted.clone() if is_chosen else sampler
        explanation = explain(model, *rows, loss=loss, random_state=seed, **chosen)
        for each in warned:
            if str(each) not in explanation.warnings:
                warn(each.text, type(each))
    found = {}
    for name in names:
        if explanation is not None and name == "shapley":
            found[name] = _of_explanation(explanation)
        elif refitter is not None and name == "loco":
            bare = parts.game(fitted, grouped=False)
            found[name] = leave_out(bare, inputs, parts.members, refitter, resolved.model.classes)
        else:
            found[name] = parts.estimate(name, game, fitted)
    return Measures(
        feature_names=tuple(parts.members),
        averages=found,
        target=inputs.target,
        loss=resolved.loss.name,
        sampler=fitted.name,
        n_rows=len(inputs.y_test),
        explanation=explanation,
        interactions=find_interactions(game) if interactions else None,
    )


def _check_options(options: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse options that are unknown, or that none of the measures uses."""
    of_explain = [*PlanOptions.names(), *(explain.__kwdefaults__ or ())]
    for option in options:
        check_member(option, [*GameOptions.names(), *of_explain], "each option", _OF_EXPLAIN)
        if option in of_explain and "shapley" not in names:
            advice = "Leave it out, or add 'shapley' to the measures"
            raise refusal(option, "given for 'shapley' only", options[option], advice, TypeError)


def _fit_sampler(sampler: Any, inputs: Inputs, seed: int, *, progress: bool) -> Sampler:  # noqa: ANN401
    """Return the fitted sampler; a given sampler is not scored."""
    request = parse_sampler(sampler, inputs, seed=seed)
    if request.sampler is None:
        return find_sampler(request, inputs, seed=seed, progress=progress).sampler
    given = request.sampler
    return given if given.is_fitted else fit_to_all(given, inputs.X_train)


def _of_explanation(explanation: Explanation) -> Average:
    estimate = explanation.estimate
    return Average(explanation.values, explanation.se, estimate.se_rows)


class _Parts:
    """Makes the games of the measures: the same rows, loss, groups, weights and seed."""

    def __init__(
        self,
        inputs: Inputs,
        resolved: ResolvedModel,
        groups: Mapping[str, Iterable[str]] | None,
        options: Mapping[str, Any],
        seed: int,
    ) -> None:
        self._inputs, self._resolved = inputs, resolved
        self._groups = None if groups is None else Groups(groups, inputs.names)
        self._options, self._seed = dict(options), seed
        # As many draws as the loss needs, unless their number is given.
        self._n_draws: int | None = self._options.get("n_draws")

    @property
    def members(self) -> dict[str, tuple[str, ...]]:
        """The features of each player."""
        if self._groups is None:
            return {name: (name,) for name in self._inputs.names}
        return {name: self._groups.members.get(name, (name,)) for name in self._groups.names}

    def game(self, sampler: Sampler, *, grouped: bool = True) -> Any:  # noqa: ANN401
        """Return the game of the losses of mean predictions over draws."""
        made = self._loss_game(sampler)
        if self._n_draws is None:
            need = made.draw_need()
            need.warn(made.loss.name, is_of_classes=made.loss.is_of_classes)
            # Without draws there are none to choose.
            self._n_draws = need.n_draws or None
            if need.n_draws > made.draws_per_risk:
                made = self._loss_game(sampler)
        return self._group(made) if grouped else made

    def _loss_game(self, sampler: Sampler) -> LossGame:
        return LossGame(
            self._resolved.model,
            sampler,
            self._inputs.X_test,
            self._inputs.y_test,
            loss=self._resolved.loss,
            random_state=self._seed,
            **{**self._options, "n_draws": self._n_draws},
        )

    def redrawn(self, sampler: Sampler) -> Game:
        """Return the game of the mean losses of single draws."""
        kept = ("sample_weight", "max_bytes")
        options = {name: value for name, value in self._options.items() if name in kept}
        n_draws = self._options.get("n_draws") or _N_REDRAWN
        rows = self._inputs.X_test, self._inputs.y_test
        made = Redrawn(
            self._resolved.model,
            sampler,
            *rows,
            loss=self._resolved.loss,
            n_draws=n_draws,
            random_state=self._seed,
            **options,
        )
        return self._group(made)

    def _group(self, game: Game) -> Game:
        return game if self._groups is None else Grouped(game, self._groups.members)

    def estimate(self, name: str, game: Game, sampler: Sampler) -> Average:
        """Return a measure that is a difference of two risks for each player."""
        n_players = len(self.members)
        one, every = np.eye(n_players, dtype=np.bool_), np.ones((n_players, n_players), np.bool_)
        if name == "first-order":
            return average(game, ~every, one)
        if name == "total":
            return average(game, ~one, every)
        if name == "pfi":
            sampler = _fit_sampler("marginal", self._inputs, self._seed, progress=False)
        return average(self.redrawn(sampler), ~one, every)
