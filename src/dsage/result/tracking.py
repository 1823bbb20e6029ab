"""Log explanations to experiment trackers: MLflow, Weights & Biases."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsage._check import check_count, check_member, import_extra, refusal
from dsage.result.pictures import picture_of

if TYPE_CHECKING:
    from dsage.result.explanation import Explanation

# Characters that MLflow refuses in names; Weights & Biases allows all others, too.
_REFUSED = re.compile(r"[^\w\-. /]", re.ASCII)
# Longer values of parameters are cut: older servers of MLflow refuse them.
_LONGEST = 500


def log(explanation: Explanation, to: str, *, prefix: str, step: int | None) -> None:
    """Log an explanation to a tracker, see :meth:`dsage.Explanation.log`."""
    check_member(to, tuple(_TRACKERS), "to", "the trackers")
    if not isinstance(prefix, str) or not prefix or _REFUSED.search(prefix):
        condition = "letters, digits, spaces and _-./"
        raise refusal("prefix", condition, prefix, "For example, prefix='forest'")
    if step is not None:
        check_count(step, "step", minimum=0)
    with tempfile.TemporaryDirectory() as folder:
        _TRACKERS[to](explanation, prefix, step, write_files(explanation, Path(folder)))


def metrics(explanation: Explanation, prefix: str) -> dict[str, float]:
    """Return the value and the standard error of each feature, by the names of metrics.

    Names that become equal when refused characters are replaced are numbered.
    """
    names = number_duplicates(_REFUSED.sub("_", name) for name in explanation.feature_names)
    found = {}
    for kind, numbers in (("value", explanation.values), ("se", explanation.se)):
        for name, number in zip(names, numbers.tolist(), strict=True):
            if math.isfinite(number):
                found[f"{prefix}/{kind}/{name}"] = number
    return found


def number_duplicates(names: Iterable[str]) -> list[str]:
    """Return the names, with a number appended to names that occurred before.

    Examples
    --------
    >>> number_duplicates(["a_b", "c", "a_b"])
    ['a_b', 'c', 'a_b_2']
    """
    found: list[str] = []
    for name in names:
        number, free = 1, name
        while free in found:
            number += 1
            free = f"{name}_{number}"
        found.append(free)
    return found


def parameters(explanation: Explanation, prefix: str) -> dict[str, str | int]:
    """Return the choices of the run, by the names of parameters."""
    choices = explanation.choices
    found: dict[str, str | int] = {
        "target": explanation.target,
        "estimand": explanation.estimate.estimand,
        "model": choices.model.name,
        "loss": choices.loss.name,
        "sampler": choices.sampler.name,
        "graph": str(choices.graph.source),
        "n_rows_evaluation": choices.data.n_rows_evaluation,
        "random_state": choices.run.random_state,
        "dsage": choices.versions.get("dsage", ""),
    }
    return {
        f"{prefix}/{name}": value[:_LONGEST] if isinstance(value, str) else value
        for name, value in found.items()
    }


def write_files(explanation: Explanation, folder: Path) -> list[Path]:
    """Write the explanation, its table and, with matplotlib, its ranking; return the files."""
    files = [explanation.save(folder / "explanation.dsage"), folder / "explanation.json"]
    explanation.to_json(files[1])
    picture = picture_of(explanation)
    if picture is not None:
        files.append(folder / "ranking.png")
        files[-1].write_bytes(picture)
    return files


def _log_to_mlflow(
    explanation: Explanation, prefix: str, step: int | None, files: list[Path]
) -> None:
    mlflow = import_extra("mlflow", "Logging to MLflow", "mlflow")
    mlflow.log_params(parameters(explanation, prefix))
    mlflow.log_metrics(metrics(explanation, prefix), step=step)
    for file in files:
        mlflow.log_artifact(str(file), artifact_path=prefix)


def _log_to_wandb(
    explanation: Explanation, prefix: str, step: int | None, files: list[Path]
) -> None:
    wandb = import_extra("wandb", "Logging to Weights & Biases", "wandb")
    run = wandb.run
    if run is None:
        advice = "Call wandb.init() first, or log inside of `with wandb.init():`"
        raise refusal("to", "a tracker with an active run", "wandb", advice, RuntimeError)
    run.config.update(parameters(explanation, prefix), allow_val_change=True)
    found: dict[str, Any] = dict(metrics(explanation, prefix))
    found[f"{prefix}/table"] = wandb.Table(dataframe=explanation.to_frame())
    artifact = wandb.Artifact(re.sub(r"[^\w\-.]", "_", prefix), type="explanation")
    for file in files:
        artifact.add_file(str(file))
        if file.suffix == ".png":
            found[f"{prefix}/ranking"] = wandb.Image(str(file))
    run.log(found, step=step)
    run.log_artifact(artifact)


_TRACKERS: dict[str, Callable[[Explanation, str, int | None, list[Path]], None]] = {
    "mlflow": _log_to_mlflow,
    "wandb": _log_to_wandb,
}
