"""Which candidates are tried, on how much, and what the clock may change."""

import functools
import itertools

import numpy as np
import pandas as pd
import pytest

from dsage._random import Streams
from dsage.data.layout import Layout
from dsage.samplers import race
from dsage.samplers.base import BaseSampler
from dsage.samplers.choose import candidates_for
from dsage.samplers.comparing import Table, compare_candidates
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.marginal import Marginal
from dsage.samplers.race import Budget, Contender
from dsage.samplers.registry import SAMPLERS
from dsage.samplers.scorer import PieceScores, Scorer
from dsage.samplers.splits import split_rows


def rows(n_rows, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n_rows, 1))
    values = shared + 0.6 * rng.standard_normal((n_rows, n_features))
    return pd.DataFrame(values, columns=[f"x{number}" for number in range(n_features)])


def compare(X, contenders, predict=None, budget=None):
    table = Table.of(X, Layout.of(X), streams=Streams(0))
    scorer = table.scorer(predict, 8)
    return compare_candidates(table, contenders, scorer, n_coalitions=8, budget=budget or Budget())


def tick(monkeypatch, seconds):
    """Let so much time pass whenever someone looks at a clock."""
    for clock in ("perf_counter", "process_time"):
        times = itertools.count(0.0, seconds)
        monkeypatch.setattr(race.time, clock, functools.partial(next, times))


class Slow(Gaussian):
    """A Gaussian under another name, registered with the costs of a test."""

    n_fits = 0

    def fit(self, X, y=None):
        type(self).n_fits += 1
        return super().fit(X)


@pytest.fixture
def registered():
    Slow.n_fits = 0

    def register(**traits):
        SAMPLERS.register("slow", summary="slow", fits=("numbers",), **traits)(Slow)

    yield register
    if "slow" in SAMPLERS:
        SAMPLERS.remove("slow")


def test_a_hopeless_candidate_is_given_up_and_the_others_go_on():
    outcome = compare(
        rows(2000), [Contender("Marginal", Marginal()), Contender("Gaussian", Gaussian())]
    )
    assert outcome.ranking.chosen == "Gaussian"
    assert outcome.sheet.n_rows("Marginal") < 500
    assert outcome.scores("Gaussian", "chosen").loc["Marginal", "verdict"].startswith("dropped")


def test_a_candidate_that_stays_is_scored_as_long_as_the_others():
    outcome = compare(
        rows(2000),
        [Contender("Marginal", Marginal(), stays=True), Contender("Gaussian", Gaussian())],
    )
    assert outcome.names == ["Marginal", "Gaussian"]
    assert outcome.sheet.n_rows("Marginal") == outcome.sheet.n_rows("Gaussian")


def test_equals_stop_early():
    # The same sampler twice: nothing is left to find out after the first block.
    outcome = compare(rows(2000), [Contender("a", Gaussian()), Contender("b", Gaussian())])
    assert outcome.sheet.n_rows("a") == 63
    assert outcome.ranking.chosen == "a"


def test_a_fit_that_would_take_too_long_by_count_is_not_tried_and_listed(registered):
    registered(fit_cost=1e6)
    contenders = [Contender("Gaussian", Gaussian()), Contender("Slow", Slow())]
    outcome = compare(rows(500), contenders)
    assert Slow.n_fits == 0
    assert outcome.decision().skipped == ("Slow",)
    assert outcome.scores("Gaussian", "chosen").loc["Slow", "verdict"].startswith("not tried: it ")
    assert "Not tried, since it would take too long: Slow." in outcome.decision().words()
    assert not outcome.race.is_cut
    tried = compare(rows(500), [*contenders[:1], Contender("Slow", Slow())], budget=Budget(1e5))
    assert tried.decision().skipped == ()


def test_without_a_known_cost_the_time_of_a_fit_is_estimated_from_one_to_few_rows(
    registered, monkeypatch
):
    registered()
    tick(monkeypatch, 0.5)
    contenders = [Contender("Gaussian", Gaussian()), Contender("Slow", Slow())]
    outcome = compare(rows(900), contenders, budget=Budget(4.0))
    # A fit to 100 of 675 rows took half a second by this clock.
    assert Slow.n_fits == 1
    assert outcome.decision().skipped == ("Slow",)


