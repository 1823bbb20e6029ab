import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.graphs import Graph, cpdag, random_dag
from dsage.graphs.pdag import Pdag, bits_of, members, topological_order

seeds = st.integers(0, 10_000)
any_dag = st.builds(
    lambda n_nodes, degree, seed: random_dag(n_nodes, min(degree, n_nodes - 1), random_state=seed),
    st.integers(2, 12),
    st.floats(0, 6),
    seeds,
)


def parents_of(graph):
    place = {name: at for at, name in enumerate(graph.names)}
    return [tuple(sorted(place[tail] for tail in graph.parents(head))) for head in graph.names]


def graph_of(parents):
    edges = [(str(tail), str(head)) for head, tails in enumerate(parents) for tail in tails]
    return Graph([str(node) for node in range(len(parents))], edges)


def pdag_of(n_nodes, directed=(), undirected=()):
    pdag = Pdag([0] * n_nodes, [0] * n_nodes)
    for tail, head in directed:
        pdag.parents[head] |= 1 << tail
    for one, other in undirected:
        pdag.neighbors[one] |= 1 << other
        pdag.neighbors[other] |= 1 << one
    return pdag


def test_sets_of_bits_give_their_members_in_increasing_order():
    assert list(members(0b1011)) == [0, 1, 3]
    assert bits_of([3, 0, 1]) == 0b1011
    assert list(members(0)) == []


@settings(max_examples=60, deadline=None)
@given(any_dag)
def test_class_equals_the_one_of_the_graph_with_names(graph):
    names = graph.names
    pdag = Pdag.of_class(parents_of(graph))
    wanted = cpdag(graph)
    assert wanted.directed == {
        (names[tail], names[head])
        for head, tails in enumerate(pdag.parents)
        for tail in members(tails)
    }
    assert wanted.undirected == {
        frozenset((names[one], names[other]))
        for one, others in enumerate(pdag.neighbors)
        for other in members(others)
    }


@settings(max_examples=60, deadline=None)
@given(any_dag)
def test_dag_of_a_class_belongs_to_it(graph):
    pdag = Pdag.of_class(parents_of(graph))
    parents = pdag.to_dag()
    assert Pdag.of_class(parents) == pdag
    assert graph_of(parents).is_dag
    rank = {node: place for place, node in enumerate(topological_order(parents))}
    assert all(rank[tail] < rank[head] for head, tails in enumerate(parents) for tail in tails)


def test_undirected_square_has_no_dag():
    square = pdag_of(4, undirected=[(0, 1), (1, 2), (2, 3), (3, 0)])
    assert square.to_dag() is None


def test_a_directed_cycle_has_no_dag():
    assert pdag_of(3, directed=[(0, 1), (1, 2), (2, 0)]).to_dag() is None


def test_a_direction_carries_over_to_the_edges_behind_it():
    # 2 - 1 may not become a second cause of 1, which is not joined to the first.
    assert pdag_of(3, directed=[(0, 1)], undirected=[(1, 2)]).to_dag() == [(), (0,), (1,)]


def test_children_are_the_heads_of_directed_edges_only():
    pdag = pdag_of(4, directed=[(0, 1), (0, 2)], undirected=[(2, 3)])
    assert pdag.children() == [bits_of([1, 2]), 0, 0, 0]


def test_a_copy_is_changed_without_the_original():
    pdag = pdag_of(3, directed=[(0, 1)], undirected=[(1, 2), (0, 2)])
    copied = pdag.copy()
    copied.direct(2, 1)
    assert copied == pdag_of(3, directed=[(0, 1), (2, 1)], undirected=[(0, 2)])
    copied.remove(0, 2)
    assert copied == pdag_of(3, directed=[(0, 1), (2, 1)])
    copied.remove(0, 1)
    assert copied == pdag_of(3, directed=[(2, 1)])
    assert pdag == pdag_of(3, directed=[(0, 1)], undirected=[(1, 2), (0, 2)])


def test_removing_an_edge_leaves_the_others():
    edges = list(itertools.combinations(range(4), 2))
    for edge in edges:
        for kind in ("directed", "undirected"):
            pdag = pdag_of(4, **{kind: edges})
            pdag.remove(*edge)
            assert pdag == pdag_of(4, **{kind: [other for other in edges if other != edge]})


@settings(max_examples=60, deadline=None)
@given(any_dag, st.randoms(use_true_random=False))
def test_edges_are_directed_exactly_where_some_dag_has_the_same_v_structures(graph, random):
    """Compare with a search through all directions of the undirected edges."""
    parents = parents_of(graph)
    edges = [(tail, head) for head, tails in enumerate(parents) for tail in tails]
    free = random.sample(edges, min(len(edges), 6))
    # Some of the fixed edges are turned around, so that there may be no DAG.
    fixed = [edge if random.random() < 0.8 else edge[::-1] for edge in edges if edge not in free]
    pdag = pdag_of(len(parents), fixed, free)
    options = [
        fixed + list(turned)
        for turned in itertools.product(*((edge, edge[::-1]) for edge in free))
        if _is_extension(len(parents), fixed, turned)
    ]
    found = pdag.to_dag()
    if found is None:
        assert not options
    else:
        directed = {(tail, head) for head, tails in enumerate(found) for tail in tails}
        assert directed in [set(option) for option in options]


def _is_extension(n_nodes, fixed, turned):
    """Return whether the edges are acyclic, with the v-structures of the fixed ones alone."""
    parents = [
        tuple(tail for tail, head in [*fixed, *turned] if head == node) for node in range(n_nodes)
    ]
    joined = {frozenset(edge) for edge in [*fixed, *turned]}
    return len(topological_order(parents)) == n_nodes and all(
        frozenset((one, other)) in joined or {(one, head), (other, head)} <= set(fixed)
        for head, tails in enumerate(parents)
        for one, other in itertools.combinations(tails, 2)
    )
