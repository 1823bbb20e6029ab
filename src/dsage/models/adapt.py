"""Adapters that give models of other libraries the interface of scikit-learn."""

from __future__ import annotations

from typing import Any

from dsage.models.boosters import as_booster
from dsage.models.catboost_model import as_catboost
from dsage.models.origin import file_of, remember_file
from dsage.models.statsmodels_results import as_results


def adapt(model: Any) -> Any:  # noqa: ANN401
    """Wrap native boosters and results of statsmodels; return any other model unchanged.

    No package is imported here: a model exists only if its package has been imported.
    """
    for wrap in (as_booster, as_catboost, as_results):
        wrapped = wrap(model)
        if wrapped is not model:
            file = file_of(model)
            return remember_file(wrapped, file) if file else wrapped
    return model
