"""Draws, parameters and scores of samplers on tiny tables, which must not change.

``python tests/support/frozen_samplers.py`` prints them as JSON, for
``tests/samplers/frozen_samplers.json``. A change of one of them is either a mistake, or one that
the changelog tells.
"""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeClassifier

import sampler_cases
from dsage import Graph
from dsage._random import Streams
from dsage.data.groups import Groups
from dsage.data.layout import Layout
from dsage.samplers import (
    SAMPLERS,
    Gaussian,
    GaussianCopula,
    GaussianMixture,
    Interventional,
    Marginal,
    Mix,
    Neighbors,
    Sequential,
    choose_sampler,
    evaluate,
)
from dsage.samplers import costs as counted
from dsage.samplers.clustered import ClusteredGaussian
from dsage.samplers.coalitions import prefix_coalitions, random_coalitions
from dsage.samplers.comparing import Table
from dsage.samplers.noise import Noise
from dsage.samplers.splits import make_blocks

N_ROWS, N_DRAWS = 4, 6
# In the place of a missing number.
_MISSING = -7.25


def numbers(n_rows=160, seed=0):
    """Two clusters of curved numbers."""
    rng = np.random.default_rng(seed)
    side = np.where(rng.random(n_rows) < 0.4, -2.0, 1.5)
    z = rng.normal(size=(n_rows, 4)) @ np.array(
        [[1.0, 0.6, 0, 0.3], [0, 0.8, -0.5, 0], [0, 0, 0.7, 0.2], [0, 0, 0, 0.9]]
    )
    return pd.DataFrame(
        {"a": z[:, 0] + side, "b": np.exp(z[:, 1] / 2), "c": z[:, 2] - side, "d": 5 * z[:, 3] + 100}
    )


def gappy(n_rows=160, seed=0):
    """Numbers, some of them missing."""
    rng = np.random.default_rng(seed + 1)
    found = numbers(n_rows, seed)
    found["b"] = found["b"].mask((rng.random(n_rows) < 0.2) & (found["a"] > 0))
    found["d"] = found["d"].mask(rng.random(n_rows) < 0.1)
    return found


def mixed(n_rows=240, seed=0):
    """A table with everything: special values, copies, columns that exclude each other, codes."""
    rng = np.random.default_rng(seed + 7)
    common = rng.normal(size=n_rows)
    size = np.digitize(common + 0.7 * rng.normal(size=n_rows), [-0.6, 0.5])
    spent = np.where(rng.random(n_rows) < 0.3, 0.0, np.exp(common + 0.4 * rng.normal(size=n_rows)))
    spent = np.where(rng.random(n_rows) < 0.08, np.nan, spent)
    height = 2 * common + rng.normal(size=n_rows)
    return pd.DataFrame(
        {
            "height": height,
            "size": pd.Categorical(np.array(["s", "m", "l"])[size], ["s", "m", "l"]),
            "spent": spent,
            "is_s": (size == 0).astype(float),
            "is_m": (size == 1).astype(float),
            "rooms": 1 + rng.poisson(np.exp(0.4 * common)),
            "copy": height,
            "word": np.where(common + rng.normal(size=n_rows) > 0.4, "yes", "no"),
        }
    )


def wide(n_rows=700, seed=0):
    """A class of many categories, one of as many as are not grouped, gaps, and a constant."""
    rng = np.random.default_rng(seed + 3)
    level = np.minimum(rng.geometric(0.06, n_rows) - 1, 59)
    level[:60] = np.arange(60)
    other = np.minimum(rng.geometric(0.1, n_rows) - 1, 47)
    other[:48] = np.arange(48)
    number = rng.normal(size=n_rows) + np.sin(level)
    number[rng.random(n_rows) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "number": number,
            "level": pd.Categorical.from_codes(level, [f"l{at:02d}" for at in range(60)]),
            "other": pd.Categorical.from_codes(other, [f"o{at:02d}" for at in range(48)]),
            "constant": np.full(n_rows, 2.5),
            "weight": 0.5 * np.cos(level) + 0.1 * other + rng.normal(size=n_rows),
        }
    )


def classes(n_rows=200, seed=0):
    """Classes that form a chain."""
    rng = np.random.default_rng(seed + 5)
    one = rng.integers(3, size=n_rows)
    two = np.where(rng.random(n_rows) < 0.8, one, rng.integers(3, size=n_rows))
    three = np.where(rng.random(n_rows) < 0.85, two % 2, rng.integers(2, size=n_rows))
    alone = rng.integers(4, size=n_rows)
    parts = {"one": one, "two": two, "three": three, "alone": alone}
    return pd.DataFrame({name: [f"k{at}" for at in part] for name, part in parts.items()})


