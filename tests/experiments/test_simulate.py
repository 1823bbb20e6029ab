"""Simulated data and questions."""

import numpy as np
import pytest

from dsage.datasets import paper_graph
from dsage.structure import Moments
from experiments import simulate
from experiments.simulate import Questions, simulate_moments
from experiments.store import seed_of


def test_moments_of_chunks_equal_those_of_all_rows(monkeypatch):
    monkeypatch.setattr(simulate, "ROWS_AT_ONCE", 40)
    model = paper_graph("dag_s(2)")
    moments, seconds = simulate_moments(model, 100, seed=7)
    chunks = [
        model.sample(size, random_state=seed)
        for size, seed in ((40, 7), (40, seed_of(7, 40)), (20, seed_of(7, 80)))
    ]
    whole = Moments.from_array(np.concatenate(chunks), model.graph.names)
    assert moments.n_rows == 100
    np.testing.assert_allclose(moments.covariance, whole.covariance)
    assert seconds > 0


def test_the_first_chunk_has_the_given_seed():
    model = paper_graph("dag_s(2)")
    expected = Moments.from_frame(model.sample(50, random_state=3))
    np.testing.assert_array_equal(simulate_moments(model, 50, 3)[0].scatter, expected.scatter)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="n_rows must be at least 1; got 0"):
        simulate_moments(paper_graph("dag_s(2)"), 0, 3)


def test_answers_equal_those_of_single_questions():
    graph, target = paper_graph("dag_s(3)").graph, paper_graph("dag_s(3)").target
    questions = Questions.draw(9, 4, seed=1)
    features = [name for name in graph.names if name != target]
    expected = [
        [
            graph.is_separated(features[j], target, given=[features[i] for i in ordering[:k]])
            for k, j in enumerate(ordering)
        ]
        for ordering in questions.orderings
    ]
    assert questions.answers(graph.oracle(target)).tolist() == expected
    assert len(questions.first(2)) == 18
