"""Decide which separations a run uses: a graph is used if it saves evaluations."""

from __future__ import annotations

from dataclasses import replace

from dsage._check import GraphWarning, Setting, Text, warn
from dsage.data.groups import Groups
from dsage.estimate import PlanOptions
from dsage.estimate.graph_use import measure_use
from dsage.graphs import GroupedOracle, Oracle
from dsage.structure.info import GraphInfo
from dsage.structure.resolve import GraphFound

# No graph is learned if linear regressions leave this share of the coalitions to be evaluated.
_HARDLY_SEPARATED = 0.9


def group_oracle(oracle: Oracle | None, groups: Groups | None) -> Oracle | None:
    """Return the separations between players, from the separations between features."""
    if groups is None or oracle is None:
        return oracle
    return GroupedOracle(oracle, groups.members)


def use_graph(
    oracle: Oracle | None, found: GraphFound, options: PlanOptions
) -> tuple[Oracle | None, GraphInfo]:
    """Return the separations to use, and the record of the graph.

    A graph that the user did not ask for is used if that makes the estimate cheaper, and if it
    leaves something to estimate. `oracle` contains the graph's separations between players.
    """
    if oracle is None:
        return None, found.info
    use = measure_use(oracle, options)
    is_sage = options.estimand == "sage"
    # Then all values would be zero whatever the model predicts, though it may have learned noise.
    is_all = use.share_skipped >= 1.0
    is_used = found.is_asked or (use.pays and not is_all and not is_sage)
    why = None
    if is_used and is_all and not is_sage:
        text = (
            "The graph separates the target from all features: all values are zero by assumption, "
            "whatever the model predicts. To estimate them without this assumption, use "
        )
        warn(Text([text, Setting("estimand", "sage"), "."]), GraphWarning)
    elif not is_used and is_all:
        why = (
            "learned, not used: it separates the target from all features, so that all values "
            "would be zero by assumption"
        )
    elif not is_used:
        why = (
            f"learned, not used: {use.share_skipped:.0%} of the surpluses could be skipped, and "
            f"{use.share_evaluated:.0%} of the coalitions would have to be evaluated"
        )
    info = replace(
        found.info,
        is_used=is_used,
        share_skippable=use.share_skipped,
        share_evaluated=use.share_evaluated,
        why=why,
    )
    return oracle if is_used else None, info


class GraphSaver:
    """Explain why no graph needs to be learned, from rough separations of the features."""

    def __init__(self, options: PlanOptions, groups: Groups | None) -> None:
        self._options, self._groups = options, groups

    def __call__(self, oracle: Oracle) -> str | None:
        """Return the reason, or None if a graph might save evaluations."""
        players = oracle if self._groups is None else GroupedOracle(oracle, self._groups.members)
        share = measure_use(players, self._options).share_evaluated
        if share < _HARDLY_SEPARATED:
            return None
        return (
            f"not learned: even linear regressions, which miss dependences, leave {share:.0%} of "
            "the coalitions to be evaluated"
        )
