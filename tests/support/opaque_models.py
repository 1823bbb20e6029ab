"""Models of which only the predictions are used, so that their features are drawn."""

from sklearn.linear_model import LogisticRegression


class OpaqueLogisticRegression(LogisticRegression):
    """A subclass may predict something else, so its coefficients are not read."""
