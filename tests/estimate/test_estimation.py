"""The loop: corrections, audits, reproducibility, interrupts, biases and standard errors."""

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from dsage import Graph
from dsage.estimate.accumulate.control import Control
from dsage.estimate.loop import Estimation
from dsage.estimate.reasons import StopKind, StopReason
from dsage.estimate.running.run import estimate, run
from dsage.estimate.running.stopping import NOrderings, as_stopping
from dsage.estimate.walk import Prefixes, play
from dsage.games import LossGame
from dsage.graphs import LinearGaussian
from dsage.samplers import Gaussian
from exact_values import LinearGaussianCase, surplus
from small_games import (
    FEATURES,
    GRAPH,
    NAMES,
    ORACLE,
    TableGame,
    as_table,
    exact_sampler,
    gaussian_case,
    gaussian_game,
    suboptimal_gaussian_case,
)

CASE = suboptimal_gaussian_case()
QUIET = pytest.mark.filterwarnings("ignore:Skipping by separation")


def rows(n_rows, seed=0, case=CASE):
    return case.sample(n_rows, np.random.default_rng(seed))


def drawn_game(n_rows=60, **options):
    return gaussian_game(CASE, *rows(n_rows), is_drawn=True, **{"random_state": 1} | options)


# --- the correction and the audit


def wrong_graph():
    """It denies that c says anything about y."""
    return Graph(NAMES, [("a", "b"), ("b", "y"), ("y", "e")]).oracle("y")


def overfitted(n_features=6, n_train=9):
    """A regression with hardly more rows than features, a law, and a graph that is right."""
    names = [f"x{j}" for j in range(n_features)]
    edges = [("x0", "y"), ("x1", "y"), *((f"x{j}", f"x{j + 1}") for j in range(2, n_features - 1))]
    graph = Graph([*names, "y"], edges)
    weights = dict.fromkeys(graph.edges, 0.7)
    law = LinearGaussian(graph, weights, dict.fromkeys(graph.names, 1.0))
    case = LinearGaussianCase.of(law, "y")
    X, y = case.sample(n_train, np.random.default_rng(6))
    fitted = LinearRegression().fit(pd.DataFrame(X, columns=names), y)
    case = LinearGaussianCase.of(law, "y", weights=fitted.coef_, intercept=fitted.intercept_)
    return fitted, case, graph.oracle("y")


def wrongs():
    case = gaussian_case()
    X, y = rows(400, 1, case)
    yield "wrong graph", gaussian_game(case, X, y), wrong_graph(), case.values(data=(X, y)), {"c"}
    model, case, oracle = overfitted()
    X, y = rows(400, 2, case)
    X = pd.DataFrame(X, columns=oracle.feature_names)
    game = LossGame(model, exact_sampler(case, oracle.feature_names), X, y)
    truth, plain = case.values(oracle, data=(X, y)), case.values(data=(X, y))
    off = {oracle.feature_names[j] for j in np.flatnonzero(np.abs(truth - plain) > 0.1)}
    yield "overfitted", game, oracle, plain, off


WRONGS = {name: rest for name, *rest in wrongs()}


@pytest.mark.parametrize("semantics", ["boundary", "skip"])
@pytest.mark.parametrize("exact", ["auto", "never"])
@pytest.mark.parametrize(("game", "oracle", "truth", "off"), WRONGS.values(), ids=WRONGS)
def test_where_dsage_is_off_it_warns_and_the_corrected_estimate_is_right(
    game, oracle, truth, off, exact, semantics
):
    options = {"oracle": oracle, "semantics": semantics, "exact": exact, "random_state": 3}
    rule = as_stopping(tolerance=0.01)
    with pytest.warns(UserWarning, match="Skipping by separation") as caught:
        biased = run(game, stopping=rule, **options)
    said = str(caught[0].message)
    assert off
    assert all(repr(name) in said for name in off)
    at = [game.feature_names.index(name) for name in off]
    assert (np.abs(biased.values - truth)[at] > 10 * biased.se[at] + 0.02 * np.ptp(truth)).all()

    frame = biased.audit_frame().set_index("feature")
    assert set(off) <= set(frame.index[frame["matters"]])
    difference = biased.values - truth
    allowed = 4.5 * np.hypot(biased.audit.se, biased.se) + 1e-9
    assert (np.abs(frame["difference"].to_numpy() - difference) <= allowed).all()

    corrected = run(game, estimand="sage", stopping=rule, **options)
    assert (np.abs(corrected.values - truth) <= 4 * corrected.se + 1e-9).all()
    assert corrected.se.max() < 0.02 * np.ptp(truth)


