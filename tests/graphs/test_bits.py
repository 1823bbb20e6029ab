import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsage.graphs import bits
from dsage.graphs.bits import pack, unpack


@given(st.integers(0, 200), st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_unpack_undoes_pack(n_rows, n_columns, seed):
    known = np.random.default_rng(seed).random((n_rows, n_columns)) < 0.5
    rows = pack(known)
    assert len(rows) == n_columns
    np.testing.assert_array_equal(unpack(rows, n_rows), known)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_rows", [8191, 8192, 8193, 20_000])
def test_pack_does_not_depend_on_block_or_memory_order(n_rows, order, monkeypatch):
    known = np.array(np.random.default_rng(0).random((n_rows, 3)) < 0.5, order=order)
    rows = pack(known)
    assert [row.bit_count() for row in rows] == known.sum(axis=0).tolist()
    np.testing.assert_array_equal(unpack(rows, n_rows), known)
    monkeypatch.setattr(bits, "_TRANSPOSED_AT_ONCE", 64)
    assert pack(known) == rows
    np.testing.assert_array_equal(unpack(rows, n_rows), known)
