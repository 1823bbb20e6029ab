"""Deviances, Huber, hinge, weights of classes and survival: values, domains and names."""

import contextlib
import pickle

import numpy as np
import pytest
from sklearn import metrics
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

import dsage
from dsage.games import LossGame
from dsage.models import as_loss, as_model, cox_likelihood, ipcw_brier
from dsage.samplers import Gaussian
from explain_case import QUIET

RNG = np.random.default_rng(0)
POSITIVE = np.exp(RNG.normal(size=(2, 20)))
COUNTS = RNG.poisson(1.0, size=20).astype(float)
SCORES = RNG.normal(size=(30, 3))
LABELS = RNG.choice(["a", "b", "c"], size=30)
X = RNG.normal(size=(80, 2))


@pytest.mark.parametrize(
    ("name", "y", "metric", "options"),
    [
        ("poisson", COUNTS, metrics.mean_poisson_deviance, {}),
        ("gamma", POSITIVE[0], metrics.mean_gamma_deviance, {}),
        ("tweedie(1)", COUNTS, metrics.mean_poisson_deviance, {}),
        ("tweedie(1.5)", COUNTS, metrics.mean_tweedie_deviance, {"power": 1.5}),
        ("tweedie(2)", POSITIVE[0], metrics.mean_gamma_deviance, {}),
        ("tweedie(3)", POSITIVE[0], metrics.mean_tweedie_deviance, {"power": 3}),
        ("squared_log_error", POSITIVE[0], metrics.mean_squared_log_error, {}),
    ],
)
def test_losses_of_positive_numbers_are_those_of_sklearn_row_by_row(name, y, metric, options):
    loss, prediction = as_loss(name), POSITIVE[1]
    pairs = zip(y[:, None], prediction[:, None], strict=True)
    expected = [metric(*pair, **options) for pair in pairs]
    np.testing.assert_allclose(loss(loss.target(y), prediction), expected, atol=1e-12)


def test_huber_is_half_the_square_of_small_and_linear_in_large_differences():
    assert as_loss("huber(2)")(np.zeros(3), np.array([-1.0, 2.0, 5.0])).tolist() == [0.5, 2.0, 8.0]


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "c"]])
def test_hinge_is_that_of_sklearn(labels):
    y = np.where(np.isin(LABELS, labels), LABELS, "a")
    scores = SCORES if len(labels) > 2 else SCORES[:, 0]
    loss = as_loss("hinge")
    expected = metrics.hinge_loss(y, scores, labels=labels)
    found = loss(loss.target(y, labels), loss.check(scores, labels))
    np.testing.assert_allclose(found.mean(), expected)
    many = loss.many(loss.target(y, labels), np.stack([scores, 2 * scores]))
    np.testing.assert_allclose(many[0], found)


def test_hinge_takes_the_scores_of_a_classifier():
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = LinearSVC().fit(X, y)
    predict = as_model(model, "hinge").predict
    np.testing.assert_array_equal(predict(X), model.decision_function(X))
    found = dsage.explain(model, X, y, X, y, loss="hinge_loss", graph=None, sampler="gaussian",
                          n_orderings=8, n_draws=8, **QUIET)  # fmt: skip
    assert found.values[0] > found.values[1]
    with pytest.raises(TypeError, match=r"a classifier with decision_function for hinge; .*cross_"):
        as_model(RandomForestClassifier(2).fit(X, y), "hinge")


@pytest.mark.parametrize(
    ("name", "y", "match"),
    [
        ("poisson", [-1.0, 2.0], r"y must be at least 0 for poisson; got -1\.0\. .*squared_error"),
        ("gamma", [0.0, 2.0], r"y must be above 0 for gamma; got 0\.0"),
        ("tweedie(2.5)", [0.0, 2.0], r"y must be above 0 for tweedie\(2.5\)"),
        ("squared_log_error", [-1.0, 2.0], r"y must be above -1 for squared_log_error"),
    ],
)
def test_targets_outside_the_domain_are_refused(name, y, match):
    with pytest.raises(ValueError, match=match):
        as_loss(name).target(y)


