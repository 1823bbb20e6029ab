"""Direct and indirect parts of surpluses, against sums over orderings one by one."""

import itertools

import numpy as np
import pytest

from dsage import Graph
from dsage.estimate import run
from dsage.estimate.parts import CheapParts, PartsWalk, enumerate_parts
from dsage.estimate.running.stopping import NOrderings
from dsage.estimate.walk import play
from dsage.games import Game
from dsage.graphs.interventions import Interventions
from interventional_world import brute_force

FEATURES = ["a", "b", "c"]
CHAIN = Interventions(Graph([*FEATURES, "y"], [("a", "b"), ("b", "y"), ("c", "y")]), FEATURES, "y")
NO_ORDER = np.zeros((3, 3), dtype=bool)
A_FIRST = np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]], dtype=bool)
ALL = np.array(list(itertools.permutations(range(3))))


class PairGame(Game):
    """A random risk for each row, and each pair of what is set and what the model receives."""

    feature_names, n_rows, interventions = tuple(FEATURES), 5, CHAIN
    table = np.random.default_rng(0).normal(size=(64, n_rows))

    def risks(self, known, rows, epoch=0):
        assert known.shape[1] == 6
        return self.table[known @ (1 << np.arange(6))][:, rows, None]

    def risk(self, fixed, inputs):
        masks = [np.array([[at in some for at in range(3)]]) for some in (fixed, inputs)]
        pair = np.concatenate([CHAIN.reduced(*masks), masks[1]], axis=1)
        return float(self.risks(pair, np.arange(self.n_rows)).mean())


def changes_others(order, at):
    """Whether setting a feature of the chain changes one that comes later: only a, before b."""
    return order[at] == 0 and 1 not in order[:at]


@pytest.mark.parametrize(
    ("order", "allowed"),
    [(NO_ORDER, ALL), (A_FIRST, ALL[:2])],
    ids=["all orderings", "a first"],
)
def test_enumerated_parts_are_means_over_orderings(order, allowed):
    game = PairGame()
    found = enumerate_parts(CHAIN, order, None, 100)
    risks = game.risks(found.coalitions, np.arange(5)).mean(axis=(1, 2))
    truth = brute_force(game.risk, 3, allowed.tolist())
    np.testing.assert_allclose(found.values(risks).reshape(3, 3), truth, atol=1e-12)
    # Parts without an effect are zero; surpluses and direct parts always need a risk.
    still = [
        [not changes_others(one, one.index(feature)) for one in allowed.tolist()]
        for feature in range(3)
    ]
    np.testing.assert_allclose(found.skipped, [*[0.0] * 6, *np.mean(still, axis=1)])


def test_parts_that_need_too_many_risks_are_not_enumerated():
    n_needed = enumerate_parts(CHAIN, NO_ORDER, None, 100).n_coalitions
    assert enumerate_parts(CHAIN, NO_ORDER, n_needed, 100).n_coalitions == n_needed
    assert enumerate_parts(CHAIN, NO_ORDER, n_needed - 1, 100) is None
    assert enumerate_parts(CHAIN, NO_ORDER, None, 8) is not None
    assert enumerate_parts(CHAIN, NO_ORDER, None, 7) is None


def test_surpluses_along_an_ordering_are_followed_by_their_parts():
    game, rows = PairGame(), np.array([3, 1])
    surpluses = play(PartsWalk(CHAIN)(ALL, rows, 0), game)
    assert surpluses.values.shape == (6, 2, 1, 9)
    cheap = CheapParts(game, CHAIN)(ALL)
    whole = play(PartsWalk(CHAIN)(ALL, np.arange(5), 0), game).values.mean(axis=(1, 2))
    np.testing.assert_array_equal(surpluses.values[:, 0, 0], walk_of_row(game, 3))
    for each, order in enumerate(ALL.tolist()):
        truth = brute_force(game.risk, 3, [order])
        np.testing.assert_allclose(whole[each].reshape(3, 3), truth, atol=1e-12)
        np.testing.assert_allclose(cheap[each].reshape(3, 3), truth, atol=1e-12)
        zero = [not changes_others(order, order.index(feature)) for feature in range(3)]
        np.testing.assert_array_equal(surpluses.skipped[each], [*[False] * 6, *zero])
        assert (surpluses.values[each, ..., 6:][..., zero] == 0).all()


def walk_of_row(game, row):
    return play(PartsWalk(CHAIN)(ALL, np.array([row]), 0), game).values[:, 0, 0]


def test_a_run_reports_the_parts_and_the_share_of_orderings_without_an_effect():
    game = PairGame()
    truth = brute_force(game.risk, 3)
    found = run(game, estimand="causal", exact="always")
    np.testing.assert_allclose(found.values, truth[0], atol=1e-12)
    np.testing.assert_allclose(found.parts.values, truth[1:], atol=1e-12)
    frame = found.to_frame().set_index("feature").loc[FEATURES]
    np.testing.assert_allclose(frame["direct"], truth[1], atol=1e-12)
    np.testing.assert_allclose(frame["indirect"], truth[2], atol=1e-12)
    np.testing.assert_array_equal(frame[["se_direct", "se_indirect"]], 0.0)
    sampled = run(game, exact="never", stopping=NOrderings(64), random_state=0)
    slack = 4.5 * np.stack([sampled.se, *sampled.parts.se]) + 1e-12
    assert (np.abs(np.stack([sampled.values, *sampled.parts.values]) - truth) <= slack).all()
    assert sampled.parts.values[1, 1:].tolist() == [0.0, 0.0]
