"""Compare draws made by the host and on the device of a PyTorch module with the module alone.

Run: python -m benchmarks.torch_device [--repeats N] [--tiny]
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch

from benchmarks.table import markdown, publish, seconds
from dsage.datasets import paper_graph
from dsage.estimate import as_stopping, run
from dsage.games import LossGame
from dsage.games.base import Floats
from dsage.models.torch_module import TorchPredictor
from dsage.samplers import Gaussian, GaussianCopula, Mix, Sampler

Section = tuple[str, str]
Draws = Literal["host", "module"]

GRAPH = "dag_m(2)"
LOSSES = {"squared_error": "squared error", "cross_entropy": "cross entropy, 3 classes"}


@dataclass(frozen=True)
class Sizes:
    """Sizes of the benchmark."""

    n_train: int = 4_000
    n_rows: int = 2_000
    n_draws: int = 8
    n_orderings: int = 8
    widths: tuple[int, ...] = (64, 256, 1_024)
    n_steps: int = 200
    run_rows: tuple[int, ...] = (64, 512, 2_000)


@dataclass(frozen=True, eq=False)
class Data:
    """Training and evaluation rows, and samplers."""

    X_train: pd.DataFrame
    y_train: pd.Series
    X: pd.DataFrame
    y: pd.Series
    samplers: dict[str, Sampler]
    epochs: itertools.count[int] = field(default_factory=itertools.count)

    def targets(self, loss: str) -> pd.Series:
        """Return the targets of the evaluation rows for a loss."""
        return self.y if loss == "squared_error" else self.classes(self.y)

    def classes(self, y: pd.Series) -> pd.Series:
        """Return targets as three classes of equal size."""
        limits = np.quantile(self.y_train, [1 / 3, 2 / 3])
        return pd.Series(np.digitize(y, limits), index=y.index)


def draw_data(sizes: Sizes) -> Data:
    """Draw the data and fit the samplers."""
    law = paper_graph(GRAPH)
    data = law.sample(sizes.n_train + sizes.n_rows, random_state=0)
    train, test = data.iloc[: sizes.n_train], data.iloc[sizes.n_train :]
    X = train.drop(columns=law.target)
    samplers = {
        "Gaussian": Gaussian(),
        "GaussianCopula": GaussianCopula(),
        "Mix, one component": Mix(n_components=1),
        "Mix, 8 components": Mix(n_components=8),
    }
    fitted = {name: sampler.fit(X) for name, sampler in samplers.items()}
    rows = test.drop(columns=law.target)
    return Data(X, train[law.target], rows, test[law.target], fitted)


def train_network(data: Data, width: int, n_steps: int, n_classes: int = 0) -> torch.nn.Module:
    """Train a network with three hidden layers for a few steps."""
    torch.manual_seed(0)
    layers: list[torch.nn.Module] = []
    for n_in in (data.X.shape[1], width, width):
        layers += [torch.nn.Linear(n_in, width), torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers, torch.nn.Linear(width, n_classes or 1))
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    X = torch.tensor(data.X_train.to_numpy(), dtype=torch.float32)
    y = torch.tensor(data.y_train.to_numpy(), dtype=torch.float32)[:, None]
    codes = torch.tensor(data.classes(data.y_train).to_numpy())
    for step in range(n_steps):
        batch = slice(256 * step % len(X), 256 * step % len(X) + 256)
        optimizer.zero_grad()
        found = module(X[batch])
        if n_classes:
            torch.nn.functional.cross_entropy(found, codes[batch]).backward()
        else:
            torch.nn.functional.mse_loss(found, y[batch]).backward()
        optimizer.step()
    return torch.nn.Sequential(module, torch.nn.Softmax(dim=1)) if n_classes else module


def game_of(
    module: torch.nn.Module,
    data: Data,
    sizes: Sizes,
    draws: Draws,
    sampler: str = "Gaussian",
    loss: str = "squared_error",
) -> LossGame:
    """Return the game of a module, without a control of the draws, which only the host has."""
    predictor = TorchPredictor(module, draws=draws)
    options = {"n_draws": sizes.n_draws, "random_state": 0, "draw_control": "none", "loss": loss}
    return LossGame(predictor, data.samplers[sampler], data.X, data.targets(loss), **options)


def time_paths(game: LossGame, data: Data, n_orderings: int, repeats: int) -> float:
    """Return the seconds for an ordering, when several are asked for at a time, with new noise."""
    n_features = len(game.feature_names)
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(n_features) for _ in range(n_orderings)])
    needed = np.ones((n_orderings, n_features + 1), bool)

    def once() -> None:
        game.path_risks(orders, np.arange(game.n_rows), next(data.epochs), needed)

    if repeats > 1:
        once()  # the first call compiles, allocates and fills caches
    return seconds(once, repeats) / n_orderings


def surpluses(game: LossGame) -> Floats:
    """Return the surpluses along an ordering on all rows."""
    n_features = len(game.feature_names)
    order = np.random.default_rng(0).permutation(n_features)
    needed = np.ones((1, n_features + 1), bool)
    risks = game.path_risks(order[None], np.arange(game.n_rows), 0, needed)[0].mean(axis=(1, 2))
    return risks[:-1] - risks[1:]


def time_module(module: torch.nn.Module, data: Data, sizes: Sizes, repeats: int) -> float:
    """Return the seconds of the module for the rows of an ordering, already on its device."""
    device, dtype = (next(module.parameters()).device, next(module.parameters()).dtype)
    n_features = data.X.shape[1]
    rows = torch.randn(sizes.n_rows * sizes.n_draws * n_features, n_features, device=device)
    rows = rows.to(dtype)
    predictor = TorchPredictor(module)
    once: Callable[[], float] = lambda: float(predictor.on_device(rows).sum())  # noqa: E731
    once()
    return seconds(once, repeats)


def report(*done: object) -> None:
    """Tell what has been measured."""
    print(*done, file=sys.stderr)


def measure_widths(data: Data, sizes: Sizes, repeats: int) -> list[list[str]]:
    """Measure every network on every device."""
    table = []
    for device in ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]:
        for width in sizes.widths:
            trained = train_network(data, width, sizes.n_steps)
            exact = surpluses(game_of(trained.double(), data, sizes, "host"))
            for dtype in (torch.float32, torch.bfloat16):
                if device == "cpu" and dtype == torch.bfloat16:
                    continue  # emulated by most processors
                module = trained.to(device, dtype)
                host, there = (game_of(module, data, sizes, draws) for draws in ("host", "module"))
                by_host = time_paths(host, data, 1, 1)
                # A CPU takes so long that one run is precise enough.
                n_times = 1 if device == "cpu" else repeats
                one = time_paths(there, data, 1, n_times)
                many = time_paths(there, data, sizes.n_orderings, n_times)
                own = time_module(module, data, sizes, n_times)
                scale, found = np.ptp(exact), surpluses(there)
                report(device, width, dtype)
                table.append(
                    [
                        *(device, f"{width:,}", str(dtype).removeprefix("torch.")),
                        *(f"{1e3 * took:.2f}" for took in (by_host, one, many, own)),
                        *(f"{one / own:.2f}", f"{many / own:.2f}"),
                        f"{np.abs(found - surpluses(host)).max() / scale:.1e}",
                        f"{np.abs(found - exact).max() / scale:.1e}",
                    ]
                )
                trained = trained.to("cpu", torch.float64)
    return table


def measure_samplers(data: Data, sizes: Sizes, repeats: int) -> list[list[str]]:
    """Measure the samplers and losses on the accelerator, or on the CPU without one."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    table = []
    for loss, title in LOSSES.items():
        for width in sizes.widths:
            n_classes = 3 if loss == "cross_entropy" else 0
            module = train_network(data, width, sizes.n_steps, n_classes).to(device)
            own = time_module(module, data, sizes, repeats)
            for sampler in data.samplers:
                given = data, sizes
                host = game_of(module, *given, "host", sampler, loss)
                there = game_of(module, *given, "module", sampler, loss)
                many = time_paths(there, data, sizes.n_orderings, repeats)
                expected = surpluses(host)
                gap = np.abs(surpluses(there) - expected).max() / np.ptp(expected)
                report(loss, width, sampler)
                times = f"{1e3 * many:.2f}", f"{1e3 * own:.2f}", f"{many / own:.2f}"
                table.append([title, f"{width:,}", sampler, *times, f"{gap:.1e}"])
    return table


