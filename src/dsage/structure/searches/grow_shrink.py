"""Grow and shrink the parents of one node among its predecessors, remembering every step."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dsage.structure.scores.base import Parents, Score

NOWHERE = 1 << 60
"""A rank after all others."""

# Relative changes of a score below this are rounding errors, not improvements.
_RELATIVE_TOLERANCE = 1e-11


def tolerance(score: float) -> float:
    """Return the smallest change of `score` that counts as an improvement."""
    return _RELATIVE_TOLERANCE * max(1.0, abs(score))


class Step:
    """A set of parents reached while growing, and the possible next steps.

    `candidates` raise the score as one more parent, the best first. `before` is the step before
    the last parent was `added`; `after` has the next steps found so far, by what they add.
    """

    __slots__ = ("added", "after", "before", "candidates", "parents", "shrunk")

    def __init__(
        self, parents: Parents, candidates: array[int], before: Step | None, added: int
    ) -> None:
        self.parents = parents
        self.candidates = candidates
        self.before = before
        self.added = added
        self.after: dict[int, Step] = {}
        self.shrunk: tuple[Parents, float] | None = None


class GrowShrink:
    """The grow-shrink tree of one node (Andrews et al. 2023).

    An order of the variables is projected to parents of the node: starting from the required ones,
    the best candidate among the predecessors of the node is added while that raises the score;
    then the worst parent is removed while that raises it. Ties go to the first variable. All
    steps are kept, so another order costs only the steps that no order took before. The array
    `allowed`, (n_nodes,), marks the possible parents; `max_parents` bounds their number while
    growing.
    """

    def __init__(
        self,
        score: Score,
        node: int,
        allowed: npt.NDArray[np.bool_],
        required: Iterable[int] = (),
        max_parents: int | None = None,
    ) -> None:
        self._score = score
        self._node = node
        self._is_free = bool(np.delete(allowed, node).all())
        self._allowed = allowed
        self._required = tuple(sorted(required))
        self._max_parents = len(allowed) if max_parents is None else max_parents
        self._type = ("H", np.uint16) if len(allowed) <= 1 << 16 else ("I", np.uint32)
        self._candidates: dict[Parents, array[int]] = {}
        self._shrunk: dict[Parents, tuple[Parents, float]] = {}
        self._values: dict[Parents, float] = {}
        self.n_scored = 0
        self._first = self._step(self._required, None, -1)

    @property
    def n_steps(self) -> int:
        """The number of sets of parents that were grown further."""
        return len(self._candidates)

    def grow(self, rank: Sequence[int], limit: int) -> Step:
        """Grow among the variables of rank below `limit`; return the last step."""
        step = self._first
        while True:
            for candidate in step.candidates:
                if rank[candidate] < limit:
                    step = step.after.get(candidate) or self._follow(step, candidate)
                    break
            else:
                return step

    def grow_all(
        self, rank: Sequence[int], wanted: npt.NDArray[np.bool_]
    ) -> list[tuple[int, int, Step]]:
        """Grow for many limits at once: those that `wanted`, (n_limits,), marks.

        Returns triples: the first and the last limit that lead to a step, and this step. All
        wanted limits are covered; others may be.
        """
        ends: list[tuple[int, int, Step]] = []
        n_wanted = [0, *wanted.cumsum().tolist()]
        waiting = [(self._first, 0, len(wanted) - 1)]
        while waiting:
            step, low, high = waiting.pop()
            # A candidate is used for the limits above its rank, unless a better one is.
            for candidate in step.candidates:
                if n_wanted[high + 1] == n_wanted[low]:
                    break
                first = rank[candidate] + 1
                if first <= high:
                    first = max(first, low)
                    if n_wanted[high + 1] > n_wanted[first]:
                        after = step.after.get(candidate) or self._follow(step, candidate)
                        waiting.append((after, first, high))
                    high = first - 1
            else:
                if n_wanted[high + 1] > n_wanted[low]:
                    ends.append((low, high, step))
        return ends

    def shrink(self, step: Step) -> tuple[Parents, float]:
        """Return the parents left after shrinking from `step`, and their score."""
        if step.shrunk is None:
            step.shrunk = self._shrunk.get(step.parents)
            if step.shrunk is None:
                step.shrunk = self._shrunk[step.parents] = self._shrink(step.parents)
        return step.shrunk

    def sensitive(self, step: Step) -> npt.NDArray[np.bool_]:
        """Mark the variables, (n_nodes,), on whose position it depends that growing ends at `step`.

        If any other variable becomes available, or ceases to be, growing takes the same steps.
        """
        marks = np.zeros(len(self._allowed), dtype=np.bool_)
        marks[np.frombuffer(step.candidates, dtype=self._type[1])] = True
        while step.before is not None:
            candidates = step.before.candidates
            taken = candidates.index(step.added)
            marks[np.frombuffer(candidates, dtype=self._type[1], count=taken + 1)] = True
            step = step.before
        return marks

    def _follow(self, step: Step, candidate: int) -> Step:
        parents = tuple(sorted((*step.parents, candidate)))
        after = step.after[candidate] = self._step(parents, step, candidate)
        return after

    def _step(self, parents: Parents, before: Step | None, added: int) -> Step:
        candidates = self._candidates.get(parents)
        if candidates is None:
            candidates = self._candidates[parents] = self._find_candidates(parents)
        return Step(parents, candidates, before, added)

    def _find_candidates(self, parents: Parents) -> array[int]:
        if len(parents) >= self._max_parents:
            return array(self._type[0])
        values, value = self._score.growth(self._node, parents)
        self.n_scored += 1 + len(values)
        found = (values > value + tolerance(value)).nonzero()[0]
        if not self._is_free:
            found = found[self._allowed[found]]
        # A stable sort: ties go to the first variable.
        found = found[(-values[found]).argsort(kind="stable")]
        return array(self._type[0], found.astype(self._type[1]).tobytes())

    def _shrink(self, parents: Parents) -> tuple[Parents, float]:
        value = self._score.family(self._node, parents)
        while len(parents) > len(self._required):
            values = self._score.removals(self._node, parents)
            self.n_scored += len(parents)
            removable = [parent for parent in parents if parent not in self._required]
            worst = max(removable, key=values.__getitem__)
            if values[worst] <= value + tolerance(value):
                break
            parents = tuple(parent for parent in parents if parent != worst)
            value = float(values[worst])
        # The same parents always get the same score, to the bit, whatever was removed before;
        # otherwise rounding could make a round trip of moves look like an improvement.
        return parents, self._values.setdefault(parents, value)
