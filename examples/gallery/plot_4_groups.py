"""
Groups of features
==================

The thirty features of this data set on breast tumors are ten measurements of cell nuclei, each
with a mean, a standard error and a worst value. Which *measurements* are important? To answer
that, explain groups of features instead of single features.
"""

# %%
# The data
# --------
# The data set is part of scikit-learn. The three columns of a measurement form a group.

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
# Explain ten groups
# ------------------
# The graph is still learned for the thirty features. A group is separated from the target if all
# its members are.

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
# Interpretation
# --------------
# The value of a group is not the sum of its members' values. The members become known together, so
# they do not compete with each other, and the group takes one place in an ordering. Radius,
# perimeter and area all describe the size and share the credit for it.

columns = ["feature", "value", "se", "share", "lower_total", "upper_total", "n_skipped"]
explanation.to_frame()[columns].round(3)

# %%
# The graph does not help here. The thirty columns are almost functions of each other, so the graph
# is dense, and no group is ever separated from the target (see ``n_skipped``). The run takes as
# long as without a graph.
