"""Compare the variances of the kinds of orderings, for the same number of orderings.

Run: python -m benchmarks.engine_orderings [--seeds N] [--tiny]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.engine_design import Problem, Section, Sizes, problem
from benchmarks.table import markdown, publish
from dsage._random import Streams
from dsage.estimate import estimate
from dsage.games import LossGame
from dsage.games.base import Floats, Mask, Orders, by_feature, prefixes
from dsage.graphs import NoSeparation, Oracle
from dsage.orderings import KINDS, Herded, Orderings, Orthogonal, as_orderings

Make = Callable[[Streams], Orderings]
Risk = Callable[[Mask], Floats]

DEFAULT = "antithetic"
# Runs end at the first look after this many evaluations, pairs of a coalition and a row.
RUN_GRAPH, RUN_EVALUATED = "dag_s(3)", 20_000
CHALLENGERS = ("orthogonal", "herding")
COLUMNS = tuple(
    (estimand, level) for estimand in ("d-SAGE", "SAGE") for level in ("with", "without")
)


@dataclass(frozen=True)
class Case:
    """A graph of the paper, a model, and how much is measured on it.

    n_orderings : int
        Orderings of each kind and seed.
    n_rows, n_draws : int
        Evaluation rows, and draws for each where the model is not linear.
    """

    graph: str
    model: str
    n_orderings: int
    n_rows: int = 128
    n_draws: int = 4


CASES = (
    Case("dag_s(3)", "linear", 1_600),
    Case("dag_s(3)", "trees", 1_600),
    Case("dag_sm(3)", "linear", 400),
    Case("dag_sm(3)", "trees", 200, n_rows=16, n_draws=2),
)


def kinds(n_features: int) -> dict[str, Make]:
    """Return the kinds by name, and the two of Mitchell et al. with larger batches, too."""
    names = [str(at) for at in range(n_features)]
    made: dict[str, Make] = {kind: partial(_make, kind, names) for kind in KINDS}
    n_vectors = min(8, n_features - 1)
    made[f"orthogonal, {n_vectors} vectors"] = lambda streams: Orthogonal(
        n_features, streams, n_vectors=n_vectors
    )
    made["herding, 16 orderings"] = lambda streams: Herded(n_features, streams, n_orderings=16)
    return made


def _make(kind: str, names: list[str], streams: Streams) -> Orderings:
    return as_orderings(kind, names, streams)


def surpluses(risk: Risk, oracle: Oracle, orders: Orders) -> Floats:
    """Return the surpluses of the features in orderings, (n_orderings, n_features)."""
    boundaries, place = oracle.distinct_boundaries(prefixes(orders))
    risks = risk(boundaries)[place]
    return by_feature(risks[:, :-1] - risks[:, 1:], orders)


class Tabulated:
    """Mean risks over the rows, each computed once."""

    def __init__(self, risk: Risk) -> None:
        self._risk = risk
        self._kept: dict[bytes, float] = {}

    def __call__(self, known: Mask) -> Floats:
        """Return the risks of coalitions, (n_coalitions,)."""
        keys = [row.tobytes() for row in known]
        new = [at for at, key in enumerate(keys) if key not in self._kept]
        if new:
            found = self._risk(known[new]).tolist()
            self._kept.update(zip((keys[at] for at in new), found, strict=True))
        return np.array([self._kept[key] for key in keys])


def measure(sizes: Sizes, case: Case, n_seeds: int) -> list[list[str]]:
    """Return the lines of a table: variances relative to the default kind's."""
    at = problem(sizes, case.graph)
    X, y = at.X.iloc[: case.n_rows], at.y.iloc[: case.n_rows]
    model = at.model if case.model == "trees" else LinearRegression().fit(X, y)
    game = LossGame(model, at.sampler, X, y, n_draws=case.n_draws, random_state=0)
    rows = np.arange(len(X))
    moments = game.first_level()
    if moments is None:
        raise RuntimeError("squared error has a moment game")
    cheap = Tabulated(moments.mean_risks)
    full = Tabulated(lambda known: game.risks(known, rows).reshape(len(known), -1).mean(axis=1))
    oracles = {"d-SAGE": at.oracle, "SAGE": NoSeparation(list(X.columns))}
    made = kinds(X.shape[1])
    n_orderings = max(round(sizes.share * case.n_orderings), 80)
    logs: dict[tuple[str, tuple[str, str]], list[float]] = {}
    for seed in range(n_seeds):
        for name, make in made.items():
            orderings = make(Streams(seed))
            size = orderings.batch_size
            orders = np.concatenate([orderings.batch(k) for k in range(n_orderings // size)])
            for estimand, oracle in oracles.items():
                model_part, cheap_part = (surpluses(r, oracle, orders) for r in (full, cheap))
                slope = _slope(model_part, cheap_part)
                rest = model_part - slope * cheap_part
                for level, values in (("with", rest), ("without", model_part)):
                    means = values.reshape(-1, size, values.shape[1]).mean(axis=1)
                    variance = size * means.var(axis=0, ddof=1).sum()
                    logs.setdefault((name, (estimand, level)), []).append(float(np.log(variance)))
    return _lines(made, {key: np.array(each) for key, each in logs.items()})


def measure_runs(sizes: Sizes, n_seeds: int) -> list[list[str]]:
    """Return the lines of a table: variance times evaluations in runs, relative to the default."""
    at = problem(sizes, RUN_GRAPH)
    made = kinds(at.X.shape[1])
    logs = {
        name: np.log([_run_cost(at, make(Streams(seed)), sizes, seed) for seed in range(n_seeds)])
        for name, make in made.items()
    }
    return [
        [name, str(make(Streams(0)).batch_size), _ratio(logs[name] - logs[DEFAULT])]
        for name, make in made.items()
    ]


def _run_cost(at: Problem, orderings: Orderings, sizes: Sizes, seed: int) -> float:
    game = LossGame(at.model, at.sampler, at.X, at.y, n_draws=4, random_state=seed)
    for look in estimate(game, orderings=orderings, exact="never", random_state=seed):
        if look.n_units > 3 and look.n_evaluated >= sizes.share * RUN_EVALUATED:
            return float((look.se**2).sum() * look.n_evaluated)
    raise RuntimeError("sampled orderings have no end")


def _slope(full: Floats, cheap: Floats) -> float:
    off_full, off_cheap = full - full.mean(axis=0), cheap - cheap.mean(axis=0)
    return float((off_full * off_cheap).sum() / (off_cheap**2).sum())


def _lines(
    made: dict[str, Make], logs: dict[tuple[str, tuple[str, str]], Floats]
) -> list[list[str]]:
    lines = [
        [name, str(make(Streams(0)).batch_size)]
        + [_ratio(logs[name, column] - logs[DEFAULT, column]) for column in COLUMNS]
        for name, make in made.items()
    ]
    verdicts = []
    for column in COLUMNS:
        new = [name for name in made if name.startswith(CHALLENGERS)]
        old = [name for name in made if name not in new]
        best, rival = (
            min(group, key=lambda name: logs[name, column].mean()) for group in (new, old)
        )
        verdicts.append(f"{best} to {rival}: {_ratio(logs[best, column] - logs[rival, column])}")
    return [*lines, ["*best*", "", *verdicts]]


def _ratio(logs: Floats) -> str:
    """Return the geometric mean of ratios, and its standard error over the seeds."""
    ratio = np.exp(logs.mean())
    return f"{ratio:.2f} ± {ratio * logs.std(ddof=1) / np.sqrt(len(logs)):.2f}"


def measure_all(sizes: Sizes, n_seeds: int) -> list[Section]:
    """Return the sections of the results."""
    header = ["orderings", "in a batch"]
    header += [f"{estimand}, {level} first level" for estimand, level in COLUMNS]
    sections = []
    for case in CASES:
        n_features = problem(sizes, case.graph).X.shape[1]
        text = (
            f"**{n_features} features** (`{case.graph}`), {case.model}: {case.n_orderings:,} "
            f"orderings per seed, {case.n_rows} rows."
        )
        sections.append((text, markdown(header, measure(sizes, case, n_seeds))))
    text = (
        "Variance of the mean surplus over the same number of orderings, summed over features, "
        f"relative to that of `{DEFAULT}` orderings: geometric mean over {n_seeds} seeds ± its "
        "standard error; less is better. The models are a linear regression and "
        f"`HistGradientBoostingRegressor` ({sizes.n_trees} trees) on the paper's graphs; d-SAGE "
        "has a learned graph. With a first level, the scaled surpluses of the linear game are "
        "subtracted. All orderings see the same rows, so this is the variance of the orderings "
        "alone. *Best* compares the best of the orderings of Mitchell et al. with the best other "
        "kind."
    )
    sections[0] = (f"{text}\n\n{sections[0][0]}", sections[0][1])
    text = (
        f"**Whole runs** (`{RUN_GRAPH}`, trees, SAGE, with first level): variance of the values "
        f"times evaluations, from standard errors after {RUN_EVALUATED:,} evaluations or four "
        f"units, relative to `{DEFAULT}`. A batch is evaluated on one shard of the rows, so large "
        "batches see fewer rows for the same cost."
    )
    runs = measure_runs(sizes, n_seeds)
    return [
        *sections,
        (text, markdown(["orderings", "in a batch", "variance x evaluations"], runs)),
    ]


def main(n_seeds: int, *, is_tiny: bool) -> None:
    """Measure everything and publish the tables."""
    tiny = Sizes(n_train=200, n_rows=64, n_trees=3, share=0.02)
    sizes = tiny if is_tiny else Sizes(n_train=2_000, n_rows=128, n_trees=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sections = measure_all(sizes, n_seeds)
    if is_tiny:
        print("\n\n".join(f"{text}\n\n{table}" for text, table in sections))
        return
    packages = ["dsage", "numpy", "scipy", "scikit-learn"]
    publish("engine_orderings", "The engine: kinds of orderings", sections, packages)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=6, help="repetitions")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try it")
    given = parser.parse_args()
    with threadpool_limits(1):
        main(2 if given.tiny else given.seeds, is_tiny=given.tiny)
