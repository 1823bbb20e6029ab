"""Learn a graph from data: resolve names, prepare the data, run the search."""

from __future__ import annotations

import functools
import inspect
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ParamSpec

from dsage._check import (
    Setting,
    Text,
    check_member,
    check_names,
    make_bar,
    refusal,
    warn,
)
from dsage._random import RandomState, RngLike, Streams, one_seed
from dsage.data.pools import single_blas
from dsage.data.rows import Rows
from dsage.graphs import Graph, as_graph
from dsage.graphs.graph import check_graph
from dsage.structure.automatic import ChosenScore, find_score
from dsage.structure.blocks import Blocks
from dsage.structure.by_callable import learn_by_callable
from dsage.structure.constraints import Constraints
from dsage.structure.counts import Counts
from dsage.structure.last_check import add_edges, reject_claims
from dsage.structure.reduction import Reduction
from dsage.structure.result import SearchResult, Step
from dsage.structure.scores.base import Score
from dsage.structure.scores.choose import choose_score, graph_score, own_score, score_options
from dsage.structure.searches.base import METHODS
from dsage.structure.source import (
    Data,
    as_data,
    indicators,
    merged_categories,
    rows_of,
    sufficient,
)

Edges = Iterable[tuple[str, str]]
Options = dict[str, Any]
P = ParamSpec("P")

# With fewer rows per parent a regression fits noise: nodes would collect parents until nothing is
# left to explain.
_ROWS_PER_PARENT = 10


def search_graph(
    data: Any,  # noqa: ANN401
    *,
    method: str | Callable[[Any], Any] = "auto",
    score: str | Score | Callable[[Any], Score] = "auto",
    required: Edges = (),
    forbidden: Edges = (),
    tiers: Iterable[Iterable[str]] | None = None,
    max_parents: int | None = None,
    strict: bool = False,
    discrete: str | Iterable[str] = (),
    transform: str = "none",
    target: str | None = None,
    random_state: RandomState = None,
    rng: RngLike = None,
    progress: bool = False,
    **options: Any,  # noqa: ANN401
) -> SearchResult:
    """Learn the graph as :func:`learn_graph` does, and return the details of the search.

    Parameters
    ----------
    data, method, score, required, forbidden, tiers, max_parents, strict, discrete, transform, \
    target, random_state, rng, progress, **options
        As for :func:`learn_graph`.

    Returns
    -------
    SearchResult
        ``graph``, ``score``, ``trace``, ``seconds``, ``interrupted``; ``to_frame()`` returns the
        moves. The score covers the columns that were searched, without constants and copies. It
        is nan if a callable learned the graph.

    Examples
    --------
    >>> from dsage.datasets import paper_graph
    >>> result = search_graph(paper_graph("dag_s(2)").sample(1000, random_state=0), method="hc")
    >>> result.to_frame().columns.tolist()
    ['kind', 'from', 'to', 'delta', 'score', 'seconds']
    """
    random_state = one_seed(random_state, rng)
    if callable(method):
        is_given = {
            "score": score != "auto",
            "required": not _is_empty(required),
            "forbidden": not _is_empty(forbidden),
            "tiers": tiers is not None,
            "max_parents": max_parents is not None,
            "strict": strict,
            "discrete": not _is_empty(discrete),
            "transform": transform != "none",
            "target": target is not None,
            **dict.fromkeys(options, True),
        }
        _refuse_options(is_given)
        return learn_by_callable(method, data).as_result("method")
    search, traits = METHODS[method], METHODS.traits(method)
    Streams(random_state)  # refuses a bad seed, even if the method does not use it
    of_score, of_search = _split_options(options, method)
    if traits.get("is_random"):
        of_search["random_state"] = random_state
    # A score knows its own variables.
    is_made = isinstance(score, Score)
    table = as_data(data, discrete=discrete, transform=transform, complete=not is_made)
    source = table if is_made else sufficient(table)
    if target is not None:
        check_member(target, table.names, "target", "the columns of the data")
    if source.n_rows < 2:
        raise refusal("data", "at least 2 rows", source.n_rows, "Pass more rows")
    if strict:
        score, of_score = _make_strict(score, of_score, source)
    indicated = indicators(table)
    constraints = _make_constraints(
        source, tuple(required), forbidden, _with_indicators(tiers, indicated), max_parents
    )
    merged = table.merged if isinstance(table, Rows) else ()
    reduction = Reduction(
        source, constraints, keep_all=is_made, indicators=indicated, merged=merged
    )
    for text in (*reduction.warnings, *merged_categories(table)):
        warn(text)
    if reduction.data is None:
        graph = reduction.restore(Graph((), ()))
        return SearchResult(graph, 0.0, (), 0, 0.0, interrupted=False, method=method)
    began = time.perf_counter()
    if isinstance(score, str):
        chosen = find_score(score, reduction.data, table, reduction.constraints, of_score, target)
    else:
        own = {**of_score, "transform": transform}
        made = own_score(score, rows_of(data, table), reduction.data.names, own)
        chosen = ChosenScore(made, type(made).__name__)
    _check_required(chosen.score, reduction.constraints)
    with _show_moves(method, progress=progress) as show, single_blas():
        result = search(chosen.score, reduction.constraints, callback=show, **of_search)
    if result.interrupted:
        warn(f"Interrupted after {result.seconds:.3g} s; this is the best graph so far.")
    elif target is not None and isinstance(table, Rows):
        result = _check_target(result, chosen, table, target, reduction.constraints)
    return replace(
        result,
        graph=reduction.restore(result.graph),
        seconds=time.perf_counter() - began,
        method=method,
        score_name=chosen.name,
        curved=chosen.curved,
    )


