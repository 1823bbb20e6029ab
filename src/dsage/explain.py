"""From a fitted model and data to SAGE values, in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from dsage._check import AuditWarning, GraphWarning, SamplerWarning, record_warnings
from dsage._random import RandomState, RngLike, one_seed
from dsage.data.disk import read_inputs
from dsage.data.inputs import Inputs, check_inputs
from dsage.estimate import Checkpoint, run
from dsage.estimate.rivals import check_sampler_of_run
from dsage.estimate.running.checkpoint import hold
from dsage.models.losses import Loss
from dsage.models.resolve import ResolvedModel, find_model
from dsage.orderings import Order, Orderings
from dsage.result.events import Event, Phase
from dsage.result.explanation import Explanation
from dsage.result.run_info import EstimateInfo, EvaluationInfo
from dsage.steps import (
    Clock,
    GameMaker,
    Learned,
    Settings,
    find_range,
    learn_parts,
    record_run,
    row_losses,
    split_options,
    use_graph,
)
from dsage.structure.causes import CausesFound
from dsage.structure.knowledge import Knowledge


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
    estimand: Literal["d-sage", "sage", "causal"] = "d-sage",
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
    tiers: Iterable[Iterable[str]] | None = None,
    forbidden: Iterable[tuple[str, str]] = (),
    required: Iterable[tuple[str, str]] = (),
    sampler_check: bool = True,
    n_jobs: int | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
    random_state: RandomState = None,
    rng: RngLike = None,
    keep_losses: bool = False,
    progress: bool | Callable[[Event], None] = True,
    **options: Any,  # noqa: ANN401
) -> Explanation:
    """Estimate how much each feature contributes to a model's predictive performance.

    Learn a causal graph of the features and the target, choose a conditional sampler and a loss,
    and estimate SAGE values with their errors. If the graph saves evaluations, estimate d-SAGE
    values instead, with an audit of how much the graph changes them. The graph, the sampler and
    the loss can also be passed. The attribute `choices` of the result records all choices.

    Parameters
    ----------
    model : estimator, pipeline, booster, results, torch.nn.Module or callable
        The fitted model; see :func:`dsage.models.as_model`.
    X_train, y_train : data frame or array of shape (n_rows, n_features), array of shape (n_rows,)
        Rows from which the graph and the sampler are learned, usually the training rows of the
        model. The target may have several columns, of shape (n_rows, n_outputs), for a model that
        predicts them all. Losses of numbers are then summed over the columns, the result also has
        the values for each column (`per_output`), and no graph is learned.
    X_test, y_test : data frame or array, array, optional
        Rows on which the model is evaluated. It must not have been fitted to them. Without them,
        as in ``explain(model, X, y)``, all rows are used both to learn and to evaluate; the model
        must then not have been fitted to `X` and `y`, and a warning is raised as a reminder.
        Rows may also be on disk, as in ``explain(model, "train.parquet", "price",
        "test.parquet")``: Parquet files, folders of such files or pyarrow data sets; `y_train` is
        then the name of the target's column. The rows need not fit into memory: see the guide on
        long runs.
    graph : str, callable, Graph, other graph, Stability, Oracle or None, default="auto"
        - ``"auto"`` learns a graph, and uses it only if it saves evaluations. Otherwise the values
          are plain SAGE, and `choices.graph` says why. No graph is learned if the sampler is
          marginal, if the estimand is ``"sage"``, or if there are 20 features or more and linear
          regressions separate hardly any of them from the target.
        - ``"learn"``, or the name of a method of :func:`dsage.learn_graph`, learns a graph and
          always uses it.
        - A graph is used as it is. It can be of any kind that :func:`dsage.graphs.as_graph` reads,
          and must have the target among its nodes. A callable receives the training rows, with
          the target as a column, and returns such a graph.
        - None means plain SAGE.
    sampler : str or Sampler, default="auto"
        ``"auto"`` chooses the simplest sampler with good held-out scores, see
        :func:`dsage.samplers.choose_sampler`. Or a name such as ``"gaussian"`` or ``"mix"``, or
        an object, see :mod:`dsage.samplers`. ``"marginal"`` gives marginal SAGE values. A fitted
        sampler, such as the `sampler` of another explanation, is used as it is.
    loss : str, callable or Loss, default="auto"
        See :func:`dsage.models.as_loss`. ``"auto"`` is cross entropy for classes; for a regressor,
        the loss that it was fitted with, if this can be read from the model, and otherwise squared
        error. For a function the loss depends on its output, see
        :func:`dsage.models.choose_loss`.
    estimand : {"d-sage", "sage", "causal"}, default="d-sage"
        ``"sage"`` is unbiased for any model and graph: no graph is learned, and if you pass one,
        the effect of skipping is estimated and corrected. ``"causal"`` answers a different
        question: what features contribute when they are *set* to their values instead of
        observed, see the guide on causal values. It needs a graph, passed or learned. The result
        then also has the direct and the indirect part of each value and, if the data do not
        determine all directions of edges, the range of the values over the possible graphs
        (`range_graph`).
    tolerance, absolute, top_k, seconds, n_orderings : float or int, optional
        Stop at whichever of these limits is reached first, see
        :func:`dsage.estimate.as_stopping`. By default stop when more computing would hardly help:
        when each standard error from orderings and draws is at most a third of the error from the
        choice of the rows, or 1 % of the range of the values. `seconds` limits the estimation,
        including its first level, and is used up if it is the only limit. The graph, the choice of
        the sampler and the predictions for the evaluation rows come before and are not counted.
        The limit may be exceeded by the time of about 32,768 predictions.
    groups : mapping of str to iterables of str, optional
        Features that become known together, as one player. Features in no group stay single.
    orderings : str, Order, sequence or Orderings, default="antithetic"
        A kind of orderings, the orderings themselves, or a partial order that they respect
        (asymmetric SAGE), see :mod:`dsage.orderings`.
    target : str, optional
        Name of the target; by default the name of `y_train`.
    classes : sequence, optional
        The classes of a model that does not store them, in the order of the columns of its
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
        Use only separations that hold in at least this share of the graphs learned from resamples,
        such as 0.9. Useful with few rows, or if a wrong separation is worse than a longer run.
    tiers : iterable of iterables of str, optional
        Groups of features (and the target) in temporal order: in a learned graph, no variable
        causes a variable of an earlier group.
    forbidden, required : iterables of (str, str), default=()
        Edges, from cause to effect, that a learned graph must not, or must, have.
    sampler_check : bool, default=True
        Whether to estimate how much the values would change with another sampler that scores as
        well (`se_sampler` of the result), with at most 25 % of the run's evaluations. The check is
        skipped if the run is interrupted, its time is up, or it has too few evaluations.
    n_jobs : int, optional
        Number of parallel jobs; results do not depend on it. By default a run starts with one job;
        long runs of models that can be copied safely also use idle processors.
    checkpoint : str, Path or Checkpoint, optional
        A file for the state of the estimation: the same call resumes where it stopped.
    random_state : int, numpy Generator or None, default=None
        Seed of all random numbers. None draws a new seed, which `choices` records.
    rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
        Another name for `random_state`, as in SciPy; pass only one of the two.
    keep_losses : bool, default=False
        Whether to keep the loss of each evaluation row, with no feature and with all features
        known (`row_losses` of the result).
    progress : bool or callable, default=True
        Whether to show progress bars and the expected duration. A callable receives the events of
        :mod:`dsage.result.events` instead.
    **options
        The other fields of :class:`dsage.games.GameOptions` (`n_draws`, `n_replicates`, `noise`,
        `sample_weight`, `draw_control`, `max_bytes`) and of :class:`dsage.estimate.PlanOptions`
        (`semantics`, `first_level`, `exact`, `rows_per_ordering`, `audit`, `cache_bytes`).

    Returns
    -------
    Explanation
        An interrupt (Ctrl-C) during the estimation returns the values so far. An earlier interrupt
        ends the call, since an unfinished graph would separate too much.

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
    of_game, of_plan = split_options(options, explain)
    random_state = one_seed(random_state, rng)
    clock = Clock(progress if callable(progress) else None)
    with record_warnings() as warned:
        columns: dict[str, Any] = {"discrete": discrete, "kinds": kinds, "groups": groups}
        stored = read_inputs(X_train, y_train, X_test, y_test, random_state)
        if stored is None:
            inputs = check_inputs(X_train, y_train, X_test, y_test, target=target, **columns)
        else:
            rows = stored.X_train, stored.y_train, stored.X_test, stored.y_test
            inputs = check_inputs(*rows, target=target or stored.target, **columns)
            inputs = replace(inputs, source=stored.source)
        resolved = find_model(model, loss, classes, inputs)
        settings = Settings.read(
            inputs,
            resolved.loss,
            limits={
                "tolerance": tolerance,
                "absolute": absolute,
                "top_k": top_k,
                "seconds": seconds,
                "n_orderings": n_orderings,
            },
            groups=groups,
            checkpoint=checkpoint,
            random_state=random_state,
            of_game=of_game,
            of_plan=of_plan | {"estimand": estimand, "orderings": orderings, "n_jobs": n_jobs},
            sampler_check=sampler_check,
            progress=progress is True,
        )
        with hold(settings.checkpoint):
            learned = learn_parts(
                inputs,
                settings,
                clock,
                graph=graph,
                sampler=sampler,
                is_of_classes=resolved.loss.is_of_classes,
                predict=resolved.model.predict,
                n_resamples=n_resamples,
                min_share=min_share,
                knowledge=Knowledge.read(
                    [*inputs.names, inputs.target],
                    tiers=tiers,
                    forbidden=forbidden,
                    required=required,
                ),
            )
            found = _estimate(inputs, resolved, settings, learned, clock, keep_losses=keep_losses)
    recorded = AuditWarning, SamplerWarning, GraphWarning
    texts = [str(each) for each in warned if not isinstance(each, recorded)]
    return replace(found, warnings=tuple(dict.fromkeys(texts)))


