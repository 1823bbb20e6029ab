"""Learn a graph from data: from names of methods and scores to the searches, and around them."""

from __future__ import annotations

import functools
import inspect
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from typing import Any, ParamSpec

from tqdm.auto import tqdm

from dsage._check import check_member, refusal, warn
from dsage._random import RandomState, Streams
from dsage.graphs import Graph, as_graph
from dsage.structure.bes import bes
from dsage.structure.boss import boss
from dsage.structure.constraints import Constraints
from dsage.structure.record import Callback
from dsage.structure.reduction import Reduction
from dsage.structure.result import SearchResult, Step
from dsage.structure.scores.base import Score
from dsage.structure.scores.choose import choose_score, graph_score, score_name
from dsage.structure.search import hill_climb, tabu
from dsage.structure.source import Data, as_data, kind_of, sufficient

Edges = Iterable[tuple[str, str]]
Options = Mapping[str, Any]
P = ParamSpec("P")

METHODS = ("auto", "tabu", "hc", "boss")
"""The names of the searches."""

# With fewer rows for each parent a regression explains its noise: a node would collect parents
# until nothing is left to explain.
_ROWS_A_PARENT = 10

_SCORE_OPTIONS = ("penalty", "gamma", "iss")
_SEARCH_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "auto": ("tabu", "max_tabu", "max_passes"),
    "tabu": ("tabu", "max_tabu", "max_iter"),
    "hc": ("restarts", "perturb", "max_iter"),
    "boss": ("max_passes",),
}


def search_graph(
    data: Any,  # noqa: ANN401
    *,
    method: str | Callable[[Any], Any] = "auto",
    score: str = "auto",
    required: Edges = (),
    forbidden: Edges = (),
    tiers: Iterable[Iterable[str]] | None = None,
    max_parents: int | None = None,
    strict: bool = False,
    discrete: str | Iterable[str] = (),
    transform: str = "none",
    random_state: RandomState = None,
    progress: bool = False,
    **options: Any,  # noqa: ANN401
) -> SearchResult:
    """Learn the graph as :func:`learn_graph` does, and tell how.

    Parameters
    ----------
    data, method, score, required, forbidden, tiers, max_parents, strict, discrete, transform, \
    random_state, progress, **options
        As for :func:`learn_graph`.

    Returns
    -------
    SearchResult
        ``graph``, ``score``, ``trace``, ``seconds``, ``interrupted``; ``to_frame()`` for the moves.
        The score is that of the columns that were searched with: constants and copies are not
        among them. It is nan where a callable made the graph.

    Examples
    --------
    >>> from dsage.datasets import paper_graph
    >>> result = search_graph(paper_graph("dag_s(2)").sample(1000, random_state=0), method="hc")
    >>> result.to_frame().columns.tolist()
    ['kind', 'from', 'to', 'delta', 'score', 'seconds']
    """
    if callable(method):
        given = {
            "score": score != "auto",
            "required": not _is_empty(required),
            "forbidden": not _is_empty(forbidden),
            "tiers": tiers is not None,
            "max_parents": max_parents is not None,
            "strict": strict,
            "discrete": not _is_empty(discrete),
            "transform": transform != "none",
            **dict.fromkeys(options, True),
        }
        return _by_callable(method, data, sorted(name for name, is_so in given.items() if is_so))
    check_member(method, METHODS, "method", "the methods")
    Streams(random_state)  # a bad seed is refused by every method, also where it has no effect
    for option in options:
        # The named ones cannot be among these, but may have been meant.
        named = tuple(inspect.signature(search_graph).parameters)[1:-1]
        known = (*_SCORE_OPTIONS, *_SEARCH_OPTIONS[method], *named)
        check_member(option, known, "each option", f"the options of the method {method!r}")
    source = sufficient(as_data(data, discrete=discrete, transform=transform))
    if source.n_rows < 2:
        raise refusal("data", "at least 2 rows", source.n_rows, "Give more")
    if strict and score != "auto":
        raise refusal("strict", "left out with a score", score, "It chooses the score by itself")
    if strict and kind_of(source) == "continuous":
        score = "bic"
    reduction = Reduction(
        source, _constraints(source, tuple(required), forbidden, tiers, max_parents)
    )
    for text in reduction.warnings:
        warn(text)
    if reduction.data is None:
        graph = reduction.restored(Graph((), ()))
        return SearchResult(graph, 0.0, (), 0, 0.0, interrupted=False, method=method)
    score_options = {name: options.pop(name) for name in _SCORE_OPTIONS if name in options}
    if method == "hc":
        options["random_state"] = random_state
    chosen = choose_score(reduction.data, score, **score_options)
    _check_required(chosen, reduction.constraints)
    with tqdm(desc=f"learning the graph ({method})", unit=" moves", disable=not progress) as bar:

        def show(step: Step) -> None:
            bar.update()
            bar.set_postfix(score=f"{step.score:.6g}", refresh=False)

        result = _SEARCHES[method](chosen, reduction.constraints, show, options)
    if result.interrupted:
        warn(f"The search was interrupted after {result.seconds:.3g} s: the best graph so far.")
    name = score_name(score, kind_of(reduction.data))
    graph = reduction.restored(result.graph)
    return replace(result, graph=graph, method=method, score_name=name)


