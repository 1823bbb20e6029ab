"""Checkpoints: a run that goes on is the run without a break, and no other run is continued."""

import errno
import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import checkpoint_case
import dsage
from checkpoint_case import NAMES, OPTIONS, game, result
from dsage import Graph
from dsage._files import read_arrays, write_arrays
from dsage.estimate import Checkpoint, Estimation, as_stopping, refine, run
from dsage.estimate.running import checkpoint as checkpoint_module
from dsage.games import Difference, LossGame, MomentGame
from dsage.games.first_level import N_DRAWN
from dsage.samplers import Gaussian

ARRAYS = ("values", "se_orderings", "se_draws", "se_rows", "df", "share_skipped")
COUNTS = ("n_orderings", "n_units", "n_evaluated", "n_shared", "is_exact")
WAYS = {
    "sage": {},
    "d-sage": {"estimand": "d-sage"},
    "plain": {"oracle": None},
    "skip": {"semantics": "skip", "first_level": "none"},
    "exact": {"exact": "auto"},
    "little memory": {"cache_bytes": 30_000},
    "two jobs": {"n_jobs": 2},
}


def assert_same(one, other):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in COUNTS:
        assert getattr(one, name) == getattr(other, name), name
    assert one.skipped_surpluses.equals(other.skipped_surpluses)
    for here, there in zip(one.terms, other.terms, strict=True):
        np.testing.assert_array_equal(here.values, there.values)
        np.testing.assert_array_equal(here.se, there.se)
        assert (here.kind, here.n_evaluated, here.df) == (there.kind, there.n_evaluated, there.df)


@functools.cache
def whole_result(n_orderings, way="sage"):
    """The run without a break."""
    return result(n_orderings, **WAYS[way])


@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_goes_on_is_the_run_without_a_break(way, tmp_path):
    path = tmp_path / "run.dsage"
    whole = whole_result(60, way)
    for n_orderings in (10, 30, 60):
        parts = result(n_orderings, path, **WAYS[way])
    assert_same(whole, parts)
    assert path.exists()


def test_what_is_finished_is_not_evaluated_again(tmp_path):
    path = tmp_path / "run.dsage"
    first = result(60, path)
    counting = game()
    before = counting.n_predicted
    again = result(60, path, game=counting)
    assert_same(first, again)
    # The first level is fitted again, and the fingerprint asks for a few risks.
    assert counting.n_predicted - before < N_DRAWN + 2000


def test_a_run_without_a_seed_goes_on_with_the_seed_of_the_file(tmp_path):
    path = tmp_path / "run.dsage"
    result(20, path, random_state=None)
    seed = Checkpoint(path).entropy()
    assert_same(result(60, path, random_state=None), result(60, random_state=seed))


def test_seconds_add_up_over_breaks(tmp_path):
    path = tmp_path / "run.dsage"
    first = result(20, path)
    assert result(60, path).seconds > first.seconds


def program(path, n_orderings, seconds):
    folder = str(Path(checkpoint_case.__file__).parent)
    source = str(Path(dsage.__file__).parents[1])
    command = [sys.executable, checkpoint_case.__file__, path, n_orderings, seconds]
    return subprocess.Popen(
        list(map(str, command)),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([folder, source])},
    )


@pytest.mark.kills
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path):
    path = tmp_path / "run.dsage"
    with program(path, 100, 0.2) as process:
        try:
            deadline = time.monotonic() + 120
            while not (tmp_path / "run.dsage.previous").exists():
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.05)
        finally:
            process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    # In this process, which is another one.
    assert_same(whole_result(100), result(100, path))


# Files that are not of this run

