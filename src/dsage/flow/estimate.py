"""The flow along the edges: means over orderings, draws and rows, with their errors."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple, cast

import joblib
import numpy as np
import numpy.typing as npt

from dsage._check import make_bar
from dsage._random import Streams
from dsage.estimate import Estimate, Stopping
from dsage.estimate.reasons import StopKind, StopReason, as_reason
from dsage.flow.game import Credits, FlowGame
from dsage.flow.network import MODEL, Network
from dsage.games.base import Floats, Rows

Mask = npt.NDArray[np.bool_]

MIN_PAIRS = 12
"""Pairs of passes before errors are trusted; intervals use Student's distribution."""

# The smallest numbers of predictions and of rows of an ordering, so that calls of the model are
# few.
_PREDICTIONS, _MIN_ROWS = 8_192, 8
PARTS = ("own", "direct", "indirect", "through")
"""The flow out of a node: the part from its own source, which goes straight to the model or to
other nodes first, and the part that comes from the sources of other nodes."""


class FlowMean(NamedTuple):
    """Values, with the errors from computing and from the choice of the rows."""

    values: Floats
    se: Floats
    se_rows: Floats


@dataclass(frozen=True, eq=False)
class FlowEstimate:
    """The flow along each edge, and the parts of each node.

    Attributes
    ----------
    edges : FlowMean
        The flow along each listed edge of the network, (n_edges,).
    nodes : FlowMean
        The parts of each node, (n_nodes, 4), see `PARTS`.
    by_source, se_by_source : arrays of shape (n_edges, n_nodes)
        The flow along each edge that comes from each source.
    base_risk, risk : float
        The mean loss with background values only, and with the rows' own values.
    n_pairs, n_orderings, n_predicted : int
        Pairs of passes over the rows; orderings; rows that the model predicted.
    reason : StopReason
        Why it ended.
    seconds : float
        How long it took.
    """

    edges: FlowMean
    nodes: FlowMean
    by_source: Floats
    se_by_source: Floats
    base_risk: float
    risk: float
    n_pairs: int
    n_orderings: int
    n_predicted: int
    reason: StopReason
    seconds: float


class _Pair(NamedTuple):
    """The flow of a pair of passes with reversed orderings."""

    rows: Floats  # (n_quantities, n_rows)
    by_source: Floats  # (n_edges, n_nodes)
    n_predicted: int


def estimate_flow(
    game: FlowGame,
    stopping: Stopping,
    *,
    seed: int,
    n_jobs: int | None = None,
    progress: bool = False,
) -> FlowEstimate:
    """Estimate the flow along each edge of a network.

    A pass goes over all rows once, in shards with one ordering each. The next pass uses the
    reversed orderings. Each such pair of passes has its own orderings, shards and noise, so pairs
    are independent, and their spread gives the error from computing. An interrupt returns the
    values so far.

    Parameters
    ----------
    game : FlowGame
        The payoffs.
    stopping : Stopping
        When to stop; its units are pairs of passes.
    seed : int
        Seed of the orderings.
    n_jobs : int, optional
        Number of parallel jobs; results do not depend on it.
    progress : bool, default=False
        Whether to show a progress bar.
    """
    start = time.perf_counter()
    passes = _Passes(game, seed)
    tally = _Tally(passes.n_quantities, game)
    reason: StopReason | str | None = None
    bar = make_bar(desc="flow", unit="pair", disable=not progress)
    pairs = _compute(passes, n_jobs)
    try:
        for pair in pairs:
            tally.add(pair)
            bar.update()
            reason = stopping.reason(tally.progress(passes, time.perf_counter() - start))
            if reason is not None and tally.count > 1:
                break
    except KeyboardInterrupt:
        if tally.count < 2:
            raise
        reason = StopReason(StopKind.INTERRUPTED)
    finally:
        bar.close()
        pairs.close()
    if reason is None:
        reason = StopReason(StopKind.EXHAUSTED)
    return tally.result(passes, as_reason(reason), time.perf_counter() - start)


def _compute(passes: _Passes, n_jobs: int | None) -> Generator[_Pair]:
    """Yield pairs of passes, one after the other."""
    n_workers = joblib.effective_n_jobs(n_jobs)
    number = 0
    if n_workers == 1:
        while True:
            yield passes(number)
            number += 1
    with joblib.Parallel(n_jobs=n_jobs) as parallel:
        call = joblib.delayed(passes)
        while True:
            yield from parallel(call(number + each) for each in range(n_workers))
            number += n_workers


