"""A progress bar that knows how far the errors have to fall."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from tqdm.auto import tqdm

from dsage.estimate.result import Estimate
from dsage.estimate.running.stopping import Stopping, share_done


class Bar:
    """Show units, the largest error, what was saved, and the time that is left to a rule.

    Parameters
    ----------
    rule : Stopping or None
        What ends the run.
    is_shown : bool
        False for a bar that shows nothing.
    """

    def __init__(self, rule: Stopping | None, *, is_shown: bool) -> None:
        self._rule = rule
        # The mean rate: units come in steps that grow.
        self._bar = tqdm(desc="estimating", unit=" units", disable=not is_shown, smoothing=0.0)

    def show(self, known: Estimate) -> None:
        """Show what is known now."""
        if self._bar.disable:
            return
        share = None if self._rule is None else share_done(self._rule, known)
        if share:
            self._bar.total = max(round(known.n_units / share), known.n_units)
        asked = known.n_evaluated + known.n_shared
        self._bar.set_postfix(
            error=f"{known.se.max(initial=0.0):.2g}",
            skipped=f"{known.share_skipped.mean():.0%}",
            shared=f"{known.n_shared / max(asked, 1):.0%}",
            refresh=False,
        )
        self._bar.update(known.n_units - self._bar.n)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()
