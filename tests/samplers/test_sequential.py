import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dsage.graphs import random_dag, random_linear_gaussian
from dsage.samplers.clustered import ClusteredGaussian
from dsage.samplers.design import Encoder
from dsage.samplers.evaluation import evaluate
from dsage.samplers.logistic import fit_logistic
from dsage.samplers.marginal import Marginal
from dsage.samplers.one_feature import Marginal as OneMarginal
from dsage.samplers.one_feature import Residuals, invert
from dsage.samplers.regression import Training, some_rows
from dsage.samplers.sequential import Sequential

# One covariance for all clusters: each conditional of the sequence is linear or logistic exactly.
_RANDOM = ClusteredGaussian.random(3, 3, random_state=3)
TRUTH = ClusteredGaussian(
    _RANDOM.weights, _RANDOM.means, np.repeat(_RANDOM.covariances[:1], 3, axis=0), _RANDOM.child
)
TRAIN = TRUTH.sample(1500, random_state=5)
HOLDOUT = TRUTH.sample(300, random_state=99)
N_FEATURES = TRAIN.shape[1]
SAMPLER = Sequential(random_state=0).fit(TRAIN)
FOREST_MODELS = {
    "classifier": RandomForestClassifier(5, min_samples_leaf=5),
    "regressor": RandomForestRegressor(5, min_samples_leaf=5),
}


def uniforms(*shape, seed=0):
    return np.random.default_rng(seed).uniform(1e-12, 1, shape)


def test_draws_beat_the_marginal_for_every_size_of_coalition_and_near_the_truth():
    ours, marginal, truth = (
        evaluate(sampler, HOLDOUT, n_coalitions=16)
        for sampler in (SAMPLER, Marginal().fit(TRAIN), TRUTH)
    )
    gain = ours.compare(marginal).drop(index=[0, "all"])
    assert (gain["difference"] < -4 * gain["se"]).all()
    left = ours.compare(truth).loc["all"]
    assert left["difference"] < 0.05 * marginal.compare(truth).loc["all", "difference"]


def test_score_approaches_that_of_the_truth_as_rows_grow():
    best = evaluate(TRUTH, HOLDOUT, n_coalitions=16)
    off = []
    for n_rows in (60, 600, 6000):
        sampler = Sequential(random_state=0).fit(TRUTH.sample(n_rows, random_state=8))
        off.append(
            evaluate(sampler, HOLDOUT, n_coalitions=16).compare(best).loc["all", "difference"]
        )
    assert off[0] > 2 * off[1] > 3 * off[2]


def test_gaussian_conditionals_have_the_moments_of_the_closed_form():
    model = random_linear_gaussian(random_dag(5, 2.0, random_state=1), random_state=1)
    covariance = model.covariance().to_numpy()
    X = model.sample(40_000, random_state=0)
    sampler = Sequential(residuals="gaussian").fit(X)
    known = np.array([False, True, False, True, False])
    rows, n_draws = X[:3].to_numpy(), 20_000
    draws = sampler.draw(rows, known, uniforms(3, n_draws, 5))[:, :, ~known]
    slopes = np.linalg.solve(covariance[np.ix_(known, known)], covariance[np.ix_(known, ~known)])
    rest = covariance[np.ix_(~known, ~known)] - covariance[np.ix_(~known, known)] @ slopes
    scale = np.sqrt(np.diag(rest))
    # Of the draws, and of the fit: each is less than 5 / sqrt(20,000) deviations.
    error = 10 / np.sqrt(n_draws)
    off = (draws.mean(axis=1) - rows[:, known] @ slopes) / scale
    assert np.abs(off).max() < error * max(1.0, np.abs(rows[:, known]).max())
    for drawn in draws:
        assert np.abs((np.cov(drawn.T) - rest) / np.outer(scale, scale)).max() < 2 * error


