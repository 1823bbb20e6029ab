import itertools
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from dsage import Graph
from dsage._random import Streams
from dsage.estimate.accumulate.control import SECONDS_A_COST, CheapWalk, Control
from dsage.estimate.exact import enumerate_boundaries
from dsage.estimate.walk import Boundaries, Prefixes, play
from dsage.games import MomentGame
from dsage.graphs import NoSeparation
from dsage.orderings import as_orderings
from exact_values import mask, shapley

NAMES = tuple("abcde")
N_ROWS = 200
CHAIN = Graph([*NAMES, "y"], [("a", "b"), ("b", "y"), ("c", "y"), ("y", "d"), ("e", "d")]).oracle(
    "y"
)
CASES = {"plain": (None, "boundary"), "skip": (CHAIN, "skip"), "boundary": (CHAIN, "boundary")}
cases = pytest.mark.parametrize("case", CASES)


@pytest.fixture(scope="module")
def game():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(N_ROWS, 5)) @ generator.normal(size=(5, 5))
    output = X @ [1.0, -1.0, 0.5, 2.0, 0.0]
    return MomentGame(X, output, output + generator.normal(size=N_ROWS), NAMES)


def walk_of(game, case):
    return CheapWalk.of(game, *CASES[case])


def exact_mean(game, enumeration):
    return enumeration.values(game.mean_risks(enumeration.coalitions))


def control(game, case, *, enumerated=False, orderings="antithetic", seed=0):
    oracle, semantics = CASES[case]
    mean = None
    if enumerated:
        asked = NoSeparation(NAMES) if oracle is None else oracle
        enumeration = enumerate_boundaries(asked, semantics=semantics)
        mean = partial(exact_mean, game, enumeration)
    made = as_orderings(orderings, NAMES, Streams(seed))
    return Control([walk_of(game, case)], made, len(NAMES), mean)


def test_the_exact_mean_is_computed_once_and_when_it_is_needed(game):
    calls = []

    def mean():
        calls.append(1)
        return np.arange(5.0)

    made = [Control([np.zeros_like], SimpleNamespace(batch_size=2), 5, mean) for _ in range(2)]
    assert all(each.is_exact and not each.variance.any() for each in made)
    assert all(each.refine(0.0, 1) for each in made)
    assert not calls
    np.testing.assert_array_equal(made[0].mean, np.arange(5.0))
    np.testing.assert_array_equal(made[0].mean, np.arange(5.0))
    assert len(calls) == 1
    # Beside other processes.
    made[1].prepare(lambda: False)
    assert len(calls) == 2
    np.testing.assert_array_equal(made[1].mean, np.arange(5.0))
    assert len(calls) == 2


def truth(game, case):
    oracle, semantics = CASES[case]

    def risk(coalition):
        return float(game.mean_risks(mask(coalition, 5))[0])

    return shapley(risk, 5, oracle, semantics)


