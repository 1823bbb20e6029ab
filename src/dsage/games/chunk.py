"""Parts of the answers of a game, as they are computed."""

from __future__ import annotations

from typing import NamedTuple

from dsage.games.base import Floats, Rows


class Chunk(NamedTuple):
    """Mean predictions of some of the requested coalitions on some of the requested rows.

    The coalitions are given by position, or along an ordering by the lengths of its prefixes; the
    means over the draws of each replicate have shape (n_coalitions, n_rows, n_replicates, ...).
    `noise`, (n_coalitions, n_rows, n_replicates), is the noise in the means, computed by a
    control for the output that matters for the row, if it is not yet subtracted. With `is_risk`
    they are not means, but risks that a device computed from them.
    """

    at: Rows
    here: slice
    means: Floats
    noise: Floats | None = None
    is_risk: bool = False
