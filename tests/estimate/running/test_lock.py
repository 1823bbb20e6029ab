"""The lock of a file: one run at a time, which may hold it several times."""

import os
import stat
from threading import Thread

import pytest

from dsage.estimate.running import lock as module
from dsage.estimate.running.lock import FileLock

NAME = "run.dsage.lock"


def names(folder):
    return [each.name for each in folder.iterdir()]


def in_a_thread(path_lock):
    """What another thread of this process is told."""
    told = []

    def hold():
        try:
            with path_lock:
                told.append("held")
        except BlockingIOError as error:
            told.append(str(error))

    thread = Thread(target=hold)
    thread.start()
    thread.join()
    return told[0]


def test_a_lock_is_held_until_the_last_block_ends(tmp_path):
    lock = FileLock(tmp_path / "run.dsage", "checkpoint")
    with lock:
        with lock:
            assert names(tmp_path) == [NAME]
        text = in_a_thread(lock)
        assert text.startswith("checkpoint must be not in use")
        assert f"It is the process {os.getpid()}." in text
        assert in_a_thread(FileLock(tmp_path / "run.dsage", "checkpoint")) == text
    assert names(tmp_path) == []
    assert in_a_thread(lock) == "held"
    assert names(tmp_path) == []
    with lock:
        assert names(tmp_path) == [NAME]


def test_others_may_read_and_write_the_file_of_a_lock_but_not_run_it(tmp_path):
    before = os.umask(0)
    try:
        with FileLock(tmp_path / "run.dsage", "checkpoint"):
            mode = (tmp_path / NAME).stat().st_mode
            assert (tmp_path / NAME).read_text(encoding="ascii") == str(os.getpid())
    finally:
        os.umask(before)
    assert stat.S_IMODE(mode) == 0o666


def test_what_an_earlier_run_left_in_the_file_is_overwritten(tmp_path):
    (tmp_path / NAME).write_text("9" * 30, encoding="ascii")
    with FileLock(tmp_path / "run.dsage", "checkpoint"):
        assert (tmp_path / NAME).read_text(encoding="ascii") == str(os.getpid())


@pytest.mark.parametrize("place", [None, "other"])
def test_a_file_that_the_run_before_removed_is_made_again(tmp_path, monkeypatch, place):
    taken, take = [], module._take

    def slow(number):
        # The run before ends while this one waits.
        take(number)
        taken.append(number)
        if len(taken) == 1:
            (tmp_path / NAME).unlink()
            if place is not None:
                (tmp_path / NAME).write_text(place, encoding="ascii")

    monkeypatch.setattr(module, "_take", slow)
    with FileLock(tmp_path / "run.dsage", "checkpoint"):
        assert len(taken) == 2
        with pytest.raises(OSError, match="descriptor"):
            os.fstat(taken[0] if taken[0] != taken[1] else -1)
        assert (tmp_path / NAME).read_text(encoding="ascii") == str(os.getpid())
    assert names(tmp_path) == []


def test_without_a_folder_or_locks_nothing_is_locked(tmp_path, monkeypatch):
    with FileLock(tmp_path / "none" / "run.dsage", "checkpoint"):
        assert names(tmp_path) == []
    opened = []

    def fail(number):
        opened.append(number)
        raise OSError("no locks")

    monkeypatch.setattr(module, "_take", fail)
    with FileLock(tmp_path / "run.dsage", "checkpoint"):
        pass
    assert len(opened) == 1
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(opened[0])
