"""Maximal ancestral graphs of DAGs with latent nodes, by their definition."""

import itertools

import networkx as nx

ARROW_AT = {"-->": (False, True), "<--": (True, False), "<->": (True, True)}
DRAWN = {arrows: drawn for drawn, arrows in ARROW_AT.items()}


def ancestral_edges(dag, observed):
    """The edges of the MAG of a networkx DAG over some of its nodes, such as (a, "-->", b).

    Nodes are adjacent if no set of observed nodes separates them; if any does, their observed
    ancestors do (Richardson & Spirtes, 2002). An end is a tail if it is at an ancestor.
    """
    above = {node: nx.ancestors(dag, node) for node in dag}
    edges = []
    for one, other in itertools.combinations(observed, 2):
        given = ((above[one] | above[other]) & set(observed)) - {one, other}
        if not nx.is_d_separator(dag, {one}, {other}, given):
            edges.append((one, DRAWN[one not in above[other], other not in above[one]], other))
    return edges


def collider_ends(edges):
    """The ends (edge, node) of the arrows of unshielded colliders."""
    into = {}
    for number, (one, drawn, other) in enumerate(edges):
        for node, from_node, is_arrow in zip(
            (one, other), (other, one), ARROW_AT[drawn], strict=True
        ):
            if is_arrow:
                into.setdefault(node, []).append((number, from_node))
    joined = {frozenset((one, other)) for one, _, other in edges}
    return {
        (number, node)
        for node, arriving in into.items()
        for pair in itertools.combinations(arriving, 2)
        if frozenset(start for _, start in pair) not in joined
        for number, _ in pair
    }


def with_circles(edges, ends):
    """The edges with circles at the given ends, (edge, node)."""
    circled = []
    for number, (one, drawn, other) in enumerate(edges):
        left = "o" if (number, one) in ends else drawn[0]
        right = "o" if (number, other) in ends else drawn[2]
        circled.append((one, f"{left}-{right}", other))
    return circled
