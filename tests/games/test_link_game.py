from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression

from dsage.estimate import as_stopping, run
from dsage.games import LossGame
from dsage.games.additive import AdditiveRows
from dsage.games.base import prefixes
from dsage.games.block_game import BlockGame
from dsage.games.first_level import _unit_variance
from dsage.games.functions import Functions
from dsage.games.linear import LinearPredictor
from dsage.games.link_game import LinkGame
from dsage.games.links import Log, Probit, find_link
from dsage.models import as_loss
from dsage.samplers import Gaussian, GaussianCopula


def make_game(n_classes=2, loss="cross_entropy", n_rows=600):
    """Return the game of a forest whose classes follow from a sum of curves."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6)) @ (np.eye(6) + 0.4)
    score = 2 * X[:, 0] + 2 * np.tanh(2 * X[:, 1]) + X[:, 2] + rng.logistic(size=n_rows)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    model = RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(X, y)
    return LossGame(model, Gaussian().fit(X), X[:120], y[:120], loss=loss, random_state=0)


def make_clustered_game():
    """Return a game whose probabilities are not additive on any scale."""
    X, y = make_classification(
        300, 6, n_informative=4, n_redundant=0, n_classes=3, class_sep=0.6, random_state=0
    )
    model = RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(X, y)
    return LossGame(model, Gaussian().fit(X), X[:120], y[:120], random_state=0)


def make_count_game():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)) @ (np.eye(4) + 0.3)
    y = rng.poisson(np.exp(0.5 * X[:, 0] + 0.3 * np.abs(X[:, 1])))
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=40).fit(X, y)
    return LossGame(model, Gaussian().fit(X), X[:120], y[:120], loss="poisson", random_state=0)


MAKERS = {
    "two classes": make_game,
    "three classes": lambda: make_game(3),
    "counts": make_count_game,
}


def surpluses(game, orders, rows, epoch=0):
    """Return what each feature adds, the mean over orderings and rows: (n_orderings, features)."""
    risks = game.path_risks(orders, rows, epoch, np.ones((len(orders), orders.shape[1] + 1), bool))
    added = -np.diff(risks.mean(axis=(2, 3)), axis=1)
    out = np.empty_like(added)
    np.put_along_axis(out, orders, added, axis=1)
    return out


@pytest.mark.parametrize("kind", MAKERS)
def test_risks_along_orderings_are_those_of_the_coalitions(kind, monkeypatch):
    monkeypatch.setattr("dsage.games.first_level._BETTER", np.inf)
    game = MAKERS[kind]().first_level()
    assert isinstance(game, LinkGame)
    n = len(game.feature_names)
    orders = np.array([np.random.default_rng(k).permutation(n) for k in range(3)])
    rows = np.arange(5, 40)
    along = game.path_risks(orders, rows, 0, np.ones((3, n + 1), dtype=bool))
    known = prefixes(orders).reshape(-1, n)
    assert np.allclose(along, game.risks(known, rows).reshape(along.shape))
    means = game.risks(known, np.arange(game.n_rows)).mean(axis=(1, 2))
    assert np.allclose(game.mean_risks(known), means)
    assert np.allclose(game.mean_path_risks(orders).ravel(), means)


def test_it_is_more_similar_to_the_game_than_squared_errors_are():
    game = make_game()
    level = game.first_level()
    rng = np.random.default_rng(1)
    n = len(game.feature_names)
    orders = np.array([rng.permutation(n) for _ in range(40)])
    rows = np.arange(game.n_rows)
    own = surpluses(game, orders, rows)
    own -= own.mean(axis=0)

    def left(cheap):
        similar = surpluses(cheap, orders, rows)
        similar -= similar.mean(axis=0)
        slope = (own * similar).sum() / (similar**2).sum()
        return ((own - slope * similar) ** 2).sum() / (own**2).sum()

    assert left(level) < 0.8 * left(level.first_level())


def test_it_is_used_only_where_it_is_clearly_more_similar():
    assert isinstance(make_clustered_game().first_level(), BlockGame)


def test_values_do_not_depend_on_the_first_level():
    game = make_game()
    stopping = as_stopping(n_orderings=120)
    controlled = run(game, stopping=stopping, exact="never", random_state=0)
    plain = run(game, stopping=stopping, exact="never", first_level="none", random_state=1)
    z = (controlled.values - plain.values) / np.hypot(controlled.se, plain.se)
    assert np.abs(z).max() < 4
    assert (controlled.se < plain.se).mean() > 0.8


@pytest.mark.parametrize(("link", "inverse"), [(Probit(), norm.cdf), (Log(), np.exp)])
def test_means_are_those_of_normal_distributions(link, inverse):
    center, variance = np.array([0.4]), np.array([0.7])
    expected = quad(lambda e: inverse(e) * norm.pdf(e, 0.4, np.sqrt(0.7)), -9, 9)[0]
    assert np.isclose(np.atleast_1d(link.mean(center, variance))[-1], expected)


def test_probabilities_of_classes_come_back_as_they_were():
    p = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    # With several classes the way back is a quick approximation.
    assert np.allclose(Probit().mean(Probit().apply(p), np.zeros(3)), p, atol=5e-4)
    assert np.allclose(Probit().mean(Probit().apply(p[:, :1]), np.zeros(1))[:, 1], p[:, 0])


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        ("cross_entropy", Probit),
        ("brier", Probit),
        ("poisson", Log),
        ("squared_error", type(None)),
        ("zero_one", type(None)),
        ("absolute_error", type(None)),
    ],
)
def test_the_scale_follows_from_the_loss(loss, kind):
    assert isinstance(find_link(as_loss(loss)), kind)


def test_with_very_many_rows_the_game_of_squared_errors_is_cheaper(monkeypatch):
    monkeypatch.setattr("dsage.games.first_level._MOST_WORK", 100)
    assert not isinstance(make_game().first_level(), LinkGame)


def test_means_over_some_rows_are_those_over_all_rows_on_average(monkeypatch):
    rng = np.random.default_rng(0)
    n_rows, n_features = 600, 33
    X = rng.normal(size=(n_rows, n_features))
    score = X[:, 0] + X[:, 1]
    y = np.digitize(score, [-0.7, 0.7])
    model = LogisticRegression().fit(X, y)
    monkeypatch.setattr("dsage.games.first_level._BETTER", np.inf)
    game = LossGame(model, GaussianCopula().fit(X), X, y, random_state=0).first_level()
    assert isinstance(game, LinkGame)
    orders = np.array([rng.permutation(n_features) for _ in range(100)])
    found = game.mean_path_risks(orders)
    everything = np.arange(n_rows)
    needed = np.ones((len(orders), n_features + 1), dtype=bool)
    whole = game.path_risks(orders, everything, 0, needed).mean(axis=(2, 3))
    off = found - whole
    assert np.abs(off).max() > 1e-3
    z = off.mean(axis=0) / (off.std(axis=0, ddof=1) / np.sqrt(len(off)))
    assert np.abs(z).max() < 4
    # The rows depend on the ordering alone.
    np.testing.assert_array_equal(game.mean_path_risks(orders[5:7]), found[5:7])


def test_comparing_first_levels_counts_what_rows_have_in_common():
    rng = np.random.default_rng(0)
    common, alone = rng.normal(size=(400, 5, 1)), rng.normal(size=(400, 5, 16))
    for share in (0.0, 0.3):
        surpluses = share * common + alone
        surpluses -= surpluses.mean(axis=0)
        found = _unit_variance(surpluses, 64) / (400 * 5)
        assert found == pytest.approx(share**2 + 1 / 64, rel=0.1)


def test_a_better_scale_is_found_although_draws_are_noisy():
    X, y = load_breast_cancer(return_X_y=True)
    model = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X[:341], y[:341])
    game = LossGame(model, GaussianCopula().fit(X[:341]), X[341:], y[341:], random_state=0)
    assert isinstance(game.first_level(), LinkGame)


def made(n_features, n_rows, n_scaled=1, n_columns=10):
    """A game whose predictor is not used."""
    basis = SimpleNamespace(n_columns=n_columns)
    rows = SimpleNamespace(predictor=SimpleNamespace(basis=basis))
    names = tuple(f"x{at}" for at in range(n_features))
    scaled = np.random.default_rng(0).normal(size=(20, n_scaled))
    return LinkGame(rows, scaled, Probit(), None, names, np.ones(n_rows))


def test_with_many_features_256_rows_of_an_ordering_count():
    assert made(33, 600).cost == made(33, 256).cost > made(33, 255).cost
    assert made(32, 600).cost > made(32, 256).cost
    # A factor costs as much as the products of 512 rows, and an expected output a quarter.
    assert made(4, 512).cost == 10**2 * 2 + 0.25 * 512 * 4
    assert made(4, 128, n_scaled=3, n_columns=20).cost == 20**2 * 1.25 + 0.25 * 128 * 4 * 3
    assert made(33, 600)._some_rows(np.arange(33)).shape == (256,)
    assert made(32, 600)._some_rows(np.arange(32)).tolist() == list(range(600))
    assert made(33, 256)._some_rows(np.arange(33)).tolist() == list(range(256))


def test_each_row_belongs_to_as_many_orderings():
    game, rng = made(40, 300), np.random.default_rng(0)
    counts, begins = np.zeros(300), set()
    for _ in range(600):
        order = rng.permutation(40)
        some = game._some_rows(order)
        np.testing.assert_array_equal(some, np.unique(some))
        np.testing.assert_array_equal(some, game._some_rows(order.astype(np.int32)))
        counts[some] += 1
        begins.add(some.tobytes())
    assert counts.sum() == 600 * 256
    share = 256 / 300
    assert np.abs(counts - 600 * share).max() < 4.5 * np.sqrt(600 * share * (1 - share))
    assert len(begins) > 200


@pytest.mark.parametrize("n_scaled", [1, 3])
def test_risks_are_those_of_regressions_on_the_known_features(n_scaled):
    rng = np.random.default_rng(2)
    drawn = rng.normal(size=(200, 3)) @ (np.eye(3) + 0.5)
    scaled = drawn @ rng.normal(size=(3, n_scaled)) + 0.5 * rng.normal(size=(200, n_scaled)) + 0.3
    X = 1.5 * rng.normal(size=(12, 3))
    codes = rng.integers(max(n_scaled, 2), size=12)
    functions = Functions.fit(drawn, np.zeros(3, int), 1)
    predictor = LinearPredictor(functions(drawn), scaled, np.ones(200))
    rows = AdditiveRows(predictor, functions, X)

    def losses(predicted, at):
        return -np.log(predicted[:, np.arange(len(at)), codes[at]])

    under = made(3, 12)
    game = LinkGame(rows, scaled, Probit(), losses, tuple("abc"), np.ones(12), under)
    assert game.first_level() is under
    known = prefixes(np.array([[2, 0, 1], [0, 1, 2]])).reshape(-1, 3)
    some = np.array([7, 1, 11, 4])
    for coalition, found in zip(known, game.risks(known, some), strict=True):
        here = np.column_stack([np.ones(200), drawn[:, coalition]])
        slopes, *_ = np.linalg.lstsq(here, scaled, rcond=None)
        variance = (scaled - here @ slopes).var(axis=0)
        center = np.column_stack([np.ones(4), X[some][:, coalition]]) @ slopes
        center = np.clip(center, scaled.min(axis=0), scaled.max(axis=0))
        p = norm.cdf(center / np.sqrt(1 + variance))
        p = np.column_stack([1 - p, p]) if n_scaled == 1 else p / p.sum(axis=1, keepdims=True)
        wanted = -np.log(p[np.arange(4), codes[some]])
        np.testing.assert_allclose(found[:, 0], wanted, atol=2e-3 if n_scaled > 1 else 1e-4)
