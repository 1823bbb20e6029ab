"""A ledger against one that keeps every unit, and computes everything from all of them."""

import itertools

import numpy as np
import pytest

from dsage.estimate.accumulate.ledger import Ledger

SHARDS = [np.array([4, 0, 7]), np.array([1, 5]), np.array([2, 6, 8]), np.array([3])]
N_ROWS, N_FEATURES = 9, 3


class Plain:
    """All units, row by row: lists of surpluses by term, row, feature and epoch."""

    def __init__(self, shards, n_replicates, n_terms, weights):
        self.shards, self.n_replicates, self.n_terms = shards, n_replicates, n_terms
        self.rows = np.concatenate(shards)
        self.weights = np.ones(len(self.rows)) if weights is None else weights[self.rows]
        self.epoch = 0
        self.units = {}

    def add(self, term, shard, surplus, wanted):
        for row, values in zip(shard, surplus, strict=True):
            for feature in range(N_FEATURES):
                if wanted is None or wanted[feature]:
                    key = term, int(row), feature
                    epochs = self.units.setdefault(key, {})
                    epochs.setdefault(self.epoch, []).append(values[:, feature])

    def of(self, term, row, feature):
        """The surpluses of each epoch, (n_units, n_replicates)."""
        found = self.units.get((term, int(row), feature), {})
        return {epoch: np.array(each) for epoch, each in found.items()}

    def count(self, term, row, feature):
        return sum(map(len, self.of(term, row, feature).values()))

    def covariance(self, s, t, row, feature):
        """Of the means of two terms over their units, from draws."""
        n_s, n_t = (self.count(each, row, feature) for each in (s, t))
        if self.n_replicates == 1 or not n_s or not n_t:
            return 0.0
        one, other, total = self.of(s, row, feature), self.of(t, row, feature), 0.0
        for epoch in one.keys() & other.keys():
            a, b = one[epoch].sum(axis=0), other[epoch].sum(axis=0)
            found = np.cov(a, b)[0, 1]
            n_units = len(one[epoch])
            if s == t and n_units > 1:
                # What draws do to single orderings is part of the variance over orderings.
                alone = one[epoch].var(axis=1, ddof=1).sum()
                found = (found - alone) * n_units / (n_units - 1)
            total += found
        return total / self.n_replicates / n_s / n_t

    def n_used(self, term, feature):
        share = np.mean([self.count(term, row, feature) > 0 for row in self.rows])
        return max(share * N_ROWS, 1.0)

    def draw_variance(self, terms):
        found = [
            sum(
                sum(self.covariance(s, t, row, feature) for row in self.rows)
                / (self.n_used(s, feature) * self.n_used(t, feature))
                for s, t in itertools.product(terms, terms)
            )
            for feature in range(N_FEATURES)
        ]
        return np.maximum(found, 0.0) * N_ROWS / len(self.rows)

    def n_epochs(self, row, feature):
        return len(self.of(0, row, feature))

    @property
    def df_draws(self):
        """Satterthwaite's, and at most those of all rows together."""
        scale, found = N_ROWS / len(self.rows), []
        for feature in range(N_FEATURES):
            own = [self.n_epochs(row, feature) * (self.n_replicates - 1) for row in self.rows]
            variances = [self.covariance(0, 0, row, feature) for row in self.rows]
            most, total = max(scale * sum(own), 1.0), max(sum(variances), 0.0)
            squares = sum(v**2 / (k + 2) for v, k in zip(variances, own, strict=True) if k)
            found.append(min(max(scale * total**2 / squares, 1.0), most) if squares else most)
        return np.array(found)

    @property
    def mean_epochs(self):
        most = [max(self.n_epochs(row, f) for f in range(N_FEATURES)) for row in self.rows]
        return np.mean([each for each in most if each] or [0.0])

    def row_variance(self, terms):
        pairs = list(itertools.product(terms, range(N_FEATURES)))
        visited = [all(self.count(t, row, f) for t, f in pairs) for row in self.rows]
        rows, weights = self.rows[visited], self.weights[visited]
        if len(rows) < 2:
            return np.full(N_FEATURES, np.nan)
        return np.array([self._row_variance(terms, rows, weights, f) for f in range(N_FEATURES)])

    def _row_variance(self, terms, rows, weights, feature):
        values, noise = np.zeros(len(rows)), 0.0
        for term in terms:
            spread, freedom, shares = 0.0, 0, []
            for at, row in enumerate(rows):
                epochs = [each.mean(axis=1) for each in self.of(term, row, feature).values()]
                values[at] += np.concatenate(epochs).mean()
                spread += sum(((each - each.mean()) ** 2).sum() for each in epochs)
                freedom += sum(len(each) - 1 for each in epochs)
                shares.append(1 / self.count(term, row, feature))
            noise += spread / freedom * np.mean(shares) if freedom else 0.0
        # The linear part of a ratio: a weighted mean.
        off = values - (weights - 1.0) * values.sum() / weights.sum()
        drawn = sum(
            np.mean([self.covariance(s, t, row, feature) for row in rows])
            for s, t in itertools.product(terms, terms)
        )
        return max(off.var(ddof=1) - noise - drawn, 0.0) / N_ROWS

    @property
    def df_rows(self):
        share = self.weights.sum() ** 2 / (self.weights**2).sum() / len(self.weights)
        return max(share * N_ROWS - 1.0, 1.0)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(("n_replicates", "n_terms"), [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2)])
