"""
Groups of features
==================

Thirty features of breast tumours are ten measurements of cell nuclei, each as a mean, an error
and a worst value. Which *measurement* matters? Groups of features can be the players, in place
of the features.
"""

# %%
# The data
# --------
# It comes with scikit-learn. The three columns of a measurement make a group.

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dsage

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
measurements = [name.removeprefix("mean ") for name in X.columns if name.startswith("mean ")]
groups = {each: [f"mean {each}", f"{each} error", f"worst {each}"] for each in measurements}
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(X_train, y_train)
print(f"Accuracy on the evaluation rows: {model.score(X_test, y_test):.2f}")

# %%
# Ten players
# -----------
# The graph is still learned over the thirty features. A group is separated from the target if
# all its members are.

explanation = dsage.explain(
    model,
    X_train,
    y_train,
    X_test,
    y_test,
    groups=groups,
    sampler="gaussian",
    tolerance=0.05,
    random_state=0,
    progress=False,
)
explanation.plot.bar()

# %%
# How to read it
# --------------
# A group's value is not the sum of its members' values. Its members become known together, so
# they do not compete with each other, and against the others they have one vote. Sizes are told
# by radius, perimeter and area alike: the three share the credit for that.

columns = ["feature", "value", "se", "share", "lower_total", "upper_total", "n_skipped"]
explanation.to_frame()[columns].round(3)

# %%
# The graph is of no help here. Thirty columns that are nearly functions of each other make a dense
# one, and no group is ever separated from the target, as ``n_skipped`` says. The run costs what it
# would cost without a graph.
