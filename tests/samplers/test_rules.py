"""The rule that chooses a sampler, on made-up scores."""

import numpy as np
import pytest

from dsage.samplers.rules import give_up, is_settled, rank, rivals
from dsage.samplers.scorer import PieceScores
from dsage.samplers.sheet import Sheet
from dsage.samplers.splits import Block, Piece

N_ROWS = 100
# Zero mean, and a standard error of 0.01 over the rows.
NOISE = np.tile([-1.0, 1.0], N_ROWS // 2) * 0.01 * np.sqrt(N_ROWS - 1)


def block_of(at, n_coalitions=1, *, is_exact=True):
    known = np.zeros((n_coalitions, 2), bool)
    weights = np.full(n_coalitions, 1 / n_coalitions)
    piece = Piece(np.arange(len(at)), known, weights, is_exact, 0)
    return Block(0, np.asarray(at), (piece,))


def scores_of(energy, msev=None):
    found = None if msev is None else np.atleast_2d(msev)
    return [PieceScores(np.atleast_2d(energy), found)]


def sheet_of(**samplers):
    """A sheet with energy scores, and MSEv if a pair is given; the noise of each is its own.

    The first sampler has none, so the differences to it have a standard error of 0.01.
    """
    sheet, block = Sheet(), block_of(np.arange(N_ROWS))
    for number, (name, scores) in enumerate(samplers.items()):
        energy, msev = scores if isinstance(scores, tuple) else (scores, None)
        noise = NOISE * (number > 0) * (-1.0) ** number
        sheet.add(name, block, scores_of(energy + noise, None if msev is None else msev + noise))
    return sheet


def sure_sheet(n_rows=50, **samplers):
    """A sheet without noise."""
    sheet, block = Sheet(), block_of(np.arange(n_rows))
    for name, scores in samplers.items():
        energy, msev = scores if isinstance(scores, tuple) else (scores, None)
        found = None if msev is None else np.full(n_rows, msev)
        sheet.add(name, block, scores_of(np.full(n_rows, energy), found))
    return sheet


def test_a_difference_has_the_standard_error_of_the_mean_over_rows():
    against = sheet_of(a=1.0, b=1.5).compare("b", "a").energy
    assert against.mean == pytest.approx(0.5)
    assert against.se == pytest.approx(0.01)


def test_coalitions_that_are_a_sample_add_their_own_error():
    rows = np.arange(50)
    # They are in the order of their sizes: pairs of strata next to each other are compared.
    by_coalition = np.array([0.0, 1.0, 2.0, 5.0])
    scores = scores_of(np.repeat(by_coalition[:, None], 50, axis=1))
    found = {}
    for is_exact in (True, False):
        sheet, block = Sheet(), block_of(rows, 4, is_exact=is_exact)
        sheet.add("a", block, scores)
        sheet.add("b", block, scores_of(np.zeros((4, 50))))
        found[is_exact] = sheet.compare("a", "b").energy
    assert found[True].mean == found[False].mean == pytest.approx(2.0)
    assert found[True].se == pytest.approx(0.0)
    assert found[False].se == pytest.approx(np.sqrt(1.0**2 + 3.0**2) / 4)


def test_what_only_the_size_of_a_coalition_changes_is_no_error():
    rows, sizes = np.arange(40), np.array([3, 0, 2, 1, 0, 3, 1, 2])
    known = np.arange(3) < sizes[:, None]
    piece = Piece(rows, known, np.full(8, 1 / 8), False, 0)
    sheet, block = Sheet(), Block(0, rows, (piece,))
    sheet.add("a", block, scores_of(np.repeat(sizes[:, None] * 1.0, 40, axis=1)))
    sheet.add("b", block, scores_of(np.zeros((8, 40))))
    assert sheet.compare("a", "b").energy.se == pytest.approx(0.0)


def test_a_row_that_is_scored_twice_counts_once():
    twice, once = Sheet(), Sheet()
    for sheet, n_times in ((twice, 2), (once, 1)):
        for _ in range(n_times):
            sheet.add("a", block_of(np.arange(10)), scores_of(np.arange(10.0)))
            sheet.add("b", block_of(np.arange(10)), scores_of(np.zeros(10)))
    assert twice.compare("a", "b") == once.compare("a", "b")
    assert twice.n_rows("a") == 10


def test_samplers_are_compared_on_the_blocks_that_both_have():
    sheet = Sheet()
    for rows in (np.arange(40), np.arange(40, 80)):
        sheet.add("a", block_of(rows), scores_of(np.where(rows < 40, 1.0, 100.0)))
    sheet.add("b", block_of(np.arange(40)), scores_of(np.full(40, 1.25)))
    assert sheet.compare("b", "a").energy.mean == pytest.approx(0.25)
    assert sheet.compare("a", "b").energy.mean == pytest.approx(-0.25)
    assert (sheet.n_rows("a"), sheet.n_rows("b")) == (80, 40)


def test_without_a_model_the_simplest_within_one_standard_error_is_chosen():
    # The differences to the best, d, are 0.03, 0.012 and 0.008 with standard errors of 0.01.
    found = rank(sheet_of(d=1.0, a=1.03, b=1.012, c=1.008), ["a", "b", "c", "d"])
    assert (found.chosen, found.leader, found.lowest, found.out) == ("c", "d", None, ())


def test_the_best_is_chosen_if_no_simpler_one_is_as_good():
    found = rank(sheet_of(b=1.0, a=1.03), ["a", "b"])
    assert (found.chosen, found.leader) == ("b", "b")


def test_a_sampler_is_out_if_its_msev_is_clearly_higher_however_good_its_energy_score():
    found = rank(sheet_of(b=(1.0, 0.5), a=(0.5, 0.53)), ["a", "b"])
    assert (found.chosen, found.lowest, found.out) == ("b", "b", ("a",))


def test_the_energy_score_decides_among_those_that_the_msev_cannot_tell_apart():
    found = rank(sheet_of(b=(1.0, 0.5), a=(1.2, 0.49)), ["a", "b"])
    assert (found.chosen, found.lowest, found.out) == ("b", "a", ())


def test_a_simpler_one_must_be_within_one_standard_error_in_both_scores():
    # Its MSEv is 1.5 standard errors above that of the leader: not out, but not as good.
    found = rank(sheet_of(b=(1.0, 0.5), a=(1.001, 0.515)), ["a", "b"])
    assert (found.chosen, found.out) == ("b", ())
    assert rank(sheet_of(b=(1.0, 0.5), a=(1.001, 0.505)), ["a", "b"]).chosen == "a"


def test_negligible_differences_do_not_count_however_sure_they_are():
    sheet = sure_sheet(a=(1.0045, 0.5009), b=(1.0, 0.5), c=(1.0, 0.5011))
    assert rank(sheet, ["a", "b"]).chosen == "a"
    assert rank(sheet, ["c", "b"]).out == ("c",)


@pytest.mark.parametrize(
    ("worse", "is_hopeless"),
    [
        (1.02, False),
        (1.04, True),
        ((1.0, 0.52), False),
        ((0.9, 0.54), True),
        ((1.04, 0.505), True),
        # The energy score is worse, but the MSEv is better: it may still win.
        ((1.04, 0.49), False),
    ],
)
def test_what_is_three_standard_errors_worse_is_given_up(worse, is_hopeless):
    best = (1.0, 0.5) if isinstance(worse, tuple) else 1.0
    sheet = sheet_of(b=best, a=worse)
    assert give_up(sheet, ["a", "b"]) == ["a"] * is_hopeless
    assert give_up(sheet, ["a", "b"], kept=["a"]) == []


def test_nothing_is_given_up_on_a_few_rows():
    assert give_up(sure_sheet(29, a=9.0, b=1.0), ["a", "b"]) == []
    assert give_up(sure_sheet(30, a=9.0, b=1.0), ["a", "b"]) == ["a"]


def test_equals_are_settled_and_so_is_a_staying_sampler_that_is_told_from_all():
    assert is_settled(sure_sheet(a=1.0, b=1.0), ["a", "b"])
    assert not is_settled(sheet_of(a=1.0, b=1.01), ["a", "b"])
    apart = sheet_of(a=1.0, b=1.05)
    assert not is_settled(apart, ["a", "b"])
    assert is_settled(apart, ["a", "b"], ["a"])
    assert is_settled(apart, ["a", "b"], ["b"])


def test_rivals_are_not_clearly_worse_in_either_score_the_best_first():
    sheet = sheet_of(a=(1.0, 0.5), b=(1.015, 0.5), c=(0.9, 0.51), d=(1.03, 0.4), e=(0.9, 0.53))
    assert rivals(sheet, "a", ["b", "c", "d", "e"]) == ["c", "b"]


def test_a_sampler_whose_msev_is_lower_is_not_given_up_for_its_energy_score():
    worse = {"a": (1.0, 1.0), "b": (2.0, 1.0)}
    assert give_up(sure_sheet(**worse), ["a", "b"]) == ["b"]
    # A thousandth is the least difference of the MSEv that matters.
    assert give_up(sure_sheet(a=(1.0, 1.0), b=(2.0, 0.9995)), ["a", "b"]) == ["b"]
    assert give_up(sure_sheet(a=(1.0, 1.0), b=(2.0, 0.998)), ["a", "b"]) == ["a"]


@pytest.mark.parametrize(("n_rows", "settled"), [(29, False), (30, True)])
def test_nothing_is_settled_by_a_difference_on_few_rows(n_rows, settled):
    sheet = sure_sheet(n_rows, a=1.0, b=2.0)
    assert is_settled(sheet, ["a", "b"], ["a"]) == settled
    assert is_settled(sheet, ["a", "b"], ["b"]) == settled
    assert give_up(sheet, ["a", "b"]) == (["b"] if settled else [])
