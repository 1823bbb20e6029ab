"""Remember what a score has answered."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsage.structure.scores.base import Parents, Score

Floats = npt.NDArray[np.float64]
Key = tuple[int, Parents]


class Cached:
    """A score that answers each question once, for scores that are slow to compute.

    The score of a family is also taken from the answer to "all additions" for one parent fewer.

    Parameters
    ----------
    score : Score
        The score to ask.
    max_bytes : int, default=256 MiB
        When the answers take more memory than about this, all are forgotten.
    """

    def __init__(self, score: Score, *, max_bytes: int = 256 * 2**20) -> None:
        self._score = score
        self._families: dict[Key, float] = {}
        self._additions: dict[Key, Floats] = {}
        # An entry costs its key and its array's header beside the numbers.
        self._entry_bytes = 400 + 8 * len(score.names)
        self._max_entries = max(1, max_bytes // self._entry_bytes)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self._score.names

    def family(self, node: int, parents: Parents) -> float:
        """Return the score of `node` with exactly these parents."""
        known = self._families.get((node, parents))
        if known is not None:
            return known
        for at, parent in enumerate(parents):
            fewer = self._additions.get((node, parents[:at] + parents[at + 1 :]))
            if fewer is not None:
                return float(fewer[parent])
        self._make_room()
        answer = self._families[node, parents] = self._score.family(node, parents)
        return answer

    def additions(self, node: int, parents: Parents) -> Floats:
        """Return for every variable the score of `node` with it as one more parent."""
        known = self._additions.get((node, parents))
        if known is None:
            self._make_room()
            known = self._score.additions(node, parents)
            known.flags.writeable = False
            self._additions[node, parents] = known
        return known

    def removals(self, node: int, parents: Parents) -> Floats:
        """Return for every parent the score of `node` without it."""
        scores = np.full(len(self.names), -np.inf)
        for at, parent in enumerate(parents):
            scores[parent] = self.family(node, parents[:at] + parents[at + 1 :])
        return scores

    def _make_room(self) -> None:
        if len(self._families) + len(self._additions) >= self._max_entries:
            self._families.clear()
            self._additions.clear()
