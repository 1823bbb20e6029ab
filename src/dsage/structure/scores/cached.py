"""Cache the results of a score."""

from __future__ import annotations

from collections.abc import Sequence

from dsage.structure.scores.base import Ceilings, Floats, Parents, Score

Key = tuple[int, Parents]


class CachedScore(Score):
    """A score that computes each answer once, for scores that are slow to compute.

    The score of a family is also read from the additions to a family with one parent fewer. When
    the answers take about `max_bytes`, all are forgotten.
    """

    def __init__(self, score: Score, *, max_bytes: int = 256 * 2**20) -> None:
        self.names = score.names
        self._score = score
        self._families: dict[Key, float] = {}
        self._additions: dict[Key, Floats] = {}
        # An entry also takes memory for its key and for the header of its array.
        self._entry_bytes = 400 + 8 * len(score.names)
        self._max_entries = max(1, max_bytes // self._entry_bytes)

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
        """Return, for every variable, the score of `node` with it as one more parent."""
        known = self._additions.get((node, parents))
        if known is None:
            self._make_room()
            known = self._score.additions(node, parents)
            known.flags.writeable = False
            self._additions[node, parents] = known
        return known

    def ceilings(self, order: Sequence[int]) -> Ceilings | None:
        """Return the upper bounds of the cached score."""
        return self._score.ceilings(order)

    def _make_room(self) -> None:
        if len(self._families) + len(self._additions) >= self._max_entries:
            self._families.clear()
            self._additions.clear()
