"""Save the state of a run in a file, from which an interrupted run resumes."""

from __future__ import annotations

import math
from pathlib import Path
from time import perf_counter
from typing import Any

from dsage._check import check_real, refusal, warn
from dsage._files import DAMAGES, Arrays, arrays_under, nest_arrays, read_arrays, write_arrays
from dsage.estimate.loop import Estimation
from dsage.estimate.plan import Plan
from dsage.estimate.running.fingerprint import Fingerprint, fingerprint

_FORMAT = 4
# Largest share of the time that is spent writing.
_SHARE = 0.05


class Checkpoint:
    """A file with the state of a run.

    A new state is written to a temporary file, which then replaces the old one, so a complete file
    exists at any time; the previous state is kept in a file with the suffix ``.previous``. The
    file contains arrays and JSON, and reading it executes no code.

    Parameters
    ----------
    path : str or Path
        The file. Its folder must exist.
    every : float, default=60
        Seconds between two states; more if writing is slow.
    """

    def __init__(self, path: str | Path, *, every: float = 60.0) -> None:
        self.path = Path(path)
        self.previous = self.path.with_name(self.path.name + ".previous")
        self.every = check_real(every, "every", low=0.0, high=math.inf)
        if not self.path.parent.is_dir():
            raise refusal("checkpoint", "in a folder that exists", str(path), "Create the folder")
        self._written_at = perf_counter()
        self._took = 0.0
        self._has_warned = False
        self._mark: tuple[Plan, Fingerprint] | None = None

    def part(self, name: str) -> Checkpoint:
        """Return the checkpoint of a part of a run, in a file of its own beside this one.

        Examples
        --------
        >>> Checkpoint("run.state").part("rows2").path.name
        'run.state.rows2'
        """
        return Checkpoint(self.path.with_name(f"{self.path.name}.{name}"), every=self.every)

    def entropy(self) -> int | None:
        """Return the seed of the run in the file; None without a file."""
        found = self._read()
        return None if found is None else int(found[0]["entropy"])

    def seconds(self) -> float:
        """Return the time that the run in the file has taken; 0 without a file."""
        found = self._read()
        return 0.0 if found is None else float(found[1]["state/loop/seconds"])

    def restore(self, estimation: Estimation) -> bool:
        """Restore an estimation from the file, and return whether there is a file."""
        found = self._read()
        if found is None:
            return False
        self._require_same(estimation, *found)
        try:
            estimation.restore(arrays_under(found[1], "state"))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise self._damaged(self.path, error) from error
        return True

    def require_same(self, estimation: Estimation) -> None:
        """Refuse to overwrite the file of another run."""
        found = self._read()
        if found is not None:
            self._require_same(estimation, *found)

    def _require_same(self, estimation: Estimation, header: dict[str, Any], arrays: Arrays) -> None:
        there = Fingerprint(header["texts"], arrays_under(arrays, "fingerprint"))
        differences = self._mark_of(estimation).differences(there)
        if differences:
            remedy = "Use the same inputs or another path, or delete the file to start over"
            advice = f"It differs in: {'; '.join(differences)}. {remedy}"
            raise refusal("checkpoint", "of this run", str(self.path), advice)

    def save(self, estimation: Estimation, *, is_last: bool = False) -> None:
        """Write the state if it is due. If that fails, warn once and go on."""
        start = perf_counter()
        if not is_last and start - self._written_at < max(self.every, self._took / _SHARE):
            return
        try:
            self._write(estimation)
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                found = f"The checkpoint {self.path} could not be written: {error}"
                warn(f"{found}. The run continues and will try again.")
        self._written_at = perf_counter()
        self._took = self._written_at - start

    def _mark_of(self, estimation: Estimation) -> Fingerprint:
        if self._mark is None or self._mark[0] is not estimation.plan:
            self._mark = (estimation.plan, fingerprint(estimation.plan))
        return self._mark[1]

    def _write(self, estimation: Estimation) -> None:
        mark, entropy = self._mark_of(estimation), str(estimation.plan.streams.entropy)
        header = {"format": _FORMAT, "entropy": entropy, "texts": mark.texts}
        arrays = nest_arrays({"fingerprint": mark.numbers, "state": estimation.state()})
        write_arrays(self.path, header, arrays, self.previous)

    def _damaged(self, path: Path, error: Exception) -> Exception:
        advice = f"It is damaged or another kind of file ({error}). Delete it to start over"
        if self.previous.exists():
            advice += f". The previous state is {self.previous}"
        return refusal("checkpoint", "a complete file written by dsage", str(path), advice)

    def _read(self) -> tuple[dict[str, Any], Arrays] | None:
        """Return header and arrays; None without a file."""
        # Without the file itself, the run was killed between the two moves.
        path = next((each for each in (self.path, self.previous) if each.exists()), None)
        if path is None:
            return None
        try:
            header, arrays = read_arrays(path)
            written_in = header["format"]
        except DAMAGES as error:
            raise self._damaged(path, error) from error
        if written_in != _FORMAT:
            advice = "Use the version of dsage that wrote it"
            raise refusal("checkpoint", f"of format {_FORMAT}", written_in, advice)
        return header, arrays


def as_checkpoint(checkpoint: str | Path | Checkpoint | None) -> Checkpoint | None:
    """Return the checkpoint of a path; return a Checkpoint or None unchanged."""
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    if isinstance(checkpoint, (str, Path)):
        return Checkpoint(checkpoint)
    raise refusal("checkpoint", "a path or a Checkpoint", checkpoint, "Pass a file name", TypeError)
