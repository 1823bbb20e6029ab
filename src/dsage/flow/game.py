"""The payoffs of the states of a network: draws of the noise, predictions, losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dsage.flow.mechanisms import Mechanism
from dsage.flow.network import MODEL, Network, Ordering
from dsage.games.base import Floats, Rows
from dsage.games.loss import LossGame
from dsage.models.losses import Loss
from dsage.models.model import Model
from dsage.samplers.base import Sampler
from dsage.samplers.noise import Noise

# Copies of the model's inputs in memory: draws, a frame, and the model's own copy.
_COPIES = 6

Path = tuple[int, ...]


class Credits(NamedTuple):
    """How much each path reduced the loss of each row, in the order of the ordering."""

    paths: tuple[Path, ...]
    reductions: Floats  # (n_paths, n_rows)


class FlowGame(LossGame):
    """The loss of the mean prediction while messages travel along the edges of a network.

    At first all nodes have values drawn from random noise of the mechanisms, the *background*. An
    ordering then activates the sources one after the other: the noise of a node is replaced by the
    noise of the row or, if features are set, its value by the value in the row. A node whose value
    changes sends it along its outgoing edges, in the order of the ordering, and each message goes
    all the way to the model before the next one starts (depth first). When a message arrives, the
    reduction of the loss of the mean prediction over the draws is credited to the path that the
    message took.

    Parameters
    ----------
    model : Model
        The model.
    sampler : Sampler
        A fitted marginal sampler, which knows the columns.
    X, y
        Evaluation rows and their targets.
    network : Network
        The network.
    mechanisms : sequence of Mechanism
        The mechanism of each node of the network.
    values : array of shape (n_rows, n_nodes)
        The values of all nodes in the evaluation rows.
    loss : Loss
        The loss.
    **options
        See :class:`dsage.games.GameOptions`.
    """

    def __init__(
        self,
        model: Model,
        sampler: Sampler,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        *,
        network: Network,
        mechanisms: Sequence[Mechanism],
        values: Floats,
        loss: Loss,
        **options: Any,  # noqa: ANN401
    ) -> None:
        options["draw_control"] = "none"
        super().__init__(model, sampler, X, y, loss=loss, **options)
        # Messages are made here, not on a device.
        self._device = None
        self.network, self.mechanisms = network, tuple(mechanisms)
        self.values = values
        ends = np.cumsum([0, *(2 * each.n_uniforms for each in mechanisms)])
        self._ends = ends.tolist()
        self.flow_noise = Noise(
            self._streams,
            int(ends[-1]),
            n_replicates=self.noise.n_replicates,
            n_draws=self.noise.n_draws,
            kind=self.noise.kind,  # type: ignore[arg-type]
        )
        self._own = self._own_lines()

    @property
    def is_drawn(self) -> bool:
        """True: noise is drawn, whatever the model."""
        return True

    def _own_lines(self) -> list[Floats]:
        """Return the lines of each node in the evaluation rows, (n_rows, n_lines)."""
        found = []
        for mechanism, parents in zip(self.mechanisms, self.network.parents, strict=True):
            given = [self.values[:, parent] for parent in parents]
            lines = mechanism.effects.lines(given)
            found.append(np.broadcast_to(lines, (self.n_rows, lines.shape[-1])))
        return found

    @property
    def n_draws(self) -> int:
        """Draws of each row."""
        return self.flow_noise.n_replicates * self.flow_noise.n_draws

    def credits(self, ordering: Ordering, rows: Rows, epoch: int) -> Credits:
        """Return how much each path reduces the losses of some rows.

        For each row and every ordering, the sum over all paths is the loss with background values
        only minus the loss of the model's prediction.
        """
        walk = _Walk(self, ordering, rows, self.flow_noise(rows, epoch))
        n_bytes = 8 * _COPIES * len(rows) * self.n_draws * len(self.feature_names)
        most = max(1, self._max_bytes // n_bytes)
        paths: list[Path] = []
        losses: list[Floats] = []
        waiting = [walk.inputs.copy()]
        for path in walk.paths():
            if len(waiting) == most:
                losses.append(self._losses(waiting, rows))
                waiting = []
            paths.append(path)
            waiting.append(walk.inputs.copy())
        losses.append(self._losses(waiting, rows))
        along = np.concatenate(losses)
        return Credits(tuple(paths), along[:-1] - along[1:])

    def _losses(self, states: list[Floats], rows: Rows) -> Floats:
        """Return the losses (n_states, n_rows) of the mean predictions of states."""
        means = self._predict(np.stack(states))
        if self._redraws:
            target = self.target[rows]
            flat = np.moveaxis(means, 2, 1).reshape(-1, len(rows), *means.shape[3:])
            low = self.loss.too_low(target, flat).reshape(len(means), means.shape[2], -1)
            states_at, at = np.nonzero(low.any(axis=1))
            if len(at):
                self._warn_of_zeros(means[states_at, at], target[at], len(means) * len(rows))
        losses: Floats = self._to_risks(means, rows).mean(axis=2)
        return losses

    def noises(self, node: int, uniforms: Floats, rows: Rows) -> tuple[Floats, Floats]:
        """Return the background noise and the rows' noise of a node, (n_rows, n_draws, n_noise)."""
        mechanism, n_uniforms = self.mechanisms[node], self.mechanisms[node].n_uniforms
        first = self._ends[node]
        mine = uniforms[..., first : first + n_uniforms]
        other = uniforms[..., first + n_uniforms : first + 2 * n_uniforms]
        own = self._own[node][rows]
        return mechanism.draw(mine), mechanism.abduct(self.values[rows, node], own, other)

    def own_lines(self, node: int, rows: Rows) -> Floats:
        """Return the lines of a node in evaluation rows."""
        return self._own[node][rows]


