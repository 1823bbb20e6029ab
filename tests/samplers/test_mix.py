"""The mixture of normals times tables: its parts, and draws against known conditionals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

from dsage._random import Streams
from dsage.data.layout import Layout
from dsage.samplers import Mix, evaluate
from dsage.samplers.clustered import ClusteredGaussian
from dsage.samplers.mix import sampler as sampler_module
from dsage.samplers.mix.em import Components, Rows, fit_components, fit_each
from dsage.samplers.mix.impute import fill_gaps, patterns
from dsage.samplers.mix.margins import Margins, Scale
from dsage.samplers.mix.paths import _count_below
from dsage.samplers.mix.select import _STEPS, _affordable, fit_mixture
from dsage.samplers.mix.trees import Evidence, Trees
from dsage.samplers.mix.variables import Variables


def uniforms(n_rows, n_draws, n_features, seed=0):
    return np.random.default_rng(seed).uniform(1e-9, 1 - 1e-9, (n_rows, n_draws, n_features))


def mask(n_features, *known):
    flags = np.zeros(n_features, bool)
    flags[list(known)] = True
    return flags


# Margins


@settings(max_examples=50, deadline=None)
@given(
    values=st.lists(st.integers(-(10**9), 10**9).map(lambda i: i / 1000), min_size=1, max_size=60),
    scale=st.sampled_from(list(Scale)),
)
def test_scores_turn_back_into_values(values, scale):
    X = np.array(values)[:, None]
    margins = Margins.of(X, scale)
    back = margins.to_values(margins.to_scores(X)[:, 0], 0)
    np.testing.assert_allclose(back, X[:, 0], rtol=1e-7, atol=1e-7 * (1 + np.abs(X).max()))


def test_normal_scores_of_a_skewed_margin_are_normal():
    x = np.random.default_rng(0).lognormal(size=(2000, 1))
    scores = Margins.of(x, Scale.SCORES).to_scores(x)[:, 0]
    assert stats.kstest(scores, "norm").statistic < 0.02


def test_densities_of_different_scales_can_be_compared():
    # The density of the values is that of the scores times the slope.
    rng = np.random.default_rng(0)
    x = rng.lognormal(size=(4000, 1))
    margins = Margins.of(x[:3000], Scale.SCORES)
    held = x[3000:]
    found = norm.logpdf(margins.to_scores(held)[:, 0]) + margins.log_slopes(held)
    truth = stats.lognorm.logpdf(held[:, 0], 1.0)
    assert abs((found - truth).mean()) < 0.05


# Trees, and what a fit reads


def test_trees_know_their_edges_and_list_parents_first():
    trees = Trees((1, -1, 0, 1), (2, 3, 4, 5))
    assert trees.has_edges
    assert trees.order == (1, 0, 3, 2)
    assert trees.n_cells == (6, 3, 8, 15)
    # The first variable may be the only parent.
    star = Trees((-1, 0, 0), (2, 3, 4))
    assert star.has_edges
    assert star.order == (0, 1, 2)
    assert not Trees.none([2, 3]).has_edges


def test_a_fit_starts_from_numbers_and_small_tables():
    states = np.column_stack([np.arange(6) % 3, np.arange(6) % 2])
    rows = Rows(np.arange(6.0)[:, None], states, Trees.none([3, 2]))
    assert [rows.features(limit).shape[1] for limit in (1, 2, 3)] == [1, 3, 6]
    indicators = rows.features(3)[:, 1:4]
    assert indicators.var(axis=0).sum() == pytest.approx(1.0)


def test_a_fit_reads_as_many_rows_as_its_cost_allows():
    # One column of ones, two numbers, their three products, and a table of four cells.
    cost = 4.0 * 10 * 8 * 12 * _STEPS * 1_000
    assert _affordable(10**9, 2, Trees.none([4]), 8, cost) == 12_000
    assert _affordable(500, 2, Trees.none([4]), 8, cost) == 500
    assert _affordable(10**9, 2, Trees.none([4]), 8, 1.0) == 1_000


# The EM algorithm


def rows_of(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    side = rng.integers(2, size=n_rows)
    Z = rng.normal(size=(n_rows, 2)) + 4.0 * side[:, None]
    states = np.column_stack([(rng.random(n_rows) < 0.2 + 0.6 * side).astype(np.intp)])
    return Rows(Z, states, Trees.none([2])), side


def test_rows_that_nothing_tells_apart_are_dealt_out_to_the_components():
    # A table of more states than a start looks at, and no numbers.
    states = np.arange(400)[:, None] % 80
    rows = Rows(np.empty((400, 0)), states, Trees.none([80]))
    assert rows.features(64).shape == (400, 0)
    found = fit_components(rows, 4, 2.0, np.random.default_rng(0))
    np.testing.assert_allclose(found.weights, 0.25, atol=0.01)


def test_log_densities_are_those_of_the_mixture():
    rows, _ = rows_of(50)
    found = fit_components(rows, 3, 2.0, np.random.default_rng(0))
    total = np.zeros(50)
    for k in range(3):
        density = stats.multivariate_normal(found.means[k], found.covariances[k]).pdf(rows.Z)
        total += found.weights[k] * density * found.tables[0][k, 0, rows.states[:, 0]]
    np.testing.assert_allclose(rows.log_densities(found), np.log(total), rtol=1e-9)


def test_a_fit_finds_the_clusters_and_their_tables():
    rows, side = rows_of(2000)
    found = fit_components(rows, 2, 2.0, np.random.default_rng(0)).sort()
    order = np.argsort(found.means[:, 0])
    np.testing.assert_allclose(found.means[order, 0], [0.0, 4.0], atol=0.15)
    np.testing.assert_allclose(found.tables[0][order, 0, 1], [0.2, 0.8], atol=0.05)
    np.testing.assert_allclose(found.weights[order], [1 - side.mean(), side.mean()], atol=0.03)


def test_steps_from_a_fit_raise_the_likelihood():
    rows, _ = rows_of(500)
    rough = fit_components(rows, 4, 2.0, np.random.default_rng(1), tolerance=1.0)
    fine = fit_components(rows, 4, 2.0, np.random.default_rng(1), start=rough)
    assert rows.log_densities(fine).sum() > rows.log_densities(rough).sum()


def test_a_fit_stops_at_a_gain_for_each_row():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 2)) + rng.choice([0.0, 2.0], 200)[:, None]

    def fit(Z, start=None, tolerance=1e-3):
        rows = Rows(Z, np.empty((len(Z), 0), np.intp), Trees.none([]))
        rng = np.random.default_rng(1)
        return fit_components(rows, 3, 0.0, rng, tolerance=tolerance, start=start)

    rough = fit(Z, tolerance=1.0)
    # A thousand copies of the rows have the same mixture, which takes as many steps to reach.
    once, often = fit(Z, rough), fit(np.repeat(Z, 1_000, axis=0), rough)
    np.testing.assert_allclose(often.means, once.means, atol=1e-4)
    assert np.abs(once.means - fit(Z, rough, 1e-9).means).max() > 0.01


def test_chunks_do_not_change_a_fit(monkeypatch):
    rows, _ = rows_of(300)
    whole = fit_components(rows, 3, 2.0, np.random.default_rng(0))
    monkeypatch.setattr("dsage.samplers.mix.em._CHUNK_BYTES", 8 * rows.n_columns * 37)
    monkeypatch.setattr("dsage.samplers.mix.em._KEPT_BYTES", 0)
    parts = fit_components(rows_of(300)[0], 3, 2.0, np.random.default_rng(0))
    np.testing.assert_allclose(parts.means, whole.means, rtol=1e-8)
    np.testing.assert_allclose(parts.covariances, whole.covariances, rtol=1e-7)


@pytest.mark.parametrize("n_at_once", [1, 2, 5])
def test_fits_that_are_made_together_are_those_made_alone(n_at_once, monkeypatch):
    rows, _ = rows_of(300)
    monkeypatch.setattr("dsage.samplers.mix.em._CHUNK_BYTES", 8 * 3 * 300 * n_at_once)
    rows.step = 300
    together = fit_each(rows, 3, 2.0, [np.random.default_rng(seed) for seed in range(5)])
    for seed, found in enumerate(together):
        alone = fit_components(rows, 3, 2.0, np.random.default_rng(seed))
        np.testing.assert_allclose(found.weights, alone.weights, rtol=1e-8)
        np.testing.assert_allclose(found.covariances, alone.covariances, rtol=1e-7)


def test_an_average_has_the_mean_of_the_densities():
    rows, _ = rows_of(60)
    fits = [fit_components(rows, 2, 2.0, np.random.default_rng(seed)) for seed in (0, 1)]
    both = np.exp([rows.log_densities(fit) for fit in fits]).mean(axis=0)
    np.testing.assert_allclose(np.exp(rows.log_densities(Components.pool(fits))), both, rtol=1e-9)


# Trees


def chain(n_rows, rng, stay=0.8):
    """Three classes, each mostly the one before."""
    states = np.zeros((n_rows, 3), np.intp)
    states[:, 0] = rng.integers(3, size=n_rows)
    for at in (1, 2):
        other = rng.integers(3, size=n_rows)
        states[:, at] = np.where(rng.random(n_rows) < stay, states[:, at - 1], other)
    return states


def test_trees_follow_the_strongest_dependences():
    states = chain(3000, np.random.default_rng(0))
    trees = Trees.of(states, (3, 3, 3))
    edges = {frozenset((n, p)) for n, p in enumerate(trees.parents) if p >= 0}
    assert edges == {frozenset((0, 1)), frozenset((1, 2))}
    assert not Trees.of(np.random.default_rng(1).integers(3, size=(500, 3)), (3, 3, 3)).has_edges


def test_states_that_do_not_occur_cost_an_edge_nothing():
    rng = np.random.default_rng(0)
    one = rng.integers(2, size=60)
    states = np.column_stack([one, np.where(rng.random(60) < 0.8, one, 1 - one)])
    # Twice the gain of the edge is 2 n (log 2 - entropy), about 23; a parameter costs log(60) = 4.
    for n_states in ((2, 2), (12, 2), (2, 12), (12, 12)):
        assert Trees.of(states, n_states).has_edges


def test_evidence_is_that_of_the_joint_table():
    # A tree of three variables, everything by enumeration.
    rng = np.random.default_rng(0)
    trees = Trees((1, -1, 1), (2, 3, 2))
    tables = [
        rng.dirichlet(np.ones(2), (4, 3)),
        rng.dirichlet(np.ones(3), (4, 1)),
        rng.dirichlet(np.ones(2), (4, 3)),
    ]
    joint = np.einsum("kba,kb,kbc->kabc", tables[0], tables[1][:, 0], tables[2])
    allowed = {1: np.array([[1.0, 0.0, 1.0]]), 0: np.array([[1.0, 1.0]]), 2: np.array([[0.0, 1.0]])}
    evidence = Evidence(trees, tables, allowed)
    keep = joint * allowed[1][0][None, None, :, None] * allowed[2][0]
    np.testing.assert_allclose(np.exp(evidence.log_shares[0]), keep.sum(axis=(1, 2, 3)))
    chosen, root = np.array([[2, 3]]), np.zeros((1, 2), np.intp)
    bounds = evidence.bounds(1, np.arange(len(chosen)), chosen, root)[0]
    for draw, component in enumerate(chosen[0]):
        shares = keep[component].sum(axis=(0, 2))
        found = np.diff(np.append(0.0, bounds[draw])) / bounds[draw, -1]
        np.testing.assert_allclose(found, shares / shares.sum())


def test_classes_in_a_chain_are_drawn_given_both_neighbors():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(chain(4000, rng).astype(str), columns=["a", "b", "c"])
    sampler = Mix().fit(frame)
    X = sampler.layout_.encode(frame)[:1]
    X[0, [0, 2]] = 0, 1
    n_draws = 4000
    draws = sampler.draw(X, mask(3, 0, 2), uniforms(1, n_draws, 3))[0, :, 1]
    step = np.full((3, 3), 0.2 / 3) + 0.8 * np.eye(3)
    truth = step[0] * step[:, 1] / (step[0] @ step[:, 1])
    found = np.bincount(draws.astype(int), minlength=3) / n_draws
    # The fit's own error counts: about 450 rows have these two classes.
    np.testing.assert_allclose(found, truth, atol=4 * np.sqrt(0.25 / 450))


# Gaps


def test_draws_of_classes_approach_the_conditionals_of_a_network():
    # a -> b, a -> c, (b, c) -> d.
    p_a = np.array([0.5, 0.3, 0.2])
    p_b = np.array([[0.8, 0.2], [0.4, 0.6], [0.1, 0.9]])
    p_c = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    p_d = np.array([[[0.9, 0.1], [0.6, 0.4], [0.5, 0.5]], [[0.3, 0.7], [0.2, 0.8], [0.05, 0.95]]])
    joint = np.einsum("a,ab,ac,bcd->abcd", p_a, p_b, p_c, p_d)
    rng = np.random.default_rng(0)
    cells = rng.choice(joint.size, 20_000, p=joint.ravel())
    codes = np.stack(np.unravel_index(cells, joint.shape), axis=1)
    sampler = Mix(discrete=["X1", "X2", "X3", "X4"]).fit(codes)
    for number in range(15):
        known = (number >> np.arange(4)) % 2 == 1
        row = codes[17 * number]
        draws = sampler.draw(row[None], known, uniforms(1, 4000, 4, seed=number))[0].astype(int)
        found = np.zeros(joint.shape)
        np.add.at(found, tuple(draws.T), 1 / 4000)
        at = tuple(row[j] if known[j] else slice(None) for j in range(4))
        np.testing.assert_allclose(found[at], joint[at] / joint[at].sum(), atol=0.05)


def test_patterns_are_each_yielded_once_with_their_rows():
    gaps = np.random.default_rng(0).random((50, 3)) < 0.5
    seen = np.zeros(50, int)
    for pattern, rows in patterns(gaps):
        assert (gaps[rows] == pattern).all()
        seen[rows] += 1
    assert (seen == 1).all()


def test_gaps_are_filled_by_draws_given_the_rest():
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    normal = Components(np.ones(1), np.zeros((1, 2)), covariance[None], ())
    scores = np.column_stack([np.full(20_000, 1.5), np.full(20_000, np.nan)])
    filled = fill_gaps(normal, scores, np.zeros((20_000, 0), np.intp), np.random.default_rng(0))
    assert (filled[:, 0] == 1.5).all()
    assert filled[:, 1].mean() == pytest.approx(1.2, abs=4 * 0.6 / np.sqrt(20_000))
    assert filled[:, 1].std() == pytest.approx(0.6, abs=0.02)


def test_gaps_are_filled_from_the_component_that_fits_what_is_there():
    apart = Components(
        np.full(2, 0.5), np.array([[-9.0, -9.0], [9.0, 9.0]]), np.array([np.eye(2)] * 2), ()
    )
    scores = np.column_stack([np.repeat([-9.0, 9.0], 50), np.full(100, np.nan)])
    filled = fill_gaps(apart, scores, np.zeros((100, 0), np.intp), np.random.default_rng(0))
    assert np.abs(filled[:, 1] - scores[:, 0]).max() < 5


def incomplete(n_rows, seed=0):
    """Two correlated numbers; the second is missing where the first is high."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows)
    y = 0.8 * x + 0.6 * rng.normal(size=n_rows)
    gone = rng.random(n_rows) < 1 / (1 + np.exp(-2 * x))
    return pd.DataFrame({"x": x, "y": np.where(gone, np.nan, y)})