def _graph_only(search: Callable[P, SearchResult]) -> Callable[P, Graph]:
    """Return the same function, without the record: one signature, one place for the defaults."""

    @functools.wraps(search)
    def learn(*args: P.args, **kwargs: P.kwargs) -> Graph:
        return search(*args, **kwargs).graph

    learn.__name__ = learn.__qualname__ = "learn_graph"
    shown = inspect.signature(search).replace(return_annotation="Graph")
    vars(learn)["__signature__"] = shown
    return learn


learn_graph = _graph_only(search_graph)
learn_graph.__doc__ = """Learn the graph that scores best.

Parameters
----------
data : data frame, array, Moments or Counts
    The observations; for continuous data their :class:`~dsage.structure.Moments` are enough,
    for discrete data their :class:`~dsage.structure.Counts`.
method : {"auto", "tabu", "hc", "boss"} or callable, default="auto"
    ``"auto"`` takes the order of a tabu search, improves it by BOSS, and deletes edges by
    backward equivalence search. ``"tabu"`` and ``"hc"`` are bnlearn's searches; ``"boss"``
    starts from the order of the columns. A callable is given `data` and returns a graph of
    any kind that :func:`dsage.graphs.as_graph` reads; then no other option may be given.
score : str, default="auto"
    ``"bic"``, ``"aic"``, ``"ebic"``, ``"bge"`` (continuous), ``"bdeu"``, ``"k2"`` (discrete).
    ``"auto"`` is the extended BIC for continuous data, BIC for discrete and mixed data.
required, forbidden : iterable of (str, str), default=()
    Edges that the graph must have, and that it may not have.
tiers : iterable of iterables of str, optional
    Groups of variables in the order of time: no variable causes one of an earlier group.
max_parents : int, optional
    How many parents a node may have; by default one for every ten rows.
strict : bool, default=False
    Let the score ``"auto"`` be BIC for continuous data too: more edges, so fewer false
    separations where effects are weak, at the price of missed ones.
discrete : str or iterable of str, default=()
    Columns of numbers that are classes.
transform : {"none", "rank"}, default="none"
    ``"rank"`` takes normal scores of the continuous columns first: for skewed data.
random_state : int, numpy Generator or None, default=None
    Seed of the random moves of ``"hc"`` with restarts; nothing else is random.
progress : bool, default=False
    Show a progress bar.
penalty, gamma, iss : float, optional
    Of the score: a factor of the penalty; gamma of the extended BIC, by default 1/2 up to
    1,000 rows, 1 from 10,000 rows and log-linear between; the imaginary sample size of
    ``"bdeu"`` and ``"bge"``.
tabu, max_tabu, max_iter, restarts, perturb, max_passes : int, optional
    Of the search: see :func:`dsage.structure.tabu`, :func:`dsage.structure.hill_climb` and
    :func:`dsage.structure.boss`.

Returns
-------
Graph
    A DAG over the columns. An interrupt (Ctrl-C) of the search returns the best one so far,
    with a warning.

Notes
-----
Columns without information of their own are named in a warning. A constant is isolated. Of
columns that are copies of each other, up to shift and scale or the names of levels, one is
searched with, and is the only parent of the others: given it they tell nothing, and without it
they are never separated from what it depends on. Discrete columns with more levels than half
the rows are refused.

Examples
--------
>>> from dsage.datasets import paper_graph
>>> from dsage.graphs import compare_graphs
>>> model = paper_graph("dag_s(3)")
>>> graph = learn_graph(model.sample(10_000, random_state=0))
>>> compare_graphs(model.graph, graph, model.target).f1
1.0
"""


