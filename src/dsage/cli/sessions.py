"""What earlier sessions left in a checkpoint."""

from __future__ import annotations

from pathlib import Path

from dsage._files import DAMAGES
from dsage.estimate import Checkpoint


def seconds_held(checkpoint: Path | None) -> float:
    """Return the time of the work that a checkpoint holds; 0 where there is none."""
    if checkpoint is None:
        return 0.0
    try:
        return Checkpoint(checkpoint).seconds()
    # The run itself says what is wrong with such a file.
    except DAMAGES:
        return 0.0
