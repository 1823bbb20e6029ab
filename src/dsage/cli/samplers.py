"""``dsage score-samplers``: find the sampler that suits a table."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dsage.cli.output import PHASES, note, show
from dsage.cli.rows import Source, note_classes, read_rows
from dsage.result.tables import format_table
from dsage.samplers import choose_sampler

_COLUMNS = ["energy_score", "difference", "se", "fit_seconds", "draw_seconds"]


@dataclass(frozen=True, kw_only=True)
class Request(Source):
    """The options of the command, by name."""

    seed: int
    quiet: bool


def run_score_samplers(request: Request) -> None:
    """Show the scores of all samplers on a table, and which one is chosen."""
    table = read_rows(request)
    features = table if request.target is None else table.drop(columns=request.target)
    if not request.quiet:
        note_classes(features, None)
        note(PHASES["sampler"])
    discrete = tuple(name for name in request.discrete or () if name != request.target)
    choice = choose_sampler(features, discrete=discrete, random_state=request.seed)
    heads = ["sampler", *(name.replace("_", " ") for name in _COLUMNS)]
    rows = [
        [str(name), *("failed" if math.isnan(score) else f"{score:.4f}" for score in scores)]
        for name, *scores in choice.scores[_COLUMNS].itertuples()
    ]
    show("\n".join([*format_table(heads, rows), "", choice.reason]))
