"""A fitted sampler with its held-out score: by name, chosen, or an object."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from dsage._check import Choice, check_member, refusal
from dsage.data.columns import shown
from dsage.data.inputs import Inputs
from dsage.samplers import (
    Categorical,
    Forest,
    Gaussian,
    GaussianCopula,
    GaussianMixture,
    Marginal,
    Neighbors,
    Sampler,
    Sequential,
    check_sampler,
    choose_sampler,
    evaluate,
)

SAMPLERS = {
    "gaussian": Gaussian,
    "copula": GaussianCopula,
    "mixture": GaussianMixture,
    "categorical": Categorical,
    "forest": Forest,
    "neighbors": Neighbors,
    "sequential": Sequential,
    "marginal": Marginal,
}
"""The samplers by name."""

# Fewer rows than this are not worth being split to score a sampler.
_SCORED_ROWS = 20


@dataclass(frozen=True, eq=False)
class SamplerFound:
    """A fitted sampler, and how it was found.

    Attributes
    ----------
    sampler : Sampler
        The sampler.
    scores : pandas.DataFrame or None
        Its held-out energy score beside those of others.
    described : dict
        For the record.
    """

    sampler: Sampler
    scores: pd.DataFrame | None
    described: dict[str, Choice]


def as_sampler(sampler: Any, inputs: Inputs, *, seed: int) -> Any:  # noqa: ANN401
    """Return the sampler that is meant, not fitted yet if it was named; ``"auto"`` stays that.

    Parameters
    ----------
    sampler : str or Sampler
        ``"auto"``, a name of `SAMPLERS`, or an object.
    inputs : Inputs
        The rows.
    seed : int
        Of the fit.
    """
    if not isinstance(sampler, str):
        made = check_sampler(sampler)
        known = getattr(made, "feature_names_", None)
        if known is not None and tuple(known) != inputs.names:
            advice = f"Fit it to the columns of X_train: {shown(inputs.names)}"
            raise refusal("sampler", "fitted to the features, in their order", list(known), advice)
        return made
    names = ("auto", *SAMPLERS)
    if check_member(sampler, names, "sampler", "the names of samplers") == "auto":
        return sampler
    kind = SAMPLERS[sampler]
    options = {"discrete": inputs.discrete, "random_state": seed % 2**31}
    takes = kind().get_params()
    return kind(**{key: value for key, value in options.items() if key in takes})


def find_sampler(
    sampler: Any,  # noqa: ANN401
    inputs: Inputs,
    *,
    is_named: bool,
    seed: int,
    progress: bool,
) -> SamplerFound:
    """Return a fitted sampler with its held-out score.

    Parameters
    ----------
    sampler : "auto" or Sampler
        What :func:`as_sampler` gave: the simplest good one is chosen, or a copy of this one is
        fitted unless it is fitted already.
    inputs : Inputs
        The rows.
    is_named : bool
        Whether the user gave a name.
    seed : int
        Of the choice and of the fit.
    progress : bool
        Show a progress bar.
    """
    if isinstance(sampler, str):
        choice = choose_sampler(
            inputs.X_train, discrete=inputs.discrete, random_state=seed, progress=progress
        )
        scores = choice.scores.reset_index()
        how = "chosen by its held-out score"
        return SamplerFound(
            choice.sampler, scores, _described(choice.name, how, choice.reason, scores)
        )
    name = type(sampler).__name__
    how = "given by name" if is_named else "given"
    if _is_fitted(sampler):
        scored = _scored(name, sampler, inputs, seed)
        return SamplerFound(sampler, scored, _described(name, how, "", scored))
    if len(inputs.y_train) < _SCORED_ROWS:
        return SamplerFound(_copy(sampler).fit(inputs.X_train), None, _described(name, how, ""))
    choice = choose_sampler(inputs.X_train, {name: sampler}, random_state=seed, progress=progress)
    scores = choice.scores.reset_index()
    return SamplerFound(choice.sampler, scores, _described(name, how, "", scores))


def _copy(sampler: Any) -> Any:  # noqa: ANN401
    return clone(sampler) if hasattr(sampler, "get_params") else copy.deepcopy(sampler)


def _is_fitted(sampler: Any) -> bool:  # noqa: ANN401
    try:
        check_is_fitted(sampler)
    except NotFittedError:
        return False
    return True


def _scored(name: str, sampler: Any, inputs: Inputs, seed: int) -> pd.DataFrame | None:  # noqa: ANN401
    """Return the score of a fitted sampler on the evaluation rows, with that of independence."""
    if len(inputs.y_test) < _SCORED_ROWS:
        return None
    marginal = Marginal(discrete=inputs.discrete).fit(inputs.X_train)
    own, other = (evaluate(each, inputs.X_test, random_state=seed) for each in (sampler, marginal))
    compared = other.compare(own)
    return pd.DataFrame(
        {
            "sampler": [name, "Marginal"],
            "energy_score": [own.score, other.score],
            "difference": [0.0, compared.at["all", "difference"]],
            "se": [0.0, compared.at["all", "se"]],
        }
    )


def _described(
    name: str, how: str, reason: str, scores: pd.DataFrame | None = None
) -> dict[str, Choice]:
    by_name = {} if scores is None else scores.set_index("sampler")["energy_score"].to_dict()
    return {
        "name": name,
        "source": how,
        "reason": reason or f"It was {how}.",
        "energy_score": by_name.get(name),
        "energy_score_of_independence": by_name.get("Marginal"),
    }
