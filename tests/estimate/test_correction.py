"""SAGE minus d-SAGE: what separation changes along each ordering, and the units of an audit."""

import itertools

import numpy as np
import pytest

from dsage import Graph
from dsage.estimate import Estimation, NOrderings, StopKind, as_stopping, run
from dsage.estimate.correction import BoundaryGaps, Correction, SkippedSurpluses
from dsage.estimate.walk import Boundaries, Prefixes, play
from dsage.graphs import NoSeparation
from dsage.orderings import Given
from small_games import FEATURES, ORACLE, gaussian_case, gaussian_game
from tables import NAMES, PathTable, Table

# a -> b -> c -> y -> d: c separates a and b from y, b separates a, and nothing separates d.
CHAIN = Graph([*NAMES, "y"], [("a", "b"), ("b", "c"), ("c", "y"), ("y", "d")]).oracle("y")
ORDERS = np.array(list(itertools.permutations(range(4))))
ROWS = np.array([4, 0, 5])
CASE = gaussian_case()


@pytest.mark.parametrize("epoch", [0, 2])
def test_gaps_are_the_plain_surpluses_minus_those_at_the_boundaries(epoch):
    game = Table()
    plain = play(Prefixes(game)(ORDERS, ROWS, epoch), game).values
    at_boundaries = play(Boundaries(CHAIN)(ORDERS, ROWS, epoch), game)
    values, skipped = play(BoundaryGaps(game, CHAIN)(ORDERS, ROWS, epoch), game)
    np.testing.assert_allclose(values, plain - at_boundaries.values, atol=1e-12)
    np.testing.assert_array_equal(skipped, at_boundaries.skipped)
    # Where separated, the surplus itself is what was left out.
    at = np.broadcast_to(skipped[:, None, None, :], values.shape)
    np.testing.assert_allclose(values[at], plain[at], atol=1e-12)


def test_gaps_ask_only_for_coalitions_that_are_not_their_own_boundaries():
    game = Table()
    # b c a d: the boundary of bc is c, of abc too, and of abcd it is cd.
    play(BoundaryGaps(game, CHAIN)(np.array([[1, 2, 0, 3]]), ROWS, 0), game)
    assert game.asked == [(1, 2), (0, 1, 2), (0, 1, 2, 3), (2,), (2,), (2, 3)]


@pytest.mark.parametrize("kind", [Table, PathTable])
@pytest.mark.parametrize("epoch", [0, 2])
def test_skipped_surpluses_are_what_the_algorithm_of_the_paper_leaves_out(kind, epoch):
    game = kind()
    plain = play(Prefixes(game)(ORDERS, ROWS, epoch), game).values
    main = play(Prefixes(game, CHAIN)(ORDERS, ROWS, epoch), game)
    values, skipped = play(SkippedSurpluses(game, CHAIN)(ORDERS, ROWS, epoch), game)
    np.testing.assert_array_equal(values, plain - main.values)
    np.testing.assert_array_equal(skipped, main.skipped)
    assert 0 < skipped.mean() < 1


@pytest.mark.parametrize("kind", [Table, PathTable])
def test_skipped_surpluses_ask_only_for_their_own_coalitions(kind):
    game = kind()
    # d c b a: b and a are separated by c, so dc, dcb and dcba are needed.
    play(SkippedSurpluses(game, CHAIN)(np.array([[3, 2, 1, 0]]), ROWS, 0), game)
    assert game.asked == [(2, 3), (1, 2, 3), (0, 1, 2, 3)]


@pytest.mark.parametrize("gaps", [BoundaryGaps, SkippedSurpluses])
@pytest.mark.parametrize("kind", [Table, PathTable])
def test_without_separations_there_is_no_difference_and_nothing_is_asked(kind, gaps):
    game = kind()
    values, skipped = play(gaps(game, NoSeparation(NAMES))(ORDERS, ROWS, 0), game)
    assert (values == 0).all()
    assert not skipped.any()
    assert not game.asked


