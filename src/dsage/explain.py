"""From a fitted model and data to SAGE values, in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dsage._check import AuditWarning, SamplerWarning, check_member, record_warnings
from dsage._random import RandomState
from dsage._steps import Clock, GraphSaver, make_rule, make_seed, use_graph
from dsage.data.frames import take_rows
from dsage.data.groups import Groups
from dsage.data.inputs import Inputs, check_inputs
from dsage.estimate import (
    Checkpoint,
    PlanOptions,
    as_checkpoint,
    run,
)
from dsage.estimate.inference import MIN_UNITS
from dsage.estimate.rivals import check_sampler_of_run
from dsage.games import Game, GameOptions, Grouped, LossGame
from dsage.games.base import Rows
from dsage.graphs import GroupedOracle, Oracle
from dsage.models.losses import Loss
from dsage.models.model import Model
from dsage.models.resolve import find_model
from dsage.orderings import Order, Orderings
from dsage.result.events import Event, Phase
from dsage.result.explanation import Explanation
from dsage.result.run_info import (
    DataInfo,
    EstimateInfo,
    EvaluationInfo,
    LossInfo,
    RunInfo,
    SecondsInfo,
    SessionInfo,
    find_versions,
)
from dsage.samplers.base import Sampler
from dsage.samplers.resolve import ScoringOptions, find_sampler, parse_sampler
from dsage.structure.resolve import find_graph

# Rows on which a batch of orderings is evaluated at least, if there are so many.
_ROWS = 64


def explain(
    model: Any,  # noqa: ANN401
    X_train: Any,  # noqa: ANN401
    y_train: Any,  # noqa: ANN401
    X_test: Any = None,  # noqa: ANN401
    y_test: Any = None,  # noqa: ANN401
    *,
    graph: Any = "auto",  # noqa: ANN401
    sampler: Any = "auto",  # noqa: ANN401
    loss: str | Callable[..., Any] | Loss = "auto",
    estimand: Literal["d-sage", "sage"] = "d-sage",
    tolerance: float | None = None,
    absolute: float | None = None,
    top_k: int | None = None,
    seconds: float | None = None,
    n_orderings: int | None = None,
    groups: Mapping[str, Iterable[str]] | None = None,
    orderings: str | Order | Sequence[Sequence[str] | Sequence[int]] | Orderings = "antithetic",
    target: str | None = None,
    classes: Sequence[Any] | None = None,
    discrete: str | Iterable[str] = (),
    kinds: Mapping[str, str] | None = None,
    n_resamples: int | None = None,
    min_share: float | None = None,
    sampler_check: bool = True,
    n_jobs: int | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
    random_state: RandomState = None,
    progress: bool | Callable[[Event], None] = True,
    **options: Any,  # noqa: ANN401
) -> Explanation:
    """Estimate how much each feature contributes to a model's predictive performance.

    Learn a causal graph of features and target, choose a conditional sampler and a loss, and
    estimate SAGE values with their errors; or, where the graph saves evaluations, d-SAGE values,
    and an audit of what the graph changed. Graph, sampler
    and loss can also be passed. `choices` of the result holds everything that was chosen.

    Parameters
    ----------
    model : estimator, pipeline, booster, results, torch.nn.Module or callable
        The fitted model; see :func:`dsage.models.as_model`.
    X_train, y_train : data frame or array of shape (n_rows, n_features), array of shape (n_rows,)
        Rows from which graph and sampler are learned: usually the training rows of the model. The
        target may have several columns, of shape (n_rows, n_outputs), for a model that predicts
        them all: losses of numbers are summed over them, the result also has the values of each
        (`per_output`), and no graph is learned.
    X_test, y_test : data frame or array, array, optional
        Rows on which the model is evaluated: it must not have been fitted to them. Without them,
        as in ``explain(model, X, y)``, all rows serve for everything, to learn and to evaluate:
        then the model must not have been fitted to `X` and `y`, of which a warning reminds.
    graph : str, callable, Graph, other graph, Stability, Oracle or None, default="auto"
        ``"auto"`` learns one, and uses it only where it saves evaluations: otherwise the values are
        plain SAGE, and `choices.graph` says why. It learns none if the sampler is marginal, for
        ``estimand="sage"``, or for 20 features and more of which linear regressions separate next
        to nothing. ``"learn"``, or a method of :func:`dsage.learn_graph` by name, learns
        and uses one; or a graph of any kind that :func:`dsage.graphs.as_graph` reads, the target
        among its nodes; a callable that receives the training rows, with the target as a column,
        and returns such a graph; or None for plain SAGE.
    sampler : str or Sampler, default="auto"
        ``"auto"`` chooses the simplest one with good held-out scores, see
        :func:`dsage.samplers.choose_sampler`. Or a name such as ``"gaussian"`` or ``"mix"``, or
        an object, see :mod:`dsage.samplers`. ``"marginal"`` gives marginal SAGE values.
    loss : str, callable or Loss, default="auto"
        See :func:`dsage.models.as_loss`; ``"auto"`` is cross entropy for classes, squared error
        for numbers, and for a function what suits its output, see
        :func:`dsage.models.choose_loss`.
    estimand : {"d-sage", "sage"}, default="d-sage"
        ``"sage"`` is unbiased for any model and graph: nothing is skipped by a learned graph, and
        what a given one skips is corrected for.
    tolerance, absolute, top_k, seconds, n_orderings : float or int, optional
        Stop at the first of these limits that is met, see :func:`dsage.estimate.as_stopping`. By
        default stop when computing hardly matters any more: when each standard error from orderings
        and draws is at most a third of that from the choice of the rows, or 1 % of the range of the
        values. `seconds` limits the estimation, its first level included, and is used up if it is
        the only limit; the graph, the choice of the sampler and the predictions for the evaluation
        rows come before. It may be exceeded by the time of about 32,768 predictions.
    groups : mapping of str to iterables of str, optional
        Features that are known or unknown together; the others are on their own.
    orderings : str, Order, sequence or Orderings, default="antithetic"
        A kind of orderings, the orderings themselves, or a partial order that they keep
        (asymmetric SAGE), see :mod:`dsage.orderings`.
    target : str, optional
        Name of the target; by default that of `y_train`.
    classes : sequence, optional
        The classes of a model that does not have them, in the order of the columns of its
        probabilities, or all labels that it may predict; by default the sorted labels of all rows.
    discrete : str or iterable of str, default=()
        Numeric columns that are classes.
    kinds : mapping of str to str, optional
        Kinds of columns that would be guessed wrong, such as ``{"zip": "class"}``: ``"number"``,
        ``"integer"``, ``"codes"`` (few numbers, drawn among those that occur), ``"class"`` or
        ``"ordered class"``. :func:`dsage.data.describe` shows the guesses.
    n_resamples : int, optional
        Number of resamples of the rows from which the graph is learned again, to see how stable its
        edges are; by default 0, or 20 with `min_share`.
    min_share : float, optional
        Use only separations that this share of the graphs learned from resamples have, such as 0.9:
        for few rows, or where a wrong separation would be worse than a longer run.
    sampler_check : bool, default=True
        Whether to estimate how much the values would change with another sampler that scores as
        well (`se_sampler` of the result), with at most 25 % of the run's evaluations, or 32,768 if
        it was precise with few. It is left out if the run is interrupted or its time is up.
    n_jobs : int, optional
        Number of parallel jobs; results do not depend on it.
    checkpoint : str, Path or Checkpoint, optional
        A file for the state of the estimation: the same call resumes where it stopped.
    random_state : int, numpy Generator or None, default=None
        Seed of everything. None draws a new one, which `choices` holds.
    progress : bool or callable, default=True
        Show progress bars, and what the estimation will cost. A callable receives the events of
        :mod:`dsage.result.events` instead.
    **options
        The other fields of :class:`dsage.games.GameOptions` (`n_draws`, `n_replicates`, `noise`,
        `sample_weight`, `draw_control`, `max_bytes`) and of :class:`dsage.estimate.PlanOptions`
        (`semantics`, `first_level`, `exact`, `rows_per_ordering`, `audit`, `cache_bytes`).

    Returns
    -------
    Explanation
        An interrupt (Ctrl-C) of the estimation returns the values so far. An earlier one ends the
        call, since a partial graph would separate too much.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = LinearRegression().fit(X[:300], y[:300])
    >>> explanation = explain(model, X[:300], y[:300], X[300:], y[300:], estimand="sage",
    ...                       sampler="gaussian", random_state=0, progress=False)
    >>> explanation.to_frame()["feature"][:2].tolist()
    ['bmi', 's5']
    """
    game_options, plan_options = _split_options(options)
    clock = Clock(progress if callable(progress) else None)
    progress = progress is True
    with record_warnings() as warned:
        columns: dict[str, Any] = {"discrete": discrete, "kinds": kinds, "groups": groups}
        inputs = check_inputs(X_train, y_train, X_test, y_test, target=target, **columns)
        resolved = find_model(model, loss, classes, inputs)
        stopping = make_rule(
            tolerance=tolerance,
            absolute=absolute,
            top_k=top_k,
            seconds=seconds,
            n_orderings=n_orderings,
        )
        grouped = None if groups is None else Groups(groups, inputs.names)
        kept = as_checkpoint(checkpoint)
        seed = make_seed(random_state, kept)
        for_game = GameOptions.read({**game_options, "random_state": seed})
        for_game = for_game.with_draws(resolved.loss.n_draws(tolerance))
        for_game.row_weights(len(inputs.y_test))
        plan_options |= {"estimand": estimand, "orderings": orderings, "n_jobs": n_jobs}
        for_plan = PlanOptions.read({**plan_options, "random_state": seed})
        for_plan.check_features(inputs.names if grouped is None else grouped.names)
        request = parse_sampler(sampler, inputs, seed=seed)
        is_of_classes = resolved.loss.output == "probability"
        jobs: dict[str, Any] = {"n_jobs": n_jobs, "seed": seed, "progress": progress}
        with clock(Phase.GRAPH):
            found = find_graph(
                graph,
                inputs,
                is_of_classes=is_of_classes,
                is_marginal=request.is_marginal,
                is_plain=estimand == "sage",
                why_spare=GraphSaver(for_plan, grouped),
                n_resamples=n_resamples,
                min_share=min_share,
                **jobs,
            )
        with clock(Phase.SAMPLER):
            n_predicted = _least_predicted(inputs, grouped, for_game)
            predict = resolved.model.predict
            scoring = ScoringOptions(predict, grouped, n_predicted, seconds, sampler_check)
            fitted = find_sampler(request, inputs, scoring, seed=seed, progress=progress)
        with clock(Phase.ESTIMATE):
            settings = {"loss": resolved.loss, **vars(for_game)}
            make_game = _GameMaker(resolved.model, inputs, settings, grouped)
            game, oracle = make_game(fitted.sampler), make_game.oracle(found.oracle)
            is_asked = not (isinstance(graph, str) and graph == "auto")
            oracle, graph_info = use_graph(oracle, found.info, for_plan, is_asked=is_asked)
            estimate = run(
                game,
                oracle=oracle,
                stopping=stopping,
                checkpoint=kept,
                progress=progress or clock.follow,
                **vars(for_plan),
            )
            if estimate.n_units == 0:
                # Interrupted before the first values.
                raise KeyboardInterrupt
        with clock(Phase.CHECK):
            check = check_sampler_of_run(
                fitted,
                estimate,
                game,
                make_game,
                inputs,
                oracle=oracle,
                n_draws=for_game.n_replicates * for_game.n_draws_each,
                options=for_plan,
                seed=seed,
                is_wanted=sampler_check,
            )
    choices = RunInfo(
        model=resolved.info,
        data=DataInfo.of(inputs, grouped),
        graph=graph_info,
        sampler=replace(fitted.info, compared_with=check.others, not_compared=check.reason or None),
        loss=LossInfo(resolved.loss.name, resolved.loss_source, resolved.loss_reason),
        estimate=EstimateInfo.of(estimate, stopping, for_game, for_plan),
        evaluations=EvaluationInfo.of(estimate, check),
        seconds=SecondsInfo(**clock.seconds),
        versions=find_versions(resolved.info.packages),
        run=SessionInfo(str(seed), n_jobs, None if kept is None else str(kept.path)),
    )
    own = AuditWarning, SamplerWarning
    texts = [str(each) for each in warned if not isinstance(each, own)]
    return Explanation(
        estimate=estimate,
        target=inputs.target,
        graph=found.graph,
        edge_strength=found.strength,
        sampler_scores=fitted.scores,
        groups=None if grouped is None else grouped.members,
        choices=choices,
        warnings=tuple(dict.fromkeys(texts)),
        sampler_check=check,
    )


def _split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of the game and those of the plan; refuse unknown names."""
    names = [*GameOptions.names(), *PlanOptions.names(), *(explain.__kwdefaults__ or ())]
    for option in options:
        check_member(option, names, "each option", "the options of explain")
    of_game = {name: value for name, value in options.items() if name in GameOptions.names()}
    return of_game, {name: value for name, value in options.items() if name not in of_game}


