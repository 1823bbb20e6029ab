"""``dsage score-samplers``: find the sampler that suits a table."""

from __future__ import annotations

import math

from dsage.cli.commands import ScoreSamplersCommand
from dsage.cli.output import PHASES, note, show
from dsage.cli.rows import find_kinds, note_columns, read_rows
from dsage.result.tables import format_table
from dsage.samplers import choose_sampler

_COLUMNS = ["energy_score", "difference", "se", "fit_seconds", "draw_seconds", "verdict"]


def run(command: ScoreSamplersCommand) -> None:
    """Show the scores of all samplers on a table, and which one is chosen."""
    table = read_rows(command, needs_target=False)
    features = table if command.target is None else table.drop(columns=command.target)
    kinds, classes = find_kinds(command, list(map(str, table.columns)))
    note_columns(features, None, {*kinds, *classes}, quiet=command.quiet)
    note(PHASES["sampler"], quiet=command.quiet)
    discrete = tuple(name for name in classes if name != command.target)
    choice = choose_sampler(features, discrete=discrete, random_state=command.seed)
    if choice.scores.empty:
        show(choice.reason)
        return
    heads = ["sampler", "n rows", *(name.replace("_", " ") for name in _COLUMNS)]
    rows = [
        [
            str(name),
            f"{n_rows:,}",
            *("" if math.isnan(score) else f"{score:.4f}" for score in scores),
            verdict,
        ]
        for name, n_rows, *scores, verdict in choice.scores[["n_rows", *_COLUMNS]].itertuples()
    ]
    show("\n".join([*format_table(heads, rows), "", choice.reason]))