@pytest.mark.parametrize("is_drawn", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_there_is_no_warning_where_the_graph_is_right_and_the_model_optimal(is_drawn, seed):
    """Warnings are errors here."""
    case = gaussian_case()
    game = gaussian_game(case, *rows(100, seed, case), is_drawn=is_drawn, random_state=seed)
    found = run(game, oracle=ORACLE, stopping=as_stopping(tolerance=0.02), random_state=seed)
    assert found.audit is not None
    assert not found.audit_frame()["matters"].any()


def test_the_audit_can_be_turned_off():
    found = run(gaussian_game(CASE, *rows(50)), oracle=ORACLE, audit=False)
    assert found.audit is None
    with pytest.raises(ValueError, match="no audit"):
        found.audit_frame()


@QUIET
def test_the_surpluses_that_were_skipped_are_those_of_the_model():
    X, y = rows(50)
    found = run(gaussian_game(CASE, X, y), oracle=ORACLE, random_state=0)
    risk = CASE.risk_on(X, y)
    possible = [surplus(risk, frozenset(S), 0) for S in ([1], [1, 2], [1, 3], [1, 2, 3])]
    skipped = found.skipped_surpluses
    assert len(skipped) > 20
    for value, position in zip(skipped["surplus"], skipped["position"], strict=True):
        near = possible[:1] if position == 1 else possible[1:3] if position == 2 else possible[3:]
        assert np.abs(np.array(near) - value).min() < 1e-10
    assert found.share_skipped == pytest.approx([0.5, 0.0, 0.0, 0.0])


# --- the same seed

every_estimand = pytest.mark.parametrize(
    ("oracle", "estimand"),
    [(None, "sage"), (ORACLE, "d-sage"), (ORACLE, "sage")],
    ids=["plain", "graph", "corrected"],
)


@pytest.mark.parametrize("is_drawn", [False, True])
def test_skipping_leaves_the_other_surpluses_as_they_are_to_the_bit(is_drawn):
    game = drawn_game() if is_drawn else gaussian_game(CASE, *rows(60))
    generator = np.random.default_rng(3)
    orders = np.stack([generator.permutation(4) for _ in range(20)])
    at = np.arange(60)
    plain, _ = play(Prefixes(game)(orders, at, 0), game)
    values, skipped = play(Prefixes(game, ORACLE)(orders, at, 0), game)
    assert 0 < skipped.sum() < skipped.size
    kept = np.moveaxis(values, 3, 1)
    np.testing.assert_array_equal(kept[~skipped], np.moveaxis(plain, 3, 1)[~skipped])
    assert (kept[skipped] == 0).all()


@QUIET
@pytest.mark.parametrize(
    "is_drawn",
    [
        False,
        True,
    ],
)
def test_in_a_run_features_that_are_never_separated_have_plain_values_to_the_bit(is_drawn):
    game = drawn_game(64) if is_drawn else gaussian_game(CASE, *rows(60))
    options = {
        "exact": "never",
        "first_level": "none",
        "stopping": NOrderings(40),
        "random_state": 4,
    }
    plain = run(game, **options)
    skip = run(game, oracle=ORACLE, semantics="skip", audit=False, **options)
    assert plain.n_orderings == skip.n_orderings
    np.testing.assert_array_equal(skip.values[1:], plain.values[1:])
    assert skip.values[0] != plain.values[0]


class Spied:
    """An oracle that separates nothing, and notes the prefixes that it is asked about."""

    feature_names = FEATURES

    def __init__(self):
        self.asked = set()

    def separated(self, known):
        self.asked |= {row.tobytes() for row in known if not row.all()}
        return np.zeros(known.shape, dtype=bool)

    def boundary(self, known):
        self.asked |= {row.tobytes() for row in known if not row.all()}
        return known


def test_the_orderings_depend_on_the_seed_alone():
    """Nine of them, on 12 features: their prefixes tell them apart."""

    def prefixes(semantics, **options):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20, 12))
        sampler = Gaussian.from_moments(np.zeros(12), np.eye(12))
        oracle = Spied()
        oracle.feature_names = sampler.layout_.names
        model = lambda Z: np.asarray(Z).sum(axis=1)  # noqa: E731
        game = LossGame(model, sampler, X, model(X), loss="squared_error", **options)
        run(
            game,
            oracle=oracle,
            semantics=semantics,
            exact="never",
            first_level="none",
            audit=False,
            orderings="uniform",
            stopping=NOrderings(5),
            random_state=5,
        )
        return oracle.asked

    expected = prefixes("boundary", n_draws=2)
    assert 60 < len(expected) <= 100
    assert prefixes("skip", n_draws=2) == expected
    assert prefixes("boundary", n_draws=16, noise="independent", random_state=7) == expected


