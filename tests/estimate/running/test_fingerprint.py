"""What tells runs apart, and that it is the same on every machine and in every process."""

import numpy as np
import pytest

from dsage.estimate.plan import Plan
from dsage.estimate.running.fingerprint import Fingerprint, fingerprint
from small_games import ORACLE, TableGame
from tables import Table

NAMES = list(ORACLE.feature_names)


def game_of(n_rows=40, shift=0.0):
    codes, rows = np.arange(16)[:, None], np.arange(n_rows)
    return TableGame(np.sin(codes) + shift + 0.1 * np.cos(rows), NAMES)


def of(game=None, oracle=ORACLE, **options):
    return fingerprint(Plan(game or game_of(), oracle=oracle, random_state=0, **options))


def test_the_fingerprint_of_a_run_does_not_change_with_the_process():
    found = of()
    # As computed when this was written: files of checkpoints hold these.
    assert found.texts["the graph"] == "#061d283c9f1580128f0fb19ec6ddb495"
    assert found.texts["the shards of rows"] == "#139fa48066a7c35b7d0e7ff4cbc10ab8"
    assert found.texts["the orderings"].endswith("#f2314e902bc672b41037793dc10ea64a")
    some = found.numbers["the risks of some coalitions (the sampler, its noise, or the model)"]
    assert some.shape == (8, 14, 1)
    np.testing.assert_allclose(
        [some.sum(), some[3].sum()], [-7.770850730162075, -7.5495460358452835]
    )
    ends = found.numbers["the risks of the rows"]
    rows = 0.1 * np.cos(np.arange(40))
    np.testing.assert_allclose(ends[:, :, 0], [rows, np.sin(15) + rows])


def test_runs_that_differ_are_told_apart():
    here = of()
    assert here.differences(of()) == []
    assert any("the risks of the rows" in each for each in here.differences(of(game_of(shift=1.0))))
    more = here.differences(of(game_of(n_rows=41)))
    assert "the rows (41 there, 40 here)" in more
    without = here.differences(of(oracle=None))
    # Digests are not shown.
    assert "the graph" in without
    assert any("'semantics'" in each for each in here.differences(of(semantics="skip")))
    assert "the option 'exact' (never there, auto here)" in here.differences(of(exact="never"))
    uniform = here.differences(of(orderings="uniform"))
    assert "the orderings" in uniform


def test_last_digits_of_numbers_may_differ():
    def made(values):
        return Fingerprint({}, {"risks": np.array(values)})

    here = made([1.0, 100.0, 0.0])
    assert here.differences(made([1.0, 100.0 + 5e-5, 5e-5])) == []
    assert here.differences(made([1.0, 100.0, 5e-4])) == ["risks"]
    assert here.differences(made([1.0, 100.0])) == ["risks"]
    assert here.differences(Fingerprint({}, {})) == ["risks"]


@pytest.mark.parametrize(("n_rows", "step"), [(6, 1), (16, 1), (17, 2), (50, 4)])
def test_risks_are_of_the_first_epoch_some_coalitions_and_some_rows(n_rows, step):
    game = Table(n_rows=n_rows)
    found = fingerprint(Plan(game, random_state=0, exact="never"))
    rng = np.random.default_rng(0)
    known = rng.random((8, 4)) < rng.random((8, 1))
    numbers = found.numbers["the risks of some coalitions (the sampler, its noise, or the model)"]
    np.testing.assert_array_equal(numbers, game.risks(known, np.arange(0, n_rows, step), 0))
    ends = np.array([[False] * 4, [True] * 4])
    np.testing.assert_array_equal(
        found.numbers["the risks of the rows"], game.risks(ends, np.arange(n_rows), 0)
    )
    assert found.texts["the rows"] == str(n_rows)
    assert found.texts["the features"] == "a, b, c, d"
