"""What a machine can spare, with files and loads that the tests set."""

import os

import pytest

from dsage.estimate.parallel import spare

GIGABYTE = 2**30


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A folder in place of the root of the file system."""

    def moved(path):
        return tmp_path / str(path).removeprefix("/")

    monkeypatch.setattr(spare, "Path", moved)
    monkeypatch.setattr(spare, "_GROUPS", moved("/sys/fs/cgroup"))
    return tmp_path


def write(root, name, text):
    path = root / name.removeprefix("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")


def write_group(root, name, limit, used, cached=0, *, is_old=False):
    most, current = ("memory.max", "memory.current") if not is_old else (
        "memory.limit_in_bytes", "memory.usage_in_bytes",
    )  # fmt: skip
    folder = f"/sys/fs/cgroup/{name}"
    write(root, f"{folder}/{most}", f"{limit}\n")
    write(root, f"{folder}/{current}", f"{used}\n")
    write(root, f"{folder}/memory.stat", f"active_file 7\ninactive_file {cached}\nanon 3\n")


@pytest.mark.parametrize(
    ("n_threads", "n_processors"),
    [(None, 8), ("", 8), ("3", 3), (" 2 ", 2), ("2,4", 2), ("16", 8), ("many", 8), ("-1", 8)],
)
def test_processors_are_those_of_joblib_or_the_threads_that_are_allowed(
    monkeypatch, n_threads, n_processors
):
    monkeypatch.setattr(spare.joblib, "cpu_count", lambda: 8)
    if n_threads is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", n_threads)
    assert spare.count_processors() == n_processors


@pytest.mark.parametrize(
    ("n_processors", "n_cores", "load", "free", "n_bytes", "n_idle"),
    [
        # This process is one of at most four.
        (8, 8, 0.0, None, 0, 3),
        (3, 8, 0.0, None, 0, 2),
        (1, 8, 0.0, None, 0, 0),
        (8, 8, None, None, 0, 3),
        # The load is that of the whole machine.
        (8, 8, 5.4, None, 0, 3),
        (8, 8, 5.6, None, 0, 2),
        (4, 8, 7.2, None, 0, 1),
        (4, None, 0.4, None, 0, 1),
        (8, 8, 9.5, None, 0, 0),
        # Half a gigabyte each, and twice the game, of half of the free memory.
        (8, 8, 0.0, 3 * GIGABYTE, 0, 3),
        (8, 8, 0.0, 3 * GIGABYTE - 1, 0, 2),
        (8, 8, 0.0, 3 * GIGABYTE, GIGABYTE // 4, 1),
        (8, 8, 0.0, 4 * GIGABYTE, GIGABYTE // 4, 2),
        (8, 8, 0.0, 0, 0, 0),
    ],
)
def test_helpers_take_idle_processors_and_half_of_the_free_memory(
    monkeypatch, n_processors, n_cores, load, free, n_bytes, n_idle
):
    monkeypatch.setattr(spare, "count_processors", lambda: n_processors)
    monkeypatch.setattr(spare.os, "cpu_count", lambda: n_cores)
    monkeypatch.setattr(spare, "_load", lambda: load)
    monkeypatch.setattr(spare, "free_bytes", lambda: free)
    monkeypatch.setattr(spare, "_ticks", lambda: None)
    assert spare.count_idle(n_bytes, spare.Recently()) == n_idle


STAT = "cpu  {busy} 0 0 {idle} {waiting} 0 0 0 7 7\ncpu0 1 2 3 4 5 6 7 8 9 10\n"


@pytest.mark.parametrize(
    ("busy", "idle", "waiting", "n_busy"),
    [(400, 400, 0, 2.0), (0, 700, 100, 0.0), (800, 0, 0, 4.0), (10, 20, 0, 3.3)],
)
def test_busy_processors_are_counted_since_the_beginning(
    machine, monkeypatch, busy, idle, waiting, n_busy
):
    monkeypatch.setattr(spare.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(spare, "_load", lambda: 3.3)
    write(machine, "/proc/stat", STAT.format(busy=5000, idle=300, waiting=20))
    recently = spare.Recently()
    text = STAT.format(busy=5000 + busy, idle=300 + idle, waiting=20 + waiting)
    write(machine, "/proc/stat", text)
    # The last minute counts if there are few ticks.
    assert recently.count_busy() == pytest.approx(n_busy)


@pytest.mark.parametrize(
    "text", [None, "", "cpu 1 2\n", "cpu a b c d e f g h\n", "intr 1 2 3 4 5 6\n"]
)
def test_without_ticks_the_last_minute_counts(machine, monkeypatch, text):
    monkeypatch.setattr(spare, "_load", lambda: 1.5)
    if text is not None:
        write(machine, "/proc/stat", text)
    assert spare.Recently().count_busy() == 1.5


@pytest.mark.parametrize(
    ("n_cores", "load", "is_overloaded"),
    [(4, 4.5, False), (4, 4.6, True), (None, 1.5, False), (None, 1.6, True), (4, None, False)],
)
def test_a_machine_is_overloaded_by_half_a_processor_more_than_it_has(
    monkeypatch, n_cores, load, is_overloaded
):
    monkeypatch.setattr(spare.os, "cpu_count", lambda: n_cores)
    monkeypatch.setattr(spare, "_load", lambda: load)
    assert spare.is_overloaded() == is_overloaded


def test_the_load_is_that_of_the_last_minute(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (1.0, 2.0, 3.0), raising=False)
    assert spare._load() == 1.0
    monkeypatch.delattr(os, "getloadavg")
    assert spare._load() is None


@pytest.mark.parametrize(
    "text", ["MemTotal: 99 kB\nMemAvailable:   2048 kB\nCached: 7 kB\n", "MemAvailable: 2048\n"]
)
def test_linux_tells_the_memory_that_is_available(machine, text):
    write(machine, "/proc/meminfo", text)
    assert spare._of_machine() == 2048 * 1024


@pytest.mark.parametrize("text", [None, "MemTotal: 99 kB\n", "MemAvailable:\n"])
def test_elsewhere_half_of_the_memory_counts_as_free(machine, monkeypatch, text):
    if text is not None:
        write(machine, "/proc/meminfo", text)
    pages = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__, raising=False)
    # A quarter of all is half of what counts as free.
    assert spare._of_machine() == 2_048_000
    monkeypatch.delattr(os, "sysconf")
    assert spare._of_machine() is None


def test_every_control_group_around_the_process_limits_it(machine):
    write(machine, "/proc/self/cgroup", "0::/user/session\n")
    assert spare._of_groups() == []
    write_group(machine, "user/session", "max", 10)
    write_group(machine, "user", 1000, 400, cached=50)
    write_group(machine, "", 5000, 1000)
    # A group beside it does not count.
    write_group(machine, "other", 5, 5)
    assert sorted(spare._of_groups()) == [650, 4000]
    write_group(machine, "user/session", 100, 130, cached=20)
    assert sorted(spare._of_groups()) == [0, 650, 4000]
    write(machine, "/proc/meminfo", "MemAvailable: 2 kB\n")
    assert spare.free_bytes() == 0
    write_group(machine, "user/session", "max", 10)
    assert spare.free_bytes() == 650


def test_old_control_groups_have_a_hierarchy_for_memory(machine):
    text = "5:cpu,cpuacct:/a\n4:memory:/a\n1:name=systemd:/a\n"
    write(machine, "/proc/self/cgroup", text)
    write_group(machine, "memory/a", 900, 100, cached=10, is_old=True)
    write_group(machine, "memory", 2000, 100, is_old=True)
    write_group(machine, "a", 3, 1)
    assert sorted(spare._of_groups()) == [810, 1900]


def test_the_path_of_a_container_may_be_that_of_the_host(machine):
    write(machine, "/proc/self/cgroup", "0::/docker/0123\n")
    write_group(machine, "", 700, 200, cached=30)
    assert spare._of_groups() == [530]
    # Without the files of a group, or with others in them, nothing is known.
    write(machine, "/sys/fs/cgroup/memory.stat", "inactive_file \n")
    assert spare._of_groups() == []
    write(machine, "/sys/fs/cgroup/memory.stat", "inactive_file 30\n")
    write(machine, "/sys/fs/cgroup/memory.current", "few\n")
    assert spare._of_groups() == []
    write(machine, "/proc/meminfo", "MemAvailable: 2 kB\n")
    assert spare.free_bytes() == 2048
