"""Derive independent random streams from one seed, by purpose and by key."""

from __future__ import annotations

import secrets
import zlib

import numpy as np

from dsage._check import refusal

RandomState = int | np.random.Generator | None


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