def measure_runs(data: Data, sizes: Sizes, repeats: int) -> list[list[str]]:
    """Measure runs with draws on the device, by the rows of an ordering."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    table = []
    per_row = sizes.n_rows * sizes.n_draws * data.X.shape[1]
    for width in sizes.widths:
        module = train_network(data, width, sizes.n_steps).to(device)
        own = time_module(module, data, sizes, repeats) / per_row
        for n_rows in sizes.run_rows:
            times, n_predicted = [], 0
            for _ in range(2):
                game = game_of(module, data, sizes, "module")
                before, start = game.n_predicted, time.perf_counter()
                n_orderings = 64 * sizes.n_rows // n_rows // 16
                run(
                    game,
                    random_state=0,
                    exact="never",
                    first_level="none",
                    audit=False,
                    rows_per_ordering=n_rows,
                    stopping=as_stopping(n_orderings=n_orderings),
                )
                times.append(time.perf_counter() - start)
                n_predicted = game.n_predicted - before
            took, alone = min(times), own * n_predicted
            shown = f"{n_predicted:,}", f"{took:.3f}", f"{alone:.3f}", f"{took / alone:.2f}"
            table.append([f"{width:,}", f"{n_rows:,}", *shown])
    return table


def sections(data: Data, sizes: Sizes, repeats: int) -> list[Section]:
    """Measure everything."""
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    first = (
        f"One ordering of the 49 features of the paper's `{GRAPH}`, with {sizes.n_rows:,} rows, "
        f"{sizes.n_draws} draws, a Gaussian sampler, squared error, and networks with three hidden "
        "layers of the given *width*: milliseconds for the risks of all prefixes, the shortest of "
        f"{repeats} runs on an accelerator, with new noise in each. Draws are made *by the host* "
        "or on the device of the module, for *one* ordering at a time, or for "
        f"{sizes.n_orderings} at a time, per ordering. *Module alone* is the time of the module "
        "for as many rows that are already on its device; the two ratios are those to it. "
        "*Host or device* is the largest difference between surpluses with draws from the host "
        "and from the device, as a share of the range "
        "of the surpluses. *To float64* is the same difference between draws on the device and a "
        f"computation in float64. {torch.get_num_threads()} threads; CUDA device: {name}."
    )
    header = [
        *("device", "width", "dtype", "by host, ms", "one, ms", f"{sizes.n_orderings}, ms each"),
        *("module alone, ms", "one / module", f"{sizes.n_orderings} / module"),
        *("host or device", "to float64"),
    ]
    second = (
        f"The same with other samplers and with classes, {sizes.n_orderings} orderings at a time, "
        "in float32 on the accelerator (the CPU, if there is none)."
    )
    others = [
        *("loss", "width", "sampler", f"{sizes.n_orderings}, ms each", "module alone, ms"),
        *("ratio", "host or device"),
    ]
    third = (
        "Whole runs of the estimate with draws on the device, by the rows on which an ordering is "
        "evaluated (`rows_per_ordering`): seconds, and those of the module alone for as many rows. "
        "Gaussian sampler, squared error, float32, no first level."
    )
    runs = ["width", "rows per ordering", "predictions", "run, s", "module alone, s", "ratio"]
    return [
        (first, markdown(header, measure_widths(data, sizes, repeats))),
        (second, markdown(others, measure_samplers(data, sizes, repeats))),
        (third, markdown(runs, measure_runs(data, sizes, repeats))),
    ]


def main(sizes: Sizes, repeats: int, *, is_published: bool) -> None:
    """Measure and publish the tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sections(draw_data(sizes), sizes, repeats)
    if is_published:
        title = "PyTorch modules: where draws are made"
        publish("torch_device", title, found, ["dsage", "numpy", "torch"])
    else:
        print("\n\n".join(part for section in found for part in section))


def parse_options() -> Any:  # noqa: ANN401
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tiny", action="store_true", help="small sizes, for a trial")
    return parser.parse_args()


if __name__ == "__main__":
    given = parse_options()
    tiny = Sizes(
        n_train=500, n_rows=100, n_orderings=2, widths=(32,), n_steps=20, run_rows=(32, 100)
    )
    main(tiny if given.tiny else Sizes(), given.repeats, is_published=not given.tiny)
