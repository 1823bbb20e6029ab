"""Numbers of small tables from every part of the scores of graphs, which must not change.

``python tests/support/frozen_scores.py`` prints them as JSON, for
``tests/structure/frozen_scores.json``. A change of one of them is either a mistake, or one that the
changelog tells.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from unittest.mock import patch

import numpy as np
import pandas as pd

from dsage.data.table import Table
from dsage.graphs import Graph
from dsage.structure import blocks as blocks_module
from dsage.structure import last_check, screening
from dsage.structure.blocks import Blocks
from dsage.structure.counts import Counts
from dsage.structure.moments import Moments
from dsage.structure.scores import basis as basis_module
from dsage.structure.scores import conditional_gaussian, discrete, noise, softmax
from dsage.structure.scores import logistic as logistic_module
from dsage.structure.scores.approximation import Approximation
from dsage.structure.scores.basis import BasisScore
from dsage.structure.scores.bge import BGe
from dsage.structure.scores.block_gaussian import BlockRegressions
from dsage.structure.scores.choose import choose_score
from dsage.structure.scores.dirichlet import K2, BDeu
from dsage.structure.scores.gaussian import GaussianScore
from dsage.structure.scores.logistic import LogisticRegressions
from dsage.structure.scores.overlooked import OverlookedEdges
from dsage.structure.scores.products import ProductRegressions
from dsage.structure.source import as_data

N_ROWS = 240


@cache
def numbers():
    """Numbers: linear, curved, skewed, rounded, in small units, and a product of two."""
    rng = np.random.default_rng(3)
    a, b, c = rng.normal(size=(3, N_ROWS))
    d = 0.8 * a - 0.5 * b + 0.7 * rng.normal(size=N_ROWS)
    e = np.cos(2 * a) + 0.4 * rng.normal(size=N_ROWS)
    f = 1e-3 * np.exp(0.7 * c + 0.5 * rng.normal(size=N_ROWS))
    g = a * c + 0.5 * rng.standard_t(4, size=N_ROWS)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "e": e, "f": f, "g": g})


@cache
def mixed():
    """Numbers and classes of two, three and six levels."""
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(2, N_ROWS))
    skewed = np.exp(rng.normal(size=N_ROWS))
    three = np.array(list("uvw"))[
        (
            np.stack([np.zeros(N_ROWS), 1.2 * x, 1.5 * np.exp(-(w**2))])
            + rng.gumbel(size=(3, N_ROWS))
        ).argmax(axis=0)
    ]
    six = np.array(list("abcdef"))[np.minimum(rng.geometric(0.35, N_ROWS), 6) - 1]
    pair = np.where(rng.random(N_ROWS) < 0.3 + 0.4 * (three == "v"), "p", "q")
    count = rng.poisson(np.exp(0.4 * x))
    y = np.sin(2 * x) + (pair == "p") * w + 0.4 * (six == "b") + 0.5 * rng.normal(size=N_ROWS)
    return pd.DataFrame(
        {"x": x, "three": three, "w": w, "six": six, "skewed": skewed, "pair": pair}
    ).assign(count=count, y=y, flag=(skewed > 1).astype(int))


@cache
def gaps():
    """The same with missing numbers."""
    rng = np.random.default_rng(5)
    frame = numbers().copy()
    return frame.mask(rng.random(frame.shape) < [0.1, 0, 0, 0.05, 0, 0.2, 0])


@cache
def classes():
    rng = np.random.default_rng(6)
    one = rng.integers(0, 3, 150)
    two = np.where(rng.random(150) < 0.6, one, rng.integers(0, 4, 150))
    three = (one + two + (rng.random(150) < 0.2)) % 2
    frame = pd.DataFrame({"one": one, "two": two, "three": three, "four": rng.integers(0, 5, 150)})
    return frame.astype(str)


@cache
def blocks_of(make):
    return Blocks.from_table(as_data(make()))


def limits(module, values):
    """Set constants of a module in a context."""
    return patch.multiple(module, **values) if values else nullcontext()


def describe(blocks):
    """Numbers that depend on all entries of the blocks, but not on the signs of columns."""
    weights = np.cos(np.arange(len(blocks.sample)))
    return {
        "shape": [blocks.n_rows, blocks.scale, blocks.thinning, len(blocks.thinned)],
        "columns": [*blocks.is_class, *blocks.starts, *blocks.widths, *blocks.responses.ravel()],
        "offsets": np.nan_to_num(blocks.offsets, neginf=-1.0).ravel(),
        "sample": weights @ blocks.sample**2,
        "correlation": (blocks.correlation**2).sum(axis=0),
        "levels": [weights @ each for each in blocks.levels.values()],
        "absent": [weights[: len(each)] @ each for each in blocks.absent.values()],
    }


def _blocks(make, few=None, **options):
    def made():
        with limits(blocks_module, few):
            return describe(Blocks.from_table(as_data(make()), **options))

    return made


_FEW = {"_MAX_SAMPLE": 100, "_MAX_FITTED": 150, "_CHUNK_BYTES": 9_000, "_MAX_THINNED": 45}
SETS = ((), (0,), (2,), (0, 2), (1, 3), (0, 3, 5), (1, 2, 4, 6))


def families(score, sets=SETS):
    """Return what a score says of all nodes and some sets of parents."""
    n_nodes = len(score.names)
    found = {}
    for node in range(n_nodes):
        for parents in sets:
            if node in parents or max(parents, default=0) >= n_nodes:
                continue
            numbers = [score.family(node, parents), score.quick(node, parents)]
            numbers += [*score.additions(node, parents)]
            numbers += [*score.removals(node, parents)]
            growth, family = score.growth(node, parents)
            numbers += [*growth, family] if score.is_approximate else []
            found[f"{node} {parents}"] = numbers
    return found


def _scored(make_score, sets=SETS):
    return lambda: families(make_score(), sets)


def _basis(make, few_rows=2_000, **options):
    def made():
        with patch.object(basis_module, "_FEW_ROWS", few_rows):
            return BasisScore(as_data(make()), blocks_of(make), **options)

    return made


def _with_products(make, parents, few_rows=2_000):
    def made():
        with patch.object(basis_module, "_FEW_ROWS", few_rows):
            score = BasisScore(Table(make()), blocks_of(make))
            return families(score.near(parents), SETS[3:])

    return made


def _products():
    blocks = blocks_of(mixed)
    found = {}
    for response in (0, 1):
        made = ProductRegressions(blocks, response, [(0, 2), (0, 1), (5, 2), (4, 3), (6, 0)])
        for parents in ((0, 2), (0, 1, 2), (2, 4, 5), (1, 5)):
            for own in (np.array([blocks.responses[response, 7]]), blocks.columns(8)):
                columns, n_products = made.columns(parents)
                with_one, n_with = made.left_with(own, parents)
                without, n_without = made.left_without(own, parents)
                rest = [each for each in range(9) if each not in parents]
                name = f"{response} {parents} {len(own)} {own[0]}"
                found[name] = [n_products, made.left(own, columns), *with_one[rest], *n_with[rest]]
                found[name] += [*without, *n_without]
            found[f"{response} {parents} left"] = made.residuals(int(own[0]), columns)[::17]
            rows, inner = made.rows_of(columns)
            found[f"{response} {parents} rows"] = [*(rows**2)[::29].sum(axis=1), *(inner**2).sum(0)]
    return found


def _approximation(make):
    def made():
        near = Approximation(blocks_of(make))
        found = families(near)
        for node in range(len(near.names)):
            for parents in ((), (0,), (2, 4)):
                if node not in parents:
                    straight = near.straight(node, parents)
                    found[f"best {node} {parents}"] = [*near.best(node, parents), *straight]
        return found

    return made


def _regressions():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 12)) @ rng.normal(size=(12, 12))
    correlation = np.corrcoef(X.T)
    found = {}
    for name, sizes in (("even", (2, 2, 2, 2)), ("odd", (1, 3, 2, 2)), ("one", (1, 1, 1, 1))):
        ends = np.cumsum(sizes)
        parts = [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        for each, own in ((True, np.array([9, 11])), (False, np.array([9, 10, 11]))):
            made = BlockRegressions(correlation, parts, cache_bytes=9_000)
            for parents in ((), (1,), (0, 1), (0, 1, 3), (0, 3), (1,), (2, 3), (0, 1, 3)):
                numbers = [made.n_known(parents), *made.left(own, parents, each=each)]
                rest = [node for node in range(4) if node not in parents]
                grown, alone = made.grown(own, parents, each=each)
                numbers += [*grown[rest].ravel(), *alone]
                if parents:
                    numbers += [*made.left_without(own, parents, each=each).ravel()]
                    columns, slopes = made.slopes(own, parents)
                    numbers += [*columns, *slopes.ravel(), *made.left(own, parents, each=each)]
                found[f"{name} {each} {parents}"] = numbers
    return found


def _logistic():
    blocks = blocks_of(mixed)
    regressions = LogisticRegressions(blocks, 1.9)
    found = {}
    for node in (1, 5, 8):
        for parents in ((), (0,), (0, 2), (2, 6), (0, 2, 4), (3,)):
            fit = regressions.best(node, parents)
            gains = regressions.gains(node, parents)
            rest = [each for each in range(9) if each not in (node, *parents)]
            found[f"{node} {parents}"] = [
                fit.worth,
                *fit.columns,
                *gains[rest],
                *fit.odds[:, ::40].ravel(),
            ]
            found[f"{node} {parents} losses"] = regressions.losses(node, parents)
    return found


def _few_logistic():
    """With so few rows that parents start with one function each."""
    frame = mixed()[:50]
    made = LogisticRegressions(Blocks.from_table(Table(frame)), 1.2)
    parents = (0, 2, 4, 7)
    found = {"best": [made.best(5, parents).worth, *made.best(5, parents).columns]}
    found["losses"] = made.losses(5, parents)
    with patch.object(logistic_module, "_START", 1):
        short = LogisticRegressions(blocks_of(mixed), 1.9)
        found["other start"] = [short.best(1, (0, 2)).worth, *short.best(1, (0, 2)).columns]
    return found


def _overlooked():
    blocks = blocks_of(mixed)
    tests = OverlookedEdges(blocks, LogisticRegressions(blocks, 1.9))
    order = [0, 2, 4, 6, 3, 1, 5, 7]
    parents = [(), (0,), (), (), (), (1,), (0,), (0, 2), ()]
    found = {"level": [tests._level]}
    for at, node in enumerate(order):
        known = tests._known(parents[node])
        own = tests._residuals(node, parents[node], known)
        found[f"{node} own"] = [known.shape[1], *own[:, ::31].ravel()]
        left = basis_free(own, known)
        if at:
            tails = [tail for tail in order[:at] if tail not in parents[node]]
            if tails:
                found[f"{node} p"] = np.log(tests._test(node, left, tails, known))
        if not blocks.is_class[node]:
            tests._slopes[node] = left
    everywhere = np.ones((9, 9), dtype=np.bool_)
    after = OverlookedEdges(blocks, LogisticRegressions(blocks, 1.9)).find(
        parents, order, everywhere, 4
    )
    found["found"] = [10 * node + parent for node in range(9) for parent in after[node]]
    few = OverlookedEdges(Blocks.from_table(Table(mixed()[:120])), None)
    sizes = [few._known(each).shape[1] for each in ((0,), (0, 2), (0, 2, 4), (0, 1, 2, 3, 4, 7))]
    found["few"] = [few._level, *sizes]
    of_numbers = OverlookedEdges(blocks_of(numbers), None)
    found["numbers"] = [of_numbers._level, of_numbers._width]
    return found


def basis_free(columns, known):
    return columns - (columns @ known) @ known.T


def _noise():
    rng = np.random.default_rng(8)
    shapes = {
        "normal": rng.normal(size=300),
        "skewed": rng.gamma(2.0, size=300),
        "heavy": rng.standard_t(2.5, size=300),
        "edges": rng.uniform(size=300),
        "two": np.where(rng.random(300) < 0.4, -2.0, 2.0) + 0.5 * rng.normal(size=300),
        "rounded": np.round(rng.gamma(1.5, size=300), 1),
        "few": rng.exponential(size=12),
        "slightly": rng.normal(size=300) + 0.25 * rng.exponential(size=300),
    }
    found = {}
    for name, values in shapes.items():
        found[name] = [noise.shape_gain(values), noise.shape_gain(3 * values + 1, sharp=True)]
        found[f"{name} slopes"] = noise.density_slopes(values)[:, ::23].ravel()
        standard = (values - values.mean()) / values.std()
        found[f"{name} entropy"] = [noise._negentropy(standard)]
    return found


def _screened(make, parents, few=None, scale=1.0):
    def made():
        table = as_data(make() * scale)
        parents_of = [*parents, *[()] * (len(table.names) - len(parents))]
        with limits(screening, few):
            found = screening.find_suspects(table, parents_of, price=0.3, margin=0.1)
        return {"suspects": [[each.node, each.other, each.gain] for each in found]}

    return made


def _softmax():
    rng = np.random.default_rng(9)
    found = {}
    for n_levels in (2, 3, 5):
        X = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4))
        odds = X @ rng.normal(size=(4, n_levels)) + rng.gumbel(size=(200, n_levels))
        levels = odds.argmax(axis=1)
        for most in (400, 0):
            with patch.multiple(softmax, _MAX_CURVED=most, _CURVED_ROWS=60, _ROWS_PER_WEIGHT=3):
                value, made = softmax.softmax_fit(X, levels)
            found[f"{n_levels} {most}"] = [value, *made[:, ::37].ravel()]
        counts = np.bincount(levels, minlength=n_levels)
        fit = softmax._Fit(softmax._orthonormal(X, None)[0], levels, counts)
        flat = np.cos(np.arange(5.0 * (n_levels - 1)))
        loss, slope = fit._loss(flat)
        found[f"{n_levels} loss"] = [loss, *slope]
        found[f"{n_levels} curvature"] = fit._curvature(0.3 * flat)(slope)
        found[f"{n_levels} start"] = fit._start_curvature()(slope)
        with patch.object(softmax, "_MAX_CURVED", 0):
            found[f"{n_levels} bound"] = fit._start_curvature()(slope)
    return found


def _unsolved():
    """Levels that the columns separate: weights grow until the steps end."""
    x = np.linspace(-1, 1, 80)
    found = {}
    for most in (400, 0):
        with patch.object(softmax, "_MAX_CURVED", most):
            value, odds = softmax.softmax_fit(x[:, None], (x > 0.1).astype(np.intp))
            found[str(most)] = [value, *odds[0, ::11]]
    return found


def _gaussian():
    frame = numbers().assign(copy=numbers()["a"] + numbers()["b"])
    score = GaussianScore(Moments.from_frame(frame), penalty=2.5, cache_bytes=4_000)
    found = families(score, (*SETS, (0, 1, 7), (1, 2, 7)))
    plain = GaussianScore(Moments.from_frame(numbers()), penalty=2.5)
    ceilings = plain.ceilings([3, 0, 6, 2, 1, 5, 4])
    return found | {f"ceiling {rank}": ceilings.of(rank) for rank in range(7)}


def _conditional(limit=conditional_gaussian._CACHE_BYTES):
    def made():
        with patch.object(conditional_gaussian, "_CACHE_BYTES", limit):
            table = Table(mixed().drop(columns=["flag", "count"]))
            score = conditional_gaussian.ConditionalGaussian(table, penalty=2.0)
            return families(score, ((), (0,), (1,), (1, 5), (0, 3, 4), (1, 2, 3, 5)))

    return made


def _counts(make_score, limit=None):
    def made():
        with limits(discrete, limit and {"_KEY_BYTES": limit}):
            score = make_score(Counts.from_frame(classes()))
            return families(score, ((), (0,), (1,), (0, 1), (1, 3), (0, 1, 3)))

    return made


def _last_check():
    found = {}
    graphs = {
        "empty": [],
        "parents": [("x", "y"), ("three", "y")],
        "middle": [("x", "y"), ("y", "count"), ("count", "skewed"), ("w", "x")],
    }
    blocks = blocks_of(mixed)
    place = {name: node for node, name in enumerate(blocks.names)}
    for name, edges in graphs.items():
        graph = Graph(blocks.names, edges)
        for n_folds in (0, 3):
            for least in (0.0, 0.02):
                with patch.multiple(last_check, _NEGLIGIBLE=least, _LEVEL=1e9):
                    made = last_check.reject_claims(graph, blocks, "y", n_folds=n_folds)
                    found[f"{name} {n_folds} {least}"] = [
                        number
                        for each in made
                        for number in (place[each.tail], place[each.head], np.log(each.p_value))
                    ]
                    known = last_check._known(blocks, [0, 1], n_folds, stepped=True)
                    pairs = last_check._test_pairs(blocks, 7, [0, 1], ["w", "six", "pair"], known)
                    found[f"pairs {n_folds} {least}"] = [
                        number
                        for each in pairs
                        for number in (place[each.tail], np.log(each.p_value))
                    ]
                    found[f"known {n_folds}"] = [known.basis.shape[1], known.share_left]
    with patch.object(last_check, "_LEVEL", 0.01):
        made = last_check.reject_claims(Graph(blocks.names, []), blocks, "three")
        found["class"] = [
            number for each in made for number in (place[each.tail], np.log(each.p_value))
        ]
    return found


def cases() -> dict[str, Callable[[], dict]]:
    """Return the cases by name; each gives arrays of numbers by name."""
    linear = [(), (), (), (0, 1), (), (), ()]
    pairs = [(), (), (), (0, 1), (), (), (0, 2)]
    of_classes = [(), (), (), (), (), (), (), (0, 2, 5), ()]
    return {
        "blocks, numbers": _blocks(numbers),
        "blocks, mixed": _blocks(mixed),
        "blocks, few rows are kept": _blocks(mixed, _FEW),
        "blocks, without correlations": _blocks(mixed, _FEW, correlate=False),
        "blocks, missing": _blocks(gaps, {"_MAX_THINNED": 100}),
        "regressions": _regressions,
        "approximation, numbers": _approximation(numbers),
        "approximation, mixed": _approximation(mixed),
        "basis, numbers": _scored(_basis(numbers)),
        "basis, missing": _scored(_basis(gaps), SETS[:4]),
        "basis, mixed": _scored(_basis(mixed), SETS[:5]),
        "basis, mixed, as with many rows": _scored(_basis(mixed, 100), SETS[:5]),
        "basis, classes": _scored(_basis(classes), SETS[:4]),
        "basis, products": _with_products(numbers, pairs),
        "basis, products with classes": _with_products(mixed, of_classes),
        "basis, products, as with many rows": _with_products(mixed, of_classes, 100),
        "products": _products,
        "logistic": _logistic,
        "logistic, few rows": _few_logistic,
        "overlooked": _overlooked,
        "noise": _noise,
        "screening": _screened(numbers, linear),
        "screening, in chunks": _screened(gaps, linear, {"_CHUNK": 2, "_MAX_ROWS": 100}),
        "screening, other units": _screened(numbers, linear, scale=1e-4),
        "softmax": _softmax,
        "softmax, separated": _unsolved,
        "gaussian": _gaussian,
        "ebic": _scored(lambda: choose_score(numbers(), "ebic")),
        "bge": _scored(lambda: BGe(Moments.from_frame(numbers()), iss_mu=1.5)),
        "conditional gaussian": _conditional(),
        "conditional gaussian, little memory": _conditional(2_000),
        "discrete": _counts(lambda counts: discrete.DiscreteLikelihood(counts, penalty=1.5)),
        "discrete, in chunks": _counts(
            lambda counts: discrete.DiscreteLikelihood(counts, penalty=1.5), 1_000
        ),
        "bdeu": _counts(lambda counts: BDeu(counts, iss=2.0)),
        "k2": _counts(K2),
        "last check": _last_check,
    }


def numbers_of(make: Callable[[], dict]) -> dict[str, list[float]]:
    """Return the numbers of a case as lists, with -1 for minus infinity."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = make()
    return {
        name: np.nan_to_num(np.asarray(each, dtype=float).ravel(), neginf=-1.0).tolist()
        for name, each in found.items()
    }


if __name__ == "__main__":
    lines = []
    for name, make in cases().items():
        # Nine digits are more than the tests compare.
        short = {
            part: [float(f"{number:.9g}") for number in numbers]
            for part, numbers in numbers_of(make).items()
        }
        lines.append(f" {json.dumps(name)}: {json.dumps(short)}")
    print("{\n" + ",\n".join(lines) + "\n}")  # noqa: T201
