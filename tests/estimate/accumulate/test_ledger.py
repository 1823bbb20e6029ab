"""Features stand for replications: they are independent columns of one ledger."""

import numpy as np
import pytest

from dsage.estimate.accumulate.ledger import Ledger

N_REPEATS = 3000
BLOCKS = [np.arange(0, 7), np.arange(7, 14), np.arange(14, 20), np.arange(20, 26)]
N_ROWS = 26
N_GROUPS = 3


def held_bytes(ledger):
    """The memory of a ledger once all rows are visited, and there are covariances of each."""
    arrays = {name: each for name, each in vars(ledger).items() if isinstance(each, np.ndarray)}
    arrays.pop("_covariance", None)
    return sum(each.nbytes for each in arrays.values()) + ledger.state()["closed"].nbytes


def test_rows_that_no_unit_has_visited_take_no_part():
    generator = np.random.default_rng(0)
    few, many = (Ledger(list(blocks), 2, N_GROUPS, 1) for blocks in (BLOCKS[:2], BLOCKS))
    for number in (0, 1, 1, 0, 1):
        surplus = generator.normal(size=(len(BLOCKS[number]), N_GROUPS, 2))
        for each in (few, many):
            each.add(0, number, surplus)
            if number == 0:
                each.next_epoch()
    # The variance of the mean over the rows that were visited.
    np.testing.assert_allclose(many.draw_variance([0]), few.draw_variance([0]), rtol=1e-12)
    np.testing.assert_allclose(many.df_draws, few.df_draws, rtol=1e-12)
    n_all, n_few = (sum(map(len, blocks)) for blocks in (BLOCKS, BLOCKS[:2]))
    expected = few.row_variance([0]) * n_few / n_all
    np.testing.assert_allclose(many.row_variance([0]), expected, rtol=1e-9)


class Simulation:
    """Units whose surplus is an effect of the row, of the unit, and of noise kept for an epoch.

    Term t sees ``loads[t]`` times the noise of a row and group, which all its units share.
    """

    def __init__(self, loads, *, rows=0.0, units=0.0, draws=1.0, seed=0, blocks=BLOCKS, **options):
        self.generator = np.random.default_rng(seed)
        self.loads, self.units, self.draws, self.blocks = loads, units, draws, blocks
        self.n_rows = sum(map(len, blocks))
        self.ledger = Ledger(blocks, N_REPEATS, N_GROUPS, len(loads), **options)
        self.rows = rows * self._normal(self.n_rows, 1)
        # What the terms are, row by row: sums over units, and how many.
        self.sums = np.zeros((len(loads), self.n_rows, N_REPEATS))
        self.counts = np.zeros((len(loads), self.n_rows))
        self._noise()

    def _normal(self, *shape):
        return self.generator.normal(size=(*shape, N_REPEATS))

    def _noise(self):
        self.noise = self.draws * self._normal(self.n_rows, N_GROUPS)

    def visit(self, term, *blocks):
        for block in blocks:
            at = self.blocks[block]
            unit = self.units * self._normal(len(at), 1)
            share = 1.0 / len(self.loads)
            surplus = share * self.rows[at] + unit + self.loads[term] * self.noise[at]
            self.ledger.add(term, block, surplus)
            self.sums[term, at] += surplus.mean(axis=1)
            self.counts[term, at] += 1

    def next_epoch(self):
        self.ledger.next_epoch()
        self._noise()

    def values(self, terms):
        """Estimates: sums over terms of means over the rows that they visited."""
        total = np.zeros(N_REPEATS)
        for term in terms:
            at = self.counts[term] > 0
            total += (self.sums[term, at] / self.counts[term, at, None]).mean(axis=0)
        return total


def close_to(found, truth):
    """Within 4.5 standard errors of the mean over replications."""
    se = found.std(ddof=1) / np.sqrt(len(found))
    assert abs(found.mean() - truth) < 4.5 * se, (found.mean(), truth, se)


# Draws


def test_orderings_do_not_lower_the_error_of_draws():
    simulation = Simulation([1.0])
    variances = []
    for _ in range(3):
        simulation.visit(0, 0, 1, 2, 3)
        variances.append(simulation.ledger.draw_variance([0]))
    np.testing.assert_allclose(variances[2], variances[0], rtol=1e-10)
    close_to(variances[0], 1 / (N_GROUPS * N_ROWS))
    close_to(simulation.values([0]) ** 2, 1 / (N_GROUPS * N_ROWS))


