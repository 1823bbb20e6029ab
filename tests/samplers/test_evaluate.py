import itertools
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from dsage._random import Streams
from dsage.data.layout import Layout
from dsage.graphs import random_dag, random_linear_gaussian
from dsage.samplers.clustered import ClusteredGaussian
from dsage.samplers.coalitions import random_coalitions
from dsage.samplers.energy import energy_scores
from dsage.samplers.evaluation import Evaluation, _Calibration, evaluate, plot_evaluations
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.marginal import Marginal

mpl.use("Agg")

TRUTH = ClusteredGaussian.random(3, 2, random_state=0)
HOLDOUT = TRUTH.sample(400, random_state=1)


class Altered:
    """The truth, with its draws altered."""

    def __init__(self, alter):
        self.alter = alter
        self.layout_ = TRUTH.layout_

    def fit(self, X):
        return self

    def draw(self, X, known, noise):
        draws = self.alter(TRUTH.draw(X, known, noise).copy())
        draws[:, :, known] = TRUTH.layout_.encode(X)[:, None, known]
        return draws


def shifted(draws):
    draws[:, :, 1] += 0.5
    return draws


def widened(draws):
    middle = draws[:, :, 1:3].mean(axis=1, keepdims=True)
    draws[:, :, 1:3] = middle + 1.6 * (draws[:, :, 1:3] - middle)
    return draws


def narrowed(draws):
    middle = draws[:, :, 1:3].mean(axis=1, keepdims=True)
    draws[:, :, 1:3] = middle + 0.4 * (draws[:, :, 1:3] - middle)
    return draws


def decoupled(draws):
    # Each feature has the right distribution, but they do not depend on each other any more.
    draws[:, :, 1:3] = np.stack([draws[:, :, 1], np.roll(draws[:, :, 2], 1, axis=1)], axis=2)
    return draws


def relabelled(draws):
    draws[:, :, -1] = 0
    return draws


@pytest.mark.parametrize("alter", [shifted, widened, narrowed, decoupled, relabelled])
def test_true_conditional_has_the_best_score(alter):
    best = evaluate(TRUTH, HOLDOUT)
    difference = evaluate(Altered(alter), HOLDOUT).compare(best).loc["all"]
    assert difference["difference"] > 3 * difference["se"]


def test_expected_score_does_not_depend_on_the_number_of_draws():
    few, many = (evaluate(TRUTH, HOLDOUT, n_draws=n_draws) for n_draws in (2, 40))
    difference = few.compare(many).loc["all"]
    assert abs(difference["difference"]) < 4 * difference["se"]


def test_energy_score_of_one_number_is_the_closed_form_of_the_normal():
    # Gneiting & Raftery: E|Y - x| - E|Y - Y'| / 2 for a standard normal Y.
    rng = np.random.default_rng(0)
    x = np.array([[0.0], [0.7], [-2.0]])
    draws = rng.standard_normal((3, 1500, 1))
    exact = x * (2 * norm.cdf(x) - 1) + 2 * norm.pdf(x) - 1 / np.sqrt(np.pi)
    scores = energy_scores(x, draws, np.array([0]), np.zeros(1), np.ones(1))
    np.testing.assert_allclose(scores, exact[:, 0], atol=4 / np.sqrt(1500))


def test_energy_score_of_one_class_is_half_a_brier_score_times_root_two():
    # With one column per category, two different classes are sqrt(2) apart.
    codes = np.array([[[0.0], [0.0], [1.0], [2.0]]])
    score = energy_scores(np.array([[0.0]]), codes, np.array([0]), np.array([3]), np.ones(1))
    pairs_apart = 10
    assert score[0] == pytest.approx(np.sqrt(2) * (2 / 4 - pairs_apart / (2 * 4 * 3)))


def test_scores_of_chunks_are_those_of_the_whole(monkeypatch):
    rng = np.random.default_rng(0)
    X, draws = rng.standard_normal((50, 3)), rng.standard_normal((50, 6, 3))
    arguments = (np.array([0, 2]), np.zeros(3, int), np.ones(3))
    whole = energy_scores(X, draws, *arguments)
    monkeypatch.setattr("dsage.samplers.energy._CHUNK", 100)
    np.testing.assert_array_equal(energy_scores(X, draws, *arguments), whole)


def test_scores_do_not_depend_on_units():
    class Scaled(Altered):
        def draw(self, X, known, noise):
            original = X.assign(x1=X["x1"] / 1000)
            draws = TRUTH.draw(original, known, noise)
            draws[:, :, 1] *= 1000
            return draws

    scaled = evaluate(Scaled(None), HOLDOUT.assign(x1=HOLDOUT["x1"] * 1000))
    np.testing.assert_allclose(scaled.row_scores, evaluate(TRUTH, HOLDOUT).row_scores)


