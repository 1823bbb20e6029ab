"""Compare candidates on a table; the result is a decision and a table of scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dsage._check import refusal, warn
from dsage._random import Streams
from dsage.data.groups import Groups
from dsage.data.layout import Layout
from dsage.samplers.base import Sampler
from dsage.samplers.checks import Floats
from dsage.samplers.info import Decision
from dsage.samplers.marginal import Marginal
from dsage.samplers.race import Budget, Contender, Race
from dsage.samplers.rules import Ranking, rank, rivals
from dsage.samplers.scorer import Predict, Scorer
from dsage.samplers.sheet import Sheet
from dsage.samplers.splits import Part, make_blocks, split_rows

REFERENCE = Marginal.__name__

_COLUMNS = (
    "energy_score", "difference", "se", "msev", "msev_difference", "msev_se", "n_rows",
    "fit_seconds", "draw_seconds", "verdict", "error", "warnings",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Table:
    """A table on which samplers are compared: its rows, its players, and the parts of it.

    There are no `parts` if the rows are too few to hold some out. `columns` are the options
    with which samplers learn the same layout: `discrete`, `kinds` and `groups`.
    """

    X: Any
    layout: Layout
    columns: Mapping[str, Any]
    matrix: Floats
    players: Groups
    parts: tuple[Part, ...]
    streams: Streams

    @classmethod
    def of(
        cls,
        X: Any,  # noqa: ANN401
        layout: Layout,
        *,
        columns: Mapping[str, Any] | None = None,
        players: Groups | None = None,
        test_share: float = 0.25,
        max_rows: int = 4000,
        streams: Streams,
    ) -> Table:
        """Split a table; without `players`, each feature is one."""
        matrix = layout.encode(X)
        parts = split_rows(
            X,
            matrix,
            layout.n_categories,
            test_share=test_share,
            max_rows=max_rows,
            streams=streams,
        )
        whole = Groups({}, layout.names) if players is None else players
        return cls(X, layout, columns or {}, matrix, whole, parts, streams)

    def scorer(self, predict: Predict | None, n_draws: int) -> Scorer:
        """Return a scorer of samplers on the held-out rows."""
        return Scorer(
            self.X,
            self.layout,
            self.matrix,
            self.parts,
            predict,
            n_draws=n_draws,
            streams=self.streams,
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a race."""

    race: Race
    ranking: Ranking

    @property
    def sheet(self) -> Sheet:
        """The scores."""
        return self.race.sheet

    @property
    def names(self) -> list[str]:
        """The candidates that were not dropped, simplest first."""
        return [each.name for each in self.race.running]

    def decision(self) -> Decision:
        """Return which sampler was chosen, and why."""
        chosen, leader = self.ranking.chosen, self.ranking.leader
        mean, against = self.sheet.mean(leader), self.sheet.compare(chosen, leader)
        is_best, msev = chosen == leader, against.msev
        out = self._out()
        others = [name for name in self.names if name != chosen and name not in out]
        return Decision(
            chosen,
            leader,
            mean.energy,
            0.0 if is_best else against.energy.mean,
            0.0 if is_best else against.energy.se,
            best_msev=mean.msev,
            msev_difference=0.0 if is_best or msev is None else msev.mean,
            msev_se=0.0 if is_best or msev is None else msev.se,
            out=out,
            tied=tuple(rivals(self.sheet, chosen, others)),
            skipped=tuple(
                each.name for each in self.race.contenders if not each.fits and not each.error
            ),
            n_rows=self.sheet.n_rows(chosen),
            is_cut=self.race.is_cut,
        )

    def _out(self) -> tuple[str, ...]:
        """Return all candidates whose MSEv is clearly above the lowest, including those dropped."""
        lowest = self.ranking.lowest
        if lowest is None:
            return ()
        return tuple(
            each.name
            for each in self.race.contenders
            if each.name in self.sheet
            and not each.is_reference
            and self.sheet.compare(each.name, lowest).is_worse_in_msev()
        )

    def scores(self, used: str, word: str) -> pd.DataFrame:
        """Return a line per candidate; the verdict on the sampler that is used is `word`."""
        leader = self.ranking.leader
        mean = self.sheet.mean(leader)
        others = [name for name in self.names if name != used]
        alike = rivals(self.sheet, used, others)
        lines = {}
        for each in self.race.contenders:
            line: dict[str, Any] = {
                "fit_seconds": each.fit_seconds,
                "draw_seconds": each.draw_seconds,
                "error": each.error,
                "warnings": "; ".join(each.warnings),
                "verdict": word if each.name == used else self._verdict(each, used, alike),
            }
            if each.name in self.sheet:
                against = self.sheet.compare(each.name, leader)
                line |= {
                    "energy_score": mean.energy + against.energy.mean,
                    "difference": against.energy.mean,
                    "se": against.energy.se,
                    "n_rows": self.sheet.n_rows(each.name),
                }
                if against.msev is not None and mean.msev is not None:
                    line |= {
                        "msev": mean.msev + against.msev.mean,
                        "msev_difference": against.msev.mean,
                        "msev_se": against.msev.se,
                    }
            lines[each.name] = line
        frame = pd.DataFrame.from_dict(lines, orient="index").reindex(columns=list(_COLUMNS))
        frame["n_rows"] = frame["n_rows"].fillna(0).astype(int)
        numbers = [name for name in _COLUMNS[:6] if frame[name].isna().all()]
        frame[numbers] = math.nan
        frame.index.name = "sampler"
        return frame

    def _verdict(self, contender: Contender, used: str, alike: Sequence[str]) -> str:
        if contender.is_reference:
            return "for reference: ignores the known features"
        if contender.verdict:
            return contender.verdict
        against = self.sheet.compare(contender.name, used)
        # A lower energy score does not make up for a higher MSEv.
        if self.sheet.compare(used, contender.name).is_worse() and not against.is_worse_in_msev():
            return f"clearly better than {used}"
        if contender.name in self._out():
            return "clearly worse in MSEv"
        if contender.name in alike:
            return f"tied with {used}"
        score = "MSEv" if against.is_worse_in_msev() else "energy score"
        return f"clearly worse in {score}"


def compare_candidates(
    table: Table,
    contenders: Sequence[Contender],
    scorer: Scorer,
    *,
    n_coalitions: int,
    budget: Budget,
    progress: bool = False,
) -> Outcome:
    """Race candidates, given simplest first, on a table; `Marginal` takes part for reference.

    Warn of those that failed, and raise an error if all did. If the sampler is already decided on,
    only its own failure matters.
    """
    entered = list(contenders)
    if REFERENCE not in {each.name for each in entered}:
        reference: Sampler = Marginal(**table.columns)
        entered.append(Contender(REFERENCE, reference, is_reference=True))
    blocks = make_blocks(table.parts, table.players, n_coalitions, table.streams)
    race = Race(entered, scorer, table.parts, blocks, budget)
    race.run(progress=progress)
    failed = [f"{each.name} ({each.error})" for each in race.contenders if each.error]
    staying = [each for each in race.contenders if each.stays]
    if not race.running or not all(each.is_able for each in staying):
        raise refusal("candidates", "able to draw such data", failed, "Pass other candidates")
    if failed and not staying:
        warn(f"These samplers failed and were left out of the choice: {'; '.join(failed)}")
    return Outcome(race, rank(race.sheet, [each.name for each in race.running]))
