"""Save the state of a run in a file, from which an interrupted run resumes."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

from dsage._check import check_real, refusal, warn
from dsage._files import DAMAGES, Arrays, arrays_under, nest_arrays, read_arrays, write_arrays
from dsage.estimate.loop import Estimation
from dsage.estimate.plan import Plan
from dsage.estimate.running.fingerprint import Fingerprint, fingerprint
from dsage.estimate.running.lock import FileLock

_FORMAT = 7
# Largest share of the time that is spent writing.
_SHARE = 0.05
# Prefixes of the names of arrays in a state that grow during a run.
_GROWING = ("history/", "memory/", "totals/terms/noted")
_MAY_BE_NEGATIVE = "loop/refined_at"
# Larger counts cannot come from a run.
_MOST = 2**48


class Checkpoint:
    """A file with the state of a run.

    A new state is written to a temporary file, which then replaces the old one, so a complete file
    exists at any time; the previous state is kept in a file with the suffix ``.previous``, for the
    user: a run resumes from the file itself, and starts over if it was deleted. While a run uses
    the file, other runs are refused; a file with the suffix ``.lock`` marks it. The file contains
    arrays and JSON, and reading it executes no code.

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
        self._lock = FileLock(self.path, "checkpoint")
        self._written_at = perf_counter()
        self._took = 0.0
        self._has_warned = False
        self._mark: tuple[Plan, Fingerprint] | None = None

    def part(self, name: str) -> Checkpoint:
        """Return the checkpoint of a part of a run, in its own file next to this one.

        Examples
        --------
        >>> Checkpoint("run.state").part("rows2").path.name
        'run.state.rows2'
        """
        return Checkpoint(self.path.with_name(f"{self.path.name}.{name}"), every=self.every)

    def hold(self) -> AbstractContextManager[None]:
        """Return a context in which no other run can use the file."""
        return self._lock

    def entropy(self) -> int | None:
        """Return the seed of the run in the file; None without a file."""
        found = self._read()
        return None if found is None else found[0]["entropy"]

    def seconds(self) -> float:
        """Return the time that the run in the file has taken; 0 without a file."""
        found = self._read()
        return 0.0 if found is None else found[0]["seconds"]

    def restore(self, estimation: Estimation) -> bool:
        """Restore an estimation from the file, and return whether there is a file."""
        found = self._read()
        if found is None:
            return False
        self._require_same(estimation, *found)
        state = arrays_under(found[1], "state")
        try:
            _check_state(estimation.state(), state)
            estimation.restore(state)
        except DAMAGES as error:
            raise self._damaged(error) from error
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
        """Write the state if it is due. If that fails, warn once and continue."""
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
        if not self.path.exists():
            # It belongs to a run whose file was deleted.
            self.previous.unlink(missing_ok=True)
        write_arrays(self.path, header, arrays, self.previous)

    def _damaged(self, error: Exception) -> Exception:
        advice = f"It is damaged or another kind of file ({error}). Delete it to start over"
        if self.previous.exists():
            advice += f". The previous state is {self.previous}"
        return refusal("checkpoint", "a complete file written by dsage", str(self.path), advice)

    def _read(self) -> tuple[dict[str, Any], Arrays] | None:
        """Return header and arrays; None without a file."""
        if not self.path.exists():
            return None
        try:
            header, arrays = read_arrays(self.path)
            written_in = header["format"]
            if written_in == _FORMAT:
                _check_header(header, arrays)
        except DAMAGES as error:
            raise self._damaged(error) from error
        if written_in != _FORMAT:
            advice = "Use the version of dsage that wrote it"
            raise refusal("checkpoint", f"of format {_FORMAT}", written_in, advice)
        return header, arrays


def _check_header(header: dict[str, Any], arrays: Arrays) -> None:
    """Check the parts of a header, and convert the seed and the time; ValueError if they are not.

    The seed is written as text, since it may be larger than the integers of other JSON readers.
    """
    texts = header.get("texts")
    if not isinstance(texts, dict) or not all(isinstance(each, str) for each in texts.values()):
        raise ValueError("it does not identify its run")
    header["entropy"] = int(str(header.get("entropy")))
    if header["entropy"] < 0:
        raise ValueError("its seed is negative")
    header["seconds"] = float(arrays["state/loop/seconds"].item())
    if not 0.0 <= header["seconds"] < math.inf:
        raise ValueError("its time is not a number of seconds")


def _check_state(fresh: Arrays, found: Arrays) -> None:
    """Refuse a state whose arrays have other names, types or shapes than a fresh state."""
    if differ := sorted(fresh.keys() ^ found.keys()):
        raise ValueError(f"its state has other parts: {differ[0]}")
    for name, own in fresh.items():
        array = found[name]
        grows = name.startswith(_GROWING)
        shape, wanted = (each.shape[1:] if grows else each.shape for each in (array, own))
        if array.dtype != own.dtype or array.ndim != own.ndim or shape != wanted:
            raise ValueError(f"{name} has another type or shape")
        if array.dtype.kind == "i" and array.size:
            lowest = -1 if name == _MAY_BE_NEGATIVE else 0
            if array.min() < lowest or array.max() > _MOST:
                raise ValueError(f"{name} has impossible numbers")
    lengths = {len(array) for name, array in found.items() if name.startswith("history/")}
    if len(lengths) > 1:
        raise ValueError("its history has several lengths")


def as_checkpoint(checkpoint: str | Path | Checkpoint | None) -> Checkpoint | None:
    """Return the checkpoint of a path; return a Checkpoint or None unchanged."""
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    if isinstance(checkpoint, (str, Path)):
        return Checkpoint(checkpoint)
    raise refusal("checkpoint", "a path or a Checkpoint", checkpoint, "Pass a file name", TypeError)


def hold(checkpoint: Checkpoint | None) -> AbstractContextManager[None]:
    """Return a context in which no other run can use the file of a checkpoint, if there is one."""
    return nullcontext() if checkpoint is None else checkpoint.hold()
