"""``dsage score-samplers``: which sampler suits a table."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from dsage.cli.errors import note, show
from dsage.cli.options import DATA, Data, Decimal, Discrete, Drop, Encoding, Quiet, Seed, Sep
from dsage.cli.tables import as_lines

_COLUMNS = ["energy_score", "difference", "se", "fit_seconds", "draw_seconds"]


def score_samplers(
    data: Data,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            show_default=False,
            rich_help_panel=DATA,
            help="Leave the target out: a sampler draws features.",
        ),
    ] = None,
    drop: Drop = None,
    discrete: Discrete = None,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Score the samplers that can draw the features of a table, on rows that they have not seen.

    The energy score is a distance of draws to what was there: the lower, the better. Marginal draws
    each feature without looking at the others, and shows what conditioning gains.
    """
    from dsage.cli.phases import PHASES  # noqa: PLC0415
    from dsage.cli.rows import read_rows, tell_classes  # noqa: PLC0415
    from dsage.cli.texts import csv_options  # noqa: PLC0415
    from dsage.result.events import Phase  # noqa: PLC0415
    from dsage.samplers import choose_sampler  # noqa: PLC0415

    table = read_rows(data, target, drop or (), discrete or (), csv_options(sep, decimal, encoding))
    features = table if target is None else table.drop(columns=target)
    if not quiet:
        tell_classes(features, None)
        note(PHASES[Phase.SAMPLER])
    chosen = tuple(name for name in discrete or () if name != target)
    choice = choose_sampler(features, discrete=chosen, random_state=seed)
    heads = ["sampler", *(name.replace("_", " ") for name in _COLUMNS)]
    rows = [
        [str(name), *("failed" if math.isnan(score) else f"{score:.4f}" for score in scores)]
        for name, *scores in choice.scores[_COLUMNS].itertuples()
    ]
    show("\n".join([*as_lines(heads, rows), "", choice.reason]))