class _GameMaker:
    """Makes the game of a run with a fitted sampler, on all rows or on some of them."""

    def __init__(
        self, model: Model, inputs: Inputs, settings: Mapping[str, Any], groups: Groups | None
    ) -> None:
        self._model, self._inputs = model, inputs
        self._settings, self._groups = settings, groups

    def __call__(
        self, sampler: Sampler, rows: Rows | None = None, *, is_controlled: bool = True
    ) -> Game:
        X, y, settings = self._inputs.X_test, self._inputs.y_test, dict(self._settings)
        if not is_controlled:
            settings["draw_control"] = "none"
        if rows is not None:
            X, y = take_rows(X, rows), y[rows]
            if settings["sample_weight"] is not None:
                settings["sample_weight"] = np.asarray(settings["sample_weight"])[rows]
        game = LossGame(self._model, sampler, X, y, **settings)
        return game if self._groups is None else Grouped(game, self._groups.members)

    def oracle(self, oracle: Oracle | None) -> Oracle | None:
        """Return the separations of features as those of the players."""
        if self._groups is None or oracle is None:
            return oracle
        return GroupedOracle(oracle, self._groups.members)


def _least_predicted(inputs: Inputs, groups: Groups | None, options: GameOptions) -> int:
    """Return the number of rows that the model predicts at least in a run to a tolerance."""
    n_players = len(inputs.names if groups is None else groups.names)
    n_rows = min(len(inputs.y_test), _ROWS)
    return 2 * MIN_UNITS * n_players * n_rows * options.n_replicates * options.n_draws_each
