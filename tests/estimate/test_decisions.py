"""What the main loop decides from variances and costs: the next term, and whether noise is kept."""

from types import SimpleNamespace

import numpy as np
import pytest

from dsage._random import Streams
from dsage.estimate.loop import Estimation


def make(**given):
    """An estimation with nothing but the sums that its decisions depend on."""
    estimation = Estimation.__new__(Estimation)
    vars(estimation).update(given)
    return estimation


def totals_of(units=(40, 40), variances=(1.0, 1.0), costs=(1000, 1000), **given):
    tallies = [SimpleNamespace(n_units=each) for each in units]
    own = {
        "tallies": tallies,
        "costs": np.array(costs),
        "variance": lambda term: np.array([0.25, 0.75]) * variances[term],
        "draw_variance": lambda term: np.array([0.5, 0.5]) * given.get("drawn", 0.0),
        "n_pieces": units[0],
        "is_complete": False,
    }
    return SimpleNamespace(**own | given)


def plan_of(n_terms=2, **given):
    own = {"terms": [None] * n_terms, "is_given": False, "estimand": "sage", "enumeration": None,
           "is_drawn": True}  # fmt: skip
    return SimpleNamespace(**own | given)


def next_term(totals=None, **given):
    return make(plan=plan_of(**given), _totals=totals or totals_of())._next_term()


def test_without_a_correction_the_main_term_is_next():
    assert next_term(n_terms=1) == 0


@pytest.mark.parametrize(("units", "term"), [((5, 4), 1), ((5, 5), 0), ((4, 5), 0)])
def test_given_orderings_serve_both_terms_alike(units, term):
    assert next_term(totals_of(units), is_given=True) == term


def test_the_next_unit_goes_where_it_lowers_the_variance_most_for_its_cost():
    rng, decisions = np.random.default_rng(0), []
    for _ in range(200):
        units, variances = rng.integers(30, 90, size=2), rng.uniform(1, 2, size=2)
        costs = rng.integers(0, 4 * units.min(), size=2)
        # The variance v of n units falls by about v / n with one more; it costs an evaluation at
        # least.
        gains = variances / units / np.maximum(costs / units, 1.0)
        decisions.append(next_term(totals_of(tuple(units), variances, costs)))
        assert decisions[-1] == np.argmax(gains)
    assert 50 < sum(decisions) < 150


@pytest.mark.parametrize(
    ("units", "term"),
    [((8, 8), 1), ((8, 9), 0), ((29, 29), 1), ((40, 29), 1), ((29, 40), 0), ((30, 30), 0)],
)
def test_few_units_are_not_compared_but_grow_together(units, term):
    assert next_term(totals_of(units, (2.0, 1.0))) == term


@pytest.mark.parametrize(("drawn", "term"), [(0.0, 1), (0.9, 1), (1.1, 0)])
def test_the_error_of_draws_counts_where_all_orderings_are_averaged_over(drawn, term):
    totals = totals_of((40, 40), (0.0, 1.0), drawn=drawn)
    assert next_term(totals, enumeration=object()) == term
    assert next_term(totals) == 1


@pytest.mark.parametrize(
    ("units", "costs", "term"),
    [
        # At least half as many units as the main term, up to sixteen.
        ((9, 4), (100, 100), 1),
        ((8, 4), (100, 100), 0),
        ((90, 15), (100, 100), 1),
        ((90, 16), (100, 100), 0),
        # While it takes less than 15 % of all evaluations.
        ((90, 40), (851, 149), 1),
        ((90, 40), (850, 150), 0),
        # And at most 16 times as many units, where they cost nothing.
        ((10, 159), (100, 0), 1),
        ((10, 160), (100, 0), 0),
    ],
)
def test_an_audit_takes_few_evaluations(units, costs, term):
    totals = totals_of(units, costs=costs)
    assert next_term(totals, estimand="d-sage") == term


@pytest.mark.parametrize(("n_units", "term"), [(63, 1), (64, 0)])
def test_if_nothing_is_left_an_audit_has_64_units(n_units, term):
    totals = totals_of((1, n_units), costs=(0, 9), is_complete=True)
    assert next_term(totals, estimand="d-sage", is_drawn=False) == term
    # With draws, the main term goes on.
    assert next_term(totals, estimand="d-sage") == int(n_units < 16)


