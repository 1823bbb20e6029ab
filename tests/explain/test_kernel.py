"""`explain` in a Jupyter kernel: the results of a plain process, and nothing global is changed."""

import json
import subprocess
import sys

import pytest

jupyter_client = pytest.importorskip("jupyter_client", reason="needs jupyter_client")
pytest.importorskip("ipykernel", reason="needs ipykernel")

CODE = """
import json, signal, warnings
import numpy as np
from sklearn.ensemble import RandomForestRegressor
import dsage

rng = np.random.default_rng(0)
X = rng.normal(size=(160, 3))
y = X[:, 0] + np.sin(2 * X[:, 1])
model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)
before = list(warnings.filters), signal.getsignal(signal.SIGINT)
found = dsage.explain(
    model, X[:80], y[:80], X[80:], y[80:], n_orderings=8, sampler="gaussian", random_state=0
)
after = list(warnings.filters), signal.getsignal(signal.SIGINT)
print("numbers", json.dumps([[v.hex() for v in found.estimate.values.tolist()], before == after]))
"""


def numbers_of(text):
    (line,) = (line for line in text.splitlines() if line.startswith("numbers "))
    return json.loads(line.removeprefix("numbers "))


def test_a_jupyter_kernel_gives_the_numbers_of_a_plain_process():
    plain = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=120
    )
    printed = []

    def show(message):
        assert message["msg_type"] != "error", message["content"]
        if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
            printed.append(message["content"]["text"])

    with jupyter_client.run_kernel(kernel_name="python3") as client:
        client.execute_interactive(CODE, output_hook=show, timeout=120)
    in_kernel = numbers_of("".join(printed))
    assert in_kernel == numbers_of(plain.stdout)
    assert in_kernel[1]
