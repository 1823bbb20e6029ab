"""How the `sampler` argument of `explain` becomes a fitted sampler."""

import numpy as np
import pandas as pd
import pytest

from dsage.data.inputs import check_inputs
from dsage.samplers import SAMPLERS, BaseSampler, Gaussian, Mix, SamplerSource
from dsage.samplers.resolve import ScoringOptions, find_sampler, parse_sampler


def inputs(n_rows=200):
    rng = np.random.default_rng(0)
    values = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 2 * n_rows, method="cholesky")
    X = pd.DataFrame(values, columns=["a", "b"])
    y = X["a"].rename("y")
    return check_inputs(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def find(sampler, rows):
    return find_sampler(parse_sampler(sampler, rows, seed=1), rows, seed=1, progress=False)


class Own:
    """A user's sampler without any base class."""

    def fit(self, X):
        self.mean_ = np.asarray(X).mean(axis=0)
        return self

    def draw(self, X, known, noise):
        return np.where(known, np.asarray(X)[:, None, :], self.mean_ + noise)


def test_a_named_sampler_is_scored_beside_independence():
    found = find("gaussian", inputs())
    assert isinstance(found.sampler, Gaussian)
    assert found.info.name == "Gaussian"
    assert found.info.source is SamplerSource.NAMED
    assert found.info.energy_score < found.info.energy_score_of_independence
    assert found.info.decision is None


def test_the_automatic_choice_says_how_it_decided():
    found = find("auto", inputs())
    assert found.info.source is SamplerSource.CHOSEN
    assert found.info.decision.chosen == found.info.name == found.sampler.name
    scores = found.scores.set_index("sampler")["energy_score"]
    assert found.info.energy_score == scores[found.info.name]
    assert found.info.decision.best_score == scores.drop("Marginal").min()


@pytest.mark.parametrize("is_fitted", [False, True])
def test_an_object_is_used_whether_it_is_fitted_or_not(is_fitted):
    rows, own = inputs(), Own()
    found = find(own.fit(rows.X_train) if is_fitted else own, rows)
    assert (found.info.name, found.info.source) == ("Own", SamplerSource.GIVEN)
    assert found.info.energy_score > found.info.energy_score_of_independence
    assert hasattr(own, "mean_") == is_fitted
    draws = found.sampler.draw(np.zeros((2, 2)), np.zeros(2, bool), np.full((2, 1, 2), 0.5))
    np.testing.assert_allclose(draws[0, 0], np.asarray(rows.X_train).mean(axis=0) + 0.5)


def test_a_sampler_fitted_to_gaps_is_scored_on_evaluation_rows_without_any():
    rows = inputs()
    train = rows.X_train.mask(np.random.default_rng(1).random((200, 2)) < 0.1)
    gappy = check_inputs(train, rows.y_train, rows.X_test, rows.y_test)
    found = find(Mix().fit(train), gappy)
    assert found.info.energy_score > 0


def test_a_named_sampler_is_scored_beside_others_and_compared_with_the_best_of_them():
    found = find("gaussian", inputs())
    assert found.scores["sampler"].tolist()[:2] == ["Gaussian", "GaussianCopula"]
    (rival,) = found.rivals
    others = found.scores.set_index("sampler").drop(["Gaussian", "Marginal"])
    # Those that are clearly worse, or were dropped, are no rivals if another is as good.
    as_good = others[others["verdict"].str.startswith("tied with")]
    best = (as_good if len(as_good) else others)["energy_score"].idxmin()
    assert rival.name == best
    assert not rival.is_better
    assert not rival.sampler.is_fitted
    assert not found.unfitted.is_fitted
    # Draws that ignore a strong dependence are found out.
    worse = find(Own(), inputs())
    assert [rival.is_better for rival in worse.rivals] == [True]
    assert worse.scores.set_index("sampler").loc["Gaussian", "verdict"].startswith("clearly better")


def test_without_a_check_and_for_marginal_draws_only_the_sampler_itself_is_scored():
    rows = inputs()
    request = parse_sampler("gaussian", rows, seed=1)
    options = ScoringOptions(is_checked=False)
    alone = find_sampler(request, rows, options, seed=1, progress=False)
    assert alone.scores["sampler"].tolist() == ["Gaussian", "Marginal"]
    assert alone.rivals == ()
    marginal = find("marginal", rows)
    assert marginal.scores["sampler"].tolist() == ["Marginal"]
    assert parse_sampler("marginal", rows, seed=1).is_marginal
    assert not request.is_marginal
    assert not parse_sampler("auto", rows, seed=1).is_marginal


def test_the_automatic_choice_has_the_rivals_that_it_cannot_tell_apart():
    found = find("auto", inputs())
    assert tuple(rival.name for rival in found.rivals) == found.info.decision.tied
    assert found.unfitted.name == found.info.name


def test_few_rows_are_not_scored():
    found = find("gaussian", inputs(15))
    assert found.scores is None
    assert found.info.energy_score is None


def test_wrong_samplers_are_refused_before_anything_is_fitted():
    rows = inputs()
    with pytest.raises(ValueError, match="Did you mean 'gaussian'"):
        parse_sampler("gausian", rows, seed=0)
    with pytest.raises(TypeError, match=r"Make an instance: Mix\(\)"):
        parse_sampler(Mix, rows, seed=0)
    fitted = Gaussian().fit(np.asarray(rows.X_train))
    with pytest.raises(ValueError, match="sampler must be fitted to the features"):
        parse_sampler(fitted, rows, seed=0)


def test_a_registered_sampler_is_found_by_name_and_considered_by_the_choice():
    class Toy(BaseSampler):
        def _fit(self, X):
            self.gaussian_ = Gaussian().fit(X)

        def _draw(self, X, known, noise):
            return self.gaussian_.draw(X, known, noise)[:, :, ~known]

    SAMPLERS.register(
        "toy", summary="a toy", fits=("numbers",), candidate_for=("numbers",), complexity=0
    )(Toy)
    try:
        assert isinstance(find("toy", inputs()).sampler, Toy)
        assert find("auto", inputs()).info.name == "Toy"
    finally:
        SAMPLERS.remove("toy")
    with pytest.raises(ValueError, match="sampler must be one of the names of samplers"):
        parse_sampler("toy", inputs(), seed=0)


@pytest.mark.filterwarnings("ignore:8 rows are too few to score samplers")
@pytest.mark.parametrize("sampler", ["auto", "gaussian"])
def test_too_few_rows_are_not_scored(sampler):
    found = find(sampler, inputs(n_rows=8))
    assert found.scores is None
    assert found.info.name == found.sampler.name
    assert (found.info.energy_score, found.info.msev) == (None, None)
    assert found.rivals == ()