def test_the_clock_ends_a_race_that_is_far_slower_than_planned_and_that_is_told(monkeypatch):
    contenders = [Contender("a", Gaussian()), Contender("b", Gaussian(covariance="ledoit-wolf"))]
    calm = compare(rows(300, seed=3), contenders)
    assert not calm.decision().is_cut
    tick(monkeypatch, 9.0)
    contenders = [Contender("a", Gaussian()), Contender("b", Gaussian(covariance="ledoit-wolf"))]
    hurried = compare(rows(300, seed=3), contenders)
    assert hurried.decision().is_cut
    assert "The comparison ran out of time" in hurried.decision().words()


def test_the_choice_and_its_scores_do_not_depend_on_the_speed_of_the_machine(monkeypatch):
    def run(seconds):
        tick(monkeypatch, seconds)
        named = {"Gaussian": Gaussian(), "Marginal": Marginal()}
        contenders = [Contender(name, sampler) for name, sampler in named.items()]
        return compare(rows(400), contenders).scores("Gaussian", "chosen")

    timed = ["fit_seconds", "draw_seconds"]
    fast, slow = (run(seconds).drop(columns=timed) for seconds in (1e-6, 1e-2))
    pd.testing.assert_frame_equal(fast, slow)


def test_a_model_that_fails_on_the_draws_of_a_candidate_leaves_it_out():
    class Codes(Gaussian):
        """Draws only what was observed, by rounding."""

        def draw(self, X, known, noise):
            return np.rint(super().draw(X, known, noise) - 0.5) + 0.5

    X = (20 * rows(300)).round() + 0.5

    def strict(frame):
        if not np.array_equal(frame - 0.5, (frame - 0.5).round()):
            raise KeyError("an unknown code")
        return frame["x0"].to_numpy()

    with pytest.warns(UserWarning, match=r"left out of the choice: Gaussian \(KeyError"):
        outcome = compare(
            X, [Contender("Gaussian", Gaussian()), Contender("Codes", Codes())], strict
        )
    assert outcome.ranking.chosen == "Codes"


def test_rows_and_entries_that_candidates_are_fitted_to_are_limited():
    def split(n_rows, n_features, n_categories=0):
        X = np.zeros((n_rows, n_features))
        categories = np.full(n_features, n_categories)
        return split_rows(X, X, categories, test_share=0.25, max_rows=4000, streams=Streams(0))

    assert [part.n_train for part in split(20_000, 5)] == [3000]
    assert [part.n_train for part in split(20_000, 100)] == [600]
    assert [part.n_train for part in split(20_000, 1000)] == [500]
    assert [len(part.at) for part in split(20_000, 5)] == [512]
    folds = split(200, 3)
    assert [len(part.at) for part in folds] == [50] * 4
    assert sorted(np.concatenate([part.at for part in folds]).tolist()) == list(range(200))
    assert [part.n_train for part in folds] == [150] * 4
    assert split(4, 3) == ()


def test_a_broken_candidate_that_must_be_used_is_refused():
    class Broken(BaseSampler):
        def _fit(self, X):
            raise ValueError("cannot")

    with pytest.raises(ValueError, match=r"able to draw such data.*cannot"):
        compare(rows(100), [Contender("Broken", Broken(), stays=True), Contender("a", Gaussian())])


@pytest.mark.parametrize(
    ("n_features", "n_rows"), [(3, 60), (3, 5000), (30, 1000), (100, 60), (100, 5000), (300, 1000)]
)
def test_what_is_scored_fits_into_the_budget_by_count(n_features, n_rows, monkeypatch):
    # Nothing is drawn or predicted: only the counts matter.
    def made_up(scorer, sampler, block):
        generator = np.random.default_rng(block.pieces[0].first_pair)
        return [
            PieceScores(
                generator.normal(size=(len(piece.known), len(piece.rows)))
                * (1 + len(sampler.name)),
                None,
            )
            for piece in block.pieces
        ]

    monkeypatch.setattr(Scorer, "__call__", made_up)
    X = pd.DataFrame(
        np.random.default_rng(0).normal(size=(n_rows, n_features)),
        columns=[f"x{number}" for number in range(n_features)],
    )
    named = candidates_for(np.zeros(n_features, int), random_state=0)
    contenders = [Contender(name, sampler, fitted=sampler) for name, sampler in named.items()]
    outcome = compare(X, contenders, lambda rows: rows["x0"])
    planned = outcome.race.planned
    assert planned <= 0.7 * 2.0 + 0.3
    assert "Gaussian" in outcome.names
