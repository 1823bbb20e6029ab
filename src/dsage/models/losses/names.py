"""Names that other libraries give to losses and metrics, and the losses that they mean here."""

from __future__ import annotations

from dsage._check import Setting, Text, refusal, warn
from dsage.models.losses.registry import LOSSES

_WHOLE = "It is a number of the whole set, not a mean over rows, so no row has its own. Choose "
_OF_CLASSES = Text(
    [
        _WHOLE,
        Setting("loss", "brier"),
        " or ",
        Setting("loss", "cross_entropy"),
        ", which also reward a good ranking",
    ]
)
_BY_WEIGHT = Text(
    [
        "It weighs rows by their class. Choose ",
        Setting("loss", "zero_one"),
        " and pass the weights with ",
        Setting("sample_weight"),
    ]
)
_OF_LABELS = Text(
    [
        "It is a ratio of counts of the whole set, not a mean over rows. Choose ",
        Setting("loss", "zero_one"),
        ", or ",
        Setting("loss", "brier"),
    ]
)
_OF_NUMBERS = Text(
    [
        "It is not a mean over rows. Choose ",
        Setting("loss", "absolute_error"),
        " or ",
        Setting("loss", "squared_error"),
    ]
)
_OF_PERCENT = Text(
    [
        "Pass a function, such as lambda y, p: abs(y - p) / abs(y), with ",
        Setting("loss"),
    ]
)
_COX = (
    "In the partial likelihood, the loss of a row depends on the predictions of all rows at risk:"
    " use dsage.models.cox_likelihood(y_train, log_risk), which holds the baseline hazard fixed"
)
_IPCW = (
    "The weights need the censored times of training rows: make the loss with"
    " dsage.models.ipcw_brier(horizon, y_train)"
)
_CONCORDANCE = (
    "It is a number of all pairs of rows, not a mean over rows: use"
    " dsage.models.ipcw_brier(horizon, y_train), or dsage.models.cox_likelihood(y_train, log_risk)"
)

_REFUSED: dict[str, str | Text] = {
    **dict.fromkeys(
        ("auc", "roc_auc", "average_precision", "pr_auc", "gini", "ndcg", "map"), _OF_CLASSES
    ),
    "balanced_accuracy": _BY_WEIGHT,
    **dict.fromkeys(
        (
            "f1",
            "precision",
            "recall",
            "jaccard",
            "matthews_corrcoef",
            "top_k_accuracy",
            "positive_likelihood_ratio",
            "neg_negative_likelihood_ratio",
        ),
        _OF_LABELS,
    ),
    **dict.fromkeys(
        ("max_error", "neg_max_error", "neg_median_absolute_error", "median_absolute_error"),
        _OF_NUMBERS,
    ),
    **dict.fromkeys(
        ("mape", "mean_absolute_percentage_error", "neg_mean_absolute_percentage_error"),
        _OF_PERCENT,
    ),
    **dict.fromkeys(("cox", "cox_partial_likelihood", "survival:cox", "cox_likelihood"), _COX),
    "ipcw_brier": _IPCW,
    **dict.fromkeys(("c_index", "concordance_index"), _CONCORDANCE),
}
# Variants such as "roc_auc_ovr" and "f1_macro" share the reason.
_ENDINGS = (
    "_ovr", "_ovo", "_ovr_weighted", "_ovo_weighted", "_macro", "_micro", "_samples", "_weighted",
)  # fmt: skip


def understand(name: str) -> str:
    """Return our name for a loss that another library names; unknown names unchanged.

    If a metric is not quite the loss, such as R2, a warning explains the difference. A metric that
    is not a mean over rows, such as the area under a curve, is refused.

    Examples
    --------
    >>> understand("neg_mean_squared_error"), understand("logloss"), understand("squared")
    ('squared_error', 'cross_entropy', 'squared')
    >>> understand("concordance_index")
    Traceback (most recent call last):
    ValueError: loss must be a mean over rows; got 'concordance_index'. It is a number of all pairs
    of rows, not a mean over rows: use dsage.models.ipcw_brier(horizon, y_train), or
    dsage.models.cox_likelihood(y_train, log_risk).
    """
    for known in LOSSES:
        traits = LOSSES.traits(known)
        if name in traits["synonyms"]:
            if note := traits["notes"].get(name):
                warn(Text([f"{name} is explained by ", Setting("loss", known), f": {note}."]))
            return known
    stem = next((name.removesuffix(end) for end in _ENDINGS if name.endswith(end)), name)
    if reason := _REFUSED.get(stem):
        raise refusal("loss", "a mean over rows", name, reason)
    return name
