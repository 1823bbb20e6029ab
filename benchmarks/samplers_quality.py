"""How near samplers come to the true conditional distributions, and what they cost.

Run: python -m benchmarks.samplers_quality
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks.sampler_cases import problems
from benchmarks.sampler_problems import Exam
from benchmarks.sampler_tables import real_tables
from benchmarks.table import markdown, publish
from dsage.samplers import (
    Gaussian,
    GaussianCopula,
    GaussianMixture,
    Mix,
    Neighbors,
    Sequential,
    choose_sampler,
)
from dsage.samplers.base import Sampler

N_TRAINING_SETS = 2
SAMPLERS: dict[str, Callable[[], Sampler]] = {
    "Mix": Mix,
    "Gaussian": Gaussian,
    "GaussianCopula": GaussianCopula,
    "GaussianMixture": GaussianMixture,
    "Neighbors": Neighbors,
    "Sequential": Sequential,
}
"""How to make each sampler, by name."""


def examine(exam: Exam, make: Callable[[], Sampler], n_rows: int, n_sets: int) -> list[float]:
    """Return error, MSEv, seconds to fit and microseconds to draw a row, over training sets."""
    found = []
    problem = exam.problem
    for number in range(n_sets):
        rows = problem.to_frame(problem.sample(n_rows, 1_000 + number))
        start = time.process_time()
        sampler = make().fit(rows)
        fitted = time.process_time()
        error, msev = exam.grade(sampler)
        noise = np.random.default_rng(0).uniform(1e-9, 1 - 1e-9, (100, 32, problem.d))
        known = np.arange(problem.d) % 2 == 0
        drawing = time.process_time()
        sampler.draw(problem.to_frame(exam.rows[:100]), known, noise)
        drawn = 1e6 * (time.process_time() - drawing) / (100 * 32)
        found.append([error, msev, fitted - start, drawn])
    return np.mean(found, axis=0).tolist()  # type: ignore[no-any-return]


def errors_of_problems() -> list[tuple[str, str]]:
    """Return the tables of problems whose conditionals are known."""
    errors, msevs, costs = [], [], []
    for title, make_problem in problems().items():
        exam = Exam(make_problem())
        cells: dict[str, list[float] | None] = {}
        for name, make in SAMPLERS.items():
            if exam.problem.is_class.any() and name.startswith("Gaussian"):
                cells[name] = None
                continue
            cells[name] = examine(exam, make, 2_000, N_TRAINING_SETS)
        large = examine(exam, Mix, 10_000, 1)
        lines = [cell or [np.nan] * 4 for cell in cells.values()]
        errors.append([title, f"{large[0]:.1f}", *_show(lines, 0, "{:.1f}")])
        msevs.append([title, *_show(lines, 1, "{:.3f}")])
        costs.append([title, *_show(lines, 2, "{:.2f}"), *_show(lines, 3, "{:.1f}")])
        print(errors[-1], flush=True)
    names = list(SAMPLERS)
    about = (
        "Largest error of a SAGE value (squared error, all coalitions or 12 orderings), in % of the"
        f" range of the values, at 2,000 training rows, mean over {N_TRAINING_SETS} training sets;"
        " 200 evaluation rows, exact conditionals. Errors below 0.5 to 1 % are noise of the truth."
    )
    return [
        (
            f"## Known conditionals\n\n{about}",
            markdown(["problem", "Mix, 10,000 rows", *names], errors),
        ),
        (
            (
                "MSEv: mean squared distance of the prediction from the mean prediction over draws,"
                " divided by the variance of predictions. Lower is better."
            ),
            markdown(["problem", *names], msevs),
        ),
        (
            "Seconds to fit to 2,000 rows, and microseconds to draw a row (processor time).",
            markdown(
                ["problem", *[f"fit: {n}" for n in names], *[f"draw: {n}" for n in names]], costs
            ),
        ),
    ]


def _show(lines: list[list[float]], position: int, form: str) -> list[str]:
    return ["" if np.isnan(line[position]) else form.format(line[position]) for line in lines]


def scores_of_tables() -> list[tuple[str, str]]:
    """Return the tables of held-out scores on real tables."""
    lines = []
    for table in real_tables():
        made = {name: make() for name, make in SAMPLERS.items()}
        choice = choose_sampler(table.X, made, predict=table.predict, seconds=60, n_draws=16)
        for name, line in choice.scores.iterrows():
            if line["error"] or np.isnan(line["energy_score"]):
                continue
            chosen = f"**{name}**" if name == choice.name else str(name)
            lines.append(
                [
                    f"{table.name} ({len(table.X):,} x {table.X.shape[1]})",
                    chosen,
                    f"{line['msev']:.4f}",
                    f"{line['msev_difference']:.4f} ± {line['msev_se']:.4f}",
                    f"{line['energy_score']:.4f}",
                    f"{line['difference']:.4f} ± {line['se']:.4f}",
                    f"{line['fit_seconds']:.2f}",
                    f"{line['draw_seconds']:.2f}",
                ]
            )
        print(lines[-1], flush=True)
    about = (
        "Held-out scores with a boosting model, as `choose_sampler` has them (the chosen one in"
        " bold); differences from the best, ± paired standard error. Samplers that were given up"
        " in the race have scores on fewer rows."
    )
    header = ["table", "sampler", "MSEv", "above the best", "energy score", "above the best"]
    return [(f"## Real tables\n\n{about}", markdown([*header, "fit, s", "scoring, s"], lines))]


def main() -> None:
    """Measure everything and publish the tables."""
    warnings.simplefilter("ignore")
    sections = [*errors_of_problems(), *scores_of_tables()]
    packages = ["dsage", "numpy", "scikit-learn"]
    publish("samplers_quality", "Quality of samplers", sections, packages)


if __name__ == "__main__":
    main()
