"""Tests of graphs of tables on disk: the same as in memory, in bounded memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from dsage import learn_graph, score_graph
from dsage.data.stream import Stream
from dsage.data.table import Table
from dsage.structure import Counts, Moments, blocks, counts, search_graph, stability
from dsage.structure.blocks import Blocks
from dsage.structure.scores import discrete

N_ROWS = 2_000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, N_ROWS))
    c = np.cos(2 * a) + 0.3 * rng.normal(size=N_ROWS)
    kind = np.where(c + b + rng.logistic(size=N_ROWS) > 0, "yes", "no")
    age = np.exp(b + rng.normal(size=N_ROWS))
    age[rng.random(N_ROWS) < 0.2] = np.nan
    other = rng.choice(list("uvw"), size=N_ROWS)
    binary = (a > 0).astype(int)
    return pd.DataFrame(
        {"a": a, "b": b, "c": c, "kind": kind, "age": age, "binary": binary, "other": other}
    )


@pytest.fixture(scope="module")
def file(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("disk") / "rows.parquet"
    frame.to_parquet(path, row_group_size=300)
    return path


def test_blocks_are_the_same_to_the_bit_if_the_sample_has_all_rows(frame, file):
    whole = Blocks.from_table(Table(frame).completed())
    streamed = Blocks.from_table(Stream(file, batch_rows=128).completed())
    for name in ("is_class", "starts", "widths", "responses", "offsets", "correlation", "sample"):
        np.testing.assert_array_equal(getattr(streamed, name), getattr(whole, name))
    for mine, theirs in ((streamed.levels, whole.levels), (streamed.absent, whole.absent)):
        assert mine.keys() == theirs.keys()
        for node, values in mine.items():
            np.testing.assert_array_equal(values, theirs[node])


def test_blocks_are_the_same_up_to_rounding_if_it_has_some(frame, file, monkeypatch):
    monkeypatch.setattr(blocks, "_MAX_SAMPLE", 500)
    monkeypatch.setattr(blocks, "_MAX_FITTED", 700)
    monkeypatch.setattr(blocks, "_SAMPLE_BYTES", 2**18)
    whole = Blocks.from_table(Table(frame).completed())
    streamed = Blocks.from_table(Stream(file, batch_rows=128).completed())
    assert len(streamed.sample) <= 500
    np.testing.assert_array_equal(streamed.widths, whole.widths)
    np.testing.assert_allclose(streamed.correlation, whole.correlation, atol=1e-10)
    np.testing.assert_allclose(streamed.sample, whole.sample, atol=1e-9)


def test_the_graph_of_a_file_is_that_of_its_rows(frame, file):
    expected = search_graph(frame, target="kind")
    for data in (file, str(file), ds.dataset(file), Stream(file, batch_rows=100)):
        found = search_graph(data, target="kind")
        assert found.graph == expected.graph
        assert found.score == expected.score
        assert found.score_name == "basis"
    assert score_graph(expected.graph, file) == score_graph(expected.graph, frame)


def test_numbers_of_a_file_choose_their_score_as_in_memory(frame, file, tmp_path):
    numbers = frame[["a", "b", "c"]]
    numbers.to_parquet(tmp_path / "numbers.parquet")
    found = search_graph(tmp_path / "numbers.parquet")
    assert found.score_name == "basis"
    assert found.graph == learn_graph(numbers)
    # A view of some columns.
    assert learn_graph(Stream(file, ["a", "b", "c"])) == found.graph
    straight = numbers.assign(c=numbers["a"] + numbers["b"] + frame["c"])[["b", "c"]]
    straight.to_parquet(tmp_path / "straight.parquet")
    found = search_graph(tmp_path / "straight.parquet", score="ebic")
    assert found.graph == learn_graph(straight, score="ebic")


def test_sufficient_statistics_of_a_file_are_those_of_its_rows(frame, file, monkeypatch):
    numbers, classes = ["a", "b", "c"], ["kind", "other"]
    found = Moments.from_table(Stream(file, numbers, batch_rows=100))
    np.testing.assert_allclose(found.scatter, Moments.from_frame(frame[numbers]).scatter)
    monkeypatch.setattr(counts, "_MIN_MERGED", 150)
    found = Counts.from_table(Stream(file, classes, batch_rows=100))
    expected = Counts.from_frame(frame[classes])
    np.testing.assert_array_equal(found.table(classes), expected.table(classes))
    assert found.categories == expected.categories


def test_with_too_many_distinct_rows_some_are_counted(frame, file, monkeypatch):
    monkeypatch.setattr(counts, "_MIN_MERGED", 150)
    monkeypatch.setattr(counts, "_MAX_DISTINCT", 4)
    found = Counts.from_table(Stream(file, ["kind", "other"], batch_rows=100))
    rows = np.linspace(0, N_ROWS - 1, 4).round().astype(int)
    expected = Counts.from_frame(frame[["kind", "other"]].iloc[rows])
    assert found.n_rows == 4
    assert found.table("kind").sum() == expected.table("kind").sum()


def test_what_needs_all_rows_in_memory_says_so(file):
    with pytest.raises(ValueError, match="transform must be 'none' with a file"):
        learn_graph(file, transform="rank")
    with pytest.raises(TypeError, match="need the rows in memory"):
        learn_graph(file, score="bic")
    with pytest.raises(TypeError, match="Read the file first"):
        stability(file, 2)
    with pytest.raises(TypeError, match="Read the file first"):
        learn_graph(file, score=lambda data: data)


def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "_MAX_FITTED", 2_000)
    monkeypatch.setattr(blocks, "_MAX_SAMPLE", 2_000)
    monkeypatch.setattr(counts, "_MIN_MERGED", 2_000)
    monkeypatch.setattr(discrete, "_MOST_TABULATED", 2_000)
    rng = np.random.default_rng(0)
    peaks = []
    for n_groups in (8, 48):
        path = tmp_path / f"{n_groups}.parquet"
        schema = pa.schema(
            [*((f"x{place}", pa.float64()) for place in range(6)), ("k", pa.string())]
        )
        with pq.ParquetWriter(path, schema) as writer:
            for _ in range(n_groups):
                X = rng.normal(size=(1_000, 6))
                X[:, 1] += np.cos(2 * X[:, 0])
                k = pa.array(np.where(X[:, 1] > 0, "yes", "no"))
                writer.write_table(pa.table([*X.T, k], schema=schema))
        tracemalloc.start()
        graph = learn_graph(Stream(path, batch_rows=1_000), method="hc")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert {"x0", "x1"} in [set(edge) for edge in graph.edges]
    # The basis functions of the larger file take 24 MB.
    assert peaks[0] < 6e6
    assert peaks[1] < 1.1 * peaks[0]
