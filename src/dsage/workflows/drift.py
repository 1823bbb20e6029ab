"""Compare one model on two sets of rows: how much of a change in risk each feature explains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dsage._check import check_names, make_bar, name_place, refusal
from dsage._random import RandomState, RngLike, one_seed
from dsage.data.inputs import Inputs, check_inputs
from dsage.estimate import Estimate, run
from dsage.games.base import Floats
from dsage.models.losses import Loss
from dsage.models.resolve import ResolvedModel, find_model
from dsage.result.comparison import DataComparison
from dsage.workflows.compare import full_losses
from dsage.workflows.ground import prepare


def compare_data(
    model: Any,  # noqa: ANN401
    X_train: Any,  # noqa: ANN401
    y_train: Any,  # noqa: ANN401
    data: Mapping[str, tuple[Any, Any]],
    *,
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
) -> DataComparison:
    """Compare the values of one model on two sets of rows, such as two years.

    The risk of a model changes from one set to the other. The change is the change of the risk
    without features, minus the changes of the values: a feature explains the part of the change by
    which it contributes less than before, see :class:`dsage.result.DataComparison`.

    Both sets use the same sampler, learned from the training rows: a missing feature is treated in
    the same way on both, and only the rows and their targets differ. The orderings are the same,
    but the rows are not, so the errors of both sets are independent and add up.

    Parameters
    ----------
    model : estimator, pipeline, booster, results, torch.nn.Module or callable
        The fitted model; see :func:`dsage.models.as_model`.
    X_train, y_train
        Rows from which the sampler is learned: usually the training rows of the model.
    data : mapping of str to pairs
        Two sets of evaluation rows with their targets, by name, the earlier one first:
        ``{"2023": (X, y), "2024": (X, y)}``. The model must not have been fitted to either.
    graph, sampler, loss, groups, target, classes, discrete, kinds
        As for :func:`dsage.explain`, except that there is no graph by default.
    n_jobs : int, optional
        Number of parallel jobs; results do not depend on it.
    random_state : int, numpy Generator or None, default=None
        Seed of everything.
    rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
        Another name for `random_state`, as in SciPy; pass one of the two.
    progress : bool, default=True
        Show a progress bar of the two runs.
    **options
        As for :func:`dsage.compare`, without `sample_weight`.

    Returns
    -------
    DataComparison

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(900, 2))
    >>> y = X @ [2.0, 1.0] + generator.normal(size=900)
    >>> model = LinearRegression().fit(X[:300], y[:300])
    >>> y[600:] -= 2.0 * X[600:, 0]  # the first feature says nothing any more
    >>> data = {"before": (X[300:600], y[300:600]), "after": (X[600:], y[600:])}
    >>> found = compare_data(model, X[:300], y[:300], data, sampler="gaussian", random_state=0,
    ...                      progress=False)
    >>> found.to_frame()["feature"][0], bool(found.change > 2.0)
    ('X1', True)
    """
    one, two = _check_data(data)
    if "sample_weight" in options:
        advice = "Repeat rows by their weights instead"
        raise refusal("sample_weight", "left out", "weights", advice)
    columns: dict[str, Any] = {"discrete": discrete, "kinds": kinds, "groups": groups}
    inputs: dict[str, Inputs] = {}
    resolved: dict[str, ResolvedModel] = {}
    for label in (one, two):
        with name_place(f"data {label!r}"):
            X, y = data[label]
            inputs[label] = check_inputs(X_train, y_train, X, y, target=target, **columns)
            # The loss that is chosen for the first set is used for both.
            chosen = loss if not resolved else resolved[one].loss
            resolved[label] = find_model(model, chosen, classes, inputs[label])
    ground = prepare(
        resolved[one],
        inputs[one],
        graph=graph,
        sampler=sampler,
        groups=groups,
        n_jobs=n_jobs,
        random_state=one_seed(random_state, rng),
        progress=progress,
        options=options,
    )
    estimates: dict[str, Estimate] = {}
    losses: dict[str, Floats] = {}
    games = ground.make_games({each: (resolved[each], inputs[each]) for each in inputs}, "data")
    with make_bar(total=2, desc="comparing", unit="run", disable=not progress) as bar:
        for label, game in games.items():
            with name_place(f"data {label!r}"):
                estimates[label] = run(game, **ground.settings)
                losses[label] = full_losses(game)
            bar.update()
    return DataComparison(
        labels=(one, two),
        estimates=estimates,
        losses=losses,
        target=inputs[one].target,
        loss=resolved[one].loss.name,
        sampler=ground.sampler_name,
        model=resolved[one].info.name,
    )


def _check_data(data: Mapping[str, tuple[Any, Any]]) -> tuple[str, str]:
    """Return the names of the two sets; refuse anything but two pairs."""
    advice = "Pass a dict, such as {'2023': (X, y), '2024': (X, y)}"
    if not isinstance(data, Mapping):
        raise refusal("data", "two sets by name", type(data).__name__, advice, TypeError)
    names = check_names(data, "the names of data")
    if len(names) != 2:
        raise refusal("data", "two sets by name", list(names), advice)
    for name in names:
        if not (isinstance(data[name], (tuple, list)) and len(data[name]) == 2):
            found = type(data[name]).__name__
            raise refusal(f"data {name!r}", "a pair of rows and targets", found, advice, TypeError)
        if any(each is None for each in data[name]):
            raise refusal(f"data {name!r}", "a pair of rows and targets", None, advice, TypeError)
    return names[0], names[1]
