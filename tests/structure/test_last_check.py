"""Tests of the last check: claims of a graph about the target that the data reject."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dsage
from dsage.data.table import Table
from dsage.graphs import Graph
from dsage.structure import last_check, search_graph
from dsage.structure.blocks import Blocks
from dsage.structure.constraints import Constraints
from dsage.structure.last_check import (
    Known,
    _known,
    _test_pairs,
    add_edges,
    covariance_test,
    reject_claims,
)


def make(n_rows=1000, seed=0, effect=1.0):
    """Return y = a^2 + noise, z = tanh(y) + noise, and two columns that have nothing to do with it."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, n_rows))
    y = effect * a**2 + rng.normal(size=n_rows)
    z = np.tanh(y) + 0.5 * rng.normal(size=n_rows)
    return pd.DataFrame({"a": a, "b": b, "c": c, "y": y, "z": z})


def blocks_of(frame):
    return Blocks.from_table(Table(frame))


def test_missing_edges_into_and_out_of_the_target_are_found():
    empty = Graph(["a", "b", "c", "y", "z"], [])
    found = reject_claims(empty, blocks_of(make()), "y")
    # Nothing tells which way the second edge points.
    assert {(each.tail, each.head) for each in found} == {("a", "y"), ("z", "y")}
    assert max(each.p_value for each in found) < 1e-6
    repaired = add_edges(empty, found)
    assert set(repaired.edges) == {("a", "y"), ("z", "y")}
    assert reject_claims(repaired, blocks_of(make()), "y") == ()
    # Given an order, an edge out of the target is found: y -> b -> z lacks y -> z.
    chain = Graph(["a", "b", "c", "y", "z"], [("a", "y"), ("y", "b"), ("b", "z")])
    found = reject_claims(chain, blocks_of(make()), "y")
    assert [(each.tail, each.head) for each in found] == [("y", "z")]


def test_residuals_are_those_of_regressions_on_the_other_folds():
    rng = np.random.default_rng(0)
    design = np.column_stack([np.ones(60), rng.normal(size=(60, 3))])
    y = rng.normal(size=(60, 2))
    left = Known(np.linalg.qr(design)[0], 5).residuals(y)
    for fold in range(5):
        inside = np.arange(60) % 5 == fold
        slopes = np.linalg.lstsq(design[~inside], y[~inside], rcond=None)[0]
        np.testing.assert_allclose(left[inside], y[inside] - design[inside] @ slopes, atol=1e-10)


def test_a_level_of_a_single_fold_has_no_residuals_of_its_own():
    rng = np.random.default_rng(0)
    rare = np.zeros(60)
    rare[0] = 1.0
    design = np.column_stack([np.ones(60), rare])
    left = Known(np.linalg.qr(design)[0], 5).residuals(rng.normal(size=(60, 1)))
    assert abs(left[0, 0]) < 1e-8
    assert np.abs(left).max() < 10


@pytest.mark.parametrize("n_folds", [0, 5])
def test_a_missing_edge_is_found_with_and_without_folds(n_folds):
    empty = Graph(["a", "b", "c", "y", "z"], [])
    found = reject_claims(empty, blocks_of(make()), "y", n_folds=n_folds)
    assert {(each.tail, each.head) for each in found} == {("a", "y"), ("z", "y")}


def test_a_true_graph_is_rarely_changed():
    true = Graph(["a", "b", "c", "y", "z"], [("a", "y"), ("y", "z")])
    changed = [bool(reject_claims(true, blocks_of(make(seed=seed)), "y")) for seed in range(100)]
    # One percent, with a binomial standard error of one percent.
    assert np.mean(changed) <= 0.04


def test_products_of_parents_and_unequal_spread_are_no_reason():
    def rejects(seed):
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(2, 2000))
        y = a * b + np.exp(0.5 * a) * rng.normal(size=2000)
        other = a * b + a + rng.normal(size=2000)
        frame = pd.DataFrame({"a": a, "b": b, "other": other, "y": y})
        edges = [("a", "other"), ("b", "other"), ("a", "y"), ("b", "y")]
        return bool(reject_claims(Graph(list(frame), edges), blocks_of(frame), "y"))

    assert sum(rejects(seed) for seed in range(30)) <= 2


def test_classes_are_tested_too():
    frame = make()
    frame["k"] = np.where(frame["a"] > 0.3, "u", "v")
    empty = Graph(list(frame), [])
    found = {(each.tail, each.head) for each in reject_claims(empty, blocks_of(frame), "k")}
    assert ("a", "k") in found
    assert ("b", "k") not in found


