"""Kernel herding: orderings that stand for all orderings better than as many random ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsage._check import check_count
from dsage._random import Streams
from dsage.orderings.base import Unbounded, relabelled

_STRENGTH = 4.0
# Few, as larger units see fewer rows for the same cost.
_ORDERINGS = 4
_CANDIDATES = 32


class Herded(Unbounded):
    """One set of herded orderings, with the features renamed at random in each unit.

    Herding (Mitchell, Cooper, Frank & Holmes, 2022) chooses, one after the other, orderings whose
    mean in the space of a kernel is close to that of all orderings. The kernel is that of Mallows,
    `mallows_kernel`. The mean of a row of the kernel over all orderings is the same for every
    ordering, so that the next one is the candidate with the smallest sum of kernels to those
    chosen. Herded orderings are neither random nor independent. So one set is herded, and unit u
    is this set with the features renamed by a uniform permutation of its own, which does not change
    the kernel: each ordering of a unit is uniform, so its mean surplus is unbiased, and units are
    independent.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Where the randomness comes from.
    n_orderings : int, default=4
        Number of orderings in a unit.
    n_candidates : int, default=32
        Among how many random orderings, and their reverses, each next one is chosen.

    Examples
    --------
    >>> from dsage._random import Streams
    >>> Herded(6, Streams(0)).batch(0).shape
    (4, 6)
    >>> herded = Herded(6, Streams(0), n_orderings=20).batch(0)
    >>> random = np.array([Streams(0)("example", k).permutation(6) for k in range(20)])
    >>> bool(discrepancy(herded) < discrepancy(random) / 2)
    True
    """

    __slots__ = ("_herd",)

    def __init__(
        self,
        n_features: int,
        streams: Streams,
        n_orderings: int = _ORDERINGS,
        n_candidates: int = _CANDIDATES,
    ) -> None:
        super().__init__(n_features, streams)
        self._herd = herd(
            streams("herding"),
            self._n_features,
            check_count(n_orderings, "n_orderings"),
            check_count(n_candidates, "n_candidates"),
        )

    @property
    def batch_size(self) -> int:
        """Number of orderings in a unit."""
        return len(self._herd)

    def batch(self, number: int) -> npt.NDArray[np.intp]:
        """Return unit `number` as an array (batch_size, n_features)."""
        return relabelled(self._herd, self._first(number))


def herd(
    generator: np.random.Generator, n_features: int, n_orderings: int, n_candidates: int
) -> npt.NDArray[np.intp]:
    """Return herded orderings (n_orderings, n_features); the first is 0, 1, .., d - 1."""
    chosen = [np.arange(n_features)]
    while len(chosen) < n_orderings:
        random = generator.permuted(np.tile(chosen[0], (n_candidates, 1)), axis=1)
        candidates = np.concatenate([chosen[-1][None, ::-1], random, random[:, ::-1]])
        nearness = mallows_kernel(candidates, np.array(chosen)).sum(axis=1)
        chosen.append(candidates[np.argmin(nearness)])
    return np.array(chosen)


def mallows_kernel(
    one: npt.NDArray[np.intp], other: npt.NDArray[np.intp], strength: float = _STRENGTH
) -> npt.NDArray[np.float64]:
    """Return ``K(s, t) = exp(-strength n_dis(s, t) / C(d, 2))``, (n_one, n_other).

    n_dis counts the pairs of features that the two orderings arrange differently.

    Examples
    --------
    >>> mallows_kernel(np.array([[0, 1, 2]]), np.array([[0, 1, 2], [2, 1, 0]])).round(3)
    array([[1.   , 0.018]])
    """
    first, second = _signs(one), _signs(other)
    n_pairs = max(first.shape[1], 1)
    # The signs agree in n_pairs - n_dis places and disagree in n_dis.
    n_dis: npt.NDArray[np.float64] = (first.shape[1] - first @ second.T) / 2
    kernel: npt.NDArray[np.float64] = np.exp(-strength * n_dis / n_pairs)
    return kernel


def discrepancy(orderings: npt.NDArray[np.intp], strength: float = _STRENGTH) -> float:
    """Return the squared distance to all orderings in the space of the Mallows kernel.

    ``MMD^2 = mean K(s, t) over pairs of the set - mean K(s, t) over all t``, as the last mean is
    the same for every s. It is ``1 / d! times the product of (1 - q^i) / (1 - q)``, i = 1..d, with
    ``q = exp(-strength / C(d, 2))``, the generating function of the number of inversions.

    Examples
    --------
    >>> round(discrepancy(np.array([[0, 1], [1, 0]])), 12)
    0.0
    """
    n_features = orderings.shape[1]
    n_pairs = n_features * (n_features - 1) // 2
    q = np.exp(-strength / max(n_pairs, 1))
    sizes = np.arange(1, n_features + 1)
    every = np.prod((1 - q**sizes) / ((1 - q) * sizes))
    return float(mallows_kernel(orderings, orderings, strength).mean() - every)


def _signs(orderings: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """Return for each pair of features which comes first, -1 or 1, (n_orderings, n_pairs)."""
    position = np.argsort(orderings, axis=1)
    one, other = np.triu_indices(orderings.shape[1], k=1)
    return np.where(position[:, one] < position[:, other], 1.0, -1.0)
