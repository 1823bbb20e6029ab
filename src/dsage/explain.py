"""From a fitted model and data to SAGE values, in one call."""

from __future__ import annotations

import logging
import secrets
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dsage._check import check_member
from dsage._random import RandomState, Streams
from dsage.data.groups import Groups
from dsage.data.inputs import Inputs, check_inputs
from dsage.estimate import Checkpoint, Plan, Stopping, as_checkpoint, as_stopping, run
from dsage.games import Game, Grouped, LossGame
from dsage.games.base import Floats, Mask, Rows, check_weights
from dsage.graphs import GroupedOracle, Oracle
from dsage.models.losses import Loss
from dsage.models.resolve import find_model
from dsage.orderings import Order, Orderings
from dsage.result.describe import describe
from dsage.result.events import Event, Phase, PhaseFinished, PhaseStarted
from dsage.result.explanation import Explanation
from dsage.samplers.resolve import as_sampler, find_sampler
from dsage.structure.resolve import find_graph

logger = logging.getLogger("dsage")

# Those that explain has no parameter of its own for.
_OWN = ("loss", "oracle", "estimand", "orderings", "n_jobs", "random_state")
_GAME_OPTIONS = tuple(name for name in signature(LossGame).parameters if name not in _OWN)[4:]
_PLAN_OPTIONS = tuple(name for name in signature(Plan).parameters if name not in _OWN)[1:]
# A seed that can be read and typed.
_SEED_BITS = 32