@QUIET
@pytest.mark.parametrize("options", [{}, {"exact": "auto"}, {"first_level": "none"}])
def test_the_orderings_of_an_audit_do_not_depend_on_how_the_rest_is_done(options):
    game = gaussian_game(CASE, *rows(60))

    def skipped(**options):
        found = run(game, oracle=ORACLE, stopping=NOrderings(60), random_state=5, **options)
        return found.skipped_surpluses[["feature", "position"]]

    one, other = skipped(**options), skipped(exact="never", semantics="skip")
    n_both = min(len(one), len(other))
    assert n_both >= 4
    pd.testing.assert_frame_equal(one[:n_both], other[:n_both])


@QUIET
@pytest.mark.parametrize("exact", ["auto", "never"])
@every_estimand
def test_neither_batches_nor_caches_nor_a_second_run_change_a_bit(oracle, exact, estimand):
    def numbers(max_bytes=2**28, cache_bytes=2**28):
        found = run(
            drawn_game(12, max_bytes=max_bytes),
            oracle=oracle,
            exact=exact,
            estimand=estimand,
            stopping=as_stopping(tolerance=0.2),
            random_state=6,
            cache_bytes=cache_bytes,
        )
        audit = found.values if found.audit is None else found.audit.values
        return np.stack(
            [found.values, found.se_orderings, found.se_draws, found.se_rows, audit]
        ), found.n_orderings

    values, n_orderings = numbers()
    for options in [{}, {"max_bytes": 5_000}, {"cache_bytes": 0}]:
        again, n_again = numbers(**options)
        assert n_again == n_orderings, options
        np.testing.assert_array_equal(again, values, err_msg=str(options))


@QUIET
@pytest.mark.parametrize("max_bytes", [1, 1000, 7777])
def test_games_without_draws_do_not_depend_on_batches_either(max_bytes):
    game, small = (gaussian_game(CASE, *rows(150), max_bytes=size) for size in (2**28, max_bytes))
    for exact in ("auto", "never"):
        options = {"oracle": ORACLE, "exact": exact, "random_state": 0}
        np.testing.assert_array_equal(run(small, **options).values, run(game, **options).values)


def test_another_seed_gives_other_values():
    options = {"exact": "never", "stopping": NOrderings(20)}
    game = gaussian_game(CASE, *rows(60))
    one, other = (run(game, random_state=seed, **options).values for seed in (0, 1))
    assert (one != other).all()


# --- interrupts


class Interrupted:
    """A model that the user stops at its n-th call."""

    def __init__(self, n_calls):
        self.n_left = n_calls

    def __call__(self, X):
        self.n_left -= 1
        if self.n_left < 0:
            raise KeyboardInterrupt
        return CASE.predict(X)


