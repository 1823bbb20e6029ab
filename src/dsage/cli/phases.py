"""What a run is doing now, where no bars show it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from dsage.cli.errors import note

_BEGINS = ": begins"
PHASES = {
    "graph": "Learning the graph ...",
    "sampler": "Scoring samplers ...",
    "estimate": "Estimating ...",
}
"""The phases of a run, in words."""


class _Notes(logging.Handler):
    """Notes each phase once, when the log says that it begins."""

    def __init__(self, words: Mapping[str, str]) -> None:
        super().__init__(logging.INFO)
        self._words = dict(words)

    def emit(self, record: logging.LogRecord) -> None:
        """Note a phase that begins."""
        phase = record.getMessage().removesuffix(_BEGINS)
        if phase in self._words:
            note(self._words.pop(phase))


@contextmanager
def phases_told(words: Mapping[str, str]) -> Iterator[None]:
    """Note the phases of what runs inside, as they begin.

    Parameters
    ----------
    words : mapping of str to str
        What to say for each phase; nothing is said of others.
    """
    logger = logging.getLogger("dsage")
    handler, level = _Notes(words), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
