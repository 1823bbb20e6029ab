"""The parts of a mixture against enumeration, and exactly at their limits."""

import itertools
import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dsage._random import Streams
from dsage.data.layout import Layout
from dsage.samplers import Mix
from dsage.samplers.mix import select
from dsage.samplers.mix.impute import patterns
from dsage.samplers.mix.paths import Path
from dsage.samplers.mix.select import _affordable, _Trials
from dsage.samplers.mix.states import _invert_bounds, _Levels, remainder
from dsage.samplers.mix.trees import Evidence, Trees, _gain
from dsage.samplers.mix.variables import Table, Variables


def variables_of(**columns):
    frame = pd.DataFrame(columns)
    layout = Layout.of(frame)
    return Variables.of(layout.encode(frame), layout)


@pytest.mark.parametrize(
    ("n_rows", "n_equal", "is_special"),
    [(100, 5, 1), (100, 4, 0), (40, 5, 1), (40, 4, 0), (200, 10, 1), (200, 9, 0)],
)
def test_a_number_that_a_twentieth_of_the_rows_share_is_special(n_rows, n_equal, is_special):
    x = np.random.default_rng(0).normal(size=n_rows)
    x[:n_equal] = 0.25
    found = variables_of(x=x)
    assert [len(each.special) for each in found.numbers] == [is_special]
    assert found.n_states == (2,) * is_special
    assert found.is_plain == (not is_special)


@pytest.mark.parametrize(
    ("n_values", "n_rows", "is_table"),
    [(30, 600, 1), (30, 599, 0), (31, 900, 0), (20, 400, 1), (20, 399, 0)],
)
def test_few_whole_numbers_of_enough_rows_are_a_table(n_values, n_rows, is_table):
    # Not one after the other: these would be codes.
    found = variables_of(x=3 * (np.arange(n_rows) % n_values) ** 2 + 100)
    assert (len(found.tables), len(found.numbers)) == (is_table, 1 - is_table)