def test_missing_values_are_drawn_with_their_conditional_probability():
    sampler = Mix().fit(incomplete(4000))
    for x in (-1.5, 0.0, 1.5):
        draws = sampler.draw([[x, 0.0]], mask(2, 0), uniforms(1, 4000, 2))[0, :, 1]
        truth = 1 / (1 + np.exp(-2 * x))
        assert np.isnan(draws).mean() == pytest.approx(truth, abs=0.08)
        if truth < 0.9:  # enough rows to learn from
            assert np.nanmean(draws) == pytest.approx(0.8 * x, abs=0.15)


def test_a_value_known_as_missing_says_what_its_absence_says():
    sampler = Mix().fit(incomplete(4000))
    draws = sampler.draw([[0.0, np.nan]], mask(2, 1), uniforms(1, 4000, 2))[0, :, 0]
    wide = incomplete(200_000, seed=1)
    truth = wide.loc[wide["y"].isna(), "x"].mean()
    assert draws.mean() == pytest.approx(truth, abs=0.08)


def test_a_value_missing_only_outside_of_training_says_nothing():
    complete = incomplete(1000).dropna()
    sampler = Mix().fit(complete)
    noise = uniforms(1, 500, 2)
    unknown = sampler.draw([[0.0, np.nan]], mask(2), noise)[0, :, 0]
    known = sampler.draw([[0.0, np.nan]], mask(2, 1), noise)[0, :, 0]
    assert abs(known.mean() - unknown.mean()) < 4 * np.sqrt(2 / 500)


