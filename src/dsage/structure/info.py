"""How the graph of a run was found, as a typed record."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GraphSource(StrEnum):
    """Where the separations of a run come from."""

    NONE = "none"
    LEARNED = "learned"
    GIVEN = "given"
    VOTE = "vote"


@dataclass(frozen=True)
class GraphInfo:
    """How the graph of a run was found. Fields that do not apply are None.

    Attributes
    ----------
    source : GraphSource
        No graph, a graph learned from the training rows, a graph or oracle passed by the user, or
        a vote of the graphs of a :class:`~dsage.structure.Stability`.
    kind : str or None
        The type of the object that the user passed, such as ``"dsage.Graph"``; or
        ``"PartialGraph"``, also if a user's function learned it.
    method : str or None
        The search by its name, or the name of the user's function.
    score : str or None
        The score by its name, or the type of the user's score.
    score_value : float or None
        The score of the graph.
    n_edges : int or None
        The number of edges, bidirected ones included.
    markov_blanket : tuple of str or None
        The Markov blanket of the target, with the indicators of missing values in it.
    n_graphs : int or None
        The number of graphs that vote.
    seconds : float or None
        The time that learning the graph took.
    n_resamples : int or None
        The number of resamples from which the graph was learned again.
    resampling_seconds : float or None
        The time that learning from the resamples took.
    min_share : float or None
        The share of the resampled graphs that must agree on a separation.
    curved : tuple of str or None
        Columns that a linear regression does not explain best: they decided on the score.
    restored : tuple of str or None
        Edges of the target, such as ``"a -> y"``, that the search left out and a test restored.
    is_used : bool or None
        Whether the estimate skips what the graph separates; None without a graph. By default,
        a graph is used, or even learned, only if that makes the estimate cheaper.
    share_skippable : float or None
        Share of the surpluses along orderings that the graph sets to zero.
    share_evaluated : float or None
        Number of coalitions to evaluate along orderings, relative to the number without the graph.
    why : str or None
        Why there is no graph, or why it is not used, if the user did not ask for that.
    """

    source: GraphSource
    kind: str | None = None
    method: str | None = None
    score: str | None = None
    score_value: float | None = None
    n_edges: int | None = None
    markov_blanket: tuple[str, ...] | None = None
    n_graphs: int | None = None
    seconds: float | None = None
    n_resamples: int | None = None
    resampling_seconds: float | None = None
    min_share: float | None = None
    curved: tuple[str, ...] | None = None
    restored: tuple[str, ...] | None = None
    is_used: bool | None = None
    share_skippable: float | None = None
    share_evaluated: float | None = None
    why: str | None = None
