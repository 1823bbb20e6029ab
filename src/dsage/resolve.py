"""The one place where names become objects: graphs and samplers."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from typing import Any

import networkx as nx
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from dsage._check import check_count, check_member, message
from dsage._frame import is_frame
from dsage.choices import Choice
from dsage.graphs import Consensus, Graph, NoSeparation, Oracle, as_graph
from dsage.inputs import Inputs
from dsage.samplers import (
    Categorical,
    Forest,
    Gaussian,
    GaussianCopula,
    GaussianMixture,
    Marginal,
    Neighbors,
    Sampler,
    Sequential,
    check_sampler,
    choose_sampler,
    evaluate,
)
from dsage.structure import Stability, search_graph, stability
from dsage.structure.learn import METHODS

SAMPLERS = {
    "gaussian": Gaussian,
    "copula": GaussianCopula,
    "mixture": GaussianMixture,
    "categorical": Categorical,
    "forest": Forest,
    "neighbors": Neighbors,
    "sequential": Sequential,
    "marginal": Marginal,
}
"""The samplers by name."""

# Resamples of the rows that tell how sure each edge is, and for how many columns they are cheap:
# scores of mixed data read the rows again for each family.
_RESAMPLES, _CHEAP_COLUMNS, _CHEAP_MIXED = 20, 100, 12
# Fewer rows than this are not worth being split to score a sampler.
_SCORED_ROWS = 20


@dataclass(frozen=True, eq=False)
class GraphFound:
    """What separates, and how it was found.

    Attributes
    ----------
    oracle : Oracle or None
        None where nothing is separated.
    graph : Graph or None
        Its graph, where it has one.
    strength : pandas.DataFrame or None
        How often each edge was found again.
    described : dict
        For the record.
    """

    oracle: Oracle | None
    graph: Graph | None
    strength: pd.DataFrame | None
    described: dict[str, Choice]


@dataclass(frozen=True, eq=False)
class SamplerFound:
    """A fitted sampler, and how it was found.

    Attributes
    ----------
    sampler : Sampler
        The sampler.
    scores : pandas.DataFrame or None
        Its held-out energy score beside those of others.
    described : dict
        For the record.
    """

    sampler: Sampler
    scores: pd.DataFrame | None
    described: dict[str, Choice]


def find_graph(
    graph: Any,  # noqa: ANN401
    inputs: Inputs,
    *,
    is_of_classes: bool,
    n_resamples: int | None,
    n_jobs: int | None,
    seed: int,
    progress: bool,
) -> GraphFound:
    """Return what separates features from the target.

    Parameters
    ----------
    graph : str, Graph, other graph, Stability, Oracle or None
        ``"learn"``, the name of a method, an object, or None for nothing.
    inputs : Inputs
        The rows.
    is_of_classes : bool
        Whether the target is a class, also where it is written as a number.
    n_resamples : int or None
        From how many resamples to learn again; None for 20, or none where many columns make that
        slow.
    n_jobs, seed, progress
        Of learning.
    """
    if graph is None or isinstance(graph, NoSeparation):
        return GraphFound(None, None, None, {"source": "none: nothing is skipped"})
    if isinstance(graph, str):
        names = ("learn", *METHODS)
        method = check_member(graph, names, "graph", "the names of graphs")
        return _learned(
            "auto" if method == "learn" else method,
            inputs,
            is_of_classes=is_of_classes,
            n_resamples=n_resamples,
            n_jobs=n_jobs,
            seed=seed,
            progress=progress,
        )
    if isinstance(graph, Stability):
        oracle: Oracle = graph.oracle(inputs.target, inputs.names)
        described: dict[str, Choice] = {"source": f"given: a vote of {len(graph.graphs)} graphs"}
        return GraphFound(oracle, None, graph.to_frame(), described)
    if isinstance(graph, Consensus) or (isinstance(graph, Oracle) and not _is_graph(graph)):
        return GraphFound(graph, None, None, {"source": f"given: {type(graph).__name__}"})
    found = as_graph(graph)
    if inputs.target not in found:
        raise ValueError(
            message(
                "graph",
                f"one that has the target {inputs.target!r}",
                list(found.names),
                "Name the target as in the graph, with target=",
            )
        )
    kind = "dsage.Graph" if isinstance(graph, Graph) else type(graph).__name__
    described = {"source": f"given: {kind}", **_blanket(found, inputs.target)}
    return GraphFound(found.oracle(inputs.target, inputs.names), found, None, described)


def _is_graph(graph: object) -> bool:
    return isinstance(graph, (Graph, nx.Graph)) or is_frame(graph)


def _learned(
    method: str,
    inputs: Inputs,
    *,
    is_of_classes: bool,
    n_resamples: int | None,
    n_jobs: int | None,
    seed: int,
    progress: bool,
) -> GraphFound:
    table = inputs.training_table()
    discrete = (*inputs.discrete, inputs.target) if is_of_classes else inputs.discrete
    result = search_graph(
        table, method=method, discrete=discrete, random_state=seed, progress=progress
    )
    if n_resamples is None:
        n_discrete = int((inputs.layout.n_levels > 0).sum()) + is_of_classes
        is_mixed = 0 < n_discrete <= len(inputs.names)
        n_cheap = _CHEAP_MIXED if is_mixed else _CHEAP_COLUMNS
        n_resamples = _RESAMPLES if len(inputs.names) < n_cheap else 0
    n_resamples = check_count(n_resamples, "n_resamples", minimum=0)
    strength = None
    start = time.perf_counter()
    if n_resamples and len(inputs.y_train) >= 2 * _SCORED_ROWS:
        again = stability(
            table,
            n_resamples,
            method=method,
            discrete=discrete,
            n_jobs=n_jobs,
            random_state=seed,
            progress=progress,
        )
        strength = again.to_frame()
    described: dict[str, Choice] = {
        "source": "learned from the training rows",
        "method": method,
        "score": result.score_name,
        "score_value": result.score,
        **_blanket(result.graph, inputs.target),
        "seconds": result.seconds,
        "resamples": 0 if strength is None else n_resamples,
        "resampling_seconds": time.perf_counter() - start,
    }
    oracle = result.graph.oracle(inputs.target, inputs.names)
    return GraphFound(oracle, result.graph, strength, described)


def _blanket(graph: Graph, target: str) -> dict[str, Choice]:
    return {
        "edges": len(graph.edges) + len(graph.bidirected),
        "markov_blanket": ", ".join(graph.markov_blanket(target)) or "empty",
    }


def find_sampler(sampler: Any, inputs: Inputs, *, seed: int) -> SamplerFound:  # noqa: ANN401
    """Return a fitted sampler with its held-out score.

    Parameters
    ----------
    sampler : str or Sampler
        ``"auto"`` for the simplest good one; a name of `SAMPLERS`; or an object, which is fitted to
        a copy of it unless it is fitted already.
    inputs : Inputs
        The rows.
    seed : int
        Of the choice and of the fit.
    """
    if sampler == "auto":
        choice = choose_sampler(inputs.X_train, discrete=inputs.discrete, random_state=seed)
        scores = choice.scores.reset_index()
        return SamplerFound(
            choice.sampler,
            scores,
            _sampler_words(choice.name, "chosen by its held-out score", choice.reason, scores),
        )
    if isinstance(sampler, str):
        names = ("auto", *SAMPLERS)
        kind = SAMPLERS[check_member(sampler, names, "sampler", "the names of samplers")]
        options = {"discrete": inputs.discrete, "random_state": seed % 2**31}
        known = kind().get_params()
        made: Any = kind(**{key: value for key, value in options.items() if key in known})
    else:
        made = check_sampler(sampler)
    name = type(made).__name__
    how = "given by name" if isinstance(sampler, str) else "given"
    if _is_fitted(made):
        scores_found = _scored(name, made, inputs, seed)
        return SamplerFound(made, scores_found, _sampler_words(name, how, "", scores_found))
    if len(inputs.y_train) < _SCORED_ROWS:
        return SamplerFound(_copy(made).fit(inputs.X_train), None, _sampler_words(name, how, ""))
    choice = choose_sampler(inputs.X_train, {name: made}, random_state=seed)
    scores = choice.scores.reset_index()
    return SamplerFound(choice.sampler, scores, _sampler_words(name, how, "", scores))


def _copy(sampler: Any) -> Any:  # noqa: ANN401
    return clone(sampler) if hasattr(sampler, "get_params") else copy.deepcopy(sampler)


def _is_fitted(sampler: Any) -> bool:  # noqa: ANN401
    try:
        check_is_fitted(sampler)
    except NotFittedError:
        return False
    return True


def _scored(name: str, sampler: Any, inputs: Inputs, seed: int) -> pd.DataFrame | None:  # noqa: ANN401
    """Return the score of a fitted sampler on the evaluation rows, with that of independence."""
    if len(inputs.y_test) < _SCORED_ROWS:
        return None
    marginal = Marginal(discrete=inputs.discrete).fit(inputs.X_train)
    own, other = (evaluate(each, inputs.X_test, random_state=seed) for each in (sampler, marginal))
    compared = other.compare(own)
    return pd.DataFrame(
        {
            "sampler": [name, "Marginal"],
            "energy_score": [own.score, other.score],
            "difference": [0.0, compared.at["all", "difference"]],
            "se": [0.0, compared.at["all", "se"]],
        }
    )


def _sampler_words(
    name: str, how: str, reason: str, scores: pd.DataFrame | None = None
) -> dict[str, Choice]:
    by_name = {} if scores is None else scores.set_index("sampler")["energy_score"].to_dict()
    return {
        "name": name,
        "source": how,
        "reason": reason or f"It was {how}.",
        "energy_score": by_name.get(name),
        "energy_score_of_independence": by_name.get("Marginal"),
    }
