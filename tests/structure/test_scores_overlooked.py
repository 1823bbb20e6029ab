"""Tests of the edges that a search overlooks with few rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

import dsage
from dsage.data.table import Table
from dsage.structure.blocks import Blocks
from dsage.structure.scores.basis import BasisScore
from dsage.structure.scores.logistic import LogisticRegressions
from dsage.structure.scores.noise import density_slopes
from dsage.structure.scores.overlooked import OverlookedEdges, _cauchy, _nested, _of_sizes, _without
from dsage.structure.searches.ordered import _parents

EVERYWHERE = np.ones((20, 20), dtype=np.bool_)


def overlooked(frame, parents, order, **options):
    """Return the parents that are added to each column."""
    table = Table(frame)
    score = BasisScore(table, Blocks.from_table(table), target=options.pop("target", None))
    place = {name: node for node, name in enumerate(score.names)}
    given = [tuple(sorted(place[each] for each in parents.get(name, ()))) for name in frame]
    allowed = options.pop("allowed", EVERYWHERE[: len(place), : len(place)])
    after = score.overlooked(
        given, [place[name] for name in order], allowed, options.pop("max_parents", 10)
    )
    return {
        name: {score.names[at] for at in set(after[node]) - set(given[node])}
        for name, node in place.items()
        if set(after[node]) != set(given[node])
    }


def skewed_noise(rng, n_rows):
    return rng.gamma(2.0, 1.0, n_rows) - 2.0


def make(seed=0, n_rows=1000, shift=0.25):
    """Return a number that a class shifts by too little for least squares, and a class of three."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n_rows)
    x, other = rng.normal(size=(2, n_rows))
    y = np.sin(2 * x) + shift * kind + 0.6 * skewed_noise(rng, n_rows)
    return pd.DataFrame({"kind": kind.astype(str), "x": x, "other": other, "y": y})


def test_a_small_shift_of_skewed_noise_is_found():
    found = [
        overlooked(make(seed), {"y": ["x"]}, ["kind", "x", "other", "y"]) for seed in range(10)
    ]
    assert sum("kind" in each.get("y", set()) for each in found) >= 8


def test_it_is_rarer_without_an_effect():
    found = [
        overlooked(make(seed, shift=0.0), {"y": ["x"]}, ["kind", "x", "other", "y"])
        for seed in range(60)
    ]
    # Six pairs, each at most at 1 %; the tests of a pair are corrected for their number.
    assert sum(bool(each) for each in found) <= 8


def test_spread_that_depends_on_a_class_is_found():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 1000)
    y = np.exp(0.25 * kind) * rng.normal(size=1000)
    frame = pd.DataFrame({"kind": kind.astype(str), "y": y})
    assert overlooked(frame, {}, ["kind", "y"]) == {"y": {"kind"}}


def test_a_class_with_levels_that_depend_on_a_number_a_little_is_found():
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    odds = np.stack([np.zeros(1000), 0.5 * np.cos(2 * x), 0.5 * np.sin(2 * x)])
    kind = (odds + rng.gumbel(size=odds.shape)).argmax(axis=0)
    frame = pd.DataFrame({"x": x, "kind": kind.astype(str)})
    assert overlooked(frame, {}, ["x", "kind"]) == {"kind": {"x"}}


def test_two_effects_of_the_same_causes_are_not_joined():
    def joins(seed):
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(2, 1000))
        spread = np.exp(0.4 * a)
        y = np.sin(2 * a) + a * b + spread * skewed_noise(rng, 1000)
        z = np.sin(2 * a) + a * b + spread * skewed_noise(rng, 1000)
        frame = pd.DataFrame({"a": a, "b": b, "y": y, "z": z})
        return overlooked(frame, {"y": ["a", "b"], "z": ["a", "b"]}, list("abyz"))

    # Four pairs at 0.5 %.
    assert sum(bool(joins(seed)) for seed in range(30)) <= 3


