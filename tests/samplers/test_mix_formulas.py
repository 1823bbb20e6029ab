"""The fit of a mixture and its draws, row by row, from their formulas."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dsage.samplers.mix import em
from dsage.samplers.mix.em import Components, Rows, fit_components, fit_each
from dsage.samplers.mix.impute import fill_from_rows, fill_gaps
from dsage.samplers.mix.trees import Trees

TREES = Trees((-1, 0, -1), (2, 3, 2))


def world(n_rows=40, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_rows, 2)) + rng.choice([-1.0, 2.0], n_rows)[:, None]
    states = np.column_stack([rng.integers(n, size=n_rows) for n in TREES.n_states])
    states[:, 1] = np.where(rng.random(n_rows) < 0.5, states[:, 0], states[:, 1])
    return Rows(Z, states, TREES)


def plain_density(fit, k, z, state):
    found = fit.weights[k] * stats.multivariate_normal(fit.means[k], fit.covariances[k]).pdf(z)
    for node, up in enumerate(TREES.parents):
        found *= fit.tables[node][k, state[up] if up >= 0 else 0, state[node]]
    return found


def plain_pooled(rows):
    tables = []
    for node, up in enumerate(TREES.parents):
        own = rows.states[:, node]
        margin = np.array([(own == s).mean() for s in range(TREES.n_states[node])])
        lines = []
        for above in range(TREES.n_states[up]) if up >= 0 else [None]:
            some = own if above is None else own[rows.states[:, up] == above]
            counts = np.array([(some == s).sum() for s in range(TREES.n_states[node])])
            lines.append((counts + margin) / (len(some) + 1))
        tables.append(np.array(lines))
    return tables


def plain_step(rows, shares, shrinkage):
    """Return the parameters given the shares of components in rows (n_rows, n_components)."""
    n, n_components = shares.shape
    sizes = shares.sum(axis=0)
    weights = (sizes + 1e-3) / (n + n_components * 1e-3)
    means = shares.T @ rows.Z / sizes[:, None]
    scatters = []
    for k in range(n_components):
        off = rows.Z - means[k]
        scatters.append((shares[:, k, None] * off).T @ off)
    within = sum(scatters) / sizes.sum()
    covs = [
        (scatter + shrinkage * within) / (size + shrinkage) + 1e-5 * np.eye(2)
        for scatter, size in zip(scatters, sizes, strict=True)
    ]
    tables = []
    for node, (up, pooled) in enumerate(zip(TREES.parents, plain_pooled(rows), strict=True)):
        table = np.empty((n_components, *pooled.shape))
        for k, above in itertools.product(range(n_components), range(len(pooled))):
            some = np.ones(n, bool) if up < 0 else rows.states[:, up] == above
            own = shares[some, k]
            counts = [own[rows.states[some, node] == s].sum() for s in range(TREES.n_states[node])]
            table[k, above] = (np.array(counts) + pooled[above]) / (own.sum() + 1)
        tables.append(table)
    return Components(weights, means, np.array(covs), tuple(tables))


def plain_shares(rows, fit):
    densities = np.array(
        [
            [plain_density(fit, k, z, state) for k in range(len(fit))]
            for z, state in zip(rows.Z, rows.states, strict=True)
        ]
    )
    return densities / densities.sum(axis=1, keepdims=True), np.log(densities.sum(axis=1))


def assert_same(found, expected, rtol=1e-8):
    for name in ("weights", "means", "covariances"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=rtol)
    for one, other in zip(found.tables, expected.tables, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol)


def test_rows_are_a_constant_numbers_products_and_indicators_of_cells():
    rows = world()
    ((at, columns),) = rows.chunks()
    assert at == slice(0, 40)
    for row, (z, state) in enumerate(zip(rows.Z, rows.states, strict=True)):
        cells = np.zeros(2 + 6 + 2)
        cells[state[0]] = cells[2 + 3 * state[0] + state[1]] = cells[8 + state[2]] = 1.0
        expected = [1.0, *z, z[0] ** 2, z[0] * z[1], z[1] ** 2, *cells]
        np.testing.assert_allclose(columns[:, row], expected)
    assert rows.n_columns == len(columns)


def test_tables_of_one_component_are_smoothed_by_margins():
    rows = world()
    for found, expected in zip(rows.pooled_tables(), plain_pooled(rows), strict=True):
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(("n_steps", "shrinkage"), [(1, 0.5), (3, 4.0), (2, 0.0)])
def test_steps_of_a_fit_are_those_of_the_em_algorithm(n_steps, shrinkage, monkeypatch):
    rows = world()
    shares = np.random.default_rng(1).dirichlet(np.ones(3), len(rows))
    expected = start = plain_step(rows, shares, shrinkage)
    for _ in range(n_steps):
        shares, logs = plain_shares(rows, expected)
        np.testing.assert_allclose(rows.log_densities(expected), logs, rtol=1e-9)
        expected = plain_step(rows, shares, shrinkage)
    monkeypatch.setattr(em, "_MAX_STEPS", n_steps)
    found = fit_components(rows, 3, shrinkage, None, tolerance=-np.inf, start=start)
    assert_same(found, expected)


def test_a_fit_ends_with_the_first_step_that_gains_too_little():
    rows, shrinkage, tolerance = world(seed=2), 2.0, 3e-3
    fit = plain_step(rows, np.random.default_rng(1).dirichlet(np.ones(2), len(rows)), shrinkage)
    start, last = fit, -np.inf
    # Two numbers and three tables.
    while True:
        shares, logs = plain_shares(rows, fit)
        fit = plain_step(rows, shares, shrinkage)
        if logs.mean() - last < tolerance * 5:
            break
        last = logs.mean()
    found = fit_components(rows, 2, shrinkage, None, tolerance=tolerance, start=start)
    assert_same(found, fit)


def plain_clusters(features, n_clusters, rng):
    """k-means from centers that are drawn with shares of squared distances from those before."""
    n = len(features)
    centers = [features[at] for at in rng.integers(n, size=n_clusters)]
    for number in range(1, n_clusters):
        apart = [min(((row - c) ** 2).sum() for c in centers[:number]) for row in features]
        u = rng.random() * sum(apart)
        centers[number] = features[next(at for at, s in enumerate(np.cumsum(apart)) if u <= s)]
    for _ in range(5):
        labels = np.array(
            [np.argmin([((row - c) ** 2).sum() for c in centers]) for row in features]
        )
        centers = [
            features[labels == at].mean(axis=0) if (labels == at).any() else centers[at]
            for at in range(n_clusters)
        ]
    return labels


@pytest.mark.parametrize("seed", range(12))
def test_clusters_are_those_of_plain_k_means(seed):
    rng = np.random.default_rng(seed)
    features = np.concatenate([rng.normal(size=(30, 3)), 3 * rng.normal(size=(20, 3)) + 2])
    found = em._cluster(features, 4, np.random.default_rng(seed))
    assert found.tolist() == plain_clusters(features, 4, np.random.default_rng(seed)).tolist()
    # Also with clusters of a row or two.
    few = rng.normal(size=(12, 2))
    found = em._cluster(few, 6, np.random.default_rng(seed))
    assert found.tolist() == plain_clusters(few, 6, np.random.default_rng(seed)).tolist()
    assert em._cluster(features, 1, rng).tolist() == [0] * 50
    assert em._cluster(features[:, :0], 3, rng).tolist() == [at % 3 for at in range(50)]
    # Fewer distinct rows than clusters.
    few = np.repeat(features[:2], 5, axis=0)
    assert len(set(em._cluster(few, 4, rng).tolist())) == 2


@pytest.mark.parametrize("most", [15, 5_000])
def test_a_fit_starts_from_clusters_of_some_rows(most, monkeypatch):
    monkeypatch.setattr(em, "_START_ROWS", most)
    monkeypatch.setattr(em, "_MAX_STEPS", 1)
    rows = world(seed=3)
    rng = np.random.default_rng(7)
    chosen = np.arange(40)
    if most < 40:
        chosen = np.sort(rng.choice(40, most, replace=False))
    labels = plain_clusters(rows.features(64)[chosen], 3, rng)
    (found,) = fit_each(rows, 3, 2.0, [np.random.default_rng(7)])
    shares = np.zeros((40, 3))
    shares[chosen, labels] = 1.0
    some = Rows(rows.Z[chosen], rows.states[chosen], TREES)
    start = plain_step(some, shares[chosen], 2.0)
    # Tables are smoothed by those of all rows.
    pooled, part = plain_pooled(rows), plain_pooled(some)
    tables = []
    for table, whole, own, up in zip(start.tables, pooled, part, TREES.parents, strict=True):
        sums = np.empty(table.shape)
        for k, above in itertools.product(range(3), range(len(own))):
            of = labels == k
            if up >= 0:
                of = of & (some.states[:, up] == above)
            sums[k, above] = table[k, above] + (whole[above] - own[above]) / (of.sum() + 1)
        tables.append(sums)
    start = Components(start.weights, start.means, start.covariances, tuple(tables))
    assert_same(found, plain_step(rows, plain_shares(rows, start)[0], 2.0))


def test_columns_of_clusters_are_numbers_and_indicators_of_unit_variance():
    rows = world()
    parts = [rows.Z]
    for node, n_states in enumerate(TREES.n_states):
        hot = np.eye(n_states)[rows.states[:, node]]
        parts.append(hot / math.sqrt(hot.var(axis=0).sum()))
    np.testing.assert_allclose(rows.features(3), np.concatenate(parts, axis=1))
    assert rows.features(2).shape[1] == 2 + 2 + 2


def test_components_are_sorted_along_their_main_axis_and_split_in_order():
    rng = np.random.default_rng(0)
    at = np.array([3.0, -1.0, 2.0, 0.5])
    made = Components(
        np.full(4, 0.25), np.outer(at, [1.0, 2.0]), np.tile(np.eye(2), (4, 1, 1)),
        (rng.dirichlet(np.ones(2) * 500, (4, 1)),),
    )  # fmt: skip
    order = made.sort().means[:, 0].tolist()
    assert order in (sorted(at.tolist()), sorted(at.tolist(), reverse=True))
    # Also by tables, for which the axis is the only one that varies.
    tables = np.stack([0.1 + at / 10 + 0.1, 0.8 - at / 10], axis=1)[:, None]
    flat = Components(made.weights, np.zeros((4, 2)), made.covariances, (tables,))
    shares = flat.sort().tables[0][:, 0, 0].tolist()
    assert shares in (sorted(shares), sorted(shares, reverse=True))
    parts = made.split(2)
    assert [part.means[:, 0].tolist() for part in parts] == [[3.0, -1.0], [2.0, 0.5]]
    together = Components.concatenate(parts)
    assert_same(together, made)
    pooled = Components.pool([made, made])
    assert pooled.weights.tolist() == [0.125] * 8


# Gaps


def test_gaps_are_filled_by_present_values_of_their_column():
    values = np.array([[1.0, np.nan, np.nan], [2.0, 5.0, np.nan], [np.nan, 6.0, np.nan]] * 20)
    filled = fill_from_rows(values, np.random.default_rng(0))
    there = ~np.isnan(values)
    assert (filled[there] == values[there]).all()
    assert set(filled[:, 0]) == {1.0, 2.0}
    assert set(filled[::3, 1]) == {5.0, 6.0}
    assert (filled[:, 2] == 0.0).all()


@pytest.mark.parametrize("gaps", [(0,), (1, 2), (0, 1, 2)])
def test_filled_gaps_have_the_moments_of_the_mixture_given_the_rest(gaps):
    rng = np.random.default_rng(0)
    n = 20_000
    factors = rng.normal(size=(2, 3, 3))
    covs = factors @ factors.transpose(0, 2, 1) + 0.2 * np.eye(3)
    means = np.array([[-1.0, 0.0, 1.0], [1.5, 1.0, -1.0]])
    table = np.array([[[0.7, 0.3]], [[0.2, 0.8]]])
    fit = Components(np.array([0.4, 0.6]), means, covs, (table,))
    x = np.array([0.3, -0.2, 0.8])
    rows = np.tile(x, (n, 1))
    rows[:, list(gaps)] = np.nan
    filled = fill_gaps(fit, rows, np.ones((n, 1), int), np.random.default_rng(1))
    at = [n for n in range(3) if n not in gaps]
    assert (filled[:, at] == x[at]).all()
    weights, centers, spreads = [], [], []
    for k in range(2):
        cov = covs[k]
        gain = cov[np.ix_(gaps, at)] @ np.linalg.inv(cov[np.ix_(at, at)])
        centers.append(means[k][list(gaps)] + gain @ (x[at] - means[k][at]))
        spreads.append(cov[np.ix_(gaps, gaps)] - gain @ cov[np.ix_(at, gaps)])
        own = stats.multivariate_normal(means[k][at], cov[np.ix_(at, at)]).pdf(x[at]) if at else 1.0
        weights.append(fit.weights[k] * table[k, 0, 1] * own)
    weights = np.array(weights) / sum(weights)
    mean = weights @ np.array(centers)
    second = sum(
        w * (s + np.outer(c - mean, c - mean))
        for w, c, s in zip(weights, centers, spreads, strict=True)
    )
    error = 5 * np.sqrt(np.diag(second) / n)
    assert (np.abs(filled[:, list(gaps)].mean(axis=0) - mean) < error).all()
    found = np.cov(filled[:, list(gaps)].T).reshape(second.shape)
    scale = np.sqrt(np.outer(np.diag(second), np.diag(second)))
    assert (np.abs(found - second) / scale < 0.06).all()
