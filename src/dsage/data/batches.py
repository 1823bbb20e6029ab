"""Rows of Parquet files and of Arrow data sets, a batch at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from dsage._check import check_count, check_members, check_names, refusal
from dsage.data.damages import tell_damage

BATCH_ROWS = 65_536
"""Rows of a batch, unless the user says otherwise."""


class Batches(ABC):
    """Rows that can be read again and again, a batch at a time.

    Attributes
    ----------
    names : tuple of str
        The columns.
    n_rows : int
        The number of rows.
    """

    names: tuple[str, ...]
    n_rows: int

    @abstractmethod
    def read(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns as tables of pyarrow, none of them empty."""


class ParquetFiles(Batches):
    """A Parquet file, or all of them in a folder, by their paths.

    Only one batch is in memory at a time, and the row group that it is read from.
    """

    def __init__(self, path: str | PathLike[str], batch_rows: int = BATCH_ROWS) -> None:
        self._batch_rows = check_count(batch_rows, "batch_rows")
        _, self._parquet = _pyarrow("pyarrow.parquet")
        folder = Path(path)
        self._files = sorted(folder.glob("**/*.parquet")) if folder.is_dir() else [folder]
        if not self._files:
            advice = "It contains no Parquet file"
            raise refusal("path", "a Parquet file or a folder of them", str(path), advice)
        self.n_rows, self.names = 0, ()
        for file in self._files:
            with tell_damage(file), self._open(file) as source:
                names = check_names(source.schema_arrow.names, f"the columns of {file.name}")
                self.names = self.names or names
                check_members(self.names, names, "columns", f"the columns of {file.name}")
                self.n_rows += source.metadata.num_rows

    def read(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns, file by file."""
        arrow, _ = _pyarrow("pyarrow.parquet")
        for file in self._files:
            with tell_damage(file), self._open(file) as source:
                for batch in source.iter_batches(self._batch_rows, columns=list(columns)):
                    if batch.num_rows:
                        yield arrow.Table.from_batches([batch]).select(list(columns))

    def _open(self, file: Path) -> Any:  # noqa: ANN401
        # With pre-buffering the whole file would be in memory before its first batch.
        try:
            return self._parquet.ParquetFile(file, pre_buffer=False)
        except FileNotFoundError:
            advice = "Check the spelling and the working directory"
            condition = "a file or folder that exists"
            raise refusal("path", condition, str(file), advice, FileNotFoundError) from None
        except _pyarrow("pyarrow.parquet")[0].ArrowInvalid as error:
            advice = f"It cannot be read as Parquet: {error}"
            raise refusal("path", "a Parquet file or a folder of them", str(file), advice) from None


class DatasetBatches(Batches):
    """A data set of pyarrow: files of any kind, and filters."""

    def __init__(self, dataset: Any, batch_rows: int = BATCH_ROWS) -> None:  # noqa: ANN401
        self._dataset = dataset
        self._batch_rows = check_count(batch_rows, "batch_rows")
        self.names = check_names(dataset.schema.names, "the columns of the data set")
        self.n_rows = int(dataset.count_rows())

    def read(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns, in the order of the data set."""
        arrow, module = _pyarrow("pyarrow.dataset")
        options = {"columns": list(columns), "batch_size": self._batch_rows}
        # Reading ahead would fill the memory.
        options |= {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
        if isinstance(getattr(self._dataset, "format", None), module.ParquetFileFormat):
            scan = module.ParquetFragmentScanOptions(pre_buffer=False)
            options["fragment_scan_options"] = scan
        for batch in self._dataset.to_batches(**options):
            if batch.num_rows:
                yield arrow.Table.from_batches([batch])


def is_on_disk(data: object) -> bool:
    """Report whether the data is a path or an Arrow data set."""
    return isinstance(data, (str, PathLike)) or _is_dataset(data)


def open_batches(data: Any, batch_rows: int = BATCH_ROWS) -> Batches:  # noqa: ANN401
    """Return the rows of a path, of a data set of pyarrow, or of Batches."""
    if isinstance(data, Batches):
        return data
    if _is_dataset(data):
        return DatasetBatches(data, batch_rows)
    if isinstance(data, (str, PathLike)):
        return ParquetFiles(fspath(data), batch_rows)
    advice = "Pass data frames and arrays to learn_graph itself"
    raise refusal("data", "a path or an Arrow data set", type(data).__name__, advice, TypeError)


def _is_dataset(data: object) -> bool:
    kind = type(data)
    is_arrow = any(each.__module__.startswith("pyarrow") for each in kind.__mro__)
    return is_arrow and hasattr(data, "to_batches") and hasattr(data, "count_rows")


def _pyarrow(module: str) -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module(module)
    except ImportError as error:
        text = "Reading Parquet needs pyarrow. Install it with: pip install pyarrow."
        raise ImportError(text) from error