def test_a_mixture_of_a_given_size_has_no_trees():
    rng = np.random.default_rng(0)
    state = rng.integers(2, size=400)
    both = np.column_stack([state, state])
    fit = fit_mixture(rng.normal(size=(400, 1)), both, (2, 2), Streams(0), size=1, n_fits=1)
    assert Trees.of(both, (2, 2)).has_edges
    assert not fit.trees.has_edges
    assert (fit.design.has_trees, fit.design.size) == (False, 1)


def test_every_fit_fills_the_gaps_anew():
    values = incomplete(600)[["x", "y"]].to_numpy()
    states = np.isnan(values[:, [1]]).astype(np.intp)
    fit = fit_mixture(values, states, (2,), Streams(0), size=1, n_fits=3)
    assert len(np.unique(fit.components.means[:, 1])) == 3


# Variables


def test_what_has_few_values_is_a_table_and_the_rest_a_number():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "code": rng.integers(4, size=400),
            "count": rng.integers(15, size=400),
            "age": rng.integers(18, 90, size=400),
            "income": np.where(rng.random(400) < 0.3, 0.0, rng.lognormal(size=400)),
            "city": rng.choice(["a", "b"], 400),
            "gap": np.where(rng.random(400) < 0.1, np.nan, rng.normal(size=400)),
        }
    )
    sampler = Mix().fit(frame)
    variables = Variables.of(sampler.layout_.encode(frame), sampler.layout_)
    assert [n.columns for n in variables.numbers] == [(2,), (3,), (5,)]
    assert variables.numbers[1].special.tolist() == [0.0]
    assert np.isnan(variables.numbers[2].special).all()
    assert sorted(int(t.columns[0]) for t in variables.tables) == [0, 1, 4]


