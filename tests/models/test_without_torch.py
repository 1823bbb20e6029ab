"""The package without PyTorch, which is optional."""

import subprocess
import sys

import pytest

from dsage.models.torch_module import TorchPredictor, as_predictor
from dsage.models.torch_tools import is_module, one_thread, require_torch

USE = """
import sys
import numpy as np
import dsage, dsage.estimate, dsage.games.device, dsage.samplers.device
from dsage.models.losses import choose_loss
from dsage.models import as_model
choose_loss(len, [1.0]), as_model(lambda X: X[:, 0], "squared_error").predict(np.zeros((2, 1)))
sys.exit("torch" in sys.modules)
"""


def test_torch_is_not_imported_before_a_module_is_given():
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["a string", len, None])
def test_other_models_are_no_modules(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert not is_module(name)
    assert as_predictor(name) is None


def test_the_extra_is_named_where_torch_is_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for make in (lambda: require_torch("TorchPredictor"), lambda: TorchPredictor(len)):
        with pytest.raises(ImportError, match=r"^TorchPredictor needs torch; .*'dsage\[torch\]'"):
            make()


def test_nothing_is_held_at_one_thread_where_torch_is_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with one_thread() as held:
        assert held is None
