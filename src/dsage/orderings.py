"""Orderings of the features: independent units of them, each available by its number.

An estimate is a mean over *units*. A unit is the smallest set of orderings whose mean surplus is an
unbiased replicate that is independent of the other units, so the spread of the units' means gives a
standard error: one ordering, an ordering and its reverse, a Latin square of orderings, or a Latin
square with the reverse of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dsage._check import check_count, check_member, check_names, message
from dsage._random import Streams

KINDS = ("uniform", "antithetic", "stratified", "balanced")
"""The kinds of orderings that have a name."""


@runtime_checkable
class Orderings(Protocol):
    """Units of orderings: any object with these members will do."""

    @property
    def n_features(self) -> int:
        """Number of features that each ordering arranges."""
        ...

    @property
    def unit_size(self) -> int:
        """Number of orderings in a unit."""
        ...

    @property
    def n_units(self) -> int | None:
        """Number of units, or None if there is no end to them."""
        ...

    def block(self, number: int) -> npt.NDArray[np.intp]:
        """Return a unit as an array (unit_size, n_features): column k is the k-th feature."""
        ...


class _Random:
    """What the unbounded kinds share: the first ordering of unit u is the same in all of them."""

    __slots__ = ("_n_features", "_streams")

    def __init__(self, n_features: int, streams: Streams) -> None:
        self._n_features = check_count(n_features, "n_features")
        self._streams = streams

    @property
    def n_features(self) -> int:
        """Number of features that each ordering arranges."""
        return self._n_features

    @property
    def n_units(self) -> None:
        """None: there is no end to the units."""
        return

    def _generator(self, number: int) -> np.random.Generator:
        return self._streams("orderings", check_count(number, "number", minimum=0))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_features={self._n_features})"


class Uniform(_Random):
    """Independent orderings, all equally likely: a unit is one ordering.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Where the randomness comes from.

    Examples
    --------
    >>> orderings = Uniform(4, Streams(0))
    >>> orderings.block(7).shape
    (1, 4)
    >>> bool((orderings.block(7) == Uniform(4, Streams(0)).block(7)).all())
    True
    """

    __slots__ = ()

    @property
    def unit_size(self) -> int:
        """Number of orderings in a unit: 1."""
        return 1

    def block(self, number: int) -> npt.NDArray[np.intp]:
        """Return unit `number` as an array (1, n_features)."""
        return self._generator(number).permutation(self._n_features)[None, :]


class Antithetic(_Random):
    """An ordering and its reverse: each feature has as many before it as it has after it.

    The surplus of a feature mostly falls as more features are known before it. In a unit early and
    late positions balance, which lowers the variance of the mean. Where the features interact in
    pairs only, the mean over a unit is exact.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Where the randomness comes from.

    Examples
    --------
    >>> forth, back = Antithetic(4, Streams(0)).block(0)
    >>> bool((forth == back[::-1]).all())
    True
    """

    __slots__ = ()

    @property
    def unit_size(self) -> int:
        """Number of orderings in a unit: 2."""
        return 2

    def block(self, number: int) -> npt.NDArray[np.intp]:
        """Return unit `number` as an array (2, n_features)."""
        ordering = self._generator(number).permutation(self._n_features)
        return np.stack([ordering, ordering[::-1]])


class Stratified(_Random):
    """A random Latin square of orderings: each feature stands once at each position.

    With p and q independent, uniform permutations of 0..d-1, position k of ordering i holds
    ``p[q^-1[(q[k] + i) mod d]]``. For fixed k the inner index runs through all residues as i does,
    so each column holds each feature once. For fixed i it is p after a permutation that does not
    depend on p, hence uniform: the mean surplus of the square is unbiased. In it, the positions of
    a feature, which are the sizes of the coalitions before it, do not vary at all: where the risk
    depends on the size of the coalition only, the mean over a unit is exact. The second permutation
    q keeps the orderings from being plain rotations of each other, in which the coalitions before a
    feature would be nested, and the variance often larger than that of uniform orderings.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Where the randomness comes from.

    Examples
    --------
    >>> square = Stratified(4, Streams(0)).block(0)
    >>> [sorted(column.tolist()) for column in square.T] == [[0, 1, 2, 3]] * 4
    True
    """

    __slots__ = ()

    @property
    def unit_size(self) -> int:
        """Number of orderings in a unit: one for each position."""
        return self._n_features

    def block(self, number: int) -> npt.NDArray[np.intp]:
        """Return unit `number` as an array (n_features, n_features)."""
        generator = self._generator(number)
        ordering = generator.permutation(self._n_features)
        return _latin_square(ordering, generator.permutation(self._n_features))


class Balanced(_Random):
    """A random Latin square that holds the reverse of each of its orderings, too.

    It unites the advantages of antithetic and stratified orderings. For even d it is a square as in
    `Stratified`, with q uniform among the permutations with ``q[d - 1 - k] = q[k] + d / 2 mod d``:
    then ordering i + d / 2 is the reverse of ordering i. For odd d, where the position in the
    middle forbids that, it is a square of `Stratified` and the reverses of its orderings.

    Parameters
    ----------
    n_features : int
        Number of features.
    streams : Streams
        Where the randomness comes from.

    Examples
    --------
    >>> Balanced(4, Streams(0)).unit_size, Balanced(5, Streams(0)).unit_size
    (4, 10)
    >>> square = Balanced(4, Streams(0)).block(0)
    >>> bool((square[2:] == square[:2, ::-1]).all())
    True
    """

    __slots__ = ()

    @property
    def unit_size(self) -> int:
        """Number of orderings in a unit: one or two for each position."""
        return self._n_features * (1 + self._n_features % 2)

    def block(self, number: int) -> npt.NDArray[np.intp]:
        """Return unit `number` as an array (unit_size, n_features)."""
        generator = self._generator(number)
        ordering = generator.permutation(self._n_features)
        if self._n_features % 2:
            square = _latin_square(ordering, generator.permutation(self._n_features))
            return np.concatenate([square, square[:, ::-1]])
        half = self._n_features // 2
        first = generator.permutation(half) + half * generator.integers(2, size=half)
        second = (first[::-1] + half) % self._n_features
        return _latin_square(ordering, np.concatenate([first, second]))


class Given:
    """Orderings that the user lists: a unit is one of them.

    Parameters
    ----------
    orderings : sequence of orderings
        Each a permutation of the features, by names or by positions.
    feature_names : iterable of str
        Names of the features.

    Examples
    --------
    >>> orderings = Given([["b", "a", "c"], [0, 1, 2]], ["a", "b", "c"])
    >>> orderings.n_units, orderings.block(0)
    (2, array([[1, 0, 2]]))
    """

    __slots__ = ("_orderings",)

    def __init__(
        self,
        orderings: Sequence[Sequence[str] | Sequence[int]] | npt.NDArray[np.integer],
        feature_names: Iterable[str],
    ) -> None:
        names = check_names(feature_names, "feature_names")
        rows = list(orderings)
        if not rows:
            raise ValueError(
                message(
                    "orderings", "at least one", [], f"Name a kind instead, such as {KINDS[0]!r}"
                )
            )
        self._orderings = np.stack([_positions(row, names) for row in rows])

    @property
    def n_features(self) -> int:
        """Number of features that each ordering arranges."""
        return int(self._orderings.shape[1])

    @property
    def unit_size(self) -> int:
        """Number of orderings in a unit: 1."""
        return 1

    @property
    def n_units(self) -> int:
        """Number of orderings in the list."""
        return len(self._orderings)

    def block(self, number: int) -> npt.NDArray[np.intp]:
        """Return ordering `number` of the list as an array (1, n_features)."""
        at = check_count(number, "number", minimum=0)
        if at >= len(self._orderings):
            raise ValueError(
                message(
                    "number",
                    f"below {len(self._orderings)}",
                    number,
                    "List more orderings, or stop",
                )
            )
        return self._orderings[at : at + 1].copy()

    def __repr__(self) -> str:
        return f"Given({self.n_units} orderings, n_features={self.n_features})"


def as_orderings(
    kind: str | Sequence[Sequence[str] | Sequence[int]] | npt.NDArray[np.integer] | Orderings,
    feature_names: Iterable[str],
    streams: Streams,
) -> Orderings:
    """Return orderings of a kind, from a list, or as they are.

    Parameters
    ----------
    kind : str, sequence of orderings, or Orderings
        ``"uniform"``, ``"antithetic"``, ``"stratified"`` or ``"balanced"``; or a list of orderings,
        each by names or by positions; or an object that has the members of `Orderings`.
    feature_names : iterable of str
        Names of the features.
    streams : Streams
        Where the randomness comes from; an ordering depends on it and its number alone.

    Examples
    --------
    >>> as_orderings("antithetic", ["a", "b", "c"], Streams(0))
    Antithetic(n_features=3)
    >>> as_orderings([["b", "a", "c"]], ["a", "b", "c"], Streams(0))
    Given(1 orderings, n_features=3)
    """
    names = check_names(feature_names, "feature_names")
    if not names:
        raise ValueError(
            message("feature_names", "at least one", names, "There is nothing to order")
        )
    if isinstance(kind, str):
        check_member(kind, KINDS, "orderings", "the kinds of orderings")
        classes: dict[str, type[Uniform | Antithetic | Stratified | Balanced]] = {
            "uniform": Uniform,
            "antithetic": Antithetic,
            "stratified": Stratified,
            "balanced": Balanced,
        }
        return classes[kind](len(names), streams)
    if isinstance(kind, Orderings):
        if kind.n_features != len(names):
            raise ValueError(
                message("orderings", f"of {len(names)} features", kind.n_features, "Make them anew")
            )
        return kind
    if isinstance(kind, (Sequence, np.ndarray)):
        return Given(kind, names)
    raise TypeError(
        message("orderings", "a kind, a list of orderings or an Orderings", kind, "See KINDS")
    )


def _latin_square(
    ordering: npt.NDArray[np.intp], relabelled: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Return the square of `Stratified` for p and q; its first row is p."""
    n_features = len(ordering)
    shifted = (relabelled[None, :] + np.arange(n_features)[:, None]) % n_features
    square: npt.NDArray[np.intp] = ordering[np.argsort(relabelled)[shifted]]
    return square


def _positions(ordering: object, names: tuple[str, ...]) -> npt.NDArray[np.intp]:
    """Return one ordering as positions, checked to be a permutation."""
    if isinstance(ordering, str) or not isinstance(ordering, (Sequence, np.ndarray)):
        raise TypeError(
            message("orderings", "a list of orderings", ordering, "Put one ordering into a list")
        )
    place = {name: at for at, name in enumerate(names)}
    positions = []
    for feature in ordering:
        if isinstance(feature, str):
            positions.append(place[check_member(feature, names, "orderings", "the features")])
        elif isinstance(feature, (int, np.integer)) and not isinstance(feature, bool):
            positions.append(int(feature))
        else:
            raise TypeError(
                message("orderings", "made of names or positions", feature, "Give strings or ints")
            )
    if sorted(positions) != list(range(len(names))):
        missing = [name for at, name in enumerate(names) if at not in positions]
        raise ValueError(
            message(
                "orderings",
                f"permutations of the {len(names)} features, each once",
                list(ordering),
                f"Missing: {', '.join(missing) or 'none'}; positions count from 0",
            )
        )
    return np.array(positions, dtype=np.intp)