@QUIET
@pytest.mark.parametrize("n_calls", [1, 2, 3, 7, 30])
@pytest.mark.parametrize("exact", ["auto", "never"])
@every_estimand
@pytest.mark.interrupts
def test_an_interrupt_gives_a_valid_result(n_calls, exact, estimand, oracle):
    X, y = rows(300)
    game_options = {"loss": "squared_error", "random_state": 0, "draw_control": "none"}
    game = LossGame(Interrupted(n_calls), exact_sampler(CASE), X, y, **game_options)
    rule = as_stopping(absolute=1e-9)
    options = {"oracle": oracle, "exact": exact, "estimand": estimand, "random_state": 7}
    found = run(game, stopping=rule, **options)
    assert found.interrupted
    assert len(found.to_frame()) == 4
    assert np.isfinite(found.values).all()
    is_sage = oracle is None or estimand == "sage"
    truth = CASE.values(None if is_sage else oracle, data=(X, y))
    # While there is too little for a standard error, it is said to be infinite.
    known = np.isfinite(found.se).all()
    assert known or n_calls < 30
    if n_calls == 30:
        assert known
        assert (np.abs(found.values - truth) < 5 * found.se).all()


def test_the_reason_to_stop_is_reported():
    game = gaussian_game(CASE, *rows(60))
    found = run(game, exact="never", stopping=NOrderings(10), random_state=0)
    assert not found.interrupted
    assert found.reason.kind is StopKind.ORDERINGS
    exact = run(game)
    assert (exact.reason.kind, exact.reason.numbers["se"]) == (StopKind.TOLERANCE, 0.0)
    few = run(gaussian_game(CASE, *rows(3)))
    assert few.reason.kind is StopKind.EXHAUSTED


# --- options


def test_given_orderings_are_averaged_over():
    X, y = rows(50)
    orders = [[0, 1, 2, 3], [3, 1, 0, 2], ["c", "b", "e", "a"]]
    found = run(gaussian_game(CASE, X, y), orderings=orders)
    risk = CASE.risk_on(X, y)
    total = np.zeros(4)
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 1, 3, 0]):
        for position, feature in enumerate(order):
            total[feature] += surplus(risk, frozenset(order[:position]), feature)
    np.testing.assert_allclose(found.values, total / 3, atol=1e-12)
    assert found.n_orderings == 3
    assert not found.is_exact
    assert found.reason.kind is StopKind.EXHAUSTED


@pytest.mark.parametrize("rows_per_ordering", [1, 7, 50])
def test_given_orderings_use_all_rows(rows_per_ordering):
    game = gaussian_game(CASE, *rows(50))
    orders = [[0, 1, 2, 3], [3, 1, 0, 2]]
    rule = as_stopping(n_orderings=10**9)
    whole = run(game, orderings=orders, stopping=rule)
    parts = run(game, orderings=orders, rows_per_ordering=rows_per_ordering, stopping=rule)
    np.testing.assert_allclose(parts.values, whole.values, atol=1e-12)


def test_given_orderings_serve_the_correction_too():
    X, y = rows(50)
    orders = [[0, 1, 2, 3], [3, 1, 0, 2]]
    plain = run(gaussian_game(CASE, X, y), orderings=orders)
    options = {"oracle": ORACLE, "estimand": "sage", "orderings": orders}
    found = run(gaussian_game(CASE, X, y), **options)
    np.testing.assert_allclose(found.values, plain.values, atol=1e-12)


def test_exact_averages_are_refused_where_they_are_impossible():
    with pytest.raises(ValueError, match="exact must be 'auto' or 'never' for given orderings"):
        run(gaussian_game(CASE, *rows(5)), orderings=[[0, 1, 2, 3]], exact="always")

    class Wide(TableGame):
        def __init__(self):
            self.feature_names = tuple(f"v{j}" for j in range(31))
            self.n_rows = 1

    with pytest.raises(ValueError, match="31 features have too many coalitions"):
        run(Wide(), exact="always")


@pytest.mark.parametrize(
    ("option", "value"),
    [("estimand", "shap"), ("semantics", "skipped"), ("first_level", "all"), ("exact", True)],
)
def test_options_that_do_not_exist_are_named(option, value):
    with pytest.raises(ValueError, match=f"{option} must be one of"):
        run(gaussian_game(CASE, *rows(5)), **{option: value})


def test_wrong_games_oracles_and_rules_are_refused_before_anything_is_evaluated():
    game = drawn_game(5)
    before = game.n_predicted
    with pytest.raises(TypeError, match=r"game must be a game; got 'LinearRegression'.*LossGame"):
        run(LinearRegression())
    with pytest.raises(TypeError, match=r"oracle must be an object .*; got 'Graph'.*graph\.oracle"):
        run(game, oracle=GRAPH)
    with pytest.raises(
        TypeError, match=r"stopping must be a stopping rule; got 0\.05.*as_stopping"
    ):
        run(game, stopping=0.05)
    assert game.n_predicted == before


