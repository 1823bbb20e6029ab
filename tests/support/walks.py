"""Sigma-separation by its definition on walks (Forré & Mooij 2018; Bongers et al. 2021).

A walk between two nodes is sigma-open given C when every collider on it is in C, and every other
inner node is outside C or points, along the walk, only to nodes of its own strongly connected
component. (For walks, "in C" and "an ancestor of C" are equivalent for colliders.) Without cycles
this is m-separation, and without bidirected edges too, d-separation. The search goes over (node,
how the walk arrived), and knows nothing of acyclifications or bit rows.
"""

import networkx as nx


def steps(graph):
    """Every way to cross an edge: from, to, arrowhead at from, arrowhead at to."""
    for tail, head in graph.edges:
        yield tail, head, False, True
        yield head, tail, True, False
    for one, other in graph.bidirected:
        yield one, other, True, True
        yield other, one, True, True


def sigma_connected(graph, start, end, given):
    crossings = {name: [] for name in graph.names}
    for step in steps(graph):
        crossings[step[0]].append(step)
    directed = nx.DiGraph(list(graph.edges))
    directed.add_nodes_from(graph.names)
    component = {}
    for part in nx.strongly_connected_components(directed):
        component.update(dict.fromkeys(part, frozenset(part)))

    def open_at(node, came_from, head_in, head_out, goes_to):
        if head_in and head_out:
            return node in given
        if node not in given:
            return True
        # A known non-collider blocks unless what it points to, on the walk, shares its component.
        pointed = [other for head, other in ((head_in, came_from), (head_out, goes_to)) if not head]
        return all(other in component[node] for other in pointed)

    waiting = list(crossings[start])
    seen = set(waiting)
    while waiting:
        came_from, node, _, head_in = waiting.pop()
        if node == end:
            return True
        for step in crossings[node]:
            _, goes_to, head_out, _ = step
            if step not in seen and open_at(node, came_from, head_in, head_out, goes_to):
                seen.add(step)
                waiting.append(step)
    return False
