"""Kernel herding: orderings that represent all orderings better than random ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsage._check import check_count
from dsage._random import Streams
from dsage.orderings.base import KINDS, Positions, Unbounded, relabel

_STRENGTH = 4.0
# Few, because larger batches use fewer rows for the same cost.
_ORDERINGS = 4
_CANDIDATES = 32


@KINDS.register("herding", summary="orderings chosen to represent all orderings")
class Herded(Unbounded):
    """One set of herded orderings, with the features renamed at random in each batch.

    Herding (Mitchell, Cooper, Frank & Holmes, 2022) chooses orderings one after the other such that
    their mean in the space of a kernel, `mallows_kernel`, is close to that of all orderings. The
    mean of a row of the kernel over all orderings is the same for every ordering, so the next one
    is the candidate with the smallest sum of kernels to those already chosen. Herded orderings are
    neither random nor independent. Therefore only one set is herded, and each batch is this set
    with the features renamed by a uniform permutation, which does not change the kernel: each
    ordering of a batch is uniform, its mean surplus is unbiased, and batches are independent.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Source of randomness.
    n_orderings : int, default=4
        Number of orderings in a batch.
    n_candidates : int, default=32
        Number of random orderings among which, with their reverses, the next one is chosen.

    Examples
    --------
    >>> from dsage._random import Streams
    >>> Herded(6, Streams(0)).batch(0).shape
    (4, 6)
    """

    def __init__(
        self,
        n_features: int,
        streams: Streams,
        n_orderings: int = _ORDERINGS,
        n_candidates: int = _CANDIDATES,
    ) -> None:
        super().__init__(n_features, streams)
        self.batch_size = check_count(n_orderings, "n_orderings")
        n_candidates = check_count(n_candidates, "n_candidates")
        self._herd = herd(streams("herding"), self.n_features, self.batch_size, n_candidates)

    def batch(self, number: int) -> Positions:
        """Return batch `number`, (batch_size, n_features)."""
        return relabel(self._herd, self._first(number))


def herd(
    generator: np.random.Generator, n_features: int, n_orderings: int, n_candidates: int
) -> Positions:
    """Return herded orderings (n_orderings, n_features); the first is 0, 1, .., d - 1."""
    chosen = [np.arange(n_features)]
    while len(chosen) < n_orderings:
        random = generator.permuted(np.tile(chosen[0], (n_candidates, 1)), axis=1)
        candidates = np.concatenate([chosen[-1][None, ::-1], random, random[:, ::-1]])
        nearness = mallows_kernel(candidates, np.array(chosen)).sum(axis=1)
        chosen.append(candidates[np.argmin(nearness)])
    return np.array(chosen)


def mallows_kernel(one: Positions, other: Positions) -> npt.NDArray[np.float64]:
    """Return ``K(s, t) = exp(-4 n_dis(s, t) / C(d, 2))``, (n_one, n_other).

    n_dis is the number of pairs of features that the two orderings arrange differently.
    """
    first, second = _pair_signs(one), _pair_signs(other)
    n_pairs = max(first.shape[1], 1)
    # The signs agree in n_pairs - n_dis places and disagree in n_dis.
    n_dis: npt.NDArray[np.float64] = (first.shape[1] - first @ second.T) / 2
    kernel: npt.NDArray[np.float64] = np.exp(-_STRENGTH * n_dis / n_pairs)
    return kernel


def _pair_signs(orderings: Positions) -> npt.NDArray[np.float64]:
    """Return 1 for each pair of features in order, else -1, (n_orderings, n_pairs)."""
    position = np.argsort(orderings, axis=1)
    one, other = np.triu_indices(orderings.shape[1], k=1)
    return np.where(position[:, one] < position[:, other], 1.0, -1.0)
