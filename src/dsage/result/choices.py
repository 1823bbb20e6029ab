"""What was chosen for the user, by name, so that it can be read, kept and questioned."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dsage._check import Choice, refusal

_WRITTEN = 10**15


class Choices(Mapping[str, Mapping[str, Choice]]):
    """Everything that a run chose or was told, in sections.

    Parameters
    ----------
    sections : mapping of mappings
        Section -> name -> value.

    Examples
    --------
    >>> choices = Choices({"loss": {"name": "squared_error", "chosen_by": "the model"}})
    >>> choices["loss"]["name"]
    'squared_error'
    >>> choices
    loss
      name       squared_error
      chosen_by  the model
    """

    def __init__(self, sections: Mapping[str, Mapping[str, Choice]]) -> None:
        self._sections = {
            section: {name: _known(value) for name, value in named.items()}
            for section, named in sections.items()
        }

    def __getitem__(self, section: str) -> Mapping[str, Choice]:
        return self._sections[section]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sections)

    def __len__(self) -> int:
        return len(self._sections)

    def to_dict(self) -> dict[str, dict[str, Choice]]:
        """Return a copy as plain dictionaries."""
        return {section: dict(named) for section, named in self._sections.items()}

    def __repr__(self) -> str:
        lines: list[str] = []
        for section, named in self._sections.items():
            width = max(map(len, named), default=0)
            lines.append(section)
            lines += [f"  {name:<{width}}  {worded(value)}" for name, value in named.items()]
        return "\n".join(lines)


def _known(value: Any) -> Choice:  # noqa: ANN401
    """Return a value as files and reports can hold it; None for a number that is none."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is not None and not isinstance(value, (str, int, float, bool)):
        raise refusal("a choice", "a text or a number", value, "Describe it in words", TypeError)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def worded(value: Any) -> str:  # noqa: ANN401
    """Return a choice as a reader wants it.

    Examples
    --------
    >>> worded(0.123456), worded(1234567), worded(None), worded(True), worded("forest")
    ('0.1235', '1,234,567', 'none', 'yes', 'forest')
    >>> worded(math.factorial(200))
    '10^374.9'
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        # All orderings of many features are too many to be written out.
        return f"{value:,}" if abs(value) < _WRITTEN else f"10^{math.log10(abs(value)):.1f}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
