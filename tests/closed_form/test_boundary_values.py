"""v(S) = v(M(S)) for an optimal model: exact conditional variances of linear-Gaussian models.

For squared error and f*(x) = E[Y | x] the risk of a coalition is Var(Y | X_S), which the exact
population covariance gives in closed form.
"""

import numpy as np
import pytest

from dsage.datasets import paper_graph
from given import all_coalitions


@pytest.fixture(params=["dag_s(2)", "dag_s(3)", "dag_s(4)"], scope="module")
def case(request):
    """The oracle, all coalitions, and a function from coalitions to their exact risks."""
    model = paper_graph(request.param)
    oracle = model.graph.oracle(model.target)
    order = [*oracle.feature_names, model.target]
    covariance = model.covariance().loc[order, order].to_numpy()
    known = all_coalitions(9)
    place = 2 ** np.arange(9)[::-1]

    def conditional_variance(row):
        inside = np.flatnonzero(row)
        cross = covariance[inside, -1]
        return covariance[-1, -1] - cross @ np.linalg.solve(
            covariance[np.ix_(inside, inside)], cross
        )

    table = np.array([conditional_variance(row) for row in known])
    return oracle, known, lambda coalitions: table[coalitions @ place]


def test_the_value_of_a_coalition_is_that_of_its_boundary(case):
    oracle, known, risks = case
    np.testing.assert_allclose(risks(oracle.boundary(known)), risks(known), rtol=0, atol=1e-12)


def test_a_separated_feature_has_surplus_zero_and_no_other_has(case):
    """Theorem 1 of the paper; the converse is faithfulness, which these weights fulfil."""
    oracle, known, risks = case
    separated, base = oracle.separated(known), risks(known)
    for feature in range(9):
        larger = known.copy()
        larger[:, feature] = True
        surplus = base - risks(larger)
        outside = ~known[:, feature]
        skipped = separated[:, feature]
        np.testing.assert_allclose(surplus[skipped], 0.0, atol=1e-12)
        assert (surplus[outside & ~skipped] > 1e-9).all()
