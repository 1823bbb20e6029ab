"""A tally against one that keeps every unit, and computes everything from all of them."""

import numpy as np
import pytest

from dsage.estimate.accumulate.tally import Tally

N_FEATURES = 3


class Plain:
    """Units with their shards and epochs, by feature."""

    def __init__(self, sizes):
        self.shares = np.array(sizes) / sum(sizes)
        self.n_shards, self.n_units = len(sizes), 0
        self.units = [[] for _ in range(N_FEATURES)]

    def add(self, shard, epoch, value, control, wanted):
        self.n_units += 1
        for feature in range(N_FEATURES):
            if wanted is None or wanted[feature]:
                unit = (shard, epoch, value[feature], control[feature])
                self.units[feature].append(unit)

    def of_shard(self, feature, shard):
        return np.array([unit[2:] for unit in self.units[feature] if unit[0] == shard])

    def is_everywhere(self, feature):
        return all(len(self.of_shard(feature, shard)) for shard in range(self.n_shards))

    def mean(self, feature):
        if self.is_everywhere(feature):
            means = [self.of_shard(feature, shard).mean(axis=0) for shard in range(self.n_shards)]
            return self.shares @ means
        found = [unit[2:] for unit in self.units[feature]]
        return np.mean(found, axis=0) if found else np.zeros(2)

    def spread(self, feature):
        """Sums of products of deviations, their freedom, and whether within shards and epochs."""
        groups = {}
        for shard, epoch, *pair in self.units[feature]:
            groups.setdefault((shard, epoch), []).append(pair)
        within = [np.array(each) - np.mean(each, axis=0) for each in groups.values()]
        freedom = sum(len(each) - 1 for each in within)
        if self.is_everywhere(feature) and freedom >= max(10, self.n_shards // 4):
            off = np.concatenate(within)
            return off.T @ off, freedom, True
        pairs = np.array([unit[2:] for unit in self.units[feature]]).reshape(-1, 2)
        off = pairs - pairs.mean(axis=0) if len(pairs) else pairs
        return off.T @ off, max(len(pairs) - 1, 1), False

    @property
    def slope(self):
        found = [self.spread(feature) for feature in range(N_FEATURES)]
        if self.n_units < 3:
            return 0.0
        is_even = len({freedom for _, freedom, _ in found}) == 1
        sums = sum(each / (1 if is_even else freedom) for each, freedom, _ in found)
        return sums[0, 1] / sums[1, 1] if sums[1, 1] > 0 else 0.0

    def variance(self, slope, gap, drawn, *, is_exact):
        visits = [
            [len(self.of_shard(feature, shard)) for shard in range(self.n_shards)]
            for feature in range(N_FEATURES)
        ]
        if is_exact and np.sum(visits, axis=0).all():
            return np.zeros(N_FEATURES)
        if self.n_units < 2:
            return np.full(N_FEATURES, np.inf)
        found, residuals, squares = np.zeros(N_FEATURES), [], 0.0
        for feature in range(N_FEATURES):
            products, freedom, is_within = self.spread(feature)
            left = np.array([1.0, -slope]) @ products @ [1.0, -slope]
            # All features share the degree of freedom of a slope.
            residual = max(left, 0.0) / (freedom - (slope != 0) / N_FEATURES)
            residuals.append(residual)
            squares += products[1, 1]
            if is_within:
                shares = self.shares**2 / visits[feature]
                found[feature] = residual * shares.sum()
                continue
            n_units = max(sum(visits[feature]), 1)
            found[feature] = max(residual / n_units - (0 if drawn is None else drawn[feature]), 0.0)
            if is_exact:
                # Shards without replacement.
                found[feature] *= 1 - self.n_units / self.n_shards
        if slope and gap is not None:
            found += gap**2 * sum(residuals) / squares
        return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("sizes", [[4], [3, 5], [2, 3, 3, 1], [1] * 60])
@pytest.mark.parametrize("is_partial", [False, True])
def test_a_tally_is_one_that_keeps_every_unit(sizes, is_partial, seed):
    rng = np.random.default_rng(seed)
    tally, plain, epoch = Tally([np.zeros(n, int) for n in sizes], N_FEATURES), Plain(sizes), 0
    n_units = 3 * len(sizes) if len(sizes) > 4 else 40
    levels = rng.normal(size=(len(sizes), N_FEATURES))
    close = {"rtol": 1e-8, "atol": 1e-12}
    for number in range(n_units):
        if number and rng.random() < 0.1:
            tally.next_epoch()
            epoch += 1
        shard = number % len(sizes)
        if number >= len(sizes) and rng.random() < 0.2:
            shard = int(rng.integers(len(sizes)))
        control = rng.normal(size=N_FEATURES) + 0.5
        value = levels[shard] + 0.7 * control + 0.3 * rng.normal(size=N_FEATURES)
        wanted = rng.random(N_FEATURES) < 0.8 if is_partial and rng.random() < 0.5 else None
        if wanted is not None and not wanted.any():
            wanted = None
        tally.add(shard, value, control, wanted)
        plain.add(shard, epoch, value, control, wanted)
        if number not in (0, 1, 2, 3, 9, 14, 25, 39, 59, 100, 179):
            continue
        means = np.transpose([plain.mean(feature) for feature in range(N_FEATURES)])
        np.testing.assert_allclose(tally.mean(), means, **close)
        np.testing.assert_allclose(tally.slope, plain.slope, **close)
        spreads = [plain.spread(feature) for feature in range(N_FEATURES)]
        assert tally.freedoms.tolist() == [freedom for _, freedom, _ in spreads]
        assert tally.df == min(freedom for _, freedom, _ in spreads)
        assert tally.n_units == number + 1
        gap, drawn = rng.normal(size=N_FEATURES), rng.uniform(0, 0.05, size=N_FEATURES)
        # A run has visited all shards before it visits one again.
        is_pass = number < len(sizes) or tally.counts.all()
        for is_exact in (False, True)[: 1 + is_pass]:
            for slope in (0.0, 0.6):
                for more in ((None, None), (gap, None), (None, drawn), (gap, drawn)):
                    found = tally.variance(slope, *more, is_exact=is_exact)
                    expected = plain.variance(slope, *more, is_exact=is_exact)
                    np.testing.assert_allclose(found, expected, **close)