@pytest.mark.parametrize("rule", [None, as_stopping(tolerance=0.5, top_k=1, absolute=9.0)])
def test_a_rule_that_waits_for_errors_is_refused_where_they_will_never_be_known(rule):
    game = drawn_game(5, n_replicates=1)
    with pytest.raises(ValueError, match="stopping must be a number of orderings or a time"):
        run(game, stopping=rule)
    found = run(game, stopping=as_stopping(tolerance=0.5, n_orderings=20), exact="never")
    assert found.n_orderings >= 20
    assert np.isnan(found.se_draws).all()


@pytest.mark.parametrize("n_replicates", [2, 3])
def test_a_constant_model_has_values_of_zero_and_its_run_ends(n_replicates):
    X, y = rows(40)
    game = LossGame(
        lambda X: np.full(len(X), 0.1),
        exact_sampler(CASE),
        X,
        y,
        n_draws=3 * n_replicates,
        n_replicates=n_replicates,
        random_state=0,
    )
    rule = as_stopping(tolerance=0.01, n_orderings=1000)
    found = run(game, exact="never", stopping=rule, random_state=0)
    assert (found.values == 0).all()
    assert (found.reason.kind, found.reason.numbers["se"]) == (StopKind.TOLERANCE, 0.0)


def test_an_oracle_about_other_features_is_refused():
    with pytest.raises(ValueError, match="oracle must be about the features of the game"):
        run(gaussian_game(CASE, *rows(5)), oracle=GRAPH.oracle("y", features=list("bace")))


@pytest.mark.parametrize("is_drawn", [False, True])
@pytest.mark.parametrize("exact", ["auto", "never"])
def test_all_shards_are_used(is_drawn, exact):
    game = gaussian_game(CASE, *rows(150), is_drawn=is_drawn, random_state=0)
    options = {"exact": exact, "stopping": as_stopping(tolerance=0.03), "random_state": 1}
    truth = CASE.values(data=rows(150))
    for rows_per_ordering in (1, 40, 150, 1000):
        found = run(game, rows_per_ordering=rows_per_ordering, **options)
        assert (np.abs(found.values - truth) <= 4.5 * found.se + 1e-9).all()


def test_sampled_values_are_efficient_after_whole_passes():
    """With a control variate, too: its own sums cancel."""
    game = gaussian_game(CASE, *rows(96))
    worth = game.risks(np.array([[False] * 4, [True] * 4]), np.arange(96)).mean(axis=(1, 2))
    for levels in ("auto", "none"):
        found = run(
            game,
            exact="never",
            first_level=levels,
            rows_per_ordering=24,
            stopping=NOrderings(64),
            random_state=2,
        )
        assert found.values.sum() == pytest.approx(worth[0] - worth[1], abs=1e-12)


@pytest.mark.parametrize("is_drawn", [False, True])
def test_a_weight_is_a_number_of_copies_of_a_row(is_drawn):
    X, y = rows(40)
    weights = np.random.default_rng(8).integers(0, 4, size=40)
    copies = np.repeat(np.arange(40), weights)
    weighted = gaussian_game(CASE, X, y, is_drawn=is_drawn, sample_weight=weights, random_state=0)
    copied = gaussian_game(CASE, X[copies], y[copies], is_drawn=is_drawn, random_state=0)
    rule = as_stopping(tolerance=0.02)
    one, other = (
        run(game, exact="always", stopping=rule, random_state=9) for game in (weighted, copied)
    )
    allowed = 4.5 * np.hypot(one.se, other.se) + 1e-12
    assert (np.abs(one.values - other.values) <= allowed).all()
    assert is_drawn == (allowed.max() > 1e-10)