class _Passes:
    """Pairs of passes over the rows, by number."""

    def __init__(self, game: FlowGame, seed: int) -> None:
        self.game, self._streams = game, Streams(seed)
        network = game.network
        self.n_edges, self.n_nodes = network.n_edges, len(network.nodes)
        self.n_quantities = self.n_edges + len(PARTS) * self.n_nodes
        each = game.n_draws * max(network.n_paths, 1)
        n_rows = max(_MIN_ROWS, -(-_PREDICTIONS // each))
        self.n_shards = max(1, game.n_rows // n_rows)

    def __call__(self, number: int) -> _Pair:
        """Return the flow of a pair."""
        rng, before = self._streams("flow", number), self.game.n_predicted
        shuffled = rng.permutation(self.game.n_rows)
        rows = np.zeros((self.n_quantities, self.game.n_rows))
        by_source = np.zeros((self.n_edges, self.n_nodes))
        network = self.game.network
        shards = [np.sort(shard) for shard in np.array_split(shuffled, self.n_shards)]
        orderings = [network.draw(rng) for _ in shards]
        for half, turned in enumerate((orderings, [network.reverse(each) for each in orderings])):
            for ordering, shard in zip(turned, shards, strict=True):
                found = self.game.credits(ordering, shard, 2 * number + half)
                self._add(found, shard, rows, by_source)
        by_source /= 2 * self.game.n_rows
        return _Pair(rows / 2, by_source, self.game.n_predicted - before)

    def _add(self, found: Credits, shard: Rows, rows: Floats, by_source: Floats) -> None:
        """Credit the reductions of losses to the edges and nodes of their paths."""
        if not found.paths:
            return
        credited = np.zeros((self.n_quantities, len(found.paths)))
        for at, path in enumerate(found.paths):
            credited[list(path), at] = 1.0
            for quantity in _parts(self.game.network, path):
                credited[self.n_edges + quantity, at] = 1.0
        rows[:, shard] += credited @ found.reductions
        sums = found.reductions.sum(axis=1)
        for path, reduced in zip(found.paths, sums, strict=True):
            by_source[list(path), path[0]] += reduced


def _parts(network: Network, path: tuple[int, ...]) -> list[int]:
    """Return the parts of nodes, numbered node by node, that a path belongs to."""
    origin, n_parts = path[0], len(PARTS)
    is_direct = network.heads[path[1]] == MODEL
    found = [origin * n_parts, origin * n_parts + (1 if is_direct else 2)]
    inner = (network.tails[edge] for edge in path[2:])
    return [*found, *(node * n_parts + 3 for node in inner)]


class _Tally:
    """Sums over pairs, from which means and errors are computed."""

    def __init__(self, n_quantities: int, game: FlowGame) -> None:
        self._game = game
        self.count = self._n_predicted = 0
        self._rows = np.zeros((n_quantities, game.n_rows))
        self._squares = np.zeros((n_quantities, game.n_rows))
        self._units: list[Floats] = []
        self._by_source: list[Floats] = []

    def add(self, pair: _Pair) -> None:
        """Add a pair."""
        self.count += 1
        self._n_predicted += pair.n_predicted
        self._rows += pair.rows
        self._squares += pair.rows**2
        self._units.append(pair.rows.mean(axis=1))
        self._by_source.append(pair.by_source)

    def mean(self) -> FlowMean:
        """Return means and errors of all quantities."""
        units = np.stack(self._units)
        values = units.mean(axis=0)
        n_rows, count = self._game.n_rows, self.count
        if count < 2:
            unknown = np.full(len(values), np.nan)
            return FlowMean(values, unknown, unknown)
        # If pairs agree up to rounding, the error is zero.
        se = np.where(np.ptp(units, axis=0) == 0, 0.0, units.std(axis=0, ddof=1)) / np.sqrt(count)
        if n_rows == 1:
            return FlowMean(values, se, np.full(len(values), np.nan))
        by_row = self._rows / count
        spread = np.maximum(self._squares / count - by_row**2, 0.0).mean(axis=1) / (count - 1)
        residual = by_row - values[:, None] * self._game.weights
        both = (residual**2).sum(axis=1) / (n_rows * (n_rows - 1))
        return FlowMean(values, se, np.sqrt(np.maximum(both - spread / n_rows, 0.0)))

    def progress(self, passes: _Passes, seconds: float) -> Estimate:
        """Return the estimates that stopping rules use: those of the edges."""
        found = self.mean()
        edges = slice(0, passes.n_edges)
        looked_at = SimpleNamespace(
            values=found.values[edges],
            se=found.se[edges],
            se_rows=found.se_rows[edges],
            n_units=self.count,
            n_orderings=self.n_orderings(passes),
            is_exact=False,
            seconds=seconds,
        )
        return cast(Estimate, looked_at)

    def n_orderings(self, passes: _Passes) -> int:
        """Return the number of orderings."""
        return 2 * passes.n_shards * self.count

    def result(self, passes: _Passes, reason: StopReason, seconds: float) -> FlowEstimate:
        """Return the estimate."""
        found, n_edges = self.mean(), passes.n_edges
        shape = (passes.n_nodes, len(PARTS))
        by_source = np.stack(self._by_source)
        risk = float(self._game.losses.mean())
        sources = found.values[: passes.n_nodes]
        listed = list(self._game.network.listed)
        return FlowEstimate(
            edges=FlowMean(*(each[listed] for each in found)),
            nodes=FlowMean(*(each[n_edges:].reshape(shape) for each in found)),
            by_source=by_source.mean(axis=0)[listed],
            se_by_source=by_source.std(axis=0, ddof=1)[listed] / np.sqrt(self.count),
            base_risk=risk + float(sources.sum()),
            risk=risk,
            n_pairs=self.count,
            n_orderings=self.n_orderings(passes),
            n_predicted=self._n_predicted,
            reason=reason,
            seconds=seconds,
        )