@pytest.mark.parametrize("gaps", [BoundaryGaps, SkippedSurpluses])
def test_a_unit_averages_over_orderings_and_notes_each_skipped_surplus(gaps):
    game = Table()
    orderings = Given(ORDERS[:6], NAMES)
    term = Correction(gaps(game, CHAIN), orderings, 0)
    outcomes = [play(term(batch, ROWS, 1), game) for batch in range(6 // orderings.batch_size)]
    orders = ORDERS[:6]
    plain = play(Prefixes(game)(orders, ROWS, 1), game).values
    values, skipped = play(gaps(game, CHAIN)(orders, ROWS, 1), game)
    np.testing.assert_allclose(
        np.mean([each.surplus for each in outcomes], axis=0), values.mean(axis=0)
    )
    np.testing.assert_array_equal(sum(each.n_skipped for each in outcomes), skipped.sum(axis=0))
    noted = [note for each in outcomes for note in each.noted]
    expected = [
        (feature, orders[number].tolist().index(feature), plain[number, :, :, feature].mean())
        for number, feature in np.argwhere(skipped).tolist()
    ]
    assert [note[:2] for note in noted] == [note[:2] for note in expected]
    np.testing.assert_allclose([note[2] for note in noted], [note[2] for note in expected])
    assert all((each.control == 0).all() for each in outcomes)


# --- the rows of an audit


def drawn_game(n_rows=120, **options):
    X, y = CASE.sample(n_rows, np.random.default_rng(0))
    return gaussian_game(CASE, X, y, is_drawn=True, random_state=0, **options)


def test_units_of_an_audit_have_a_sixteenth_of_the_rows_of_a_shard():
    plan = Estimation(drawn_game(), oracle=ORACLE, exact="never", random_state=0).plan
    assert plan.is_audited_only
    assert len(plan.audit_shards) == 16 * len(plan.shards)
    assert plan.shards_of(1) is plan.audit_shards
    assert plan.shards_of(0) is plan.shards
    for number, shard in enumerate(plan.shards):
        parts = plan.audit_shards[16 * number : 16 * (number + 1)]
        np.testing.assert_array_equal(np.concatenate(parts), shard)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize(
    ("is_drawn", "options"),
    [
        (False, {}),
        (True, {"estimand": "sage"}),
        (True, {"orderings": [FEATURES]}),
    ],
    ids=["without draws", "part of the estimate", "given orderings"],
)
def test_a_correction_has_the_shards_of_the_main_term(is_drawn, options):
    X, y = CASE.sample(120, np.random.default_rng(0))
    game = gaussian_game(CASE, X, y, is_drawn=is_drawn)
    options = {"exact": "never", "random_state": 0, **options}
    plan = Estimation(game, oracle=ORACLE, **options).plan
    assert plan.audit_shards is plan.shards


def test_shards_of_few_rows_are_not_cut_into_empty_parts():
    plan = Estimation(drawn_game(5), oracle=ORACLE, exact="never", random_state=0).plan
    assert [len(part) for part in plan.audit_shards] == [1] * 5


@pytest.mark.filterwarnings("ignore:Skipping by separation")
@pytest.mark.parametrize("semantics", ["boundary", "skip"])
def test_an_audit_takes_few_evaluations_and_finds_the_difference(semantics):
    wrong = Graph([*FEATURES, "y"], [("a", "b"), ("b", "y"), ("y", "e")]).oracle("y")
    game = drawn_game(300)
    options = {"oracle": wrong, "semantics": semantics, "exact": "never", "random_state": 3}
    rule = NOrderings(300)
    found = run(game, stopping=rule, **options)
    audit = found.audit
    # After the first units, 15 % of the evaluations; a step may overshoot.
    assert audit.n_evaluated < 0.2 * found.n_evaluated
    truth = CASE.values(data=CASE.sample(300, np.random.default_rng(0)))
    difference = truth - found.values
    allowed = 4.5 * np.hypot(audit.se, found.se) + 1e-9
    assert (np.abs(audit.values - difference) <= allowed).all()
    assert (np.abs(audit.values) > 4 * audit.se)[FEATURES.index("c")]


# --- fresh noise


class Noisy(Table):
    """Risks of coalitions, with a noise of their own in each epoch, `scale` times as large."""

    is_drawn = True

    def __init__(self, scale):
        super().__init__(FEATURES, n_rows=40, n_epochs=200)
        fixed = np.random.default_rng(1).normal(size=(1, 16, 1, 1))
        self.table = fixed + scale * self.table
        self.epochs = set()

    def risks(self, known, rows, epoch=0):
        self.epochs.add(epoch)
        return super().risks(known, rows, epoch)


def n_passes_of_noise(scale):
    """The mean number of passes over the rows before the noise is renewed."""
    game = Noisy(scale)
    options = {"oracle": ORACLE, "exact": "never", "audit": False, "rows_per_ordering": 40}
    found = run(game, stopping=NOrderings(200), random_state=0, **options)
    return found.n_units / len(game.epochs)


def test_noise_is_kept_longer_the_less_it_matters_beside_the_orderings():
    much, some, little = map(n_passes_of_noise, (30.0, 3.0, 0.3))
    # Two passes show how much orderings vary.
    assert 2.0 <= much < 4.0
    assert much < some < little


def test_noise_is_renewed_even_if_all_boundaries_are_in_memory():
    """Otherwise the error from draws would stay, and the run would never end."""
    game = drawn_game(60, n_draws=2)
    rule = as_stopping(absolute=0.01, n_orderings=20_000)
    options = {"oracle": ORACLE, "exact": "never", "audit": False, "random_state": 0}
    found = run(game, stopping=rule, **options)
    assert found.reason.kind is StopKind.ABSOLUTE
    # There are no more than sixteen coalitions of four features.
    assert found.n_evaluated > 2 * 16 * game.n_rows
