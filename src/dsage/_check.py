"""The checks that several modules share, and how every error is worded: culprit and remedy."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt


def message(parameter: str, condition: str, value: object, advice: str) -> str:
    """Word an error as every error of the package is worded.

    Examples
    --------
    >>> message("share", "in (0, 1]", 2, "Give a fraction, such as 0.9")
    'share must be in (0, 1]; got 2. Give a fraction, such as 0.9.'
    """
    ending = "" if advice.endswith(("?", ".")) else "."
    return f"{parameter} must be {condition}; got {value!r}. {advice}{ending}"


def warn(text: str) -> None:
    """Warn the user, at the line of their own code that called the package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "dsage":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)


def check_names(names: Iterable[str], parameter: str = "names") -> tuple[str, ...]:
    """Return `names` as a tuple of distinct, non-empty strings."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(
            message(parameter, "an iterable of strings", names, "Put the names into a list")
        )
    checked = tuple(names)
    seen: set[str] = set()
    for name in checked:
        if not isinstance(name, str):
            raise TypeError(
                message(parameter, "strings", name, f"Convert it, for example with str({name!r})")
            )
        if not name:
            raise ValueError(message(parameter, "non-empty strings", name, "Give it a name"))
        if name in seen:
            raise ValueError(message(parameter, "distinct", name, "It is there twice: rename one"))
        seen.add(name)
    return tuple(map(str, checked))  # a subclass, such as NumPy's, has a repr of its own


def check_member(name: object, members: Sequence[str], parameter: str, of: str) -> str:
    """Return `name` if it is among `members`, else say which one may have been meant."""
    if isinstance(name, str) and name in members:
        return name
    close = difflib.get_close_matches(str(name), members, n=1)
    if close:
        advice = f"Did you mean {close[0]!r}?"
    elif members:
        shown = ", ".join(repr(member) for member in members[:6])
        advice = f"They are {shown}{', ...' if len(members) > 6 else ''}"
    else:
        advice = "There are none"
    raise ValueError(message(parameter, f"one of {of}", name, advice))


def check_members(
    names: str | Iterable[str], members: Sequence[str], parameter: str, of: str
) -> tuple[str, ...]:
    """Return one name or several as a tuple of members, each once, in the order given."""
    given = (names,) if isinstance(names, str) else names
    if not isinstance(given, Iterable):
        raise TypeError(message(parameter, "a name or names", names, "Give a string or a list"))
    return tuple(dict.fromkeys(check_member(name, members, parameter, of) for name in given))


def check_known(known: npt.ArrayLike, feature_names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return the coalitions as a boolean array (n_coalitions, n_features)."""
    if hasattr(known, "columns"):
        raise TypeError(
            message(
                "known",
                "a boolean array",
                type(known).__name__,
                "Take its columns in the order of feature_names and convert it to NumPy",
            )
        )
    array = np.asarray(known)
    n_features = len(feature_names)
    if array.dtype != np.bool_:
        raise TypeError(
            message("known", "a boolean array", array.dtype, "Use np.asarray(known, dtype=bool)")
        )
    if array.ndim != 2 or array.shape[1] != n_features:
        raise ValueError(
            message(
                "known",
                f"of shape (n_coalitions, {n_features})",
                array.shape,
                "Give one row a coalition and one column a feature, in the order of feature_names"
                + ("; known[None, :] makes one row of a vector" if array.ndim == 1 else ""),
            )
        )
    return array


def check_count(value: object, parameter: str, *, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(message(parameter, "an integer", value, "Give a whole number"))
    if value < minimum:
        raise ValueError(
            message(parameter, f"at least {minimum}", value, f"Give {minimum} or more")
        )
    return int(value)


def check_real(
    value: object, parameter: str, *, above: float | None = None, low: float = -np.inf, high: float
) -> float:
    """Return `value` as a float in [low, high], or in (above, high] where `above` is given."""
    if isinstance(value, bool) or not isinstance(value, (float, int, np.floating, np.integer)):
        raise TypeError(message(parameter, "a number", value, "Give a float"))
    inside = value <= high and (value > above if above is not None else value >= low)
    if not inside:
        interval = f"({above:g}, {high:g}]" if above is not None else f"[{low:g}, {high:g}]"
        raise ValueError(message(parameter, f"in {interval}", value, "Give a number inside"))
    return float(value)