def test_the_error_of_draws_is_the_naive_variance_between_groups():
    generator = np.random.default_rng(3)
    ledger = Ledger(BLOCKS, 2, N_GROUPS, 1)
    surplus = generator.normal(size=(2, N_ROWS, N_GROUPS, 2))
    for each in surplus:
        for block, at in enumerate(BLOCKS):
            ledger.add(0, block, each[at])
    both = surplus.mean(axis=0).var(axis=1, ddof=1)
    # What differs between the two units is the orderings' part: half of it is left in the mean.
    differs = (surplus[0] - surplus[1]).var(axis=1, ddof=1) / 2
    expected = np.maximum(((both - differs / 2) / N_GROUPS).sum(axis=0), 0.0) / N_ROWS**2
    np.testing.assert_allclose(ledger.draw_variance([0]), expected, rtol=1e-9, atol=1e-12)


def test_what_draws_do_to_single_orderings_is_left_to_the_orderings():
    """Features are replications; so many rows that no variance is cut off at zero."""
    generator = np.random.default_rng(4)
    n_units, n_rows, n_features = 5, 400, 300
    ledger = Ledger([np.arange(n_rows)], n_features, N_GROUPS, 1)
    common = generator.normal(size=(n_rows, N_GROUPS, n_features))
    for _ in range(n_units):
        ledger.add(0, 0, common + generator.normal(size=common.shape))
    variances = ledger.draw_variance([0])
    assert (variances > 0).all()
    close_to(variances, 1.0 / (N_GROUPS * n_rows))


@pytest.mark.parametrize("passes", [(1, 1), (3, 1), (1, 2, 1)])
def test_epochs_lower_the_error_of_draws_by_their_shares(passes):
    simulation = Simulation([1.0])
    for number, n_passes in enumerate(passes):
        if number:
            simulation.next_epoch()
        for _ in range(n_passes):
            simulation.visit(0, 0, 1, 2, 3)
    shares = np.array(passes) / sum(passes)
    truth = (shares**2).sum() / (N_GROUPS * N_ROWS)
    close_to(simulation.values([0]) ** 2, truth)
    close_to(simulation.ledger.draw_variance([0]), truth)


@pytest.mark.parametrize(
    ("loads", "factor"), [([1.0, 0.5], 2.25), ([1.0, -1.0], 0.0), ([1.0, -0.4], 0.36)]
)
def test_terms_that_share_noise_add_up_with_their_signs(loads, factor):
    simulation = Simulation(loads)
    for term in (0, 1, 1):
        simulation.visit(term, 0, 1, 2, 3)
    truth = factor / (N_GROUPS * N_ROWS)
    found = simulation.ledger.draw_variance([0, 1])
    if factor:
        close_to(simulation.values([0, 1]) ** 2, truth)
        close_to(found, truth)
    else:
        np.testing.assert_allclose(found, 0.0, atol=1e-16)
    close_to(simulation.ledger.draw_variance([0]), 1 / (N_GROUPS * N_ROWS))


def test_terms_on_other_rows_share_no_noise():
    simulation = Simulation([1.0, 1.0])
    simulation.visit(0, 0, 1)
    simulation.visit(1, 2, 3)
    truth = (1 / 14 + 1 / 12) / N_GROUPS
    close_to(simulation.values([0, 1]) ** 2, truth)
    close_to(simulation.ledger.draw_variance([0, 1]), truth)


def test_partial_visits_of_two_terms_share_noise_where_they_overlap():
    simulation = Simulation([1.0, 0.5])
    simulation.visit(0, 0, 1, 2, 3, 0, 1)
    simulation.visit(1, 1, 2)
    simulation.next_epoch()
    simulation.visit(0, 2, 3)
    simulation.visit(1, 2)
    found, values = simulation.ledger.draw_variance([0, 1]), simulation.values([0, 1])
    # Term 0 has two epochs on blocks 2 and 3, term 1 on block 2: by the definition, row by row.
    loads = np.zeros((2, N_ROWS))  # epochs, rows: what the estimate makes of each noise
    for block, first in ((0, 1), (1, 1), (2, 0.5), (3, 0.5)):
        loads[0, BLOCKS[block]] += first / N_ROWS
        loads[1, BLOCKS[block]] += (1 - first) / N_ROWS
    for block, first in ((1, 1), (2, 0.5)):
        loads[0, BLOCKS[block]] += 0.5 * first / 13
        loads[1, BLOCKS[block]] += 0.5 * (1 - first) / 13
    truth = (loads**2).sum() / N_GROUPS
    close_to(values**2, truth)
    close_to(found, truth)


