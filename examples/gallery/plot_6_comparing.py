"""
Comparing two models
====================

A linear model and a forest predict the progression of diabetes about equally well. Do they use
the same features?
"""

# %%
# Two models for the same data
# ----------------------------

import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

import dsage
from dsage.estimate import as_stopping, compare_games
from dsage.games import LossGame
from dsage.samplers import Gaussian

X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0)
models = {
    "linear": LinearRegression().fit(X_train, y_train),
    "forest": RandomForestRegressor(50, min_samples_leaf=5, random_state=0).fit(X_train, y_train),
}
pd.Series({name: model.score(X_test, y_test) for name, model in models.items()}, name="R2").round(3)

# %%
# Side by side
# ------------
# We explain each model separately, with the same rows and the same graph.

graph = dsage.learn_graph(pd.concat([X_train, y_train], axis=1))
explanations = {
    name: dsage.explain(
        model,
        X_train,
        y_train,
        X_test,
        y_test,
        graph=graph,
        sampler="gaussian",
        sampler_check=False,
        tolerance=0.05,
        audit=False,
        random_state=0,
        progress=False,
    )
    for name, model in models.items()
}
explanations["linear"].plot.compare(explanations["forest"])

# %%
# Estimate the differences
# ------------------------
# The intervals above refer to each model separately. It is much easier to estimate whether two
# models *differ*: if both are evaluated with the same coalitions, rows and noise, most random
# errors cancel. :func:`dsage.estimate.compare_games` does that.

games = [
    LossGame(model, Gaussian().fit(X_train), X_test, y_test, random_state=0)
    for model in (models["forest"], models["linear"])
]
oracle = graph.oracle("target", features=list(X.columns))
comparison = compare_games(
    *games,
    oracle=oracle,
    audit=False,
    stopping=as_stopping(absolute=20.0),
    random_state=0,
)
comparison.to_frame()[
    ["feature", "difference", "se", "lower", "upper", "se_rows", "p_value"]
].round(3)

# %%
# The differences are forest minus linear model, as in the plot. The clearest difference is that of
# ``sex``, which the linear model uses but the forest hardly does. The intervals refer to these 148
# rows. The p-values refer to the population: they include the sampling error of the rows and are
# adjusted for ten features. They are large, so the models differ on these patients, but there are
# too few patients to generalize.