class _Walk:
    """The messages of one ordering for some rows: values of nodes, and inputs of the model."""

    def __init__(self, game: FlowGame, ordering: Ordering, rows: Rows, uniforms: Floats) -> None:
        self._game, self._network, self._ordering = game, game.network, ordering
        self._rows = rows
        self._is_active = [False] * len(self._network.nodes)
        self._places = {
            (head, parent): at
            for head, parents in enumerate(self._network.parents)
            for at, parent in enumerate(parents)
        }
        shape = uniforms.shape[:2]
        self._noise: list[Floats] = []
        self._own_noise: list[Floats] = []
        self._added: list[list[Floats]] = []
        self._lines: list[Floats] = []
        self._values: list[Floats] = []
        self.inputs = np.empty((*shape, len(game.feature_names)))
        for node, mechanism in enumerate(game.mechanisms):
            background, own = game.noises(node, uniforms, rows)
            self._noise.append(background)
            self._own_noise.append(own)
            given = [self._values[parent] for parent in self._network.parents[node]]
            effects = mechanism.effects
            self._added.append([effects.add(at, given[at]) for at in range(len(effects))])
            self._lines.append(self._sum(node, shape))
            self._values.append(self._value(node))
            if self._network.columns[node] >= 0:
                self.inputs[..., self._network.columns[node]] = self._values[node]

    def _sum(self, node: int, shape: tuple[int, ...]) -> Floats:
        intercept = self._game.mechanisms[node].effects.intercept
        lines = np.broadcast_to(intercept, (*shape, len(intercept))).copy()
        for added in self._added[node]:
            lines += added
        return lines

    def _value(self, node: int) -> Floats:
        """Return the values (n_rows, n_draws) of a node, by its lines and its noise."""
        mechanism = self._game.mechanisms[node]
        if not self._is_active[node]:
            return mechanism.value(self._lines[node], self._noise[node])
        x = self._game.values[self._rows, node]
        if self._network.is_set:
            return np.broadcast_to(x[:, None], self._values[node].shape)
        own = self._game.own_lines(node, self._rows)
        return mechanism.value_of_rows(x, own, self._lines[node], self._own_noise[node])

    def paths(self) -> Iterator[Path]:
        """Yield the path of each message that changes the inputs of the model, after it did."""
        for node in self._ordering.sources:
            self._is_active[node] = True
            if self._update(node):
                yield from self._send(node, (node,))

    def _send(self, node: int, path: Path) -> Iterator[Path]:
        for edge in self._ordering.leaving[node]:
            head = self._network.heads[edge]
            if head == MODEL:
                column = self._network.columns[node]
                if not _same(self.inputs[..., column], self._values[node]):
                    self.inputs[..., column] = self._values[node]
                    yield (*path, edge)
            elif self._receive(head, node):
                yield from self._send(head, (*path, edge))

    def _receive(self, head: int, tail: int) -> bool:
        """Take a message; return whether it changes the value of the node."""
        if self._network.is_set and self._is_active[head]:
            # A feature that is set ignores messages.
            return False
        at = self._places[head, tail]
        effects = self._game.mechanisms[head].effects
        if not len(effects):
            return False
        self._added[head][at] = effects.add(at, self._values[tail])
        # Recomputed, so that rounding errors do not accumulate.
        self._lines[head] = self._sum(head, self._values[tail].shape)
        return self._update(head)

    def _update(self, node: int) -> bool:
        """Compute the value of a node; return whether it changed."""
        value = self._value(node)
        is_new = not _same(value, self._values[node])
        self._values[node] = value
        return is_new


def _same(one: Floats, other: Floats) -> bool:
    return bool(np.array_equal(one, other, equal_nan=True))
