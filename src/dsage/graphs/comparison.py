"""Compare the separations of an estimated graph with those of the true one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import check_count, check_same_names, refusal
from dsage._random import RandomState, RngLike, Streams, one_seed
from dsage.graphs.graph import Graph, check_graph
from dsage.graphs.separation import Oracle, as_oracle, is_oracle

# Queries answered at a time; results do not depend on it.
_QUERIES_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class GraphComparison:
    """How well an estimated graph finds the separations of the true one.

    A query asks whether a feature is separated from the target given a set of others; "positive"
    means separated.

    Attributes
    ----------
    tp, tn, fp, fn : int
        Queries by truth and estimate. A false positive makes d-SAGE skip a non-zero surplus; a
        false negative costs an evaluation.
    is_exhaustive : bool
        Whether all possible queries were asked, not random ones.
    """

    tp: int
    tn: int
    fp: int
    fn: int
    is_exhaustive: bool

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.tp + self.tn + self.fp + self.fn

    @property
    def share(self) -> float:
        """Share of true separations among the queries."""
        return _ratio(self.tp + self.fn, self.n_queries)

    @property
    def precision(self) -> float:
        """Share of true separations among those found; NaN if none was found."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """Share of the true separations that were found; NaN if there are none."""
        return _ratio(self.tp, self.tp + self.fn)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; NaN if neither graph separates anything."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def false_discovery_rate(self) -> float:
        """Share of false separations among those found; 0 if none was found."""
        return self.fp / max(self.tp + self.fp, 1)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame of one row with all counts and rates."""
        rates = ("n_queries", "share", "precision", "recall", "f1", "false_discovery_rate")
        return pd.DataFrame([asdict(self) | {rate: getattr(self, rate) for rate in rates}])


def compare_graphs(
    true: Graph | Oracle,
    estimated: Graph | Oracle,
    target: str,
    n_queries: int = 1_000_000,
    random_state: RandomState = None,
    *,
    rng: RngLike = None,
) -> GraphComparison:
    """Count how often two graphs agree that a feature is separated from the target.

    Algorithm 2 of the d-SAGE paper: each query draws a feature uniformly and a conditioning set
    whose size is Binomial(d - 1, 1/2), from the other d - 1 features. This is a uniform draw from
    all pairs of a feature and a set without it. If there are at most `n_queries` such pairs, each
    is asked once.

    Parameters
    ----------
    true, estimated : Graph or Oracle
        Two graphs over the same nodes, or oracles over the same features. The estimated graph may
        have indicators of missing values in addition.
    target : str
        The target of the queries.
    n_queries : int, default=1_000_000
        Number of random queries.
    random_state : int, numpy Generator or None, default=None
        Seed.
    rng : int, numpy Generator, SeedSequence, BitGenerator or None, default=None
        Another name for `random_state`; pass only one of the two.

    Returns
    -------
    GraphComparison

    Examples
    --------
    >>> true = Graph(list("aby"), [("a", "b"), ("b", "y")])
    >>> estimated = Graph(list("aby"), [("a", "b"), ("b", "y"), ("a", "y")])
    >>> result = compare_graphs(true, estimated, "y")
    >>> result
    GraphComparison(tp=0, tn=3, fp=0, fn=1, is_exhaustive=True)
    >>> result.share, result.recall
    (0.25, 0.0)
    """
    n_queries = check_count(n_queries, "n_queries")
    streams = Streams(one_seed(random_state, rng))
    truth = _oracle(true, "true", target)
    guess = _oracle(estimated, "estimated", target, truth.feature_names)
    if tuple(guess.feature_names) != tuple(truth.feature_names):
        condition = f"over the features {truth.feature_names!r}"
        advice = "Make both oracles with the same features in the same order"
        raise refusal("estimated", condition, guess.feature_names, advice)
    d = len(truth.feature_names)
    if d == 0:
        raise refusal("true", "a graph with a node besides the target", target, "Add nodes")
    is_exhaustive = d * 2 ** (d - 1) <= n_queries
    queries = _all_queries(d) if is_exhaustive else _random_queries(d, n_queries, streams)
    counts = np.zeros(4, dtype=np.int64)
    for known, asked in queries:
        pair = 2 * truth.separated(known)[asked] + guess.separated(known)[asked]
        counts += np.bincount(pair, minlength=4)
    tn, fp, fn, tp = counts.tolist()
    return GraphComparison(tp=tp, tn=tn, fp=fp, fn=fn, is_exhaustive=is_exhaustive)


Queries = Iterator[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]


def _all_queries(d: int) -> Queries:
    """Yield all coalitions of `d` features, each with a query per feature outside it."""
    bits = np.arange(d)
    for start in range(0, 2**d, _QUERIES_AT_ONCE):
        numbers = np.arange(start, min(start + _QUERIES_AT_ONCE, 2**d))
        known = (numbers[:, None] >> bits & 1).astype(np.bool_)
        yield known, ~known


def _random_queries(d: int, n_queries: int, streams: Streams) -> Queries:
    """Yield random coalitions, each with a query about one random feature outside it."""
    coalitions, features = streams("compare: coalitions"), streams("compare: features")
    for start in range(0, n_queries, _QUERIES_AT_ONCE):
        n_rows = min(_QUERIES_AT_ONCE, n_queries - start)
        words = coalitions.integers(2**64, size=(n_rows, -(-d // 64)), dtype=np.uint64)
        known = np.unpackbits(words.view(np.uint8), axis=1, count=d).view(np.bool_)
        asked = np.zeros((n_rows, d), dtype=np.bool_)
        asked[np.arange(n_rows), features.integers(d, size=n_rows)] = True
        known &= ~asked
        yield known, asked


def _oracle(
    source: Graph | Oracle, parameter: str, target: str, features: Sequence[str] | None = None
) -> Oracle:
    """Return the oracle for the target; one made from a graph has the given features."""
    if is_oracle(source):
        oracle = as_oracle(source)
        if oracle.target not in (None, target):
            raise refusal(parameter, f"about {target!r}", source, "Make an oracle for this target")
        return oracle
    graph = check_graph(source, parameter)
    if features is not None:
        condition = "over the nodes of the true graph"
        nodes = (*features, target)
        own = [name for name in graph.names if name in nodes or name not in graph.indicators]
        check_same_names(own, nodes, parameter, condition)
    return graph.oracle(target, features)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
