"""Number of rows, means and covariances: the sufficient statistics of Gaussian scores."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dsage._check import (
    check_count,
    check_members,
    check_names,
    check_same_names,
    check_shape,
    refusal,
)
from dsage.data.batches import BATCH_ROWS, ParquetFiles
from dsage.data.pools import blas_for
from dsage.data.rows import Rows
from dsage.data.table import Table

Floats = npt.NDArray[np.float64]


class Moments:
    """The number of rows, the means and the covariances of some variables. Immutable.

    The centered cross-products ``scatter = sum over rows (x - mean)(x - mean)'`` are stored, so
    that moments of parts of the data merge into moments of the whole, exactly up to rounding.

    Parameters
    ----------
    names : iterable of str
        The variables.
    n_rows : int
        The number of rows.
    mean : array of shape (n_nodes,)
        The means.
    covariance : array of shape (n_nodes, n_nodes)
        The covariances, with divisor ``n_rows - 1``.

    Examples
    --------
    >>> moments = Moments.from_array([[1.0, 2.0], [3.0, 5.0], [5.0, 2.0]], ["a", "b"])
    >>> moments
    Moments(3 rows, 2 nodes: a, b)
    >>> moments.mean, moments.covariance
    (array([3., 3.]), array([[4., 0.], [0., 3.]]))
    >>> merged = moments + Moments.from_array([[7.0, 3.0]], ["a", "b"])
    >>> merged.n_rows, merged.mean
    (4, array([4., 3.]))
    """

    def __init__(
        self, names: Iterable[str], n_rows: int, mean: npt.ArrayLike, covariance: npt.ArrayLike
    ) -> None:
        self._names = check_names(names)
        self._n_rows = check_count(n_rows, "n_rows")
        n_nodes = len(self._names)
        self._mean = _freeze(_check_array(mean, (n_nodes,), "mean"))
        checked = _check_array(covariance, (n_nodes, n_nodes), "covariance")
        if (checked.diagonal() < 0).any():
            bad = [self._names[node] for node in np.flatnonzero(checked.diagonal() < 0)]
            raise refusal("covariance", "without negative variances", bad, "Correct these")
        scale = np.sqrt(np.outer(checked.diagonal(), checked.diagonal()))
        self._refuse(np.abs(checked - checked.T) > 1e-8 * scale, "symmetric")
        self._refuse(np.abs(checked) > (1 + 1e-8) * scale, "of correlations within [-1, 1]")
        self._scatter = _freeze((checked + checked.T) * (0.5 * (self._n_rows - 1)))

    def _refuse(self, wrong: npt.NDArray[np.bool_], condition: str) -> None:
        """Refuse a covariance with wrong entries; name the variables of the first."""
        if wrong.any():
            pair = tuple(self._names[node] for node in np.argwhere(wrong)[0])
            raise refusal("covariance", condition, pair, "Correct the entry of these two variables")

    @classmethod
    def _of(cls, names: tuple[str, ...], n_rows: int, mean: Floats, scatter: Floats) -> Self:
        made = cls.__new__(cls)
        made._names, made._n_rows = names, n_rows
        made._mean, made._scatter = _freeze(mean), _freeze(scatter)
        return made

    # Constructors

    @classmethod
    def from_frame(cls, frame: Any, names: Iterable[str] | None = None) -> Self:  # noqa: ANN401
        """Compute the moments of a numeric data frame or array (n_rows, n_nodes), in chunks."""
        return cls.from_table(Table(frame, names))

    from_array = from_frame

    @classmethod
    def from_table(cls, table: Rows) -> Self:
        """Compute the moments of typed columns, which must all be continuous."""
        running = Running(_check_continuous(table))
        for block in table.chunks():
            running.add(block)
        return cls._of(*running.result())

    @classmethod
    def from_batches(cls, batches: Iterable[Any], names: Iterable[str] | None = None) -> Self:
        """Compute the moments of the rows of batches, arrays or data frames.

        Parameters
        ----------
        batches : iterable of arrays or data frames
            All with the same columns; the columns of frames may be in any order.
        names : iterable of str, optional
            The columns; by default the columns of the first batch.

        Examples
        --------
        >>> parts = ([[float(row), row % 3.0]] for row in range(1000))
        >>> Moments.from_batches(parts, ["a", "b"]).n_rows
        1000
        """
        running: Running | None = None
        columns = None if names is None else check_names(names)
        for batch in batches:
            table = Table(batch, columns)
            columns = _check_continuous(table)
            running = running or Running(columns)
            for block in table.chunks():
                running.add(block)
        if running is None:
            raise refusal("batches", "at least one batch", 0, "Pass some rows")
        return cls._of(*running.result())

    @classmethod
    def from_parquet(
        cls, path: str | Path, columns: Iterable[str] | None = None, *, batch_rows: int = BATCH_ROWS
    ) -> Self:
        """Compute the moments of a Parquet file, or of a folder of them, batch by batch.

        Parameters
        ----------
        path : path
            The file or folder.
        columns : iterable of str, optional
            The columns to use; all by default.
        batch_rows : int, default=65536
            The largest number of rows in memory at a time.
        """
        files = ParquetFiles(path, batch_rows)
        wanted = files.names if columns is None else check_names(columns, "columns")
        chosen = check_members(wanted, files.names, "columns", "the columns")
        return cls.from_batches(files.read(chosen), chosen)

    # Properties

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self._names

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self._n_rows

    @property
    def mean(self) -> Floats:
        """The means, shape (n_nodes,)."""
        return self._mean

    @property
    def scatter(self) -> Floats:
        """The centered cross-products, shape (n_nodes, n_nodes)."""
        return self._scatter

    @property
    def covariance(self) -> Floats:
        """The covariances with divisor ``n_rows - 1``, shape (n_nodes, n_nodes)."""
        if self._n_rows < 2:
            raise refusal("n_rows", "at least 2", self._n_rows, "A single row has no covariance")
        return self._scatter / (self._n_rows - 1)

    @property
    def is_constant(self) -> npt.NDArray[np.bool_]:
        """Whether each variable varies no more than the rounding of its mean, shape (n_nodes,)."""
        deviation = np.sqrt(self._scatter.diagonal() / self._n_rows)
        return np.asarray(deviation <= 8 * np.finfo(np.float64).eps * np.abs(self._mean))

    @property
    def correlation(self) -> Floats:
        """The correlations, shape (n_nodes, n_nodes); 0 between a constant and all others."""
        scale = np.sqrt(self._scatter.diagonal())
        scale = np.where(scale > 0, scale, 1.0)
        correlation = np.clip(self._scatter / scale[:, None] / scale, -1.0, 1.0)
        np.fill_diagonal(correlation, 1.0)
        return correlation

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        shown = ", ".join(self._names[:6]) + (", ..." if len(self) > 6 else "")
        return f"Moments({self._n_rows} rows, {len(self)} nodes: {shown})"

    # Operations

    def select(self, names: str | Iterable[str]) -> Self:
        """Return the moments of some of the variables, in the order given."""
        chosen = check_members(names, self._names, "names", "the variables of the moments")
        at = [self._names.index(name) for name in chosen]
        return self._of(chosen, self._n_rows, self._mean[at], self._scatter[np.ix_(at, at)])

    def merge(self, other: Moments) -> Self:
        """Return the moments of the rows of both (Chan, Golub & LeVeque, 1983).

        ``scatter = scatter_a + scatter_b + (n_a n_b / n) delta delta'`` with the difference of
        the means ``delta``.
        """
        check_same_names(self._names, other.names, "the moments", "of the same variables")
        part = other if other.names == self._names else other.select(self._names)
        running = Running(self._names)
        running.merge(self._n_rows, self._mean, self._scatter)
        running.merge(part.n_rows, part.mean, part.scatter)
        return self._of(*running.result())

    def __add__(self, other: object) -> Self:
        return self.merge(other) if isinstance(other, Moments) else NotImplemented


class Running:
    """Moments of the rows seen so far."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names, self.n_rows = names, 0
        self.mean, self.scatter = np.zeros(len(names)), np.zeros((len(names), len(names)))

    def add(self, chunk: Floats) -> None:
        """Add the rows of `chunk`, which is overwritten."""
        if not len(chunk):
            return
        # Relative to its first row a constant column is exactly zero, and so is its scatter.
        first = chunk[0].copy()
        chunk -= first
        shift = chunk.mean(axis=0)
        chunk -= shift
        # NumPy passes the product of a matrix with its own transpose to BLAS's syrk.
        with blas_for(chunk.size * chunk.shape[1]):
            scatter = chunk.T @ chunk
        self.merge(len(chunk), first + shift, scatter)

    def merge(self, n_rows: int, mean: Floats, scatter: Floats) -> None:
        """Add the moments of other rows."""
        if not self.n_rows:
            # Copied only if it belongs to other moments: it may be large.
            own = scatter if scatter.flags.writeable else scatter.copy()
            self.n_rows, self.mean, self.scatter = n_rows, mean, own
            return
        total = self.n_rows + n_rows
        delta = mean - self.mean
        self.mean = self.mean + delta * (n_rows / total)
        self.scatter += scatter
        for at, weight in enumerate(delta * (self.n_rows * (n_rows / total))):
            self.scatter[at] += weight * delta
        self.n_rows = total

    def result(self) -> tuple[tuple[str, ...], int, Floats, Floats]:
        """Return the names, the number of rows, the means and the scatter."""
        if not self.n_rows:
            raise refusal("the data", "at least one row", 0, "Pass some rows")
        if not np.isfinite(self.scatter).all():
            bad = [self.names[k] for k in np.flatnonzero(~np.isfinite(self.scatter.diagonal()))]
            advice = "Change the units of these columns"
            raise refusal("the columns", "small enough for finite squares", bad, advice)
        symmetric = self.scatter + self.scatter.T
        symmetric *= 0.5
        return self.names, self.n_rows, self.mean, symmetric


def _check_continuous(table: Rows) -> tuple[str, ...]:
    if table.discrete:
        advice = "Moments need continuous variables: convert or drop these columns"
        raise refusal("the columns", "numbers", list(table.discrete), advice, TypeError)
    return table.names


def _check_array(values: npt.ArrayLike, shape: tuple[int, ...], parameter: str) -> Floats:
    array = np.array(values, dtype=np.float64)
    check_shape(array, shape, parameter, "Pass one entry per variable")
    if not np.isfinite(array).all():
        raise refusal(parameter, "finite", array, "Remove missing and infinite values")
    return array


def _freeze(array: Floats) -> Floats:
    frozen = np.ascontiguousarray(array)
    if frozen is array and array.flags.writeable:
        frozen = array.copy()
    frozen.flags.writeable = False
    return frozen
