"""Tests of tables on disk: the same columns, categories and missing values as in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from dsage.data.stream import Stream
from dsage.data.table import Table

N_ROWS = 1_000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "a": rng.normal(size=N_ROWS),
            "gaps": rng.normal(3.0, 1.0, size=N_ROWS),
            "same gaps": rng.normal(size=N_ROWS),
            "other gaps": rng.normal(size=N_ROWS),
            "flag": np.where(rng.random(N_ROWS) < 0.3, np.nan, 7.0),
            "kind": rng.choice(["v", "u", None], p=[0.5, 0.4, 0.1], size=N_ROWS),
            "code": rng.integers(0, 4, size=N_ROWS),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(N_ROWS), "D"),
            "late": rng.choice(list("pq"), size=N_ROWS),
        }
    )
    absent = rng.random(N_ROWS) < 0.2
    made.loc[absent, ["gaps", "same gaps"]] = np.nan
    made.loc[~absent, "other gaps"] = np.nan
    # Categories that only the last batch has.
    made.loc[N_ROWS - 3 :, "late"] = ["z", "y", None]
    return made


@pytest.fixture(scope="module")
def file(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("stream") / "rows.parquet"
    frame.to_parquet(path, row_group_size=170)
    return path


@pytest.fixture
def both(frame, file):
    return Table(frame, discrete="code"), Stream(file, discrete="code", batch_rows=64)


def test_columns_have_the_same_types_and_categories(both):
    table, stream = both
    for name in ("names", "continuous", "discrete", "n_rows"):
        assert getattr(stream, name) == getattr(table, name)
    for name in table.discrete:
        assert stream.categories(name) == table.categories(name)
        np.testing.assert_array_equal(stream.frequencies(name), table.frequencies(name))


def test_missing_values_are_indicated_in_the_same_way(both):
    table, stream = (each.completed() for each in both)
    assert stream.completed() is stream
    assert stream.names == table.names
    assert stream.indicators == table.indicators
    assert len(stream.indicators) == 1
    filled, expected = (np.concatenate(list(each.chunks())) for each in (stream, table))
    day = table.continuous.index("day")
    # The origin of times is another one.
    np.testing.assert_allclose(np.diff(filled[:, day]), np.diff(expected[:, day]))
    others = np.delete(np.arange(len(table.continuous)), day)
    np.testing.assert_allclose(filled[:, others], expected[:, others], atol=1e-12)


def test_batches_are_the_rows_in_order(both):
    table, stream = (each.completed() for each in both)
    numbers, codes = (np.concatenate(part) for part in zip(*stream.batches(), strict=True))
    wanted, expected = (np.concatenate(part) for part in zip(*table.batches(), strict=True))
    np.testing.assert_array_equal(codes, expected)
    np.testing.assert_array_equal(np.isnan(numbers), np.isnan(wanted))
    np.testing.assert_array_equal(numbers[:, 0], wanted[:, 0])
    assert max(len(part) for part, _ in stream.batches()) <= 64


def test_views_read_only_their_columns(both):
    table, stream = (each.completed().select(["kind", "a"]) for each in both)
    numbers, codes = next(stream.batches())
    assert numbers.shape[1] == codes.shape[1] == 1
    picked = stream.pick(np.array([0, 63, 64, 999]))
    np.testing.assert_array_equal(picked, table.pick(np.array([0, 63, 64, 999])))


def test_missing_values_are_refused_unless_they_are_indicated(both):
    with pytest.raises(ValueError, match=r"missing values; got \['gaps', 'same gaps'"):
        next(both[1].numbers())


def test_a_folder_and_a_data_set_are_read_too(frame, file, tmp_path):
    frame[:600].to_parquet(tmp_path / "a.parquet")
    frame[600:].to_parquet(tmp_path / "b.parquet")
    wanted = np.concatenate(list(Stream(file, ["a"]).numbers()))
    for source in (tmp_path, str(tmp_path), ds.dataset(file), ds.dataset(tmp_path)):
        np.testing.assert_array_equal(np.concatenate(list(Stream(source, ["a"]).numbers())), wanted)
    some = ds.dataset(file).filter(ds.field("a") > 0.0)
    assert Stream(some, ["a"]).n_rows == int((frame["a"] > 0).sum())


def test_many_rare_categories_are_merged_as_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": [f"n{each}" for each in rng.zipf(1.3, size=400) % 300]})
    frame.to_parquet(tmp_path / "ids.parquet")
    table, stream = Table(frame), Stream(tmp_path / "ids.parquet", batch_rows=50)
    assert stream.categories("id") == table.categories("id")
    assert stream.merged == table.merged
    assert stream.merged
    codes = np.concatenate([part for _, part in stream.batches()])[:, 0]
    np.testing.assert_array_equal(codes, table.codes("id")[0])


def test_bad_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="that exists"):
        Stream(tmp_path / "nothing.parquet")
    (tmp_path / "text.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="a Parquet file"):
        Stream(tmp_path / "text.csv")
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "empty.parquet")
    with pytest.raises(ValueError, match="at least one row"):
        Stream(tmp_path / "empty.parquet")
    with pytest.raises(TypeError, match="a path or an Arrow data set"):
        Stream(3)


def test_infinite_numbers_and_identifiers_are_refused_by_name(tmp_path, monkeypatch):
    pd.DataFrame({"a": [1.0, np.inf]}).to_parquet(tmp_path / "infinite.parquet")
    with pytest.raises(ValueError, match=r"finite; got \['a'\]"):
        Stream(tmp_path / "infinite.parquet")
    monkeypatch.setattr("dsage.data.stream._MAX_CATEGORIES", 10)
    pd.DataFrame({"id": [f"n{each}" for each in range(20)]}).to_parquet(tmp_path / "ids.parquet")
    with pytest.raises(ValueError, match="'id' must be of at most 10 categories"):
        Stream(tmp_path / "ids.parquet")