def test_a_value_of_a_twentieth_of_the_rows_is_special():
    for n_zeros, special in ((19, []), (20, [0.0])):
        X = np.arange(1.0, 401.0) ** 1.5
        X[:n_zeros] = 0.0
        layout = Layout.of(X[:, None])
        (number,) = Variables.of(X[:, None], layout).numbers
        assert number.special.tolist() == special


def test_a_gap_that_training_lacks_says_nothing():
    rng = np.random.default_rng(0)
    low = rng.normal(size=2_000)
    X = np.column_stack([np.where(low < 0, 0.0, low), low + 0.1 * rng.normal(size=2_000)])
    sampler, noise = Mix().fit(X), uniforms(1, 400, 2)
    gap = sampler.draw([[np.nan, 0.0]], mask(2, 0), noise)[0, :, 1]
    nothing = sampler.draw([[np.nan, 0.0]], mask(2), noise)[0, :, 1]
    # Neither that of zeros, which is below, nor that of positive numbers.
    assert abs(gap.mean() - nothing.mean()) < 4 * np.sqrt(2 / 400)
    assert gap.std() == pytest.approx(nothing.std(), rel=0.2)


def test_a_frequent_value_is_drawn_exactly_and_as_often_as_it_occurs():
    rng = np.random.default_rng(0)
    low = rng.normal(size=3000)
    X = np.column_stack([low, np.where(low < 0, 0.0, rng.lognormal(size=3000))])
    draws = Mix().fit(X).draw([[-1.5, 0.0], [1.5, 0.0]], mask(2, 0), uniforms(2, 1000, 2))[:, :, 1]
    assert (draws[0] == 0).mean() > 0.95
    assert (draws[1] == 0).mean() < 0.05


