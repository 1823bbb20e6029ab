"""Measure how close samplers come to the true conditional distributions, and what they cost.

Run: python -m benchmarks.samplers_quality
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks.sampler_cases import fresh_problems, problems
from benchmarks.sampler_exam import N_FEW_ROWS, N_GIVEN, N_ROWS, N_ROWS_OF_MANY, Exam
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

N_TRAINING_SETS = 2  # of Mix; the errors of the others need no such precision
SAMPLERS: dict[str, Callable[[], Sampler]] = {
    "Mix": Mix,
    "Gaussian": Gaussian,
    "GaussianCopula": GaussianCopula,
    "GaussianMixture": GaussianMixture,
    "Neighbors": Neighbors,
    "Sequential": Sequential,
}
"""How to make each sampler, by name."""


def examine(
    exam: Exam, make: Callable[[], Sampler], n_rows: int, n_sets: int = 1, n_graded: int = N_ROWS
) -> list[float]:
    """Return the grade, seconds to fit and microseconds to draw a row, over training sets."""
    found = []
    problem = exam.problem
    for number in range(n_sets):
        rows = problem.to_frame(problem.sample(n_rows, 1_000 + number))
        start = time.process_time()
        sampler = make().fit(rows)
        fitted = time.process_time()
        grade = exam.grade(sampler, n_graded)
        noise = np.random.default_rng(0).uniform(1e-9, 1 - 1e-9, (100, 32, problem.d))
        known = np.arange(problem.d) % 2 == 0
        drawing = time.process_time()
        sampler.draw(problem.to_frame(exam.rows[:100]), known, noise)
        drawn = 1e6 * (time.process_time() - drawing) / (100 * 32)
        found.append([*grade, fitted - start, drawn])
    return np.mean(found, axis=0).tolist()  # type: ignore[no-any-return]


_ERROR, _SE, _SPREAD, _MSEV, _FIT, _DRAW = range(6)  # of what `examine` returns


def errors_of_problems() -> list[tuple[str, str]]:
    """Return the tables of problems whose conditionals are known."""
    errors, of_mix, msevs, costs = [], [], [], []
    for title, make_problem in problems().items():
        exam = Exam(make_problem())
        small, large = examine(exam, Mix, 2_000, N_TRAINING_SETS), examine(exam, Mix, 10_000)
        lines = [small]
        for name in list(SAMPLERS)[1:]:
            if exam.problem.is_class.any() and name.startswith("Gaussian"):
                lines.append([np.nan] * 6)
                continue
            lines.append(examine(exam, SAMPLERS[name], 2_000, n_graded=N_FEW_ROWS))
        errors.append([title, *_show([large, *lines], _ERROR, "{:.1f}")])
        told = [f"{each[_ERROR]:.2f} ± {each[_SE]:.2f}" for each in (small, large)]
        of_mix.append([title, *told, *_show([small, large], _SPREAD, "{:.1f}")])
        msevs.append([title, *_show(lines, _MSEV, "{:.3f}")])
        costs.append([title, *_show(lines, _FIT, "{:.2f}"), *_show(lines, _DRAW, "{:.1f}")])
        print(of_mix[-1], errors[-1], flush=True)
    names = list(SAMPLERS)
    about = (
        "Largest error of a SAGE value (squared error, all coalitions or 12 orderings) in the"
        " population, in % of the range of the values, at 2,000 training rows. The model is the"
        " mean of the target, so the risk of a coalition is too high by the mean squared distance"
        " of the sampler's mean prediction from the true one. That is estimated as a product of"
        " two independent distances, without bias and with little noise, on"
        f" {N_ROWS:,} rows ({N_ROWS_OF_MANY} with more than six columns;"
        f" {N_FEW_ROWS} for the samplers other than `Mix`). With four curved columns a few rows in"
        " the tails make most of the error: there, columns with different rows do not compare."
    )
    more = (
        f"The errors of `Mix` with their standard errors (2,000 rows: mean of {N_TRAINING_SETS}"
        f" training sets), and the standard deviation that {N_GIVEN} given evaluation rows add to"
        " the error of a value: its mean over rows is zero, so it falls with their number."
    )
    spreads = [f"given {N_GIVEN} rows, 2,000", f"given {N_GIVEN} rows, 10,000"]
    return [
        (
            f"## Known conditionals\n\n{about}",
            markdown(["problem", "Mix, 10,000 rows", *names], errors),
        ),
        (more, markdown(["problem", "2,000 rows", "10,000 rows", *spreads], of_mix)),
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


def errors_of_fresh_problems() -> list[tuple[str, str]]:
    """Return the table of random problems that no setting was chosen on."""
    lines = []
    for title, make_problem in fresh_problems().items():
        exam = Exam(make_problem())
        found = [examine(exam, Mix, n_rows, N_TRAINING_SETS) for n_rows in (2_000, 10_000)]
        others = [
            examine(exam, SAMPLERS[name], 2_000, n_graded=N_FEW_ROWS)[_ERROR]
            for name in ("GaussianCopula", "Neighbors", "Sequential")
            if not (exam.problem.is_class.any() and name.startswith("Gaussian"))
        ]
        told = [f"{each[_ERROR]:.2f} ± {each[_SE]:.2f}" for each in found]
        lines.append([title, *told, f"{min(others):.1f}"])
        print(lines[-1], flush=True)
    about = (
        "Random problems of the same kinds (benchmarks/sampler_cases.py), on which no setting of a"
        " sampler was chosen: the largest error of a SAGE value with `Mix`, in % of the range, and"
        " the smallest one of `GaussianCopula`, `Neighbors` and `Sequential` at 2,000 rows."
    )
    head = ["problem", "Mix, 2,000 rows", "Mix, 10,000 rows", "best other"]
    return [(f"## Fresh problems\n\n{about}", markdown(head, lines))]


def fit_seconds() -> list[tuple[str, str]]:
    """Return the table of the times to fit `Mix` to larger tables."""
    lines = []
    for n_rows, d in ((10_000, 10), (10_000, 50), (50_000, 20)):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n_rows, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
        X[:, ::3] = np.exp(0.5 * X[:, ::3])
        X[:, 1::3] += 3.0 * (rng.random((n_rows, 1)) < 0.3)
        start = time.process_time()
        Mix().fit(X)
        lines.append([f"{n_rows:,} x {d}", f"{time.process_time() - start:.1f}"])
    about = "Processor seconds to fit `Mix` to tables with skewed columns and two clusters."
    return [(f"## Times to fit\n\n{about}", markdown(["rows x columns", "seconds"], lines))]


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
    sections = [*errors_of_problems(), *errors_of_fresh_problems()]
    sections += [*fit_seconds(), *scores_of_tables()]
    packages = ["dsage", "numpy", "scikit-learn"]
    publish("samplers_quality", "Quality of samplers", sections, packages)


if __name__ == "__main__":
    main()
