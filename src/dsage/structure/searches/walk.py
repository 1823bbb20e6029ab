"""Walk a variable out of its place in an order, step by step in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Stop(NamedTuple):
    """Neighbouring places of a variable that only its own parents tell apart.

    Place r is before the variable of rank r. To get there from the previous stop, the variable
    passes the node `passed`, which depends on it; None if it passes none.
    """

    passed: int | None
    first: int
    last: int


def stops(
    here: int, dependents: Iterable[int], rank: Sequence[int], legal: tuple[int, int]
) -> Iterator[list[Stop]]:
    """Yield the stops behind a variable of rank `here`, and those before it, the nearest first.

    Parameters
    ----------
    here : int
    dependents : iterable of int
        The nodes whose parents depend on whether they precede the variable.
    rank : sequence of int
        The rank of each node.
    legal : tuple of two ints
        The first and the last place that the variable may have.

    Examples
    --------
    >>> behind, before = stops(2, [0, 1, 3], [0, 1, 2, 3, 4], (0, 5))
    >>> [tuple(stop) for stop in behind], [tuple(stop) for stop in before]
    ([(None, 3, 3), (3, 4, 5)], [(1, 1, 1), (0, 0, 0)])
    """
    ordered = sorted(dependents, key=rank.__getitem__)
    behind = [node for node in ordered if here < rank[node] < legal[1]]
    starts = [here + 1, *(rank[node] + 1 for node in behind)]
    ends = [*(rank[node] for node in behind), legal[1]]
    yield [Stop(*each) for each in zip([None, *behind], starts, ends, strict=True)]
    # Fewer predecessors are worth less: nothing is gained before the first node is passed.
    before = [node for node in reversed(ordered) if legal[0] <= rank[node] < here]
    starts = [*(rank[node] + 1 for node in before[1:]), legal[0]]
    yield [Stop(node, start, rank[node]) for node, start in zip(before, starts, strict=False)]
