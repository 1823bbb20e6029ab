"""Marginal SAGE values have no graph unless one is asked for."""

import warnings

import numpy as np
import pytest

import dsage
from dsage.samplers import Marginal
from dsage.structure.info import GraphSource
from explain_case import QUIET


@pytest.mark.parametrize("sampler", ["marginal", Marginal()])
def test_a_marginal_sampler_gets_no_graph_and_the_record_says_why(model, rows, sampler):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dsage.explain(model, *rows, sampler=sampler, n_orderings=8, **QUIET)
    assert found.graph is None
    assert found.choices.graph.source is GraphSource.NONE
    assert "do not vanish" in found.choices.graph.why
    assert "do not vanish" in str(found.choices)
    plain = dsage.explain(model, *rows, sampler=sampler, graph=None, n_orderings=8, **QUIET)
    np.testing.assert_array_equal(found.values, plain.values)
    assert plain.choices.graph.why is None


def test_a_graph_that_is_asked_for_is_used_with_a_warning(model, rows):
    options = {"sampler": "marginal", "audit": False, "n_orderings": 8, **QUIET}
    with pytest.warns(UserWarning, match="marginal SAGE values do not vanish"):
        found = dsage.explain(model, *rows, graph="learn", n_resamples=0, **options)
    assert found.graph is not None
    graph = dsage.Graph(["a", "b", "c", "d", "y"], [("c", "y")])
    with pytest.warns(UserWarning, match="combined with a marginal sampler"):
        dsage.explain(model, *rows, graph=graph, **options)


def test_other_samplers_get_a_learned_graph_by_default(model, rows):
    found = dsage.explain(model, *rows, sampler="gaussian", n_resamples=0, n_orderings=8, **QUIET)
    assert found.choices.graph.source is GraphSource.LEARNED
