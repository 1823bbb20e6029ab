"""Columns of data as margins and tables of a mixture, value by value."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from dsage.data.layout import Layout
from dsage.samplers.mix.margins import Margins, Scale
from dsage.samplers.mix.variables import Variables, _main_axis


@pytest.mark.parametrize("n_rows", [2, 7, 199, 200, 201, 900])
def test_normal_scores_join_quantiles_whose_equal_values_share_the_mean_score(n_rows):
    values = np.round(np.random.default_rng(0).normal(size=n_rows), 1)
    ordered = np.sort(values)
    at = sorted({int(each) for each in np.linspace(0, n_rows - 1, min(n_rows, 200))})
    scores = {}
    for place in at:
        scores.setdefault(ordered[place], []).append(ndtri((place + 0.5) / n_rows))
    knots = np.array(sorted(scores))
    means = np.array([np.mean(scores[knot]) for knot in knots.tolist()])
    gappy = np.append(values, [np.nan, np.nan])[:, None]
    found = Margins.of(gappy, Scale.SCORES)
    np.testing.assert_allclose(found.knots[0], knots)
    np.testing.assert_allclose(found.scores[0], means)
    x = np.append(values + 0.03, [-9.0, 9.0, np.nan])[:, None]

    def line(point):
        piece = min(max(int((knots < point).sum()) - 1, 0), len(knots) - 2)
        slope = (means[piece + 1] - means[piece]) / (knots[piece + 1] - knots[piece])
        return means[piece] + slope * (point - knots[piece]), slope

    # Beyond the knots the first and the last piece go on.
    expected = np.array([line(point)[0] for point in x[:-1, 0]])
    np.testing.assert_allclose(found.to_scores(x)[:-1, 0], expected, rtol=1e-9, atol=1e-9)
    assert np.isnan(found.to_scores(x)[-1, 0])
    np.testing.assert_allclose(found.to_values(expected, 0), x[:-1, 0], rtol=1e-7, atol=1e-7)
    slopes = found.log_slopes(x)
    np.testing.assert_allclose(slopes[:-1], [np.log(line(p)[1]) for p in x[:-1, 0]], atol=1e-9)
    assert slopes[-1] == 0.0


@pytest.mark.parametrize("scale", list(Scale))
@pytest.mark.parametrize("values", [[], [3.0], [2.0, 2.0], [np.nan, 4.0]])
def test_columns_without_variation_are_in_units_of_one(values, scale):
    X = np.array([*values, np.nan])[:, None]
    found = Margins.of(X, scale)
    center = np.nanmean(X) if np.isfinite(X).any() else 0.0
    assert found.to_scores(np.array([[center + 2.5]])).tolist() == [[2.5]]


def test_standard_units_are_deviations_from_the_mean():
    X = np.random.default_rng(0).normal(3.0, 5.0, (50, 2))
    found = Margins.of(X, Scale.STANDARD)
    np.testing.assert_allclose(found.to_scores(X), (X - X.mean(axis=0)) / X.std(axis=0))
    np.testing.assert_allclose(found.log_slopes(X), -np.log(X.std(axis=0)).sum())


# Tables


def test_rare_categories_are_grouped_along_the_main_axis_of_the_others():
    rng = np.random.default_rng(0)
    counts = np.concatenate([[60, 45, 20, 20, 19], 2 + np.arange(52) % 7])
    codes = rng.permutation(np.repeat(np.arange(57), counts))
    place = rng.normal(size=57)
    # Of this size names sort as the codes.
    frame = pd.DataFrame({"c": [f"c{code:02d}" for code in codes]})
    frame["x"] = place[codes] + 0.1 * rng.normal(size=len(codes))
    layout = Layout.of(frame)
    X = layout.encode(frame)
    table = Variables.of(X, layout).tables[0]
    # Twenty rows are enough for a state of its own.
    order = sorted(range(57), key=lambda code: (-counts[code], code))
    assert table.state_of[order[:4]].tolist() == [0, 1, 2, 3]
    rare = order[4:]
    axis = (X[:, 1] - X[:, 1].mean()) / X[:, 1].std()
    if np.corrcoef(axis, _main_axis(X, layout))[0, 1] < 0:
        axis = -axis
    means = {code: axis[codes == code].sum() / (counts[code] + 1) for code in rare}
    below, groups = 0, {}
    for code in sorted(rare, key=means.get):
        groups[code] = min(8 * below // counts[rare].sum(), 7)
        below += counts[code]
    names = sorted(set(groups.values()))
    for code in rare:
        assert table.state_of[code] == 4 + names.index(groups[code])
        own = [other for other in rare if groups[other] == groups[code]]
        assert table.shares[code] == pytest.approx(counts[code] / counts[own].sum())
    assert (table.shares[order[:4]] == 1.0).all()


def test_at_most_forty_categories_have_their_own_state_if_others_are_grouped():
    counts = np.append(np.full(45, 30), np.full(10, 3))
    codes = np.repeat(np.arange(55), counts)
    frame = pd.DataFrame({"c": [f"c{code:02d}" for code in codes], "x": np.sin(codes)})
    layout = Layout.of(frame)
    table = Variables.of(layout.encode(frame), layout).tables[0]
    assert table.state_of[:40].tolist() == list(range(40))
    assert (table.state_of[40:] >= 40).all()
    assert table.n_states <= 48


def test_the_main_axis_is_the_first_principal_component():
    rng = np.random.default_rng(0)
    z = rng.normal(size=80)
    frame = pd.DataFrame(
        {
            "a": 5 * z + rng.normal(size=80) + 100,
            "b": np.where(z > 0, "u", "v"),
            "flat": 2.0,
            "gap": np.where(rng.random(80) < 0.3, np.nan, z),
            "none": np.nan,
        }
    )
    layout = Layout.of(frame)
    X = layout.encode(frame)
    wide = np.zeros((80, 6))
    wide[:, 0] = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    for code in range(2):
        wide[:, 1 + code] = (X[:, 1] == code) - (X[:, 1] == code).mean()
    filled = np.where(np.isnan(X[:, 3]), np.nanmean(X[:, 3]), X[:, 3])
    filled = filled - np.nanmean(X[:, 3])
    wide[:, 3] = filled / filled.std()
    first = wide @ np.linalg.svd(wide, full_matrices=False)[2][0]
    found = _main_axis(X, layout)
    np.testing.assert_allclose(np.abs(found), np.abs(first), rtol=1e-6, atol=1e-9)
    assert (_main_axis(X[:, :0], Layout.of(frame[[]])) == 0).all()