def test_edges_to_classes_near_the_target_need_less_evidence():
    """Some weak effects are found only if the target is near; numbers are as they were."""

    def draw(seed):
        rng = np.random.default_rng(seed)
        x, y, *others = rng.normal(size=(8, 1000))
        kind = np.where(0.17 * x + rng.logistic(size=1000) > 0, "a", "b")
        z = y + rng.normal(size=1000)
        # Half of the effect that would be found with every level.
        w = 0.08 * x + rng.normal(size=1000)
        columns = {f"other {at}": column for at, column in enumerate(others)}
        return pd.DataFrame({"x": x, "y": y, **columns, "z": z, "kind": kind, "w": w})

    found = {target: [] for target in (None, "x", "kind", "z")}
    for seed in range(10):
        frame = draw(seed)
        for target, all_found in found.items():
            all_found.append(overlooked(frame, {"z": ["y"]}, list(frame), target=target))
    of_class = {
        target: [each.get("kind", set()) & {"x"} for each in all_found]
        for target, all_found in found.items()
    }
    assert sum(map(bool, of_class["x"])) > sum(map(bool, of_class[None]))
    assert of_class["x"] == of_class["kind"]
    assert sum(map(bool, of_class["x"])) > sum(map(bool, of_class["z"]))
    of_numbers = [[each.get("w") for each in all_found] for all_found in found.values()]
    assert all(each == of_numbers[0] for each in of_numbers)


def test_edges_within_the_blanket_need_as_much_evidence_as_elsewhere():
    frame = make()
    table = Table(frame)
    places = {name: node for node, name in enumerate(frame)}
    score = BasisScore(table, Blocks.from_table(table))
    tests = OverlookedEdges(score._blocks, score._logistics, target=places["x"])
    others = [places[name] for name in ("x", "y", "other")]
    near = {places["x"], places["y"], places["kind"]}
    of_target, within, outward = tests._levels(places["kind"], others, near)
    assert tests._level == within < of_target == outward
    # Numbers are as without a target.
    assert (tests._levels(places["y"], others, near) == tests._level).all()


def test_combined_tests_are_as_significant_as_one_if_all_agree():
    equal = np.array([[0.2, 1e-9, 0.03], [0.2, 1e-9, np.nan]])
    np.testing.assert_allclose(_cauchy(equal), [0.2, 1e-9, 0.03], rtol=1e-6)
    # Tests that disagree cost at most a factor of their number, about.
    disagreeing = np.array([[1e-4, 1e-12], [0.9, 1.0], [0.5, 0.3]])
    np.testing.assert_allclose(_cauchy(disagreeing), [3e-4, 3e-12], rtol=0.05)
    # Independent tests of true hypotheses are rejected as often as one.
    p_values = np.random.default_rng(0).random((4, 20_000))
    assert abs((_cauchy(p_values) < 0.05).mean() - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 20_000)


def test_the_blanket_of_the_target_is_near_it():
    frame = make()
    table = Table(frame)
    tests = OverlookedEdges(Blocks.from_table(table), None, target=1)
    # x -> y <- kind, other -> x
    assert tests._near_target([(), (2,), (), (0, 1)]) == {0, 1, 2, 3}
    assert tests._near_target([(), (), (), (0,)]) == {1}


def test_constraints_are_respected():
    frame, order = make(2, shift=1.0), ["kind", "x", "other", "y"]
    assert overlooked(frame, {"y": ["x"]}, order) == {"y": {"kind"}}
    allowed = EVERYWHERE[:4, :4].copy()
    allowed[0, 3] = False
    assert overlooked(frame, {"y": ["x"]}, order, allowed=allowed) == {}
    assert overlooked(frame, {"y": ["x"]}, order, max_parents=1) == {}


def test_edges_point_along_the_order():
    frame = make(2, shift=1.0)
    found = overlooked(frame, {"y": ["x"]}, ["x", "other", "y", "kind"])
    assert "y" in found["kind"]
    assert "y" not in found


def test_copies_of_what_is_known_are_not_added():
    frame = make(1)
    frame["copy"] = 2 * frame["x"] + 1
    assert "copy" not in overlooked(frame, {"y": ["x"]}, list(frame)).get("y", set())


