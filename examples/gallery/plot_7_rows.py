"""
Single rows
===========

Why does a model predict *this* for *that* penguin? Values of single rows divide each prediction
among the features. The same call divides the losses, whose means are the SAGE values.
"""

# %%
# The data and the model
# ----------------------
# Three columns are classes, and some values are missing. The model supports both.

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

import dsage
from dsage.datasets import load_penguins

penguins = load_penguins().dropna(subset="body_mass_g").reset_index(drop=True)
y = penguins.pop("body_mass_g")
is_train = np.random.default_rng(0).random(len(y)) < 0.88
X_train, y_train = penguins[is_train], y[is_train]
rows, y_rows = penguins[~is_train], y[~is_train]
model = HistGradientBoostingRegressor(
    max_iter=30, categorical_features="from_dtype", random_state=0
).fit(X_train, y_train)
print(f"R2 on {len(rows)} new rows: {model.score(rows, y_rows):.2f}")

# %%
# Explain the predictions
# -----------------------
# The values of a row add up to its prediction minus the mean prediction.

explanation = dsage.explain_rows(
    model, X_train, y_train, rows, graph=None, sampler="mix", random_state=0, progress=False
)
explanation

# %%
# One row
# -------
# Start at the mean prediction on top. Each bar is a feature, with its value in this row, and the
# interval from orderings and draws.

explanation.plot.waterfall(0)

# %%
# All rows
# --------
# Each point is a row. Its color shows the value of the feature: from low to high for numbers; for a
# class, the names below it have the same colors. Penguins of unknown sex are pale with a dark edge.

explanation.plot.beeswarm()

# %%
# One feature
# -----------
# Longer flippers raise the prediction. The color shows that their value hardly depends on the sex.

explanation.plot.scatter("flipper_length_mm", color="sex")

# %%
# Explain the losses
# ------------------
# Which feature helps the model with which penguin? A value is how much of the squared error of
# the row a feature removes. A negative one means that the feature misleads the model there.

losses = dsage.explain_rows(
    model,
    X_train,
    y_train,
    rows,
    y_rows,
    values="loss",
    graph=None,
    sampler="mix",
    tolerance=0.03,
    random_state=0,
    progress=False,
)
losses.plot.beeswarm()

# %%
# The means over the rows are the SAGE values of these rows:

losses.mean_frame()[["feature", "mean", "se"]].round(0)
