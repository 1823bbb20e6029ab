"""The options of the games of models, checked before any game exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from dsage._check import check_count, check_member, check_shape, refusal
from dsage._random import RandomState
from dsage.games.base import Floats
from dsage.samplers.noise import KINDS


class Options:
    """Base of option classes: frozen dataclasses that check their fields when made."""

    of: ClassVar[str]

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the options."""
        return tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    @classmethod
    def read(cls, options: Mapping[str, Any], *others: str) -> Self:
        """Return the options given as keyword arguments; refuse unknown names.

        `others` are further parameters of the caller, suggested if a name is misspelled.
        """
        for name in options:
            check_member(name, (*cls.names(), *others), "each option", cls.of)
        return cls(**options)


@dataclass(frozen=True, eq=False, kw_only=True)
class GameOptions(Options):
    """Options of the game of a model: draws, weights of rows and memory.

    Parameters
    ----------
    n_draws : int, optional
        Draws for each row and coalition; a multiple of `n_replicates`. By default the number
        that the loss needs, see :meth:`dsage.models.losses.Loss.n_draws`: 8 for squared error.
        `explain` uses more if the model needs them, see :meth:`dsage.games.LossGame.draw_need`.
    n_replicates : int, default=2
        Number of independent sets of draws. A single one allows no jackknife, and no estimate of
        its error.
    noise : {"sobol", "independent"}, default="sobol"
        How the draws of a replicate are made, see :class:`~dsage.samplers.noise.Noise`.
    sample_weight : array of shape (n_rows,), optional
        Non-negative weights of the rows.
    random_state : int, numpy Generator or None, default=None
        Seed of the noise.
    draw_control : {"auto", "none"}, default="auto"
        Whether to subtract noise of the draws that can be computed, if the sampler returns the
        scores behind them, sums of scores, or training rows; this takes up to 8,192 predictions of
        the model.
    max_bytes : int, default=2**28
        Memory for draws and predictions: coalitions and rows are evaluated in chunks that fit.

    Examples
    --------
    >>> GameOptions(n_draws=7)
    Traceback (most recent call last):
    ValueError: n_draws must be a multiple of n_replicates, 2; got 7. Change one of them.
    """

    of = "the options of a game"

    n_draws: int | None = None
    n_replicates: int = 2
    noise: Literal["sobol", "independent"] = "sobol"
    sample_weight: npt.ArrayLike | None = None
    random_state: RandomState = None
    draw_control: Literal["auto", "none"] = "auto"
    max_bytes: int = 2**28

    def __post_init__(self) -> None:
        n_replicates = check_count(self.n_replicates, "n_replicates")
        if self.n_draws is not None and check_count(self.n_draws, "n_draws") % n_replicates:
            condition = f"a multiple of n_replicates, {n_replicates}"
            raise refusal("n_draws", condition, self.n_draws, "Change one of them")
        check_member(self.noise, KINDS, "noise", "the kinds of noise")
        check_member(self.draw_control, ("auto", "none"), "draw_control", "the choices")
        check_count(self.max_bytes, "max_bytes")

    def with_draws(self, default: int) -> GameOptions:
        """Return the options with a number of draws: at least `default` if none is given.

        Examples
        --------
        >>> GameOptions(n_replicates=3).with_draws(8).n_draws
        9
        """
        if self.n_draws is not None:
            return self
        return replace(self, n_draws=self.n_replicates * -(-default // self.n_replicates))

    @property
    def n_draws_each(self) -> int:
        """Draws of a replicate."""
        if self.n_draws is None:
            raise refusal("n_draws", "known", None, "Call `with_draws` first")
        return self.n_draws // self.n_replicates

    @property
    def all_draws(self) -> int:
        """Draws of all replicates."""
        return self.n_replicates * self.n_draws_each

    def row_weights(self, n_rows: int) -> Floats:
        """Return the weights of the rows, with mean one; refuse weights that do not fit."""
        return check_weights(self.sample_weight, n_rows)


def check_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> Floats:
    """Return weights of rows with mean one."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        found = type(sample_weight).__name__
        raise refusal("sample_weight", "numbers", found, str(error), TypeError) from error
    check_shape(weights, (n_rows,), "sample_weight", "Pass one weight per row")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        bad = weights[~(np.isfinite(weights) & (weights >= 0))]
        shown = float(bad[0]) if len(bad) else 0.0
        raise refusal("sample_weight", "finite, not negative, not all 0", shown, "Correct it")
    scaled: Floats = weights / weights.mean()
    return scaled
