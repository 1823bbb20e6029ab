"""The file that a model was loaded from: errors of such a model name it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from dsage._check import refusal

_Function = TypeVar("_Function", bound=Callable[..., Any])

_files: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def remember_file(model: Any, file: str) -> Any:  # noqa: ANN401
    """Note the name of the file that a model was loaded from; return the model.

    Nothing is written to the model itself. Models that do not support weak references are not
    recorded.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> model = remember_file(LinearRegression(), "line.skops")
    >>> file_of(model), file_of(LinearRegression())
    ('line.skops', '')
    """
    try:
        _files[model] = file
    except TypeError:
        return model
    return model


def file_of(model: Any) -> str:  # noqa: ANN401
    """Return the name of the file that a model was loaded from, "" if there is none."""
    try:
        return _files.get(model, "")
    except TypeError:
        return ""


@contextmanager
def naming_file(file: str) -> Iterator[None]:
    """Turn all errors of a model from a file into errors of this package that name the file.

    Errors of models that were not loaded by the package pass unchanged: `file` is empty for them.
    So do errors of the package, and of too little memory.

    Examples
    --------
    >>> with naming_file("forest.skops"):
    ...     [][0]
    Traceback (most recent call last):
    ValueError: the model in forest.skops must be whole, and fitted to columns such as these; got \
'IndexError: list index out of range'. Compare the columns, or save the model again.
    """
    try:
        yield
    except Exception as error:
        if not file or hasattr(error, "problem") or isinstance(error, MemoryError):
            raise
        lines = str(error).strip().splitlines()
        found = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        condition = "whole, and fitted to columns such as these"
        advice = "Compare the columns, or save the model again"
        raise refusal(f"the model in {file}", condition, found, advice) from error


def names_file(function: _Function) -> _Function:
    """Make the errors of a function that inspects a model name the model's file."""

    @wraps(function)
    def guarded(model: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        with naming_file(file_of(model)):
            return function(model, *args, **options)

    return cast("_Function", guarded)
