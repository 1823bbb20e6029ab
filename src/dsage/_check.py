"""What users are told: errors with the remedy, warnings, progress; and checks of arguments."""

from __future__ import annotations

import difflib
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tqdm.std import tqdm

# Control characters of terminals, and characters that change the order or the lines of a text.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""Return a text for a terminal: control characters are escaped, except tabs and line ends.

    Examples
    --------
    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Setting(NamedTuple):
    """A parameter and a value for it, such as ``estimand='sage'``, as part of a remedy."""

    parameter: str
    value: object = None

    def __str__(self) -> str:
        return f"{self.parameter}=" + ("" if self.value is None else repr(self.value))


class Text(tuple[str | Setting, ...]):
    """A sentence with settings in it, which the command line words as its options.

    Examples
    --------
    >>> str(Text(["Estimate with ", Setting("estimand", "sage"), ", or pass ", Setting("graph")]))
    "Estimate with estimand='sage', or pass graph="
    """

    __slots__ = ()

    def __str__(self) -> str:
        return self.worded(str)

    def worded(self, word: Callable[[Setting], str]) -> str:
        """Return the sentence with settings worded by `word`."""
        return "".join(part if isinstance(part, str) else word(part) for part in self)


class Problem(NamedTuple):
    """The parts of an error: what is wrong with an argument, what to do, and where it happened."""

    parameter: str
    condition: str
    got: str
    advice: str | Text
    place: str = ""

    def __str__(self) -> str:
        return self.worded(self.parameter, str)

    def worded(self, parameter: str, word: Callable[[Setting], str]) -> str:
        """Return the text of the error with another name for the parameter."""
        advice = self.advice if isinstance(self.advice, str) else self.advice.worded(word)
        ending = "" if advice.endswith(("?", ".")) else "."
        start = f"{self.place}: " if self.place else ""
        return visible(
            f"{start}{parameter} must be {self.condition}; got {self.got}. {advice}{ending}"
        )


def refusal(
    parameter: str,
    condition: str,
    value: object,
    advice: str | Text,
    kind: type[Exception] = ValueError,
) -> Exception:
    """Return the error that refuses an argument, in the wording of all errors of the package.

    Its attribute `problem` holds the parts of the text, so that they can be worded differently.

    Examples
    --------
    >>> raise refusal("share", "in (0, 1]", 2, "Pass a fraction, such as 0.9")
    Traceback (most recent call last):
    ValueError: share must be in (0, 1]; got 2. Pass a fraction, such as 0.9.
    """
    problem = Problem(parameter, condition, repr(value), advice)
    error = kind(str(problem))
    vars(error)["problem"] = problem
    return error


@contextmanager
def name_place(place: str) -> Iterator[None]:
    """Start the text of errors with the place where they happen, such as a fold.

    Examples
    --------
    >>> with name_place("fold 3 of 5"):
    ...     raise refusal("share", "in (0, 1]", 2, "Pass a fraction, such as 0.9")
    Traceback (most recent call last):
    ValueError: fold 3 of 5: share must be in (0, 1]; got 2. Pass a fraction, such as 0.9.
    """
    try:
        yield
    except Exception as error:
        if error.args and isinstance(error.args[0], str):
            error.args = (f"{place}: {error.args[0]}", *error.args[1:])
        else:
            error.add_note(f"This is about {place}.")
        problem = getattr(error, "problem", None)
        if isinstance(problem, Problem):
            inner = f": {problem.place}" if problem.place else ""
            vars(error)["problem"] = problem._replace(place=f"{place}{inner}")
        raise


class DsageWarning(UserWarning):
    """A warning of the package; `text` holds its words and settings separately."""

    def __init__(self, text: str | Text) -> None:
        super().__init__(visible(str(text)))
        self.text = text


class AuditWarning(DsageWarning):
    """Skipping changes the values; the result of the run says so itself."""


class GraphWarning(DsageWarning):
    """The sign or the rank of causal values depends on which graph is correct."""


class SamplerWarning(DsageWarning):
    """Another sampler would change the values; the result of the run says so itself."""


