"""The twelve linear-Gaussian models of the d-SAGE paper."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from dsage._check import check_member
from dsage.graphs import Graph, LinearGaussian

PAPER_GRAPHS = (
    *("dag_s(2)", "dag_s(3)", "dag_s(4)"),
    *("dag_sm(2)", "dag_sm(3)", "dag_sm(4)"),
    *("dag_m(2)", "dag_m(3)", "dag_m(4)"),
    *("dag_l(2)", "dag_l(3)", "dag_l(4)"),
)
"""Names of the graphs: size (10, 20, 50 or 100 nodes) and, in parentheses, average degree."""


class PaperGraph(LinearGaussian):
    """One of the paper's linear-Gaussian models, with its target and the figures printed for it.

    Node ``X8`` is the paper's node 8.

    Attributes
    ----------
    name : str
        Name, for example ``"dag_s(2)"``.
    target : str
        The node that the paper predicts from all others.
    printed : dict of str to float
        Figures of the paper: ``target_degree``, ``share_d_separated`` (the share of separations
        among random queries), errors of a linear model and a random forest, and the seconds and
        accuracies in its appendix F.
    """

    def __init__(
        self,
        graph: Graph,
        weights: Mapping[tuple[str, str], float],
        error_variances: Mapping[str, float],
        *,
        name: str,
        target: str,
        printed: Mapping[str, float],
    ) -> None:
        super().__init__(graph, weights, error_variances)
        self.name = name
        self.target = target
        self.printed = dict(printed)

    def __repr__(self) -> str:
        return f"PaperGraph({self.name!r}, target={self.target!r}, {self.graph!r})"


def paper_graph(name: str) -> PaperGraph:
    """Return one of the twelve models of Luther, König & Grosse-Wentrup (AISTATS 2023).

    All variables have population variance one.

    Parameters
    ----------
    name : str
        One of :data:`PAPER_GRAPHS`.

    Examples
    --------
    >>> model = paper_graph("dag_s(2)")
    >>> model.target, model.graph.markov_blanket(model.target)
    ('X8', ('X6', 'X9'))
    >>> model.printed["share_d_separated"]
    0.556
    >>> model.sample(5, random_state=0).shape
    (5, 10)
    """
    check_member(name, PAPER_GRAPHS, "name", "the paper's graphs")
    record = _records()[name]
    names = [f"X{number}" for number in range(1, record["n_nodes"] + 1)]
    weights = {(f"X{tail}", f"X{head}"): weight for tail, head, weight in record["edges"]}
    return PaperGraph(
        Graph(names, weights),
        weights,
        dict(zip(names, record["error_variance"], strict=True)),
        name=name,
        target=f"X{record['target']}",
        printed=record["paper"],
    )


@functools.cache
def _records() -> dict[str, Any]:
    text = resources.files("dsage.datasets").joinpath("paper_graphs.json").read_text("utf-8")
    records: dict[str, Any] = json.loads(text)
    return records
