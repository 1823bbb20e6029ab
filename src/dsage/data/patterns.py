"""Patterns among columns: copies, and zeros and ones that exclude each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dsage.data.possible import Exclusive

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Independent columns with so many expected rows of two ones have none with probability exp(-6).
_MIN_EXPECTED = 6.0
# The number of rows that suffices to distinguish most columns.
_HEAD = 64


def find_copies(columns: Sequence[Floats], sorts: Sequence[object]) -> dict[int, int]:
    """Return which columns repeat an earlier one: the position of each, and of the earlier one.

    Only columns of equal `sorts` are compared; None leaves a column out.
    """
    copies: dict[int, int] = {}
    first: dict[tuple[object, bytes], list[int]] = {}
    for at, (values, sort) in enumerate(zip(columns, sorts, strict=True)):
        if sort is None:
            continue
        head = values[:_HEAD]
        # Zeros and NaN have signs, which do not matter.
        head = np.where(np.isnan(head), np.nan, head + 0.0)
        same = first.setdefault((sort, head.tobytes()), [])
        for earlier in same:
            if np.array_equal(values, columns[earlier], equal_nan=True):
                copies[at] = earlier
                break
        else:
            same.append(at)
    return copies


def find_exclusive(
    columns: Sequence[Floats], is_flag: Mask, groups: Mapping[str, Iterable[int]] | None = None
) -> tuple[Exclusive, ...]:
    """Return the sets of columns of zeros and ones of which at most one is 1 in any row.

    Such a set is a maximal run of adjacent flags in which exactly one is 1 in every row, or in
    which at least 6 rows with two ones would be expected if the columns were independent. Columns
    that are 0 in every row are no flags, but belong to the run if they lie inside it. The flags of
    a group form a set if at most one of them is 1 in any row; otherwise the group is searched for
    runs.

    Parameters
    ----------
    columns : sequence of arrays of shape (n_rows,)
        The values.
    is_flag : bool array of shape (n_columns,)
        The columns that have the values 0 and 1, or 0 only.
    groups : dict of positions, optional
        Columns that the user groups.
    """
    found: list[list[int]] = []
    free = is_flag.copy()
    for members in (groups or {}).values():
        flags = [at for at in sorted(members) if is_flag[at]]
        whole = _find_runs(flags, columns)
        sets = [run for run in whole if len(whole) == 1 or _is_certain(run, columns)]
        found += sets
        free[[at for run in sets for at in run]] = False
    for piece in _find_adjacent(free):
        found += [run for run in _find_runs(piece, columns) if _is_certain(run, columns)]
    return tuple(_make(run, columns) for run in sorted(found))


def _find_adjacent(free: Mask) -> list[list[int]]:
    """Return the runs of adjacent positions that are free."""
    positions = np.flatnonzero(free)
    return [
        part.tolist() for part in np.split(positions, np.flatnonzero(np.diff(positions) > 1) + 1)
    ]


def _find_runs(flags: Sequence[int], columns: Sequence[Floats]) -> list[list[int]]:
    """Return the runs of two or more flags, as long as possible, without two ones in a row."""
    runs: list[list[int]] = []
    run: list[int] = []
    taken: Mask = np.zeros(0, np.bool_)
    for at in flags:
        is_one = columns[at] != 0
        if run and not (taken & is_one).any():
            run.append(at)
            taken = taken | is_one
            continue
        runs.append(run)
        run, taken = [at], is_one
    runs.append(run)
    trimmed = (_trim(each, columns) for each in runs)
    return [each for each in trimmed if sum(columns[at].any() for at in each) > 1]


def _trim(run: list[int], columns: Sequence[Floats]) -> list[int]:
    """Return a run without the zeros at its ends."""
    ones = [place for place, at in enumerate(run) if columns[at].any()]
    return run[ones[0] : ones[-1] + 1] if ones else []


def _is_certain(run: Sequence[int], columns: Sequence[Floats]) -> bool:
    """Return whether columns are unlikely to be exclusive by chance."""
    n_rows = len(columns[run[0]])
    shares = np.array([columns[at].sum() for at in run]) / n_rows
    expected = n_rows * (shares.sum() ** 2 - (shares**2).sum()) / 2
    is_complete = round(shares.sum() * n_rows) == n_rows
    return bool(is_complete or expected >= _MIN_EXPECTED)


def _make(run: Sequence[int], columns: Sequence[Floats]) -> Exclusive:
    values = np.stack([columns[at] for at in run], axis=1)
    states = np.eye(len(run))[values.any(axis=0)]
    if not values.any(axis=1).all():
        states = np.vstack([np.zeros((1, len(run))), states])
    return Exclusive(np.array(run, np.intp), states)
