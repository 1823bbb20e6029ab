"""Convert files of the first release, which stored choices as prose, to the current format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsage._files import Arrays
from dsage.estimate.reasons import StopKind
from dsage.models.resolve import LossSource
from dsage.samplers.info import SamplerSource
from dsage.structure.info import GraphSource

_DATA = {
    "n_features": "features",
    "n_class_features": "features_of_classes",
    "n_groups": "groups",
    "n_rows_train": "rows_train",
    "n_rows_evaluation": "rows_evaluation",
}
_EVALUATIONS = {
    "n_made": "made",
    "n_shared": "shared",
    "n_surpluses": "surpluses",
    "n_skipped": "surpluses_skipped",
    "share_skipped": "share_skipped",
}
# The first five were always written, the others only if the user gave them.
_DEFAULTS = {
    "estimand": "",
    "orderings": "",
    "n_orderings": 0,
    "stopping": "",
    "stopped_because": "",
    "semantics": "boundary",
    "first_level": "auto",
    "exact": "auto",
    "rows_per_ordering": None,
    "cache_bytes": 2**28,
    "n_draws": 8,
    "n_replicates": 2,
    "noise": "sobol",
    "max_bytes": 2**28,
}
_AUDIT_WARNING = "Skipping by separation changes the values"


def upgrade(header: Mapping[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Return the header in the current format, and rename the arrays."""
    estimate = dict(header["estimate"])
    estimate["terms"] = estimate.pop("levels")
    for term in [*estimate["terms"], *([estimate["audit"]] if estimate["audit"] else [])]:
        term["kind"] = term.pop("name")
    kind = StopKind.INTERRUPTED if estimate.pop("interrupted") else StopKind.OTHER
    estimate["reason"] = {"kind": kind, "numbers": {}, "text": estimate["reason"]}
    for place in [each for each in arrays if each.startswith("estimate/levels/")]:
        arrays[place.replace("/levels/", "/terms/")] = arrays.pop(place)
    # Single numbers were stored as arrays, too.
    for place in [each for each in arrays if arrays[each].ndim == 0]:
        *path, name = place.split("/")[1:]
        owner: Any = estimate
        for step in path:
            owner = owner[int(step) if step.isdigit() else step]
        owner[name] = str(arrays.pop(place))
    texts = [text for text in header["warnings"] if not str(text).startswith(_AUDIT_WARNING)]
    choices = _upgrade_choices(header["choices"])
    return {**header, "estimate": estimate, "choices": choices, "warnings": texts}


def _upgrade_choices(old: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    model, data, run, loss = old["model"], old["data"], old["estimate"], old["loss"]
    classes = model.get("classes")
    is_given = loss["source"] == "given"
    return {
        "model": {
            "name": model["name"],
            "type_name": model["type"],
            "steps": _split(model.get("steps")),
            "classes": None if classes is None else [each.strip("'") for each in _split(classes)],
            "packages": [],
        },
        "data": {
            **{name: data[name] for name in ("target", "container")},
            **{new: data[name] for new, name in _DATA.items()},
            "class_numbers": _split(data["numbers_that_are_classes"]),
            "digest": data.get("rows_evaluation_digest"),
        },
        "graph": _upgrade_graph(old["graph"]),
        "sampler": _upgrade_sampler(old["sampler"]),
        "loss": {**loss, "source": LossSource.GIVEN if is_given else LossSource.CHOSEN},
        "estimate": {
            **_DEFAULTS,
            **{name: value for name, value in run.items() if name in _DEFAULTS},
            "n_replicates": run.get("n_groups", _DEFAULTS["n_replicates"]),
            "first_level": run.get("levels", _DEFAULTS["first_level"]),
            "is_asymmetric": run["orderings"].startswith("Order("),
            "is_exact": run["all_orderings"],
            "has_audit": run["audit"],
            "is_weighted": run.get("sample_weight") is not None,
        },
        "evaluations": {new: old["evaluations"][name] for new, name in _EVALUATIONS.items()},
        **{name: old[name] for name in ("seconds", "versions", "run")},
    }


def _upgrade_graph(old: Mapping[str, Any]) -> dict[str, Any]:
    source, _, kind = str(old["source"]).partition(": ")
    is_vote = kind.startswith("a vote of ")
    found = {"none": GraphSource.NONE, "given": GraphSource.GIVEN}.get(source, GraphSource.LEARNED)
    method, blanket = old.get("method"), old.get("markov_blanket")
    return {
        "source": GraphSource.VOTE if is_vote else found,
        "kind": kind if found is GraphSource.GIVEN and not is_vote else None,
        "method": None if method is None else method.split(":")[0],
        "score": old.get("score"),
        "score_value": old.get("score_value"),
        "n_edges": old.get("edges"),
        "markov_blanket": None if blanket is None else _split(blanket) * (blanket != "empty"),
        "n_graphs": int(kind.split()[3]) if is_vote else None,
        "seconds": old.get("seconds"),
        "n_resamples": old.get("resamples"),
        "resampling_seconds": old.get("resampling_seconds"),
    }


def _upgrade_sampler(old: Mapping[str, Any]) -> dict[str, Any]:
    sources = {"given": SamplerSource.GIVEN, "given by name": SamplerSource.NAMED}
    scores = ("energy_score", "energy_score_of_independence")
    return {
        "name": old["name"],
        "source": sources.get(old["source"], SamplerSource.CHOSEN),
        **{name: old[name] for name in scores},
        # The numbers behind the decision were not kept.
        "decision": None,
    }


def _split(names: str | None) -> list[str]:
    return names.split(", ") if names else []
