"""The graph of a report: its drawing, and sentences about it."""

from __future__ import annotations

from dsage.graphs import Graph
from dsage.graphs.layout import layered
from dsage.report.words import counted, listed, named, percent
from dsage.result.explanation import Explanation

# A drawing of more nodes is not readable.
MOST_NODES = 60
_WEAK = 0.5
_ARROW, _BOTH = "\N{RIGHTWARDS ARROW}", "\N{LEFT RIGHT ARROW}"

Strength = dict[tuple[str, str], tuple[float, float]]


def network(explanation: Explanation) -> dict[str, object]:
    """Return nodes with positions and roles, edges with routes, and sentences."""
    graph = explanation.graph
    if graph is None:
        text = "No graph was used: every coalition was evaluated."
        return {"sentences": [text], "nodes": [], "edges": []}
    blanket = graph.markov_blanket(explanation.target)
    drawn = _visible(graph, explanation.target, blanket)
    sentences = _sentences(graph, named(explanation.target), blanket)
    if len(drawn) < len(graph):
        sentences.append(
            f"The drawing shows {len(drawn)} of {len(graph)} nodes: {named(explanation.target)}, "
            "its Markov blanket, and their neighbors if there is room."
        )
    sentences.append("An arrow does not prove a cause: data alone do not determine all directions.")
    drawing = layered(drawn)
    features = _features_of(explanation)
    roles = {explanation.target: "target", **dict.fromkeys(blanket, "blanket")}
    nodes = [
        {
            "name": name,
            "x": x,
            "y": -y,
            "role": roles.get(name, "other"),
            "feature": features.get(name),
        }
        for name, (x, y) in drawing.places.items()
    ]
    return {
        "sentences": sentences,
        "nodes": nodes,
        "edges": _edges(explanation, drawn, drawing.routes, drawing.places),
        "has_strength": explanation.edge_strength is not None,
    }


def shaky(explanation: Explanation) -> list[tuple[str, str]]:
    """Return the edges within target and blanket that few resamples have, in any direction."""
    if explanation.graph is None or explanation.edge_strength is None:
        return []
    near = {explanation.target, *explanation.graph.markov_blanket(explanation.target)}
    strength = _strength(explanation)
    return [
        edge
        for edge in explanation.graph.edges
        if near.issuperset(edge) and strength.get(edge, (0.0, 0.0))[1] < _WEAK
    ]


def _visible(graph: Graph, target: str, blanket: tuple[str, ...]) -> Graph:
    """Return the graph, or the neighborhood of the target if it is too large to read."""
    if len(graph) <= MOST_NODES:
        return graph
    near = {target, *blanket}
    pairs = (*graph.edges, *graph.bidirected)
    around = near | {name for pair in pairs if near & set(pair) for name in pair}
    kept = around if len(around) <= MOST_NODES else near
    names = [name for name in graph.names if name in kept]
    return Graph(
        names,
        [edge for edge in graph.edges if kept.issuperset(edge)],
        [pair for pair in graph.bidirected if kept.issuperset(pair)],
    )


def _features_of(explanation: Explanation) -> dict[str, str]:
    """Return the feature or the group of each node."""
    features = {name: name for name in explanation.feature_names}
    for group, members in (explanation.groups or {}).items():
        features |= dict.fromkeys(members, group)
    indicators = {} if explanation.graph is None else explanation.graph.indicators
    about = {name: features.get(columns[0]) for name, columns in indicators.items()}
    return {name: feature for name, feature in about.items() if feature is not None} | features


def _strength(explanation: Explanation) -> Strength:
    strength: Strength = {}
    if explanation.edge_strength is None:
        return strength
    for line in explanation.edge_strength.to_dict("records"):
        shares = float(line["share"]), float(line["share_either"])
        strength[str(line["from"]), str(line["to"])] = shares
        # An edge that was found in the other direction only has no share of its own.
        strength.setdefault((str(line["to"]), str(line["from"])), (0.0, shares[1]))
    return strength


def _edges(
    explanation: Explanation,
    drawn: Graph,
    routes: dict[tuple[str, str], tuple[tuple[float, float], ...]],
    places: dict[str, tuple[float, float]],
) -> list[dict[str, object]]:
    strength = _strength(explanation)
    edges: list[dict[str, object]] = []
    for tail, head in drawn.edges:
        share, either = strength.get((tail, head), (0.0, 0.0))
        text = f"In {percent(share)} of the resamples, {percent(either)} in either direction"
        is_known = explanation.edge_strength is not None
        edges.append(
            {
                "from": tail,
                "to": head,
                "points": [(x, -y) for x, y in routes[tail, head]],
                "both": False,
                "strength": either if is_known else None,
                "title": f"{named(tail)} {_ARROW} {named(head)}",
                "words": [text] if is_known else [],
            }
        )
    for one, other in drawn.bidirected:
        first, then = sorted((one, other), key=lambda name: places[name][0])
        edges.append(
            {
                "from": first,
                "to": then,
                "points": [(x, -y) for x, y in (places[first], places[then])],
                "both": True,
                "strength": None,
                "title": f"{named(one)} {_BOTH} {named(other)}",
                "words": ["An unobserved common cause"],
            }
        )
    return edges


def _sentences(graph: Graph, target: str, blanket: tuple[str, ...]) -> list[str]:
    n_edges = len(graph.edges) + len(graph.bidirected)
    text = f"No feature is connected to {target}: the graph separates all of them."
    if blanket:
        text = (
            f"The Markov blanket of {target} is {listed(list(blanket), 8)}. Given "
            f"{'it' if len(blanket) == 1 else 'these'}, no other feature is informative about "
            f"{target}, if the graph is correct."
        )
    size = f"The graph has {counted(len(graph), 'node')} and {counted(n_edges, 'edge')}."
    if n_indicators := len(graph.indicators):
        verb = "tells" if n_indicators == 1 else "tell"
        size += f" {counted(n_indicators, 'node')} {verb} whether values are missing."
    return [size, text]
