"""From a name to a score, and what does not fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dsage.data.table import Table
from dsage.graphs import Graph
from dsage.structure import automatic
from dsage.structure.constraints import Constraints
from dsage.structure.counts import Counts
from dsage.structure.moments import Moments
from dsage.structure.scores.choose import SCORES, choose_score, graph_score
from dsage.structure.source import sufficient

N_ROWS = 50
GENERATOR = np.random.default_rng(0)
NUMBERS = pd.DataFrame(GENERATOR.lognormal(size=(N_ROWS, 3)), columns=list("abc"))
CLASSES = pd.DataFrame(GENERATOR.choice(["x", "y"], size=(N_ROWS, 3)), columns=list("abc"))
MIXED = NUMBERS.assign(c=CLASSES["c"])
EMPTY = Graph(["a", "b", "c"], [])


def value(data, *args, **options) -> float:
    return graph_score(choose_score(data, *args, **options), EMPTY)


@pytest.mark.parametrize(
    ("data", "name"), [(NUMBERS, "ebic"), (CLASSES, "basis"), (MIXED, "basis")]
)
def test_auto_follows_the_types_of_the_columns(data, name):
    assert value(data) == value(data, "auto") == value(data, name)


def test_penalties_are_those_of_the_definitions():
    # Three variables without parents have a mean and a variance each.
    fit, n_parameters = value(NUMBERS, "loglik"), 6
    assert value(NUMBERS, "aic") == pytest.approx(fit - n_parameters)
    assert value(NUMBERS, "bic") == pytest.approx(fit - n_parameters * np.log(N_ROWS) / 2)
    for gamma in (0.0, 0.5, 1.0):
        penalty = (np.log(N_ROWS) + 2 * gamma * np.log(3)) / 2
        extended = value(NUMBERS, "ebic", gamma=gamma)
        assert extended == pytest.approx(fit - n_parameters * penalty)


@pytest.mark.parametrize(("n_rows", "gamma"), [(100, 0.5), (10**3.5, 0.75), (10_000, 1.0)])
def test_the_default_penalty_grows_with_the_rows(n_rows, gamma):
    moments = Moments.from_frame(NUMBERS)
    moments = Moments(moments.names, int(n_rows), moments.mean, moments.covariance)
    assert value(moments, "ebic") == pytest.approx(value(moments, "ebic", gamma=gamma), rel=1e-6)


@pytest.mark.parametrize("data", [NUMBERS, CLASSES, MIXED])
def test_the_penalty_factor_multiplies_the_penalty(data):
    fit = value(data, "loglik")
    once, thrice = value(data, "bic"), value(data, "bic", penalty=3.0)
    assert fit - thrice == pytest.approx(3 * (fit - once))


def test_every_source_of_the_same_data_gives_the_same_score():
    for source in (Moments.from_frame(NUMBERS), Table(NUMBERS), pl.from_pandas(NUMBERS)):
        assert value(source, "bic") == value(NUMBERS, "bic")
    for source in (Counts.from_frame(CLASSES), Table(CLASSES), pl.from_pandas(CLASSES)):
        assert value(source, "bdeu") == pytest.approx(value(CLASSES, "bdeu"), rel=1e-12)


def test_what_suffices_for_the_scores():
    assert isinstance(sufficient(Table(NUMBERS)), Moments)
    assert isinstance(sufficient(Table(CLASSES)), Counts)
    assert isinstance(sufficient(Table(MIXED)), Table)
    moments = Moments.from_frame(NUMBERS)
    assert sufficient(moments) is moments


def test_arrays_are_scored_under_default_names():
    score = choose_score(NUMBERS.to_numpy(), "bic")
    assert score.names == ("X1", "X2", "X3")


def test_bde_is_another_name_of_bdeu():
    assert value(CLASSES, "bde", iss=3.0) == value(CLASSES, "bdeu", iss=3.0)
    assert value(CLASSES, "bde", iss=3.0) != value(CLASSES, "bde")


def test_the_prior_of_bge_can_be_set():
    assert value(NUMBERS, "bge", iss=5.0) != value(NUMBERS, "bge")
    assert value(NUMBERS, "bge", iss=1.0) == value(NUMBERS, "bge")


def test_columns_of_numbers_may_be_classes():
    frame = pd.DataFrame(GENERATOR.integers(0, 3, size=(N_ROWS, 3)), columns=list("abc"))
    as_text = frame.astype(str)
    assert value(frame, "k2", discrete=list("abc")) == value(as_text, "k2")
    assert value(frame, "bic", discrete="c") == value(frame.assign(c=as_text["c"]), "bic")


def test_the_rank_transform_makes_the_score_depend_on_ranks_only():
    logs = np.log(NUMBERS)
    assert value(NUMBERS, "bic", transform="rank") == value(logs, "bic", transform="rank")
    assert value(NUMBERS, "bic") != value(logs, "bic")


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [
        (NUMBERS, "bdeu", "one for continuous data; got 'bdeu'. Use one of bic, aic"),
        (NUMBERS, "k2", "one for continuous data"),
        (CLASSES, "bge", "one for discrete data"),
        (CLASSES, "ebic", "one for discrete data"),
        (MIXED, "bge", "one for mixed data; got 'bge'. Use one of bic, aic, loglik"),
        (MIXED, "bde", "one for mixed data"),
        (NUMBERS, "bicc", "Did you mean 'bic'"),
        (NUMBERS.iloc[:0], "bic", r"at least one row and one column; got \(0, 3\)"),
        (NUMBERS[[]], "bic", "at least one row and one column"),
    ],
)
def test_a_score_that_does_not_fit_the_data_is_refused(data, name, words):
    with pytest.raises(ValueError, match=words):
        choose_score(data, name)


@pytest.mark.parametrize(
    ("data", "name", "options"),
    [
        (NUMBERS, "bic", {"gamma": 0.5}),
        (NUMBERS, "bge", {"penalty": 1.0}),
        (NUMBERS, "aic", {"iss": 1.0}),
        (CLASSES, "k2", {"iss": 1.0}),
        (CLASSES, "auto", {"iss": 0.5}),
        (NUMBERS, "loglik", {"penalty": 1.0}),
    ],
)
def test_an_option_that_the_score_does_not_heed_is_refused(data, name, options):
    with pytest.raises(ValueError, match="left out with the score"):
        choose_score(data, name, **options)


@pytest.mark.parametrize(
    ("name", "options"),
    [("ebic", {"gamma": 1.5}), ("bic", {"penalty": -1.0}), ("bge", {"iss": 0.0})],
)
def test_options_out_of_range_are_refused(name, options):
    with pytest.raises(ValueError, match="must be in"):
        choose_score(NUMBERS, name, **options)


def test_types_and_transforms_cannot_be_changed_after_the_fact():
    with pytest.raises(ValueError, match="left out with a Moments"):
        choose_score(Moments.from_frame(NUMBERS), transform="rank")
    with pytest.raises(ValueError, match="left out with a Table"):
        choose_score(Table(NUMBERS), discrete=["a"])


def test_every_name_makes_a_score_of_some_data():
    for name in SCORES:
        data = CLASSES if name in ("bdeu", "bde", "k2") else NUMBERS
        assert np.isfinite(value(data, name))


def test_the_graph_must_fit_the_data():
    score = choose_score(NUMBERS, "bic")
    with pytest.raises(ValueError, match=r"variables of the data; got \['c', 'd'\]"):
        graph_score(score, Graph(["a", "b", "d"], []))
    with pytest.raises(ValueError, match="a DAG"):
        graph_score(score, Graph(["a", "b", "c"], [("a", "b"), ("b", "a")]))
    with pytest.raises(ValueError, match="a DAG"):
        graph_score(score, Graph(["a", "b", "c"], [], [("a", "b")]))


def test_the_order_of_the_nodes_of_a_graph_does_not_matter():
    score = choose_score(NUMBERS, "bic")
    edges = [("a", "b"), ("c", "b")]
    assert graph_score(score, Graph(["c", "b", "a"], edges)) == graph_score(
        score, Graph(["a", "b", "c"], edges)
    )


def test_a_score_of_ones_own_knows_what_to_do_with_missing_numbers():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=["a", "b"])
    own = choose_score(frame, "bic")
    frame.loc[:20, "b"] = np.nan
    # Others get a column that tells where numbers are missing.
    assert choose_score(frame, own) is own
    assert len(choose_score(frame).names) == 3


def test_functions_of_wide_tables_cost_as_much_as_a_parameter_of_bic(monkeypatch):
    asked = []
    monkeypatch.setattr(automatic, "_MAX_COLUMNS", 2)
    monkeypatch.setattr(automatic, "find_suspects", lambda *_, **costs: asked.append(costs) or [])
    table = Table(NUMBERS)
    constraints = Constraints(list("abc"))
    found = automatic.choose_for_numbers(Moments.from_frame(NUMBERS), table, constraints)
    assert found.name == "ebic"
    assert found.curved == ()
    (costs,) = asked
    assert costs["price"] == pytest.approx(np.log(N_ROWS) / 2)
    assert costs["margin"] == pytest.approx(2 * np.log(3))
