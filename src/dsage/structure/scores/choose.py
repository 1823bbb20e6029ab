"""From the name of a score, and data, to the score."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import log, log10
from typing import Any, NamedTuple

import numpy as np

from dsage._check import check_member, check_real, refusal
from dsage.data.table import Table
from dsage.graphs import Graph
from dsage.structure.counts import Counts
from dsage.structure.moments import Moments
from dsage.structure.scores.base import Score
from dsage.structure.scores.bge import BGe
from dsage.structure.scores.cached import Cached
from dsage.structure.scores.conditional_gaussian import ConditionalGaussian
from dsage.structure.scores.discrete import K2, BDeu, DiscreteLikelihood
from dsage.structure.scores.gaussian import GaussianScore
from dsage.structure.source import Data, as_data, kind_of

_LARGEST = float(np.finfo(np.float64).max)

SCORES = ("auto", "bic", "aic", "ebic", "loglik", "bge", "bdeu", "bde", "k2")
"""The names of the scores; ``"bde"`` is bnlearn's name of ``"bdeu"``."""

# What "auto" stands for.
_AUTO = {"continuous": "ebic", "discrete": "bic", "mixed": "bic"}

# Which kinds of data a score is for, and which of the options it heeds.
_FITS = {
    "bic": ("continuous", "discrete", "mixed"),
    "aic": ("continuous", "discrete", "mixed"),
    "loglik": ("continuous", "discrete", "mixed"),
    "ebic": ("continuous",),
    "bge": ("continuous",),
    "bdeu": ("discrete",),
    "k2": ("discrete",),
}
_HEEDS = {
    "bic": ("penalty",),
    "aic": ("penalty",),
    "ebic": ("penalty", "gamma"),
    "bge": ("iss",),
    "bdeu": ("iss",),
}


class _Options(NamedTuple):
    penalty: float | None
    gamma: float | None
    iss: float | None


def choose_score(
    data: Any,  # noqa: ANN401
    score: str = "auto",
    *,
    penalty: float | None = None,
    gamma: float | None = None,
    iss: float | None = None,
    discrete: str | Iterable[str] = (),
    transform: str = "none",
) -> Score:
    """Return the score called `score` of `data`.

    Parameters
    ----------
    data : data frame, array, Table, Moments or Counts
        The observations, or all that is needed of them.
    score : str, default="auto"
        One of :data:`SCORES`. ``"auto"`` is ``"ebic"`` for continuous data and ``"bic"`` for
        discrete and for mixed data.
    penalty : float, optional
        Factor of the penalty of ``"bic"``, ``"aic"`` and ``"ebic"``: 1 by default, 2 doubles it.
    gamma : float, optional
        Of ``"ebic"``, in [0, 1]: 0 is BIC; by default :func:`default_gamma`. A parameter costs
        ``(log(n_rows) + 2 gamma log(n_nodes)) / 2`` (Foygel & Drton, 2010).
    iss : float, optional
        Imaginary sample size of the prior, 1 by default: of the whole in ``"bdeu"``, of the means
        in ``"bge"``. An option that the score does not heed is an error.
    discrete : str or iterable of str, default=()
        Columns of numbers that are classes.
    transform : {"none", "rank"}, default="none"
        ``"rank"`` takes normal scores of the continuous columns first.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> type(choose_score(rows)).__name__, type(choose_score(rows, "bge")).__name__
    ('GaussianScore', 'Cached')
    """
    source = as_data(data, discrete=discrete, transform=transform)
    kind = kind_of(source)
    name = score_name(score, kind)
    if kind not in _FITS[name]:
        fitting = [other for other, kinds in _FITS.items() if kind in kinds]
        raise refusal("score", f"one for {kind} data", score, f"Take one of {', '.join(fitting)}")
    options = _Options(penalty, gamma, iss)
    for option, value in options._asdict().items():
        if value is not None and option not in _HEEDS.get(name, ()):
            raise refusal(
                option, f"left out with the score {name!r}", value, "It has no effect there"
            )
    return _MAKERS[name](source, name, options)


