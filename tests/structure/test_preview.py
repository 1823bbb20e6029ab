import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import dsage
from dsage.data.inputs import check_inputs
from dsage.structure import preview as module
from dsage.structure import search_graph
from dsage.structure.info import GraphSource
from dsage.structure.preview import preview_oracle


def chain(n_features=20, n_rows=400, share_missing=0.0):
    """Return rows of a chain that ends in the target: all but one feature are separated by it."""
    generator = np.random.default_rng(0)
    columns = [generator.normal(size=n_rows)]
    for _ in range(n_features):
        columns.append(0.8 * columns[-1] + 0.6 * generator.normal(size=n_rows))
    X = pd.DataFrame({f"x{at}": column for at, column in enumerate(columns[:-1])})
    if share_missing:
        X = X.mask(generator.random(X.shape) < share_missing)
    return X, pd.Series(columns[-1], name="y")


def crowd(n_features=20, n_rows=400):
    """Return features that all act on the target: nothing is separated."""
    generator = np.random.default_rng(0)
    X = pd.DataFrame(generator.normal(size=(n_rows, n_features))).add_prefix("x")
    return X, (X.sum(axis=1) + generator.normal(size=n_rows)).rename("y")


def preview(X, y):
    return preview_oracle(check_inputs(X, y, X, y), seed=0)


def test_linear_separations_are_found():
    X, y = chain()
    known = np.zeros((1, 20), bool)
    known[0, -1] = True
    separated = preview(X, y).separated(known)[0]
    assert separated[:-1].mean() > 0.8
    assert not preview(*crowd()).separated(known)[0, :-1].any()


def test_with_many_columns_a_tabu_search_tells_them(monkeypatch):
    X, y = chain()
    known = np.zeros((1, 20), bool)
    known[0, -1] = True
    methods = []

    def search(*args, method, **options):
        methods.append(method)
        return search_graph(*args, method=method, **options)

    monkeypatch.setattr(module, "search_graph", search)
    for many in (200, 10):
        monkeypatch.setattr(module, "_MANY_COLUMNS", many)
        assert preview(X, y).separated(known)[0, :-1].mean() > 0.8
    assert methods == ["auto", "tabu"]


@pytest.mark.parametrize("classes", [["no", "yes"], [False, True], ["a", "b"]])
def test_classes_missing_values_and_constants_are_looked_at(classes):
    X, y = chain(share_missing=0.1)
    X["always"], X["never"] = 1.0, np.nan
    X["kind"] = pd.Categorical(np.where(X["x19"] > 0, "high", "low"))
    labels = pd.Series(np.array(classes)[(y > 0).astype(int)], name="y")
    oracle = preview(X, labels)
    nothing = np.zeros((1, X.shape[1]), bool)
    separated = dict(zip(X.columns, oracle.separated(nothing)[0], strict=True))
    assert not separated["x19"]
    assert separated["always"]
    assert separated["never"]


def explain(X, y, **options):
    model = LinearRegression().fit(X, y)
    return dsage.explain(
        model, X, y, X, y, sampler="gaussian", sampler_check=False, random_state=0, n_orderings=4,
        progress=False,
        **options,
    ).choices.graph  # fmt: skip


def test_no_graph_is_learned_where_next_to_nothing_is_separated():
    found = explain(*crowd())
    assert found.source is GraphSource.NONE
    assert found.is_used is False
    assert "100% of the coalitions" in found.why
    # Who asks for a graph gets one.
    assert explain(*crowd(), graph="learn").source is GraphSource.LEARNED


def test_a_graph_is_learned_where_it_may_pay():
    assert explain(*chain()).source is GraphSource.LEARNED
    # Of few features, always.
    assert explain(*crowd(n_features=5)).source is GraphSource.LEARNED