def test_a_ledger_is_one_that_keeps_every_unit(n_replicates, n_terms, is_weighted, step):
    rng = np.random.default_rng(10 * n_replicates + n_terms)
    weights = rng.exponential(size=N_ROWS) if is_weighted else None
    if is_weighted:
        weights /= weights.mean()
    n_bytes = 8 * N_ROWS * n_terms * (N_FEATURES * (n_replicates + 3 + 2 * n_terms) + 3)
    n_kept = -(-len(SHARDS) // step)
    given = SHARDS, N_FEATURES, n_replicates, n_terms, n_bytes * n_kept // len(SHARDS), weights
    ledger, copy = Ledger(*given), Ledger(*given)
    plain = Plain(SHARDS[::step], n_replicates, n_terms, weights)
    levels = 3.0 * rng.normal(size=(N_ROWS, 1, N_FEATURES))
    assert ledger.n_epochs == 0.0
    assert ledger.df_draws.tolist() == [1.0] * N_FEATURES
    for number in range(60):
        if number in (17, 30, 31, 45):
            ledger.next_epoch()
            plain.epoch += 1
        term, at = int(rng.integers(n_terms)), int(rng.integers(len(SHARDS)))
        noise = np.random.default_rng([plain.epoch, at]).normal(
            size=(len(SHARDS[at]), n_replicates, N_FEATURES)
        )
        surplus = levels[SHARDS[at]] + rng.normal(size=noise.shape) + 2.0 * noise
        wanted = None if rng.random() < 0.6 else rng.random(N_FEATURES) < 0.6
        ledger.add(term, at, surplus, wanted)
        if at % step == 0:
            plain.add(term, SHARDS[at], surplus, wanted)
        if number not in (1, 6, 17, 25, 30, 44, 59):
            continue
        for terms in [[0], [1], [0, 1]][: 1 if n_terms == 1 else 3]:
            close = {"rtol": 1e-9, "atol": 1e-12}
            np.testing.assert_allclose(
                ledger.draw_variance(terms), plain.draw_variance(terms), **close
            )
            np.testing.assert_allclose(
                ledger.row_variance(terms), plain.row_variance(terms), **close
            )
        assert ledger.df_draws == pytest.approx(plain.df_draws)
        assert ledger.n_epochs == pytest.approx(plain.mean_epochs)
        assert ledger.df_rows == pytest.approx(plain.df_rows)
    copy.draw_variance([0])
    copy.restore(ledger.state())
    np.testing.assert_array_equal(copy.draw_variance([0]), ledger.draw_variance([0]))
    np.testing.assert_array_equal(copy.row_variance([0]), ledger.row_variance([0]))


@pytest.mark.parametrize("n_visited", range(5))
def test_two_rows_tell_how_rows_differ(n_visited):
    shards = [np.array([row]) for row in range(4)]
    ledger = Ledger(shards, N_FEATURES, 1, 1)
    values = np.random.default_rng(0).normal(size=(4, N_FEATURES))
    for row in range(n_visited):
        ledger.add(0, row, values[row][None, None])
    found = ledger.row_variance([0])
    if n_visited < 2:
        assert np.isnan(found).all()
    else:
        # All four rows would be as different as those that were visited.
        np.testing.assert_allclose(found, values[:n_visited].var(axis=0, ddof=1) / 4)
