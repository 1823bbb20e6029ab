import pickle
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from dsage.samplers import choose
from dsage.samplers.base import BaseSampler, Sampler
from dsage.samplers.choose import Auto, candidates_for, choose_sampler
from dsage.samplers.clustered import ClusteredGaussian
from dsage.samplers.copula import GaussianCopula
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.info import Basis
from dsage.samplers.marginal import Marginal
from dsage.samplers.mix import Mix
from dsage.samplers.sequential import Sequential


def correlated(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    factors = np.array([[1.0, 0.8, 0.3], [0.0, 0.6, 0.5], [0.0, 0.0, 0.8]])
    return rng.standard_normal((n_rows, 3)) @ factors


def parabola(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, n_rows)
    return np.column_stack([x, x**2 + 0.2 * rng.standard_normal(n_rows)])


def test_simplest_of_equals_is_chosen_for_gaussian_data():
    choice = choose_sampler(correlated(800), [Gaussian(), GaussianCopula(), Mix(random_state=0)])
    assert choice.name == "Gaussian"
    assert "Gaussian" in choice.reason
    assert choice.scores.loc["Marginal", "difference"] > 3 * choice.scores.loc["Marginal", "se"]


def test_non_linear_data_get_a_sampler_that_can_follow_them():
    choice = choose_sampler(parabola(800), [Gaussian(), GaussianCopula(), Mix(random_state=0)])
    assert choice.name == "Mix"
    assert choice.scores.loc["Gaussian", "difference"] > 4 * choice.scores.loc["Gaussian", "se"]
    assert "lowest" in choice.reason


class Shifted(Gaussian):
    """Draws that are off by a constant."""

    def __init__(self, shift=0.0, *, dtype=np.float64, max_bytes=2**28):
        super().__init__(dtype=dtype, max_bytes=max_bytes)
        self.shift = shift

    def draw(self, X, known, noise):
        draws = super().draw(X, known, noise)
        draws[:, :, ~known] += self.shift
        return draws


def test_the_decision_is_that_of_the_rule_on_the_scores():
    named = {"worse": Shifted(-0.3), "as good": Shifted(), "best": Shifted(0.04)}
    choice = choose_sampler(correlated(400), named)
    scores = choice.scores
    assert scores["energy_score"].drop("Marginal").idxmin() == choice.decision.best
    assert choice.decision.best_score == scores.loc[choice.decision.best, "energy_score"]
    allowed = np.maximum(scores["se"], 0.005 * choice.decision.best_score)
    within = [name for name in named if scores.loc[name, "difference"] <= allowed[name]]
    assert choice.name == within[0] == "as good"
    assert choice.decision.difference == scores.loc[choice.name, "difference"]
    assert choice.decision.n_rows == scores.loc[choice.name, "n_rows"]
    assert list(scores.index) == [*named, "Marginal"]
    assert scores.loc[choice.name, "verdict"] == "chosen"
    assert scores["msev"].isna().all()


def test_a_simpler_sampler_that_is_as_good_is_said_to_be_the_simplest():
    named = {"simple": Shifted(), "other": Shifted(1e-5)}
    choice = choose_sampler(correlated(400), named)
    assert choice.name == "simple"
    assert choice.decision.tied == ("other",)
    assert choice.tied["other"].shift == 1e-5
    assert not choice.tied["other"].is_fitted
    assert choice.scores.loc["other", "verdict"] == "tied with simple"


def test_seconds_to_fit_and_to_draw_are_parts_of_the_time_that_passes():
    start = time.perf_counter()
    scores = choose_sampler(correlated(100), [Gaussian()], n_coalitions=2).scores
    passed = time.perf_counter() - start
    seconds = scores[["fit_seconds", "draw_seconds"]].to_numpy()
    assert (seconds > 0).all()
    assert seconds.sum() < passed


def test_chosen_sampler_is_fitted_to_all_rows_and_candidates_stay_as_they_were():
    X, candidate = correlated(400), Gaussian()
    choice = choose_sampler(X, [candidate])
    known, noise = np.array([True, False, False]), np.full((400, 1, 3), 0.4)
    expected = Gaussian().fit(X).draw(X, known, noise)
    np.testing.assert_array_equal(choice.sampler.draw(X, known, noise), expected)
    assert not candidate.is_fitted


@pytest.mark.parametrize(
    ("n_categories", "names"),
    [
        ([0, 0], ["Gaussian", "GaussianCopula", "Mix", "Neighbors"]),
        ([2, 3], ["Mix", "Neighbors"]),
        ([2, 0], ["Mix", "Neighbors"]),
    ],
)
def test_candidates_suit_the_data(n_categories, names):
    assert list(candidates_for(np.array(n_categories))) == names


def test_mixed_and_discrete_frames_get_a_sampler():
    mixed = ClusteredGaussian.random(3, 2, random_state=0).sample(400, random_state=0)
    assert choose_sampler(mixed, n_coalitions=6).name in ("Mix", "Neighbors")
    classes = mixed[["cluster", "child"]]
    assert choose_sampler(classes, n_coalitions=3).name in ("Mix", "Neighbors")


def test_candidate_that_fails_is_left_out_with_a_warning_that_says_why():
    class Broken(BaseSampler):
        def _fit(self, X):
            raise ValueError("cannot")

    with pytest.warns(UserWarning, match=r"left out of the choice: Broken \(ValueError: cannot\)"):
        choice = choose_sampler(correlated(100), [Broken(), Gaussian()])
    assert choice.name == "Gaussian"
    assert choice.to_frame().loc["Broken", "error"] == "ValueError: cannot"
    with pytest.raises(ValueError, match="candidates must be able to draw such data"):
        choose_sampler(correlated(100), [Broken()])


def test_candidate_whose_draws_are_not_finite_is_left_out():
    class Broken(BaseSampler):
        def _fit(self, X):
            pass

        def _draw(self, X, known, noise):
            return np.full(noise[:, :, ~known].shape, np.nan)

    with pytest.warns(UserWarning, match="left out of the choice: Broken .*draws must be finite"):
        choice = choose_sampler(correlated(100), [Broken(), Gaussian()])
    assert choice.name == "Gaussian"
    assert np.isfinite(choice.scores.loc[["Gaussian", "Marginal"], "difference"]).all()


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_a_level_of_one_row_is_not_held_out(convert):
    frame = ClusteredGaussian.random(3, 2, random_state=0).sample(60, random_state=0)
    frame["child"] = np.where(
        np.arange(60) < 45, frame["child"].astype(str), "r" + frame.index.astype(str)
    )
    choice = choose_sampler(convert(frame), [Sequential(), Marginal()], n_coalitions=4)
    assert (choice.scores["error"] == "").all()
    assert choice.sampler.n_categories_[-1] == frame["child"].nunique()


def test_rows_of_which_none_can_be_held_out_get_the_simplest_sampler():
    frame = pd.DataFrame({"id": list("abcdefghijklmnopqrstuvwxyz"), "x": range(26)})
    with pytest.warns(UserWarning, match="Too few of the 26 rows have categories that occur more"):
        choice = choose_sampler(frame)
    assert choice.decision.basis is Basis.FEW_ROWS


def test_only_the_sampler_chosen_warns_and_scores_keep_what_others_said():
    X = pd.DataFrame(correlated(200), columns=["a", "b", "c"]).assign(fixed=1.0)
    with pytest.warns(UserWarning, match=r"\['fixed'\] are constant") as told:
        choice = choose_sampler(X, [Gaussian(), GaussianCopula()])
    assert len(told) == 1
    assert (
        choice.scores.loc[["Gaussian", "GaussianCopula"], "warnings"].str.contains("'fixed'").all()
    )
    assert choice.scores.loc["Marginal", "warnings"] == ""


@pytest.mark.parametrize("n_categories", [[0, 0], [2, 3], [2, 0]])
def test_options_reach_all_candidates(n_categories):
    options = {"dtype": np.float32, "max_bytes": 5, "discrete": ["X1"], "random_state": 7}
    made = candidates_for(np.array(n_categories), **options)
    for sampler in made.values():
        options = sampler.get_params()
        assert options["dtype"] is np.float32
        assert options["max_bytes"] == 5
        assert options.get("discrete", ["X1"]) == ["X1"]
        assert options.get("random_state", 7) == 7


def test_auto_is_a_sampler_that_says_what_it_chose():
    X = pd.DataFrame(correlated(400), columns=["a", "b", "c"])
    auto = Auto(candidates=[Gaussian(), Sequential()], n_coalitions=6)
    assert isinstance(auto, Sampler)
    auto = clone(auto).fit(X)
    known, noise = np.array([True, False, False]), np.full((400, 2, 3), 0.4)
    assert auto.choice_.name == "Gaussian"
    assert auto.feature_names_ == ("a", "b", "c")
    np.testing.assert_array_equal(
        auto.draw(X, known, noise), Gaussian().fit(X).draw(X, known, noise)
    )
    np.testing.assert_array_equal(auto.mean(X, known), Gaussian().fit(X).mean(X, known))
    copied = pickle.loads(pickle.dumps(auto))
    np.testing.assert_array_equal(copied.draw(X, known, noise), auto.draw(X, known, noise))
    assert auto.has_mean
    assert not Auto(candidates=[Sequential()], n_coalitions=3).fit(X).has_mean


def test_choice_is_reproducible():
    X, candidates = parabola(300), [Gaussian(), Mix(random_state=0)]
    one, two = (choose_sampler(X, candidates, random_state=4) for _ in range(2))
    columns = ["energy_score", "difference", "se", "n_rows"]
    pd.testing.assert_frame_equal(one.scores[columns], two.scores[columns])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"candidates": []}, "candidates must be at least one"),
        ({"candidates": ["gaussian"]}, "candidate 'str' must be an object with fit and draw"),
        ({"test_share": 1.0}, "test_share must be in"),
        ({"max_rows": 3}, "max_rows must be at least 20; got 3"),
        ({"n_draws": 7}, "n_draws must be an even number; got 7"),
        ({"n_coalitions": 0}, "n_coalitions must be at least 1"),
        ({"seconds": 0.0}, "seconds must be in"),
        ({"groups": {"g": ["nobody"]}}, "must be one of the features; got 'nobody'"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        choose_sampler(correlated(100), **options)


def test_too_few_rows_get_the_simplest_sampler_and_are_told():
    with pytest.warns(UserWarning, match="8 rows are too few to score samplers: Gaussian, the"):
        choice = choose_sampler(correlated(8), [Gaussian(), GaussianCopula()])
    assert choice.name == "Gaussian"
    assert choice.sampler.is_fitted
    assert choice.scores.empty
    assert "too few rows" in choice.reason


def test_few_rows_get_the_next_simplest_if_the_simplest_fails():
    class Broken(BaseSampler):
        def _fit(self, X):
            raise ValueError("cannot")

    with pytest.warns(UserWarning, match="too few to score samplers: Gaussian"):
        assert choose_sampler(correlated(8), [Broken(), Gaussian()]).name == "Gaussian"
    with pytest.warns(UserWarning, match="too few to score samplers: Marginal"):
        assert choose_sampler(correlated(8), [Broken()]).name == "Marginal"


def test_a_model_decides_where_the_energy_score_is_blind():
    # One sampler is right about the only feature that the model uses, another about all others.
    class Wrong(Gaussian):
        wrong = ()

        def draw(self, X, known, noise):
            draws = super().draw(X, known, noise)
            for column in self.wrong:
                if not known[column]:
                    draws[:, :, column] = 3.0 * (noise[:, :, column] - 0.5)
            return draws

    class WrongFirst(Wrong):
        wrong = (0,)

    class WrongOthers(Wrong):
        wrong = (1, 2, 3, 4)

    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 1)) + 0.4 * rng.standard_normal((800, 5))
    named = {"wrong first": WrongFirst(), "wrong others": WrongOthers()}
    assert choose_sampler(X, named).name == "wrong first"
    choice = choose_sampler(X, named, predict=lambda rows: np.asarray(rows)[:, 0])
    assert choice.name == "wrong others"
    assert choice.decision.out == ("wrong first",)
    assert "Clearly worse in MSEv: wrong first." in choice.reason
    scores = choice.scores
    assert 0 < scores.loc["wrong others", "msev"] < scores.loc["wrong first", "msev"] < 1