def test_the_error_of_weighted_rows_is_that_of_a_ratio():
    # Rows that are all alike tell the value exactly, however unequal their weights are.
    X, y = rows(1)
    weights = np.random.default_rng(8).exponential(size=40)
    alike = gaussian_game(CASE, np.repeat(X, 40, axis=0), np.repeat(y, 40), sample_weight=weights)
    found = run(alike, random_state=9)
    np.testing.assert_allclose(found.se_rows, 0.0, atol=1e-12)
    assert found.df_rows == pytest.approx(weights.sum() ** 2 / (weights**2).sum() - 1)


def test_the_error_of_weighted_rows_is_that_of_replicates():
    totals, errors = [], []
    for seed in range(120):
        X, y = rows(60, 1000 + seed)
        weights = np.exp(0.5 * X[:, 1])
        found = run(gaussian_game(CASE, X, y, sample_weight=weights), exact="always")
        totals.append(found.values)
        errors.append(found.se_rows**2)
    truth, claimed = np.var(totals, axis=0, ddof=1), np.mean(errors, axis=0)
    # The variance of 120 replicates is known to 13 %; ratios are a little biased.
    np.testing.assert_allclose(claimed / truth, 1.0, atol=0.4)


# --- biases and errors


def small_game(seed, *, n_rows=40, n_replicates=2, n_draws=2, **options):
    X, y = rows(n_rows, 100)
    return gaussian_game(
        CASE,
        X,
        y,
        is_drawn=True,
        n_draws=n_draws,
        n_replicates=n_replicates,
        noise="independent",
        random_state=seed,
        **options,
    )


def z_of_the_mean(found, truth):
    """How many of their standard errors the mean of replicates is off."""
    found = np.array(found)
    return (found.mean(axis=0) - truth) / (found.std(axis=0, ddof=1) / np.sqrt(len(found)))


def test_two_draws_have_no_bias_thanks_to_the_jackknife():
    truth = CASE.values(data=rows(40, 100))
    once = NOrderings(1)  # one pass over all rows with all orderings
    options = {"exact": "always", "first_level": "none", "stopping": once, "random_state": 0}
    found = [run(small_game(seed), **options).values for seed in range(25)]
    assert np.abs(z_of_the_mean(found, truth)).max() < 4
    naive = [run(small_game(seed, n_replicates=1), **options).values for seed in range(25)]
    assert np.abs(z_of_the_mean(naive, truth)).max() > 5


def z_scores(truth_of, found_of, n_runs=32):
    """The errors of replicates in units of their standard errors, (n_runs, n_features)."""
    scores = []
    for seed in range(n_runs):
        found, se = found_of(seed)
        scores.append((found - truth_of(seed)) / se)
    return np.array(scores)


def assert_standard(scores, low=0.6, high=1.6):
    """Mean 0 and variance 1; the bounds are those of some tens of runs of correlated features."""
    assert np.abs(scores.mean(axis=0)).max() < 4 / np.sqrt(len(scores)) * scores.std()
    variance = (scores**2).mean()
    assert low < variance < high


SETTINGS = {
    "plain, no levels": {"first_level": "none"},
    "plain, levels": {"first_level": "auto"},
    "boundary": {"oracle": ORACLE, "audit": False, "first_level": "none"},
    "skip": {"oracle": ORACLE, "audit": False, "semantics": "skip", "first_level": "none"},
    "corrected": {"oracle": ORACLE, "estimand": "sage", "first_level": "none"},
}


@pytest.mark.parametrize(
    ("setting", "is_drawn"),
    [*((setting, True) for setting in SETTINGS), ("plain, no levels", False), ("skip", False)],
)
def test_standard_errors_of_orderings_and_draws_are_those_of_replicates(setting, is_drawn):
    X, y = rows(32, 9)
    options = SETTINGS[setting]
    is_sage = options.get("estimand") == "sage"
    truth = CASE.values(
        None if is_sage else options.get("oracle"),
        options.get("semantics", "boundary"),
        data=(X, y),
    )

    # Without draws, surpluses have few values, and few of them make scores with heavy tails.
    rule = NOrderings(40 if is_drawn else 100)
    table = as_table(gaussian_game(CASE, X, y))

    def found_of(seed):
        # A control would take all noise from a linear model.
        game_options = {"n_draws": 8, "draw_control": "none", "random_state": seed}
        game = gaussian_game(CASE, X, y, is_drawn=True, **game_options) if is_drawn else table
        found = run(game, exact="never", stopping=rule, random_state=seed, **options)
        return found.values, found.se

    # The cheap game takes many orderings of its own each time.
    n_runs = 20 if options["first_level"] == "auto" else 32
    assert_standard(z_scores(lambda seed: truth, found_of, n_runs))


