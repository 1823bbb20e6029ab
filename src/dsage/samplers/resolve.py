"""Find the sampler of a run: named, chosen automatically, or given as an object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import check_member, refusal, shown
from dsage._random import Streams
from dsage.data.frames import take_rows
from dsage.data.groups import Groups
from dsage.data.inputs import Inputs
from dsage.samplers.base import Sampler, check_sampler
from dsage.samplers.choose import (
    MIN_ROWS,
    choose_among,
    default_candidates,
    fit_to_all,
    make_sampler,
)
from dsage.samplers.comparing import REFERENCE, Outcome, Table, compare_candidates
from dsage.samplers.info import Basis, Decision, SamplerInfo, SamplerSource
from dsage.samplers.race import Budget, Contender, name_contenders
from dsage.samplers.registry import SAMPLERS
from dsage.samplers.rules import rank, rivals
from dsage.samplers.scorer import Predict
from dsage.samplers.splits import SCORED_ROWS, Part, most_fit_rows

# Time for the choice: seconds, or this share of the time that the user allows.
_SECONDS, _SHARE = 2.0, 0.1
# Seconds for the search for another sampler to compare a given one with.
_SECONDS_GIVEN = 2.0
_N_DRAWS, _N_COALITIONS = 8, 8


@dataclass(frozen=True, eq=False)
class SamplerRequest:
    """The sampler that the user asked for; None for the automatic choice.

    `found` is one that was found before, with its scores.
    """

    sampler: Sampler | None
    source: SamplerSource
    found: SamplerFound | None = None

    @property
    def is_marginal(self) -> bool:
        """Whether it ignores the known features: marginal SAGE."""
        return self.sampler is not None and self.sampler.is_marginal


@dataclass(frozen=True, eq=False)
class Rival:
    """Another sampler, not fitted, that scores as well as the sampler of the run, or better."""

    name: str
    sampler: Sampler
    is_better: bool = False  # clearly


@dataclass(frozen=True, eq=False)
class SamplerFound:
    """A fitted sampler, held-out scores of it and others (if scored), how it was found.

    `rivals` are others that score as well, the best first. `unfitted` is a copy of the sampler, to
    be fitted to other rows; None if it was given fitted.
    """

    sampler: Sampler
    scores: pd.DataFrame | None
    info: SamplerInfo
    rivals: tuple[Rival, ...] = ()
    unfitted: Sampler | None = None


@dataclass(frozen=True, eq=False)
class ScoringOptions:
    """Options that scores depend on, in addition to the rows.

    `predict` is the model, `players` the groups, `n_predicted` the least number of rows that the
    run will predict, `seconds` the time that the user allows it, and `is_checked` says whether a
    sampler that is not chosen here is compared with others.
    """

    predict: Predict | None = None
    players: Groups | None = None
    n_predicted: int = 0
    seconds: float | None = None
    is_checked: bool = True


def parse_sampler(sampler: Any, inputs: Inputs, *, seed: int) -> SamplerRequest:  # noqa: ANN401
    """Check the `sampler` argument, ``"auto"``, a name or an object, without fitting anything."""
    if not isinstance(sampler, str):
        found = sampler if isinstance(sampler, SamplerFound) else None
        given = check_sampler(sampler if found is None else found.sampler)
        if given.feature_names_ is not None and given.feature_names_ != inputs.names:
            condition = "fitted to the features, in their order"
            advice = f"Fit it to the columns of X_train: {shown(inputs.names)}"
            raise refusal("sampler", condition, list(given.feature_names_), advice)
        return SamplerRequest(given, SamplerSource.GIVEN, found)
    if check_member(sampler, ("auto", *SAMPLERS), "sampler", "the names of samplers") == "auto":
        return SamplerRequest(None, SamplerSource.CHOSEN)
    made = make_sampler(sampler, **_columns(inputs), random_state=seed % 2**31)
    return SamplerRequest(made, SamplerSource.NAMED)


def _columns(inputs: Inputs) -> dict[str, Any]:
    """Return the options with which samplers learn the same layout."""
    return {"discrete": inputs.discrete, "kinds": inputs.kinds, "groups": inputs.groups}


def find_sampler(
    request: SamplerRequest,
    inputs: Inputs,
    options: ScoringOptions | None = None,
    *,
    seed: int,
    progress: bool,
) -> SamplerFound:
    """Return the fitted sampler (a fitted copy, unless it was fitted), with its held-out score."""
    if request.found is not None:
        return request.found
    options = options or ScoringOptions()
    sampler, source, streams = request.sampler, request.source, Streams(seed)
    if sampler is None:
        return _choose(inputs, options, streams, progress=progress)
    table = _table(inputs, options, streams)
    if sampler.is_fitted:
        fitted, table = sampler, _test_table(inputs, options, streams)
    else:
        fitted = fit_to_all(sampler, inputs.X_train)
    unfitted = None if sampler.is_fitted else sampler
    if len(table.matrix) < MIN_ROWS or not table.parts:
        return SamplerFound(fitted, None, SamplerInfo(sampler.name, source), (), unfitted)
    outcome = _compare(sampler, table, options, progress=progress)
    scores = outcome.scores(sampler.name, "used").reset_index()
    found = _find_rivals(sampler.name, outcome)
    return SamplerFound(fitted, scores, _describe(sampler.name, source, scores), found, unfitted)


def _choose(
    inputs: Inputs, options: ScoringOptions, streams: Streams, *, progress: bool
) -> SamplerFound:
    table = _table(inputs, options, streams)
    named = default_candidates(table)
    seconds = max(_SECONDS, _SHARE * (options.seconds or 0.0))
    budget = Budget(seconds, options.n_predicted)
    choice = choose_among(
        table, named, options.predict, budget=budget, is_kept=True, progress=progress
    )
    decision, scores = choice.decision, None
    if decision.basis is Basis.SCORES:
        scores = choice.scores.reset_index()
    info = _describe(choice.name, SamplerSource.CHOSEN, scores, decision)
    found = tuple(Rival(name, sampler) for name, sampler in choice.tied.items())
    return SamplerFound(choice.sampler, scores, info, found, named.get(choice.name))


def _table(inputs: Inputs, options: ScoringOptions, streams: Streams) -> Table:
    """Return the training rows, some of which are held out."""
    return Table.of(
        inputs.X_train,
        inputs.layout,
        columns=_columns(inputs),
        players=options.players,
        streams=streams,
    )


def _test_table(inputs: Inputs, options: ScoringOptions, streams: Streams) -> Table:
    """Return the evaluation rows, for a sampler that was fitted to rows we do not know."""
    rows, rest = (
        np.sort(streams(purpose).permutation(size)[:most])
        for purpose, size, most in (
            ("choose-rows", len(inputs.y_test), SCORED_ROWS),
            ("choose-training-rows", len(inputs.y_train), most_fit_rows(len(inputs.names))),
        )
    )
    part = Part(take_rows(inputs.X_train, rest), take_rows(inputs.X_test, rows), rows)
    return Table(
        inputs.X_test,
        inputs.layout,
        _columns(inputs),
        inputs.layout.encode(inputs.X_test),
        Groups({}, inputs.names) if options.players is None else options.players,
        (part,),
        streams,
    )


def _compare(sampler: Sampler, table: Table, options: ScoringOptions, *, progress: bool) -> Outcome:
    """Score a sampler that is already decided on, and cheap candidates for comparison."""
    fitted = sampler if sampler.is_fitted else None
    contenders = [Contender(sampler.name, sampler, stays=True, fitted=fitted)]
    if options.is_checked and not sampler.is_marginal:
        others = default_candidates(table)
        others.pop(sampler.name, None)
        contenders += name_contenders(others)
    return compare_candidates(
        table,
        contenders,
        table.scorer(options.predict, _N_DRAWS),
        n_coalitions=_N_COALITIONS,
        budget=Budget(_SECONDS_GIVEN),
        progress=progress,
    )


def _find_rivals(name: str, outcome: Outcome) -> tuple[Rival, ...]:
    """Return the sampler that a given one is compared with: the best of the candidates.

    There is none if it is clearly worse than the given one.
    """
    samplers = {each.name: each.sampler for each in outcome.race.running if each.name != name}
    if not samplers:
        return ()
    best = rank(outcome.sheet, list(samplers)).chosen
    if outcome.sheet.compare(name, best).is_worse():
        return (Rival(best, samplers[best], is_better=True),)
    alike = rivals(outcome.sheet, name, list(samplers))
    return tuple(Rival(each, samplers[each]) for each in alike[:1])


def _describe(
    name: str, source: SamplerSource, scores: pd.DataFrame | None, decision: Decision | None = None
) -> SamplerInfo:
    if scores is None:
        return SamplerInfo(name, source, decision=decision)
    lines = scores.set_index("sampler")
    energy, of_independence, msev, msev_of_independence = (
        _find(lines, each, score)
        for score in ("energy_score", "msev")
        for each in (name, REFERENCE)
    )
    return SamplerInfo(name, source, energy, of_independence, decision, msev, msev_of_independence)


def _find(lines: pd.DataFrame, name: str, score: str) -> float | None:
    """Return a score of a sampler; None if it has none."""
    found = float(lines[score].get(name, np.nan))
    return None if np.isnan(found) else found