def test_the_same_data_and_predictions_are_not_scored_again(monkeypatch):
    calls = []
    made = choose.compare_candidates
    monkeypatch.setattr(
        choose, "compare_candidates", lambda *a, **k: calls.append(1) or made(*a, **k)
    )
    X = pd.DataFrame(correlated(120, seed=77), columns=list("abc"))

    def predict(rows):
        return rows["a"] * 2.0

    first = choose_sampler(X, predict=predict, seconds=0.2)
    again = choose_sampler(X.copy(), predict=lambda rows: rows["a"] * 2.0, seconds=0.2)
    assert len(calls) == 1
    assert again.decision == first.decision
    # What is returned can be fitted anew without a change of what is kept.
    again.sampler.fit(X[:50])
    third = choose_sampler(X, predict=predict, seconds=0.2)
    known, noise = np.array([True, False, False]), np.full((120, 1, 3), 0.4)
    np.testing.assert_array_equal(
        third.sampler.draw(X, known, noise), first.sampler.draw(X, known, noise)
    )
    assert len(calls) == 1
    choose_sampler(X, predict=lambda rows: rows["b"], seconds=0.2)
    choose_sampler(X.assign(a=X["a"] + 1.0), predict=predict, seconds=0.2)
    choose_sampler(X, predict=predict, random_state=1, seconds=0.2)
    choose_sampler(X, predict=predict, groups={"both": ["a", "b"]}, seconds=0.2)
    choose_sampler(X.astype({"a": "float32"}), predict=predict, seconds=0.2)
    assert len(calls) == 6


def test_a_choice_that_is_taken_from_memory_warns_like_the_first():
    X = pd.DataFrame(correlated(200, seed=78), columns=["a", "b", "c"]).assign(fixed=1.0)
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"\['fixed'\] are constant"):
            choose_sampler(X, random_state=5)