def chain_states(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    one = rng.integers(3, size=n_rows)
    two = np.where(rng.random(n_rows) < 0.6, one, rng.integers(3, size=n_rows))
    three = np.where(rng.random(n_rows) < 0.7, two % 2, rng.integers(2, size=n_rows))
    return np.stack([three, one, rng.integers(4, size=n_rows), two], axis=1), (2, 3, 4, 3)


def plain_gain(first, second):
    """The gain in BIC of one variable as the parent of another, from logarithms of shares."""
    n_rows, total = len(first), 0.0
    for a, b in zip(first.tolist(), second.tolist(), strict=True):
        both = np.mean((first == a) & (second == b))
        total += math.log(both / (np.mean(first == a) * np.mean(second == b)))
    n_parameters = (len(set(first.tolist())) - 1) * (len(set(second.tolist())) - 1)
    return total - 0.5 * n_parameters * math.log(n_rows)


@pytest.mark.parametrize("n_rows", [12, 60, 300])
def test_the_gain_of_an_edge_is_that_of_bic(n_rows):
    states, n_states = chain_states(n_rows)
    for first, second in itertools.combinations(range(4), 2):
        # One state more than occur.
        joint = np.zeros((n_states[first] + 1, n_states[second]), int)
        np.add.at(joint, (states[:, first], states[:, second]), 1)
        expected = plain_gain(states[:, first], states[:, second])
        assert _gain(joint, n_rows) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_trees_span_the_edges_of_positive_gains_with_the_largest_sum(seed):
    states, n_states = chain_states(150, seed)
    graph = nx.Graph()
    graph.add_nodes_from(range(4))
    for first, second in itertools.combinations(range(4), 2):
        gain = plain_gain(states[:, first], states[:, second])
        if gain > 0:
            graph.add_edge(first, second, weight=gain)
    expected = {frozenset(edge) for edge in nx.maximum_spanning_tree(graph).edges}
    trees = Trees.of(states, n_states)
    edges = {frozenset((at, up)) for at, up in enumerate(trees.parents) if up >= 0}
    assert edges == expected
    assert trees.has_edges == bool(expected)
    assert trees.parents[0] == -1
    order = trees.order
    assert sorted(order) == [0, 1, 2, 3]
    assert all(up < 0 or order.index(up) < order.index(at) for at, up in enumerate(trees.parents))


def test_large_joint_tables_have_no_edge():
    states = np.repeat(np.arange(20), 30)[:, None] * np.ones(2, int)
    assert Trees.of(states, (20, 20)).parents == (-1, 0)
    assert Trees.of(states, (20, 21)).parents == (-1, -1)


def test_cells_number_the_states_of_a_variable_and_of_its_parent():
    trees = Trees((-1, 2, 0), (2, 3, 4))
    assert (trees.n_cells, trees.children) == ((2, 12, 8), ((2,), (), (1,)))
    states = np.array([[1, 2, 3], [0, 1, 2]])
    assert trees.cells(states).tolist() == [[1, 2 + 3 * 3, 3 + 4 * 1], [0, 1 + 3 * 2, 2]]


def evidence_case(seed=0):
    rng = np.random.default_rng(seed)
    trees = Trees((-1, 0, 1, 0), (2, 3, 2, 4))
    tables = [
        rng.dirichlet(np.ones(n), (2, 1 if up < 0 else trees.n_states[up]))
        for n, up in zip(trees.n_states, trees.parents, strict=True)
    ]
    allowed = {n: (rng.random((5, trees.n_states[n])) < 0.7) * 1.0 for n in trees.order}
    for each in allowed.values():
        each[:, 0] = np.maximum(each[:, 0], each.sum(axis=1) == 0)
    return trees, tables, allowed


def chance(trees, tables, component, states):
    """The probability of states in a component."""
    return math.prod(
        tables[n][component, states[up] if up >= 0 else 0, states[n]]
        for n, up in enumerate(trees.parents)
    )


@pytest.mark.parametrize("seed", range(3))
def test_evidence_in_trees_is_a_sum_over_all_states(seed):
    trees, tables, allowed = evidence_case(seed)
    evidence = Evidence(trees, tables, allowed)
    every = list(itertools.product(*map(range, trees.n_states)))
    for row, component in itertools.product(range(5), range(2)):
        fits = [s for s in every if all(allowed[n][row, s[n]] for n in range(4))]
        total = sum(chance(trees, tables, component, s) for s in fits)
        assert evidence.log_shares[row, component] == pytest.approx(math.log(total))
        for node, up in enumerate(trees.parents):
            for above in range(trees.n_states[up]) if up >= 0 else [0]:
                own = [s for s in fits if up < 0 or s[up] == above]
                shares = [
                    sum(chance(trees, tables, component, s) for s in own if s[node] == state)
                    for state in range(trees.n_states[node])
                ]
                if not sum(shares):
                    continue
                at = np.array([[component]]), np.array([[above]])
                bounds = evidence.bounds(node, np.array([row]), *at)[0, 0]
                expected = np.cumsum(shares) / sum(shares)
                np.testing.assert_allclose(bounds / bounds[-1], expected, rtol=1e-9)


def test_states_and_what_is_left_of_uniforms_follow_from_bounds():
    bounds = np.cumsum([0.5, 0.0, 1.0, 2.5])
    u = np.array([0.0625, 0.125, 0.25, 0.5, 0.9375])
    states, left = _invert_bounds(np.tile(bounds, (5, 1)), u)
    assert states.tolist() == [0, 0, 2, 3, 3]
    np.testing.assert_allclose(left[[0, 2, 3, 4]], [0.5, 0.5, 0.2, 0.9])
    # Kept off 0, and within bounds where a state has no share.
    ends = remainder(np.array([0.0, 0.75, 0.5]), np.zeros(3), np.array([1.0, 1.0, 0.0]))
    assert ends.tolist() == [2.0**-54, 0.75, 0.5]
    # Rounding may put a uniform at the end of its interval, or beyond.
    beyond = remainder(np.array([0.5, 0.6]), np.array([0.25, 0.25]), np.array([0.25, 0.25]))
    assert (beyond <= 1.0).all()


def test_rows_are_grouped_by_their_gaps():
    gaps = np.random.default_rng(0).random((40, 11)) < 0.05
    found = list(patterns(gaps))
    assert sorted(np.concatenate([rows for _, rows in found]).tolist()) == list(range(40))
    assert len({line.tobytes() for line, _ in found}) == len(found)
    for line, rows in found:
        assert (gaps[rows] == line).all()
        assert (np.diff(rows) > 0).all()
    assert list(patterns(np.zeros((0, 3), bool))) == []


def test_a_fit_reads_as_many_rows_as_it_can_afford():
    trees = Trees((-1, 0), (2, 3))
    # 1 constant, 3 numbers, 6 products and 8 cells: 18 columns, 4 components, 30 steps.
    assert _affordable(10**6, 3, trees, 4, 4.0 * 18 * 4 * 30 * 5000) == 5000
    assert _affordable(10**6, 3, trees, 4, 1.0) == 1000
    assert _affordable(700, 3, trees, 4, 1e12) == 700


def test_a_fifth_of_the_rows_that_are_affordable_are_held_out(monkeypatch):
    values = np.random.default_rng(0).normal(size=(1500, 2))
    states = np.zeros((1500, 0), int)
    # 6 columns, 8 components, 30 steps; a 24th of the cost.
    monkeypatch.setattr(select, "_CHOICE_COST", 24.0 * 4 * 6 * 8 * 30 * 1200)
    trials = _Trials(values, states, (), Streams(0))
    sizes = {(len(known), len(held)) for known, held, _ in trials._rows.values()}
    assert sizes == {(960, 240)}
    assert trials._sizes == [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    assert trials._shrinkages == [2.0, 1.0]


@pytest.mark.parametrize("n_bytes", [1, 8 * 5 * 3 * (4 * 2 + 2 * 3 + 8) * 2, 2**26])
def test_prefixes_are_the_same_however_many_are_drawn_at_a_time(n_bytes, monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(["u", "v"], 60)})
    X["c"] = X["a"] + (X["b"] == "u") + 0.3 * rng.normal(size=60)
    fitted = Mix(n_components=2, n_fits=1).fit(X)
    noise, weights = rng.random((5, 3, 3)), np.array([[1.0], [-2.0]])
    ordering = fitted.ordering([2, 1, 0])
    alone = [next(ordering.prefixes(X[:5], noise, [n]))[1].copy() for n in range(4)]
    sums = [next(ordering.projected_prefixes(X[:5], noise, weights, [n]))[2] for n in range(4)]
    monkeypatch.setattr("dsage.samplers.mix.sampler._PREFIX_BYTES", n_bytes)
    n_drawn = []
    draw = Path.draw
    monkeypatch.setattr(
        Path, "draw", lambda path, some: n_drawn.append(len(some)) or draw(path, some)
    )
    found = list(ordering.prefixes(X[:5], noise))
    assert [length for length, _ in found] == [0, 1, 2, 3]
    for (_, draws), expected in zip(found, alone, strict=True):
        np.testing.assert_array_equal(draws, expected)
    # Memory of a prefix: for each draw, 4 numbers of a number, 2 of a column, and 8.
    assert n_drawn == {1: [1, 1, 1, 1], 2**26: [4]}.get(n_bytes, [2, 2])
    projected = ordering.projected_prefixes(X[:5], noise, weights)
    for (_, draws, found), expected, own in zip(projected, alone, sums, strict=True):
        np.testing.assert_array_equal(draws, expected)
        for one, other in zip(found, own, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_sums_of_scores_have_the_means_and_variances_of_the_rule_of_bayes():
    rng = np.random.default_rng(1)
    side = rng.choice([-2.0, 2.0], 80)[:, None]
    X = side + rng.normal(size=(80, 3)) @ np.triu(np.ones((3, 3)))
    fitted = Mix(n_components=2, n_fits=1).fit(X)
    parts, weights = fitted.fit_.components, rng.normal(size=(3, 2))
    z, order = fitted.fit_.margins.to_scores(X[:4]), [1, 2, 0]
    steps = fitted.ordering(order).projected_prefixes(X[:4], rng.random((4, 2, 3)), weights)
    for length, _, found in steps:
        known, rest = order[:length], order[length:]
        for row, at in itertools.product(range(4), range(2)):
            mean, cov = parts.means[at], parts.covariances[at]
            slopes = np.linalg.solve(cov[np.ix_(known, known)], cov[np.ix_(known, rest)])
            center = mean[rest] + (z[row, known] - mean[known]) @ slopes
            left = cov[np.ix_(rest, rest)] - cov[np.ix_(rest, known)] @ slopes
            expected = z[row, known] @ weights[known] + center @ weights[rest]
            np.testing.assert_allclose(found.means[:, row, at], expected, rtol=1e-8)
            spread = np.einsum("is,ij,js->s", weights[rest], left, weights[rest])
            of_row = np.broadcast_to(found.variances, found.means.shape)[:, row, at]
            np.testing.assert_allclose(of_row, spread, rtol=1e-8, atol=1e-12)
        logs = [
            np.log(parts.weights[at])
            + stats.multivariate_normal.logpdf(
                z[:, known], parts.means[at, known], parts.covariances[at][np.ix_(known, known)]
            )
            if known
            else np.full(4, np.log(parts.weights[at]))
            for at in range(2)
        ]
        shares = np.exp(logs) / np.exp(logs).sum(axis=0)
        np.testing.assert_allclose(found.shares, shares.T, rtol=1e-8, atol=1e-12)


def table_of(values, state_of=None, shares=None, *, is_class=False):
    values = np.array(values, float)
    wide = values if values.ndim == 2 else values[:, None]
    n_levels = len(wide)
    states = np.arange(n_levels) if state_of is None else np.array(state_of)
    own = np.ones(n_levels) if shares is None else np.array(shares)
    return Table(1 + np.arange(wide.shape[1]), wide, states, own, is_class)


def read(table, *lines):
    """Read rows that have a first column for something else."""
    return table.read(np.array([[9.0, *np.atleast_1d(line)] for line in lines])).tolist()


def test_numbers_of_a_table_are_read_as_the_nearest_value():
    table = table_of([-1.0, 2.0, 10.0])
    assert read(table, -5.0, -1.0, 0.5, 0.51, 2.0, 6.0, 6.1, 99.0) == [0, 0, 0, 1, 1, 1, 2, 2]
    # Without missing values in training, a missing one is like no other.
    assert read(table, np.nan) == [-1]
    assert read(table_of([-1.0, 2.0, np.nan]), np.nan, 0.0, 7.0) == [2, 0, 1]
    assert read(table_of([np.nan]), np.nan, 3.0) == [0, 0]


def test_codes_of_a_class_are_its_levels_and_others_like_none():
    table = table_of([0, 1, 2], [1, 0, 1], [0.25, 1.0, 0.75], is_class=True)
    assert read(table, 0.0, 1.0, 2.0, 3.0, -1.0) == [0, 1, 2, -1, -1]
    rows = np.array([[9.0, 0.0], [9.0, 1.0], [9.0, 2.0], [9.0, 3.0]])
    assert table.read_states(rows).tolist() == [1, 0, 1, -1]
    assert (table.n_states, table.has_groups) == (2, True)
    assert not table_of([0, 1]).has_groups


def test_several_columns_are_read_together_and_agree_in_part():
    table = table_of([[0, 0], [1, 0], [0, 1]])
    assert read(table, [0, 1], [0, 0], [1, 0], [1, 1]) == [2, 0, 1, -1]
    X = np.array([[9.0, 0.0, 5.0], [9.0, 1.0, 5.0], [9.0, 2.0, 5.0]])
    expected = [[True, False, True], [False, True, False], [False] * 3]
    assert table.agrees(X, np.array([True, False])).tolist() == expected
    assert table.agrees(X, np.array([False, False])).all()


def test_levels_are_drawn_by_their_shares_in_a_state():
    table = table_of(range(5), [1, 0, 1, 2, 1], [0.25, 1.0, 0.5, 1.0, 0.25], is_class=True)
    levels = _Levels(table)
    u = np.array([0.1, 0.3, 0.7, 0.8, 0.999])
    assert levels.draw(np.ones(5, int), u).tolist() == [0, 2, 2, 4, 4]
    assert levels.draw(np.zeros(5, int), u).tolist() == [1] * 5
    assert levels.draw(np.full(5, 2), u).tolist() == [3] * 5