def test_exclusive_columns_are_drawn_as_the_class_that_they_are():
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=1500)
    size = 3.0 * kind + rng.normal(size=1500)
    frame = pd.get_dummies(pd.DataFrame({"size": size, "kind": kind.astype(str)}), dtype=float)
    sampler = Mix().fit(frame)
    noise = uniforms(2, 500, 4)
    draws = sampler.draw([[6.0, 0, 0, 0], [3.0, 0, 0, 0]], mask(4, 0), noise)
    assert (draws[..., 1:].sum(axis=2) == 1).all()
    assert draws[0, :, 3].mean() > 0.85
    # One column known to be 0 leaves two classes.
    draws = sampler.draw([[6.0, 0, 0, 0]], mask(4, 0, 3), noise[:1])
    assert (draws[0, :, 1:3].sum(axis=1) == 1).all()
    assert draws[0, :, 2].mean() > 0.85


def test_copies_are_drawn_as_copies():
    rng = np.random.default_rng(0)
    x, c = rng.normal(size=300), rng.choice(["a", "b"], 300)
    frame = pd.DataFrame({"x": x, "again": x, "c": c, "d": c})
    sampler = Mix().fit(frame)
    M = sampler.layout_.encode(frame)[:20]
    draws = sampler.draw(M, mask(4), uniforms(20, 50, 4))
    assert (draws[..., 0] == draws[..., 1]).all()
    assert (draws[..., 2] == draws[..., 3]).all()
    given_copy = sampler.draw(M, mask(4, 1, 3), uniforms(20, 50, 4))
    assert (given_copy[..., 0] == M[:, None, 0]).all()
    assert (given_copy[..., 2] == M[:, None, 2]).all()


