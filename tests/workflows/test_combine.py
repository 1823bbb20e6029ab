"""Combined explanations: the random-effects mean, and what is refused."""

import dataclasses

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import dsage
from dsage.result.pooling import random_effects
from explanations import make_explanation
from fold_case import QUICK, table


def explained(seed, n_rows=30):
    """An explanation of one model on rows of this seed."""
    X, y = table()
    model = LinearRegression().fit(X, y)
    return dsage.explain(model, X, y, *table(n_rows, seed=seed), **QUICK)


@pytest.fixture(scope="module")
def sites():
    return {f"site {seed}": explained(seed) for seed in (1, 2, 3)}


def test_different_rows_are_pooled_by_their_errors_for_the_population(sites):
    combined = dsage.combine(sites)
    expected = random_effects(
        np.stack([each.values for each in sites.values()]),
        np.stack([each.estimate.se_total for each in sites.values()]),
    )
    assert not combined.shared_rows
    np.testing.assert_allclose(combined.values, expected.values)
    np.testing.assert_allclose(combined.se, expected.se)
    frame = combined.to_frame()
    assert (frame["lower_next"] <= frame["lower"]).all()
    assert frame["value[site 2]"].notna().all()
    assert "on different rows" in repr(combined)
    assert "<table>" in combined._repr_html_()


def test_the_error_from_shared_rows_does_not_get_smaller():
    one = explained(1)
    combined = dsage.combine([one, one, one])
    assert combined.shared_rows
    assert combined.labels == ("1", "2", "3")
    np.testing.assert_allclose(combined.values, one.values)
    np.testing.assert_allclose(combined.se, one.estimate.se_rows)


def test_features_are_matched_by_name(sites):
    first, second, *_ = sites.values()
    X, y = table()
    turned = list(X.columns[::-1])
    model = LinearRegression().fit(X[turned], y)
    rows, targets = table(30, seed=2)
    other = dsage.explain(model, X[turned], y, rows[turned], targets, **QUICK)
    plain, mixed = dsage.combine([first, second]), dsage.combine([first, other])
    assert mixed.feature_names == first.feature_names
    np.testing.assert_allclose(mixed.values, plain.values, rtol=1e-6)


def test_explanations_that_share_rows_in_part_need_a_word(sites):
    one, two, _ = sites.values()
    given = {"a": one, "b": one, "c": two}
    with pytest.raises(ValueError, match=r"shared_rows must be given.*a, b \| c"):
        dsage.combine(given)
    assert dsage.combine(given, shared_rows=True).shared_rows


def test_what_differs_is_named(sites):
    first = next(iter(sites.values()))
    other = make_explanation(2, ["much", "other"], audited=False)
    with pytest.raises(
        ValueError,
        match=r"explanation 'b' must be of the features of 'a'.*It lacks 'idle', 'little'.*also has 'other'",
    ):
        dsage.combine({"a": first, "b": other})
    with pytest.raises(ValueError, match="explanation '2' must be of the target of '1', 'outcome'"):
        dsage.combine([first, dataclasses.replace(first, target="z")])
    loss = dataclasses.replace(first.choices.loss, name="absolute_error")
    choices = dataclasses.replace(first.choices, loss=loss)
    with pytest.raises(ValueError, match="explanation '2' must be of the loss of '1'"):
        dsage.combine([first, dataclasses.replace(first, choices=choices)])


def test_other_objects_are_refused(sites):
    first = next(iter(sites.values()))
    with pytest.raises(TypeError, match="explanations must be several Explanations"):
        dsage.combine(first)
    with pytest.raises(ValueError, match="explanations must be two or more; got 1"):
        dsage.combine([first])
    with pytest.raises(TypeError, match="explanation '2' must be an Explanation; got 'int'"):
        dsage.combine([first, 3])


def test_single_rows_have_no_error_to_weigh_by(sites):
    first = next(iter(sites.values()))
    with pytest.raises(ValueError, match="explanation 'b' must be evaluated on two rows or more"):
        dsage.combine({"a": first, "b": explained(5, n_rows=1)})
