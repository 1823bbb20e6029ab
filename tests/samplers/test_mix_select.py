"""Which designs of a mixture are tried, and what is fitted in the end."""

import numpy as np
import pytest

from dsage._random import Streams
from dsage.samplers.mix import select
from dsage.samplers.mix.em import fit_components, fit_each
from dsage.samplers.mix.margins import Scale
from dsage.samplers.mix.select import Design, _Trials, fit_mixture
from dsage.samplers.mix.trees import Trees

SIZES = [1, 2, 4, 6, 8, 12, 16]


def search(worth, kinds, sizes=SIZES, shrinkages=(3.0, 1.0)):
    """Return the chosen design, and those that were tried in turn, for a made-up likelihood."""
    trials, tried = object.__new__(_Trials), []
    trials._rows = dict.fromkeys(kinds)
    trials._sizes, trials._shrinkages, trials.found = list(sizes), list(shrinkages), {}

    def attempt(design):
        if design not in trials.found:
            tried.append(design)
            trials.found[design] = worth(design)
        return trials.found[design]

    trials._try = attempt
    return trials.choose(), tried


def test_every_second_size_is_tried_until_two_in_a_row_are_no_better():
    likelihoods = {1: 0.0, 4: 1.0, 8: 1.00005, 16: 0.5, 2: 0.2, 6: 1.2, 12: 0.9}
    kind = Scale.STANDARD, False

    def worth(design):
        return likelihoods[design.size] - design.shrinkage / 1e3

    chosen, tried = search(worth, [kind], [*SIZES, 24, 32])
    # A gain of less than 1e-4 is none.
    first = [Design(*kind, 3.0, size) for size in (1, 4, 8, 16)]
    assert tried[:4] == first
    # Then the sizes next to the best, 8, with either shrinkage; the last is round the new best.
    assert [(each.size, each.shrinkage) for each in tried[4:]] == [
        (6, 3.0), (12, 3.0), (4, 1.0), (6, 1.0), (8, 1.0),
    ]  # fmt: skip
    assert chosen == Design(*kind, 1.0, 6)


def test_a_climb_ends_early_and_one_that_grows_goes_to_the_end():
    kind = Scale.SCORES, True
    chosen, tried = search(lambda design: -design.size, [kind])
    assert [each.size for each in tried] == [1, 4, 8, 2, 1, 2, 4]
    assert [each.shrinkage for each in tried] == [3.0] * 4 + [1.0] * 3
    assert chosen.size == 1
    chosen, tried = search(lambda design: design.size, [kind])
    assert [each.size for each in tried[:4]] == [1, 4, 8, 16]
    assert chosen.size == 16
    # One that is no better does not end it, and a new best counts from anew.
    likelihoods = {1: 0.0, 4: -1.0, 8: 0.5, 16: 0.4}
    _, tried = search(lambda design: likelihoods.get(design.size, -9.0), [kind])
    assert [each.size for each in tried[:4]] == [1, 4, 8, 16]


def test_all_kinds_are_climbed_and_the_best_one_is_refined():
    kinds = [(scale, trees) for scale in Scale for trees in (False, True)]
    best = kinds[2]

    def worth(design):
        gain = 1.0 if (design.scale, design.has_trees) == best else 0.0
        return gain - abs(design.size - 6) / 10 + design.shrinkage / 1e3

    chosen, tried = search(worth, kinds)
    assert [(each.scale, each.has_trees) for each in tried if each.size == 1][:4] == kinds
    assert chosen == Design(*best, 3.0, 6)
    refined = [each for each in tried if each.shrinkage == 1.0]
    assert {(each.scale, each.has_trees) for each in refined} == {best}
    assert [each.size for each in refined] == [4, 6, 8]


def numbers(n_rows=60, n_numbers=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_numbers)) + 3 * rng.choice([-1.0, 1.0], n_rows)[:, None]


NO_TABLES = np.empty((60, 0), np.intp)


@pytest.fixture
def chosen_size(monkeypatch):
    """Make the choice, instead of trying designs."""

    def choose(size, scale=Scale.STANDARD, *, has_trees=False):
        design = Design(scale, has_trees, 2.0, size)
        monkeypatch.setattr(_Trials, "choose", lambda _: design)
        return design

    return choose


@pytest.mark.parametrize(("size", "final"), [(1, 1), (2, 3), (4, 6), (6, 9)])
@pytest.mark.parametrize("has_gaps", [False, True])
def test_final_fits_are_half_as_large_again_and_averaged(size, final, has_gaps, chosen_size):
    chosen_size(size)
    values = numbers()
    if has_gaps:
        values[::7, 1] = np.nan
    fit = fit_mixture(values, NO_TABLES, (), Streams(0), n_fits=3)
    # A single component needs no average, unless gaps are filled anew for each fit.
    n_fits = 1 if size == 1 and not has_gaps else 3
    assert len(fit.components) == n_fits * final
    assert fit.components.weights.sum() == pytest.approx(1.0)
    assert fit.design.size == final
    assert fit.design.shrinkage == 2.0


def test_a_given_size_is_fitted_as_it_is_in_standard_units():
    fit = fit_mixture(numbers(), NO_TABLES, (), Streams(0), size=3, n_fits=2)
    assert fit.design == Design(Scale.STANDARD, has_trees=False, shrinkage=2.0, size=3)
    assert len(fit.components) == 6
    assert fit.tried == {}
    assert not fit.trees.has_edges


