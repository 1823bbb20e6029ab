"""A progress bar that predicts when the stopping rule is met."""

from __future__ import annotations

from typing import Self

from tqdm.auto import tqdm

from dsage.estimate.result import Estimate
from dsage.estimate.running.stopping import Stopping, share_done


class Bar:
    """Show units, the largest error, the savings, and the time until a rule ends the run."""

    def __init__(self, rule: Stopping | None, *, is_shown: bool) -> None:
        self._rule = rule
        # The mean rate, because units come in growing steps.
        self._bar = tqdm(desc="estimating", unit=" units", disable=not is_shown, smoothing=0.0)

    def show(self, estimate: Estimate) -> None:
        """Show the current estimate."""
        if self._bar.disable:
            return
        share = None if self._rule is None else share_done(self._rule, estimate)
        if share:
            self._bar.total = max(round(estimate.n_units / share), estimate.n_units)
        n_asked = estimate.n_evaluated + estimate.n_shared
        self._bar.set_postfix(
            error=f"{estimate.se.max(initial=0.0):.2g}",
            skipped=f"{estimate.share_skipped.mean():.0%}",
            shared=f"{estimate.n_shared / max(n_asked, 1):.0%}",
            refresh=False,
        )
        self._bar.update(estimate.n_units - self._bar.n)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()
