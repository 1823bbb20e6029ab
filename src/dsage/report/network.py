"""The graph of a report: what is drawn where, and what is said about it."""

from __future__ import annotations

from dsage.graphs import Graph
from dsage.graphs.layout import layered
from dsage.report.words import counted, listed, named, percent
from dsage.result.record import Record

# More nodes than this make no picture that can be read.
MOST_NODES = 60
_WEAK = 0.5
_ARROW, _BOTH = "\N{RIGHTWARDS ARROW}", "\N{LEFT RIGHT ARROW}"

Strength = dict[tuple[str, str], tuple[float, float]]


def network(record: Record) -> dict[str, object]:
    """Return nodes with places and roles, edges with their ways, and sentences."""
    graph = record.graph
    if graph is None:
        text = "No graph was used: every coalition was evaluated as it is."
        return {"sentences": [text], "nodes": [], "edges": []}
    blanket = _blanket(record)
    drawn = _visible(graph, record.target, blanket)
    sentences = _sentences(record, blanket)
    if len(drawn) < len(graph):
        sentences.append(
            f"The picture shows {len(drawn)} of {len(graph)} nodes: {named(record.target)}, its "
            "Markov blanket, and what is next to these as far as there is room."
        )
    sentences.append("An arrow is no proof of a cause: data alone leave some directions open.")
    drawing = layered(drawn)
    player = _players(record)
    nodes = [
        {
            "name": name,
            "x": x,
            "y": -y,
            "role": _role(name, record.target, blanket),
            "feature": player.get(name),
        }
        for name, (x, y) in drawing.places.items()
    ]
    return {
        "sentences": sentences,
        "nodes": nodes,
        "edges": _edges(record, drawn, drawing.routes, drawing.places),
        "has_strength": record.edge_strength is not None,
    }


def shaky(record: Record) -> list[tuple[str, str]]:
    """Return the edges at the target and its blanket that few resamples have, in any direction."""
    if record.graph is None or record.edge_strength is None:
        return []
    near = {record.target, *_blanket(record)}
    strength = _strength(record)
    return [
        edge
        for edge in record.graph.edges
        if near.issuperset(edge) and strength.get(edge, (0.0, 0.0))[1] < _WEAK
    ]


def _blanket(record: Record) -> tuple[str, ...]:
    graph = record.graph
    return (
        () if graph is None or record.target not in graph else graph.markov_blanket(record.target)
    )


def _visible(graph: Graph, target: str, blanket: tuple[str, ...]) -> Graph:
    """Return the graph, or what of it is near the target where it is too large to read."""
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


def _role(name: str, target: str, blanket: tuple[str, ...]) -> str:
    return "target" if name == target else "blanket" if name in blanket else "other"


def _players(record: Record) -> dict[str, str]:
    """Return for each node what it is explained as: itself, or its group."""
    player = {name: name for name in record.feature_names}
    for group, members in (record.groups or {}).items():
        player |= dict.fromkeys(members, group)
    return player


def _strength(record: Record) -> Strength:
    frame = record.edge_strength
    if frame is None:
        return {}
    strength: Strength = {}
    for line in frame.to_dict("records"):
        shares = float(line["share"]), float(line["share_either"])
        strength[str(line["from"]), str(line["to"])] = shares
        # Only ever found the other way round: no share of its own, but one of either.
        strength.setdefault((str(line["to"]), str(line["from"])), (0.0, shares[1]))
    return strength


def _edges(
    record: Record,
    drawn: Graph,
    routes: dict[tuple[str, str], tuple[tuple[float, float], ...]],
    places: dict[str, tuple[float, float]],
) -> list[dict[str, object]]:
    strength = _strength(record)
    edges: list[dict[str, object]] = []
    for tail, head in drawn.edges:
        share, either = strength.get((tail, head), (0.0, 0.0))
        words = []
        if record.edge_strength is not None:
            words.append(
                f"In {percent(share)} of the resamples, {percent(either)} in either direction"
            )
        edges.append(
            {
                "from": tail,
                "to": head,
                "points": [(x, -y) for x, y in routes[tail, head]],
                "both": False,
                "strength": either if record.edge_strength is not None else None,
                "title": f"{named(tail)} {_ARROW} {named(head)}",
                "words": words,
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


def _sentences(record: Record, blanket: tuple[str, ...]) -> list[str]:
    graph, target = record.graph, named(record.target)
    if graph is None:
        return []
    n_edges = len(graph.edges) + len(graph.bidirected)
    sentences = [f"The graph has {counted(len(graph), 'node')} and {counted(n_edges, 'edge')}."]
    if record.target not in graph:
        return sentences
    if not blanket:
        sentences.append(f"Nothing in it is connected to {target}: it separates every feature.")
    else:
        sentences.append(
            f"The Markov blanket of {target} is {listed(list(blanket), 8)}. Given "
            f"{'it' if len(blanket) == 1 else 'these'}, nothing else tells about {target}, if the "
            "graph is true."
        )
    return sentences
