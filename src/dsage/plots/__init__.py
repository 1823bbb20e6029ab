"""Draw results with matplotlib (extra ``plot``)."""

from dsage.plots.graph import draw_graph

__all__ = ["draw_graph"]
