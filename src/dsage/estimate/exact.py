"""The average over all orderings, exactly, as a linear map of the risks of few coalitions.

The Shapley average over all d! orderings is a weighted sum over coalitions,

    phi_j = sum over S without j of w(|S|) (L(S) - L(S + j)),   w(s) = s! (d - s - 1)! / d!.

With the boundary game, L(S) is the risk at M(S), and many coalitions share one boundary: collecting
the weights by boundary leaves ``phi = coefficients @ risk`` over the distinct boundaries alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb, lcm
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from dsage._check import check_count, check_member, refusal
from dsage.games.base import Floats, Mask
from dsage.graphs.separation import Oracle, as_oracle

Codes = npt.NDArray[np.uint32]
Positions = npt.NDArray[np.intp]
Semantics = Literal["boundary", "skip"]
_Entry = TypeVar("_Entry", bound=np.generic)

SEMANTICS = ("boundary", "skip")
"""How separated surpluses are treated: values at boundaries, or skipped as in Algorithm 1."""

# A coalition is encoded in the bits of a uint32.
_MOST_FEATURES = 30
# Coalitions per request to the oracle, and the bytes that they may take as booleans.
_CODES_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 1 << 24
# Memory for each of the 2^d coalitions: its code, its place in the table, and, for the halves
# without and with one feature, indices and weights of the sums. Measured, and rounded up.
_BYTES_PER_CODE = 48
# Random coalitions that find most of the active features before the enumeration starts.
_PROBES = 256


@dataclass(frozen=True, eq=False)
class Enumeration:
    """The exact Shapley average as a linear map: ``phi = coefficients @ risk``.

    Attributes
    ----------
    coalitions : bool array of shape (n_coalitions, n_features)
        The distinct coalitions whose risks are needed.
    coefficients : float array of shape (n_features, n_coalitions)
        The contribution of each risk to each value. Positions sum to zero.
    skipped : float array of shape (n_features,)
        Share of the orderings in which the surplus of the feature is zero by separation.

    Examples
    --------
    >>> from dsage import Graph
    >>> oracle = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")]).oracle("y")
    >>> enumeration = enumerate_boundaries(oracle)
    >>> enumeration.coalitions  # not {a, b}, whose boundary is {b}
    array([[False, False],
           [ True, False],
           [False,  True]])
    >>> enumeration.values(np.array([1.0, 0.7, 0.5])).round(3)
    array([0.15, 0.35])
    """

    coalitions: Mask
    coefficients: Floats
    skipped: Floats

    @property
    def n_coalitions(self) -> int:
        """Number of required risks."""
        return len(self.coalitions)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.coalitions.shape[1])

    def values(self, risk: Floats) -> Floats:
        """Return the values of all features, (n_features, ...), from risks (n_coalitions, ...)."""
        if len(risk) != self.n_coalitions:
            condition = f"one number for each of the {self.n_coalitions} coalitions"
            advice = "Evaluate the rows of `coalitions`, in order"
            raise refusal("risk", condition, np.shape(risk), advice)
        return np.tensordot(self.coefficients, risk, axes=1)

    def __repr__(self) -> str:
        return f"Enumeration(n_coalitions={self.n_coalitions}, n_features={self.n_features})"


def enumerate_boundaries(
    oracle: Oracle,
    *,
    semantics: Semantics = "boundary",
    max_features: int = 20,
    max_coalitions: int | None = None,
    max_bytes: int = 1 << 28,
) -> Enumeration | None:
    """Return the exact average over all orderings, or None if it would be too large.

    Null players do not count against `max_features`. If a feature is in no boundary, the boundary
    game does not change when it joins: ``v(S + j) = v(S)`` for all S. Its value is zero, and
    deleting it from a uniform ordering leaves a uniform ordering of the others with the same
    surpluses, so their values are the same as in the game without it. (This does not hold for
    ``semantics="skip"``, where the surpluses of the others are evaluated at the actual coalitions,
    which contain the feature. Then no feature is left out, and if any feature is related to the
    target, all 2^d coalitions are needed.)

    Parameters
    ----------
    oracle : Oracle
        The separations; `NoSeparation` for plain SAGE.
    semantics : {"boundary", "skip"}, default="boundary"
        Values at boundaries, or the paper's Algorithm 1: values at the actual coalitions, and zero
        for separated surpluses.
    max_features : int, default=20
        Largest number of features, d, at most 30; 2^d coalitions are examined.
    max_coalitions : int, optional
        Largest number of coalitions whose risks may be needed.
    max_bytes : int, default=2**28
        Memory for the work and the result together; the answers of the oracle, one chunk at a
        time, take some tens of megabytes in addition.

    Returns
    -------
    Enumeration or None

    Examples
    --------
    >>> from dsage.graphs import NoSeparation
    >>> enumerate_boundaries(NoSeparation(["a", "b", "c"]))
    Enumeration(n_coalitions=8, n_features=3)
    >>> enumerate_boundaries(NoSeparation(["a", "b", "c"]), max_coalitions=7) is None
    True
    """
    check_member(semantics, SEMANTICS, "semantics", "the semantics")
    most = check_count(max_features, "max_features", minimum=0)
    if most > _MOST_FEATURES:
        raise refusal("max_features", f"at most {_MOST_FEATURES}", most, "Sample orderings instead")
    if max_coalitions is not None:
        check_count(max_coalitions, "max_coalitions")
    check_count(max_bytes, "max_bytes")
    oracle = as_oracle(oracle)
    n_features = len(oracle.feature_names)
    while most > 0 and _BYTES_PER_CODE << most > max_bytes:
        most -= 1
    left = max(max_bytes - (_BYTES_PER_CODE << min(most, n_features)), 0)
    by_bytes = left // (9 * n_features + 16)
    limit = by_bytes if max_coalitions is None else min(by_bytes, max_coalitions)
    return (_skip if semantics == "skip" else _boundary)(oracle, most, limit)


def _boundary(oracle: Oracle, max_features: int, limit: int) -> Enumeration | None:
    n_features = len(oracle.feature_names)
    active = _probe_active(oracle) if oracle.is_of_graph else np.arange(n_features)
    while len(active) <= max_features:
        # A separated pair shares its boundary, so equal codes are exactly what is skipped.
        codes = np.empty(1 << len(active), dtype=np.uint32)
        needed = np.zeros(len(codes), dtype=np.bool_)
        found = _boundary_codes(oracle, active, codes, needed, limit)
        if found is None:
            return None
        if not len(found):
            return _collect(codes, needed, active, n_features)
        active = np.union1d(active, found)
    return None


def _skip(oracle: Oracle, max_features: int, limit: int) -> Enumeration | None:
    n_features = len(oracle.feature_names)
    if n_features > max_features:
        return None
    codes = np.arange(1 << n_features, dtype=np.uint32)
    separated = np.empty_like(codes)
    for chunk in _chunks(len(codes), n_features):
        separated[chunk] = _encode(oracle.separated(_decode(codes[chunk], n_features)))
    needed = np.zeros(len(codes), dtype=np.bool_)
    needed[0] = True  # the risk of the empty coalition is always used
    for feature in range(n_features):
        before, after = _halves(codes, feature)
        live = _not_separated(separated, feature)
        needed[before[live]] = True
        needed[after[live]] = True
    if np.count_nonzero(needed) > limit:
        return None
    return _collect(codes, needed, np.arange(n_features), n_features, separated)


def _probe_active(oracle: Oracle) -> Positions:
    """Return features found in some boundary, from which the enumeration starts."""
    n_features = len(oracle.feature_names)
    generator = np.random.default_rng(0)  # the start does not affect the result
    shares = generator.random((_PROBES, 1))
    known = generator.random((_PROBES, n_features)) < shares
    return np.flatnonzero(oracle.boundary(known).any(axis=0))


def _boundary_codes(
    oracle: Oracle, active: Positions, codes: Codes, needed: Mask, limit: int
) -> Positions | None:
    """Fill in the boundary of every set of active features; return further active features.

    Let B be the features outside `active`. The oracle is queried at S + B for every set S of
    active features. If the boundary never has a member of B, then ``Y _||_ B | S`` for all S (weak
    union), so ``M(S + T) = M(S)`` for every T in B: its members are null players, and the answers
    are the boundaries of S itself. This is valid for separation in a graph, a compositional
    graphoid; for other oracles all features are active. Returns None if there are more than
    `limit` boundaries.
    """
    n_features = len(oracle.feature_names)
    outside = np.setdiff1d(np.arange(n_features), active)
    for chunk in _chunks(len(codes), n_features):
        known = np.ones((chunk.stop - chunk.start, n_features), dtype=np.bool_)
        known[:, active] = _decode(np.arange(chunk.start, chunk.stop, dtype=np.uint32), len(active))
        boundary = oracle.boundary(known)
        found = outside[boundary[:, outside].any(axis=0)]
        if len(found):
            return found
        codes[chunk] = _encode(boundary[:, active])
        needed[codes[chunk]] = True
        if np.count_nonzero(needed) > limit:
            return None
    return outside[:0]


def _collect(
    codes: Codes, needed: Mask, active: Positions, n_features: int, separated: Codes | None = None
) -> Enumeration:
    """Collect the weights of all surpluses by the coalitions at which they are evaluated.

    `codes`, (2 ** n_active,), has the coalition at which each set of active features is evaluated,
    `needed` marks those that occur, and `separated` has the features separated given each
    coalition, by default those that do not change the code. Other features are null players.
    """
    distinct = np.flatnonzero(needed).astype(np.uint32)
    place = np.cumsum(needed, dtype=np.int32)
    place -= 1
    at = place[codes]
    del place
    size = np.bitwise_count(np.arange(len(codes), dtype=np.uint32))
    d = len(active)
    # w(s) = 1 / (d C(d - 1, s)) is a whole multiple of 1 / lcm(1..d), which is below 2^53 for d up
    # to 30: summed as whole numbers, the weights are exact until the single division at the end.
    unit = lcm(*range(1, d + 1))
    weight = np.array([unit // (d * comb(d - 1, s)) for s in range(d)], dtype=np.float64)
    coefficients = np.zeros((n_features, len(distinct)))
    skipped = np.ones(n_features)
    for bit, feature in enumerate(active):
        before, after = _halves(at, bit)
        live = before != after if separated is None else _not_separated(separated, bit)
        share = weight[_halves(size, bit)[0][live]]
        row = coefficients[feature]
        row += np.bincount(before[live], weights=share, minlength=len(distinct))
        row -= np.bincount(after[live], weights=share, minlength=len(distinct))
        row /= unit
        skipped[feature] = (unit - share.sum()) / unit
    coalitions = np.zeros((len(distinct), n_features), dtype=np.bool_)
    coalitions[:, active] = _decode(distinct, d)
    return Enumeration(coalitions, coefficients, skipped)


def _chunks(n_codes: int, n_features: int) -> Iterator[slice]:
    size = min(max(_BYTES_AT_ONCE // (3 * max(n_features, 1)), 1), _CODES_AT_ONCE)
    for start in range(0, n_codes, size):
        yield slice(start, min(start + size, n_codes))


def _halves(
    table: npt.NDArray[_Entry], bit: int
) -> tuple[npt.NDArray[_Entry], npt.NDArray[_Entry]]:
    """Return the entries of the coalitions without a feature, and of the same with it."""
    pairs = table.reshape(-1, 2, 1 << bit)
    return pairs[:, 0].ravel(), pairs[:, 1].ravel()


def _not_separated(separated: Codes, bit: int) -> Mask:
    """Return for the coalitions without a feature whether it is not separated."""
    is_separated: Mask = _halves(separated, bit)[0] & np.uint32(1 << bit) != 0
    return ~is_separated


def _decode(codes: Codes, n_features: int) -> Mask:
    """Return coalitions (n_coalitions, n_features): feature j is bit j of the code."""
    rows = codes.astype("<u4")[:, None].view(np.uint8)
    return np.unpackbits(rows, axis=1, count=n_features, bitorder="little").view(np.bool_)


def _encode(known: Mask) -> Codes:
    packed = np.zeros((len(known), 4), dtype=np.uint8)
    bits = np.packbits(known, axis=1, bitorder="little")
    packed[:, : bits.shape[1]] = bits
    return packed.view("<u4")[:, 0].astype(np.uint32)