@pytest.mark.parametrize("n_levels", [48, 49])
def test_classes_have_a_state_for_each_of_up_to_48_levels(n_levels):
    levels = np.arange(10 * n_levels) % n_levels
    # Another class has rare levels that are grouped.
    frame = pd.DataFrame({"d": (np.arange(len(levels)) % 60).astype(str), "c": levels.astype(str)})
    frame["x"] = levels + 0.01 * np.arange(len(levels))
    layout = Layout.of(frame)
    _, table = Variables.of(layout.encode(frame), layout).tables
    assert (table.n_states == 48) == (n_levels == 48)
    assert table.has_groups == (n_levels > 48)


def test_a_class_with_thousands_of_levels_keeps_its_frequent_ones_and_groups_the_others():
    rng = np.random.default_rng(0)
    level = np.where(rng.random(4000) < 0.5, 0, rng.integers(1, 2001, size=4000))
    frame = pd.DataFrame({"zip": level.astype(str), "x": np.where(level == 0, 5.0, level / 1000)})
    frame["x"] += 0.1 * rng.normal(size=4000)
    sampler = Mix().fit(frame)
    codes = {name: code for code, name in enumerate(sampler.layout_.categories("zip"))}
    noise = uniforms(1, 1000, 2)
    draws = sampler.draw([[codes["0"], 0.0]], mask(2, 0), noise)[0, :, 1]
    assert draws.mean() == pytest.approx(5.0, abs=0.05)
    drawn = sampler.draw([[0.0, 5.0]], mask(2, 1), noise)[0, :, 0]
    assert (drawn == codes["0"]).mean() > 0.95
    # Levels of low x are grouped with levels of low x.
    drawn = sampler.draw([[0.0, 0.2]], mask(2, 1), noise)[0, :, 0].astype(int)
    names = np.array(sampler.layout_.categories("zip"))[drawn].astype(int)
    assert np.median(names) < 700


# Draws


def test_draws_are_near_the_best_possible_ones_on_mixed_data():
    truth = ClusteredGaussian.random(3, 3, random_state=3)
    holdout = truth.sample(400, random_state=1)
    best = evaluate(truth, holdout, n_coalitions=16)
    found = evaluate(Mix().fit(truth.sample(2000, random_state=2)), holdout, n_coalitions=16)
    off = found.compare(best).loc["all"]
    assert off["difference"] < 0.01 + 2 * off["se"]


