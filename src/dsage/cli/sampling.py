"""``dsage score-samplers``: which sampler suits a table."""

from __future__ import annotations

from typing import Annotated

import typer

from dsage.cli.options import DATA, Data, Discrete, Drop, Quiet, Seed


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
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Score the samplers that can draw the features of a table, on rows that they have not seen.

    The energy score is a distance of draws to what was there: the lower, the better. Marginal draws
    each feature without looking at the others, and shows what conditioning gains.
    """
    from dsage.cli.rows import read_rows, tell_classes  # noqa: PLC0415
    from dsage.samplers import choose_sampler  # noqa: PLC0415

    table = read_rows(data, target, drop or (), discrete or ())
    features = table if target is None else table.drop(columns=target)
    if not quiet:
        tell_classes(features, None)
    chosen = tuple(name for name in discrete or () if name != target)
    choice = choose_sampler(features, discrete=chosen, random_state=seed)
    scores = choice.scores.drop(columns=["error", "warnings"])
    lines = scores.to_string(float_format=lambda value: f"{value:.4f}").splitlines()
    # pandas gives the name of the index a line of its own.
    head = "sampler".ljust(len(lines[1])) + lines[0][len(lines[1]) :]
    typer.echo("\n".join([head.rstrip(), *lines[2:], "", choice.reason]))
    for name, error in choice.scores["error"].items():
        if error:
            typer.echo(f"{name} failed: {error}", err=True)
