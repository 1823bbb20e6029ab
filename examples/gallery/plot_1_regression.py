"""
A regression, from data to report
=================================

What does a model of diabetes progression owe to each of its features? Ten measurements of 442
patients, and how far the disease had progressed a year later. It is the data set that comes
with scikit-learn.
"""

# %%
# A model, and rows that it was not fitted to
# -------------------------------------------
# A third of the rows is kept for the evaluation: values from rows that the model has seen tell
# how well it remembers, not how well it predicts.

from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

import dsage

X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0)
model = RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(X_train, y_train)
print(f"R2 on the evaluation rows: {model.score(X_test, y_test):.2f}")

# %%
# One call
# --------
# A graph is learned, samplers are scored and one is chosen, and d-SAGE values are estimated
# until the largest standard error is 3 % of the range. (The default is 1 %, which takes
# longer.)

explanation = dsage.explain(
    model,
    X_train,
    y_train,
    X_test,
    y_test,
    tolerance=0.03,
    random_state=0,
    progress=False,
)
explanation

# %%
# The ranking
# -----------
# A value is the squared error that a feature takes away, averaged over all orderings in which
# features may become known. The narrow intervals are for these evaluation rows: more computing
# makes them narrower. The wide ones are for the population: 148 rows are few, and only more
# rows help.

explanation.plot.bar()

# %%
# The same as a frame, with all that is known about each feature:

explanation.to_frame().round(3)

# %%
# The graph behind it
# -------------------
# What it separates from the target was not evaluated. Its arrows are no claim about causes:
# graphs with the same separations are the same to d-SAGE.

explanation.plot.graph()

# %%
# The audit
# ---------
# d-SAGE equals SAGE if the model is optimal and the graph is right. A forest fitted to 294 rows
# is not, so the difference is estimated, feature by feature.

explanation.plot.audit()

# %%
# What was chosen
# ---------------

explanation.choices

# %%
# And to keep it: ``explanation.report("report.html")`` writes a page that works offline, and
# ``explanation.save("run.dsage")`` a file that :func:`dsage.load` reads.