def copied(n_rows=120, seed=0):
    """A column that follows from two others."""
    found = numbers(n_rows, seed)
    return found.assign(e=2 * found["a"] - found["c"])


TABLES = {
    "numbers": numbers,
    "gappy": gappy,
    "mixed": mixed,
    "wide": wide,
    "classes": classes,
    "copied": copied,
}


# Rows with gaps and special values, and with values and categories that training lacks.
_CHANGED = {
    "gappy": [("b", 1, np.nan), ("d", 2, np.nan)],
    "mixed": [
        ("spent", 0, 0.0),
        ("spent", 1, np.nan),
        ("rooms", 3, 40),
        ("size", 2, "m"),
        ("is_s", 2, 0.0),
        ("is_m", 2, 1.0),
    ],
    "wide": [("number", 1, np.nan), ("level", 2, "l03"), ("level", 3, "new")],
}


def _rows(kind, n_rows=N_ROWS):
    """Rows to draw for, which are not among the training rows."""
    rows = TABLES[kind](1000, seed=1).iloc[40 : 40 + n_rows].reset_index(drop=True)
    for name, at, value in _CHANGED.get(kind, ()):
        if isinstance(value, str):
            rows[name] = rows[name].astype(object)
        rows.loc[at, name] = value
    return rows


def digest(draws):
    """A sum over draws with weights, for each row and feature: each draw changes it."""
    draws = np.where(np.isnan(draws), _MISSING, draws)
    return np.einsum("rdf,d->rf", draws, np.cos(1.0 + np.arange(draws.shape[1])))


def coalitions(n_features):
    """The empty coalition, every second feature, the others, and all but the last."""
    at = np.arange(n_features)
    return [at < 0, at % 2 == 0, at % 2 == 1, at < n_features - 1, at > 0]


def noise_of(sampler, n_rows=N_ROWS):
    n_features = len(sampler.feature_names_) + sampler.n_hidden
    return np.random.default_rng(1).uniform(1e-9, 1 - 1e-9, (n_rows, N_DRAWS, n_features))


def numbers_of_sampler(sampler, rows):
    """All that a fitted sampler can return."""
    found = {}
    noise = noise_of(sampler, len(rows))
    n_features = len(sampler.feature_names_)
    every = coalitions(n_features)
    found["draws"] = np.stack([digest(sampler.draw(rows, known, noise)) for known in every])
    weights = np.cos(np.arange(2.0 * n_features)).reshape(n_features, 2)
    if sampler.has_mean:
        full = rows.fillna(rows.mean(numeric_only=True))
        # Classes have no means.
        is_class = sampler.layout_.n_categories > 0
        found["means"] = np.stack([sampler.mean(full, known | is_class) for known in every])
        effects = [sampler.mean_effects(known, weights) for known in every]
        if effects[0] is not None:
            found["effects"] = np.concatenate([np.ravel(part) for each in effects for part in each])
    if sampler.has_sums:
        laws = [sampler.sum_law(rows.to_numpy(), known, weights) for known in every]
        found["sums"] = np.concatenate([np.ravel(part) for law in laws for part in law])
    if sampler.has_orderings:
        found |= _along(sampler, rows, noise)
    if hasattr(sampler, "_bytes_per_row"):
        found["bytes"] = [sampler._bytes_per_row(known, 7) for known in every[:-1]]
    return found


def _along(sampler, rows, noise):
    """What an ordering returns."""
    n_features = len(sampler.feature_names_)
    ordering = sampler.ordering(np.random.default_rng(2).permutation(n_features))
    prepared = sampler.prepare(noise)
    steps = [digest(draws) for _, draws in ordering.prefixes(rows, prepared)]
    some = [digest(draws) for _, draws in ordering.prefixes(rows, prepared, [1, n_features - 1])]
    found = {"prefixes": np.stack(steps), "some": np.stack(some)}
    if sampler.has_latent:
        found["latent"] = np.concatenate(
            [
                np.ravel(part)
                for _, _, latent in ordering.latent_prefixes(rows, prepared, [0, 2])
                for part in (latent.variables, latent.scores[..., :2], *latent[2:])
            ]
        )
    if sampler.n_scores:
        weights = np.sin(1.0 + np.arange(2.0 * sampler.n_scores)).reshape(-1, 2)
        sums = []
        for _, draws, sum_ in ordering.projected_prefixes(rows, prepared, weights, [0, 1, 3]):
            sums += [digest(draws), sum_.drawn[..., :2]]
            sums += [_component_moments(sum_)]
        found["projected"] = np.concatenate([np.ravel(part) for part in sums])
    if sampler.has_sums:
        laws = ordering.sum_laws(rows.to_numpy(), np.eye(n_features)[:, :2])
        found["laws"] = np.concatenate([np.ravel(part) for law in laws for part in law])
    return found


