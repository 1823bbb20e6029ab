"""Features stand for replications: they are independent columns of one tally."""

import numpy as np
import pytest

from dsage.estimate.accumulate.tally import Tally

BLOCKS = [np.arange(5), np.arange(5, 9), np.arange(9, 12)]
SHARES = np.array([5, 4, 3]) / 12
N_REPEATS = 4000


def zeros(n_features):
    return np.zeros(n_features)


def filled(units, n_features, controls=None, ends=()):
    """A tally of (block, value) pairs; epochs end before the numbered units."""
    tally = Tally(BLOCKS, n_features)
    for number, (block, value) in enumerate(units):
        if number in ends:
            tally.next_epoch()
        control = zeros(n_features) if controls is None else controls[number]
        tally.add(block, value, control)
    return tally


def close_to(found, truth, axis=0):
    """Within 4.5 standard errors of the mean over replications."""
    se = found.std(axis=axis, ddof=1) / np.sqrt(found.shape[axis])
    np.testing.assert_array_less(np.abs(found.mean(axis=axis) - truth), 4.5 * se + 1e-15)


def random_units(generator, n_units, n_features, n_blocks=3):
    """Units that visit the blocks pass by pass, each in an order of its own."""
    order = [generator.permutation(n_blocks) for _ in range(n_units // n_blocks + 1)]
    blocks = np.concatenate(order)[:n_units]
    return [(int(block), generator.normal(size=n_features)) for block in blocks]


# Means


def test_the_mean_weighs_blocks_by_their_rows_whatever_their_number_of_units():
    units = random_units(np.random.default_rng(0), 17, 2)
    value, control = filled(units, 2).mean()
    expected = sum(
        share * np.mean([x for at, x in units if at == block], axis=0)
        for block, share in enumerate(SHARES)
    )
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_array_equal(control, 0.0)


def test_the_mean_is_that_of_all_units_until_every_block_was_visited():
    units = [(0, np.array([1.0])), (1, np.array([5.0]))]
    assert filled(units, 1).mean()[0] == [3.0]
    assert filled([*units, (2, np.array([0.0]))], 1).mean()[0] == pytest.approx([25 / 12])


def test_the_mean_of_the_control_is_formed_like_that_of_the_value():
    units = random_units(np.random.default_rng(0), 11, 2)
    value, control = filled(units, 2, controls=[2 * x for _, x in units]).mean()
    np.testing.assert_allclose(control, 2 * value, rtol=1e-12)


def test_epochs_do_not_change_the_mean():
    units = random_units(np.random.default_rng(0), 17, 2)
    np.testing.assert_array_equal(filled(units, 2).mean(), filled(units, 2, ends=(4, 9)).mean())


# Variances


def test_one_unit_tells_nothing_of_its_variance():
    tally = filled([(0, np.array([1.0, 2.0]))], 2)
    np.testing.assert_array_equal(tally.variance(), np.inf)
    assert tally.n_units == 1


def test_few_units_use_the_variance_between_all():
    units = random_units(np.random.default_rng(0), 9, 2)
    values = np.array([x for _, x in units])
    expected = values.var(axis=0, ddof=1) / len(units)
    np.testing.assert_allclose(filled(units, 2).variance(), expected, rtol=1e-12)


@pytest.mark.parametrize("ends", [(), (9,), (7, 14, 24)])
def test_many_units_use_the_pooled_variance_within_blocks_and_epochs(ends):
    units = random_units(np.random.default_rng(1), 31, 2)
    squares, freedom = np.zeros(2), 0
    for start, stop in zip((0, *ends), (*ends, 31), strict=True):
        for block in range(3):
            values = np.array([x for at, x in units[start:stop] if at == block])
            if len(values):
                squares += ((values - values.mean(axis=0)) ** 2).sum(axis=0)
                freedom += len(values) - 1
    assert freedom >= 10
    counts = np.bincount([block for block, _ in units])
    expected = squares / freedom * (SHARES**2 / counts).sum()
    np.testing.assert_allclose(filled(units, 2, ends=ends).variance(), expected, rtol=1e-12)


@pytest.mark.parametrize(("n_passes", "n_epochs"), [(5, 1), (3, 3), (8, 2)])
def test_the_variance_over_orderings_is_unbiased_with_few_blocks_and_epochs(n_passes, n_epochs):
    """Differences of blocks and of epochs are no error of the orderings."""
    generator = np.random.default_rng(2)
    tally = Tally(BLOCKS, N_REPEATS)
    blocks = 3.0 * generator.normal(size=(3, N_REPEATS))
    for epoch in range(n_epochs):
        noise = 2.0 * generator.normal(size=(3, N_REPEATS))
        for _ in range(n_passes):
            for block in generator.permutation(3):
                value = blocks[block] + noise[block] + generator.normal(size=N_REPEATS)
                tally.add(block, value, zeros(N_REPEATS))
        if epoch < n_epochs - 1:
            tally.next_epoch()
    close_to(tally.variance(), (SHARES**2).sum() / (n_passes * n_epochs))


def test_the_variance_is_not_too_small_while_units_are_few():
    """Until there is enough within blocks, that of the rows is part of it."""
    generator = np.random.default_rng(3)
    blocks = generator.normal(size=(3, N_REPEATS))
    units = [(block, blocks[block] + generator.normal(size=N_REPEATS)) for block in (0, 1, 2, 2, 0)]
    truth = (SHARES**2 / np.array([2, 1, 2])).sum()
    assert filled(units, N_REPEATS).variance().mean() > truth


def test_with_one_block_units_are_a_plain_sample():
    values = np.random.default_rng(0).normal(size=(14, 3))
    tally = Tally([np.arange(8)], 3)
    for value in values:
        tally.add(0, value, zeros(3))
    np.testing.assert_allclose(tally.mean()[0], values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(tally.variance(), values.var(axis=0, ddof=1) / 14, rtol=1e-12)


def test_equal_units_have_variance_zero_but_for_rounding():
    value = np.array([0.0, 0.1, 1e9])
    tally = filled([(block, value) for block in (0, 1, 2) * 6], 3)
    assert (tally.variance() <= (1e-15 * value) ** 2).all()


def test_a_large_common_value_does_not_drown_the_variance():
    units = random_units(np.random.default_rng(5), 24, 3)
    shifted = [(block, value + 1e7) for block, value in units]
    np.testing.assert_allclose(
        filled(shifted, 3).variance(), filled(units, 3).variance(), rtol=1e-6
    )


def test_degrees_of_freedom_are_those_of_the_variance_in_use():
    units = random_units(np.random.default_rng(9), 31, 2)
    assert [filled(units[:n], 2).df for n in (1, 2, 9)] == [1, 1, 8]
    assert filled(units, 2).df == 31 - 3
    assert filled(units, 2, ends=(15,)).df == 31 - 6


# Exact units: nothing varies but the rows


def test_exact_units_have_the_variance_of_sampling_blocks_without_replacement():
    generator = np.random.default_rng(4)
    n_blocks, n_visited = 7, 4
    population = generator.normal(size=n_blocks)
    order = generator.permuted(np.tile(np.arange(n_blocks), (N_REPEATS, 1)), axis=1)
    values = population[order]
    tally = Tally([np.arange(3)] * n_blocks, N_REPEATS)
    for block in range(n_visited):
        tally.add(block, values[:, block], zeros(N_REPEATS))
    truth = population.var(ddof=1) / n_visited * (1 - n_visited / n_blocks)
    close_to(tally.variance(is_exact=True), truth)
    spread = (tally.mean()[0] - population.mean()) ** 2
    close_to(spread, truth)


def test_exact_units_have_no_variance_once_every_block_was_visited():
    units = random_units(np.random.default_rng(0), 3, 2)
    tally = filled(units, 2)
    np.testing.assert_array_equal(tally.variance(is_exact=True), 0.0)
    tally.add(1, np.array([0.3, 0.1]), zeros(2))
    np.testing.assert_array_equal(tally.variance(is_exact=True), 0.0)


@pytest.mark.parametrize("n_units", [0, 1])
@pytest.mark.parametrize("is_exact", [True, False])
def test_what_was_hardly_begun_has_an_unknown_error(n_units, is_exact):
    tally = filled(random_units(np.random.default_rng(0), n_units, 2), 2)
    np.testing.assert_array_equal(tally.variance(is_exact=is_exact), np.inf)


def test_one_exact_unit_on_the_only_block_is_the_answer():
    tally = Tally([np.arange(4)], 1)
    tally.add(0, np.array([2.0]), zeros(1))
    np.testing.assert_array_equal(tally.variance(is_exact=True), 0.0)


# Controls


@pytest.mark.parametrize("n_units", [7, 40])
def test_the_slope_is_that_of_least_squares_over_all_features(n_units):
    generator = np.random.default_rng(6)
    units = random_units(generator, n_units, 3)
    controls = [x + 0.3 * generator.normal(size=3) for _, x in units]
    within = n_units == 40
    above = below = 0.0
    for block in range(3) if within else [None]:
        at = [n for n, (b, _) in enumerate(units) if block is None or b == block]
        x = np.array([units[n][1] for n in at])
        c = np.array([controls[n] for n in at])
        above += ((x - x.mean(axis=0)) * (c - c.mean(axis=0))).sum()
        below += ((c - c.mean(axis=0)) ** 2).sum()
    assert filled(units, 3, controls).slope == pytest.approx(above / below, rel=1e-10)


@pytest.mark.parametrize("size", [0.0, 1.0])
def test_there_is_no_slope_on_a_control_that_varies_by_rounding_only(size):
    rng = np.random.default_rng(0)
    units = [(0, 1.0 + rng.normal(size=3)) for _ in range(20)]
    controls = [size + 1e-15 * rng.normal(size=3) for _ in units]
    assert filled(units, 3, controls).slope == 0.0
    assert filled(units, 3, [1e-3 * each for _, each in units]).slope == pytest.approx(1e3)


def test_there_is_no_slope_without_a_control_or_with_two_units():
    units = random_units(np.random.default_rng(0), 20, 2)
    assert filled(units, 2).slope == 0.0
    two = units[:2]
    assert filled(two, 2, [x for _, x in two]).slope == 0.0


def test_a_control_equal_to_the_value_leaves_no_variance():
    units = random_units(np.random.default_rng(0), 30, 2)
    tally = filled(units, 2, [3 * x - 1 for _, x in units])
    assert tally.slope == pytest.approx(1 / 3)
    np.testing.assert_allclose(tally.variance(tally.slope), 0.0, atol=1e-15)
    assert (tally.variance(tally.slope) >= 0).all()


@pytest.mark.parametrize("n_units", [8, 36])
def test_the_variance_with_a_control_is_that_of_the_difference(n_units):
    generator = np.random.default_rng(7)
    units = random_units(generator, n_units, 2)
    controls = [x + generator.normal(size=2) for _, x in units]
    rest = [(block, x - 0.4 * c) for (block, x), c in zip(units, controls, strict=True)]
    expected = filled(rest, 2)
    # Two features share the degree of freedom of the slope.
    lost = expected.df / (expected.df - 0.5)
    np.testing.assert_allclose(
        filled(units, 2, controls).variance(0.4), lost * expected.variance(), rtol=1e-10
    )


def test_an_uncertain_slope_counts_by_how_far_the_control_is_off():
    generator = np.random.default_rng(3)
    units = random_units(generator, 9, 2)
    controls = [x + generator.normal(size=2) for _, x in units]
    tally = filled(units, 2, controls)
    x, c = np.array([x for _, x in units]), np.array(controls)
    x, c = x - x.mean(axis=0), c - c.mean(axis=0)
    slope = (x * c).sum() / (c * c).sum()
    residual = ((x - slope * c) ** 2).sum() / (8 - 0.5)
    gap = np.array([0.0, 2.0])
    added = tally.variance(tally.slope, gap) - tally.variance(tally.slope)
    np.testing.assert_allclose(added, [0.0, 4.0 * residual / (c * c).sum()], rtol=1e-8)


def test_draws_are_not_counted_twice_where_units_differ_by_their_rows():
    units = random_units(np.random.default_rng(4), 5, 2)
    tally = filled(units, 2)
    whole = tally.variance()
    drawn = np.array([0.5 * whole[0], 2.0 * whole[1]])
    np.testing.assert_allclose(tally.variance(drawn=drawn), [0.5 * whole[0], 0.0], rtol=1e-12)
    within = filled(random_units(np.random.default_rng(4), 40, 2), 2)
    np.testing.assert_array_equal(within.variance(drawn=drawn), within.variance())


def test_an_estimate_with_a_control_is_unbiased_and_its_variance_is_known():
    """The mean of the control is 0 on every block and known."""
    generator = np.random.default_rng(8)
    tally = Tally(BLOCKS, N_REPEATS)
    effects = np.array([1.0, -2.0, 0.5])
    n_passes = 6
    for _ in range(n_passes):
        for block in range(3):
            control = generator.normal(size=N_REPEATS)
            value = effects[block] + 1.5 * control + 0.5 * generator.normal(size=N_REPEATS)
            tally.add(block, value, control)
    value, control = tally.mean()
    found = value - tally.slope * control
    truth = 0.25 * (SHARES**2).sum() / n_passes
    assert tally.slope == pytest.approx(1.5, abs=0.02)
    close_to(found, SHARES @ effects)
    close_to((found - SHARES @ effects) ** 2, truth)
    close_to(tally.variance(tally.slope), truth)


# Units of some features only


def test_a_feature_that_some_units_lack_is_as_if_they_had_not_been():
    generator = np.random.default_rng(10)
    units = random_units(generator, 40, 3)
    controls = [0.5 * value + generator.normal(size=3) for _, value in units]
    has = generator.random((40, 3)) < 0.7
    has[:9] = True
    ends = (13, 26)
    tally = Tally(BLOCKS, 3)
    for number, (block, value) in enumerate(units):
        if number in ends:
            tally.next_epoch()
        # What is not wanted may be anything.
        garbage = np.where(has[number], value, np.nan)
        tally.add(block, garbage, np.where(has[number], controls[number], np.nan), has[number])
    assert tally.n_units == 40
    for feature in range(3):
        alone = Tally(BLOCKS, 1)
        for number, (block, value) in enumerate(units):
            if number in ends:
                alone.next_epoch()
            if has[number, feature]:
                at = slice(feature, feature + 1)
                alone.add(block, value[at], controls[number][at])
        np.testing.assert_allclose(tally.mean()[0][feature], alone.mean()[0][0], rtol=1e-12)
        np.testing.assert_allclose(tally.mean()[1][feature], alone.mean()[1][0], rtol=1e-12)
        np.testing.assert_allclose(tally.variance()[feature], alone.variance()[0], rtol=1e-12)
        assert tally.freedoms[feature] == alone.df
    assert tally.df == tally.freedoms.min()


def test_the_slope_does_not_depend_on_how_many_units_a_feature_has():
    """A feature of slope 1 and one of slope 3, both with controls of the same variance."""
    generator = np.random.default_rng(11)
    tally = Tally(BLOCKS, 2)
    for number in range(3000):
        control = generator.normal(size=2)
        wanted = np.array([True, number % 10 == 0])
        tally.add(number % 3, np.array([1.0, 3.0]) * control, control, wanted)
    assert tally.slope == pytest.approx(2.0, abs=0.15)
