"""Compare draws made by the host and on the device of a PyTorch module, for one ordering.

Run: python -m benchmarks.torch_device [--repeats N] [--tiny]
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch

from benchmarks.table import markdown, publish, seconds
from dsage.datasets import paper_graph
from dsage.games import LossGame
from dsage.games.base import Floats
from dsage.models.torch_module import TorchPredictor
from dsage.samplers import Gaussian

Section = tuple[str, str]

GRAPH = "dag_m(2)"


@dataclass(frozen=True)
class Sizes:
    """Sizes of the benchmark."""

    n_train: int = 4_000
    n_rows: int = 2_000
    n_draws: int = 8
    widths: tuple[int, ...] = (64, 256, 1_024)
    n_steps: int = 200


@dataclass(frozen=True, eq=False)
class Data:
    """Training and evaluation rows, and a sampler."""

    X_train: pd.DataFrame
    y_train: pd.Series
    X: pd.DataFrame
    y: pd.Series
    sampler: Gaussian


def draw_data(sizes: Sizes) -> Data:
    """Draw the data and fit the sampler."""
    law = paper_graph(GRAPH)
    data = law.sample(sizes.n_train + sizes.n_rows, random_state=0)
    train, test = data.iloc[: sizes.n_train], data.iloc[sizes.n_train :]
    X = train.drop(columns=law.target)
    return Data(
        X, train[law.target], test.drop(columns=law.target), test[law.target], Gaussian().fit(X)
    )


def train_network(data: Data, width: int, n_steps: int) -> torch.nn.Module:
    """Train a network with three hidden layers for a few steps."""
    torch.manual_seed(0)
    n_features = data.X.shape[1]
    layers: list[torch.nn.Module] = []
    for n_in in (n_features, width, width):
        layers += [torch.nn.Linear(n_in, width), torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers, torch.nn.Linear(width, 1))
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    X = torch.tensor(data.X_train.to_numpy(), dtype=torch.float32)
    y = torch.tensor(data.y_train.to_numpy(), dtype=torch.float32)[:, None]
    for step in range(n_steps):
        batch = slice(256 * step % len(X), 256 * step % len(X) + 256)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(module(X[batch]), y[batch]).backward()
        optimizer.step()
    return module


def surpluses(
    module: torch.nn.Module,
    data: Data,
    sizes: Sizes,
    draws: Literal["host", "module"],
    repeats: int,
) -> tuple[Floats, float]:
    """Return the surpluses along an ordering on all rows, and the seconds."""
    predictor = TorchPredictor(module, draws=draws)
    game = LossGame(predictor, data.sampler, data.X, data.y, n_draws=sizes.n_draws, random_state=0)
    n_features = data.X.shape[1]
    order = np.random.default_rng(0).permutation(n_features)
    needed = np.ones((1, n_features + 1), bool)
    found: list[Floats] = []

    def once() -> None:
        found[:] = [game.path_risks(order[None], np.arange(game.n_rows), 0, needed)]

    once()  # the first call compiles, allocates and fills caches
    took = seconds(once, repeats)
    risks = found[0][0].mean(axis=(1, 2))
    return risks[:-1] - risks[1:], took


def time_module(module: torch.nn.Module, data: Data, sizes: Sizes, repeats: int) -> float:
    """Return the seconds of the module for as many rows, which are already on its device."""
    device, dtype = (next(module.parameters()).device, next(module.parameters()).dtype)
    rows = torch.zeros(
        sizes.n_rows * sizes.n_draws * data.X.shape[1], data.X.shape[1], device=device, dtype=dtype
    )
    predictor = TorchPredictor(module)
    return seconds(lambda: float(predictor.on_device(rows).sum()), repeats)


def measure(sizes: Sizes, repeats: int) -> list[list[str]]:
    """Measure every network on every device."""
    data = draw_data(sizes)
    table = []
    for device in ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]:
        for width in sizes.widths:
            trained = train_network(data, width, sizes.n_steps)
            exact, _ = surpluses(trained.double(), data, sizes, "host", 1)
            for dtype in (torch.float32, torch.bfloat16):
                if device == "cpu" and dtype == torch.bfloat16:
                    continue  # emulated by most processors
                module = trained.to(device, dtype)
                host, host_took = surpluses(module, data, sizes, "host", repeats)
                there, took = surpluses(module, data, sizes, "module", repeats)
                own = time_module(module, data, sizes, repeats)
                scale = np.ptp(exact)
                table.append(
                    [
                        *(device, f"{width:,}", str(dtype).removeprefix("torch.")),
                        *(f"{host_took:.3f}", f"{took:.3f}", f"{host_took / took:.1f} x"),
                        *(f"{own:.3f}", f"{np.abs(there - host).max() / scale:.1e}"),
                        f"{np.abs(there - exact).max() / scale:.1e}",
                    ]
                )
                trained = trained.to("cpu", torch.float64)
    return table


def main(sizes: Sizes, repeats: int, *, is_published: bool) -> None:
    """Measure and publish the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = measure(sizes, repeats)
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    text = (
        f"One ordering of the 49 features of the paper's `{GRAPH}`, with {sizes.n_rows:,} rows, "
        f"{sizes.n_draws} draws, and networks with three hidden layers of the given *width*: "
        f"seconds for the risks of all prefixes, the shortest of {repeats} runs. Draws are made by "
        "the host or on the device of the module. *Module alone* is the time of the module for as "
        "many rows that are already on its device. *Host or device* is the largest difference "
        "between surpluses with draws from the host and from the device, as a share of the range "
        "of the surpluses. *To float64* is the same difference between draws on the device and a "
        f"computation in float64. {torch.get_num_threads()} threads; CUDA device: {name}."
    )
    header = [
        *("device", "width", "dtype", "draws by host, s", "draws on device, s", "ratio"),
        *("module alone, s", "host or device", "to float64"),
    ]
    section = (text, markdown(header, table))
    if is_published:
        title = "PyTorch modules: where draws are made"
        publish("torch_device", title, [section], ["dsage", "numpy", "torch"])
    else:
        print("\n\n".join(section))


def parse_options() -> Any:  # noqa: ANN401
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tiny", action="store_true", help="small sizes, for a trial")
    return parser.parse_args()


if __name__ == "__main__":
    given = parse_options()
    tiny = Sizes(n_train=500, n_rows=100, widths=(32,), n_steps=20)
    main(tiny if given.tiny else Sizes(), given.repeats, is_published=not given.tiny)