def _component_moments(projected):
    """Means and second moments of sums."""
    shares = projected.shares
    means = (shares * projected.means).sum(axis=2)
    squares = (shares * (projected.means**2 + projected.variances)).sum(axis=2)
    return np.stack([means, squares])


def _case(make, kind, fit_rows=None):
    def made():
        rows = TABLES[kind]() if fit_rows is None else TABLES[kind](fit_rows)
        return numbers_of_sampler(make().fit(rows), _rows(kind))

    return made


def _far(make):
    """Draws given a number that is far away from all others."""

    def made():
        sampler, rows = make().fit(numbers()), _rows("numbers")
        known = np.arange(4) == 2
        draws = [
            digest(sampler.draw(rows.assign(c=value), known, noise_of(sampler)))[:, [0, 1, 3]]
            for value in (-1e4, 1e6)
        ]
        return {"draws": np.stack(draws)}

    return made


def _of_cases(case):
    def made():
        sampler = sampler_cases.fitted(case)
        return numbers_of_sampler(sampler, sampler_cases.rows_of(case).iloc[:N_ROWS])

    return made


def _mix(kind, n_rows=None, **options):
    """The parameters of a mixture, and its draws."""

    def made():
        rows = TABLES[kind]() if n_rows is None else TABLES[kind](n_rows)
        sampler = Mix(**options).fit(rows)
        fit, variables = sampler.fit_, sampler._drawer.variables
        parts = fit.components
        found = {
            "design": [fit.design.has_trees, fit.design.shrinkage, fit.design.size],
            "tried": list(fit.tried.values()),
            "parents": fit.trees.parents,
            "weights": parts.weights,
            "means": parts.means,
            "spreads": np.diagonal(parts.covariances, axis1=1, axis2=2),
            "tables": np.concatenate([np.ravel(each[:2]) for each in parts.tables] or [[]])[:400],
            "states": np.concatenate([each.state_of for each in variables.tables] or [[]]),
            "shares": np.concatenate([each.shares for each in variables.tables] or [[]]),
            "special": np.concatenate([each.special for each in variables.numbers] or [[]]),
            "read": np.concatenate(variables.read(sampler.layout_.encode(rows[:9])), axis=1),
        }
        return found | numbers_of_sampler(sampler, _rows(kind))

    return made


def curved(rows):
    rows = np.asarray(rows, dtype=float)
    return np.sin(rows[:, 0]) + rows[:, 1] ** 2 - rows[:, 2] * rows[:, 3] / 100


def two_outputs(rows):
    words = rows["one"].astype(str).to_numpy() == "k1"
    return np.stack([words, ~words & (rows["three"].astype(str).to_numpy() == "k0")], axis=1) * 1.0


def of_mixed(rows):
    spent = np.nan_to_num(rows["spent"].to_numpy(dtype=float), nan=1.0)
    return spent + rows["height"].to_numpy() * (rows["word"].astype(str).to_numpy() == "yes")


def _choice(kind, candidates, predict, n_rows=None, **options):
    """The scores of candidates, the decision and its words."""

    def made():
        rows = TABLES[kind]() if n_rows is None else TABLES[kind](n_rows)
        choice = choose_sampler(rows, candidates, predict=predict, seconds=1e4, **options)
        decision, scores = choice.decision, choice.scores
        parts = scores[[name for name in scores if "seconds" not in name]].select_dtypes("number")
        words = [choice.reason, *scores["verdict"], *decision.tied, *decision.out]
        numbers = decision.best_score, decision.difference, decision.se, decision.n_rows
        more = decision.best_msev or 0.0, decision.msev_difference, decision.msev_se
        return {
            "scores": parts.to_numpy(),
            "decision": [*numbers, *more],
            "chosen": _code(choice.name),
            "words": np.concatenate([_code(word) for word in words]),
        }

    return made


