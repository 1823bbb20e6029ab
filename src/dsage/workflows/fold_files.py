"""Files of a cross-validated run: one per fold, in a folder that belongs to one run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib

from dsage._check import record_warnings, refusal, warn
from dsage._files import DAMAGES, read_json, write_bytes
from dsage.data.layout import Layout
from dsage.data.targets import Array
from dsage.estimate.running.lock import FileLock
from dsage.games.base import Floats
from dsage.result.explanation import Explanation
from dsage.result.saving import load
from dsage.workflows.splits import Fold

_KIND = "dsage run of folds"


class FoldFiles:
    """The folder of a run: finished folds, the states of others, and a record of the run.

    Parameters
    ----------
    folder : str or Path
        The folder; it is created if it does not exist.
    models : estimator or sequence of fitted models
        The models to explain, or the estimator to fit in each fold.
    X, y, folds
        Rows, targets and folds of the run.
    """

    def __init__(
        self,
        folder: str | Path,
        models: Any,  # noqa: ANN401
        X: Any,  # noqa: ANN401
        y: Array,
        folds: Sequence[Fold],
    ) -> None:
        if not isinstance(folder, (str, Path)):
            raise refusal("checkpoint", "a folder", folder, "Pass its path", TypeError)
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            advice = "It is a file: name a folder, which gets one file per fold"
            raise refusal("checkpoint", "a folder", str(folder), advice)
        rows = [part.tobytes() for fold in folds for part in (fold.train, fold.test)]
        self._marks = {
            "the rows": _hash_rows(X),
            "the targets": _hash(repr(y.tolist()).encode()),
            "the folds": _hash(*rows),
            "the estimator or the models": _hash_models(models),
        }
        self._width = len(str(len(folds)))
        self._lock = FileLock(self._record, "checkpoint")

    def hold(self) -> FileLock:
        """Return a context in which no other run can use the folder."""
        return self._lock

    def open(self, options: Mapping[str, Any], weights: Floats) -> None:
        """Create the folder; refuse the folder of another run."""
        self._marks["the weights"] = _hash(weights.tobytes())
        for name in sorted(options):
            self._marks[f"the option {name}"] = _word(options[name])
        self.folder.mkdir(parents=True, exist_ok=True)
        saved = self._read().get("marks")
        if saved is None:
            return
        names = dict.fromkeys([*self._marks, *saved])
        differ = [name for name in names if self._marks.get(name) != saved.get(name)]
        if differ:
            raise self._refuse(f"It differs in: {', '.join(differ)}")

    def agree_on_seed(self, given: int | None, new: int) -> int:
        """Return the seed of the run in the folder, the given seed or a new one; save it."""
        found = self._read().get("seed")
        seed = found if found is not None else new if given is None else given
        if given is not None and given != seed:
            raise self._refuse(f"It differs in: random_state, which is {seed}")
        content = {"kind": _KIND, "seed": seed, "marks": self._marks}
        write_bytes(self._record, json.dumps(content, indent=1).encode())
        return int(seed)

    def finished(self, fold: Fold) -> Explanation | None:
        """Return the explanation of a finished fold, or None."""
        file = self._file(fold, "dsage")
        return load(file) if file.exists() else None

    def run(self, fold: Fold, explain: Callable[[Path], Explanation]) -> Explanation:
        """Explain a fold with a file for its state; start over if it belongs to another model.

        That happens if fitting is random: the model of the interrupted call cannot be restored.
        """
        state = self._file(fold, "state")
        try:
            return explain(state)
        except ValueError as error:
            problem = getattr(error, "problem", None)
            if problem is None or problem.parameter != "checkpoint" or not state.exists():
                raise
            self._forget(fold)
            with record_warnings(show=True):
                warn(
                    f"{fold.name}: the state in {state} is damaged or belongs to another model, so "
                    "the fold starts over. Set the estimator's random_state to resume within folds."
                )
            return explain(state)

    def finish(self, fold: Fold, explanation: Explanation) -> None:
        """Save the explanation of a fold, and delete its state."""
        explanation.save(self._file(fold, "dsage"))
        self._forget(fold)

    def _forget(self, fold: Fold) -> None:
        state = self._file(fold, "state")
        for file in self.folder.glob(f"{state.name}*"):
            file.unlink()

    @property
    def _record(self) -> Path:
        return self.folder / "run.json"

    def _file(self, fold: Fold, ending: str) -> Path:
        return self.folder / f"fold-{fold.number:0{self._width}}.{ending}"

    def _read(self) -> dict[str, Any]:
        """Return the record of the run in the folder; empty if there is none."""
        if not self._record.exists():
            if any(self.folder.glob("fold-*.dsage")):
                raise self._refuse(f"It has folds, but no {self._record.name}")
            return {}
        try:
            found = read_json(self._record.read_bytes())
            if found["kind"] != _KIND:
                raise ValueError("it is another kind of file")
            is_seed = type(found["seed"]) is int and found["seed"] >= 0
            if not is_seed or not isinstance(found["marks"], dict):
                raise ValueError("its seed or its marks have a wrong type")
        except DAMAGES as error:
            raise self._refuse(f"{self._record.name} is damaged ({error})") from error
        return found  # type: ignore[no-any-return]

    def _refuse(self, what: str) -> Exception:
        remedy = "Use the same arguments or another folder, or delete the folder to start over"
        advice = f"{what}. {remedy}"
        return refusal("checkpoint", "a folder of this run", str(self.folder), advice)


def _hash(*parts: bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:16]


def _hash_rows(X: Any) -> str:  # noqa: ANN401
    with record_warnings(show=False):
        layout = Layout.of(X)
        matrix = layout.encode(X)
    return _hash(repr(layout.names).encode(), matrix.tobytes())


def _hash_models(models: Any) -> str:  # noqa: ANN401
    """Return a hash of the models, or their type if they cannot be pickled."""
    try:
        return str(joblib.hash(models))
    # A model may fail in any way when it is pickled.
    except Exception:
        return repr(type(models))


def _word(value: object) -> str:
    """Return an option as text; objects by their type, since their addresses change."""
    plain = (str, int, float, bool, type(None), Mapping, list, tuple)
    return repr(value) if isinstance(value, plain) else repr(type(value))
