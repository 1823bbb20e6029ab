"""How the sampler of a run was found, as a record."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SamplerSource(StrEnum):
    """Where a sampler came from."""

    CHOSEN = "chosen"
    NAMED = "named"
    GIVEN = "given"


@dataclass(frozen=True)
class Decision:
    """How the one-standard-error rule chose a sampler.

    Parameters
    ----------
    chosen : str
        Name of the sampler that was chosen.
    best : str
        Name of the candidate with the lowest held-out energy score.
    best_score : float
        Its score.
    difference : float
        Score of the chosen sampler minus the best score; 0 if the best one was chosen.
    se : float
        Paired standard error of the difference; 0 if the best one was chosen.

    Examples
    --------
    >>> Decision("Gaussian", "Forest", 0.41, 0.002, 0.003).words()
    'Gaussian is the simplest sampler whose held-out energy score is within one standard error
    (0.0020 <= 0.0030) of the lowest, 0.4100 of Forest.'
    """

    chosen: str
    best: str
    best_score: float
    difference: float = 0.0
    se: float = 0.0

    @property
    def is_simpler(self) -> bool:
        """Whether a simpler sampler than the best one was chosen."""
        return self.chosen != self.best

    def words(self) -> str:
        """Return the decision as a sentence."""
        if self.is_simpler:
            return (
                f"{self.chosen} is the simplest sampler whose held-out energy score is within one "
                f"standard error ({self.difference:.4f} <= {self.se:.4f}) of the lowest, "
                f"{self.best_score:.4f} of {self.best}."
            )
        return (
            f"{self.best} has the lowest held-out energy score, {self.best_score:.4f}, "
            "and no simpler sampler is within one standard error of it."
        )


@dataclass(frozen=True)
class SamplerInfo:
    """How the sampler of a run was found, and how well it scored.

    Parameters
    ----------
    name : str
        Class of the sampler.
    source : SamplerSource
        Whether it was chosen automatically, named, or given as an object.
    energy_score : float or None
        Its held-out energy score; None if it was not scored.
    energy_score_of_independence : float or None
        The score, on the same rows, of draws that ignore what is known.
    decision : Decision or None
        Why it was chosen; None if it was not chosen automatically.
    """

    name: str
    source: SamplerSource
    energy_score: float | None = None
    energy_score_of_independence: float | None = None
    decision: Decision | None = None
