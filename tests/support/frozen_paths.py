"""Small estimations whose paths must not change: what is evaluated, look by look, and the numbers.

Most games are tables, so that no library decides about a digit. ``python
tests/support/frozen_paths.py`` prints the paths as JSON, for ``tests/estimate/frozen_paths.json``.
A change of one of them is either a mistake, or one that the changelog tells.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable

import numpy as np

from dsage import Graph
from dsage.estimate import as_stopping, compare_games, run_local
from dsage.estimate.loop import Estimation
from dsage.estimate.plan import Plan
from dsage.estimate.running.run import refine
from dsage.games import Game, LossGame, OutputGame
from dsage.graphs.interventions import Interventions
from dsage.orderings import Order
from dsage.samplers import Gaussian

N_FEATURES, N_ROWS = 5, 90
NAMES = tuple("abcde")
CODES = 1 << np.arange(N_FEATURES)
GRAPH = Graph([*NAMES, "y"], [("a", "b"), ("b", "y"), ("c", "y"), ("d", "c"), ("y", "e")])
# A rough and a smooth part of the risks.
_RNG = np.random.default_rng(7)
_KNOWN = (np.arange(1 << N_FEATURES)[:, None] >> np.arange(N_FEATURES)) % 2
_WORTH = np.array([4.0, 2.0, 1.0, 0.5, -0.5])
SMOOTH = 8 - _KNOWN @ _WORTH - 0.6 * _KNOWN[:, 0] * _KNOWN[:, 1] + 0.9 * _KNOWN[:, 2] * _KNOWN[:, 4]
ROWS = SMOOTH[:, None] * _RNG.uniform(0.5, 1.5, N_ROWS) + 0.4 * _RNG.normal(
    size=(1 << N_FEATURES, N_ROWS)
)
N_REPLICATES, _EPOCHS = 3, 7
NOISE = _RNG.normal(size=(_EPOCHS, 1 << N_FEATURES, N_ROWS, N_REPLICATES))


class Cheap(Game):
    """The smooth part, the same on all rows but for a factor."""

    feature_names, n_rows = NAMES, N_ROWS

    def __init__(self, factor=1.0):
        self._factor = factor

    def risks(self, known, rows, epoch=0):
        factor = 1.0 + 0.2 * np.cos(rows)
        return self._factor * SMOOTH[known @ CODES][:, None, None] * factor[:, None]


class Rows(Game):
    """A table of risks, maybe with noise, a first level and paths."""

    feature_names, n_rows = NAMES, N_ROWS

    def __init__(self, noise=0.0, *, has_level=False, has_paths=False, weights=None):
        self._noise, self._has_level = noise, has_level
        self.has_paths, self.weights = has_paths, weights
        self.n_replicates = N_REPLICATES if noise else 1

    def risks(self, known, rows, epoch=0):
        return self._at(known @ CODES, rows, epoch)

    def _at(self, codes, rows, epoch):
        exact = ROWS[codes][:, rows, None]
        if not self._noise:
            return exact
        # More noise with few known features.
        scale = self._noise * (1.5 - _KNOWN[codes].mean(axis=1))[:, None, None]
        scale = scale * (codes < len(CODES) ** 2 + 6)[:, None, None]
        return exact + scale * NOISE[epoch % _EPOCHS, codes][:, rows]

    def path_risks(self, orders, rows, epoch, needed):
        position = np.argsort(orders, axis=1)
        found = np.zeros((len(orders), N_FEATURES + 1, len(rows), self.n_replicates))
        for number, each in enumerate(position):
            known = each < np.arange(N_FEATURES + 1)[:, None]
            found[number] = self._at(known @ CODES, rows, epoch + int(orders[number, 0]))
        found[~needed] = np.nan
        return found

    def first_level(self):
        return Cheap() if self._has_level else None


class Totalled(Rows):
    """A table whose total is known, with an error."""

    def __init__(self, noise, se=0.0, **options):
        super().__init__(noise, **options)
        self._se = se

    def known_total(self):
        return float((ROWS[0] - ROWS[-1]).mean()), self._se


class Two(Game):
    """Two outputs, whose risks are added."""

    feature_names, n_rows, n_replicates = NAMES, N_ROWS, N_REPLICATES

    def __init__(self, *, is_apart=False):
        self.n_outputs = 2 if is_apart else 1
        self.n_replicates = N_REPLICATES * self.n_outputs
        self._parts = Rows(0.5), Rows(0.1)

    def risks(self, known, rows, epoch=0):
        one, other = (game.risks(known, rows, epoch) for game in self._parts)
        other = 0.3 * other[::-1].copy()[::-1] * (1 + known[:, 0, None, None])
        return np.concatenate([2 * one, 2 * other], axis=2) if self.n_outputs > 1 else one + other

    def apart(self):
        return None if self.n_outputs > 1 else Two(is_apart=True)

    def first_levels(self):
        return (Cheap(), Cheap(0.4)) if self.n_outputs > 1 else ()


class Set(Game):
    """A game of interventions: coalitions of what is set, and of what the model receives."""

    feature_names, n_rows, n_replicates = NAMES, N_ROWS, N_REPLICATES
    interventions = Interventions(GRAPH, NAMES, "y")

    def risks(self, known, rows, epoch=0):
        game = Rows(0.3)
        fixed, inputs = known[:, :N_FEATURES], known[:, N_FEATURES:]
        return 0.4 * game.risks(fixed, rows, epoch) + game.risks(inputs, rows, epoch + 3)


# Degrees of freedom beyond are of errors that are rounding only.
_MANY = 1e9
N_MANY = 40
_WEIGHTS = _RNG.normal(size=N_MANY)
_TURNS = 0.4 * _RNG.normal(size=N_MANY)


class Many(Game):
    """Features with weights and effects of many of them, most of which a first level has."""

    feature_names, n_rows = tuple(f"x{at}" for at in range(N_MANY)), 60

    def __init__(self, noise=0.5, *, is_cheap=False):
        self._noise, self._is_cheap = noise, is_cheap
        self.n_replicates = 2 if noise else 1

    def risks(self, known, rows, epoch=0):
        known = known.astype(float)
        share = 0.8 if self._is_cheap else 1.0
        worth = known @ _WEIGHTS + 3.0 * share * np.sin(known @ _TURNS)
        exact = -worth[:, None, None] * (1 + 0.3 * np.sin(rows))[:, None]
        if not self._noise:
            return exact
        wave = np.sin(50.0 * worth[:, None] + 13.0 * rows + 5.0 * epoch)[:, :, None]
        return exact + self._noise * wave * np.array([1.0, -0.7])

    def first_level(self):
        return None if self._is_cheap else Many(0.0, is_cheap=True)


def path_of(game, stopping, **options):
    """The numbers of each look of an estimation, and those of its end."""
    options = {"random_state": 0, "n_jobs": 1, **options}
    estimation = Estimation(game, **options)
    found = refine(estimation, stopping=stopping)
    numbers = {
        "looks": found.history.n_evaluated,
        "last errors": found.history.se[-1],
        "values": found.values,
        "orderings": found.se_orderings,
        "draws": found.se_draws,
        "rows": found.se_rows,
        "df": np.minimum(found.df, _MANY),
        "skipped": found.share_skipped,
        "counts": [found.n_units, found.n_orderings, found.n_evaluated, found.n_shared],
        "terms": [(each.n_orderings, each.n_evaluated, each.df) for each in found.terms],
        "epochs": [estimation.n_epochs],
    }
    if found.audit is not None:
        audit = found.audit
        numbers["audit"] = [*audit.values, *audit.se, audit.df, audit.n_orderings]
        surpluses = found.skipped_surpluses.select_dtypes("number")
        numbers["skipped surpluses"] = surpluses.to_numpy().ravel()
    for name, more in (("outputs", found.outputs), ("parts", found.parts)):
        if more is not None:
            numbers[name] = np.concatenate([more.values, more.se, more.se_rows, more.df])
    return numbers


def _compared():
    found = compare_games(
        Rows(0.5), Rows(0.2), stopping=as_stopping(n_orderings=60), random_state=0, n_jobs=1
    )
    frame = found.to_frame().select_dtypes("number")
    return {"differences": frame.to_numpy().ravel()}


class Leaning(Game):
    """Noise that a feature brings along, and effects of orderings of a given size."""

    feature_names, n_rows, n_replicates = NAMES, N_ROWS, 2

    def __init__(self, effect, *, has_level=False):
        self._effect, self._has_level = effect, has_level

    def risks(self, known, rows, epoch=0):
        number = known.astype(float)
        brought = NOISE[epoch % _EPOCHS, :N_FEATURES][:, rows, :2]
        noise = np.einsum("cf,frg->crg", number, brought)
        return self._exact(known, rows) + noise

    def _exact(self, known, rows):
        number = known.astype(float)
        curved = number[:, :1] * number.sum(axis=1, keepdims=True) ** 2
        exact = self._effect * curved * (1 + 0.5 * np.sin(rows)) + SMOOTH[known @ CODES][:, None]
        return exact[:, :, None]

    def first_level(self):
        return Level(self._effect) if self._has_level else None


class Level(Leaning):
    """The effects without noise, on a scale that depends on the row."""

    n_replicates = 1

    def risks(self, known, rows, epoch=0):
        return self._exact(known, rows) * (1 + 0.6 * np.cos(3.0 * rows))[:, None]


def _choices():
    """Whether all orderings are enumerated, as their effects grow."""
    effects = np.geomspace(0.3, 12.0, 50)
    return {
        name: [
            Plan(Leaning(each, **options), random_state=0).enumeration is None for each in effects
        ]
        for name, options in (("plain", {}), ("level", {"has_level": True}))
    }


def _curved(rows):
    rows = np.asarray(rows)
    return rows[:, 0] * rows[:, 1] + np.abs(rows[:, 2]) - rows[:, 3] + 0.5 * rows[:, 4]


def _local(game_of, **options):
    """Values of single rows, in chunks."""
    X = np.random.default_rng(3).normal(size=(7, N_FEATURES))
    covariance = 0.5 * np.eye(N_FEATURES) + 0.5
    sampler = Gaussian.from_moments(np.zeros(N_FEATURES), covariance, NAMES)
    found = run_local(
        game_of(sampler, X),
        stopping=as_stopping(n_orderings=60),
        random_state=0,
        n_jobs=1,
        rows_per_ordering=3,
        **options,
    )
    numbers = {
        "values": found.values,
        "orderings": found.se_orderings,
        "draws": found.se_draws,
        "df": np.minimum(found.df, _MANY),
        "ends": [*np.ravel(found.base_value), *found.predictions],
        "balanced": found.balanced().values,
        "skipped": found.share_skipped,
        "counts": [found.n_orderings, found.n_evaluated, found.n_shared],
    }
    if found.audit is not None:
        numbers["audit"] = [found.audit.differences, found.audit.se, found.audit.df]
    return numbers


def _outputs(sampler, X):
    return OutputGame(_curved, sampler, X, random_state=0)


def _losses(sampler, X):
    return LossGame(_curved, sampler, X, X[:, 0], loss="squared_error", random_state=0)


def paths() -> dict[str, Callable[[], dict]]:
    """Return the paths by name; each gives arrays of numbers by name."""
    oracle = GRAPH.oracle("y", features=NAMES)
    order = Order(NAMES, [("a", "b"), ("a", "c"), ("d", "e")])
    many, sampled = as_stopping(n_orderings=150), {"exact": "never"}
    tight, tighter = as_stopping(tolerance=0.01), as_stopping(tolerance=0.004)
    weights = np.linspace(0.5, 1.5, N_ROWS)

    def of(game, stopping=many, **options):
        return lambda: path_of(game, stopping, **options)

    return {
        "exact": of(Rows()),
        "exact, drawn": of(Rows(0.5), exact="always"),
        "sampled": of(Rows(), **sampled),
        "sampled, drawn": of(Rows(0.5), **sampled),
        "chosen": of(Rows(2.0, has_level=True), rows_per_ordering=20),
        "paths": of(Rows(0.5, has_paths=True), rows_per_ordering=20, **sampled),
        "first level": of(Rows(0.3, has_level=True), rows_per_ordering=10, **sampled),
        "weights": of(Rows(0.3, has_level=True, weights=weights), rows_per_ordering=10, **sampled),
        "narrowed": of(Rows(1.5, has_level=True), tighter, rows_per_ordering=45, **sampled),
        "narrowed, total": of(Totalled(1.5), tighter, rows_per_ordering=45, **sampled),
        "narrowed, total, level": of(
            Totalled(1.5, 0.02, has_level=True), tighter, rows_per_ordering=30, **sampled
        ),
        "narrowed, weights": of(
            Rows(1.5, weights=weights), tighter, rows_per_ordering=45, **sampled
        ),
        "audited": of(Rows(0.5), oracle=oracle, rows_per_ordering=20, **sampled),
        "audited, exact": of(Rows(), oracle=oracle),
        "skipped": of(Rows(0.5), oracle=oracle, semantics="skip", rows_per_ordering=20),
        "corrected": of(
            Rows(0.2, has_level=True), tight, oracle=oracle, estimand="sage", rows_per_ordering=20
        ),
        "corrected, long": of(
            Rows(0.2, has_level=True),
            as_stopping(n_orderings=300),
            oracle=oracle,
            estimand="sage",
            exact="never",
            rows_per_ordering=20,
        ),
        "corrected, exact": of(
            Rows(0.6), as_stopping(n_orderings=300), oracle=oracle, estimand="sage", exact="always"
        ),
        "corrected, not drawn": of(
            Rows(), as_stopping(n_orderings=300), oracle=oracle, estimand="sage", exact="never"
        ),
        "balanced": of(Rows(0.5), orderings="balanced", rows_per_ordering=30, **sampled),
        "order": of(Rows(0.5, has_level=True), orderings=order, **sampled),
        "order, exact": of(Rows(0.5), orderings=order, oracle=oracle),
        "given": of(Rows(0.5), None, orderings=[list("abcde"), list("edcba"), list("bcdea")]),
        "outputs": of(Two(), rows_per_ordering=20, **sampled),
        "parts": of(Set(), rows_per_ordering=20, **sampled),
        "parts, order": of(Set(), orderings=order, exact="always"),
        "many features": of(Many(), as_stopping(n_orderings=40), rows_per_ordering=10),
        "many features, narrowed": of(
            Many(1.5), as_stopping(tolerance=0.007), rows_per_ordering=30
        ),
        "many features, not drawn": of(Many(0.0), as_stopping(n_orderings=40)),
        "choices": _choices,
        "compared": _compared,
        "local": lambda: _local(_outputs, exact="never"),
        "local, exact": lambda: _local(_outputs, oracle=oracle),
        "local, audited": lambda: _local(_outputs, oracle=oracle, exact="never", audit=True),
        "local, losses": lambda: _local(_losses, exact="never"),
    }


def numbers_of(path: Callable[[], dict]) -> dict[str, list[float]]:
    """Return the numbers of a path as lists."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = path()
    return {name: np.asarray(each, dtype=float).ravel().tolist() for name, each in found.items()}


if __name__ == "__main__":
    lines = []
    for name, make in paths().items():
        # Ten digits are more than the tests compare.
        short = {
            part: [float(f"{number:.10g}") for number in numbers]
            for part, numbers in numbers_of(make).items()
        }
        lines.append(f" {json.dumps(name)}: {json.dumps(short)}")
    print("{\n" + ",\n".join(lines) + "\n}")  # noqa: T201