def keeps_noise(k, all_passes, varied, drawn, costs, n_epochs=1, terms=(0,)):
    """The decision, and both sides of its inequality from the definition."""
    epoch_cost, last, now = costs
    totals = SimpleNamespace(
        tallies=[SimpleNamespace(counts=np.array([all_passes + 1, all_passes]))],
        ledger=SimpleNamespace(draw_variance=lambda at: np.full(2, drawn / 2) * len(at)),
        estimated=list(terms),
        variance=lambda term: np.full(2, varied / 2),
    )
    estimation = make(_totals=totals, _epoch=n_epochs - 1, _pass_cost=now, _epoch_cost=epoch_cost)
    # Variances of an epoch, from the variances of the mean over all.
    v = len(terms) * varied * all_passes
    d = len(terms) * drawn * n_epochs
    cost = now - epoch_cost
    more = max(now - last, 0.02 * cost)
    sides = (v / (k + 1) + d) * (cost + more), (v / k + d) * cost
    return estimation._keeps_noise(k, last), *sides


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_kept_if_variance_times_cost_falls(seed):
    rng, decisions = np.random.default_rng(seed), set()
    for _ in range(100):
        k, n_epochs = int(rng.integers(2, 9)), int(rng.integers(1, 4))
        all_passes = k + int(rng.integers(0, 9)) * (n_epochs > 1)
        start = int(rng.integers(0, 1000)) * (n_epochs > 1)
        last = start + int(rng.integers(1, 1000))
        now = last + int(rng.integers(0, 200)) * int(rng.integers(0, 2))
        terms = (0,) if rng.random() < 0.5 else (0, 1)
        varied, drawn = rng.exponential(size=2) * [1.0, 0.2]
        found, ahead, here = keeps_noise(
            k, all_passes, varied, drawn, (start, last, now), n_epochs, terms
        )
        assert found == (ahead < here)
        decisions.add(found)
    assert decisions == {True, False}


class Ledger:
    """Counts what the end of a pass does."""

    def __init__(self, n_passes, *, is_drawn=True, shares=True, enumeration=None, keeps=False):
        self.forgotten, self.n_epochs = [], 0
        game = SimpleNamespace(forget=self.forgotten.append)
        totals = SimpleNamespace(
            tallies=[SimpleNamespace(counts=np.array([n_passes, n_passes + 1]))],
            costs=np.array([700, 5]),
            next_epoch=self._next,
        )
        plan = SimpleNamespace(is_drawn=is_drawn, shares=shares, enumeration=enumeration, game=game)
        self.estimation = make(
            plan=plan, _totals=totals, _epoch=3, _epoch_started_at=10, _pass_cost=300,
            _epoch_cost=200,
        )  # fmt: skip
        self.asked = []
        self.estimation._keeps_noise = lambda *given: self.asked.append(given) or keeps
        self.estimation._end_pass()

    def _next(self):
        self.n_epochs += 1


@pytest.mark.parametrize(
    ("given", "is_fresh"),
    [
        ({"n_passes": 11}, False),
        ({"n_passes": 12}, True),
        ({"n_passes": 12, "keeps": True}, False),
        ({"n_passes": 12, "keeps": True, "shares": False}, True),
        ({"n_passes": 12, "is_drawn": False}, False),
        ({"n_passes": 11, "enumeration": object()}, True),
        ({"n_passes": 12, "keeps": True, "enumeration": object()}, True),
    ],
)
def test_noise_is_fresh_after_two_passes_unless_it_is_worth_keeping(given, is_fresh):
    found = Ledger(**given)
    state = found.estimation
    assert found.n_epochs == is_fresh
    assert found.forgotten == [3] * is_fresh
    assert state._epoch == 3 + is_fresh
    assert state._epoch_started_at == (given["n_passes"] if is_fresh else 10)
    assert (state._epoch_cost, state._pass_cost) == (700 if is_fresh else 200, 700)
    # The passes with this noise, and the costs at the end of the last one.
    assert all(each == (given["n_passes"] - 10, 300) for each in found.asked)


@pytest.mark.parametrize(
    ("given", "n_pieces"),
    [
        ({"n_batches": 3}, 12),
        ({"n_batches": 3, "enumeration": object(), "is_drawn": False}, 12),
        ({}, None),
        ({"enumeration": object()}, None),
        ({"is_drawn": False}, None),
        ({"enumeration": object(), "is_drawn": False}, 50),
    ],
)
def test_only_given_orderings_and_exact_averages_have_an_end(given, n_pieces):
    orderings = SimpleNamespace(n_batches=given.pop("n_batches", None))
    game = SimpleNamespace(n_rows=50)
    plan = plan_of(orderings=orderings, shards=[None] * 4, game=game, **given)
    assert make(plan=plan).most_pieces == n_pieces


