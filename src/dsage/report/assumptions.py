"""The assumptions behind the values, and what this run shows about them."""

from __future__ import annotations

from dsage.report.causal import causal_assumptions
from dsage.report.evidence import gain_over_marginal
from dsage.report.network import shaky
from dsage.report.summary import Summary
from dsage.report.words import counted, listed, percent

# Whether the run found no evidence against an assumption, found some, could not decide, did not
# test it, or does not need it. No assumption is ever proved.
_FOR, _AGAINST, _OPEN, _SILENT, _UNNEEDED = "for", "against", "open", "silent", "unneeded"
_NOTHING = "Not needed: the graph separates no feature here, so nothing was skipped."


def assumptions(summary: Summary) -> list[dict[str, str]]:
    """Return each assumption: its name, its meaning, what happens if it fails, and its status."""
    if summary.is_causal:
        found = [
            _assumption(name, says, fails, (status, here))
            for name, says, fails, status, here in causal_assumptions(summary)
        ]
        return [*found, _draws(summary), _represent()]
    return [
        _assumption(
            "The model is close to the best one",
            "Skipping is exact for the best possible model (for squared error the conditional mean "
            "of the target, for cross entropy the class probabilities).",
            "If the model uses a feature that adds no information, the graph still sets its "
            "surplus to zero. The value with skipping then differs from SAGE.",
            _model(summary),
        ),
        _assumption(
            "The graph is correct (Markov property and faithfulness)",
            "Variables that the graph separates are independent in the data. Learning a graph also "
            "needs the converse: independent variables are separated, and no effects cancel out.",
            "A missing edge sets surpluses to zero that are not zero, so values become too small. "
            "A superfluous edge only costs time.",
            _graph(summary),
        ),
        _assumption(
            "No hidden common causes (causal sufficiency)",
            "No unobserved variable causes several of the observed ones, unless the graph shows it "
            "as a bidirected edge.",
            "Learned edges then represent the hidden cause, and some separations may be false. "
            "Directions must not be read as causal.",
            _sufficiency(summary),
        ),
        _draws(summary),
        _represent(),
    ]


def _draws(summary: Summary) -> dict[str, str]:
    given = "their causes" if summary.is_causal else "known ones"
    return _assumption(
        "The sampler fits",
        f"Draws of unknown features given {given} follow the distribution in the population.",
        "The model is evaluated on unrealistic rows, and dependent features get credit that "
        "belongs to others.",
        _sampler(summary),
    )


def _represent() -> dict[str, str]:
    return _assumption(
        "The rows represent the population",
        "Evaluation rows are independent of each other and of the training rows.",
        "On rows that it was trained on, the model looks better than it is. With dependent "
        "rows the intervals for the population are too short.",
        (_SILENT, "Not tested: it depends on how the rows were collected."),
    )


def _assumption(name: str, says: str, fails: str, found: tuple[str, str]) -> dict[str, str]:
    return {"name": name, "says": says, "fails": fails, "status": found[0], "here": found[1]}


def _model(summary: Summary) -> tuple[str, str]:
    if not summary.skips:
        return _UNNEEDED, "Not needed: nothing was skipped."
    if summary.explanation.share_skipped == 0:
        return _UNNEEDED, f"{_NOTHING} Not tested."
    if not summary.audited:
        return _SILENT, "Not tested: there was no audit."
    if summary.changed:
        text = f"The audit found differences that matter, for {listed(summary.changed)}."
        if summary.corrected:
            return (
                _UNNEEDED,
                f"{text} The values are corrected for them, so they do not need this assumption.",
            )
        return _AGAINST, f"{text} Either the model or the graph is wrong."
    if summary.undecided:
        names = listed(summary.undecided)
        return (
            _OPEN,
            f"The audit found no difference that matters, but could not rule one out for {names}.",
        )
    return _FOR, "The audit ruled out differences that matter. It cannot show more than that."


def _graph(summary: Summary) -> tuple[str, str]:
    if not summary.skips:
        return _UNNEEDED, "Not needed: no graph was used."
    if summary.explanation.share_skipped == 0:
        return _UNNEEDED, f"{_NOTHING} Not tested."
    weak = shaky(summary.explanation)
    doubt = ""
    if weak:
        arrows = [f"{tail} \N{RIGHTWARDS ARROW} {head}" for tail, head in weak]
        doubt = (
            f" Found in fewer than half of the resamples, in either direction: {listed(arrows)}."
        )
    elif summary.explanation.edge_strength is not None:
        doubt = " Each edge within the Markov blanket was found in at least half of the resamples."
    status, text = _model(summary)
    if weak and status == _FOR:
        status = _OPEN
    return status, text + doubt


def _sufficiency(summary: Summary) -> tuple[str, str]:
    graph = summary.explanation.graph
    if graph is None or summary.has_unused_graph:
        return _UNNEEDED, "Not needed: no graph was used."
    hidden = len(graph.bidirected)
    if hidden:
        return (
            _SILENT,
            f"The graph allows for hidden common causes: {counted(hidden, 'bidirected edge')}.",
        )
    return _SILENT, "The data cannot show it. The audit would reveal false separations that matter."


def _sampler(summary: Summary) -> tuple[str, str]:
    gain, check = gain_over_marginal(summary), summary.check
    if gain is not None and gain <= 0:
        return (
            _AGAINST,
            "Its held-out score is no better than that of draws that ignore the known features.",
        )
    if check is not None:
        others = listed(check.others)
        if summary.depends:
            return _AGAINST, f"{others} would change the value of {listed(summary.depends)}."
        text = f"{others} would change no value by significantly more than its other errors."
        return _FOR, f"{text} It cannot show more than that."
    if gain is None:
        return _SILENT, "The sampler was not compared with draws that ignore the known features."
    better = f"Its score is {percent(gain)} better than ignoring the known features"
    return _SILENT, f"{better}. Whether it fits perfectly was not tested."
