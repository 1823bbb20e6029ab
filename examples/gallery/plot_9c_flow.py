"""
Flows along the edges of a causal graph
=======================================

Where does a model get its information from? The reduction of its risk flows along the edges of a
causal graph: from the noise of each column, which its causes do not determine, through other
columns, to the model.
"""

# %%
# A classifier of penguins
# ------------------------
# The species of a penguin shapes its body, and so does its sex. A model goes the other way: from
# the body to the species.

from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import dsage
from dsage.datasets import load_penguins

table = load_penguins().sample(frac=1.0, random_state=0, ignore_index=True)
X, y = table.drop(columns=["species", "year"]), table["species"]
codes = OrdinalEncoder(encoded_missing_value=-1)
model = make_pipeline(
    make_column_transformer((codes, ["island", "sex"]), remainder="passthrough"),
    RandomForestClassifier(50, min_samples_leaf=3, random_state=0),
).fit(X[:220], y[:220])

# %%
# The graph
# ---------
# The target is a node like any other. Every feature also has an edge to the model.

body = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
graph = dsage.Graph(
    [*X.columns, "species"],
    [
        ("species", "island"),
        *(("species", part) for part in body),
        *(("sex", part) for part in body),
    ],
)
found = dsage.explain_flow(
    model, X[:220], y[:220], X[220:], y[220:], graph=graph, random_state=0, progress=False
)
found.node_table().round(3)

# %%
# Nearly all of the flow starts at the species itself, not at the noise of other columns.
# The bill and the flippers carry most of it to the model. The bodies' own noise, the differences
# between penguins of one species and sex, does no good: the model would do better without it.

ax = found.plot.flow()

# %%
# How well do the mechanisms fit?
# -------------------------------
# The mechanisms are regressions. The table shows how much the parents explain of each column.

found.mechanisms

# %%
# Set instead of observed
# -----------------------
# With ``sources="do"`` each feature is set to its value, whatever its causes are. The flow that
# starts at a feature is then its causal SAGE value. No feature of a penguin acts on its species, so
# nothing flows through the species, and the flow along its edges is exactly zero.

acting = dsage.explain_flow(
    model,
    X[:220],
    y[:220],
    X[220:],
    y[220:],
    graph=graph,
    sources="do",
    random_state=0,
    progress=False,
)
acting.to_frame()[["source", "target", "value", "se"]].round(4)
