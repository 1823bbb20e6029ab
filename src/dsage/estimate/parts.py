"""Direct and indirect parts of the surpluses under interventions (Heskes et al., 2020).

When j is set after S, the model receives its value, and the features that depend on j change. With
L(S, T) the risk if S is set and the model receives the values of T from the row,

    L(S, S) - L(S + j, S + j) = [L(S, S) - L(S, S + j)] + [L(S, S + j) - L(S + j, S + j)],

the direct part and the indirect one. A coalition (S, T) has twice as many columns as there are
features. Members of S that do not affect the inputs of the model are left out of it, so that
equal risks are evaluated once, and an indirect part without an effect is exactly zero.
"""

from __future__ import annotations

import numpy as np

from dsage.estimate.exact import Enumeration, Positions
from dsage.estimate.exact_order import all_steps
from dsage.estimate.walk import Asking, Surpluses
from dsage.games.base import Coalitions, Floats, Game, Mask, Orders, Rows, by_feature, prefixes
from dsage.graphs.interventions import GroupedInterventions, Interventions

N_PARTS = 2
"""Number of parts in addition to the values themselves: direct and indirect."""

Do = Interventions | GroupedInterventions


def pairs_of(interventions: Do, fixed: Mask, inputs: Mask) -> Mask:
    """Return coalitions (n_coalitions, 2 * n_features): what is set, and what the model receives.

    The former without the features that change nothing.
    """
    return np.concatenate([interventions.reduced(fixed, inputs), inputs], axis=1)


class PartsWalk:
    """Surpluses along orderings with their parts: three columns of surpluses for each feature.

    First the surpluses of all features, then their direct parts, then the indirect ones.
    """

    def __init__(self, interventions: Do) -> None:
        self._interventions = interventions

    def __call__(
        self,
        orders: Orders,
        rows: Rows,
        epoch: int,
        wanted: Mask | None = None,  # noqa: ARG002
    ) -> Asking[Surpluses]:
        """Compute the surpluses of all features; see :class:`~dsage.estimate.walk.Walk`."""
        known = prefixes(orders)
        n_orderings, n_features = orders.shape
        before, after = known[:, :-1], known[:, 1:]
        flat = [each.reshape(-1, n_features) for each in (known, before, after)]
        whole = pairs_of(self._interventions, flat[0], flat[0])
        halfway = pairs_of(self._interventions, flat[1], flat[2])
        risks = yield Coalitions(np.concatenate([whole, halfway]), rows, epoch)
        at, shape = len(whole), risks.shape[1:]
        ends = risks[:at].reshape(n_orderings, n_features + 1, *shape)
        between = risks[at:].reshape(n_orderings, n_features, *shape)
        steps = [ends[:, :-1] - ends[:, 1:], ends[:, :-1] - between, between - ends[:, 1:]]
        values = np.concatenate([np.moveaxis(by_feature(each, orders), 1, 3) for each in steps], 3)
        reached = whole.reshape(n_orderings, n_features + 1, -1)[:, 1:]
        is_same = (reached == halfway.reshape(reached.shape)).all(axis=2)
        skipped = np.zeros((n_orderings, 3 * n_features), dtype=np.bool_)
        skipped[:, 2 * n_features :] = by_feature(is_same, orders)
        return Surpluses(values, skipped)


class CheapParts:
    """The surpluses along orderings in a cheap game, in all and in parts, as `PartsWalk`."""

    def __init__(self, game: Game, interventions: Do) -> None:
        self._game, self._interventions = game, interventions

    def __call__(self, orders: Orders) -> Floats:
        """Return the surpluses of features, (n_orderings, 3 * n_features)."""
        known = prefixes(orders)
        n_orderings, n_features = orders.shape
        whole, before, after = (
            each.reshape(-1, n_features) for each in (known, known[:, :-1], known[:, 1:])
        )
        masks = [pairs_of(self._interventions, *pair) for pair in ((whole, whole), (before, after))]
        ends, between = (self._game.mean_risks(mask).reshape(n_orderings, -1) for mask in masks)
        steps = [ends[:, :-1] - ends[:, 1:], ends[:, :-1] - between, between - ends[:, 1:]]
        return np.concatenate([by_feature(each, orders) for each in steps], axis=1)


def enumerate_parts(
    interventions: Do, order: Mask, max_coalitions: int | None, max_ideals: int
) -> Enumeration | None:
    """Return the exact averages of surpluses and parts, or None if they would be too large.

    Parameters
    ----------
    interventions : Interventions or GroupedInterventions
        What setting features changes.
    order : bool array of shape (n_features, n_features)
        Which features precede which in all orderings; all false without an order.
    max_coalitions : int or None
        Largest number of coalitions whose risks may be needed.
    max_ideals : int
        Largest number of sets of features through which orderings may pass.
    """
    steps = all_steps(order, max_ideals)
    if steps is None:
        return None
    before, after = steps.ideals[steps.before], steps.ideals[steps.after]
    whole = pairs_of(interventions, steps.ideals, steps.ideals)
    halfway = pairs_of(interventions, before, after)
    coalitions, place = np.unique(np.concatenate([whole, halfway]), axis=0, return_inverse=True)
    if max_coalitions is not None and len(coalitions) > max_coalitions:
        return None
    place = place.reshape(-1)
    at_ends, between = place[: len(whole)], place[len(whole) :]
    first, last = at_ends[steps.before], at_ends[steps.after]
    n_features = order.shape[0]
    shape = (n_features, len(coalitions))
    sums = [
        _collect(steps.feature, steps.share, one, other, shape)
        for one, other in ((first, last), (first, between), (between, last))
    ]
    skipped = np.zeros((3, n_features))
    same = between == last
    np.add.at(skipped[2], steps.feature[same], steps.share[same])
    return Enumeration(coalitions, np.concatenate(sums), skipped.ravel())


def _collect(
    feature: Positions, share: Floats, one: Positions, other: Positions, shape: tuple[int, int]
) -> Floats:
    """Return the coefficients of risks in the mean of ``risk(one) - risk(other)``, by feature."""
    coefficients = np.zeros(shape)
    np.add.at(coefficients, (feature, one), share)
    np.subtract.at(coefficients, (feature, other), share)
    return coefficients
