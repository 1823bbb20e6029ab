"""How much causal values depend on the graph: their range over graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dsage._check import GraphWarning, record_warnings, warn
from dsage.estimate.inference import simultaneous_intervals
from dsage.estimate.options import PlanOptions
from dsage.estimate.reasons import StopKind, StopReason
from dsage.estimate.result import Estimate
from dsage.estimate.running.run import run
from dsage.games.base import Floats, Game
from dsage.games.cached import Cached
from dsage.games.difference import Difference

# Evaluations for all graphs together, as a share of those of the run, and units for each graph in
# any case.
_SHARE, _FEWEST_UNITS = 1.0, 16
# Differences are precise enough if their errors are this share of the range of the values.
_PRECISE = 0.01
# Ranks are reported for values that differ by more than this share of their range.
_MATTERS = 0.02
# Rows of an ordering, and those when the user's time is over.
_ROWS, _FEW_ROWS = 64, 16


@dataclass(frozen=True, eq=False)
class GraphRange:
    """The values with other graphs that the data do not rule out.

    Attributes
    ----------
    feature_names : tuple of str
        The features.
    values : array of shape (n_features,)
        The values with the graph of the run.
    differences : array of shape (n_graphs, n_features)
        Value with each other graph minus value with the graph of the run, on common orderings,
        rows and noise.
    se, df : arrays of shape (n_graphs, n_features)
        Standard errors of the differences, and their degrees of freedom.
    shares : array of shape (n_graphs,)
        The share of each graph among graphs of the same kind.
    are_resampled : tuple of bool
        Whether each graph was learned from a resample of the rows; the others are members of the
        equivalence class.
    graphs : tuple of str
        The other graphs, in words.
    n_members : int or None
        Number of members of the equivalence class, if it was counted.
    n_evaluated : int
        Pairs of a coalition and a row that were evaluated with the other graphs.
    se_values, df_values : arrays of shape (n_features,), or None
        Standard errors of the values of the run, from orderings and draws, and their degrees of
        freedom; None if they are exact.
    """

    feature_names: tuple[str, ...]
    values: Floats
    differences: Floats
    se: Floats
    df: Floats
    shares: Floats
    are_resampled: tuple[bool, ...]
    graphs: tuple[str, ...]
    n_members: int | None = None
    n_evaluated: int = 0
    se_values: Floats | None = None
    df_values: Floats | None = None

    @property
    def all_values(self) -> Floats:
        """The values with the graph of the run and with each other graph, (1 + n_graphs, d)."""
        return np.concatenate([self.values[None], self.values + self.differences])

    @property
    def lowest(self) -> Floats:
        """The smallest value of each feature."""
        found: Floats = self.all_values.min(axis=0)
        return found

    @property
    def highest(self) -> Floats:
        """The largest value of each feature."""
        found: Floats = self.all_values.max(axis=0)
        return found

    @property
    def means(self) -> Floats:
        """The mean over the members of the equivalence class, by their shares."""
        of_class = ~np.array(self.are_resampled, dtype=np.bool_)
        found: Floats = self.values + self.shares[of_class] @ self.differences[of_class]
        return found

    def changes_sign(self) -> list[str]:
        """Return the features whose value is above zero with one graph and below with another.

        Both are significant; values within 2 % of the range around zero count as zero.
        """
        least = _MATTERS * float(np.ptp(self.values))
        low, high = self._bounds()
        found = (low.max(axis=0) > least) & (high.min(axis=0) < -least)
        return [name for name, flag in zip(self.feature_names, found, strict=True) if flag]

    def changes_rank(self) -> list[tuple[str, str]]:
        """Return pairs of features whose order of importance depends on the graph.

        Both differences are significant, and larger than 2 % of the range of the values.
        """
        least, values = _MATTERS * float(np.ptp(self.values)), self.all_values
        slack = self._slack()
        found = []
        for one, name in enumerate(self.feature_names):
            for other in range(one + 1, len(self.feature_names)):
                gaps = values[:, one] - values[:, other]
                errors = np.hypot(slack[:, one], slack[:, other]) + least
                if (gaps > errors).any() and (gaps < -errors).any():
                    found.append((name, self.feature_names[other]))
        return found

    def _slack(self) -> Floats:
        """Return the half widths of the intervals of `all_values`, (1 + n_graphs, n_features)."""
        n_features = len(self.feature_names)
        se = np.zeros(n_features) if self.se_values is None else self.se_values
        df = np.full(n_features, np.inf) if self.df_values is None else self.df_values
        # A value with another graph has the errors of the run's value and of the difference.
        errors = [se, *np.hypot(se, self.se)]
        degrees = [df, *np.minimum(df, self.df)]
        widths = [
            simultaneous_intervals(np.zeros(n_features), each, df=own)[1]
            for each, own in zip(errors, degrees, strict=True)
        ]
        return np.stack(widths)

    def _bounds(self) -> tuple[Floats, Floats]:
        slack = self._slack()
        return self.all_values - slack, self.all_values + slack

    def to_frame(self) -> pd.DataFrame:
        """Return the value of each feature, and its lowest, mean and highest value over graphs."""
        columns = {
            "feature": list(self.feature_names),
            "value": self.values,
            "lowest": self.lowest,
            "mean": self.means,
            "highest": self.highest,
        }
        frame = pd.DataFrame(columns)
        order = np.argsort(-self.values, kind="stable")
        return frame.iloc[order].reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class OtherGame:
    """The game with another graph: a function that makes it, and the graph in words."""

    make: Callable[[], Game]
    graph: str
    share: float
    is_resampled: bool


@dataclass(frozen=True, eq=False)
class _Enough:
    """Stop when differences are precise, or the pairs that are allowed are used up."""

    n_pairs: int
    allowed: float

    def reason(self, progress: Estimate) -> StopReason | None:
        is_precise = progress.n_units >= _FEWEST_UNITS and bool((progress.se <= self.allowed).all())
        is_over = progress.n_units >= _FEWEST_UNITS and progress.n_evaluated >= self.n_pairs
        if not (is_precise or is_over):
            return None
        return StopReason(StopKind.ORDERINGS, {"n": progress.n_orderings, "is_all": False})


class _Common(Cached):
    """The game of the run, evaluated once for all comparisons, with its first level."""

    def first_level(self) -> Game | None:
        """Return the cheaper game of the game itself."""
        return self.game.first_level()


def range_over_graphs(
    game: Game,
    others: Sequence[OtherGame],
    estimate: Estimate,
    options: PlanOptions,
    *,
    seed: int,
    n_members: int | None,
) -> GraphRange | None:
    """Estimate how causal values change with other graphs; None without others.

    Each graph is compared with the graph of the run by the :class:`~dsage.games.Difference` of
    their games: the same model, orderings, rows and noise. The game of the run is evaluated once
    for all comparisons. The other graphs together use about as many evaluations as the run, but
    each at least 16 pairs of orderings.
    """
    if not others or estimate.interrupted:
        return None
    n_pairs, n_rows = int(_SHARE * estimate.n_evaluated / len(others)), _ROWS
    if estimate.reason is not None and estimate.reason.kind is StopKind.TIME:
        # The user's time is over: evaluate only the minimum.
        n_pairs, n_rows = 0, _FEW_ROWS
    allowed = _PRECISE * float(np.ptp(estimate.values))
    settings = vars(
        replace(
            options,
            estimand="sage",
            audit=False,
            # If sampled orderings were better for the run, they are better for differences.
            exact="auto" if estimate.is_exact else "never",
            random_state=seed,
            rows_per_ordering=min(n_rows, game.n_rows) if game.is_drawn else None,
        )
    )
    found = []
    common = _Common(game)
    for other in others:
        # The warnings of the run have already been shown.
        with record_warnings(show=False):
            difference = Difference(other.make(), common)
            found.append(run(difference, stopping=_Enough(n_pairs, allowed), **settings))
        if found[-1].interrupted:
            return None
    return GraphRange(
        estimate.feature_names,
        estimate.values,
        np.stack([each.values for each in found]),
        np.stack([each.se for each in found]),
        np.stack([each.df for each in found]),
        np.array([each.share for each in others]),
        tuple(each.is_resampled for each in others),
        tuple(each.graph for each in others),
        n_members,
        sum(each.n_evaluated for each in found),
        None if estimate.is_exact and not estimate.se.any() else estimate.se,
        None if estimate.is_exact and not estimate.se.any() else estimate.df,
    )


def warn_of_range(found: GraphRange) -> None:
    """Warn if the sign or the rank of a value depends on the graph."""
    signs, ranks = found.changes_sign(), found.changes_rank()
    if not (signs or ranks):
        return
    parts = []
    if signs:
        parts.append(f"the sign of the values of {signs}")
    if ranks:
        shown = ", ".join(f"{one!r} and {other!r}" for one, other in ranks[:3])
        more = f" and {len(ranks) - 3} more pairs" if len(ranks) > 3 else ""
        parts.append(f"the order of {shown}{more}")
    depend = "depends" if len(parts) == 1 else "depend"
    text = (
        f"The data alone do not determine the graph, and {' and '.join(parts)} {depend} on it. Look"
        " at explanation.range_graph; tiers, required and forbidden edges rule out graphs."
    )
    warn(text, GraphWarning)
