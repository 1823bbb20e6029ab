"""Parts of what a game is asked for, as they are computed."""

from __future__ import annotations

from typing import NamedTuple

from dsage.games.base import Floats, Rows


class Chunk(NamedTuple):
    """Mean predictions of some of the requested coalitions on some of the requested rows.

    The coalitions are given by position, or along an ordering by the lengths of its prefixes; the
    means over the draws of each replicate have shape (n_coalitions, n_rows, n_replicates, ...).
    `noise`, (n_coalitions, n_rows, n_replicates), is what a control knows of the noise in the means
    of the output that matters for the row, where the means still have it. With `is_risk` they are
    no means, but the risks that a device has made of them.
    """

    at: Rows
    here: slice
    means: Floats
    noise: Floats | None = None
    is_risk: bool = False
