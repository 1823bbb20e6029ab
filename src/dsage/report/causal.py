"""The section of a report on causal values: what "set" means, parts, and the range over graphs."""

from __future__ import annotations

from typing import Any

from dsage.estimate.graph_range import GraphRange
from dsage.report.summary import Summary
from dsage.report.words import Scale, counted, listed


def causal(summary: Summary) -> dict[str, Any] | None:
    """Return sentences and a table on causal values; None for other values."""
    if not summary.is_causal:
        return None
    heads, lines = _table(summary)
    return {
        "terms": [{"term": term, "text": text} for term, text in _terms(summary).items()],
        "sentences": _range_sentences(summary),
        "columns": heads,
        "lines": lines,
    }


def _terms(summary: Summary) -> dict[str, str]:
    noun, target = summary.noun, summary.target
    return {
        "Set, not observed": f"When a {noun} becomes known, it is set to its value from outside: "
        "its effects change, its causes do not. Seeing a barometer fall tells you that rain is "
        "likely; moving its needle does not make it rain.",
        "What is explained": "The performance of the model, not the world: how much the model's "
        f"predictions improve when the {noun} is set and its effects change accordingly. It is not "
        f"the effect of the {noun} on {target}.",
        "Direct part": f"What the model gains because it receives the value of the {noun}, while "
        "all others stay as they are.",
        "Indirect part": f"What it gains because setting the {noun} changes others that the model "
        "does not know yet. The two parts add up to the value.",
        "Assumptions": "The directions of the edges of the graph, that no hidden common "
        "cause is missing in it, and that the sampler draws each variable given its causes as in "
        "reality. Data cannot confirm the first two.",
    }


def _table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    found, frame = summary.explanation.range_graph, summary.frame
    scale = Scale([*frame["value"], *frame["direct"], *frame["indirect"]])
    heads = [summary.noun.capitalize(), "Value", "Direct", "Indirect"]
    if found is not None:
        heads.append("Over graphs")
    lines = []
    for line in summary.lines:
        cells = [str(line["feature"]), scale(line["value"])]
        for part in ("direct", "indirect"):
            cells.append(f"{scale(line[part])} \N{PLUS-MINUS SIGN} {scale(line[f'se_{part}'])}")
        if found is not None:
            cells.append(f"{scale(line['lowest_graph'])} to {scale(line['highest_graph'])}")
        lines.append(cells)
    return heads, lines


def _range_sentences(summary: Summary) -> list[str]:
    found = summary.explanation.range_graph
    if found is None:
        return ["The graph that was passed was used as it is; the values are for this graph only."]
    n_resampled = sum(found.are_resampled)
    n_members = len(found.graphs) - n_resampled
    sentences = []
    if n_members:
        size = "" if found.n_members is None else f" of {found.n_members:,}"
        others = counted(n_members, "other graph")
        sentences.append(
            f"The data do not determine the directions of all edges. The values were computed for "
            f"{others} with other directions{size}, which fit the data equally well."
        )
    if n_resampled:
        graphs = counted(n_resampled, "graph")
        sentences.append(f"They were also computed for {graphs} learned from resampled rows.")
    return [*sentences, *_dependence(found)]


def _dependence(found: GraphRange) -> list[str]:
    signs, ranks = found.changes_sign(), found.changes_rank()
    sentences = []
    if signs:
        sentences.append(f"The sign of the value of {listed(signs)} depends on the graph.")
    if ranks:
        pairs = [f"{one} or {other}" for one, other in ranks]
        sentences.append(f"Which of these is larger depends on the graph: {listed(pairs, 5)}.")
    if not sentences:
        sentences.append("Neither the sign nor the rank of a value depends on the graph.")
    return sentences


def causal_cautions(summary: Summary) -> list[dict[str, str]]:
    """Return a warning if the order of the features depends on the graph."""
    found = summary.explanation.range_graph
    if found is None or not (found.changes_sign() or found.changes_rank()):
        return []
    return [
        {
            "kind": "warning",
            "title": "The result depends on directions that the data do not determine",
            "text": " ".join(_dependence(found)),
            "advice": "Pass tiers, required and forbidden edges: they exclude graphs.",
        }
    ]


def causal_assumptions(summary: Summary) -> list[tuple[str, str, str, str, str]]:
    """Return the assumptions on causes: name, meaning, effect of a failure, status, finding."""
    explanation = summary.explanation
    graph, found = explanation.graph, explanation.range_graph
    directions = "silent", "Not tested: the graph was used as it is."
    if found is not None:
        status = "against" if found.changes_sign() or found.changes_rank() else "open"
        directions = status, " ".join(_dependence(found))
    hidden = 0 if graph is None else len(graph.bidirected)
    sufficiency = "The data cannot show it."
    if hidden:
        sufficiency = f"The graph has {counted(hidden, 'bidirected edge')}. {sufficiency}"
    direction = "An edge goes from cause to effect: setting the cause changes the effect, not"
    no_hidden = "No unobserved variable causes several of the observed ones, unless the graph shows"
    return [
        (
            "The directions of the edges are correct",
            f"{direction} the other way round.",
            "Effects get credit that belongs to their causes. The values may be far off.",
            *directions,
        ),
        (
            "No hidden common causes (causal sufficiency)",
            f"{no_hidden} it as a bidirected edge.",
            "The dependence due to a hidden cause is mistaken for an effect between features.",
            "silent",
            sufficiency,
        ),
    ]
