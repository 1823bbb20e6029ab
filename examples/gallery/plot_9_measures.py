"""
Measures of importance side by side
===================================

SAGE values, total and first-order effects, conditional and permutation feature importance and LOCO
answer different questions. One call estimates them all, on the same rows.
"""

# %%
# Fit a model
# -----------
# The blood values of the diabetes data are strongly correlated, which is where measures disagree.

from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

import dsage

X, y = load_diabetes(return_X_y=True, as_frame=True)
model = LinearRegression().fit(X[:300], y[:300])

# %%
# All measures
# ------------

found = dsage.explain_measures(
    model,
    X[:300],
    y[:300],
    X[300:],
    y[300:],
    measures=["shapley", "total", "first-order", "cfi", "pfi", "loco"],
    sampler="gaussian",
    random_state=0,
    progress=False,
)
print(found)

# %%
# One picture
# -----------
# The panels have a common scale. Permutation importance (PFI) ranks ``s1`` third, because with
# random values of it, rows describe patients that cannot exist. If it is drawn given the other
# features (CFI), it hardly matters.

axes = found.plot()