def test_forbidden_edges_are_not_put_back():
    frame = make()
    constraints = Constraints(tuple(frame), forbidden=[("a", "y")])
    found = reject_claims(Graph(list(frame), []), blocks_of(frame), "y", constraints)
    assert [(each.tail, each.head) for each in found] == [("z", "y")]


def test_a_search_tells_what_it_put_back():
    # The penalty is so large that the search finds nothing.
    frame = make()
    plain = search_graph(frame, score="basis", penalty=1e6)
    assert plain.graph.edges == ()
    checked = search_graph(frame, score="basis", penalty=1e6, target="y")
    assert {(each.tail, each.head) for each in checked.rejections} == set(checked.graph.edges)
    assert len(checked.rejections) == 2


def test_scores_of_other_kinds_are_checked_too():
    graph = dsage.learn_graph(make(), score="ebic", target="y")
    assert ("a", "y") in graph.edges
    with pytest.raises(ValueError, match="target"):
        dsage.learn_graph(make(), target="why")


def test_explain_tells_it():
    frame = make(400, effect=0.6)
    X, y = frame.drop(columns="y"), frame["y"]
    found = dsage.explain(
        lambda rows: rows["a"] ** 2, X[:300], y[:300], X[300:], y[300:], sampler="gaussian",
        n_orderings=4, sampler_check=False, random_state=0, progress=False,
    )  # fmt: skip
    assert found.choices.graph.restored is not None
    assert found.choices.graph.score == "basis"
    assert found.choices.graph.curved


def test_steep_functions_of_the_parents_are_no_reason():
    # Steps of a widely spread cause, which polynomials do not follow, are in two effects.
    def rejects(seed):
        rng = np.random.default_rng(seed)
        a = 10 * rng.normal(size=2000)
        step = 3 * np.tanh(a) - 2 * np.tanh(a - 5)
        y, other = step + rng.normal(size=(2, 2000))
        frame = pd.DataFrame({"a": a, "other": other, "y": y})
        graph = Graph(list(frame), [("a", "other"), ("a", "y")])
        return bool(reject_claims(graph, blocks_of(frame), "y"))

    assert sum(rejects(seed) for seed in range(10)) <= 1


def test_many_parents_are_all_known():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 9))
    other = X[:, 8] + 0.3 * rng.normal(size=500)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(9)])
    frame["other"], frame["y"] = other, X.sum(axis=1) + 0.3 * rng.normal(size=500)
    edges = [(f"x{k}", "y") for k in range(9)]
    graph = Graph(list(frame), [*edges, ("x8", "other")])
    assert reject_claims(graph, blocks_of(frame), "y") == ()


@pytest.mark.parametrize("is_class", [False, True])
def test_variables_that_matter_only_together_are_found(is_class):
    rng = np.random.default_rng(0)
    a, b, c, d = rng.normal(size=(4, 800))
    y = a * b + 0.5 * c + 0.5 * rng.normal(size=800)
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "y": y})
    if is_class:
        frame["y"] = np.where(y > 0, "yes", "no")
    graph = Graph(list("abcdy"), [("c", "y")])
    found = reject_claims(graph, blocks_of(frame), "y")
    assert {(each.tail, each.head) for each in found} == {("a", "y"), ("b", "y")}


def test_exclusive_or_of_classes_is_found():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, size=(2, 800))
    y = np.where(rng.random(800) < 0.2, 1 - (a ^ b), a ^ b)
    frame = pd.DataFrame({"a": a, "b": b, "y": y}).astype(str)
    found = reject_claims(Graph(list("aby"), []), blocks_of(frame), "y")
    assert {each.tail for each in found} == {"a", "b"}


def test_two_effects_of_the_same_causes_are_not_joined():
    # The normal score of a sum of two functions is no such sum: it is not what is tested.
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 8000))
    y = 2 * np.tanh(2 * a) + 2 * np.tanh(2 * b) + 0.3 * rng.normal(size=8000)
    other = 2 * np.tanh(2 * a) + 2 * np.tanh(2 * b) + 0.3 * rng.normal(size=8000)
    frame = pd.DataFrame({"a": a, "b": b, "other": other, "y": y})
    edges = [("a", "other"), ("b", "other"), ("a", "y"), ("b", "y")]
    assert reject_claims(Graph(list(frame), edges), blocks_of(frame), "y") == ()


