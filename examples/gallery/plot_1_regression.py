"""
A regression, from data to report
=================================

How important is each feature for a model that predicts the progression of diabetes? The data
set from scikit-learn has ten measurements of 442 patients, and a measure of disease progression
one year later.
"""

# %%
# Fit a model and hold out rows
# -----------------------------
# We hold out a third of the rows for the evaluation, because on training rows the values would
# describe how well the model remembers, not how well it predicts.

from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

import dsage

X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0)
model = RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(X_train, y_train)
print(f"R2 on the evaluation rows: {model.score(X_test, y_test):.2f}")

# %%
# Explain it
# ----------
# One call learns a graph, chooses the sampler with the best score, and estimates d-SAGE values
# until the largest standard error is 3 % of the range of the values. By default a graph is used
# only where it saves evaluations. Here it separates little, so we ask for it, to show what it does.

explanation = dsage.explain(
    model,
    X_train,
    y_train,
    X_test,
    y_test,
    graph="learn",
    tolerance=0.03,
    random_state=0,
    progress=False,
)
explanation

# %%
# The ranking
# -----------
# A value is the reduction of the squared error when a feature becomes known, averaged over all
# orderings of the features. The narrow intervals refer to these evaluation rows; more computation
# makes them narrower. The wide ones refer to the population; with only 148 rows, they shrink only
# with more rows.

explanation.plot.bar()

# %%
# The data frame has all results for each feature:

explanation.to_frame().round(3)

# %%
# The graph
# ---------
# Surpluses of features that the graph separates from the target were skipped. The arrows need not
# be causal: for d-SAGE, graphs with the same separations are equivalent.

explanation.plot.graph()

# %%
# The audit
# ---------
# d-SAGE equals SAGE if the model is optimal and the graph is correct. A forest fitted to 294 rows
# is not optimal, so the audit estimates the difference for each feature.

explanation.plot.audit()

# %%
# Automatic choices
# -----------------

explanation.choices

# %%
# To keep the results, write an HTML report that works offline with
# ``explanation.report("report.html")``, or save the explanation with
# ``explanation.save("run.dsage")`` and load it with :func:`dsage.load`.
