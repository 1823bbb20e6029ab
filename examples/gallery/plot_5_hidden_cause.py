"""
A graph of your own, with a hidden common cause
===============================================

You know more than a learner can find out: here, that something which is not in the data acts on
a feature and on the target. A bidirected edge says so. Leave it out, and the answer is wrong;
the audit notices.
"""

# %%
# The data
# --------
# Simulated: the price of a ticket follows the price of fuel and the season. The season, which
# is not in the data, acts on the sales, too, and so does advertising. The price itself does
# nothing to the sales.

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
# The first takes the price for a cause of the sales. The second knows about the season: a
# dashed edge with two heads.

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
# They do not separate the same. The naive graph says that fuel tells nothing once the price is
# known. But it does: a high price with cheap fuel means high season.

for name, graph in {"naive": naive, "right": right}.items():
    told = graph.is_separated("fuel", "sales", given="price")
    print(f"{name}: fuel is separated from the sales, given the price: {told}")

# %%
# Values
# ------
# SAGE without a graph is the measure. A warning is what a user of the naive graph would see.


def explain(graph):
    """Return the explanation with a graph, and what the run warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = dsage.explain(
            model,
            X_train,
            y_train,
            X_test,
            y_test,
            graph=graph,
            sampler="gaussian",
            random_state=0,
            progress=False,
        )
    for each in told:
        print(each.message)
    return found


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
# The naive graph takes the credit from fuel, and some from the price, which tells more together
# with it. With the bidirected edge the values are those of SAGE, and what is skipped is zero.

with_naive.plot.audit()

# %%
# The skipped surpluses are positive: fuel helps where the graph says that it cannot. For a true
# separation that is not possible, so the fault is the graph's, not the model's.

skipped = with_naive.estimate.skipped_surpluses
skipped.groupby("feature")["surplus"].agg(["count", "mean"]).round(3)