def test_many_parents_have_fewer_functions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 14))
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(14)])
    frame["y"] = X.sum(axis=1) + rng.normal(size=120)
    found = overlooked(frame, {"y": list(frame)[:14]}, list(frame), max_parents=20)
    assert "y" not in found


def test_many_rows_and_own_penalties_leave_it_to_the_score():
    frame = make(0, shift=1.0)
    blocks = Blocks.from_table(Table(frame))
    given = [(), (), (), ()]
    arguments = given, [0, 1, 2, 3], EVERYWHERE[:4, :4], 3
    assert BasisScore(Table(frame), blocks, penalty=1.0).overlooked(*arguments) == given
    assert BasisScore(Table(frame), blocks).overlooked(*arguments) != given
    long = make(0, n_rows=2001, shift=1.0)
    score = BasisScore(Table(long), Blocks.from_table(Table(long)))
    assert score.overlooked(*arguments) == given


def test_the_search_adds_what_it_overlooked():
    frame = make(0)
    graph = dsage.learn_graph(frame)
    score = BasisScore(Table(frame), Blocks.from_table(Table(frame)))
    parents = _parents(graph, score.names)
    order = [score.names.index(name) for name in graph.topological_order()]
    assert list(score.overlooked(parents, order, EVERYWHERE[:4, :4], 3)) == parents
    assert {"kind", "x"} <= set(graph.parents("y")) | set(graph.children("y"))


def test_nested_tests_are_those_of_their_columns():
    rng = np.random.default_rng(0)
    own, others = rng.normal(size=(2, 300)), rng.normal(size=(3, 4, 300))
    others[1, 2:] = 0.0
    found = _nested(own, others, 0.9)
    for size in (1, 2, 4):
        for tail in (0, 2):
            products = (others[tail, :size, None] * own).reshape(-1, 300)
            total = products.sum(axis=1)
            statistic = total @ np.linalg.solve(products @ products.T, total)
            expected = chi2.sf(0.9 * statistic, 2 * size)
            assert found[tail, size - 1] == pytest.approx(expected, rel=1e-5)
    # Columns that are not there explain nothing.
    statistic = chi2.isf(found[1, 1], 4)
    assert found[1, 3] == pytest.approx(chi2.sf(statistic, 8), rel=1e-6)


def test_what_is_known_leaves_nothing():
    rng = np.random.default_rng(0)
    known = np.linalg.qr(rng.normal(size=(50, 3)))[0]
    left = _without(np.stack([known @ [1.0, 2.0, 3.0], rng.normal(size=50)]), known)
    assert (left[0] == 0.0).all()
    np.testing.assert_allclose(left @ known, 0.0, atol=1e-12)


class TestDensitySlopes:
    def test_normal_residuals_are_their_own_slopes(self):
        z = np.random.default_rng(0).normal(size=1000)
        location, scale = density_slopes(3 * z + 2)
        standard = (z - z.mean()) / z.std()
        np.testing.assert_allclose(location, standard)
        np.testing.assert_allclose(scale, standard**2)

    def test_long_tails_count_less_and_edges_more(self):
        rng = np.random.default_rng(0)
        heavy = rng.standard_t(3, size=2000)
        location, _ = density_slopes(heavy)
        assert abs(location[np.abs(heavy).argmax()]) < abs(heavy).max() / heavy.std()
        skewed = skewed_noise(rng, 2000)
        location, _ = density_slopes(skewed)
        # A shift is seen by the mean slope: the more exactly, the smaller its variance.
        efficiency = np.mean(np.gradient(location[skewed.argsort()], np.sort(skewed))) ** 2
        assert efficiency > 0
        assert np.corrcoef(location, skewed)[0, 1] < 0.9

    def test_constant_residuals_have_no_slopes(self):
        assert np.abs(density_slopes(np.zeros(20))).max() == 0.0


