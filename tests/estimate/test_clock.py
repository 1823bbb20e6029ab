"""The clock of an estimation, with a time that the tests set."""

from types import SimpleNamespace

import pytest

from dsage.estimate import clock as module
from dsage.estimate.clock import Clock, TimeUpError


class Time:
    now = 100.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def time(monkeypatch):
    found = Time()
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=found.perf_counter))
    return found


@pytest.fixture
def clock(time):
    """A clock with a limit of ten seconds, which has just been started."""
    made = Clock()
    made.limit = 10.0
    made.start()
    return made


def test_breaks_do_not_count(clock, time):
    time.now += 2
    assert clock.now() == 2.0
    clock.stop()
    time.now += 30
    assert clock.now() == clock.seconds == 2.0
    clock.start()
    time.now += 1
    assert clock.now() == 3.0


def test_the_limit_is_reached_when_its_time_is_over(clock, time):
    time.now += 9.75
    assert not clock.is_over()
    time.now += 0.25
    assert clock.is_over()
    clock.limit = None
    assert not clock.is_over()
    clock.is_cut = True
    assert clock.is_over()
    clock.start()
    assert not clock.is_over()


def run_unit(clock, time, seconds, n_units=1, term=0):
    with clock.measure(term, n_units, 0):
        time.now += seconds


def test_between_two_looks_a_twentieth_of_the_limit_passes(clock, time):
    assert clock.pace(0) is None
    assert clock.n_in_time(0, 0) == 1
    run_unit(clock, time, 0.5, n_units=4)
    assert clock.pace(0) == 0.125
    assert clock.n_in_time(0, 0) == 4
    assert clock.n_in_time(1, 0) == 1
    run_unit(clock, time, 2.0, term=1)
    assert clock.n_in_time(1, 0) == 1
    run_unit(clock, time, 0.0, term=2)
    assert clock.n_in_time(2, 0) > 1000
    clock.limit = None
    assert clock.n_in_time(1, 0) > 1 << 30


def test_no_unit_begins_if_less_than_half_of_it_fits(clock, time):
    run_unit(clock, time, 2.0)
    time.now += 6.75
    assert clock.n_in_time(0, 0) == 1
    time.now += 0.25
    with pytest.raises(TimeUpError):
        clock.n_in_time(0, 0)
    assert clock.n_in_time(0, 1) == 1
    # Of another term no pace is known.
    assert clock.n_in_time(1, 0) == 1
    time.now += 1
    with pytest.raises(TimeUpError):
        clock.n_in_time(1, 0)


def ends(clock, time, *, begin, passed, done, needed=0, n_units=1, term=0):
    """Whether the clock ends a unit `passed` seconds after it began, with so many pieces done."""
    time.now += begin
    try:
        with clock.measure(term, n_units, needed) as watch:
            time.now += passed
            watch(*done)
    except TimeUpError:
        return True
    return False


@pytest.mark.parametrize(
    ("begin", "passed", "done", "is_late"),
    [
        # Half of the next piece may end 10.5 seconds after the start.
        (8.0, 1.65, (1, 2), False),
        (8.0, 1.70, (1, 2), True),
        (8.0, 1.70, (0, 2), False),
        (9.0, 1.0, (2, 4), False),
        (9.0, 1.5, (2, 4), True),
    ],
)
def test_a_unit_that_is_not_needed_ends_if_it_would_be_late(
    clock, time, begin, passed, done, is_late
):
    assert ends(clock, time, begin=begin, passed=passed, done=done) == is_late


def test_the_pace_of_a_unit_that_was_ended_is_known(clock, time):
    assert ends(clock, time, begin=8.0, passed=2.0, done=(1, 6), n_units=3)
    assert clock.pace(0) == 4.0


def test_without_a_limit_no_unit_ends(clock, time):
    clock.limit = None
    assert not ends(clock, time, begin=8.0, passed=200.0, done=(1, 2))


@pytest.mark.parametrize(
    ("begin", "passed", "done", "n_units", "is_late"),
    [
        # A tenth of the unit: two of them would take 9.4 and 9.6 seconds.
        (0.0, 0.47, (2, 20), 1, False),
        (0.0, 0.48, (2, 20), 1, True),
        (1.0, 0.42, (2, 20), 1, False),
        (1.0, 0.43, (2, 20), 1, True),
        (0.0, 0.94, (2, 20), 2, False),
        # Exactly at the limit.
        (0.0, 2.375, (1, 2), 1, False),
        # Less than a tenth of the unit counts only after a tenth of the limit.
        (0.0, 0.9, (1, 20), 1, False),
        (0.0, 1.1, (1, 20), 1, True),
    ],
)
def test_the_first_units_end_at_once_if_two_of_them_take_too_long(
    clock, time, begin, passed, done, n_units, is_late
):
    given = {"begin": begin, "passed": passed, "done": done, "n_units": n_units}
    assert ends(clock, time, needed=2, **given) == is_late


def test_units_that_are_needed_go_on_if_nothing_is_given_up(clock, time):
    clock.gives_up = False
    assert not ends(clock, time, begin=5.0, passed=8.0, done=(2, 4), needed=2)
    assert not ends(clock, time, begin=5.0, passed=8.0, done=(2, 4), needed=1)


@pytest.mark.parametrize(
    ("passed", "term", "is_late"), [(4.2, 0, False), (4.3, 0, True), (4.3, 1, False)]
)
def test_the_second_unit_ends_if_it_would_be_late(clock, time, passed, term, is_late):
    # It began after two seconds, and half of it is done.
    found = ends(clock, time, begin=2.0, passed=passed, done=(1, 2), needed=1, term=term)
    assert found == is_late


def test_a_unit_of_unknown_pace_begins_while_there_is_time(clock, time):
    time.now += 9.875
    assert clock.n_in_time(0, 0) == 1
    time.now += 0.125
    assert clock.n_in_time(0, 1) == 1
    with pytest.raises(TimeUpError):
        clock.n_in_time(0, 0)