def _refuse_options(is_given: Mapping[str, bool]) -> None:
    """Refuse options that are given together with a callable."""
    if given := sorted(name for name, is_so in is_given.items() if is_so):
        advice = "Pass them to your own algorithm, for example with functools.partial"
        raise refusal("options", "left out with a callable", given, advice)


@contextmanager
def _show_moves(method: str, *, progress: bool) -> Iterator[Callable[[Step], None]]:
    """Show the moves of a search in a progress bar, by the function that is to be called."""
    what = f"learning the graph ({method})"
    with make_bar(desc=what, unit=" moves", disable=not progress) as bar:

        def show(step: Step) -> None:
            bar.update()
            bar.set_postfix(score=f"{step.score:.6g}", refresh=False)

        yield show


def _make_strict(
    score: str | Score | Callable[[Any], Score], options: Options, source: Data
) -> tuple[str, Options]:
    """Return the automatic score and its options, without a price for the number of variables."""
    if score != "auto":
        remedy = Text(["Use either ", Setting("strict", value=True), " or ", Setting("score")])
        raise refusal("strict", "left out with a score", score, remedy)
    if options.get("gamma") is not None:
        advice = "It sets gamma to 0"
        raise refusal("strict", "left out with gamma", options["gamma"], advice)
    # Scores of counts have no gamma.
    if isinstance(source, Counts):
        return "bic", options
    return "auto", {**options, "gamma": 0.0}


def _check_target(
    result: SearchResult,
    chosen: ChosenScore,
    table: Rows,
    target: str,
    constraints: Constraints,
) -> SearchResult:
    """Return the result with the edges of the target that the data demand."""
    graph = result.graph
    if target not in graph:
        return result
    blocks = chosen.blocks or Blocks.from_table(table.select(graph.names), correlate=False)
    with single_blas():
        rejections = reject_claims(graph, blocks, target, constraints)
    return replace(result, graph=add_edges(graph, rejections), rejections=rejections)


def _graph_only(search: Callable[P, SearchResult]) -> Callable[P, Graph]:
    """Return the same function without the details: one signature, one place for the defaults."""

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
data : data frame, array, path, pyarrow Dataset, Stream, Moments or Counts
    The observations. A Parquet file, a folder of them or a data set is read in batches; see
    :class:`~dsage.structure.Stream` and the notes. For continuous data their
    :class:`~dsage.structure.Moments` suffice, for discrete data their
    :class:`~dsage.structure.Counts`.
