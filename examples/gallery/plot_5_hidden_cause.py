"""
A graph with a hidden common cause
==================================

You may know more than a structure learner can find out, for example that a feature and the
target have a common cause that is not in the data. A bidirected edge represents such a cause.
Without it the values are wrong, and the audit detects that.
"""

# %%
# The data
# --------
# We simulate ticket sales. The price of a ticket depends on the price of fuel and on the season.
# The sales depend on the season and on advertising, but not on the price. The season is not in
# the data.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

import dsage
from dsage.plots import draw_graph

generator = np.random.default_rng(0)
season, fuel, advertising = generator.normal(size=(3, 4_000))
data = pd.DataFrame(
    {
        "fuel": fuel,
        "price": fuel + season + 0.5 * generator.normal(size=4_000),
        "advertising": advertising,
        "sales": season + advertising + 0.5 * generator.normal(size=4_000),
    }
)
features = ["fuel", "price", "advertising"]
X_train, X_test = data[features][:2_000], data[features][2_000:]
y_train, y_test = data["sales"][:2_000], data["sales"][2_000:]
model = LinearRegression().fit(X_train, y_train)

# %%
# Two graphs
# ----------
# In the first graph, the price is a cause of the sales. The second graph represents the season by
# a bidirected edge, drawn as a dashed arrow with two heads.

naive = dsage.Graph(
    [*features, "sales"], [("fuel", "price"), ("price", "sales"), ("advertising", "sales")]
)
right = dsage.Graph(
    [*features, "sales"],
    [("fuel", "price"), ("advertising", "sales")],
    bidirected=[("price", "sales")],
)
figure, axes = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
for ax, graph, title in zip(axes, (naive, right), ("naive", "with the hidden cause"), strict=True):
    draw_graph(graph, "sales", ax=ax)
    ax.set_title(title, y=1.12)

# %%
# Their separations differ. According to the naive graph, fuel is irrelevant given the price. In
# fact it is not: a high price despite cheap fuel indicates the high season.

for name, graph in {"naive": naive, "right": right}.items():
    is_separated = graph.is_separated("fuel", "sales", given="price")
    print(f"{name}: fuel is separated from the sales given the price: {is_separated}")

# %%
# Values
# ------
# SAGE without a graph is the reference. We print the warning that a user of the naive graph would
# see.


def explain(graph):
    """Return the explanation with a graph, and print warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explanation = dsage.explain(
            model,
            X_train,
            y_train,
            X_test,
            y_test,
            graph=graph,
            sampler="gaussian",
            sampler_check=False,
            random_state=0,
            progress=False,
        )
    for warning in caught:
        print(warning.message)
    return explanation


plain, with_naive, with_right = explain(None), explain(naive), explain(right)

# %%
table = pd.DataFrame(
    {
        "SAGE without a graph": plain.values,
        "d-SAGE, naive graph": with_naive.values,
        "d-SAGE, with the hidden cause": with_right.values,
    },
    index=features,
)
table.round(2)

# %%
# With the naive graph, fuel loses its credit, and so does the price in part, because it is more
# informative together with fuel. With the bidirected edge, the values agree with SAGE, because
# the skipped surpluses are zero.

with_naive.plot.audit()

# %%
# The skipped surpluses of the naive graph are positive: fuel helps although the graph says that it
# cannot. With a true separation this is impossible, so the graph is wrong, not the model.

skipped = with_naive.estimate.skipped_surpluses
skipped.groupby("feature")["surplus"].agg(["count", "mean"]).round(3)
