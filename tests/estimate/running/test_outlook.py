"""What a run will take, and how it is shown."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import dsage._check
from dsage._check import make_bar
from dsage.estimate import as_stopping, run
from dsage.estimate.accumulate.history import History
from dsage.estimate.running.bar import Bar, describe, describe_cost
from dsage.estimate.running.outlook import Outlook, look_ahead, share_done
from dsage.estimate.running.stopping import AnyOf, DataTolerance, Tolerance
from dsage.games import MomentGame


def progress(**changed):
    """An estimate after 100 units and 5 seconds, whose largest error is 20 % of the range."""
    values, se = np.array([0.0, 1.0]), np.array([0.1, 0.2])
    given = {
        "values": values,
        "se": se,
        "se_rows": np.zeros(2),
        "n_orderings": 100,
        "n_units": 100,
        "n_evaluated": 300,
        "seconds": 5.0,
        "history": History.empty(2),
    }
    return SimpleNamespace(**(given | changed))


def looked(*looks):
    """A history of looks: units, evaluations, seconds."""
    history = History.empty(2)
    for n_units, n_evaluated, seconds in looks:
        history = history.after(np.zeros(2), np.ones(2), n_units, n_evaluated, seconds)
    return history


def test_an_error_twice_the_goal_means_that_a_quarter_is_done():
    found = look_ahead(Tolerance(0.1), progress())
    assert (found.error, found.goal) == pytest.approx((0.2, 0.1))
    assert (found.n_evaluated, found.n_expected, found.share) == (300, 1200, 0.25)
    assert found.seconds_left == pytest.approx(15.0)


def test_the_goal_of_the_default_rule_is_that_of_the_feature_furthest_from_it():
    # The error of the first feature is ten times what it may be, that of the second is allowed.
    found = look_ahead(DataTolerance(), progress(se_rows=np.array([0.0, 0.9])))
    assert (found.error, found.goal) == pytest.approx((0.1, 0.01))
    assert found.n_expected == pytest.approx(300 * 100, abs=1)


def test_the_time_that_is_left_follows_the_latest_pace():
    history = looked((67, 200, 1.0), (100, 300, 5.0))
    # 900 more evaluations, and the last 100 took 4 seconds.
    left = look_ahead(Tolerance(0.1), progress(history=history)).seconds_left
    assert left == pytest.approx(36.0)


def test_units_of_fewer_features_are_expected_to_cost_less():
    # 300 more units; the last 50 had two evaluations each, and all of them three.
    found = look_ahead(Tolerance(0.1), progress(history=looked((50, 200, 1.0), (100, 300, 5.0))))
    assert found.n_expected == 300 + 600
    assert found.seconds_left == pytest.approx(600 * 0.04)


def test_the_first_of_several_limits_counts():
    found = look_ahead(as_stopping(tolerance=0.1, seconds=8.0), progress())
    assert found.goal == pytest.approx(0.1)
    assert found.seconds_left == pytest.approx(3.0)
    # 300 evaluations took 5 seconds.
    assert found.n_expected == 300 + 180
    later = look_ahead(as_stopping(tolerance=0.1, seconds=80.0), progress())
    assert (later.seconds_left, later.n_expected) == (pytest.approx(15.0), 1200)
    assert share_done(AnyOf([as_stopping(tolerance=0.1)]), progress()) == pytest.approx(0.25)


def test_few_units_tell_what_the_least_number_of_them_costs():
    # The errors are small enough, but not yet trusted: 30 units are needed.
    found = look_ahead(Tolerance(0.5), progress(n_units=10, n_evaluated=30))
    assert found.n_expected == 90


@pytest.mark.parametrize("rule", [None, as_stopping(top_k=1)])
def test_without_a_goal_there_is_no_end_to_tell(rule):
    found = look_ahead(rule, progress())
    assert (found.goal, found.n_expected, found.seconds_left) == (None, None, None)
    assert found.error == pytest.approx(0.2)
    assert look_ahead(rule, progress(), most_units=400).n_expected == 1200


def test_errors_that_are_unknown_are_not_told():
    found = look_ahead(Tolerance(), progress(se=np.array([np.inf, np.inf])))
    assert (found.error, found.n_expected) == (None, None)
    assert describe(found) == "300 evaluations"


def test_a_run_reports_error_goal_evaluations_and_seconds():
    X = np.random.default_rng(0).normal(size=(400, 4))
    game = MomentGame(X, X[:, 0] * X[:, 1], X.sum(axis=1), list("abcd"))
    seen = []
    found = run(
        game,
        exact="never",
        first_level="none",
        stopping=Tolerance(0.05),
        progress=seen.append,
        random_state=0,
    )
    assert all(isinstance(each, Outlook) for each in seen)
    last = seen[-1]
    assert last.error <= last.goal == pytest.approx(0.05)
    assert (last.n_evaluated, last.seconds) == (found.n_evaluated, found.seconds)
    assert last.n_expected == last.n_evaluated
    assert last.seconds_left == pytest.approx(0.0)


def test_the_bar_says_first_what_the_run_will_cost(capsys):
    with Bar(is_shown=True) as bar:
        bar.show(Outlook(0.032, 0.01, 8, 10_000, 100_000, 4.0, 40.0))
        bar.show(Outlook(0.02, 0.01, 16, 20_000, 100_000, 8.0, 30.0))
    shown = capsys.readouterr().err
    assert shown.count("will take about 44 s and 100,000 evaluations (from the first 10,000)") == 1
    assert "error 3.2 % -> 1.0 %, about 40 s left" in shown
    assert "error 2.0 % -> 1.0 %, about 30 s left" in shown


def test_a_bar_that_is_not_shown_writes_nothing(capsys):
    with Bar(is_shown=False) as bar:
        bar.show(Outlook(0.032, 0.01, 8, 10_000, 100_000, 4.0, 40.0))
        bar.tick()
    assert capsys.readouterr() == ("", "")


def test_long_durations_are_minutes_and_hours():
    long = Outlook(None, None, 8, 1_234_567, 98_765_432, 4.0, 3_000.0)
    assert describe(long) == "about 50 min left"
    assert describe_cost(long).startswith("The estimate will take about 50 min and 99,000,000 ")
    assert describe(long._replace(seconds_left=36_000.0)) == "about 10.0 h left"


def test_small_numbers_are_told_as_they_are_and_large_ones_with_two_digits():
    small = Outlook(0.0005, None, 8, 7, 43, 0.2, 0.4)
    assert describe(small) == "error 0.05 %, about 0.4 s left"
    assert describe_cost(small) == (
        "The estimate will take about 0.6 s and 43 evaluations (from the first 7)"
    )
    assert "and 990 evaluations (from the first 120)" in describe_cost(
        small._replace(n_evaluated=123, n_expected=987)
    )
    assert describe(small._replace(seconds_left=89.0)).endswith("about 89 s left")
    assert describe(small._replace(seconds_left=91.0)).endswith("about 2 min left")
    assert describe(small._replace(seconds_left=5340.0)).endswith("about 89 min left")
    assert describe(small._replace(seconds_left=5460.0)).endswith("about 1.5 h left")


def test_the_time_that_is_left_is_counted_down_between_looks(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr("dsage.estimate.running.bar.perf_counter", lambda: now[0])
    with Bar(is_shown=True) as bar:
        bar.tick()
        bar.show(Outlook(None, None, 8, 100, 1000, 4.0, 40.0))
        now[0] += 0.25
        bar.tick()
        assert "39" not in capsys.readouterr().err
        now[0] += 5.75
        bar.tick()
        assert "about 34 s left" in capsys.readouterr().err
        now[0] += 50.0
        bar.tick()
        assert "about 0.0 s left" in capsys.readouterr().err


def test_short_runs_do_not_say_what_they_will_cost(capsys):
    with Bar(is_shown=True) as bar:
        bar.show(Outlook(None, None, 8, 100, None, 4.0, None))
        bar.show(Outlook(None, None, 8, 100, 1000, 4.0, 0.9))
        bar.show(Outlook(None, None, 8, 100, 1000, 4.0, 9.0))
    assert "will take" not in capsys.readouterr().err


def test_in_a_notebook_without_widgets_nothing_goes_to_stderr(monkeypatch, capsys):
    """What notebooks receive from stderr is shown in red."""
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(dsage._check, "find_spec", lambda name: None)
    with make_bar(total=2) as bar:
        bar.update(1)
    out, err = capsys.readouterr()
    assert err == ""
    assert "50%" in out


def test_in_a_terminal_the_bar_goes_to_stderr(capsys):
    with make_bar(total=2) as bar:
        bar.update(1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "50%" in err


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.94, "0.9 s"),
        (1.0, "1 s"),
        (89.4, "89 s"),
        (90.0, "2 min"),
        (89.4 * 60, "89 min"),
        (90 * 60.0, "1.5 h"),
    ],
)
def test_durations_have_the_unit_that_suits_them(seconds, text):
    assert describe(_after(seconds)) == f"about {text} left"


def _after(seconds):
    return Outlook(None, None, 100, 300, None, 0.0, seconds)


@pytest.mark.parametrize(
    ("looks", "pace"),
    [
        # Without a history, the mean over the run: 5 seconds for 300 evaluations.
        ([], 5.0 / 300),
        ([(100, 300, 5.0)], 5.0 / 300),
        # Since the middle of the looks.
        ([(50, 100, 1.0), (100, 300, 5.0)], 4.0 / 200),
        ([(10, 50, 1.0), (50, 100, 2.0), (100, 300, 5.0)], 3.0 / 200),
        ([(10, 50, 1.0), (50, 100, 2.0), (70, 250, 3.0), (100, 300, 5.0)], 3.0 / 200),
        ([(9, 20, 0.5), (10, 50, 1.0), (50, 200, 2.0), (70, 250, 3.0), (100, 300, 5.0)], 0.03),
        # Looks without evaluations tell nothing.
        ([(100, 300, 1.0), (100, 300, 5.0)], 5.0 / 300),
    ],
)
def test_the_pace_is_that_since_the_middle_of_the_looks(looks, pace):
    found = look_ahead(Tolerance(0.1), progress(history=looked(*looks)))
    n_units = [each[0] for each in looks][-2:]
    n_evaluated = [each[1] for each in looks][-2:]
    # Three times as many evaluations are left, less if units have become smaller.
    narrowing = 1.0
    if len(looks) > 1 and np.diff(n_units)[0] > 0:
        narrowing = min(np.diff(n_evaluated)[0] / np.diff(n_units)[0] / (300 / 100), 1.0)
    left = math.ceil(900 * narrowing)
    assert found.n_expected == 300 + left
    assert found.seconds_left == pytest.approx(left * pace)


@pytest.mark.parametrize(
    ("n_units", "n_evaluated", "share"),
    [
        # From 50 units of 4 evaluations to some of 2: two thirds of the mean of 3.
        ((50, 100), (200, 300), 2 / 3),
        ((80, 100), (280, 300), 1 / 3),
        ((50, 100), (100, 300), 1.0),
        ((100, 100), (200, 300), 1.0),
        ((50, 100), (300, 300), 1.0),
    ],
)
def test_units_that_became_smaller_need_fewer_evaluations(n_units, n_evaluated, share):
    history = looked(*((n, m, 1.0) for n, m in zip(n_units, n_evaluated, strict=True)))
    found = look_ahead(Tolerance(0.1), progress(history=history))
    assert found.n_expected == 300 + math.ceil(900 * share)


@pytest.mark.parametrize(
    ("rules", "most_units", "share", "seconds_left"),
    [
        # At 20 % of the range and a goal of 10 %, a quarter is done: 15 more seconds.
        ({"tolerance": 0.1}, None, 0.25, 15.0),
        ({"tolerance": 0.1}, 200, 0.5, 5.0),
        ({"tolerance": 0.1}, 1000, 0.25, 15.0),
        ({"tolerance": 0.1, "n_orderings": 160}, None, 0.625, 3.0),
        ({"tolerance": 0.1, "seconds": 30.0}, None, 0.25, 15.0),
        # A limit of time is in sight before.
        ({"tolerance": 0.1, "seconds": 14.0}, None, 300 / 840, 9.0),
        ({"seconds": 14.0}, None, 300 / 840, 9.0),
        ({"seconds": 4.0}, None, 1.0, 0.0),
        ({"n_orderings": 50}, None, 1.0, 0.0),
        ({"absolute": 0.4}, None, 1.0, 0.0),
        ({"absolute": 0.05}, None, 1 / 16, 75.0),
    ],
)
def test_the_first_of_several_limits_ends_a_run(rules, most_units, share, seconds_left):
    found = look_ahead(as_stopping(**rules), progress(), most_units)
    assert found.share == pytest.approx(share, rel=1e-3)
    assert found.seconds_left == pytest.approx(seconds_left, rel=1e-3)
    assert (found.n_units, found.n_evaluated, found.seconds) == (100, 300, 5.0)


@pytest.mark.parametrize(
    ("n_units", "share"), [(3, None), (4, 4 / 30), (15, 0.5), (30, 1.0), (100, 1.0)]
)
def test_a_rule_needs_its_units_however_small_the_errors(n_units, share):
    found = share_done(Tolerance(0.5), progress(n_units=n_units, se=np.array([0.0, 0.01])))
    assert found == (None if share is None else pytest.approx(share))


def test_zero_errors_and_zero_goals_are_done_and_out_of_reach():
    assert share_done(Tolerance(0.1), progress(se=np.zeros(2))) == 1.0
    assert share_done(Tolerance(0.1), progress(values=np.zeros(2))) == 0.0
    assert look_ahead(Tolerance(0.1), progress(values=np.zeros(2))).error is None
    without = look_ahead(None, progress(seconds=0.0, n_evaluated=0), 400)
    assert (without.n_expected, without.seconds_left) == (0, 0.0)


@pytest.mark.parametrize("progress", [True, False, "listener"])
def test_a_run_shows_its_progress_if_that_is_wanted(capsys, progress):
    X = np.random.default_rng(0).normal(size=(40, 3))
    game = MomentGame(X, X[:, 0] * X[:, 1], X.sum(axis=1), list("abc"))
    seen = []
    listener = seen.append if progress == "listener" else progress
    run(game, stopping=as_stopping(n_orderings=40), progress=listener, random_state=0)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert ("estimating" in shown.err) == (progress is True)
    assert bool(seen) == (progress == "listener")


def test_a_run_without_a_pace_may_have_a_limit():
    found = look_ahead(as_stopping(seconds=14.0), progress(seconds=0.0))
    assert (found.n_expected, found.seconds_left) == (300, 14.0)
