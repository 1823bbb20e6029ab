"""Estimates are made from the sums of a run, and nothing is lost or counted twice."""

import math
from itertools import islice

import numpy as np
import pytest

from dsage import Graph
from dsage.estimate.inference import effective_df
from dsage.estimate.loop import Estimation
from dsage.estimate.result import TermKind
from pair_games import Pairs

N_FEATURES = 5
NAMES = Pairs(N_FEATURES).feature_names
EDGES = [("x0", "x1"), ("x1", "y"), ("x2", "y"), ("y", "x3"), ("x4", "x3")]
ORACLE = Graph([*NAMES, "y"], EDGES).oracle("y")
CASES = {
    "plain": {},
    "exact": {"exact": "always"},
    "no first level": {"first_level": "none"},
    "audit": {"oracle": ORACLE},
    "audit, exact": {"oracle": ORACLE, "exact": "always"},
    "sage": {"oracle": ORACLE, "estimand": "sage"},
    "sage, exact": {"oracle": ORACLE, "estimand": "sage", "exact": "always"},
    "given": {"orderings": [list(range(5)), [4, 2, 0, 1, 3], [1, 0, 3, 2, 4]]},
}


def expected_of(estimation):
    """The parts of an estimate, from the sums."""
    plan, totals = estimation.plan, estimation._totals
    main, slope = totals.tallies[0], totals.slope
    value, control = main.mean()
    parts, df = [(value - slope * control, totals.own_variance(0))], [main.df]
    if slope:
        parts.insert(0, (slope * plan.control.mean, slope**2 * plan.control.variance))
        df.insert(0, np.inf)
    drawn = totals.draw_se() ** 2
    shown = [variance for _, variance in parts]
    if plan.estimand == "sage" and len(plan.terms) == 2:
        other = totals.tallies[1]
        parts.append((other.mean()[0], totals.own_variance(1)))
        shown.append(totals.own_variance(1) + totals.draw_se(1) ** 2)
        df.append(other.df)
    values, variances = (np.sum(each, axis=0) for each in zip(*parts, strict=True))
    degrees = np.ones(N_FEATURES)
    if np.isfinite(shown).all() and np.isfinite(drawn).all():
        of_terms = [np.full(N_FEATURES, each) for each in df]
        degrees = effective_df([*shown, drawn], [*of_terms, totals.ledger.df_draws])
    return values, np.sqrt(variances), np.sqrt(drawn), degrees


def counts_of(estimation):
    """Numbers of orderings and of independent pieces."""
    plan, totals = estimation.plan, estimation._totals
    units = [tally.n_units for tally in totals.tallies]
    sizes = [term.batch_size for term in plan.terms]
    is_both = plan.estimand == "sage" and len(plan.terms) == 2
    n_passes = int(totals.tallies[0].counts.min())
    if plan.enumeration is not None and n_passes:
        if not is_both:
            return math.factorial(N_FEATURES), n_passes * plan.game.n_rows
        n_pieces = 1 << 40
        if plan.is_drawn:
            n_pieces = sum(
                n * len(shard)
                for n, shard in zip(totals.tallies[0].counts, plan.shards, strict=True)
            )
        return units[1] * sizes[1], min(units[1], n_pieces)
    if not is_both:
        return units[0] * sizes[0], units[0]
    return max(n * size for n, size in zip(units, sizes, strict=True)), min(units)


@pytest.mark.parametrize("n_replicates", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_an_estimate_is_the_sum_of_its_terms(case, n_replicates):
    options = {"exact": "never", "rows_per_ordering": 5, "random_state": 0} | CASES[case]
    estimation = Estimation(Pairs(N_FEATURES, n_replicates), **options)
    plan, totals, n_looks = estimation.plan, estimation._totals, 0
    for found in islice(estimation.steps(), 12):
        n_looks += 1
        values, se_orderings, se_draws, df = expected_of(estimation)
        close = {"rtol": 1e-9, "atol": 1e-12}
        np.testing.assert_allclose(found.values, values, **close)
        np.testing.assert_allclose(found.se_orderings, se_orderings, **close)
        np.testing.assert_allclose(found.se_draws, se_draws, **close)
        np.testing.assert_allclose(found.df, df, **close)
        np.testing.assert_allclose(np.sum([t.values for t in found.terms], axis=0), values, **close)
        rows = np.sqrt(totals.ledger.row_variance(totals.estimated))
        np.testing.assert_allclose(found.se_rows, rows, **close)
        assert found.df_rows == totals.ledger.df_rows
        assert (found.n_orderings, found.n_units) == counts_of(estimation)
        assert (found.n_evaluated, found.n_shared) == (plan.game.n_evaluated, plan.game.n_shared)
        is_exact = plan.enumeration is not None and bool(totals.tallies[0].counts.all())
        assert found.is_exact == (is_exact and case != "sage, exact")
        assert (found.audit is None) == ("oracle" not in CASES[case])
        kinds = [term.kind for term in found.terms]
        assert (TermKind.FIRST_LEVEL in kinds) == bool(totals.slope)
        assert (TermKind.CORRECTION in kinds) == (plan.estimand == "sage" and len(plan.terms) == 2)
        if found.audit is not None:
            assert found.audit.n_orderings == totals.tallies[1].n_units * plan.terms[1].batch_size
            assert found.audit.n_evaluated == totals.costs[1]
            assert found.audit.df == totals.tallies[1].df
            wanted = totals.own_variance(1) + totals.draw_se(1) ** 2
            np.testing.assert_allclose(found.audit.se**2, wanted, **close)
        main = next(t for t in found.terms if t.kind in (TermKind.SAMPLED, TermKind.ENUMERATED))
        assert main.n_evaluated == totals.costs[0]
        assert main.df == totals.tallies[0].df
        assert len(found.history) <= n_looks
        np.testing.assert_array_equal(found.history.values[-1], found.values)
        np.testing.assert_array_equal(found.history.se[-1], found.se)
        if plan.enumeration is None:
            n_orderings = totals.tallies[0].n_units * plan.terms[0].batch_size
            np.testing.assert_allclose(found.share_skipped, totals.skipped / n_orderings)
        if plan.oracle is not None and plan.enumeration is None:
            assert found.share_skipped.any()
    assert n_looks
