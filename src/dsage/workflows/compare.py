"""Compare models on the same rows, with common orderings and noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dsage._check import check_member, check_names, make_bar, name_place, refusal
from dsage._random import RandomState, RngLike, one_seed
from dsage.data.inputs import check_inputs
from dsage.estimate import Estimate, compare_games, run
from dsage.games import Game
from dsage.games.base import Floats
from dsage.models.losses import Loss
from dsage.result.comparison import ModelComparison
from dsage.workflows.ground import find_models, prepare


def compare(
    models: Mapping[str, Any],
    X_train: Any,  # noqa: ANN401
    y_train: Any,  # noqa: ANN401
    X_test: Any = None,  # noqa: ANN401
    y_test: Any = None,  # noqa: ANN401
    *,
    reference: str | None = None,
    graph: Any = None,  # noqa: ANN401
    sampler: Any = "auto",  # noqa: ANN401
    loss: str | Callable[..., Any] | Loss = "auto",
    groups: Mapping[str, Iterable[str]] | None = None,
    target: str | None = None,
    classes: Sequence[Any] | None = None,
    discrete: str | Iterable[str] = (),
    kinds: Mapping[str, str] | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    rng: RngLike = None,
    progress: bool = True,
    **options: Any,  # noqa: ANN401
) -> ModelComparison:
    """Compare how much each feature contributes to the performance of two or more models.

    All models are evaluated on the same rows, at the same coalitions, with the same sampler and
    noise. Common errors cancel, so the differences are far more precise than with separate runs;
    see :func:`dsage.estimate.compare_games`.

    Parameters
    ----------
    models : mapping of str to fitted models
        Two or more, by name, such as ``{"forest": a, "boosting": b}``.
    X_train, y_train, X_test, y_test
        As for :func:`dsage.explain`: rows from which the sampler is learned, and rows on which all
        models are evaluated. None of the models may have been fitted to the latter.
    reference : str, optional
        The model that the others are compared with; by default the first.
    graph : object, optional
        As for :func:`dsage.explain`; by default there is none, and nothing is skipped. Skipping
        by a graph assumes an optimal model, and models differ in how far they are from it.
    sampler : str or Sampler, default="auto"
        As for :func:`dsage.explain`. If it is chosen by scores, they are computed with the
        predictions of the reference.
    loss : str, callable or Loss, default="auto"
        The loss, the same for all models.
    groups, target, classes, discrete, kinds
        As for :func:`dsage.explain`.
    n_jobs : int, optional
        Number of parallel jobs; results do not depend on it.
    random_state : int, numpy Generator or None, default=None
        Seed of everything.
    rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
        Another name for `random_state`, as in SciPy; pass one of the two.
    progress : bool, default=True
        Show a progress bar of the runs: one for each model, and one for each difference.
    **options
        Limits of each run, as for :func:`dsage.explain` (`tolerance`, `absolute`, `top_k`,
        `seconds`, `n_orderings`), and the fields of :class:`dsage.games.GameOptions` and
        :class:`dsage.estimate.PlanOptions`. By default a difference is estimated until its largest
        error is 0.5 % of the larger total value.

    Returns
    -------
    ModelComparison

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression, Ridge
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> X = X[["age", "bmi", "bp", "s5"]]
    >>> rows = X[:300], y[:300], X[300:], y[300:]
    >>> models = {"ordinary": LinearRegression().fit(*rows[:2]), "ridge": Ridge().fit(*rows[:2])}
    >>> found = compare(models, *rows, sampler="gaussian", random_state=0, progress=False)
    >>> found.to_frame()[["feature", "difference"]].round(0).values.tolist()[:2]
    [['bmi', -262.0], ['bp', -129.0]]
    """
    named = _check_models(models)
    first = next(iter(named)) if reference is None else reference
    check_member(first, tuple(named), "reference", "the names of models")
    inputs = check_inputs(
        X_train,
        y_train,
        X_test,
        y_test,
        target=target,
        discrete=discrete,
        kinds=kinds,
        groups=groups,
    )
    resolved = find_models(named, loss, classes, inputs)
    ground = prepare(
        resolved[first],
        inputs,
        graph=graph,
        sampler=sampler,
        groups=groups,
        n_jobs=n_jobs,
        random_state=one_seed(random_state, rng),
        progress=progress,
        options=options,
    )
    games = ground.make_games({label: (each, inputs) for label, each in resolved.items()}, "model")
    estimates, differences = _run_all(games, first, ground.settings, progress=progress)
    return ModelComparison(
        reference=first,
        estimates=estimates,
        differences=differences,
        risks={label: float(full_losses(game).mean()) for label, game in games.items()},
        target=inputs.target,
        loss=resolved[first].loss.name,
        sampler=ground.sampler_name,
        n_rows=len(inputs.y_test),
    )


def _run_all(
    games: Mapping[str, Game], first: str, settings: Mapping[str, Any], *, progress: bool
) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """Return the values of each model, and their differences to the first one."""
    estimates, differences = {}, {}
    total = 2 * len(games) - 1
    with make_bar(total=total, desc="comparing", unit="run", disable=not progress) as bar:
        for label, game in games.items():
            with name_place(f"model {label!r}"):
                estimates[label] = run(game, **settings)
            bar.update()
        for label, game in games.items():
            if label == first:
                continue
            with name_place(f"models {label!r} and {first!r}"):
                differences[label] = compare_games(game, games[first], **settings).difference
            bar.update()
    return estimates, differences


def full_losses(game: Game) -> Floats:
    """Return the loss of each row, times its weight, with all features known."""
    everything = np.ones((1, len(game.feature_names)), dtype=np.bool_)
    losses: Floats = game.risks(everything, np.arange(game.n_rows)).mean(axis=2)[0]
    return losses if game.weights is None else losses * game.weights


def _check_models(models: object) -> dict[str, Any]:
    """Return two or more models by name."""
    if not isinstance(models, Mapping):
        advice = "Pass a dict, such as {'forest': a, 'boosting': b}"
        raise refusal("models", "models by name", type(models).__name__, advice, TypeError)
    check_names(models, "the names of models")
    if len(models) < 2:
        advice = "Explain a single model with dsage.explain"
        raise refusal("models", "two or more", list(models), advice)
    return dict(models)
