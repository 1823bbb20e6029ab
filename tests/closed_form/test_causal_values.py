"""Causal SAGE values and their parts against exact ones."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from dsage import Graph
from dsage.estimate import run, run_local
from dsage.estimate.running.stopping import NOrderings
from dsage.games import Grouped, LossGame, OutputGame
from dsage.graphs.interventions import Interventions
from dsage.models.model import as_model
from dsage.orderings import Order
from dsage.samplers import Gaussian, Interventional, Marginal, Mix, Sequential
from interventional_world import DiscreteWorld, Frequencies, LinearWorld, brute_force, random_dag

FEATURES = ["a", "b", "c"]
INTO_Y = {("a", "y"): 1.0, ("b", "y"): -0.5, ("c", "y"): 0.7}
WORLDS = {
    "chain": LinearWorld(("a", "b", "c", "y"), {("a", "b"): 0.8, ("b", "c"): -0.6} | INTO_Y),
    "fork": LinearWorld(("a", "b", "c", "y"), {("b", "a"): 1.0, ("b", "c"): 0.9} | INTO_Y),
    "collider": LinearWorld(("a", "b", "c", "y"), {("a", "b"): 0.7, ("c", "b"): 0.6} | INTO_Y),
    "confounded pair": LinearWorld(
        ("h", "a", "b", "c", "y"),
        {("h", "a"): 1.0, ("h", "b"): 1.3, ("b", "c"): 0.5} | INTO_Y,
        ("h",),
    ),
    "front door": LinearWorld(
        ("h", "a", "b", "c", "y"),
        {("h", "a"): 1.0, ("h", "c"): 1.3, ("a", "b"): 0.8, ("b", "c"): 0.5} | INTO_Y,
        ("h",),
    ),
    "effect of the target": LinearWorld(
        ("a", "b", "y", "c"),
        {("a", "y"): 1.0, ("b", "y"): 0.5, ("y", "c"): 0.9, ("a", "b"): 0.6},
    ),
    "hidden cause of an effect of the target": LinearWorld(
        ("h", "a", "b", "y", "c"),
        {("a", "y"): 1.0, ("y", "c"): 0.9, ("h", "b"): 1.0, ("h", "c"): 0.7},
        ("h",),
    ),
}
WEIGHTS = np.array([1.2, -0.4, 0.8])


def linear(rows):
    return np.asarray(rows) @ WEIGHTS


def game_of(world, n_rows=40, *, is_affine=True, sampler=None, **options):
    """The game of a linear model with exact moments, and its rows."""
    table = world.sample(n_rows, np.random.default_rng(1))
    if sampler is None:
        variables = [*FEATURES, "y"]
        seen = Gaussian.from_moments(np.zeros(4), world.covariance(variables), variables)
        sampler = Interventional(sampler=seen, graph=world.graph, target="y").fit(table[FEATURES])
    model = as_model(linear, "squared_error", affine=is_affine)
    X, y = table[FEATURES], table["y"].to_numpy()
    return LossGame(model, sampler, X, y, loss="squared_error", **options), X.to_numpy(), y


every_world = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)


@every_world
def test_values_and_parts_are_those_of_the_structural_equations(world):
    game, X, y = game_of(world)
    found = run(game)
    truth = world.values(FEATURES, WEIGHTS, X, y)
    assert found.is_exact
    assert found.estimand == "causal"
    np.testing.assert_allclose(found.values, truth[0], atol=1e-9)
    np.testing.assert_allclose(found.parts.values, truth[1:], atol=1e-9)


@every_world
def test_draws_estimate_the_same_values(world):
    game, X, y = game_of(world, is_affine=False, random_state=0)
    found = run(game, random_state=0, n_jobs=1)
    truth = world.values(FEATURES, WEIGHTS, X, y)
    slack = 4.5 * np.stack([found.se, *found.parts.se]) + 1e-9
    assert found.se.max() < 0.3
    assert (np.abs(np.stack([found.values, *found.parts.values]) - truth) <= slack).all()


def test_sampled_orderings_estimate_the_same_values():
    world = WORLDS["chain"]
    game, X, y = game_of(world)
    found = run(game, exact="never", rows_per_ordering=20, random_state=0)
    truth = world.values(FEATURES, WEIGHTS, X, y)
    slack = 4.5 * np.stack([found.se, *found.parts.se]) + 1e-9
    assert not found.is_exact
    assert (np.abs(np.stack([found.values, *found.parts.values]) - truth) <= slack).all()
    np.testing.assert_allclose(found.parts.values.sum(axis=0), found.values, atol=1e-12)


def test_a_chain_by_hand():
    # a -> b, both into the model f = a + b, and y = f: with a set, b is half of it on average.
    world = LinearWorld(("a", "b", "y"), {("a", "b"): 0.5, ("a", "y"): 1.0, ("b", "y"): 1.0})
    rng = np.random.default_rng(0)
    table = world.sample(500, rng)
    a, b = table["a"].to_numpy(), table["b"].to_numpy()
    seen = Gaussian.from_moments(np.zeros(2), world.covariance(["a", "b"]), ["a", "b"])
    sampler = Interventional(sampler=seen, graph=world.graph).fit(table[["a", "b"]])
    model = as_model(lambda rows: np.asarray(rows).sum(axis=1), "squared_error", affine=True)
    found = run(LossGame(model, sampler, table[["a", "b"]], a + b, loss="squared_error"))
    nothing, only_a = ((a + b) ** 2).mean(), ((b - 0.5 * a) ** 2).mean()
    halfway, only_b = (b**2).mean(), (a**2).mean()
    # Either a comes first, or b, whose value says nothing about a.
    direct = ((nothing - halfway) + only_b) / 2, ((nothing - only_b) + only_a) / 2
    np.testing.assert_allclose(found.parts.values, [direct, [(halfway - only_a) / 2, 0.0]])


@every_world
def test_partial_orders_and_groups_have_the_values_of_their_orderings(world):
    game, X, y = game_of(world)
    order = Order(FEATURES, [("a", "b"), ("a", "c")])
    found = run(game, orderings=order)
    truth = world.values(FEATURES, WEIGHTS, X, y, orders=[(0, 1, 2), (0, 2, 1)])
    np.testing.assert_allclose(found.values, truth[0], atol=1e-9)
    np.testing.assert_allclose(found.parts.values, truth[1:], atol=1e-9)
    grouped = run(Grouped(game, {"ends": ["a", "c"]}))
    members = {0: (0, 2), 1: (1,)}

    def risk(fixed, inputs):
        sets = [frozenset(m for each in some for m in members[each]) for some in (fixed, inputs)]
        means = world.mean_under(FEATURES, sets[0], X)
        at = sorted(sets[1])
        means[:, at] = X[:, at]
        return float(((y - means @ WEIGHTS) ** 2).mean())

    truth = brute_force(risk, 2)
    np.testing.assert_allclose(grouped.values, truth[0], atol=1e-9)
    np.testing.assert_allclose(grouped.parts.values, truth[1:], atol=1e-9)


@every_world
def test_values_of_rows_are_those_of_the_structural_equations(world):
    game, X, _ = game_of(world, 6)
    model = as_model(linear, "squared_error", affine=True)
    table = pd.DataFrame(X, columns=FEATURES)
    local = run_local(OutputGame(model, game.sampler, table))
    for row in range(len(X)):

        def risk(fixed, inputs, row=row):
            means = world.mean_under(FEATURES, fixed, X[row : row + 1])[0]
            at = sorted(inputs)
            means[at] = X[row, at]
            return -float(means @ WEIGHTS)

        truth = brute_force(risk, 3)
        np.testing.assert_allclose(local.values[row], truth[0], atol=1e-9)
        np.testing.assert_allclose(local.parts.direct[row], truth[1], atol=1e-9)
        np.testing.assert_allclose(local.parts.indirect[row], truth[2], atol=1e-9)
    losses = run_local(game)
    np.testing.assert_allclose(losses.values.mean(axis=0), run(game).values, atol=1e-9)
    np.testing.assert_allclose(
        losses.parts.indirect.mean(axis=0), run(game).parts.values[1], atol=1e-9
    )


@pytest.mark.parametrize("seed", range(3))
def test_discrete_networks_have_the_values_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    world = DiscreteWorld.random(random_dag(4, 0.7, rng), rng)
    table = world.population()
    X, y = table[FEATURES], table["d"].astype(int).to_numpy()
    some = rng.permutation(len(X))[:60]
    predictions = rng.random((2, 2, 2))

    def model(rows):
        return predictions[tuple(np.asarray(rows[name]).astype(int) for name in FEATURES)]

    sampler = Interventional(sampler=Frequencies(), graph=world.graph, target="d")
    sampler.fit(X, table["d"])
    game = LossGame(
        model, sampler, X.iloc[some], y[some], loss="squared_error", n_draws=16, random_state=seed
    )
    found = run(game, exact="always", random_state=seed)
    truth = world.values(predictions, FEATURES, X.iloc[some].to_numpy(), y[some])
    slack = 4.5 * np.stack([found.se, *found.parts.se]) + 1e-9
    assert found.se.max() < 0.05
    assert (np.abs(np.stack([found.values, *found.parts.values]) - truth) <= slack).all()


@pytest.mark.parametrize("sampler", [Mix(random_state=0), Sequential()], ids=["mix", "sequential"])
def test_samplers_that_learn_mechanisms_come_close_to_enumeration(sampler):
    rng = np.random.default_rng(2)
    graph = Graph(list("abcd"), [("a", "b"), ("a", "c"), ("b", "d"), ("d", "c")])
    world = DiscreteWorld.random(graph, rng)
    table = pd.concat([world.population()] * 4, ignore_index=True)
    X, y = table[FEATURES], table["d"].astype(int).to_numpy()
    predictions = rng.random((2, 2, 2))

    def model(rows):
        return predictions[tuple(np.asarray(rows[name]).astype(int) for name in FEATURES)]

    made = Interventional(sampler=sampler, graph=graph, target="d").fit(X, table["d"])
    some = rng.permutation(len(X))[:60]
    rows = X.iloc[some], y[some]
    game = LossGame(model, made, *rows, loss="squared_error", n_draws=32, random_state=0)
    found = run(game, exact="always", random_state=0)
    truth = world.values(predictions, FEATURES, X.iloc[some].to_numpy(), y[some])
    # The mechanisms are learned from 1,024 rows: a tenth of the range is far beyond their errors.
    slack = 4.5 * np.stack([found.se, *found.parts.se]) + 0.1 * np.ptp(truth[0])
    assert found.se.max() < 0.1 * np.ptp(truth[0])
    assert (np.abs(np.stack([found.values, *found.parts.values]) - truth) <= slack).all()


@pytest.mark.parametrize("seed", range(8))
def test_features_that_change_nothing_of_the_inputs_can_be_left_out_of_what_is_set(seed):
    # The zero rule, by enumeration of all interventional distributions of random graphs.
    rng = np.random.default_rng(seed)
    world = DiscreteWorld.random(random_dag(5, 0.5, rng), rng)
    features = ["a", "b", "c", "d"]
    model = rng.random((2, 2, 2, 2))
    interventions = Interventions(world.graph, features, "e")
    row, n_reduced = np.array([1, 0, 1, 0]), 0
    for inputs in itertools.product((False, True), repeat=4):
        for fixed in itertools.product(*[(False, True) if each else (False,) for each in inputs]):
            one, other = np.array([fixed]), np.array([inputs])
            less = interventions.reduced(one, other)[0]
            received = frozenset(np.flatnonzero(inputs))
            whole, left = (
                world.expected(model, features, row, frozenset(np.flatnonzero(each)), received)
                for each in (one[0], less)
            )
            assert whole == pytest.approx(left, abs=1e-12)
            n_reduced += int(less.sum() < one.sum())
    assert n_reduced


def test_features_that_are_independent_causes_have_conditional_values():
    world = LinearWorld(("a", "b", "c", "y"), INTO_Y)
    game, X, y = game_of(world)
    found = run(game)
    seen = Gaussian.from_moments(np.zeros(3), np.eye(3), FEATURES)
    plain = LossGame(as_model(linear, "squared_error", affine=True), seen, X, y)
    np.testing.assert_allclose(found.values, run(plain).values, atol=1e-9)
    np.testing.assert_array_equal(found.parts.values[1], 0.0)
    # Without effects on others, the parts need no risks of their own.
    assert found.n_evaluated == 2**3 * len(X)


@pytest.mark.parametrize("cause", ["h", "y"])
def test_features_that_cause_none_of_the_others_have_marginal_values(cause):
    names = (*dict.fromkeys([cause, "a", "b", "c", "y"]),)
    weights = {(cause, name): 1.0 for name in FEATURES}
    if cause == "h":
        weights |= INTO_Y
    world = LinearWorld(names, weights, ("h",) if cause == "h" else ())
    game, X, y = game_of(world, 60)
    found = run(game)
    marginal = LossGame(
        as_model(linear, "squared_error"),
        Marginal().fit(world.sample(4000, np.random.default_rng(5))[FEATURES]),
        pd.DataFrame(X, columns=FEATURES),
        y,
        n_draws=64,
        random_state=0,
    )
    other = run(marginal, exact="always")
    # Its means are those of a sample of 4,000 rows.
    slack = 4.5 * other.se + 4.5 * 2 * 3 / np.sqrt(4000)
    assert (np.abs(found.values - other.values) <= slack).all()
    np.testing.assert_array_equal(found.parts.values[1], 0.0)


@every_world
def test_values_add_up_to_the_reduction_of_the_risk(world):
    game, _, _ = game_of(world)
    nothing, everything = (game.mean_risks(np.array([[flag] * 3]))[0] for flag in (False, True))
    assert run(game).values.sum() == pytest.approx(nothing - everything)


def test_features_that_an_automorphism_exchanges_have_equal_values():
    # a -> c <- b, with a model that treats a and b alike, on rows that are exchanged, too.
    world = LinearWorld(
        ("a", "b", "c", "y"), {("a", "c"): 0.7, ("b", "c"): 0.7, ("a", "y"): 1.0, ("b", "y"): 1.0}
    )
    table = world.sample(30, np.random.default_rng(0))
    swapped = table.rename(columns={"a": "b", "b": "a"})[table.columns]
    both = pd.concat([table, swapped])
    seen = Gaussian.from_moments(np.zeros(3), world.covariance(FEATURES), FEATURES)
    sampler = Interventional(sampler=seen, graph=world.graph).fit(table[FEATURES])
    model = as_model(lambda rows: np.asarray(rows) @ [1, 1, 0.5], "squared_error", affine=True)
    found = run(LossGame(model, sampler, both[FEATURES], both["y"].to_numpy()))
    assert found.values[0] == pytest.approx(found.values[1])
    assert found.parts.values[1, 0] == pytest.approx(found.parts.values[1, 1])
    assert found.parts.values[1, 2] == 0.0


def test_a_null_player_under_interventions_has_the_value_zero():
    # The model uses b alone; c is an effect of b: seeing c would tell about b, setting it does not.
    world = WORLDS["chain"]
    table = world.sample(50, np.random.default_rng(0))
    seen = Gaussian.from_moments(np.zeros(3), world.covariance(FEATURES), FEATURES)
    model = as_model(lambda rows: np.asarray(rows)[:, 1], "squared_error", affine=True)
    rows = table[FEATURES], table["b"].to_numpy()
    sampler = Interventional(sampler=seen, graph=world.graph).fit(table[FEATURES])
    found = run(LossGame(model, sampler, *rows))
    assert found.values[2] == 0.0
    assert found.parts.values[0, 0] == 0.0  # a acts through b only
    assert found.values[0] > 0.1
    assert run(LossGame(model, seen, *rows)).values[2] > 0.05


def test_intervals_cover_the_values_as_often_as_they_say():
    world = LinearWorld(("a", "b", "c", "y"), {("a", "b"): 0.8, ("b", "c"): -0.6} | INTO_Y)
    exact, _, _ = game_of(world, 24)
    truth, few, hits = run(exact), NOrderings(66), []
    for seed in range(36):
        own = {"sampler": exact.sampler, "random_state": seed, "n_draws": 4}
        game, _, _ = game_of(world, 24, is_affine=False, **own)
        level = "none" if seed % 2 else "auto"
        options = {"exact": "never", "rows_per_ordering": 8, "first_level": level}
        found = run(game, stopping=few, random_state=seed, **options)
        frame = found.to_frame().set_index("feature").loc[FEATURES]
        hits.append((frame["lower"] <= truth.values) & (truth.values <= frame["upper"]))
        for part, values in enumerate(truth.parts.values):
            error = np.abs(found.parts.values[part] - values)
            hits.append(error <= 1.96 * found.parts.se[part] + 1e-12)
    share = np.mean(hits)
    # Intervals are correlated within a run: 95 % minus 4.5 standard errors of 36 runs.
    assert share >= 0.95 - 4.5 * np.sqrt(0.95 * 0.05 / 36 / 3)


def test_a_seen_game_has_no_causal_values_and_a_set_one_no_separations():
    game, X, y = game_of(WORLDS["chain"])
    seen = LossGame(LinearRegression().fit(X, y), Gaussian().fit(X), X, y)
    with pytest.raises(ValueError, match="'sage' or 'd-sage' for this game"):
        run(seen, estimand="causal")
    graph = Graph([*FEATURES, "y"], [("a", "y")])
    with pytest.raises(ValueError, match="oracle must be None for a game of interventions"):
        run(game, oracle=graph.oracle("y"))
