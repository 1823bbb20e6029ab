"""The errors of SAGE values due to a sampler, for tables with known conditional distributions.

The model f of a problem is the mean of the target given all columns. So, for the population, the
risk of a coalition S with a sampler's mean prediction g exceeds the risk with the true one, t, by
``E[(g - t)^2]``: everything that depends on the target averages out. The errors of the values are
the Shapley values of this game, with the opposite sign. Two independent groups of draws, and two
independent estimates of the truth, make the product ``(g1 - t1)(g2 - t2)`` an unbiased estimate
whose noise is of second order, so that few draws resolve errors of 0.1 % of the range.

On given rows the risks also differ by the mean of ``2 (y - t)(t - g)``, which is zero in the
population. Its variance is estimated, too, from the covariance of the two groups over rows.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.stats import qmc

from benchmarks.sampler_problems import Floats, Problem
from dsage.samplers.base import Sampler

N_ROWS, N_ROWS_OF_MANY = 1_000, 400  # with up to six columns, and more
N_FEW_ROWS = 250  # for the MSEv, and for samplers whose errors are large
N_DRAWS = 128  # in two groups
N_GIVEN = 400  # rows, for which the errors on given rows are told
N_ORDERINGS = 12
EXACT_UP_TO = 6  # columns


class Grade(NamedTuple):
    """The largest error of a value with its standard error, and the MSEv.

    `spread` is the standard deviation, of the value where it is largest, that 400 given rows add.
    Errors are in % of the range of the values. The MSEv is divided by the variance of predictions.
    """

    error: float
    se: float
    spread: float
    msev: float


class Exam:
    """The exact values of a problem, on which samplers are examined.

    The values are SAGE values of squared error over all coalitions, up to six columns, or along 12
    orderings, the same ones for truth and sampler.
    """

    def __init__(self, problem: Problem, seed: int = 123) -> None:
        self.problem = problem
        n_rows = N_ROWS if problem.d <= EXACT_UP_TO else N_ROWS_OF_MANY
        rng = np.random.default_rng(seed)
        self.rows = problem.sample(n_rows, seed)
        self.target = problem.model(self.rows) + 0.3 * rng.standard_normal(n_rows)
        weights = _all_coalitions(problem.d)
        if problem.d > EXACT_UP_TO:
            half = [rng.permutation(problem.d) for _ in range(N_ORDERINGS // 2)]
            weights = _prefixes([*half, *[order[::-1] for order in half]])
        self._coalitions = [np.array(each) for each in weights]
        self._weights = np.stack(list(weights.values()), axis=1)
        self._truth = [
            problem.expected(self.rows, each, seed + at) for at, each in enumerate(self._coalitions)
        ]
        self.values = self._weights @ [self._risk(*each) for each in self._truth]

    def _risk(self, first: Floats, second: Floats) -> float:
        """Return an unbiased estimate of the mean squared error."""
        return float(((self.target - first) * (self.target - second)).mean())

    def grade(self, sampler: Sampler, n_rows: int = N_ROWS, seed: int = 7) -> Grade:
        """Return the errors of the values with a sampler, on some of the rows."""
        rng = np.random.default_rng(seed)
        rows, target = self.rows[:n_rows], self.target[:n_rows]
        outputs = self.problem.model(rows)
        frame = self.problem.to_frame(rows)
        excess, *more = np.zeros((3, len(self._coalitions), len(rows)))
        msevs = []
        for at, known in enumerate(self._coalitions):
            if known.all():
                continue
            one, other = (truth[:n_rows] for truth in self._truth[at])
            draws = sampler.draw(frame, known, self._noise(rng, len(rows)))
            predicted = self.problem.model(draws)
            first = predicted[:, : N_DRAWS // 2].mean(axis=1)
            second = predicted[:, N_DRAWS // 2 :].mean(axis=1)
            excess[at] = (first - one) * (second - other)
            more[0][at] = 2 * (target - one) * (one - first)
            more[1][at] = 2 * (target - other) * (other - second)
            msevs.append(((outputs - first) * (outputs - second))[:N_FEW_ROWS].mean())
        unit = 100 / float(np.ptp(self.values))
        by_row = unit * self._weights @ excess
        errors = np.abs(by_row.mean(axis=1))
        worst = int(errors.argmax())
        one_group, other_group = (unit * self._weights @ each for each in more)
        one_group -= one_group.mean(axis=1, keepdims=True)
        variances = (one_group * other_group).mean(axis=1) / N_GIVEN
        return Grade(
            float(errors[worst]),
            float(by_row[worst].std() / math.sqrt(len(rows))),
            math.sqrt(max(0.0, float(variances.max()))),
            float(np.mean(msevs) / outputs[:N_FEW_ROWS].var()),
        )

    def _noise(self, rng: np.random.Generator, n_rows: int) -> Floats:
        """Return two independent quasi-random groups of uniforms, shifted for each row."""
        groups = []
        for _ in range(2):
            net = qmc.Sobol(self.problem.d, rng=rng).random(N_DRAWS // 2)
            groups.append((net + rng.random((n_rows, 1, self.problem.d))) % 1.0)
        return np.clip(np.concatenate(groups, axis=1), 1e-12, 1 - 1e-12)


Weights = dict[tuple[bool, ...], Floats]
"""The weight of a coalition's risk in the values of all columns, by coalition."""


def _all_coalitions(d: int) -> Weights:
    found: Weights = {}
    for size in range(d + 1):
        for chosen in combinations(range(d), size):
            known = np.isin(np.arange(d), chosen)
            before = 1 / (d * math.comb(d - 1, size)) if size < d else 0.0
            after = -1 / (d * math.comb(d - 1, size - 1)) if size else 0.0
            found[tuple(known.tolist())] = np.where(known, after, before)
    return found


def _prefixes(orders: list[Floats]) -> Weights:
    found: Weights = {}
    for order in orders:
        known = np.zeros(len(order), bool)
        for feature in order:
            for sign in (1, -1):
                weights = found.setdefault(tuple(known.tolist()), np.zeros(len(order)))
                weights[feature] += sign / len(orders)
                known[feature] = True
    return found
