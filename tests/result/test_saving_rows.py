"""Explained rows and measures in files: what is written can be read, and nothing else."""

import json
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression

import dsage
import row_cases as cases
from dsage._files import read_arrays, write_arrays
from dsage.report import row_report_data
from fold_case import QUICK, table

PLAIN = {"graph": None, "sampler": "gaussian", "random_state": 0, "progress": False}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "rows.dsage"


@pytest.mark.parametrize("make", [cases.explained, cases.classified])
def test_explained_rows_are_read_as_they_were_written(make, file):
    found = make()
    assert found.save(file) == file
    read = dsage.RowExplanation.load(file)
    np.testing.assert_array_equal(read.values, found.values)
    np.testing.assert_array_equal(read.base_values, found.base_values)
    pd.testing.assert_frame_equal(read.to_frame(), found.to_frame())
    assert read.outputs == found.outputs
    assert repr(read) == repr(found)
    assert read.choices == found.choices
    wanted, given = row_report_data(found), row_report_data(read)
    assert given["features"] == wanted["features"]
    assert given["texts"] == wanted["texts"]
    assert len(read[2:5]) == 3
    assert read.save(file).exists()


def test_rows_of_polars_with_zones_gaps_and_groups_are_read_as_a_frame_of_pandas(file):
    generator = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=60, tz="Europe/Berlin")
    frame = pl.DataFrame(
        {
            "whole": generator.integers(0, 10**6, 60),
            "gaps": [None, *generator.normal(size=59)],
            "word": [None, *generator.choice(["x", "y"], 59)],
            "day": pl.Series(days.to_pydatetime().tolist()).dt.convert_time_zone("Europe/Berlin"),
        }
    )
    found = dsage.explain_rows(
        lambda rows: np.asarray(rows["whole"]) * 1.0, frame, generator.normal(size=60), frame[:4],
        groups={"my group": ["gaps", "word"]}, **{**PLAIN, "sampler": "mix", "n_orderings": 4},
    )  # fmt: skip
    found.save(file)
    read = dsage.RowExplanation.load(file)
    assert isinstance(read.rows, pd.DataFrame)
    pd.testing.assert_frame_equal(read.to_frame(), found.to_frame())
    for name in found.feature_names:
        np.testing.assert_allclose(read.positions(name).shares, found.positions(name).shares)


def test_losses_and_labels_of_several_levels_are_kept(file):
    X, y = table()
    rows = X[:2].set_axis(pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]))
    model = LinearRegression().fit(X, y)
    found = dsage.explain_rows(model, X, y, rows, y[:2].to_numpy(), values="loss", **PLAIN)
    found.save(file)
    read = dsage.RowExplanation.load(file)
    assert read.is_loss
    assert read.row_names == ("('a', 1)", "('b', 2)")
    np.testing.assert_array_equal(read.base_values, found.base_values)


@pytest.fixture
def measures():
    X, y = table()
    model = LinearRegression().fit(X, y)
    return dsage.explain_measures(
        model, X, y, *table(40, seed=1), measures=["shapley", "total", "loco"], sampler="gaussian",
        random_state=0, progress=False,
    )  # fmt: skip


def test_measures_are_read_as_they_were_written(measures, file):
    measures.save(file)
    read = dsage.Measures.load(file)
    pd.testing.assert_frame_equal(read.to_frame(), measures.to_frame())
    assert read.explanation.choices == measures.explanation.choices
    assert read.interactions is None
    assert str(read) == str(measures)


def test_each_kind_of_file_names_what_reads_it(measures, file):
    measures.save(file)
    for load in (dsage.load, dsage.RowExplanation.load, dsage.FoldedExplanation.load):
        with pytest.raises(ValueError, match=r"Read it with dsage\.Measures"):
            load(file)
    cases.explained().save(file)
    with pytest.raises(ValueError, match=r"Read it with dsage\.RowExplanation\.load"):
        dsage.Measures.load(file)
    X, y = table()
    dsage.explain_cv(LinearRegression(), X, y, 2, **QUICK).save(file)
    with pytest.raises(ValueError, match=r"Read it with dsage\.FoldedExplanation\.load"):
        dsage.RowExplanation.load(file)


def test_files_contain_nothing_that_runs(file):
    cases.explained().save(file)
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            with archive.open(name) as part:
                assert np.lib.format.read_magic(part)
                assert not np.lib.format.read_array_header_1_0(part)[2].hasobject


def edited(file, change):
    header, arrays = read_arrays(file)
    change(header, arrays)
    write_arrays(file, header, arrays)


def cut(header, arrays):
    arrays["estimates/0/values"] = arrays["estimates/0/values"][:3]


def unname(header, arrays):
    header["row_names"] = header["row_names"][:-1]


def retype(header, arrays):
    arrays["table/0"] = arrays["table/0"].astype("U9")


def empty(header, arrays):
    header["estimates"] = []


def spoil(header, arrays):
    arrays["estimates/0/values"][0, 0] = np.nan


def drop(header, arrays):
    del header["choices"]


@pytest.mark.parametrize("change", [cut, unname, retype, empty, spoil, drop])
def test_edited_rows_are_refused(file, change):
    cases.explained().save(file)
    edited(file, change)
    with pytest.raises(ValueError, match="It is damaged or was edited"):
        dsage.RowExplanation.load(file)


def test_edited_measures_are_refused(measures, file):
    measures.save(file)
    edited(file, lambda _, arrays: arrays.update({"averages/total/se": np.zeros(9)}))
    with pytest.raises(ValueError, match="It is damaged or was edited"):
        dsage.Measures.load(file)
    file.write_text(json.dumps({"kind": "dsage measures"}))
    with pytest.raises(ValueError, match="path must be the file of an explanation"):
        dsage.Measures.load(file)