def test_classes_are_tested_with_all_their_levels_and_numbers_with_some_functions():
    nested = np.arange(12.0).reshape(3, 4)
    widths, is_class = np.array([4, 3, 2]), np.array([False, True, False])
    np.testing.assert_array_equal(_of_sizes(nested, widths, is_class, 1), [0.0, 6.0, 8.0])
    np.testing.assert_array_equal(_of_sizes(nested, widths, is_class, 2), [1.0, np.nan, 9.0])
    np.testing.assert_array_equal(_of_sizes(nested, widths, is_class, 4), [3.0, np.nan, np.nan])
    np.testing.assert_array_equal(_of_sizes(nested, widths, is_class, 9), [3.0, np.nan, np.nan])


def test_classes_that_cost_too_much_are_not_tested(monkeypatch):
    frame, order = make(2, shift=1.0), ["kind", "x", "other", "y"]
    blocks = Blocks.from_table(Table(frame))
    logistics = LogisticRegressions(blocks, 2.0)
    kind, y = 0, 3
    assert OverlookedEdges(blocks, logistics)._is_tested(kind)
    assert not OverlookedEdges(blocks, None)._is_tested(kind)
    assert OverlookedEdges(blocks, None)._is_tested(y)
    assert overlooked(frame, {"y": ["x"]}, order) == {"y": {"kind"}}
    monkeypatch.setattr(LogisticRegressions, "is_cheap", lambda self, node: False)
    assert not OverlookedEdges(blocks, logistics)._is_tested(kind)
    assert overlooked(frame, {"y": ["x"]}, order) == {}


def many_rows(seed, n_rows=3000, shift=0.2):
    """Return a target and its effect, a number that a class shifts a little, and such a pair."""
    frame = make(seed, n_rows, shift)
    rng = np.random.default_rng([seed, 1])
    frame["target"] = 0.5 * frame["y"] + rng.normal(size=n_rows)
    away = rng.integers(0, 2, n_rows)
    frame["away"] = away.astype(str)
    frame["far"] = 0.2 * away + 0.6 * skewed_noise(rng, n_rows)
    return frame


def test_with_many_rows_only_edges_near_the_target_are_added():
    parents = {"y": ["x"], "target": ["y"]}
    order = ["kind", "x", "other", "y", "target", "away", "far"]
    near = [overlooked(many_rows(seed), parents, order, target="target") for seed in range(3)]
    assert all(each["y"] == {"kind"} for each in near)
    assert not any("away" in each.get("far", set()) for each in near)
    assert overlooked(many_rows(0), parents, order) == {}
    # As a neighbour of the target, the other pair is tested as well.
    far = overlooked(many_rows(0), {"y": ["x"]}, order, target="far")
    assert far == {"far": {"away"}}


def test_with_many_columns_and_a_target_only_edges_near_it_are_added():
    frame = make(shift=0.5)
    noise = np.random.default_rng(1).normal(size=(len(frame), 130))
    names = [f"z{number}" for number in range(130)]
    frame = pd.concat([frame, pd.DataFrame(noise, columns=names)], axis=1)
    given = frame, {"y": ["x"]}, ["kind", "x", "other", *names, "y"]
    everywhere = np.ones((134, 134), dtype=np.bool_)
    # Without a target, about one of the other edges is found by chance.
    assert overlooked(*given, allowed=everywhere)["y"] == {"kind"}
    assert overlooked(*given, allowed=everywhere, target="y") == {"y": {"kind"}}
    assert overlooked(*given, allowed=everywhere, target="z0") == {}


def test_with_many_rows_an_edge_must_be_more_significant():
    # 10 / n, where few rows have 0.01.
    frame = many_rows(0)
    table = Table(frame)
    blocks = Blocks.from_table(table)
    price = 0.5 * np.log(len(frame))
    tests = OverlookedEdges(blocks, LogisticRegressions(blocks, price, 1e9), target=0)
    assert tests._level == pytest.approx(10 / 3000)
    few = Blocks.from_table(Table(frame[:1000]))
    assert OverlookedEdges(few, LogisticRegressions(few, price), 0)._level == pytest.approx(0.01)
