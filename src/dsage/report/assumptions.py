"""What the values rest on: what it says, what happens when it fails, and what this run tells."""

from __future__ import annotations

from dsage.report.evidence import gain_over_marginal
from dsage.report.network import shaky
from dsage.report.summary import Summary
from dsage.report.words import counted, listed, percent

# Whether the run saw no harm where it looked, speaks against an assumption, is silent, or does not
# need it. None of them is proved.
_FOR, _AGAINST, _SILENT, _UNNEEDED = "for", "against", "silent", "unneeded"
_NOTHING = "Not needed: the graph separates nothing here, and nothing was skipped."


def assumptions(summary: Summary) -> list[dict[str, str]]:
    """Return each assumption: name, what it says, what if it fails, and what the run tells."""
    return [
        _assumption(
            "The model is close to the best one",
            "Skipping is exact for the model that predicts as well as the features allow (for "
            "squared error the mean of the target, for cross entropy the class probabilities).",
            "A model that uses a feature which adds nothing gets that surplus set to zero by the "
            "graph. The value with skipping then differs from SAGE.",
            _model(summary),
        ),
        _assumption(
            "The graph tells the truth (Markov property and faithfulness)",
            "What the graph separates is independent in the data. A learned graph needs the "
            "converse, too: what is independent is separated, with no effects that cancel out.",
            "An edge that is missing sets surpluses to zero that are not, so values become too "
            "small. An edge too many only costs time.",
            _graph(summary),
        ),
        _assumption(
            "No hidden common causes (causal sufficiency)",
            "No unobserved variable drives several of the observed ones, unless the graph shows it "
            "by a bidirected edge.",
            "Learned edges then stand for the hidden cause, and some separations may be false. "
            "Directions must not be read as causal.",
            _sufficiency(summary),
        ),
        _assumption(
            "The sampler fits",
            "Draws of unknown features, given known ones, are as in the population.",
            "The model is asked about rows that do not occur, and dependent features get credit "
            "that belongs to others.",
            _sampler(summary),
        ),
        _assumption(
            "The rows stand for the population",
            "Evaluation rows are independent of each other and of the training rows.",
            "Rows that the model was trained on make it look better than it is. Dependent rows "
            "make the intervals for the population too short.",
            (_SILENT, "The report cannot tell: it depends on how the rows were drawn."),
        ),
    ]


def _assumption(name: str, says: str, fails: str, told: tuple[str, str]) -> dict[str, str]:
    return {"name": name, "says": says, "fails": fails, "status": told[0], "here": told[1]}


def _model(summary: Summary) -> tuple[str, str]:
    if not summary.skips:
        return _UNNEEDED, "Not needed: nothing was skipped."
    if summary.record.share_skipped == 0:
        return _UNNEEDED, f"{_NOTHING} So it was not tested."
    if not summary.audited:
        return _SILENT, "There was no audit, so the run says nothing about it."
    if summary.changed:
        text = f"The audit finds differences that matter: {listed(summary.changed)}."
        if summary.corrected:
            return (
                _UNNEEDED,
                f"{text} The values are corrected for them, so they do not rest on it.",
            )
        return _AGAINST, f"{text} The model or the graph is at fault."
    if summary.undecided:
        told = f"but for {listed(summary.undecided)} it cannot rule one out"
        return _SILENT, f"The audit finds no difference that surely matters, {told}."
    return _FOR, "The audit rules out differences that matter. More than that it cannot show."


def _graph(summary: Summary) -> tuple[str, str]:
    if not summary.skips:
        return _UNNEEDED, "Not needed: no graph was used."
    if summary.record.share_skipped == 0:
        return _UNNEEDED, f"{_NOTHING} So it was not tested."
    weak = shaky(summary.record)
    doubt = ""
    if weak:
        arrows = [f"{tail} \N{RIGHTWARDS ARROW} {head}" for tail, head in weak]
        doubt = (
            f" Found in fewer than half of the resamples, in either direction: {listed(arrows)}."
        )
    elif summary.record.edge_strength is not None:
        doubt = " At least half of the resamples have each edge within the Markov blanket."
    status, text = _model(summary)
    if weak and status == _FOR:
        status = _SILENT
    return status, text + doubt


def _sufficiency(summary: Summary) -> tuple[str, str]:
    graph = summary.record.graph
    if graph is None:
        return _UNNEEDED, "Not needed: no graph was used."
    hidden = len(graph.bidirected)
    if hidden:
        return (
            _SILENT,
            f"The graph allows for hidden common causes: {counted(hidden, 'bidirected edge')}.",
        )
    return _SILENT, "The data cannot tell. The audit would show false separations that matter."


def _sampler(summary: Summary) -> tuple[str, str]:
    gain = gain_over_marginal(summary)
    if gain is None:
        return _SILENT, "The sampler was not scored against draws that ignore what is known."
    if gain <= 0:
        return (
            _AGAINST,
            "Its held-out score is no better than that of draws that ignore what is known.",
        )
    better = f"It uses the dependence ({percent(gain)} better than ignoring it)"
    return _SILENT, f"{better}. Whether it fits fully is not tested."
