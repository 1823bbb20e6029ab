"""A sampler made from a user's function."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dsage._check import check_shape, refusal
from dsage.data.possible import Possible
from dsage.samplers.base import BaseSampler
from dsage.samplers.checks import Floats, Mask, pick

DrawFunction = Callable[[Floats, Mask, np.random.Generator], npt.ArrayLike]


@dataclass(eq=False, repr=False)
class FunctionSampler(BaseSampler):
    """Draw unknown features with a function ``(x_known, known, rng) -> draws``.

    The function is called once per row. `x_known` has shape (n_draws, n_known): the row's known
    values, once per draw. It returns the unknown features (n_draws, n_unknown), in the order of the
    columns, one draw for each row of `x_known`, with `rng` as its only source of randomness.
    Classes are codes, in and out. Draws are used unchanged: they are not moved to values that
    occur in training.

    The sampler is a pure function of noise: `rng` is a PCG64 generator whose seed is the 128-bit
    BLAKE2b digest of all of the row's noise, (n_draws, n_features). So the draws of a row do not
    depend on other rows, and coalitions that share noise share the random stream. A different
    number of draws gives a different stream.

    Parameters
    ----------
    function : callable
        The function. It is picklable if it is defined at the top of a module.
    discrete, dtype, max_bytes
        As in :class:`~dsage.samplers.base.BaseSampler`.

    Examples
    --------
    >>> def standard_normal(x_known, known, rng):
    ...     return rng.standard_normal((len(x_known), (~known).sum()))
    >>> sampler = FunctionSampler(standard_normal).fit(np.zeros((1, 3)))
    >>> noise = np.random.default_rng(0).random((1, 2, 3))
    >>> sampler.draw(np.ones((1, 3)), np.array([True, False, True]), noise).shape
    (1, 2, 3)
    """

    function: DrawFunction
    may_be_copied = False

    @property
    def _possible(self) -> Possible:
        return Possible({})

    def _fit(self, X: Floats) -> None:  # noqa: ARG002
        given: object = self.function
        if not callable(given):
            condition = "a callable (x_known, known, rng) -> draws"
            raise refusal("function", condition, given, "Pass a function", TypeError)

    def for_part(self) -> FunctionSampler:
        """Raise an error: a function of all columns cannot draw only some of them."""
        advice = "Causal values draw one feature after the other: use a sampler by name"
        raise refusal("sampler", "one that can be fitted to some columns", self.name, advice)

    def _draw(self, X: Floats, known: Mask, noise: Floats) -> Floats:
        n_rows, n_draws, n_features = noise.shape
        n_known = int(known.sum())
        drawn = np.empty((n_rows, n_draws, n_features - n_known))
        for row in range(n_rows):
            x_known = np.repeat(X[row : row + 1, known], n_draws, axis=0)
            made = np.asarray(self.function(x_known, known.copy(), _generator(noise[row])))
            advice = "Return one row of unknown features for each row of x_known"
            check_shape(made, drawn.shape[1:], "the result of function", advice)
            drawn[row] = made
        n_categories = self.n_categories_[~known]
        codes = (drawn == np.floor(drawn)) & (drawn >= 0) & (drawn < n_categories)
        bad = np.any(~np.where(n_categories > 0, codes, np.isfinite(drawn)), axis=(0, 1))
        if names := pick(pick(self.feature_names_, ~known), bad):
            condition = "finite and, in discrete columns, codes from 0 to n_categories - 1"
            advice = "The draws of these columns are not"
            raise refusal("the result of function", condition, names, advice)
        return drawn


def _generator(noise: Floats) -> np.random.Generator:
    digest = hashlib.blake2b(np.ascontiguousarray(noise).tobytes(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))
