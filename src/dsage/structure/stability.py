"""Measure how stable a learned graph is: learn it again from resamples of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import check_count, check_member, make_bar, record_warnings, refusal, warn
from dsage._random import RandomState, RngLike, Streams, one_seed
from dsage.data.frames import take_rows
from dsage.data.rows import Rows
from dsage.data.table import Table
from dsage.graphs import Consensus, Graph
from dsage.structure.constraints import Constraints
from dsage.structure.learn import search_graph
from dsage.structure.reduction import Reduction
from dsage.structure.scores.base import Score
from dsage.structure.source import as_data, indicators, merged_categories, sufficient

RESAMPLES = ("half", "bootstrap")


@dataclass(frozen=True)
class Stability:
    """Graphs learned from resamples of the data.

    Attributes
    ----------
    graphs : tuple of Graph
        One per resample.
    """

    graphs: tuple[Graph, ...]

    def oracle(
        self, target: str, features: Iterable[str] | None = None, *, share: float = 0.9
    ) -> Consensus:
        """Return an oracle that separates only if at least `share` of the graphs agree.

        Parameters
        ----------
        target, features
            As for :meth:`dsage.Graph.oracle`.
        share : float, default=0.9
            See :class:`dsage.graphs.Consensus`.
        """
        columns = None if features is None else tuple(features)
        return Consensus([graph.oracle(target, columns) for graph in self.graphs], share)

    def to_frame(self) -> pd.DataFrame:
        """Return, for each directed edge, the share of the graphs that contain it.

        Columns ``from``, ``to``, ``share``, and ``share_either`` for the edge in either direction;
        the most frequent edges first. Edges that no graph contains are left out.
        """
        names = list(self.graphs[0].names)
        share = sum(graph.to_adjacency().to_numpy(dtype=np.float64) for graph in self.graphs)
        share = np.asarray(share) / len(self.graphs)
        either = share + share.T
        tails, heads = np.nonzero(share)
        order = np.lexsort((-share[tails, heads], -either[tails, heads]))
        tails, heads = tails[order], heads[order]
        return pd.DataFrame(
            {
                "from": [names[tail] for tail in tails],
                "to": [names[head] for head in heads],
                "share": share[tails, heads],
                "share_either": either[tails, heads],
            }
        )

    def __repr__(self) -> str:
        return f"Stability({len(self.graphs)} graphs over {len(self.graphs[0])} nodes)"


def stability(
    data: Any,  # noqa: ANN401
    n: int = 50,
    *,
    resample: str = "half",
    method: str | Callable[[Any], Any] = "auto",
    score: str | Score | Callable[[Any], Score] = "auto",
    n_jobs: int | None = None,
    random_state: RandomState = None,
    rng: RngLike = None,
    progress: bool = False,
    **options: Any,  # noqa: ANN401
) -> Stability:
    """Learn the graph from `n` resamples of the rows.

    Parameters
    ----------
    data : data frame or array
        The observations. Missing values are treated as in :func:`dsage.learn_graph`, once for all.
    n : int, default=50
        The number of resamples.
    resample : {"half", "bootstrap"}, default="half"
        Random halves of the rows, in complementary pairs (Shah & Samworth, 2013), or bootstrap
        samples. Repeated rows look like additional evidence, so graphs of bootstrap samples have
        false edges and agree on fewer separations.
    method, score, **options
        As for :func:`dsage.learn_graph`; a score of your own must be a callable.
    n_jobs : int, optional
        The number of processes, as in joblib; the result does not depend on it.
    random_state : int, numpy Generator or None, default=None
        Seed.
    rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
        Another name of `random_state`; pass one of the two.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Stability

    Examples
    --------
    >>> from dsage.datasets import paper_graph
    >>> data = paper_graph("dag_s(2)").sample(1000, random_state=0)
    >>> found = stability(data, 10, random_state=0)
    >>> found, found.oracle("X8")
    (Stability(10 graphs over 10 nodes), Consensus(10 oracles, share=0.9))
    """
    n = check_count(n, "n")
    check_member(resample, RESAMPLES, "resample", "the ways to resample")
    for name in ("required", "forbidden", "tiers"):
        if options.get(name) is not None:
            # The first graph would exhaust an iterator.
            options[name] = tuple(options[name])
    if isinstance(score, Score):
        advice = "A Score is fixed to its rows: pass a callable that makes one of each resample"
        raise refusal("score", "a name or a callable", score, advice, TypeError)
    # Users' functions receive the data as passed; missing values are filled in for all resamples.
    is_own = callable(method) or (callable(score) and not _is_incomplete(data, options))
    source = data if is_own else _check_table(data, options)
    n_rows = len(data) if is_own else source.n_rows
    streams = Streams(one_seed(random_state, rng))
    options |= {"method": method, "score": score}
    tasks = (
        joblib.delayed(_learn_part)(source, resample, n_rows, number, streams, options)
        for number in range(n)
    )
    graphs: list[Graph] = []
    interrupted = False
    bar = make_bar(total=n, desc="learning from resamples", disable=not progress)
    try:
        for graph in joblib.Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
            if graph is None:
                interrupted = True
                break
            graphs.append(graph)
            bar.update()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        bar.close()
    if interrupted:
        if not graphs:
            raise KeyboardInterrupt
        warn(f"Interrupted after {len(graphs)} of {n} resamples; these are the graphs so far.")
    return Stability(tuple(graphs))


def _check_table(data: Any, options: dict[str, Any]) -> Table:  # noqa: ANN401
    """Return the data as typed columns; warn about odd columns once, not for each resample."""
    as_columns = {name: options.pop(name) for name in ("discrete", "transform") if name in options}
    table = as_data(data, **as_columns)
    if not isinstance(table, Table):
        on_disk = isinstance(table, Rows)
        advice = "Read the file first" if on_disk else "Statistics cannot be resampled"
        value = "a file" if on_disk else table
        raise refusal("data", "a data frame or an array", value, advice, TypeError)
    if table.n_rows < 4:
        raise refusal("data", "at least 4 rows", table.n_rows, "Pass more rows")
    whole = Reduction(
        sufficient(table),
        Constraints(table.names),
        indicators=indicators(table),
        merged=table.merged,
    )
    for text in (*whole.warnings, *merged_categories(table)):
        warn(text)
    return table


def _is_incomplete(data: Any, options: dict[str, Any]) -> bool:  # noqa: ANN401
    as_columns = {name: options[name] for name in ("discrete", "transform") if name in options}
    return bool(indicators(as_data(data, **as_columns)))


def _draw_rows(resample: str, n_rows: int, number: int, streams: Streams) -> npt.NDArray[np.intp]:
    if resample == "bootstrap":
        return streams("bootstrap", number).integers(n_rows, size=n_rows)
    split = streams("half", number // 2).permutation(n_rows)
    half = n_rows // 2
    return split[half * (number % 2) :][:half]


def _learn_part(
    source: Any,  # noqa: ANN401
    resample: str,
    n_rows: int,
    number: int,
    streams: Streams,
    options: dict[str, Any],
) -> Graph | None:
    """Return the graph of one resample; None if the search was interrupted."""
    rows = _draw_rows(resample, n_rows, number, streams)
    # Typed columns keep the categories of all rows; a callable receives the data as passed.
    part = source.take(rows) if isinstance(source, Table) else take_rows(source, rows)
    with record_warnings(show=False):
        result = search_graph(part, random_state=streams("search", number), **options)
    return None if result.interrupted else result.graph
