"""When a graph that nobody asked for is used."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import dsage
from dsage import Graph
from dsage._check import GraphWarning
from dsage._random import Streams
from dsage.estimate.graph_use import measure_use
from dsage.estimate.options import PlanOptions
from dsage.graphs import NoSeparation
from dsage.orderings import as_orderings
from dsage.structure.info import GraphSource
from explain_case import QUIET, chain

CHAIN = Graph(list("abcdy"), [("a", "b"), ("b", "c"), ("c", "d"), ("d", "y")])
LONG_CHAIN = Graph(list("abcdefy"), list(zip("abcdef", "bcdefy", strict=True)))
FORK = Graph(list("abcdy"), [("a", "y"), ("b", "y"), ("c", "y"), ("d", "y")])
# Only a and c are separated, and only once b is known.
NEARLY = Graph(list("abcdey"), [("a", "b"), ("c", "b"), ("b", "y"), ("d", "y"), ("e", "y")])


def use_of(graph, **options):
    return measure_use(graph.oracle("y"), PlanOptions(random_state=0, **options))


@pytest.mark.parametrize("semantics", ["boundary", "skip"])
def test_a_chain_pays_and_a_fork_saves_nothing(semantics):
    assert use_of(LONG_CHAIN, semantics=semantics).pays
    assert use_of(FORK, semantics=semantics) == (0.0, 1.0, False)


def test_boundaries_pay_up_to_one_for_three_coalitions_and_skipping_sooner():
    boundary, skip = (use_of(NEARLY, semantics=each) for each in ("boundary", "skip"))
    assert 1 / 3 < boundary.share_evaluated < 1.0
    assert not boundary.pays
    assert boundary.share_evaluated < skip.share_evaluated < 0.95
    assert skip.pays
    # The same orderings, so the same separations.
    assert boundary.share_skipped == skip.share_skipped > 0.0


def test_the_shares_are_those_of_the_orderings_of_the_run():
    orders = [tuple("abcd"), tuple("dcba")]
    options = PlanOptions(orderings=orders, random_state=0)
    found = measure_use(CHAIN.oracle("y"), options)
    # Forwards each feature is the boundary of those before it, and nothing is separated; backwards d
    # separates the three others. Of nine coalitions, the boundaries are {}, a, b, c and d.
    assert found == (3 / 8, 5 / 8, False)
    skipping = measure_use(
        CHAIN.oracle("y"), PlanOptions(orderings=orders, semantics="skip", random_state=0)
    )
    # Without dc and dcb.
    assert skipping == (3 / 8, 6 / 8, True)


def test_an_oracle_that_separates_everything_needs_one_coalition():
    apart = Graph(list("aby"), [])
    assert use_of(apart, semantics="skip") == (1.0, 0.0, True)
    assert use_of(apart).share_evaluated < 0.5


def test_nothing_is_saved_without_separations():
    assert not measure_use(NoSeparation(list("abc")), PlanOptions(random_state=0)).pays


# --- explain


def fork_rows(n_rows=300):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, 4)), columns=list("abcd"))
    return X, pd.Series(X.sum(axis=1) + 0.3 * rng.normal(size=n_rows), name="y")


def explain(rows, **options):
    X, y = rows
    model = LinearRegression().fit(X, y)
    split = (X[:200], y[:200], X[200:], y[200:])
    options = {"n_resamples": 0, **QUIET, **options}
    return dsage.explain(model, *split, sampler="gaussian", **options)


def test_a_learned_graph_that_pays_is_used():
    found = explain(chain())
    graph = found.choices.graph
    assert graph.is_used
    assert graph.why is None
    assert found.estimate.estimand == "d-sage"
    assert found.share_skipped > 0.2
    assert graph.share_skippable == pytest.approx(found.share_skipped, abs=0.2)
    assert found.estimate.audit is not None


def test_a_learned_graph_that_does_not_pay_is_shown_and_not_used():
    found, plain = explain(fork_rows()), explain(fork_rows(), graph=None)
    graph = found.choices.graph
    assert (graph.source, graph.is_used) == (GraphSource.LEARNED, False)
    assert graph.why.startswith("learned, not used: 0% of the surpluses could be skipped")
    assert found.graph is not None
    assert found.estimate.audit is None
    np.testing.assert_array_equal(found.values, plain.values)
    assert f"graph: {graph.why}" in str(found)
    assert plain.choices.graph.is_used is None
    assert "graph:" not in str(plain)


@pytest.mark.parametrize(
    "graph", ["learn", FORK, FORK.oracle("y")], ids=["learn", "graph", "oracle"]
)
def test_a_graph_that_is_asked_for_is_used_even_if_it_does_not_pay(graph):
    found = explain(fork_rows(), graph=graph)
    assert found.choices.graph.is_used
    assert found.choices.graph.why is None
    assert found.choices.graph.share_evaluated == 1.0
    assert found.estimate.audit is not None


def test_sage_values_need_no_learned_graph():
    found = explain(chain(), estimand="sage", n_resamples=None)
    assert found.graph is None
    assert found.choices.graph.source is GraphSource.NONE
    assert "fastest without" in found.choices.graph.why
    asked = explain(chain(), estimand="sage", graph="learn")
    assert asked.choices.graph.is_used
    assert asked.estimate.estimand == "sage"


@pytest.mark.parametrize("kind", ["uniform", "antithetic", "stratified"])
@pytest.mark.parametrize("graph", [CHAIN, LONG_CHAIN, NEARLY], ids=["chain", "long", "nearly"])
def test_shares_are_those_of_coalitions_one_by_one(graph, kind):
    oracle = graph.oracle("y")
    names = tuple(oracle.feature_names)
    made = as_orderings(kind, names, Streams(0))
    # Batches with eight orderings in all, or just above.
    orders = [o for at in range(math.ceil(8 / made.batch_size)) for o in made.batch(at).tolist()]
    seen, boundaries, skipping, n_skipped = set(), set(), set(), 0
    for order in orders:
        known = np.array([np.isin(np.arange(len(names)), order[:k]) for k in range(len(names) + 1)])
        seen |= set(map(bytes, known))
        boundaries |= set(map(bytes, oracle.boundary(known)))
        for at, feature in enumerate(order):
            if oracle.separated(known[at : at + 1])[0, feature]:
                n_skipped += 1
            else:
                skipping |= {bytes(known[at]), bytes(known[at + 1])}
    share = n_skipped / len(orders) / len(names)
    for semantics, needed in (("boundary", boundaries), ("skip", skipping)):
        found = use_of(graph, semantics=semantics, orderings=kind)
        assert found.share_skipped == pytest.approx(share)
        assert found.share_evaluated == pytest.approx(len(needed) / len(seen))
        most = 1 / 3 if semantics == "boundary" else 0.95
        assert found.pays == (found.share_evaluated <= most)


def unrelated():
    """Rows whose target no feature explains, and a tree that has learned them by heart."""
    rng = np.random.default_rng(10)
    X, y = pd.DataFrame(rng.normal(size=(400, 4)), columns=list("abcd")), rng.normal(size=400)
    return DecisionTreeRegressor(random_state=0).fit(X[:250], y[:250]), X, y


def test_a_graph_that_separates_all_features_is_not_used_by_itself():
    model, X, y = unrelated()
    rows = X[:250], y[:250], X[250:], y[250:]
    options = {"sampler": "gaussian", "random_state": 0, "progress": False, "keep_losses": True}
    found = dsage.explain(model, *rows, sampler_check=False, **options)
    graph = found.choices.graph
    assert not graph.is_used
    assert graph.share_skippable == 1.0
    assert "all values would be zero by assumption" in graph.why
    # What the tree has learned by heart does harm, and that is seen.
    gain = found.row_losses["gain"].mean()
    assert gain < -0.5
    assert found.values.sum() == pytest.approx(gain, abs=4 * np.sqrt((found.se**2).sum()))


def test_a_given_graph_that_separates_all_features_warns():
    model, X, y = unrelated()
    rows = X[:250], y[:250], X[250:], y[250:]
    options = {"sampler": "gaussian", "random_state": 0, "progress": False}
    options["sampler_check"] = False
    empty = Graph([*"abcd", "y"], [])
    with pytest.warns(GraphWarning, match=r"zero by assumption.*estimand='sage'"):
        found = dsage.explain(model, *rows, graph=empty, target="y", **options)
    np.testing.assert_array_equal(found.values, 0.0)
