"""What a race tells: a decision, and a table with a verdict for each candidate."""

from types import SimpleNamespace

import numpy as np
import pytest

from dsage.samplers.comparing import Outcome
from dsage.samplers.race import Budget, Contender, Race
from dsage.samplers.rules import Ranking, rank
from dsage.samplers.scorer import PieceScores
from dsage.samplers.sheet import Sheet
from dsage.samplers.splits import Block, Piece

N_ROWS = 100


def block(number):
    at = np.arange(N_ROWS // 2) + number * N_ROWS // 2
    piece = Piece(np.arange(len(at)), np.zeros((1, 2), bool), np.ones(1), True, 0)
    return Block(0, at, (piece,))


def outcome_of(scores, dropped=(), untried=(), reference="Marginal"):
    """Return the outcome of made-up scores; those that were dropped have half of the rows.

    Scores are means of the energy and of the MSEv (None without a model), and the standard
    deviation of the differences to the first sampler.
    """
    sheet, contenders = Sheet(), []
    noise = np.tile([-1.0, 1.0], N_ROWS // 4)
    for number, (name, (energy, msev, spread)) in enumerate(scores.items()):
        for half in range(1 if name in dropped else 2):
            off = spread * noise
            found = None if msev is None else msev + off[None]
            sheet.add(name, block(half), [PieceScores(energy + off[None], found)])
        each = Contender(name, None, is_reference=name == reference)
        each.fits, each.fit_seconds, each.draw_seconds = {0: None}, number + 0.5, number + 0.25
        if name in dropped:
            each.verdict = "dropped after 50 rows"
        contenders.append(each)
    for name, (error, verdict) in dict(untried).items():
        contenders.append(Contender(name, None, error=error, verdict=verdict))
    running = [
        each for each in contenders
        if each.name in scores and each.name not in dropped and not each.is_reference
    ]  # fmt: skip
    race = SimpleNamespace(sheet=sheet, contenders=contenders, running=running, is_cut=True)
    return Outcome(race, rank(sheet, [each.name for each in running]))


def test_each_candidate_has_its_scores_relative_to_the_leader_and_a_verdict():
    outcome = outcome_of(
        {
            "a": (1.03, 0.5, 0.0),
            "b": (1.0, 0.5, 0.1),
            "c": (1.5, 0.5, 0.1),
            "d": (0.9, 0.9, 0.1),
            "e": (3.0, 2.0, 0.1),
            "Marginal": (2.0, 1.0, 0.1),
        },
        dropped=("e",),
        untried={"f": ("TypeError: no", "failed"), "g": ("", "not tried: it would take long")},
    )
    # Of those with the lowest MSEv, b leads; a is further off than one error.
    assert outcome.ranking == Ranking("b", "b", "a", ("d",))
    assert outcome.names == ["a", "b", "c", "d"]
    frame = outcome.scores("b", "chosen")
    assert frame.index.name == "sampler"
    assert frame["verdict"].to_dict() == {
        "a": "clearly worse in energy score",
        "b": "chosen",
        "c": "clearly worse in energy score",
        "d": "clearly worse in MSEv",
        "e": "dropped after 50 rows",
        "Marginal": "for reference: ignores the known features",
        "f": "failed",
        "g": "not tried: it would take long",
    }
    assert frame["n_rows"].tolist() == [100, 100, 100, 100, 50, 100, 0, 0]
    np.testing.assert_allclose(frame["energy_score"][:6], [1.03, 1.0, 1.5, 0.9, 3.0, 2.0])
    np.testing.assert_allclose(frame["difference"][:6], [0.03, 0.0, 0.5, -0.1, 2.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(frame["msev"][:6], [0.5, 0.5, 0.5, 0.9, 2.0, 1.0])
    np.testing.assert_allclose(frame["msev_difference"][:3], [0.0, 0.0, 0.0], atol=1e-9)
    error = 0.1 / np.sqrt(N_ROWS - 1)
    np.testing.assert_allclose(frame["se"][:3], [error, 0.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(frame["msev_se"][:3], [error, 0.0, 0.0], atol=1e-9)
    assert frame.loc[["f", "g"], ["energy_score", "msev"]].isna().all(axis=None)
    assert frame.loc["f", "error"] == "TypeError: no"
    assert frame["fit_seconds"][:3].tolist() == [0.5, 1.5, 2.5]
    assert frame["draw_seconds"][:3].tolist() == [0.25, 1.25, 2.25]
    decision = outcome.decision()
    assert (decision.chosen, decision.best, decision.is_simpler) == ("b", "b", False)
    assert (decision.difference, decision.se, decision.msev_difference) == (0.0, 0.0, 0.0)
    assert decision.best_score == pytest.approx(1.0)
    assert decision.best_msev == pytest.approx(0.5)
    # Also those that were dropped, but not the reference.
    assert decision.out == ("d", "e")
    assert decision.tied == ()
    assert decision.skipped == ("g",)
    assert decision.n_rows == 100
    assert decision.is_cut


def test_a_simpler_one_within_an_error_is_chosen_and_ties_are_listed_the_best_first():
    outcome = outcome_of({"a": (1.005, None, 0.0), "b": (1.0, None, 0.1), "c": (1.002, None, 0.1)})
    assert outcome.ranking == Ranking("a", "b", None, ())
    decision = outcome.decision()
    assert (decision.chosen, decision.best) == ("a", "b")
    assert decision.difference == pytest.approx(0.005)
    assert decision.se == pytest.approx(0.1 / np.sqrt(N_ROWS - 1))
    assert (decision.best_msev, decision.msev_difference, decision.msev_se) == (None, 0.0, 0.0)
    assert decision.out == ()
    assert decision.tied == ("b", "c")
    frame = outcome.scores("a", "chosen")
    assert frame["verdict"].tolist() == ["chosen", "tied with a", "tied with a"]
    assert frame[["msev", "msev_difference", "msev_se"]].isna().all(axis=None)
    assert frame["msev"].dtype == float


def test_a_sampler_that_is_used_may_be_clearly_worse_than_others():
    outcome = outcome_of(
        {
            "a": (2.0, 0.8, 0.0),
            "b": (1.0, 0.8, 0.1),
            "c": (2.0, 3.0, 0.1),
            "d": (2.0, 0.5, 0.1),
            "e": (1.0, 3.0, 0.1),
        }
    )
    assert outcome.scores("a", "used")["verdict"].to_dict() == {
        "a": "used",
        # Although its MSEv is not the lowest either.
        "b": "clearly better than a",
        "c": "clearly worse in MSEv",
        "d": "clearly better than a",
        "e": "clearly worse in MSEv",
    }


@pytest.mark.parametrize(
    ("seconds", "n_predicted", "limit"),
    [(2.0, 0, 4.0), (2.0, 1000, 5.0), (3.0, 1000, 6.0), (0.1, 10_000, 50.0)],
)
def test_a_race_is_late_after_twice_its_time_or_a_tenth_of_the_run(seconds, n_predicted, limit):
    # The model has taken 5 seconds for 100 rows.
    scorer = SimpleNamespace(n_predicted=100, predict_seconds=5.0)
    race = Race([], scorer, (), [block(0)], Budget(seconds, n_predicted))
    for factor, is_late in ((0.99, False), (1.01, True)):
        race._watch = SimpleNamespace(seconds=lambda factor=factor: factor * limit)
        assert race._is_late() == is_late


def test_before_any_prediction_a_run_is_thought_to_be_short():
    scorer = SimpleNamespace(n_predicted=0, predict_seconds=0.0)
    race = Race([], scorer, (), [block(0)], Budget(1.0, 10**9))
    race._watch = SimpleNamespace(seconds=lambda: 2.1)
    assert race._is_late()