@cases
def test_all_orderings_at_once_are_exact(game, case):
    exact = control(game, case, enumerated=True)
    assert exact.is_exact
    np.testing.assert_allclose(exact.mean, truth(game, case), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(exact.variance, 0.0)
    before = exact.mean.copy()
    exact.refine(0.0, 1000)
    assert exact.n_orderings == 0
    np.testing.assert_array_equal(exact.mean, before)


@cases
@pytest.mark.parametrize("orderings", ["uniform", "antithetic", "stratified"])
def test_sampled_orderings_agree_with_all_of_them_within_their_error(game, case, orderings):
    sampled = control(game, case, orderings=orderings)
    sampled.refine(0.0, 4)
    off = sampled.mean - truth(game, case)
    se = np.sqrt(sampled.variance)
    assert (np.abs(off) <= 4.5 * se + 1e-10).all()
    assert (se > 0).any()


@cases
@pytest.mark.parametrize(("until", "n_units"), [((1e9, 0), 64), ((0.0, -3), 512)])
def test_the_variance_is_that_of_the_mean_of_units(game, case, until, n_units):
    sampled = control(game, case)
    sampled.refine(np.inf, 0)
    assert sampled.n_orderings == 0
    np.testing.assert_array_equal(sampled.variance, np.inf)
    # Units are added 64 at a time; several additions count what lies between them, too.
    sampled.refine(*until)
    assert sampled.n_orderings == 2 * n_units
    orderings = as_orderings("antithetic", NAMES, Streams(0))
    walk, first = walk_of(game, case), 1 << 41
    units = np.array([walk(orderings.batch(first + unit)).mean(axis=0) for unit in range(n_units)])
    np.testing.assert_allclose(sampled.mean, units.mean(axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        sampled.variance, units.var(axis=0, ddof=1) / n_units, rtol=1e-7, atol=1e-18
    )


def test_errors_are_of_the_right_size_over_seeds(game):
    runs = [control(game, "plain", orderings="uniform", seed=seed) for seed in range(60)]
    for run in runs:
        run.refine(1e9, 0)
    squares = np.array([(run.mean - truth(game, "plain")) ** 2 for run in runs])
    variances = np.array([run.variance for run in runs])
    ratio = (squares / variances).mean(axis=0)
    # Each is about chi-square with one degree of freedom: variance 2.
    assert (np.abs(ratio - 1) < 4.5 * np.sqrt(2 / len(runs))).all()


def test_refining_goes_to_the_bound_and_no_further(game):
    sampled = control(game, "plain")
    sampled.refine(1e9, 0)
    bound = float(sampled.variance.sum()) / 5
    sampled.refine(bound, 1000)
    assert sampled.variance.sum() <= bound
    n_orderings = sampled.n_orderings
    assert n_orderings < 2 * 64 * 20
    sampled.refine(bound, 1000)
    assert sampled.n_orderings == n_orderings


def test_refining_ends_where_a_second_of_the_main_term_gains_more(game):
    unlimited, limited, least = (control(game, "plain") for _ in range(3))
    unlimited.refine(0.0, 1)
    # What a second gains after a quarter of the orderings, whose variance is that of one by 1 / n.
    n = unlimited.n_orderings / 4
    one = float(unlimited.variance.sum()) * unlimited.n_orderings
    limited.refine(0.0, 1, rate=one / n**2 / SECONDS_A_COST)
    assert n / 1.5 < limited.n_orderings < 1.5 * n
    least.refine(0.0, 1, rate=np.inf)
    assert least.n_orderings < limited.n_orderings


def test_refining_ends_at_a_multiple_of_the_main_level(game):
    sampled = control(game, "plain")
    sampled.refine(0.0, 1)
    assert sampled.n_orderings == 1024 * 5
    sampled.refine(0.0, 1)
    assert sampled.n_orderings == 1024 * 5


def test_what_was_refined_in_steps_equals_what_was_refined_at_once(game):
    stepwise, at_once = control(game, "skip"), control(game, "skip")
    for n_main in range(3):
        stepwise.refine(0.0, n_main)
    at_once.refine(0.0, 2)
    np.testing.assert_array_equal(stepwise.mean, at_once.mean)
    np.testing.assert_array_equal(stepwise.variance, at_once.variance)


@cases
def test_walks_on_all_rows_at_once_are_means_over_rows(game, case):
    oracle, _ = CASES[case]
    orders = np.array([np.random.default_rng(seed).permutation(5) for seed in range(7)])
    rows = np.arange(N_ROWS)
    slow = Boundaries(oracle) if case == "boundary" else Prefixes(game, oracle)
    expected = play(slow(orders, rows, 0), game)
    found = walk_of(game, case)(orders)
    assert found.shape == (7, 5)
    np.testing.assert_allclose(found, expected.values.mean(axis=(1, 2)), rtol=1e-8, atol=1e-11)
    if oracle is not None:
        assert expected.skipped.any()
        np.testing.assert_array_equal(found[expected.skipped], 0.0)


def nested(game, *, seed=0, n_levels=3):
    """The control of a game above games of which each resembles the one before it."""
    walk = walk_of(game, "plain")
    generator = np.random.default_rng(5)
    tilts = generator.normal(size=(2, 5))

    def like(share, tilt):
        # The position of a feature is known, so that its mean over all orderings is, too.
        return lambda orders: share * walk(orders) + 0.05 * tilt * np.argsort(orders, axis=1)

    walks = [walk, like(0.8, tilts[0]), like(0.5, tilts[1])][:n_levels]
    orderings = as_orderings("uniform", NAMES, Streams(seed))
    return Control(walks, orderings, len(NAMES), costs=[9.0, 3.0, 1.0][:n_levels])


def test_nested_games_have_the_mean_of_the_first(game):
    runs = [nested(game, seed=seed) for seed in range(40)]
    for run in runs:
        run.refine(1e9, 0)
        run.refine(float(run.variance.sum()) / 3, 1000)
    squares = np.array([(run.mean - truth(game, "plain")) ** 2 for run in runs])
    ratio = (squares / np.array([run.variance for run in runs])).mean()
    # 200 of them, about chi-square with one degree of freedom; values of a run depend on another.
    assert abs(ratio - 1) < 4.5 * np.sqrt(2 / 40)


def test_nested_games_need_few_orderings_of_the_dear_one(game):
    alone, chain = nested(game, n_levels=1), nested(game)
    alone.refine(1e9, 0)
    bound = float(alone.variance.sum()) / 20
    for control in (alone, chain):
        control.refine(bound, 1000)
        assert control.variance.sum() <= bound
    assert chain.state()["counts"][0] < alone.state()["counts"][0] / 4


def test_a_nested_control_goes_on_from_its_state(game):
    first, second, whole = (nested(game) for _ in range(3))
    first.refine(1e9, 0)
    bound = float(first.variance.sum()) / 10
    second.restore({name: value.copy() for name, value in first.state().items()})
    for control in (second, whole):
        control.refine(bound, 1000)
    np.testing.assert_array_equal(second.mean, whole.mean)
    np.testing.assert_array_equal(second.variance, whole.variance)


def test_units_that_were_computed_ahead_change_no_bit(game):
    plain, ahead = nested(game), nested(game)
    asked, left = [], []
    for n_main in (4, 12, 24, 40):
        ahead.prepare(lambda: False, 0.0, n_main)
        asked.append(len(ahead._ready))
        plain.refine(0.0, n_main)
        ahead.refine(0.0, n_main)
        left.append(len(ahead._ready))
        for name, value in plain.state().items():
            np.testing.assert_array_equal(ahead.state()[name], value)
    # Nothing is known before the first refinement; later, what is needed is there, or nearly so.
    assert asked[0] == 0
    assert min(asked[1:]) > 0
    assert max(left) < 0.5 * max(asked)
    ahead.prepare(lambda: False, 0.0, 60)
    n_ready = len(ahead._ready)
    ahead.prepare(lambda: False, 0.0, 60)
    assert len(ahead._ready) == n_ready
    ahead.restore(plain.state())
    assert not ahead._ready
    ahead.prepare(lambda: True, 0.0, 60)
    assert not ahead._ready


def test_what_is_computed_ahead_takes_bounded_memory(game, monkeypatch):
    made = nested(game)
    made.refine(0.0, 8)
    monkeypatch.setattr("dsage.estimate.accumulate.control._BYTES_AHEAD", 10 * made.at_once * 5 * 8)
    made.prepare(lambda: False, 0.0, 1 << 30)
    assert len(made._ready) == 10


def test_nothing_is_computed_ahead_that_is_not_needed(game):
    made = nested(game)
    made.refine(0.0, 8)
    reached = float(made.variance.sum())
    made.prepare(lambda: False, reached, 8)
    assert not made._ready
    made.prepare(lambda: False, np.inf, 8)
    assert not made._ready
    # Half of the variance takes about twice the units, of those that remain dear.
    n_units = made.state()["counts"].sum()
    made.prepare(lambda: False, reached / 2, 1 << 20)
    assert 0.5 * n_units < len(made._ready) * made.at_once < 2.0 * n_units


@pytest.mark.parametrize(
    ("n_columns", "batch_size", "at_once"),
    [(1, 2, 64), (64, 2, 64), (65, 2, 62), (200, 2, 6), (200, 5, 2), (2000, 2, 2)],
)
def test_fewer_orderings_of_many_columns_are_added_at_a_time(n_columns, batch_size, at_once):
    # As many as have 2**19 cells of matrices, 128 at most, but two units at least.
    made = Control([np.zeros_like], SimpleNamespace(batch_size=batch_size), n_columns)
    assert made.at_once == at_once


def test_slopes_are_those_of_a_regression_on_the_next_game(game):
    walk, rng = walk_of(game, "plain"), np.random.default_rng(0)
    walks = [walk, lambda orders: 5.0 - 0.25 * walk(orders), lambda orders: walk(orders) ** 2]
    made = Control([*walks, np.zeros_like], as_orderings("uniform", NAMES, Streams(0)), 5)
    made.refine(1e9, 0)
    slopes = made.state()["slopes"]
    # A constant that all orderings have in common counts for nothing.
    np.testing.assert_allclose(slopes[0], -4.0)
    orders = np.array([rng.permutation(5) for _ in range(4000)])
    value, square = (each(orders) for each in walks[1:])
    off = square - square.mean(axis=0)
    expected = (value * off).sum() / (off**2).sum()
    np.testing.assert_allclose(slopes[1], expected, rtol=0.3)
    assert slopes[2:].tolist() == [0.0, 0.0]


class Plain:
    """The same as `Control` with all units kept: means and variances are those of lists."""

    def __init__(self, walks, orderings, costs, at_once):
        self.walks, self.orderings, self.costs, self.at_once = walks, orderings, costs, at_once
        pilot = [self._means(walk, 3 << 40) for walk in walks]
        self.slopes = [0.0] * len(walks)
        for level, (one, other) in enumerate(itertools.pairwise(pilot)):
            a, b = (each - each.mean(axis=0) for each in (one, other))
            self.slopes[level] = (a * b).sum() / (b * b).sum() if b.any() else 0.0
        self.factors = np.cumprod([1.0, *self.slopes[:-1]])
        self.units = [[] for _ in walks]
        for level in range(len(walks)):
            self._add(level)

    def _means(self, walk, first):
        batches = range(first, first + self.at_once)
        values = walk(np.concatenate([self.orderings.batch(each) for each in batches]))
        return np.array([each.mean(axis=0) for each in np.split(values, self.at_once)])

    def _add(self, level):
        # Every game has orderings of its own.
        first = (1 << 41) + level * (1 << 36) + len(self.units[level])
        units = self._means(self.walks[level], first)
        if level + 1 < len(self.walks):
            units = units - self.slopes[level] * self._means(self.walks[level + 1], first)
        self.units[level] += list(units)

    @property
    def mean(self):
        return sum(
            f * np.mean(each, axis=0) for f, each in zip(self.factors, self.units, strict=True)
        )

    def variances(self):
        """Of the mean of each game's units, times the square of its factor."""
        return np.array([
            f**2 * np.var(each, axis=0, ddof=1) / len(each)
            for f, each in zip(self.factors, self.units, strict=True)
        ])  # fmt: skip

    def refine(self, bound, n_main, rate=0.0, wanted=None):
        at = np.arange(5) if wanted is None else np.flatnonzero(wanted)
        size = self.orderings.batch_size
        while True:
            n_units = np.array(list(map(len, self.units)))
            cost = (n_units * self.costs).sum() * size
            found = self.variances()[:, at].sum(axis=1)
            is_trusted = n_units.min() >= 16
            if cost >= 1024 * (n_main + 4) * min(self.costs) or (
                is_trusted and found.sum() <= bound
            ):
                return
            # How fast the variance falls with the seconds of a unit.
            gains = found / n_units / self.costs
            if is_trusted and gains.max() / (SECONDS_A_COST * size) <= rate:
                return
            self._add(int(np.argmax(gains)))


@pytest.mark.parametrize("n_levels", [1, 2, 3])
@pytest.mark.parametrize("costs", [[9.0, 3.0, 1.0], [1.0, 2.0, 0.5]])
def test_a_control_refines_as_one_that_keeps_all_units(game, n_levels, costs):
    walk, rng = walk_of(game, "plain"), np.random.default_rng(7)
    tilts = rng.normal(size=(3, 5))
    walks = [
        walk,
        lambda orders: 3.0 - 0.8 * walk(orders) + 0.05 * tilts[0] * np.argsort(orders, axis=1),
        lambda orders: 0.5 * walk(orders) + 0.1 * tilts[1] * np.argsort(orders, axis=1) ** 2,
    ][:n_levels]
    costs = costs[:n_levels]
    orderings = as_orderings("antithetic", NAMES, Streams(3))
    found = Control(walks, orderings, 5, costs=costs)
    # Few units at a time, so that many decisions are made.
    found.at_once = 5
    plain = Plain(walks, orderings, np.array(costs), 5)
    first = float(plain.variances().sum())
    wanted = np.array([True, False, False, True, False])
    steps = [
        {"bound": 1e9, "n_main": 0},
        {"bound": first / 10, "n_main": 2},
        {"bound": first / 60, "n_main": 2, "wanted": wanted},
        {"bound": 0.0, "n_main": 2, "rate": 2e-6 * first / SECONDS_A_COST},
        {"bound": 0.0, "n_main": -3},
    ]
    for step in steps:
        given = dict(step)
        assert found.refine(given.pop("bound"), given.pop("n_main"), **given)
        plain.refine(**step)
        state = found.state()
        np.testing.assert_allclose(state["slopes"], plain.slopes)
        assert state["counts"].tolist() == list(map(len, plain.units))
        np.testing.assert_allclose(found.mean, plain.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.variance, plain.variances().sum(axis=0), rtol=1e-7)
        assert found.n_orderings == sum(map(len, plain.units)) * orderings.batch_size


def test_refining_ends_when_the_time_is_over(game):
    plain, looks = control(game, "plain"), []
    assert not plain.refine(0.0, 1000, is_over=lambda: looks.append(0) or len(looks) > 3)
    # The first units are needed.
    assert plain.n_orderings == 2 * 64 * 4
    assert plain.refine(1e9, 1000, is_over=lambda: True)
    assert plain.refine(np.inf, 1000, is_over=lambda: True)


def test_means_over_positions_are_used_if_they_pay_off(game):
    expected, asked = truth(game, "plain"), []
    made, walk = as_orderings("antithetic", NAMES, Streams(0)), walk_of(game, "plain")

    def noisy(orders):
        draws = np.random.default_rng(int(orders[:, 0].sum())).normal(size=orders.shape)
        asked.append(len(orders))
        return game.position_means(orders) + draws

    alone = Control([walk], made, 5)
    alone.refine(0.0, 0)
    rough = Control([walk], made, 5, position_means=noisy)
    rough.refine(0.0, 0)
    # Only asked for in the pilot.
    assert len(asked) == 1
    assert not rough.state()["is_by_position"].any()
    np.testing.assert_array_equal(rough.mean, alone.mean)
    better = Control([walk], made, 5, position_means=game.position_means)
    better.refine(0.0, 0)
    assert better.state()["is_by_position"].all()
    assert (np.abs(better.mean - expected) <= 4.5 * np.sqrt(better.variance) + 1e-10).all()
    # They cost more, so there are fewer of them, and yet their errors are smaller.
    assert better.n_orderings < alone.n_orderings
    assert better.variance.sum() < alone.variance.sum()


def test_means_over_positions_continue_where_they_were_stopped(game):
    made = as_orderings("antithetic", NAMES, Streams(0))
    whole, half, rest = (
        Control([walk_of(game, "plain")], made, 5, position_means=game.position_means)
        for _ in range(3)
    )
    whole.refine(0.0, 20)
    half.refine(0.0, 0)
    rest.restore(half.state())
    rest.refine(0.0, 20)
    assert rest.n_orderings == whole.n_orderings
    np.testing.assert_array_equal(rest.mean, whole.mean)


@pytest.mark.parametrize(("cost", "at_once"), [(1.0, 128), (2**14, 64), (2**30, 2)])
def test_few_orderings_are_added_at_a_time_if_they_are_dear(cost, at_once):
    orderings = as_orderings("uniform", NAMES, Streams(0))
    made = Control([lambda orders: orders * 1.0], orderings, len(NAMES), costs=[cost])
    assert made.at_once == at_once


@pytest.mark.parametrize(("n_columns", "n_units"), [(5, 16), (16, 8), (40, 4)])
def test_with_many_columns_fewer_units_are_enough(n_columns, n_units):
    names = [f"x{j}" for j in range(n_columns)]
    orderings = as_orderings("uniform", names, Streams(0))
    made = Control([lambda orders: orders * 1.0], orderings, n_columns, costs=[2**30])
    made.refine(1e9, 1)
    assert made.n_orderings == n_units