def score_name(score: str, kind: str) -> str:
    """Return the name of a score proper: what ``"auto"`` stands for with this kind of data.

    Examples
    --------
    >>> score_name("auto", "continuous"), score_name("bde", "discrete")
    ('ebic', 'bdeu')
    """
    check_member(score, SCORES, "score", "the scores")
    return _AUTO[kind] if score == "auto" else "bdeu" if score == "bde" else score


def graph_score(score: Score, graph: Graph) -> float:
    """Return the score of a DAG: the sum over its families.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> score = choose_score(Moments.from_array(rows, ["a", "b"]), "bic")
    >>> round(graph_score(score, Graph(["a", "b"], [])), 2)
    -284.25
    """
    if odd := sorted(set(graph.names) ^ set(score.names)):
        raise refusal(
            "graph", "over the variables of the data", odd, "These are in one of them only"
        )
    if not graph.is_dag:
        raise refusal("graph", "a DAG", graph, "Cycles and bidirected edges have no such score")
    position = {name: node for node, name in enumerate(score.names)}
    families = (
        (node, tuple(sorted(position[parent] for parent in graph.parents(name))))
        for name, node in position.items()
    )
    return float(sum(score.family(node, parents) for node, parents in families))


def default_gamma(n_rows: int) -> float:
    """Return gamma of the extended BIC: 1/2 up to 1,000 rows, 1 from 10,000, log-linear between.

    A larger penalty finds more separations, and with few rows more false ones too where effects are
    weak. With many rows weak effects stand out all the same, so the larger one costs nothing.

    Examples
    --------
    >>> [round(default_gamma(n_rows), 2) for n_rows in (500, 1_000, 3_000, 10_000, 1_000_000)]
    [0.5, 0.5, 0.74, 1.0, 1.0]
    """
    return min(max(log10(n_rows) / 2 - 1, 0.5), 1.0)


def _penalised(data: Data, name: str, options: _Options) -> Score:
    n_rows, n_nodes = data.n_rows, len(data.names)
    gamma = default_gamma(n_rows) if options.gamma is None else options.gamma
    check_real(gamma, "gamma", low=0.0, high=1.0)
    factor = 1.0 if options.penalty is None else options.penalty
    check_real(factor, "penalty", low=0.0, high=_LARGEST)
    penalty = (
        factor
        * {
            "bic": log(n_rows) / 2,
            "aic": 1.0,
            "ebic": (log(n_rows) + 2 * gamma * log(n_nodes)) / 2,
            "loglik": 0.0,
        }[name]
    )
    kind = kind_of(data)
    if kind == "continuous":
        return GaussianScore(_moments(data), penalty=penalty)
    if kind == "discrete":
        return Cached(DiscreteLikelihood(_counts(data), penalty=penalty))
    if not isinstance(data, Table):
        raise refusal("data", "typed columns", type(data).__name__, "Give a data frame", TypeError)
    return Cached(ConditionalGaussian(data, penalty=penalty))


def _bge(data: Data, name: str, options: _Options) -> Score:  # noqa: ARG001
    return Cached(BGe(_moments(data), iss_mu=1.0 if options.iss is None else options.iss))


def _bdeu(data: Data, name: str, options: _Options) -> Score:  # noqa: ARG001
    return Cached(BDeu(_counts(data), iss=1.0 if options.iss is None else options.iss))


def _k2(data: Data, name: str, options: _Options) -> Score:  # noqa: ARG001
    return Cached(K2(_counts(data)))


_MAKERS: dict[str, Callable[[Data, str, _Options], Score]] = {
    **dict.fromkeys(("bic", "aic", "ebic", "loglik"), _penalised),
    "bge": _bge,
    "bdeu": _bdeu,
    "k2": _k2,
}


def _moments(data: Data) -> Moments:
    if isinstance(data, Table):
        return Moments.from_table(data)
    if isinstance(data, Moments):
        return data
    raise refusal("data", "continuous", type(data).__name__, "Give numbers", TypeError)


def _counts(data: Data) -> Counts:
    if isinstance(data, Table):
        return Counts.from_table(data)
    if isinstance(data, Counts):
        return data
    raise refusal("data", "discrete", type(data).__name__, "Give classes", TypeError)
