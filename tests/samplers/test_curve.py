"""Curves and steps against numpy's interpolation and search, and steps against moved values."""

import numpy as np
import pytest

from dsage.data.possible import Codes, Possible, Range
from dsage.samplers import curve
from dsage.samplers.curve import Curves, Knots, Steps
from dsage.samplers.possible_steps import PossibleSteps, find_steps


def knots_of(n_knots, seed=0):
    """Knots with wide and narrow gaps."""
    rng = np.random.default_rng(seed)
    return np.cumsum(np.exp(3 * rng.normal(size=n_knots))) - 5.0


def points_of(knots, n_points=200, seed=1):
    """Points between, at, next to and beyond knots."""
    rng = np.random.default_rng(seed)
    reach = knots[-1] - knots[0]
    beyond = [knots[0] - reach, knots[-1] + reach]
    near = [np.nextafter(knots, -np.inf), knots, np.nextafter(knots, np.inf)]
    return np.concatenate([rng.uniform(*beyond, n_points), beyond, *near])


@pytest.mark.parametrize("n_knots", [2, 3, 50, 3000])
def test_the_knot_before_a_point_is_found(n_knots):
    knots = knots_of(n_knots)
    points = np.clip(points_of(knots), knots[0], knots[-1])
    expected = np.searchsorted(knots, points, side="right") - 1
    np.testing.assert_array_equal(Knots(knots).find(points), expected)


