"""Scores and searches of the user's own, as objects, as functions and by name."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dsage
from dsage import Graph
from dsage.structure import (
    METHODS,
    SCORES,
    Counts,
    Moments,
    Score,
    choose_score,
    search_graph,
    stability,
)
from dsage.structure.searches.local import hill_climb


class SquaresToo(Score):
    """BIC of a regression on the parents and their squares."""

    def __init__(self, frame):
        self.names = tuple(frame.columns)
        self._values = frame.to_numpy()

    def family(self, node, parents):
        held = self._values[:, list(parents)]
        design = np.hstack([np.ones((len(held), 1)), held, held**2])
        child = self._values[:, node]
        left = child - design @ np.linalg.lstsq(design, child)[0]
        price = 0.5 * np.log(len(held)) * (design.shape[1] + 1)
        return -0.5 * len(held) * np.log(left @ left / len(held)) - price


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 400))
    return pd.DataFrame({"a": a, "b": b, "y": b - a**2 + rng.normal(size=400)})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("is_object", [True, False])
def test_every_search_takes_a_score_of_the_users_own(data, method, is_object):
    score = SquaresToo(data) if is_object else SquaresToo
    result = search_graph(data, score=score, method=method)
    assert result.graph.parents("y") == ("a", "b")
    assert result.score_name == "SquaresToo"
    assert dsage.learn_graph(data, score="bic").parents("y") == ("b",)


@pytest.mark.parametrize(
    "convert", [pl.from_pandas, pd.DataFrame.to_numpy], ids=["polars", "array"]
)
def test_a_callable_receives_a_frame_without_constants_and_copies(data, convert):
    seen = []

    def make(frame):
        seen.append(frame)
        return SquaresToo(frame)

    frame = data.assign(one=1.0, b2=2 * data["b"])
    with pytest.warns(UserWarning, match="constant|copies"):
        graph = dsage.learn_graph(convert(frame), score=make)
    assert graph.names == (
        tuple(frame.columns) if convert is pl.from_pandas else ("X1", "X2", "X3", "X4", "X5")
    )
    assert list(seen[0].columns) == list(graph.names[:3])
    assert graph.parents(graph.names[4]) == (graph.names[1],)


def test_a_callable_receives_statistics_as_they_were_passed(data):
    moments = Moments.from_frame(data)
    seen = []

    def make(passed):
        seen.append(passed)
        return choose_score(passed, "bic")

    assert dsage.learn_graph(moments, score=make) == dsage.learn_graph(moments, score="bic")
    assert isinstance(seen[0], Moments)


def test_a_score_object_is_searched_with_all_its_columns(data):
    class LonelyScore(Score):
        names = ("a", "one")

        def family(self, node, parents):
            return -float(len(parents))

    frame = data[["a"]].assign(one=1.0)
    assert dsage.learn_graph(frame, score=LonelyScore()) == Graph(["a", "one"], [])


def test_a_graph_is_scored_by_a_score_of_the_users_own(data):
    graph = Graph(data.columns, [("a", "y"), ("b", "y")])
    score = SquaresToo(data)
    expected = score.family(0, ()) + score.family(1, ()) + score.family(2, (0, 1))
    assert dsage.score_graph(graph, data, SquaresToo) == pytest.approx(expected, rel=1e-12)
    assert dsage.score_graph(graph, data, score) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("score", "options", "error", "text"),
    [
        (3, {}, TypeError, "score must be a name, a Score, or a callable .*; got 3"),
        (lambda _: "bic", {}, TypeError, "a callable that returns a Score; got 'bic'"),
        (lambda frame: SquaresToo(frame[["b", "a", "y"]]), {}, ValueError, r"over the columns \['a', 'b', 'y'\]"),
        (SquaresToo, {"penalty": 2.0}, ValueError, "penalty must be left out with a score of your own; got 2.0"),
        (SquaresToo, {"transform": "rank"}, ValueError, "transform must be left out with a score of your own"),
        (SquaresToo, {"strict": True}, ValueError, "strict must be left out with a score"),
    ],
)  # fmt: skip
def test_scores_that_do_not_fit_are_refused(data, score, options, error, text):
    with pytest.raises(error, match=text):
        dsage.learn_graph(data, score=score, **options)


def test_resamples_are_scored_by_a_callable_and_not_by_an_object(data):
    found = stability(data, 4, score=SquaresToo, random_state=0)
    assert all(graph.parents("y") == ("a", "b") for graph in found.graphs)
    with pytest.raises(TypeError, match="score must be a name or a callable"):
        stability(data, 4, score=SquaresToo(data))


@pytest.mark.parametrize("wrong", [None, "a graph", [("a", "y")]])
def test_a_method_that_returns_no_graph_is_refused(data, wrong):
    with pytest.raises(TypeError, match="method must be a callable that returns a graph; got '"):
        dsage.learn_graph(data, method=lambda _: wrong)


class TestRegistration:
    """One registration makes a score or a search available by name."""

    @pytest.fixture
    def squares(self):
        @SCORES.register(
            "squares", summary="toy", fits=("continuous",), options=("factor",), needs_rows=True
        )
        def make(table, *, factor=1.0):
            rows = np.concatenate(list(table.chunks()))
            return SquaresToo(pd.DataFrame(factor * rows, columns=list(table.names)))

        yield "squares"
        SCORES.remove("squares")

    @pytest.fixture
    def climb(self):
        @METHODS.register("climb", summary="toy", options=("steps",))
        def search(score, constraints, *, callback=None, steps=None):
            return hill_climb(score, constraints, max_iter=steps, callback=callback)

        yield "climb"
        METHODS.remove("climb")

    def test_a_score_is_found_by_name_with_its_options(self, data, squares):
        with pytest.warns(UserWarning, match="constant"):
            result = search_graph(data.assign(one=1.0), score=squares, factor=2.0)
        assert result.graph.parents("y") == ("a", "b")
        assert result.score_name == "squares"
        with pytest.raises(ValueError, match="factor must be left out with the score 'bic'"):
            search_graph(data, score="bic", factor=2.0)
        with pytest.raises(ValueError, match=r"got 'squars'\. Did you mean 'squares'\?"):
            search_graph(data, score="squars")
        with pytest.raises(ValueError, match="score must be one for discrete data"):
            search_graph(data.round().astype(str), score=squares)
        with pytest.raises(TypeError, match="needs the rows"):
            choose_score(Moments.from_frame(data), squares)

    def test_a_search_is_found_by_name_with_its_options(self, data, climb):
        graph = dsage.learn_graph(data, method=climb)
        assert graph == dsage.learn_graph(data, method="hc")
        assert dsage.learn_graph(data, method=climb, steps=0).edges == ()
        with pytest.raises(ValueError, match="each option must be one of"):
            dsage.learn_graph(data, method="hc", steps=0)
        assert stability(data, 2, method=climb, random_state=0).graphs[0].is_dag

    def test_the_names_are_free_again(self):
        assert "squares" not in SCORES
        assert "climb" not in METHODS


@pytest.mark.parametrize("method", METHODS)
def test_every_search_declares_its_options_and_a_summary(data, method):
    assert len(METHODS.summary(method).splitlines()) == 1
    for option in METHODS.traits(method)["options"]:
        assert dsage.learn_graph(data, method=method, **{option: 1}).is_dag


def test_a_class_of_counts_is_refused_for_a_score_of_numbers(data):
    counts = Counts.from_frame(data.round().astype(int).astype(str))
    with pytest.raises(ValueError, match="score must be one for discrete data; got 'bge'"):
        dsage.learn_graph(counts, score="bge")
