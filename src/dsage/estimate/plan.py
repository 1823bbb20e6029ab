"""The plan of an estimate: options become games, walks, terms and shards of the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np

from dsage._check import refusal
from dsage._random import Streams
from dsage.estimate.accumulate.control import (
    MOST_COALITIONS,
    SECONDS_A_COST,
    CheapWalk,
    Control,
)
from dsage.estimate.correction import BoundaryGaps, Correction, SkippedSurpluses
from dsage.estimate.exact import Enumeration, enumerate_boundaries
from dsage.estimate.exact_choice import enumeration_pays
from dsage.estimate.exact_order import enumerate_extensions
from dsage.estimate.options import PlanOptions, can_enumerate
from dsage.estimate.outputs import ByOutput, WalksWithSum, with_sum
from dsage.estimate.parallel.jobs import Jobs
from dsage.estimate.parallel.pools import steady_digits
from dsage.estimate.parts import N_PARTS, CheapParts, PartsWalk, enumerate_parts
from dsage.estimate.terms import Enumerated, MainTerm, Sampled, Term
from dsage.estimate.walk import Boundaries, Prefixes, Walk
from dsage.games.base import Floats, Game, Orders, Rows, as_game
from dsage.games.boundary import check_oracle
from dsage.games.cached import Cached
from dsage.graphs.separation import NoSeparation, Oracle
from dsage.orderings import Extensions, Orderings, as_orderings
from dsage.orderings.partial.ideals import MOST_IDEALS

# Rows on which one batch of orderings is evaluated. If a row costs draws and predictions, they are
# few, but not fewer than there are features: the cost of conditioning on a coalition grows with
# them.
_ROWS_EXACT = 1024
# With very many features, fewer: a unit of an ordering and its reverse has at most this many pairs
# of a coalition and a row, as many units are better than large ones, and time limits must be kept.
_PAIRS_A_UNIT, _FEWEST_ROWS = 1 << 15, 16
# All orderings are enumerated if that needs no more evaluations than this many orderings.
_FEW_ORDERINGS = 24
# With d features, there are up to d / 2 coalitions of parts for each set of features.
_SETS_A_PART = 8
# Features up to which batches with each feature at each position are small enough.
_MOST_BALANCED = 32
_FIRST_CORRECTION = 1 << 40
# Seconds of a pair of a coalition and a row, about: with draws, and without.
_SECONDS_A_PAIR = 3e-5, 4e-7
# Parts of a shard, each of them the rows of a unit of an audit.
_AUDIT_PARTS = 16


class Plan:
    """The terms of an estimate and the shards of the rows on which they are evaluated.

    Parameters
    ----------
    game : Game
        The game.
    oracle : Oracle, optional
        Which features are separated from the target given a coalition, in the order of the game's
        features: ``graph.oracle(target, features=...)``. By default none is: plain SAGE.
    **options
        `estimand`, `semantics`, `exact`, `orderings` and others, see
        :class:`~dsage.estimate.PlanOptions`.

    Attributes
    ----------
    names : tuple of str
        The features.
    game : Cached
        The game, with a cache.
    jobs : Jobs
        The object that evaluates the game, possibly in parallel.
    oracle : Oracle or None
        The separations; None for plain SAGE.
    terms : list of Term
        The main term, and the difference to SAGE if it is estimated.
    control : Control or None
        The first level.
    enumeration : Enumeration or None
        The average over all orderings, if the main term is exact.
    shards, audit_shards : lists of int arrays
        The rows of each shard, drawn at random; for the main term and for the difference to SAGE.
    is_given : bool
        Whether the user gave the orderings.
    is_drawn : bool
        Whether risks are estimated from draws.
    shares : bool
        Whether orderings have coalitions in common.
    interventions : Interventions, GroupedInterventions or None
        The effects of interventions, for causal values.
    n_outputs : int
        Number of outputs with their own values, in addition to those of the sum; mostly 0. The
        direct and indirect parts of causal values count as two outputs.
    n_columns : int
        Number of values that are estimated together.

    Notes
    -----
    With x the surpluses of the game, c the surpluses of its first level, and y the surpluses at the
    coalitions themselves, the value is

        mean of c + mean of (x - c) [ + mean of (y - x) ],

    each a mean over its own orderings, the first over very many, with c scaled by its slope. The
    next unit goes to the term where it lowers the variance most for its cost. These decisions
    depend on seeds and results, never on the clock.
    """

    def __init__(
        self,
        game: Game,
        *,
        oracle: Oracle | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        self.options = PlanOptions.read(options, "oracle")
        game = as_game(game)
        if isinstance(oracle, NoSeparation):
            oracle = None
        if oracle is not None:
            oracle = check_oracle(oracle, game)
        self.streams = Streams(self.options.random_state)
        self.names = tuple(game.feature_names)
        self.interventions = game.interventions
        self._check_estimand(game, oracle)
        apart = game.apart()
        self.n_outputs = 0 if apart is None else apart.n_outputs
        if self.interventions is not None:
            self.n_outputs = N_PARTS
        self.n_columns = len(self.names) * (1 + self.n_outputs)
        self.is_drawn = game.is_drawn
        self.shares = oracle is not None and self.options.semantics == "boundary"
        self.estimand = "sage" if oracle is None else self.options.estimand
        if self._is_set(game):
            self.estimand = "causal"
        self.jobs = Jobs(self.options.n_jobs)
        played = game if apart is None else apart
        cache_bytes = self.options.cache_bytes
        self.game = Cached(played, max_bytes=cache_bytes, evaluate=self.jobs)
        self.oracle = oracle
        self.orderings = self.options.make_orderings(self.names, self.streams)
        self.is_given = self.orderings.n_batches is not None
        cheap, exact = self._first_levels(played), self.options.exact
        enumeration = self._enumerate(exact, has_control=bool(cheap))
        self.control = self._make_control(cheap, enumeration) if cheap else None
        self.enumeration = enumeration if exact == "always" else None
        if exact == "auto" and enumeration is not None and self._is_cheap(enumeration, cheap):
            self.enumeration = enumeration
        self.terms: list[Term] = [self._main_term(*cheap)]
        if oracle is not None and (self.options.audit or self.options.estimand == "sage"):
            self.terms.append(self._correction(oracle))
        if apart is not None:
            levels = [self._main_term(level) for level in cheap]
            main, *others = self.terms
            self.terms = [ByOutput(main, self.n_outputs, levels)]
            self.terms += [ByOutput(term, self.n_outputs) for term in others]
        self.shards = self._make_shards(self.options.rows_per_ordering)
        self.audit_shards = self._make_audit_shards()

    @property
    def described(self) -> dict[str, str]:
        """The options that change the estimate and have a name."""
        names = ("semantics", "first_level", "exact", "audit")
        named = {name: str(vars(self.options)[name]) for name in names}
        return {"estimand": self.estimand, **named}

    @property
    def n_replicates(self) -> int:
        """Number of pseudo-values per risk, or per risk of an output."""
        return self.game.n_replicates // self.game.n_outputs

    @property
    def n_values(self) -> int:
        """Number of values of the estimate itself, without the values of single outputs."""
        return self.n_columns // (1 + self.n_outputs)

    @property
    def seconds_a_unit(self) -> float:
        """A rough estimate of the time of a unit, the same on every machine, used in decisions."""
        n_features = len(self.names)
        pairs = self.game.n_rows / len(self.shards) * (n_features + 1)
        each = _SECONDS_A_PAIR[0] * pairs
        if not self.is_drawn:
            each = _SECONDS_A_PAIR[1] * pairs + SECONDS_A_COST * n_features**2
        return each * self.terms[0].batch_size

    @property
    def can_narrow(self) -> bool:
        """Whether single features can be evaluated further, and cost less than all of them."""
        is_sampled = isinstance(self.terms[0], Sampled) and not self.is_given
        is_alone = len(self.terms) == 1 or self.is_audited_only
        return is_sampled and is_alone and self.is_drawn and not self.n_outputs

    @property
    def tells_errors(self) -> bool:
        """Whether standard errors can be estimated: a single replicate does not give one."""
        return not self.is_drawn or self.n_replicates > 1

    @staticmethod
    def _is_set(game: Game) -> bool:
        """Return whether known features are set; also in a difference of two such games."""
        return all(part.interventions is not None for part in game.parts)

    def _check_estimand(self, game: Game, oracle: Oracle | None) -> None:
        """Refuse causal values of a game of seen features, and separations among set ones."""
        if not self._is_set(game):
            if self.options.estimand == "causal":
                advice = "Its sampler must be Interventional(sampler=..., graph=...)"
                raise refusal("estimand", "'sage' or 'd-sage' for this game", "causal", advice)
        elif oracle is not None:
            advice = "Separations describe observations, not interventions: leave it out"
            raise refusal("oracle", "None for a game of interventions", oracle, advice)

    def _walk_of(self, game: Game) -> Walk:
        if self.interventions is not None:
            return PartsWalk(self.interventions)
        if self.oracle is None:
            return Prefixes(game)
        if self.options.semantics == "skip":
            return Prefixes(game, self.oracle)
        return Boundaries(self.oracle)

    def _make_control(self, games: Sequence[Game], enumeration: Enumeration | None) -> Control:
        mean = None
        if enumeration is not None and enumeration.n_coalitions <= MOST_COALITIONS:
            mean = partial(self._exact_mean, games, enumeration)
        # The games of all outputs, then the cheaper ones of all outputs, and so on.
        levels = list(zip(*map(_cheaper_games, games), strict=False))
        walks = [self._cheap_walk(level) for level in levels]
        costs = [level[0].cost for level in levels]
        last, orderings = levels[-1], self._cheap_orderings()
        by_position = None
        if self.oracle is None and self._is_uniform and last[0].has_position_means:
            found = [game.position_means for game in last]
            by_position = WalksWithSum(found) if self.n_outputs else found[0]
        return Control(
            walks, orderings, self.n_columns, mean, costs=costs, position_means=by_position
        )

    def _exact_mean(self, games: Sequence[Game], enumeration: Enumeration) -> Floats:
        """Return the mean surpluses of cheap games over all orderings."""
        coalitions = enumeration.coalitions
        means = [enumeration.values(game.mean_risks(coalitions)) for game in games]
        are_summed = self.n_outputs > 0 and self.interventions is None
        return with_sum(means) if are_summed else means[0]

    @property
    def _is_uniform(self) -> bool:
        """Whether each ordering is uniform among all."""
        return can_enumerate(self.orderings) and not isinstance(self.orderings, Extensions)

    def _cheap_orderings(self) -> Orderings:
        """Return the orderings of cheap games.

        Balanced orderings, with each feature equally often at each position, are two to four times
        as informative; but their batches have as many orderings as there are features.
        """
        if self._is_uniform and len(self.names) <= _MOST_BALANCED:
            return as_orderings("balanced", self.names, self.streams)
        return self.orderings

    def _cheap_walk(self, games: Sequence[Game]) -> Callable[[Orders], Floats]:
        """Return the surpluses along orderings in cheap games of the outputs."""
        if self.interventions is not None:
            return CheapParts(games[0], self.interventions)
        walks = [CheapWalk.of(game, self.oracle, self.options.semantics) for game in games]
        return WalksWithSum(walks) if self.n_outputs else walks[0]

    def _enumerate(self, exact: str, *, has_control: bool) -> Enumeration | None:
        if not can_enumerate(self.orderings) or (exact == "never" and not has_control):
            return None
        oracle = NoSeparation(self.names) if self.oracle is None else self.oracle
        most = None if exact == "always" else max(self._few, MOST_COALITIONS)
        found = self._all_orderings(oracle, most)
        if found is None and exact == "always":
            condition = f"'auto' or 'never' if {len(self.names)} features have too many coalitions"
            raise refusal("exact", condition, exact, "Sample orderings")
        return found

    def _is_cheap(self, enumeration: Enumeration, first_levels: Sequence[Game]) -> bool:
        """Return whether an average over all orderings is cheaper than sampling them."""
        if enumeration.n_coalitions > self._few:
            return False
        control = None
        if len(first_levels) == 1:
            cheap = Cached(first_levels[0], max_bytes=2**26)
            control = cheap, self._walk_of(cheap)
        walk = self._walk_of(self.game)
        return enumeration_pays(self.game, enumeration, self.orderings, walk, control)

    def _all_orderings(self, oracle: Oracle, most: int | None) -> Enumeration | None:
        """Return the average over all orderings that could be drawn."""
        if self.interventions is not None:
            before = np.zeros((len(self.names), len(self.names)), dtype=np.bool_)
            if isinstance(self.orderings, Extensions):
                before = self.orderings.order.arranged(self.names).before
            # The parts of a feature need their own coalitions, so there are soon too many sets.
            most_sets = MOST_IDEALS if most is None else most // _SETS_A_PART
            return enumerate_parts(self.interventions, before, most, most_sets)
        semantics = self.options.semantics
        if isinstance(self.orderings, Extensions):
            order = self.orderings.order
            return enumerate_extensions(oracle, order, semantics=semantics, max_coalitions=most)
        return enumerate_boundaries(oracle, semantics=semantics, max_coalitions=most)

    @property
    def n_all_orderings(self) -> int:
        """Number of orderings in an exact average."""
        if isinstance(self.orderings, Extensions):
            count = self.orderings.order.n_extensions
            if count is not None:
                return count
        return math.factorial(len(self.names))

    @property
    def _few(self) -> int:
        """Number of coalitions up to which enumeration is cheaper than sampling."""
        n_steps = len(self.names) * (1 if self.interventions is None else 2)
        return _FEW_ORDERINGS * (n_steps + 1)

    def _first_levels(self, game: Game) -> tuple[Game, ...]:
        """Return the first level, or one for each output; none if that is not wanted."""
        # If an ordering takes a long chain to draw, very many cost more than they save.
        is_slow = isinstance(self.orderings, Extensions) and not self.orderings.is_exact
        is_wanted = self.options.first_level == "auto" and not self.is_given and not is_slow
        if not is_wanted:
            return ()
        # The model predicts the rows to which the first level is fitted.
        with steady_digits():
            return game.first_levels()

    def _main_term(self, *first_levels: Game) -> MainTerm:
        """Return the main term, with its first level if there is just one."""
        first_level = first_levels[0] if len(first_levels) == 1 else None
        if self.enumeration is not None:
            return Enumerated(self.enumeration, first_level)
        walk = self._walk_of(self.game)
        if first_level is None:
            return Sampled(walk, self.orderings)
        cheap = Cached(first_level, max_bytes=2**26)
        return Sampled(walk, self.orderings, self._walk_of(cheap), cheap)

    def _correction(self, oracle: Oracle) -> Term:
        first = 0 if self.is_given else _FIRST_CORRECTION
        gaps = SkippedSurpluses if self.options.semantics == "skip" else BoundaryGaps
        return Correction(gaps(self.game, oracle), self.orderings, first)

    @property
    def is_audited_only(self) -> bool:
        """Whether the difference to SAGE is estimated without being part of the estimate."""
        return len(self.terms) == 2 and self.estimand == "d-sage"

    def shards_of(self, term: int) -> list[Rows]:
        """Return the shards on which a term is evaluated.

        An audit needs far less precision than the values: if draws make rows costly, its units
        have few of them.
        """
        return self.audit_shards if term == 1 else self.shards

    def with_rows(self, rows_per_ordering: int) -> Self:
        """Return a plan that evaluates a batch of orderings on another number of rows."""
        plan = copy(self)
        plan.shards = plan._make_shards(rows_per_ordering)
        plan.audit_shards = plan._make_audit_shards()
        return plan

    def _make_shards(self, size: int | None) -> list[Rows]:
        n_rows, n_features = self.game.n_rows, len(self.names)
        if size is None:
            drawn = max(self.game.rows_of_unit, n_features)
            drawn = min(drawn, max(_FEWEST_ROWS, _PAIRS_A_UNIT // (2 * (n_features + 1))))
            size = drawn if self.game.has_dear_rows else _ROWS_EXACT
            size = n_rows if self.is_given else size
        shuffled = self.streams("blocks").permutation(n_rows)
        n_shards = -(-n_rows // min(size, n_rows))
        return [np.sort(shard) for shard in np.array_split(shuffled, n_shards)]

    def _make_audit_shards(self) -> list[Rows]:
        if not self.is_audited_only or self.is_given or not self.is_drawn:
            return self.shards
        return [
            part
            for shard in self.shards
            for part in np.array_split(shard, min(_AUDIT_PARTS, len(shard)))
        ]


def _cheaper_games(game: Game) -> list[Game]:
    """Return a cheap game, its own first level, and so on."""
    found: list[Game] = [game]
    while (cheaper := found[-1].first_level()) is not None:
        found.append(cheaper)
    return found
