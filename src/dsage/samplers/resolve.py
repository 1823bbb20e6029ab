"""Find the sampler of a run: named, chosen automatically, or given as an object."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from dsage._check import check_member, refusal, shown
from dsage.data.inputs import Inputs
from dsage.samplers.base import Sampler, check_sampler
from dsage.samplers.choose import choose_sampler, make_sampler
from dsage.samplers.evaluation import evaluate
from dsage.samplers.info import Decision, SamplerInfo, SamplerSource
from dsage.samplers.marginal import Marginal
from dsage.samplers.registry import SAMPLERS

# With fewer rows than this, a sampler is not scored.
_MIN_ROWS = 20


@dataclass(frozen=True, eq=False)
class SamplerRequest:
    """The sampler that the user asked for; None for the automatic choice."""

    sampler: Sampler | None
    source: SamplerSource


@dataclass(frozen=True, eq=False)
class SamplerFound:
    """A fitted sampler, held-out energy scores of it and others (if scored), how it was found."""

    sampler: Sampler
    scores: pd.DataFrame | None
    info: SamplerInfo


def parse_sampler(sampler: Any, inputs: Inputs, *, seed: int) -> SamplerRequest:  # noqa: ANN401
    """Check the `sampler` argument, ``"auto"``, a name or an object, without fitting anything."""
    if not isinstance(sampler, str):
        given = check_sampler(sampler)
        if given.feature_names_ is not None and given.feature_names_ != inputs.names:
            condition = "fitted to the features, in their order"
            advice = f"Fit it to the columns of X_train: {shown(inputs.names)}"
            raise refusal("sampler", condition, list(given.feature_names_), advice)
        return SamplerRequest(given, SamplerSource.GIVEN)
    if check_member(sampler, ("auto", *SAMPLERS), "sampler", "the names of samplers") == "auto":
        return SamplerRequest(None, SamplerSource.CHOSEN)
    made = make_sampler(sampler, discrete=inputs.discrete, random_state=seed % 2**31)
    return SamplerRequest(made, SamplerSource.NAMED)


def find_sampler(
    request: SamplerRequest, inputs: Inputs, *, seed: int, progress: bool
) -> SamplerFound:
    """Return the fitted sampler (a fitted copy, unless it was fitted), with its held-out score."""
    sampler, source, X = request.sampler, request.source, inputs.X_train
    choose = partial(choose_sampler, X, random_state=seed, progress=progress)
    if sampler is None:
        choice = choose(discrete=inputs.discrete)
        scores = choice.scores.reset_index()
        info = _describe(choice.name, source, scores, choice.decision)
        return SamplerFound(choice.sampler, scores, info)
    name = sampler.name
    if sampler.is_fitted:
        scored = _score(sampler, inputs, seed)
        return SamplerFound(sampler, scored, _describe(name, source, scored))
    if len(inputs.y_train) < _MIN_ROWS:
        return SamplerFound(sampler.clone().fit(X), None, _describe(name, source, None))
    choice = choose({name: sampler})
    scores = choice.scores.reset_index()
    return SamplerFound(choice.sampler, scores, _describe(name, source, scores))


def _score(sampler: Sampler, inputs: Inputs, seed: int) -> pd.DataFrame | None:
    """Score a fitted sampler on the evaluation rows, beside draws that ignore what is known."""
    if len(inputs.y_test) < _MIN_ROWS:
        return None
    marginal = Marginal(discrete=inputs.discrete).fit(inputs.X_train)
    own, other = (evaluate(each, inputs.X_test, random_state=seed) for each in (sampler, marginal))
    compared = other.compare(own)
    return pd.DataFrame(
        {
            "sampler": [sampler.name, marginal.name],
            "energy_score": [own.score, other.score],
            "difference": [0.0, compared.at["all", "difference"]],
            "se": [0.0, compared.at["all", "se"]],
        }
    )


def _describe(
    name: str, source: SamplerSource, scores: pd.DataFrame | None, decision: Decision | None = None
) -> SamplerInfo:
    by_name = {} if scores is None else scores.set_index("sampler")["energy_score"].to_dict()
    return SamplerInfo(name, source, by_name.get(name), by_name.get(Marginal.__name__), decision)
