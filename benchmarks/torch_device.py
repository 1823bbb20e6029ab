"""An ordering of a PyTorch module: draws made by the host against draws made on its device.

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
    """How much is measured."""

    n_train: int = 4_000
    n_rows: int = 2_000
    n_draws: int = 8
    widths: tuple[int, ...] = (64, 256, 1_024)
    n_steps: int = 200


@dataclass(frozen=True, eq=False)
class Data:
    """Rows to train and to evaluate on, and a sampler."""

    X_train: pd.DataFrame
    y_train: pd.Series
    X: pd.DataFrame
    y: pd.Series
    sampler: Gaussian


def data_of(sizes: Sizes) -> Data:
    """Draw the data."""
    law = paper_graph(GRAPH)
    data = law.sample(sizes.n_train + sizes.n_rows, random_state=0)
    train, test = data.iloc[: sizes.n_train], data.iloc[sizes.n_train :]
    X = train.drop(columns=law.target)
    return Data(
        X, train[law.target], test.drop(columns=law.target), test[law.target], Gaussian().fit(X)
    )


def network(data: Data, width: int, n_steps: int) -> torch.nn.Module:
    """Train a network of three hidden layers for a little while."""
    torch.manual_seed(0)
    n_features = data.X.shape[1]
    layers: list[torch.nn.Module] = []
    for n_in in (n_features, width, width):
        layers += [torch.nn.Linear(n_in, width), torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers, torch.nn.Linear(width, 1))
    optimiser = torch.optim.Adam(module.parameters(), lr=1e-3)
    X = torch.tensor(data.X_train.to_numpy(), dtype=torch.float32)
    y = torch.tensor(data.y_train.to_numpy(), dtype=torch.float32)[:, None]
    for step in range(n_steps):
        batch = slice(256 * step % len(X), 256 * step % len(X) + 256)
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(module(X[batch]), y[batch]).backward()
        optimiser.step()
    return module


def surpluses(
    module: torch.nn.Module,
    data: Data,
    sizes: Sizes,
    draws: Literal["host", "module"],
    repeats: int,
) -> tuple[Floats, float]:
    """Return the surpluses along an ordering of all rows, and the seconds that it takes."""
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


def alone(module: torch.nn.Module, data: Data, sizes: Sizes, repeats: int) -> float:
    """Return the seconds that the module itself needs for so many rows, which are there already."""
    device, dtype = (next(module.parameters()).device, next(module.parameters()).dtype)
    rows = torch.zeros(
        sizes.n_rows * sizes.n_draws * data.X.shape[1], data.X.shape[1], device=device, dtype=dtype
    )
    predictor = TorchPredictor(module)
    return seconds(lambda: float(predictor.on_device(rows).sum()), repeats)


def lines(sizes: Sizes, repeats: int) -> list[list[str]]:
    """Measure every network on every device."""
    data = data_of(sizes)
    table = []
    for device in ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]:
        for width in sizes.widths:
            trained = network(data, width, sizes.n_steps)
            exact, _ = surpluses(trained.double(), data, sizes, "host", 1)
            for dtype in (torch.float32, torch.bfloat16):
                if device == "cpu" and dtype == torch.bfloat16:
                    continue  # emulated by most processors
                module = trained.to(device, dtype)
                host, host_took = surpluses(module, data, sizes, "host", repeats)
                there, took = surpluses(module, data, sizes, "module", repeats)
                own = alone(module, data, sizes, repeats)
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


def main(sizes: Sizes, repeats: int, *, is_kept: bool) -> None:
    """Measure and publish the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = lines(sizes, repeats)
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    text = (
        f"One ordering of the features of the paper's `{GRAPH}` (49), {sizes.n_rows:,} rows, "
        f"{sizes.n_draws} draws, networks of three hidden layers of a *width*: seconds for the "
        f"risks of all prefixes, the shortest of {repeats} runs. Draws are made by the host, or "
        "on the device of the module; *module alone* is the time for as many rows that are there "
        "already. *Host or device*: the largest difference of a surplus, as a share of the range "
        "of the surpluses; *to float64*: the same, of draws on the device to a module and draws in "
        f"float64. {torch.get_num_threads()} threads; CUDA device: {name}."
    )
    header = [
        *("device", "width", "dtype", "draws by host, s", "draws on device, s", "ratio"),
        *("module alone, s", "host or device", "to float64"),
    ]
    section = (text, markdown(header, table))
    if is_kept:
        title = "PyTorch modules: where draws are made"
        publish("torch_device", title, [section], ["dsage", "numpy", "torch"])
    else:
        print("\n\n".join(section))


def options() -> Any:  # noqa: ANN401
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try it")
    return parser.parse_args()


if __name__ == "__main__":
    given = options()
    tiny = Sizes(n_train=500, n_rows=100, widths=(32,), n_steps=20)
    main(tiny if given.tiny else Sizes(), given.repeats, is_kept=not given.tiny)
