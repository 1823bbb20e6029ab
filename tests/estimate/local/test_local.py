import itertools
from dataclasses import dataclass
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from dsage import Graph
from dsage._random import Streams
from dsage.estimate import (
    AnyOf,
    NOrderings,
    StopKind,
    StopReason,
    TermKind,
    TimeBudget,
    as_stopping,
    run,
    run_local,
)
from dsage.estimate.accumulate.control import FIRST_UNIT
from dsage.estimate.exact import enumerate_boundaries
from dsage.estimate.local import running
from dsage.estimate.local.plan import LinearSteps, LocalPlan, MeanCoefficients, RowControl
from dsage.estimate.local.running import split_time
from dsage.estimate.walk import Boundaries, Prefixes, play
from dsage.games import Difference, LinearOutput, OutputGame
from dsage.graphs import NoSeparation
from dsage.orderings import as_orderings
from dsage.samplers import Gaussian, Interventional

NAMES = tuple("abcde")
N_ROWS = 40
GENERATOR = np.random.default_rng(0)
X = pd.DataFrame(
    GENERATOR.normal(size=(N_ROWS, 5)) @ GENERATOR.normal(size=(5, 5)), columns=list(NAMES)
)
Y = X.to_numpy() @ [1.0, -1.0, 0.5, 2.0, 0.0] + GENERATOR.normal(size=N_ROWS)
SAMPLER = Gaussian().fit(X)
ORACLE = Graph([*NAMES, "y"], [("a", "b"), ("b", "y"), ("c", "y"), ("y", "d"), ("e", "d")]).oracle(
    "y"
)
CASES = {"plain": (None, "boundary"), "skip": (ORACLE, "skip"), "boundary": (ORACLE, "boundary")}
cases = pytest.mark.parametrize("case", CASES)
CHEAP = LinearOutput(X.to_numpy(), Y, NAMES)
FEW = as_stopping(n_orderings=16)


def bent(frame):
    values = np.asarray(frame)
    return values @ [1.0, -1.0, 0.5, 2.0, 0.0] + np.abs(values[:, 0])


def output_game(model=bent, rows=X, **options):
    return OutputGame(model, SAMPLER, rows, **{"random_state": 1, "n_draws": 4, **options})


# The cheap game beside


def row_control(case, rows, *, knows_mean=False):
    oracle, semantics = CASES[case]
    steps = LinearSteps(CHEAP, oracle, semantics)
    orderings = as_orderings("antithetic", NAMES, Streams(0))
    asked = NoSeparation(NAMES) if oracle is None else oracle
    mean = steps.mean(enumerate_boundaries(asked, semantics=semantics)) if knows_mean else None
    return RowControl(steps, MeanCoefficients(steps, orderings, 5), orderings, mean, rows)


def surpluses(case, rows, orders):
    steps = LinearSteps(CHEAP, *CASES[case])
    return np.stack([steps.outputs(each, rows) for each in steps(orders)])


@cases
def test_surpluses_of_the_control_are_those_of_the_linear_output(case):
    oracle, _ = CASES[case]
    rows = np.array([3, 30, 7])
    control = row_control(case, rows)
    orders = as_orderings("antithetic", NAMES, Streams(0)).batch(4)
    walk = Boundaries(oracle) if case == "boundary" else Prefixes(CHEAP, oracle)
    values = play(walk(orders, rows, 0), CHEAP).values[:, :, 0]
    found = surpluses(case, rows, orders)
    assert found.shape == (2, 15)
    np.testing.assert_allclose(found.reshape(values.shape), values, atol=1e-9)
    np.testing.assert_allclose(control.of_unit(4), found.mean(axis=0), atol=1e-12)


@cases
def test_the_mean_of_the_control_is_that_over_all_orderings(case):
    rows = np.array([3, 30])
    control = row_control(case, rows, knows_mean=True)
    orders = np.array(list(itertools.permutations(range(5))))
    np.testing.assert_allclose(control.mean, surpluses(case, rows, orders).mean(axis=0), atol=1e-10)
    np.testing.assert_array_equal(control.variance, 0.0)


