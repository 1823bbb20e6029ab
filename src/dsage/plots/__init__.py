"""Draw results with matplotlib (extra ``plot``)."""

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "dsage.plots needs matplotlib; install it with: pip install 'dsage[plot]'."
    ) from error

from dsage.plots.auditing import audit
from dsage.plots.comparison import compare, sage_and_dsage
from dsage.plots.history import convergence
from dsage.plots.network import draw_graph, graph
from dsage.plots.ranking import bar

__all__ = ["audit", "bar", "compare", "convergence", "draw_graph", "graph", "sage_and_dsage"]
