"""Missing values are values: exact SAGE values of a small world, and what is estimated."""

import functools

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from threadpoolctl import threadpool_limits

import dsage
import missing_world as world
from dsage.estimate import as_stopping, run, run_local
from dsage.games import Grouped, LossGame, OutputGame
from dsage.graphs import GroupedOracle
from dsage.report import report_data
from dsage.result.saving import load

N_TRAIN, N_TEST = 800, 300
_, X_TRAIN, Y_TRAIN = world.sample(N_TRAIN, 0)
STATES, X, Y = world.sample(N_TEST, 1)
ORACLE = world.GRAPH.oracle("y", world.NAMES)


def boosting():
    """A model that takes missing values."""
    return HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=30)


def imputing():
    """A linear model of imputed numbers."""
    columns = make_column_transformer(
        (SimpleImputer(), ["a", "b"]), (OneHotEncoder(sparse_output=False), ["c"])
    )
    return make_pipeline(columns, LinearRegression())


def lightgbm():
    package = pytest.importorskip("lightgbm")
    return package.LGBMRegressor(n_estimators=30, n_jobs=1, verbose=-1)


def xgboost():
    package = pytest.importorskip("xgboost")
    return package.XGBRegressor(n_estimators=30, n_jobs=1, enable_categorical=True)


def catboost():
    """It takes missing numbers; a missing class must have a name."""
    package = pytest.importorskip("catboost")
    few = {"iterations": 30, "thread_count": 1, "verbose": False, "allow_writing_files": False}
    model = package.CatBoostRegressor(cat_features=["c"], **few)
    return make_pipeline(FunctionTransformer(name_missing), model)


def name_missing(frame):
    return frame.assign(c=frame["c"].cat.add_categories("none").fillna("none"))


OURS = {make.__name__: make for make in (boosting, imputing)}
EVERY = OURS | {make.__name__: make for make in (lightgbm, xgboost, catboost)}
models = pytest.mark.parametrize("model", OURS, indirect=True)


@functools.cache
def fitted(name):
    # With several threads, boosting waits for the other tests.
    with threadpool_limits(1):
        return EVERY[name]().fit(X_TRAIN, Y_TRAIN)


@functools.cache
def remembered(name):
    return world.remembered(fitted(name))


@pytest.fixture
def model(request):
    return remembered(request.param)


def assert_within_errors(estimate, exact, most=4.0):
    """The estimate is within some standard errors, of at most 3 % of the range."""
    se = np.sqrt(estimate.se_orderings**2 + estimate.se_draws**2)
    assert (se <= 0.03 * np.ptp(exact)).all()
    np.testing.assert_array_less(np.abs(estimate.values - exact), most * se + 1e-9)


def explained(model, **options):
    # With fewer than 20 training rows the sampler is used as it is.
    rows = slice(48, 64)
    return dsage.explain(
        model,
        X_TRAIN[rows],
        Y_TRAIN[rows],
        X,
        Y,
        sampler=world.ExactSampler(),
        sampler_check=False,
        random_state=0,
        progress=False,
        **options,
    ).estimate


@pytest.mark.parametrize("name", EVERY)
def test_a_fitted_model_has_its_exact_values(name):
    with threadpool_limits(1):
        found = explained(fitted(name), graph=None)
    assert_within_errors(found, world.sage(remembered(name), STATES, Y))


@models
def test_values_without_a_graph_are_exact_within_their_errors(model):
    exact = world.sage(model, STATES, Y)
    assert_within_errors(explained(model, graph=None), exact)


@models
def test_values_with_a_graph_are_exact_within_their_errors(model):
    exact = world.sage(model, STATES, Y, ORACLE)
    assert_within_errors(explained(model, graph=world.GRAPH), exact)


@models
def test_corrected_values_are_those_without_a_graph(model):
    exact = world.sage(model, STATES, Y)
    assert_within_errors(explained(model, graph=world.GRAPH, estimand="sage"), exact)