@cases
def test_a_sampled_control_knows_its_error(case):
    rows = np.array([3, 30, 8])
    control, exact = row_control(case, rows), row_control(case, rows, knows_mean=True)
    control.refine(0.0, -3)
    assert control.n_orderings == 1024
    # From the values of each unit, without the detour over coefficients.
    units = np.array([control.of_unit(FIRST_UNIT + unit) for unit in range(512)])
    np.testing.assert_allclose(control.mean, units.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(control.variance, units.var(axis=0, ddof=1) / 512, atol=1e-12)
    error = np.abs(control.mean - exact.mean)
    assert (error <= 4.5 * np.sqrt(control.variance) + 1e-9).all()


def test_controls_of_several_rows_share_their_orderings():
    oracle, semantics = CASES["plain"]
    steps = LinearSteps(CHEAP, oracle, semantics)
    orderings = as_orderings("antithetic", NAMES, Streams(0))
    coefficients = MeanCoefficients(steps, orderings, 5)
    first, second = (
        RowControl(steps, coefficients, orderings, None, np.array([row])) for row in (0, 1)
    )
    first.refine(0.0, -3)
    second.refine(1e9, -3)
    assert (first.n_orderings, second.n_orderings, coefficients.n_units) == (1024, 1024, 512)


def test_beside_other_processes_the_controls_of_rows_compute_their_exact_mean_only():
    rows = np.array([3, 30])
    control, exact = row_control("plain", rows), row_control("plain", rows, knows_mean=True)
    control.refine(1e9, 4)
    n_units = control.n_orderings
    for each in (control, exact):
        each.prepare(lambda: False, 0.0, 1000)
        # Nothing is kept that is never used.
        assert not each._ready
    assert control.n_orderings == n_units
    assert exact._exact is not None


def test_the_cheap_game_lowers_the_errors_and_keeps_the_values():
    game = output_game(n_draws=16)
    options = {"exact": "never", "stopping": as_stopping(n_orderings=80), "random_state": 0}
    with_control = run_local(game, **options)
    without = run_local(game, first_level="none", **options)
    assert with_control.n_orderings == without.n_orderings
    assert np.median(with_control.se_orderings) < 0.5 * np.median(without.se_orderings)
    difference = np.abs(with_control.values - without.values)
    assert (difference <= 5 * np.hypot(with_control.se, without.se)).all()


def test_the_mean_of_the_cheap_game_may_be_sampled(monkeypatch):
    monkeypatch.setattr("dsage.estimate.local.plan.MOST_COALITIONS", 1)
    game = output_game(n_draws=16)
    sampled = run_local(game, exact="never", random_state=0, stopping=as_stopping(n_orderings=80))
    truth = run_local(game, exact="always", stopping=as_stopping(tolerance=0.01))
    assert (np.abs(sampled.values - truth.values) <= 6 * np.hypot(sampled.se, truth.se)).all()


def test_all_orderings_at_once_need_no_cheap_game():
    plan = LocalPlan(output_game(), exact="always")
    assert [part.control for part in plan.chunks()] == [None]


# Parts of the rows


@cases
def test_parts_of_the_rows_change_nothing_to_the_bit(case):
    oracle, semantics = CASES[case]
    options = {"oracle": oracle, "semantics": semantics, "first_level": "none", "exact": "never"}
    whole = run_local(output_game(), stopping=FEW, random_state=0, **options)
    parts = run_local(output_game(), stopping=FEW, random_state=0, rows_per_ordering=7, **options)
    np.testing.assert_array_equal(parts.values, whole.values)
    np.testing.assert_array_equal(parts.se_orderings, whole.se_orderings)
    assert parts.n_orderings == whole.n_orderings == 18
    assert parts.n_evaluated == whole.n_evaluated


def test_a_row_alone_has_the_values_that_it_has_among_others():
    options = {"first_level": "none", "stopping": FEW, "random_state": 0, "exact": "never"}
    whole = run_local(output_game(), **options)
    alone = run_local(output_game(rows=X[:1]), **options)
    np.testing.assert_array_equal(alone.values, whole.values[:1])


def test_large_inputs_are_done_in_parts(monkeypatch):
    monkeypatch.setattr("dsage.estimate.local.plan._COLUMNS", 50)
    plan = LocalPlan(output_game(), exact="never")
    assert [part.n_columns for part in plan.chunks()] == [50] * 4
    monkeypatch.setattr("dsage.estimate.local.plan._BYTES_EXACT", 8 * 32 * 2 * 4)
    exact = LocalPlan(output_game(), exact="always")
    assert [part.n_columns for part in exact.chunks()] == [20] * 10


def test_parts_share_a_time():
    rule = AnyOf([NOrderings(5), TimeBudget(60)])
    assert split_time(rule, 4) == AnyOf([NOrderings(5), TimeBudget(15)])
    assert split_time(TimeBudget(60), 2) == TimeBudget(30)
    assert split_time(None, 2) is None


# What is estimated


def test_jobs_change_nothing_to_the_bit():
    options = {"exact": "never", "stopping": FEW, "random_state": 0}
    model = RandomForestRegressor(5, random_state=0).fit(X, Y)
    one = run_local(output_game(model), **options)
    with joblib.parallel_config(backend="threading"):
        two = run_local(output_game(model), n_jobs=2, **options)
    np.testing.assert_array_equal(two.values, one.values)
    np.testing.assert_array_equal(two.se, one.se)


def test_a_correction_makes_plain_values_of_those_at_boundaries():
    plain = run_local(output_game(), exact="always", stopping=as_stopping(tolerance=0.01))
    corrected = run_local(
        output_game(random_state=2),
        oracle=ORACLE,
        estimand="sage",
        random_state=0,
        stopping=as_stopping(tolerance=0.02),
    )
    skipped = run_local(output_game(), oracle=ORACLE, stopping=as_stopping(tolerance=0.01))
    assert np.abs(skipped.values - plain.values).max() > 20 * plain.se.max()
    difference = np.abs(corrected.values - plain.values)
    assert (difference <= 6 * np.hypot(corrected.se, plain.se)).all()


def test_the_loop_of_sage_values_gives_their_mean_over_rows():
    orders = [["a", "b", "c", "d", "e"], ["d", "a", "e", "b", "c"]]
    local = run_local(output_game(), orderings=orders)
    mean = run(output_game(), orderings=orders)
    np.testing.assert_allclose(mean.values, local.values.mean(axis=0), atol=1e-12)
    exact = run(output_game(), exact="always", stopping=FEW)
    assert exact.is_exact
    assert [term.kind for term in exact.terms] == [TermKind.ENUMERATED]


def test_two_models_differ_by_the_difference_of_their_local_values():
    def twice(frame):
        return 2 * bent(frame)

    difference = run(Difference(output_game(twice), output_game()), stopping=FEW, exact="always")
    one, other = (
        run_local(output_game(model), exact="always", stopping=FEW) for model in (twice, bent)
    )
    expected = (one.values - other.values).mean(axis=0)
    np.testing.assert_allclose(np.abs(difference.values), np.abs(expected), atol=1e-10)


def test_given_orderings_are_averaged_over():
    game = output_game()
    orders = [["a", "b", "c", "d", "e"], ["e", "d", "c", "b", "a"]]
    both = run_local(game, orderings=orders)
    each = [run_local(game, orderings=[order]).values for order in orders]
    np.testing.assert_allclose(both.values, np.mean(each, axis=0), atol=1e-12)
    assert both.n_orderings == 2


def test_the_share_of_separated_surpluses_is_told():
    expected = enumerate_boundaries(ORACLE).skipped
    exact = run_local(output_game(), oracle=ORACLE, stopping=FEW)
    np.testing.assert_array_equal(exact.share_skipped, expected)
    sampled = run_local(
        output_game(rows=X[:2]),
        oracle=ORACLE,
        exact="never",
        stopping=as_stopping(n_orderings=400),
        random_state=0,
    )
    np.testing.assert_allclose(sampled.share_skipped, expected, atol=0.1)


def test_a_class_of_a_classifier_is_explained():
    labels = np.digitize(Y, [-1, 1])
    model = RandomForestClassifier(5, random_state=0).fit(X, labels)
    options = {"exact": "always", "stopping": as_stopping(n_orderings=1)}
    found = [run_local(output_game(model, output=label), **options) for label in model.classes_]
    # Probabilities sum to one, so what features add to them sums to zero.
    np.testing.assert_allclose(sum(each.values for each in found), 0.0, atol=1e-12)
    np.testing.assert_array_equal(found[0].predictions, model.predict_proba(X)[:, 0])


def test_one_row_and_one_feature():
    sampler = Gaussian.from_moments([1.0], [[4.0]], ["a"])
    game = OutputGame(lambda rows: rows[:, 0] ** 2, sampler, np.array([[3.0]]), random_state=0)
    found = run_local(game, stopping=as_stopping(tolerance=0.02))
    assert abs(found.values[0, 0] - (9.0 - 5.0)) <= 6 * found.se[0, 0]
    assert found.base_value == pytest.approx(5.0, abs=0.01)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_values_go_to_shap_and_back():
    found = run_local(output_game(), oracle=ORACLE, stopping=FEW)
    explanation = found.to_shap()
    np.testing.assert_array_equal(explanation.values, found.values)
    np.testing.assert_array_equal(explanation.data, X.to_numpy())
    assert explanation.feature_names == list(NAMES)
    total = explanation.values.sum(axis=1) + explanation.base_values + found.unexplained
    np.testing.assert_allclose(total, bent(X), atol=1e-10)


# Ends


@pytest.mark.interrupts
def test_an_interrupt_returns_the_rows_that_were_begun():
    calls = []

    def interrupted(frame):
        calls.append(len(frame))
        if len(calls) == 40:
            raise KeyboardInterrupt
        return bent(frame)

    game = output_game(interrupted)
    found = run_local(game, exact="never", stopping=FEW, rows_per_ordering=10, random_state=0)
    assert found.interrupted
    n_rows = len(found.values)
    assert 0 < n_rows < N_ROWS
    pd.testing.assert_frame_equal(found.data, X[:n_rows])
    assert found.predictions.shape == (n_rows,)
    assert found.values.shape == found.se.shape


def test_a_rule_ends_each_part():
    found = run_local(output_game(), exact="never", stopping=FEW, rows_per_ordering=20)
    assert found.reason == StopReason(StopKind.ORDERINGS, {"n": 18, "is_all": False})
    assert not found.is_exact


# Errors


def test_only_games_of_outputs_and_losses_have_local_values():
    game = Difference(output_game(), output_game())
    with pytest.raises(TypeError, match=r"game must be an OutputGame or a LossGame; got 'Differ"):
        run_local(game)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"audits": True}, "each option must be one of the options of local values; got 'audits'"),
        ({"ordering": "uniform"}, "Did you mean 'orderings'"),
        ({"first_level": "some"}, "first_level must be one of"),
        ({"rows_per_ordering": 0}, "rows_per_ordering must be at least 1"),
        ({"semantics": "both"}, "semantics must be one of"),
    ],
)
def test_options_that_cannot_be_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        run_local(output_game(), **options)