@pytest.mark.parametrize("exact", ["always", "never"])
@pytest.mark.parametrize("is_drawn", [False, True])
def test_total_standard_errors_are_those_of_fresh_rows(is_drawn, exact):
    truth = CASE.values()

    def found_of(seed):
        X, y = rows(80, 1000 + seed)
        game = gaussian_game(
            CASE, X, y, is_drawn=is_drawn, n_draws=2, noise="independent", random_state=seed
        )
        found = run(
            game, exact=exact, first_level="none", stopping=NOrderings(20), random_state=seed
        )
        assert (found.se_total >= found.se).all()
        return found.values, found.se_total

    assert_standard(z_scores(lambda seed: truth, found_of))


def test_rows_do_not_pretend_to_be_alike_where_draws_are_noisy():
    """Over several passes, each with new draws, the error of the rows stays what it is."""
    X, y = rows(400, 11)
    exactly = run(gaussian_game(CASE, X, y), exact="always").se_rows
    game = gaussian_game(CASE, X, y, is_drawn=True, n_draws=2, noise="independent", random_state=12)
    steps = estimate(game, exact="always", random_state=12)
    for _ in range(12):
        found = next(steps)
    np.testing.assert_allclose(found.se_rows, exactly, rtol=0.25)


def test_progress_goes_on_where_it_stood():
    game = gaussian_game(CASE, *rows(60))
    steps = estimate(game, exact="never", random_state=0)
    seen = [next(steps) for _ in range(6)]
    counts = [each.n_orderings for each in seen]
    assert counts == sorted(set(counts))
    assert seen[-1].se.max() < seen[1].se.max()
    again = Estimation(game, exact="never", random_state=0).steps()
    for each in seen:
        np.testing.assert_array_equal(next(again).values, each.values)


def test_the_result_is_what_the_rule_saw():
    class Seen:
        """A rule that ends the run at its third look, and keeps what it saw."""

        def __init__(self):
            self.looks = []

        def reason(self, progress):
            self.looks.append(progress)
            return "enough" if len(self.looks) == 3 else None

    rule = Seen()
    found = run(
        drawn_game(150), oracle=ORACLE, exact="never", stopping=rule, audit=False, random_state=1
    )
    np.testing.assert_array_equal(found.values, rule.looks[-1].values)
    np.testing.assert_array_equal(found.se, rule.looks[-1].se)
    assert found.reason == StopReason(StopKind.OTHER, text="enough")


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"tolerance": 0.05}, TypeError, r"stopping=as_stopping\(tolerance=\.\.\.\)"),
        ({"orcale": ORACLE}, ValueError, "Did you mean 'oracle'"),
    ],
)
def test_options_that_do_not_exist_are_refused_with_advice(options, error, text):
    with pytest.raises(error, match=text):
        run(drawn_game(20), **options)


def test_the_time_of_the_first_level_is_part_of_the_time(monkeypatch):
    refined = []

    def slow(control, bound, n_main_units, *_):
        refined.append(n_main_units)
        time.sleep(0.02)
        return True

    monkeypatch.setattr(Control, "refine", slow)
    case = gaussian_case()
    X, y = case.sample(150, np.random.default_rng(0))
    found = run(
        gaussian_game(case, X, y),
        exact="never",
        stopping=as_stopping(n_orderings=64),
        random_state=0,
    )
    assert len(set(refined)) == len(refined) >= 3  # once for a look
    assert found.seconds >= 0.02 * len(refined)


def test_the_shares_of_a_single_ordering_are_zero_or_one():
    game = gaussian_game(CASE, *rows(40))
    # b separates a, and nothing separates the others.
    found = run(game, oracle=ORACLE, orderings=[("b", "a", "c", "e")], audit=False)
    assert found.n_orderings == 1
    assert found.share_skipped.tolist() == [1.0, 0.0, 0.0, 0.0]
