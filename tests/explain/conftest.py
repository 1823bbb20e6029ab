import pytest
from sklearn.linear_model import LinearRegression

import dsage
from explain_case import QUIET, chain


@pytest.fixture(scope="module")
def rows():
    X, y = chain()
    return X[:200], y[:200], X[200:], y[200:]


@pytest.fixture(scope="module")
def model(rows):
    return LinearRegression().fit(*rows[:2])


@pytest.fixture(scope="module")
def explanation(model, rows):
    return dsage.explain(model, *rows, sampler="gaussian", **QUIET)