OTHER = Graph([*NAMES, "y"], [("X1", "y"), ("X2", "y"), ("X3", "y")]).oracle("y")


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The file of a run of 20 orderings."""
    path = tmp_path_factory.mktemp("checkpoint") / "run.dsage"
    result(20, path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"random_state": 1}, r"the seed \(0 there, 1 here\)"),
        ({"estimand": "d-sage"}, r"the option 'estimand' \(sage there, d-sage here\)"),
        ({"semantics": "skip"}, "the option 'semantics'"),
        ({"first_level": "none"}, "the option 'first_level'"),
        ({"exact": "auto"}, "the option 'exact'"),
        ({"orderings": "uniform"}, "the orderings"),
        ({"rows_per_ordering": 40}, "the shards of rows"),
        ({"oracle": OTHER}, "the graph"),
        ({"oracle": None}, "the graph"),
        ({"game": lambda: game(seed=1)}, "the data; the targets"),
        ({"game": lambda: game(150)}, r"the rows \(200 there, 150 here\)"),
        ({"game": lambda: game(n_trees=7)}, "the predictions of the model"),
        ({"game": lambda: game(noise=1)}, "the risks of some coalitions"),
        ({"game": lambda: game(loss="absolute_error")}, "the loss"),
        ({"game": lambda: game(sample_weight=np.arange(200))}, "the weights of the rows"),
        ({"game": lambda: game(n_draws=16)}, "the risks of some coalitions"),
    ],
)
def test_the_checkpoint_of_another_run_is_refused_with_what_differs(
    changed, text, content, tmp_path
):
    path = tmp_path / "run.dsage"
    path.write_bytes(content)
    changed = {name: value() if callable(value) else value for name, value in changed.items()}
    with pytest.raises(ValueError, match=f"checkpoint must be of this run.*({text})"):
        result(40, path, **changed)
    assert path.read_bytes() == content


def test_the_checkpoint_of_another_version_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.dsage"
    monkeypatch.setattr("dsage.estimate.running.fingerprint.__version__", "0.0.1")
    result(20, path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"the version of dsage \(0\.0\.1 there, 0\.1"):
        result(40, path)


def test_games_that_are_compared_are_told_apart(tmp_path):
    path = tmp_path / "run.dsage"
    first = Difference(game(), game(n_trees=7))
    result(20, path, game=first)
    assert_same(result(60, game=first), result(60, path, game=first))
    text = "the predictions of the model of game 2"
    with pytest.raises(ValueError, match=f"checkpoint must be of this run.*{text}"):
        result(60, path, game=Difference(game(), game(n_trees=8)))


def test_one_checkpoint_is_not_for_two_runs(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.dsage")
    rule = as_stopping(n_orderings=20)
    run(game(), stopping=rule, checkpoint=checkpoint, **OPTIONS)
    with pytest.raises(ValueError, match="the targets"):
        run(game(seed=1), stopping=rule, checkpoint=checkpoint, **OPTIONS)


def test_orderings_that_are_given_are_told_apart(tmp_path):
    path = tmp_path / "run.dsage"
    plain = {"checkpoint": path, "random_state": 0}
    run(game(), orderings=[[0, 1, 2, 3], [3, 2, 1, 0]], **plain)
    with pytest.raises(ValueError, match="the orderings"):
        run(game(), orderings=[[0, 1, 2, 3], [3, 2, 0, 1]], **plain)


def test_rows_of_a_game_that_shows_no_data_are_told_apart(tmp_path):
    X, y = checkpoint_case.data()
    options = {"exact": "never", "random_state": 0, "stopping": as_stopping(n_orderings=20)}
    run(MomentGame(X, y, y, NAMES), checkpoint=tmp_path / "run.dsage", **options)
    changed = y.copy()
    changed[1] += 5.0
    with pytest.raises(ValueError, match="the risks of the rows"):
        run(MomentGame(X, y, changed, NAMES), checkpoint=tmp_path / "run.dsage", **options)


def test_refining_does_not_write_over_the_file_of_another_run(tmp_path):
    path = tmp_path / "run.dsage"
    result(20, path)
    before = path.read_bytes()
    other = Estimation(game(seed=1), **OPTIONS)
    with pytest.raises(ValueError, match="the data; the targets"):
        refine(other, stopping=as_stopping(n_orderings=20), checkpoint=path)
    assert path.read_bytes() == before
    with pytest.raises(TypeError, match="a path or a Checkpoint"):
        refine(other, checkpoint=b"run.dsage")


class Interrupting(checkpoint_case.RandomForestRegressor):
    n_left = 10**9

    def predict(self, X):
        self.n_left -= 1
        if self.n_left == 0:
            raise KeyboardInterrupt
        return super().predict(X)


def interruptible():
    X, y = checkpoint_case.data()
    forest = Interrupting(6, random_state=0).fit(X, y)
    sampler = Gaussian().fit(X)
    return forest, LossGame(forest, sampler, X[:200], y[:200], random_state=0)


@functools.cache
def interruptible_whole():
    estimation = Estimation(interruptible()[1], **OPTIONS)
    return refine(estimation, stopping=checkpoint_case.Slow(60))


@pytest.mark.parametrize("n_calls", [3, 9, 15])
@pytest.mark.interrupts
def test_a_run_that_was_interrupted_goes_on_to_the_same_bits(n_calls, tmp_path):
    whole = interruptible_whole()
    forest, interrupted = interruptible()
    estimation = Estimation(interrupted, **OPTIONS)
    forest.n_left = n_calls
    path = tmp_path / "run.dsage"
    first = refine(estimation, stopping=checkpoint_case.Slow(60), checkpoint=path)
    assert first.interrupted
    assert_same(
        whole,
        run(interruptible()[1], stopping=checkpoint_case.Slow(60), checkpoint=path, **OPTIONS),
    )
    assert_same(whole, refine(estimation, stopping=checkpoint_case.Slow(60)))


@pytest.fixture(scope="module")
def two_states(tmp_path_factory):
    """The file of a run of 30 orderings, and the one before it."""
    path = tmp_path_factory.mktemp("checkpoint") / "run.dsage"
    result(30, path)
    return path.read_bytes(), path.with_name("run.dsage.previous").read_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: b"a,b\n1,2\n",
        lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
        lambda content: content[:-100],
    ],
    ids=["half", "empty", "something else", "one bit", "the end"],
)
def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_kept(damage, two_states, tmp_path):
    path, previous = tmp_path / "run.dsage", tmp_path / "run.dsage.previous"
    content, before = two_states
    path.write_bytes(damage(content))
    previous.write_bytes(before)
    with pytest.raises(ValueError, match=r"damaged.*run\.dsage\.previous"):
        result(60, path)
    assert previous.read_bytes() == before
    previous.replace(path)
    assert_same(whole_result(60), result(60, path))


def test_an_array_that_is_no_checkpoint_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    np.savez(path, values=np.zeros(3))
    with pytest.raises(ValueError, match="a complete file"):
        result(20, path)


@pytest.mark.parametrize("written", [6, 8])
def test_a_file_of_another_format_is_refused(written, tmp_path, monkeypatch):
    path = tmp_path / "run.dsage"
    monkeypatch.setattr("dsage.estimate.running.checkpoint._FORMAT", written)
    result(20, path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=f"of format 7; got {written}"):
        result(20, path)


def test_a_deleted_checkpoint_starts_over(tmp_path):
    path, previous = tmp_path / "run.dsage", tmp_path / "run.dsage.previous"
    result(60, path)
    path.unlink()
    assert Checkpoint(path).entropy() is None
    assert Checkpoint(path).seconds() == 0.0
    stale = previous.read_bytes()
    assert_same(whole_result(20), result(20, path))
    assert previous.read_bytes() != stale


def test_a_complete_file_is_there_while_a_new_one_is_moved(tmp_path, monkeypatch):
    path = tmp_path / "run.dsage"
    result(20, path)
    was_there = []
    replace = Path.replace

    def look(self, target):
        was_there.append(path.exists())
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", look)
    result(60, path)
    assert was_there
    assert all(was_there)


def edited(path, changes, header=None):
    """Write a checkpoint with other arrays, and another header."""
    found, arrays = read_arrays(path)
    write_arrays(path, found if header is None else header(found), {**arrays, **changes(arrays)})


@pytest.mark.parametrize(
    ("header", "changes", "message"),
    [
        (lambda header: {"format": 7}, lambda arrays: {}, "does not identify its run"),
        (lambda header: header | {"entropy": [1]}, lambda arrays: {}, "invalid literal"),
        (lambda header: header | {"entropy": "-1"}, lambda arrays: {}, "its seed is negative"),
        (lambda header: [], lambda arrays: {}, "not a mapping"),
        (None, lambda arrays: {"state/loop/epoch": np.zeros(3)}, "another type or shape"),
        (None, lambda arrays: {"state/loop/epoch": np.array(-7)}, "impossible numbers"),
        (None, lambda arrays: {"state/extra": np.zeros(1)}, "other parts: extra"),
        (None, lambda arrays: {"state/loop/seconds": np.array(np.nan)}, "number of seconds"),
        (
            None,
            lambda arrays: {"state/memory/sizes": arrays["state/memory/sizes"] + 1},
            "its memory",
        ),
        (
            None,
            lambda arrays: {"state/history/n_units": np.zeros(0, np.int64)},
            "history has several lengths",
        ),
    ],
)
def test_an_edited_checkpoint_is_refused(header, changes, message, two_states, tmp_path):
    path = tmp_path / "run.dsage"
    path.write_bytes(two_states[0])
    edited(path, changes, header)
    with pytest.raises(ValueError, match=message) as caught:
        result(60, path)
    assert caught.value.problem.parameter == "checkpoint"


def test_a_plain_array_is_not_a_checkpoint(tmp_path):
    np.save(tmp_path / "run.npy", np.zeros(3))
    with pytest.raises(ValueError, match="damaged or another kind of file"):
        result(20, tmp_path / "run.npy")


def test_a_second_run_on_one_checkpoint_is_told(tmp_path):
    path = tmp_path / "run.dsage"
    told = []

    class Curious(checkpoint_case.Slow):
        def reason(self, progress):
            program = "import sys; from dsage.estimate import Checkpoint\n"
            program += "with Checkpoint(sys.argv[1]).hold(): pass"
            found = subprocess.run(
                [sys.executable, "-c", program, str(path)],
                check=False,
                capture_output=True,
                text=True,
            )
            told.append(found.stderr)
            with pytest.raises(BlockingIOError, match="Another run is using it"):
                Checkpoint(path).hold().__enter__()
            return "enough"

    run(game(), stopping=Curious(1), checkpoint=path, **OPTIONS)
    assert f"Another run is using it. It is the process {os.getpid()}." in told[0]
    assert {each.name for each in tmp_path.iterdir()} == {"run.dsage"}
    with Checkpoint(path).hold():
        pass


@pytest.mark.kills
def test_the_lock_of_a_run_that_was_killed_is_lifted(tmp_path):
    path = tmp_path / "run.dsage"
    program = "import os, sys; from dsage.estimate import Checkpoint\n"
    program += "with Checkpoint(sys.argv[1]).hold(): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert (tmp_path / "run.dsage.lock").exists()
    with Checkpoint(path).hold():
        pass
    assert not any(tmp_path.iterdir())


# Disks


def test_a_folder_that_is_not_there_is_an_error_at_the_start(tmp_path):
    with pytest.raises(ValueError, match="in a folder that exists"):
        result(20, tmp_path / "nowhere" / "run.dsage")


@pytest.mark.parametrize("when", ["write", "move"])
def test_a_full_disk_is_warned_of_once_and_loses_nothing(when, tmp_path, monkeypatch):
    path = tmp_path / "run.dsage"
    result(20, path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    if when == "write":
        monkeypatch.setattr(os, "fsync", full)
    else:
        monkeypatch.setattr(Path, "replace", full)
    with pytest.warns(UserWarning, match="could not be written.*No space left") as caught:
        found = result(60, path)
    assert len(caught) == 1
    monkeypatch.undo()
    assert_same(whole_result(60), found)
    assert path.read_bytes() == before
    assert {each.name for each in tmp_path.iterdir()} == {"run.dsage", "run.dsage.previous"}
    assert_same(found, result(60, path))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_disk_that_is_really_full_ends_no_run(tmp_path):
    (tmp_path / "run.dsage.partial").symlink_to("/dev/full")
    with pytest.warns(UserWarning, match="could not be written.*No space left"):
        found = result(40, tmp_path / "run.dsage")
    assert_same(whole_result(40), found)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_read_only_folder_ends_no_run(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.warns(UserWarning, match="could not be written.*Permission denied"):
            found = result(40, tmp_path / "run.dsage")
    finally:
        tmp_path.chmod(0o700)
    assert_same(whole_result(40), found)


def test_states_are_written_at_intervals(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(Checkpoint, "_write", lambda self, estimation: written.append(estimation))
    estimation = Estimation(game(), **OPTIONS)
    rare = Checkpoint(tmp_path / "run.dsage", every=1e6)
    refine(estimation, stopping=as_stopping(n_orderings=60), checkpoint=rare)
    assert len(written) == 1  # at the end
    often = Checkpoint(tmp_path / "run.dsage", every=0.0)
    refine(estimation, stopping=as_stopping(n_orderings=200), checkpoint=often)
    assert len(written) > 4


def test_states_are_written_between_looks_too(tmp_path):
    """A run with many shards: a step is several passes over the rows."""
    looks, states = [], []
    estimation = Estimation(game(200), **{**OPTIONS, "rows_per_ordering": 100})
    estimation.on_pause = lambda: states.append(estimation.state())
    steps = estimation.steps()
    for _ in range(12):
        looks.append(next(steps))
    assert len(states) > 2 * len(looks)
    again = Estimation(game(200), **{**OPTIONS, "rows_per_ordering": 100})
    half = next(state for state in states[len(states) // 2 :] if state["loop/pending"][1])
    again.restore(half)
    found = next(each for each in again.steps() if each.n_evaluated == looks[-1].n_evaluated)
    np.testing.assert_array_equal(found.values, looks[-1].values)


def test_an_error_tells_where_to_go_on(tmp_path):
    class Broken(checkpoint_case.Slow):
        def reason(self, progress):
            if progress.n_orderings >= self.n_orderings:
                raise RuntimeError("broken")

    path = tmp_path / "run.dsage"
    with pytest.raises(RuntimeError, match="broken") as caught:
        run(game(), stopping=Broken(60), checkpoint=Checkpoint(path, every=0.0), **OPTIONS)
    assert str(path) in caught.value.__notes__[0]
    assert_same(whole_result(100), result(100, path))


# More precision


@pytest.mark.parametrize("way", ["sage", "d-sage", "plain", "exact"])
def test_a_run_that_is_refined_is_the_run_to_the_tighter_end(way):
    whole = whole_result(60, way)
    estimation = Estimation(game(), **{**OPTIONS, **WAYS[way]})
    for n_orderings in (10, 30):
        refine(estimation, stopping=checkpoint_case.Slow(n_orderings))
    assert_same(whole, refine(estimation, stopping=checkpoint_case.Slow(60)))


def test_refining_to_what_is_reached_already_evaluates_nothing():
    X, y = checkpoint_case.data()
    moment = MomentGame(X, y, y, NAMES)
    estimation = Estimation(moment, exact="never", random_state=0)
    fine = refine(estimation, stopping=as_stopping(n_orderings=60))
    rough = refine(estimation, stopping=as_stopping(n_orderings=20))
    assert rough.n_evaluated == fine.n_evaluated
    np.testing.assert_array_equal(rough.values, fine.values)


@pytest.mark.parametrize(
    ("took", "waits"), [(0.0, [5.0, 5.5]), (0.04, [5.0, 5.5]), (0.5, [10.0, 10.5])]
)
def test_writing_takes_a_small_share_of_the_time(tmp_path, monkeypatch, took, waits):
    now, written = [100.0], []
    monkeypatch.setattr(checkpoint_module, "perf_counter", lambda: now[0])

    def write(self, estimation):
        written.append(now[0])
        now[0] += took

    monkeypatch.setattr(Checkpoint, "_write", write)
    kept = Checkpoint(tmp_path / "run.dsage", every=5.0)
    now[0] += 5.0
    kept.save(None)
    assert written == [105.0]
    # A twentieth of the time at most.
    began = now[0]
    for wait in (0.5 * waits[0], waits[0] - 0.01, waits[0]):
        now[0] = began + wait
        kept.save(None)
        assert len(written) == 1 + (wait >= waits[0])
    kept.save(None)
    assert len(written) == 2
    kept.save(None, is_last=True)
    assert len(written) == 3
