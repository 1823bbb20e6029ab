"""Mixed data: regressions by configuration, and the rules where one cannot be fitted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from dsage.data.table import Table
from dsage.structure.moments import Moments
from dsage.structure.scores import conditional_gaussian as module
from dsage.structure.scores.conditional_gaussian import ConditionalGaussian
from dsage.structure.scores.gaussian import GaussianScore


def data(seed: int, n_rows: int = 120) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    sort = generator.choice(["p", "q", "r"], size=n_rows)
    x = generator.normal(size=n_rows) + (sort == "q")
    y = np.where(sort == "p", 2 * x, -x) + generator.normal(size=n_rows) * 0.5
    z = generator.normal(size=n_rows) * 1000 + 5000
    coin = generator.choice(["h", "t"], size=n_rows)
    return pd.DataFrame({"x": x, "y": y, "sort": sort, "z": z, "coin": coin})


def scored(frame: pd.DataFrame, penalty: float = 0.0) -> ConditionalGaussian:
    return ConditionalGaussian(Table(frame), penalty=penalty)


def test_each_configuration_has_its_own_regression():
    frame = data(0)
    expected = 0.0
    for _, part in frame.groupby("sort"):
        design = np.column_stack([np.ones(len(part)), part[["x", "z"]]])
        coefficients, rss, *_ = np.linalg.lstsq(design, part["y"], rcond=None)
        deviation = np.sqrt(rss[0] / (len(part) - 3))
        expected += norm.logpdf(part["y"], design @ coefficients, deviation).sum()
    # Three configurations of an intercept, two slopes and a variance each.
    score = scored(frame, penalty=0.5).family(1, (0, 2, 3))
    assert score == pytest.approx(expected - 0.5 * 12, rel=1e-9)


def test_without_discrete_parents_it_is_the_gaussian_score():
    frame = data(1)
    numbers = frame[["x", "y", "z"]]
    gaussian = GaussianScore(Moments.from_frame(numbers), penalty=1.0)
    mixed = scored(frame, penalty=1.0)
    assert mixed.family(1, (0, 3)) == pytest.approx(gaussian.family(1, (0, 2)), rel=1e-10)
    np.testing.assert_allclose(
        mixed.additions(1, (0,))[[0, 1, 3]], gaussian.additions(1, (0,)), rtol=1e-10
    )


def test_configurations_that_do_not_occur_cost_parameters():
    frame = data(2)
    frame = frame[(frame["sort"] != "p") | (frame["coin"] != "h")]
    free, dear = scored(frame), scored(frame, penalty=1.0)
    assert free.family(1, (2, 4)) - dear.family(1, (2, 4)) == pytest.approx(3 * 2 * 2)


def test_scores_do_not_depend_on_shift_and_change_with_scale_as_densities_do():
    frame = data(3)
    moved = frame.assign(y=frame["y"] * 8 + 1e6, x=frame["x"] * 1e3 - 5)
    difference = scored(frame).family(1, (0, 2)) - scored(moved).family(1, (0, 2))
    assert difference == pytest.approx(len(frame) * np.log(8), rel=1e-6)


def test_rows_of_a_configuration_too_small_keep_the_marginal_distribution():
    frame = data(4)
    frame["sort"] = ["rare"] + ["p"] * 119
    y = frame["y"].to_numpy()
    rest = y[1:]
    expected = (
        norm.logpdf(y[0], y.mean(), y.std(ddof=1))
        + norm.logpdf(rest, rest.mean(), rest.std(ddof=1)).sum()
    )
    assert scored(frame).family(1, (2,)) == pytest.approx(expected, rel=1e-10)


def test_an_identifier_is_no_parent():
    frame = data(5).assign(identifier=[f"row {row}" for row in range(120)])
    score = scored(frame, penalty=np.log(120) / 2)
    assert score.family(1, (5,)) <= score.family(1, ())


def test_a_node_constant_within_a_configuration_is_a_strong_effect_but_finite():
    frame = data(6)
    frame["y"] = np.where(frame["sort"] == "p", 0.0, frame["y"])
    score = scored(frame, penalty=np.log(120) / 2)
    assert score.family(1, ()) + 100 < score.family(1, (2,)) < np.inf


def test_a_parent_constant_within_a_configuration_is_left_out_there():
    frame = data(7)
    frame["x"] = np.where(frame["sort"] == "p", 3.0, frame["x"])
    score = scored(frame)
    expected = 0.0
    for sort, part in frame.groupby("sort"):
        y, x = part["y"].to_numpy(), part["x"].to_numpy()
        rss = ((y - y.mean()) ** 2).sum()
        if sort != "p":
            rss *= 1 - np.corrcoef(x, y)[0, 1] ** 2
        degrees = len(y) - 2
        expected += -len(y) / 2 * np.log(2 * np.pi * rss / degrees) - degrees / 2
    assert score.family(1, (0, 2)) == pytest.approx(expected, rel=1e-9)
    assert score.additions(1, (2,))[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_duplicated_parents_add_a_penalty_and_nothing_else(seed):
    frame = data(seed).assign(copy=lambda rows: rows["x"] * -3 + 1)
    score, free = scored(frame, penalty=np.log(120) / 2), scored(frame)
    assert score.family(1, (0, 5)) < score.family(1, (0,))
    # Nothing but the degree of freedom that a parameter more takes from the variance.
    lost = -60 * np.log(118 / 117) + 0.5
    assert free.family(1, (0, 5)) - free.family(1, (0,)) == pytest.approx(lost, abs=1e-6)
    assert score.additions(1, (0,))[5] == pytest.approx(score.family(1, (0, 5)), rel=1e-9)


def test_configurations_too_many_to_keep_are_scored_one_by_one(monkeypatch):
    frame = data(9)
    expected = scored(frame).additions(1, (2,))
    monkeypatch.setattr(module, "_CACHE_BYTES", 100)
    np.testing.assert_allclose(scored(frame).additions(1, (2,)), expected, rtol=1e-10)


def test_forgotten_configurations_are_computed_again(monkeypatch):
    frame = data(10)
    for other in range(6):
        frame[f"c{other}"] = np.roll(frame["sort"], 7 * other + 1)
    families = [(node,) for node in range(5, 11)]
    score = scored(frame)
    expected = {parents: score.additions(1, parents) for parents in families}
    # Three configurations of three continuous variables: room for four of the six sets.
    n_bytes = 4 * 3 * 9 * 8
    monkeypatch.setattr(module, "_CACHE_BYTES", n_bytes)
    small = scored(frame)
    for parents in families + families:
        np.testing.assert_allclose(small.additions(1, parents), expected[parents], rtol=1e-10)
        kept = sum(groups.scatter.nbytes for groups in small._known.values())
        assert 0 < kept <= n_bytes


def test_constant_columns_are_named():
    with pytest.raises(ValueError, match=r"variables that vary; got \['k'\]"):
        scored(data(0).assign(k=0.1))


def test_missing_values_are_named():
    frame = data(0)
    frame.loc[3, "sort"] = None
    frame.loc[4, "x"] = np.nan
    with pytest.raises(ValueError, match=r"missing values; got \['x'\]"):
        scored(frame)