def _estimate(
    inputs: Inputs,
    resolved: ResolvedModel,
    settings: Settings,
    learned: Learned,
    clock: Clock,
    *,
    keep_losses: bool,
) -> Explanation:
    """Estimate the values and the error of the sampler; return them with the record of the run."""
    graph, fitted, for_plan = learned.graph, learned.sampler, settings.plan
    with clock(Phase.ESTIMATE):
        of_game = {"loss": resolved.loss, **vars(settings.game)}
        make_plain = GameMaker(resolved.model, inputs, of_game, settings.groups)
        make_game, game, for_game = make_plain.with_enough_draws(fitted.sampler, settings)
        oracle, graph_info = use_graph(make_game.oracle(graph.oracle), graph, for_plan)
        estimate = run(
            game,
            oracle=oracle,
            stopping=settings.stopping,
            checkpoint=settings.checkpoint,
            progress=settings.progress or clock.follow,
            **vars(for_plan),
        )
        if estimate.n_units == 0:
            # Interrupted before the first values.
            raise KeyboardInterrupt
        losses = row_losses(game) if keep_losses else None
    with clock(Phase.CHECK):
        check = check_sampler_of_run(
            fitted,
            estimate,
            game,
            make_plain,
            inputs,
            oracle=oracle,
            n_draws=settings.game.all_draws,
            options=for_plan,
            seed=settings.seed,
            is_wanted=settings.sampler_check,
            n_draws_of_run=for_game.all_draws,
        )
        ranges = None
        if isinstance(graph, CausesFound):
            ranges = find_range(
                graph, fitted.sampler, game, make_game, estimate, for_plan, settings.seed
            )
    choices = record_run(
        resolved,
        inputs,
        settings,
        clock,
        graph=graph_info,
        sampler=replace(fitted.info, compared_with=check.others, not_compared=check.reason or None),
        estimate=EstimateInfo.of(estimate, settings.stopping, for_game, for_plan),
        evaluations=EvaluationInfo.of(estimate, check),
    )
    return Explanation(
        estimate=estimate,
        target=inputs.target,
        graph=graph.graph,
        edge_strength=graph.strength,
        sampler_scores=fitted.scores,
        groups=None if settings.groups is None else settings.groups.members,
        choices=choices,
        warnings=(),
        sampler_check=check,
        sampler=fitted.sampler,
        row_losses=losses,
        range_graph=ranges,
    )