@pytest.mark.parametrize("n_knots", [2, 5, 300])
def test_curves_interpolate(n_knots):
    knots = knots_of(n_knots)
    values = np.random.default_rng(2).normal(size=(3, n_knots))
    points = points_of(knots)[: 4 * (len(points_of(knots)) // 4)].reshape(2, 2, -1)
    chosen = np.array([2, 0])
    found = Curves(knots, values)(points.copy(), chosen)
    for at, part, line in zip(chosen, points, found, strict=True):
        np.testing.assert_allclose(line, np.interp(part, knots, values[at]), rtol=1e-9, atol=1e-9)


def test_steps_take_the_level_after_the_last_place_that_is_not_above_a_point():
    places = [np.array([-0.5, -0.25, 0.1, 0.1001, 0.8]), np.empty(0), np.array([0.0])]
    levels = [np.array([4.0, 1.0, 7.0, 2.0, 3.0, 9.0]), np.array([5.0]), np.array([6.0, 8.0])]
    steps = Steps(places, levels, -1.0, 1.0)
    points = np.tile(points_of(np.sort(np.append(np.linspace(-1, 1, 41), places[0]))), (4, 1))
    chosen = np.array([1, 0, 2, 0])
    found = steps(points, chosen)
    for at, part, line in zip(chosen, points, found, strict=True):
        expected = levels[at][np.searchsorted(places[at], part, side="right")]
        np.testing.assert_array_equal(line, expected)


@pytest.mark.parametrize("n_cells", [1, 7, 2**14])
def test_curves_are_written_in_any_portions(n_cells, monkeypatch):
    monkeypatch.setattr(curve, "_CELLS", n_cells)
    curves = Curves(np.array([0.0, 1.0, 3.0]), np.arange(15.0).reshape(5, 3) ** 2)
    x = np.random.default_rng(0).uniform(-1, 4, (6, 2, 3))
    out, places, chosen = np.full(x.shape, -1.0), np.array([5, 0, 2, 3]), np.array([4, 1, 0, 2])
    curves.write(out, x, places, chosen)
    for place, at in zip(places, chosen, strict=True):
        expected = np.interp(x[place], curves.knots, curves.values[at])
        np.testing.assert_allclose(out[place], expected, rtol=1e-12)
    assert (out[[1, 4]] == -1.0).all()


def possible_values():
    """Codes, whole numbers, a single one, and many; the fourth column is free."""
    return {
        0: Codes(np.array([-1.0, 0.5, 0.75, 4.0])),
        1: Range(-2.0, 3.0),
        2: Range(7.0, 7.0),
        4: Range(-300.0, 300.0),
    }


def curves_of(columns=5):
    knots = np.linspace(-3.0, 3.0, 40)
    rng = np.random.default_rng(3)
    values = np.sort(rng.normal(scale=3.0, size=(columns, 40)), axis=1)
    # Some pieces are flat, one of them at the middle between two codes.
    values[0, 10:14], values[1, 5:9] = 0.625, 1.0
    values = np.sort(values, axis=1)
    values[4] *= 60
    return Curves(knots, values)


def test_steps_are_curves_that_are_moved_to_possible_values():
    curves, possible = curves_of(), possible_values()
    few = {at: possible[at] for at in (0, 1, 2)}
    steps = find_steps(curves, few)
    x = np.sort(np.append(np.linspace(-4.0, 4.0, 4001), curves.knots))
    for number, at in enumerate(few):
        moved = np.zeros((1, len(x), 5))
        moved[0] = curves(np.tile(x, (5, 1)), np.arange(5)).T
        Possible(few, ()).snap(moved, np.zeros(5, bool))
        found = steps(x[None].copy(), np.array([number]))[0]
        np.testing.assert_array_equal(found, moved[0, :, at])


@pytest.mark.parametrize("known", [[0, 0, 0, 0, 0], [1, 0, 0, 1, 0], [0, 1, 1, 0, 1]])
def test_values_are_written_as_curves_that_are_moved(known):
    known = np.array(known, bool)
    curves, possible = curves_of(), Possible(possible_values(), ())
    scores = np.random.default_rng(4).normal(size=(5, 6, 50))
    out = np.full(scores.shape, 1.25)
    expected = np.where(known[:, None, None], out, curves(scores.copy(), np.arange(5)))
    possible.snap(expected.transpose(1, 2, 0), known)
    PossibleSteps(curves, possible).write(out, scores, known)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_steps_are_moved_curves_that_are_flat_anywhere(seed):
    """Flat at whole numbers, at the middles between them, and at the ends."""
    rng = np.random.default_rng(seed)
    n_knots = int(rng.integers(2, 30))
    knots = knots_of(n_knots, seed)
    steps_of_half = rng.integers(-6, 7, (3, n_knots)) / 2
    values = np.sort(np.where(rng.random((3, n_knots)) < 0.8, steps_of_half, steps_of_half / 3))
    curves = Curves(knots, values)
    codes = np.unique(rng.integers(-6, 7, 5)) / 2
    few = {2: Range(-2.0, 3.0), 0: Codes(codes), 1: Range(-1.0, 1.0)}
    steps = find_steps(curves, few)
    points = points_of(knots, 400, seed)
    for number, at in enumerate(few):
        moved = curves(points[None].copy(), np.array([at]))[0]
        few[at].snap(moved)
        np.testing.assert_array_equal(steps(points[None].copy(), np.array([number]))[0], moved)


def test_a_curve_that_stays_on_one_side_of_a_step_never_takes_it():
    knots = np.array([0.0, 1.0, 2.0])
    curves = Curves(knots, np.array([[0.6, 0.7, 0.8], [0.5, 0.5, 0.5], [1.5, 1.5, 1.5]]))
    steps = find_steps(curves, dict.fromkeys(range(3), Range(0.0, 2.0)))
    points = np.tile([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0], (3, 1))
    expected = np.repeat([[1.0], [0.0], [2.0]], 6, axis=1)
    np.testing.assert_array_equal(steps(points, np.arange(3)), expected)


@pytest.mark.parametrize(("n_codes", "is_stepped"), [(1, True), (256, True), (257, False)])
def test_columns_of_up_to_256_possible_values_become_steps(n_codes, is_stepped):
    curves = Curves(np.array([-1.0, 1.0]), np.array([[0.0, 300.0], [0.0, 300.0]]))
    for values in (Range(0.0, n_codes - 1.0), Codes(np.arange(float(n_codes)))):
        shown = PossibleSteps(curves, Possible({1: values}, ()))
        assert shown._is_stepped.tolist() == [False, is_stepped]
        assert (shown._steps is None) == (not is_stepped)
        scores, out = np.linspace(-2, 2, 200).reshape(2, 1, 100), np.empty((2, 1, 100))
        shown.write(out, scores, np.zeros(2, bool))
        expected = np.interp(scores, [-1.0, 1.0], [0.0, 300.0])
        values.snap(expected[1])
        np.testing.assert_allclose(out, expected)


def test_codes_that_are_missing_in_all_training_rows_are_left_as_drawn():
    curves = Curves(np.array([-1.0, 1.0]), np.array([[0.0, 1.0]]))
    shown = PossibleSteps(curves, Possible({0: Codes(np.empty(0))}, ()))
    out = np.empty((1, 1, 3))
    shown.write(out, np.array([[[-0.5, 0.0, 0.5]]]), np.zeros(1, bool))
    np.testing.assert_allclose(out, [[[0.25, 0.5, 0.75]]])