def test_one_group_of_draws_needs_another_rule():
    with pytest.raises(ValueError, match="stopping must be a number of orderings or a time"):
        run_local(output_game(n_replicates=1))
    found = run_local(output_game(n_replicates=1), stopping=FEW)
    assert np.isnan(found.se_draws).all()


def causal_game():
    """A game of rows whose features are set: values have two parts."""
    graph = Graph([*NAMES, "y"], [("a", "b"), ("b", "y"), ("c", "y"), ("d", "y"), ("e", "d")])
    sampler = Interventional(sampler=Gaussian(), graph=graph, target="y").fit(X, Y)
    return OutputGame(bent, sampler, X, random_state=1, n_draws=4)


@pytest.mark.parametrize(
    ("n_values", "sizes"), [(600, [40]), (599, [20, 20]), (75, [5] * 8), (9, [1] * 40)]
)
def test_parts_of_values_count_in_the_size_of_a_chunk(monkeypatch, n_values, sizes):
    # Five values of a row, and ten parts.
    monkeypatch.setattr("dsage.estimate.local.plan._COLUMNS", n_values)
    chunks = LocalPlan(causal_game(), exact="never").chunks()
    assert [len(part.rows) for part in chunks] == sizes
    assert [part.n_columns for part in chunks] == [15 * size for size in sizes]
    np.testing.assert_array_equal(np.concatenate([part.rows for part in chunks]), np.arange(40))
    chosen = LocalPlan(causal_game(), exact="never", rows_per_ordering=10)
    assert [len(part.rows) for part in chosen.chunks()] == [10] * 4