def shards_of(n_shards):
    return {"shards": [None] * n_shards, "shards_of": lambda term: [None] * (n_shards + term)}


@pytest.mark.parametrize(
    ("given", "is_complete", "term", "n_left"),
    [
        ({"n_batches": 5}, False, 0, 5 * 4 - 7),
        ({"n_batches": 5}, False, 1, 5 * 5 - 3),
        ({"n_batches": 5, "is_drawn": False}, True, 0, 5 * 4 - 7),
        ({}, False, 0, None),
        ({}, True, 0, None),
        ({"is_drawn": False}, True, 0, 0),
        ({"is_drawn": False}, True, 1, None),
        ({"is_drawn": False}, False, 0, None),
    ],
)
def test_what_is_left_of_a_term(given, is_complete, term, n_left):
    orderings = SimpleNamespace(n_batches=given.pop("n_batches", None))
    plan = plan_of(orderings=orderings, **shards_of(4), **given)
    estimation = make(plan=plan, _totals=totals_of((7, 3), is_complete=is_complete))
    found = estimation._n_left(term)
    assert found == n_left if n_left is not None else found > 1 << 30


@pytest.mark.parametrize(
    ("estimand", "is_drawn", "n_units"),
    [("sage", True, 8), ("d-sage", True, 2), ("sage", False, 64), ("d-sage", False, 64)],
)
def test_a_correction_begins_with_the_units_that_its_use_needs(estimand, is_drawn, n_units):
    plan = plan_of(estimand=estimand, is_drawn=is_drawn)
    estimation = make(plan=plan, _totals=totals_of(is_complete=True))
    assert estimation._first_correction() == n_units


@pytest.mark.parametrize(
    ("n_columns", "sizes", "n_rows", "n_replicates", "n_units"),
    [
        # 64 MiB for four copies of risks of eight bytes.
        (7, (1,), [100, 90], 1, 2**26 // (32 * 8 * 100)),
        (7, (2, 5), [100], 1, 2**26 // (32 * 8 * 100 * 5)),
        (7, (5, 2), [10, 100], 2, 2**26 // (32 * 8 * 100 * 5 * 2)),
        (999, (1000,), [1000], 8, 1),
    ],
)
def test_as_many_units_are_evaluated_together_as_memory_allows(
    n_columns, sizes, n_rows, n_replicates, n_units
):
    plan = SimpleNamespace(
        shards=[np.arange(each) for each in n_rows],
        terms=[SimpleNamespace(batch_size=each) for each in sizes],
        n_columns=n_columns,
        game=SimpleNamespace(n_replicates=n_replicates),
    )
    assert make(plan=plan)._n_at_once == n_units


@pytest.mark.parametrize(
    ("units", "term", "n_needed"), [((0, 0), 0, 2), ((1, 0), 0, 1), ((2, 0), 0, 0), ((9, 1), 1, 1)]
)
def test_two_units_of_a_term_are_needed_for_its_error(units, term, n_needed):
    estimation = make(_totals=totals_of(units, estimated=[0, 1]))
    assert estimation._n_needed(term) == n_needed
    alone = make(_totals=totals_of(units, estimated=[0]))
    assert alone._n_needed(term) == (n_needed if term == 0 else 0)


@pytest.mark.parametrize("is_given", [True, False])
def test_every_pass_visits_every_shard_once(is_given):
    streams = Streams(0)
    plan = plan_of(is_given=is_given, streams=streams, **shards_of(5))
    estimation = make(plan=plan)
    for term, n_shards in ((0, 5), (1, 6)):
        places = [estimation._place(term, number) for number in range(3 * n_shards)]
        for n_pass in range(3):
            own = places[n_pass * n_shards : (n_pass + 1) * n_shards]
            order = streams("passes", n_pass).permutation(n_shards).tolist()
            if is_given:
                # The same orderings on all shards, in their order.
                assert own == [(n_pass, shard) for shard in range(n_shards)]
            else:
                numbers = range(n_pass * n_shards, (n_pass + 1) * n_shards)
                assert own == list(zip(numbers, order, strict=True))
