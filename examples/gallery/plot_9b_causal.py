"""
Observed or set: four kinds of values for one model
===================================================

An ice cream stand predicts its sales. On warm days more visitors come to the park, and visitors
buy ice cream. A thermometer shows the temperature. Four kinds of values answer four questions about
the same model, and they disagree.
"""

# %%
# A world that we know
# --------------------
# Temperature acts on sales through visitors only. The thermometer acts on nothing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

import dsage
from dsage.orderings import Order

rng = np.random.default_rng(0)
temperature = rng.normal(size=3000)
thermometer = temperature + 0.3 * rng.normal(size=3000)
visitors = 0.9 * temperature + 0.5 * rng.normal(size=3000)
sales = pd.Series(visitors + 0.5 * rng.normal(size=3000), name="sales")
X = pd.DataFrame({"temperature": temperature, "thermometer": thermometer, "visitors": visitors})
rows = X[:2000], sales[:2000], X[2000:], sales[2000:]
model = LinearRegression().fit(*rows[:2])
dict(zip(X.columns, model.coef_.round(2), strict=True))

# %%
# The model uses the visitors, and hardly anything else. We know the graph:

graph = dsage.Graph(
    [*X.columns, "sales"],
    [("temperature", "thermometer"), ("temperature", "visitors"), ("visitors", "sales")],
)
options = {"sampler_check": False, "random_state": 0, "progress": False}

# %%
# Marginal: which features does the model use?
# --------------------------------------------
# Unknown features are drawn regardless of the known ones, so a feature matters only if the model
# uses it. The answer is about the formula, not about the park.

marginal = dsage.explain(model, *rows, sampler="marginal", **options)

# %%
# Conditional: how much can the model learn from a feature?
# ---------------------------------------------------------
# These are SAGE values. The thermometer tells us how warm it is, and how many visitors to expect.
# So it has a value, although the model ignores it and it causes nothing.

conditional = dsage.explain(model, *rows, estimand="sage", sampler="gaussian", **options)

# %%
# Asymmetric: what does a feature add to the information in its causes?
# ---------------------------------------------------------------------
# Only orderings in which causes come before effects count. The thermometer adds nothing to the
# temperature. Credit moves to the root causes.

order = Order(X.columns, [("temperature", "thermometer"), ("temperature", "visitors")])
asymmetric = dsage.explain(
    model, *rows, estimand="sage", sampler="gaussian", orderings=order, **options
)

# %%
# Causal: how much do predictions improve when a feature is set?
# ---------------------------------------------------------------
# A known feature is *set* to its value: its effects change, its causes do not. Setting the
# temperature brings visitors. Setting the thermometer does not warm the park.

causal = dsage.explain(model, *rows, estimand="causal", graph=graph, sampler="gaussian", **options)
causal

# %%
# Side by side
# ------------

frames = {"marginal": marginal, "conditional": conditional, "asymmetric": asymmetric}
frames["causal"] = causal
table = pd.DataFrame({name: pd.Series(each.values, X.columns) for name, each in frames.items()})
table.round(3)

# %%

ax = table.T.plot.barh(figsize=(6.5, 3.2), width=0.75)
ax.invert_yaxis()
ax.set_xlabel("value (reduction of squared error)")
ax.spines[["top", "right", "left"]].set_visible(False)
plt.tight_layout()

# %%
# The sums are nearly the same: each kind divides the same reduction of the risk. Which one is
# right depends on the question:
#
# - *Which inputs does this formula use?* Marginal: the visitors.
# - *Which measurements are worth having?* Conditional: each is informative about the others.
# - *Where does the information enter?* Asymmetric: with the temperature.
# - *What would change the predictions if we could control it?* Causal: the visitors themselves, and
#   the temperature through them; the thermometer, never.
#
# Direct and indirect parts
# -------------------------
# Causal values have two parts. The direct part comes from the value that the model receives, the
# indirect part from the other features that change when the feature is set.

causal.plot.parts()

# %%
# If the graph is learned
# -----------------------
# Data cannot determine the direction between temperature and thermometer: both graphs imply the
# same independences. dsage computes the values for all directions that fit the data, and warns if
# the sign or the rank of a value depends on them.

learned = dsage.explain(
    model, *rows, estimand="causal", graph="learn", sampler="gaussian", **options
)
learned.plot.graph_range()

# %%
# Prior knowledge helps. A thermometer is not a cause of the temperature, and neither sales nor
# visitors change the weather:

known = dsage.explain(
    model,
    *rows,
    estimand="causal",
    graph="learn",
    tiers=[["temperature"], ["thermometer", "visitors"], ["sales"]],
    sampler="gaussian",
    **options,
)
known