@settings(max_examples=25, deadline=None)
@given(
    known=st.lists(st.booleans(), min_size=N_FEATURES, max_size=N_FEATURES),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    n_draws=st.integers(1, 9),
)
def test_draws_are_the_same_to_the_bit_in_any_batch(known, cuts, n_draws):
    known = np.array(known)
    rows, noise = HOLDOUT[:40], uniforms(40, n_draws, N_FEATURES)
    edges = sorted({0, 40, *cuts})
    whole = SAMPLER.draw(rows, known, noise)
    parts = [SAMPLER.draw(rows[a:b], known, noise[a:b]) for a, b in itertools.pairwise(edges)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    np.testing.assert_array_equal(SAMPLER.draw(rows, known, noise[:, :1]), whole[:, :1])


def test_forests_as_models_draw_the_same_to_the_bit_in_any_batch():
    sampler = Sequential(random_state=0, **FOREST_MODELS).fit(TRAIN[:300])
    known, noise = np.array([False, True, False, False, False]), uniforms(40, 3, N_FEATURES)
    whole = sampler.draw(HOLDOUT[:40], known, noise)
    for edges in ([0, 1, 40], [0, 13, 14, 31, 40]):
        parts = [
            sampler.draw(HOLDOUT[a:b], known, noise[a:b]) for a, b in itertools.pairwise(edges)
        ]
        np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_models_do_not_depend_on_what_was_asked_before():
    rng = np.random.default_rng(0)
    masks = rng.random((4, N_FEATURES)) < 0.5
    noise = uniforms(5, 3, N_FEATURES)
    first, second = (
        Sequential(random_state=7, max_models=bound, **FOREST_MODELS).fit(TRAIN[:200])
        for bound in (1, 512)
    )
    forward = [first.draw(HOLDOUT[:5], mask, noise) for mask in masks]
    backward = [second.draw(HOLDOUT[:5], mask, noise) for mask in masks[::-1]][::-1]
    np.testing.assert_array_equal(forward, backward)


def test_kept_models_are_bounded_and_those_used_last():
    sampler = Sequential(max_models=3, random_state=0).fit(TRAIN[:200])
    noise = uniforms(2, 2, N_FEATURES)
    for feature in range(N_FEATURES):
        known = np.ones(N_FEATURES, bool)
        known[feature] = False
        sampler.draw(HOLDOUT[:2], known, noise)
    assert [feature for feature, _ in sampler._models._values] == [2, 3, 4]


def test_features_are_drawn_in_the_order_given():
    # The last in the order depends on all others, the first on the known ones only.
    order = ["x2", "child", "x1", "cluster", "x3"]
    sampler = Sequential(order=order, random_state=0).fit(TRAIN)
    known = np.zeros(N_FEATURES, bool)
    known[1] = True
    base, other = uniforms(20, 4, N_FEATURES), uniforms(20, 4, N_FEATURES, seed=1)
    names = list(TRAIN.columns)
    before = sampler.draw(HOLDOUT[:20], known, base)
    for place, name in enumerate(order):
        noise = base.copy()
        noise[:, :, names.index(name)] = other[:, :, names.index(name)]
        after = sampler.draw(HOLDOUT[:20], known, noise)
        for earlier in order[:place]:
            at = names.index(earlier)
            np.testing.assert_array_equal(before[:, :, at], after[:, :, at])


@pytest.mark.parametrize("kind", ["empirical", "gaussian"])
def test_residuals_have_the_spread_of_the_errors(kind):
    errors = np.random.default_rng(0).standard_t(8, 5000)
    drawn = Residuals(errors, kind).draw(uniforms(1, 200_000))
    assert drawn.std() == pytest.approx(errors.std(), rel=0.03)
    if kind == "empirical":
        assert stats.ks_2samp(drawn[0], errors).statistic < 0.01
        assert drawn.min() >= errors.min()
        assert drawn.max() <= errors.max()


def test_errors_are_of_rows_left_out_so_many_features_do_not_shrink_the_spread():
    X = np.random.default_rng(0).standard_normal((60, 50))
    known = np.arange(50) > 0
    draws = Sequential().fit(X).draw(X, known, uniforms(60, 200, 50))
    assert 0.7 < draws[:, :, 0].std() < 1.6


def test_levels_with_a_share_of_zero_are_never_drawn():
    zero, half = np.zeros((1, 4)), np.full((1, 4), 0.5)
    codes = invert([zero, half, zero, half, zero], np.array([[2.0**-60, 0.4, 0.6, 1 - 2.0**-53]]))
    assert codes.tolist() == [[1, 1, 3, 3]]


def test_constant_columns_single_classes_and_duplicates_are_drawn_without_complaint():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(100)
    frame = pd.DataFrame(
        {
            "x": x,
            "again": x,
            "fixed": 0.1 + 0.2,
            "one": pd.Categorical(["a"] * 100, ["a", "b"]),
            "rare": pd.Categorical(["u"] * 98 + ["v"] * 2, ["u", "v", "w"]),
        }
    )
    sampler = Sequential(random_state=0).fit(frame)
    draws = sampler.draw(frame[:20], np.zeros(5, bool), uniforms(20, 50, 5))
    assert (draws[:, :, 2] == 0.1 + 0.2).all()
    assert (draws[:, :, 3] == 0).all()
    assert set(np.unique(draws[:, :, 4])) == {0.0, 1.0}
    np.testing.assert_allclose(draws[:, :, 0], draws[:, :, 1], atol=1e-3)


def test_more_features_than_rows_work():
    X = np.random.default_rng(0).standard_normal((10, 30))
    draws = Sequential().fit(X).draw(X, np.arange(30) < 25, uniforms(10, 5, 30))
    assert np.isfinite(draws).all()


def test_given_models_may_be_pipelines():
    pipeline = make_pipeline(StandardScaler(), LinearRegression())
    X = np.random.default_rng(0).standard_normal((200, 2)) @ np.array([[1.0, 0.9], [0.0, 0.3]])
    known = np.array([True, False])
    ours, theirs = (
        Sequential(regressor=regressor, residuals="gaussian").fit(X)
        for regressor in (None, pipeline)
    )
    noise = uniforms(200, 50, 2)
    off = ours.draw(X, known, noise) - theirs.draw(X, known, noise)
    assert np.abs(off).mean() < 0.05


def test_given_models_are_those_that_predict():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(300)
    frame = pd.DataFrame({"x": x, "y": 3 * x, "c": np.where(x > 0, "b", "a")})
    models = {"regressor": DummyRegressor(strategy="constant", constant=7.0)}
    models["classifier"] = DummyClassifier(strategy="constant", constant=1)
    known, noise = np.array([True, False, False]), uniforms(1, 200, 3)
    given = Sequential(random_state=0, **models).fit(frame)
    draws = given.draw(frame[:1], known, noise)[0]
    # The errors of the constant are added to it, and its class is the only one.
    assert draws[:, 1].mean() == pytest.approx(frame["y"].mean(), abs=4 * 3 / np.sqrt(200))
    assert (draws[:, 2] == 1.0).all()
    own = Sequential(random_state=0).fit(frame).draw(frame[:1], known, noise)[0]
    np.testing.assert_allclose(own[:, 1], frame["y"][0], atol=1e-6)


def test_pickled_copy_clone_and_threads_draw_the_same():
    known, noise = np.arange(N_FEATURES) % 2 == 0, uniforms(20, 5, N_FEATURES)
    expected = SAMPLER.draw(HOLDOUT[:20], known, noise)
    copied = pickle.loads(pickle.dumps(SAMPLER))
    fresh = clone(SAMPLER).fit(TRAIN)
    for sampler in (copied, fresh):
        np.testing.assert_array_equal(sampler.draw(HOLDOUT[:20], known, noise), expected)
    refitted = clone(SAMPLER).set_params(max_models=1).fit(TRAIN)
    with ThreadPoolExecutor(4) as pool:
        draws = pool.map(lambda _: refitted.draw(HOLDOUT[:20], known, noise), range(8))

        for drawn in draws:
            np.testing.assert_array_equal(drawn, expected)
    assert pickle.loads(pickle.dumps(Sequential(max_models=2))).max_models == 2


def test_logistic_models_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((3000, 6)) @ rng.standard_normal((6, 6))
    Z -= Z.mean(axis=0)
    for n_classes in (2, 4):
        scores = Z @ rng.standard_normal((6, n_classes)) + rng.gumbel(size=(3000, n_classes))
        y = scores.argmax(axis=1)
        expected = LogisticRegression(tol=1e-8, max_iter=1000).fit(Z, y)
        intercepts, slopes = fit_logistic(Z.T.copy(), Z.T @ Z / 3000, y, 3000)
        theirs = expected.predict_proba(Z)
        lines = Z @ slopes.T + intercepts
        ours = np.exp(lines - lines.max(axis=1, keepdims=True))
        ours /= ours.sum(axis=1, keepdims=True)
        assert np.abs(ours - theirs).max() < 0.02
        lost = np.log(theirs[np.arange(3000), y]).sum() - np.log(ours[np.arange(3000), y]).sum()
        assert abs(lost) < 0.5


def test_regressions_from_moments_are_least_squares_and_leave_out_columns_that_follow():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4))
    X[:, 3] += X[:, :3] @ [1.0, -2.0, 0.5]
    both = np.column_stack([X, X[:, 0], X[:, 1] + X[:, 2]])
    expected = LinearRegression().fit(X[:, :3], X[:, 3])
    for data in (X, both):
        encoder = Encoder(data, np.zeros(data.shape[1], int))
        training = Training(encoder, data)
        features = [j for j in range(data.shape[1]) if j != 3]
        columns, slopes, errors = training.regress(features, 3)
        np.testing.assert_array_equal(columns, features)
        centered = (data[:, features] - data[:, features].mean(axis=0)) / encoder.scale[features]
        fitted = X[:, 3].mean() + encoder.scale[3] * (centered @ slopes)
        np.testing.assert_allclose(fitted, expected.predict(X[:, :3]), atol=1e-9)
        left = (X[:, 3] - fitted) / encoder.scale[3]
        np.testing.assert_allclose(errors * (1 - (len(columns) + 1) / 500), left, atol=1e-9)


