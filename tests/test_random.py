import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import dsage
from dsage._random import Streams, one_seed
from dsage.graphs import compare_graphs, random_dag, random_linear_gaussian
from dsage.samplers import Gaussian, Marginal, choose_sampler, evaluate
from dsage.structure import search_graph, stability


def test_same_purpose_and_keys_give_the_same_stream_in_any_order():
    one, other = Streams(7), Streams(7)
    first = one("noise", 1, 2).random(5)
    other("orderings", 4).random(100)
    np.testing.assert_array_equal(other("noise", 1, 2).random(5), first)


def test_streams_differ_by_seed_purpose_and_key():
    draws = [
        Streams(0)("a", 1).random(),
        Streams(1)("a", 1).random(),
        Streams(0)("b", 1).random(),
        Streams(0)("a", 2).random(),
        Streams(0)("a").random(),
    ]
    assert len(set(draws)) == len(draws)


def test_a_generator_is_advanced_so_two_uses_differ_but_replay():
    generator = np.random.default_rng(3)
    one, other = Streams(generator)("a").random(), Streams(generator)("a").random()
    assert one != other
    assert Streams(np.random.default_rng(3))("a").random() == one


def test_none_takes_fresh_entropy():
    assert Streams()("a").random() != Streams()("a").random()


@pytest.mark.parametrize("random_state", ["0", 1.5, True, np.random.RandomState(0)])
def test_random_state_of_another_type_is_refused(random_state):
    with pytest.raises(TypeError, match="random_state must be an int, a numpy Generator or None"):
        Streams(random_state)


def test_negative_seed_is_refused():
    with pytest.raises(ValueError, match="random_state must be non-negative; got -1"):
        Streams(-1)


@pytest.mark.parametrize("rng", [5, np.int64(5), None])
def test_rng_is_another_name_of_random_state(rng):
    assert one_seed(None, rng) == rng
    assert one_seed(3, None) == 3
    assert one_seed(0, 5, default=0) == 5


def test_rng_takes_what_numpy_makes_generators_of():
    sequence = np.random.SeedSequence(4)
    made = [
        one_seed(None, each) for each in (sequence, np.random.PCG64(4), np.random.default_rng(4))
    ]
    assert len({Streams(each).entropy for each in made}) == 1


@pytest.mark.parametrize("rng", ["x", True, 0.5])
def test_other_kinds_of_rng_are_refused(rng):
    with pytest.raises(TypeError, match="rng must be an int, a numpy Generator"):
        one_seed(None, rng)


X = np.random.default_rng(0).normal(size=(60, 3))
GRAPH = random_dag(3, 1, random_state=0)


@pytest.mark.parametrize(
    "call",
    [
        lambda **seed: dsage.explain(
            LinearRegression().fit(X, X[:, 0]), X, X[:, 0], X, X[:, 0], graph=None, progress=False,
            sampler="gaussian", sampler_check=False, n_orderings=2, exact="never", **seed,
        ).choices.run.random_state,
        lambda **seed: dsage.learn_graph(X, **seed).edges,
        lambda **seed: search_graph(X, **seed).graph.edges,
        lambda **seed: stability(X, 2, **seed).graphs[0].edges,
        lambda **seed: choose_sampler(X, [Marginal(), Gaussian()], seconds=0.1, **seed).name,
        lambda **seed: evaluate(Gaussian().fit(X), X, n_coalitions=2, n_draws=2, **seed).score,
        lambda **seed: random_dag(6, 2, **seed).edges,
        lambda **seed: random_linear_gaussian(GRAPH, **seed).sample(2, random_state=0).sum().sum(),
        lambda **seed: compare_graphs(GRAPH, GRAPH, "X1", 20, **seed).n_queries,
    ],
    ids=["explain", "learn_graph", "search_graph", "stability", "choose_sampler", "evaluate",
         "random_dag", "random_linear_gaussian", "compare_graphs"],
)  # fmt: skip
def test_public_functions_take_rng_or_random_state(call):
    assert call(rng=7) == call(random_state=7)
    with pytest.raises(TypeError, match="rng must be left out if random_state is given; got 7"):
        call(rng=7, random_state=8)
