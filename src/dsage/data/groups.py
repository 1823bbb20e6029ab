"""Groups of features as players: coalitions and orderings of groups in terms of features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dsage._check import check_known, check_member, check_names, refusal

Mask = npt.NDArray[np.bool_]
Orders = npt.NDArray[np.intp]


class Groups:
    """A partition of features into players: named groups, and features outside any group.

    `names` are the players: the groups in their order, then the other features in theirs.

    Examples
    --------
    >>> groups = Groups({"body": ["height", "weight"]}, ["height", "age", "weight"])
    >>> groups.names
    ('body', 'age')
    >>> groups.expanded(np.array([[True, False]]))
    array([[ True, False,  True]])
    """

    __slots__ = ("_columns", "_owner", "_sizes", "feature_names", "members", "names")

    def __init__(self, groups: Mapping[str, Iterable[str]], feature_names: Sequence[str]) -> None:
        self.feature_names = tuple(feature_names)
        if not isinstance(groups, Mapping):
            raise refusal("groups", "a dict of lists of features", groups, "Name each", TypeError)
        self.members = {
            name: self._check_members(name, groups[name]) for name in check_names(groups, "groups")
        }
        owner = self._find_owners()
        alone = [feature for feature in self.feature_names if feature not in owner]
        self.names = (*self.members, *alone)
        place = {name: at for at, name in enumerate(self.names)}
        players = [place[owner.get(feature, feature)] for feature in self.feature_names]
        self._owner = np.array(players, dtype=np.intp)
        # The features, sorted by player.
        self._columns = np.argsort(self._owner, kind="stable")
        self._sizes = np.bincount(self._owner, minlength=len(self.names))

    def _check_members(self, name: str, members: Iterable[str]) -> tuple[str, ...]:
        """Return the members of a group after checking that they are features."""
        found = check_names(members, f"groups[{name!r}]")
        if not found:
            raise refusal(f"groups[{name!r}]", "at least one feature", [], "Leave the group out")
        for member in found:
            check_member(member, self.feature_names, f"groups[{name!r}]", "the features")
        if name in self.feature_names and name not in found:
            advice = "Rename the group, or put the feature into it"
            condition = "named differently from the features outside them"
            raise refusal("groups", condition, name, advice)
        return found

    def _find_owners(self) -> dict[str, str]:
        """Return the group of each feature that is in one; refuse features in two groups."""
        owner: dict[str, str] = {}
        for name, members in self.members.items():
            for member in members:
                if member in owner:
                    advice = f"It is in {owner[member]!r} and in {name!r}: take it out of one"
                    raise refusal("groups", "without a feature in common", member, advice)
                owner[member] = name
        return owner

    def expanded(self, known: npt.ArrayLike) -> Mask:
        """Return coalitions of players as coalitions of features."""
        coalitions: Mask = check_known(known, self.names)[:, self._owner]
        return coalitions

    def touched(self, features: Mask) -> Mask:
        """Return which players have a member in each set of features."""
        return self._reduce_members(np.logical_or, features)

    def filled(self, features: Mask) -> Mask:
        """Return which players have all their members in each set of features."""
        return self._reduce_members(np.logical_and, features)

    def _reduce_members(self, ufunc: np.ufunc, features: Mask) -> Mask:
        starts = np.cumsum(self._sizes) - self._sizes
        reduced: Mask = ufunc.reduceat(features[:, self._columns], starts, axis=1)
        return reduced

    def orders(self, orders: Orders) -> tuple[Orders, Orders]:
        """Return orderings of players as orderings of features, and where the players end.

        The members of a player are adjacent, in the order of the features. In ordering o, the first
        k players have ``ends[o, k]`` features.

        Examples
        --------
        >>> groups = Groups({"body": ["height", "weight"]}, ["height", "age", "weight"])
        >>> groups.orders(np.array([[1, 0]]))
        (array([[1, 0, 2]]), array([[0, 1, 3]]))
        """
        position = np.argsort(orders, axis=1)
        features = np.argsort(position[:, self._owner], axis=1, kind="stable")
        ends = np.zeros((len(orders), orders.shape[1] + 1), dtype=np.intp)
        np.cumsum(self._sizes[orders], axis=1, out=ends[:, 1:])
        return features, ends
