"""Every step of small searches, which must not change.

``python tests/support/frozen_searches.py`` prints them as JSON, for
``tests/structure/frozen_searches.json``. A change of one of them is either a mistake, or one that
the changelog tells.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from unittest.mock import patch

import numpy as np

from dsage.graphs import Graph
from dsage.structure import search_graph
from dsage.structure.constraints import Constraints
from dsage.structure.moments import Moments
from dsage.structure.scores.base import Score
from dsage.structure.scores.gaussian import GaussianScore
from dsage.structure.searches import bes as bes_module
from dsage.structure.searches.bes import bes
from dsage.structure.searches.boss import boss
from dsage.structure.searches.local import hill_climb, tabu
from dsage.structure.stability import stability
from frozen_scores import classes, gaps, mixed, numbers, numbers_of

NAMES = tuple("abcdef")


class Drawn(Score):
    """Scores that are drawn at random, in steps of a quarter, so that many are equal.

    A share of the families with several parents is forbidden.
    """

    def __init__(self, seed: int, *, forbidden: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        self.names = NAMES
        size = np.array([bits.bit_count() for bits in range(64)])
        self._values = np.round(4 * rng.normal(scale=2.0, size=(6, 64)) - 2 * size) / 4
        is_shut = (rng.random((6, 64)) < forbidden) & (size > 1)
        self._values[is_shut] = -np.inf

    def family(self, node, parents):
        return float(self._values[node, sum(1 << parent for parent in parents)])


class Hurried(Drawn):
    """The same with approximations that rule out moves."""

    margin = 3.0

    def quick(self, node, parents):
        return self.family(node, parents) + 0.5 * np.cos(7 * node + sum(parents))


def full_graph(seed):
    order = np.random.default_rng(seed).permutation(6)
    edges = [(NAMES[order[i]], NAMES[order[j]]) for i in range(6) for j in range(i + 1, 6)]
    return Graph(NAMES, edges)


CONSTRAINTS = {
    "free": None,
    "bound": Constraints(NAMES, max_parents=2),
    "edges": Constraints(
        NAMES, required=[("e", "b"), ("b", "a")], forbidden=[("c", "d"), ("a", "f"), ("f", "c")]
    ),
    "tiers": Constraints(NAMES, tiers=[["b", "f"], ["a", "c", "d", "e"]], max_parents=3),
}


def describe(result):
    """Return the graph, the score, the work, and all steps."""
    place = {name: at for at, name in enumerate(result.graph.names)} | {"": -1}
    kinds = ("add", "delete", "reverse", "move")
    steps = [
        [kinds.index(step.kind.rpartition(" ")[2]), place[step.tail], place[step.head], step.delta]
        for step in result.trace
    ]
    return {
        "edges": sorted(10 * place[tail] + place[head] for tail, head in result.graph.edges),
        "score": [result.score, result.n_scored, len(steps)],
        "steps": steps,
    }


def join(results):
    """Return several results as one."""
    return {
        f"{name} {part}": numbers
        for name, result in results.items()
        for part, numbers in describe(result).items()
    }


def _over_seeds(search, seeds=range(4), **options):
    def made():
        return join(
            {
                f"{seed} {name}": search(Drawn(seed, **options), constraints)
                for seed in seeds
                for name, constraints in CONSTRAINTS.items()
            }
        )

    return made


def _bes(score, constraints):
    if constraints is not None:
        # A search from an empty graph with a bound may start anywhere that is allowed.
        graph = hill_climb(Drawn(17), constraints).graph
        return bes(score, graph, constraints)
    return bes(score, full_graph(3))


def _few_cliques():
    with patch.object(bes_module, "_ALL_CLIQUES", 1):
        return join({str(seed): bes(Drawn(seed), full_graph(seed)) for seed in range(6)})


def _gaussian():
    score = GaussianScore(Moments.from_frame(numbers()), penalty=2.0)
    orders = ("abcdefg", "gfedcba", "dgbface")
    found = {order: boss(score, order=list(order)) for order in orders}
    found["one pass"] = boss(score, order=list("gfedcba"), max_passes=1)
    found["few steps"] = boss(score, order=list("gfedcba"), max_steps=9)
    found["bes"] = bes(score, found["one pass"].graph)
    copies = GaussianScore(
        Moments.from_frame(numbers().assign(h=numbers()["a"] + numbers()["b"])), penalty=2.0
    )
    found["copies"] = boss(copies, order=list("hgfedcba"))
    return join(found)


def _learned(frames, **options):
    return lambda: join({make.__name__: search_graph(make(), **options) for make in frames})


def _stability():
    made = stability(numbers(), n=5, method="tabu", random_state=0)
    frame = made.to_frame()
    halves = stability(mixed(), n=3, resample="bootstrap", score="basis", random_state=1)
    shares = [*frame.select_dtypes("number").to_numpy().ravel()]
    return {
        "shares": shares,
        "halves": [*halves.to_frame().select_dtypes("number").to_numpy().ravel()],
    }


def cases() -> dict[str, Callable[[], dict]]:
    """Return the searches by name; each gives arrays of numbers by name."""
    every = (numbers, mixed, gaps, classes)
    return {
        "hill climbing": _over_seeds(hill_climb),
        "hill climbing, forbidden families": _over_seeds(hill_climb, forbidden=0.4),
        "hill climbing, restarts": _over_seeds(
            lambda score, given: hill_climb(score, given, restarts=3, perturb=2, random_state=5)
        ),
        "tabu": _over_seeds(tabu),
        "tabu, short memory": _over_seeds(
            lambda score, given: tabu(score, given, tabu=3, max_tabu=6, max_iter=25)
        ),
        "tabu, from a graph": lambda: join(
            {str(seed): tabu(Drawn(seed), start=full_graph(seed)) for seed in range(4)}
        ),
        "boss": _over_seeds(boss),
        "boss, forbidden families": _over_seeds(boss, forbidden=0.4),
        "boss, approximate": lambda: join({str(seed): boss(Hurried(seed)) for seed in range(8)}),
        "boss, gaussian": _gaussian,
        "bes": _over_seeds(_bes),
        "bes, greedy": _few_cliques,
        "learned": _learned(every),
        "learned, target": _learned((numbers, gaps), target="e"),
        "learned, strict": _learned((numbers, gaps), strict=True, method="tabu"),
        "learned, ranks": _learned((numbers,), transform="rank", score="ebic"),
        "learned, boss": _learned((numbers, classes), method="boss"),
        "stability": _stability,
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