def explain(
    model: Any,  # noqa: ANN401
    X_train: Any,  # noqa: ANN401
    y_train: Any,  # noqa: ANN401
    X_test: Any,  # noqa: ANN401
    y_test: Any,  # noqa: ANN401
    *,
    graph: Any = "learn",  # noqa: ANN401
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
    n_resamples: int | None = None,
    n_jobs: int | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
    random_state: RandomState = None,
    progress: bool | Callable[[Event], None] = True,
    **options: Any,  # noqa: ANN401
) -> Explanation:
    """Tell how much each feature contributes to a model's predictive performance.

    Learn a causal graph of features and target, choose a conditional sampler and a loss, and
    estimate d-SAGE values with their errors, and the audit of what the graph changed. Each of these
    can be given instead. What was chosen is in `choices` of the result.

    Parameters
    ----------
    model : estimator, pipeline, booster, torch.nn.Module or callable
        The fitted model; see :func:`dsage.models.as_model`.
    X_train, y_train : data frame or array of shape (n_rows, n_features), array of shape (n_rows,)
        Rows that graph and sampler are learned from: usually those that the model was fitted to.
    X_test, y_test : data frame or array, array
        Rows that the model is evaluated on: it must not have been fitted to them.
    graph : str, callable, Graph, other graph, Stability, Oracle or None, default="learn"
        ``"learn"``, or a method of :func:`dsage.learn_graph` by name; a graph of any kind that
        :func:`dsage.graphs.as_graph` reads, the target among its nodes; a callable that receives
        the training rows, with the target as a column, and returns such a graph; or None for
        plain SAGE.
    sampler : str or Sampler, default="auto"
        ``"auto"`` takes the simplest one with a good held-out score. Or ``"gaussian"``,
        ``"copula"``, ``"mixture"``, ``"categorical"``, ``"forest"``, ``"neighbors"``,
        ``"sequential"``, ``"marginal"``; or an object of :mod:`dsage.samplers`.
    loss : str, callable or Loss, default="auto"
        See :func:`dsage.models.as_loss`; ``"auto"`` is cross entropy for classes, squared error
        for numbers.
    estimand : {"d-sage", "sage"}, default="d-sage"
        ``"sage"`` corrects for the difference: unbiased for any model and any graph, and dearer.
    tolerance, absolute, top_k, seconds, n_orderings : float or int, optional
        When to stop: at the first of these that is met, see :func:`dsage.estimate.as_stopping`.
        With none of them, when the largest standard error is 1 % of the range of the values.
        `seconds` is the time for the estimation alone; given alone it is used up.
    groups : mapping of str to iterables of str, optional
        Features that are known or unknown together; those in no group stand for themselves.
    orderings : str, Order, sequence or Orderings, default="antithetic"
        A kind of orderings, the orderings themselves, or a partial order that they keep
        (asymmetric SAGE), see :mod:`dsage.orderings`.
    target : str, optional
        Name of the target, by default that of `y_train`.
    classes : sequence, optional
        The classes, in the order of the columns of its probabilities, of a model that does not know
        them; by default the sorted labels of all rows.
    discrete : str or iterable of str, default=()
        Columns of numbers that are classes.
    n_resamples : int, optional
        From how many resamples of the rows the graph is learned again, to tell how sure its edges
        are; by default 20, or 0 beyond 100 columns, 12 where numbers and classes are mixed.
    n_jobs : int, optional
        Jobs that work at the same time; results do not depend on it.
    checkpoint : str, Path or Checkpoint, optional
        A file that keeps the state of the estimation: the same call goes on where it ended.
    random_state : int, numpy Generator or None, default=None
        Seed of everything. None takes a fresh one, which is in `choices`.
    progress : bool or callable, default=True
        Show progress bars. A callable receives the events of :mod:`dsage.result.events` instead.
    **options
        Of :class:`dsage.games.LossGame` (such as `n_draws`, `sample_weight`, `max_bytes`) and of
        :class:`dsage.estimate.Plan` (such as `semantics`, `exact`, `levels`, `audit`).

    Returns
    -------
    Explanation
        An interrupt (Ctrl-C) of the estimation returns what is known by then; one before that ends
        the call, as half a graph would separate what the whole one does not.

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
    game_options, plan_options = _divided(options)
    clock = Clock(progress if callable(progress) else None)
    progress = progress is True
    with _kept() as warned:
        inputs = check_inputs(X_train, y_train, X_test, y_test, target=target, discrete=discrete)
        chosen_loss, checked = find_model(model, loss, classes, inputs)
        stopping = _rule(
            tolerance=tolerance,
            absolute=absolute,
            top_k=top_k,
            seconds=seconds,
            n_orderings=n_orderings,
        )
        members = None if groups is None else Groups(groups, inputs.names).members
        kept = as_checkpoint(checkpoint)
        seed = _seed(random_state, kept)
        meant = as_sampler(sampler, inputs, seed=seed)
        plan_options |= {"estimand": estimand, "orderings": orderings, "n_jobs": n_jobs}
        _rehearse(inputs, members, plan_options, game_options.get("sample_weight"))
        with clock(Phase.GRAPH):
            found = find_graph(
                graph,
                inputs,
                is_of_classes=chosen_loss.output == "probability",
                n_resamples=n_resamples,
                n_jobs=n_jobs,
                seed=seed,
                progress=progress,
            )
        with clock(Phase.SAMPLER):
            drawn = find_sampler(
                meant, inputs, is_named=isinstance(sampler, str), seed=seed, progress=progress
            )
        with clock(Phase.ESTIMATE):
            game: Game = LossGame(
                checked,
                drawn.sampler,
                inputs.X_test,
                inputs.y_test,
                loss=chosen_loss,
                random_state=seed,
                **game_options,
            )
            estimate = run(
                game if members is None else Grouped(game, members),
                oracle=_oracle_of(found.oracle, members),
                stopping=stopping,
                checkpoint=kept,
                random_state=seed,
                progress=progress,
                **plan_options,
            )
            if estimate.n_units == 0:
                # Interrupted before anything was known.
                raise KeyboardInterrupt
    choices = describe(
        model=checked,
        given=model,
        inputs=inputs,
        groups=members,
        graph=found.described,
        sampler=drawn.described,
        loss={
            "name": chosen_loss.name,
            "source": "chosen for the model and the target" if loss == "auto" else "given",
        },
        estimate=estimate,
        stopping=stopping,
        orderings=orderings,
        options=options,
        seconds=clock.seconds,
        run={
            "random_state": str(seed),
            "n_jobs": n_jobs,
            "checkpoint": None if kept is None else str(kept.path),
        },
    )
    return Explanation(
        estimate=estimate,
        target=inputs.target,
        graph=found.graph,
        edge_strength=found.strength,
        sampler_scores=drawn.scores,
        groups=members,
        choices=choices,
        warnings=tuple(warned),
    )


class Clock:
    """Measures how long each phase takes, and reports its start and end.

    Parameters
    ----------
    listen : callable, optional
        Receives the events; they are always logged.

    Attributes
    ----------
    seconds : dict of str to float
        The phases that are over, and ``"total"`` since the beginning.
    """

    def __init__(self, listen: Callable[[Event], None] | None = None) -> None:
        self._start = time.perf_counter()
        self._listen = listen
        self._phases: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: Phase) -> Iterator[None]:
        """Measure a phase."""
        start = time.perf_counter()
        self._report(PhaseStarted(phase))
        yield
        self._phases[phase] = time.perf_counter() - start
        self._report(PhaseFinished(phase, self._phases[phase]))

    def _report(self, event: Event) -> None:
        logger.info("%s", event)
        if self._listen is not None:
            self._listen(event)

    @property
    def seconds(self) -> dict[str, float]:
        """The phases so far, and the time in all."""
        return {**self._phases, "total": time.perf_counter() - self._start}


def _divided(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of the game and those of the plan."""
    for option in options:
        known = (*_GAME_OPTIONS, *_PLAN_OPTIONS, *tuple(signature(explain).parameters)[5:-1])
        check_member(option, known, "each option", "the options of explain")
    of_game = {name: value for name, value in options.items() if name in _GAME_OPTIONS}
    return of_game, {name: value for name, value in options.items() if name not in of_game}


