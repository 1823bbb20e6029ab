"""The running totals of an estimation, and how much memory they take."""

import pytest

from dsage import Graph
from dsage.estimate import totals as module
from dsage.estimate.plan import Plan
from dsage.estimate.totals import Totals
from tables import NAMES, Table

GRAPH = Graph([*NAMES, "y"], [("a", "b"), ("b", "y"), ("c", "y"), ("y", "d")])


@pytest.mark.parametrize(("share", "n_rows"), [(2.0, 12), (1.99, 6), (1.0, 6), (0.5, 3)])
def test_an_audit_has_half_of_the_memory(monkeypatch, share, n_rows):
    options = {"oracle": GRAPH.oracle("y"), "exact": "never", "rows_per_ordering": 2}
    plan = Plan(Table(n_rows=12), random_state=0, **options)
    # Four features, two replicates and a single term.
    n_bytes = 8 * 12 * (4 * (2 + 3 + 2) + 3)
    monkeypatch.setattr(module, "MAX_BYTES", int(share * n_bytes))
    assert Totals(plan).audit_ledger.state()["sums"].shape[1] == n_rows