class SharedRowsWarning(DsageWarning):
    """The same rows serve to learn and to evaluate; the command line says which file has them."""


class _Filters:
    """The filters of warnings, restored after several runs in threads.

    Libraries change filters temporarily with :class:`warnings.catch_warnings`; scikit-learn does so
    to check rows and in its jobs. If threads do this at the same time, filters may remain or get
    lost. The last of several runs restores them.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0
        self._is_shared = False
        self._filters: Any = None
        self._content: list[Any] = []

    def enter(self) -> None:
        with self._lock:
            self._is_shared = self._n_inside > 0 or self._is_shared
            if not self._n_inside:
                self._is_shared = False
                self._filters, self._content = warnings.filters, list(warnings.filters)
            self._n_inside += 1

    def leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside:
                return
            if self._is_shared:
                self._repair()

    def _repair(self) -> None:
        """Restore the filters that were there when the first run began.

        Filters that another thread has set on purpose in the meantime cannot be distinguished from
        leftovers, so they are lost, too.
        """
        if warnings.filters is self._filters and list(warnings.filters) == self._content:
            return
        self._filters[:] = self._content
        warnings.filters = self._filters
        # Only that makes Python read them again.
        with warnings.catch_warnings():
            pass


_filters = _Filters()
_recorded: ContextVar[tuple[list[DsageWarning], bool]] = ContextVar("recorded")


@contextmanager
def record_warnings(*, show: bool | None = None) -> Iterator[list[DsageWarning]]:
    """Collect the warnings of the package in this thread, also those that filters ignore.

    Nothing global is changed, unlike by :func:`warnings.catch_warnings`. Warnings go to the
    innermost collection only, and from there to the user if `show` is true; by default as in the
    collection around this one, and otherwise true.
    """
    found: list[DsageWarning] = []
    is_outermost = _recorded.get(None) is None
    is_shown = _recorded.get(([], True))[1] if show is None else show
    token = _recorded.set((found, is_shown))
    if is_outermost:
        _filters.enter()
    try:
        yield found
    finally:
        _recorded.reset(token)
        if is_outermost:
            _filters.leave()


def warn(text: str | Text, category: type[DsageWarning] = DsageWarning) -> None:
    """Warn the user, at the line of their code that called the package."""
    warning = category(text)
    recorded, is_shown = _recorded.get(([], True))
    recorded.append(warning)
    if not is_shown:
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "dsage":
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def make_bar(**options: Any) -> tqdm[Any]:  # noqa: ANN401
    """Return a progress bar of tqdm that suits the place where it is shown.

    In a notebook it is a widget or, without ipywidgets, a line of plain text, since notebooks show
    stderr in red. Everywhere else it is a line on stderr.
    """
    from tqdm.std import tqdm  # noqa: PLC0415

    if options.get("disable") or not _is_notebook():
        return tqdm(**options)
    if find_spec("ipywidgets") is None:
        return tqdm(file=sys.stdout, ascii=True, **options)
    from tqdm.notebook import tqdm as widget  # noqa: PLC0415

    return widget(**options)


def _is_notebook() -> bool:
    """Return whether the code runs in the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    found = None if shell is None else shell.get_ipython()
    return type(found).__name__ == "ZMQInteractiveShell"


def shown(names: Sequence[Any]) -> str:
    """Return the first few names for an error message."""
    return ", ".join(map(repr, names[:6])) + (", ..." if len(names) > 6 else "")


def import_extra(module: str, what: str, extra: str) -> Any:  # noqa: ANN401
    """Import an optional package; if it is absent, the error says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        remedy = f"install it with: pip install 'dsage[{extra}]'"
        raise ImportError(f"{what} needs {package}; {remedy}.") from error


def check_names(names: Iterable[str], parameter: str = "names") -> tuple[str, ...]:
    """Return `names` as a tuple of distinct, non-empty strings."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise refusal(parameter, "an iterable of strings", names, "Put them into a list", TypeError)
    checked = tuple(names)
    seen: set[str] = set()
    for name in checked:
        if not isinstance(name, str):
            raise refusal(parameter, "strings", name, f"Convert it: str({name!r})", TypeError)
        if not name:
            raise refusal(parameter, "non-empty strings", name, "Choose a name")
        if name in seen:
            raise refusal(parameter, "distinct", name, "It occurs twice: rename one")
        seen.add(name)
    return tuple(map(str, checked))  # subclasses, such as NumPy's, have another repr