def test_a_number_that_nothing_tells_about_has_its_own_quantiles():
    y = np.random.default_rng(0).exponential(size=500)
    shares = np.linspace(0.01, 0.99, 50)
    alone = OneMarginal(y, 0, "empirical")
    np.testing.assert_allclose(alone.draw(None, shares), np.quantile(y, shares), atol=1e-12)
    normal = OneMarginal(y, 0, "normal").draw(None, shares)
    np.testing.assert_allclose(normal, stats.norm.ppf(shares, y.mean(), y.std()))


def test_constants_are_no_columns_of_a_regression():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(50, 3.0), rng.standard_normal((50, 2)), np.zeros(50)])
    training = Training(Encoder(X, np.zeros(4, int)), X)
    assert training.columns_of([0, 1, 3]).tolist() == [1]
    columns, slopes, _ = training.regress([0, 1, 3], 2)
    # Least squares: there are twenty rows for each column that varies.
    expected = np.corrcoef(X[:, 1], X[:, 2])[0, 1]
    assert (columns.tolist(), slopes.tolist()) == ([1], pytest.approx([expected]))


@pytest.mark.parametrize("n_errors", [1, 2, 3, 7, 1001])
def test_empirical_residuals_are_quantiles(n_errors):
    errors = np.random.default_rng(0).standard_normal(n_errors)
    shares = np.append(np.linspace(0.0, 1.0, 97), [1e-9, 1 - 1e-9])
    found = Residuals(errors, "empirical").draw(shares)
    np.testing.assert_allclose(found, np.quantile(errors, shares), atol=1e-12)


