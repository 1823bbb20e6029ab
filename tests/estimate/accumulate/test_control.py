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


def control(game, case, *, enumerated=False, orderings="antithetic", seed=0):
    oracle, semantics = CASES[case]
    mean = None
    if enumerated:
        asked = NoSeparation(NAMES) if oracle is None else oracle
        enumeration = enumerate_boundaries(asked, semantics=semantics)
        mean = enumeration.values(game.mean_risks(enumeration.coalitions))
    made = as_orderings(orderings, NAMES, Streams(seed))
    return Control([walk_of(game, case)], made, len(NAMES), mean)


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
    asked = []
    for n_main in (4, 12, 24, 40):
        ahead.prepare(lambda: False)
        asked.append(len(ahead._ready))
        plain.refine(0.0, n_main)
        ahead.refine(0.0, n_main)
        for name, value in plain.state().items():
            np.testing.assert_array_equal(ahead.state()[name], value)
    # Nothing is known before the first refinement; later, most pieces are there.
    assert asked[0] == 0
    assert min(asked[1:]) > 0
    ahead.prepare(lambda: False)
    n_ready = len(ahead._ready)
    ahead.prepare(lambda: False)
    assert len(ahead._ready) == n_ready
    ahead.restore(plain.state())
    assert not ahead._ready
    ahead.prepare(lambda: True)
    assert not ahead._ready


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
