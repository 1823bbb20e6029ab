"""From a flow along edges to plain data: every number and every sentence of its report."""

from __future__ import annotations

import base64
from typing import Any, cast

import pandas as pd

from dsage.report.words import count, counted, duration, named, number, percent
from dsage.result.flow import FlowExplanation
from dsage.result.pictures import flow_picture
from dsage.result.run_info import plain

_CONFIDENCE = 0.95
_KINDS = {"source": "from a source", "edge": "between columns", "model": "to the model"}
_PARTS = {
    "own": "starts here",
    "direct": "of it straight to the model",
    "indirect": "of it to other columns first",
    "through": "passes through",
}
_MEANING = {
    "noise": "The part of a column that its causes do not determine. The noises of a row become "
    "known one column after the other, in all orders.",
    "do": "A feature is set to its value in the row, whatever its causes are, one feature after the"
    " other, in all orders. The flow that starts at a feature is its causal SAGE value.",
}


def flow_report_data(explanation: FlowExplanation) -> dict[str, Any]:
    """Return the content of a report of a flow as data that JSON can hold.

    Parameters
    ----------
    explanation : FlowExplanation
        The result of :func:`dsage.explain_flow`.

    Returns
    -------
    dict
        Strings, numbers, booleans, None, and lists and dictionaries of them.
    """
    picture = flow_picture(explanation)
    data = {
        "title": f"Where the performance of a model of {explanation.target} comes from",
        "subtitle": " \N{MIDDLE DOT} ".join(
            [
                explanation.model,
                counted(explanation.n_rows, "row"),
                explanation.loss.replace("_", " "),
                "flow along the edges of a causal graph",
            ]
        ),
        "headline": _headline(explanation),
        "figures": _figures(explanation),
        "cautions": [
            {"kind": "note", "title": "Warning of the run", "text": text, "advice": ""}
            for text in explanation.warnings
        ],
        "picture": None if picture is None else base64.b64encode(picture).decode("ascii"),
        "edges_text": [
            "The width of an edge is its value; blue edges reduce the risk, red ones increase it.",
            "Whatever flows into a column flows out of it.",
            "The flow that arrives at the model adds up to the reduction of the risk.",
        ],
        "tables": {
            "edges": _edges(explanation),
            "nodes": _nodes(explanation),
            "mechanisms": _mechanisms(explanation.mechanisms),
        },
        "meaning": _meaning(explanation),
        "choices": _choices(explanation),
    }
    return cast("dict[str, Any]", plain(data))


def _headline(explanation: FlowExplanation) -> list[str]:
    """Return the result in sentences."""
    frame = explanation.to_frame()
    own = frame[frame["kind"] == "source"].iloc[0]
    last = frame[frame["kind"] == "model"].iloc[0]
    whole = number(explanation.reduction)
    start = "the noise of" if explanation.sources == "noise" else "setting"
    begins = f"The largest source is {start} {named(own['target'])}, with {number(own['value'])}."
    ends = f"Most reaches the model through {named(last['source'])}: {number(last['value'])}."
    return [f"The model reduces the risk by {whole}.", begins, ends]


def _figures(explanation: FlowExplanation) -> list[dict[str, str]]:
    estimate = explanation.estimate
    n_edges = len(explanation.graph.edges)
    entries = (
        ("risk without features", number(estimate.base_risk), "columns drawn from the graph"),
        ("risk of the model", number(estimate.risk), counted(explanation.n_rows, "row")),
        ("graph", counted(n_edges, "edge"), counted(len(explanation.graph), "node")),
        ("orderings", count(estimate.n_orderings), f"{count(estimate.n_predicted)} predictions"),
        ("time", duration(estimate.seconds), f"seed {explanation.seed}"),
    )
    return [{"label": label, "figure": figure, "note": note} for label, figure, note in entries]


def _edges(explanation: FlowExplanation) -> dict[str, Any]:
    """Return one line per edge."""
    lines = [
        [
            f"{line.source} \N{RIGHTWARDS ARROW} {line.target}",
            _KINDS[str(line.kind)],
            *_numbers(line),
            percent(cast("float", line.share)),
        ]
        for line in explanation.to_frame(_CONFIDENCE).itertuples(index=False)
    ]
    interval = f"{percent(_CONFIDENCE)} interval"
    return {
        "caption": "The flow along each edge. Intervals are for the population.",
        "columns": ["Edge", "Kind", "Value", interval, "Error: computing", "Error: rows", "Share"],
        "words": [1],
        "lines": lines,
    }


def _nodes(explanation: FlowExplanation) -> dict[str, Any]:
    """Return one line per column and part."""
    lines = [
        [str(line.node), _PARTS[str(line.part)], *_numbers(line)]
        for line in explanation.node_frame(_CONFIDENCE).itertuples(index=False)
    ]
    interval = f"{percent(_CONFIDENCE)} interval"
    return {
        "caption": "The flow out of each column.",
        "columns": ["Column", "Part", "Value", interval, "Error: computing", "Error: rows"],
        "words": [1],
        "lines": lines,
    }


def _numbers(line: Any) -> list[str]:  # noqa: ANN401
    lower, upper = float(line.lower_total), float(line.upper_total)
    return [
        number(float(line.value)),
        f"{number(lower)} to {number(upper)}",
        number(float(line.se)),
        number(float(line.se_rows)),
    ]


def _mechanisms(frame: pd.DataFrame) -> dict[str, Any]:
    lines = [
        [
            str(line.node),
            str(line.parents) or "none",
            str(line.kind),
            percent(cast("float", line.explained)) if line.parents else "",
        ]
        for line in frame.itertuples(index=False)
    ]
    return {
        "caption": "How each column depends on its causes: the share of its variance, or of its "
        "deviance, that they explain.",
        "columns": ["Column", "Causes", "Kind", "Explained"],
        "words": [1, 2],
        "lines": lines,
    }


def _meaning(explanation: FlowExplanation) -> list[dict[str, str]]:
    """Return what the terms mean, and the assumptions."""
    turn = (
        "A column acts on the model before it acts on other columns."
        if explanation.model_first
        else "Whether a column acts on the model or on other columns first is random."
    )
    source = "Noise" if explanation.sources == "noise" else "Setting a feature"
    return [
        {"term": source, "text": _MEANING[explanation.sources]},
        {
            "term": "Flow",
            "text": "A column that changes sends its value to its effects and to the model. The "
            f"reduction of the loss is credited to every edge on the way. {turn}",
        },
        {
            "term": "The graph must be correct",
            "text": "All edges and their directions must be correct, and there must be no hidden "
            "common causes. Data reveal little about this, and errors and intervals do not "
            "include it.",
        },
        {
            "term": "The mechanisms must be correct",
            "text": "The effects of several causes on a column must add up, and the noise of a "
            "number must have the same spread everywhere.",
        },
    ]


def _choices(explanation: FlowExplanation) -> list[dict[str, Any]]:
    estimate = explanation.estimate
    lines = {
        "model": explanation.model,
        "loss": explanation.loss,
        "target": explanation.target,
        "sources": explanation.sources,
        "evaluation rows": count(explanation.n_rows),
        "pairs of passes": count(estimate.n_pairs),
        "stopped because": str(estimate.reason),
        "seed": explanation.seed,
    }
    made = [{"name": name, "value": value} for name, value in lines.items()]
    edges = [{"name": tail, "value": f"acts on {head}"} for tail, head in explanation.graph.edges]
    return [{"section": "Run", "lines": made}, {"section": "Graph", "lines": edges}]