def test_rows_that_are_not_tracked_are_stood_for():
    blocks = np.split(np.arange(24), 6)
    n_bytes = held_bytes(Simulation([1.0], blocks=blocks).ledger)
    whole = Simulation([1.0], blocks=blocks)
    half = Simulation([1.0], blocks=blocks, max_bytes=n_bytes // 2)
    assert held_bytes(half.ledger) == n_bytes // 2
    for simulation in (whole, half):
        simulation.visit(0, *range(6))
        close_to(simulation.ledger.draw_variance([0]), 1 / (N_GROUPS * 24))
    partly = Simulation([1.0], blocks=blocks, max_bytes=n_bytes // 2)
    partly.visit(0, 0, 1)
    close_to(partly.values([0]) ** 2, 1 / (N_GROUPS * 8))


def test_tracked_rows_that_were_partly_visited_stand_for_all_that_were():
    """Of six blocks every second is tracked; a third of the tracked and of all was visited."""
    blocks = np.split(np.arange(24), 6)
    n_bytes = held_bytes(Simulation([1.0], blocks=blocks).ledger)
    simulation = Simulation([1.0], blocks=blocks, max_bytes=n_bytes // 2)
    simulation.visit(0, 2, 3)
    close_to(simulation.ledger.draw_variance([0]), 1 / (N_GROUPS * 8))


def test_memory_follows_the_budget_where_blocks_are_small():
    blocks = np.array_split(np.arange(2000), 40)
    for max_bytes in (10**6, 150_000):
        ledger = Ledger(blocks, 20, 2, 2, max_bytes=max_bytes)
        assert held_bytes(ledger) <= max_bytes


def test_a_game_without_draws_has_no_error_of_draws():
    ledger = Ledger(BLOCKS, 2, 1, 1)
    for block, at in enumerate(BLOCKS):
        ledger.add(0, block, np.random.default_rng(block).normal(size=(len(at), 1, 2)))
    ledger.next_epoch()
    np.testing.assert_array_equal(ledger.draw_variance([0]), 0.0)


# Rows


@pytest.mark.parametrize("draws", [0.0, 2.0])
@pytest.mark.parametrize("passes", [(4,), (1, 1), (2, 2), (1, 1, 1, 1), (3, 1)])
def test_the_error_of_rows_is_free_of_that_of_orderings_and_draws(draws, passes):
    simulation = Simulation([1.0], rows=2.0, units=1.0 if max(passes) > 1 else 0.0, draws=draws)
    for number, n_passes in enumerate(passes):
        if number:
            simulation.next_epoch()
        for _ in range(n_passes):
            simulation.visit(0, 0, 1, 2, 3)
    close_to(simulation.ledger.row_variance([0]), 4 / N_ROWS)


def test_the_error_of_rows_is_right_in_the_middle_of_a_pass():
    simulation = Simulation([1.0], rows=2.0, units=1.5, draws=1.0)
    simulation.visit(0, 0, 1, 2, 3, 2, 0)
    close_to(simulation.ledger.row_variance([0]), 4 / N_ROWS)


def test_the_error_of_rows_is_that_of_all_rows_while_some_were_not_visited():
    simulation = Simulation([1.0], rows=2.0, draws=1.0)
    simulation.visit(0, 1, 3)
    close_to(simulation.ledger.row_variance([0]), 4 / N_ROWS)


def test_the_error_of_rows_of_a_sum_is_that_of_the_sum():
    """Two terms with half of a row's effect each, and noise that they share."""
    simulation = Simulation([1.0, -0.5], rows=2.0, units=0.5, draws=1.0)
    for term in (0, 1, 0, 1, 0):
        simulation.visit(term, 0, 1, 2, 3)
    simulation.next_epoch()
    simulation.visit(1, 0, 2)
    close_to(simulation.ledger.row_variance([0, 1]), 4 / N_ROWS)


def test_one_visit_of_each_row_counts_orderings_as_rows():
    """They cannot be told apart: too large rather than too small."""
    simulation = Simulation([1.0], rows=1.0, units=1.0, draws=1.0)
    simulation.visit(0, 0, 1, 2, 3)
    close_to(simulation.ledger.row_variance([0]), 2 / N_ROWS)


def test_tracked_rows_tell_the_error_of_all():
    blocks = np.split(np.arange(24), 6)
    n_bytes = held_bytes(Simulation([1.0], blocks=blocks).ledger)
    simulation = Simulation([1.0], rows=2.0, blocks=blocks, max_bytes=n_bytes // 2)
    simulation.visit(0, *range(6))
    close_to(simulation.ledger.row_variance([0]), 4 / 24)


def test_fewer_than_two_rows_tell_nothing_of_rows():
    ledger = Ledger([np.arange(1)], 2, N_GROUPS, 1)
    ledger.add(0, 0, np.ones((1, N_GROUPS, 2)))
    assert np.isnan(ledger.row_variance([0])).all()
    fresh = Ledger(BLOCKS, 2, N_GROUPS, 1)
    assert np.isnan(fresh.row_variance([0])).all()


def test_variances_are_not_negative():
    simulation = Simulation([1.0], rows=0.0, units=1.0, draws=1.0)
    for _ in range(2):
        simulation.visit(0, 0, 1, 2, 3)
    assert (simulation.ledger.row_variance([0]) >= 0).all()
    assert (simulation.ledger.draw_variance([0]) >= 0).all()


def df_of(scales, seed, n_epochs=4):
    """The degrees of freedom with draws of rows of these standard deviations."""
    generator = np.random.default_rng(seed)
    ledger = Ledger([np.arange(len(scales))], 1, N_GROUPS, 1)
    for _ in range(n_epochs):
        surplus = scales[:, None, None] * generator.normal(size=(len(scales), N_GROUPS, 1))
        ledger.add(0, 0, surplus)
        ledger.add(0, 0, surplus)
        ledger.next_epoch()
    return ledger.df_draws[0]


def test_degrees_of_freedom_of_draws_count_rows_epochs_and_groups():
    every = 200 * 4 * (N_GROUPS - 1)
    found = [df_of(np.ones(200), seed) for seed in range(20)]
    assert max(found) <= every
    assert np.mean(found) == pytest.approx(every, rel=0.1)


def test_rows_that_draws_hardly_change_do_not_count():
    scales = np.where(np.arange(200) < 20, 1.0, 1e-3)
    found = [df_of(scales, seed) for seed in range(20)]
    assert np.mean(found) == pytest.approx(20 * 4 * (N_GROUPS - 1), rel=0.2)


def test_draws_that_change_nothing_have_all_degrees_of_freedom():
    assert df_of(np.zeros(5), 0) == 5 * 4 * (N_GROUPS - 1)


# Units of some features only


def test_a_feature_that_some_units_lack_is_as_if_they_had_not_been():
    generator = np.random.default_rng(3)
    has = generator.random((24, 3)) < 0.6
    has[:4] = True
    ledger = Ledger(BLOCKS, 3, N_GROUPS, 1)
    alone = [Ledger(BLOCKS, 1, N_GROUPS, 1) for _ in range(3)]
    for number, wanted in enumerate(has):
        if number in (9, 17):
            for each in (ledger, *alone):
                each.next_epoch()
        surplus = generator.normal(size=(len(BLOCKS[number % 4]), N_GROUPS, 3))
        ledger.add(0, number % 4, np.where(wanted, surplus, np.nan), wanted)
        for feature in np.flatnonzero(wanted):
            alone[feature].add(0, number % 4, surplus[..., feature : feature + 1])
    for feature, each in enumerate(alone):
        for name in ("draw_variance", "row_variance"):
            found, expected = getattr(ledger, name)([0])[feature], getattr(each, name)([0])[0]
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    expected = [each.df_draws[0] for each in alone]
    np.testing.assert_allclose(ledger.df_draws, expected, rtol=1e-12)
