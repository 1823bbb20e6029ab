"""Check pairs of names: edges of a graph, constraints on them, or pairs of an order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from dsage._check import check_member, refusal


def check_pairs(
    pairs: object, names: Sequence[str], parameter: str, of: str
) -> Iterator[tuple[int, int]]:
    """Yield pairs of different names as positions in `names`, which are `of`."""
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        advice = "Write them as [('a', 'b'), ...]"
        raise refusal(parameter, "an iterable of pairs", pairs, advice, TypeError)
    position = {name: at for at, name in enumerate(names)}
    for pair in pairs:
        is_ordered = isinstance(pair, Iterable) and not isinstance(pair, (str, AbstractSet))
        if not is_ordered or len(ends := tuple(pair)) != 2:
            raise refusal(parameter, "pairs of names", pair, "Write each as ('a', 'b')")
        for end in ends:
            if not isinstance(end, str) or end not in position:
                check_member(end, names, f"an end of {ends!r}", of)
        if ends[0] == ends[1]:
            raise refusal(parameter, "of two different names", ends, "Remove this pair")
        yield position[ends[0]], position[ends[1]]
