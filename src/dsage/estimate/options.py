"""The options of an estimate, checked before any game exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dsage._check import check_count, check_member, refusal
from dsage._random import RandomState, Streams
from dsage.estimate.exact import SEMANTICS
from dsage.estimate.parallel.jobs import check_n_jobs
from dsage.games.options import Options
from dsage.orderings import Order, Orderings, as_orderings
from dsage.orderings.base import Unbounded

ESTIMANDS = ("d-sage", "sage", "causal")
FIRST_LEVELS = ("auto", "none")
EXACT = ("auto", "always", "never")


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanOptions(Options):
    """Options of an estimation.

    Parameters
    ----------
    estimand : {"d-sage", "sage", "causal"}, default="d-sage"
        ``"sage"`` adds the estimated difference of d-SAGE to SAGE. Without an oracle both are SAGE.
        ``"causal"`` is for games in which known features are set: their sampler is
        :class:`~dsage.samplers.Interventional`.
    semantics : {"boundary", "skip"}, default="boundary"
        Values at the Markov boundaries of coalitions, or, as in the paper's Algorithm 1, at the
        coalitions themselves with separated surpluses set to zero.
    first_level : {"auto", "none"}, default="auto"
        Whether to use the first level of the game, if it has one, as a control.
    exact : {"auto", "always", "never"}, default="auto"
        Whether to average over all orderings; ``"auto"`` does so if few coalitions suffice, and
        if that costs less than sampling orderings, for the same error including draws;
        ``"always"`` whenever it is possible.
    orderings : str, Order, sequence of orderings or Orderings, default="antithetic"
        A kind, see :mod:`dsage.orderings`; or an :class:`~dsage.orderings.Order`, for means over
        the orderings that keep it; or the orderings themselves, by names or positions: the values
        are then means over these, on all rows, without a first level. Their errors treat the
        orderings as a sample.
    rows_per_ordering : int, optional
        Number of rows on which a batch of orderings is evaluated. By default 64 if risks are drawn,
        or 32 if they have more than 8 draws each, as for cross entropy, unless the model is at
        most 64 trees that are read. It is at least the number
        of features, up to 127 of them; with more, it falls: 54 with 300, 16 with 1,000. It is 1,024
        if risks are not drawn, and all rows for given orderings.
    audit : bool, default=True
        Whether to estimate the difference to SAGE even if it is not part of the estimate.
    random_state : int, numpy Generator or None, default=None
        Seed of orderings and shards. The game has its own seed, for its noise.
    cache_bytes : int, default=2**28
        Memory for cached risks.
    n_jobs : int, optional
        Number of parallel jobs, as in joblib; see :class:`~dsage.estimate.parallel.jobs.Jobs`.
        Results do not depend on it.

    Examples
    --------
    >>> PlanOptions(exact="alway")
    Traceback (most recent call last):
    ValueError: exact must be one of the choices; got 'alway'. Did you mean 'always'?
    """

    of = "the options of an estimate"

    estimand: Literal["d-sage", "sage", "causal"] = "d-sage"
    semantics: Literal["boundary", "skip"] = "boundary"
    first_level: Literal["auto", "none"] = "auto"
    exact: Literal["auto", "always", "never"] = "auto"
    orderings: str | Order | Sequence[Sequence[str] | Sequence[int]] | Orderings = "antithetic"
    rows_per_ordering: int | None = None
    audit: bool = True
    random_state: RandomState = None
    cache_bytes: int = 2**28
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        check_member(self.estimand, ESTIMANDS, "estimand", "the estimands")
        check_member(self.semantics, SEMANTICS, "semantics", "the semantics")
        check_member(self.first_level, FIRST_LEVELS, "first_level", "the choices")
        check_member(self.exact, EXACT, "exact", "the choices")
        if self.rows_per_ordering is not None:
            check_count(self.rows_per_ordering, "rows_per_ordering")
        check_count(self.cache_bytes, "cache_bytes", minimum=0)
        check_n_jobs(self.n_jobs)

    def make_orderings(self, feature_names: Sequence[str], streams: Streams) -> Orderings:
        """Return the orderings of some features; refuse those that do not fit the options."""
        orderings = as_orderings(self.orderings, tuple(feature_names), streams)
        if self.exact == "always" and not can_enumerate(orderings):
            advice = "Leave out either exact or orderings"
            raise refusal("exact", "'auto' or 'never' for given orderings", self.exact, advice)
        return orderings

    def check_features(self, feature_names: Sequence[str]) -> None:
        """Refuse options that do not fit the features, before a game of them exists."""
        self.make_orderings(feature_names, Streams(0))


def can_enumerate(orderings: Orderings) -> bool:
    """Return whether all orderings are known; given and user-defined ones cannot be enumerated."""
    return orderings.n_batches is None and isinstance(orderings, Unbounded)
