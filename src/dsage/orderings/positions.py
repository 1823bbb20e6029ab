"""Read one ordering, by names or by positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dsage._check import check_member, refusal


def as_positions(ordering: object, names: tuple[str, ...]) -> npt.NDArray[np.intp]:
    """Return one ordering as positions, after checking that it is a permutation."""
    if isinstance(ordering, str) or not isinstance(ordering, (Sequence, np.ndarray)):
        advice = "Put one ordering into a list"
        raise refusal("orderings", "a list of orderings", ordering, advice, TypeError)
    place = {name: at for at, name in enumerate(names)}
    positions = []
    for feature in ordering:
        if isinstance(feature, str):
            positions.append(place[check_member(feature, names, "orderings", "the features")])
        elif isinstance(feature, (int, np.integer)) and not isinstance(feature, bool):
            positions.append(int(feature))
        else:
            advice = "Pass strings or integers"
            raise refusal("orderings", "of names or positions", feature, advice, TypeError)
    if sorted(positions) != list(range(len(names))):
        missing = [name for at, name in enumerate(names) if at not in positions]
        condition = f"permutations of the {len(names)} features, each once"
        advice = f"Missing: {', '.join(missing) or 'none'}; positions count from 0"
        raise refusal("orderings", condition, list(ordering), advice)
    return np.array(positions, dtype=np.intp)
