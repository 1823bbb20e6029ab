"""Time limits, with a clock that only evaluations advance."""

from types import SimpleNamespace

import numpy as np
import pytest

from dsage.estimate import Estimation, NOrderings, as_stopping, refine, run
from dsage.estimate.clock import Clock
from dsage.estimate.reasons import StopKind
from dsage.estimate.running import run as run_module
from dsage.games import Game

N_FEATURES = 100
# Pairs of a coalition and a row in a unit of an ordering and its reverse, on as many rows as there
# are features.
PAIRS_A_UNIT = 2 * (N_FEATURES + 1) * N_FEATURES


class Slow(Game):
    """A drawn game that takes some seconds for each pair of a coalition and a row."""

    n_replicates = 2

    def __init__(self, clock, seconds_a_pair):
        self.feature_names = tuple(f"x{number}" for number in range(N_FEATURES))
        self.n_rows = 10 * N_FEATURES
        self._clock, self._seconds = clock, seconds_a_pair
        self.asked = []

    def risks(self, known, rows, epoch=0):
        self._clock.now += self._seconds * len(known) * len(rows)
        self.asked.append(len(known) * len(rows))
        base = (known * np.linspace(0.0, 1.0, N_FEATURES)).sum(axis=1)
        wave = np.sin(rows + 0.1 * epoch + base[:, None])
        return np.stack([wave - base[:, None], wave - 1.1 * base[:, None]], axis=2)


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    timer = SimpleNamespace(perf_counter=lambda: clock.now)
    monkeypatch.setattr("dsage.estimate.clock.time", timer)
    monkeypatch.setattr("dsage.estimate.loop.time", timer)
    return clock


def begin(clock, seconds_a_unit):
    game = Slow(clock, seconds_a_unit / PAIRS_A_UNIT)
    return Estimation(game, first_level="none", exact="never", random_state=0)


@pytest.mark.parametrize("seconds_a_unit", [0.03, 0.4, 1.7, 4.1, 20.0, 36.0])
def test_a_time_limit_is_kept_within_a_tenth(clock, seconds_a_unit, recwarn):
    found = refine(begin(clock, seconds_a_unit), stopping=as_stopping(seconds=10.0))
    assert found.reason.kind is StopKind.TIME
    assert found.seconds == pytest.approx(clock.now)
    assert 8.0 < clock.now <= 11.0
    assert np.isfinite(found.se).all()
    # Only where two units take longer than the limit, the values rest on fewer rows.
    is_told = any("the values are based on few rows" in str(each.message) for each in recwarn)
    assert is_told == (seconds_a_unit > 5.0)


@pytest.mark.parametrize("seconds_a_unit", [0.4, 4.1, 30.0])
@pytest.mark.filterwarnings("ignore:The model is too slow")
def test_a_run_that_the_clock_ended_goes_on_as_if_it_had_not(clock, seconds_a_unit):
    whole = refine(begin(clock, seconds_a_unit), stopping=NOrderings(80))
    ended = begin(clock, seconds_a_unit)
    for seconds in (7.3, 11.9):
        refine(ended, stopping=as_stopping(seconds=seconds))
    found = refine(ended, stopping=NOrderings(80))
    for name in ("values", "se_orderings", "se_draws", "se_rows"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    np.testing.assert_array_equal(found.history.values, whole.history.values)


def test_a_limit_of_time_changes_nothing_of_a_run_to_a_number_of_orderings(clock):
    whole = refine(begin(clock, 0.4), stopping=NOrderings(80))
    limited = refine(begin(clock, 0.4), stopping=as_stopping(n_orderings=80, seconds=1_000.0))
    assert limited.reason.kind is StopKind.ORDERINGS
    np.testing.assert_array_equal(limited.values, whole.values)
    np.testing.assert_array_equal(limited.se, whole.se)
    assert limited.n_orderings == whole.n_orderings


def test_units_of_very_many_features_have_few_rows(clock):
    game = Slow(clock, 0.0)
    run(game, first_level="none", exact="never", random_state=0, stopping=NOrderings(2))
    # Of eight units; the empty coalition and the full one are those of both orderings.
    assert sum(game.asked) == 8 * 2 * N_FEATURES * N_FEATURES


def test_the_clock_is_looked_at_between_the_pieces_of_a_unit(clock):
    estimation = begin(clock, 3.7)
    refine(estimation, stopping=as_stopping(seconds=10.0))
    # Two units are complete, and the third was ended between two pieces.
    n_asked = sum(estimation.plan.game.game.asked) / (2 * N_FEATURES * N_FEATURES)
    assert estimation.n_units == 2
    assert 2.5 < n_asked < 3.0


class Rough:
    """Stands for an estimation whose time was over, and for the plan of fewer rows."""

    def __init__(self, monkeypatch, *, pace=8.0, n_units=1, is_cut=True, limit=20.0, seconds=12.0):
        self.clock = Clock()
        self.clock.limit, self.clock.seconds, self.clock.is_cut = limit, seconds, is_cut
        self.clock._paces = {} if pace is None else {0: pace}
        self.n_units, self.asked = n_units, []
        shards = [np.arange(60), np.arange(64), np.arange(63)]
        self.plan = SimpleNamespace(shards=shards, with_rows=self.asked.append)
        made = SimpleNamespace(of=lambda plan: SimpleNamespace(clock=Clock()))
        monkeypatch.setattr(run_module, "Estimation", made)

    def make(self, *, interrupted=False):
        return run_module._make_rough(self, SimpleNamespace(interrupted=interrupted))


@pytest.mark.parametrize(
    ("pace", "seconds", "n_rows"),
    # Eight units in the time that is left; a row of 64 takes an eighth of a second.
    [(8.0, 12.0, 8), (8.0, 12.1, 7), (8.0, 19.9, 1), (64.0, 12.0, 1), (1.1, 12.0, 58)],
)
def test_if_there_is_no_time_for_two_units_they_have_fewer_rows(monkeypatch, pace, seconds, n_rows):
    case = Rough(monkeypatch, pace=pace, seconds=seconds)
    with pytest.warns(
        UserWarning, match="too slow for 20 seconds: the values are based on few rows"
    ):
        found = case.make()
    assert case.asked == [n_rows]
    assert (found.clock.seconds, found.clock.limit, found.clock.gives_up) == (seconds, 20.0, False)


@pytest.mark.parametrize(
    "given",
    [
        {"n_units": 2},
        {"is_cut": False},
        {"pace": None},
        {"limit": None},
        {"pace": 1.0},
    ],
)
def test_otherwise_nothing_is_begun_again(monkeypatch, given):
    assert Rough(monkeypatch, **given).make() is None
    assert Rough(monkeypatch).make(interrupted=True) is None
