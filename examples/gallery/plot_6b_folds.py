"""
Cross-validation
================

Different splits into training and evaluation rows give different answers. With cross-validation
every row is evaluated, and the spread between folds becomes visible.
"""

# %%
# A single split says little
# --------------------------
# We explain a forest that predicts the progression of diabetes on three different quarters of the
# rows. To save time, we use a Gaussian sampler and no graph.

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold, train_test_split

import dsage

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
forest = RandomForestRegressor(10, min_samples_leaf=5, random_state=0)
options = {
    "graph": None,
    "sampler": "gaussian",
    "sampler_check": False,
    "tolerance": 0.1,
    "random_state": 0,
    "progress": False,
}
for seed in range(3):
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
    model = forest.fit(X_train, y_train)
    explanation = dsage.explain(model, X_train, y_train, X_test, y_test, **options)
    print(f"bmi: {explanation['bmi'].value:5.0f}, s5: {explanation['s5'].value:5.0f}")

# %%
# All rows, in five folds
# -----------------------
# In every fold, a copy of the forest is fitted to the other rows and explained on the fold.

folded = dsage.explain_cv(forest, X, y, KFold(5, shuffle=True, random_state=0), **options)
folded

# %%
# Values of the folds, and two intervals
# --------------------------------------
# Each circle is a fold, and the diamond is the mean over all rows. The thick interval is for these
# five forests on new rows. The thin one is for the learning procedure, with new training rows as
# well: it is wider, since it is estimated from only five folds.

folded.plot.folds()

# %%
# Which features would matter again?
# ----------------------------------
# The p-values test that the value of the learning procedure is not above zero, for all features at
# once.

frame = folded.to_frame()
frame.loc[frame["p_value"] < 0.05, ["feature", "value", "lower_procedure", "p_value"]].round(3)

# %%
# Folds with a meaning
# --------------------
# ``cv`` may be any splitter, or pairs of rows. Here each fold consists of the patients of one sex:
# which features predict the progression for them, in a model that was fitted to the other sex?

is_one = (X["sex"] == 1).to_numpy()
pairs = [(np.flatnonzero(part), np.flatnonzero(~part)) for part in (is_one, ~is_one)]
features = X.drop(columns="sex")
sexes = dsage.explain_cv(forest, features, y, pairs, **options)
sexes.fold_frame().pivot(index="feature", columns="fold", values="value").round(0)
