"""Interrupts must not leave SciPy's table of direction numbers incomplete."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import _sobol, qmc

from dsage._random import Streams
from dsage.samplers import sobol
from dsage.samplers.noise import Noise


@pytest.fixture
def unloaded(monkeypatch):
    """A process whose table has not been checked yet; SciPy's arrays are put back at the end."""
    qmc.Sobol(1)
    arrays = [_sobol.get_poly_vinit(kind, np.uint32) for kind in ("poly", "vinit")]
    kept = [array.copy() for array in arrays]
    monkeypatch.setattr(sobol, "_loaded", [])
    yield arrays
    for array, before in zip(arrays, kept, strict=True):
        array[...] = before


def net():
    return Noise(Streams(3), 4, n_replicates=2, n_draws=8)(np.arange(5), 0)


@pytest.mark.parametrize("left", ["zeros", "half"])
def test_a_table_that_was_left_incomplete_is_repaired(unloaded, left):
    expected = net()
    sobol._loaded.clear()
    for array in unloaded:
        array[(2 if left == "half" else 0) :] = 0
    np.testing.assert_array_equal(net(), expected)


def test_a_table_that_cannot_be_repaired_is_refused(unloaded, monkeypatch):
    monkeypatch.setattr(sobol, "_FILE", "missing.npz")
    unloaded[1][...] = 0
    with pytest.raises(RuntimeError, match=r"Sobol' direction numbers must be .* Restart Python"):
        net()


def test_the_table_is_loaded_once(unloaded, monkeypatch):
    calls = []
    monkeypatch.setattr(sobol, "_repair", lambda: calls.append(1))
    net()
    net()
    assert calls == [1]


@pytest.fixture
def listens():
    """A process that listens to interrupts, which a shell may have told it to ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.interrupts
@pytest.mark.skipif(os.name == "nt", reason="signals differ on Windows")
def test_an_interrupt_waits_for_the_end_of_the_block(listens):
    done = []

    def interrupted():
        with sobol.delay_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("after")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == ["after"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.interrupts
@pytest.mark.skipif(os.name == "nt", reason="signals differ on Windows")
def test_ctrl_c_during_the_first_load_is_raised_and_leaves_a_complete_table(listens):
    """In a new process: NumPy's loader is interrupted in the middle of the file."""
    program = """
import os, signal
import numpy as np
from dsage._random import Streams
from dsage.samplers import noise
signal.signal(signal.SIGINT, signal.default_int_handler)
load = np.load
def interrupted(*args, **options):
    os.kill(os.getpid(), signal.SIGINT)
    return load(*args, **options)
np.load = interrupted
try:
    noise.Noise(Streams(3), 4, n_replicates=2, n_draws=8)
    print("swallowed")
except KeyboardInterrupt:
    print("raised")
np.load = load
print(noise.Noise(Streams(3), 4, n_replicates=2, n_draws=8)(np.arange(5), 0).sum().hex())
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.split() == ["raised", net().sum().hex()]


def test_a_listener_that_python_did_not_set_is_left_alone(monkeypatch):
    changed = []
    monkeypatch.setattr(sobol.signal, "getsignal", lambda _: None)
    monkeypatch.setattr(sobol.signal, "signal", lambda *listener: changed.append(listener))
    with sobol.delay_interrupts():
        pass
    assert changed == []
