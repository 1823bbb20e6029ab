"""Facts about an explanation that several sections of a report share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dsage.estimate import SamplerCheck
from dsage.estimate.result import MATTERS
from dsage.models.losses import LOSSES
from dsage.report.words import Scale, named
from dsage.result.explanation import Explanation
from dsage.structure.info import GraphSource

CONFIDENCE = 0.95
# Values that differ by less than this share of the largest one are nearly equal.
_NEARLY = 0.05
# Negative values below this share of the sum are negligible.
_NEGLIGIBLE = 0.01


@dataclass(frozen=True)
class Summary:
    """An explanation, read once for all sections."""

    explanation: Explanation

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One line per feature, the largest value first."""
        return self.explanation.to_frame(CONFIDENCE)

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of `frame` as dictionaries."""
        lines: list[dict[Any, Any]] = self.frame.to_dict("records")
        return lines

    @cached_property
    def names(self) -> list[str]:
        """The features in the order of `frame`."""
        return [str(name) for name in self.frame["feature"]]

    @property
    def noun(self) -> str:
        """What has a value: a feature or a group."""
        return "feature" if self.explanation.groups is None else "group"

    @property
    def target(self) -> str:
        """Name of the target, for sentences."""
        return named(self.explanation.target)

    @property
    def loss(self) -> str:
        """The loss in words."""
        name = self.explanation.choices.loss.name
        return str(LOSSES.traits(name)["title"]) if name in LOSSES else name.replace("_", " ")

    @property
    def unit(self) -> str:
        """The unit of the loss in words; empty if unknown."""
        name = self.explanation.choices.loss.name.partition("(")[0]
        return str(LOSSES.traits(name)["unit"]).format(target=self.target) if name in LOSSES else ""

    @property
    def total(self) -> float:
        """The sum of all values."""
        return float(self.explanation.values.sum())

    @property
    def spread(self) -> float:
        """The range of the values; with a single feature, its value."""
        values = self.explanation.values
        return float(np.ptp(values)) if len(values) > 1 else float(np.abs(values).max())

    @property
    def is_single(self) -> bool:
        """Whether there is a single feature, without a range and neighbors."""
        return len(self.names) == 1

    @property
    def hardly_differ(self) -> bool:
        """Whether the values are so close that their range says nothing about their size."""
        return not self.is_single and self.spread < _NEARLY * self._largest

    @property
    def _largest(self) -> float:
        return float(np.abs(self.explanation.values).max())

    @property
    def yardstick(self) -> float:
        """The unit for shares of errors: the range, or the largest value if there is no range.

        Zero only if all values are zero.
        """
        return self._largest if self.is_single or self.hardly_differ else self.spread

    @property
    def yardstick_words(self) -> str:
        """The `yardstick` in words."""
        return "the largest value" if self.hardly_differ else self.range_words

    @property
    def range_words(self) -> str:
        """The `spread` in words."""
        return "the value" if self.is_single else "the range of the values"

    @property
    def some_negative(self) -> bool:
        """Whether a value is negative, so that shares are not parts of a whole."""
        return bool((self.explanation.values < 0).any())

    @property
    def has_parts(self) -> bool:
        """Whether shares are parts of a whole: negative values are negligible."""
        below = -float(self.explanation.values.clip(max=0).sum())
        return self.total > 0 and below <= _NEGLIGIBLE * self.total

    @property
    def relative_error(self) -> float:
        """The largest standard error from computing as a share of `yardstick`; NaN if unknown."""
        largest = float(np.max(self.explanation.se))
        if not math.isfinite(largest):
            return math.nan
        if largest == 0:
            return 0.0
        return largest / self.yardstick if self.yardstick > 0 else math.inf

    @cached_property
    def scale(self) -> Scale:
        """The format of the values."""
        return Scale(self.frame["value"].tolist())

    @property
    def audited(self) -> bool:
        """Whether the difference to SAGE was estimated."""
        return self.explanation.estimate.audit is not None

    @property
    def corrected(self) -> bool:
        """Whether the values already include that difference."""
        return self.audited and self.explanation.estimate.estimand == "sage"

    @property
    def is_causal(self) -> bool:
        """Whether features are set instead of observed."""
        return self.explanation.estimate.estimand == "causal"

    @property
    def skips(self) -> bool:
        """Whether separation could set surpluses to zero."""
        if self.is_causal:
            return False
        has_graph = self.explanation.graph is not None and not self.has_unused_graph
        return has_graph or self.explanation.share_skipped > 0 or self.audited

    @property
    def has_unused_graph(self) -> bool:
        """Whether a graph was learned but not used."""
        graph = self.explanation.choices.graph
        return graph.is_used is False and graph.source is not GraphSource.NONE

    @property
    def check(self) -> SamplerCheck | None:
        """How much other samplers would change the values, if that was estimated."""
        check = self.explanation.sampler_check
        return check if check is not None and check.others else None

    @cached_property
    def depends(self) -> list[str]:
        """The features whose value depends on the sampler more than on the other errors."""
        lines = self.frame[self.frame["sampler_matters"]]
        return [str(name) for name in lines["feature"]]

    @cached_property
    def changed(self) -> list[str]:
        """The features whose difference to SAGE matters, the largest difference first."""
        lines = self.frame[self.frame["audit_matters"]]
        order = lines["audit_difference"].abs().sort_values(ascending=False, kind="stable").index
        return [str(name) for name in lines.loc[order, "feature"]]

    @cached_property
    def undecided(self) -> list[str]:
        """The features for which the audit cannot decide whether the difference matters."""
        if not self.audited:
            return []
        ends = self.frame[["audit_lower", "audit_upper"]].abs().max(axis=1)
        # An unknown interval rules nothing out.
        wide = ~(ends <= MATTERS * self.spread) & ~self.frame["audit_matters"]
        return [str(name) for name in self.frame.loc[wide, "feature"]]
