"""A registry: parts of one kind, found by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from threading import RLock
from typing import Any, NamedTuple, TypeVar

from dsage._check import check_member, refusal

__all__ = ["Registry"]

T = TypeVar("T")


class _Entry(NamedTuple):
    part: Any
    summary: str
    traits: Mapping[str, Any]


class Registry(Mapping[str, T]):
    """Parts of one kind (classes, functions or objects), found by name.

    Names keep the order in which they were registered. Looking up an unknown name raises a
    ValueError that suggests the closest one. `parameter` is the name of the public functions'
    parameter that takes these names, and `of` describes the parts, such as "the samplers". On the
    first lookup all modules of `package` are imported, so that a new file is enough to add a part.

    Examples
    --------
    >>> ANIMALS = Registry("animal", "the animals")
    >>> @ANIMALS.register("cat", summary="sleeps", legs=4)
    ... class Cat: ...
    >>> ANIMALS["cat"].__name__, ANIMALS.table(), ANIMALS.traits("cat")
    ('Cat', [('cat', 'sleeps')], {'legs': 4})
    >>> ANIMALS["cart"]
    Traceback (most recent call last):
    ValueError: animal must be one of the animals; got 'cart'. Did you mean 'cat'?
    """

    def __init__(self, parameter: str, of: str, package: str | None = None) -> None:
        self._parameter, self._of, self._package = parameter, of, package
        self._entries: dict[str, _Entry] = {}
        self._is_loaded = package is None
        self._lock = RLock()

    def register(self, name: str, *, summary: str, **traits: object) -> Callable[[T], T]:
        """Return a decorator that adds a part; `summary` is its line in tables and help."""
        if name in self._entries:
            raise refusal("name", f"new to {self._of}", name, "Choose another name")

        def add(part: T) -> T:
            self._entries[name] = _Entry(part, summary, traits)
            return part

        return add

    def remove(self, name: str) -> None:
        """Remove a part, so that its name is free again."""
        del self._entries[check_member(name, self.names(), self._parameter, self._of)]

    def names(self) -> tuple[str, ...]:
        """Return the names in the order of registration."""
        return tuple(self._load())

    def summary(self, name: str) -> str:
        """Return the line that describes a part."""
        return self._entry(name).summary

    def traits(self, name: str) -> dict[str, Any]:
        """Return the further properties that a part was registered with."""
        return dict(self._entry(name).traits)

    def table(self) -> list[tuple[str, str]]:
        """Return pairs (name, summary), for the help of the command line and the docs."""
        return [(name, entry.summary) for name, entry in self._load().items()]

    def __getitem__(self, name: str) -> T:
        part: T = self._entry(name).part
        return part

    def __contains__(self, name: object) -> bool:
        return name in self._load()

    def get(self, name: str, default: T | None = None) -> T | None:  # type: ignore[override]
        """Return a part, or `default` if there is none of this name."""
        entry = self._load().get(name)
        return default if entry is None else entry.part

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self._load())

    def __repr__(self) -> str:
        return f"Registry({', '.join(self.names())})"

    def _entry(self, name: str) -> _Entry:
        return self._load()[check_member(name, self.names(), self._parameter, self._of)]

    def _load(self) -> dict[str, _Entry]:
        if not self._is_loaded:
            # Other threads wait until all are there; modules may look up names while they load.
            with self._lock:
                if self._package is not None:
                    package, self._package = importlib.import_module(self._package), None
                    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
                        importlib.import_module(module.name)
                    self._is_loaded = True
        return self._entries