def test_functions_of_parents_and_products_of_two_are_known():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1000, 3)), columns=list("abc"))
    blocks = blocks_of(frame)
    widths = blocks.widths.tolist()
    for parents in ([], [0], [0, 2], [0, 1, 2]):
        n_pairs = len(parents) * (len(parents) - 1) // 2
        n_known = 1 + sum(widths[each] for each in parents) + n_pairs
        basis = _known(blocks, parents, 0).basis
        assert basis.shape == (1000, n_known)
        np.testing.assert_allclose(basis.T @ basis, np.eye(n_known), atol=1e-9)
    # At most a column for ten rows.
    few = blocks_of(frame[:120])
    assert _known(few, [0, 1, 2], 0).basis.shape[1] <= 12


def test_the_effect_of_a_class_has_the_probability_of_its_test():
    rng = np.random.default_rng(0)
    level = rng.integers(3, size=600)
    frame = pd.DataFrame({"c": np.array(list("abc"))[level], "y": level**2 + rng.normal(size=600)})
    blocks = blocks_of(frame)
    (found,) = reject_claims(Graph(["c", "y"], []), blocks, "y")
    own = blocks.sample[:, blocks.responses[:, 1]]
    spread = ((own - own.mean(axis=0)) ** 2).mean(axis=0)
    response = own[:, [int((blocks.offsets[:, 1] - 300 * np.log(spread)).argmax())]]
    centered = [
        each - each.mean(axis=0) for each in (response, blocks.sample[:, blocks.columns(0)])
    ]
    # A constant was regressed on.
    assert found.p_value == pytest.approx(covariance_test(*centered, 1 - 1 / 600), rel=1e-6)


def test_products_are_tested_at_the_level_over_their_number(monkeypatch):
    rng = np.random.default_rng(1)
    a, b, c = rng.normal(size=(3, 400))
    kind = rng.choice(list("uvw"), size=400)
    y = 0.3 * a * b + c + rng.normal(size=400)
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "kind": kind, "y": y})
    blocks = blocks_of(frame)
    # The target given c: a and b, each with c, with two indicators, and a with b; c with those.
    n_products = 3 + 2 * 3
    known = _known(blocks, [2], 0)
    monkeypatch.setattr(last_check, "_LEVEL", 1.0 * n_products)
    smallest = {
        each.tail: each.p_value for each in _test_pairs(blocks, 4, [2], ["a", "b", "kind"], known)
    }
    assert smallest["a"] == smallest["b"]
    for factor, tails in ((1.001, {"a", "b"}), (0.999, set())):
        monkeypatch.setattr(last_check, "_LEVEL", factor * n_products * smallest["a"])
        found = _test_pairs(blocks, 4, [2], ["a", "b", "kind"], known)
        assert {each.tail for each in found} == tails


@pytest.mark.parametrize(("n_rows", "most"), [(9, 1), (15, 1), (20, 2), (39, 3), (200, 20)])
@pytest.mark.parametrize("stepped", [False, True])
def test_regressions_have_a_column_for_ten_rows_at_most(n_rows, most, stepped):
    rng = np.random.default_rng(0)
    blocks = blocks_of(pd.DataFrame(rng.normal(size=(n_rows, 4)), columns=list("abcd")))
    basis = _known(blocks, [0, 1, 2], 0, stepped=stepped).basis
    assert 1 <= basis.shape[1] <= most
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-9)
    # The constant is among what they span.
    np.testing.assert_allclose(basis @ basis.sum(axis=0), 1.0, atol=1e-7)
    assert basis.shape[1] == min(most, 16)


@pytest.mark.parametrize(("room", "n_steps"), [(3, 0), (4, 1), (8, 2), (40, 10), (1000, 64)])
def test_steps_are_between_evenly_spaced_quantiles_of_the_numbers(room, n_steps):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "b": rng.exponential(size=300)})
    frame["c"] = rng.choice(["u", "v"], 300)
    blocks = blocks_of(frame)
    made = last_check._steps(blocks, [0, 1, 2], room)
    # The class has none, and two numbers share half of the room.
    assert len(made) == 2
    for column, steps in zip((frame["a"], frame["b"]), made, strict=True):
        assert steps.shape == (300, max(0, n_steps - 1))
        limits = np.quantile(column, np.arange(1, n_steps) / max(1, n_steps))
        interval = (column.to_numpy()[:, None] > limits).sum(axis=1)
        expected = interval[:, None] == np.arange(1, n_steps)
        # Responses are in single precision, so that values at a limit may change sides.
        assert (steps != expected).sum() <= 2 * n_steps
