"""The devices of PyTorch that tests run on: the CPU, and CUDA where there is one."""

import pytest

torch = pytest.importorskip("torch")

NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=NEEDS_CUDA)]
# How far results may be from double precision, in standard deviations of the data.
TOLERANCES = [(torch.float64, 1e-11), (torch.float32, 2e-5)]


def on_host(tensor):
    return tensor.double().cpu().numpy()
