"""Coalitions on which samplers are scored."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dsage._random import Streams
from dsage.samplers.checks import Floats, Mask


def has_few(n_players: int, n_coalitions: int) -> bool:
    """Return whether there are no more coalitions, the full one apart, than `n_coalitions`."""
    return n_players < 64 and (1 << n_players) - 1 <= n_coalitions


def prefix_coalitions(
    n_players: int, n_coalitions: int, generator: np.random.Generator
) -> tuple[Mask, Floats]:
    """Return coalitions as random orderings give them, and their weights.

    A prefix of a random ordering has each size 0 .. n_players - 1 equally often, and given its size
    each set of players. The sizes are stratified: one in each of `n_coalitions` equal parts of
    their range. If there are no more coalitions than wanted, all are returned, with their exact
    weights. The full coalition is left out: nothing is drawn there.

    Returns
    -------
    known : bool array of shape (n_distinct, n_players)
        Distinct coalitions, at most `n_coalitions`.
    weights : array of shape (n_distinct,)
        How often orderings give them; the sum is 1.

    Examples
    --------
    >>> known, weights = prefix_coalitions(2, 8, np.random.default_rng(0))
    >>> known.astype(int).tolist(), weights.tolist()
    ([[0, 0], [0, 1], [1, 0]], [0.5, 0.25, 0.25])
    """
    if has_few(n_players, n_coalitions):
        rows = list(itertools.product([False, True], repeat=n_players))[:-1]
        known = np.array(rows, dtype=np.bool_).reshape(len(rows), n_players)
        sizes = known.sum(axis=1).tolist()
        return known, np.array([1 / (n_players * math.comb(n_players, size)) for size in sizes])
    shares = (np.arange(n_coalitions) + generator.random(n_coalitions)) / n_coalitions
    drawn = np.zeros((n_coalitions, n_players), dtype=np.bool_)
    for mask, size in zip(drawn, (shares * n_players).astype(np.intp).tolist(), strict=True):
        mask[generator.permutation(n_players)[:size]] = True
    known, counts = np.unique(drawn, axis=0, return_counts=True)
    return known, counts / n_coalitions


def random_coalitions(n_features: int, n_coalitions: int, streams: Streams) -> Mask:
    """Return distinct coalitions (n_coalitions or all, n_features), of sizes in turn; none full.

    Fewer coalitions than features have sizes that are spread evenly.
    """
    rng = streams("evaluate-coalitions")
    used: list[set[bytes]] = [set() for _ in range(n_features)]
    masks: list[Mask] = []
    n_sizes = min(n_coalitions, n_features)
    sizes = np.linspace(0, n_features - 1, n_sizes).round().astype(np.intp).tolist()
    for size in itertools.cycle(sizes):
        if len(masks) == min(n_coalitions, 2**n_features - 1):
            break
        if len(used[size]) < math.comb(n_features, size):
            while True:
                mask = np.zeros(n_features, dtype=bool)
                mask[rng.permutation(n_features)[:size]] = True
                if mask.tobytes() not in used[size]:
                    break
            used[size].add(mask.tobytes())
            masks.append(mask)
    return np.array(masks)
