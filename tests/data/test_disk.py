"""Rows on disk: some of them, drawn at random, the same whatever the batches are."""

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest
from sklearn.linear_model import LinearRegression

import dsage
from dsage.data import disk, sample_rows
from dsage.data.batches import ParquetFiles
from dsage.data.files import read_table
from dsage.data.stream import Stream
from dsage.structure import search_graph

N_ROWS = 900


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    a = rng.normal(size=N_ROWS)
    made = pd.DataFrame({"a": a, "b": a + rng.normal(size=N_ROWS), "c": rng.normal(size=N_ROWS)})
    made["kind"] = pd.Categorical(np.where(a > 1.5, "high", "low"))
    made["y"] = made["a"] + 2 * made["c"] + rng.normal(size=N_ROWS)
    return made


@pytest.fixture(scope="module")
def file(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("disk") / "rows.parquet"
    frame.to_parquet(path, row_group_size=70, index=False)
    return path


def test_rows_are_those_of_the_table_and_do_not_depend_on_batches(frame, file, tmp_path):
    rows = sample_rows(file, 100)
    assert len(rows) == 100
    assert rows.index.is_monotonic_increasing
    assert rows.index.is_unique
    pd.testing.assert_frame_equal(rows, frame.loc[rows.index], check_categorical=False)
    (tmp_path / "parts").mkdir()
    for part, at in enumerate((0, 400)):
        frame.iloc[at : at + (400, 500)[part]].to_parquet(tmp_path / "parts" / f"{part}.parquet")
    for other in (ParquetFiles(file, 7), ds.dataset(file), tmp_path / "parts"):
        again = sample_rows(other, 100, columns=["a", "c"])
        np.testing.assert_array_equal(again, rows[["a", "c"]])
    assert not sample_rows(file, 100, random_state=1).index.equals(rows.index)


def test_all_rows_are_read_if_they_are_few(frame, file):
    rows = sample_rows(file)
    pd.testing.assert_frame_equal(rows, frame, check_categorical=False)


def test_wide_tables_have_fewer_rows_in_memory():
    assert disk.most_rows(10) == 200_000
    assert disk.most_rows(1_000) * 8_000 <= 2**27


def test_read_table_draws_rows_of_large_parquet_files(file):
    assert len(read_table(file, max_rows=50)) == 50
    assert len(read_table(file, max_rows=N_ROWS)) == N_ROWS


OPTIONS = {"sampler": "gaussian", "n_orderings": 16, "random_state": 3, "progress": False}


@pytest.fixture
def plain(frame, tmp_path):
    """Numbers only, in two files."""
    rows = frame.drop(columns="kind")
    train, test = tmp_path / "train.parquet", tmp_path / "test.parquet"
    rows[:500].to_parquet(train, row_group_size=60)
    rows[500:].to_parquet(test, row_group_size=60)
    return train, test, rows


def test_values_from_disk_are_those_of_the_same_rows_in_memory(plain, monkeypatch):
    train, test, rows = plain
    X, model = rows.drop(columns="y"), LinearRegression()
    model.fit(X[:500], rows["y"][:500])
    monkeypatch.setattr(disk, "MAX_ROWS", 120)
    with pytest.warns(UserWarning, match="rows on disk"):
        found = dsage.explain(model, train, "y", test, graph="learn", **OPTIONS)
    drawn, held_out = (sample_rows(each, 120, random_state=3) for each in (train, test))
    # The graph of all training rows.
    graph = search_graph(Stream(train), target="y", random_state=3).graph
    expected = dsage.explain(
        model,
        drawn.drop(columns="y"),
        drawn["y"],
        held_out.drop(columns="y"),
        held_out["y"],
        graph=graph,
        **OPTIONS,
    )
    assert found.graph == graph
    np.testing.assert_array_equal(found.estimate.values, expected.estimate.values)
    np.testing.assert_array_equal(found.estimate.se, expected.estimate.se)
    assert len(found.warnings) >= 2


def test_files_that_fit_are_used_as_a_whole(plain):
    train, test, rows = plain
    X = rows.drop(columns="y")
    model = LinearRegression().fit(X[:500], rows["y"][:500])
    found = dsage.explain(model, str(train), "y", str(test), graph=None, **OPTIONS)
    parts = X[:500], rows["y"][:500], X[500:], rows["y"][500:]
    expected = dsage.explain(model, *parts, graph=None, **OPTIONS)
    np.testing.assert_array_equal(found.estimate.values, expected.estimate.values)
    assert found.target == "y"


def test_wrong_arguments_are_refused(plain, frame):
    train, test, rows = plain
    model = LinearRegression().fit(rows[["a", "b", "c"]], rows["y"])
    with pytest.raises(TypeError, match="y_train must be the name of a column if X_train is on"):
        dsage.explain(model, train, rows["y"], test)
    with pytest.raises(ValueError, match="y_train must be one of the columns of X_train"):
        dsage.explain(model, train, "z", test)
    with pytest.raises(TypeError, match="X_train must be on disk if X_test is"):
        dsage.explain(model, rows[["a", "b", "c"]], rows["y"], test)
    with pytest.raises(TypeError, match="y_test must be the name of a column, or left out"):
        dsage.explain(model, train, "y", test, rows["y"])
    with pytest.raises(FileNotFoundError, match="must be a file or folder that exists"):
        dsage.explain(model, "absent.parquet", "y")