def test_predictions_outside_the_domain_are_refused_with_a_remedy():
    loss, match = as_loss("poisson"), r"prediction must be above 0 for poisson; .*np\.maximum\("
    for refuse in (
        loss.check,
        lambda p: loss(np.ones(2), p),
        lambda p: loss.many(np.ones(2), p[None]),
    ):
        with pytest.raises(ValueError, match=match):
            refuse(np.array([1.0, -0.5]))


def test_predictions_of_draws_outside_the_domain_are_refused():
    model = LinearRegression().fit(X, X[:, 0])
    rows = X[X[:, 0] > 0.1]
    game = LossGame(model, Gaussian().fit(X), rows, np.ones(len(rows)), loss="poisson")
    with pytest.raises(ValueError, match="prediction must be above 0 for poisson"):
        game.risks(np.array([[False, True]]), np.arange(len(rows)))


@pytest.mark.parametrize("power", [0, 0.5, -1])
def test_powers_without_a_deviance_are_refused(power):
    with pytest.raises(ValueError, match=r"power must be (at least 1|in \[1)"):
        as_loss(f"tweedie({power})")


def test_losses_with_a_parameter_ask_for_it():
    with pytest.raises(TypeError, match=r"power must be given for 'tweedie'; .*loss='tweedie\(1.5"):
        as_loss("tweedie")
    with pytest.raises(ValueError, match="loss must be one without a parameter; got 'mse'"):
        as_loss("mse(3)")


# Names of other libraries


@pytest.mark.parametrize(
    ("name", "ours"),
    [("mse", "squared_error"), ("mae", "absolute_error"), ("logloss", "cross_entropy"),
     ("neg_log_loss", "cross_entropy"), ("neg_brier_score", "brier"), ("accuracy", "zero_one"),
     ("neg_mean_poisson_deviance", "poisson"), ("quantile(0.2)", "pinball(0.2)"),
     ("neg_mean_squared_log_error", "squared_log_error")],
)  # fmt: skip
def test_metrics_and_scorers_are_understood(name, ours):
    assert as_loss(name) == as_loss(ours)


# What scikit-learn has for clusters, of which there is no target.
OF_CLUSTERS = ("rand_score", "mutual_info", "completeness", "homogeneity", "fowlkes", "v_measure")
SCORERS = [name for name in metrics.get_scorer_names() if not any(c in name for c in OF_CLUSTERS)]


@pytest.mark.filterwarnings("ignore:.* is explained by loss=")
@pytest.mark.parametrize("name", SCORERS)
def test_every_scorer_of_sklearn_is_understood_or_refused_with_a_reason(name):
    with contextlib.suppress(UnderstoodButRefusedError):
        assert find(name).name


class UnderstoodButRefusedError(Exception):
    """A metric that is no mean over rows."""


def find(name):
    try:
        return as_loss(name)
    except ValueError as error:
        if "loss must be a mean over rows" in str(error):
            raise UnderstoodButRefusedError from error
        raise


@pytest.mark.parametrize("name", ["r2", "neg_root_mean_squared_error"])
def test_a_metric_that_is_not_quite_the_loss_has_a_note(name):
    with pytest.warns(UserWarning, match=f"{name} is explained by loss='squared_error': "):
        assert as_loss(name).name == "squared_error"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("auc", "brier"), ("roc_auc_ovr", "cross_entropy"), ("f1_macro", "zero_one"),
     ("balanced_accuracy", "sample_weight"), ("max_error", "absolute_error"),
     ("mape", "lambda"), ("cox", "cox_likelihood"), ("ipcw_brier", "ipcw_brier"),
     ("c_index", "ipcw_brier")],
)  # fmt: skip
def test_metrics_of_the_whole_set_are_refused_with_a_remedy(name, remedy):
    with pytest.raises(ValueError, match=f"loss must be a mean over rows; got '{name}'.*{remedy}"):
        as_loss(name)


# Weights of classes