@pytest.mark.parametrize("sigma", [1.0, 5.0])
def test_heavy_tails_do_not_hide_the_relation_of_the_others(sigma):
    rng = np.random.default_rng(0)
    first, other = rng.standard_normal((2, 1000))
    X = np.exp(sigma * np.column_stack([first, 0.9 * first + np.sqrt(0.19) * other]))
    at = np.exp(sigma * np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]))
    draws = Mix(random_state=0).fit(X).draw(at, mask(2, 0), uniforms(3, 1000, 2))[:, :, 1]
    logs = np.log(np.median(draws, axis=1)) / sigma
    # Independent draws would have medians of 0.
    np.testing.assert_allclose(logs, [-0.9, 0.0, 0.9], atol=0.15)


def test_units_do_not_matter_even_far_from_zero():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    X[:, 1] += X[:, 0] ** 2
    noise = uniforms(50, 10, 2)
    plain = Mix(random_state=0).fit(X).draw(X[:50], mask(2, 0), noise)
    other = 1e-3 * X + 1e6
    drawn = Mix(random_state=0).fit(other).draw(other[:50], mask(2, 0), noise)
    np.testing.assert_allclose(1e3 * (drawn - 1e6), plain, atol=1e-4)


def test_known_values_far_out_give_finite_draws():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 1)) + rng.standard_normal((300, 2))
    at = np.array([[1e149, 0.0], [-1e9, 0.0]])
    draws = Mix(random_state=0).fit(X).draw(at, mask(2, 0), uniforms(2, 50, 2))[:, :, 1]
    assert np.isfinite(draws).all()
    assert draws[0].min() > X[:, 1].mean() > draws[1].max()


def test_prefixes_draw_from_the_conditionals_that_coalitions_do():
    frame = incomplete(1500).assign(c=lambda f: (f["x"] > 0).map({True: "u", False: "v"}))
    sampler = Mix().fit(frame)
    X = sampler.layout_.encode(frame)[:1]
    order = np.array([2, 0, 1])
    n_draws = 20_000
    noise = uniforms(1, n_draws, 3)
    for length, draws in sampler.ordering(order).prefixes(X, noise):
        known = mask(3, *order[:length])
        single = sampler.draw(X, known, uniforms(1, n_draws, 3, seed=1))
        for column in np.flatnonzero(~known):
            ours, other = draws[0, :, column], single[0, :, column]
            spread = np.nanstd(np.append(ours, other)) + 1e-12
            assert abs(np.nanmean(ours) - np.nanmean(other)) < 5 * spread * np.sqrt(2 / n_draws)
            assert abs(np.isnan(ours).mean() - np.isnan(other).mean()) < 5 * np.sqrt(0.5 / n_draws)


def test_draws_of_a_prefix_depend_on_no_other_row_or_prefix():
    sampler = Mix().fit(incomplete(500))
    X = sampler.layout_.encode(incomplete(40, seed=1))
    noise = uniforms(40, 6, 2)
    every = dict(sampler.ordering([1, 0]).prefixes(X, noise))
    for length in (0, 1):
        ((_, one),) = sampler.ordering([1, 0]).prefixes(X[7:9], noise[7:9], [length])
        np.testing.assert_array_equal(one, every[length][7:9])


def test_prefixes_at_a_time_change_nothing(monkeypatch):
    frame = incomplete(500).assign(c=lambda f: f["x"] + 1.0)
    sampler = Mix().fit(frame)
    X = sampler.layout_.encode(frame)[:30]
    ordering, noise = sampler.ordering([2, 1, 0]), uniforms(30, 6, 3)
    together = dict(ordering.prefixes(X, noise))
    monkeypatch.setattr(sampler_module, "_PREFIX_BYTES", 1)
    for length, draws in ordering.prefixes(X, noise):
        np.testing.assert_array_equal(draws, together[length])


@pytest.mark.parametrize("n_bounds", [1, 2, 3, 7, 8, 60])
def test_components_are_found_by_their_bounds(n_bounds):
    rng = np.random.default_rng(n_bounds)
    bounds = np.cumsum(rng.random((4, 5, n_bounds)) * (rng.random(n_bounds) < 0.7), axis=2)
    u = rng.random((4, 5, 9)) * bounds[..., -1:]
    u[..., 0], u[..., 1] = bounds[..., 0], 2 * bounds[..., -1]
    below = (u[..., None] > bounds[..., None, :-1]).sum(axis=-1)
    np.testing.assert_array_equal(_count_below(bounds, u), below)


