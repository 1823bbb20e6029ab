"""Separations and boundaries of groups of features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from dsage.data.groups import Groups
from dsage.graphs.separation import Oracle, as_oracle


class GroupedOracle(Oracle):
    """An oracle about groups of features, from one about the features.

    A group is separated from the target Y given some groups if all its members are, given all the
    members U of those. The boundary of a set of groups is the set of groups with a member in M(U).

    Parameters
    ----------
    oracle : Oracle
        The oracle about the features.
    groups : mapping of str to iterables of str
        The members of each group; see :class:`dsage.games.Grouped`.

    Notes
    -----
    Why this is right if `oracle` answers for a graph: separation in a graph is a compositional
    graphoid.

    *Separation.* ``Y _||_ j | U`` for each member j of g gives ``Y _||_ g | U`` (composition), and
    the reverse is decomposition.

    *Boundaries.* Let B be the union of the groups that M = M(U) touches, so M is in B and B in U.
    ``Y _||_ U - M | M`` gives ``Y _||_ U - B | B`` (weak union), so for an optimal model
    ``v(B) = v(U)``: Theorem 1. It is the smallest such set of groups. If ``Y _||_ U - B' | B'`` for
    another, then ``Y _||_ U - M(B') | M(B')`` (contraction), so M, the smallest set of features
    with that property, is in B', and B' has every group that M touches.

    *Both agree.* If g is separated given U, then M(U + g) = M(U), and so are the groups that they
    touch. If the boundary does not change when g joins, M(U + g) has no member of g, so
    ``Y _||_ g | M(U + g)`` with M(U + g) in U, and ``Y _||_ g | U`` (weak union).

    Examples
    --------
    >>> import numpy as np
    >>> from dsage import Graph
    >>> graph = Graph(["a", "b", "c", "y"], [("a", "b"), ("b", "y"), ("c", "b")])
    >>> oracle = GroupedOracle(graph.oracle("y"), {"causes": ["a", "c"]})
    >>> oracle.feature_names
    ('causes', 'b')
    >>> oracle.separated(np.array([[False, True], [False, False]]))
    array([[ True, False],
           [False, False]])
    >>> oracle.boundary(np.array([[True, True], [True, False]]))
    array([[False,  True],
           [ True, False]])
    """

    def __init__(self, oracle: Oracle, groups: Mapping[str, Iterable[str]]) -> None:
        self.oracle = as_oracle(oracle)
        self._groups = Groups(groups, self.oracle.feature_names)
        self.feature_names, self.members = self._groups.names, self._groups.members
        self.target = self.oracle.target
        self.is_of_graph = self.oracle.is_of_graph

    def separated(self, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which players outside each coalition are separated from the target given it."""
        return self._groups.filled(self.oracle.separated(self._groups.expanded(known)))

    def boundary(self, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which players of each coalition have a member in its Markov boundary."""
        return self._groups.touched(self.oracle.boundary(self._groups.expanded(known)))

    def __repr__(self) -> str:
        return f"GroupedOracle({self.oracle!r}, n_players={len(self.feature_names)})"
