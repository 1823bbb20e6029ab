"""Draws of a mixture, one row and one draw at a time, from its parameters and the noise."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import ndtri

from dsage.samplers import Mix


def plain_mix_draw(sampler, order, length, x, u):
    """Draw a row of numbers and of a class without a tree, given the first columns of an order."""
    fit, layout = sampler.fit_, sampler.layout_
    parts = fit.components
    numbers = [at for at, n in enumerate(layout.n_categories) if not n]
    classes = [at for at, n in enumerate(layout.n_categories) if n]
    known = list(order[:length])
    z = fit.margins.to_scores(x[None, numbers])[0]
    have = [numbers.index(at) for at in known if at in numbers]
    along = [numbers.index(at) for at in order if at in numbers]
    shares = []
    for k in range(len(parts)):
        share = parts.weights[k]
        if have:
            cov = parts.covariances[k][np.ix_(have, have)]
            share *= stats.multivariate_normal(parts.means[k][have], cov).pdf(z[have])
        for place, at in enumerate(classes):
            if at in known:
                share *= parts.tables[place][k, 0, int(x[at])]
        shares.append(share)
    bounds = np.cumsum(shares)
    k = int((u[0] * bounds[-1] > bounds[:-1]).sum())
    first = (u[0] * bounds[-1] - (bounds[k - 1] if k else 0.0)) / shares[k]
    u = np.append(first, u[1:])
    out = x.copy()
    lower = np.linalg.cholesky(parts.covariances[k][np.ix_(along, along)])
    white = np.linalg.solve(lower, z[along] - parts.means[k][along])
    noise = ndtri(u[numbers])[along]
    noise[: len(have)] = white[: len(have)]
    drawn = parts.means[k][along] + lower @ noise
    for place, number in enumerate(along):
        at = numbers[number]
        if at not in known:
            out[at] = fit.margins.to_values(drawn[place], number)
    for place, at in enumerate(classes):
        if at not in known:
            cumulated = np.cumsum(parts.tables[place][k, 0])
            out[at] = (u[at] > cumulated[:-1]).sum()
    return out


@pytest.mark.parametrize("first", ["number", "class"])
def test_draws_follow_from_the_parameters_and_the_noise(first):
    rng = np.random.default_rng(0)
    side = rng.choice([-1.0, 1.0], 150)
    frame = pd.DataFrame(
        {
            "a": side + rng.normal(size=150),
            "c": np.array(["u", "v", "w"])[(side > 0) + rng.integers(2, size=150)],
            "b": np.exp(side + rng.normal(size=150)),
            "d": side * 2 + rng.normal(size=150),
        }
    )
    frame = frame[["a", "b", "c", "d"] if first == "number" else ["c", "d", "a", "b"]]
    sampler = Mix(n_components=3, n_fits=1).fit(frame)
    X = sampler.layout_.encode(frame)[:3]
    noise = rng.random((3, 3, 4))
    for order in ([0, 1, 2, 3], [3, 2, 0, 1], [2, 1, 3, 0]):
        for length, draws in sampler.ordering(order).prefixes(X, noise):
            for row, draw in itertools.product(range(3), range(3)):
                expected = plain_mix_draw(sampler, order, length, X[row], noise[row, draw])
                np.testing.assert_allclose(draws[row, draw], expected, rtol=1e-4, atol=1e-4)


def first_above(shares, u):
    """Return the position whose share a uniform falls into, and where in it."""
    bounds = np.cumsum(shares)
    at = int((u > bounds[:-1]).sum())
    return at, (u - (bounds[at - 1] if at else 0.0)) / shares[at]


def plain_special_draw(sampler, order, length, x, u):
    """Draw a row of numbers, of which some values are special; the columns are numbers only."""
    fit, numbers = sampler.fit_, sampler._drawer.variables.numbers
    parts, known = fit.components, list(order[:length])
    marks = {}
    for at, number in enumerate(numbers):
        values = number.special.tolist()
        same = [np.isnan(x[at]) if np.isnan(v) else x[at] == v for v in values]
        marks[at] = same.index(True) + 1 if any(same) else 0
    ordinary = [at for at in order if not marks[at]]
    have = [at for at in ordinary if at in known]
    # Numbers that are special in the row never become known themselves.
    along = ordinary + [at for at in range(len(numbers)) if marks[at]]
    z = fit.margins.to_scores(np.where([marks[at] > 0 for at in marks], 0.0, x)[None])[0]
    shares = []
    for k in range(len(parts)):
        share = parts.weights[k]
        if have:
            cov = parts.covariances[k][np.ix_(have, have)]
            share *= stats.multivariate_normal(parts.means[k][have], cov).pdf(z[have])
        for at in known:
            if numbers[at].table >= 0:
                share *= parts.tables[numbers[at].table][k, 0, marks[at]]
        shares.append(share)
    u = u.copy()
    k, u[0] = first_above(np.array(shares) / sum(shares), u[0])
    drawn_marks = {}
    for at, number in enumerate(numbers):
        if number.table >= 0:
            drawn_marks[at], u[at] = first_above(parts.tables[number.table][k, 0], u[at])
    lower = np.linalg.cholesky(parts.covariances[k][np.ix_(along, along)])
    noise = ndtri(u)[along]
    centered = z[along] - parts.means[k][along]
    noise[: len(have)] = np.linalg.solve(lower, centered)[: len(have)]
    drawn = parts.means[k][along] + lower @ noise
    out = x.copy()
    for place, at in enumerate(along):
        if at not in known:
            out[at] = fit.margins.to_values(drawn[place], at)
            if drawn_marks.get(at, 0):
                out[at] = numbers[at].special[drawn_marks[at] - 1]
    return out


@pytest.mark.parametrize("special_first", [False, True])
def test_special_values_are_drawn_before_the_numbers(special_first):
    rng = np.random.default_rng(0)
    side = rng.choice([-1.0, 1.0], 300)
    a, b = side + rng.normal(size=(2, 300))
    b[rng.random(300) < 0.3] = 0.0
    c = a + b + rng.normal(size=300)
    c[rng.random(300) < 0.2], c[rng.random(300) < 0.15] = np.nan, -7.5
    frame = pd.DataFrame({"b": b, "a": a, "c": c} if special_first else {"a": a, "b": b, "c": c})
    sampler = Mix(n_components=2, n_fits=1).fit(frame)
    specials = {
        name: number.special.tolist()
        for name, number in zip(frame, sampler._drawer.variables.numbers, strict=True)
    }
    assert specials["a"] == []
    assert specials["b"] == [0.0]
    assert specials["c"][0] == -7.5
    assert np.isnan(specials["c"][1])
    X = frame.to_numpy()
    rows = X[[np.flatnonzero(X[:, at] == 0)[0] for at in (0, 1) if (X[:, at] == 0).any()]]
    rows = np.concatenate([rows, X[np.isnan(X[:, 2])][:1], X[X[:, 2] == -7.5][:1], X[:3]])
    noise = rng.random((len(rows), 4, 3))
    for order in itertools.permutations(range(3)):
        for length, draws in sampler.ordering(list(order)).prefixes(rows, noise):
            for row, draw in itertools.product(range(len(rows)), range(4)):
                expected = plain_special_draw(sampler, order, length, rows[row], noise[row, draw])
                np.testing.assert_allclose(draws[row, draw], expected, rtol=1e-4, atol=1e-4)
