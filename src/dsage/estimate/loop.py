"""The one loop: evaluate units of orderings on blocks of rows, where they tell most."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from dsage._check import check_count, check_member, message
from dsage._random import RandomState, Streams
from dsage.estimate.control import MOST_COALITIONS, Control, MeanPrefixes, mean_boundaries
from dsage.estimate.exact import SEMANTICS, Enumeration, enumerate_boundaries
from dsage.estimate.inference import effective_df
from dsage.estimate.ledger import Ledger
from dsage.estimate.result import Estimate, Level
from dsage.estimate.tally import Tally
from dsage.estimate.terms import Correction, Enumerated, Sampled, Term
from dsage.estimate.walk import Boundaries, Prefixes, Walk
from dsage.games.base import Floats, Game, Rows
from dsage.games.moment import MomentGame
from dsage.games.wrap import Cached, require_same_features
from dsage.graphs.separation import NoSeparation, Oracle
from dsage.orderings import Orderings, as_orderings

ESTIMANDS = ("d-sage", "sage")
LEVELS = ("auto", "none")
EXACT = ("auto", "always", "never")

# Rows that one unit of orderings is evaluated on: few where a row costs draws and predictions.
_ROWS_DRAWN, _ROWS_EXACT = 32, 1024
# All orderings at once are taken where they need no more evaluations than so many orderings.
_FEW_ORDERINGS = 24
_FIRST_UNITS = 8
_FIRST_CORRECTION = 1 << 40
# Share of the evaluations that an audit may take where it is not part of the estimate.
_AUDIT_SHARE = 0.25
# Where nothing else is left to do, an audit ends after so many units.
_ENOUGH_AUDIT = 64
_LEAVE_OUT = "All orderings, or those in the list: leave one of the two out"


class Estimation:
    """The state of an estimate: where it stands, and the next step.

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
    orderings : str, sequence of orderings or Orderings, default="antithetic"
        A kind, see :mod:`dsage.orderings`, or the orderings themselves, by names or positions: the
        values are then means over these alone, on all rows, without a first level.
    rows_per_ordering : int, optional
        On how many rows a unit of orderings is evaluated. By default 32 where rows are drawn for,
        1,024 where they are not, and all for orderings that are given.
    audit : bool, default=True
        Whether to estimate the difference to SAGE also where it is not part of the estimate.
    random_state : int, numpy Generator or None, default=None
        Seed of orderings and blocks of rows. The game has its own, for its noise.
    cache_bytes : int, default=2**28
        Memory for risks that are kept.

    Notes
    -----
    With ``x`` the surpluses of the model's game, ``c`` those of the cheap one, and ``y`` those at the
    coalitions themselves, the value is

        mean of c + mean of (x - c) [ + mean of (y - x) ],

    each mean over orderings of its own, the first over very many, with ``c`` scaled by its slope.
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
        orderings: str | Sequence[Sequence[str] | Sequence[int]] | Orderings = "antithetic",
        rows_per_ordering: int | None = None,
        audit: bool = True,
        random_state: RandomState = None,
        cache_bytes: int = 2**28,
    ) -> None:
        check_member(estimand, ESTIMANDS, "estimand", "the estimands")
        check_member(semantics, SEMANTICS, "semantics", "the semantics")
        check_member(levels, LEVELS, "levels", "the kinds of levels")
        check_member(exact, EXACT, "exact", "the choices")
        if isinstance(oracle, NoSeparation):
            oracle = None
        if oracle is not None:
            require_same_features(oracle, game)
        self._start = time.perf_counter()
        self._streams = Streams(random_state)
        self._names = tuple(game.feature_names)
        self._estimand = "sage" if oracle is None else estimand
        self._game = Cached(game, max_bytes=cache_bytes)
        self._oracle, self._semantics = oracle, semantics
        self._orderings = as_orderings(orderings, self._names, self._streams)
        self._is_given = self._orderings.n_units is not None
        moment = self._moment_game(game) if levels == "auto" and not self._is_given else None
        enumeration = self._enumerate(exact)
        self._control = (
            None
            if moment is None
            else Control(moment, self._mean_walk(moment), self._orderings, enumeration)
        )
        is_affordable = enumeration is not None and enumeration.n_coalitions <= self._few
        self._enumeration = enumeration if is_affordable or exact == "always" else None
        self._terms: list[Term] = [self._main_term(moment)]
        if oracle is not None and (audit or estimand == "sage"):
            first = 0 if self._is_given else _FIRST_CORRECTION
            # What is subtracted must have the same draws.
            plain = Prefixes(self._game, use_paths=semantics == "skip")
            walk = self._walk_of(self._game)
            self._terms.append(Correction(plain, walk, oracle, self._orderings, first))
        self._blocks = self._make_blocks(rows_per_ordering)
        n_features = len(self._names)
        self._tallies = [Tally(self._blocks, n_features) for _ in self._terms]
        self._ledger = Ledger(self._blocks, n_features, game.n_groups, len(self._terms))
        self._costs = [0] * len(self._terms)
        self._skipped = np.zeros(n_features)
        self._noted: list[tuple[int, int, float, int]] = []
        self._epoch = 0
        self._epoch_started_at = 0

    # --- set up

    def _walk_of(self, game: Game) -> Walk:
        if self._oracle is None:
            return Prefixes(game)
        if self._semantics == "skip":
            return Prefixes(game, self._oracle)
        return Boundaries(game, self._oracle)

    def _mean_walk(self, game: MomentGame) -> Walk:
        if self._oracle is None or self._semantics == "skip":
            return MeanPrefixes(game, self._oracle)
        return mean_boundaries(game, self._oracle)

    def _enumerate(self, exact: str) -> Enumeration | None:
        if exact == "always" and self._is_given:
            raise ValueError(
                message("exact", "'auto' or 'never' for given orderings", exact, _LEAVE_OUT)
            )
        if exact == "never" or self._is_given:
            return None
        oracle = NoSeparation(self._names) if self._oracle is None else self._oracle
        most = None if exact == "always" else max(self._few, MOST_COALITIONS)
        found = enumerate_boundaries(oracle, semantics=self._semantics, max_coalitions=most)
        if found is None and exact == "always":
            n_features = len(self._names)
            raise ValueError(
                message(
                    "exact",
                    f"'auto' or 'never' where {n_features} features have too many coalitions",
                    exact,
                    "Sample orderings",
                )
            )
        return found

    @property
    def _few(self) -> int:
        """How many coalitions are cheaper than the orderings that would be sampled."""
        return _FEW_ORDERINGS * (len(self._names) + 1)

    def _moment_game(self, game: Game) -> MomentGame | None:
        make = getattr(game, "moment_game", None)
        return None if make is None else make()

    def _main_term(self, moment: MomentGame | None) -> Term:
        if self._enumeration is not None:
            return Enumerated(self._game, self._enumeration, moment)
        control = None if moment is None else self._walk_of(Cached(moment, max_bytes=2**26))
        return Sampled(self._walk_of(self._game), self._orderings, control)

    def _make_blocks(self, rows_per_ordering: int | None) -> list[Rows]:
        n_rows = self._game.n_rows
        if rows_per_ordering is None:
            size = _ROWS_DRAWN if self._game.n_groups > 1 else _ROWS_EXACT
            size = n_rows if self._is_given else size
        else:
            size = check_count(rows_per_ordering, "rows_per_ordering")
        shuffled = self._streams("blocks").permutation(n_rows)
        n_blocks = -(-n_rows // min(size, n_rows))
        return [np.sort(part) for part in np.array_split(shuffled, n_blocks)]

    # --- steps

    def steps(self) -> Iterator[Estimate]:
        """Evaluate, and yield what is known, again and again; end where nothing is left to do."""
        for term in range(len(self._terms)):
            self._run(term, min(_FIRST_UNITS, len(self._blocks)))
        while True:
            yield self.progress()
            term = self._next_term()
            n_left = self._n_left(term)
            if n_left == 0:
                return
            n_units = self._tallies[term].n_units
            self._run(term, min(max(_FIRST_UNITS // 2, n_units // 8), n_left))

    def _n_left(self, term: int) -> int:
        """Return how many units of a term there are yet; very many if there is no end."""
        n_units, n_blocks = self._tallies[term].n_units, len(self._blocks)
        if self._orderings.n_units is not None:
            return self._orderings.n_units * n_blocks - n_units
        if term == 0 and self._is_settled:
            return 0
        return 1 << 40

    @property
    def _is_settled(self) -> bool:
        """Whether nothing can change the main term: no orderings are sampled, and no draws."""
        return self._is_complete and self._game.n_groups == 1

    @property
    def _is_complete(self) -> bool:
        """Whether the main term has averaged over all orderings on all rows."""
        return self._enumeration is not None and bool(self._tallies[0].counts.all())

    def _run(self, term: int, n_units: int) -> None:
        n_blocks = len(self._blocks)
        for _ in range(min(n_units, self._n_left(term))):
            number = self._tallies[term].n_units
            if self._is_given:
                unit, block = divmod(number, n_blocks)
            else:
                unit, block = number, self._visited(number)
            self._evaluate(term, unit, block)
            if term == 0 and (number + 1) % n_blocks == 0:
                self._end_pass()

    def _visited(self, number: int) -> int:
        """Return the block of a unit: every pass takes the blocks in a random order of its own."""
        n_pass, place = divmod(number, len(self._blocks))
        order = self._streams("passes", n_pass).permutation(len(self._blocks))
        return int(order[place])

    def _evaluate(self, term: int, unit: int, block: int) -> None:
        rows = self._blocks[block]
        before = self._game.n_evaluated
        outcome = self._terms[term](unit, rows, self._epoch)
        self._costs[term] += self._game.n_evaluated - before
        value = outcome.surplus.mean(axis=(0, 1))
        self._tallies[term].add(block, value, outcome.control)
        self._ledger.add(term, block, outcome.surplus)
        if term == 0:
            self._skipped += outcome.n_skipped
        self._noted += [(*note, len(rows)) for note in outcome.noted]

    def _end_pass(self) -> None:
        """Take fresh noise where draws, not orderings, make most of the error."""
        n_passes = int(self._tallies[0].counts.min()) - self._epoch_started_at
        is_exact = self._enumeration is not None
        # Two passes with the same noise tell how much the orderings alone vary.
        if self._game.n_groups == 1 or (n_passes < 2 and self._epoch == 0 and not is_exact):
            return
        drawn = float(self._ledger.draw_variance(self._estimated).sum())
        ordered = sum(float(self._variance(term).sum()) for term in self._estimated)
        if is_exact or drawn > ordered:
            self._game.forget(self._epoch)
            self._epoch += 1
            self._epoch_started_at += n_passes
            self._ledger.next_epoch()
            for tally in self._tallies:
                tally.next_epoch()

    def _next_term(self) -> int:
        """Return the term whose next unit lowers the variance most for its cost."""
        if len(self._terms) == 1:
            return 0
        if self._is_given:
            return int(np.argmin([tally.n_units for tally in self._tallies]))
        main, correction = self._costs
        if self._estimand == "d-sage":
            if self._is_settled:
                return int(self._tallies[1].n_units < _ENOUGH_AUDIT)
            return int(correction < _AUDIT_SHARE * (main + correction))
        rates = []
        for term, (tally, cost) in enumerate(zip(self._tallies, self._costs, strict=True)):
            variance = float(self._variance(term).sum())
            if term == 0 and self._enumeration is not None:
                variance += float(self._ledger.draw_variance([0]).sum())
            rates.append(variance / max(cost / tally.n_units, 1.0) / tally.n_units)
        return int(np.argmax(rates))

    # --- what is known

    @property
    def _estimated(self) -> list[int]:
        """The terms that are part of the estimate."""
        return [0, 1] if len(self._terms) == 2 and self._estimand == "sage" else [0]

    def _slope(self) -> float:
        return 0.0 if self._control is None else self._tallies[0].slope

    def _variance(self, term: int) -> Floats:
        """Return the variance of a term over orderings."""
        if term == 1:
            return self._tallies[1].variance()
        slope = self._slope()
        if slope and self._control is not None:
            return self._own_variance(slope) + slope**2 * self._control.variance
        return self._own_variance(0.0)

    def _own_variance(self, slope: float) -> Floats:
        return self._tallies[0].variance(slope, is_exact=self._enumeration is not None)

    def progress(self) -> Estimate:
        """Return what is known now."""
        main = self._tallies[0]
        slope = self._slope()
        value, control = main.mean()
        levels = []
        if self._control is not None and slope:
            rest = float(self._own_variance(slope).sum())
            rest += float(self._ledger.draw_variance([0]).sum())
            self._control.refine(0.1 * rest / slope**2, main.n_units)
            control_se = np.sqrt(self._control.variance) * abs(slope)
            n_control = self._control.n_orderings
            levels.append(Level("moments", slope * self._control.mean, control_se, n_control, 0))
            value = value - slope * control
        own = self._own_variance(slope)
        term = self._terms[0]
        n_orderings, n_units = main.n_units * term.unit_size, main.n_units
        is_exact = self._is_complete and self._estimated == [0]
        if is_exact:
            n_orderings = math.factorial(len(self._names))
            n_units = int(main.counts.min()) * self._game.n_rows
        elif self._is_complete:
            # The errors rest on the correction, the only term that is sampled.
            n_units = self._tallies[1].n_units
            n_orderings = n_units * self._terms[1].unit_size
        own_level = Level(
            term.name, value, np.sqrt(own), n_orderings, self._costs[0], df=float(main.df)
        )
        levels.append(own_level)
        audit = None
        if len(self._terms) == 2:
            audit = self._audit()
            if self._estimand == "sage":
                levels.append(audit)
        variance = sum(self._variance(term) for term in self._estimated)
        return Estimate(
            feature_names=self._names,
            values=np.sum([level.values for level in levels], axis=0),
            se_orderings=np.sqrt(variance),
            se_draws=np.sqrt(self._ledger.draw_variance(self._estimated)),
            se_rows=np.sqrt(self._ledger.row_variance(self._estimated)),
            df=self._df(levels),
            n_orderings=n_orderings,
            n_units=n_units,
            n_evaluated=self._game.n_evaluated,
            n_shared=self._game.n_shared,
            share_skipped=self._share_skipped(),
            levels=tuple(levels),
            audit=audit,
            skipped_surpluses=self._skipped_frame(),
            seconds=time.perf_counter() - self._start,
            is_exact=is_exact,
            estimand=self._estimand,
        )

    def _df(self, levels: Sequence[Level]) -> Floats:
        """Return the degrees of freedom of the whole, by Satterthwaite."""
        drawn = self._ledger.draw_variance(self._estimated)
        variances = np.stack([*(level.se**2 for level in levels), drawn])
        if not np.isfinite(variances).all():
            return np.ones(len(self._names))
        return effective_df(variances, [*(level.df for level in levels), np.inf])

    def _share_skipped(self) -> Floats:
        if self._enumeration is not None:
            return self._enumeration.skipped
        n_orderings = self._tallies[0].n_units * self._terms[0].unit_size
        return self._skipped / max(n_orderings, 1)

    def _audit(self) -> Level:
        tally = self._tallies[1]
        variance = tally.variance() + self._ledger.draw_variance([1])
        n_orderings = tally.n_units * self._terms[1].unit_size
        name = self._terms[1].name
        return Level(
            name,
            tally.mean()[0],
            np.sqrt(variance),
            n_orderings,
            self._costs[1],
            df=float(tally.df),
        )

    def _skipped_frame(self) -> pd.DataFrame:
        frame = pd.DataFrame(self._noted, columns=["feature", "position", "surplus", "n_rows"])
        frame["feature"] = [self._names[feature] for feature in frame["feature"]]
        return frame
