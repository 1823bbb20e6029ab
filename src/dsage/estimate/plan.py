"""What is to be estimated, and from what: options become games, walks, terms and blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from dsage._check import check_count, check_member, refusal
from dsage._random import RandomState, Streams
from dsage.estimate.accumulate.control import (
    MOST_COALITIONS,
    Control,
    MeanBoundaries,
    MeanPrefixes,
    MeanWalk,
)
from dsage.estimate.exact import SEMANTICS, Enumeration, enumerate_boundaries
from dsage.estimate.exact_order import enumerate_extensions
from dsage.estimate.parallel.jobs import Jobs
from dsage.estimate.terms import Correction, Enumerated, Sampled, Term
from dsage.estimate.walk import Boundaries, Prefixes, Walk
from dsage.games.base import Game, Rows
from dsage.games.cached import Cached
from dsage.games.moment import CheapGame
from dsage.games.wrap import require_game, require_same_features
from dsage.graphs.separation import NoSeparation, Oracle
from dsage.orderings import Extensions, Order, Orderings, as_orderings
from dsage.orderings.base import Unbounded

ESTIMANDS = ("d-sage", "sage")
LEVELS = ("auto", "none")
EXACT = ("auto", "always", "never")

# Rows that one unit of orderings is evaluated on: few where a row costs draws and predictions, but
# so many that conditioning on a coalition, whose cost grows with the features, is the smaller part.
_ROWS_DRAWN, _ROWS_A_FEATURE, _ROWS_EXACT = 64, 2, 1024
# All orderings at once are taken where they need no more evaluations than so many orderings.
_FEW_ORDERINGS = 24
_FIRST_CORRECTION = 1 << 40
_LEAVE_OUT = "All orderings, or those in the list: leave one of the two out"


class Plan:
    """The terms of an estimate and the rows that they are evaluated on.

    Parameters
    ----------
    game : Game
        The game. Where it has a `moment_game`, that is the first level.
    oracle : Oracle, optional
        Which features are separated from the target given a coalition, in the order of the game's
        features: ``graph.oracle(target, features=...)``. By default none is: plain SAGE.
    estimand : {"d-sage", "sage"}, default="d-sage"
        ``"sage"`` adds the estimated difference of d-SAGE to SAGE. Without an oracle both are SAGE.
    semantics : {"boundary", "skip"}, default="boundary"
        Values at the Markov boundaries of coalitions, or, as in the paper's Algorithm 1, at the
        coalitions themselves with separated surpluses set to zero.
    levels : {"auto", "none"}, default="auto"
        Whether to use the cheap game as a first level.
    exact : {"auto", "always", "never"}, default="auto"
        Whether to average over all orderings; ``"auto"`` does where that needs few coalitions.
        ``"always"`` does where it is possible at all.
    orderings : str, Order, sequence of orderings or Orderings, default="antithetic"
        A kind, see :mod:`dsage.orderings`; or an :class:`~dsage.orderings.Order`, for means over
        the orderings that keep it; or the orderings themselves, by names or positions: the values
        are then means over these, on all rows, without a first level. Their errors take the
        orderings for a sample.
    rows_per_ordering : int, optional
        On how many rows a unit of orderings is evaluated. By default two for each feature, and at
        least 64, where rows are drawn for, 1,024 where they are not, and all for orderings that
        are given.
    audit : bool, default=True
        Whether to estimate the difference to SAGE also where it is not part of the estimate.
    random_state : int, numpy Generator or None, default=None
        Seed of orderings and blocks of rows. The game has its own, for its noise.
    cache_bytes : int, default=2**28
        Memory for risks that are kept.
    n_jobs : int, optional
        Jobs that evaluate at the same time, as joblib has it; see
        :class:`~dsage.estimate.parallel.jobs.Jobs`. Results do not depend on it.

    Attributes
    ----------
    names : tuple of str
        The features.
    n_columns : int
        Number of values that are estimated: one a feature.
    streams : Streams
        Where randomness comes from.
    game : Cached
        The game, with a memory.
    oracle : Oracle or None
        What is separated; None where nothing is.
    described : dict of str to str
        The options that have a name.
    terms : list of Term
        The main term, and the difference to SAGE where that is wanted.
    control : Control or None
        The first level.
    enumeration : Enumeration or None
        All orderings at once, where the main term averages over them.
    blocks : list of int arrays
        The rows of each block, drawn at random.
    is_given : bool
        Whether the user gave the orderings.
    is_drawn : bool
        Whether risks have noise.
    shares : bool
        Whether orderings have coalitions in common.

    Notes
    -----
    With x the surpluses of the model's game, c those of the cheap one, and y those at the
    coalitions themselves, the value is

        mean of c + mean of (x - c) [ + mean of (y - x) ],

    each mean over orderings of its own, the first over very many, with c scaled by its slope.
    The next unit goes to the term where it lowers the variance most for its cost. All of it depends
    on seeds and results alone, never on the clock.
    """

    def __init__(
        self,
        game: Game,
        *,
        oracle: Oracle | None = None,
        estimand: Literal["d-sage", "sage"] = "d-sage",
        semantics: Literal["boundary", "skip"] = "boundary",
        levels: Literal["auto", "none"] = "auto",
        exact: Literal["auto", "always", "never"] = "auto",
        orderings: str | Order | Sequence[Sequence[str] | Sequence[int]] | Orderings = "antithetic",
        rows_per_ordering: int | None = None,
        audit: bool = True,
        random_state: RandomState = None,
        cache_bytes: int = 2**28,
        n_jobs: int | None = None,
    ) -> None:
        check_member(estimand, ESTIMANDS, "estimand", "the estimands")
        check_member(semantics, SEMANTICS, "semantics", "the semantics")
        check_member(levels, LEVELS, "levels", "the kinds of levels")
        check_member(exact, EXACT, "exact", "the choices")
        _check_kinds(game, oracle)
        if isinstance(oracle, NoSeparation):
            oracle = None
        if oracle is not None:
            require_same_features(oracle, game)
        self.streams = Streams(random_state)
        self.names = tuple(game.feature_names)
        self.n_columns = len(self.names)
        self.is_drawn: bool = getattr(game, "is_drawn", game.n_replicates > 1)
        self.shares = oracle is not None and semantics == "boundary"
        self.estimand = "sage" if oracle is None else estimand
        self.game = Cached(game, max_bytes=cache_bytes, evaluate=Jobs(n_jobs))
        self.oracle, self._semantics = oracle, semantics
        self.described = {
            "estimand": self.estimand,
            "semantics": semantics,
            "levels": levels,
            "exact": exact,
            "audit": str(audit),
        }
        self.orderings = as_orderings(orderings, self.names, self.streams)
        self.is_given = self.orderings.n_batches is not None
        moment = self._moment_game(game) if levels == "auto" else None
        enumeration = self._enumerate(exact, has_control=moment is not None)
        self.control = None if moment is None else self._make_control(moment, enumeration)
        is_affordable = enumeration is not None and enumeration.n_coalitions <= self._few
        is_wanted = exact == "always" or (exact == "auto" and is_affordable)
        self.enumeration = enumeration if is_wanted else None
        self.terms: list[Term] = [self._main_term(moment)]
        if oracle is not None and (audit or estimand == "sage"):
            first = 0 if self.is_given else _FIRST_CORRECTION
            # What is subtracted must have the same draws, if there are any.
            plain = Prefixes(self.game, use_paths=semantics == "skip" or not self.is_drawn)
            walk = self._walk_of(self.game)
            self.terms.append(Correction(plain, walk, oracle, self.orderings, first))
        self.blocks = self._make_blocks(rows_per_ordering)

    @property
    def tells_errors(self) -> bool:
        """Whether standard errors will be known: one group of draws tells nothing of its own."""
        return not self.is_drawn or self.game.n_replicates > 1

    def _walk_of(self, game: Game) -> Walk:
        if self.oracle is None:
            return Prefixes(game)
        if self._semantics == "skip":
            return Prefixes(game, self.oracle)
        return Boundaries(self.oracle)

    def _make_control(self, game: CheapGame, enumeration: Enumeration | None) -> Control:
        mean = None
        if enumeration is not None and enumeration.n_coalitions <= MOST_COALITIONS:
            mean = enumeration.values(game.mean_risks(enumeration.coalitions))
        return Control(self._mean_walk(game), self.orderings, self.n_columns, mean)

    def _mean_walk(self, game: CheapGame) -> MeanWalk:
        if self.oracle is None or self._semantics == "skip":
            return MeanPrefixes(game, self.oracle)
        return MeanBoundaries(game, self.oracle)

    def _enumerate(self, exact: str, *, has_control: bool) -> Enumeration | None:
        # Of another's orderings nobody knows which there are.
        is_listed = self.is_given or not isinstance(self.orderings, Unbounded)
        if exact == "always" and is_listed:
            raise refusal("exact", "'auto' or 'never' for given orderings", exact, _LEAVE_OUT)
        if is_listed or (exact == "never" and not has_control):
            return None
        oracle = NoSeparation(self.names) if self.oracle is None else self.oracle
        most = None if exact == "always" else max(self._few, MOST_COALITIONS)
        found = self._all_orderings(oracle, most)
        if found is None and exact == "always":
            n_features = len(self.names)
            raise refusal(
                "exact",
                f"'auto' or 'never' where {n_features} features have too many coalitions",
                exact,
                "Sample orderings",
            )
        return found

    def _all_orderings(self, oracle: Oracle, most: int | None) -> Enumeration | None:
        """Return the average over all orderings that are drawn from."""
        if isinstance(self.orderings, Extensions):
            return enumerate_extensions(
                oracle, self.orderings.order, semantics=self._semantics, max_coalitions=most
            )
        return enumerate_boundaries(oracle, semantics=self._semantics, max_coalitions=most)

    @property
    def n_all_orderings(self) -> int:
        """Number of orderings that an exact average is over."""
        if isinstance(self.orderings, Extensions):
            count = self.orderings.order.n_extensions
            if count is not None:
                return count
        return math.factorial(len(self.names))

    @property
    def _few(self) -> int:
        """How many coalitions are cheaper than the orderings that would be sampled."""
        return _FEW_ORDERINGS * (len(self.names) + 1)

    def _moment_game(self, game: Game) -> CheapGame | None:
        make = getattr(game, "moment_game", None)
        # Where an ordering takes a long chain to draw, very many are dearer than what they save.
        is_slow = isinstance(self.orderings, Extensions) and not self.orderings.is_exact
        return None if make is None or self.is_given or is_slow else make()

    def _main_term(self, moment: CheapGame | None) -> Term:
        if self.enumeration is not None:
            return Enumerated(self.enumeration, moment)
        walk = self._walk_of(self.game)
        if moment is None:
            return Sampled(walk, self.orderings)
        cheap = Cached(moment, max_bytes=2**26)
        return Sampled(walk, self.orderings, self._walk_of(cheap), cheap)

    def _make_blocks(self, rows_per_ordering: int | None) -> list[Rows]:
        n_rows = self.game.n_rows
        if rows_per_ordering is None:
            drawn = max(_ROWS_DRAWN, _ROWS_A_FEATURE * len(self.names))
            size = drawn if self.is_drawn else _ROWS_EXACT
            size = n_rows if self.is_given else size
        else:
            size = check_count(rows_per_ordering, "rows_per_ordering")
        shuffled = self.streams("blocks").permutation(n_rows)
        n_blocks = -(-n_rows // min(size, n_rows))
        return [np.sort(part) for part in np.array_split(shuffled, n_blocks)]


def _check_kinds(game: object, oracle: object) -> None:
    """Refuse what is no game or no oracle: a model, or a graph, is the usual mistake."""
    require_game(game)
    if oracle is not None and not hasattr(oracle, "feature_names"):
        advice = "Make one with graph.oracle(target, features=...)"
        raise refusal("oracle", "an oracle", type(oracle).__name__, advice, TypeError)
