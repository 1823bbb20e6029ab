"""Everything that a run chose, in words and numbers, for its record."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import Any

import numpy as np

from dsage._check import Choice
from dsage._version import __version__
from dsage.data.columns import shown
from dsage.data.inputs import Inputs
from dsage.estimate import Estimate, Stopping
from dsage.models.model import Model
from dsage.orderings import Order
from dsage.result.choices import Choices

# Reading the lists of all that is installed takes half a second.
_distributions = cache(packages_distributions)

_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "networkx")


def describe(
    *,
    model: Model,
    given: object,
    inputs: Inputs,
    groups: Mapping[str, tuple[str, ...]] | None,
    graph: Mapping[str, Choice],
    sampler: Mapping[str, Choice],
    loss: Mapping[str, Choice],
    estimate: Estimate,
    stopping: Stopping | None,
    orderings: object,
    options: Mapping[str, Any],
    seconds: Mapping[str, float],
    run: Mapping[str, Choice],
) -> Choices:
    """Return the choices of a run.

    Parameters
    ----------
    model, given
        The model as it is asked, and as the user gave it.
    inputs : Inputs
        The rows.
    groups : mapping or None
        The features of each group.
    graph, sampler, loss : mapping
        How they were found.
    estimate : Estimate
        The result.
    stopping : Stopping or None
        The rule; None for the default one.
    orderings, options, seconds
        Of the run.
    run : mapping
        What repeats it: seed, jobs, checkpoint.
    """
    n_surpluses = estimate.n_surpluses * len(estimate.feature_names)
    shares = map(Fraction, estimate.share_skipped)
    n_skipped = round(sum(shares, Fraction(0)) * estimate.n_surpluses)
    return Choices(
        {
            "model": _model(model, given),
            "data": _data(inputs, groups),
            "graph": graph,
            "sampler": sampler,
            "loss": loss,
            "estimate": {
                "estimand": estimate.estimand,
                "orderings": _orderings(orderings),
                "n_orderings": estimate.n_orderings,
                "all_orderings": estimate.is_exact,
                "stopping": repr(stopping) if stopping is not None else "tolerance 1 %, by default",
                "stopped_because": str(estimate.reason),
                "interrupted": estimate.interrupted,
                "audit": estimate.audit is not None,
                **{name: _short(value) for name, value in options.items()},
            },
            "evaluations": {
                "made": estimate.n_evaluated,
                "shared": estimate.n_shared,
                "surpluses": n_surpluses,
                "surpluses_skipped": n_skipped,
                "share_skipped": float(estimate.share_skipped.mean()),
            },
            "seconds": dict(seconds),
            "versions": _versions(given),
            "run": run,
        }
    )


def _model(model: Model, given: object) -> dict[str, Choice]:
    words: dict[str, Choice] = {"name": model.name, "type": _type_name(given)}
    parts = _parts(given)
    if parts:
        words["steps"] = ", ".join(type(part).__name__ for part in parts)
    if model.classes is not None:
        words["classes"] = shown(model.classes.tolist())
    return words


def _parts(model: object) -> list[object]:
    """Return the steps of a pipeline, in order; none for other models."""
    steps = getattr(model, "steps", None)
    return [step for _, step in steps] if isinstance(steps, list) else []


def _data(inputs: Inputs, groups: Mapping[str, tuple[str, ...]] | None) -> dict[str, Choice]:
    return {
        "target": inputs.target,
        "features": len(inputs.names),
        "features_of_classes": int((inputs.layout.n_categories > 0).sum()),
        "numbers_that_are_classes": ", ".join(inputs.discrete) or None,
        "groups": None if groups is None else len(groups),
        "rows_train": len(inputs.y_train),
        "rows_evaluation": len(inputs.y_test),
        "rows_evaluation_digest": _digest(inputs),
        "container": inputs.layout.kind,
    }


def _orderings(orderings: object) -> str:
    """Return the kind of orderings, the partial order itself, or that they were given."""
    if isinstance(orderings, (str, Order)):
        return str(orderings)
    return f"given: {type(orderings).__name__}"


def _digest(inputs: Inputs) -> str:
    """Return a mark of the evaluation rows: the same rows and targets have the same one."""
    found = hashlib.sha256(inputs.layout.encode(inputs.X_test).tobytes())
    y = inputs.y_test
    found.update(y.tobytes() if y.dtype.kind in "fiub" else repr(y.tolist()).encode())
    return found.hexdigest()[:16]


def _type_name(value: object) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def _short(value: object) -> Choice:
    """Return an option itself where it is short, and its kind where it is not."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return _type_name(value)


def _versions(model: object) -> dict[str, Choice]:
    found: dict[str, Choice] = {"dsage": __version__, "python": platform.python_version()}
    packages = [type(part).__module__.split(".")[0] for part in (model, *_parts(model))]
    own = [name for package in packages for name in _distributions().get(package, [])]
    for name in dict.fromkeys([*_PACKAGES, *own]):
        if name == "dsage":
            continue
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