def test_weights_multiply_the_cross_entropy_of_their_class():
    p = np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]])
    loss = as_loss("logloss", class_weight={"c": 4.0})
    y = loss.target(["c", "a"], classes=["a", "b", "c"])
    np.testing.assert_allclose(loss(y, p), [4 * -np.log(0.5), -np.log(0.6)])
    expected = metrics.log_loss(["c", "a"], p, labels=["a", "b", "c"], sample_weight=[4, 1])
    np.testing.assert_allclose(loss(y, p).sum() / 5, expected)
    assert pickle.loads(pickle.dumps(loss)) == loss
    step = 1e-5
    first, second = loss.bend(y, p[None])
    for at in range(2):
        shift = np.zeros((2, 3))
        shift[at, y[at].argmax()] = step
        up, middle, down = (loss(y, p + k * shift)[at] for k in (1, 0, -1))
        np.testing.assert_allclose(first[0, at].sum(), (up - down) / (2 * step), rtol=1e-5)
        np.testing.assert_allclose(second[0, at].sum(), (up - 2 * middle + down) / step**2, 1e-3)


def test_equal_weights_scale_the_values():
    y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, "yes", "no")

    def probability(rows):
        second = 1 / (1 + np.exp(-np.asarray(rows) @ [2.0, 1.0]))
        return np.stack([1 - second, second], axis=1)

    def values(loss):
        options = {"graph": None, "sampler": "gaussian", "n_orderings": 20, "draw_control": "none"}
        options |= {
            "classes": ["no", "yes"],
            "first_level": "none",
            **QUIET,
        }
        return dsage.explain(probability, X, y, X, y, loss=loss, **options).values

    weighted = values(as_loss("cross_entropy", class_weight={"yes": 3.0, "no": 3.0}))
    np.testing.assert_allclose(weighted, 3 * values("cross_entropy"), rtol=1e-9)


def test_balanced_weights_let_all_classes_count_the_same():
    y = np.array(["a"] * 6 + ["b"] * 2)
    p = np.tile([0.75, 0.25], (8, 1))
    for loss in (
        as_loss("cross_entropy", class_weight="balanced"),
        as_loss("log_loss(balanced)"),
        as_loss("cross_entropy(balanced)").fitted_to(y),
    ):
        assert loss.name == "cross_entropy(balanced)"
        found = loss(loss.target(y), p)
        # The mean over classes of the mean of each.
        np.testing.assert_allclose(found.mean(), -(np.log(0.75) + np.log(0.25)) / 2)
        assert pickle.loads(pickle.dumps(loss)) == loss


def test_balanced_weights_are_counted_in_the_training_rows():
    y = np.where(X[:, 0] > 0.8, "ill", "well")
    model = LogisticRegression().fit(X, y)
    options = {"graph": None, "sampler": "gaussian", "n_orderings": 4, **QUIET}
    share = {label: len(y) / (2 * (y == label).sum()) for label in ("ill", "well")}
    given = as_loss("cross_entropy", class_weight=share)
    rows = X, y, X[:40], y[:40]
    one, other = (
        dsage.explain(model, *rows, loss=loss, **options)
        for loss in ("cross_entropy(balanced)", given)
    )
    np.testing.assert_allclose(one.values, other.values)
    assert one.choices.loss.name == "cross_entropy(balanced)"


def test_weights_must_be_of_classes_and_of_cross_entropy():
    with pytest.raises(ValueError, match=r"class_weight must be of the model's classes .*\['z'\]"):
        as_loss("cross_entropy", class_weight={"z": 2.0}).target(["a", "b"])
    with pytest.raises(TypeError, match="given for 'cross_entropy' only; got 'brier'"):
        as_loss("brier", class_weight={"a": 2.0})
    with pytest.raises(TypeError, match="given for 'cross_entropy' only"):
        as_loss(lambda y, p: p, class_weight={"a": 2.0})
    with pytest.raises(TypeError, match="class_weight must be a mapping of classes"):
        as_loss("cross_entropy", class_weight="equal")
    with pytest.raises(ValueError, match=r"class_weight\['a'\] must be in \(0"):
        as_loss("cross_entropy", class_weight={"a": -1.0})
    with pytest.raises(TypeError, match="y must be labels for cross_entropy"):
        as_loss("cross_entropy", class_weight={"a": 2.0}).target(np.full((2, 2), 0.5))


def test_without_a_target_the_models_own_probabilities_are_weighted():
    p = np.array([[0.25, 0.75]])
    loss = as_loss("cross_entropy", class_weight={"b": 2.0})
    np.testing.assert_allclose(loss.target_for(p, None, ["a", "b"]), [[0.25, 1.5]])


# Survival times

