"""The rule that chooses a sampler, from paired comparisons over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dsage.samplers.sheet import CLEAR, Comparison, Sheet

# A sampler is dropped beyond this many standard errors, as more rows may come.
_HOPELESS = 3.0
# Nothing is dropped with fewer rows.
_FEWEST_ROWS = 30


class Ranking(NamedTuple):
    """The result of the rule.

    `leader` has the lowest energy score of those that are not out, `chosen` is the simplest as good
    as it, `out` are clearly worse in the MSEv than `lowest`, which has the lowest one (None without
    a model).
    """

    chosen: str
    leader: str
    lowest: str | None
    out: tuple[str, ...]


def rank(sheet: Sheet, names: Sequence[str]) -> Ranking:
    """Choose one of the samplers, given simplest first.

    1. A sampler is out if its MSEv is clearly above the lowest one: by more than two paired
       standard errors, and by more than 0.1 % of the variance of the predictions.
    2. Of the others, the one with the lowest energy score leads.
    3. The simplest of them is chosen whose MSEv and energy score are both within one paired
       standard error of the leader's, or off by a negligible amount (0.1 % of the variance, and
       0.5 % of the score).

    Without a model the first step falls away, and the third concerns the energy score alone.
    """
    by_msev = {}
    for name in names:
        against = sheet.compare(name, names[0]).msev
        if against is not None:
            by_msev[name] = against.mean
    lowest = min(by_msev, key=by_msev.__getitem__) if by_msev else None
    out: tuple[str, ...] = ()
    if lowest is not None:
        out = tuple(n for n in names if sheet.compare(n, lowest).is_worse_in_msev())
    left = [name for name in names if name not in out]
    leader = min(left, key=lambda name: sheet.compare(name, left[0]).energy.mean)
    chosen = next(n for n in left if n == leader or not sheet.compare(n, leader).is_worse(1.0))
    return Ranking(chosen, leader, lowest, out)


def give_up(sheet: Sheet, names: Sequence[str], kept: Sequence[str] = ()) -> list[str]:
    """Return the samplers that would not be chosen with more rows either.

    A sampler is hopeless if its MSEv is more than three standard errors above another's, or
    its energy score is, and its MSEv is not lower than the other's. Those in `kept` stay.
    """
    hopeless = []
    for name in names:
        if name in kept or sheet.n_rows(name) < _FEWEST_ROWS:
            continue
        for other in names:
            against = sheet.compare(name, other)
            no_gain = against.msev is None or against.msev.mean >= -against.msev.negligible
            if against.is_worse_in_msev(_HOPELESS) or (
                no_gain and against.energy.is_above(_HOPELESS)
            ):
                hopeless.append(name)
                break
    return hopeless


def is_settled(sheet: Sheet, names: Sequence[str], staying: Sequence[str] = ()) -> bool:
    """Return whether more rows can change nothing that matters.

    All tie with each other; or a sampler that is never dropped clearly differs from all others.
    """
    if len(staying) == 1:
        others = [name for name in names if name not in staying]
        if all(_are_apart(sheet, staying[0], other) for other in others):
            return True
    return all(_are_alike(sheet.compare(name, names[0])) for name in names[1:])


def _are_apart(sheet: Sheet, name: str, other: str) -> bool:
    if sheet.n_rows(name) < _FEWEST_ROWS:
        return False
    both = sheet.compare(name, other), sheet.compare(other, name)
    return any(each.is_worse(_HOPELESS) for each in both)


def _are_alike(against: Comparison) -> bool:
    return all(
        abs(difference.mean) + CLEAR * difference.se <= difference.negligible
        for difference in (against.msev, against.energy)
        if difference is not None
    )


def rivals(sheet: Sheet, name: str, others: Sequence[str]) -> list[str]:
    """Return the samplers that are not clearly worse than `name`, the best energy score first."""
    alike = [each for each in others if not sheet.compare(each, name).is_worse()]
    return sorted(alike, key=lambda each: sheet.compare(each, name).energy.mean)
