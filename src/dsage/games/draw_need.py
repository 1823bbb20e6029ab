"""How many draws a risk needs for a smooth loss, found by a pilot before a run."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dsage._check import Setting, Text, warn
from dsage.games.base import Floats, Mask

# Rows of a pilot, and the known shares of the features in its coalitions.
_N_ROWS, _KNOWN = 256, (1 / 8, 3 / 8, 5 / 8, 7 / 8)
# Sets of draws: first few, and more if these show a bias.
_FEW, _MANY = 4, 8
# A bias that matters, as a share of what all features explain, in general and for a tolerance below
# twice as much; and one that is warned of.
_MATTERS, _IS_PRECISE, _IS_LARGE = 0.01, 0.005, 0.03
# The share of a time limit that a pilot may take.
_SHARE = 0.1
# What all features explain counts as this share of the risk at least.
_LEAST_EXPLAINED = 0.1


class DrawNeed(NamedTuple):
    """The number of draws for each risk, and the bias that is left.

    Attributes
    ----------
    n_draws : int
        Draws for each row and coalition.
    left : float
        The bias of these draws, or of half of them if they are the most that are considered, as a
        share of what all features explain.
    """

    n_draws: int
    left: float

    def warn(self, loss: str, *, is_of_classes: bool) -> None:
        """Warn if even the largest number of draws leaves a large bias."""
        if self.left <= _IS_LARGE:
            return
        other = "brier" if is_of_classes else "squared_error"
        text = (
            f"With {loss}, the predictions of this model need very many draws. {self.n_draws} are "
            f"used for each risk. Half as many would leave a bias of {100 * self.left:.2g} % of "
            "what all features explain, which is not part of the standard errors. Use "
        )
        advice: list[str | Setting] = [
            Setting("loss", other),
            ", or more draws: ",
            Setting("n_draws"),
            ".",
        ]
        warn(Text([text, *advice]))


def pilot_of(
    n_rows: int, n_features: int, rng: np.random.Generator, n_orderings: int = 1
) -> tuple[Mask, npt.NDArray[np.intp]]:
    """Return coalitions of the features, from some orderings, and rows, for a pilot."""
    rows = np.sort(rng.choice(n_rows, min(_N_ROWS, n_rows), replace=False))
    lengths = sorted({int(share * n_features) for share in _KNOWN})
    known = np.zeros((n_orderings, len(lengths), n_features), dtype=np.bool_)
    for coalitions in known:
        order = rng.permutation(n_features)
        for coalition, length in zip(coalitions, lengths, strict=True):
            coalition[order[:length]] = True
    return np.unique(known.reshape(-1, n_features), axis=0), rows


def bias_for(tolerance: float | None) -> float:
    """Return the bias that matters for a tolerance; None for the default rule.

    Examples
    --------
    >>> bias_for(None), bias_for(0.05), bias_for(0.01)
    (0.01, 0.01, 0.005)
    """
    is_precise = tolerance is not None and tolerance < 2 * _MATTERS
    return _IS_PRECISE if is_precise else _MATTERS


def find_need(
    draw: Callable[[int], Floats],
    to_risks: Callable[[Floats], Floats],
    n_draws: int,
    explained: float,
    risk: float,
    matters: float = _MATTERS,
    seconds: float | None = None,
) -> DrawNeed:
    """Return how many draws leave hardly any bias: `n_draws`, or 2, 4 or 8 times as many.

    Estimates from few draws are compared with those from all sets of draws.

    Parameters
    ----------
    draw : callable
        Maps a number to the means of an independent set of `n_draws` draws, (n_coalitions, n_rows,
        n_replicates, ...).
    to_risks : callable
        Maps such means to pseudo-values (n_coalitions, n_rows, n_replicates).
    n_draws : int
        The smallest number of draws.
    explained, risk : float
        By how much all features together lower the risk, and the risk with nothing known.
    matters : float
        The bias that matters, as a share of what all features explain.
    seconds : float, optional
        The time limit of the run. If the first sets would take more than a tenth of it, there is no
        pilot.
    """
    scale = max(abs(explained), _LEAST_EXPLAINED * abs(risk))
    if not scale > 0.0:
        return DrawNeed(n_draws, 0.0)
    start = perf_counter()
    means = [draw(0)]
    if seconds is not None and _FEW * (perf_counter() - start) > _SHARE * seconds:
        return DrawNeed(n_draws, 0.0)
    for n_sets in (_FEW, _MANY):
        means += [draw(number) for number in range(len(means), n_sets)]
        biases = _biases(np.stack(means), to_risks)
        for power, bias in enumerate(biases):
            if bias <= matters * scale:
                return DrawNeed(n_draws << power, bias / scale)
    return DrawNeed(n_draws * _MANY, biases[-1] / scale)


def _biases(means: Floats, to_risks: Callable[[Floats], Floats]) -> list[float]:
    """Return the largest bias of a coalition from 1, 2, 4, ... sets, but not all.

    `means` have shape (n_sets, n_coalitions, n_rows, n_replicates, ...).
    """
    risks, size = [], 1
    while size <= len(means):
        joined = means.reshape(-1, size, *means.shape[1:]).mean(axis=1)
        risks.append(np.mean([to_risks(each).mean(axis=2) for each in joined], axis=0))
        size *= 2
    *few, every = risks
    found = []
    for each in few:
        off = each - every
        found.append(float(np.abs(off.mean(axis=1)).max(initial=0.0)))
    return found
