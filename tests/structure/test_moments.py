"""Moments: of blocks, of batches, of frames, of files; merging; bad input."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.data import table as data_module
from dsage.data.batches import DatasetBatches, ParquetFiles
from dsage.structure.moments import Moments

EPS = np.finfo(np.float64).eps
NAMES = ("a", "b", "c")


def rows_of(seed: int, n_rows: int, offset: float = 0.0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    mix = generator.normal(size=(3, 3))
    return generator.normal(size=(n_rows, 3)) @ mix + offset


def assert_same(one: Moments, other: Moments, size: float) -> None:
    """Compare up to the rounding of sums over all rows of numbers no larger than `size`."""
    assert one.names == other.names
    assert one.n_rows == other.n_rows
    tolerance = 8 * EPS * one.n_rows
    np.testing.assert_allclose(one.mean, other.mean, rtol=0, atol=tolerance * size)
    # Deviations from the mean carry the rounding of the mean, once for each factor.
    spread = np.sqrt(one.scatter.diagonal().max() * one.n_rows)
    np.testing.assert_allclose(
        one.scatter, other.scatter, rtol=0, atol=tolerance * (size**2 * EPS + size * spread)
    )


@pytest.mark.parametrize("n_rows", [2, 3, 50, 5000])
def test_moments_of_an_array_are_its_mean_and_covariance(n_rows):
    X = rows_of(0, n_rows)
    moments = Moments.from_array(X, NAMES)
    np.testing.assert_allclose(moments.mean, X.mean(axis=0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(moments.covariance, np.cov(X.T), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(moments.correlation, np.corrcoef(X.T), rtol=1e-10, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    cuts=st.lists(st.integers(1, 199), max_size=6, unique=True),
    offset=st.sampled_from([0.0, 1.0, 1e6]),
)
def test_moments_merged_from_batches_equal_moments_of_the_whole(seed, cuts, offset):
    X = rows_of(seed, 200, offset)
    parts = np.split(X, sorted(cuts))
    whole = Moments.from_array(X, NAMES)
    size = float(np.abs(X).max())
    assert_same(Moments.from_batches(parts, NAMES), whole, size)
    merged = Moments.from_array(parts[0], NAMES)
    for part in parts[1:]:
        merged = merged + Moments.from_array(part, NAMES)
    assert_same(merged, whole, size)


def test_moments_do_not_depend_on_the_chunk_size(monkeypatch):
    X = rows_of(3, 1000, offset=100.0)
    whole = Moments.from_array(X, NAMES)
    monkeypatch.setattr(data_module, "_CHUNK_BYTES", 8 * 3 * 7)
    assert_same(Moments.from_array(X, NAMES), whole, float(np.abs(X).max()))


def test_a_large_offset_does_not_spoil_the_covariance():
    X = rows_of(4, 5000)
    shifted = Moments.from_array(X + 2.0**30, NAMES).covariance
    # Adding the offset rounds the data to 2**-22: that is all that may be lost.
    rounded = np.cov(((X + 2.0**30) - 2.0**30).T)
    np.testing.assert_allclose(shifted, rounded, rtol=1e-9)


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        pl.from_pandas,
        pa.Table.from_pandas,
        lambda frame: frame.convert_dtypes(),
    ],
    ids=["pandas", "polars", "pyarrow", "nullable"],
)
def test_every_kind_of_frame_gives_the_same_moments(convert):
    frame = pd.DataFrame(rows_of(5, 100), columns=NAMES)
    frame["count"] = np.arange(100)
    frame["small"] = frame["a"].astype(np.float32)
    moments = Moments.from_frame(convert(frame))
    expected = Moments.from_array(frame.to_numpy(dtype=np.float64), frame.columns)
    assert moments.names == (*NAMES, "count", "small")
    np.testing.assert_array_equal(moments.scatter, expected.scatter)


def test_the_columns_of_batches_may_come_in_any_order():
    frame = pd.DataFrame(rows_of(6, 60), columns=NAMES)
    batches = [frame[:20], frame.loc[20:39, ["c", "a", "b"]], pl.from_pandas(frame[40:])]
    assert_same(Moments.from_batches(batches), Moments.from_frame(frame), 10.0)


def test_parquet_is_read_in_a_stream(tmp_path):
    frame = pd.DataFrame(rows_of(7, 1000), columns=NAMES)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "one.parquet", row_group_size=300)
    streamed = Moments.from_parquet(tmp_path / "one.parquet", batch_rows=128)
    assert_same(streamed, Moments.from_frame(frame), 10.0)
    chosen = Moments.from_parquet(tmp_path / "one.parquet", ["c", "a"], batch_rows=1000)
    assert_same(chosen, Moments.from_frame(frame[["c", "a"]]), 10.0)


@pytest.mark.parametrize("kind", ["file", "data set"])
def test_a_parquet_file_is_never_in_memory_as_a_whole(tmp_path, kind):
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(1_000_000, 5)), columns=list("abcde")
    )
    frame.to_parquet(tmp_path / "large.parquet", row_group_size=5_000, compression=None)
    before = pa.total_allocated_bytes()
    path = tmp_path / "large.parquet"
    source = (
        ParquetFiles(path, 5_000) if kind == "file" else DatasetBatches(ds.dataset(path), 5_000)
    )
    held = max(pa.total_allocated_bytes() - before for _ in source.read(source.names))
    # The file has 200 row groups. Arrow reads a few of them ahead: up to 13 were seen.
    assert 0 < held < frame.to_numpy().nbytes / 4


def test_a_folder_of_parquet_files_is_one_data_set(tmp_path):
    frame = pd.DataFrame(rows_of(8, 90), columns=NAMES)
    for part in range(3):
        frame[part * 30 : part * 30 + 30].to_parquet(tmp_path / f"{part}.parquet", index=False)
    assert_same(Moments.from_parquet(tmp_path), Moments.from_frame(frame), 10.0)


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        Moments.from_parquet(tmp_path / "none.parquet")


def test_an_unknown_column_of_a_file_is_named(tmp_path):
    pd.DataFrame({"age": [1.0]}).to_parquet(tmp_path / "one.parquet")
    with pytest.raises(ValueError, match="Did you mean 'age'"):
        Moments.from_parquet(tmp_path / "one.parquet", ["agee"])


def test_selected_moments_are_those_of_the_columns():
    X = rows_of(9, 50)
    selected = Moments.from_array(X, NAMES).select(["c", "a"])
    expected = Moments.from_array(X[:, [2, 0]], ["c", "a"])
    np.testing.assert_allclose(selected.scatter, expected.scatter, rtol=1e-12)
    assert selected.names == ("c", "a")


def test_merging_matches_variables_by_name():
    frame = pd.DataFrame(rows_of(11, 60), columns=NAMES)
    other = Moments.from_frame(frame.loc[30:, ["b", "c", "a"]])
    assert_same(Moments.from_frame(frame[:30]) + other, Moments.from_frame(frame), 10.0)


def test_moments_of_other_variables_do_not_merge():
    one, other = (
        Moments.from_array(rows_of(0, 5)[:, :2], names) for names in (["a", "b"], ["a", "c"])
    )
    with pytest.raises(ValueError, match=r"same variables; got \['b', 'c'\]"):
        one.merge(other)


def test_moments_cannot_be_changed():
    moments = Moments.from_array(rows_of(0, 5), NAMES)
    with pytest.raises(ValueError, match="read-only"):
        moments.scatter[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        moments.mean[0] = 1.0


def test_the_data_stay_as_they_were():
    X = rows_of(1, 20)
    kept = X.copy()
    Moments.from_array(X, NAMES)
    np.testing.assert_array_equal(X, kept)


def test_moments_are_made_from_a_known_covariance():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    moments = Moments(["a", "b"], 11, [0.0, 1.0], covariance)
    np.testing.assert_allclose(moments.covariance, covariance, rtol=4 * EPS)
    np.testing.assert_allclose(moments.scatter, covariance * 10, rtol=4 * EPS)


@pytest.mark.parametrize(
    ("covariance", "error"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], "symmetric"),
        ([[-1.0, 0.0], [0.0, 1.0]], r"negative variances; got \['a'\]"),
        ([[1.0, np.nan], [np.nan, 1.0]], "finite"),
        ([[1.0]], r"of shape \(2, 2\)"),
    ],
)
def test_an_impossible_covariance_is_refused(covariance, error):
    with pytest.raises(ValueError, match=error):
        Moments(["a", "b"], 10, [0.0, 0.0], covariance)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_missing_and_infinite_values_name_their_columns(bad):
    X = rows_of(0, 10)
    X[3, 1] = X[0, 2] = bad
    with pytest.raises(ValueError, match=r"missing values; got \['b', 'c'\]"):
        Moments.from_array(X, NAMES)
    with pytest.raises(ValueError, match=r"missing values; got \['b', 'c'\]"):
        Moments.from_frame(pl.DataFrame(dict(zip(NAMES, X.T, strict=True))))


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        lambda frame: frame.convert_dtypes(),
        lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
        pl.from_pandas,
        pa.Table.from_pandas,
    ],
    ids=["pandas", "nullable", "arrow-backed", "polars", "pyarrow"],
)
def test_nulls_name_their_columns(convert):
    frame = pd.DataFrame({"a": [1, None, 3], "b": [1, 2, 3], "c": [None, 2.5, 1.0]})
    with pytest.raises(ValueError, match=r"missing values; got \['a', 'c'\]"):
        Moments.from_frame(convert(frame))


def test_columns_that_are_not_numbers_are_named():
    frame = pd.DataFrame({"a": [1.0, 2.0], "s": ["x", "y"], "yes": [True, False]})
    with pytest.raises(TypeError, match=r"numbers; got \['s', 'yes'\]"):
        Moments.from_frame(frame)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="at least one row"):
        Moments.from_array(np.empty((0, 2)), ["a", "b"])
    with pytest.raises(ValueError, match="at least one batch"):
        Moments.from_batches([], ["a", "b"])


def test_one_row_has_no_covariance():
    with pytest.raises(ValueError, match="at least 2; got 1"):
        _ = Moments.from_array([[1.0, 2.0]], ["a", "b"]).covariance


def test_empty_batches_do_no_harm():
    X = rows_of(2, 10)
    moments = Moments.from_batches([X[:0], X, X[:0]], NAMES)
    np.testing.assert_array_equal(moments.scatter, Moments.from_array(X, NAMES).scatter)


def test_covariances_that_are_symmetric_up_to_rounding_are_taken():
    rng = np.random.default_rng(0)
    for seed in range(50):
        mixing = np.linalg.inv(np.eye(5) - np.triu(rng.normal(size=(5, 5)), 1))
        covariance = np.linalg.inv(np.linalg.inv(mixing.T @ mixing))
        names = list("abcde")
        made = Moments(names, 100 + seed, np.zeros(5), covariance)
        np.testing.assert_allclose(made.covariance, covariance, rtol=1e-6, atol=1e-9)


def test_impossible_covariances_are_refused_with_the_variables():
    with pytest.raises(ValueError, match=r"covariance must be symmetric; got \('a', 'b'\)"):
        Moments(["a", "b"], 10, [0, 0], [[1, 0.5], [0.4, 1]])
    with pytest.raises(ValueError, match=r"of correlations within \[-1, 1\]; got \('a', 'b'\)"):
        Moments(["a", "b"], 10, [0, 0], [[1, 2], [2, 1]])


def test_magnitudes_beyond_floating_point_are_refused_by_name():
    X = np.random.default_rng(0).normal(size=(10, 2)) * [1.0, 1e200]
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ValueError, match=r"got \['b'\]"),
    ):
        Moments.from_array(X, ["a", "b"])


def test_a_folder_without_parquet_is_named(tmp_path):
    with pytest.raises(ValueError, match="a Parquet file or a folder of them"):
        Moments.from_parquet(tmp_path)
