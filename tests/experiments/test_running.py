"""Complete runs, interrupted runs, and runs with other sizes."""

from dataclasses import dataclass

import pytest

from experiments.part import Part
from experiments.running import run_part
from experiments.store import Store


@dataclass(frozen=True)
class Sizes:
    n_units: int = 3


class Work:
    """Units of work that are counted, and interrupted on request."""

    def __init__(self):
        self.done = []
        self.broken_at = None
        self.n_made = 0

    def run(self, store, sizes):
        for number in range(sizes.n_units):
            store.unit("some", {"unit": number}, lambda number=number: self.line(number), seed=0)
        store.unit("some_more", {"unit": 0}, lambda: [{"made": self.n_made}], seed=0)

    def line(self, number):
        if number == self.broken_at:
            raise KeyboardInterrupt
        self.done.append(number)
        self.n_made += 1
        return [{"made": self.n_made}]


@pytest.fixture
def work():
    return Work()


@pytest.fixture
def part(work):
    return Part("some", "Some", work.run, Sizes(), Sizes(), lambda *_: None, lambda _: "")


def run(part, folder, sizes):
    said = []
    run_part(part, sizes, folder, said.append)
    return said


def made(folder):
    return Store(folder / "tables").read("some")["made"].tolist()


@pytest.mark.interrupts
def test_a_complete_part_starts_from_scratch(part, work, tmp_path):
    run(part, tmp_path, Sizes())
    assert made(tmp_path) == [1, 2, 3]
    run(part, tmp_path, Sizes())
    assert work.done == [0, 1, 2, 0, 1, 2]
    assert made(tmp_path) == [4, 5, 6]


@pytest.mark.interrupts
def test_an_interrupted_part_resumes(part, work, tmp_path):
    run(part, tmp_path, Sizes())
    work.broken_at = 2
    with pytest.raises(KeyboardInterrupt):
        run(part, tmp_path, Sizes())
    assert made(tmp_path) == [1, 2, 3], "tables were replaced before all were complete"
    work.broken_at = None
    said = run(part, tmp_path, Sizes())
    assert said[0] == "some: resuming an interrupted run"
    assert made(tmp_path) == [4, 5, 6]
    assert work.done == [0, 1, 2, 0, 1, 2]
    assert not (tmp_path / "running" / "some").exists()


@pytest.mark.interrupts
def test_a_run_with_other_sizes_does_not_resume(part, work, tmp_path):
    work.broken_at = 2
    with pytest.raises(KeyboardInterrupt):
        run(part, tmp_path, Sizes())
    run(part, tmp_path, Sizes(n_units=2))
    assert made(tmp_path) == [3, 4]


@pytest.mark.interrupts
def test_obsolete_tables_are_removed(part, tmp_path):
    store = Store(tmp_path / "tables")
    for name in ("some_old", "something"):
        store.unit(name, {"unit": 0}, lambda: [{"made": 0}], seed=0)
    run(part, tmp_path, Sizes())
    assert store.names() == ["some", "some_more", "something"]


@pytest.mark.interrupts
def test_a_part_without_its_data_keeps_existing_tables(part, tmp_path):
    run(part, tmp_path, Sizes())
    without = Part("some", "Some", lambda *_: None, None, None, part.draw, part.describe)
    run(without, tmp_path, None)
    assert made(tmp_path) == [1, 2, 3]
