import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dsage.data.files import read_table
from dsage.data.layout import Layout

TABLE = pd.DataFrame(
    {
        "age": [31, 54, 7],
        "dose": [0.5, 1.25, 2.0],
        "name, full": ["Ada L.", "Bo", "Çelik ö 丸"],
        "sick": [True, False, True],
    }
)


def write(folder, name, content):
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "csv.bz2", "csv.xz", "csv.zip", "CSV"])
def test_a_csv_file_comes_back_as_it_was_written(tmp_path, suffix):
    file = tmp_path / f"people.2024.{suffix}"
    TABLE.to_csv(file, index=False)
    pd.testing.assert_frame_equal(read_table(file), TABLE)
    pd.testing.assert_frame_equal(read_table(str(file)), TABLE)


def test_zstandard_is_unpacked(tmp_path):
    packed = pa.compress(TABLE.to_csv(index=False).encode(), "zstd", asbytes=True)
    pd.testing.assert_frame_equal(read_table(write(tmp_path, "people.csv.zst", packed)), TABLE)


def test_tabs_separate_in_tsv_and_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    TABLE.to_csv(tmp_path / "people.tsv.gz", sep="\t", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "people.tsv.gz"), TABLE)
    marked = write(tmp_path, "marked.csv", "\ufeffage,dose\n1,2\n")
    assert read_table(marked).columns.tolist() == ["age", "dose"]


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip"])
def test_parquet_keeps_categories_and_loses_the_index(tmp_path, codec):
    table = TABLE.assign(kind=pd.Categorical(["a", "b", "a"], ["b", "a", "c"]))
    table.set_axis([5, 7, 9]).to_parquet(tmp_path / "people.parquet", compression=codec)
    pd.testing.assert_frame_equal(read_table(tmp_path / "people.parquet"), table)


def test_text_and_booleans_are_classes_for_the_samplers(tmp_path):
    TABLE.to_csv(tmp_path / "people.csv", index=False)
    assert Layout.of(read_table(tmp_path / "people.csv")).n_categories.tolist() == [0, 0, 3, 2]


def test_empty_fields_are_missing_values(tmp_path):
    table = read_table(write(tmp_path, "gaps.csv", "a,b\n1,\n,x\nNA,y\n"))
    assert table["a"].isna().tolist() == [False, True, True]
    assert table["b"].isna().tolist() == [True, False, False]


def test_columns_are_dropped_by_name(tmp_path):
    TABLE.to_csv(tmp_path / "people.csv", index=False)
    assert read_table(tmp_path / "people.csv", drop=["sick", "age"]).shape == (3, 2)
    assert "dose" not in read_table(tmp_path / "people.csv", drop="dose")
    with pytest.raises(ValueError, match=r"of the columns of people\.csv; got 'dos'. Did you mean"):
        read_table(tmp_path / "people.csv", drop="dos")
    with pytest.raises(ValueError, match="of at least one column"):
        read_table(tmp_path / "people.csv", drop=TABLE.columns)


def test_columns_are_kept_by_name(tmp_path):
    TABLE.to_csv(tmp_path / "people.csv")
    kept = read_table(tmp_path / "people.csv", columns=["sick", "age"])
    pd.testing.assert_frame_equal(kept, TABLE[["sick", "age"]])
    with pytest.raises(ValueError, match=r"at least 'age', 'height'; .* missing: 'height'"):
        read_table(tmp_path / "people.csv", columns=["age", "height"])


