"""Why an estimation ended: a kind and its numbers. The text is derived from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum


class StopKind(Enum):
    """The kind of reason for the end of an estimation: a rule, the user, or no more orderings."""

    DATA = "data"
    TOLERANCE = "tolerance"
    ABSOLUTE = "absolute"
    TOP_K = "top_k"
    ORDERINGS = "n_orderings"
    TIME = "seconds"
    EXHAUSTED = "exhausted"
    INTERRUPTED = "interrupted"
    OTHER = "other"


@dataclass(frozen=True)
class StopReason:
    """Why an estimation ended.

    Parameters
    ----------
    kind : StopKind
        What ended it.
    numbers : mapping of str to number, optional
        The numbers that the rule compared.
    text : str, default=""
        The sentence of a user-defined rule, for the kind ``OTHER``.

    Examples
    --------
    >>> reason = StopReason(StopKind.TIME, {"seconds": 60.0})
    >>> reason.kind
    <StopKind.TIME: 'seconds'>
    >>> str(reason)
    'the time limit of 60 seconds is reached'
    """

    kind: StopKind
    numbers: Mapping[str, float] = field(default_factory=dict)
    text: str = ""

    def __str__(self) -> str:
        return self.text or _WORDS[self.kind](**self.numbers)


def as_reason(reason: StopReason | str) -> StopReason:
    """Return the reason that a rule reported; user-defined rules may report a sentence."""
    return StopReason(StopKind.OTHER, text=reason) if isinstance(reason, str) else reason


def _tolerance(se: float, allowed: float, spread: float, largest: float, n_features: int) -> str:
    if se == 0:
        return "the standard errors are zero"
    if spread < allowed * largest:
        scale, noun = largest, "largest value, and the values hardly differ"
    else:
        scale, noun = spread, "value" if n_features == 1 else "range of the values"
    return (
        f"the largest standard error, {_number(se)}, is {_percent(se / scale)} of the {noun} "
        f"(tolerance {_percent(allowed)})"
    )


def _data(share: float, relative: float) -> str:
    return (
        f"more computing would hardly help: its errors are at most {_percent(share)} of those from "
        f"the choice of the rows, or {_percent(relative)} of the range of the values"
    )


def _top_k(k: int, confidence: float, n_features: int) -> str:
    if k >= n_features:
        return f"there are no more than {k} features, so the largest {k} are settled"
    noun = "largest value is" if k == 1 else f"{k} largest values are"
    return f"the {noun} settled with confidence {_percent(confidence)}"


def _absolute(se: float, allowed: float) -> str:
    return f"the largest standard error, {_number(se)}, is within {_number(allowed)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1e3 <= value < 1e9 else f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


_WORDS: dict[StopKind, Callable[..., str]] = {
    StopKind.DATA: _data,
    StopKind.TOLERANCE: _tolerance,
    StopKind.ABSOLUTE: _absolute,
    StopKind.TOP_K: _top_k,
    StopKind.ORDERINGS: lambda n, is_all: f"{'all ' * is_all}{n} orderings are done",
    StopKind.TIME: "the time limit of {seconds:g} seconds is reached".format,
    StopKind.EXHAUSTED: "there is nothing left to evaluate".format,
    StopKind.INTERRUPTED: "it was interrupted".format,
    StopKind.OTHER: "a rule ended it without a reason".format,
}