def test_coverage_of_the_exact_gaussian_is_nominal():
    model = random_linear_gaussian(random_dag(4, 2.0, random_state=0), random_state=0)
    sampler = Gaussian().fit(model.sample(20_000, random_state=0))
    lines = evaluate(sampler, model.sample(1000, random_state=1), n_draws=11).calibration
    assert list(lines["measure"].unique()) == ["coverage 50%", "coverage 90%"]
    assert (np.abs(lines["observed"] - lines["nominal"]) < 4 * lines["se"]).all()
    assert (lines["se"] < 0.03).all()


def test_calibration_tells_too_sure_from_too_unsure():
    def off(alter):
        lines = evaluate(Altered(alter), HOLDOUT).calibration.set_index(["feature", "measure"])
        return (lines["observed"] - lines["nominal"]) / lines["se"]

    for feature in ("x1", "x2"):
        assert off(narrowed)[feature, "coverage 90%"] < -4
        assert off(widened)[feature, "coverage 50%"] > 4
    assert off(relabelled)["child", "match"] < -4
    right = off(lambda draws: draws)
    assert (np.abs(right) < 4).all()


def test_standard_error_of_matches_is_that_of_the_differences_between_shares():
    frame = pd.DataFrame({"c": list("abc") * 4})

    class Own:
        def __init__(self, draws):
            self.draws = np.array(draws, float)

        def fit(self, X):
            return self

        def draw(self, X, known, noise):
            return np.tile(self.draws, (4, 1))[:, :, None]

    def line(draws):
        return evaluate(Own(draws), frame, n_draws=2, coalitions=[[False]]).calibration.loc[0]

    # As often equal to the row as to each other: always, always, never.
    equal = line([[0, 0], [1, 1], [0, 1]])
    assert equal["observed"] == equal["nominal"] == pytest.approx(2 / 3)
    assert equal["se"] == 0
    # Observed 1, 0, 1/2 and nominal 1, 1, 0: they differ by 0, -1, 1/2.
    differences = np.tile([0.0, -1.0, 0.5], 4)
    se = differences.std(ddof=1) / np.sqrt(12)
    assert line([[0, 0], [0, 0], [2, 1]])["se"] == pytest.approx(se)


def test_ties_count_as_half_inside():
    # A constant is where its draws are, and covered as often as any interval should be.
    X = np.column_stack([np.random.default_rng(0).standard_normal(50), np.ones(50)])
    lines = evaluate(Marginal().fit(X), X).calibration
    constant = lines[lines["feature"] == "X2"]
    np.testing.assert_allclose(constant["observed"], constant["nominal"])


def test_known_everything_scores_zero_and_nothing_scores_the_marginal():
    everything = np.ones((1, 4), bool)
    full = evaluate(TRUTH, HOLDOUT, coalitions=everything)
    assert (full.row_scores == 0).all()
    assert len(full.calibration) == 0
    empty = evaluate(TRUTH, HOLDOUT, coalitions=~everything)
    marginal = evaluate(
        Marginal().fit(TRUTH.sample(5000, random_state=3)), HOLDOUT, coalitions=~everything
    )
    difference = empty.compare(marginal).loc["all"]
    assert abs(difference["difference"]) < 4 * difference["se"]


def test_paired_error_is_smaller_than_that_of_independent_evaluations():
    near = Gaussian().fit(HOLDOUT[["x1", "x2"]])
    far = Gaussian(covariance="ledoit-wolf").fit(HOLDOUT[["x1", "x2"]])
    rows = TRUTH.sample(300, random_state=2)[["x1", "x2"]]
    first, second = evaluate(near, rows), evaluate(far, rows)
    paired = first.compare(second).loc["all", "se"]
    assert paired < 0.2 * np.hypot(first.se, second.se)


def test_draws_of_integers_are_scored_as_a_model_sees_them():
    # The sampler is right but for digits that rounding takes away.
    class Counts:
        def __init__(self, blur):
            self.blur = blur

        def fit(self, X):
            return self

        def draw(self, X, known, noise):
            return np.floor(4 * noise) + self.blur * (noise - 0.5)

    X = np.random.default_rng(0).integers(0, 4, (200, 2))
    exact, blurred = (evaluate(Counts(blur), X, n_coalitions=3) for blur in (0.0, 0.9))
    np.testing.assert_array_equal(blurred.row_scores, exact.row_scores)
    floats = [evaluate(Counts(blur), X * 1.0, n_coalitions=3).score for blur in (0.0, 0.9)]
    assert floats[0] != floats[1]


