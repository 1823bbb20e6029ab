"""From an explanation to plain data: every number and every sentence of a report."""

from __future__ import annotations

from typing import Any, cast

from dsage.report import prose
from dsage.report.assumptions import assumptions
from dsage.report.causal import causal, causal_cautions
from dsage.report.cautions import cautions
from dsage.report.columns import data_columns
from dsage.report.errors import errors
from dsage.report.evidence import convergence, sampler
from dsage.report.features import columns, features, to_csv
from dsage.report.network import network
from dsage.report.summary import CONFIDENCE, Summary
from dsage.report.words import percent
from dsage.result.explanation import Explanation
from dsage.result.run_info import RunInfo, plain


def report_data(explanation: Explanation) -> dict[str, Any]:
    """Return the content of a report as data that JSON can hold.

    Parameters
    ----------
    explanation : Explanation
        The explanation.

    Returns
    -------
    dict
        Strings, numbers, booleans, None, and lists and dictionaries of them. NaN and infinities
        are None. The same explanation gives the same data.

    Examples
    --------
    >>> import dsage
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> X = X[["age", "bmi", "bp", "s5"]]
    >>> model = LinearRegression().fit(X[:300], y[:300])
    >>> explanation = dsage.explain(model, X[:300], y[:300], X[300:], y[300:], sampler="gaussian",
    ...                             sampler_check=False, random_state=0, progress=False)
    >>> data = report_data(explanation)
    >>> [feature["name"] for feature in data["features"]]
    ['bmi', 's5', 'bp', 'age']
    >>> data["headline"][0].startswith("bmi contributes most")
    True
    """
    summary = Summary(explanation)
    data = {
        "title": prose.title(summary),
        "subtitle": prose.subtitle(summary),
        "noun": summary.noun,
        "loss": summary.loss,
        "confidence": percent(CONFIDENCE),
        "headline": prose.headline(summary),
        "figures": prose.figures(summary),
        "cautions": [*causal_cautions(summary), *cautions(summary)],
        "columns": columns(summary),
        "features": features(summary),
        "meaning": prose.meaning(summary),
        "causal": causal(summary),
        "errors": errors(summary),
        "savings": prose.savings(summary),
        "skips": summary.skips,
        "audit": prose.audit(summary),
        "graph": network(explanation),
        "convergence": convergence(summary),
        "sampler": sampler(summary),
        "table": data_columns(summary),
        "assumptions": assumptions(summary),
        "choices": choices_of(explanation.choices),
        "csv": to_csv(summary),
    }
    return cast("dict[str, Any]", plain(data))


def choices_of(choices: RunInfo) -> list[dict[str, object]]:
    """Return the sections of all choices."""
    return [
        {
            "section": section,
            "lines": [{"name": _label(name), "value": text} for name, text in named.items()],
        }
        for section, named in choices.listing().items()
    ]


def _label(name: str) -> str:
    """Return the name of an attribute in words.

    Examples
    --------
    >>> _label("n_rows_train"), _label("is_exact")
    ('number of rows train', 'is exact')
    """
    words = f"number of {name[2:]}" if name.startswith("n_") else name
    return words.replace("_", " ")