def _rule(**limits: Any) -> Stopping | None:  # noqa: ANN401
    """Return the rule of the limits that are given; None where none is."""
    given = {name: limit for name, limit in limits.items() if limit is not None}
    return as_stopping(**given) if given else None


def _seed(random_state: RandomState, checkpoint: Checkpoint | None) -> int:
    """Return the seed of everything: the one given, that of the run to go on with, or a new one."""
    if random_state is not None:
        return Streams(random_state).entropy
    entropy = None if checkpoint is None else checkpoint.entropy()
    return secrets.randbits(_SEED_BITS) if entropy is None else entropy


class _Stage:
    """A game of no content, to try options on before anything is learned."""

    n_replicates = 1

    def __init__(self, feature_names: tuple[str, ...], n_rows: int) -> None:
        self.feature_names = feature_names
        self.n_rows = n_rows

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:  # noqa: ARG002
        """Return risks of zero."""
        return np.zeros((len(known), len(rows), 1))


def _rehearse(
    inputs: Inputs,
    groups: Mapping[str, tuple[str, ...]] | None,
    options: Mapping[str, Any],
    sample_weight: npt.ArrayLike | None,
) -> None:
    """Refuse options that the estimation would refuse, before anything is learned."""
    check_weights(sample_weight, len(inputs.y_test))
    stage: Game = _Stage(inputs.names, len(inputs.y_test))
    tried = dict(options)
    # Whether all orderings are possible is up to the graph.
    if tried.get("exact") == "always":
        tried["exact"] = "never"
    Plan(stage if groups is None else Grouped(stage, groups), random_state=0, **tried)


def _oracle_of(
    oracle: Oracle | None, groups: Mapping[str, tuple[str, ...]] | None
) -> Oracle | None:
    if oracle is None or groups is None:
        return oracle
    return GroupedOracle(oracle, groups)


@contextmanager
def _kept() -> Iterator[list[str]]:
    """Keep what is warned of, each text once, and pass it on to the filters of the user.

    Kept is also what these filters ignore: it belongs to the result.
    """
    texts: list[str] = []
    seen: set[tuple[Any, ...]] = set()
    filters, shown = list(warnings.filters), warnings.showwarning

    def keep(
        text: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object
    ) -> None:
        if issubclass(category, UserWarning) and str(text) not in texts:
            texts.append(str(text))
        key = (str(text), category, filename, lineno)
        if key not in seen:
            seen.add(key)
            with warnings.catch_warnings():
                warnings.filters[:] = filters  # type: ignore[index]
                warnings.showwarning = shown
                warnings.warn_explicit(text, category, filename, lineno)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = keep  # type: ignore[assignment]
        yield texts
