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

    Parameters
    ----------
    groups : mapping of str to iterables of str
        The members of each group, by name.
    feature_names : sequence of str
        All features. A feature outside any group is a player of its own, under its own name.

    Attributes
    ----------
    feature_names : tuple of str
        The features.
    members : dict of str to tuples of str
        The groups.
    names : tuple of str
        The players: the groups in their order, then the other features in theirs.

    Examples
    --------
    >>> groups = Groups({"body": ["height", "weight"]}, ["height", "age", "weight"])
    >>> groups.names
    ('body', 'age')
    >>> groups.expanded(np.array([[True, False]]))
    array([[ True, False,  True]])
    >>> features = np.array([[True, True, False]])
    >>> groups.touched(features), groups.filled(features)
    (array([[ True,  True]]), array([[False,  True]]))
    """

    __slots__ = ("_columns", "_owner", "_sizes", "feature_names", "members", "names")

    def __init__(self, groups: Mapping[str, Iterable[str]], feature_names: Sequence[str]) -> None:
        self.feature_names = tuple(feature_names)
        if not isinstance(groups, Mapping):
            raise refusal(
                "groups", "a dict of names to lists of features", groups, "Name each", TypeError
            )
        checked = {
            name: self._check_members(name, groups[name]) for name in check_names(groups, "groups")
        }
        owner = _find_owners(checked, self.feature_names)
        alone = [feature for feature in self.feature_names if feature not in owner]
        for name, members in checked.items():
            if name in self.feature_names and name not in members:
                raise refusal(
                    "groups",
                    "named unlike the features outside them",
                    name,
                    "Rename the group, or put the feature into it",
                )
        self.members = checked
        self.names = (*checked, *alone)
        place = {name: at for at, name in enumerate(self.names)}
        self._owner = np.array(
            [place[owner.get(feature, feature)] for feature in self.feature_names], dtype=np.intp
        )
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
        return found

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

        Parameters
        ----------
        orders : int array of shape (n_orderings, n_players)
            Orderings of the players.

        Returns
        -------
        features : int array of shape (n_orderings, n_features)
            The members of a player are adjacent, in the order of the features.
        ends : int array of shape (n_orderings, n_players + 1)
            ``ends[o, k]`` features belong to the first k players.

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


def _find_owners(
    groups: Mapping[str, Sequence[str]], feature_names: Sequence[str]
) -> dict[str, str]:
    """Return the group of each feature that is in one; refuse features in two groups."""
    owner: dict[str, str] = {}
    for name, members in groups.items():
        for member in members:
            if member in owner:
                raise refusal(
                    "groups",
                    "without a feature in common",
                    member,
                    f"It is in {owner[member]!r} and in {name!r}: take it out of one",
                )
            owner[member] = name
    return {feature: owner[feature] for feature in feature_names if feature in owner}