method : {"auto", "tabu", "hc", "boss"} or callable, default="auto"
    ``"auto"`` takes the order of a tabu search, improves it by BOSS, and deletes edges by
    backward equivalence search. ``"tabu"`` and ``"hc"`` are bnlearn's searches; ``"boss"``
    starts from the order of the columns. Other searches are registered in
    :data:`dsage.structure.METHODS`. A callable receives `data` and returns any graph that
    :func:`dsage.graphs.as_graph` reads, but no partial one; it cannot be combined with other
    options.
score : str, Score or callable, default="auto"
    ``"basis"`` for data of all kinds, non-linear and mixed; ``"bic"``, ``"aic"``, ``"ebic"``,
    ``"bge"`` for continuous data, ``"bdeu"``, ``"k2"`` for discrete data, or another name of
    :data:`dsage.structure.SCORES`. ``"auto"`` is ``"basis"`` if there are classes (BIC for
    Counts). Numbers decide: it is the extended BIC if linear regressions explain every column as
    well as non-linear ones, and ``"basis"`` otherwise. A :class:`~dsage.structure.Score` is used
    unchanged; its `names` must be the columns. A callable receives the columns to search, as a data
    frame, and returns a score of them.
required, forbidden : iterable of (str, str), default=()
    Edges that the graph must have, and edges that it must not have.
tiers : iterable of iterables of str, optional
    Groups of variables in temporal order: no variable causes one of an earlier group.
max_parents : int, optional
    The largest number of parents of a node; by default one per ten rows.
strict : bool, default=False
    Use gamma = 0 with the automatic score, which then is BIC for linear data: more edges, so fewer
    false separations if effects are weak, but also fewer true ones.
discrete : str or iterable of str, default=()
    Numeric columns to treat as classes.
transform : {"none", "rank"}, default="none"
    ``"rank"`` replaces the continuous columns by their normal scores: for skewed data.
target : str, optional
    A column whose independence of other columns matters most. After the search, each column that
    is not next to it is tested for a direct edge, with a non-linear test on the rows, and edges
    are added if the data reject that there is none; see ``rejections`` of
    :func:`search_graph`'s result.
random_state : int, numpy Generator or None, default=None
    Seed of the random moves of ``"hc"`` with restarts; nothing else is random.
rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
    Another name of `random_state`; pass one of the two.
progress : bool, default=False
    Show a progress bar.
penalty, gamma, iss : float, optional
    Options of the score: a factor of the penalty; gamma of ``"ebic"`` and ``"basis"``, 1/2 up
    to 1,000 rows, 1 from 10,000 rows and log-linear between, and 1 with ``"basis"`` for numbers
    alone; the imaginary sample size of ``"bdeu"`` and ``"bge"``.
tabu, max_tabu, max_iter, restarts, perturb, max_passes : int, optional
    Options of the search: see :func:`dsage.structure.tabu`, :func:`dsage.structure.hill_climb`
    and :func:`dsage.structure.boss`.

Returns
-------
Graph
    A DAG over the columns, and over indicators of their missing values if there are any. If the
    search is interrupted (Ctrl-C), the best one so far, with a warning.

Notes
-----
*Missing values.* They are treated as values: whether a value is missing may depend on other columns
and affect them. A missing class is one more category. A missing number is replaced by the mean of
its column, and an additional node of zeros and ones, such as ``"age is missing"``, indicates the
missing values (if at least five are missing and five are not; columns that are missing in the same
rows share one). These nodes are the graph's `indicators`: a known feature includes whether it is
missing, so ``graph.oracle(target, features)`` treats both nodes as one feature. It separates its
causes from its effects only in rows in which it is present, so it separates them in no coalition.
Missing values are not imputed from other columns: they would carry over information from those,
and the column would seem to separate them from their effects even in rows where it is missing.
Dates and times are numbers.

