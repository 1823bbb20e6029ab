"""The range of values over graphs: what depends on the graph, and what a comparison costs."""

import dataclasses
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from dsage._check import GraphWarning, warn
from dsage.estimate import PlanOptions, StopKind, StopReason, as_stopping, graph_range, run
from dsage.estimate.graph_range import GraphRange, OtherGame, range_over_graphs, warn_of_range
from dsage.games import Game
from small_games import TableGame


def make_range(values, differences, se=0.0):
    differences = np.array(differences)
    names = tuple("abc"[: len(values)])
    same = np.full_like(differences, se), np.full_like(differences, np.inf)
    n_graphs = len(differences)
    shares, kinds = np.full(n_graphs, 0.5), (False,) * n_graphs
    words = ("a -> b",) * n_graphs
    return GraphRange(names, np.array(values), differences, *same, shares, kinds, words)


def test_a_warning_names_signs_and_ranks_that_depend_on_the_graph():
    found = make_range([3.0, 2.0, -0.5], [[-2.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    assert found.changes_sign() == ["c"]
    assert found.changes_rank() == [("a", "b")]
    with pytest.warns(GraphWarning, match=r"the sign of the values of \['c'\].*'a' and 'b'"):
        warn_of_range(found)


def test_differences_within_their_errors_change_nothing():
    found = make_range([3.0, 2.0, -0.5], [[-2.0, 0.0, 2.0]], se=2.0)
    assert found.changes_sign() == []
    assert found.changes_rank() == []
    warn_of_range(found)


def test_the_errors_of_the_run_itself_count():
    found = make_range([3.0, 2.0, -0.5], [[-2.0, 0.0, 2.0]])
    assert found.changes_sign() == ["c"]
    assert ("a", "b") in found.changes_rank()
    errors = {"se_values": np.full(3, 1.0), "df_values": np.full(3, 30.0)}
    found = dataclasses.replace(found, **errors)
    assert found.changes_sign() == []
    assert found.changes_rank() == []


def test_the_smallest_error_that_matters_is_two_percent_of_the_range():
    def signs(low):
        return make_range([10.0, 0.3, 0.0], [[0.0, low, 0.0]]).changes_sign()

    # With the other graph, b is 0.19 or 0.21 below zero: 2 % of the range are 0.2.
    assert signs(-0.49) == []
    assert signs(-0.51) == ["b"]

    def ranks(gap):
        return make_range([10.0, 0.3, 0.0], [[0.0, 0.0, 0.3 + gap]]).changes_rank()

    assert ranks(0.19) == []
    assert ranks(0.21) == [("b", "c")]


def test_means_weigh_the_members_of_the_class_but_not_resampled_graphs():
    found = make_range([3.0, 2.0, -0.5], [[-2.0, 0.0, 1.0], [4.0, 1.0, 1.0], [9.0, 9.0, 9.0]])
    shares, kinds = np.array([0.25, 0.5, 0.5]), (False, False, True)
    found = dataclasses.replace(found, shares=shares, are_resampled=kinds)
    frame = found.to_frame()
    assert frame["feature"].tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(frame["mean"], [4.5, 2.5, 0.25])
    assert frame["lowest"].tolist() == [1.0, 2.0, -0.5]
    assert frame["highest"].tolist() == [12.0, 11.0, 8.5]
    low = dataclasses.replace(found, values=np.array([-1.0, 5.0, 2.0]))
    assert low.to_frame()["feature"].tolist() == ["b", "c", "a"]


def test_a_value_has_the_error_of_the_run_and_the_difference_the_error_of_both():
    found = make_range([3.0, 2.0, -0.5], [[-2.0, 0.0, 2.0]], se=0.4)
    alone = found._slack()
    assert (alone[0] == 0).all()
    ours = {"se_values": np.full(3, 0.3), "df_values": np.full(3, np.inf)}
    both = dataclasses.replace(found, **ours)._slack()
    np.testing.assert_allclose(both[1] / alone[1], 0.5 / 0.4)
    np.testing.assert_allclose(both[0] / alone[1], 0.3 / 0.4)
    # Degrees of freedom are the smaller of the two.
    few = dataclasses.replace(found, **ours | {"df_values": np.full(3, 4.0)})
    fewer = dataclasses.replace(few, df=np.full((1, 3), 2.0))
    assert (few._slack()[1] > both[1]).all()
    assert (fewer._slack()[1] > few._slack()[1]).all()


def test_a_warning_shows_three_pairs_and_counts_the_others():
    three = make_range([3.0, 2.0, 1.0], [[-6.0, 0.0, 6.0]])
    with pytest.warns(
        GraphWarning, match="the sign .* and the order of .*'c' depend on it"
    ) as seen:
        warn_of_range(three)
    assert "more pairs" not in str(seen[0].message)
    four = GraphRange(
        tuple("abcd"), np.array([4.0, 3.0, 2.0, 1.0]), np.array([[-3.0, -1.0, 1.0, 3.0]]),
        np.zeros((1, 4)), np.full((1, 4), np.inf), np.ones(1), (False,), ("",),
    )  # fmt: skip
    with pytest.warns(GraphWarning, match="'a' and 'd' and 3 more pairs depends on it"):
        warn_of_range(four)


class Noisy(Game):
    """A table whose risks have noise: replicates around the risk, other ones in each epoch."""

    n_replicates = 2

    def __init__(self, table):
        self.table = TableGame(table)
        self.feature_names, self.n_rows = self.table.feature_names, self.table.n_rows
        self.n_asked = 0

    def risks(self, known, rows, epoch=0):
        self.n_asked += len(known) * len(rows)
        codes = known @ (1 << np.arange(known.shape[1]))
        shift = np.sin(1000.0 * (codes[:, None] + 10 * rows + 7.3 * epoch))[:, :, None]
        return self.table.risks(known, rows) + 0.1 * shift * np.array([1.0, -0.5])


RNG = np.random.default_rng(0)
OURS, THEIRS = RNG.normal(size=(2, 16, 200))
FAR = THEIRS + RNG.normal(size=(16, 1))
MANY = as_stopping(n_orderings=400)


def other_of(make, share=0.5, *, is_resampled=False):
    return OtherGame(make, "a -> b", share, is_resampled)


def compare(game, makers, estimate, **options):
    others = [other_of(make) for make in makers]
    plan = PlanOptions(**{"random_state": 0, "exact": "never"} | options)
    return range_over_graphs(game, others, estimate, plan, seed=1, n_members=7)


@pytest.fixture(scope="module")
def sampled():
    """A noisy game, and its run."""
    game = Noisy(OURS)
    return game, run(game, stopping=MANY, exact="never", random_state=0)


def test_differences_are_those_of_exact_values():
    ours, theirs = TableGame(OURS), TableGame(FAR)
    estimate = run(ours)
    found = compare(ours, [lambda: theirs, lambda: ours], estimate, exact="auto")
    truth = run(theirs).values - estimate.values
    np.testing.assert_allclose(found.differences, [truth, np.zeros(4)], atol=1e-12)
    np.testing.assert_array_equal(found.se, 0.0)
    assert (found.se_values, found.df_values) == (None, None)
    assert (found.n_members, found.graphs) == (7, ("a -> b", "a -> b"))
    np.testing.assert_array_equal(found.shares, 0.5)


def test_sampled_differences_are_precise_or_use_as_much_as_the_run(sampled):
    game, estimate = sampled
    exact = run(TableGame(FAR)).values - run(TableGame(OURS)).values
    found = compare(game, [lambda: Noisy(FAR)], estimate)
    assert (np.abs(found.differences[0] - exact) < 4.5 * found.se[0]).all()
    np.testing.assert_array_equal(found.se_values, estimate.se)
    np.testing.assert_array_equal(found.df_values, estimate.df)
    # A batch of orderings may go beyond what is allowed.
    assert 0.9 * estimate.n_evaluated < found.n_evaluated < 1.3 * estimate.n_evaluated
    two = compare(game, [lambda: Noisy(FAR)] * 2, estimate)
    assert two.n_evaluated < 1.3 * estimate.n_evaluated
    assert two.n_evaluated > 0.9 * estimate.n_evaluated


def test_the_game_of_the_run_is_evaluated_once_for_all_comparisons(sampled):
    _, estimate = sampled
    asked = []
    for n_others in (1, 3):
        game = Noisy(OURS)
        late = dataclasses.replace(estimate, reason=StopReason(StopKind.TIME, {"seconds": 1.0}))
        compare(game, [lambda: Noisy(FAR)] * n_others, late)
        asked.append(game.n_asked)
    assert asked[0] == asked[1]


def test_small_differences_need_few_evaluations(sampled):
    game, estimate = sampled
    same = compare(game, [lambda: Noisy(OURS)], estimate)
    np.testing.assert_array_equal(same.differences, 0.0)
    # 16 units of two orderings on 64 rows: at most five coalitions for each ordering and row.
    assert 0 < same.n_evaluated <= 16 * 2 * 64 * 5
    late = dataclasses.replace(estimate, reason=StopReason(StopKind.TIME, {"seconds": 1.0}))
    hasty = compare(game, [lambda: Noisy(FAR)], late)
    assert hasty.n_evaluated <= 16 * 2 * 16 * 5
    assert hasty.se.max() > 0


def test_nothing_is_compared_without_others_or_after_an_interrupt(sampled):
    game, estimate = sampled
    assert compare(game, [], estimate) is None
    reason = StopReason(StopKind.INTERRUPTED, {})
    stopped = dataclasses.replace(estimate, reason=reason)
    assert compare(game, [lambda: Noisy(FAR)], stopped) is None


def test_warnings_of_games_with_other_graphs_are_not_shown(sampled):
    game, estimate = sampled

    def warns():
        warn("draws with the other graph are odd")
        return Noisy(OURS)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compare(game, [warns], estimate) is not None


def test_an_interrupted_comparison_gives_no_range(sampled, monkeypatch):
    def interrupted(*arguments, **options):
        found = run(*arguments, **options)
        return dataclasses.replace(found, reason=StopReason(StopKind.INTERRUPTED, {}))

    monkeypatch.setattr(graph_range, "run", interrupted)
    game, estimate = sampled
    assert compare(game, [lambda: Noisy(OURS)], estimate) is None


@pytest.mark.parametrize(
    ("n_units", "se", "n_evaluated", "is_over"),
    [
        (16, [0.1, 0.1], 10, True),
        (15, [0.1, 0.1], 10, False),
        (16, [0.1, 0.11], 10, False),
        (16, [0.1, 0.11], 99, False),
        (16, [0.1, 0.11], 100, True),
        (15, [0.1, 0.11], 100, False),
    ],
)
def test_a_comparison_has_16_units_and_ends_if_it_is_precise_or_long(
    n_units, se, n_evaluated, is_over
):
    now = SimpleNamespace(
        n_units=n_units, se=np.array(se), n_evaluated=n_evaluated, n_orderings=2 * n_units
    )
    assert (graph_range._Enough(100, 0.1).reason(now) is not None) == is_over