def check_member(name: object, members: Sequence[str], parameter: str, of: str) -> str:
    """Return `name` if it is among `members`; otherwise suggest the closest one."""
    if isinstance(name, str) and name in members:
        return name
    close = difflib.get_close_matches(str(name), members, n=1)
    if close:
        advice = f"Did you mean {close[0]!r}?"
    elif members:
        advice = f"They are {shown(members)}"
    else:
        advice = "There are none"
    raise refusal(parameter, f"one of {of}", name, advice)


def check_members(
    names: str | Iterable[str], members: Sequence[str], parameter: str, of: str
) -> tuple[str, ...]:
    """Return one name or several as a tuple of distinct members, in their order."""
    given = (names,) if isinstance(names, str) else names
    if not isinstance(given, Iterable):
        raise refusal(parameter, "a name or names", names, "Pass a string or a list", TypeError)
    return tuple(dict.fromkeys(check_member(name, members, parameter, of) for name in given))


def check_same_names(
    names: Iterable[str], others: Iterable[str], parameter: str, condition: str
) -> None:
    """Refuse `names` that differ from `others`; the order does not matter."""
    if odd := sorted(set(names) ^ set(others)):
        raise refusal(parameter, condition, odd, "These names are only in one of the two")


def check_known(known: npt.ArrayLike, feature_names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return the coalitions as a boolean array (n_coalitions, n_features)."""
    what = "a boolean array"
    if hasattr(known, "columns"):
        advice = "Take its columns in the order of feature_names and convert it to NumPy"
        raise refusal("known", what, type(known).__name__, advice, TypeError)
    array = np.asarray(known)
    if array.dtype != np.bool_:
        advice = "Use np.asarray(known, dtype=bool)"
        raise refusal("known", what, array.dtype, advice, TypeError)
    advice = "Pass one row per coalition and one column per feature, in the order of feature_names"
    if array.ndim == 1:
        advice += "; known[None, :] makes one row"
    check_shape(array, ("n_coalitions", len(feature_names)), "known", advice)
    return array


def check_shape(
    array: npt.NDArray[Any], shape: Sequence[int | str], parameter: str, advice: str
) -> None:
    """Refuse an array of another shape; a name such as ``"n_rows"`` stands for any length."""
    fits = len(array.shape) == len(shape) and all(
        isinstance(wanted, str) or wanted == found
        for wanted, found in zip(shape, array.shape, strict=True)
    )
    if not fits:
        ending = "," if len(shape) == 1 else ""
        wanted = f"({', '.join(map(str, shape))}{ending})"
        raise refusal(parameter, f"of shape {wanted}", array.shape, advice)


def check_count(value: object, parameter: str, *, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise refusal(parameter, "an integer", value, "Pass a whole number", TypeError)
    if value < minimum:
        raise refusal(parameter, f"at least {minimum}", value, f"Pass {minimum} or more")
    return int(value)


def check_real(
    value: object, parameter: str, *, above: float | None = None, low: float = -np.inf, high: float
) -> float:
    """Return `value` as a float in [low, high], or in (above, high] if `above` is given."""
    if isinstance(value, bool) or not isinstance(value, (float, int, np.floating, np.integer)):
        raise refusal(parameter, "a number", value, "Pass a float", TypeError)
    inside = value <= high and (value > above if above is not None else value >= low)
    if not inside:
        interval = f"({above:g}, {high:g}]" if above is not None else f"[{low:g}, {high:g}]"
        raise refusal(parameter, f"in {interval}", value, "Pass a number in this range")
    return float(value)