def test_a_learned_graph_knows_what_is_missing(tmp_path):
    model = remembered("boosting")
    found = dsage.explain(
        model,
        X_TRAIN,
        Y_TRAIN,
        X,
        Y,
        sampler=world.ExactSampler().fit(X_TRAIN),
        sampler_check=False,
        estimand="sage",
        n_resamples=2,
        random_state=0,
        progress=False,
    )
    indicators = {"a is missing": ("a",), "b is missing": ("b",)}
    assert found.graph.indicators == indicators
    assert found.estimate.feature_names == world.NAMES
    assert {"b", "b is missing", "c"} <= set(found.choices.graph.markov_blanket)
    assert_within_errors(found.estimate, world.sage(model, STATES, Y))
    found.save(tmp_path / "run.dsage")
    assert load(tmp_path / "run.dsage").graph == found.graph
    nodes = {node["name"]: node["feature"] for node in report_data(found)["graph"]["nodes"]}
    assert (nodes["a is missing"], nodes["b is missing"], nodes["c"]) == world.NAMES


def game(model, **options):
    sampler = world.ExactSampler().fit(X_TRAIN)
    return LossGame(model, sampler, X, Y, random_state=0, **options)


@pytest.mark.parametrize("name", EVERY)
def test_the_model_receives_its_own_missing_values(name):
    with threadpool_limits(1):
        own = game(fitted(name), n_draws=2)
        risks = own.risks(world.EVERY, np.arange(40))
    assert own.is_drawn
    np.testing.assert_array_equal(
        risks, game(remembered(name), n_draws=2).risks(world.EVERY, np.arange(40))
    )


@models
def test_the_first_level_changes_no_expectation(model):
    exact = world.sage(model, STATES, Y)
    for first_level in ("auto", "none"):
        stopping = as_stopping(n_orderings=200)
        options = {"exact": "never", "rows_per_ordering": 100, "first_level": first_level}
        found = run(game(model), stopping=stopping, random_state=1, **options)
        assert_within_errors(found, exact)


def test_the_first_level_knows_which_values_are_missing():
    model = remembered("boosting")
    cheap = game(model).first_level()
    risks = cheap.mean_risks(world.EVERY)
    exact = ((Y.to_numpy() - world.expected(model, STATES)) ** 2).mean(axis=1)
    # Of what knowing b tells, a line through its levels and a step where it is missing tell most.
    only_b = world.EVERY.tolist().index([False, True, False])
    assert risks[0] - risks[only_b] > 0.8 * (exact[0] - exact[only_b])


@models
def test_groups_have_exact_values(model):
    groups = {"numbers": ["a", "b"]}
    risks = ((Y.to_numpy() - world.expected(model, STATES)) ** 2).mean(axis=1)
    at = {tuple(known): risk for known, risk in zip(world.EVERY.tolist(), risks, strict=True)}
    none, c, ab, every = (
        at[known, known, other] for known in (False, True) for other in (False, True)
    )
    exact = np.array([(none - ab + c - every) / 2, (none - c + ab - every) / 2])
    # The graph separates neither player.
    for oracle in (None, GroupedOracle(ORACLE, groups)):
        played = Grouped(game(model, n_draws=256, n_replicates=8), groups)
        found = run(played, oracle=oracle, audit=False, random_state=0)
        assert found.feature_names == ("numbers", "c")
        assert_within_errors(found, exact)


@models
@pytest.mark.parametrize("exact_orderings", ["auto", "never"])
def test_local_values_are_exact_within_their_errors(model, exact_orderings):
    worth = world.expected(model, STATES[:64])
    exact = world.shapley(worth).T
    options = {"n_draws": 256, "n_replicates": 8, "random_state": 0}
    played = OutputGame(model, world.ExactSampler().fit(X_TRAIN), X[:64], **options)
    stopping = as_stopping(n_orderings=60)
    found = run_local(played, exact=exact_orderings, stopping=stopping, random_state=0)
    off = np.abs(found.values - exact)
    assert (off <= 5.0 * found.se + 0.005 * np.ptp(exact)).all()
    assert np.sqrt((off**2).mean()) <= 0.01 * np.ptp(exact)