N = 400
Z = RNG.normal(size=(N, 2))
EVENT_TIME = RNG.exponential(np.exp(-Z[:, 0]))
CENSORED = RNG.exponential(2.0, size=N)
SURVIVAL = np.column_stack([np.minimum(EVENT_TIME, CENSORED), EVENT_TIME <= CENSORED]).astype(float)


def alive(rows):
    """The probability to survive beyond 1."""
    return np.exp(-np.exp(np.asarray(rows)[:, 0]))


def test_ipcw_brier_of_uncensored_times_is_the_squared_error():
    y = np.column_stack([EVENT_TIME, np.ones(N)])
    loss = ipcw_brier(1.0, y)
    expected = (alive(Z) - (EVENT_TIME > 1)) ** 2
    np.testing.assert_allclose(loss(loss.target(y), alive(Z)), expected)


def test_ipcw_brier_estimates_the_score_of_uncensored_times():
    loss = ipcw_brier(1.0, SURVIVAL)
    found = loss(loss.target(SURVIVAL), alive(Z))
    truth = (alive(Z) - (EVENT_TIME > 1)) ** 2
    se = (found - truth).std() / np.sqrt(N)
    assert abs(found.mean() - truth.mean()) < 4 * se
    np.testing.assert_allclose(loss.target(SURVIVAL)[:, 1].mean(), 1.0, atol=0.02)


def test_survival_is_explained_from_times_and_events():
    train, test = (Z[:200], SURVIVAL[:200]), (Z[200:], SURVIVAL[200:])
    options = {
        "sampler": "gaussian",
        "graph": None,
        "n_orderings": 10,
        **QUIET,
    }
    brier = dsage.explain(alive, *train, *test, loss=ipcw_brier(1.0, train[1]), **options)
    assert brier.values[0] > 5 * abs(brier.values[1])
    assert brier.choices.loss.name == "ipcw_brier(1)"

    def log_risk(rows):
        return np.asarray(rows)[:, 0]

    cox = cox_likelihood(train[1], log_risk(train[0]))
    found = dsage.explain(log_risk, *train, *test, loss=cox, **options)
    assert found.values[0] > 5 * abs(found.values[1])


def test_cox_likelihood_is_minimal_at_the_true_risk_and_has_its_derivatives():
    loss = cox_likelihood(SURVIVAL, Z[:, 0])
    y = loss.target(SURVIVAL)
    at = {scale: loss(y, scale * Z[:, 0]).mean() for scale in (0.5, 1.0, 1.5)}
    assert at[1.0] < min(at[0.5], at[1.5])
    # Breslow's estimate makes observed and expected events equal.
    np.testing.assert_allclose((y[:, 0] * np.exp(Z[:, 0])).sum(), y[:, 1].sum())
    first, second = loss.bend(y, Z[None, :, 0])
    up, middle, down = (loss(y, Z[:, 0] + k * 1e-4) for k in (1, 0, -1))
    np.testing.assert_allclose(first[0], (up - down) / 2e-4, atol=1e-6)
    np.testing.assert_allclose(second[0], (up - 2 * middle + down) / 1e-8, atol=1e-4)
    assert pickle.loads(pickle.dumps(loss)) == loss


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: ipcw_brier(1.0, EVENT_TIME), r"y must be of shape \(n_rows, 2\).*the time and"),
        (lambda: ipcw_brier(1.0, 2 * SURVIVAL), "the events, the second column of y, must be 0 or"),
        (lambda: ipcw_brier(9.0, [[1.0, 1], [2.0, 0]]), "horizon must be a time beyond which"),
        (lambda: ipcw_brier(1.0, SURVIVAL).check([1.2]), r"in \[0, 1\] for ipcw_brier\(1\)"),
        (lambda: cox_likelihood(SURVIVAL, [1.0]), r"log_risk must be of shape \(400,\)"),
        (lambda: cox_likelihood([[1.0, 0]], [1.0]), "y_train must be of some observed events"),
    ],
)
def test_unusable_survival_times_are_refused(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_survival_losses_need_a_target():
    with pytest.raises(TypeError, match=r"y must be given for ipcw_brier\(1\)"):
        ipcw_brier(1.0, SURVIVAL).target_for(np.full(2, 0.5))