*Rows on disk.* A first pass finds categories and missing values, others the moments of the columns
and of their basis functions; memory does not grow with the rows. Functions are fitted to at most
65,536 evenly spread rows, and likelihoods that moments do not give use at most 20,000. Tables in
memory use the same rows, so that the graph is the same. If classes have more than half a million
distinct rows, only half a million evenly spread rows are counted.

*Columns that add no information* are named in a warning. A constant is isolated. Of
columns that are copies of each other, up to shift and scale or the names of categories, one is
searched and becomes the only parent of the others: given it they add nothing, and without it
they are never separated from what it depends on. Discrete columns with more categories than
half the rows are refused.

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
    score: str | Score | Callable[[Any], Score] = "auto",
    *,
    discrete: str | Iterable[str] = (),
    transform: str = "none",
    **options: Any,  # noqa: ANN401
) -> float:
    """Return the score of a DAG: log-likelihood minus penalty, as in bnlearn.

    Parameters
    ----------
    graph : Graph, or any kind that :func:`dsage.graphs.as_graph` reads
        A DAG over the columns of the data.
    data, score, discrete, transform, **options
        As for :func:`dsage.structure.choose_score`.

    Examples
    --------
    >>> from dsage.datasets import paper_graph
    >>> model = paper_graph("dag_s(2)")
    >>> data = model.sample(1000, random_state=0)
    >>> empty = Graph(data.columns, [])
    >>> score_graph(model.graph, data, "bic") > score_graph(empty, data, "bic")
    True
    """
    chosen = choose_score(data, score, discrete=discrete, transform=transform, **options)
    return graph_score(chosen, check_graph(as_graph(graph)))


def _split_options(options: Options, method: str) -> tuple[Options, Options]:
    """Return the options of the score and the options of the search."""
    of_scores = score_options()
    # The named parameters cannot be among the options, but may have been meant.
    named = tuple(inspect.signature(search_graph).parameters)
    known = (*of_scores, *METHODS.traits(method)["options"], *named)
    for option in options:
        check_member(option, known, "each option", f"the options of the method {method!r}")
    of_score = {name: value for name, value in options.items() if name in of_scores}
    return of_score, {name: value for name, value in options.items() if name not in of_score}


def _make_constraints(
    data: Data,
    required: Sequence[tuple[str, str]],
    forbidden: Edges,
    tiers: Iterable[Iterable[str]] | None,
    max_parents: int | None,
) -> Constraints:
    """Return the constraints, with a bound on the parents that depends on the rows by default."""
    if max_parents is None:
        n_required = max(Counter(edge[-1] for edge in required if len(edge)).values(), default=1)
        max_parents = max(data.n_rows // _ROWS_PER_PARENT, n_required)
    return Constraints(
        data.names, required=required, forbidden=forbidden, tiers=tiers, max_parents=max_parents
    )


def _with_indicators(
    tiers: Iterable[Iterable[str]] | None, indicated: Mapping[str, Sequence[str]]
) -> Iterable[Iterable[str]] | None:
    """Put each indicator that is in no tier into the last tier of the columns that it is about."""
    if tiers is None or not indicated:
        return tiers
    made = [list(check_names(tier, "tiers")) for tier in tiers]
    place = {name: at for at, tier in enumerate(made) for name in tier}
    for indicator, columns in indicated.items():
        places = [place[name] for name in columns if name in place]
        if places and indicator not in place:
            made[max(places)].append(indicator)
    return made


def _check_required(score: Score, constraints: Constraints) -> None:
    """Refuse required edges that the score forbids, such as from a number to a class."""
    for node, parents in enumerate(constraints.admit()):
        if parents and score.family(node, parents) == -math.inf:
            edges = [(score.names[parent], score.names[node]) for parent in parents]
            advice = "A number cannot cause a class here, nor can parents outnumber the rows"
            raise refusal("required", "edges that the score allows", edges, advice)


def _is_empty(value: object) -> bool:
    return isinstance(value, Sized) and len(value) == 0