def score_graph(
    graph: Graph | Any,  # noqa: ANN401
    data: Any,  # noqa: ANN401
    score: str = "auto",
    *,
    discrete: str | Iterable[str] = (),
    transform: str = "none",
    **options: Any,  # noqa: ANN401
) -> float:
    """Return the score of a DAG, log-likelihood minus penalty: bnlearn's scale.

    Parameters
    ----------
    graph : Graph, or any kind that :func:`dsage.graphs.as_graph` reads
        A DAG over the columns of the data.
    data, score, discrete, transform
        As for :func:`learn_graph`; ``"loglik"`` is a score too.
    **options
        ``penalty``, ``gamma``, ``iss``, as for :func:`learn_graph`.

    Examples
    --------
    >>> from dsage.datasets import paper_graph
    >>> model = paper_graph("dag_s(2)")
    >>> data = model.sample(1000, random_state=0)
    >>> empty = Graph(data.columns, [])
    >>> score_graph(model.graph, data, "bic") > score_graph(empty, data, "bic")
    True
    """
    for option in options:
        check_member(option, _SCORE_OPTIONS, "each option", "the options of a score")
    chosen = choose_score(data, score, discrete=discrete, transform=transform, **options)
    return graph_score(chosen, as_graph(graph))


def _constraints(
    data: Data,
    required: Sequence[tuple[str, str]],
    forbidden: Edges,
    tiers: Iterable[Iterable[str]] | None,
    max_parents: int | None,
) -> Constraints:
    """Return the constraints; without a bound on the parents, that which the rows suggest."""
    if max_parents is None:
        n_required = max(Counter(edge[-1] for edge in required if len(edge)).values(), default=1)
        max_parents = max(data.n_rows // _ROWS_A_PARENT, n_required)
    return Constraints(
        data.names, required=required, forbidden=forbidden, tiers=tiers, max_parents=max_parents
    )


def _check_required(score: Score, constraints: Constraints) -> None:
    """Refuse required edges that the score forbids, such as from a number to a class."""
    for node, parents in enumerate(constraints.admit()):
        if parents and score.family(node, parents) == -math.inf:
            edges = [(score.names[parent], score.names[node]) for parent in parents]
            raise refusal(
                "required",
                "edges that the score allows",
                edges,
                "A number cannot cause a class here, nor can parents outnumber the rows",
            )


def _hc(score: Score, known: Constraints, callback: Callback, options: Options) -> SearchResult:
    return hill_climb(score, known, callback=callback, **options)


def _tabu(score: Score, known: Constraints, callback: Callback, options: Options) -> SearchResult:
    return tabu(score, known, callback=callback, **options)


def _boss(score: Score, known: Constraints, callback: Callback, options: Options) -> SearchResult:
    """Search the orders, then the classes."""
    first = boss(score, known, callback=callback, **options)
    return _then(first, lambda: bes(score, first.graph, known, callback=callback))


def _auto(score: Score, known: Constraints, callback: Callback, options: Options) -> SearchResult:
    """Take the order of a local search, improve it, then delete what is superfluous."""
    passes = {name: value for name, value in options.items() if name == "max_passes"}
    others = {name: value for name, value in options.items() if name not in passes}
    local = tabu(score, known, callback=callback, **others)
    order = local.graph.topological_order()
    ordered = _then(local, lambda: boss(score, known, order, callback=callback, **passes))
    return _then(ordered, lambda: bes(score, ordered.graph, known, callback=callback))


_SEARCHES: Mapping[str, Callable[[Score, Constraints, Callback, Options], SearchResult]] = {
    "auto": _auto,
    "tabu": _tabu,
    "hc": _hc,
    "boss": _boss,
}


def _then(first: SearchResult, search: Callable[[], SearchResult]) -> SearchResult:
    """Run one more search after another, unless that was interrupted; join their records."""
    if first.interrupted:
        return first
    second = search()
    shifted = (step._replace(seconds=first.seconds + step.seconds) for step in second.trace)
    return replace(
        second if second.score >= first.score else first,
        trace=(*first.trace, *shifted),
        n_scored=first.n_scored + second.n_scored,
        seconds=first.seconds + second.seconds,
        interrupted=second.interrupted,
    )


def _by_callable(method: Callable[[Any], Any], data: Any, given: list[str]) -> SearchResult:  # noqa: ANN401
    """Let somebody else's algorithm learn the graph."""
    if given:
        raise refusal(
            "options",
            "left out with a callable",
            given,
            "Give them to your own algorithm, for example with functools.partial",
        )
    began = time.perf_counter()
    graph = as_graph(method(data))
    seconds = time.perf_counter() - began
    names = as_data(data).names
    if odd := sorted(set(graph.names) ^ set(names)):
        raise refusal(
            "method",
            "a callable whose graph is over the columns of the data",
            odd,
            "These names are in one of them only; a learner may need the columns' names",
        )
    ordered = Graph(names, graph.edges, graph.bidirected)
    label = getattr(method, "__name__", type(method).__name__)
    return SearchResult(ordered, math.nan, (), 0, seconds, interrupted=False, method=label)


def _is_empty(value: object) -> bool:
    return isinstance(value, Sized) and len(value) == 0
