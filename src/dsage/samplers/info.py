"""How the sampler of a run was found, as a record."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SamplerSource(StrEnum):
    """Where a sampler came from."""

    CHOSEN = "chosen"
    NAMED = "named"
    GIVEN = "given"


class Basis(StrEnum):
    """What a choice is based on."""

    SCORES = "scores"
    FEW_ROWS = "few rows"


@dataclass(frozen=True)
class Decision:
    """How a sampler was chosen.

    The rule uses two scores on held-out rows; lower is better. The MSEv is the squared error of the
    model's expected prediction given the known features, as a share of the variance of the
    predictions; the energy score compares the draws with the rows themselves. Differences are
    paired over rows.

    1. A candidate is out if its MSEv is clearly above the lowest: by more than two standard errors
       (and by more than 0.1 % of the variance of the predictions).
    2. Of the others, the one with the lowest energy score is `best`.
    3. The simplest of them is chosen whose MSEv and energy score are both within one standard error
       of `best` (or off by less than 0.1 % of the variance, and 0.5 % of the score).

    Without a model only the energy score counts. With too few rows to score, the simplest candidate
    is chosen.

    Parameters
    ----------
    chosen : str
        Name of the sampler that was chosen.
    best : str
        Name of the candidate with the lowest held-out energy score, of those not in `out`.
    best_score : float
        Its energy score; NaN if nothing was scored.
    difference, se : float
        Energy score of the chosen sampler minus the best score, and its paired standard error; 0
        if the best one was chosen.
    best_msev : float or None
        The MSEv of `best`; None without a model.
    msev_difference, msev_se : float
        MSEv of the chosen sampler minus the MSEv of `best`, and its paired standard error.
    out : tuple of str
        Candidates whose MSEv is clearly higher than the lowest.
    tied : tuple of str
        Candidates that tie with the chosen one: neither score is clearly higher.
    skipped : tuple of str
        Candidates that were not tried, because fitting or scoring them would have taken too long.
    n_rows : int
        Number of held-out rows that the choice is based on.
    is_cut : bool
        Whether the comparison ran out of time, so that another run may compare more.
    basis : Basis
        Whether the scores decided, or there were too few rows for scores.

    Examples
    --------
    >>> Decision("Gaussian", "Mix", 0.41, 0.002, 0.003).words()
    'Gaussian is the simplest sampler whose held-out energy score is within one standard error
    (0.0020 <= 0.0030) of the lowest, 0.4100 of Mix.'
    """

    chosen: str
    best: str
    best_score: float
    difference: float = 0.0
    se: float = 0.0
    best_msev: float | None = None
    msev_difference: float = 0.0
    msev_se: float = 0.0
    out: tuple[str, ...] = ()
    tied: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    n_rows: int = 0
    is_cut: bool = False
    basis: Basis = Basis.SCORES

    @property
    def is_simpler(self) -> bool:
        """Whether a simpler sampler than the best one was chosen."""
        return self.chosen != self.best

    def words(self) -> str:
        """Return the decision in sentences."""
        if self.basis is Basis.FEW_ROWS:
            return (
                f"{self.chosen} is the simplest sampler for such columns: there are too few rows "
                "to score samplers."
            )
        sentences = [self._simpler() if self.is_simpler else self._best()]
        if self.out:
            sentences.append(f"Clearly worse in MSEv: {', '.join(self.out)}.")
        if self.skipped:
            sentences.append(f"Not tried, since it would take too long: {', '.join(self.skipped)}.")
        if self.is_cut:
            sentences.append("The comparison ran out of time: another run may compare more.")
        return " ".join(sentences)

    def _best(self) -> str:
        among = "" if self.best_msev is None else " of those whose MSEv is not clearly higher"
        return (
            f"{self.best} has the lowest held-out energy score{among}, {self.best_score:.4f}, "
            "and no simpler sampler is within one standard error of it."
        )

    def _simpler(self) -> str:
        if self.best_msev is None:
            within = _within("of the lowest", self.difference, self.se, "0.5 %")
            return (
                f"{self.chosen} is the simplest sampler whose held-out energy score is {within}, "
                f"{self.best_score:.4f} of {self.best}."
            )
        energy = _within("of the lowest", self.difference, self.se, "0.5 %")
        msev = _within(f"of {self.best}'s", self.msev_difference, self.msev_se, "0.1 %")
        return (
            f"{self.chosen} is the simplest sampler whose held-out energy score is {energy}, "
            f"{self.best_score:.4f} of {self.best}, and whose MSEv is {msev}, {self.best_msev:.4f}."
        )


def _within(of: str, difference: float, se: float, negligible: str) -> str:
    if difference <= se:
        return f"within one standard error ({difference:.4f} <= {se:.4f}) {of}"
    return f"within {negligible} ({difference:.4f}) {of}"


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
        The score, on the same rows, of draws that ignore the known features.
    decision : Decision or None
        Why it was chosen; None if it was not chosen automatically.
    msev : float or None
        Its held-out MSEv, as a share of the variance of the predictions; None if it was not scored.
    msev_of_independence : float or None
        The MSEv of draws that ignore the known features.
    compared_with : tuple of str
        The samplers that would have changed the values by `se_sampler`.
    not_compared : str or None
        Why it was not compared with others; None if it was.
    """

    name: str
    source: SamplerSource
    energy_score: float | None = None
    energy_score_of_independence: float | None = None
    decision: Decision | None = None
    msev: float | None = None
    msev_of_independence: float | None = None
    compared_with: tuple[str, ...] = ()
    not_compared: str | None = None
