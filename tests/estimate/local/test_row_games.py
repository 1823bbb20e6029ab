"""Local values of losses and groups, their audit and their checkpoints."""

import numpy as np
import pandas as pd
import pytest

from dsage import Graph
from dsage.estimate import as_stopping, run, run_local
from dsage.games import Grouped, LossGame, OutputGame
from dsage.samplers import Gaussian

NAMES = tuple("abcd")
GENERATOR = np.random.default_rng(0)
X = pd.DataFrame(GENERATOR.normal(size=(30, 4)) @ GENERATOR.normal(size=(4, 4)), columns=[*NAMES])
Y = X.to_numpy() @ [1.0, -1.0, 0.5, 0.0] + GENERATOR.normal(size=30)
SAMPLER = Gaussian().fit(X)
GRAPH = Graph([*NAMES, "y"], [("a", "b"), ("b", "y"), ("c", "y"), ("y", "d")])
FEW = as_stopping(n_orderings=8)


def bent(frame):
    values = np.asarray(frame)
    return values @ [1.0, -1.0, 0.5, 0.0] + np.abs(values[:, 0])


def loss_game(model=bent, target=Y, loss="squared_error", **options):
    return LossGame(model, SAMPLER, X, target, loss=loss, random_state=1, n_draws=4, **options)


def output_game(rows=X):
    return OutputGame(bent, SAMPLER, rows, random_state=1, n_draws=4)


@pytest.mark.parametrize("oracle", [None, GRAPH.oracle("y")])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_values_of_losses_have_the_sage_values_as_their_mean(oracle, loss):
    # All orderings, the same draws: only rounding differs.
    options = {"oracle": oracle, "exact": "always", "stopping": FEW, "random_state": 0}
    local = run_local(loss_game(loss=loss), **options)
    # The estimate on all rows at once has the same units as that of rows on their own.
    sage = run(loss_game(loss=loss), first_level="none", rows_per_ordering=30, **options)
    assert local.is_loss
    np.testing.assert_allclose(local.values.mean(axis=0), sage.values, rtol=1e-10)


def test_values_of_losses_add_up_to_the_loss_that_the_features_remove():
    local = run_local(loss_game(), exact="always", stopping=as_stopping(tolerance=0.02))
    np.testing.assert_allclose(local.predictions, (Y - bent(X)) ** 2)
    error = np.sqrt((local.se**2).sum(axis=1))
    assert np.abs(local.unexplained).max() < 6 * error.max()
    assert np.ptp(local.base_value) > 1.0


def test_losses_of_several_outputs_are_summed():
    both = np.stack([Y, -Y], axis=1)

    def model(frame):
        return np.stack([bent(frame), -bent(frame)], axis=1)

    options = {"exact": "always", "stopping": FEW, "random_state": 0}
    twice = run_local(loss_game(model, both), **options)
    once = run_local(loss_game(), **options)
    np.testing.assert_allclose(twice.values, 2 * once.values, rtol=1e-9)


def test_weights_of_rows_are_refused():
    with pytest.raises(ValueError, match="game must be one without weights of rows"):
        run_local(loss_game(sample_weight=np.arange(1.0, 31.0)))


@pytest.mark.parametrize("make", [loss_game, output_game])
def test_a_group_has_the_value_of_its_members_known_together(make):
    options = {"exact": "always", "stopping": FEW, "random_state": 0}
    local = run_local(Grouped(make(), {"pair": ["a", "b"]}), **options)
    assert local.feature_names == ("pair", "c", "d")
    # With everything in one group, a row has one value: all that its features change.
    whole = run_local(Grouped(make(), {"all": list(NAMES)}), **options)
    np.testing.assert_allclose(whole.values.sum(axis=1), local.values.sum(axis=1), atol=1e-9)


def test_the_audit_is_the_difference_to_plain_values():
    options = {"stopping": as_stopping(tolerance=0.04), "random_state": 0}
    found = run_local(output_game(), oracle=GRAPH.oracle("y"), audit=True, **options)
    plain = run_local(output_game(), exact="always", **options)
    error = np.sqrt(found.audit.se**2 + found.se**2 + plain.se**2)
    off = found.audit.differences - (found.values - plain.values)
    assert (np.abs(off) < 6 * error).all()
    # The model uses a, which the graph separates given b.
    assert found.audit.matters(found.values)[:, 0].any()
    assert (found.estimand, plain.estimand) == ("d-sage", "sage")


def test_without_a_graph_there_is_no_audit():
    assert run_local(output_game(), audit=True, stopping=FEW).audit is None


@pytest.mark.parametrize("rows_per_ordering", [None, 12])
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, rows_per_ordering):
    options = {"exact": "never", "random_state": 0, "rows_per_ordering": rows_per_ordering}
    more = as_stopping(n_orderings=30)
    first, last = output_game(), output_game()
    whole = run_local(first, stopping=more, **options)
    kept = tmp_path / "state"
    run_local(output_game(), stopping=FEW, checkpoint=kept, **options)
    n_files = len(list(tmp_path.glob("state*")))
    assert n_files == (1 if rows_per_ordering is None else 3)
    again = run_local(last, stopping=more, checkpoint=kept, **options)
    np.testing.assert_array_equal(again.values, whole.values)
    np.testing.assert_array_equal(again.se, whole.se)
    # What was in the file is not predicted again.
    assert last.n_predicted < first.n_predicted


def test_the_checkpoint_of_other_rows_is_refused(tmp_path):
    kept = tmp_path / "state"
    options = {"stopping": FEW, "random_state": 0, "checkpoint": kept}
    run_local(output_game(), **options)
    with pytest.raises(ValueError, match=r"It differs in: .*the data"):
        run_local(output_game(X + 1.0), **options)
    with pytest.raises(ValueError, match="the option 'rows'"):
        run_local(output_game(), rows_per_ordering=10, **options)


@pytest.mark.parametrize("groups", [{}, {"pair": ["a", "b"]}])
def test_further_rows_make_the_first_level_of_few_rows_precise(groups):
    options = {"exact": "never", "stopping": as_stopping(n_orderings=100), "random_state": 0}
    few = {"random_state": 1, "n_draws": 4, "background": X}
    game = Grouped(OutputGame(bent, SAMPLER, X[:2], **few), groups)
    found, without = run_local(game, **options), run_local(game, first_level="none", **options)
    assert np.median(found.se_orderings) < 0.8 * np.median(without.se_orderings)
    difference = np.abs(found.values - without.values)
    assert (difference < 5 * np.hypot(found.se, without.se)).all()


def test_balanced_values_add_up_and_stay_within_their_errors():
    found = run_local(output_game(), exact="never", random_state=0, stopping=FEW)
    even = found.balanced()
    np.testing.assert_allclose(even.unexplained, 0.0, atol=1e-12)
    assert np.abs(found.unexplained).max() > 1e-6
    truth = run_local(output_game(), exact="always", stopping=as_stopping(tolerance=0.01))
    off, before = (np.abs(each.values - truth.values).mean() for each in (even, found))
    assert off < 1.2 * before
    # What a graph leaves is no error, and losses keep SAGE values as their means.
    assert (with_graph := run_local(output_game(), oracle=GRAPH.oracle("y"), stopping=FEW))
    assert with_graph.balanced() is with_graph
    lost = run_local(loss_game(), stopping=FEW)
    assert lost.balanced() is lost