def test_same_seed_gives_the_same_coalitions_and_scores_and_other_seeds_do_not():
    one, again, other = (
        evaluate(TRUTH, HOLDOUT[:50], n_coalitions=6, random_state=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.row_scores, again.row_scores)
    assert not np.array_equal(one.row_scores, other.row_scores)


@pytest.mark.parametrize(
    ("n_features", "n_coalitions", "by_size"),
    [(1, 5, [1]), (3, 100, [1, 3, 3]), (4, 9, [1, 3, 3, 2]), (60, 90, [1, *[2] * 30, *[1] * 29])],
)
def test_coalitions_are_different_never_full_and_sizes_come_in_turn(
    n_features, n_coalitions, by_size
):
    masks = random_coalitions(n_features, n_coalitions, Streams(0))
    assert len({mask.tobytes() for mask in masks}) == len(masks)
    assert np.bincount(masks.sum(axis=1)).tolist() == by_size


def test_frames_have_a_line_a_coalition_and_a_line_a_size():
    evaluation = evaluate(TRUTH, HOLDOUT, n_coalitions=6)
    frame = evaluation.to_frame()
    assert list(frame.columns) == ["known", "n_known", "energy_score", "se"]
    assert frame.loc[0, "known"] == ""
    assert frame["energy_score"].mean() == pytest.approx(evaluation.score)
    summary = evaluation.summary()
    assert list(summary.index) == [0, 1, 2, 3, "all"]
    assert summary.loc["all", "energy_score"] == pytest.approx(evaluation.score)
    assert summary.loc["all", "se"] == pytest.approx(evaluation.se)


def test_sampler_without_a_layout_is_scored_on_arrays():
    class Own:
        def fit(self, X):
            return self

        def draw(self, X, known, noise):
            return np.where(known, X[:, None], norm.ppf(noise))

    X = np.random.default_rng(0).standard_normal((200, 2))
    lines = evaluate(Own(), X).calibration
    assert (np.abs(lines["observed"] - lines["nominal"]) < 4 * lines["se"]).all()


def test_plot_has_a_line_and_a_label_for_each_sampler():
    from matplotlib import pyplot as plt

    first = evaluate(TRUTH, HOLDOUT, n_coalitions=6)
    second = evaluate(Altered(shifted), HOLDOUT, n_coalitions=6)
    ax = plot_evaluations({"truth": first, "shifted": second})
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["truth", "shifted"]
    for shift, evaluation, bars in zip((-0.03, 0.03), (first, second), ax.containers, strict=True):
        by_size = evaluation.summary().drop(index="all").astype(float)
        line, _, (spans,) = bars
        np.testing.assert_allclose(line.get_xdata(), by_size.index.to_numpy(float) + shift)
        np.testing.assert_allclose(np.asarray(line.get_ydata(), float), by_size["energy_score"])
        widths = [np.ptp(each[:, 1]) for each in spans.get_segments()]
        np.testing.assert_allclose(widths, 4 * by_size["se"])
    _, own = plt.subplots()
    assert first.plot(label="truth", ax=own) is own
    assert "energy score" in own.get_ylabel()
    plt.close("all")


def test_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'dsage\[plot\]'"):
        plot_evaluations({})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: evaluate("truth", HOLDOUT), "sampler must be an object with fit and draw"),
        (lambda: evaluate(TRUTH, HOLDOUT, n_draws=1), "n_draws must be at least 2; got 1"),
        (lambda: evaluate(TRUTH, HOLDOUT[:1]), "X must be of at least two rows; got 1"),
        (lambda: evaluate(TRUTH, HOLDOUT, n_coalitions=0), "n_coalitions must be at least 1"),
        (
            lambda: evaluate(TRUTH, HOLDOUT, coalitions=np.ones((1, 3), bool)),
            r"known must be of shape \(n_coalitions, 4\)",
        ),
        (
            lambda: evaluate(TRUTH, HOLDOUT).compare(evaluate(TRUTH, HOLDOUT[:9])),
            "other must be an evaluation with the same coalitions and rows",
        ),
        (
            lambda: evaluate(TRUTH, pd.DataFrame(HOLDOUT).drop(columns="x1")),
            "missing: 'x1'",
        ),
    ],
)
def test_wrong_input_is_refused(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda noise, known: np.where(np.arange(3) == 1, np.nan, noise), r"finite; got \['X2'\]"),
        (lambda noise, known: np.where(np.arange(3) > 0, np.inf, noise), r"got \['X2', 'X3'\]"),
        (lambda noise, known: noise[:, :, ~known], r"of shape \(30, 20, 3\); got \(30, 20, 2\)"),
        (lambda noise, known: noise[:, 0], r"got \(30, 3\). Return .*known"),
    ],
)
def test_draws_that_cannot_be_scored_are_refused(draw, words):
    class Own:
        def fit(self, X):
            return self

        def draw(self, X, known, noise):
            return draw(noise, known)

    X = np.random.default_rng(0).standard_normal((30, 3))
    with pytest.raises(ValueError, match=words):
        evaluate(Own(), X, coalitions=np.array([[True, False, False]]))


