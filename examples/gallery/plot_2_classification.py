"""
Classification with mixed data
==============================

Predict which customers leave, from simulated data whose true mechanism is known. Some columns
are numbers, others are classes. Neither the model nor dsage needs them to be encoded.
"""

# %%
# The data
# --------
# The contract influences the charge and the tenure. A short tenure and calls to
# support make customers leave; the charge has no effect of its own. The region is irrelevant.

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import dsage

generator = np.random.default_rng(0)
n_rows = 3_000
contract = generator.choice(["monthly", "yearly"], size=n_rows, p=[0.6, 0.4])
is_yearly = contract == "yearly"
calls = generator.normal(size=n_rows)
X = pd.DataFrame(
    {
        "contract": pd.Categorical(contract),
        "region": pd.Categorical(generator.choice(["north", "south", "west"], size=n_rows)),
        "charge": 60.0 - 15.0 * is_yearly + 8.0 * generator.normal(size=n_rows),
        "tenure": 2.0 + 2.0 * is_yearly + generator.normal(size=n_rows),
        "calls": calls,
    }
)
log_odds = 2.0 - X["tenure"] + 1.2 * calls
has_left = generator.random(n_rows) < 1.0 / (1.0 + np.exp(-log_odds))
y = pd.Series(np.where(has_left, "left", "stayed"), name="outcome")
X.head()

# %%
# The model
# ---------
# Gradient boosting with native support for categories.

model = HistGradientBoostingClassifier(
    max_iter=60, max_leaf_nodes=8, categorical_features="from_dtype", random_state=0
)
model.fit(X[:2_000], y[:2_000])
print(f"Accuracy on the evaluation rows: {model.score(X[2_000:], y[2_000:]):.2f}")

# %%
# The explanation
# ---------------
# For a classifier, the loss is cross entropy. For mixed data, the graph is learned with a score
# for mixed data, and only samplers that can draw classes are compared.

explanation = dsage.explain(
    model,
    X[:2_000],
    y[:2_000],
    X[2_000:],
    y[2_000:],
    graph="learn",
    tolerance=0.05,
    random_state=0,
    progress=False,
)
explanation.sampler_scores.round(3)

# %%
# The values are in nats. ``contract`` and ``charge`` have no effect of their own. They have a
# value because they carry information about the tenure as long as it is not known.

explanation.plot.bar()

# %%
# The target of the learned graph is ``outcome``. The score for mixed data does not allow a number
# to be a parent of a class, so arrows point away from the classes, whatever their true direction.
# This requires additional edges, here from ``contract`` to ``outcome``. The graph therefore does
# not know that the contract is irrelevant given the tenure, which costs time but does not bias
# the values. It does know that ``region`` is irrelevant, and ``charge`` is irrelevant given the
# contract.

explanation.plot.graph()

# %%
# The numbers of evaluated and skipped surpluses, and whether skipping changes the values:

columns = ["feature", "value", "n_evaluated", "n_skipped", "audit_difference", "audit_matters"]
explanation.to_frame()[columns].round(4)
