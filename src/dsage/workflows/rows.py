"""From a fitted model and data to the values of single rows, in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from dsage._check import (
    AuditWarning,
    Setting,
    Text,
    check_member,
    record_warnings,
    refusal,
    warn,
)
from dsage._random import RandomState, RngLike, one_seed
from dsage.data.inputs import Inputs
from dsage.estimate import (
    Checkpoint,
    LocalEstimate,
    Stopping,
    Tolerance,
    as_stopping,
    run_local,
)
from dsage.estimate.inference import MIN_UNITS
from dsage.estimate.local.running import split_time
from dsage.models.losses import Loss
from dsage.models.resolve import ResolvedModel, find_model
from dsage.orderings import Order, Orderings
from dsage.result.events import Event, Phase
from dsage.result.row_tables import audit_counts
from dsage.result.row_values import Label
from dsage.result.rows import RowExplanation
from dsage.result.run_info import EstimateInfo, EvaluationInfo
from dsage.samplers.base import check_sampler
from dsage.steps import (
    Clock,
    Learned,
    Settings,
    group_oracle,
    learn_parts,
    record_run,
    split_options,
    use_graph,
    warn_of_open_directions,
)
from dsage.structure.causes import CausesFound
from dsage.structure.knowledge import Knowledge
from dsage.workflows.row_games import RowGames, check_rows, find_outputs, find_row_names

# Largest standard error by default, as a share of the range of the values.
_TOLERANCE = 0.02
# Units before standard errors are trusted: fewer than for the ranking, because the rule uses the
# largest of very many errors, which is more often too large than too small.
_MIN_UNITS = 10


def explain_rows(
    model: Any,  # noqa: ANN401
    X_train: Any,  # noqa: ANN401
    y_train: Any,  # noqa: ANN401
    rows: Any,  # noqa: ANN401
    y_rows: Any = None,  # noqa: ANN401
    *,
    values: Literal["prediction", "loss"] = "prediction",
    output: Label | None = None,
    graph: Any = "auto",  # noqa: ANN401
    sampler: Any = "auto",  # noqa: ANN401
    loss: str | Callable[..., Any] | Loss = "auto",
    estimand: Literal["d-sage", "sage", "causal"] = "d-sage",
    tolerance: float | None = None,
    absolute: float | None = None,
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
    n_jobs: int | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
    random_state: RandomState = None,
    rng: RngLike = None,
    progress: bool | Callable[[Event], None] = True,
    **options: Any,  # noqa: ANN401
) -> RowExplanation:
    """Estimate what each feature adds to the predictions, or takes from the losses, of rows.

    The values are conditional Shapley values: the mean over orderings of ``f_{S+j}(x) - f_S(x)``
    with ``f_S(x) = E[f(X) | x_S]``, S the features before j. The values of a row add up to its
    prediction minus the mean prediction. With a graph they are d-SHAP values, and an audit
    estimates what the graph changes. Graph, sampler and loss are found as by :func:`dsage.explain`.

    Parameters
    ----------
    model : estimator, pipeline, booster, results, torch.nn.Module or callable
        The fitted model; see :func:`dsage.models.as_model`.
    X_train, y_train : data frame or array of shape (n_rows, n_features), array of shape (n_rows,)
        Rows from which graph and sampler are learned: usually the training rows of the model.
    rows : data frame or array of shape (n_explained, n_features)
        The rows to explain, with the columns of `X_train`; one row is ``X.iloc[[i]]``.
    y_rows : array of shape (n_explained,), optional
        Their targets: needed for losses only.
    values : {"prediction", "loss"}, default="prediction"
        What is explained: the model's prediction for a row, or how much of its loss each feature
        removes. The means of the latter over rows are SAGE values.
    output : str, int, float or bool, optional
        The output to explain, if the model has several: the label of a class, or the number of
        a column, starting at 0. By default the second of two classes, and otherwise all, one after
        the other.
    graph, sampler, loss, estimand : optional
        As for :func:`dsage.explain`. The loss is used for ``values="loss"``, and determines the
        kind of the model's output. The effect of another sampler is not estimated. With
        ``estimand="causal"`` the known features are set by an intervention,
        ``f_S(x) = E[f(X) | do(x_S)]``, and the values have a direct and an indirect part.
    tolerance, absolute, seconds, n_orderings : float or int, optional
        Stop at the first of these limits that is met, see :func:`dsage.estimate.as_stopping`. By
        default stop when the largest standard error is 2 % of the range of the values of all rows.
        `seconds` limits the estimation; several outputs share them.
    groups, orderings, target, classes, discrete, kinds, n_resamples, min_share, tiers, \
    forbidden, required, n_jobs : optional
        As for :func:`dsage.explain`.
    checkpoint : str, Path or Checkpoint, optional
        A file for the state of the estimation: the same call resumes where it stopped. Further
        outputs, and further rows of a long run, have files next to it.
    random_state : int, numpy Generator or None, default=None
        Seed of everything. None draws a new one, which `choices` holds.
    rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
        Another name for `random_state`, as in SciPy; pass one of the two.
    progress : bool or callable, default=True
        As for :func:`dsage.explain`.
    **options
        The other fields of :class:`dsage.games.GameOptions` (`n_draws`, `n_replicates`, `noise`,
        `draw_control`, `max_bytes`) and of :class:`dsage.estimate.PlanOptions` (`semantics`,
        `first_level`, `exact`, `rows_per_ordering`, `audit`, `cache_bytes`).

    Returns
    -------
    RowExplanation
        An interrupt (Ctrl-C) of the estimation returns the values so far, of the rows and outputs
        that were started.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> X = X[["age", "bmi", "bp", "s5"]]
    >>> model = LinearRegression().fit(X[:300], y[:300])
    >>> explanation = explain_rows(model, X[:300], y[:300], X[300:303], graph=None,
    ...                            sampler="gaussian", random_state=0, progress=False)
    >>> explanation.values.shape
    (3, 4)
    >>> total = explanation.base_values + explanation.values.sum(axis=1)
    >>> bool(abs(total - model.predict(X[300:303])).max() < 1e-8)
    True
    """
    check_member(values, ("prediction", "loss"), "values", "the kinds of values")
    of_game, of_plan = split_options(options, explain_rows, without=("sample_weight",))
    if values == "loss" and output is not None:
        advice = "A loss depends on all outputs: leave it out, or explain predictions"
        raise refusal("output", "left out for values='loss'", output, advice, TypeError)
    random_state = one_seed(random_state, rng)
    clock = Clock(progress if callable(progress) else None)
    with record_warnings() as warned:
        columns: dict[str, Any] = {"discrete": discrete, "kinds": kinds, "groups": groups}
        is_loss = values == "loss"
        inputs = check_rows(
            X_train, y_train, rows, y_rows, is_loss=is_loss, target=target, **columns
        )
        resolved = find_model(model, loss, classes, inputs)
        limits = {"tolerance": tolerance, "absolute": absolute, "seconds": seconds}
        limits |= {"n_orderings": n_orderings}
        settings = Settings.read(
            inputs,
            resolved.loss if is_loss else None,
            limits=limits,
            groups=groups,
            checkpoint=checkpoint,
            random_state=random_state,
            of_game=of_game,
            of_plan=of_plan | {"estimand": estimand, "orderings": orderings, "n_jobs": n_jobs},
            sampler_check=False,
            progress=progress is True,
        )
        settings = replace(settings, stopping=_make_rule(limits))
        outputs = (None,) if is_loss else find_outputs(resolved.model, output, inputs)
        players = inputs if settings.groups is None else settings.groups
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
                [*inputs.names, inputs.target], tiers=tiers, forbidden=forbidden, required=required
            ),
            n_predicted=MIN_UNITS * len(players.names) * len(inputs.y_test) * len(outputs),
        )
        if isinstance(learned.graph, CausesFound):
            warn_of_open_directions(learned.graph)
        found = _estimate(
            inputs, resolved, settings, learned, clock, outputs, find_row_names(rows), is_loss
        )
        texts = [str(each) for each in warned if not isinstance(each, AuditWarning)]
        explanation = replace(found, warnings=tuple(dict.fromkeys(texts)))
        _warn_of_audit(explanation)
    return explanation


def _estimate(
    inputs: Inputs,
    resolved: ResolvedModel,
    settings: Settings,
    learned: Learned,
    clock: Clock,
    outputs: Sequence[Label | None],
    row_names: tuple[Any, ...],
    is_loss: bool,
) -> RowExplanation:
    """Estimate the values of all outputs; return them with the record of the run."""
    found, fitted, grouped = learned.graph, learned.sampler, settings.groups
    games = RowGames(resolved, fitted.sampler, inputs, settings.game, grouped)
    with clock(Phase.ESTIMATE):
        oracle, graph_info = use_graph(group_oracle(found.oracle, grouped), found, settings.plan)
        estimates = _run(
            games if fitted.unfitted is not None else games.without_background(),
            outputs,
            stopping=split_time(settings.stopping, len(outputs)),
            checkpoint=settings.checkpoint,
            is_loss=is_loss,
            oracle=oracle,
            progress=settings.progress or clock.follow,
            **vars(settings.plan),
        )
    for_game = settings.game.with_draws(games.n_draws(is_loss=is_loss))
    choices = record_run(
        resolved,
        inputs,
        settings,
        clock,
        graph=graph_info,
        sampler=fitted.info,
        estimate=EstimateInfo.of(estimates[-1], settings.stopping, for_game, settings.plan),
        evaluations=EvaluationInfo.of_rows(estimates),
    )
    return RowExplanation(
        estimates=estimates,
        outputs=tuple(outputs[: len(estimates)]),
        target=inputs.target,
        rows=estimates[0].data,
        row_names=row_names[: len(estimates[0].values)],
        layout=games.layout,
        graph=found.graph,
        sampler_scores=fitted.scores,
        groups=None if grouped is None else grouped.members,
        choices=choices,
        warnings=(),
        is_marginal=check_sampler(fitted.sampler).is_marginal,
    )


def _make_rule(limits: Mapping[str, float | None]) -> Stopping:
    """Return the stopping rule of the limits, or the default one."""
    given: dict[str, Any] = {name: each for name, each in limits.items() if each is not None}
    if not given:
        return Tolerance(_TOLERANCE, _MIN_UNITS)
    return as_stopping(**given, min_units=_MIN_UNITS)


def _run(
    games: RowGames,
    outputs: Sequence[Label | None],
    *,
    checkpoint: Checkpoint | None,
    is_loss: bool,
    **options: Any,  # noqa: ANN401
) -> tuple[LocalEstimate, ...]:
    """Return the estimates of the outputs; after an interrupt, only complete ones."""
    found: list[LocalEstimate] = []
    for number, output in enumerate(outputs, start=1):
        kept = checkpoint
        if checkpoint is not None and number > 1:
            kept = checkpoint.part(f"output{number}")
        game = games.of_losses() if is_loss else games.of_output(output)
        estimate = run_local(game, checkpoint=kept, **options).balanced()
        is_first = not found
        if is_first and estimate.n_orderings == 0:
            # Interrupted before the first values.
            raise KeyboardInterrupt
        is_complete = not is_first and len(estimate.values) == len(found[0].values)
        if is_first or (is_complete and estimate.n_orderings):
            found.append(estimate)
        if estimate.interrupted:
            break
    return tuple(found)


def _warn_of_audit(explanation: RowExplanation) -> None:
    """Warn of features whose values change by separation."""
    counts = audit_counts(explanation)
    if counts is None or explanation.estimand == "sage":
        return
    changed = {name: count for name, count in counts.items() if count}
    if changed:
        text = (
            f"Skipping by separation changes the values of {list(changed)} in up to "
            f"{max(changed.values())} of {len(explanation)} rows by more than 2 % of the range: "
            "the graph misses dependences, or the model is far from optimal. Look at the audit, or "
            "estimate with "
        )
        warn(Text([text, Setting("estimand", "sage"), "."]), AuditWarning)