def test_thousands_of_categories_are_drawn_with_their_shares_and_depend_on_others():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 6000)
    # Frequent ones tell the group; there are thousands of rare ones, which do not.
    town = np.where(rng.random(6000) < 0.5, group, 2 + rng.integers(0, 4000, 6000))
    frame = pd.DataFrame({"town": town.astype(str), "group": np.array(["a", "b"])[group]})
    sampler = Sequential(random_state=0).fit(frame)
    draws = sampler.draw(frame[:50], np.array([False, True]), uniforms(50, 200, 2))
    decoded = sampler.layout_.decode(draws.reshape(-1, 2))
    of_a = decoded["town"][decoded["group"] == "a"]
    assert (of_a == "0").mean() == pytest.approx(0.5, abs=0.05)
    assert (of_a == "1").mean() < 0.02
    assert of_a[~of_a.isin(["0", "1"])].nunique() > 1000
    assert set(of_a) <= set(frame["town"])


def test_categories_without_a_row_among_those_learned_from_keep_their_shares(monkeypatch):
    monkeypatch.setattr("dsage.samplers.regression._MAX_ROWS", 50)
    word = np.array(["x", "y"] * 2000)
    word[np.setdiff1d(np.arange(4000), some_rows(4000, 50))[:400]] = "z"
    frame = pd.DataFrame({"a": np.random.default_rng(0).random(4000), "word": word})
    sampler = Sequential(random_state=0).fit(frame)
    assert set(sampler._training.codes[1]) == {0, 1}
    draws = sampler.draw(frame[:20], np.array([True, False]), uniforms(20, 500, 2))[:, :, 1]
    assert (draws == 2).mean() == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": ["X1"]}, r"order must be all columns, each once; got \['X2', 'X3'\]"),
        ({"residuals": "normal"}, "residuals must be one of the kinds"),
        ({"max_models": 0}, "max_models must be at least 1; got 0"),
        (
            {"classifier": LinearRegression()},
            "classifier must be a scikit-learn model with fit and",
        ),
        ({"regressor": "linear"}, "regressor must be a scikit-learn model with fit and predict"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        Sequential(**options).fit(np.eye(3))


def test_uniforms_fall_into_categories_by_their_shares_of_the_weights():
    weights = [np.full((1, 4), each) for each in (1.0, 1.0, 2.0)]
    codes = invert(weights, np.array([[0.2, 0.3, 0.6, 0.9]]))
    assert codes.tolist() == [[0.0, 1.0, 2.0, 2.0]]
