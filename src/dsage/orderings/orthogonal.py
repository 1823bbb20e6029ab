"""Orthogonal spherical codes: orderings spread evenly over the sphere of all orderings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import helmert

from dsage._check import check_count, refusal
from dsage._random import Streams
from dsage.orderings.base import KINDS, Positions, Unbounded, relabel

# Larger batches have less variance per ordering, but use fewer rows for the same cost. With a first
# level, which removes most of the variance of the orderings, the rows matter more.
_VECTORS = 2


@KINDS.register("orthogonal", summary="orderings of orthogonal directions, and their reverses")
class Orthogonal(Unbounded):
    """Orderings of random orthogonal vectors, each with its reverse.

    The centered positions of the features in an ordering are a point on a sphere in the hyperplane
    orthogonal to (1, .., 1), of dimension d - 1 (Mitchell, Cooper, Frank & Holmes, 2022). Here k
    orthonormal vectors x of the hyperplane are drawn, uniformly among all such systems. Sorting the
    features by the entries of x and of -x gives an ordering and its reverse, whose points are
    nearest to x and -x. So the orderings of a batch are spread more evenly than independent ones.
    The distribution of the vectors does not change if the features are renamed, hence each ordering
    is uniform, and the mean surplus of a batch is unbiased. With ``k = 1`` the batches are those of
    `Antithetic`.

    Parameters
    ----------
    n_features : int
        Number of features, d.
    streams : Streams
        Source of randomness.
    n_vectors : int, optional
        Number of orthogonal vectors, k, at most d - 1; a batch has 2 k orderings. By default 2, or
        1 for two features.

    Examples
    --------
    >>> from dsage._random import Streams
    >>> Orthogonal(5, Streams(0)).batch(0).shape
    (4, 5)
    >>> batch = Orthogonal(5, Streams(0), n_vectors=4).batch(0)
    >>> bool((batch[4:] == batch[:4, ::-1]).all())
    True
    """

    def __init__(self, n_features: int, streams: Streams, n_vectors: int | None = None) -> None:
        super().__init__(n_features, streams)
        # A single feature has one ordering, as if from one vector.
        most = max(self.n_features - 1, 1)
        if n_vectors is None:
            n_vectors = min(_VECTORS, most)
        if check_count(n_vectors, "n_vectors") > most:
            advice = "No more vectors are orthogonal to each other and to (1, .., 1)"
            raise refusal("n_vectors", f"at most {most}", n_vectors, advice)
        self.batch_size = 2 * n_vectors
        self._basis: npt.NDArray[np.float64] = helmert(self.n_features)

    def batch(self, number: int) -> Positions:
        """Return batch `number`, (batch_size, n_features): orderings, then reverses."""
        first = self._first(number)
        if self.n_features == 1:
            return np.stack([first, first])
        generator = self._generator(number)
        points = orthonormal(generator, len(self._basis), self.batch_size // 2)
        forth = relabel(np.argsort(points @ self._basis, axis=1), first)
        return np.concatenate([forth, forth[:, ::-1]])


def orthonormal(
    generator: np.random.Generator, n_dimensions: int, n_vectors: int
) -> npt.NDArray[np.float64]:
    """Return orthonormal vectors (n_vectors, n_dimensions), uniform among all such systems."""
    q, r = np.linalg.qr(generator.standard_normal((n_dimensions, n_vectors)))
    # With a positive diagonal of r the distribution does not depend on the QR routine.
    system: npt.NDArray[np.float64] = (q * np.where(np.diag(r) < 0, -1.0, 1.0)).T
    return system
