"""Keep the state of a run in a file, so that it can go on after it was ended by anything."""

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

_FORMAT = 3
# Writing takes at most this share of the time.
_SHARE = 0.05


class Checkpoint:
    """A file with the state of a run.

    It is written beside its place and then moved there, so there is always a whole one; the one
    before it is kept, with ``.previous`` added to its name. It holds arrays and JSON, nothing that
    runs when it is read.

    Parameters
    ----------
    path : str or Path
        The file. Its folder must exist.
    every : float, default=60
        Seconds between two states; more where writing takes long.
    """

    def __init__(self, path: str | Path, *, every: float = 60.0) -> None:
        self.path = Path(path)
        self.previous = self.path.with_name(self.path.name + ".previous")
        self.every = check_real(every, "every", low=0.0, high=math.inf)
        if not self.path.parent.is_dir():
            raise refusal("checkpoint", "in a folder that exists", str(path), "Make the folder")
        self._written_at = perf_counter()
        self._took = 0.0
        self._has_warned = False
        self._mark: tuple[Plan, Fingerprint] | None = None

    def entropy(self) -> int | None:
        """Return the seed of the run in the file; None where there is no file."""
        found = self._read()
        return None if found is None else int(found[0]["entropy"])

    def seconds(self) -> float:
        """Return the time that the run in the file has taken; 0 without a file."""
        found = self._read()
        return 0.0 if found is None else float(found[1]["state/loop/seconds"])

    def restore(self, estimation: Estimation) -> bool:
        """Bring an estimation to where the file stands; tell whether there is a file."""
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
        """Refuse to write over the file of another run."""
        found = self._read()
        if found is not None:
            self._require_same(estimation, *found)

    def _require_same(self, estimation: Estimation, header: dict[str, Any], arrays: Arrays) -> None:
        there = Fingerprint(header["texts"], arrays_under(arrays, "fingerprint"))
        differences = self._mark_of(estimation).differences(there)
        if differences:
            raise refusal(
                "checkpoint",
                "of this run",
                str(self.path),
                f"It differs in: {'; '.join(differences)}. Give what it was made with, or "
                "another path; delete it to start over",
            )

    def save(self, estimation: Estimation, *, is_last: bool = False) -> None:
        """Write the state where it is time to. Where that fails, warn once, and go on."""
        start = perf_counter()
        if not is_last and start - self._written_at < max(self.every, self._took / _SHARE):
            return
        try:
            self._write(estimation)
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                warn(
                    f"The checkpoint {self.path} could not be written: {error}. The run goes on; "
                    "it will be tried again."
                )
        self._written_at = perf_counter()
        self._took = self._written_at - start

    def _mark_of(self, estimation: Estimation) -> Fingerprint:
        if self._mark is None or self._mark[0] is not estimation.plan:
            self._mark = (estimation.plan, fingerprint(estimation.plan))
        return self._mark[1]

    def _write(self, estimation: Estimation) -> None:
        mark = self._mark_of(estimation)
        header = {
            "format": _FORMAT,
            "entropy": str(estimation.plan.streams.entropy),
            "texts": mark.texts,
        }
        arrays = nest_arrays({"fingerprint": mark.numbers, "state": estimation.state()})
        write_arrays(self.path, header, arrays, self.previous)

    def _damaged(self, path: Path, error: Exception) -> Exception:
        advice = f"The one before it is {self.previous}" if self.previous.exists() else ""
        return refusal(
            "checkpoint",
            "a whole file that dsage wrote",
            str(path),
            f"It is damaged, or something else ({error}). Delete it to start over. "
            f"{advice}".rstrip(),
        )

    def _read(self) -> tuple[dict[str, Any], Arrays] | None:
        """Return header and arrays; None where there is no file."""
        path = self.path
        if not path.exists():
            # Killed between the two moves.
            if not self.previous.exists():
                return None
            path = self.previous
        try:
            header, arrays = read_arrays(path)
            written_in = header["format"]
        except DAMAGES as error:
            raise self._damaged(path, error) from error
        if written_in != _FORMAT:
            raise refusal(
                "checkpoint", f"of format {_FORMAT}", written_in, "Use the version that wrote it"
            )
        return header, arrays


def as_checkpoint(checkpoint: str | Path | Checkpoint | None) -> Checkpoint | None:
    """Return the checkpoint of a path; one that is there already, or None, stays."""
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    if isinstance(checkpoint, (str, Path)):
        return Checkpoint(checkpoint)
    raise refusal("checkpoint", "a path or a Checkpoint", checkpoint, "Name a file", TypeError)
