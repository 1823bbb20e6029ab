"""Make the score of data from the name of a score, or from a user's own score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from dsage._check import check_member, check_same_names, refusal
from dsage.data.frames import as_matrix, is_frame, open_frame
from dsage.data.rows import Rows
from dsage.data.table import Table
from dsage.graphs.graph import Graph, check_dag
from dsage.structure.counts import Counts
from dsage.structure.moments import Moments
from dsage.structure.scores.base import SCORES, Score
from dsage.structure.source import as_data, kind_of, rows_of, sufficient

# The meaning of "auto".
_AUTO = {"continuous": "ebic", "discrete": "basis", "mixed": "basis"}


def choose_score(
    data: Any,  # noqa: ANN401
    score: str | Score | Callable[[Any], Score] = "auto",
    *,
    discrete: str | Iterable[str] = (),
    transform: str = "none",
    **options: Any,  # noqa: ANN401
) -> Score:
    """Return the score of `data`.

    Parameters
    ----------
    data : data frame, array, Table, Moments or Counts
        The observations, or their sufficient statistics. Columns with missing values are as in
        :func:`dsage.learn_graph`.
    score : str, Score or callable, default="auto"
        A name of :data:`SCORES`; ``"auto"`` is ``"ebic"`` for continuous data and ``"basis"``
        for others, or ``"bic"`` for Counts. Or a :class:`Score` over the columns of the data, which
        is returned unchanged. Or a callable that receives the data and returns such a score.
    discrete : str or iterable of str, default=()
        Numeric columns to treat as classes.
    transform : {"none", "rank"}, default="none"
        ``"rank"`` replaces each continuous column by its normal scores.
    **options
        Options of the score: `penalty`, a factor of the penalty of ``"bic"``, ``"aic"``,
        ``"ebic"`` and ``"basis"`` (1 by default); `gamma` of ``"ebic"`` and ``"basis"``, in
        [0, 1], where 0 is BIC; `iss`, the
        imaginary sample size of the prior of ``"bdeu"`` and ``"bge"`` (1 by default). An option
        that the score does not have is an error.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> type(choose_score(rows)).__name__, type(choose_score(rows, "bge")).__name__
    ('GaussianScore', 'CachedScore')
    """
    # A score knows its own variables.
    complete = not isinstance(score, Score)
    source = as_data(data, discrete=discrete, transform=transform, complete=complete)
    if not isinstance(score, str):
        own = {**options, "transform": transform}
        return own_score(score, rows_of(data, source), source.names, own)
    kind = kind_of(source)
    name = score_name(score, kind, has_rows=isinstance(source, Rows))
    traits = SCORES.traits(name)
    if kind not in traits["fits"]:
        fitting = [other for other in SCORES if kind in SCORES.traits(other)["fits"]]
        raise refusal("score", f"one for {kind} data", score, f"Use one of {', '.join(fitting)}")
    given = {option: value for option, value in options.items() if value is not None}
    for option, value in given.items():
        check_member(option, score_options(), "each option", "the options of a score")
        if option not in traits["options"]:
            advice = f"{name!r} does not have this option"
            raise refusal(option, f"left out with the score {name!r}", value, advice)
    if not traits.get("needs_rows"):
        source = sufficient(source)
    elif not isinstance(source, Rows):
        advice = f"The score {name!r} needs the rows"
        raise refusal("data", "a data frame or an array", source, advice, TypeError)
    return SCORES[name](source, **given)


def score_name(score: str, kind: str, *, has_rows: bool = True) -> str:
    """Return the name of a score; for ``"auto"``, the one for this kind of data."""
    check_member(score, ("auto", *SCORES), "score", "the scores")
    if score != "auto":
        return score
    return _AUTO[kind] if has_rows or kind == "continuous" else "bic"


def score_options() -> tuple[str, ...]:
    """Return the options of all scores."""
    options = (option for name in SCORES for option in SCORES.traits(name)["options"])
    return tuple(dict.fromkeys(options))


def own_score(
    score: object,
    data: Any,  # noqa: ANN401
    names: Sequence[str],
    options: Mapping[str, Any],
) -> Score:
    """Return the user's score over the columns `names` of the data.

    A callable receives these columns as a data frame, or as Moments or Counts if `data` is one.
    """
    for option, value in options.items():
        if value not in (None, "none"):
            advice = "Pass it to your own score"
            raise refusal(option, "left out with a score of your own", value, advice)
    is_maker = callable(score) and not isinstance(score, Score)
    made = score(_select(data, names)) if is_maker else score  # type: ignore[operator]
    if not isinstance(made, Score):
        condition = "a name, a Score, or a callable that returns a Score"
        advice = "Derive its class from dsage.structure.Score"
        raise refusal("score", condition, made, advice, TypeError)
    if tuple(made.names) != tuple(names):
        advice = "Its `names` must be the columns, in the same order"
        raise refusal("score", f"over the columns {list(names)}", list(made.names), advice)
    return made


def _select(data: Any, names: Sequence[str]) -> Any:  # noqa: ANN401
    if isinstance(data, (Table, Moments, Counts)):
        return data.select(names)
    if is_frame(data):
        return open_frame(data).select(*names).to_native()
    return pd.DataFrame(as_matrix(data), columns=list(Table(data).names))[list(names)]


def graph_score(score: Score, graph: Graph) -> float:
    """Return the score of a DAG: the sum over its families."""
    check_same_names(graph.names, score.names, "graph", "over the variables of the data")
    check_dag(graph)
    position = {name: node for node, name in enumerate(score.names)}
    families = (
        (node, tuple(sorted(position[parent] for parent in graph.parents(name))))
        for name, node in position.items()
    )
    return float(sum(score.family(node, parents) for node, parents in families))
