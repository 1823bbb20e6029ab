"""The result of `explain_flow`: the flow along the edges of a graph to the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from dsage._check import check_member, refusal
from dsage.estimate.inference import effective_df, intervals
from dsage.flow.estimate import PARTS, FlowEstimate
from dsage.games.base import Floats
from dsage.graphs import Graph
from dsage.result.plotters import FlowPlotter
from dsage.result.saved import Saved

SOURCES = ("noise", "do")
"""How a flow starts: with the noise of each node, or by setting each feature."""


class FlowEdge(NamedTuple):
    """An edge along which risk is reduced.

    Attributes
    ----------
    kind : {"source", "edge", "model"}
        Whether it starts at a source, joins two nodes, or ends in the model.
    source, target : str
        Its ends; the source of an edge of the kind ``"source"`` is ``"noise"`` or ``"do"``, the
        target of one of the kind ``"model"`` is ``"model"``.
    """

    kind: str
    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}"


@dataclass(frozen=True, eq=False)
class FlowExplanation(Saved):
    """The flow along the edges of a causal graph to the model, in units of the loss.

    Everything that flows into a node flows out of it. The flow out of the sources equals the flow
    into the model: the whole reduction of the risk.

    Attributes
    ----------
    edges : tuple of FlowEdge
        The edges; edges of the graph that do not lead to the model come last and carry nothing.
    nodes : tuple of str
        The nodes that the flow passes through, causes before effects.
    estimate : FlowEstimate
        The values, with their errors.
    sources : {"noise", "do"}
        How the flow starts: with the noise of each node, or by setting each feature to its value.
    model_first : bool
        Whether a node sends its value to the model before it sends it to other nodes.
    graph : Graph
        The graph.
    target, loss, model : str
        The target, the loss and the model.
    feature_names : tuple of str
        The features.
    mechanisms : pandas.DataFrame
        How each node depends on its parents: ``node``, ``parents``, ``kind``, ``terms`` (functions
        of each parent that is a number) and ``explained``, the share of the variance or of the
        deviance that the parents explain.
    n_rows : int
        Number of evaluation rows.
    seed : str
        The seed.
    warnings : tuple of str
        Warnings of the run.
    """

    _file_kind: ClassVar[str] = "dsage flow"

    edges: tuple[FlowEdge, ...]
    nodes: tuple[str, ...]
    estimate: FlowEstimate = field(repr=False)
    sources: str
    model_first: bool
    graph: Graph
    target: str
    loss: str
    model: str
    feature_names: tuple[str, ...] = field(repr=False)
    mechanisms: pd.DataFrame = field(repr=False)
    n_rows: int
    seed: str = field(repr=False)
    warnings: tuple[str, ...] = field(default=(), repr=False)

    @property
    def reduction(self) -> float:
        """The whole reduction of the risk: the flow out of all sources, and into the model."""
        return self.estimate.base_risk - self.estimate.risk

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return one line per edge.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        pandas.DataFrame
            ``kind``, ``source``, ``target``, ``value``; ``share`` of the whole reduction of the
            risk; ``se``, the error from orderings and draws, with the interval ``lower``, ``upper``
            for these rows; ``se_rows``, the error from the choice of the rows, with the interval
            ``lower_total``, ``upper_total`` for the population. Within a kind, the largest values
            come first.
        """
        estimate = self.estimate.edges
        n_idle = len(self.edges) - len(estimate.values)
        parts = [np.append(each, np.zeros(n_idle)) for each in estimate]
        frame = pd.DataFrame(
            {
                "kind": [edge.kind for edge in self.edges],
                "source": [edge.source for edge in self.edges],
                "target": [edge.target for edge in self.edges],
                **self._columns(*parts, confidence=confidence),
            }
        )
        share = frame["value"] / self.reduction if self.reduction else np.nan
        frame.insert(4, "share", share)
        rank = frame["kind"].map({"source": 0, "edge": 1, "model": 2})
        order = np.lexsort((-frame["value"].to_numpy(), rank.to_numpy()))
        return frame.iloc[order].reset_index(drop=True)

    def node_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return the parts of the flow out of each node, one line per node and part.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        pandas.DataFrame
            ``node``; ``part``: ``"own"``, the flow from the node's own source, which is the sum of
            ``"direct"``, the flow straight to the model, and ``"indirect"``, the flow to other
            nodes first; and ``"through"``, the flow from other sources that passes through. The
            other columns are as in `to_frame`.
        """
        estimate = self.estimate.nodes
        parts = [each.ravel() for each in estimate]
        return pd.DataFrame(
            {
                "node": np.repeat(np.array(self.nodes, dtype=object), len(PARTS)),
                "part": list(PARTS) * len(self.nodes),
                **self._columns(*parts, confidence=confidence),
            }
        )

    def node_table(self) -> pd.DataFrame:
        """Return the values of the parts, one line per node; see `node_frame`.

        The node with the largest own part comes first.
        """
        values = self.estimate.nodes.values
        frame = pd.DataFrame(values, columns=list(PARTS), index=pd.Index(self.nodes, name="node"))
        return frame.iloc[np.argsort(-values[:, 0], kind="stable")]

    def by_source(self) -> pd.DataFrame:
        """Return the flow along each edge that comes from each source.

        Returns
        -------
        pandas.DataFrame
            One line per edge that leads to the model, one column per node whose source the flow
            starts at; the columns add up to the value of the edge.
        """
        n_edges = len(self.estimate.edges.values)
        index = pd.MultiIndex.from_tuples(
            [tuple(edge) for edge in self.edges[:n_edges]], names=list(FlowEdge._fields)
        )
        return pd.DataFrame(self.estimate.by_source, index=index, columns=list(self.nodes))

    def _columns(
        self, values: Floats, se: Floats, se_rows: Floats, *, confidence: float
    ) -> dict[str, Floats]:
        """Return the columns of values, errors and intervals."""
        df = self.estimate.n_pairs - 1
        lower, upper = intervals(values, se, confidence, df=df)
        lowest, highest = np.full((2, len(values)), np.nan)
        if self.n_rows > 1:
            both = effective_df(np.stack([se, se_rows]) ** 2, [df, self.n_rows - 1])
            total = np.hypot(se, se_rows)
            lowest, highest = intervals(values, total, confidence, df=both)
        return {
            "value": values,
            "se": se,
            "lower": lower,
            "upper": upper,
            "se_rows": se_rows,
            "lower_total": lowest,
            "upper_total": highest,
        }

    @property
    def plot(self) -> FlowPlotter:
        """The plots: ``plot.flow()``."""
        return FlowPlotter(self)

    def report(self, path: str | Path) -> Path:
        """Write a report, one self-contained HTML file, and return its path."""
        from dsage.report import write_flow_report  # noqa: PLC0415

        return write_flow_report(self, path)

    def _check(self) -> None:
        n_edges, n_nodes = len(self.estimate.edges.values), len(self.nodes)
        shapes = [
            *((each, (n_edges,)) for each in self.estimate.edges),
            *((each, (n_nodes, len(PARTS))) for each in self.estimate.nodes),
            (self.estimate.by_source, (n_edges, n_nodes)),
            (self.estimate.se_by_source, (n_edges, n_nodes)),
        ]
        if any(array.shape != shape for array, shape in shapes) or n_edges > len(self.edges):
            raise ValueError("the arrays have different shapes")
        if not np.isfinite(self.estimate.edges.values).all():
            raise ValueError("a value is not finite")
        check_member(self.sources, SOURCES, "sources", "the sources")
        self.to_frame()

    def __getitem__(self, edge: tuple[str, str]) -> pd.Series[Any]:
        """Return the line of an edge, given by its ends; see `to_frame`."""
        frame = self.to_frame()
        is_pair = isinstance(edge, tuple) and len(edge) == 2
        if is_pair:
            lines = frame[(frame["source"] == edge[0]) & (frame["target"] == edge[1])]
            if len(lines):
                return lines.iloc[0]
        pairs = ", ".join(str(each) for each in self.edges[:6])
        advice = f"Pass its two ends; the edges are {pairs}, ..."
        raise refusal("edge", "one of the network", edge, advice, KeyError)

    def __str__(self) -> str:
        head = (
            f"Flow to {self.model} along the graph of {self.target}, {self.loss} reduced by "
            f"{self.reduction:.4g} from {self.estimate.base_risk:.4g}:"
        )
        table = self.to_frame()[["source", "target", "value", "se", "se_rows"]]
        return f"{head}\n{table.to_string(index=False, float_format=lambda x: f'{x:.4g}')}"

    def _repr_html_(self) -> str:
        table = self.to_frame()[["kind", "source", "target", "value", "share", "se", "se_rows"]]
        return str(table.to_html(index=False, float_format=lambda x: f"{x:.4g}"))
