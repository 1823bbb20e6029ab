"""Plots of explanations with matplotlib (extra ``plot``).

Plots of one explanation are also methods of ``explanation.plot``.

Examples
--------
>>> import dsage
>>> from sklearn.datasets import load_diabetes
>>> from sklearn.linear_model import LinearRegression
>>> X, y = load_diabetes(return_X_y=True, as_frame=True)
>>> X = X[["age", "bmi", "bp", "s5"]]
>>> rows = X[:300], y[:300], X[300:], y[300:]
>>> model = LinearRegression().fit(*rows[:2])
>>> options = {"sampler": "gaussian", "sampler_check": False, "random_state": 0, "progress": False}
>>> explanation = dsage.explain(model, *rows, graph="learn", **options)
>>> [label.get_text() for label in bar(explanation).get_yticklabels()]
['bmi', 's5', 'bp', 'age']
>>> [text.get_text() for text in convergence(explanation, features=["bmi", "age"]).texts]
['bmi', 'age']
>>> sorted(text.get_text() for text in graph(explanation).texts)
['age', 'bmi', 'bp', 's5', 'target']
>>> left, right = audit(explanation)
>>> left, right = sage_and_dsage(explanation)
>>> right.get_xlabel()
'difference: d-SAGE minus SAGE'
>>> other = dsage.explain(model, *rows, graph=None, **options)
>>> left, right = compare(explanation, other, labels=["learned", "without"])
>>> right.get_xlabel()
'difference: without minus learned'
"""

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "dsage.plots needs matplotlib; install it with: pip install 'dsage[plot]'."
    ) from error

from dsage.plots.auditing import audit
from dsage.plots.beeswarm import beeswarm
from dsage.plots.causal import graph_range, parts
from dsage.plots.comparison import compare, compare_data, compare_models, sage_and_dsage
from dsage.plots.dependence import scatter
from dsage.plots.flow import flow
from dsage.plots.history import convergence
from dsage.plots.network import draw_graph, graph
from dsage.plots.pooled import combined, folds
from dsage.plots.ranking import bar
from dsage.plots.waterfall import waterfall

__all__ = [
    "audit",
    "bar",
    "beeswarm",
    "combined",
    "compare",
    "compare_data",
    "compare_models",
    "convergence",
    "draw_graph",
    "flow",
    "folds",
    "graph",
    "graph_range",
    "parts",
    "sage_and_dsage",
    "scatter",
    "waterfall",
]
