"""Derive independent random streams from one seed, by purpose and by key."""

from __future__ import annotations

import secrets
import zlib

import numpy as np

from dsage._check import refusal

RandomState = int | np.random.Generator | None
RngLike = RandomState | np.random.SeedSequence | np.random.BitGenerator


def one_seed(random_state: RandomState, rng: RngLike, default: RandomState = None) -> RandomState:
    """Return the seed that was given as `random_state` or as `rng`; refuse both.

    `default` is the default of `random_state`. If `random_state` equals it, `rng` takes precedence,
    because a default cannot be distinguished from a passed value.

    Examples
    --------
    >>> one_seed(None, 3), one_seed(4, None), one_seed(0, 3, default=0)
    (3, 4, 3)
    """
    if rng is None:
        return random_state
    is_default = isinstance(random_state, int) and random_state == default
    if random_state is not None and not is_default:
        advice = "They are two names of one option: pass one"
        raise refusal("rng", "left out if random_state is given", rng, advice, TypeError)
    if isinstance(rng, (np.random.SeedSequence, np.random.BitGenerator)):
        return np.random.default_rng(rng)
    if isinstance(rng, np.random.Generator) or (
        isinstance(rng, (int, np.integer)) and not isinstance(rng, bool)
    ):
        return rng
    condition = "an int, a numpy Generator, SeedSequence or BitGenerator, or None"
    raise refusal("rng", condition, rng, "Use an int to reproduce results", TypeError)


class Streams:
    """Random streams of one run, each determined by its purpose and keys.

    An int makes everything reproducible. A Generator provides the seed, so using it twice yields
    different streams. None uses fresh entropy from the system.
    """

    __slots__ = ("_entropy",)

    def __init__(self, random_state: RandomState = None) -> None:
        entropy: int
        if random_state is None:
            entropy = secrets.randbits(128)
        elif isinstance(random_state, np.random.Generator):
            entropy = int(random_state.integers(2**63))
        elif isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
            entropy = int(random_state)
        else:
            condition, advice = (
                "an int, a numpy Generator or None",
                "Use an int to reproduce results",
            )
            raise refusal("random_state", condition, random_state, advice, TypeError)
        if entropy < 0:
            raise refusal("random_state", "non-negative", entropy, "Use 0 or more")
        self._entropy = entropy

    @property
    def entropy(self) -> int:
        """The seed, which reproduces the streams."""
        return self._entropy

    def __call__(self, purpose: str, *keys: int) -> np.random.Generator:
        """Return a new generator for `purpose` and `keys`."""
        spawn_key = (zlib.crc32(purpose.encode()), *keys)
        sequence = np.random.SeedSequence(self._entropy, spawn_key=spawn_key)
        return np.random.Generator(np.random.PCG64(sequence))
