"""
Selecting features in a pipeline
================================

Which measurements does a model of the progression of diabetes need? A selector finds those that
help significantly, inside a pipeline of scikit-learn.
"""

# %%
# Ten measurements, and five of noise
# -----------------------------------

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dsage

X, y = load_diabetes(return_X_y=True, as_frame=True)
noise = np.random.default_rng(0).normal(size=(len(X), 5))
X = X.join(pd.DataFrame(noise, columns=[f"noise {number}" for number in range(1, 6)]))
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 4, random_state=0)

# %%
# Select and fit
# --------------
# The selector divides the training rows once more: it fits the model to one part and explains it
# on the other, which the model has not seen. An explainer holds the options of the explanation.

explainer = dsage.Explainer(graph=None, sampler="gaussian", progress=False)
selector = dsage.FeatureSelector(
    LinearRegression(), test_size=0.5, explainer=explainer, random_state=0
)
pipeline = make_pipeline(StandardScaler(), selector, LinearRegression())
pipeline.set_output(transform="pandas").fit(X_train, y_train)
print("Selected:", ", ".join(pipeline[:-1].get_feature_names_out()))

# %%
# No noise is among them. The thin intervals of the selected features are above zero, even if we
# account for the number of features.

explanation = pipeline["featureselector"].explanation_
explanation.plot.bar()

# %%
# What the selection costs
# ------------------------
# With a third of the features, the model explains somewhat less of the variance of rows that
# neither model has seen. A feature that is not *significantly* useful may still be useful: with
# more rows the selector would find more of them, and ``k=8`` would select eight in any case.

everything = make_pipeline(StandardScaler(), LinearRegression()).fit(X_train, y_train)
scores = pd.Series(
    {"all 15": everything.score(X_test, y_test), "selected": pipeline.score(X_test, y_test)},
    name="R2",
)
scores.round(3)
