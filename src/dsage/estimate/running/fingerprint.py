"""Fingerprints of runs: data, model, sampler, graph, options, seeds."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dsage._files import Arrays
from dsage._version import __version__
from dsage.estimate.plan import Plan
from dsage.games.base import Game, Mask
from dsage.games.boundary import Boundary
from dsage.games.model_game import ModelGame
from dsage.graphs.separation import Oracle
from dsage.orderings import Extensions

_N_COALITIONS, _N_ROWS, _N_BATCHES = 8, 16, 4
# Separations are cheap to compute.
_N_ASKED = 4096
# Predictions of the same model may differ in their last digits: a forest with several jobs sums its
# trees in any order.
_RTOL = 1e-6

# Prefix of digests, which are not shown to users.
_DIGEST = "#"
_NONE = "none"
_SAMPLER = "the risks of some coalitions (the sampler, its noise, or the model)"


class Fingerprint(NamedTuple):
    """A description of a run: texts that must agree, and numbers that must nearly agree.

    The keys are descriptions for the user.
    """

    texts: dict[str, str]
    numbers: Arrays

    def differences(self, other: Fingerprint) -> list[str]:
        """Return the descriptions of what differs."""
        found = []
        for what in {**self.texts, **other.texts}:
            here, there = (each.texts.get(what, _NONE) for each in (self, other))
            if there != here:
                shown = f" ({there} there, {here} here)" if _DIGEST not in there + here else ""
                found.append(f"{what}{shown}")
        return found + [
            what
            for what, values in self.numbers.items()
            if not _nearly_equal(other.numbers.get(what), values)
        ]


def fingerprint(plan: Plan) -> Fingerprint:
    """Return the fingerprint of a plan."""
    game = plan.game.game
    texts = {
        "the version of dsage": __version__,
        "the features": ", ".join(game.feature_names),
        "the rows": f"{game.n_rows}",
    }
    numbers: Arrays = {}
    parts = game.parts
    texts |= {f"the graph of a game, {at}": _digest_oracle(each) for at, each in _oracles(game)}
    if not all(isinstance(part, ModelGame) for part in parts):
        ends = np.repeat([[False], [True]], len(plan.names), axis=1)
        numbers["the risks of the rows"] = game.risks(ends, np.arange(game.n_rows), 0)
    for number, part in enumerate(parts, start=1):
        of = f" of game {number}" if len(parts) > 1 else ""
        texts |= {what + of: text for what, text in _describe_game(part).items()}
        if isinstance(part, ModelGame):
            some = part.predictions[:: _step(plan, 256)]
            numbers[f"the predictions of the model{of}"] = some
    texts |= _describe_plan(plan)
    numbers[_SAMPLER] = game.risks(
        _coalitions(len(plan.names)), np.arange(game.n_rows)[:: _step(plan, _N_ROWS)], 0
    )
    return Fingerprint(texts, numbers)


def _oracles(game: Game, at: str = "game") -> list[tuple[str, Oracle]]:
    """Return the oracles of games at boundaries, with their places."""
    found = [(at, game.oracle)] if isinstance(game, Boundary) else []
    for name, inner in game.inner.items():
        found += _oracles(inner, f"{at}.{name}")
    return found


def _describe_game(game: Game) -> dict[str, str]:
    texts = {}
    if game.weights is not None:
        texts["the weights of the rows"] = _digest(np.ascontiguousarray(game.weights))
    if isinstance(game, ModelGame):
        texts["the data"] = _digest(np.ascontiguousarray(game.matrix))
        texts["the model"] = game.model.name
        texts["the sampler"] = _repr(game.sampler)
        if game.target is not None:
            texts["the targets"] = _digest(np.ascontiguousarray(game.target))
        if game.loss is not None:
            texts["the loss"] = game.loss.name
    return texts


def _describe_plan(plan: Plan) -> dict[str, str]:
    texts = {"the seed": str(plan.streams.entropy)}
    texts |= {f"the option {name!r}": value for name, value in plan.described.items()}
    n_batches = plan.orderings.n_batches or _N_BATCHES
    batches = [plan.orderings.batch(number) for number in range(n_batches)]
    texts["the orderings"] = f"{_repr(plan.orderings)} {_digest(*batches)}"
    if isinstance(plan.orderings, Extensions):
        texts["the order of the features"] = _digest(plan.orderings.order.before)
    texts["the shards of rows"] = _digest(np.concatenate(plan.shards), len(plan.shards))
    if plan.oracle is not None:
        texts["the graph"] = _digest_oracle(plan.oracle)
    return texts


def _digest_oracle(oracle: Oracle) -> str:
    known = _coalitions(len(oracle.feature_names), _N_ASKED)
    return _digest(oracle.separated(known), oracle.boundary(known))


def _coalitions(n_features: int, n_coalitions: int = _N_COALITIONS) -> Mask:
    """Return some coalitions, the same in every run."""
    generator = np.random.default_rng(0)
    known: Mask = generator.random((n_coalitions, n_features)) < generator.random((n_coalitions, 1))
    return known


def _step(plan: Plan, n_wanted: int) -> int:
    return -(-plan.game.n_rows // n_wanted)


def _repr(value: object) -> str:
    """Return the repr of an object, without its address in memory."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _nearly_equal(there: npt.NDArray[Any] | None, here: npt.NDArray[Any]) -> bool:
    if there is None or there.shape != here.shape:
        return False
    scale = float(np.abs(here).max(initial=0.0))
    return np.allclose(there, here, rtol=_RTOL, atol=_RTOL * scale)


def _digest(*values: Any) -> str:  # noqa: ANN401
    digest = blake2b(digest_size=16)
    for value in values:
        array = np.asarray(value)
        digest.update(str((array.dtype, array.shape)).encode())
        if array.dtype.hasobject:
            digest.update(str(array.tolist()).encode())
        else:
            # The bytes themselves, without a copy if they are contiguous.
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return _DIGEST + digest.hexdigest()
