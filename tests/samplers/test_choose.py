import pickle
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from dsage.samplers.base import BaseSampler, Sampler
from dsage.samplers.choose import Auto, candidates_for, choose_sampler
from dsage.samplers.clustered import ClusteredGaussian
from dsage.samplers.copula import GaussianCopula
from dsage.samplers.forest import Forest
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.info import Decision
from dsage.samplers.marginal import Marginal
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
    choice = choose_sampler(correlated(800), [Gaussian(), GaussianCopula(), Forest(n_trees=10)])
    assert choice.name == "Gaussian"
    assert "Gaussian" in choice.reason
    assert choice.scores.loc["Marginal", "difference"] > 4 * choice.scores.loc["Marginal", "se"]


def test_non_linear_data_get_a_sampler_that_can_follow_them():
    choice = choose_sampler(parabola(800), [Gaussian(), GaussianCopula(), Forest(n_trees=10)])
    assert choice.name == "Forest"
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


def test_one_standard_error_rule_takes_the_first_within_it():
    named = {"worse": Shifted(-0.05), "as good": Shifted(), "best": Shifted(0.04)}
    choice = choose_sampler(correlated(400), named)
    in_errors = choice.scores["difference"] / choice.scores["se"]
    assert 1 < in_errors["worse"] < 2
    assert 0 < in_errors["as good"] < 1
    assert choice.scores["energy_score"].idxmin() == "best"
    assert choice.name == "as good"
    assert choice.sampler.shift == 0.0
    assert choice.decision == Decision(
        "as good",
        "best",
        choice.scores.loc["best", "energy_score"],
        choice.scores.loc["as good", "difference"],
        choice.scores.loc["as good", "se"],
    )
    assert choice.decision.is_simpler
    assert "as good is the simplest" in choice.reason
    assert list(choice.scores.index) == [*named, "Marginal"]


def test_the_best_is_taken_if_no_simpler_one_is_within_a_standard_error():
    named = {"worse": Shifted(-0.05), "best": Shifted(0.04), "as good": Shifted()}
    choice = choose_sampler(correlated(400), named)
    assert choice.name == "best"
    assert not choice.decision.is_simpler
    assert (choice.decision.difference, choice.decision.se) == (0.0, 0.0)
    assert "best has the lowest" in choice.reason


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
        ([0, 0], ["Gaussian", "GaussianCopula", "GaussianMixture", "Neighbors", "Forest"]),
        ([2, 3], ["Categorical", "Sequential", "Forest"]),
        ([2, 0], ["Sequential", "Neighbors", "Forest"]),
    ],
)
def test_candidates_suit_the_data(n_categories, names):
    assert list(candidates_for(np.array(n_categories))) == names


def test_mixed_and_discrete_frames_get_a_sampler():
    mixed = ClusteredGaussian.random(3, 2, random_state=0).sample(400, random_state=0)
    assert choose_sampler(mixed, n_coalitions=6).name in ("Sequential", "Neighbors", "Forest")
    classes = mixed[["cluster", "child"]]
    assert choose_sampler(classes, n_coalitions=3).name in ("Categorical", "Sequential", "Forest")


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
    with pytest.raises(ValueError, match="about 20 whose categories occur more than once"):
        choose_sampler(pd.DataFrame({"id": list("abcdefghijklmnopqrstuvwxyz"), "x": range(26)}))


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
    X, candidates = parabola(300), [Gaussian(), Forest(n_trees=5, random_state=0)]
    one, two = (choose_sampler(X, candidates, random_state=4) for _ in range(2))
    columns = ["energy_score", "difference", "se"]
    pd.testing.assert_frame_equal(one.scores[columns], two.scores[columns])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"candidates": []}, "candidates must be at least one"),
        ({"candidates": ["gaussian"]}, "candidate 'str' must be an object with fit and draw"),
        ({"test_share": 1.0}, "test_share must be in"),
        ({"max_rows": 3}, "max_rows must be at least 20; got 3"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        choose_sampler(correlated(100), **options)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="X must be of more rows"):
        choose_sampler(correlated(8), [Gaussian()])