def _code(text):
    """A text as a number."""
    return [sum(ord(letter) * np.cos(at) for at, letter in enumerate(text))]


def _evaluation(sampler, kind, **options):
    def made():
        rows = TABLES[kind]()
        other = Marginal().fit(rows)
        test = _rows(kind, 30)
        found = evaluate(sampler().fit(rows), test, n_coalitions=6, n_draws=5, **options)
        against = evaluate(other, test, n_coalitions=6, n_draws=5, **options)
        return {
            "scores": [found.score, found.se],
            "frame": found.to_frame().select_dtypes("number").to_numpy(),
            "summary": found.summary().to_numpy(),
            "calibration": found.calibration.select_dtypes("number").to_numpy(),
            "compare": found.compare(against).to_numpy(),
        }

    return made


def _costs():
    found = {}
    for name, kind in SAMPLERS.items():
        fit = counted.fit_seconds(kind(), 300, 7)
        found[name] = [counted.draw_seconds(kind(), 3, 100, 7), -1.0 if fit is None else fit]
    found["unknown"] = [counted.draw_seconds(SAMPLERS, 3, 100, 7), counted.predict_seconds(50)]
    return found


def _blocks(kind, n_rows, n_coalitions, groups=None):
    def made():
        X = TABLES[kind](n_rows)
        layout = Layout.of(X)
        players = None if groups is None else Groups(groups, layout.names)
        table = Table.of(X, layout, players=players, max_rows=450, streams=Streams(3))
        found = []
        for block in make_blocks(table.parts, table.players, n_coalitions, table.streams):
            sizes = block.part, len(block.at), block.n_coalitions, block.n_pairs, block.n_features
            found += [*sizes, np.cos(block.at).sum()]
            for piece in block.pieces:
                order = np.arange(piece.known.size).reshape(piece.known.shape)
                known = (piece.known * np.cos(order)).sum()
                found += [len(piece.rows), *piece.weights[:2], piece.first_pair, piece.is_exact]
                found += [known, *piece.pairs(1)[:2]]
        parts = [(part.n_train, len(part.at), *np.cos(part.at)[:3]) for part in table.parts]
        return {"parts": parts, "blocks": found[:400]}

    return made


def _noise():
    found = {}
    for kind in ("sobol", "independent"):
        noise = Noise(Streams(2), 3, n_replicates=2, n_draws=6, kind=kind)
        found[kind] = noise(np.array([0, 255, 256, 700]), 1)[:, ::3]
    known = [random_coalitions(n, size, Streams(1)) for n, size in ((3, 20), (5, 4), (4, 9))]
    found["coalitions"] = np.concatenate([each.ravel() for each in known])
    rng = np.random.default_rng(0)
    pairs = [prefix_coalitions(n, size, rng) for n, size in ((3, 7), (3, 6), (5, 8), (70, 3))]
    found["prefixes"] = np.concatenate([np.ravel(part) for pair in pairs for part in pair])
    return found


def _clustered():
    truth = ClusteredGaussian.random(3, 2, 4, spread=2.0, random_state=1)
    rows = truth.sample(N_ROWS, random_state=2)
    rng = np.random.default_rng(4)
    noise = rng.random((N_ROWS, N_DRAWS, 4))
    draws = [digest(truth.draw(rows, known, noise)) for known in coalitions(4)]
    return {
        "parameters": np.concatenate(
            [truth.weights, *truth.means, truth.covariances.ravel(), truth.child.ravel()]
        ),
        "rows": truth.layout_.encode(rows),
        "draws": np.stack(draws),
    }


_GRAPH = Graph([*"abcd", "y"], [("a", "b"), ("b", "y"), ("y", "d"), ("c", "d")], [("a", "c")])


def _causal(sampler, kind="numbers"):
    def made():
        X = TABLES[kind]()
        y = X["a"] - X["d"] / 50 + np.cos(np.arange(len(X)))
        fitted = Interventional(sampler=sampler(), graph=_GRAPH, target="y").fit(X, y)
        return numbers_of_sampler(fitted, _rows(kind))

    return made


_BOTH = {"both": ["is_s", "is_m"]}


