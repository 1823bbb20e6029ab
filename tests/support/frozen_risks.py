"""Risks of small games of every kind, with their first levels, which must not change.

``python tests/support/frozen_risks.py`` prints them as JSON, for ``tests/games/frozen_risks.json``.
A change of one of them is either a mistake, or one that the changelog tells.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from dsage import Graph
from dsage.games import Difference, Grouped, LossGame, OutputGame
from dsage.games.redrawn import Redrawn
from dsage.models import as_loss, as_model
from dsage.samplers import Gaussian, GaussianCopula, Interventional, Marginal, Mix, Neighbors

NAMES = list("abcd")
_RNG = np.random.default_rng(11)
_ROOT = np.array([[1.0, 0, 0, 0], [0.6, 0.8, 0, 0], [0.3, -0.5, 0.9, 0], [0, 0.4, 0.2, 1.1]])
TRAIN = pd.DataFrame(_RNG.normal(size=(150, 4)) @ _ROOT.T, columns=NAMES)
X = pd.DataFrame(_RNG.normal(size=(20, 4)) @ _ROOT.T, columns=NAMES)
ROWS = np.array([3, 17, 0, 8, 11])
KNOWN = np.array(
    [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 1], [1, 1, 0, 1], [0, 0, 1, 0], [1, 1, 1, 1]], dtype=bool
)
ORDERS = np.array([[2, 0, 3, 1], [1, 0, 2, 3]])
NEEDED = np.array([[1, 1, 0, 1, 1], [1, 1, 1, 1, 1]], dtype=bool)
GAUSSIAN = Gaussian.from_moments(np.array([0.1, 0, 0, -0.2]), _ROOT @ _ROOT.T, NAMES)
MARGINAL = Marginal().fit(TRAIN)
COPULA = GaussianCopula().fit(TRAIN)
MIX = Mix(random_state=0).fit(TRAIN)


def curved(rows):
    rows = np.asarray(rows)
    return np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2] + 0.3 * rows[:, 3] ** 2


def nearly_linear(rows):
    return np.asarray(rows) @ [1.0, -0.5, 0.3, 0.8] + 0.01 * np.sin(9 * np.asarray(rows)[:, 0])


def positive(rows):
    return np.exp(0.5 * np.tanh(curved(rows)))


def chances(rows):
    score = 1.5 * np.asarray(rows)[:, 0] - np.abs(np.asarray(rows)[:, 1])
    return np.stack([1 / (1 + np.exp(score)), 1 / (1 + np.exp(-score))], axis=1)


def steep_chances(rows):
    p = 1 / (1 + np.exp(-np.asarray(rows) @ [3.0, -2.0, 1.5, 1.0]))
    return np.stack([1 - p, p], axis=1)


def flat_chances(rows):
    p = np.clip(0.5 + 0.03 * np.asarray(rows).sum(axis=1), 0.01, 0.99)
    return np.stack([1 - p, p], axis=1)


def three(rows):
    rows = np.asarray(rows)
    scores = np.stack([rows[:, 0], rows[:, 1] ** 2 - 1, rows[:, 2] - rows[:, 3]], axis=1)
    exps = np.exp(scores)
    return exps / exps.sum(axis=1, keepdims=True)


def two_numbers(rows):
    return np.stack([curved(rows), nearly_linear(rows)], axis=1)


def classes_of(predict):
    return np.argmax(predict(X) + 0.2 * np.sin(np.arange(20))[:, None], axis=1)


def _linear():
    model = LinearRegression().fit(TRAIN, nearly_linear(TRAIN))
    model.coef_, model.intercept_ = np.array([1.0, -0.5, 0.25, 0.75]), 0.125
    return model


def _logistic(n_classes):
    labels = np.arange(150) % n_classes
    model = LogisticRegression().fit(TRAIN, labels)
    model.coef_ = np.round(np.cos(np.arange(model.coef_.size)), 2).reshape(model.coef_.shape)
    model.intercept_ = np.linspace(-0.5, 0.5, len(model.coef_))
    return model


def _tree():
    return DecisionTreeRegressor(max_depth=3, random_state=0).fit(TRAIN, curved(TRAIN))


Y = curved(X) + 0.5 * np.cos(np.arange(20))


def of(model, sampler=GAUSSIAN, y=Y, loss="squared_error", **options):
    """The numbers of a game of losses."""
    options = {"random_state": 0, **options}

    def made():
        return numbers_of_game(LossGame(model, sampler, X, y, loss=loss, **options))

    return made


def levels_from(level):
    """A cheap game, its own first level, and so on."""
    while level is not None:
        yield level
        level = level.first_level()


def numbers_of_game(game):
    """Risks, and those of games that belong to this one."""
    found = {
        "shape": [game.n_replicates, game.is_drawn, game.has_paths, game.has_dear_rows],
        "scale": [game.risk_scale],
        "risks": game.risks(KNOWN, ROWS, 1),
    }
    if game.has_paths:
        found["paths"] = game.path_risks(ORDERS, ROWS, 1, NEEDED)[NEEDED]
    if not game.is_drawn:
        found["means"] = game.mean_risks(KNOWN)
    for number, first in enumerate(game.first_levels()):
        for depth, level in enumerate(levels_from(first)):
            name = f"level {number}.{depth} {type(level).__name__}"
            found[name] = [*level.mean_risks(KNOWN), *level.mean_path_risks(ORDERS).ravel()]
            found[name] += [*level.risks(KNOWN, ROWS).ravel(), level.cost]
    for name, more in (("apart", game.apart()), ("bias", game.draw_bias())):
        if more is not None:
            found[name] = more.risks(KNOWN, ROWS, 1)
    if isinstance(game, LossGame):
        found["ends"] = np.stack([game.losses, game.base_losses, *game.end_losses()])
    found["predicted"] = [game.n_predicted]
    return found


def _output(model, sampler=GAUSSIAN, **options):
    def made():
        game = OutputGame(model, sampler, X, random_state=0, background=TRAIN, **options)
        linear = game.linear_game()
        found = {"base": [game.base_value]}
        if linear is not None:
            steps = linear.path_coefficients(ORDERS)
            found["coefficients"] = [*linear.coefficients(KNOWN).ravel(), *steps.ravel()]
            found["outputs"] = linear.outputs(steps[0], ROWS)
        return found | numbers_of_game(game)

    return made


def _redrawn():
    loss = as_loss("absolute_error")
    game = Redrawn(as_model(curved, loss), GAUSSIAN, X, Y, loss=loss, n_draws=6, random_state=0)
    return numbers_of_game(game)


def mixed(rows):
    """A table with a class of many levels, another of two, and missing values."""
    rng = np.random.default_rng(rows)
    level = np.minimum(rng.geometric(0.18, rows), 16)
    number = rng.normal(size=rows) + 0.2 * level
    number[rng.random(rows) < 0.15] = np.nan
    size = np.where(rng.random(rows) < 0.3, "small", "large")
    frame = pd.DataFrame({"level": [f"l{each:02d}" for each in level], "number": number})
    return frame.assign(size=size, other=rng.normal(size=rows))


def of_mixed(rows):
    level = rows["level"].astype(str).str[1:].astype(float).to_numpy()
    number = rows["number"].to_numpy(dtype=float)
    small = rows["size"].astype(str).to_numpy() == "small"
    return 0.3 * level + np.nan_to_num(number, nan=2.0) ** 2 - small * rows["other"].to_numpy()


def _mixed(make_sampler, **options):
    train, few = mixed(400), mixed(20)
    sampler = make_sampler().fit(train)
    options = {"loss": "squared_error", "random_state": 0, **options}
    predict = options.pop("predict", of_mixed)
    return numbers_of_game(LossGame(predict, sampler, few, options.pop("y", Y), **options))


def _mixed_chances(rows):
    p = 1 / (1 + np.exp(2.0 - of_mixed(rows)))
    return np.stack([1 - p, p], axis=1)


def _causal(model, y=Y):
    graph = Graph([*NAMES, "y"], [("a", "b"), ("b", "c"), ("a", "d"), ("c", "y")])
    sampler = Interventional(sampler=GAUSSIAN, graph=graph, target="y").fit(TRAIN)
    game = LossGame(model, sampler, X, y, loss="squared_error", random_state=0)
    level, doubled = game.first_level(), np.concatenate([KNOWN & KNOWN[::-1], KNOWN], axis=1)
    found = {"risks": game.risks(doubled, ROWS, 1), "plain": game.risks(KNOWN, ROWS, 1)}
    return found | {"level": [*level.mean_risks(doubled), *level.risks(doubled, ROWS).ravel()]}


def _wrapped():
    one, other = (
        LossGame(model, GAUSSIAN, X, Y, loss="squared_error", random_state=0)
        for model in (curved, nearly_linear)
    )
    grouped = Grouped(Difference(one, other), {"two": ["a", "d"]})
    known = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    level = grouped.first_level()
    return {
        "risks": grouped.risks(known, ROWS, 1),
        "level": level.mean_risks(known),
        "scale": [grouped.risk_scale, grouped.n_predicted],
    }


def games() -> dict[str, Callable[[], dict]]:
    """Return the games by name; each gives arrays of numbers by name."""
    two, several = classes_of(chances), classes_of(three)
    weights = np.linspace(0.5, 2.0, 20)
    both = np.stack([Y, nearly_linear(X) + 1], axis=1)
    return {
        "squared error": of(curved),
        "squared error, weights": of(curved, sample_weight=weights, n_draws=12, n_replicates=3),
        "squared error, independent": of(curved, noise="independent", draw_control="none"),
        "squared error, nearly linear": of(nearly_linear),
        "squared error, copula": of(curved, COPULA),
        "squared error, marginal": of(curved, MARGINAL),
        "squared error, mix": of(curved, MIX),
        "two outputs, mix": of(two_numbers, MIX, y=both, n_draws=6),
        "two outputs, marginal": of(two_numbers, MARGINAL, y=both, n_draws=6),
        "squared error, two outputs": of(two_numbers, y=both),
        "absolute error": of(curved, loss="absolute_error"),
        "absolute error, two outputs": of(two_numbers, y=both, loss="absolute_error", n_draws=6),
        "poisson": of(positive, y=np.round(positive(X)), loss="poisson"),
        "poisson, marginal": of(positive, MARGINAL, y=np.round(positive(X)), loss="poisson"),
        "gamma": of(positive, y=positive(X) + 0.1, loss="gamma"),
        "cross entropy": of(chances, y=two, loss="cross_entropy"),
        "cross entropy, steep": of(steep_chances, y=two, loss="cross_entropy"),
        "cross entropy, steep, weights": of(
            steep_chances, y=two, loss="cross_entropy", sample_weight=weights
        ),
        "brier, steep": of(steep_chances, y=two, loss="brier"),
        "cross entropy, nearly linear": of(flat_chances, y=two, loss="cross_entropy"),
        "cross entropy, marginal": of(chances, MARGINAL, y=two, loss="cross_entropy"),
        "cross entropy, three classes": of(three, y=several, loss="cross_entropy"),
        "three classes, marginal": of(three, MARGINAL, y=several, loss="cross_entropy"),
        "brier": of(chances, y=two, loss="brier", sample_weight=weights),
        "brier, three classes": of(three, y=several, loss="brier"),
        "zero-one": of(three, y=several, loss="zero_one", n_draws=12, n_replicates=3),
        "linear": of(_linear()),
        "linear, marginal": of(_linear(), MARGINAL),
        "logistic": of(_logistic(2), y=two, loss="cross_entropy"),
        "logistic, marginal": of(_logistic(2), MARGINAL, y=two, loss="cross_entropy"),
        "logistic, three classes": of(_logistic(3), y=several, loss="cross_entropy"),
        "logistic, three, marginal": of(_logistic(3), MARGINAL, y=several, loss="cross_entropy"),
        "tree, marginal": of(_tree(), MARGINAL),
        "output": _output(curved),
        "output, mix": _output(curved, MIX),
        "output, marginal, curved": _output(curved, MARGINAL),
        "output, linear": _output(_linear()),
        "output, logistic": _output(_logistic(2)),
        "output, marginal": _output(_tree(), MARGINAL),
        "mixed": lambda: _mixed(Neighbors),
        "mixed, marginal": lambda: _mixed(
            Marginal, predict=_mixed_chances, y=two, loss="cross_entropy"
        ),
        "redrawn": _redrawn,
        "causal": lambda: _causal(as_model(_linear().predict, "squared_error", affine=True)),
        "causal, drawn": lambda: _causal(curved),
        "causal, two outputs": lambda: _causal(two_numbers, both),
        "grouped difference": _wrapped,
    }


def numbers_of(make: Callable[[], dict]) -> dict[str, list[float]]:
    """Return the numbers of a game as lists."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = make()
    return {name: np.asarray(each, dtype=float).ravel().tolist() for name, each in found.items()}


if __name__ == "__main__":
    lines = []
    for name, make in games().items():
        # Ten digits are more than the tests compare.
        short = {
            part: [float(f"{number:.10g}") for number in numbers]
            for part, numbers in numbers_of(make).items()
        }
        lines.append(f" {json.dumps(name)}: {json.dumps(short)}")
    print("{\n" + ",\n".join(lines) + "\n}")  # noqa: T201
