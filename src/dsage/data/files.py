"""Tables from CSV files, also compressed, and from Parquet files."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from lzma import LZMAError
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import pandas as pd

from dsage._check import Setting, Text, check_members, import_extra, refusal
from dsage.data.damages import check_memory, refuse_file, tell_damage
from dsage.data.disk import sample_rows
from dsage.data.frames import check_columns

__all__ = ["read_table"]

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip", ".zst": "zstd"}
# Tables are hardly compressed more than this; small files may be.
_RATIO, _SPARE, _CHUNK = 300, 2**26, 2**20
_OPENERS: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}
_DAMAGES = (OSError, EOFError, ValueError, RuntimeError, BadZipFile, LZMAError, zlib.error)
_KINDS = "CSV (.csv, .tsv, also .gz, .bz2, .xz, .zip, .zst) or Parquet (.parquet)"


def read_table(
    path: str | PathLike[str],
    *,
    drop: str | Iterable[str] = (),
    columns: Sequence[str] | None = None,
    sep: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    max_rows: int | None = None,
) -> pd.DataFrame:
    r"""Read a table from a CSV or Parquet file, depending on its suffix.

    Columns of text stay text, booleans stay booleans. Empty fields, and texts such as ``NA``, are
    missing values. The index of a Parquet file is left out.

    Parameters
    ----------
    path : str or path
        ``.csv``, with commas, or ``.tsv``, with tabs, in UTF-8, with names in the first line; both
        may be compressed, as in ``.csv.gz``. Or ``.parquet``, which needs pyarrow.
    drop : str or iterable of str, default=()
        Columns to leave out. A column without a name is called ``"Unnamed: 0"``, by its position.
    columns : sequence of str, optional
        Columns to keep, in this order; by default all.
    sep : str, optional
        The character between the fields of a CSV file; by default a comma, or a tab in ``.tsv``.
        Like `decimal` and `encoding` it does not matter for Parquet.
    decimal : str, default="."
        The decimal character of a CSV file.
    encoding : str, default="utf-8"
        The encoding of a CSV file, such as ``"latin-1"``.
    max_rows : int, optional
        The largest number of rows to read from a Parquet file, drawn at random. The file is read in
        batches, so the other rows need no memory. See :func:`dsage.data.sample_rows`.

    Returns
    -------
    pandas.DataFrame
        At least one row; rows are numbered from 0.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If there is no such file.
    ValueError
        If the file is empty, damaged or of another kind, has columns without names or with equal
        names, or if `sep`, `decimal` or `encoding` is invalid.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("age,name,sick\n31,Ada,True\n54,Bo,False\n")
    >>> read_table(file)
       age name   sick
    0   31  Ada   True
    1   54   Bo  False
    """
    _check_text(sep, decimal, encoding)
    file = check_file(path, "the data file")
    suffixes = [suffix.lower() for suffix in file.suffixes]
    is_packed = bool(suffixes) and suffixes[-1] in _COMPRESSED
    kind = "".join(suffixes[-2:-1] if is_packed else suffixes[-1:])
    if kind in _SEPARATORS:
        packing = _COMPRESSED[suffixes[-1]] if is_packed else None
        separator = sep or _SEPARATORS[kind]
        table = _read_csv(file, separator, packing, decimal=decimal, encoding=encoding)
    elif kind in PARQUET and not is_packed:
        table = _read_parquet(file, max_rows)
    else:
        is_parquet = kind in PARQUET
        advice = "Parquet is compressed inside" if is_parquet else "Save the table as one of these"
        raise refusal("the data file", _KINDS, file.name, advice)
    left_out = check_members(drop, list(table.columns), "drop", f"the columns of {file.name}")
    table = table.drop(columns=list(left_out))
    if columns is not None:
        check_columns(list(table.columns), columns, f"the columns of {file.name}")
        table = table[list(columns)]
    if nameless := [name for name in table.columns if name.startswith("Unnamed: ")]:
        start = "It seems to be a saved index: name it, or leave it out with "
        remedy = Text([start, Setting("drop", nameless)])
        raise refusal(f"the columns of {file.name}", "named", nameless, remedy)
    if not len(table):
        raise refusal("the data file", "of at least one row", file.name, "It has none")
    if not table.columns.size:
        raise refusal("the data file", "of at least one column", file.name, "Drop fewer columns")
    return table.reset_index(drop=True)


def check_file(path: str | PathLike[str], what: str) -> Path:
    """Return the path of an existing file that is not empty; `what` names it in errors."""
    file = Path(path)
    if file.is_dir():
        raise refusal(what, "a file", str(file), "It is a folder: name a file", IsADirectoryError)
    if not file.exists():
        advice = "Check the spelling and the working directory"
        if not file.parent.exists():
            advice = f"There is no folder {str(file.parent)!r} either"
        raise refusal(what, "a file that exists", str(file), advice, FileNotFoundError)
    if not file.stat().st_size:
        raise refusal(what, "a file with content", str(file), "It is empty")
    return file


def _check_text(sep: str | None, decimal: str, encoding: str) -> None:
    """Refuse invalid separators and decimal characters, and unknown encodings."""
    for name, sign in (("sep", sep), ("decimal", decimal)):
        if sign is not None and (len(sign) != 1 or sign.isalnum() or sign in '"\n\r'):
            raise refusal(name, "one character", sign, "Use a punctuation mark, such as ','")
    try:
        codecs.lookup(encoding)
    except (LookupError, ValueError) as error:
        advice = "Use 'utf-8', 'latin-1', 'cp1252' or 'utf-16', for example"
        raise refusal("encoding", "one that Python knows", encoding, advice) from error


def _read_csv(
    file: Path, separator: str, compression: str | None, *, decimal: str, encoding: str
) -> pd.DataFrame:
    if separator == decimal:
        advice = Text(["Say what separates the fields, such as ", Setting("sep", ";")])
        raise refusal("decimal", "another character than sep", decimal, advice)
    text = {"sep": separator, "encoding": encoding}
    if compression is not None:
        with _reword_errors(file, compression, encoding):
            n_bytes, most = file.stat().st_size, _RATIO * file.stat().st_size + _SPARE
            is_too_large = _is_larger(file, compression, most)
        if is_too_large:
            condition = f"at most {_RATIO} times as large when it is unpacked"
            remedy = "Unpack it yourself if you trust it"
            raise refuse_file(file, condition, remedy, f"{n_bytes:,} bytes")
    with _reword_errors(file, compression, encoding):
        header = _parse(file, compression, header=None, nrows=1, dtype=str, **text)
    _check_header(header.iloc[0].tolist(), file, separator)
    with _reword_errors(file, compression, encoding):
        # If rows are longer than the header, pandas takes the first column for an index; as rows
        # without a header they are refused.
        _parse(file, compression, header=None, nrows=2, dtype=str, **text)
        return _parse(file, compression, low_memory=False, decimal=decimal, **text)


@contextmanager
def _reword_errors(file: Path, compression: str | None, encoding: str) -> Iterator[None]:
    """Turn errors of parsers and decompressors into errors about the file."""
    try:
        yield
    except UnicodeError as error:
        text = "Save it as UTF-8, or name its encoding, such as "
        remedy = Text([text, Setting("encoding", "latin-1")])
        raise refuse_file(file, f"text in {encoding.upper()}", remedy) from error
    except pd.errors.EmptyDataError as error:
        raise refuse_file(file, "a table with a header", "It has no columns") from error
    except pd.errors.ParserError as error:
        advice = "Each row needs as many fields as the header; quote fields that contain separators"
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip(" .\n")
        raise refuse_file(file, "a table with rows of one length", advice, reason) from error
    except (
        OSError,
        EOFError,
        ValueError,
        RuntimeError,
        BadZipFile,
        LZMAError,
        zlib.error,
    ) as error:
        whole = f"a whole {compression or 'CSV'} file"
        raise refuse_file(file, whole, "Make or fetch it again", str(error)) from error


def _parse(file: Path, compression: str | None, **options: Any) -> pd.DataFrame:  # noqa: ANN401
    if compression != "zstd":
        options["compression"] = compression
        return pd.DataFrame(pd.read_csv(file, **options))
    # pandas itself cannot read Zstandard without further packages.
    pyarrow = import_extra("pyarrow", "Reading .zst files", "parquet")
    with pyarrow.input_stream(str(file), compression="zstd") as stream:
        return pd.DataFrame(pd.read_csv(stream, **options))


def _is_larger(file: Path, compression: str, most: int) -> bool:
    """Return whether an unpacked file would have more than this number of bytes."""
    if compression == "zip":
        with ZipFile(file) as archive:
            return sum(member.file_size for member in archive.infolist()) > most
    if compression == "zstd":
        pyarrow = import_extra("pyarrow", "Reading .zst files", "parquet")
        stream = pyarrow.input_stream(str(file), compression="zstd")
    else:
        stream = _OPENERS[compression](file)
    n_bytes = 0
    with stream:
        while part := stream.read(_CHUNK):
            n_bytes += len(part)
            if n_bytes > most:
                return True
    return False


def _check_header(names: list[Any], file: Path, separator: str) -> None:
    texts = ["" if pd.isna(name) else str(name) for name in names]
    _check_distinct([text for text in texts if text], file)
    others = [other for other in ",;\t|" if other != separator and other in texts[0]]
    if len(texts) == 1 and others:
        name, found = f"the columns of {file.name}", f"one column, {texts[0]!r}"
        raise refusal(name, f"separated by {separator!r}", found, _advise_separator(others[0]))


def _check_distinct(names: list[str], file: Path) -> None:
    if twice := sorted(name for name, count in Counter(names).items() if count > 1):
        advice = "These occur twice: rename or remove some"
        raise refusal(f"the columns of {file.name}", "of distinct names", twice, advice)


def _advise_separator(sign: str) -> Text:
    if sign == "\t":
        return Text(["Call a file with tabs .tsv, or add ", Setting("sep", sign)])
    start, comma = "Name what separates them: ", "; if decimals have commas, add "
    return Text([start, Setting("sep", sign), comma, Setting("decimal", ",")])


def _read_parquet(file: Path, max_rows: int | None) -> pd.DataFrame:
    import_extra("pyarrow", "Reading Parquet files", "parquet")
    parquet = import_extra("pyarrow.parquet", "Reading Parquet files", "parquet")
    with tell_damage(file):
        with parquet.ParquetFile(file) as source:
            names, n_rows = source.schema_arrow.names, source.metadata.num_rows
        _check_distinct(names, file)
        if max_rows is not None and n_rows > max_rows:
            return sample_rows(file, max_rows)
        check_memory(file, n_rows * len(names))
        table: pd.DataFrame = parquet.read_table(file).to_pandas()
    table.columns = table.columns.map(str)
    return table