@pytest.mark.parametrize(("n_rows", "is_tried"), [(19, False), (20, True)])
def test_with_fewer_than_twenty_rows_there_is_one_component(n_rows, is_tried):
    fit = fit_mixture(numbers(n_rows), NO_TABLES[:n_rows], (), Streams(0))
    assert bool(fit.tried) == is_tried
    if not is_tried:
        assert fit.design.size == 1


@pytest.mark.parametrize(("n_rows", "sizes"), [(60, [1, 2, 4, 6]), (20, [1, 2])])
def test_a_component_has_eight_rows_or_more_on_average(n_rows, sizes):
    trials = _Trials(numbers(n_rows), NO_TABLES[:n_rows], (), Streams(0))
    assert trials._sizes == sizes
    assert {key[0] for key in trials._rows} == set(Scale)
    known, held, slopes = trials._rows[Scale.SCORES, False]
    assert (len(known), len(held), len(slopes)) == (n_rows * 4 // 5, n_rows // 5, n_rows // 5)


def test_without_numbers_there_is_one_scale_and_one_shrinkage():
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(3, size=(60, 1)), 2, axis=1)
    trials = _Trials(np.empty((60, 0)), states, (3, 3), Streams(0))
    assert list(trials._rows) == [(Scale.STANDARD, False), (Scale.STANDARD, True)]
    assert trials._shrinkages == [1.0]
    independent = rng.integers(2, size=(60, 2))
    trials = _Trials(np.empty((60, 0)), independent, (2, 2), Streams(0))
    assert list(trials._rows) == [(Scale.STANDARD, False)]


@pytest.mark.parametrize("size", [1, 2])
def test_the_worth_of_a_design_is_the_mean_held_out_density_of_an_average(size, monkeypatch):
    trials = _Trials(numbers(), NO_TABLES, (), Streams(0))
    made = []

    def spy(rows, n_components, shrinkage, rngs, *, tolerance):
        made.append((len(rngs), shrinkage, tolerance))
        return fit_each(rows, n_components, shrinkage, rngs, tolerance=tolerance)

    monkeypatch.setattr(select, "fit_each", spy)
    design = Design(Scale.SCORES, False, 2.0, size)
    found = trials._try(design)
    assert trials._try(design) == found
    assert made == [(size, 2.0, 2e-4)]
    known, held, slopes = trials._rows[Scale.SCORES, False]
    rngs = [Streams(0)("mix-try", size, number) for number in range(size)]
    fits = fit_each(known, size, 2.0, rngs, tolerance=2e-4)
    densities = np.mean([np.exp(held.log_densities(fit)) for fit in fits], axis=0)
    assert found == pytest.approx((np.log(densities) + slopes).mean())


def test_trees_of_the_chosen_design_are_those_of_all_rows(chosen_size):
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(3, size=(60, 1)), 2, axis=1)
    for has_trees in (False, True):
        chosen_size(2, Scale.SCORES, has_trees=has_trees)
        fit = fit_mixture(numbers(), states, (3, 3), Streams(0), n_fits=1)
        assert fit.trees.has_edges == has_trees
        assert len(fit.margins.knots[0]) > 2


@pytest.mark.parametrize("n_used", [60, 40])
def test_final_fits_read_as_many_rows_as_they_can_afford(n_used, monkeypatch, chosen_size):
    chosen_size(2)
    read = []
    monkeypatch.setattr(select, "_affordable", lambda *_: n_used)
    for name, own in (("fit_each", fit_each), ("fit_components", fit_components)):
        monkeypatch.setattr(
            select,
            name,
            lambda rows, *some, own=own, **more: read.append(len(rows)) or own(rows, *some, **more),
        )
    fit_mixture(numbers(), NO_TABLES, (), Streams(0), n_fits=3)
    # All rows are read together, and others anew for each fit.
    assert read == ([60] if n_used == 60 else [40, 40, 40])


@pytest.mark.parametrize(("n_rows", "size"), [(50, 1), (199, 1), (200, 2), (450, 4), (2000, 8)])
def test_gaps_are_filled_by_a_coarse_mixture_in_rounds(n_rows, size, monkeypatch):
    calls = []

    def spy(rows, n_components, shrinkage, rng, *, tolerance, start):
        calls.append((len(rows), n_components, shrinkage, tolerance, start is None))
        return fit_components(rows, n_components, shrinkage, rng, tolerance=1.0, start=start)

    monkeypatch.setattr(select, "fit_components", spy)
    values = numbers(n_rows)
    values[::3, 0] = np.nan
    gaps = select._Gaps(values, np.empty((n_rows, 0), np.intp), Trees.none(()), Streams(0))
    assert gaps.any
    assert calls == [(n_rows, size, 2.0, 2e-4, number == 0) for number in range(6)]
    rows = np.arange(5, 25)
    filled, again, other = gaps.fill(rows, 1), gaps.fill(rows, 1), gaps.fill(rows, 2)
    there = ~np.isnan(values[rows])
    assert (filled[there] == values[rows][there]).all()
    assert np.isfinite(filled).all()
    assert (filled == again).all()
    assert (filled != other).any()
    if n_rows == 2000:
        # The two modes go with the other number.
        filled = gaps.fill(np.arange(n_rows), 1)[::3]
        assert np.corrcoef(filled.T)[0, 1] > 0.5
