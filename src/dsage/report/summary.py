"""What several sections of a report need to know of a record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import Choice
from dsage.estimate.result import MATTERS
from dsage.report.words import Scale, named
from dsage.result.record import Record

LEVEL = 0.95
# Values that differ by less than this share of the largest are nearly equal.
_NEARLY = 0.05
_TRIFLE = 0.01

_LOSSES = {
    "squared_error": ("squared error", "squared units of {target}"),
    "absolute_error": ("absolute error", "units of {target}"),
    "cross_entropy": ("cross entropy", "nats, the unit of natural logarithms"),
    "brier": ("Brier score", "squared differences of probabilities"),
    "zero_one": ("share of wrong classes", "shares of the rows"),
}


@dataclass(frozen=True)
class Summary:
    """A record, read once for all sections.

    Parameters
    ----------
    record : Record
        The record.
    """

    record: Record

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One line a feature, the largest value first."""
        return self.record.to_frame(LEVEL)

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """The same, as plain dictionaries."""
        return [
            {str(key): value for key, value in line.items()}
            for line in self.frame.to_dict("records")
        ]

    @cached_property
    def names(self) -> list[str]:
        """The features in the order of `frame`."""
        return [str(name) for name in self.frame["feature"]]

    @property
    def noun(self) -> str:
        """What is explained: a feature or a group."""
        return "feature" if self.record.groups is None else "group"

    @property
    def target(self) -> str:
        """Name of the target, for sentences."""
        return named(self.record.target)

    @property
    def loss(self) -> str:
        """The loss in words."""
        name = str(self.choice("loss", "name") or "loss")
        return _LOSSES.get(name, (name.replace("_", " "), ""))[0]

    @property
    def unit(self) -> str:
        """The unit of the loss in words, empty where it is not known."""
        unit = _LOSSES.get(str(self.choice("loss", "name")), ("", ""))[1]
        return unit.format(target="\0").replace("\0", self.target)

    @property
    def total(self) -> float:
        """The sum of all values."""
        return float(self.record.values.sum())

    @property
    def spread(self) -> float:
        """What errors are held against: the range of the values; the value, of one feature."""
        values = self.record.values
        return float(np.ptp(values)) if len(values) > 1 else float(np.abs(values).max())

    @property
    def is_single(self) -> bool:
        """Whether there is one feature: it has no range and no neighbours."""
        return len(self.names) == 1

    @property
    def hardly_differ(self) -> bool:
        """Whether the values are nearly equal: their range tells nothing of their size."""
        return not self.is_single and self.spread < _NEARLY * self._largest

    @property
    def _largest(self) -> float:
        return float(np.abs(self.record.values).max())

    @property
    def yardstick(self) -> float:
        """What is shown as a share is a share of this: the range, or the size where there is none.

        Zero only where all values are.
        """
        return self._largest if self.is_single or self.hardly_differ else self.spread

    @property
    def yardstick_words(self) -> str:
        """What `yardstick` is."""
        return "the largest value" if self.hardly_differ else self.range_words

    @property
    def range_words(self) -> str:
        """What `spread` is."""
        return "the value" if self.is_single else "the range of the values"

    @property
    def some_negative(self) -> bool:
        """Whether a value is below zero, so that shares are no parts of a whole."""
        return bool((self.record.values < 0).any())

    @property
    def has_parts(self) -> bool:
        """Whether shares are parts of a whole: what is below zero is a trifle of the sum."""
        below = -float(self.record.values.clip(max=0).sum())
        return self.total > 0 and below <= _TRIFLE * self.total

    @property
    def relative_error(self) -> float:
        """The largest standard error of computing, as a share of `yardstick`; nan if not known."""
        largest = float(np.max(self.record.se))
        if not math.isfinite(largest):
            return math.nan
        if largest == 0:
            return 0.0
        return largest / self.yardstick if self.yardstick > 0 else math.inf

    @cached_property
    def scale(self) -> Scale:
        """How values are written."""
        return Scale(self.frame["value"].tolist())

    @property
    def audited(self) -> bool:
        """Whether the difference to SAGE was estimated."""
        return self.record.estimate.audit is not None

    @property
    def corrected(self) -> bool:
        """Whether the values hold that difference already."""
        return self.audited and self.record.estimate.estimand == "sage"

    @property
    def skips(self) -> bool:
        """Whether separation could set surpluses to zero."""
        return self.record.graph is not None or self.record.share_skipped > 0 or self.audited

    @cached_property
    def changed(self) -> list[str]:
        """The features whose difference to SAGE matters, the largest difference first."""
        lines = self.frame[self.frame["audit_matters"]]
        order = lines["audit_difference"].abs().sort_values(ascending=False, kind="stable").index
        return [str(name) for name in lines.loc[order, "feature"]]

    @cached_property
    def undecided(self) -> list[str]:
        """The features whose difference to SAGE may matter or not: its interval is wide."""
        if not self.audited:
            return []
        ends = self.frame[["audit_lower", "audit_upper"]].abs().max(axis=1)
        # An interval that is not known rules nothing out.
        wide = ~(ends <= MATTERS * self.spread) & ~self.frame["audit_matters"]
        return [str(name) for name in self.frame.loc[wide, "feature"]]

    def choice(self, section: str, name: str) -> Choice:
        """Return a choice, or None where there is none of that name."""
        sections = self.record.choices
        return sections[section].get(name) if section in sections else None
