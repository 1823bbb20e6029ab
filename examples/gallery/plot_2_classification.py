"""
Classification with numbers and classes
=======================================

Customers who leave: simulated, so that we know what is true. Some columns are numbers, others
are classes; the model takes them as they are, and so does everything else.
"""

# %%
# The data
# --------
# The contract decides what is paid and how long customers stay. A short time with the company
# and calls to support make them leave; what is paid has no effect of its own. The region has
# nothing to do with anything.

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
# Gradient boosting that takes categories as categories.

model = HistGradientBoostingClassifier(
    max_iter=60, max_leaf_nodes=8, categorical_features="from_dtype", random_state=0
)
model.fit(X[:2_000], y[:2_000])
print(f"Accuracy on the evaluation rows: {model.score(X[2_000:], y[2_000:]):.2f}")

# %%
# The explanation
# ---------------
# It is a classifier, so the loss is cross entropy. The columns are mixed, so the graph is
# learned with a score for mixed data, and only samplers that draw classes are tried.

explanation = dsage.explain(
    model,
    X[:2_000],
    y[:2_000],
    X[2_000:],
    y[2_000:],
    tolerance=0.05,
    random_state=0,
    progress=False,
)
explanation.sampler_scores.round(3)

# %%
# The values are in nats. ``contract`` and ``charge`` have no effect of their own. They have a
# value because they tell about the time with the company while that is not known.

explanation.plot.bar()

# %%
# The learned graph, where the target is ``outcome``. In a score for mixed data no number can be a
# cause of a class, so arrows point away from the classes, whatever the truth is. To say the same
# with such arrows it takes edges more, here from ``contract`` to ``outcome``. So it is missed that
# the contract tells nothing once the tenure is known, which costs time, not truth. That
# ``region`` tells nothing, and ``charge`` nothing beyond the contract, is found.

explanation.plot.graph()

# %%
# What is skipped, and whether that changes anything:

columns = ["feature", "value", "n_evaluated", "n_skipped", "audit_difference", "audit_matters"]
explanation.to_frame()[columns].round(4)
