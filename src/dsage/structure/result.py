"""The result of a search: the graph and the moves that led to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from dsage.graphs import Graph


class Step(NamedTuple):
    """One move of a search.

    Attributes
    ----------
    kind : str
        ``"add"``, ``"delete"`` or ``"reverse"``; ``"perturb: add"`` and so on for random moves.
    tail, head : str
        The edge tail -> head that was added, deleted or reversed.
    delta : float
        The change of the score.
    score : float
        The score after the move.
    seconds : float
        The time since the search began.
    """

    kind: str
    tail: str
    head: str
    delta: float
    score: float
    seconds: float


class Rejection(NamedTuple):
    """An edge that a graph lacked, and how improbable the data are without it."""

    tail: str
    head: str
    p_value: float


@dataclass(frozen=True)
class SearchResult:
    """The best graph that a search visited.

    Attributes
    ----------
    graph : Graph
        The graph.
    score : float
        Its score.
    trace : tuple of Step
        The moves, in order. The last graph visited need not be the best.
    n_scored : int
        The number of families that were scored.
    seconds : float
        The duration of the search.
    interrupted : bool
        Whether the user interrupted the search.
    method : str
        The name of the search.
    score_name : str
        The name of the score; empty if a callable learned the graph.
    curved : tuple of str or None
        Columns that a linear regression does not explain best, if this decided on the score.
    rejections : tuple of Rejection
        Edges of the target that were added because the data reject that they are missing.
    """

    graph: Graph
    score: float
    trace: tuple[Step, ...]
    n_scored: int
    seconds: float
    interrupted: bool
    method: str
    score_name: str = ""
    curved: tuple[str, ...] | None = None
    rejections: tuple[Rejection, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return the trace as a data frame: kind, from, to, delta, score, seconds.

        Examples
        --------
        >>> graph = Graph(["a", "b"], [("a", "b")])
        >>> step = Step("add", "a", "b", 2.5, -10.0, 0.1)
        >>> SearchResult(graph, -10.0, (step,), 4, 0.1, False, "hc").to_frame()
          kind from to  delta  score  seconds
        0  add    a  b    2.5  -10.0      0.1
        """
        columns = ["kind", "from", "to", "delta", "score", "seconds"]
        return pd.DataFrame(list(self.trace), columns=columns)

    def __repr__(self) -> str:
        stopped = ", interrupted" if self.interrupted else ""
        return (
            f"SearchResult({self.method}: score {self.score:.6g} after {len(self.trace)} moves "
            f"in {self.seconds:.2g} s{stopped}; {self.graph!r})"
        )