def test_the_mean_contributions_are_those_of_units_one_by_one():
    steps = LinearSteps(CHEAP, *CASES["plain"])
    orderings = as_orderings("antithetic", NAMES, Streams(0))
    found, units = MeanCoefficients(steps, orderings, 5), []
    for n_units in (3, 1, 6):
        found.add(n_units)
        while len(units) < found.n_units:
            units.append(steps(orderings.batch(FIRST_UNIT + len(units))).mean(axis=0))
        off = np.array(units) - np.mean(units, axis=0)
        assert found.n_units == len(units)
        np.testing.assert_allclose(found.mean, np.mean(units, axis=0), atol=1e-12)
        np.testing.assert_allclose(found.spread, np.einsum("ujf,ujg->jfg", off, off), atol=1e-12)
        rows = np.array([3, 17])
        outputs = np.array([steps.outputs(unit, rows) for unit in units])
        variances = steps.variances(found.spread, rows)
        np.testing.assert_allclose(variances, outputs.var(axis=0) * len(units), atol=1e-10)


@dataclass(frozen=True)
class Done:
    """The estimate of a chunk, as far as the loop over the chunks looks at it."""

    number: int
    n_units: int
    reason: str = ""
    interrupted: bool = False


@pytest.mark.parametrize("n_done", [0, 1, 2, 5])
def test_a_chunk_that_ends_before_its_first_values_is_left_out(monkeypatch, n_done):
    def refine(number, **options):
        return Done(number, 9) if number < n_done else Done(number, 0, "interrupted", True)

    monkeypatch.setattr(running, "refine_quietly", refine)
    monkeypatch.setattr(running, "Estimation", SimpleNamespace(of=lambda number: number))
    monkeypatch.setattr(LocalPlan, "chunks", lambda plan: list(range(6)))
    monkeypatch.setattr(running, "_join", lambda plan, found: found)
    found = run_local(output_game(), stopping=FEW, random_state=0)
    assert [each.number for each in found] == list(range(max(n_done, 1)))
    # The last chunk that has values tells why there are no more.
    assert [each.reason for each in found] == [*[""] * (max(n_done, 1) - 1), "interrupted"]
