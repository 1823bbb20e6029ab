"""``dsage score-samplers``: find the sampler that suits a table."""

from __future__ import annotations

import math

from dsage.cli.commands import ScoreSamplersCommand
from dsage.cli.output import PHASES, note, show
from dsage.cli.rows import find_kinds, note_classes, read_rows
from dsage.result.tables import format_table
from dsage.samplers import choose_sampler

_COLUMNS = ["energy_score", "difference", "se", "fit_seconds", "draw_seconds"]


def run(command: ScoreSamplersCommand) -> None:
    """Show the scores of all samplers on a table, and which one is chosen."""
    table = read_rows(command)
    features = table if command.target is None else table.drop(columns=command.target)
    note_classes(features, None, quiet=command.quiet)
    note(PHASES["sampler"], quiet=command.quiet)
    _, classes = find_kinds(command, list(map(str, table.columns)))
    discrete = tuple(name for name in classes if name != command.target)
    choice = choose_sampler(features, discrete=discrete, random_state=command.seed)
    heads = ["sampler", *(name.replace("_", " ") for name in _COLUMNS)]
    rows = [
        [str(name), *("failed" if math.isnan(score) else f"{score:.4f}" for score in scores)]
        for name, *scores in choice.scores[_COLUMNS].itertuples()
    ]
    show("\n".join([*format_table(heads, rows), "", choice.reason]))
