"""The columns of the data in a report: what they are, and how much of them is missing."""

from __future__ import annotations

from dsage.report.summary import Summary
from dsage.report.words import counted, listed, named, percent


def data_columns(summary: Summary) -> dict[str, object]:
    """Return the rows and the columns of the run in sentences and in a table."""
    data = summary.explanation.choices.data
    train, test = (counted(each, "row") for each in (data.n_rows_train, data.n_rows_evaluation))
    sentences = [f"The sampler was fitted to {train}, and the model evaluated on {test}."]
    if not data.kinds:
        return {"sentences": sentences, "columns": [], "lines": []}
    shares = {name: share for name, share in data.share_missing.items() if share}
    if shares:
        most = max(shares, key=shares.__getitem__)
        having = listed(sorted(shares, key=shares.__getitem__, reverse=True), 5)
        verb = "has" if len(shares) == 1 else "have"
        sentences.append(
            f"{having} {verb} missing values, {named(most)} in {percent(shares[most])} of the rows."
            " That a value is missing is known or drawn like any other value."
        )
    else:
        sentences.append("No values are missing.")
    lines = [
        [name, str(kind), percent(shares[name]) if name in shares else "none"]
        for name, kind in data.kinds.items()
    ]
    return {"sentences": sentences, "columns": ["Feature", "Kind", "Missing"], "lines": lines}