def test_calibration_is_that_of_plain_loops():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "c": rng.choice(list("uvw"), 6),
            "x": np.append(np.round(rng.normal(size=5)), np.nan),
            "z": rng.normal(size=6),
        }
    )
    layout = Layout.of(frame)
    X = layout.encode(frame)
    calibration = _Calibration(layout, X)
    sums: dict[tuple[int, str], list[np.ndarray]] = {}
    for unknown in ([0, 1], [1], [0, 1]):
        draws = np.round(rng.normal(size=(6, 5, 3)))
        draws[:, :, 0] = rng.integers(3, size=(6, 5))
        draws[rng.random((6, 5)) < 0.2, 1] = np.nan
        calibration.add(draws, np.array(unknown))
        for feature in unknown:
            for row in range(6):
                x, y = X[row, feature], draws[row, :, feature]
                if feature == 0:
                    pairs = [a == b for a, b in itertools.permutations(y.tolist(), 2)]
                    found = {"match": (np.mean(pairs), np.mean(y == x))}
                else:
                    x, y = (np.nan_to_num(each, nan=-np.inf) for each in (x, y))
                    low = (y < x).sum() / 6
                    high = ((y <= x).sum() + 1) / 6
                    grid = low + (high - low) * (np.arange(6000) + 0.5) / 6000
                    found = {
                        f"coverage {share:.0%}": (share, (np.abs(grid - 0.5) <= share / 2).mean())
                        for share in (0.5, 0.9)
                    }
                for measure, pair in found.items():
                    sums.setdefault((feature, measure), []).append(np.array([row, *pair]))
    lines = calibration.to_frame()
    # A column that was never drawn has no line.
    assert lines["feature"].tolist() == ["c", "x", "x"]
    for _, line in lines.iterrows():
        each = np.array(sums[{"c": 0, "x": 1}[line["feature"]], line["measure"]])
        rows = np.array([each[each[:, 0] == row, 1:].mean(axis=0) for row in range(6)])
        assert line["nominal"] == pytest.approx(rows[:, 0].mean())
        assert line["observed"] == pytest.approx(rows[:, 1].mean(), abs=1e-3)
        se = (rows[:, 1] - rows[:, 0]).std(ddof=1) / np.sqrt(6)
        assert line["se"] == pytest.approx(se, abs=1e-3)


def test_summaries_are_means_over_rows_of_means_over_coalitions():
    known = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], bool)
    scores = np.random.default_rng(0).random((4, 5))
    made = Evaluation(("a", "b", "c"), known, scores, pd.DataFrame())
    rows = scores.mean(axis=0)
    assert made.score == pytest.approx(scores.mean())
    assert made.se == pytest.approx(rows.std(ddof=1) / np.sqrt(5))
    frame = made.to_frame()
    assert frame["known"].tolist() == ["", "a", "b", "a, b"]
    assert frame["n_known"].tolist() == [0, 1, 1, 2]
    np.testing.assert_allclose(frame["se"], scores.std(axis=1, ddof=1) / np.sqrt(5))
    summary = made.summary()
    assert summary["n_coalitions"].to_dict() == {0: 1, 1: 2, 2: 1, "all": 4}
    assert summary.loc[1, "energy_score"] == pytest.approx(scores[1:3].mean())
    of_one = scores[1:3].mean(axis=0)
    assert summary.loc[1, "se"] == pytest.approx(of_one.std(ddof=1) / np.sqrt(5))
    for shape in ((3, 5), (4, 4)):
        other = Evaluation(("a", "b", "c"), known[: shape[0]], np.zeros(shape), pd.DataFrame())
        with pytest.raises(ValueError, match="the same coalitions and rows"):
            made.compare(other)
    other = Evaluation(("a", "b", "c"), ~known, scores, pd.DataFrame())
    with pytest.raises(ValueError, match="the same coalitions and rows"):
        made.compare(other)