def test_equal_noise_couples_draws_of_similar_coalitions():
    truth = ClusteredGaussian.random(2, 3, random_state=1)
    rows = truth.sample(1500, random_state=0)
    sampler = Mix().fit(rows)
    X = sampler.layout_.encode(rows)[:200]
    d = X.shape[1]
    few, more = mask(d, 1), mask(d, 1, 2)
    same = uniforms(200, 30, d)
    a, b = sampler.draw(X, few, same), sampler.draw(X, more, same)
    c = sampler.draw(X, more, uniforms(200, 30, d, seed=9))
    assert np.var(a[..., 3] - b[..., 3]) < 0.8 * np.var(a[..., 3] - c[..., 3])


def test_an_ordering_is_a_permutation_of_a_fitted_sampler():
    with pytest.raises(NotFittedError):
        Mix().ordering([0, 1])
    sampler = Mix().fit(incomplete(100))
    with pytest.raises(ValueError, match=r"order must be a permutation of 0 \.\. 1; got \[0, 0\]"):
        sampler.ordering([0, 0])


# Sums of the scores behind draws


def incomplete_rows(n_rows=500):
    """Return two clusters with a class, a number that is often zero, and one that may be missing."""
    rng = np.random.default_rng(3)
    side = rng.choice([-2.0, 2.0], n_rows)
    numbers = side[:, None] + rng.normal(size=(n_rows, 4))
    numbers[rng.random(n_rows) < 0.3, 1] = 0.0
    numbers[rng.random(n_rows) < 0.3, 2] = np.nan
    return pd.DataFrame(numbers, columns=list("abcd")).assign(
        code=np.where(rng.random(n_rows) < 0.5 + 0.2 * np.sign(side), "u", "v")
    )


def test_sums_of_scores_have_the_law_that_is_told():
    X = incomplete_rows()
    sampler = Mix(n_components=3).fit(X)
    rows = pd.concat([X[X["c"].isna()][:2], X[X["b"] == 0.0][:2], X[:2]])
    n_draws, order = 4000, [2, 4, 1, 0, 3]
    weights = np.random.default_rng(4).normal(size=(sampler.n_scores, 3))
    noise = uniforms(len(rows), n_draws, 5)
    for length, _, sums in sampler.ordering(order).projected_prefixes(rows, noise, weights):
        np.testing.assert_allclose(sums.shares.sum(axis=1), 1.0)
        mean = (sums.shares * sums.means).sum(axis=2)
        square = (sums.shares * (sums.means**2 + sums.variances)).sum(axis=2)
        for drawn, expected in ((sums.drawn, mean), (sums.drawn**2, square)):
            off = drawn.mean(axis=2) - expected
            se = drawn.std(axis=2) / np.sqrt(n_draws)
            # If all numbers of a row are known, its sums are, up to rounding.
            assert (np.abs(off) < 4.5 * se + 1e-6 * (1.0 + np.abs(expected))).all(), length


def test_draws_with_their_sums_are_the_draws(monkeypatch):
    X = incomplete_rows()
    sampler = Mix(n_components=3).fit(X)
    noise, weights = uniforms(7, 5, 5), np.eye(sampler.n_scores)
    plain = [(n, d.copy()) for n, d in sampler.ordering([2, 4, 1, 0, 3]).prefixes(X[:7], noise)]
    found = sampler.ordering([2, 4, 1, 0, 3]).projected_prefixes(X[:7], noise, weights)
    at_once = [(n, d.copy(), s.means.copy()) for n, d, s in found]
    # Prefix by prefix, the means continue from those of the last one.
    monkeypatch.setattr(sampler_module, "_PREFIX_BYTES", 1)
    found = sampler.ordering([2, 4, 1, 0, 3]).projected_prefixes(X[:7], noise, weights)
    for (n, draws), (m, same, means), (k, again, sums) in zip(plain, at_once, found, strict=True):
        assert n == m == k
        np.testing.assert_array_equal(draws, same)
        np.testing.assert_array_equal(draws, again)
        np.testing.assert_array_equal(means, sums.means)


def test_a_table_of_classes_has_no_scores():
    X = pd.DataFrame({"a": list("uvuv") * 20, "b": list("xxyy") * 20})
    assert Mix().fit(X).n_scores == 0
    assert Mix().n_scores == 0