def test_an_index_without_a_name_is_refused_until_it_is_dropped(tmp_path):
    TABLE.to_csv(tmp_path / "people.csv")
    with pytest.raises(ValueError, match=r"must be named; .* index.* drop=\['Unnamed: 0'\]"):
        read_table(tmp_path / "people.csv")
    assert read_table(tmp_path / "people.csv", drop="Unnamed: 0").equals(TABLE)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"a file that exists; got '.*no\.csv'. Check"):
        read_table(tmp_path / "no.csv")
    with pytest.raises(FileNotFoundError, match=r"no folder '.*nowhere' either"):
        read_table(tmp_path / "nowhere" / "no.csv")
    with pytest.raises(IsADirectoryError, match="It is a folder"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("empty.csv", "", "It is empty"),
        ("blank.csv", "\n\n", "It has no columns"),
        ("header.csv", "a,b\n", "of at least one row"),
        ("twice.csv", "a,b,a\n1,2,3\n", r"distinct names; got \['a'\]"),
        (
            "latin.csv",
            "a,b\nö,1\n".encode("latin-1"),
            r"UTF-8; got 'latin.csv'.* encoding='latin-1'",
        ),
        ("wide.csv", "a,b\n1,2\n".encode("utf-16"), "must be text in UTF-8"),
        ("long.csv", "a,b\n1,2\n3,4,5\n", "rows of one length; .* fields in line 3, saw 3"),
        ("longer.csv", "a,b\n1,2,3\n4,5,6\n", "rows of one length; .* fields in line 2, saw 3"),
        ("points.csv", "a;b;c\n1;5;2\n", r"sep=';'; .* decimal=','"),
        ("semicolons.csv", "a;b\n1,5;2\n", r"separated by ','; got \"one column, 'a;b'\""),
        ("tabs.csv", "a\tb\n1\t2\n", r"tabs \.tsv, .* sep='"),
        ("text.csv.gz", "a,b\n1,2\n", "must be a whole gzip file"),
        ("text.csv.bz2", "a,b\n1,2\n", "must be a whole bz2 file"),
        ("text.csv.xz", "a,b\n1,2\n", "must be a whole xz file"),
        ("text.csv.zip", "a,b\n1,2\n", "must be a whole zip file"),
        ("text.csv.zst", "a,b\n1,2\n", "must be a whole zstd file"),
        ("text.parquet", "a,b\n1,2\n", "must be a whole Parquet file; got 'text.parquet: "),
        ("sheet.xlsx", "PK", r"must be CSV \(.*\) or Parquet \(.*\); got 'sheet.xlsx'"),
        ("table", "a,b\n1,2\n", "Save the table as one of these"),
        ("packed.parquet.gz", "PAR1", "Parquet is compressed inside"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path, name, content, error):
    with pytest.raises(ValueError, match=error):
        read_table(write(tmp_path, name, content))


def test_separators_decimals_and_encodings_are_as_they_are_said_to_be(tmp_path):
    content = "größe;name\n1,5;Bo\n-0,25;Çelik\n"
    expected = pd.DataFrame({"größe": [1.5, -0.25], "name": ["Bo", "Çelik"]})
    for encoding in ("latin-1", "utf-16"):
        file = write(tmp_path, "european.csv", content.encode(encoding))
        found = read_table(file, sep=";", decimal=",", encoding=encoding)
        pd.testing.assert_frame_equal(found, expected)
    tabs = write(tmp_path, "tabs.tsv", "a\tb\n1,5\t2\n")
    assert read_table(tabs, decimal=",")["a"].tolist() == [1.5]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"sep": ";;"}, "sep must be one character; got ';;'"),
        ({"sep": ""}, "sep must be one character"),
        ({"decimal": "5"}, "decimal must be one character; got '5'"),
        ({"decimal": ","}, r"decimal must be another character than sep; .* sep=';'"),
        ({"encoding": "latin-99"}, "encoding must be one that Python knows; got 'latin-99'"),
        ({"encoding": "ascii"}, "must be text in ASCII"),
    ],
)
def test_signs_and_encodings_that_cannot_be_are_refused(tmp_path, options, error):
    file = write(tmp_path, "people.csv", "a,b\n1,ö\n")
    with pytest.raises(ValueError, match=error):
        read_table(file, **options)


def test_rows_that_are_longer_than_the_header_are_refused_whatever_the_user_ignores(tmp_path):
    file = write(tmp_path, "longer.csv", "a,b\n1,2,3\n4,5,6\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="rows of one length"):
            read_table(file)


def test_damage_inside_a_parquet_file_is_noticed(tmp_path):
    pd.DataFrame({"a": np.arange(2000.0)}).to_parquet(tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    with pytest.raises(ValueError, match="a whole Parquet file"):
        read_table(write(tmp_path, "cut.parquet", whole[:-20]))
    with pytest.raises(ValueError, match="a whole Parquet file"):
        read_table(write(tmp_path, "hole.parquet", whole[:100] + bytes(200) + whole[300:]))


def test_names_that_are_there_twice_are_refused_in_parquet_too(tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(ValueError, match=r"distinct names; got \['a'\]"):
        read_table(tmp_path / "twice.parquet")


@pytest.mark.parametrize("name", ["people.parquet", "people.csv.zst"])
def test_the_extra_is_named_where_pyarrow_is_absent(tmp_path, monkeypatch, name):
    file = write(tmp_path, name, "anything")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow; .* 'dsage\[parquet\]'"):
        read_table(file)