def cases() -> dict[str, Callable[[], dict]]:
    """Return the cases by name; each gives arrays of numbers by name."""
    quick = functools.partial
    named = {f"all, {case}": _of_cases(case) for case in sampler_cases.CASES}
    few = [Gaussian(), GaussianCopula(), Neighbors()]
    some = [Marginal(), Sequential(random_state=0), Neighbors()]
    return named | {
        "mix, numbers": _mix("numbers"),
        "mix, gappy": _mix("gappy", n_components=2, n_fits=2),
        "mix, gappy, automatic": _mix("gappy", n_fits=2),
        "mix, mixed": _mix("mixed", n_components=2, n_fits=1),
        "mix, mixed, automatic": _mix("mixed", n_fits=1),
        "mix, wide": _mix("wide", n_components=2, n_fits=1),
        "mix, classes": _mix("classes", n_fits=2),
        "mix, far": _far(quick(Mix, n_components=3, n_fits=1)),
        "mixture, far": _far(quick(GaussianMixture, n_components=3)),
        "mix, few rows": _mix("mixed", 15),
        "gaussian, oas": _case(quick(Gaussian, covariance="oas"), "numbers"),
        "gaussian, gappy": _case(Gaussian, "gappy"),
        "gaussian, copied": _case(Gaussian, "copied"),
        "copula, few quantiles": _case(quick(GaussianCopula, n_quantiles=20), "numbers"),
        "copula, copied": _case(quick(GaussianCopula, covariance="ledoit-wolf"), "copied"),
        "copula, gappy": _case(GaussianCopula, "gappy"),
        "mixture, numbers": _case(GaussianMixture, "numbers"),
        "mixture, tied": _case(
            quick(GaussianMixture, n_components=2, covariance_type="tied"), "numbers"
        ),
        "mixture, diagonal": _case(quick(GaussianMixture, covariance_type="diag"), "copied"),
        "mixture, spherical": _case(
            quick(GaussianMixture, n_components=3, covariance_type="spherical"), "numbers"
        ),
        "neighbors, mixed": _case(Neighbors, "mixed"),
        "neighbors, copied": _case(quick(Neighbors, n_neighbors=9), "copied"),
        "neighbors, narrow": _case(quick(Neighbors, bandwidth=0.2), "classes"),
        "marginal, mixed": _case(quick(Marginal, joint=False), "mixed"),
        "sequential, mixed": _case(quick(Sequential, random_state=0), "mixed"),
        "sequential, wide": _case(quick(Sequential, random_state=0), "wide"),
        "sequential, few rows": _case(
            quick(Sequential, random_state=0, residuals="gaussian", order=list("cadb")),
            "numbers",
            25,
        ),
        "sequential, copied": _case(quick(Sequential, random_state=0), "copied"),
        "sequential, models": _case(
            quick(
                Sequential,
                random_state=0,
                classifier=DecisionTreeClassifier(max_depth=2),
                regressor=Ridge(),
            ),
            "mixed",
        ),
        "causal": _causal(Gaussian),
        "causal, sequential": _causal(quick(Sequential, random_state=0)),
        "causal, gappy": _causal(quick(Mix, n_components=1), "gappy"),
        "choice, numbers": _choice("numbers", few, curved, 500),
        "choice, folds": _choice("numbers", few, curved),
        "choice, no model": _choice("numbers", [*few, Marginal()], None, n_draws=4),
        "choice, classes": _choice("classes", some, two_outputs),
        "choice, mixed": _choice("mixed", some, of_mixed, groups=_BOTH, n_coalitions=3),
        "evaluation, numbers": _evaluation(Gaussian, "numbers"),
        "evaluation, gappy": _evaluation(Gaussian, "gappy", random_state=3),
        "evaluation, mixed": _evaluation(Neighbors, "mixed"),
        "costs": _costs,
        "blocks": _blocks("numbers", 500, 5),
        "blocks, folds": _blocks("classes", 130, 15),
        "blocks, groups": _blocks("wide", 410, 6, {"two": ["level", "constant"]}),
        "noise": _noise,
        "clustered": _clustered,
    }


def numbers_of(make: Callable[[], dict]) -> dict[str, list[float]]:
    """Return the numbers of a case as lists."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = make()
    return {
        name: np.nan_to_num(np.asarray(each, dtype=float), nan=_MISSING).ravel().tolist()
        for name, each in found.items()
    }


if __name__ == "__main__":
    lines = []
    for name, make in cases().items():
        # Eight digits are more than the tests compare.
        short = {
            part: [float(f"{number:.8g}") for number in numbers]
            for part, numbers in numbers_of(make).items()
        }
        lines.append(f" {json.dumps(name)}: {json.dumps(short)}")
    print("{\n" + ",\n".join(lines) + "\n}")  # noqa: T201
